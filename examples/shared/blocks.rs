//! How documents come to the examples: each with its length in front.

use std::io::{self, Read};

/// One block (its length in four bytes, little-endian, and as many bytes), or
/// nothing at the clean end of the input.
pub(crate) fn read_block(input: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut length = [0; 4];
    if input.read(&mut length[..1])? == 0 {
        return Ok(None);
    }
    input.read_exact(&mut length[1..])?;
    let length = u64::from(u32::from_le_bytes(length));
    let mut block = Vec::new();
    if input.take(length).read_to_end(&mut block)? as u64 != length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(Some(block))
}

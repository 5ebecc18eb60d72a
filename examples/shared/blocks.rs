//! The input format of the examples: each document follows its length.

use std::io::{self, Read};

/// Reads one block: its length in four bytes, little-endian, and its bytes. `None` at the end
/// of the input.
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

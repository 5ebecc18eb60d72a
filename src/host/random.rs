//! Random names and UUIDs that cannot be guessed.

use std::io;

/// Returns random bytes from the kernel.
fn bytes() -> io::Result<[u8; 16]> {
    let mut bytes = [0u8; 16];
    // Not /dev/urandom: an empty chroot has none.
    // SAFETY: fills at most `bytes.len()` bytes of `bytes`.
    let count = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    if usize::try_from(count) == Ok(bytes.len()) {
        Ok(bytes)
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Returns sixteen random letters, for a unique name.
pub fn name() -> io::Result<String> {
    let letter = |byte| char::from(b'a' + byte % 26);
    Ok(bytes()?.into_iter().map(letter).collect())
}

/// Returns four random letters or digits.
pub fn mark() -> io::Result<String> {
    const LETTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    let letter = |byte: &u8| char::from(LETTERS[usize::from(*byte) % LETTERS.len()]);
    Ok(bytes()?.iter().take(4).map(letter).collect())
}

/// Returns a random UUID (RFC 9562, version 4).
pub fn uuid() -> io::Result<String> {
    let mut bytes = bytes()?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let mut text = String::new();
    for (index, byte) in bytes.iter().enumerate() {
        if [4, 6, 8, 10].contains(&index) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_is_well_formed_and_new_each_time() {
        let (one, other) = (uuid().unwrap(), uuid().unwrap());
        assert_ne!(one, other);
        for uuid in [one, other] {
            let lengths: Vec<usize> = uuid.split('-').map(str::len).collect();
            assert_eq!(lengths, [8, 4, 4, 4, 12], "{uuid}");
            assert!(uuid.as_bytes()[14] == b'4' && b"89ab".contains(&uuid.as_bytes()[19]));
        }
    }
}

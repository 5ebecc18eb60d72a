//! SHA-256 digests (FIPS 180-4), with which clients verify files, and HMACs of them (RFC 2104).

use std::io::{self, Read, Write};

use ring::digest::{Context, SHA256, digest};
use ring::hmac;

use crate::limits;

/// Returns the digest as 64 lowercase hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    hexadecimal(digest(&SHA256, bytes).as_ref())
}

/// Returns the HMAC-SHA-256 of a text, as 64 hexadecimal digits.
pub fn hmac_sha256(key: &[u8], text: &[u8]) -> String {
    hexadecimal(hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text).as_ref())
}

/// Copies all bytes, and returns their digest like [`sha256`].
pub fn copy_sha256(from: &mut dyn Read, to: &mut dyn Write) -> io::Result<String> {
    let mut context = Context::new(&SHA256);
    let mut piece = vec![0; limits::READ_BYTES];
    loop {
        match from.read(&mut piece) {
            Ok(0) => return Ok(hexadecimal(context.finish().as_ref())),
            Ok(length) => {
                context.update(&piece[..length]);
                to.write_all(&piece[..length])?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Whether a text is a SHA-1 or SHA-256 digest in hexadecimal digits, as the name of a commit is.
pub fn is_digest(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The digits of a digest.
pub fn hexadecimal(digest: &[u8]) -> String {
    digest.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples that the authors of the standard publish.
    #[test]
    fn digests_match_the_examples_of_the_standard() {
        let million = vec![b'a'; 1_000_000];
        let two_blocks = b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
        for (text, digest) in [
            (&b""[..], "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            (b"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            (two_blocks, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"),
            (&million, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"),
        ] {
            assert_eq!(sha256(text), digest);
        }
    }
}

//! SHA-256 digests (FIPS 180-4), with which clients verify files.

use ring::digest::{SHA256, digest};

/// Returns the digest as 64 lowercase hexadecimal digits.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    let digest = digest(&SHA256, bytes);
    let digits = digest.as_ref().iter().flat_map(|byte| {
        [byte >> 4, byte & 0xf].map(|half| char::from_digit(half.into(), 16).unwrap_or('0'))
    });
    digits.collect()
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

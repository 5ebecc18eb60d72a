//! Whether a certificate may sign those of servers, by the rules that OpenSSL
//! has for roots.
//!
//! webpki makes an authority of every certificate that it is given as one,
//! whatever the certificate itself says.

const BOOLEAN: u8 = 0x01;
const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const OBJECT_IDENTIFIER: u8 = 0x06;
const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;

/// 2.5.29.15
const KEY_USAGE: [u8; 3] = [0x55, 0x1d, 0x0f];
/// 2.5.29.19
const BASIC_CONSTRAINTS: [u8; 3] = [0x55, 0x1d, 0x13];
/// 2.5.29.37
const EXTENDED_KEY_USAGE: [u8; 3] = [0x55, 0x1d, 0x25];
/// 1.3.6.1.5.5.7.3.1
const SERVER_AUTHENTICATION: [u8; 8] = [0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x01];

/// `keyCertSign`, the sixth bit of the key's usages.
const CERTIFICATE_SIGNING: u8 = 0x80 >> 5;

/// Whether this certificate, in DER, is an authority's: `CA:TRUE`, and no usage
/// stands there that excludes it; or version 1, which has no extensions, and
/// issued by itself. What cannot be read is none; webpki is stricter about that.
pub(super) fn may_sign(certificate: &[u8]) -> bool {
    is_authority(certificate).unwrap_or(false)
}

fn is_authority(mut certificate: &[u8]) -> Option<bool> {
    let mut signed = contents(&mut certificate, SEQUENCE)?;
    let fields = &mut contents(&mut signed, SEQUENCE)?;
    let has_version = fields.first() == Some(&VERSION);
    if has_version && contents(fields, VERSION)? != [INTEGER, 1, 2] {
        return None;
    }
    contents(fields, INTEGER)?; // serial number
    contents(fields, SEQUENCE)?; // algorithm of the signature
    let issuer = contents(fields, SEQUENCE)?;
    contents(fields, SEQUENCE)?; // dates
    let subject = contents(fields, SEQUENCE)?;
    contents(fields, SEQUENCE)?; // key
    if !has_version {
        return Some(fields.is_empty() && issuer == subject);
    }
    let mut wrapped = contents(fields, EXTENSIONS)?;
    extensions_allow(contents(&mut wrapped, SEQUENCE)?)
}

fn extensions_allow(mut extensions: &[u8]) -> Option<bool> {
    let mut is_authority = false;
    while !extensions.is_empty() {
        let fields = &mut contents(&mut extensions, SEQUENCE)?;
        let id = contents(fields, OBJECT_IDENTIFIER)?;
        if fields.first() == Some(&BOOLEAN) {
            contents(fields, BOOLEAN)?; // whether it is critical
        }
        let value = &mut contents(fields, OCTET_STRING)?;
        let allows = if id == BASIC_CONSTRAINTS {
            is_authority = contents(value, SEQUENCE)?.starts_with(&[BOOLEAN, 1, 0xff]);
            is_authority
        } else if id == KEY_USAGE {
            let bits = contents(value, BIT_STRING)?.get(1)?;
            bits & CERTIFICATE_SIGNING != 0
        } else if id == EXTENDED_KEY_USAGE {
            names_servers(contents(value, SEQUENCE)?)?
        } else {
            true
        };
        if !allows {
            return Some(false);
        }
    }
    Some(is_authority)
}

fn names_servers(mut usages: &[u8]) -> Option<bool> {
    while !usages.is_empty() {
        if contents(&mut usages, OBJECT_IDENTIFIER)? == SERVER_AUTHENTICATION {
            return Some(true);
        }
    }
    Some(false)
}

/// Takes the next value, which must have this tag. No length needs more than
/// two bytes: webpki takes no longer ones.
fn contents<'d>(input: &mut &'d [u8], tag: u8) -> Option<&'d [u8]> {
    let (&[first, length], mut rest) = input.split_first_chunk()?;
    let length = match length {
        0..=0x7f => usize::from(length),
        0x81 | 0x82 => {
            let (bytes, behind) = rest.split_at_checked(usize::from(length & 0x7f))?;
            rest = behind;
            let add = |sum: usize, &byte: &u8| (sum << 8) | usize::from(byte);
            bytes.iter().fold(0, add)
        }
        _ => return None,
    };
    let (value, rest) = rest.split_at_checked(length)?;
    *input = rest;
    (first == tag).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;

    fn certificate(name: &str) -> CertificateDer<'static> {
        let root = env!("CARGO_MANIFEST_DIR");
        CertificateDer::from_pem_file(format!("{root}/tests/data/tls/{name}.pem")).unwrap()
    }

    #[test]
    fn certificates_say_whether_they_may_sign() {
        for name in ["ca", "self-signed", "v1"] {
            assert!(may_sign(&certificate(name)), "{name}");
        }
        for name in ["server", "other-name", "self-leaf", "v1-leaf", "ca-unsigning", "ca-mail"] {
            assert!(!may_sign(&certificate(name)), "{name}");
        }
    }

    #[test]
    fn every_extension_has_to_allow_it() {
        // CA:TRUE, pathlen:0; keyCertSign and cRLSign; clientAuth and serverAuth
        let mut extensions = vec![
            0x30, 0x12, 6, 3, 0x55, 0x1d, 0x13, 1, 1, 0xff, 4, 8, 0x30, 6, 1, 1, 0xff, 2, 1, 0,
        ];
        assert_eq!(extensions_allow(&extensions), Some(true));
        extensions.extend([0x30, 0x0b, 6, 3, 0x55, 0x1d, 0x0f, 4, 4, 3, 2, 1, 6]);
        assert_eq!(extensions_allow(&extensions), Some(true));
        extensions.extend([0x30, 0x1d, 6, 3, 0x55, 0x1d, 0x25, 4, 0x16, 0x30, 0x14]);
        for usage in [2, 1] {
            extensions.extend([6, 8, 0x2b, 6, 1, 5, 5, 7, 3, usage]);
        }
        assert_eq!(extensions_allow(&extensions), Some(true));
        // An empty list of usages allows none.
        extensions.extend([0x30, 9, 6, 3, 0x55, 0x1d, 0x25, 4, 2, 0x30, 0]);
        assert_eq!(extensions_allow(&extensions), Some(false));
        assert_eq!(extensions_allow(&[]), Some(false));
    }

    #[test]
    fn broken_certificates_are_no_authorities() {
        for name in ["ca", "ca-mail", "v1", "self-leaf", "v1-leaf"] {
            let whole = certificate(name);
            for end in 0..whole.len() {
                assert!(!may_sign(&whole[..end]), "{name} ends at {end}");
            }
            for bit in 0..whole.len() * 8 {
                let mut changed = whole.to_vec();
                changed[bit / 8] ^= 1 << (bit % 8);
                let is_authority = may_sign(&changed);
                assert!(!is_authority || !name.ends_with("leaf"), "{name}, bit {bit}");
            }
        }
    }
}

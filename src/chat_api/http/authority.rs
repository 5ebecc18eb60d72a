//! Check of whether a certificate may sign others, by OpenSSL's rules for roots.
//!
//! webpki trusts every certificate in its list of authorities as one, even if the certificate
//! itself says that it is not.

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

/// `keyCertSign`, bit 5 of the key usage.
const CERTIFICATE_SIGNING: u8 = 0x80 >> 5;

/// Whether this certificate, in DER, belongs to an authority: it says `CA:TRUE`, and no key
/// usage excludes signing; or it has version 1, which has no extensions, and is issued by
/// itself. Returns false for a certificate that cannot be parsed; webpki parses more strictly.
pub(super) fn may_sign(certificate: &[u8]) -> bool {
    is_authority(certificate).unwrap_or(false)
}

fn is_authority(mut certificate: &[u8]) -> Option<bool> {
    let mut signed = read_value(&mut certificate, SEQUENCE)?;
    let fields = &mut read_value(&mut signed, SEQUENCE)?;
    let has_version = fields.first() == Some(&VERSION);
    if has_version && read_value(fields, VERSION)? != [INTEGER, 1, 2] {
        return None; // not version 3
    }
    read_value(fields, INTEGER)?; // serial number
    read_value(fields, SEQUENCE)?; // algorithm of the signature
    let issuer = read_value(fields, SEQUENCE)?;
    read_value(fields, SEQUENCE)?; // dates
    let subject = read_value(fields, SEQUENCE)?;
    read_value(fields, SEQUENCE)?; // key
    if !has_version {
        return Some(fields.is_empty() && issuer == subject);
    }
    let mut wrapped = read_value(fields, EXTENSIONS)?;
    extensions_allow(read_value(&mut wrapped, SEQUENCE)?)
}

fn extensions_allow(mut extensions: &[u8]) -> Option<bool> {
    let mut is_authority = false;
    while !extensions.is_empty() {
        let fields = &mut read_value(&mut extensions, SEQUENCE)?;
        let id = read_value(fields, OBJECT_IDENTIFIER)?;
        if fields.first() == Some(&BOOLEAN) {
            read_value(fields, BOOLEAN)?; // whether it is critical
        }
        let value = &mut read_value(fields, OCTET_STRING)?;
        let allows = if id == BASIC_CONSTRAINTS {
            is_authority = read_value(value, SEQUENCE)?.starts_with(&[BOOLEAN, 1, 0xff]);
            is_authority
        } else if id == KEY_USAGE {
            let bits = read_value(value, BIT_STRING)?.get(1)?;
            bits & CERTIFICATE_SIGNING != 0
        } else if id == EXTENDED_KEY_USAGE {
            include_server_authentication(read_value(value, SEQUENCE)?)?
        } else {
            true
        };
        if !allows {
            return Some(false);
        }
    }
    Some(is_authority)
}

fn include_server_authentication(mut usages: &[u8]) -> Option<bool> {
    while !usages.is_empty() {
        if read_value(&mut usages, OBJECT_IDENTIFIER)? == SERVER_AUTHENTICATION {
            return Some(true);
        }
    }
    Some(false)
}

/// Reads the next value, which must have this tag. Lengths have at most two bytes: webpki
/// accepts no longer ones.
fn read_value<'d>(input: &mut &'d [u8], tag: u8) -> Option<&'d [u8]> {
    let (&[actual_tag, length], mut rest) = input.split_first_chunk()?;
    let length = match length {
        0..=0x7f => usize::from(length),
        0x81 | 0x82 => {
            let (bytes, after) = rest.split_at_checked(usize::from(length & 0x7f))?;
            rest = after;
            let add = |sum: usize, &byte: &u8| (sum << 8) | usize::from(byte);
            bytes.iter().fold(0, add)
        }
        _ => return None,
    };
    let (value, rest) = rest.split_at_checked(length)?;
    *input = rest;
    (actual_tag == tag).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;

    fn certificate(name: &str) -> CertificateDer<'static> {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        CertificateDer::from_pem_file(format!("{root}/tests/data/tls/{name}.pem")).unwrap()
    }

    #[test]
    fn only_authorities_may_sign() {
        for name in ["ca", "self-signed", "v1"] {
            assert!(may_sign(&certificate(name)), "{name}");
        }
        for name in ["server", "other-name", "self-leaf", "v1-leaf", "ca-unsigning", "ca-mail"] {
            assert!(!may_sign(&certificate(name)), "{name}");
        }
    }

    #[test]
    fn every_extension_must_allow_signing() {
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
        // An empty list of usages allows nothing.
        extensions.extend([0x30, 9, 6, 3, 0x55, 0x1d, 0x25, 4, 2, 0x30, 0]);
        assert_eq!(extensions_allow(&extensions), Some(false));
        assert_eq!(extensions_allow(&[]), Some(false));
    }

    #[test]
    fn broken_certificates_may_not_sign() {
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

//! `skill://NAME/path`: URIs of skills' files.
//!
//! Every byte that is not an unreserved character (RFC 3986) is percent-encoded, so
//! that each path has exactly one URI. Parsing refuses paths that lead upwards;
//! opening a file confines its path as well.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};

use base::limits;

/// The characters that are encoded: all except the unreserved ones.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

const SCHEME: &str = "skill://";
const TOO_LONG: &str = "it is too long";

/// Parsed URI.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ResourceUri {
    /// The skill's published name; see `published_skills`.
    pub skill: String,
    /// Path below the skill's folder; empty for the folder itself.
    pub path: OsString,
}

/// URI of a skill's folder, without a trailing slash.
pub(super) fn skill_uri(skill: &str) -> String {
    format!("{SCHEME}{}", percent_encode(skill.as_bytes(), RESERVED))
}

/// URI of a path below the folder with the URI `folder`.
pub(super) fn file_uri(folder: &str, path: &Path) -> String {
    let mut address = folder.trim_end_matches('/').to_string();
    for name in path {
        address.push('/');
        address.extend(percent_encode(name.as_bytes(), RESERVED));
    }
    address
}

/// Parses a URI, or returns why it is invalid.
pub(super) fn parse(address: &str) -> Result<ResourceUri, &'static str> {
    let rest = match address.split_at_checked(SCHEME.len()) {
        // The letter case of a scheme does not matter.
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case(SCHEME) => rest,
        _ => return Err("it does not start with skill://"),
    };
    if address.len() > limits::RESOURCE_URI_BYTES {
        return Err(TOO_LONG);
    }
    if rest.contains(['?', '#']) {
        return Err("it has a query or a fragment");
    }
    let mut names = rest.split('/');
    // Only compared with the names of skills, of which some contain a slash.
    let skill = decoded(names.next().unwrap_or_default())?;
    let names = names.map(segment);
    let mut path = Vec::new();
    for name in names {
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend(name?);
    }
    if path.len() > limits::PATH_BYTES {
        return Err(TOO_LONG);
    }
    Ok(ResourceUri {
        skill: String::from_utf8(skill).map_err(|_| "the skill's name in it is not UTF-8")?,
        path: OsString::from_vec(path),
    })
}

/// Decodes the part between two slashes, which is the name of a file or folder.
fn segment(text: &str) -> Result<Vec<u8>, &'static str> {
    let name = decoded(text)?;
    if name.contains(&b'/') { Err("it has an encoded slash") } else { Ok(name) }
}

/// Decodes the part between two slashes.
fn decoded(text: &str) -> Result<Vec<u8>, &'static str> {
    let is_code = |after: &str| after.bytes().take(2).filter(u8::is_ascii_hexdigit).count() == 2;
    if !text.split('%').skip(1).all(is_code) {
        return Err("a `%` in it is not followed by two hexadecimal digits");
    }
    let name: Vec<u8> = percent_decode_str(text).collect();
    match name.as_slice() {
        b"" => Err("it has an empty part: two slashes in a row, or one at its end"),
        b"." | b".." => Err("it has a part `.` or `..`"),
        _ if name.contains(&0) => Err("it has a NUL character"),
        _ => Ok(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_built_uri_is_parsed_again() {
        let strange = OsString::from_vec((1..=255).filter(|byte| *byte != b'/').collect());
        let strange = strange.as_os_str();
        for (skill, path, address) in [
            ("a-b", "SKILL.md", "skill://a-b/SKILL.md"),
            ("a-b", "", "skill://a-b"),
            ("My Skill", "x y/ü~%._", "skill://My%20Skill/x%20y/%C3%BC~%25._"),
            ("技能", "...", "skill://%E6%8A%80%E8%83%BD/..."),
            ("a:b@c", "d?e#f", "skill://a%3Ab%40c/d%3Fe%23f"),
            ("p/d:s", "x", "skill://p%2Fd%3As/x"),
        ] {
            assert_eq!(file_uri(&skill_uri(skill), Path::new(path)), address);
            let place = parse(address).unwrap();
            assert_eq!((place.skill.as_str(), place.path), (skill, path.into()));
        }
        let address = file_uri(&skill_uri("s"), Path::new(strange));
        assert_eq!(parse(&address).unwrap().path, strange);
        assert_eq!(parse("SKILL://a/b%2dc").unwrap().path, "b-c");
    }

    #[test]
    fn invalid_uris_are_refused() {
        let long = format!("skill://a/{}", "b/".repeat(5000));
        let encoded = format!("skill://a/{}", "%41".repeat(4096));
        for address in [
            "",
            "skill:",
            "skill://",
            "skill:///etc/passwd",
            "skill:/a/b",
            "file:///etc/passwd",
            "https://a/b",
            "a/SKILL.md",
            "skill://a/",
            "skill://a//b",
            "skill://a/./b",
            "skill://a/../b",
            "skill://../b",
            "skill://./b",
            "skill://a/%2e%2E/b",
            "skill://a/.%2e",
            "skill://%2e%2e/b",
            "skill://a/b%2fc",
            "skill://a/b%00",
            "skill://a/b\0",
            "skill://a%00/b",
            "skill://a/%",
            "skill://a/%2",
            "skill://a/%zz",
            "skill://a/%+1",
            "skill://a/b?c",
            "skill://a/b#c",
            "skill://%FF/b",
            " skill://a/b",
            &long,
            &encoded,
        ] {
            assert!(parse(address).is_err(), "{address:?}");
        }
    }
}

//! Whether git tracks a file, read from the index of its repository (gitformat-index(5)). git
//! itself is never started: the settings of a repository can make it run other programs.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::files;
use base::digest::hexadecimal;
use base::limits;

/// The lengths of SHA-1 and SHA-256, of which a repository uses one.
const DIGEST_LENGTHS: [usize; 2] = [20, 32];

/// Whether git tracks the file at this absolute path. A repository or index that cannot be read
/// counts as one that does.
pub fn is_tracked(path: &Path) -> bool {
    let mut folders = path.ancestors().skip(1);
    let Some((top, repository)) = folders.find_map(|top| Some((top, repository(top)?))) else {
        return false;
    };
    let name = path.strip_prefix(top).unwrap_or(path).as_os_str().as_bytes();
    repository.map_or(true, |folder| is_listed(&folder, name))
}

/// The folder of the repository with this work tree; an error if it cannot be found.
fn repository(top: &Path) -> Option<Result<PathBuf, String>> {
    let entry = top.join(".git");
    let kind = entry.metadata().ok()?;
    if kind.is_dir() {
        return entry.join("HEAD").symlink_metadata().is_ok().then_some(Ok(entry));
    }
    let text = files::read_whole(&entry, limits::GIT_FILE_BYTES);
    Some(text.and_then(|text| {
        let place = text.strip_prefix(b"gitdir:").ok_or("it names no folder")?;
        Ok(top.join(OsStr::from_bytes(place.trim_ascii())))
    }))
}

/// Whether the index of a repository lists a file or the folder that contains it.
fn is_listed(repository: &Path, name: &[u8]) -> bool {
    let read = |index: &Path| {
        let bytes = files::read_whole(index, limits::GIT_INDEX_BYTES).ok()?;
        DIGEST_LENGTHS.iter().find_map(|length| Index::read(&bytes, *length, name))
    };
    let index = repository.join("index");
    if index.symlink_metadata().is_err() {
        // A fresh repository has no index.
        return repository.join("HEAD").symlink_metadata().is_err();
    }
    match read(&index) {
        Some(Index { is_listed: false, shared: Some(shared) }) => {
            let shared = read(&repository.join(format!("sharedindex.{shared}")));
            shared.is_none_or(|found| found.is_listed || found.shared.is_some())
        }
        found => found.is_none_or(|found| found.is_listed),
    }
}

/// What an index says of one file.
struct Index {
    is_listed: bool,
    /// The name of the index that this one extends (`link`).
    shared: Option<String>,
}

impl Index {
    /// Reads an index with digests of this length; `None` if it has another form.
    fn read(bytes: &[u8], digest: usize, wanted: &[u8]) -> Option<Index> {
        let body = bytes.get(..bytes.len().checked_sub(digest)?)?;
        let version = number(body, 4).filter(|_| body.starts_with(b"DIRC"))?;
        let count = number(body, 8).filter(|_| (2..=4).contains(&version))?;
        let (mut at, mut name, mut is_listed) = (12, Vec::new(), false);
        for _ in 0..count {
            // Ten numbers of `stat`, the digest, and flags, of which one announces more flags.
            let flags = at + 40 + digest;
            let is_extended = version > 2 && body.get(flags)? & 0x40 != 0;
            let mut start = flags + if is_extended { 4 } else { 2 };
            let removed = if version == 4 { removed(body, &mut start)? } else { name.len() };
            name.truncate(name.len().checked_sub(removed)?);
            let rest = body.get(start..)?;
            let length = rest.iter().position(|byte| *byte == 0)?;
            name.extend_from_slice(&rest[..length]);
            at = match version {
                4 => start + length + 1,
                // One to eight NULs, up to a multiple of eight.
                _ => at + ((start - at + length + 8) & !7),
            };
            // A folder in a sparse index ends with a slash.
            is_listed |= name == wanted || name.ends_with(b"/") && wanted.starts_with(&name);
        }
        let mut shared = None;
        while at < body.len() {
            let size = usize::try_from(number(body, at + 4)?).ok()?;
            let content = body.get(at + 8..at.checked_add(8)?.checked_add(size)?)?;
            if body[at..].starts_with(b"link") {
                let base = content.get(..digest)?;
                shared = Some(hexadecimal(base));
            }
            at += 8 + size;
        }
        (at == body.len()).then_some(Index { is_listed, shared })
    }
}

/// The number of four bytes at a position.
fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_be_bytes(four.try_into().ok()?))
}

/// The number of bytes that the name before has at its end and this one has not (version 4): seven
/// bits a byte, each further byte adding one.
fn removed(bytes: &[u8], at: &mut usize) -> Option<usize> {
    let mut value = 0_usize;
    loop {
        let byte = *bytes.get(*at)?;
        *at += 1;
        value = value.checked_mul(128)?.checked_add(usize::from(byte & 0x7f))?;
        if byte & 0x80 == 0 {
            return Some(value);
        }
        value = value.checked_add(1)?;
    }
}

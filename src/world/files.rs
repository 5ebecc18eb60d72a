//! Files that the user names (settings, instructions, certificates, keys), and
//! small ones of our own.
//!
//! What lies in a skill, and may have been put there by a stranger, is opened
//! by `confined/` instead.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// A regular file, whole, if it is not larger than `most` bytes; otherwise the
/// reason, in words.
pub fn read_whole(path: &Path, most: usize) -> Result<Vec<u8>, String> {
    // A FIFO must not hang the start.
    let file = File::options()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)
        .map_err(|error| error.to_string())?;
    if !file
        .metadata()
        .map_err(|error| error.to_string())?
        .is_file()
    {
        return Err("it is not a regular file".into());
    }
    let mut bytes = Vec::new();
    file.take(most as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| error.to_string())?;
    if bytes.len() > most {
        return Err(format!("it is larger than {most} bytes"));
    }
    Ok(bytes)
}

/// Writes a new file that is on the disk when this returns. Whatever had its name
/// is removed first, so that no link is written through.
pub fn write_new(path: &Path, content: &[u8]) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut file = File::create_new(path)?;
    file.write_all(content)?;
    file.sync_all()
}

//! Files that are run: scripts, modules and programs.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use base::text::folded_name;
use host::confined::{Root, read_whole};

/// Extensions of files that are run.
#[rustfmt::skip]
const EXTENSIONS: [&str; 56] = [
    // Python.
    "py", "pyw", "pyi", "pyc", "pyo", "pyd", "pyx", "pyz", "pth", "egg", "egg-link", "ipynb", "whl",
    // Shells.
    "sh", "bash", "zsh", "fish", "ksh", "csh", "nu", "command", "run", "ps1", "psm1", "psd1",
    "bat", "cmd", "vbs", "hta",
    // Other languages.
    "js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx", "node", "rb", "pl", "pm", "cgi", "php",
    "phar", "lua", "r", "jl", "tcl", "awk", "jar", "wasm",
    // Libraries and programs.
    "so", "dylib", "dll", "exe", "com",
];

/// Whether this file is run, by its extension, its mode or its first bytes.
pub fn is_program(path: &Path) -> bool {
    // As systems that ignore parts of names see it.
    let name = folded_name(&path.file_name().unwrap_or_default().to_string_lossy());
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    let status = path.symlink_metadata();
    let is_executable =
        status.is_ok_and(|status| status.is_file() && status.permissions().mode() & 0o111 != 0);
    // `lib.so.1`.
    EXTENSIONS.contains(&extension)
        || name.contains(".so.")
        || is_executable
        || begins_like_program(path)
}

/// How programs begin: `#!`, and the first bytes of those of Linux, Windows and macOS.
const BEGINNINGS: [&[u8]; 7] = [
    b"#!",
    b"\x7fELF",
    b"MZ",
    b"\xca\xfe\xba\xbe",
    b"\xcf\xfa\xed\xfe",
    b"\xce\xfa\xed\xfe",
    b"\xfe\xed\xfa",
];

/// Whether the file starts like a program, also below a byte order mark. Confined opening does not
/// block on a FIFO or device that has replaced the file.
fn begins_like_program(path: &Path) -> bool {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return false;
    };
    let file = Root::open(folder).and_then(|root| root.file(name));
    let Ok(begin) = file.and_then(|file| read_whole(&file, 8)) else { return false };
    let begin = begin.bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&begin.bytes);
    BEGINNINGS.iter().any(|program| begin.starts_with(program))
}

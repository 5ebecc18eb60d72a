//! Files that affect later runs: programs run them, tools or interpreters read them as
//! settings, or models read them as instructions.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::skills::skill::is_document_name;
use crate::text::folded_name;
use crate::world::confined::{Root, read_whole};

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

/// Extensions of files that are read as instructions.
const INSTRUCTIONS: [&str; 2] = ["md", "mdx"];

/// Names of files that tools and interpreters read as settings.
const NAMES: [&str; 39] = [
    // Of a git repository: the folder itself can be one.
    ".git",
    "config",
    "head",
    ".envrc",
    ".python-version",
    ".python-versions",
    ".tool-versions",
    ".node-version",
    ".nvmrc",
    ".ruby-version",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".condarc",
    ".pypirc",
    ".mcp.json",
    ".gitattributes",
    ".gitmodules",
    ".gitconfig",
    "mise.toml",
    ".mise.toml",
    "uv.toml",
    "uv.lock",
    "pyproject.toml",
    "poetry.lock",
    "pipfile",
    "pipfile.lock",
    "pip.conf",
    "pyvenv.cfg",
    "setup.cfg",
    "environment.yml",
    "package.json",
    "package-lock.json",
    "deno.json",
    "makefile",
    "dockerfile",
    "justfile",
    "plugin.json",
    "skills-runner.lock",
];

/// Prefixes of such names.
const NAME_PREFIXES: [&str; 3] = [".env", "requirements", "constraints"];

/// Folders in which clients keep settings, hooks and workflows.
const SETTINGS_FOLDERS: [&str; 4] = [".claude", ".claude-plugin", ".codex-plugin", ".github"];

/// Whether this file affects later runs, by its path, its mode or its first bytes. Every link
/// does: it may lead to such a file.
pub(super) fn affects_later_runs(path: &Path) -> bool {
    path_affects_later_runs(path) || path.is_symlink() || is_program(path)
}

/// Whether this file is run, by its extension, its mode or its first bytes.
pub(crate) fn is_program(path: &Path) -> bool {
    let status = path.symlink_metadata();
    let is_executable =
        status.is_ok_and(|status| status.is_file() && status.permissions().mode() & 0o111 != 0);
    has_program_name(&name_of(path)) || is_executable || begins_like_program(path)
}

/// The name of a file, as systems that ignore parts of names see it.
fn name_of(path: &Path) -> String {
    folded_name(&path.file_name().unwrap_or_default().to_string_lossy())
}

/// Whether a file of this name, in lower case, is run.
fn has_program_name(name: &str) -> bool {
    // `lib.so.1`.
    EXTENSIONS.contains(&extension(name)) || name.contains(".so.")
}

fn extension(name: &str) -> &str {
    name.rsplit_once('.').map_or("", |(_, extension)| extension)
}

/// Whether a file of this path affects later runs, whatever its content.
pub(super) fn path_affects_later_runs(path: &Path) -> bool {
    let name = name_of(path);
    let is_settings = |folder: &OsStr| SETTINGS_FOLDERS.iter().any(|name| folder == *name);
    is_document_name(&name)
        || has_program_name(&name)
        || INSTRUCTIONS.contains(&extension(&name))
        || NAMES.contains(&name.as_str())
        || NAME_PREFIXES.iter().any(|begin| name.starts_with(begin))
        || path.parent().into_iter().flatten().any(is_settings)
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

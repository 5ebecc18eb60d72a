//! Files that decide about later runs: a program runs them, a tool or an interpreter
//! goes by them, or a model reads them as instructions.

use std::ffi::OsStr;
use std::fs::Metadata;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::skills::skill::is_document;
use crate::world::confined::{Root, read_whole};

/// Extensions of what runs, and of what is read as instructions.
const EXTENSIONS: [&str; 44] = [
    // Python's.
    "py", "pyw", "pyi", "pyc", "pyo", "pyd", "pyx", "pyz", "pth", "egg-link", "ipynb", "whl",
    // Of shells.
    "sh", "bash", "zsh", "fish", "ksh", "command", "ps1", "bat", "cmd",
    // Of other languages.
    "js", "mjs", "cjs", "jsx", "ts", "mts", "tsx", "rb", "pl", "pm", "php", "lua", "r", "tcl",
    "awk", "jar", "wasm", // Libraries and programs.
    "so", "dylib", "dll", "exe", // Instructions.
    "md", "mdx",
];

/// Names that tools and interpreters go by.
const NAMES: [&str; 36] = [
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

/// How names begin that decide whatever follows.
const BEGINNINGS: [&str; 3] = [".env", "requirements", "constraints"];

/// Folders of settings in which clients keep hooks, and of workflows.
const FOLDERS: [&str; 4] = [".claude", ".claude-plugin", ".codex-plugin", ".github"];

/// Whether this file decides about later runs, by its name, its mode or its beginning.
pub(super) fn decides(path: &Path, status: &Metadata) -> bool {
    decides_by_name(path) || status.permissions().mode() & 0o111 != 0 || names_interpreter(path)
}

/// Whether a file of this path decides about later runs, whatever it holds.
pub(super) fn decides_by_name(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.to_lowercase();
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    let is_settings = |folder: &OsStr| FOLDERS.iter().any(|name| folder == *name);
    is_document(&name)
        || EXTENSIONS.contains(&extension)
        // `lib.so.1`.
        || name.contains(".so.")
        || NAMES.contains(&name.as_str())
        || BEGINNINGS.iter().any(|begin| name.starts_with(begin))
        || path.parent().into_iter().flatten().any(is_settings)
}

/// Whether it begins as a script. It is opened through the confined door: nothing that
/// has taken its place is waited for.
fn names_interpreter(path: &Path) -> bool {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return false;
    };
    let file = Root::open(folder).and_then(|root| root.file(name));
    let begin = file.and_then(|file| read_whole(&file, 2));
    begin.is_ok_and(|piece| piece.bytes == b"#!")
}

//! Files that affect later runs: programs run them, tools or interpreters read them as
//! settings, or models read them as instructions.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::skills::skill::is_document_name;
use crate::world::confined::{Root, read_whole};

/// Extensions of files that are run.
const EXTENSIONS: [&str; 42] = [
    // Python.
    "py", "pyw", "pyi", "pyc", "pyo", "pyd", "pyx", "pyz", "pth", "egg-link", "ipynb", "whl",
    // Shells.
    "sh", "bash", "zsh", "fish", "ksh", "command", "ps1", "bat", "cmd",
    // Other languages.
    "js", "mjs", "cjs", "jsx", "ts", "mts", "tsx", "rb", "pl", "pm", "php", "lua", "r", "tcl",
    "awk", "jar", "wasm", // Libraries and programs.
    "so", "dylib", "dll", "exe",
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
    has_program_name(&lower_name(path)) || is_executable || has_shebang(path)
}

fn lower_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().to_lowercase()
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
    let name = lower_name(path);
    let is_settings = |folder: &OsStr| SETTINGS_FOLDERS.iter().any(|name| folder == *name);
    is_document_name(&name)
        || has_program_name(&name)
        || INSTRUCTIONS.contains(&extension(&name))
        || NAMES.contains(&name.as_str())
        || NAME_PREFIXES.iter().any(|begin| name.starts_with(begin))
        || path.parent().into_iter().flatten().any(is_settings)
}

/// Whether the file starts with `#!`. Confined opening does not block on a FIFO or device
/// that has replaced the file.
fn has_shebang(path: &Path) -> bool {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return false;
    };
    let file = Root::open(folder).and_then(|root| root.file(name));
    let begin = file.and_then(|file| read_whole(&file, 2));
    begin.is_ok_and(|piece| piece.bytes == b"#!")
}

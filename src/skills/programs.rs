//! Well-known programs: what they belong to, which take each other's place, and which are on every
//! system.

use std::collections::BTreeSet;

/// Products, and the names of their well-known programs, which messages may also call by that of
/// the first column.
pub const PROGRAMS: &[(&str, &[&str])] = &[
    ("LibreOffice", &["soffice", "libreoffice"]),
    ("poppler-utils", &["pdftoppm", "pdftotext", "pdfinfo", "pdfimages", "pdfunite"]),
    ("qpdf", &["qpdf"]),
    ("Pandoc", &["pandoc"]),
    ("FFmpeg", &["ffmpeg", "ffprobe"]),
    ("ImageMagick", &["magick", "convert", "identify", "mogrify"]),
    ("Ghostscript", &["gs"]),
    ("Tesseract", &["tesseract"]),
    ("Graphviz", &["dot", "neato"]),
    ("Node.js", &["node", "npm", "npx"]),
    ("pnpm", &["pnpm"]),
    ("Yarn", &["yarn"]),
    ("Bun", &["bun", "bunx"]),
    ("Deno", &["deno"]),
    ("TypeScript", &["tsc", "tsx", "ts-node"]),
    ("uv", &["uv", "uvx"]),
    ("Docker", &["docker"]),
    ("GitHub CLI", &["gh"]),
    ("GitLab CLI", &["glab"]),
    ("jq", &["jq"]),
    ("yq", &["yq"]),
    ("ripgrep", &["rg"]),
    ("Chromium", &["chromium", "chromium-browser", "google-chrome"]),
    ("Playwright", &["playwright"]),
    ("wkhtmltopdf", &["wkhtmltopdf", "wkhtmltoimage"]),
    ("ExifTool", &["exiftool"]),
    ("yt-dlp", &["yt-dlp"]),
    ("Git", &["git"]),
    ("curl", &["curl"]),
    ("Wget", &["wget"]),
    ("rsync", &["rsync"]),
    ("zip", &["zip", "unzip"]),
    ("7-Zip", &["7z", "7za"]),
    ("SQLite", &["sqlite3"]),
    ("PostgreSQL", &["psql", "pg_dump"]),
    ("MySQL", &["mysql", "mysqldump"]),
    ("Redis", &["redis-cli"]),
    ("AWS CLI", &["aws"]),
    ("Google Cloud CLI", &["gcloud", "gsutil", "bq"]),
    ("Azure CLI", &["az"]),
    ("Kubernetes", &["kubectl"]),
    ("Helm", &["helm"]),
    ("Terraform", &["terraform"]),
    ("Java", &["java", "javac"]),
    ("Go", &["go", "gofmt"]),
    ("Rust", &["cargo", "rustc"]),
    ("GCC", &["gcc", "g++", "cc"]),
    ("CMake", &["cmake"]),
    ("make", &["make"]),
    ("Ruby", &["ruby", "gem", "bundle"]),
    ("PHP", &["php", "composer"]),
    ("Perl", &["perl"]),
    ("R", &["Rscript"]),
    ("TeX Live", &["pdflatex", "latex", "xelatex", "lualatex", "latexmk", "bibtex"]),
    ("Typst", &["typst"]),
    ("Mermaid CLI", &["mmdc"]),
    ("Inkscape", &["inkscape"]),
    ("librsvg", &["rsvg-convert"]),
    (".NET", &["dotnet"]),
    ("Android SDK", &["adb"]),
    ("Ansible", &["ansible", "ansible-playbook"]),
    ("Apache Maven", &["mvn"]),
    ("Argo CD", &["argocd"]),
    ("Bazel", &["bazel"]),
    ("Firebase CLI", &["firebase"]),
    ("Flutter", &["flutter", "dart"]),
    ("Gradle", &["gradle"]),
    ("Heroku CLI", &["heroku"]),
    ("Hugging Face CLI", &["hf", "huggingface-cli"]),
    ("MongoDB Shell", &["mongosh"]),
    ("Netlify CLI", &["netlify"]),
    ("Nmap", &["nmap"]),
    ("OpenSSL", &["openssl"]),
    ("Poetry", &["poetry"]),
    ("pytest", &["pytest"]),
    ("Semgrep", &["semgrep"]),
    ("Shopify CLI", &["shopify"]),
    ("Stripe CLI", &["stripe"]),
    ("Supabase CLI", &["supabase"]),
    ("tmux", &["tmux"]),
    ("Trivy", &["trivy"]),
    ("Twilio CLI", &["twilio"]),
    ("Vault", &["vault"]),
    ("Vercel CLI", &["vercel"]),
    ("Wireshark", &["tshark", "wireshark"]),
    ("Wrangler", &["wrangler"]),
    ("Xcode", &["xcodebuild", "xcrun", "swift"]),
];

/// Programs that can take each other's place.
pub const ALTERNATIVES: &[&[&str]] = &[
    &["python3", "python"],
    &["soffice", "libreoffice"],
    &["magick", "convert"],
    &["chromium", "chromium-browser", "google-chrome"],
    &["node", "nodejs"],
    &["fd", "fdfind"],
    &["sha256sum", "shasum"],
];

/// Package managers that only the user may run, and how each installs something.
const MANAGERS: [(&str, &str); 4] = [
    ("apt-get", "apt install"),
    ("dnf", "dnf install"),
    ("apk", "apk add"),
    ("brew", "brew install"),
];

/// Names of a product's package for the managers, in their order; one name: all the same.
#[rustfmt::skip]
const SYSTEM_PACKAGES: &[(&str, &[&str])] = &[
    ("LibreOffice", &["libreoffice", "libreoffice", "libreoffice", "--cask libreoffice"]),
    ("poppler-utils", &["poppler-utils", "poppler-utils", "poppler-utils", "poppler"]),
    ("qpdf", &["qpdf"]),
    ("Pandoc", &["pandoc"]),
    ("FFmpeg", &["ffmpeg", "ffmpeg-free", "ffmpeg", "ffmpeg"]),
    ("ImageMagick", &["imagemagick", "ImageMagick", "imagemagick", "imagemagick"]),
    ("Ghostscript", &["ghostscript"]),
    ("Tesseract", &["tesseract-ocr", "tesseract", "tesseract-ocr", "tesseract"]),
    ("Graphviz", &["graphviz"]),
    ("Node.js", &["nodejs npm", "nodejs", "nodejs npm", "node"]),
    ("GitHub CLI", &["gh", "gh", "github-cli", "gh"]),
    ("jq", &["jq"]),
    ("ripgrep", &["ripgrep"]),
    ("ExifTool", &["libimage-exiftool-perl", "perl-Image-ExifTool", "exiftool", "exiftool"]),
    ("yt-dlp", &["yt-dlp"]),
    ("Git", &["git"]),
    ("curl", &["curl"]),
    ("Wget", &["wget"]),
    ("rsync", &["rsync"]),
    ("zip", &["zip unzip"]),
    ("SQLite", &["sqlite3", "sqlite", "sqlite", "sqlite"]),
    ("PostgreSQL", &["postgresql-client", "postgresql", "postgresql-client", "libpq"]),
    ("CMake", &["cmake"]),
    ("make", &["make"]),
    ("Inkscape", &["inkscape"]),
    ("librsvg", &["librsvg2-bin", "librsvg2-tools", "rsvg-convert", "librsvg"]),
];

/// The command by which the user installs what is known of these programs; `is_there` returns
/// whether a package manager is. `None`: nothing is known.
pub fn install_command<'p>(
    programs: impl Iterator<Item = &'p str>,
    is_there: impl Fn(&str) -> bool,
) -> Option<String> {
    let at = MANAGERS.iter().position(|(manager, _)| is_there(manager))?;
    let package = |program: &str| {
        let product = product_of(program)?;
        let (_, names) = SYSTEM_PACKAGES.iter().find(|(known, _)| *known == product)?;
        names.get(at).or(names.first()).copied()
    };
    let packages: BTreeSet<&str> = programs.filter_map(package).collect();
    let packages = packages.into_iter().collect::<Vec<_>>().join(" ");
    (!packages.is_empty()).then(|| format!("{} {packages}", MANAGERS[at].1))
}

/// The row of [`PROGRAMS`] with a program.
pub fn row_of(program: &str) -> Option<(&'static str, &'static [&'static str])> {
    PROGRAMS.iter().copied().find(|(_, programs)| programs.contains(&program))
}

/// The product of a well-known program.
pub(crate) fn product_of(program: &str) -> Option<&'static str> {
    row_of(program).map(|(product, _)| product)
}

/// The programs that can take a program's place.
pub(crate) fn alternatives_of(program: &str) -> impl Iterator<Item = &'static str> {
    let group = ALTERNATIVES.iter().find(|group| group.contains(&program));
    let program = program.to_string();
    group.into_iter().flat_map(|group| group.iter().copied()).filter(move |it| *it != program)
}

/// Whether a program is part of a shell, or of every system with one, a package manager of a
/// system or part of Windows, or a Python that the runner finds by itself.
pub(crate) fn is_everywhere(program: &str) -> bool {
    let is_python = program.strip_prefix("python3.").is_some_and(|it| it.parse::<u8>().is_ok());
    is_python || EVERYWHERE.binary_search(&program).is_ok()
}

/// Sorted.
#[rustfmt::skip]
const EVERYWHERE: [&str; 228] = [
    "alias", "apk", "apt", "apt-get", "ar", "at", "autoload", "awk", "base32", "base64",
    "basename", "bash", "bc", "bg", "bind", "break", "brew", "builtin", "cal", "case", "cat", "cd",
    "chgrp", "chmod", "choco", "chown", "chpasswd", "cksum", "clear", "cmp", "column", "comm",
    "command", "compgen", "complete", "compopt", "continue", "cp", "csplit", "cut", "dash", "date",
    "dd", "declare", "df", "diff", "dirname", "dirs", "disown", "dnf", "done", "dpkg", "du",
    "echo", "egrep", "elif", "else", "enable", "env", "esac", "eval", "exec", "exit", "expand",
    "export", "expr", "false", "fg", "fgrep", "fi", "file", "find", "findstr", "flatpak", "fold",
    "for", "free", "function", "getent", "getopts", "grep", "groups", "gunzip", "gzip", "hash",
    "head", "hexdump", "history", "hostname", "id", "if", "in", "install", "jobs", "join", "kill",
    "killall", "less", "let", "link", "ln", "local", "locale", "logger", "login", "logname", "ls",
    "man", "mapfile", "md5sum", "mkdir", "mkfifo", "mktemp", "more", "mount", "mv", "nice", "nl",
    "nohup", "od", "open", "pacman", "paste", "patch", "pgrep", "ping", "pip", "pip3", "pipx",
    "pkill", "popd", "port", "powershell", "pr", "printenv", "printf", "ps", "pushd", "pwd",
    "pwsh", "py", "python", "python3", "read", "readarray", "readlink", "readonly", "realpath",
    "reg", "return", "rev", "rm", "rmdir", "scoop", "sed", "select", "seq", "set", "setopt", "sh",
    "sha1sum", "sha256sum", "shasum", "shift", "shopt", "shuf", "sleep", "snap", "sort", "source",
    "split", "stat", "strings", "stty", "su", "sudo", "sum", "sync", "tac", "tail", "tar", "tee",
    "test", "then", "time", "timeout", "top", "touch", "tput", "tr", "trap", "true", "truncate",
    "tsort", "tty", "type", "typeset", "ulimit", "umask", "umount", "unalias", "uname",
    "uncompress", "unexpand", "uniq", "unlink", "unset", "until", "uptime", "users", "uv", "uvx",
    "wait", "watch", "wc", "whereis", "which", "while", "whoami", "winget", "xargs", "xxd", "xz",
    "yes", "yum", "zcat", "zsh", "zypper",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_every_system_are_sorted() {
        assert!(EVERYWHERE.is_sorted());
        for (program, expected) in
            [("ls", true), ("python3.12", true), ("qpdf", false), ("", false)]
        {
            assert_eq!(is_everywhere(program), expected, "{program}");
        }
    }
}

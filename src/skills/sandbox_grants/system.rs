//! Paths of the system that every sandboxed script may read, and those that none may.

/// Programs, libraries and their data.
pub(super) const SYSTEM_FOLDERS: [&str; 9] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/nix/store",
    "/gnu/store",
    "/home/linuxbrew/.linuxbrew",
];

/// Settings of the system that programs read: names, fonts, time zones, and the public
/// part of certificates.
pub(super) const SYSTEM_SETTINGS: [&str; 40] = [
    "/etc/ImageMagick-6",
    "/etc/ImageMagick-7",
    "/etc/R",
    "/etc/alternatives",
    "/etc/crypto-policies",
    "/etc/debian_version",
    "/etc/fonts",
    "/etc/gitconfig",
    "/etc/ghostscript",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hostname",
    "/etc/hosts",
    "/etc/java-17-openjdk",
    "/etc/java-21-openjdk",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/libreoffice",
    "/etc/locale.alias",
    "/etc/localtime",
    "/etc/magic",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/papersize",
    "/etc/passwd",
    "/etc/pki/tls/certs",
    "/etc/pki/tls/openssl.cnf",
    // The `sitecustomize.py` of Debian and Ubuntu, which each start of Python reads.
    "/etc/python3.9",
    "/etc/python3.10",
    "/etc/python3.11",
    "/etc/python3.12",
    "/etc/python3.13",
    "/etc/python3.14",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/terminfo",
    "/etc/texmf",
    "/etc/timezone",
];

/// Other data that programs read: the number of processors, fonts.
pub(super) const OTHER_DATA: [&str; 4] =
    ["/sys/devices/system/cpu", "/var/cache/fontconfig", "/var/lib/ghostscript", "/var/lib/texmf"];

/// Paths that are never granted: processes, devices, password hashes, private keys.
pub(super) const NEVER_GRANTED: [&str; 8] = [
    "/proc",
    "/dev",
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/security/opasswd",
    "/etc/ssl/private",
];

/// Files by which version managers choose a Python, in a folder or one above it.
pub(super) const VERSION_FILES: [&str; 4] =
    [".python-version", ".tool-versions", "mise.toml", ".mise.toml"];

//! What of the system every sandboxed script may read, and what none may.

/// Programs, libraries and their data.
pub(super) const SYSTEM: [&str; 9] = [
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

/// Settings of the system that programs read: names, fonts, time zones, and of
/// certificates the public part only.
pub(super) const SETTINGS: [&str; 34] = [
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
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/terminfo",
    "/etc/texmf",
    "/etc/timezone",
];

/// What programs look up elsewhere: the number of processors, fonts.
pub(super) const REST: [&str; 4] =
    ["/sys/devices/system/cpu", "/var/cache/fontconfig", "/var/lib/ghostscript", "/var/lib/texmf"];

/// What is granted by no name: processes, devices, the hashes of passwords.
pub(super) const NEVER: [&str; 8] = [
    "/proc",
    "/dev",
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/security/opasswd",
    "/etc/ssl/private",
];

/// By what version managers choose a Python, in a folder or one above it.
pub(super) const OF_MANAGERS: [&str; 4] =
    [".python-version", ".tool-versions", "mise.toml", ".mise.toml"];

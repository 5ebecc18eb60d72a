//! The modules that source code imports, line by line: no process is started for it.

/// The modules of a line of Python, dotted as they are imported: `import a.b, c` or `from a import
/// b`, which is both `a` and `a.b`. Relative imports are left out.
pub(super) fn python_imports(line: &str) -> Vec<String> {
    let line = line.trim();
    let is_module = |name: &&str| {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && name.chars().all(is_part)
    };
    if let Some(rest) = line.strip_prefix("import ") {
        let names = rest.split('#').next().unwrap_or_default().split(',');
        let names = names.filter_map(|name| {
            let mut words = name.split_whitespace();
            let module = words.next().map(|word| word.trim_end_matches(';'))?;
            matches!(words.next(), None | Some("as")).then_some(module)
        });
        return names.filter(is_module).map(str::to_owned).collect();
    }
    let Some((module, names)) =
        line.strip_prefix("from ").and_then(|rest| rest.split_once(" import "))
    else {
        return Vec::new();
    };
    let module = module.trim();
    if !is_module(&module) {
        return Vec::new();
    }
    let first = names.trim_start_matches(['(', ' ']).split([',', ' ', ')', '#']).next();
    let first = first.filter(|name| is_module(name));
    match first {
        Some(name) => vec![format!("{module}.{name}")],
        None => vec![module.to_string()],
    }
}

/// The npm packages that a line of JavaScript or TypeScript imports.
pub(super) fn npm_imports(line: &str) -> impl Iterator<Item = String> + '_ {
    const BEFORE: [&str; 4] = ["from ", "require(", "import(", "import "];
    let names = BEFORE.into_iter().flat_map(move |words| {
        line.match_indices(words).filter_map(move |(at, _)| {
            let rest = &line[at + words.len()..];
            let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''))?;
            rest[1..].split_once(quote).map(|(module, _)| module)
        })
    });
    names.filter_map(package_of_module)
}

/// The package that provides a module: `react-dom` of `react-dom/client`. `None`: it is one of
/// Node.js, or a path.
pub fn package_of_module(module: &str) -> Option<String> {
    if module.contains(':') || module.starts_with("@/") {
        return None;
    }
    let mut ends = module.match_indices('/').map(|(end, _)| end);
    let end = if module.starts_with('@') { ends.nth(1) } else { ends.next() };
    let package = &module[..end.unwrap_or(module.len())];
    let is_own = NODE_MODULES.split(' ').any(|own| own == package);
    super::install::npm_name(package).filter(|_| !is_own)
}

const NODE_MODULES: &str = "assert async_hooks buffer child_process cluster console constants crypto \
dgram diagnostics_channel dns domain events fs http http2 https inspector module net os path perf_hooks \
process punycode querystring readline repl stream string_decoder sys timers tls trace_events tty url util \
v8 vm wasi worker_threads zlib";

/// Whether the standard library of Python has the module.
pub(super) fn is_standard(module: &str) -> bool {
    module.starts_with('_') || STANDARD.split(' ').any(|known| known == module)
}

/// The modules of Python 3.8 to 3.14.
const STANDARD: &str = "abc aifc annotationlib antigravity argparse array ast asynchat asyncio asyncore atexit audioop \
base64 bdb binascii binhex bisect builtins bz2 cProfile calendar cgi cgitb chunk cmath cmd code \
codecs codeop collections colorsys compileall compression concurrent configparser contextlib \
contextvars copy copyreg crypt csv ctypes curses dataclasses datetime dbm decimal difflib dis \
distutils doctest dummy_threading email encodings ensurepip enum errno faulthandler fcntl filecmp \
fileinput fnmatch formatter fractions ftplib functools gc genericpath getopt getpass gettext glob \
graphlib grp gzip hashlib heapq hmac html http idlelib imaplib imghdr imp importlib inspect io \
ipaddress itertools json keyword lib2to3 linecache locale logging lzma macpath mailbox mailcap \
marshal math mimetypes mmap modulefinder msilib msvcrt multiprocessing netrc nis nntplib nt ntpath \
nturl2path numbers opcode operator optparse os ossaudiodev parser pathlib pdb pickle pickletools \
pipes pkgutil platform plistlib poplib posix posixpath pprint profile pstats pty pwd py_compile \
pyclbr pydoc pydoc_data pyexpat queue quopri random re readline reprlib resource rlcompleter runpy \
sched secrets select selectors shelve shlex shutil signal site smtpd smtplib sndhdr socket \
socketserver spwd sqlite3 sre_compile sre_constants sre_parse ssl stat statistics string \
stringprep struct subprocess sunau symbol symtable sys sysconfig syslog tabnanny tarfile telnetlib \
tempfile termios textwrap this threading time timeit tkinter token tokenize tomllib trace \
traceback tracemalloc tty turtle turtledemo types typing unicodedata unittest urllib uu uuid venv \
warnings wave weakref webbrowser winreg winsound wsgiref xdrlib xml xmlrpc zipapp zipfile \
zipimport zlib zoneinfo";

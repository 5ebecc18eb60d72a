//! Tests that nothing outside is reached: hostile names, links and files with both mechanisms.
//!
//! Each test uses a new folder; the canary outside of the skill must never be read.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::fcntl::{FcntlArg, fcntl};
use nix::sys::stat::{Mode, SFlag, mknod};

use super::*;
use crate::clock::thread_time;
use crate::random;

pub(super) const CANARY: &str = "canary-6f1d: nobody may read this";
pub(super) const INSIDE: &str = "inside";
pub(super) const MECHANISMS: [Mechanism; 2] = [Mechanism::Openat2, Mechanism::Walk];

/// New folder, removed when dropped.
pub(super) struct TempDir(pub(super) PathBuf);

impl TempDir {
    pub(super) fn new() -> TempDir {
        let name = random::name().unwrap();
        let path = PathBuf::from(format!("/tmp/confined-test-{name}"));
        fs::create_dir(&path).unwrap();
        TempDir(path)
    }

    pub(super) fn path(&self, below: &str) -> PathBuf {
        self.0.join(below)
    }

    pub(super) fn file(&self, below: &str, content: &str) {
        let path = self.path(below);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(super) fn link(&self, target: impl AsRef<Path>, below: &str) {
        symlink(target, self.path(below)).unwrap();
    }

    pub(super) fn special_file(
        &self,
        below: &str,
        mode: libc::mode_t,
        device: libc::dev_t,
    ) -> bool {
        mknod(
            &self.path(below),
            SFlag::from_bits_retain(mode),
            Mode::from_bits_retain(0o666),
            device,
        )
        .is_ok()
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A skill with all kinds of hostile entries, and the canary around it.
pub(super) fn hostile_skill() -> TempDir {
    let dir = TempDir::new();
    for outside in ["secret", "outside/secret", "skill-evil/secret", "outside/a.md"] {
        dir.file(outside, CANARY);
    }
    for inside in ["a.md", "docs/b.md", "docs/deep/c.md", "...", "..hidden", "．．/x", "..;/x"] {
        dir.file(&format!("skill/{inside}"), INSIDE);
    }
    for inside in ["..\\secret", "%2e%2e/secret", ".. ", "‥", "$HOME", "~", "C:\\secret", "-"] {
        dir.file(&format!("skill/{inside}"), INSIDE);
    }
    let absolute = |below: &str| dir.path(below);
    dir.link("a.md", "skill/link-in");
    dir.link("docs", "skill/folder-in");
    dir.link("../b.md", "skill/docs/deep/up-in");
    dir.link("link-in", "skill/chain-in");
    dir.link("../secret", "skill/link-out");
    dir.link("..", "skill/folder-out");
    dir.link("../outside", "skill/outside");
    dir.link("docs/../../secret", "skill/detour-out");
    dir.link("../skill/a.md", "skill/out-and-back");
    dir.link(absolute("secret"), "skill/absolute-out");
    dir.link(absolute("outside"), "skill/absolute-folder-out");
    dir.link(absolute("skill/a.md"), "skill/absolute-in");
    dir.link("chain-2", "skill/chain-1");
    dir.link("chain-3", "skill/chain-2");
    dir.link("../secret", "skill/chain-3");
    dir.link("loop-2", "skill/loop-1");
    dir.link("loop-1", "skill/loop-2");
    dir.link("self", "skill/self");
    dir.link("nothing", "skill/dangling");
    dir.link("../nothing", "skill/dangling-out");
    dir.link("/", "skill/slash");
    dir.link("/proc/self/environ", "skill/environ");
    dir.link("/proc/self/root", "skill/proc-root");
    dir.link("/proc/self/cwd", "skill/proc-cwd");
    dir.link("/proc/self/fd/0", "skill/proc-fd");
    dir.link("/dev/zero", "skill/zero");
    dir.link("/etc", "skill/etc");
    dir.link("fifo", "skill/link-fifo");
    dir.link("x".repeat(4000), "skill/long-link");
    dir.link("a.md", "skill/long-0");
    for step in 1..=45 {
        dir.link(format!("long-{}", step - 1), &format!("skill/long-{step}"));
    }
    assert!(dir.special_file("skill/fifo", libc::S_IFIFO, 0));
    drop(UnixListener::bind(dir.path("skill/socket")).unwrap());
    dir
}

/// The result in one word.
fn word<T: std::fmt::Debug>(result: &Result<T, OpenError>) -> String {
    match result {
        Ok(_) => "Ok".to_owned(),
        Err(OpenError::NotAFile(kind)) => (*kind).to_owned(),
        Err(error) => format!("{error:?}"),
    }
}

/// Paths with the same result for both mechanisms.
const BY_TEXT: &[(&str, &str)] = &[
    ("a.md", "Ok"),
    ("./a.md", "Ok"),
    ("docs/./b.md", "Ok"),
    ("docs//b.md", "Ok"),
    ("docs/././/deep///c.md", "Ok"),
    ("...", "Ok"),
    ("..hidden", "Ok"),
    ("．．/x", "Ok"),
    ("..;/x", "Ok"),
    ("..\\secret", "Ok"),
    ("%2e%2e/secret", "Ok"),
    (".. ", "Ok"),
    ("‥", "Ok"),
    ("$HOME", "Ok"),
    ("~", "Ok"),
    ("C:\\secret", "Ok"),
    ("-", "Ok"),
    ("..", "Parent"),
    ("../", "Parent"),
    ("../secret", "Parent"),
    ("./../secret", "Parent"),
    (".//../secret", "Parent"),
    ("docs/../../secret", "Parent"),
    ("docs/../a.md", "Parent"),
    ("docs/..", "Parent"),
    ("a.md/../../secret", "Parent"),
    ("nothing/../../secret", "Parent"),
    ("../skill-evil/secret", "Parent"),
    ("../skill/a.md", "Parent"),
    ("../../../../../../../../etc/passwd", "Parent"),
    ("folder-out/../secret", "Parent"),
    ("/", "Absolute"),
    ("//", "Absolute"),
    ("/etc/passwd", "Absolute"),
    ("//etc/passwd", "Absolute"),
    ("/proc/self/environ", "Absolute"),
    ("/dev/zero", "Absolute"),
    ("", "a folder"),
    (".", "a folder"),
    ("./", "a folder"),
    ("docs", "a folder"),
    ("docs/", "a folder"),
    ("a.md/", "NotAFolder"),
    ("a.md/.", "NotAFolder"),
    ("a.md//", "NotAFolder"),
    ("a.md/b.md", "NotAFolder"),
    ("fifo/", "NotAFolder"),
    ("fifo/x", "NotAFolder"),
    ("fifo", "a FIFO"),
    ("socket", "a socket"),
    ("nothing", "NotFound"),
    ("nothing/at/all", "NotFound"),
    ("A.MD", "NotFound"),
    ("．．/secret", "NotFound"),
    ("%2e%2e%2fsecret", "NotFound"),
    ("..%2fsecret", "NotFound"),
    ("..\\..\\secret", "NotFound"),
    ("\u{202e}a.md", "NotFound"),
    ("file:///etc/passwd", "NotFound"),
    ("~root/.profile", "NotFound"),
    ("proc/self/environ", "NotFound"),
    ("\0", "Nul"),
    ("a.md\0", "Nul"),
    ("a.md\0/../../secret", "Nul"),
    ("../secret\0.md", "Nul"),
];

/// Results of `openat2` for paths with links; the walk refuses all of them.
const BY_LINKS: &[(&str, &str)] = &[
    ("link-in", "Ok"),
    ("chain-in", "Ok"),
    ("folder-in/b.md", "Ok"),
    ("folder-in/deep/up-in", "Ok"),
    ("docs/deep/up-in", "Ok"),
    ("long-20", "Ok"),
    ("folder-in", "a folder"),
    ("folder-in/", "a folder"),
    ("link-in/", "NotAFolder"),
    ("link-fifo", "a FIFO"),
    ("link-out", "Outside"),
    ("link-out/", "Outside"),
    ("folder-out", "Outside"),
    ("folder-out/secret", "Outside"),
    ("folder-out/skill/a.md", "Outside"),
    ("outside/secret", "Outside"),
    ("detour-out", "Outside"),
    ("out-and-back", "Outside"),
    ("absolute-out", "Outside"),
    ("absolute-folder-out/secret", "Outside"),
    ("absolute-in", "Outside"),
    ("chain-1", "Outside"),
    ("dangling-out", "Outside"),
    ("slash/etc/passwd", "Outside"),
    ("environ", "Outside"),
    ("proc-root/etc/passwd", "Outside"),
    ("proc-cwd/Cargo.toml", "Outside"),
    ("proc-fd", "Outside"),
    ("zero", "Outside"),
    ("etc/passwd", "Outside"),
    ("dangling", "NotFound"),
    ("loop-1", "TooManyLinks"),
    ("loop-1/x", "TooManyLinks"),
    ("self", "TooManyLinks"),
    ("long-45", "TooManyLinks"),
    ("long-link", "NameTooLong"),
];

/// A path and its results by `openat2` and by the walk.
type Row = (String, &'static str, &'static str);

fn hostile_rows(dir: &TempDir) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    rows.extend(BY_TEXT.iter().map(|&(path, answer)| (path.to_owned(), answer, answer)));
    rows.extend(BY_LINKS.iter().map(|&(path, answer)| (path.to_owned(), answer, "Link")));
    let created = [
        (dir.path("secret").to_str().unwrap().to_owned(), "Absolute"),
        (dir.path("skill-evil/secret").to_str().unwrap().to_owned(), "Absolute"),
        (dir.path("skill/../secret").to_str().unwrap().to_owned(), "Absolute"),
        ("x".repeat(255), "NotFound"),
        ("x".repeat(256), "NameTooLong"),
        ("x".repeat(5000), "NameTooLong"),
        ("é".repeat(2500), "NameTooLong"),
        (format!("docs/{}", "x".repeat(300)), "NameTooLong"),
        ("x/".repeat(2000), "NotFound"),
        ("x/".repeat(2500), "NameTooLong"),
        (format!("{}a.md", "./".repeat(2000)), "Ok"),
        (format!("{}a.md", "./".repeat(2100)), "NameTooLong"),
        (format!("{}secret", "docs/../".repeat(400)), "Parent"),
        (format!("{}secret", "../".repeat(400_000)), "NameTooLong"),
    ];
    rows.extend(created.map(|(path, answer)| (path, answer, answer)));
    if dir.special_file("skill/device", libc::S_IFCHR, libc::makedev(1, 5)) {
        rows.push(("device".to_owned(), "a device", "a device"));
    } else {
        eprintln!("skipped the device: only root makes one");
    }
    rows
}

pub(super) fn content(mut file: File) -> String {
    let mut text = String::new();
    file.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn refuses_hostile_paths() {
    let dir = hostile_skill();
    let rows = hostile_rows(&dir);
    assert!(rows.len() > 110);
    let mut wrong = String::new();
    for mechanism in MECHANISMS {
        let root = Root::open_with(&dir.path("skill"), mechanism).unwrap();
        for (path, by_openat2, by_walk) in &rows {
            let expected = if mechanism == Mechanism::Openat2 { by_openat2 } else { by_walk };
            let start = thread_time();
            let opened = root.file(path);
            let as_folder = root.folder(path);
            let took = thread_time().saturating_sub(start);
            let shown: String = path.chars().take(60).collect();
            if word(&opened) != *expected {
                let _ =
                    writeln!(wrong, "{mechanism:?} {shown:?}: {} not {expected}", word(&opened));
            }
            assert!(took < Duration::from_secs(1), "{shown:?} took {took:?}");
            assert_eq!(as_folder.is_ok(), *expected == "a folder", "{shown:?} as a folder");
            if let Err(error) = &opened {
                let text = error.to_string();
                assert!(!text.contains(['/', '\n']) && text.len() < 140, "{text}");
            }
            if let Ok(file) = opened {
                assert_eq!(content(file), INSIDE, "{shown:?}");
            }
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn follows_links_only_for_direct_subfolders() {
    let dir = hostile_skill();
    dir.link("../outside", "skill/docs/skill");
    for mechanism in MECHANISMS {
        let link = dir.path("skill/outside");
        assert_eq!(
            content(Root::open_with(&link, mechanism).unwrap().file("a.md").unwrap()),
            CANARY
        );
        let root = Root::open_with(&dir.path("skill"), mechanism).unwrap();
        let linked = root.linked_folder("outside").unwrap();
        assert_eq!(linked.path(), dir.path("skill/outside"));
        assert_eq!(word(&linked.file("../skill/a.md")), "Parent");
        assert!(root.linked_folder("docs").is_ok());
        for (name, expected) in [
            ("", "NotFound"),
            (".", "NotFound"),
            ("..", "Parent"),
            ("docs/", "NotFound"),
            ("docs/deep", "NotFound"),
            ("./docs", "NotFound"),
            ("/etc", "Absolute"),
            ("a.md", "NotAFolder"),
            ("fifo", "NotAFolder"),
            ("loop-1", "TooManyLinks"),
            ("dangling", "NotFound"),
            ("docs\0", "Nul"),
        ] {
            assert_eq!(word(&root.linked_folder(name)), expected, "{name:?}");
        }
    }
    assert_eq!(word(&Root::open(&dir.path("nothing"))), "NotFound");
    assert_eq!(word(&Root::open(&dir.path("skill/fifo"))), "NotAFolder");
    assert_eq!(word(&Root::open(Path::new("a\0b"))), "Nul");
}

#[test]
fn converts_an_absolute_path_inside_to_a_relative_one() {
    let dir = TempDir::new();
    dir.file("real/skill/a.md", INSIDE);
    dir.link("real", "link");
    let root = Root::open(&dir.path("link/skill")).unwrap();
    let base = dir.0.to_str().unwrap();
    for (path, expected) in [
        ("a.md", Some("a.md")),
        ("", Some("")),
        ("../a.md", Some("../a.md")),
        ("{}/link/skill", Some("")),
        ("{}/link/skill/", Some("")),
        ("{}/link/skill/a.md", Some("a.md")),
        ("{}/real/skill/a.md", Some("a.md")),
        ("{}//real/./skill//a.md", Some("a.md")),
        ("{}/real/skill/a.md/", Some("a.md/")),
        ("{}/real/skill/../x", Some("../x")),
        ("{}/real/skill-evil/a.md", None),
        ("{}/real/skil", None),
        ("{}/real", None),
        ("{}/real/../real/skill/a.md", None),
        ("/", None),
        ("/etc/passwd", None),
    ] {
        let relative = root.relative_path(&path.replace("{}", base));
        assert_eq!(relative.as_deref().ok(), expected, "{path}");
        assert!(expected.is_some() || matches!(relative, Err(OpenError::Absolute)), "{path}");
    }
    assert_eq!(Root::open(Path::new("/")).unwrap().relative_path("/etc/x").unwrap(), "etc/x");
}

#[test]
fn opens_folders_within_folders() {
    let dir = hostile_skill();
    for mechanism in MECHANISMS {
        let root = Root::open_with(&dir.path("skill"), mechanism).unwrap();
        let deep = root.folder("docs/").unwrap().folder("./deep").unwrap();
        assert_eq!(content(deep.file("c.md").unwrap()), INSIDE);
        assert_eq!(format!("{deep:?}"), format!("Root({:?})", dir.path("skill/docs/deep")));
        assert_eq!(root.folder("").unwrap().path(), root.path());
        // A link out of the subfolder leads outside, although it is inside the skill.
        let expected = if mechanism == Mechanism::Openat2 { "Outside" } else { "Link" };
        assert_eq!(word(&deep.file("up-in")), expected);
        match root.open_target("a.md").unwrap() {
            PathTarget::File(open) => assert_eq!(open.size, INSIDE.len() as u64),
            PathTarget::Folder(_) => panic!("a folder"),
        }
        assert!(matches!(root.open_target(".").unwrap(), PathTarget::Folder(_)));
        // An open folder stays the same when its name changes.
        fs::rename(dir.path("skill"), dir.path("moved")).unwrap();
        assert_eq!(content(root.file("a.md").unwrap()), INSIDE);
        fs::rename(dir.path("moved"), dir.path("skill")).unwrap();
    }
}

#[test]
fn reports_denied_permission() {
    let dir = TempDir::new();
    dir.file("locked.md", INSIDE);
    dir.file("closed/a.md", INSIDE);
    dir.file("blind/a.md", INSIDE);
    let mode = |below: &str, bits| {
        fs::set_permissions(dir.path(below), fs::Permissions::from_mode(bits)).unwrap();
    };
    mode("locked.md", 0);
    mode("closed", 0);
    // Can be searched, but not listed.
    mode("blind", 0o111);
    let expected = if effective_user() == 0 { "Ok" } else { "Denied" };
    for mechanism in MECHANISMS {
        let root = Root::open_with(&dir.0, mechanism).unwrap();
        assert_eq!(word(&root.file("locked.md")), expected);
        assert_eq!(word(&root.file("closed/a.md")), expected);
        assert_eq!(word(&root.file("blind/a.md")), "Ok");
        assert_eq!(word(&root.folder("blind").unwrap().entries(9)), expected);
        let blind = Root::open_with(&dir.path("blind"), mechanism).unwrap();
        assert_eq!(word(&blind.file("a.md")), "Ok");
        let tree = root.walk(WalkLimits { depth: 9, files: 9, entries: 99 }).unwrap();
        assert_eq!(tree.unreadable, if expected == "Ok" { 0 } else { 2 });
    }
    mode("closed", 0o755);
    mode("blind", 0o755);
}

#[test]
fn descriptors_are_not_inherited_and_do_not_leak() {
    let dir = hostile_skill();
    for mechanism in MECHANISMS {
        let root = Root::open_with(&dir.path("skill"), mechanism).unwrap();
        let file = root.file("docs/b.md").unwrap();
        for opened in [file.as_fd(), root.as_fd()] {
            assert_eq!(fcntl(opened, FcntlArg::F_GETFD), Ok(libc::FD_CLOEXEC));
        }
        for _ in 0..3000 {
            let _ = (root.file("docs/b.md"), root.file("fifo"), root.file("link-out"));
            let _ = (root.entries(1), root.folder("docs/deep"), root.file("a.md/x"));
        }
    }
}

#[test]
fn plain_files_are_regular_files_without_links_in_their_path() {
    let dir = hostile_skill();
    dir.special_file("skill/pipe", libc::S_IFIFO, 0);
    let root = Root::open_with(&dir.path("skill"), Mechanism::Openat2).unwrap();
    let plain = |path: &str| root.open_plain_file(&CString::new(path).unwrap());
    for path in ["a.md", "docs/b.md", "docs/deep/c.md"] {
        let open = plain(path).unwrap();
        let mut head = [0; 100];
        let length = read_head(&open.file, open.size, &mut head).unwrap();
        assert_eq!(&head[..length], INSIDE.as_bytes(), "{path}");
        let mut little = [0; 3];
        assert_eq!(read_head(&open.file, open.size, &mut little).unwrap(), 3);
    }
    for path in [
        "",
        ".",
        "docs",
        "nothing",
        "pipe",
        "link-in",
        "folder-in/b.md",
        "link-out",
        "folder-out/secret",
        "../secret",
        "docs/../a.md/",
        "/etc/passwd",
    ] {
        assert!(plain(path).is_none(), "{path}");
    }
    let walk = Root::open_with(&dir.path("skill"), Mechanism::Walk).unwrap();
    assert!(walk.open_plain_file(c"a.md").is_none());
}

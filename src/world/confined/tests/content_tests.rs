//! Folders that are listed, and files that are read or replaced.

use super::*;

#[test]
fn lists_entries_sorted_and_limited() {
    let dir = hostile_skill();
    let root = Root::open(&dir.path("skill")).unwrap();
    let all = root.entries(1000).unwrap();
    assert_eq!((all.omitted, all.is_incomplete), (0, false));
    assert!(all.entries.is_sorted_by(|one, other| one.name < other.name));
    let find = |name: &str| {
        let entry = all.entries.iter().find(|entry| entry.name == name).unwrap();
        (entry.kind, entry.size)
    };
    assert_eq!(find("a.md"), (EntryKind::File, Some(INSIDE.len() as u64)));
    assert_eq!(find("docs"), (EntryKind::Folder, None));
    assert_eq!(find("link-out"), (EntryKind::Link, None));
    assert_eq!(find("fifo"), (EntryKind::Other, None));
    let some = root.entries(5).unwrap();
    assert_eq!(some.entries, all.entries[..5]);
    assert_eq!(some.omitted, all.entries.len() - 5);
    assert_eq!(root.entries(0).unwrap().omitted, all.entries.len());
    let little = read_entries(&root, 5, 7).unwrap();
    assert_eq!((little.entries.len(), little.omitted, little.is_incomplete), (5, 3, true));
}

#[test]
fn walks_all_files_inside() {
    let dir = TempDir::new();
    dir.file("secret/x", CANARY);
    for path in ["z", "a/b/c/d", "a/b/e", "a.md", ".hidden", "venv.py"] {
        dir.file(&format!("skill/{path}"), INSIDE);
    }
    for path in [
        ".git/x",
        "a/node_modules/x",
        "__pycache__/x",
        "a/b/venv/x",
        ".venv/x",
        "env/pyvenv.cfg",
        "env/lib/x",
        "pyvenv.cfg",
    ] {
        dir.file(&format!("skill/{path}"), INSIDE);
    }
    dir.link("a.md", "skill/link-in");
    dir.link("a", "skill/folder-in");
    dir.link(".", "skill/a/circle");
    dir.link("../secret", "skill/folder-out");
    dir.link("../secret/x", "skill/link-out");
    assert!(dir.special_file("skill/fifo", libc::S_IFIFO, 0));
    let limits = WalkLimits { depth: 9, files: 99, entries: 999 };
    let paths = |tree: &FileTree| -> Vec<String> {
        tree.files.iter().map(|path| path.to_str().unwrap().to_owned()).collect()
    };
    for mechanism in MECHANISMS {
        let root = Root::open_with(&dir.path("skill"), mechanism).unwrap();
        let walk = |limits| root.walk(limits).unwrap();
        let tree = walk(limits);
        let mut expected =
            vec![".hidden", "a/b/c/d", "a/b/e", "a.md", "link-in", "pyvenv.cfg", "venv.py", "z"];
        expected.retain(|path| mechanism == Mechanism::Openat2 || *path != "link-in");
        assert_eq!(paths(&tree), expected);
        assert_eq!((tree.is_cut, tree.unreadable), (false, 0));
        for path in &tree.files {
            assert_eq!(content(root.file(path).unwrap()), INSIDE);
        }
        let shallow = walk(WalkLimits { depth: 3, ..limits });
        assert!(shallow.is_cut && !paths(&shallow).contains(&"a/b/c/d".to_owned()));
        assert!(paths(&shallow).contains(&"a/b/e".to_owned()));
        let few = walk(WalkLimits { files: 2, ..limits });
        assert!(few.is_cut);
        assert_eq!(paths(&few), [".hidden", "a.md"]);
        assert!(walk(WalkLimits { entries: 3, ..limits }).is_cut);
        assert!(walk(WalkLimits { entries: 0, ..limits }).is_cut);
    }
}

#[test]
fn reads_no_more_than_requested() {
    let dir = TempDir::new();
    dir.file("ten", "0123456789");
    dir.file("empty", "");
    File::create(dir.path("sparse")).unwrap().set_len(1 << 40).unwrap();
    let root = Root::open(&dir.0).unwrap();
    let ten = root.file("ten").unwrap();
    let text = |piece: FileRange| (String::from_utf8(piece.bytes).unwrap(), piece.has_more);
    for (max_bytes, expected, more) in [
        (10, "0123456789", false),
        (11, "0123456789", false),
        (9, "012345678", true),
        (0, "", true),
        (usize::MAX, "0123456789", false),
    ] {
        let piece = text(read_whole(&ten, max_bytes).unwrap());
        assert_eq!(piece, (expected.to_owned(), more), "{max_bytes}");
    }
    let empty = root.file("empty").unwrap();
    assert_eq!(read_whole(&empty, 0).unwrap(), FileRange { bytes: vec![], has_more: false });
    let sparse = root.file("sparse").unwrap();
    let piece = read_whole(&sparse, 3_000_000).unwrap();
    assert!(piece.has_more && piece.bytes.len() == 3_000_000 && piece.bytes.capacity() < 6_000_000);
}

#[test]
fn reads_files_with_a_wrong_size() {
    let dir = TempDir::new();
    dir.file("log", "");
    let root = Root::open(&dir.0).unwrap();
    let PathTarget::File(log) = root.open_target("log").unwrap() else { panic!("no file") };
    assert_eq!(log.size, 0);
    let mut writer = File::options().append(true).open(dir.path("log")).unwrap();
    writer.write_all(&vec![b'x'; 700_000]).unwrap();
    assert_eq!(read_whole(&log.file, 1_000_000).unwrap().bytes.len(), 700_000);
    let piece = read_whole(&log.file, 600_000).unwrap();
    assert!(piece.has_more && piece.bytes.len() == 600_000);
    // A file whose stated size is always 0.
    if let Ok(process) = Root::open(Path::new("/proc/self")) {
        let status = process.file("status").unwrap();
        assert!(read_whole(&status, 100_000).unwrap().bytes.starts_with(b"Name:"));
    }
}

/// Extended attributes, such as access control lists, are kept.
#[test]
fn a_replaced_file_keeps_its_attributes() {
    let dir = TempDir::new();
    dir.file("skill/a", "old");
    let path = CString::new(dir.path("skill/a").into_os_string().into_encoded_bytes()).unwrap();
    let (name, value) = (c"user.kept", b"yes");
    // SAFETY: both names end with NUL, and the value has the length that is passed.
    let set = unsafe {
        libc::setxattr(path.as_ptr(), name.as_ptr(), value.as_ptr().cast(), value.len(), 0)
    };
    if set != 0 {
        return eprintln!("skipped: the file system has no attributes of users");
    }
    let root = Root::open(&dir.path("skill")).unwrap();
    root.replace("a", b"old", b"new").unwrap();
    assert_eq!(fs::read(dir.path("skill/a")).unwrap(), b"new");
    let mut kept = [0_u8; 8];
    // SAFETY: as above, and the buffer has the size that is passed.
    let length = unsafe {
        libc::getxattr(path.as_ptr(), name.as_ptr(), kept.as_mut_ptr().cast(), kept.len())
    };
    assert_eq!((length, &kept[..3]), (3, &value[..]));
}

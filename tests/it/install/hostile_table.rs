//! Hostile archives: a table of attacks, made in both formats and at several positions.

use super::document;
use super::pack::{
    Item, ZipFields, commit, entry, executable, file, gnu, gzip, link, pax, tar, tar_gz,
    tar_header, zip, zip_with,
};

/// A hostile archive.
pub(super) struct Attack {
    pub(super) name: String,
    /// The name of the file.
    pub(super) file: &'static str,
    pub(super) bytes: Vec<u8>,
    /// Whether it must be refused, or the skill `good` with it.
    pub(super) must_fail: bool,
}

/// The files of the skill `good`, which most of the archives contain.
pub(super) fn good() -> Vec<Item> {
    vec![
        file("good/SKILL.md", document("good")),
        file("good/data.txt", "data\n".repeat(50)),
        executable("good/run.sh", "echo 1\n"),
    ]
}

/// All attacks that are small. `outside` is an absolute path that must not be written to.
pub(super) fn attacks(outside: &str) -> Vec<Attack> {
    let mut all = Vec::new();
    for (name, must_fail) in names(outside) {
        let shown = String::from_utf8_lossy(&name[..name.len().min(40)]).into_owned();
        add(&mut all, &format!("a file {shown:?}"), &[file(&name, "evil")], must_fail);
    }
    for (what, items, must_fail) in links(outside) {
        add(&mut all, what, &items, must_fail);
    }
    let one = |items: Vec<Item>| [good(), items].concat();
    for (what, items, must_fail) in tar_only(outside) {
        for bytes in [tar_gz(&one(items.clone())), tar_gz(&[items, good()].concat())] {
            all.push(Attack { name: what.into(), file: "x.tar.gz", bytes, must_fail });
        }
    }
    damaged(&mut all);
    zips(&mut all);
    all
}

/// Adds an attack in both formats: before, among and after the good files.
fn add(all: &mut Vec<Attack>, what: &str, items: &[Item], must_fail: bool) {
    for at in [0, 1, 3] {
        let mut whole = good();
        whole.splice(at..at, items.iter().cloned());
        let name = format!("{what} at {at}");
        let has_hard_link = items.iter().any(|item| item.kind == b'1');
        if !has_hard_link {
            let (name, bytes) = (name.clone() + ", zip", zip(&whole));
            all.push(Attack { name, file: "x.zip", bytes, must_fail });
        }
        let bytes = tar_gz(&whole);
        all.push(Attack { name: name + ", tar", file: "x.tar.gz", bytes, must_fail });
    }
}

/// Names of files, and whether they must be refused.
fn names(outside: &str) -> Vec<(Vec<u8>, bool)> {
    let long = |part: &str, times: usize| format!("good/{}", part.repeat(times)).into_bytes();
    let mut names: Vec<(Vec<u8>, bool)> = vec![
        (outside.into(), true),
        (format!("/{outside}").into(), true),
        (format!("good/../..{outside}").into(), true),
        (b"good/a\nb".into(), false),
        (b"good/a\x1b[2Jb".into(), false),
        (b"good/\xff\xfe".into(), false),
        (b"good/\x80/x".into(), false),
        ("good/\u{202e}gpj.exe".into(), false),
        ("good/READ\u{fe0f}ME".into(), false),
        (long("x", 90), false),
        (long("a/", 45), false),
    ];
    let refused = [
        "../out",
        "../../out",
        "..",
        "./../out",
        "good/..",
        "good/../out",
        "good/../../out",
        "good/a/../../../out",
        "good//../../out",
        "good/./../../out",
        "../skills/out/SKILL.md",
        "../skills/skills-runner.lock",
        "/",
        "//",
        "//out",
        // Files that are there already, and twins on other file systems.
        "good/data.txt",
        "good/./data.txt",
        "good//data.txt",
        "good/DATA.txt",
        "good/Run.SH",
        "good/skill.md",
        "good/data.txt/below",
        "good/SKILL.md/SKILL.md",
        "GOOD/SKILL.md",
        "good/data.txt.",
        "good/run.sh. .",
        "good/da\u{200b}ta.txt",
        "good/\u{feff}run.sh",
        "good/.GIT/config",
        "good/.git./config",
        "good/.g\u{200c}it/config",
        "good/deep/Git~1/config",
    ];
    let harmless = [
        "good/run.sh/",
        "good/a\\..\\..\\out",
        "..\\out",
        "C:\\out",
        "C:/out",
        "good/C:",
        "\\\\host\\share",
        "~/out",
        "good/...",
        "good/.gitignore",
        "good/क्\u{200d}ष.md",
        "good/👩\u{200d}👧.png",
        "good/.. ",
        "good/ ",
        "good/con",
        "good/end.",
        "good/-rf",
        ".git/hooks/post-checkout",
        "good/.git/hooks/post-checkout",
        ".skills-runner-install/decided/skills-runner.lock",
        ".skills-runner-install/SKILL.md",
        "skills-runner.lock",
        "skills-runner.lock/SKILL.md",
        "good/skills-runner.lock",
        ".hidden/SKILL.md",
        "-x/SKILL.md",
    ];
    names.extend(refused.map(|name| (name.into(), true)));
    names.extend(harmless.map(|name| (name.into(), false)));
    names
}

/// Links, and what is reached through them. Links out, to nothing and to their own folders are left out.
fn links(outside: &str) -> Vec<(&'static str, Vec<Item>, bool)> {
    vec![
        ("an absolute link", vec![link("good/l", outside)], false),
        ("a link out", vec![link("good/l", "../../out")], false),
        ("a link to another skill", vec![link("good/l", "../evil/x"), file("evil/x", "x")], false),
        ("a link to the parent", vec![link("good/l", "..")], false),
        ("a link to itself", vec![link("good/l", "l")], false),
        ("a link to its folder", vec![link("good/d/l", "."), file("good/d/x", "x")], false),
        ("links that multiply", multiplying(), true),
        ("links in a circle", vec![link("good/a", "b"), link("good/b", "a")], true),
        ("a link to nothing", vec![link("good/l", "absent")], false),
        ("an empty link", vec![link("good/l", "")], false),
        ("a link to the root", vec![link("good/l", "/")], false),
        (
            "a link to a link out",
            vec![link("good/a", "b"), link("good/b", "c"), link("good/c", "../../out")],
            false,
        ),
        ("a folder link out", vec![link("good/d", "../.."), file("good/d/out", "evil")], false),
        (
            "an absolute folder link",
            vec![link("good/d", "/tmp"), file("good/d/out", "evil")],
            false,
        ),
        ("the skill as a link out", vec![link("evil", "../outside"), file("evil/x", "x")], false),
        ("a link out beside the skill", vec![link("other/l", "../../out")], false),
        ("the document as a link", vec![link("evil/SKILL.md", "/etc/passwd")], true),
        ("a hard link out", vec![entry(b'1', "good/l", "../out")], true),
        ("an absolute hard link", vec![entry(b'1', "good/l", outside)], true),
        ("a hard link to nothing", vec![entry(b'1', "good/l", "good/absent")], false),
        ("a hard link to itself", vec![entry(b'1', "good/l", "good/l")], true),
        ("a hard link to the parent", vec![entry(b'1', "good/l", "..")], true),
        (
            "a hard link to another skill",
            vec![entry(b'1', "good/l", "evil/x"), file("evil/x", "x")],
            false,
        ),
        (
            "a hard link to a link out",
            vec![link("good/a", "../../out"), entry(b'1', "good/l", "good/a")],
            false,
        ),
        ("a character device", vec![entry(b'3', "good/tty", "")], true),
        ("a block device", vec![entry(b'4', "good/disk", "")], true),
        ("a FIFO", vec![entry(b'6', "good/fifo", "")], true),
        ("a device beside the skill", vec![entry(b'3', "other/tty", "")], true),
        ("a FIFO beside the skill", vec![entry(b'6', "fifo", "")], true),
        ("twins of normal forms", vec![file("good/\u{e9}", "x"), file("good/e\u{301}", "y")], true),
        ("twins of folders", vec![file("good/d/a", "x"), file("good/D/b", "y")], true),
        ("a file and a folder", vec![file("good/d", "x"), file("good/d/e", "y")], true),
        ("a link and a folder", vec![link("good/d", "run.sh"), file("good/d/e", "y")], true),
        ("a link and a file", vec![link("good/d", "run.sh"), file("good/d", "y")], true),
        ("a folder `..`", vec![entry(b'5', "../", "")], true),
        ("a folder out", vec![entry(b'5', "../out/", "")], true),
        ("an absolute folder", vec![entry(b'5', outside, "")], true),
        ("two documents", vec![file("good/SKILL.md", document("good"))], true),
    ]
}

/// Folders with two links each to the next folder: 2²⁴ files.
fn multiplying() -> Vec<Item> {
    let pair = |level: usize| {
        ["a", "b"].map(|name| link(format!("good/d{level}/{name}"), format!("../d{}", level + 1)))
    };
    (0..24).flat_map(pair).chain([file("good/d24/x", "x")]).collect()
}

/// What only tar can say.
fn tar_only(outside: &str) -> Vec<(&'static str, Vec<Item>, bool)> {
    let named = |item: Item| vec![item, file("good/short", "evil")];
    let linked = |item: Item| vec![item, link("good/l", "run.sh")];
    let raw = |content: &[u8]| Item { content: content.into(), ..entry(b'x', "pax", "") };
    let deep = "x".repeat(100_000);
    vec![
        ("a pax path out", named(pax(b'x', "path", "../out")), true),
        ("an absolute pax path", named(pax(b'x', "path", outside)), true),
        ("a pax path `..`", named(pax(b'x', "path", "good/../../out")), true),
        ("a pax path with NUL", named(pax(b'x', "path", "good/a\0/../../out")), true),
        ("an empty pax path", named(pax(b'x', "path", "")), false),
        ("a pax path of 100 KB", named(pax(b'x', "path", &deep)), false),
        ("a pax path that is a twin", named(pax(b'x', "path", "good/data.txt")), true),
        ("a global pax path", named(pax(b'g', "path", "../out")), false),
        ("a pax link out", linked(pax(b'x', "linkpath", "../../out")), false),
        ("an absolute pax link", linked(pax(b'x', "linkpath", outside)), false),
        ("a pax size", named(pax(b'x', "size", "99999999999")), false),
        ("a pax size of 0", named(pax(b'x', "size", "0")), false),
        ("a pax sparse file", named(pax(b'x', "GNU.sparse.name", "../out")), false),
        ("pax fields without a length", named(raw(b"path=../out\n")), false),
        ("a pax field that is too long", named(raw(b"999 path=../out\n")), false),
        ("a pax field of no length", named(raw(b"0 path=../out\n")), false),
        ("a huge pax length", named(raw(b"99999999999999999999999 path=x\n")), false),
        (
            "two pax paths",
            named(Item {
                content: [pax(b'x', "path", "good/a").content, pax(b'x', "path", "../out").content]
                    .concat(),
                ..entry(b'x', "pax", "")
            }),
            // The first one counts.
            false,
        ),
        ("pax fields at the end", vec![pax(b'x', "path", "../out")], false),
        ("a long name out", named(gnu(b'L', "../out")), true),
        ("an absolute long name", named(gnu(b'L', outside)), true),
        ("a long name of 100 KB", named(gnu(b'L', &deep)), false),
        ("a long name with NUL", named(gnu(b'L', "good/a\0/../../../out")), false),
        ("a long target out", linked(gnu(b'K', "../../out")), false),
        ("an absolute long target", linked(gnu(b'K', outside)), false),
        (
            "long names of long names",
            vec![gnu(b'L', "../out"), gnu(b'L', "../out"), file("good/x", "x")],
            true,
        ),
        (
            "a long name before a folder",
            vec![gnu(b'L', "../out"), entry(b'5', "good/d", ""), file("good/e", "x")],
            false,
        ),
        ("a long name at the end", vec![gnu(b'L', "../out")], false),
        ("an unknown kind", vec![entry(b'Z', "good/z", "")], false),
        ("a sparse file", vec![entry(b'S', "good/z", "")], false),
        ("a volume", vec![entry(b'V', "../out", "")], false),
        ("a list of names", vec![entry(b'D', "../out", "")], false),
        ("a file of several volumes", vec![entry(b'M', "../out", "")], false),
        ("a contiguous file out", vec![entry(b'7', "../out", "")], true),
        ("an old file out", vec![entry(0, "../out", "")], true),
        ("a commit that is none", vec![commit("../../out")], false),
        ("a commit with an option", vec![commit("--upload-pack=x")], false),
    ]
}

/// Archives that are damaged or incomplete.
fn damaged(all: &mut Vec<Attack>) {
    let mut push = |name: String, file: &'static str, bytes: &[u8], must_fail: bool| {
        all.push(Attack { name, file, bytes: bytes.into(), must_fail });
    };
    let (packed, zipped, plain) = (tar_gz(&good()), zip(&good()), tar(&good()));
    for (file, bytes) in [("x.tar.gz", &packed), ("x.zip", &zipped)] {
        for step in 0..20 {
            let length = bytes.len() * step / 20;
            push(format!("{file} cut to {length}"), file, &bytes[..length], true);
        }
        for cut in [1, 2, 4, 8, 9] {
            let rest = &bytes[..bytes.len() - cut];
            push(format!("{file} without its last {cut}"), file, rest, true);
        }
        for step in 0..20 {
            let mut changed = bytes.clone();
            let at = bytes.len() * step / 20;
            changed[at] ^= 1 << (step % 8);
            push(format!("{file} with a changed byte at {at}"), file, &changed, false);
        }
    }
    for length in [513, 700, 1024, 1600, 2000] {
        let bytes = gzip(&plain[..length.min(plain.len())]);
        push(format!("a tar that ends at {length}"), "x.tar.gz", &bytes, false);
    }
    let end = packed.len();
    for (what, range) in [("checksum", end - 8..end - 4), ("length", end - 4..end)] {
        let mut changed = packed.clone();
        changed[range].fill(7);
        push(format!("a wrong {what} of gzip"), "x.tar.gz", &changed, true);
    }
    let evil = tar_gz(&[file("../out", "evil")]);
    push("a second member".into(), "x.tar.gz", &[&packed[..], &evil].concat(), false);
    push("evil, then a good member".into(), "x.tar.gz", &[&evil[..], &packed].concat(), true);
    push("padding after the end".into(), "x.tar.gz", &[&packed[..], &[0; 999]].concat(), false);
    push("junk after the end".into(), "x.tar.gz", &[&packed[..], b"junk"].concat(), false);
    push("gzip in gzip".into(), "x.tar.gz", &gzip(&packed), true);
    push("a zip in gzip".into(), "x.tar.gz", &gzip(&zipped), true);
    push("an empty file".into(), "x.tar.gz", b"", true);
    push("an empty archive".into(), "x.tar.gz", &tar_gz(&[]), true);
    push("an empty zip".into(), "x.zip", &zip(&[]), true);
    push("a page".into(), "x.tar.gz", b"<!DOCTYPE html><html>Not found</html>", true);
    let sizes: [&[u8]; 5] = [
        b"77777777777\0",
        b"-0000000001\0",
        b"zzzzzzzzzzz\0",
        &[0xff; 12],
        &[0x80, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0],
    ];
    for size in sizes {
        let mut header = tar_header(&file("good/x", ""), 0);
        header[124..136].copy_from_slice(size);
        header[148..156].fill(b' ');
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        let bytes = [&plain[..plain.len() - 1024], &header, &[0; 1024]].concat();
        push(format!("a size of {size:?}"), "x.tar.gz", &gzip(&bytes), true);
    }
    let mut header = tar_header(&file("good/x", ""), 0);
    header[0] ^= 1;
    let bytes = [&plain[..plain.len() - 1024], &header, &[0; 1024]].concat();
    push("a wrong checksum of tar".into(), "x.tar.gz", &gzip(&bytes), true);
}

/// What only zip can say. The entry 1 is changed.
fn zips(all: &mut Vec<Attack>) {
    type Change = fn(&mut ZipFields);
    let table: [(&str, Change, bool); 25] = [
        ("encrypted", |it| it.flags |= 1, true),
        ("strongly encrypted", |it| it.flags |= 0x41, true),
        ("with masked headers", |it| it.flags |= 0x2000, false),
        ("by bzip2", |it| it.method = 12, true),
        ("by LZMA", |it| it.method = 14, true),
        ("by Zstandard", |it| it.method = 93, true),
        ("by AES", |it| it.method = 99, true),
        ("by Shrink", |it| it.method = 1, true),
        ("by DEFLATE64", |it| it.method = 9, true),
        ("stored, it says", |it| it.method = 0, true),
        ("with a wrong checksum", |it| it.checksum ^= 1, true),
        ("with a checksum of 0", |it| it.checksum = 0, true),
        ("that is larger than it says", |it| it.size -= 1, true),
        ("that is smaller than it says", |it| it.size += 1, true),
        ("of 4 GiB", |it| it.size = u32::MAX - 1, true),
        ("of 0 bytes, it says", |it| it.size = 0, true),
        ("with a short content", |it| it.packed_size -= 1, true),
        ("with a long content", |it| it.packed_size += 40, false),
        ("with a huge content", |it| it.packed_size = u32::MAX - 1, false),
        ("that overlaps", |it| it.offset = Some(0), true),
        ("behind the end", |it| it.offset = Some(1 << 30), true),
        ("in the middle", |it| it.offset = Some(33), true),
        ("with another local name", |it| it.local_name = Some(b"../../out".into()), false),
        ("with a broken content", |it| it.packed.fill(0xff), true),
        ("of no kind", |it| it.mode = 0, false),
    ];
    for (what, change, must_fail) in table {
        let bytes = zip_with(&good(), b"", |index, it| {
            if index == 1 {
                change(it);
            }
        });
        all.push(Attack { name: format!("a zip entry {what}"), file: "x.zip", bytes, must_fail });
    }
    let mut push = |name: &str, bytes: Vec<u8>, must_fail: bool| {
        all.push(Attack { name: name.into(), file: "x.zip", bytes, must_fail });
    };
    let (plain, evil) = (zip(&good()), zip(&[file("../out", "evil")]));
    let end = plain.len() - 22;
    let changed = |at: usize, bytes: &[u8]| {
        let mut whole = plain.clone();
        whole[end + at..end + at + bytes.len()].copy_from_slice(bytes);
        whole
    };
    push("a count of 2", changed(8, &[2, 0, 2, 0]), false);
    push("a count of 9", changed(8, &[9, 0, 9, 0]), false);
    push("a count of 65535", changed(8, &[255; 4]), false);
    push("a directory of no size", changed(12, &[0; 4]), false);
    push("a directory at 0", changed(16, &[0; 4]), false);
    push("a directory behind the end", changed(16, &[255, 255, 255, 0]), false);
    push("a second disk", changed(4, &[1, 0, 1, 0]), false);
    push("a comment that is not there", changed(20, &[9, 0]), false);
    push("two archives", [&plain[..], &evil].concat(), true);
    push("two archives, evil first", [&evil[..], &plain].concat(), false);
    push("a comment with an archive", zip_with(&good(), &evil, |_, _| {}), false);
    push("a comment that is a commit", zip_with(&good(), b"--upload-pack=x", |_, _| {}), false);
    push("before it a program", [b"#!/bin/sh\n", &plain[..]].concat(), false);
    let target = "../".repeat(3000);
    push("a target of 9 KB", zip(&[good(), vec![link("good/l", target)]].concat()), true);
    push(
        "a name of 60 KB",
        zip(&[good(), vec![file("good/".repeat(12_000), "x")]].concat()),
        false,
    );
}

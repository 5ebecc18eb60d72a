//! Which files of a source are copied, and as what.

use std::os::unix::fs::symlink;
use std::process::Command;

use super::{change, document, files, lock, with_source};
use crate::harness::{Test, report_skipped, seconds};

/// Executable files stay executable; no other bits are taken over.
#[test]
fn modes_are_kept() {
    let test = with_source()
        .file("source/one/tool", "#!/bin/sh\n")
        .mode("source/one/tool", 0o4755)
        .file("source/one/open.txt", "x")
        .mode("source/one/open.txt", 0o666)
        .file("source/one/closed.txt", "x")
        .mode("source/one/closed.txt", 0o600);
    change(&test, &["add", "./source"]).success();
    let found = files(&test.path("skills/one"));
    let modes =
        ["tool", "scripts/run.py", "open.txt", "closed.txt"].map(|name| found[name].0 & 0o7111);
    assert_eq!(modes, [0o111, 0o111, 0, 0]);
}

/// Links to files and folders inside of a skill become copies.
#[test]
fn links_inside_become_copies() {
    let test = with_source()
        .link("source/one/again.csv", "data/table.csv")
        .link("source/one/folder", "data")
        .link("source/one/data/up", "../scripts")
        .link("source/one/twice.csv", "./again.csv")
        .link("source/one/round.csv", "data/../data//table.csv");
    let absolute = test.path("source/one/data/table.csv").display().to_string();
    let odd = absolute.replace("/one/", "//one/./data/../../one/");
    let test = test.link("source/one/absolute.csv", &absolute).link("source/one/odd.csv", &odd);
    change(&test, &["add", "./source"]).success();
    let found = files(&test.path("skills/one"));
    let table = [
        "absolute.csv",
        "odd.csv",
        "again.csv",
        "twice.csv",
        "round.csv",
        "folder/table.csv",
        "data/table.csv",
    ];
    for path in table {
        assert_eq!(found[path].1, b"a,b\n1,2\n", "{path}");
    }
    for path in ["data/up/run.py", "folder/up/run.py"] {
        assert_eq!(
            (found[path].0 & 0o111, &found[path].1[..]),
            (0o111, &b"print(42)\n"[..]),
            "{path}"
        );
    }
    for path in found.keys() {
        assert!(!test.path(format!("skills/one/{path}")).is_symlink(), "{path}");
    }
    let locked = lock(&test)["skills"]["one"]["files"].as_object().unwrap().len();
    assert_eq!(locked, found.len(), "all copies are in the lock file");
}

/// A link that leads out or to nothing is left out, and this is reported. Only a skill without
/// another document is refused.
#[test]
fn links_out_are_left_out() {
    let table: [(&str, &str); 10] = [
        ("out", "../two/SKILL.md"),
        ("out", "../../secret"),
        ("out", "/etc/hostname"),
        ("out", "/home/someone/skills/one/"),
        ("out", ".."),
        ("out", "data/../../two"),
        ("data/out", "../../two"),
        ("dangling", "absent"),
        ("dangling", "data/absent"),
        ("SKILL.md", "../two/SKILL.md"),
    ];
    for (path, target) in table {
        let test = with_source().file("secret", "a secret");
        let link = test.path(format!("source/one/{path}"));
        let _ = std::fs::remove_file(&link);
        symlink(target, &link).unwrap();
        let run = change(&test, &["add", "./source", "--quiet"]);
        let run =
            run.stderr_has(&format!("the link `{path}` leads")).stdout_has("added: skills/two\n");
        assert_eq!(lock(&test)["skills"]["two"]["files"].as_object().unwrap().len(), 1);
        if path == "SKILL.md" {
            run.status(1);
            assert!(!test.exists("skills/one") && lock(&test)["skills"].get("one").is_none());
        } else {
            run.success();
            let found = files(&test.path("skills/one")).into_keys().collect::<Vec<_>>();
            assert_eq!(found, ["SKILL.md", "data/table.csv", "scripts/run.py"], "{path}: {target}");
        }
        // The same rule holds for an update and for a restored skill.
        let test = test.file("source/one/new.txt", "x");
        change(&test, &["update"]).success();
        change(&test, &["restore"]).success().stderr_is_empty();
    }
}

/// Links in circles, long chains of links, and links that multiply: each ends with a reason.
#[test]
fn links_without_an_end_are_refused() {
    type Links = Vec<(String, String)>;
    let link = |path: &str, target: &str| (path.to_owned(), target.to_owned());
    let chain = |count: usize| -> Links {
        let next = |number: usize| (format!("l{number}"), format!("l{}", number + 1));
        (0..count).map(next).chain([(format!("l{count}"), "SKILL.md".into())]).collect()
    };
    let pairs = |level: usize| {
        ["a", "b"].map(|name| (format!("d{level}/{name}"), format!("../d{}", level + 1)))
    };
    let table: [(&str, Links); 3] = [
        ("in a circle", vec![link("a", "b"), link("b", "c"), link("c", "a")]),
        ("that multiply", (0..24).flat_map(pairs).chain([link("d24/x", "../SKILL.md")]).collect()),
        ("in a chain", chain(5000)),
    ];
    for (what, links) in table {
        let test = with_source();
        let test = links
            .iter()
            .fold(test, |test, (path, target)| test.link(&format!("source/one/{path}"), target));
        let run = change(&test, &["add", "./source"]);
        run.check(run.status == 1 || what == "in a chain" && run.status == 0, what);
        let run = run.stdout_has("added: skills/two\n").took_at_most(seconds(10.0));
        run.check(run.status == 0 || !test.exists("skills/one"), what);
    }
}

/// A link to a folder that it is in has no copy, also behind another link.
#[test]
fn links_to_their_own_folders_are_left_out() {
    let links =
        [("l", "l"), ("here", "."), ("data/up", ".."), ("data/here", "."), ("again", "data")];
    let test = links.iter().fold(with_source(), |test, (path, target)| {
        test.link(&format!("source/one/{path}"), target)
    });
    let run = change(&test, &["add", "./source"]).success();
    for path in ["l", "here", "data/up", "data/here", "again/up"] {
        let said = format!("the link `{path}` leads to a folder that it is in");
        run.check(run.stderr.contains(&said), path);
    }
    let names = files(&test.path("skills/one")).into_keys().collect::<Vec<_>>();
    assert_eq!(names, ["SKILL.md", "again/table.csv", "data/table.csv", "scripts/run.py"]);
}

/// Links to links that lead out, and folders that are links.
#[test]
fn links_to_links_out_are_left_out() {
    let test = with_source()
        .file("secret/SKILL.md", document("secret"))
        .link("source/one/first", "data/second")
        .link("source/one/data/second", "../../../secret/SKILL.md")
        .link("source/linked", "../secret");
    let run = change(&test, &["add", "./source"]).success();
    run.stderr_has("`first` leads out").stderr_has("`data/second` leads out");
    let names = files(&test.path("skills/one")).into_keys().collect::<Vec<_>>();
    assert_eq!(names, ["SKILL.md", "data/table.csv", "scripts/run.py"]);
    assert!(!test.exists("skills/linked") && test.exists("skills/two/SKILL.md"));
    // A source that the user names may be a link itself.
    let test = Test::new().file("real/one/SKILL.md", document("one")).link("source", "real");
    change(&test, &["add", "./source"]).success();
}

/// A FIFO does not keep the program waiting.
#[test]
fn special_files_do_not_block() {
    let test = with_source();
    for path in ["source/one/fifo", "source/fifo"] {
        if !Command::new("mkfifo")
            .arg(test.path(path))
            .status()
            .is_ok_and(|status| status.success())
        {
            report_skipped("mkfifo does not work");
            return;
        }
    }
    let run = change(&test, &["add", "./source"]);
    // Left out, or the whole skill is.
    run.check(run.status <= 1, "the status is neither 0 nor 1");
    let run = run.stdout_has("added: skills/two\n");
    run.check(!test.exists("skills/one/fifo"), "the FIFO was copied");
    change(&test, &["add", "./source/fifo"]).status(1).stdout_is_empty();
}

/// Folders that tools create are not copied.
#[test]
fn folders_of_tools_are_not_copied() {
    let left_out =
        [".git/config", "venv/bin/python", "node_modules/x/index.js", "__pycache__/x.pyc"];
    let nested = ["lib/node_modules/x/index.js", "lib/__pycache__/x.pyc"];
    let test = with_source();
    let test = left_out
        .iter()
        .chain(&nested)
        .fold(test, |test, path| test.file(&format!("source/one/{path}"), "x"));
    let test = test.file("source/one/lib/code.py", "x");
    change(&test, &["add", "./source"]).success();
    let names = files(&test.path("skills/one")).into_keys().collect::<Vec<_>>();
    assert_eq!(names, ["SKILL.md", "data/table.csv", "lib/code.py", "scripts/run.py"]);
}

/// Twins on other file systems, and names that no lock file can hold.
#[test]
fn names_that_are_not_portable_are_refused() {
    let table: [&[&[u8]]; 4] = [
        &[b"Read.md", b"READ.md"],
        &[b"docs/a", b"Docs/b"],
        &["\u{e9}.md".as_bytes(), "e\u{301}.md".as_bytes()],
        &[b"a\\b.md"],
    ];
    for names in table {
        let test = with_source();
        let test = names.iter().fold(test, |test, name| {
            test.file(&format!("source/one/{}", String::from_utf8_lossy(name)), "x")
        });
        change(&test, &["add", "./source"]).status(1).stdout_has("added: skills/two\n");
        assert!(!test.exists("skills/one"), "{names:?}");
    }
}

/// More than 10,000 files, or 64 MiB.
#[test]
#[ignore = "long"]
fn sizes_are_bounded() {
    let test = with_source();
    let many = (0..10_001).fold(test, |test, number| {
        test.file(&format!("source/one/{}/{number}", number / 1000), "")
    });
    change(&many, &["add", "./source"]).status(1).stderr_has("10000");
    assert!(!many.exists("skills/one"));
    let test = with_source().file("source/one/large", vec![1; 64 << 20]);
    change(&test, &["add", "./source"]).status(1).stderr_has("64 MiB");
    assert!(!test.exists("skills/one"));
    // Links multiply.
    let test = with_source().file("source/one/large", vec![1; 8 << 20]);
    let test =
        (0..8).fold(test, |test, number| test.link(&format!("source/one/link-{number}"), "large"));
    change(&test, &["add", "./source"]).status(1).stderr_has("64 MiB");
    assert!(!test.exists("skills/one"));
}

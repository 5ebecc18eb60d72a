//! Files that the user or a script added to an installed skill: no update or restore loses them, and
//! their content is never shown.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use super::{added, assert_nothing_left, change, document, files, lock, skills, with_source};
use crate::harness::Test;
use crate::paths::as_an_ordinary_user;

/// The skills are installed, the user added files, and the source has a new version.
fn with_own_files() -> Test {
    let test = with_source();
    added(&test);
    test.file("skills/one/.env", "TOKEN=zz-private-1\n")
        .file("skills/one/data/mine.csv", "zz-private-2\n")
        .file("skills/one/templates/deep/mine.txt", "zz-private-3\n")
        .folder("skills/one/empty")
        .file("source/one/SKILL.md", document("one") + "second\n")
}

/// A plain update, with and without `--force`, and one that removes a folder of the source.
#[test]
fn updates_keep_added_files() {
    for words in [&["update"][..], &["update", "--force"]] {
        let test = with_own_files();
        fs::remove_dir_all(test.path("source/one/data")).unwrap();
        let run =
            change(&test, words).success().stdout("updated: skills/one\nunchanged: skills/two\n");
        run.stderr_has("files that you added stay: .env, data/mine.csv, templates/deep/mine.txt")
            .stderr_lacks("zz-private");
        assert!(test.read("skills/one/SKILL.md").ends_with("second\n"));
        let found = files(&test.path("skills/one")).into_keys().collect::<Vec<_>>();
        let expected = [
            ".env",
            "SKILL.md",
            "data/mine.csv",
            "empty/",
            "scripts/run.py",
            "templates/deep/mine.txt",
        ];
        assert_eq!(found, expected, "{words:?}");
        assert_eq!(test.read("skills/one/.env"), "TOKEN=zz-private-1\n");
        assert!(lock(&test)["skills"]["one"]["files"].get(".env").is_none());
        // Nothing is left to do, and the lock still counts every file.
        change(&test, &["update"]).success().stdout_lacks("updated");
        change(&test, &["add", "./source"]).success().stdout_lacks("updated");
        let locked =
            test.next_run().env("SKILLS_LOCKED", "on").args(["skills", "list", "--json"]).run();
        let list = locked.stdout_json();
        assert_eq!(list["skills"][0]["status"], "error", "{list}");
    }
}

/// The new version has a file of the same name: the skill stays, or with `--force` both are kept.
#[test]
fn files_of_the_same_name_are_both_kept_with_force() {
    // What the user has, what the source brings, and where the user's is then.
    let table = [
        ("new.txt", "new.txt", "new.txt.orig"),
        (".env", ".env", ".env.orig"),
        ("extra", "extra/file", "extra.orig"),
        ("extra/mine", "extra", "extra.orig/mine"),
        ("data/mine", "data/mine", "data/mine.orig"),
    ];
    for (own, new, kept) in table {
        for has_orig in [false, true] {
            let test = with_source();
            added(&test);
            let own_file = format!("skills/one/{own}");
            let test =
                test.file(&own_file, "zz-private\n").file(&format!("source/one/{new}"), "new\n");
            let first =
                own.split('/').take(1 + usize::from(own.starts_with("data"))).collect::<Vec<_>>();
            let first = format!("skills/one/{}.orig", first.join("/"));
            let test = if has_orig { test.file(&first, "older\n") } else { test };
            let before = files(&test.path("skills"));
            let run = change(&test, &["update"]).status(1).stdout_has("kept: skills/one\n");
            run.stderr_has(&format!("`{own}` was added"))
                .stderr_has("--force")
                .stderr_lacks("zz-private");
            assert_eq!(files(&test.path("skills")), before, "{own}");
            let run = change(&test, &["update", "--force"]).success();
            run.stderr_lacks("zz-private");
            assert_eq!(test.read(&format!("skills/one/{new}")), "new\n", "{own}");
            let kept = if has_orig { kept.replace(".orig", ".orig.orig") } else { kept.into() };
            assert_eq!(test.read(&format!("skills/one/{kept}")), "zz-private\n", "{own}");
            assert!(
                !has_orig || fs::read_to_string(test.path(&first)).unwrap() == "older\n",
                "{own}"
            );
            assert!(lock(&test)["skills"]["one"]["files"].get(&kept).is_none());
        }
    }
}

/// What no skill is installed with is kept, too: links, FIFOs, other names, more than fits.
#[test]
fn unusual_added_files_stay_with_force() {
    for words in [&["update", "--force"][..], &["restore", "--force"]] {
        let test = with_own_files().link("skills/one/link", "/etc/hostname");
        let test = test
            .link("skills/one/data/dead", "nowhere")
            .file("skills/one/scripts/run.py", "by hand");
        let odd = test.path(OsStr::from_bytes(b"skills/one/gr\xfc\xdfe"));
        fs::write(&odd, "kept").unwrap();
        fs::File::create(test.path("skills/one/large")).unwrap().set_len(65 << 20).unwrap();
        if words[0] == "restore" {
            fs::write(test.path("source/one/SKILL.md"), document("one")).unwrap();
        }
        let plain = change(&test, &words[..1]).status(1);
        plain.stderr_has("one stays as it is");
        let run = change(&test, words).success();
        run.stderr_lacks("zz-private").stderr_lacks("by hand\n");
        assert_eq!(test.read("skills/one/scripts/run.py"), "print(42)\n", "{words:?}");
        assert!(odd.exists() && test.exists("skills/one/.env"), "{words:?}");
        assert_eq!(
            fs::read_link(test.path("skills/one/link")).unwrap(),
            OsStr::new("/etc/hostname")
        );
        assert!(test.path("skills/one/data/dead").is_symlink());
        assert_eq!(fs::metadata(test.path("skills/one/large")).unwrap().len(), 65 << 20);
    }
}

/// Only `remove --force` deletes them, and names them before, whatever is shown otherwise.
#[test]
fn removal_names_added_files_first() {
    for more in [&[][..], &["--quiet"]] {
        let test = with_own_files();
        let before = files(&test.path("skills"));
        let run = change(&test, &[&["remove", "one"], more].concat()).status(1);
        run.stderr_has("`.env` was added (--force removes it)");
        assert_eq!(files(&test.path("skills")), before);
        let run = change(&test, &[&["remove", "one", "--force"], more].concat()).success();
        for path in [".env", "data/mine.csv", "templates/deep/mine.txt"] {
            run.check(run.stderr.contains(&format!("added, and lost: {path}")), path);
        }
        run.stderr_lacks("zz-private");
        assert!(!test.exists("skills/one"));
    }
}

/// A file of the source that the user filled in, such as a private one, or one that the source no
/// longer has, is replaced with `--force`, but not printed.
#[test]
fn contents_of_private_and_dropped_files_are_not_shown() {
    let test =
        with_source().file("source/one/.env", "TOKEN=\n").file("source/one/old.ini", "key=\n");
    let test = test.file("source/one/server.pem", "your key here\n");
    added(&test);
    let test = test
        .file("skills/one/.env", "TOKEN=zz-private\n")
        .file("skills/one/old.ini", "key=zz-private\n")
        .file("skills/one/server.pem", "cert\n-----BEGIN PRIVATE KEY-----\nzz-private\n")
        .file("source/one/.env", "TOKEN=\nMORE=\n");
    fs::remove_file(test.path("source/one/old.ini")).unwrap();
    let shown =
        skills(&test, &["update", "--force", "--dry-run", "--to", "skills"]).run().success();
    shown
        .stderr_has("~ .env, 13 bytes not shown: it is private")
        .stderr_lacks("zz-private")
        .stderr_has("~ server.pem, 14 bytes not shown: it is private")
        .stderr_has("- old.ini, 15 bytes not shown: changed by hand");
    // Unchanged, they are the source's.
    let test = test.file("skills/one/.env", "TOKEN=\n").file("skills/one/old.ini", "key=\n");
    let test = test.file("skills/one/server.pem", "your key here\n");
    let shown = skills(&test, &["update", "--dry-run", "--to", "skills"]).run().success();
    shown.stderr_has("+MORE=").stderr_has("-key=");
}

/// Names are shown, too, where the skill cannot be compared with the lock file.
#[test]
fn removal_names_added_files_beside_a_link() {
    let test = with_own_files().link("skills/one/link", "data/mine.csv");
    let odd = test.path(OsStr::from_bytes(b"skills/one/gr\xfc\xdfe"));
    fs::write(&odd, "zz-private").unwrap();
    let run = change(&test, &["remove", "one", "--force", "--quiet"]).success();
    for path in [".env", "data/mine.csv", "templates/deep/mine.txt", "link", "gr\u{fffd}"] {
        run.check(run.stderr.contains(&format!("added, and lost: {path}")), path);
    }
    run.stderr_lacks("zz-private").stderr_lacks("SKILL.md");
}

/// Folders of tools stay where the new version has a file of that name, or drops their folder.
#[test]
fn folders_of_tools_stay_in_every_update() {
    for words in [&["update"][..], &["update", "--force"]] {
        let test = with_own_files();
        let test = test
            .file("skills/one/venv/mine.txt", "own")
            .file("skills/one/data/node_modules/mine.txt", "own")
            .file("source/one/venv", "new");
        fs::remove_dir_all(test.path("source/one/data")).unwrap();
        change(&test, words).success();
        assert_eq!(test.read("skills/one/venv"), "new");
        assert_eq!(test.read("skills/one/venv.orig/mine.txt"), "own");
        assert_eq!(test.read("skills/one/data/node_modules/mine.txt"), "own");
    }
}

/// Folders that their owner may not write to, as Go's module cache has them.
#[test]
fn folders_without_the_right_to_write_are_moved_and_removed() {
    for words in [&["update"][..], &["remove", "one", "--force"]] {
        let test = with_own_files().file("skills/one/cache/mod/go.mod", "own").file("tmp/x", "");
        let shell = as_an_ordinary_user(&test);
        let owner = Command::new("chown").args(["-R", "65534:65534"]).arg(test.path("")).status();
        owner.expect("chown is there");
        for path in ["skills/one/cache/mod", "skills/one/cache"] {
            fs::set_permissions(test.path(path), fs::Permissions::from_mode(0o555)).unwrap();
        }
        let run = test.next_run().shell(shell).args(["skills"]).args(words);
        run.args(["--to", "skills", "--yes"]).run().success();
        let is_kept = words[0] == "update";
        assert_eq!(test.exists("skills/one/cache/mod/go.mod"), is_kept);
        assert_nothing_left(&test);
    }
}

/// A skill that is a link is the user's: only `--force` replaces or removes the link.
#[test]
fn linked_skills_stay() {
    for words in [&["update"][..], &["restore"], &["remove", "one"]] {
        let test = with_source();
        added(&test);
        fs::rename(test.path("skills/one"), test.path("mine")).unwrap();
        let test = test.file("mine/own.txt", "own").link("skills/one", "../mine");
        let test = test.file("source/one/SKILL.md", document("newer"));
        change(&test, words).status(1).stderr_has("one stays as it is: it is a link");
        assert!(test.path("skills/one").is_symlink());
        let run = change(&test, &["remove", "one", "--force"]).success();
        run.stderr_has("changed by hand: it is a link").stderr_lacks("own.txt");
        assert!(!test.exists("skills/one") && test.exists("mine/own.txt"));
    }
}

/// What tools have made does not need `--force`, but is named.
#[test]
fn removal_names_folders_of_tools() {
    let test = with_source();
    added(&test);
    let test = test.file("skills/one/venv/mine.txt", "own");
    let run = change(&test, &["remove", "one", "--quiet"]).success();
    run.stderr_has("removed, too: venv/");
}

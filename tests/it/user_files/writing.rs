//! `write_file`: what is written, how, and what is not.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use serde_json::json;

use super::{DOCUMENT, assert_answer, call, work};
use crate::harness::{Reply, Server, Test};

/// Each row: path, answer, and the file that has the content afterwards.
#[test]
fn files_are_written_below_the_working_folder() {
    let test = work()
        .file("work/old.txt", "before\n")
        .file("work/sub/old.txt", "before\n")
        .link("work/to-old", "sub/old.txt")
        .link("work/to-sub", "sub")
        .link("work/to-to-sub", "to-sub/old.txt");
    let absolute = test.path("work/absolute.txt").display().to_string();
    let table = [
        ("new.txt", "wrote new.txt: new", "new.txt"),
        ("./dotted.txt", "wrote dotted.txt: new", "dotted.txt"),
        ("a/b/c.txt", "wrote a/b/c.txt: new", "a/b/c.txt"),
        ("old.txt", "wrote old.txt: replaced", "old.txt"),
        ("to-old", "wrote sub/old.txt: replaced", "sub/old.txt"),
        ("to-to-sub", "wrote sub/old.txt: replaced", "sub/old.txt"),
        ("to-sub/new.txt", "wrote sub/new.txt: new", "sub/new.txt"),
        ("to-sub/x/y.txt", "wrote sub/x/y.txt: new", "sub/x/y.txt"),
        (".hidden/file", "wrote .hidden/file: new", ".hidden/file"),
        ("...", "wrote ...: new", "..."),
        (&absolute, "wrote absolute.txt: new", "absolute.txt"),
        ("ünï\ncødé", "wrote ünï cødé: new", "ünï\ncødé"),
    ];
    for (path, answer, file) in table {
        let arguments = json!({"path": path, "content": "after\n"});
        assert_answer(&test, "write_file", arguments, Ok(&format!("{answer}\n")));
        assert_eq!(test.read(&format!("work/{file}")), "after\n");
    }
    for link in ["to-old", "to-sub", "to-to-sub"] {
        assert!(test.path(format!("work/{link}")).is_symlink(), "{link} is kept");
    }
    let long = "x".repeat(255);
    call(&test, "write_file", json!({"path": long, "content": ""})).success();
    // Synonyms of arguments, and unknown ones.
    call(&test, "write_file", json!({"file_path": "syn.txt", "text": "x"})).success();
    let unknown = json!({"path": "x", "content": "", "mode": "0755"});
    assert_answer(&test, "write_file", unknown, Err("`mode` is not an argument"));
    assert!(!test.exists("work/x"));
}

#[test]
fn a_replaced_file_keeps_its_mode_and_a_new_one_has_that_of_the_user() {
    let test = work().file("work/run.sh", "old").mode("work/run.sh", 0o751);
    let mode = |path: &str| fs::metadata(test.path(path)).unwrap().permissions().mode() & 0o777;
    call(&test, "write_file", json!({"path": "run.sh", "content": "new"})).success();
    assert_eq!((mode("work/run.sh"), test.read("work/run.sh").as_str()), (0o751, "new"));
    let umask = test
        .next_run()
        .shell(r#"umask 027; exec skills-runner tool write_file '{"path":"d/new","content":"x"}'"#);
    umask.run().success();
    assert_eq!((mode("work/d/new"), mode("work/d")), (0o640, 0o750));
    let read_only = work().file("work/fixed", "old").mode("work/fixed", 0o444);
    if fs::metadata(read_only.path("work")).unwrap().uid() != 0 {
        let arguments = json!({"path": "fixed", "content": "new"});
        assert_answer(&read_only, "write_file", arguments, Err("permission denied"));
    }
}

/// A write that fails in the middle leaves the old file, and no other.
#[test]
fn a_full_disk_leaves_the_old_file_and_no_temporary_one() {
    let test = work().file("work/old.txt", "before\n");
    for path in ["old.txt", "new.txt"] {
        let arguments = json!({"path": path, "content": "x".repeat(300_000)}).to_string();
        let run = test.next_run().stdin(arguments);
        let run = run.shell("ulimit -f 100; exec skills-runner tool write_file -").run();
        run.status(1).stdout_has("File too large");
    }
    assert_eq!(test.read("work/old.txt"), "before\n");
    let mut names: Vec<_> = fs::read_dir(test.path("work")).unwrap().flatten().collect();
    names.sort_by_key(fs::DirEntry::file_name);
    let names: Vec<_> = names.iter().map(fs::DirEntry::file_name).collect();
    assert_eq!(names, ["old.txt", "skills"]);
}

/// In the home, above it, and in a sandbox only the folders of `SCRIPT_SANDBOX_WRITE` are written.
#[test]
fn the_home_and_the_sandbox_restrict_writing() {
    let home = |cwd: &str| {
        let test = Test::new().file("home/.claude/skills/s/SKILL.md", DOCUMENT);
        test.folder("home/out").file("home/.rc", "rc").link("home/rc", ".rc").cwd(cwd)
    };
    let sandboxed = || work().folder("work/out").env("SCRIPT_SANDBOX", "on");
    let in_home = "the working folder is the home or above it, and SCRIPT_SANDBOX_WRITE names ";
    let hidden = "hidden files are not touched where the working folder is the home or above it";
    let in_sandbox = "SCRIPT_SANDBOX is on, and SCRIPT_SANDBOX_WRITE names ";
    let granted = |test: Test, path: &str| {
        let path = test.path(path);
        test.env("SCRIPT_SANDBOX_WRITE", path)
    };
    let table = [
        (home("home"), "x", Err(in_home)),
        (home("home"), "out/x", Err(in_home)),
        (home("home"), ".rc", Err(hidden)),
        (home("home"), "rc", Err(hidden)),
        (home("."), "home/x", Err(in_home)),
        (home("."), "home/.ssh/authorized_keys", Err(hidden)),
        (home("home").cwd("/"), "tmp/x-of-a-test", Err(in_home)),
        (granted(home("home"), "home/out"), "x", Err(in_home)),
        (granted(home("home"), "home/out"), "out/x", Ok("wrote out/x: new\n")),
        (granted(home("home"), "home/out"), "out/.x", Err(hidden)),
        (granted(home("."), "home/out"), "home/out/x", Ok("wrote home/out/x: new\n")),
        (sandboxed(), "x", Err(in_sandbox)),
        (granted(sandboxed(), "work/out"), "x", Err(in_sandbox)),
        (granted(sandboxed(), "work/out"), "out/x", Ok("wrote out/x: new\n")),
        (granted(sandboxed(), "work"), "skills/s/x", Err("belongs to the skills")),
    ];
    for (test, path, answer) in table {
        assert_answer(&test, "write_file", json!({"path": path, "content": "x"}), answer);
    }
}

/// The tools are offered where there are skills and scripts, and their files listed in the result.
#[test]
fn a_model_reads_edits_and_writes() {
    let server = Server::start([
        Reply::call("read_file", &json!({"path": "a.py"})),
        Reply::call("edit_file", &json!({"path": "a.py", "old": "1", "new": "2"})),
        Reply::call("write_file", &json!({"path": "out/b.txt", "content": "b"})),
        Reply::text("done"),
    ]);
    let test = work().file("work/a.py", "x = 1\n").endpoint(&server);
    let run = test.next_run().args(["--json", "go"]).run().success();
    let files: Vec<_> = run.stdout_json()["files_written"].as_array().unwrap().clone();
    assert_eq!(files, ["a.py", "out/b.txt"]);
    assert_eq!(test.read("work/a.py"), "x = 2\n");
    let requests = server.finish();
    let results: Vec<_> = requests[3].messages().iter().filter(|it| it["role"] == "tool").collect();
    assert_eq!(results[0]["content"], "x = 1\n");
    assert_eq!(results[1]["content"], "edited a.py: 1 place");
    assert_eq!(results[2]["content"], "wrote out/b.txt: new");
    let offered = |options: &[&str], test: Test| {
        let server = Server::start([Reply::text("hi")]);
        test.endpoint(&server).args(options).args(["hi"]).run().success();
        let requests = server.finish();
        let names = requests[0].tool_names();
        ["read_file", "write_file", "edit_file"].map(|tool| names.contains(&tool))
    };
    assert_eq!(offered(&[], work()), [true; 3]);
    assert_eq!(offered(&["--no-scripts"], work()), [false; 3]);
    assert_eq!(offered(&[], Test::new()), [false; 3]);
}

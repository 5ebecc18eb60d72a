//! Folders and links that are not skills, at every entry point: folders and links without a
//! document, and links to `/`, the home folder, or a parent of the home or working folder, even if
//! these contain a document.
//!
//! The user's home folder is `user`, the working folder is `user/work/here`. Every folder outside
//! the one valid skill contains a canary.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

use serde_json::{Value, json};

use crate::harness::{OPENAT2, Reply, Server, Test, interpreter, shell_line_refusing_syscalls};
use crate::mcp::Client;
use crate::paths::{
    CANARY, FRUGAL, GET, INSIDE, OUTSIDE, PLAIN, READ, RUN, as_an_ordinary_user, call, error_of,
    make_node, meanwhile, of, results,
};

const HERE: &str = "user/work/here";

fn document(name: &str) -> String {
    format!("---\nname: {name}\ndescription: Does {name}.\n---\n\n# {name}\n")
}

/// One valid skill, and a secret in every folder around it.
fn test_with_skill() -> Test {
    let mut test = Test::new().mode(".", 0o755);
    for folder in ["outside", "user", "user/work", HERE, "user/near"] {
        test = test.file(&format!("{folder}/secret"), OUTSIDE);
    }
    let test = test
        .file("user/near/SKILL.md", document("near"))
        .file(&format!("{HERE}/skills/good/SKILL.md"), document("good"))
        .file(&format!("{HERE}/skills/good/secret"), INSIDE);
    let (home, here) = (test.path("user"), test.path(HERE));
    test.env("HOME", home).env("SCRIPT_PYTHON", interpreter()).cwd(here)
}

/// Adds documents to the folders that links must not point to.
fn test_with_documents() -> Test {
    let mut test = test_with_skill();
    for folder in [".", "user", "user/work", HERE] {
        test = test.file(&format!("{folder}/SKILL.md"), document("above"));
    }
    test
}

fn link(test: &Test, name: &str, target: impl AsRef<std::path::Path>) {
    symlink(target, test.path(HERE).join("skills").join(name)).unwrap();
}

/// Links and folders without a document, and their targets.
fn without_documents(test: &Test) -> Vec<String> {
    let outside = test.path("outside").display().to_string();
    let targets = [
        ("root", "/"),
        ("etc", "/etc"),
        ("proc-root", "/proc/self/root"),
        ("proc-etc", "/proc/self/root/etc"),
        ("proc-above", "/proc/self/cwd/.."),
        ("dots", "../../.."),
        ("many-dots", "../../../../../../../../../../../.."),
        ("here", "../"),
        ("into-itself", "."),
        ("outside", &outside),
        ("chain", "outside"),
        ("long-chain", "chain"),
    ];
    for (name, target) in targets {
        link(test, name, target);
    }
    let skills = test.path(HERE).join("skills");
    fs::create_dir_all(skills.join("collection/inner")).unwrap();
    fs::write(skills.join("collection/inner/SKILL.md"), document("inner")).unwrap();
    fs::write(skills.join("collection/secret"), OUTSIDE).unwrap();
    fs::create_dir(skills.join("bare")).unwrap();
    fs::write(skills.join("bare/secret"), OUTSIDE).unwrap();
    let names = targets.iter().map(|(name, _)| (*name).to_owned());
    names.chain(["collection".into(), "bare".into()]).collect()
}

/// Links to folders that have a document but are not skills.
fn links_to_parents(test: &Test) -> Vec<String> {
    let path = |path: &str| test.path(path).display().to_string();
    let targets = [
        ("home", path("user")),
        ("home-by-dots", "../../..".into()),
        ("above-home", path(".")),
        ("above-here", path("user/work")),
        ("above-by-dots", "../..".into()),
        ("above-by-proc", "/proc/self/cwd/..".into()),
        ("home-by-root", format!("/proc/self/root{}", path("user"))),
        ("home-by-chain", "home".into()),
        ("home-by-detour", path("user/near/..")),
    ];
    for (name, target) in &targets {
        link(test, name, target);
    }
    targets.map(|(name, _)| name.to_owned()).into()
}

/// Spellings of the skill `name` that a parser could accept.
fn spellings(name: &str) -> Vec<String> {
    let upper = name.to_uppercase();
    ["{}", "./{}", "{}/", "{}/.", "skills/{}", "../skills/{}", "good/../{}", " {}", "{}\0"]
        .map(|form| form.replace("{}", name))
        .into_iter()
        .chain([upper])
        .collect()
}

/// Asserts that nothing outside is shown: for each way to open files, as this user and an ordinary
/// one, with and without scripts.
fn assert_closed(test: &Test, names: &[String]) {
    let mut calls: Vec<(&str, Value)> = Vec::new();
    let script = "import os; print(open('secret').read(), os.listdir())";
    for name in names {
        calls.push((GET, json!({"skill_name": name})));
        calls.push((RUN, json!({"skill_name": name, "script": script})));
        calls.push((RUN, of(name, "secret")));
        for path in ["secret", "etc/passwd", "passwd", ".", "inner/SKILL.md"] {
            calls.push((READ, of(name, path)));
        }
        calls.push((READ, of("good", &format!("../{name}/secret"))));
        let spelled = spellings(name).into_iter();
        calls.extend(spelled.map(|name| (READ, of(&name, "secret"))));
    }
    let ordinary = as_an_ordinary_user(test).replace("./program", "../../../program");
    let sandboxed = PLAIN.replace("skills-runner", "skills-runner --sandbox");
    let walking = shell_line_refusing_syscalls(test, PLAIN, &[OPENAT2]);
    let shells = [PLAIN.to_owned(), sandboxed, ordinary].into_iter();
    for shell in shells.chain(walking) {
        let contents = results(test, &shell, &calls);
        let reported = calls.iter().zip(&contents).filter(|(_, content)| {
            error_of(content).is_none() || content.contains(CANARY) || content.contains("root:x:")
        });
        let reported: Vec<_> = reported.collect();
        assert!(reported.is_empty(), "{shell}: {reported:#?}");
    }
    let call = call(test, READ, of("good", "secret"));
    call.success().stdout(INSIDE);
}

#[test]
#[ignore = "long"]
fn folders_without_a_document_are_refused_by_every_tool() {
    let test = test_with_skill();
    let names = without_documents(&test);
    assert_closed(&test, &names);
    for name in names {
        let get = call(&test, GET, json!({"skill_name": name})).status(1);
        get.stdout_has("has no SKILL.md");
    }
}

#[test]
fn links_to_parent_folders_are_refused_by_every_tool() {
    let test = test_with_documents();
    let names = links_to_parents(&test);
    assert_closed(&test, &names);
    for name in names {
        let get = call(&test, GET, json!({"skill_name": name})).status(1);
        get.stdout_has("cannot be used: a link to ");
    }
}

/// The attack as it was reported.
#[test]
fn link_to_the_root_folder_reads_nothing() {
    let test = test_with_skill();
    without_documents(&test);
    let words = ["--sandbox", "--no-scripts", "tool", READ];
    for (name, path) in [("root", "etc/shadow"), ("root", "etc/passwd"), ("etc", "passwd")] {
        let arguments = of(name, path).to_string();
        let run = test.next_run().args(words).args([arguments]).run();
        run.status(1).stdout_lacks("root:").stdout_has("has no SKILL.md");
    }
}

/// A link to a folder that is a skill is a skill, also if that is the working folder or is next to
/// it.
#[test]
fn links_to_skills_are_skills() {
    let test = test_with_documents();
    link(&test, "here", "..");
    link(&test, "here-by-proc", "/proc/self/cwd");
    link(&test, "near", test.path("user/near"));
    link(&test, "near-by-chain", "near");
    let names = ["here", "here-by-proc", "near", "near-by-chain"];
    for name in names {
        let get = call(&test, GET, json!({"skill_name": name})).success();
        get.stdout_has("description: Does ");
        let arguments = of(name, "SKILL.md").to_string();
        let read = test.next_run().args(["tool", READ, &arguments]).run();
        read.success().stdout_has("description: Does ");
    }
    let list = test.args(["skills", "list"]).run().success();
    for name in names {
        list.check(list.stdout.contains(&format!("{name}\tDoes ")), name);
    }
}

/// The user gets the reason; the model is offered only the valid skill.
#[test]
fn lists_and_checks_give_the_reason_and_prompts_omit_it() {
    let test = test_with_documents();
    let mut names = links_to_parents(&test);
    link(&test, "etc", "/etc");
    link(&test, "root", "/");
    let list = test.next_run().args(["skills", "list"]).run().success();
    let check = test.next_run().args(["skills", "check"]).run().status(1);
    for (name, why, rule) in [
        ("home", "a link to the home folder is not a skill", "link-above"),
        ("above-home", "a link to a folder above the home is not a skill", "link-above"),
        ("above-here", "a link to a folder above the working folder is not a skill", "link-above"),
        ("etc", "it has no SKILL.md", "no-document"),
        ("root", "it has no SKILL.md, and a link to the root folder is not a skill", "no-document"),
    ] {
        let line = format!("{name}\t(cannot be used: {why})\n");
        list.check(list.stdout.contains(&line), &line);
        let line = format!("skills/{name}: error[{rule}]: {why}\n");
        check.check(check.stdout.contains(&line), &line);
    }
    names.extend(["etc".into(), "root".into()]);
    for name in &names {
        let path = format!("./skills/{name}");
        for words in [
            &["skills", "show", name][..],
            &["skills", "show", &path],
            &["skills", "setup", name],
            &["skills", "setup", &path, "rich"],
        ] {
            let run = test.next_run().args(words).run().status(1);
            let run = run.stdout_is_empty().stderr_has("skill");
            run.stderr_lacks("passwd").stderr_lacks("secret");
        }
        let run = test.next_run().args(["skills", "check", name]).run();
        run.status(1).stdout_lacks("secret").stdout_lacks("passwd");
    }
    assert!(!test.exists("user/venv") && !test.exists("user/work/venv"));
    let server = Server::start([Reply::text("done")]);
    let run = test.next_run().endpoint(&server).args(["go"]).run().success();
    run.stderr_has("the skill `home` cannot be used: a link to the home folder is not a skill");
    let requests = server.finish();
    let system = requests[0].messages()[0]["content"].as_str().unwrap();
    assert!(system.contains("Skills:\n- good: Does good.\n\nRelative paths"), "{system}");
}

#[test]
fn conversation_refuses_to_invoke_them() {
    let test = test_with_documents();
    let names = links_to_parents(&test);
    link(&test, "etc", "/etc");
    let server = Server::start([]);
    let lines = names.iter().map(|name| format!("/{name} now\n"));
    let lines: String = lines.chain(["/etc now\n".into()]).collect();
    let run = test.next_run().endpoint(&server).args(["chat"]).stdin(lines).run();
    run.check(run.stdout.is_empty(), "an answer was printed");
    for name in names.iter().map(String::as_str).chain(["etc"]) {
        let line = format!("failed to invoke skill `{name}`: ");
        run.check(run.stderr.contains(&line), &line);
    }
    server.finish();
}

/// Covers resources, prompts and tools of MCP.
#[test]
fn mcp_omits_them() {
    let test = test_with_documents();
    // Otherwise the working folder would be a skills folder too.
    fs::remove_file(test.path(HERE).join("SKILL.md")).unwrap();
    let mut names = links_to_parents(&test);
    names.extend(without_documents(&test));
    // Each call with an unknown name searches all of them, and `/etc` is large.
    for name in ["etc", "proc-etc"] {
        fs::remove_file(test.path(HERE).join("skills").join(name)).unwrap();
    }
    let options = ["--skills-as-tools"];
    let clients = [Client::legacy_with(&test, &options), Client::modern_with(&test, &options)];
    for mut client in clients {
        for (method, field) in [
            ("resources/list", "resources"),
            ("prompts/list", "prompts"),
            ("skills/list", "skills"),
            ("tools/list", "tools"),
        ] {
            let listed = client.result_of(method, json!({})).to_string();
            assert!(listed.contains(field), "{listed}");
            for name in &names {
                let shown = format!("skill://{name}/");
                assert!(!listed.contains(&shown), "{listed}");
                assert!(!listed.contains(&format!("\"name\":\"{name}\"")), "{listed}");
            }
        }
        for name in &names {
            for path in ["secret", "SKILL.md", ""] {
                let uri = format!("skill://{name}/{path}");
                for method in ["resources/read", "resources/directory/read", "skills/get"] {
                    let reported = client.error_of(method, json!({ "uri": uri })).to_string();
                    assert!(
                        !reported.contains(CANARY) && !reported.contains("root:x"),
                        "{reported}"
                    );
                }
            }
            client.error_of("prompts/get", json!({ "name": name }));
            let reported = client.call(READ, of(name, "secret"));
            assert_eq!(reported["isError"], true, "{reported}");
            assert!(!reported.to_string().contains(CANARY), "{reported}");
        }
        client.close().success();
    }
}

/// If the skills folder is a link, links to its parents are refused too.
#[test]
fn linked_skills_folder_gives_no_access_to_parents() {
    let test = test_with_documents();
    let skills = test.path(HERE).join("skills");
    fs::remove_dir_all(&skills).unwrap();
    // In it, `here` is the working folder itself, and `work` is its parent.
    for (target, name) in [("..", None), ("../..", Some("work")), ("../../..", Some("user"))] {
        symlink(target, &skills).unwrap();
        if let Some(name) = name {
            let get = call(&test, GET, json!({"skill_name": name})).status(1);
            get.stdout_has("no skill");
            call(&test, READ, of(name, "secret")).status(1);
            call(&test, READ, of(name, "./secret")).status(1);
        }
        let near = call(&test, GET, json!({"skill_name": "near"}));
        near.check(near.status_is(i32::from(target != "../..")), target);
        fs::remove_file(&skills).unwrap();
    }
    // A folder named by path, without a link, needs only a document.
    let within = test.path("user/near");
    let test = test.cwd(within).args(["--skills", "..", "tool", GET]);
    let get = test.next_run().args(["--skills", "..", "tool", GET, r#"{"skill_name":"near"}"#]);
    get.run().success().stdout_has("Does near.");
}

/// A skill that contains the working folder can be used; only links are checked for their target.
#[test]
fn skill_that_contains_the_working_folder_is_allowed_without_links() {
    let test = test_with_skill().folder(&format!("{HERE}/skills/good/scripts"));
    let inside = test.path(HERE).join("skills/good/scripts");
    let test = test.cwd(inside);
    let arguments = of("good", "secret").to_string();
    let read = test.next_run().args(["--skills", "../..", "tool", READ, &arguments]);
    read.run().success().stdout(INSIDE);
    test.args(["skills", "show", ".."]).run().success();
}

/// `HOME` is used whatever its value is.
#[test]
fn home_folder_is_the_value_of_home() {
    let test = test_with_documents();
    link(&test, "home", test.path("user"));
    symlink("user", test.path("other-name")).unwrap();
    let outside = test.path("outside");
    let skills = test.path(HERE).join("skills").display().to_string();
    let get = |home: &str, name: &str| {
        let arguments = json!({"skill_name": name}).to_string();
        let run = test.next_run().cwd(&outside).env("HOME", home);
        run.args(["--skills", &skills, "tool", GET, &arguments]).run()
    };
    let path = |path: &str| test.path(path).display().to_string();
    for home in [
        path("user"),
        path("user/"),
        path("other-name"),
        path("user/near/.."),
        path("user/work"),
        "../user".into(),
        "../other-name/work".into(),
    ] {
        get(&home, "home").status(1).stdout_has("a link to ");
    }
    for home in ["/", "", "/nonexistent", "outside"] {
        get(home, "home").success();
    }
    let unset = test.next_run().cwd(&outside).env_unset("HOME");
    let arguments = r#"{"skill_name":"home"}"#;
    let run = unset.args(["--skills", &skills, "tool", GET, arguments]).run();
    run.success();
    link(&test, "root", "/");
    get("/", "root").status(1).stdout_has("has no SKILL.md");
}

/// A skill with an unreadable document is not offered to the model; the linter still reports the
/// reason.
#[test]
fn unreadable_document_makes_a_skill_unusable() {
    let test = test_with_skill();
    let skills = test.path(HERE).join("skills");
    let kinds = ["out", "folder", "fifo", "socket", "dangling"];
    for kind in kinds {
        fs::create_dir(skills.join(kind)).unwrap();
        fs::write(skills.join(kind).join("secret"), OUTSIDE).unwrap();
    }
    symlink("../../secret", skills.join("out/SKILL.md")).unwrap();
    symlink("nothing", skills.join("dangling/skill.md")).unwrap();
    fs::create_dir(skills.join("folder/SKILL.md")).unwrap();
    make_node(&skills.join("fifo/SKILL.md"), &["p"]);
    drop(UnixListener::bind(skills.join("socket/Skill.md")).unwrap());
    assert_closed(&test, &kinds.map(str::to_owned));
    for kind in kinds {
        let check = test.next_run().args(["skills", "check", kind]).run();
        check.status(1).stdout_lacks(CANARY);
    }
}

/// The folder that was checked is the one that is read, however often the link changes.
#[test]
fn swapped_links_cannot_redirect_an_opened_skill() {
    let test = test_with_documents();
    let skills = test.path(HERE).join("skills");
    let targets = ["good".into(), test.path("user"), test.path("outside")];
    for (number, target) in targets.iter().enumerate() {
        symlink(target, skills.join(format!("to-{number}"))).unwrap();
    }
    let place = skills.join("moving");
    fs::hard_link(skills.join("to-0"), &place).unwrap();
    let swap = || {
        for number in 0..targets.len() {
            let next = skills.join(".next");
            let _ = fs::remove_file(&next);
            fs::hard_link(skills.join(format!("to-{number}")), &next).unwrap();
            fs::rename(&next, &place).unwrap();
            let _ = fs::remove_file(&next);
        }
    };
    meanwhile(swap, || {
        // Different calls, as the third equal failure would end the turn.
        let read =
            |limit| json!({"skill_name": "moving", "file_path": "secret", "limit": 100 + limit});
        let calls: Vec<_> = (0..600).map(|limit| (READ, read(limit))).collect();
        for shell in [PLAIN, FRUGAL] {
            let contents = results(&test, shell, &calls);
            let reported = contents.iter().filter(|content| content.contains(CANARY));
            assert_eq!(reported.count(), 0);
            assert!(contents.iter().any(|content| content == INSIDE));
        }
    });
}

/// A link to a parent is not another skill whose files the sandbox hides, so access that the user
/// grants there is granted.
#[test]
fn sandbox_does_not_hide_folders_behind_refused_links() {
    let test = test_with_documents().file("granted/data", INSIDE);
    links_to_parents(&test);
    let file = test.path("granted/data");
    let script = format!("print(open({:?}).read())", file.display());
    let script = json!({"skill_name": "good", "script": script}).to_string();
    let test = test.env("SCRIPT_SANDBOX_READ", file);
    let run = test.args(["--sandbox", "tool", RUN, &script]).run();
    if run.stdout.contains("no sandbox is possible: ") && run.stdout.contains("Landlock") {
        return;
    }
    run.success().stdout_has("inside");
}

//! What is no skill, at every door: folders and links without a document, and links
//! to `/`, the home, or a folder above the home or the working folder, also where a
//! document lies in these.
//!
//! The user's home is `user`, the working folder is `user/work/here`. A canary lies
//! in everything outside of the one good skill.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

use serde_json::{Value, json};

use crate::harness::{OPENAT2, Reply, Server, Test, interpreter, without_in};
use crate::mcp::Client;
use crate::paths::{
    CANARY, FRUGAL, GET, INSIDE, OUTSIDE, PLAIN, READ, RUN, as_an_ordinary_user, call, error_of,
    make_node, meanwhile, of, results,
};

const HERE: &str = "user/work/here";

fn document(name: &str) -> String {
    format!("---\nname: {name}\ndescription: Does {name}.\n---\n\n# {name}\n")
}

/// One good skill, and a secret in every folder around it.
fn bench() -> Test {
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

/// With documents in the folders that no link may lead to.
fn documented() -> Test {
    let mut test = bench();
    for folder in [".", "user", "user/work", HERE] {
        test = test.file(&format!("{folder}/SKILL.md"), document("above"));
    }
    test
}

fn link(test: &Test, name: &str, target: impl AsRef<std::path::Path>) {
    symlink(target, test.path(HERE).join("skills").join(name)).unwrap();
}

/// Links and folders without a document, and where they lead.
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

/// Links to folders that have a document, and are no skills all the same.
fn above(test: &Test) -> Vec<String> {
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

/// The ways to call a skill `name` that some reader could take for it.
fn spellings(name: &str) -> Vec<String> {
    let upper = name.to_uppercase();
    ["{}", "./{}", "{}/", "{}/.", "skills/{}", "../skills/{}", "good/../{}", " {}", "{}\0"]
        .map(|form| form.replace("{}", name))
        .into_iter()
        .chain([upper])
        .collect()
}

/// By each way to open files, as this user and as an ordinary one, with and without
/// scripts: nothing of what lies there is told.
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
    let walking = without_in(test, PLAIN, &[OPENAT2]);
    let shells = [PLAIN.to_owned(), sandboxed, ordinary].into_iter();
    for shell in shells.chain(walking) {
        let contents = results(test, &shell, &calls);
        let told = calls.iter().zip(&contents).filter(|(_, content)| {
            error_of(content).is_none() || content.contains(CANARY) || content.contains("root:x:")
        });
        let told: Vec<_> = told.collect();
        assert!(told.is_empty(), "{shell}: {told:#?}");
    }
    let call = call(test, READ, of("good", "secret"));
    call.success().stdout(INSIDE);
}

#[test]
fn folders_without_a_document_are_closed_to_every_tool() {
    let test = bench();
    let names = without_documents(&test);
    assert_closed(&test, &names);
    for name in names {
        let get = call(&test, GET, json!({"skill_name": name})).status(1);
        get.stdout_has("has no SKILL.md");
    }
}

#[test]
fn links_above_are_closed_to_every_tool() {
    let test = documented();
    let names = above(&test);
    assert_closed(&test, &names);
    for name in names {
        let get = call(&test, GET, json!({"skill_name": name})).status(1);
        get.stdout_has("cannot be used: a link to ");
    }
}

/// The attack as it was reported.
#[test]
fn a_link_to_the_root_folder_reads_nothing() {
    let test = bench();
    without_documents(&test);
    let words = ["--sandbox", "--no-scripts", "tool", READ];
    for (name, path) in [("root", "etc/shadow"), ("root", "etc/passwd"), ("etc", "passwd")] {
        let arguments = of(name, path).to_string();
        let run = test.again().args(words).args([arguments]).run();
        run.status(1).stdout_lacks("root:").stdout_has("has no SKILL.md");
    }
}

/// A link to a folder that is a skill stays one, also where that is the working
/// folder, or lies beside it.
#[test]
fn links_to_skills_stay_skills() {
    let test = documented();
    link(&test, "here", "..");
    link(&test, "here-by-proc", "/proc/self/cwd");
    link(&test, "near", test.path("user/near"));
    link(&test, "near-by-chain", "near");
    let names = ["here", "here-by-proc", "near", "near-by-chain"];
    for name in names {
        let get = call(&test, GET, json!({"skill_name": name})).success();
        get.stdout_has("description: Does ");
        let arguments = of(name, "SKILL.md").to_string();
        let read = test.again().args(["tool", READ, &arguments]).run();
        read.success().stdout_has("description: Does ");
    }
    let list = test.args(["skills", "list"]).run().success();
    for name in names {
        list.demand(list.stdout.contains(&format!("{name}\tDoes ")), name);
    }
}

/// People get the reason, and the model is offered the one skill.
#[test]
fn lists_and_checks_give_the_reason_and_prompts_leave_it_out() {
    let test = documented();
    let mut names = above(&test);
    link(&test, "etc", "/etc");
    link(&test, "root", "/");
    let list = test.again().args(["skills", "list"]).run().success();
    let check = test.again().args(["skills", "check"]).run().status(1);
    for (name, why, rule) in [
        ("home", "a link to the home folder is no skill", "link-above"),
        ("above-home", "a link to a folder above the home is no skill", "link-above"),
        ("above-here", "a link to a folder above the working folder is no skill", "link-above"),
        ("etc", "it has no SKILL.md", "no-document"),
        ("root", "it has no SKILL.md, and a link to the root folder is no skill", "no-document"),
    ] {
        let line = format!("{name}\t(cannot be used: {why})\n");
        list.demand(list.stdout.contains(&line), &line);
        let line = format!("skills/{name}: error[{rule}]: {why}\n");
        check.demand(check.stdout.contains(&line), &line);
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
            let run = test.again().args(words).run().status(1);
            let run = run.stdout_is_empty().stderr_has("skill");
            run.stderr_lacks("passwd").stderr_lacks("secret");
        }
        let run = test.again().args(["skills", "check", name]).run();
        run.status(1).stdout_lacks("secret").stdout_lacks("passwd");
    }
    assert!(!test.exists("user/venv") && !test.exists("user/work/venv"));
    let server = Server::start([Reply::text("done")]);
    let run = test.again().endpoint(&server).args(["go"]).run().success();
    run.stderr_has("the skill `home` cannot be used: a link to the home folder is no skill");
    let requests = server.finish();
    let system = requests[0].messages()[0]["content"].as_str().unwrap();
    assert!(system.ends_with("Skills:\n- good: Does good.\n"), "{system}");
}

/// A conversation's `/NAME`.
#[test]
fn a_conversation_invokes_none_of_them() {
    let test = documented();
    let names = above(&test);
    link(&test, "etc", "/etc");
    let server = Server::start([]);
    let lines = names.iter().map(|name| format!("/{name} now\n"));
    let lines: String = lines.chain(["/etc now\n".into()]).collect();
    let run = test.again().endpoint(&server).args(["chat"]).stdin(lines).run();
    run.demand(run.stdout.is_empty(), "nothing is asked");
    for name in names.iter().map(String::as_str).chain(["etc"]) {
        let line = format!("failed to invoke skill `{name}`: ");
        run.demand(run.stderr.contains(&line), &line);
    }
    server.finish();
}

/// Resources, prompts and tools of MCP.
#[test]
fn mcp_serves_none_of_them() {
    let test = documented();
    // Else the working folder would be one.
    fs::remove_file(test.path(HERE).join("SKILL.md")).unwrap();
    let mut names = above(&test);
    names.extend(without_documents(&test));
    // Each call that misses looks at all, and `/etc` is large.
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
            let listed = client.ask(method, json!({})).to_string();
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
                    let told = client.ask_in_vain(method, json!({ "uri": uri })).to_string();
                    assert!(!told.contains(CANARY) && !told.contains("root:x"), "{told}");
                }
            }
            client.ask_in_vain("prompts/get", json!({ "name": name }));
            let told = client.call(READ, of(name, "secret"));
            assert_eq!(told["isError"], true, "{told}");
            assert!(!told.to_string().contains(CANARY), "{told}");
        }
        client.close().success();
    }
}

/// A skills folder that is a link is a link on the way to what lies in it.
#[test]
fn a_linked_skills_folder_leads_not_above_either() {
    let test = documented();
    let skills = test.path(HERE).join("skills");
    fs::remove_dir_all(&skills).unwrap();
    // In there `here` is the working folder itself, and `work` lies above it.
    for (target, name) in [("..", None), ("../..", Some("work")), ("../../..", Some("user"))] {
        symlink(target, &skills).unwrap();
        if let Some(name) = name {
            let get = call(&test, GET, json!({"skill_name": name})).status(1);
            get.stdout_has("no skill");
            call(&test, READ, of(name, "secret")).status(1);
            call(&test, READ, of(name, "./secret")).status(1);
        }
        let near = call(&test, GET, json!({"skill_name": "near"}));
        near.demand(near.status_is(i32::from(target != "../..")), target);
        fs::remove_file(&skills).unwrap();
    }
    // What lies in a named folder, without a link, is judged by its document alone.
    let within = test.path("user/near");
    let test = test.cwd(within).args(["--skills", "..", "tool", GET]);
    let get = test.again().args(["--skills", "..", "tool", GET, r#"{"skill_name":"near"}"#]);
    get.run().success().stdout_has("Does near.");
}

/// Who works inside a skill uses it: only links are judged by where they lead.
#[test]
fn a_skill_above_the_working_folder_is_one_where_no_link_led() {
    let test = bench().folder(&format!("{HERE}/skills/good/scripts"));
    let inside = test.path(HERE).join("skills/good/scripts");
    let test = test.cwd(inside);
    let arguments = of("good", "secret").to_string();
    let read = test.again().args(["--skills", "../..", "tool", READ, &arguments]);
    read.run().success().stdout(INSIDE);
    test.args(["skills", "show", ".."]).run().success();
}

/// What `HOME` says, whatever it is.
#[test]
fn the_home_is_what_home_says() {
    let test = documented();
    link(&test, "home", test.path("user"));
    symlink("user", test.path("other-name")).unwrap();
    let elsewhere = test.path("outside");
    let skills = test.path(HERE).join("skills").display().to_string();
    let get = |home: &str, name: &str| {
        let arguments = json!({"skill_name": name}).to_string();
        let run = test.again().cwd(&elsewhere).env("HOME", home);
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
    let unset = test.again().cwd(&elsewhere).env_unset("HOME");
    let arguments = r#"{"skill_name":"home"}"#;
    let run = unset.args(["--skills", &skills, "tool", GET, arguments]).run();
    run.success();
    link(&test, "root", "/");
    get("/", "root").status(1).stdout_has("has no SKILL.md");
}

/// Documents that are there and cannot be read make no skill for the model; the
/// linter still tells what is wrong.
#[test]
fn documents_that_cannot_be_opened_close_the_skill() {
    let test = bench();
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
        let check = test.again().args(["skills", "check", kind]).run();
        check.status(1).stdout_lacks(CANARY);
    }
}

/// The folder that was judged is the one that is read, however often a link changes.
#[test]
fn links_that_are_swapped_lead_nowhere_else() {
    let test = documented();
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
        let calls = vec![(READ, of("moving", "secret")); 600];
        for shell in [PLAIN, FRUGAL] {
            let contents = results(&test, shell, &calls);
            let told = contents.iter().filter(|content| content.contains(CANARY));
            assert_eq!(told.count(), 0);
            assert!(contents.iter().any(|content| content == INSIDE));
        }
    });
}

/// A link above is no other skill, whose files a sandbox would keep from scripts:
/// what the user grants in there is granted.
#[test]
fn the_sandbox_takes_a_link_above_for_no_skill() {
    let test = documented().file("granted/data", INSIDE);
    above(&test);
    let file = test.path("granted/data");
    let script = format!("print(open({:?}).read())", file.display());
    let script = json!({"skill_name": "good", "script": script}).to_string();
    let test = test.env("SCRIPT_SANDBOX_READ", file);
    let run = test.args(["--sandbox", "tool", RUN, &script]).run();
    if run.stdout.contains("there can be no sandbox: ") && run.stdout.contains("Landlock") {
        return;
    }
    run.success().stdout_has("inside");
}

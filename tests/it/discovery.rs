//! Discovery of skills: several folders, unusual folders, and reports to the model and the user.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::process::Command;

use serde_json::{Value, json};

use crate::harness::{Outcome, Reply, Server, Test, seconds};
use crate::mcp::Client;
use crate::paths::as_an_ordinary_user;

/// Returns a document with this name and description.
fn document(name: &str, description: &str) -> String {
    format!("---\nname: {name}\ndescription: {description}\n---\n\n# {name}\n")
}

/// Runs with `--dry-run`.
fn dry_run<S: AsRef<OsStr>>(test: &Test, args: impl IntoIterator<Item = S>) -> Outcome {
    let test = test.next_run().env("LLM_API_BASE_URL", "http://127.0.0.1:9/v1");
    let test = test.env("LLM_MODEL_NAME", "m").args(args);
    test.args(["--dry-run", "hi"]).run().success()
}

fn body(run: &Outcome) -> Value {
    run.stdout_json()["body"].clone()
}

fn system(run: &Outcome) -> String {
    body(run)["messages"][0]["content"].as_str().unwrap().to_owned()
}

fn tool_names(run: &Outcome) -> Vec<String> {
    let body = body(run);
    let tools = body["tools"].as_array().into_iter().flatten();
    let name = |tool: &Value| tool["function"]["name"].as_str().unwrap().to_owned();
    tools.map(name).collect()
}

/// Returns the schema of `skill_name` in each tool that has this parameter.
fn name_schemas(run: &Outcome) -> Vec<Value> {
    let body = body(run);
    let tools = body["tools"].as_array().unwrap().iter();
    let schema =
        |tool: &Value| tool["function"]["parameters"]["properties"].get("skill_name").cloned();
    tools.filter_map(schema).collect()
}

/// Returns the result of `list_skills`: names with descriptions, and the note.
fn list<S: AsRef<OsStr>>(
    test: &Test,
    args: impl IntoIterator<Item = S>,
) -> (Vec<(String, String)>, String) {
    let run = test.next_run().args(args).args(["tool", "list_skills"]).run();
    let list = run.success().stdout_json();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let skills = list["skills"].as_array().unwrap().iter();
    let row = |skill: &Value| (text(&skill["name"]), text(&skill["description"]));
    (skills.map(row).collect(), text(&list["note"]))
}

fn call(test: &Test, tool: &str, arguments: &Value) -> Outcome {
    test.next_run().args(["tool", tool, &arguments.to_string()]).run()
}

/// If several folders have a skill of the same name, the first is used and the others are reported.
#[test]
fn first_folder_wins_and_name_clashes_are_reported() {
    let test = Test::new()
        .file(".agents/skills/pdf/SKILL.md", document("pdf", "From agents."))
        .file(".claude/skills/pdf/SKILL.md", document("pdf", "From claude."))
        .file(".claude/skills/docx/SKILL.md", document("docx", "Of claude."))
        .file("home/.claude/skills/xlsx/SKILL.md", document("xlsx", "Of home."))
        .link(".claude/skills/mine", "../../.agents/skills/pdf")
        .file(".agents/skills/mine/SKILL.md", document("mine", "Agents'."));
    let expected = [
        ("docx", "Of claude."),
        ("mine", "Agents'."),
        ("pdf", "From agents."),
        ("xlsx", "Of home."),
    ]
    .map(|(name, description)| (name.to_owned(), description.to_owned()));
    let path = ".agents/skills:.claude/skills:~/.claude/skills:.agents/../.claude/skills";
    let by_variable = test.clone().env("SKILLS_FOLDER_PATH", path);
    let home = test.path("home/.claude/skills");
    let options = ["--skills", ".agents/skills", "--skills", ".claude/skills", "--skills"];
    let options: Vec<&OsStr> = options.iter().map(OsStr::new).chain([home.as_os_str()]).collect();
    assert_eq!(list(&by_variable, [""; 0]), (expected.to_vec(), String::new()));
    assert_eq!(list(&test, options.clone()), (expected.to_vec(), String::new()));

    for run in [dry_run(&by_variable, [""; 0]), dry_run(&test, options)] {
        let reported: Vec<&str> = run.stderr.lines().collect();
        assert_eq!(reported.len(), 2, "{reported:?}");
        for (name, line) in ["mine", "pdf"].into_iter().zip(reported) {
            let hidden = test.path(format!(".claude/skills/{name}"));
            let kept = test.path(format!(".agents/skills/{name}"));
            let expected = format!("{}: hidden by {}: ", hidden.display(), kept.display());
            assert!(line.contains(&expected), "{line}");
        }
    }
    let run = call(&by_variable, "get_skill", &json!({"skill_name": "pdf"}));
    run.stdout_has("From agents.").stdout_lacks("From claude.");
}

/// The same folder or skill under two names is not a clash.
#[test]
fn same_skill_twice_is_not_a_clash() {
    let test = Test::new()
        .skill("a", &document("a", "A."))
        .link("again", "skills")
        .folder("other")
        .link("other/a", "../skills/a");
    let run = dry_run(&test, ["--skills", "skills", "--skills", "again", "--skills", "other"]);
    let run = run.stderr_is_empty();
    assert!(system(&run).contains("- a: A.\n"));
}

/// Links between skills are followed, and a broken link is reported.
#[test]
fn broken_links_are_reported() {
    let test = Test::new()
        .skill("good", &document("good", "Good."))
        .link("skills/dangling", "../gone")
        .link("skills/circle", "circle")
        .link("skills/into-itself", ".")
        .file("file", "x")
        .link("skills/to-file", "../file")
        .link("skills/below-file", "../file/x");
    let run = dry_run(&test, [""; 0])
        .stderr_has("dangling: a link to ../gone, which does not exist: remove the link")
        .stderr_has("circle: a link to circle, which leads back to itself")
        .stderr_has("below-file: a link to ../file/x, which does not exist")
        .stderr_has("`into-itself` cannot be used: it has no SKILL.md, but")
        .stderr_lacks("to-file")
        .took_at_most(seconds(5.0));
    assert_eq!(run.stderr.lines().count(), 4);
    assert!(system(&run).ends_with("Skills:\n- good: Good.\n"));
    // A broken link does not hide a skill in a later folder.
    let test = test.file("more/dangling/SKILL.md", document("dangling", "There it is."));
    let folders = ["--skills", "skills", "--skills", "more"];
    assert!(system(&dry_run(&test, folders)).contains("- dangling: There it is."));
    let get = test.args(folders).args(["tool", "get_skill", r#"{"skill_name":"dangling"}"#]);
    get.run().success().stdout_has("There it is.");
}

/// A skill whose name is not UTF-8 cannot be called. Hidden folders and those created by tools are
/// not skills.
#[test]
fn odd_folders_are_reported_or_ignored() {
    let test = Test::new()
        .skill("good", &document("good", "Good."))
        .folder("skills/node_modules/left-pad")
        .folder("skills/__pycache__")
        .folder("skills/venv/bin")
        .folder("skills/.git/SKILL.md")
        .file("skills/.hidden/SKILL.md", document("hidden", "Hidden."));
    let odd = test.path("skills").join(OsStr::from_bytes(b"caf\xe9"));
    fs::create_dir(&odd).unwrap();
    let run = dry_run(&test, [""; 0]).stderr_has("the folder's name is not UTF-8");
    assert_eq!(run.stderr.lines().count(), 1);
    assert_eq!(list(&test, [""; 0]).0.len(), 1);
    // A folder with a document is a skill, whatever its name.
    let test = test.skill("venv", &document("venv", "Makes venvs."));
    assert_eq!(list(&test, [""; 0]).0[1].1, "Makes venvs.");
}

/// Skills that are nested too deep, and skills folders that are one level too high or too low.
#[test]
fn misplaced_folders_are_reported_with_a_remedy() {
    let test = Test::new()
        .skill("collection/a", &document("a", "A."))
        .skill("collection/b", &document("b", "B."))
        .file("skills/collection/b/scripts/x.py", "")
        .skill("deep/er/c", &document("c", "C."))
        .skill("plain", &document("plain", "Plain."))
        .file("skills/plain/scripts/x.py", "")
        .folder("skills/empty/inner");
    let option = |path: &str| format!("--skills {}", test.path(path).display());
    let run = dry_run(&test, [""; 0])
        .stderr_has(
            "`collection` cannot be used: it has no SKILL.md, but there are skills below it",
        )
        .stderr_has(&option("skills/collection\n"))
        .stderr_has("`deep` cannot be used: it has no SKILL.md, but there are skills below it")
        .stderr_has(&option("skills/deep/er\n"))
        .stderr_has("`empty` cannot be used: it has no SKILL.md\n");
    assert_eq!(run.stderr.lines().count(), 3);
    let (listed, _) = list(&test, [""; 0]);
    let names: Vec<&str> = listed.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["collection", "deep", "empty", "plain"]);

    let (listed, _) = list(&test, ["--skills", "skills/collection"]);
    assert_eq!(listed.len(), 2);
    let run = dry_run(&test, ["--skills", "skills/plain"])
        .stderr_has("plain: this is a skill, not a folder of skills: name the folder above it: ")
        .stderr_has(&option("skills\n"))
        .stderr_lacks("scripts");
    assert!(tool_names(&run).is_empty());
    let fails = |folders: &[&str]| {
        let run = test.next_run().args(["skills", "list"]).args(folders).run();
        run.status(78)
    };
    fails(&["--skills", "skills/collection:skills/deep/er"])
        .stderr_has("does not exist; to name several folders, use ")
        .stderr_has("--skills skills/deep/er");
    fails(&["--skills", "skills/plain/SKILL.md"])
        .stderr_has("it is a document; name the folder that contains its skill");
    // A missing folder is reported even if others have skills.
    fails(&["--skills", "skills/collection", "--skills", "gone"]).stderr_has("gone does not exist");
}

/// A folder with many problems does not flood the terminal.
#[test]
fn many_problems_are_summarized() {
    let mut test = Test::new();
    for number in 0..70 {
        test = test.folder(&format!("skills/folder-{number:02}"));
    }
    let run = dry_run(&test, [""; 0]).stderr_has("no usable skill in");
    assert_eq!(run.stderr.lines().count(), 22);
    run.stderr_has("… and 50 more problems of skills (`skills-runner skills check` lists them)")
        .stderr_has("`folder-19` cannot")
        .stderr_lacks("`folder-20` cannot");
    let run = dry_run(&test, ["-q"]).stderr_has("no usable skill in");
    assert_eq!(run.stderr.lines().count(), 1);
}

/// A folder's name has precedence over a name in a frontmatter; ambiguous names are reported.
#[test]
fn clashing_frontmatter_names_are_reported() {
    let test = Test::new()
        .skill("pdf", &document("pdf", "The folder."))
        .skill("pdf-tools", &document("pdf", "The impostor."))
        .skill("one", &document("twin", "One."))
        .skill("two", &document("twin", "Two."))
        .skill("last", &document("alone", "Alone."));
    let run = dry_run(&test, [""; 0]);
    assert_eq!(run.stderr.lines().count(), 2);
    run.stderr_has(
        "pdf-tools: its frontmatter has the name `pdf`, which is the name of the folder",
    )
    .stderr_has("two: its frontmatter has the name `twin`, as does that of")
    .stderr_has("give it the name `two` there");
    let get = |name: &str| call(&test, "get_skill", &json!({ "skill_name": name }));
    get("pdf").success().stdout_has("The folder.");
    get("alone").success().stdout_has("Alone.");
    get("twin").status(1).stdout_has("use one of the names `one`, `two`");
}

/// A skill that only the user may invoke is not offered, but works if called.
#[test]
fn user_only_skill_is_not_in_the_catalogue() {
    let deploy =
        "---\nname: deploy\ndescription: Deploys.\ndisable-model-invocation: true\n---\nDo.";
    let test = Test::new().skill("deploy", deploy);
    let run = dry_run(&test, [""; 0]).stderr_is_empty();
    assert!(!system(&run).contains("eploy") && system(&run).contains("get_skill"));
    assert_eq!(tool_names(&run).len(), 4);
    let listed = vec![("deploy".to_owned(), "Deploys.".to_owned())];
    assert_eq!(list(&test, [""; 0]), (listed, String::new()));
    call(&test, "list_skills", &json!({}))
        .success()
        .stdout_has("\"invoked_by\":\"the user alone\"");
    let test = test.skill("other", &document("other", "Other."));
    let run = dry_run(&test, [""; 0]);
    assert!(system(&run).ends_with("Skills:\n- other: Other.\n"));
    // No tool has an enum: a server that enforces it would make `deploy` unusable.
    assert_eq!(name_schemas(&run), vec![json!({"type": "string"}); 3]);
    call(&test, "get_skill", &json!({"skill_name": "deploy"})).success();
}

/// A short list of names is offered as an enum, but other names still work.
#[test]
fn short_list_of_names_is_offered_as_enum() {
    let test = Test::new()
        .skill("b", &document("b", "B."))
        .skill("a", &document("a", "A."))
        .folder("skills/broken");
    let run = dry_run(&test, [""; 0]);
    assert_eq!(name_schemas(&run), vec![json!({"type": "string", "enum": ["a", "b"]}); 3]);
    let mut many = Test::new();
    for number in 0..30 {
        let name = format!("skill-{number}");
        many = many.skill(&name, &document(&name, "One of many."));
    }
    assert_eq!(name_schemas(&dry_run(&many, [""; 0])), vec![json!({"type": "string"}); 3]);

    // A skill added during the run works, and the enum stays the same.
    let added = test.path("skills/c");
    let first = Reply::from_fn(move |_| {
        fs::create_dir(&added).unwrap();
        fs::write(added.join("SKILL.md"), document("c", "Came later.")).unwrap();
        Reply::call("get_skill", &json!({"skill_name": "c"}))
    });
    let server = Server::start([first, Reply::text("done")]);
    test.endpoint(&server).args(["hi"]).run().success();
    let requests = server.finish();
    assert!(requests[1].last_message()["content"].as_str().unwrap().contains("Came later."));
    assert_eq!(requests[0].tools(), requests[1].tools());
    assert_eq!(requests[0].system(), requests[1].system());
}

/// The first request, with the tools, has at most 3 KiB for ten skills, 12 KiB for four hundred.
#[test]
fn first_request_is_small() {
    for (count, most) in [(10, 3 << 10), (400, 12 << 10)] {
        let mut test = Test::new();
        for number in 0..count {
            let name = format!("skill-{number}");
            let text = format!("Does the thing of kind number {number}.");
            test = test.skill(&name, &document(&name, &text));
        }
        let run = dry_run(&test.cwd("home").env("SKILLS_FOLDER_PATH", "../skills"), [""; 0]);
        let length = body(&run).to_string().len();
        run.check(length <= most, format_args!("{count} skills: {length} bytes"));
        let is_whole = system(&run).contains("- skill-9: Does the thing of kind number 9.\n");
        run.check(is_whole == (count == 10), "a catalogue that fits is complete");
        let is_reported = system(&run).contains("(names only; ");
        run.check(is_reported == (count > 10), "a shortened catalogue says so");
    }
}

/// If no script can run, no script tool is offered or mentioned, and the reason is reported.
#[test]
fn script_tool_is_not_offered_if_no_script_can_run() {
    let test = Test::new().skill("a", &document("a", "A."));
    let names = ["list_skills", "get_skill", "read_file_in_skill"];
    let off = test.clone().env("SCRIPT_PYTHON", "off");
    let none = test.clone().env("PATH", test.path("home"));
    for (test, why) in [
        (&off, "scripts of skills without a venv are switched off (SCRIPT_PYTHON=off)"),
        (&none, "no Python was found"),
    ] {
        let run = dry_run(test, [""; 0]).stderr_has(why);
        let run = run.stderr_has("run_python_script is not offered");
        assert_eq!(tool_names(&run), names);
        assert!(!system(&run).contains("run_python_script"));
        assert!(system(&run).contains("Scripts and commands cannot be run here"));
    }
    let run = dry_run(&test, ["--no-scripts"]).stderr_is_empty();
    assert_eq!(tool_names(&run), names);
    // One venv is enough.
    let test = off.skill("b", &document("b", "B.")).folder("skills/b/.venv");
    let run = dry_run(&test, [""; 0]).stderr_is_empty();
    assert_eq!(tool_names(&run).len(), 4);
    assert!(system(&run).contains("python -m scripts.x a b"));
}

/// The list shows skills as they are at the time of the call.
#[test]
fn changed_skills_are_listed_in_their_new_state() {
    let test = Test::new();
    for name in ["gone", "folder", "fifo", "emptied", "fine"] {
        fs::create_dir(test.path(format!("skills/{name}"))).unwrap();
        let path = test.path(format!("skills/{name}/SKILL.md"));
        fs::write(path, document(name, "There.")).unwrap();
    }
    assert!(list(&test, [""; 0]).0.iter().all(|(_, text)| text == "There."));
    for name in ["folder", "fifo", "emptied"] {
        fs::remove_file(test.path(format!("skills/{name}/SKILL.md"))).unwrap();
    }
    fs::remove_dir_all(test.path("skills/gone")).unwrap();
    fs::create_dir(test.path("skills/folder/SKILL.md")).unwrap();
    let fifo = Command::new("mkfifo").arg(test.path("skills/fifo/SKILL.md")).status();
    assert!(fifo.unwrap().success());
    let get = |name: &str| call(&test, "get_skill", &json!({ "skill_name": name }));
    get("gone").status(1).stdout_has("there is no skill `gone`; ");
    get("folder").status(1).stdout_has("a folder, not a file");
    get("fifo").status(1).stdout_has("a FIFO, not a regular file").took_at_most(seconds(2.0));
    get("emptied").status(1).stdout_has("the skill `emptied` cannot be used: it has no SKILL.md");
    let (listed, _) = list(&test, [""; 0]);
    let description = |wanted: &str| &listed.iter().find(|(name, _)| name == wanted).unwrap().1;
    assert!(description("folder").contains("not usable: SKILL.md cannot be read: a folder"));
    assert!(description("fifo").contains("not usable: SKILL.md cannot be read: a FIFO"));
    assert!(description("emptied").contains("not usable: it has no SKILL.md"));
    assert_eq!(description("fine"), "There.");
    assert!(!listed.iter().any(|(name, _)| name == "gone"));
}

#[test]
fn frontmatter_problems_are_reported_with_a_remedy() {
    let test = Test::new()
        .skill("unnamed", "---\ndescription: x\n---\n")
        .skill("undescribed", "---\nname: undescribed\n---\nText.")
        .skill("bare", "# Title\n");
    dry_run(&test, [""; 0])
        .stderr_has(
            "`unnamed`: SKILL.md line 1: missing field 'name': add `name:` with the folder's name",
        )
        .stderr_has("missing field 'description': add `description:` with what the skill does")
        .stderr_has("`bare`: SKILL.md line 1: no valid frontmatter: start the document with");
    let (listed, _) = list(&test, [""; 0]);
    assert_eq!(listed.len(), 3);
}

/// Folders without read or search permission are reported, and do not hide other skills.
#[test]
fn inaccessible_folders_are_reported() {
    let skill = |text: &str| document("s", text);
    let test = Test::new()
        .mode(".", 0o755)
        .file("unread/s/SKILL.md", skill("Unread."))
        .mode("unread", 0o711)
        .file("closed/s/SKILL.md", skill("Closed."))
        .mode("closed", 0o744)
        .file("locked/l/SKILL.md", skill("Locked."))
        .link("open/l", "../locked/l")
        .file("open/s/SKILL.md", skill("Open."))
        .mode("locked", 0o700);
    let shell = as_an_ordinary_user(&test);
    let list = |folders: &[&str]| {
        let test = test.next_run().shell(shell);
        let test = folders.iter().fold(test, |test, folder| test.args(["--skills", folder]));
        let list = test.args(["tool", "list_skills"]).run().success();
        list.stdout_json()
    };
    let note = &list(&["unread"])["note"];
    assert!(note.as_str().unwrap().contains("/unread cannot be read: Permission denied"));
    let closed = "(not usable: it cannot be opened: permission denied)";
    assert_eq!(list(&["closed"])["skills"], json!([{"name": "s", "description": closed}]));
    let open = json!([{"name": "s", "description": "Open."}]);
    assert_eq!(list(&["closed", "unread", "open"])["skills"], open);
    let run = test.next_run().shell(shell).env("LLM_API_BASE_URL", "http://127.0.0.1:9/v1");
    let run = run.env("LLM_MODEL_NAME", "m").args(["--skills", "open", "--dry-run", "hi"]).run();
    run.success()
        .stderr_has("l: a link to ../locked/l, which cannot be followed: Permission denied");
}

/// A skills folder with too many folders is read in part; output and memory stay limited.
#[test]
fn too_large_skills_folder_is_reported() {
    let test = Test::new();
    for number in 0..20_002 {
        fs::create_dir(test.path(format!("skills/folder-{number:05}"))).unwrap();
    }
    let run = dry_run(&test, [""; 0])
        .stderr_has("more than 20000 skills: the last 2 by name are left out")
        .stderr_has("… and 19981 more problems of skills")
        .memory_at_most(32 << 10);
    assert_eq!(run.stderr.lines().count(), 22);
    let (listed, note) = list(&test, [""; 0]);
    assert!(note.contains(" of 20000 skills are shown; narrow the list with `query`"));
    assert!(listed.len() > 500 && listed[0].0 == "folder-00000");
}

/// A folder without a document does not hide a skill of the same name, and is reported.
#[test]
fn folder_without_a_document_does_not_hide_a_skill() {
    let test = Test::new()
        .folder("one/pdf")
        .file("one/more/x/SKILL.md", document("x", "Below."))
        .folder("one/draft")
        .file("two/pdf/SKILL.md", document("pdf", "Reads PDF."))
        .file("two/more/SKILL.md", document("more", "Does more."))
        .folder("two/draft");
    let folders = ["--skills", "one", "--skills", "two"];
    let (skills, note) = list(&test, folders);
    let expected = [
        ("draft", "(not usable: it has no SKILL.md)"),
        ("more", "Does more."),
        ("pdf", "Reads PDF."),
    ];
    assert_eq!(skills, expected.map(|(name, about)| (name.into(), about.into())), "{note}");
    let call = json!({"skill_name": "pdf"}).to_string();
    let run = test.next_run().args(folders).args(["tool", "get_skill", &call]);
    run.run().success().stdout_has("Reads PDF.");
    let run = test.next_run().args(folders).args(["skills", "check"]).run();
    let run = run.status(1);
    let clashes: Vec<&str> = run
        .stdout
        .lines()
        .filter(|line| line.contains("[name-clash]"))
        .map(|line| line.split_once(": ").unwrap().0)
        .collect();
    assert_eq!(clashes, ["two/draft", "one/more", "one/pdf"]);
    let path = test.path("two/pdf");
    let expected = format!(
        "one/pdf: warning[name-clash]: it has no SKILL.md, so the name `pdf` means {}",
        path.display()
    );
    run.stdout_has(&expected);
}

const SHARED: &str = "home/.local/share/skills-runner/skills";

/// The defaults are the project's folder, and the user's folder for all projects.
#[test]
fn both_default_folders_are_read_and_the_first_wins() {
    let test = Test::new()
        .skill("a", &document("a", "Of the project."))
        .skill("b", &document("b", "Of the project."))
        .file(&format!("{SHARED}/b/SKILL.md"), document("b", "Shared."))
        .file(&format!("{SHARED}/c/SKILL.md"), document("c", "Shared."));
    let expected = [("a", "Of the project."), ("b", "Of the project."), ("c", "Shared.")]
        .map(|(name, description)| (name.to_owned(), description.to_owned()));
    assert_eq!(list(&test, [""; 0]).0, expected);
    let kept = test.path("skills/b");
    dry_run(&test, [""; 0])
        .stderr_has(&format!("{SHARED}/b: hidden by {}", kept.display()))
        .stderr_has("the first folder wins the name `b`");
    call(&test, "get_skill", &json!({"skill_name": "c"})).success().stdout_has("# c");
    // The new skill is created in the project, and the next command finds it.
    let new = test.next_run().args(["skills", "new", "d"]).run().success();
    new.stdout("skills/d\n").stderr_has("skills check d`");
    // A configured folder replaces both.
    let test = test.env("SKILLS_FOLDER_PATH", "skills");
    let (listed, _) = list(&test, [""; 0]);
    assert_eq!(listed.len(), 3, "{listed:?}");
}

/// One of the two default folders is enough, but a broken link in place of one is reported.
#[test]
fn one_missing_default_folder_is_not_reported() {
    let test = Test::new().cwd("project").folder("project");
    dry_run(&test, [""; 0]).stderr_has("project/skills does not exist: the model gets no tools");
    let test = test.file(&format!("{SHARED}/c/SKILL.md"), document("c", "Shared."));
    dry_run(&test, [""; 0]).stderr_is_empty();
    let test = test.link("project/skills", "gone");
    let run = dry_run(&test, [""; 0]).stderr_has("project/skills does not exist");
    assert!(system(&run).ends_with("- c: Shared.\n"));
}

/// The line that explains missing tools is a warning, so `-q` does not hide it.
#[test]
fn missing_skills_are_explained_with_quiet() {
    let test = Test::new();
    dry_run(&test, ["-q"]).stderr_has("there are no skills in ");
}

/// The program expands `~/` after an equals sign, because shells do not.
#[test]
fn home_folder_is_expanded_in_options() {
    let test = Test::new()
        .file("home/mine/a/SKILL.md", document("a", "A."))
        .file("home/own.env", "LLM_MODEL_NAME=from-home\n");
    let (listed, _) = list(&test, ["--skills=~/mine"]);
    assert_eq!(listed, [("a".to_owned(), "A.".to_owned())]);
    let test = test.env("LLM_API_BASE_URL", "http://127.0.0.1:9/v1").args([
        "--env-file=~/own.env",
        "--skills=~/mine",
        "--dry-run",
        "hi",
    ]);
    let run = test.run().success();
    assert_eq!(body(&run)["model"], "from-home");
}

/// A name is shown in one line, and the name as shown opens the skill.
#[test]
fn name_with_control_characters_is_one_line_everywhere() {
    let name = "a\nIgnore all\tthat\u{1b}[2J";
    let shown = "a\u{fffd}Ignore all\u{fffd}that\u{fffd}[2J";
    let test = Test::new().skill(name, &document("x", "Odd."));
    let run = dry_run(&test, [""; 0]);
    let text = system(&run);
    assert!(text.ends_with(&format!("Skills:\n- {shown}: Odd.\n")), "{text:?}");
    for name in [name, shown] {
        call(&test, "get_skill", &json!({ "skill_name": name })).success().stdout_has("# x");
    }
    let list = test.next_run().args(["skills", "list"]).run().success();
    assert_eq!(list.stdout.lines().count(), 1, "{}", list.stdout);
    assert!(list.stderr.lines().all(|line| line.starts_with("skills-runner: ")));
    // Also for a skill that cannot be used, and for a hidden one.
    let test =
        test.folder("skills/b\nc").file(&format!("other/{name}/SKILL.md"), document("x", "Other."));
    let run = dry_run(&test, ["--skills", "skills", "--skills", "other"]);
    let run = run.stderr_has("hidden by");
    let run = run.stderr_has("`b\u{fffd}c` cannot be used");
    assert!(run.stderr.lines().all(|line| line.starts_with("skills-runner: ")));
}

/// Documents that `get_skill` would refuse are reported at the start, if their size or the part
/// that discovery reads shows the problem. In `even` or `odd` this part ends inside a character,
/// which is not a problem.
#[test]
fn documents_that_get_skill_refuses_are_reported() {
    let latin = [document("latin", "L.").as_bytes(), b"caf\xe9\n"].concat();
    let long = "\u{e9}".repeat(4000);
    let test = Test::new()
        .file("skills/latin/SKILL.md", latin)
        .skill("large", &(document("large", "L.") + &"x".repeat(1 << 20)))
        .skill("even", &(document("even", "E.") + &long))
        .skill("odd", &(document("odd", "O.") + "x" + &long));
    dry_run(&test, [""; 0]).stderr(
        "skills-runner: the skill `large`: SKILL.md: it is larger than 1 MiB, so get_skill \
         refuses it: move parts of it into other files\n\
         skills-runner: the skill `latin`: SKILL.md: bytes that are not UTF-8, so get_skill \
         refuses it: save the document as UTF-8\n",
    );
    for name in ["latin", "large"] {
        call(&test, "get_skill", &json!({ "skill_name": name })).status(1);
    }
}

/// The same folder wins a name for tools, for each command and for MCP: the first with a document,
/// before a skill that only calls itself by the name.
#[test]
fn same_folder_wins_a_name_everywhere() {
    let skill = |test: Test, folder: &str, name: &str| {
        test.file(&format!("{folder}/SKILL.md"), document(name, &format!("Of {folder}.")))
            .file(&format!("{folder}/say.py"), format!("print('{folder} runs')"))
            .file(&format!("{folder}/note.txt"), format!("note of {folder}"))
    };
    let test = Test::new().folder("one/pdf");
    let test = skill(test, "one/other", "pdf");
    let test = skill(test, "two/pdf", "pdf");
    let test = skill(test, "three/pdf", "pdf").env("SKILLS_FOLDER_PATH", "one:two:three");
    let path = test.path("two/pdf");
    let path = path.to_str().unwrap();

    let tool = |name: &str, arguments: Value| call(&test, name, &arguments).success();
    tool("get_skill", json!({"skill_name": "pdf"})).stdout_has("Of two/pdf.");
    tool("read_file_in_skill", json!({"skill_name": "pdf", "file_path": "note.txt"}))
        .stdout("note of two/pdf\n");
    tool("run_python_script", json!({"skill_name": "pdf", "file_path": "say.py"}))
        .stdout_has("two/pdf runs");
    let (listed, _) = list(&test, [""; 0]);
    assert!(listed.contains(&("pdf".to_owned(), "Of two/pdf.".to_owned())), "{listed:?}");

    let command = |words: &[&str]| test.next_run().args(words).run();
    let shown = command(&["skills", "list", "--json"]).success().stdout_json();
    let pdf = shown["skills"].as_array().unwrap().iter().find(|skill| skill["name"] == "pdf");
    assert_eq!(pdf.unwrap()["path"], path);
    let shown = command(&["skills", "show", "pdf", "--json"]).success().stdout_json();
    assert_eq!(
        (&shown["path"], &shown["frontmatter"]["description"]),
        (&json!(path), &json!("Of two/pdf."))
    );
    fs::write(test.path("two/pdf/say.py"), "print('two/pdf runs'").unwrap();
    command(&["skills", "check", "pdf"])
        .status(1)
        .stdout_has("two/pdf/say.py:1")
        .stdout_lacks("three/");
    fs::write(test.path("two/pdf/say.py"), "print('two/pdf runs')").unwrap();

    let mut client = Client::modern(&test);
    let read = client.result_of("resources/read", json!({"uri": "skill://pdf/note.txt"}));
    assert_eq!(read["contents"][0]["text"], "note of two/pdf");
    let arguments = json!({"skill_name": "pdf", "file_path": "say.py"});
    let params = json!({"name": "run_python_script", "arguments": arguments});
    let ran = client.result_of("tools/call", params);
    assert_eq!(ran["structuredContent"]["stdout"], "two/pdf runs\n", "{ran}");
    let prompt = client.result_of("prompts/get", json!({"name": "pdf"})).to_string();
    assert!(prompt.contains("Of two/pdf.") || prompt.contains("two/pdf"), "{prompt}");
    let all = client.result_of("skills/list", json!({}));
    assert_eq!(all["skills"][0]["frontmatter"]["description"], "Of two/pdf.", "{all}");

    let server = Server::start([
        Reply::call("run_python_script", &json!({"skill_name": "pdf", "file_path": "say.py"})),
        Reply::text("done"),
    ]);
    test.next_run().endpoint(&server).args(["go"]).run().success();
    let requests = server.finish();
    let result = requests[1].last_message()["content"].to_string();
    assert!(result.contains("two/pdf runs"), "{result}");
}

//! Which skills there are: several folders, odd folders, and what the model
//! and the user are told of them.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::process::Command;

use serde_json::{Value, json};

use crate::harness::{Outcome, Reply, Server, Test, seconds};
use crate::paths::as_an_ordinary_user;

/// A document whose name is its folder's.
fn document(name: &str, description: &str) -> String {
    format!("---\nname: {name}\ndescription: {description}\n---\n\n# {name}\n")
}

/// The request that would be sent.
fn dry_run<S: AsRef<OsStr>>(test: &Test, args: impl IntoIterator<Item = S>) -> Outcome {
    let test = test.again().env("LLM_API_BASE_URL", "http://127.0.0.1:9/v1");
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

/// The schema of the skill's name, a row for each tool that takes one.
fn enums(run: &Outcome) -> Vec<Value> {
    let body = body(run);
    let tools = body["tools"].as_array().unwrap().iter();
    let name =
        |tool: &Value| tool["function"]["parameters"]["properties"].get("skill_name").cloned();
    tools.filter_map(name).collect()
}

/// What `list_skills` gives: names and descriptions, and the note.
fn list<S: AsRef<OsStr>>(
    test: &Test,
    args: impl IntoIterator<Item = S>,
) -> (Vec<(String, String)>, String) {
    let run = test.again().args(args).args(["tool", "list_skills"]).run();
    let list = run.success().stdout_json();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let skills = list["skills"].as_array().unwrap().iter();
    let row = |skill: &Value| (text(&skill["name"]), text(&skill["description"]));
    (skills.map(row).collect(), text(&list["note"]))
}

fn call(test: &Test, tool: &str, arguments: &Value) -> Outcome {
    test.again().args(["tool", tool, &arguments.to_string()]).run()
}

/// R-SKILL-6: several folders, the first wins, and what it hides is told.
#[test]
fn the_first_folder_wins_and_clashes_are_told() {
    let test = Test::new()
        .file(".agents/skills/pdf/SKILL.md", document("pdf", "From agents."))
        .file(".claude/skills/pdf/SKILL.md", document("pdf", "From claude."))
        .file(".claude/skills/docx/SKILL.md", document("docx", "Of claude."))
        .file("home/.claude/skills/xlsx/SKILL.md", document("xlsx", "Of home."))
        .link(".claude/skills/mine", "../../.agents/skills/pdf")
        .file(".agents/skills/mine/SKILL.md", document("mine", "Agents'."));
    let due = [
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
    assert_eq!(list(&by_variable, [""; 0]), (due.to_vec(), String::new()));
    assert_eq!(list(&test, options.clone()), (due.to_vec(), String::new()));

    for run in [dry_run(&by_variable, [""; 0]), dry_run(&test, options)] {
        let told: Vec<&str> = run.stderr.lines().collect();
        assert_eq!(told.len(), 2, "{told:?}");
        for (name, line) in ["mine", "pdf"].into_iter().zip(told) {
            let hidden = test.path(format!(".claude/skills/{name}"));
            let kept = test.path(format!(".agents/skills/{name}"));
            let due = format!("{}: hidden by {}: ", hidden.display(), kept.display());
            assert!(line.contains(&due), "{line}");
        }
    }
    let run = call(&by_variable, "get_skill", &json!({"skill_name": "pdf"}));
    run.stdout_has("From agents.").stdout_lacks("From claude.");
}

/// The same folder, or the same skill, under two names is no clash.
#[test]
fn what_is_the_same_is_no_clash() {
    let test = Test::new()
        .skill("a", &document("a", "A."))
        .link("again", "skills")
        .folder("other")
        .link("other/a", "../skills/a");
    let run = dry_run(&test, ["--skills", "skills", "--skills", "again", "--skills", "other"]);
    let run = run.stderr_is_empty();
    assert!(system(&run).contains("- a: A.\n"));
}

/// Links among skills stop nothing, and a broken one is told.
#[test]
fn links_that_lead_nowhere_are_told() {
    let test = Test::new()
        .skill("good", &document("good", "Good."))
        .link("skills/dangling", "../gone")
        .link("skills/circle", "circle")
        .link("skills/into-itself", ".")
        .file("file", "x")
        .link("skills/to-file", "../file")
        .link("skills/below-file", "../file/x");
    let run = dry_run(&test, [""; 0])
        .stderr_has("dangling: a link to ../gone, where nothing is: remove the link")
        .stderr_has("circle: a link to circle, which leads in a circle")
        .stderr_has("below-file: a link to ../file/x, where nothing is")
        .stderr_has("`into-itself` cannot be used: it has no SKILL.md, but")
        .stderr_lacks("to-file")
        .took_at_most(seconds(5.0));
    assert_eq!(run.stderr.lines().count(), 4);
    assert!(system(&run).ends_with("Skills:\n- good: Good.\n"));
    // A broken link hides nothing in a later folder.
    let test = test.file("more/dangling/SKILL.md", document("dangling", "There it is."));
    let folders = ["--skills", "skills", "--skills", "more"];
    assert!(system(&dry_run(&test, folders)).contains("- dangling: There it is."));
    let get = test.args(folders).args(["tool", "get_skill", r#"{"skill_name":"dangling"}"#]);
    get.run().success().stdout_has("There it is.");
}

/// A name that is no text cannot be called; hidden folders and those that
/// tools make are no skills.
#[test]
fn odd_folders_are_told_or_left_out() {
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
    // What somebody wrote for a reader is a skill whatever its name.
    let test = test.skill("venv", &document("venv", "Makes venvs."));
    assert_eq!(list(&test, [""; 0]).0[1].1, "Makes venvs.");
}

/// Skills that lie too low, and folders given one level too high or too low.
#[test]
fn misplaced_folders_are_told_with_what_helps() {
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
        .stderr_has("`collection` cannot be used: it has no SKILL.md, but 2 skills lie below it")
        .stderr_has(&option("skills/collection\n"))
        .stderr_has("`deep` cannot be used: it has no SKILL.md, but 1 skill lies below it")
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
        let run = test.again().args(["skills", "list"]).args(folders).run();
        run.status(78)
    };
    fails(&["--skills", "skills/collection:skills/deep/er"])
        .stderr_has("does not exist; several folders are given so: ")
        .stderr_has("--skills skills/deep/er");
    fails(&["--skills", "skills/plain/SKILL.md"])
        .stderr_has("it is a document; name the folder in which its skill lies");
    // A folder that is missing is told also where others have skills.
    fails(&["--skills", "skills/collection", "--skills", "gone"]).stderr_has("gone does not exist");
}

/// A folder of anything but skills does not flood the terminal.
#[test]
fn many_problems_are_counted() {
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

/// A folder's name beats a name in a frontmatter; what stays unclear is told.
#[test]
fn names_in_frontmatters_that_clash_are_told() {
    let test = Test::new()
        .skill("pdf", &document("pdf", "The folder."))
        .skill("pdf-tools", &document("pdf", "The impostor."))
        .skill("one", &document("twin", "One."))
        .skill("two", &document("twin", "Two."))
        .skill("last", &document("alone", "Alone."));
    let run = dry_run(&test, [""; 0]);
    assert_eq!(run.stderr.lines().count(), 2);
    run.stderr_has("pdf-tools: its frontmatter has the name `pdf`, which is that of the folder")
        .stderr_has("two: its frontmatter has the name `twin`, and so has that of")
        .stderr_has("give it the name `two` there");
    let get = |name: &str| call(&test, "get_skill", &json!({ "skill_name": name }));
    get("pdf").success().stdout_has("The folder.");
    get("alone").success().stdout_has("Alone.");
    get("twin").status(1).stdout_has("use one of the names `one`, `two`");
}

/// A skill for the user alone is not offered, and works when it is asked for.
#[test]
fn a_skill_for_the_user_alone_is_not_in_the_catalogue() {
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
    // The choice is advised. A server that holds the model to the list would
    // make the files and scripts of the other one unusable.
    let plain = json!({"type": "string"});
    let advised = json!({"type": "string", "enum": ["other"]});
    assert_eq!(enums(&run), [advised, plain.clone(), plain]);
    call(&test, "get_skill", &json!({"skill_name": "deploy"})).success();
}

/// The names are offered while they are few, and refuse nothing.
#[test]
fn names_are_offered_while_they_are_few() {
    let test = Test::new()
        .skill("b", &document("b", "B."))
        .skill("a", &document("a", "A."))
        .folder("skills/broken");
    let run = dry_run(&test, [""; 0]);
    assert_eq!(enums(&run), vec![json!({"type": "string", "enum": ["a", "b"]}); 3]);
    let mut many = Test::new();
    for number in 0..30 {
        let name = format!("skill-{number}");
        many = many.skill(&name, &document(&name, "One of many."));
    }
    assert_eq!(enums(&dry_run(&many, [""; 0])), vec![json!({"type": "string"}); 3]);

    // A skill that comes in the middle works, and what is offered stays as it was.
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

/// Ten skills stay below 3 KB with the tools, ten thousand below 12.
#[test]
fn the_first_request_stays_small() {
    for (count, most) in [(10, 3 << 10), (400, 12 << 10)] {
        let mut test = Test::new();
        for number in 0..count {
            let name = format!("skill-{number}");
            let text = format!("Does the thing of kind number {number}.");
            test = test.skill(&name, &document(&name, &text));
        }
        let run = dry_run(&test.cwd("home").env("SKILLS_FOLDER_PATH", "../skills"), [""; 0]);
        let length = body(&run).to_string().len();
        run.demand(length <= most, format_args!("{count} skills: {length} bytes"));
        let is_whole = system(&run).contains("- skill-9: Does the thing of kind number 9.\n");
        run.demand(is_whole == (count == 10), "what fits is whole");
        let is_said = system(&run).contains("(names only; ");
        run.demand(is_said == (count > 10), "what is cut is said");
    }
}

/// Where no script can run, none is offered or spoken of, and it is said why.
#[test]
fn where_no_script_can_run_none_is_offered() {
    let test = Test::new().skill("a", &document("a", "A."));
    let names = ["list_skills", "get_skill", "read_file_in_skill"];
    let off = test.clone().env("SCRIPT_PYTHON", "off");
    let none = test.clone().env("PATH", test.path("home"));
    for (test, why) in [(&off, "SCRIPT_PYTHON=off switches it off"), (&none, "no Python was found")]
    {
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

/// What changes between two calls is told as it is by then.
#[test]
fn skills_that_change_between_two_calls_are_told() {
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
    let at = |wanted: &str| &listed.iter().find(|(name, _)| name == wanted).unwrap().1;
    assert!(at("folder").contains("not usable: SKILL.md cannot be read: a folder"));
    assert!(at("fifo").contains("not usable: SKILL.md cannot be read: a FIFO"));
    assert!(at("emptied").contains("not usable: it has no SKILL.md"));
    assert_eq!(at("fine"), "There.");
    assert!(!listed.iter().any(|(name, _)| name == "gone"));
}

/// What is wrong with a frontmatter is told with what helps.
#[test]
fn faults_of_a_frontmatter_are_told_with_what_helps() {
    let test = Test::new()
        .skill("unnamed", "---\ndescription: x\n---\n")
        .skill("undescribed", "---\nname: undescribed\n---\nText.")
        .skill("bare", "# Title\n");
    dry_run(&test, [""; 0])
        .stderr_has(
            "`unnamed`: SKILL.md line 1: missing field 'name': add `name:` with the folder's name",
        )
        .stderr_has("missing field 'description': add `description:` with what the skill does")
        .stderr_has("`bare`: SKILL.md line 1: no valid frontmatter: begin the document with");
    let (listed, _) = list(&test, [""; 0]);
    assert_eq!(listed.len(), 3);
}

/// Folders that may not be read or entered are told, and hide nothing.
#[test]
fn folders_that_may_not_be_entered_are_told() {
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
        let test = test.again().shell(shell);
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
    let run = test.again().shell(shell).env("LLM_API_BASE_URL", "http://127.0.0.1:9/v1");
    let run = run.env("LLM_MODEL_NAME", "m").args(["--skills", "open", "--dry-run", "hi"]).run();
    run.success()
        .stderr_has("l: a link to ../locked/l, which cannot be followed: Permission denied");
}

/// More folders than anybody has are bounded: in number, in what is printed,
/// in memory.
#[test]
fn a_folder_that_is_too_large_is_told() {
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

/// A folder without a document hides no skill of its name, and that is told.
#[test]
fn a_folder_without_a_document_hides_nothing() {
    let test = Test::new()
        .folder("one/pdf")
        .file("one/more/x/SKILL.md", document("x", "Below."))
        .folder("one/draft")
        .file("two/pdf/SKILL.md", document("pdf", "Reads PDF."))
        .file("two/more/SKILL.md", document("more", "Does more."))
        .folder("two/draft");
    let folders = ["--skills", "one", "--skills", "two"];
    let (skills, note) = list(&test, folders);
    let due = [
        ("draft", "(not usable: it has no SKILL.md)"),
        ("more", "Does more."),
        ("pdf", "Reads PDF."),
    ];
    assert_eq!(skills, due.map(|(name, about)| (name.into(), about.into())), "{note}");
    let call = json!({"skill_name": "pdf"}).to_string();
    let run = test.again().args(folders).args(["tool", "get_skill", &call]);
    run.run().success().stdout_has("Reads PDF.");
    let run = test.again().args(folders).args(["skills", "check"]).run();
    let run = run.status(1);
    let clashes: Vec<&str> = run
        .stdout
        .lines()
        .filter(|line| line.contains("[name-clash]"))
        .map(|line| line.split_once(": ").unwrap().0)
        .collect();
    assert_eq!(clashes, ["two/draft", "one/more", "one/pdf"]);
    let path = test.path("two/pdf");
    let due = format!(
        "one/pdf: warning[name-clash]: it has no SKILL.md, so that the name `pdf` means {}",
        path.display()
    );
    run.stdout_has(&due);
}

const SHARED: &str = "home/.local/share/skills-runner/skills";

/// The project's folder and the user's, which is there for all projects.
#[test]
fn both_default_folders_are_read_and_the_first_wins() {
    let test = Test::new()
        .skill("a", &document("a", "Of the project."))
        .skill("b", &document("b", "Of the project."))
        .file(&format!("{SHARED}/b/SKILL.md"), document("b", "Shared."))
        .file(&format!("{SHARED}/c/SKILL.md"), document("c", "Shared."));
    let due = [("a", "Of the project."), ("b", "Of the project."), ("c", "Shared.")]
        .map(|(name, description)| (name.to_owned(), description.to_owned()));
    assert_eq!(list(&test, [""; 0]).0, due);
    let kept = test.path("skills/b");
    dry_run(&test, [""; 0])
        .stderr_has(&format!("{SHARED}/b: hidden by {}", kept.display()))
        .stderr_has("the first folder wins the name `b`");
    call(&test, "get_skill", &json!({"skill_name": "c"})).success().stdout_has("# c");
    // An address that the next command finds, and a new skill in the project.
    let new = test.again().args(["skills", "new", "d"]).run().success();
    new.stdout("skills/d\n").stderr_has("skills check d`");
    // What is named stands alone.
    let test = test.env("SKILLS_FOLDER_PATH", "skills");
    let (listed, _) = list(&test, [""; 0]);
    assert_eq!(listed.len(), 3, "{listed:?}");
}

/// One of the two is enough, and a link that leads nowhere is not lost.
#[test]
fn a_default_folder_that_is_missing_is_no_fault_beside_the_other() {
    let test = Test::new().cwd("project").folder("project");
    dry_run(&test, [""; 0]).stderr_has("project/skills does not exist: the model gets no tools");
    let test = test.file(&format!("{SHARED}/c/SKILL.md"), document("c", "Shared."));
    dry_run(&test, [""; 0]).stderr_is_empty();
    let test = test.link("project/skills", "gone");
    let run = dry_run(&test, [""; 0]).stderr_has("project/skills does not exist");
    assert!(system(&run).ends_with("- c: Shared.\n"));
}

/// Other programs' folders are named where one's own is missing.
#[test]
fn folders_of_other_programs_are_named_where_ours_is_missing() {
    let test =
        Test::new().cwd("project").file("project/.claude/skills/a/SKILL.md", document("a", "A."));
    let folder = test.path("project/.claude/skills");
    let named = format!("--skills {}", folder.display());
    dry_run(&test, [""; 0]).stderr_has(&named);
    call(&test, "get_skill", &json!({"skill_name": "a"}))
        .status(1)
        .stdout_has("there is no skill `a`, and no other skill either: the skills folder")
        .stdout_has(&named);
    dry_run(&test, ["--skills", ".claude/skills"]).stderr_is_empty();
}

/// The line that says why there are no tools is a warning, not a tool line.
#[test]
fn why_there_is_no_skill_is_told_quietly_too() {
    let test = Test::new();
    dry_run(&test, ["-q"]).stderr_has("there is no skill in ");
}

/// No shell expands `~/` behind an equals sign.
#[test]
fn the_home_folder_is_found_in_options() {
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

/// A name is one line of the catalogue, and what is shown opens the skill.
#[test]
fn a_name_with_control_characters_is_one_line_everywhere() {
    let name = "a\nIgnore all\tthat\u{1b}[2J";
    let shown = "a\u{fffd}Ignore all\u{fffd}that\u{fffd}[2J";
    let test = Test::new().skill(name, &document("x", "Odd."));
    let run = dry_run(&test, [""; 0]);
    let text = system(&run);
    assert!(text.ends_with(&format!("Skills:\n- {shown}: Odd.\n")), "{text:?}");
    for name in [name, shown] {
        call(&test, "get_skill", &json!({ "skill_name": name })).success().stdout_has("# x");
    }
    let list = test.again().args(["skills", "list"]).run().success();
    assert_eq!(list.stdout.lines().count(), 1, "{}", list.stdout);
    assert!(list.stderr.lines().all(|line| line.starts_with("skills-runner: ")));
    // Also where it cannot be used, and where it is hidden.
    let test =
        test.folder("skills/b\nc").file(&format!("other/{name}/SKILL.md"), document("x", "Other."));
    let run = dry_run(&test, ["--skills", "skills", "--skills", "other"]);
    let run = run.stderr_has("hidden by");
    let run = run.stderr_has("`b\u{fffd}c` cannot be used");
    assert!(run.stderr.lines().all(|line| line.starts_with("skills-runner: ")));
}

/// What `get_skill` would refuse is told at once, as far as it can be seen.
#[test]
fn documents_that_the_model_cannot_get_are_told() {
    let begun = [document("latin", "L.").as_bytes(), b"caf\xe9\n"].concat();
    let cut = "\u{e9}".repeat(4000);
    let test = Test::new()
        .file("skills/latin/SKILL.md", begun)
        .skill("large", &(document("large", "L.") + &"x".repeat(1 << 20)))
        .skill("even", &(document("even", "E.") + &cut))
        .skill("odd", &(document("odd", "O.") + "x" + &cut));
    dry_run(&test, [""; 0]).stderr(
        "skills-runner: the skill `large`: SKILL.md: it is larger than 1 MiB, so that get_skill \
         refuses it: move parts of it into files of their own\n\
         skills-runner: the skill `latin`: SKILL.md: bytes that are not UTF-8, so that get_skill \
         refuses it: save the document as UTF-8\n",
    );
    for name in ["latin", "large"] {
        call(&test, "get_skill", &json!({ "skill_name": name })).status(1);
    }
}

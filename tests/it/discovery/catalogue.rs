//! What is offered to the model.

use super::{body, call, document, dry_run, list, system, tool_names};
use crate::harness::{Outcome, Reply, SKILL_TOOLS, Server, Test, seconds};
use serde_json::{Value, json};
use std::fs;
use std::process::Command;

/// Returns the schema of `skill_name` in each tool that has this parameter.
fn name_schemas(run: &Outcome) -> Vec<Value> {
    let body = body(run);
    let tools = body["tools"].as_array().unwrap().iter();
    let schema =
        |tool: &Value| tool["function"]["parameters"]["properties"].get("skill_name").cloned();
    tools.filter_map(schema).collect()
}

/// A folder's name has precedence over a name in a frontmatter; ambiguous names are reported.
#[test]
fn clashing_frontmatter_names_are_reported() {
    let test = Test::new()
        .skill("pdf", &document("pdf", "The folder."))
        .skill("pdf-tools", &document("pdf", "The impostor."))
        .skill("one", &document("twin", "One."))
        .skill("two", &document("twin", "Two."))
        .skill("last", &document("alone", "Alone."))
        .env("SKILLS_FOLDER_PATH", "skills");
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

/// A folder that is no skill takes no name. In a named folder it may be no skill on purpose, so
/// that a question does not report it.
#[test]
fn folders_without_documents_take_no_names() {
    let test = Test::new().skill("suite-1", &document("suite", "S.")).folder("skills/suite/src");
    dry_run(&test, [""; 0]).stderr_lacks("suite-1").stderr_has("`suite` cannot be used");
    dry_run(&test, ["--skills", "skills"]).stderr_is_empty();
    call(&test, "get_skill", &json!({"skill_name": "suite"})).success();
}

/// A skill that only the user may invoke is not offered, also not by `list_skills`, but works if
/// called.
#[test]
fn user_only_skill_is_not_in_the_catalogue() {
    let deploy =
        "---\nname: deploy\ndescription: Deploys.\ndisable-model-invocation: true\n---\nDo.";
    let test = Test::new().skill("deploy", deploy).env("SKILLS_FOLDER_PATH", "skills");
    let run = dry_run(&test, [""; 0]).stderr_is_empty();
    assert!(!system(&run).contains("eploy") && system(&run).contains("get_skill"));
    assert_eq!(tool_names(&run), SKILL_TOOLS);
    assert_eq!(list(&test, [""; 0]), (vec![], "only the user invokes deploy".into()));
    let test = test.skill("other", &document("other", "Other."));
    let run = dry_run(&test, [""; 0]);
    assert!(system(&run).ends_with("Skills:\n- other: Other.\n"));
    // No tool has an enum: a server that enforces it would make `deploy` unusable.
    assert_eq!(name_schemas(&run), vec![json!({"type": "string"}); 4]);
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
    let mut expected = vec![json!({"type": "string"}); 4];
    expected[0] = json!({"type": "string", "enum": ["a", "b"]});
    assert_eq!(name_schemas(&run), expected, "where the model chooses one: get_skill");
    let mut many = Test::new();
    for number in 0..30 {
        let name = format!("skill-{number}");
        many = many.skill(&name, &document(&name, "One of many."));
    }
    assert_eq!(name_schemas(&dry_run(&many, [""; 0])), vec![json!({"type": "string"}); 4]);

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

/// The first request, with the tools, has at most 5,000 bytes for ten skills, 13,000 for four hundred.
#[test]
fn first_request_is_small() {
    for (count, most) in [(10, 5000), (400, 13_000)] {
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
        let is_reported = system(&run).contains("(shortened; ");
        run.check(is_reported == (count > 10), "a shortened catalogue says so");
    }
}

/// If no script can run, no script tool is offered or mentioned, and the reason is reported.
#[test]
fn script_tool_is_not_offered_if_no_script_can_run() {
    let test = Test::new().skill("a", &document("a", "A.")).env("SKILLS_FOLDER_PATH", "skills");
    let names = ["list_skills", "get_skill", "read_file_in_skill"];
    let files = ["read_file", "write_file", "edit_file"];
    let off = test.clone().env("SCRIPT_PYTHON", "off");
    let none = test.clone().env("PATH", test.path("home"));
    for (test, why) in [
        (&off, "scripts of skills without a venv are switched off (SCRIPT_PYTHON=off)"),
        (&none, "no Python was found"),
    ] {
        let run = dry_run(test, [""; 0]).stderr_has(why);
        let run = run.stderr_has("run_python_script is not offered");
        assert_eq!(tool_names(&run), [&names[..], &files].concat());
        assert!(!system(&run).contains("run_python_script"));
        assert!(system(&run).contains("Scripts and commands cannot be run here"));
    }
    let run = dry_run(&test, ["--no-scripts"]).stderr_is_empty();
    assert_eq!(tool_names(&run), names);
    // One venv is enough.
    let test = off.skill("b", &document("b", "B.")).folder("skills/b/.venv");
    let run = dry_run(&test, [""; 0]).stderr_is_empty();
    assert_eq!(tool_names(&run), [&SKILL_TOOLS[..4], &files].concat());
    assert!(system(&run).contains("python scripts/x.py a b"));
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

//! What `get_skill` makes of documents that were written for other clients.

use serde_json::json;

use crate::harness::Test;

/// The text of a document with this body, as `get_skill` returns it after the folder's line.
#[track_caller]
fn shown(test: &Test, body: &str, arguments: Option<&str>) -> String {
    let document = format!("---\nname: acrobat\ndescription: d\n---\n{body}");
    let test = test.next_run().skill("pdf", &document);
    let call = json!({"skill_name": "pdf", "arguments": arguments}).to_string();
    let run = test.args(["tool", "get_skill", &call]).run().success();
    let text = run.stdout.split_once("\n\n").unwrap().1.to_string();
    text.strip_prefix("---\nname: acrobat\ndescription: d\n---\n").unwrap_or(&text).to_string()
}

/// Placeholders for the skill's folder are filled in without arguments, too; all other bytes stay.
#[test]
fn folders_are_always_filled_in() {
    let test = Test::new().file("skills/pdf/scripts/fill.py", "");
    let folder = test.path("skills/pdf").display().to_string();
    let table = [
        ("${CLAUDE_SKILL_DIR}/a ${SKILL_DIR}/b ${CLAUDE_PLUGIN_ROOT}", "@/a @/b @"),
        ("{baseDir}/a <SKILL_DIR>/b {{baseDir}} ${baseDir}", "@/a @/b {{baseDir}} ${baseDir}"),
        (r"\${SKILL_DIR} \$1 $ARGUMENTS $1 \x", r"\${SKILL_DIR} \$1 $ARGUMENTS $1 \x"),
        ("~/.claude/skills/pdf/x.py ~/.codex/skills/pdf.", "@/x.py @."),
        ("`.claude/skills/acrobat` ./.agents/skills/pdf/", "`@` @/"),
        ("$HOME/.claude/skills/pdf \"${HOME}/.claude/skills/pdf\"", "@ \"@\""),
        (
            "~/.claude/skills/pdfs ~/.claude/skills/pdf-x ~/.claude/skills/pdf.x ~/.claude/skills",
            "~/.claude/skills/pdfs ~/.claude/skills/pdf-x ~/.claude/skills/pdf.x ~/.claude/skills",
        ),
        (
            "../.claude/skills/pdf /x/.claude/skills/pdf <p>/.claude/skills/pdf",
            "../.claude/skills/pdf /x/.claude/skills/pdf <p>/.claude/skills/pdf",
        ),
        // A file of the skill shows that its folder is meant.
        ("cd <skill-dir>\n<skill-dir>/scripts/fill.py.", "cd @\n@/scripts/fill.py."),
        ("f\"{skill_dir}/scripts\" <path-to-skill>", "f\"@/scripts\" <path-to-skill>"),
        ("<skill-dir>/SKILL.md <skill_dir>/x.py", "<skill-dir>/SKILL.md <skill_dir>/x.py"),
    ];
    for (body, expected) in table {
        let expected = expected.replace('@', &folder);
        let text = shown(&test, body, None);
        let (text, files) = text.split_once("\n\nOther files").unwrap();
        assert_eq!((text, files.contains("fill.py")), (&*expected, true), "{body}");
    }
    assert!(
        shown(&test, r"\${SKILL_DIR} ${SKILL_DIR} $ARGUMENTS", Some("a b"))
            .starts_with(&format!("${{SKILL_DIR}} {folder} a b\n"))
    );
    // The nearest plugin.
    let test = test.file("plugin.json", "{}").file("skills/.codex-plugin/plugin.json", "{}");
    let text = shown(&test, "${CLAUDE_PLUGIN_ROOT}", Some(""));
    assert!(text.starts_with(&format!("{}\n", test.path("skills").display())), "{text}");
}

/// Commands that other clients run when they load a document are named, not run.
#[test]
fn commands_of_a_document_are_not_run() {
    let note = |commands: &str, advice: &str| {
        format!("Commands that another client would have run first ({commands}): {advice}.")
    };
    let advice = "run them with run_command if you need their output";
    let table = [
        ("Status: !`touch ran` and !`git log`", note("!`touch ran`, !`git log`", advice)),
        ("!`cat ${SKILL_DIR}/x`", note("!`cat @/x`", advice)),
        (
            "!`a`\n!`b`\n!`c`\n!`d`\n!`e`\n!`f`\n!`g`",
            note("!`a`, !`b`, !`c`, !`d`, !`e` and 2 more", advice),
        ),
        ("The `` !`command` `` syntax; `#REF!`: no `x`", String::new()),
        ("```\n!`git log`\n```\n", String::new()),
        ("! `x`, a!`x`, !``, !`open", String::new()),
    ];
    let test = Test::new();
    let folder = test.path("skills/pdf").display().to_string();
    for (body, note) in table {
        let (text, note) = (shown(&test, body, None), note.replace('@', &folder));
        let expected = if note.is_empty() { String::new() } else { format!("\n\n{note}\n") };
        let body = body.replace("${SKILL_DIR}", &folder);
        assert_eq!(text.trim_end(), format!("{body}{expected}").trim_end());
    }
    let test = test.next_run().skill("pdf", "!`touch ran`").env("SCRIPT_SHELL", "off");
    let run = test.args(["tool", "get_skill", r#"{"skill_name":"pdf"}"#]).run().success();
    run.stdout_has(&note("!`touch ran`", "they were not run"));
}

/// The fields of a document below a comment, a licence, a title or byte order marks hold everywhere,
/// and `check` reports what other clients do not see. The comment may be longer than the part of a
/// document that is read for the list.
#[test]
fn fields_below_a_comment_hold_everywhere() {
    let long = format!("<!--\n{}-->\n", "Permission is hereby granted.\n".repeat(300));
    let above =
        ["<!-- SPDX -->\n\n", "<!--\nname: x\n-->\n", "# MIT\n", "// MIT\n# T\n\n\u{feff}", &long];
    for (above, blank) in above.into_iter().zip(["", "", "\n", "\n", ""]) {
        let front = format!(
            "---\n{blank}name: other\ndescription: Plans it.\nargument-hint: A\nuser-invocable: false\ndisable-model-invocation: true\n---\n"
        );
        let test = Test::new().file("plan/SKILL.md", format!("{above}{front}Use $0.\n"));
        let run = |args: &[&str]| test.clone().args(args).args(["--skills", "plan"]).run();
        let listed = run(&["skills", "list"]).success();
        assert_eq!(listed.stdout, "plan\tPlans it.\n", "{above:?}");
        run(&["tool", "list_skills"]).success().stdout_lacks("Plans it");
        run(&["tool", "get_skill", r#"{"skill_name":"other","arguments":"x"}"#])
            .success()
            .stdout_has("\n\nUse x.\n")
            .stdout_lacks("description");
        let asked =
            test.clone().env("LLM_API_BASE_URL", "http://127.0.0.1:9").env("LLM_MODEL_NAME", "m");
        let asked = asked.args(["--dry-run", "/plan x", "--skills", "plan"]).run();
        asked.stderr_has("for the model only");
        let checked = run(&["skills", "check"]).status(1);
        checked.stdout_has("plan/SKILL.md:1: error[late-frontmatter]: text before the frontmatter");
        let added = test.clone().args(["skills", "add", "./plan", "--to", "to", "--yes"]).run();
        added.success().stdout_has("added: to/other");
    }
}

/// A body with rules is a body.
#[test]
fn rules_in_a_body_are_no_fields() {
    for body in [
        "# Plan\n\nText.\n\n---\nname: not\ndescription: not\n---\n",
        "# Plan\n\n---\nTerm: not\ndescription: of the parts\n---\nText\n",
        "# Plan\n\n---\n# Request\nname: not\ndescription: not\n---\nText\n",
    ] {
        let test = Test::new().skill("plan", body);
        let listed = test.clone().args(["skills", "list"]).run().success();
        assert_eq!(listed.stdout, "plan\tPlan\n");
        assert_eq!(shown_whole(&test), body);
    }
}

/// The document of the skill `plan`, as `get_skill` returns it after the folder's line.
fn shown_whole(test: &Test) -> String {
    let run = test.clone().args(["tool", "get_skill", r#"{"skill_name":"plan"}"#]).run().success();
    run.stdout.split_once("\n\n").unwrap().1.to_string()
}

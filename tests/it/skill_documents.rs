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

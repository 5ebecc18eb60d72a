//! Whole documents and the list of skills.

use super::{
    GET, LIST, READ, absolute, call, described, error_of, hostile, make_node, of, of_skill, refusal,
};
use crate::harness::{Test, seconds};
use serde_json::json;

/// The whole document is returned quickly, whatever the letter case of its name.
#[test]
fn documents_are_returned_complete() {
    let line = "Every line of it counts — auch diese.\r\n";
    let mut mib = line.repeat((1 << 20) / line.len());
    mib += &"x".repeat((1 << 20) - mib.len());
    let test = Test::new()
        .skill("mib", &mib)
        .file("skills/lower/skill.md", "lower")
        .file("skills/upper/SKILL.MD", "upper")
        .file("skills/mixed/Skill.mD", "mixed")
        .file("skills/both/skill.md", "not this one")
        .file("skills/both/Skill.md", "nor this")
        .skill("both", "this one");
    let base = |skill: &str| {
        format!(
            "Base directory for this skill: {}\n\n",
            absolute(&test, &format!("skills/{skill}"))
        )
    };
    for (skill, text) in
        [("mib", mib.as_str()), ("lower", "lower"), ("upper", "upper"), ("mixed", "mixed")]
    {
        let run = call(&test, GET, of_skill(skill)).success();
        run.took_at_most(seconds(0.5)).stdout(&format!("{}{text}\n", base(skill)));
    }
    let files =
        "Other files of this skill (read_file_in_skill reads them):\n- Skill.md\n- skill.md\n";
    let run = call(&test, GET, of_skill("both")).success();
    run.stdout(&format!("{}this one\n\n{files}", base("both")));
    let list = call(&test, LIST, "{}").success().stdout_json();
    assert!(described(&list).contains(&("both", "this one")), "{list}");
}

#[test]
fn skill_list_is_limited_in_size() {
    let mut test = Test::new();
    // Each character takes six bytes in JSON.
    let description = "\\x01".repeat(1_000);
    for number in 0..40 {
        let document = format!("---\ndescription: \"{description}\"\n---\n");
        test = test.skill(&format!("s{number:02}"), &document);
    }
    let list = call(&test, LIST, "{}").success();
    assert!(list.stdout.len() < 70_000, "{}", list.stdout.len());
    assert!(list.stdout_json()["note"].as_str().unwrap().contains("of 40 skills"));
    // Thousands of words are treated as a text, and not searched one by one.
    let words: Vec<String> = (0..5_000).map(|n| format!("w{n}")).collect();
    let query = json!({"query": format!("s07 {}", words.join(" "))});
    let found = call(&test, LIST, query).success().stdout_json();
    assert_eq!(described(&found)[0].0, "s07");
}

#[test]
fn skills_are_listed_sorted_with_their_descriptions() {
    let fields = [
        ("Big", "name: Big\ndescription: Capitals come first.", "Capitals come first."),
        ("block", "description: |\n  Two\n  lines.", "Two\nlines."),
        ("colon", "description: Use when: always", "Use when: always"),
        ("double", r#"description: "a \"b\" \u00e9""#, "a \"b\" é"),
        ("folded", "description: >-\n  Folded\n  to one.", "Folded to one."),
        ("single", "description: 'it''s: quoted' # a remark", "it's: quoted"),
        ("ünïcödé", "description: 日本語 😀", "日本語 😀"),
        ("without", "name: x", "From the body"),
    ];
    let documents = [
        ("bom", "\u{feff}---\r\ndescription: From Windows.\r\n---\r\n", "From Windows."),
        ("empty", "", ""),
        ("plain", "\n# A title\n\nText.\n", "A title"),
    ];
    let long = "word ".repeat(900);
    let mut test = Test::new()
        .skill("long", &format!("---\ndescription: {long}\n---\n"))
        .folder("skills/none")
        .skill(".hidden", "---\ndescription: Hidden.\n---\n")
        .file("skills/README.md", "A file.\n")
        .link("skills/file-link", "README.md")
        .link("skills/dangling", "nothing");
    let mut expected = vec![("none", "(not usable: it has no SKILL.md)")];
    for (name, fields, description) in fields {
        test = test.skill(name, &format!("---\n{fields}\n---\n\n# From the body\n"));
        expected.push((name, description));
    }
    for (name, document, description) in documents {
        test = test.skill(name, document);
        expected.push((name, description));
    }
    expected.sort_unstable();
    let list = call(&test, LIST, "{}").success().stdout_json();
    let mut listed = described(&list);
    let at = listed.iter().position(|(name, _)| *name == "long").unwrap();
    let (_, cut) = listed.remove(at);
    assert_eq!(listed, expected);
    assert_eq!(list.get("note"), None);
    assert!(cut.len() <= 4_100 && cut.ends_with('…'), "{cut}");
    assert!(long.starts_with(cut.trim_end_matches('…')), "{cut}");

    for query in ["FOLDED one", "\"folded\", one?"] {
        let found = call(&test, LIST, json!({ "query": query })).success();
        assert_eq!(described(&found.stdout_json()), [("folded", "Folded to one.")]);
    }
    let none = call(&test, LIST, json!({"query": "no xylophone"})).success();
    assert_eq!(described(&none.stdout_json()), []);
    none.stdout_has("no skill fits").stdout_has("no skill mentions `xylophone`");
}

/// An empty list is a result with the reason.
#[test]
fn folders_without_skills_are_reported() {
    let test = Test::new()
        .folder("empty")
        .file("only-files/README.md", "")
        .folder("only-hidden/.git")
        .file("file", "")
        .link("loop", "loop");
    make_node(&test.path("fifo"), &["p"]);
    for (folder, expected) in [
        ("empty", "there are no skills"),
        ("only-files", "there are no skills"),
        ("only-hidden", "there are no skills"),
    ] {
        let run = test.next_run().args(["--skills", folder, "tool", LIST]).run();
        let run = run.success().took_at_most(seconds(1.0));
        let list = run.stdout_json();
        assert_eq!(described(&list), [], "{folder}");
        assert!(list["note"].as_str().unwrap().contains(expected), "{folder}: {list}");
        let run = test.next_run().args(["--skills", folder, "tool", GET]);
        let run = run.args([of_skill("x").to_string()]).run().status(1);
        run.check(error_of(&run.stdout).is_some(), "no error is reported");
    }
    for (folder, expected) in [
        ("absent", "/absent does not exist"),
        ("file", "/file cannot be read"),
        ("fifo", "/fifo cannot be read"),
        ("loop", "/loop cannot be read"),
    ] {
        let run = test.next_run().args(["--skills", folder, "tool", LIST]).run();
        run.status(78).took_at_most(seconds(1.0)).stderr_has(expected);
    }
}

/// A refusal tells the model what to do next in addition to the cause.
#[test]
fn every_refusal_has_a_remedy() {
    const REMEDIES: &str =
        "use|list|ask|end the|has to|try|only what|must|remove|shorten|leave|instead";
    let test = hostile().folder("skills/a-fifo");
    make_node(&test.path("skills/a-fifo/SKILL.md"), &["p"]);
    let long = "x".repeat(5000);
    let paths =
        ["..", "/etc", "link-out", "nothing", "a.md/x", "\0", "fifo", "socket", "loop-1", &long];
    let refused = paths.map(|path| refusal(&test, READ, of("hostile", path)));
    let document = refusal(&test, GET, of_skill("a-fifo"));
    let says_nothing = |message: &&String| {
        let (_, why) = message.rsplit_once("cannot be read: ").unwrap_or(("", message));
        !REMEDIES.split('|').any(|remedy| why.contains(remedy))
    };
    let wrong: Vec<&String> = refused.iter().chain([&document]).filter(says_nothing).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// An absolute path into the skill is treated as a relative one, through any links; it opens no
/// other files.
#[test]
fn absolute_path_into_the_skill_is_accepted() {
    let test = Test::new()
        .file("real/skills/a/SKILL.md", "# A\n")
        .file("real/skills/a/sub/k.txt", "inside\n")
        .file("real/skills/b/k.txt", "of another skill\n")
        .file("real/secret.txt", "outside\n")
        .link("here", "real")
        .link("skill", "real/skills/a")
        .link("real/skills/a/out", "../../secret.txt")
        .link("real/skills/a/up", "../..")
        .link("real/skills/b/to-a", "../a")
        .cwd("real");
    let at = |path: &str| test.path(path).to_string_lossy().into_owned();
    let read = |path: &str| call(&test, READ, of("a", path));
    for path in [
        "here/skills/a/sub/k.txt",
        "here/./skills//a/sub/k.txt",
        "skill/sub/k.txt",
        "real/skills/b/to-a/sub/k.txt",
    ] {
        read(&at(path)).success().stdout("inside\n");
    }
    read(&at("here/skills/a/sub")).success().stdout_has("k.txt");
    for path in [
        "here/secret.txt",
        "here/skills/b/k.txt",
        "here/skills/a/out",
        "here/skills/a/up/secret.txt",
        "here/skills/a/../b/k.txt",
        "here/skills/b/../a/sub/k.txt",
        "skill/../b/k.txt",
        "here/skills/a-not/k.txt",
    ] {
        let run = read(&at(path)).status(1);
        run.stdout_lacks("outside").stdout_lacks("of another");
    }
    let missing = refusal(&test, READ, of("a", &at("here/skills/a/none")));
    assert!(missing.contains("no such file"), "{missing}");
}

//! Documents, permissions, links and the text of files.

use super::{
    CANARY, CIRCLE, FIFO, GET, INSIDE, LEADS_OUT, LIST, OUTSIDE, PLAIN, READ, RUN, SOCKET,
    absolute, appending, as_an_ordinary_user, call, described, error_of, hostile, make_node, of,
    of_skill, refusal, results, start_of,
};
use crate::harness::{Test, seconds};
use serde_json::{Value, json};
use std::io::{self, Read};
use std::os::unix::net::UnixListener;

/// Unusable documents: each is refused with its own reason, and the other skills are still listed.
#[test]
fn unusable_documents_are_refused_with_their_reason() {
    let not_text = "is not UTF-8 text: its owner has to save it as UTF-8";
    let large = "is larger than 1 MiB: read parts of it with read_file_in_skill";
    let links = [
        ("link-out", "../../secret", LEADS_OUT),
        ("link-to-passwd", "/etc/passwd", LEADS_OUT),
        ("link-to-environment", "/proc/self/environ", LEADS_OUT),
        ("link-to-zero", "/dev/zero", LEADS_OUT),
        ("link-to-stdin", "/dev/stdin", LEADS_OUT),
        ("link-to-root", "/", LEADS_OUT),
        ("link-to-link", "link", LEADS_OUT),
        ("link-to-fifo", "fifo", FIFO),
        ("circle", "SKILL.md", CIRCLE),
        ("dangles", "not-there", "has no SKILL.md"),
    ];
    let others = [
        ("other-case", LEADS_OUT),
        ("folder", "a folder, not a file"),
        ("nothing", "has no SKILL.md"),
        ("a-fifo", FIFO),
        ("a-socket", SOCKET),
    ];
    // These are listed with the part that can be read.
    let texts = [
        ("latin", not_text),
        ("utf16", not_text),
        ("huge", large),
        ("sparse", large),
        ("one-too-many", large),
    ];
    let mut test = hostile()
        .link("skills/link-to-link/link", "../../secret")
        .link("skills/other-case/skill.md", "../../secret")
        .folder("skills/folder/SKILL.md")
        .folder("skills/nothing")
        .folder("skills/a-fifo")
        .folder("skills/a-socket")
        .file("skills/latin/SKILL.md", b"# Caf\xe9\n")
        .file("skills/utf16/SKILL.md", b"\xff\xfe#\0 \0A\0\n\0")
        .skill("huge", "# Huge\n")
        .skill("sparse", "# Sparse\n")
        .skill("one-too-many", &"x".repeat((1 << 20) + 1));
    for (skill, target, _) in links {
        test = test.link(&format!("skills/{skill}/SKILL.md"), target);
    }
    let document = |skill: &str| test.path(format!("skills/{skill}/SKILL.md"));
    make_node(&test.path("skills/link-to-fifo/fifo"), &["p"]);
    make_node(&document("a-fifo"), &["p"]);
    drop(UnixListener::bind(document("a-socket")).unwrap());
    let mut huge = appending(&document("huge"));
    io::copy(&mut io::repeat(b'x').take(64 << 20), &mut huge).unwrap();
    appending(&document("sparse")).set_len(1 << 40).unwrap();
    let unusable = links.map(|(skill, _, why)| (skill, why)).into_iter().chain(others);
    let unusable: Vec<_> = unusable.collect();
    for (skill, why) in unusable.iter().chain(&texts) {
        let message = refusal(&test, GET, of_skill(skill));
        assert!(message.contains(why) && message.contains(skill), "{skill}: {message}");
    }
    let list = call(&test, LIST, "{}").success().stdout_json();
    let listed = described(&list);
    for (skill, why) in unusable {
        let (_, description) = listed.iter().find(|(name, _)| *name == skill).unwrap();
        assert!(
            description.starts_with("(not usable: ") && description.contains(why),
            "{skill}: {description}"
        );
    }
    for (skill, _) in texts {
        let (_, description) = listed.iter().find(|(name, _)| *name == skill).unwrap();
        assert!(!description.starts_with("(not usable: "), "{skill}: {description}");
    }
}

/// Files without read permission: each tool reports them, and the other files can be used.
#[test]
fn missing_permission_is_reported() {
    let test = Test::new()
        .mode(".", 0o755)
        .mode("skills", 0o755)
        .skill("open", "# Open\n")
        .file("skills/open/locked.md", OUTSIDE)
        .mode("skills/open/locked.md", 0)
        .file("skills/open/closed/a.md", OUTSIDE)
        .mode("skills/open/closed", 0)
        .file("skills/open/blind/a.md", INSIDE)
        .mode("skills/open/blind", 0o711)
        .skill("document", OUTSIDE)
        .mode("skills/document/SKILL.md", 0)
        .skill("folder", OUTSIDE)
        .mode("skills/folder", 0);
    let shell = as_an_ordinary_user(&test);
    let ask = |tool: &str, arguments: &Value| {
        let run = test.next_run().shell(shell).args(["tool", tool]);
        let run = run.args([arguments.to_string()]).run();
        run.took_at_most(seconds(1.0)).stdout_lacks(CANARY).stderr_is_empty()
    };
    for (tool, arguments) in [
        (READ, of("open", "locked.md")),
        (READ, of("open", "closed")),
        (READ, of("open", "closed/a.md")),
        (READ, of("open", "blind")),
        (RUN, of("open", "locked.md")),
        (RUN, of("open", "closed/a.md")),
        (GET, of_skill("document")),
        (GET, of_skill("folder")),
        (READ, of("folder", ".")),
    ] {
        let run = ask(tool, &arguments).status(1);
        let message = error_of(&run.stdout).unwrap_or_default();
        let expected = "permission denied; the user has to allow it";
        run.check(message.contains(expected), expected);
    }
    ask(READ, &of("open", "blind/a.md")).success().stdout(INSIDE);
    ask(GET, &of_skill("open")).success().stdout_has("# Open\n");
    let list = ask(LIST, &json!({})).success().stdout_json();
    let denied = "(not usable: SKILL.md cannot be read: permission denied)";
    assert_eq!(described(&list), [("document", denied), ("folder", denied), ("open", "Open")]);
}

/// A skill may be a link, and so may the skills folder, because the user created them. The target
/// is confined as any other skill.
#[test]
fn linked_skills_and_skills_folders_work() {
    let test = Test::new()
        .file("elsewhere/linked/SKILL.md", "---\ndescription: From elsewhere.\n---\n")
        .file("elsewhere/linked/a.md", INSIDE)
        .file("elsewhere/secret", OUTSIDE)
        .link("elsewhere/linked/out", "../secret")
        .link("elsewhere/again", "linked")
        .link("skills/linked", "../elsewhere/again")
        .file("skills/inner/docs/real.md", "# Real\n")
        .link("skills/inner/SKILL.md", "docs/real.md")
        .link("one", "two")
        .link("two", "skills");
    for folder in ["skills", "one"] {
        let ask = |tool: &str, arguments: Value| {
            let run = test.next_run().args(["--skills", folder, "tool", tool]);
            run.args([arguments.to_string()]).run().stdout_lacks(CANARY)
        };
        let list = ask(LIST, json!({})).success().stdout_json();
        assert_eq!(described(&list), [("inner", "Real"), ("linked", "From elsewhere.")]);
        ask(GET, of_skill("linked")).success().stdout_has("From elsewhere.");
        ask(GET, of_skill("inner")).success().stdout_has("# Real\n");
        let paths = [&format!("{folder}/linked/a.md"), "elsewhere/linked/a.md"];
        for path in paths.map(|path| absolute(&test, path)).iter().chain([&"a.md".to_owned()]) {
            ask(READ, of("linked", path)).success().stdout(INSIDE);
            ask(RUN, of("linked", path)).success().stdout_has(r#""stdout":"inside\n""#);
        }
        let outside = ["elsewhere/secret", "elsewhere/linked/../secret"];
        let outside = outside.map(|path| absolute(&test, path));
        for path in ["out", "../secret"].into_iter().chain(outside.iter().map(String::as_str)) {
            ask(READ, of("linked", path)).status(1);
            ask(RUN, of("linked", path)).status(1);
        }
    }
}

/// Text is returned byte for byte.
#[test]
fn text_is_returned_unchanged() {
    let page_of_lines = "0123456789abcde\n".repeat(2000);
    let page_of_bytes = "x".repeat(65_535) + "\n";
    let one_line = "x".repeat(65_536);
    let texts = [
        "",
        "\n",
        "\n\n\n",
        "no line end",
        "a\r\nb\r\n",
        "a\r\nb",
        "old\rmac\r",
        "tab\tand  spaces  \n",
        "\u{feff}with a mark\n",
        "grüße, 日本語, 😀, e\u{301}\n",
        "\u{2028}\u{202e}\u{200b}\u{fffd}\n",
        "{\"json\": [1, 2]}\n<html>&amp;</html>\na,b\n1,\"2\n3\"\n",
        "RIFF is a word, GIF89 another, PK a third\n",
        "[lines 1 to 2; Go on with offset 3]\n",
        &page_of_lines,
        &page_of_bytes,
        &one_line,
    ];
    let mut test = Test::new().skill("s", "x\n");
    let mut calls = Vec::new();
    for (number, text) in texts.iter().enumerate() {
        test = test.file(&format!("skills/s/{number}"), text);
        calls.push((READ, of("s", &number.to_string())));
    }
    for (text, content) in texts.iter().zip(results(&test, PLAIN, &calls)) {
        let received = start_of(&content);
        assert!(content == *text, "{:?} came as {received:?}", start_of(text));
    }
}

/// Some endpoints refuse requests that contain terminal control characters.
#[test]
fn control_characters_are_not_sent() {
    let test = Test::new()
        .skill("s", "x\n")
        .file("skills/s/a", "\u{1b}[31mred\u{1b}[0m\u{7}\u{b}\tend\r\n");
    let contents = results(&test, PLAIN, &[(READ, of("s", "a"))]);
    assert_eq!(contents, ["red\u{fffd}\u{fffd}\tend\r\n"]);
}

//! Editing of messages on a terminal that can move its cursor.

use super::{last_prompt, leave};
use crate::harness::{Reply, Server, Terminal, Test};
use std::os::unix::fs::PermissionsExt;

const ESC: &str = "\u{1b}";
/// First line of the history.
const HEADER: &str = "# messages typed in skills-runner\n";

/// A conversation with the editor. Its replies are `ok.`.
fn test_with(server: &Server) -> Test {
    Test::new()
        .skill("sums", "---\nname: sums\ndescription: d\n---\nAdd.\n")
        .file("notes-of-today.txt", "x\n")
        .env("TERM", "xterm")
        .endpoint(server)
}

fn edited(test: &Test) -> Terminal {
    let mut terminal = test.spawn_on_terminal();
    terminal.expect("Ctrl+D leaves").expect("> ");
    terminal
}

fn server(replies: usize) -> Server {
    Server::start((0..replies).map(|_| Reply::text("ok.")))
}

/// What a user types, in which `^X` is Ctrl and a letter, and the message that is sent.
const KEYS: [(&str, &str); 62] = [
    ("plain words", "plain words"),
    ("helo\x1b[Dl", "hello"),
    ("ab\x1b[D\x1b[D\x1b[CX", "aXb"),
    ("bc^Aa", "abc"),
    ("bc\x1b[Ha^Ed", "abcd"),
    ("bc\x1bOHa\x1bOFd", "abcd"),
    ("bc\x1b[1~a\x1b[4~d", "abcd"),
    ("ac^Bb", "abc"),
    ("ac^A^Fb", "abc"),
    ("abx\x7fc", "abc"),
    ("abx^Hc", "abc"),
    ("abx\x1b[D\x1b[3~c", "abc"),
    ("xabc^A^D", "abc"),
    ("one two\x1bbX", "one Xtwo"),
    ("one two^A\x1bfX", "oneX two"),
    ("one two\x1b[1;5DX", "one Xtwo"),
    ("one two^A\x1b[1;5CX", "oneX two"),
    ("one two^W", "one"),
    ("one two^W^W^Ythree", "one twothree"),
    ("one two\x1b\x7f", "one"),
    ("one two^A\x1bd", "two"),
    ("one two^A^Fx^K", "ox"),
    ("one two^Uthree", "three"),
    ("one^Utwo^Y", "twoone"),
    ("one two^A^K^Y^Y", "one twoone two"),
    ("ba^T", "ab"),
    ("one^Atwo \x1bu", "two ONE"),
    ("ONE^A\x1bl", "one"),
    ("one^A\x1bc", "One"),
    ("one^W^_", "one"),
    ("日本語\x7f", "日本"),
    ("日本\x1b[D語", "日語本"),
    ("ça va\x1b[D\x1b[D\x1b[D\x1b[D\x1b[DX", "Xça va"),
    ("e\u{301}x\x1b[D\x7fa", "ax"),
    ("👩\u{200d}👩\u{200d}👧!\x1b[D\x7f", "!"),
    ("🇩🇪x^A^D", "x"),
    ("\x1b[200~one\ntwo\n\nthree\x1b[201~", "one\ntwo\n\nthree"),
    ("\x1b[200~a\\\nb\x1b[201~ c", "a\\\nb c"),
    ("\x1b[200~\t tab\x1b[201~x", "tabx"),
    ("a\\\nb", "a\nb"),
    ("a\\\nb\\\nc", "a\nb\nc"),
    ("\"\"\"a\n b\n\nc\"\"\"", "a\n b\n\nc"),
    ("\"\"\"\nonly\n\"\"\"", "only"),
    ("\x1b[A", "only_previous"),
    ("zzz\x1b[A\x1b[B", "zzz"),
    ("^P", "only_previous"),
    ("^rsecond thi^E!", "a second thing!"),
    ("^V^I.", "."),
    ("bc\x1b[7~a\x1b[8~d", "abcd"),
    ("one two\x1b[1;3DX", "one Xtwo"),
    ("one two^A\x1b[1;3CX", "oneX two"),
    ("one^Utwo^U^Y\x1by", "one"),
    ("zzz^P^N", "zzz"),
    ("zzz\x1b<\x1b>", "zzz"),
    ("half^Lway", "halfway"),
    ("^rsecond^G^Uplain", "plain"),
    ("^rxyzxyz^G^Unone", "none"),
    ("a b c\x1b2\x1bbX", "a Xb c"),
    ("漢字\x1b[D\x7f", "字"),
    ("한국어^A^F^K", "한"),
    ("x\x1b[A\x1b[A\x1b[B\x1b[By", "xy"),
    ("\x1b[200~/help me\x1b[201~^Aa ", "a /help me"),
];

/// The keys as bytes.
fn keys(text: &str) -> String {
    let mut typed = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '^' => {
                let letter = chars.next().expect("a letter").to_ascii_uppercase();
                typed.push(char::from(u8::try_from(letter).expect("a letter") & 0x1f));
            }
            c => typed.push(c),
        }
    }
    typed
}

#[test]
fn keys_edit_the_message() {
    let server = server(2 + KEYS.len());
    let mut terminal = edited(&test_with(&server));
    let mut expected = Vec::new();
    for text in ["a second thing", "first"] {
        terminal.type_line(text).expect("ok.").expect("> ");
        expected.push(text.to_string());
    }
    for (typed, message) in KEYS {
        let is_previous = message == "only_previous";
        let message = if is_previous { expected.last().cloned().unwrap() } else { message.into() };
        terminal.type_text(&keys(typed)).type_text("\n").expect("ok.").expect("> ");
        expected.push(message);
    }
    leave(terminal);
    let sent: Vec<String> = server.finish().iter().map(last_prompt).collect();
    let pairs =
        expected.iter().zip(&sent).zip(["", ""].iter().chain(KEYS.iter().map(|(typed, _)| typed)));
    for ((message, sent), typed) in pairs {
        assert_eq!(sent, message, "{typed:?}");
    }
    assert_eq!(sent.len(), expected.len());
}

/// Tab completes commands, skills and files.
#[test]
fn tab_completes_names() {
    let server = server(2);
    let mut terminal = edited(&test_with(&server));
    terminal.type_text("/tok\t").expect("/tokens ").type_text("\n").expect("tokens").expect("> ");
    terminal.type_text("/attach not\t").expect("notes-of-today.txt").type_text("\n").expect("> ");
    terminal.type_text("look at ./not\t").expect("./notes-of-today.txt").type_line("");
    terminal.expect("ok.").expect("> ");
    terminal.type_text("/sum\tone two\n").expect("ok.").expect("> ");
    leave(terminal);
    let requests = server.finish();
    assert_eq!(requests.len(), 2);
    assert!(last_prompt(&requests[1]).contains("one two"), "{}", last_prompt(&requests[1]));
}

/// Ctrl+C discards the text, on an empty line it says how to leave.
#[test]
fn ctrl_c_and_ctrl_d_in_the_editor() {
    let server = server(1);
    let test = test_with(&server);
    let mut terminal = edited(&test);
    terminal.type_text("never sent").ctrl('c').expect("the incomplete message is discarded");
    terminal.expect("> ").ctrl('c').expect("press Ctrl+C again or Ctrl+D to leave").expect("> ");
    terminal.type_line("sent").expect("ok.").expect("> ");
    terminal.ctrl('c').expect("to leave").expect("> ").ctrl('c');
    terminal.wait_exit().success();
    let requests = server.finish();
    assert_eq!(requests.iter().map(last_prompt).collect::<Vec<_>>(), ["sent"]);
}

/// A signal and the time limit end the conversation while a message is edited, and the terminal
/// is as before.
#[test]
fn signals_end_the_editor() {
    let server = server(0);
    let test = test_with(&server);
    for signal in [libc::SIGTERM, libc::SIGHUP] {
        let mut terminal = edited(&test);
        terminal.type_text("half a mess").expect("half a mess");
        terminal.running().signal(signal);
        let ended = terminal.wait_exit().status(-signal);
        ended.terminal_has("\u{1b}[?2004l");
    }
    let mut terminal = test.next_run().args(["--timeout", "1.5"]).spawn_on_terminal();
    terminal.expect("> ").type_text("half").expect("half");
    terminal.wait_exit().status(3).terminal_has("--timeout");
}

/// The history is a private file, which the next conversation has, and in which secrets are masked.
#[test]
fn history_is_private_and_kept() {
    let server = server(4);
    let test = test_with(&server).env("LLM_API_KEY", "sk-very-secret-key-1");
    let mut terminal = edited(&test);
    terminal.type_line("my key is sk-very-secret-key-1").expect("ok.").expect("> ");
    let long = "x".repeat(70_000);
    terminal.type_text(&format!("{ESC}[200~{long}{ESC}[201~\n")).expect("ok.").expect("> ");
    leave(terminal);
    let path = "home/.local/state/skills-runner/history";
    let text = test.read(path);
    assert!(text.contains("my key is [secret]") && text.len() < 1000, "{text}");
    let mode = std::fs::metadata(test.path(path)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let mut terminal = edited(&test.next_run());
    terminal.type_text(&format!("{ESC}[A")).expect("my key is [secret]").type_text("\n");
    terminal.expect("ok.").expect("> ");
    leave(terminal);
    let off = test.next_run().env("HISTORY_PATH", "off");
    let mut terminal = edited(&off);
    terminal.type_line("not kept").expect("ok.").expect("> ");
    leave(terminal);
    assert!(!test.read(path).contains("not kept"));
}

/// Messages that arrive at once, without the marks of a paste, are all sent, and so is one that was
/// typed before the first prompt, while another program had the terminal.
#[test]
fn messages_typed_at_once_are_kept() {
    let server = server(4);
    let mut terminal = edited(&test_with(&server));
    terminal.type_text("r one\rr two\rr three\r");
    terminal.expect("ok.").expect("ok.").expect("ok.").expect("> ");
    leave(terminal);
    let test = test_with(&server)
        .shell("stty -icrnl; echo ready; sleep 0.3; stty icrnl; exec skills-runner");
    let mut terminal = test.spawn_on_terminal();
    terminal.expect("ready").type_text("b one\r").expect("ok.").expect("> ");
    leave(terminal);
    let sent: Vec<String> = server.finish().iter().map(last_prompt).collect();
    assert_eq!(sent, ["r one", "r two", "r three", "b one"]);
}

/// A paste of a megabyte arrives whole, also after the window has changed its size.
#[test]
fn large_paste_arrives_whole() {
    let server = server(1);
    let mut terminal = edited(&test_with(&server));
    let lines: Vec<String> = (0..10_000).map(|n| format!("line {n} {}", "é".repeat(45))).collect();
    let text = lines.join("\n");
    terminal.type_text(&format!("{ESC}[200~")).type_text(&text);
    terminal
        .type_text(&format!("{ESC}[201~"))
        .resize(10, 40)
        .type_text("!\n")
        .expect("ok.")
        .expect("> ");
    leave(terminal);
    assert_eq!(last_prompt(&server.finish()[0]), format!("{text}!"));
}

/// No text is a command of the terminal: not a name of a file, not the history, not a paste.
#[test]
fn control_characters_are_not_echoed() {
    let server = server(2);
    let history = format!("{HEADER}old{ESC}]0;TITLE\u{7}line\n");
    let test = test_with(&server)
        .file(&format!("evil{ESC}]0;TITLE\u{7}.txt"), "x")
        .file("home/.local/state/skills-runner/history", history);
    let mut terminal = edited(&test);
    terminal.type_text("/attach ev\t\t").type_text("\u{15}\u{1b}[A").expect("old");
    terminal.type_text("\n").expect("ok.").expect("> ");
    terminal.type_text("\u{1b}[200~a\u{7}\u{0}\u{9b}b\u{1b}[201~").type_text("\n").expect("ok.");
    terminal.expect("> ");
    let shown = terminal.output();
    leave(terminal);
    server.finish();
    assert!(!shown.contains("TITLE\u{7}") && !shown.contains(['\u{0}', '\u{9b}']), "{shown:?}");
}

/// A file that is not a history is neither read nor changed, and nothing waits for it.
#[test]
fn other_files_are_not_used_as_history() {
    let server = server(5);
    let test = test_with(&server).file("notes.txt", "mine\n").file("target.txt", HEADER);
    std::os::unix::fs::symlink("target.txt", test.path("link")).unwrap();
    std::os::unix::fs::symlink("nothing", test.path("dangling")).unwrap();
    let made = std::process::Command::new("mkfifo").arg(test.path("fifo")).status().unwrap();
    assert!(made.success());
    for (name, reason) in [
        ("notes.txt", "is another file"),
        ("link", "cannot be read"),
        ("dangling", "cannot be read"),
        ("fifo", "is not a regular file"),
        ("/dev/zero", "is not a regular file"),
    ] {
        let mut terminal = test.next_run().env("HISTORY_PATH", name).spawn_on_terminal();
        terminal.expect("there is no history: ").expect(reason).expect("> ");
        terminal.type_line("hello").expect("ok.").expect("> ");
        leave(terminal);
    }
    server.finish();
    assert_eq!((test.read("notes.txt"), test.read("target.txt")), ("mine\n".into(), HEADER.into()));
    assert!(!test.exists("nothing"));
}

/// Nothing of a paste that is not UTF-8 is sent, and the conversation goes on.
#[test]
fn paste_that_is_not_utf8_is_discarded() {
    let server = server(1);
    let mut terminal = edited(&test_with(&server));
    let lines = "# a line of the paste\n".repeat(1000);
    terminal.type_bytes(b"\x1b[200~caf\xe9\n").type_text(&lines).type_text("rest\n\x1b[201~");
    terminal.expect("the text is not UTF-8: it is not sent").expect("> ");
    terminal.type_line("after").expect("ok.").expect("> ");
    leave(terminal);
    assert_eq!(last_prompt(&server.finish()[0]), "after");
}

//! `edit_file`: exact replacements, and messages that tell how to find the text.

use std::{fs, thread};

use serde_json::json;

use super::{assert_answer, call, work};

#[test]
fn a_text_is_replaced_and_all_other_bytes_stay() {
    type Row = (&'static [u8], &'static str, &'static str, bool, &'static [u8]);
    let table: [Row; 6] = [
        (b"a\xff\x00".split_at(2).0, "a", "b", false, b"b\xff"),
        (b"x = 1\nx = 1\n", "1", "2", true, b"x = 2\nx = 2\n"),
        (b"a\r\nb\r\n", "a\nb", "c\nd", false, b"c\r\nd\r\n"),
        (b"a\r\nb\r\n", "\r\n", "\n", true, b"a\nb\n"),
        (b"caf\xe9 one", "one", "two", false, b"caf\xe9 two"),
        (b"\xef\xbb\xbfa", "a", "", false, b"\xef\xbb\xbf"),
    ];
    for (content, old, new, all, expected) in table {
        let test = work().file("work/f", content);
        call(&test, "edit_file", json!({"path": "f", "old": old, "new": new, "all": all}))
            .success();
        assert_eq!(fs::read(test.path("work/f")).unwrap(), expected);
    }
}

#[test]
fn refusals_tell_what_to_do() {
    let big = vec![b'x'; (4 << 20) + 1];
    let test = work()
        .file("work/f", "def f():\n\tif a:\n\t\treturn 1\n\ndef g():\n\tif a:\n\t\treturn 2\n")
        .file("work/binary", b"a\0b")
        .file("work/big", big)
        .file("work/x", "x".repeat(1 << 20))
        .file("work/aaa", "\naaa");
    let long = "y".repeat(100_000);
    let table = [
        ("f", "if a:", "x", "occurs 2 times in `f`, in lines 2, 6: give more of the text"),
        ("aaa", "aa", "x", "occurs 2 times in `aaa`, in lines 2, 2: give more of the text"),
        (
            "f",
            "if a:\n  return 2",
            "x",
            "with other white space, letter case or quotes from line 6 on; copy it exactly:",
        ),
        ("f", "nothing", "x", "read the file again"),
        ("f", "", "x", "`old` is empty"),
        ("f", "a", "a", "are the same: nothing to change"),
        ("binary", "a", "x", "cannot be edited: a binary file, or text as UTF-16"),
        ("big", "x", "y", "cannot be edited: more than 4 MiB"),
        (
            "nowhere",
            "a",
            "x",
            "no such file or folder; list the folder to see what it holds; write_file",
        ),
        ("skills", "a", "x", "a folder, not a file"),
        ("skills/s/SKILL.md", "hi", "ho", "belongs to the skills, which are only read"),
    ];
    for (path, old, new, error) in table {
        assert_answer(
            &test,
            "edit_file",
            json!({"path": path, "old": old, "new": new}),
            Err(error),
        );
    }
    let growing = json!({"path": "x", "old": "x", "new": long, "all": true});
    assert_answer(&test, "edit_file", growing, Err("cannot be edited: more than 4 MiB"));
    let synonyms =
        json!({"file_path": "f", "old_string": "1", "new_string": "3", "replace_all": false});
    assert_answer(&test, "edit_file", synonyms, Ok("edited f: 1 place\n"));
    let all = json!({"path": "f", "old": "if a:", "new": "if b:", "all": true});
    assert_answer(&test, "edit_file", all, Ok("edited f: 2 places\n"));
}

/// Runners that edit one file at the same time lose no edit that they report.
#[test]
fn edits_at_the_same_time_are_not_lost() {
    let test = work().file("work/f", "end\n");
    let edits = &|number: usize| {
        let edit = |step: &usize| {
            let line = format!("line {number} {step}\n");
            let arguments = json!({"path": "f", "old": "end", "new": format!("{line}end")});
            call(&test, "edit_file", arguments).status_is(0)
        };
        (0..20).filter(edit).count()
    };
    let done: usize = thread::scope(|scope| {
        let runners: Vec<_> = (0..4).map(|number| scope.spawn(move || edits(number))).collect();
        runners.into_iter().map(|runner| runner.join().unwrap()).sum()
    });
    assert_eq!(test.read("work/f").lines().count(), done + 1);
}

/// What stands for a masked secret never replaces the secret.
#[test]
fn masked_secrets_are_not_overwritten() {
    let test = work()
        .env("LLM_API_KEY", "sk-a-long-secret-key")
        .file("work/f", "key = sk-a-long-secret-key\nport = 1\n");
    let read = call(&test, "read_file", json!({"path": "f"})).success().stdout;
    assert!(read.contains("[secret]"), "{read}");
    let written = json!({"path": "f", "content": read});
    assert_answer(&test, "write_file", written, Err("has a secret that is not shown"));
    let edited = json!({"path": "f", "old": "port = 1", "new": "key = [secret]"});
    assert_answer(&test, "edit_file", edited, Err("has a secret that is not shown"));
    let other = json!({"path": "f", "old": "port = 1", "new": "port = 2"});
    assert_answer(&test, "edit_file", other, Ok("edited f: 1 place\n"));
}

//! `edit_file`: exact replacements, and messages that tell how to find the text.

use std::fs;

use serde_json::json;

use super::{assert_answer, call, work};

#[test]
fn a_text_is_replaced_and_all_other_bytes_stay() {
    type Row = (&'static [u8], &'static str, &'static str, bool, &'static [u8]);
    let table: [Row; 5] = [
        (b"a\xff\x00".split_at(2).0, "a", "b", false, b"b\xff"),
        (b"x = 1\nx = 1\n", "1", "2", true, b"x = 2\nx = 2\n"),
        (b"a\r\nb\r\n", "a\nb", "c\nd", false, b"c\r\nd\r\n"),
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
        ("f", "if a:\n  return 2", "x", "with other white space from line 6 on; copy it exactly:"),
        ("f", "nothing", "x", "nor does its first line: read the file again"),
        ("f", "", "x", "`old` is empty"),
        ("f", "a", "a", "are the same: nothing to change"),
        ("binary", "a", "x", "cannot be edited: a binary file, or text as UTF-16"),
        ("big", "x", "y", "cannot be edited: more than 4 MiB"),
        ("g", "a", "x", "no such file or folder; list the folder to see what it holds; write_file"),
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

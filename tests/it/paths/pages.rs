//! Binary files, folders and pages.

use super::{
    GET, LIST, READ, absolute, appending, call, hostile, make_node, meanwhile, of, of_skill,
    refusal,
};
use crate::harness::{Test, seconds, wait_until};
use serde_json::{Value, json};
use std::io::Write;
use std::thread;

/// Binary files are described by type and size and never shown (`images.rs` tests images).
#[test]
fn binary_files_are_described_by_type_and_size() {
    let noise = (0..5000_u32).map(|number| number.wrapping_mul(2_654_435_761).to_be_bytes()[1]);
    let noise: Vec<u8> = noise.collect();
    let zeros = vec![0; 70_000];
    let table: &[(&[u8], &str)] = &[
        (b"%PDF-1.4\n1 0 obj\n", "PDF document"),
        (b"PK\x03\x04\x14\0\x06\0", "ZIP archive or office document"),
        (b"\x1f\x8b\x08\0\0\0", "gzip archive"),
        (b"\x7fELF\x02\x01\x01\0", "ELF program"),
        (b"SQLite format 3\0\x10\0", "SQLite database"),
        (b"text with a NUL\0 in it", "binary file"),
        (b"\xff\xfeh\0i\0", "binary file"),
        (&noise, "binary file"),
        (&zeros, "binary file"),
    ];
    for (bytes, kind) in table {
        let test = Test::new().skill("s", "x\n").file("skills/s/file", bytes);
        let size = bytes.len();
        let expected = format!(
            "{kind}, {size} bytes: not text, so it is not shown; a script can work with it\n"
        );
        call(&test, READ, of("s", "file")).success().stdout(&expected);
    }
    let test = Test::new().skill("s", "x\n").file("skills/s/sparse", "");
    appending(&test.path("skills/s/sparse")).set_len(1 << 40).unwrap();
    let run = call(&test, READ, of("s", "sparse")).success();
    run.stdout_has("binary file, 1099511627776 bytes");
}

#[test]
fn folders_are_listed_without_following_links() {
    let mut test = hostile()
        .skill("s", "x\n")
        .file("skills/s/b/x", "")
        .file("skills/s/Z", "four")
        .file("skills/s/.hidden", "")
        .file("skills/s/a\nb", "")
        .folder("skills/s/empty")
        .link("skills/s/out", "../../outside")
        .link("skills/s/loop", "loop");
    make_node(&test.path("skills/s/fifo"), &["p"]);
    let all = ".hidden (0 bytes)\nSKILL.md (2 bytes)\nZ (4 bytes)\na\u{fffd}b (0 bytes)\nb/\nempty/\n\
               fifo (special file)\nloop (link)\nout (link)\n";
    let b = absolute(&test, "skills/s/b");
    for (paths, expected) in [
        (["", ".", "./", ".//."], all),
        (["b", "b/", "./b/.", &b], "x (0 bytes)\n"),
        (["empty"; 4], "(the folder is empty)\n"),
    ] {
        for path in paths {
            call(&test, READ, of("s", path)).success().stdout(expected);
        }
    }
    for number in 0..1003 {
        test = test.file(&format!("skills/s/empty/{number:04}"), "");
    }
    let run = call(&test, READ, of("s", "empty")).success();
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert_eq!(lines.len(), 1001);
    assert_eq!((lines[0], lines[999]), ("0000 (0 bytes)", "0999 (0 bytes)"));
    assert_eq!(lines[1000], "[entries 1 to 1000 of 1003. Go on with offset 1001]");
    let rest = part("empty", &json!(1001), &json!(2));
    call(&test, READ, rest).success().stdout(
        "1000 (0 bytes)\n1001 (0 bytes)\n[entries 1001 to 1002 of 1003. Go on with offset 1003]\n",
    );
    call(&test, READ, part("empty", &json!(2000), &json!(2)))
        .success()
        .stdout("[the folder has only 1003 entries]\n");
}

/// The arguments for a part of a file in the skill `s`.
fn part(path: &str, offset: &Value, limit: &Value) -> Value {
    json!({"skill_name": "s", "file_path": path, "offset": offset, "limit": limit})
}

/// The page without its notes, and the offset that the last note names.
fn page_of(text: &str) -> (&str, Option<usize>) {
    let body = text.strip_suffix('\n').unwrap_or(text);
    let start = body.rfind('\n').map_or(0, |end| end + 1);
    let note = body[start..].strip_prefix('[').and_then(|note| note.strip_suffix(']'));
    let Some((_, offset)) = note.and_then(|note| note.rsplit_once("Go on with offset ")) else {
        return (text, None);
    };
    let page = &text[..start];
    let is_cut = page.rsplit_once("\n[the line goes on: ");
    (is_cut.map_or(page, |(page, _)| page), Some(offset.parse().unwrap()))
}

/// All pages of a file, each read with the offset of the note before.
#[track_caller]
fn pages_of(test: &Test, path: &str, limit: Option<usize>) -> Vec<String> {
    let mut pages = Vec::new();
    let mut offset = Some(1);
    while let Some(line) = offset {
        let run = call(test, READ, part(path, &json!(line), &json!(limit))).success();
        let (page, next) = page_of(&run.stdout);
        run.check(page.len() <= (64 << 10) + 3, "the page is too large");
        run.check(next.is_none_or(|next| next > line), "the note names no later line");
        pages.push(page.to_owned());
        offset = next;
    }
    pages
}

const SEVEN: &str = "1\n2\n3\n4\n5\n6\n7\n";

/// Following the notes returns every line exactly once.
#[test]
#[ignore = "long"]
fn pages_return_every_line_once() {
    let mut large = String::new();
    for number in 0_usize.. {
        let word = ["x", "€", "😀", "ä\t"][number % 4];
        let count = number * 7919 % 97 + if number.is_multiple_of(997) { 9000 } else { 0 };
        let end = if number.is_multiple_of(7) { "\r" } else { "" };
        large += &format!("{number} {}{end}\n", word.repeat(count));
        if large.len() > 5_000_000 {
            break;
        }
    }
    let test = Test::new()
        .skill("s", "x\n")
        .file("skills/s/large", &large)
        .file("skills/s/many", "\n".repeat(9000))
        .file("skills/s/seven", SEVEN);
    let pages = pages_of(&test, "large", None);
    let count = pages.len();
    assert!(pages.concat() == large, "{count} pages differ from the file");
    assert!(count > 75 && pages.iter().all(|page| page.ends_with('\n')));
    let lines: Vec<usize> = pages_of(&test, "many", None).iter().map(String::len).collect();
    assert_eq!(lines, [2000, 2000, 2000, 2000, 1000]);
    assert_eq!(pages_of(&test, "seven", Some(3)), ["1\n2\n3\n", "4\n5\n6\n", "7\n"]);
    assert_eq!(pages_of(&test, "seven", Some(7)), [SEVEN]);
    let note = |lines, next| {
        format!("[lines {lines}; the file is 14 bytes long. Go on with offset {next}]\n")
    };
    for (offset, limit, expected) in [
        (json!(null), json!(2), "1\n2\n".to_owned() + &note("1 to 2", 3)),
        (json!(4), json!(1), "4\n".to_owned() + &note("4 to 4", 5)),
        (json!("6"), json!(2.0), "6\n7\n".into()),
        (json!(0), json!(1_000_000), SEVEN.into()),
    ] {
        call(&test, READ, part("seven", &offset, &limit)).success().stdout(&expected);
    }
    for (offset, limit, expected) in [
        (json!(9), json!(1), "the file has only 7 lines; offset must not be larger"),
        (json!(i64::MAX), json!(i64::MAX), "the file has only 7 lines"),
        (json!(-1), json!(1), "`offset` must be 1 or more, not -1"),
        (json!(1), json!(0), "`limit` must be 1 or more, not 0"),
        (json!("first"), json!(1), "`offset` must be an integer, not a string"),
        (json!(1), json!(1.5), "`limit` must be an integer, not a number"),
    ] {
        let message = refusal(&test, READ, part("seven", &offset, &limit));
        assert!(message.contains(expected), "{offset} {limit}: {message}");
    }
}

/// A line larger than a page is returned in pages of whole characters, with a note that it
/// continues.
#[test]
#[ignore = "long"]
fn line_larger_than_a_page_is_returned_in_pages() {
    let long = "€".repeat(1_000_000);
    let files = [
        ("single", long.clone()),
        ("ended", long.clone() + "\n"),
        ("between", format!("first\n{long}\r\nlast\n")),
    ];
    for (name, text) in files {
        let test = Test::new().skill("s", "x\n");
        let test = test.file(&format!("skills/s/{name}"), &text);
        let pages = pages_of(&test, name, None);
        assert!(pages.len() > 45, "{name}: {} pages", pages.len());
        // `tool` adds a final line end if there is none.
        let all = pages.concat();
        assert!(all.trim_end() == text.trim_end(), "{name} differs");
        assert!(!all.contains('\u{fffd}'), "{name}: a character is split");
    }
}

#[test]
fn last_line_without_line_end_is_counted() {
    let test = Test::new().skill("s", "x\n").file("skills/s/two", "a\nb");
    let read = |offset: usize| part("two", &json!(offset), &json!(1));
    call(&test, READ, read(2)).success().stdout("b\n");
    for offset in [3, 9] {
        let message = refusal(&test, READ, read(offset));
        assert!(message.contains("the file has only 2 lines"), "{message}");
    }
}

/// Truncation is always reported, also at the limit of what is read of a file.
#[test]
fn truncation_of_a_large_file_is_reported() {
    let test = Test::new().skill("s", "x\n").file("skills/s/large", "first lines\n".repeat(6000));
    let mut large = appending(&test.path("skills/s/large"));
    large.set_len((256 << 20) - 10).unwrap();
    large.write_all(b"\nthe next part\nthe end\n").unwrap();
    let read = |offset: usize| {
        let arguments = part("large", &json!(offset), &json!(null));
        test.next_run().args(["tool", READ, &arguments.to_string()]).run()
    };
    let run = read(6002);
    let is_whole = run.stdout == "the next part\nthe end\n";
    let is_reported = run.status == 1 || run.stdout.ends_with("]\n");
    run.check(is_whole || is_reported, "the page is truncated without a note");
    read(6003).stdout_lacks("has only 6001 lines");
}

/// The name of a file in an untrusted skill stays on one line in every list.
#[test]
fn name_with_a_line_break_is_listed_on_one_line() {
    let test = Test::new().skill("s", "x\n").file("skills/s/a\n\n# New rules", "");
    for (tool, arguments) in [(READ, of("s", ".")), (GET, of_skill("s"))] {
        let run = call(&test, tool, arguments).success();
        let forged = run.stdout.lines().any(|line| line.starts_with("# New rules"));
        run.check(!forged, "a name takes more than one line");
    }
}

/// No offset leads back to the start of the file.
#[test]
fn offset_beyond_the_end_does_not_wrap_around() {
    let test = Test::new().skill("s", "x\n").file("skills/s/seven", SEVEN);
    for offset in [1 << 63, u64::MAX] {
        refusal(&test, READ, part("seven", &json!(offset), &json!(1)));
    }
}

/// A file that grows while it is read does not delay the reader.
#[test]
fn growing_files_are_limited() {
    let test = Test::new().skill("s", "# Grows\n").file("skills/s/log", "line\n");
    let paths = ["skills/s/log", "skills/s/SKILL.md"].map(|path| test.path(path));
    let more = b"more and more\n".repeat(600);
    let grow = || {
        for path in &paths {
            appending(path).write_all(&more).unwrap();
        }
        thread::sleep(seconds(0.001));
    };
    meanwhile(grow, || {
        let is_large = || paths[1].metadata().unwrap().len() > 2 << 20;
        assert!(wait_until(seconds(10.0), is_large));
        for _ in 0..10 {
            let run = call(&test, READ, of("s", "log")).success();
            run.check(run.stdout.len() < 66_000, "the page is too large");
            let beyond = part("log", &json!(1_000_000_000), &json!(1));
            call(&test, READ, beyond).status(1);
            call(&test, GET, of_skill("s")).status(1).stdout_has("is larger than 1 MiB");
            call(&test, LIST, "{}").success().stdout_has(r#""description":"Grows""#);
        }
    });
}

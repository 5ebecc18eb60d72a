//! `read_daily_note`: the note of a day.

use serde_json::json;

use super::today;
use crate::harness::Test;

/// Each row: arguments, whether the call succeeds, and a text of the answer.
#[test]
fn a_note_is_read_by_its_date() {
    let today = today("UTC");
    let test = Test::new()
        .env("NOTES_FOLDER_PATH", "notes")
        .env("TZ", "UTC")
        .file("notes/2026-02-28.md", "# February\n")
        .file("notes/2026-03-01.md", " \n")
        .file("secret.md", "canary\n")
        .link("notes/2026-03-02.md", "../secret.md")
        .file("notes/2026-03-03.md", "x".repeat(70_000));
    let read = |arguments: serde_json::Value| {
        test.next_run().args(["tool", "read_daily_note", &arguments.to_string()]).run()
    };
    read(json!({})).success().stdout(&format!("there is no note of {today}\n"));
    test.next_run().args(["tool", "write_daily_note", r#"{"activity":"done"}"#]).run().success();
    let table = [
        (json!({}), true, "\n\ndone\n"),
        (json!({"date": today}), true, "\n\ndone\n"),
        (json!({"date": null}), true, "\n\ndone\n"),
        (json!({"date": "2026-02-28"}), true, "# February\n"),
        (json!({"date": "2026-03-01"}), true, "there is no note of 2026-03-01"),
        (json!({"date": "2026-03-02"}), false, "a link leads out of the folder"),
        (json!({"date": "2026-03-03"}), true, "[the note goes on: it is longer than one result]"),
        (json!({"date": "2026-02-30"}), false, "is not a date: write it as YYYY-MM-DD"),
        (json!({"date": "../secret"}), false, "is not a date"),
        (json!({"date": "yesterday"}), false, "is not a date"),
        (json!({"date": ""}), false, "is not a date"),
        (json!({"date": "2026-02-28\n"}), false, "is not a date"),
    ];
    for (arguments, is_ok, text) in table {
        read(arguments).status(i32::from(!is_ok)).stdout_has(text).stdout_lacks("canary");
    }
    // A key that the end of the result cuts is masked, too.
    let key = "sk-a-long-secret-key";
    let test = test
        .env("LLM_API_KEY", key)
        .file("notes/2026-03-04.md", format!("{} {key}", "x".repeat(65_525)));
    let cut = json!({"date": "2026-03-04"}).to_string();
    test.next_run().args(["tool", "read_daily_note", &cut]).run().stdout_lacks("sk-a");
    let off = test.env_unset("NOTES_FOLDER_PATH").args(["tool", "read_daily_note"]).run();
    off.status(1).stdout_has("NOTES_FOLDER_PATH");
}

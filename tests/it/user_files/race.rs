//! Writes while another thread swaps a folder with a link that leads outside.

use std::ffi::CString;
use std::fs;
use std::path::Path;
use std::time::Instant;

use serde_json::json;
use skills_runner::{Cancellation, Config, ConfigNeeds, Settings, ToolCall, Tools};

use super::work;
use crate::harness::Test;
use crate::paths::meanwhile;

/// Exchanges two entries.
fn exchange(one: &Path, other: &Path) {
    let name = |path: &Path| CString::new(path.to_str().unwrap()).unwrap();
    let (one, other) = (name(one), name(other));
    let (at, flag) = (libc::AT_FDCWD, libc::RENAME_EXCHANGE);
    // SAFETY: both names end with NUL and live for the call.
    let answer =
        unsafe { libc::syscall(libc::SYS_renameat2, at, one.as_ptr(), at, other.as_ptr(), flag) };
    assert_eq!(answer, 0, "{}", std::io::Error::last_os_error());
}

fn race(test: &Test, writes: usize) {
    let folder = test.path("work");
    let settings = Settings::from_pairs([("HOME", test.path("home").to_str().unwrap())]);
    let config = Config::resolve(&settings, &folder, ConfigNeeds::Skills).unwrap();
    let (skills, cancellation) = (config.skills(), Cancellation::never());
    let tools = Tools::builtin(config.tool_context(&skills, &cancellation));
    let call = |name: &str, arguments: serde_json::Value| {
        let arguments = arguments.to_string();
        tools.call(&ToolCall { name: name.into(), arguments, ..ToolCall::default() })
    };
    let paths = ["sub/a.txt", "sub/deep/new/b.txt", "file", "sub/file", "to-sub/c.txt"];
    let began = Instant::now();
    let swap = || {
        exchange(&test.path("work/sub"), &test.path("spare"));
        exchange(&test.path("work/file"), &test.path("spare-file"));
    };
    let (mut written, mut refused) = (0, 0);
    meanwhile(swap, || {
        let mut number = 0;
        // On a busy machine, continues until both have happened.
        while number < writes || (written == 0 || refused == 0) && began.elapsed().as_secs() < 20 {
            let path = paths[number % paths.len()];
            let result = match number % 3 {
                0 => call("edit_file", json!({"path": path, "old": "x", "new": "xx"})),
                _ => call("write_file", json!({"path": path, "content": "x"})),
            };
            if result.ok {
                written += 1;
            } else {
                refused += 1;
            }
            assert!(!result.full_text().contains("canary"), "{}", result.full_text());
            number += 1;
        }
    });
    assert!(written > 0 && refused > 0, "{written} written, {refused} refused");
    let outside: Vec<_> = fs::read_dir(test.path("outside")).unwrap().flatten().collect();
    let names: Vec<_> = outside.iter().map(fs::DirEntry::file_name).collect();
    assert_eq!(names, ["file"], "nothing new outside");
    assert_eq!(test.read("outside/file"), "canary x");
    eprintln!("{writes} tries, {written} written, {refused} refused, {:?}", began.elapsed());
}

fn test() -> Test {
    work()
        .file("outside/file", "canary x")
        .file("work/sub/file", "x")
        .file("work/file", "x")
        .link("spare", "../outside")
        .link("spare-file", "../outside/file")
        .link("work/to-sub", "sub")
}

#[test]
fn nothing_is_written_outside_while_links_are_swapped() {
    race(&test(), 2_000);
}

#[test]
#[ignore = "long"]
fn nothing_is_written_outside_in_a_million_tries() {
    race(&test(), 1_000_000);
}

//! A new skill: a document that every client accepts, one example script, and tests.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use base::error::{Error, ErrorKind, Result};
use base::limits;

/// Why a name is not valid for a skill. The specification requires 1 to 64 lowercase
/// letters, digits and hyphens, no hyphen at an edge, no two in a row.
/// Source: <https://agentskills.io/specification>.
pub fn invalid_name_reason(name: &str) -> Option<&'static str> {
    // Letters of any script, as in the specification's own checker.
    let is_plain = |c: char| c == '-' || (c.is_alphanumeric() && !c.is_uppercase());
    if name.is_empty() {
        Some("it is empty")
    } else if !name.chars().all(is_plain) {
        Some("it may hold only lowercase letters, digits and hyphens")
    } else if name.starts_with('-') || name.ends_with('-') || name.contains("--") {
        Some("it must not have a hyphen at an edge, or two in a row")
    } else if name.chars().count() > limits::SKILL_NAME_CHARS {
        Some("it may have at most 64 characters")
    } else {
        None
    }
}

/// The valid name nearest to `name`: all its letters, up to 64 characters. `None` if a letter is
/// not ASCII, or nothing is left.
pub fn nearest_valid_name(name: &str) -> Option<String> {
    let mut valid = String::new();
    for c in name.to_lowercase().chars() {
        if c.is_ascii_lowercase() || c.is_ascii_digit() {
            valid.push(c);
        } else if c.is_alphanumeric() {
            return None;
        } else if !valid.is_empty() && !valid.ends_with('-') {
            valid.push('-');
        }
    }
    valid.truncate(limits::SKILL_NAME_CHARS);
    let valid = valid.trim_end_matches('-').to_string();
    (!valid.is_empty()).then_some(valid)
}

/// A valid name as a value of YAML: in double quotes if a reader may take it for a number, a date,
/// a boolean or null.
pub(super) fn quoted_name(name: &str) -> String {
    const WORDS: [&str; 9] = ["true", "false", "yes", "no", "on", "off", "y", "n", "null"];
    if name.starts_with(|c: char| c.is_numeric()) || WORDS.contains(&name) {
        format!("\"{name}\"")
    } else {
        name.to_owned()
    }
}

/// Writes the skeleton of the skill `name` into a skills folder, which is created if it
/// is missing. Returns the skill's folder. Existing files are never changed, and a
/// skeleton that cannot be written completely is removed.
///
/// # Errors
///
/// The folder is not a folder or is not writable, or the skill exists already.
pub fn write(folder: &Path, name: &str) -> Result<PathBuf> {
    fs::create_dir_all(folder).map_err(|error| folder_error(folder, &error))?;
    let path = folder.join(name);
    let created = DirBuilder::new().create(&path);
    created.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => exists_error(&path, name),
        _ => folder_error(folder, &error),
    })?;
    if let Err(error) = write_files(&path, name) {
        let _ = fs::remove_dir_all(&path);
        let path = path.display();
        let text = format!("failed to write the skill `{name}` in `{path}`: {error}");
        return Err(Error::new(ErrorKind::Io, text));
    }
    Ok(path)
}

/// The error for a skills folder that cannot be created or written in.
fn folder_error(folder: &Path, error: &io::Error) -> Error {
    let shown = folder.display();
    let text = match (folder.symlink_metadata(), folder.metadata()) {
        (_, Ok(meta)) if meta.is_dir() => {
            format!("failed to write in the skills folder `{shown}`: {error}")
        }
        (_, Ok(_)) => format!("failed to write in the skills folder `{shown}`: it is not a folder"),
        (Ok(_), Err(_)) => {
            format!(
                "failed to create the skills folder `{shown}`: it is a link whose target cannot be reached"
            )
        }
        (Err(_), Err(_)) => format!("failed to create the skills folder `{shown}`: {error}"),
    };
    Error::new(ErrorKind::Io, text)
        .with_hint("name a folder that you may write in with --skills DIR or SKILLS_FOLDER_PATH")
}

fn exists_error(path: &Path, name: &str) -> Error {
    let shown = path.display();
    let cause = match path.metadata() {
        Ok(meta) if meta.is_dir() => format!("it already exists in `{shown}`"),
        _ => format!("another file has its path, `{shown}`"),
    };
    let text = format!("failed to write the skill `{name}`: {cause}");
    Error::new(ErrorKind::Io, text).with_hint("nothing was changed; choose another name")
}

fn write_files(path: &Path, name: &str) -> io::Result<()> {
    fs::create_dir(path.join("scripts"))?;
    fs::create_dir_all(path.join("evals/files"))?;
    let mut title = name.replace('-', " ");
    if let Some(first) = title.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    let document = DOCUMENT.replace("NAME", &quoted_name(name)).replace("TITLE", &title);
    let evals = EVALS.replace("NAME", name);
    let files = [
        ("SKILL.md", document.as_str()),
        ("scripts/main.py", SCRIPT),
        ("evals/evals.json", &evals),
        ("evals/files/note.txt", "One line.\nAnother one.\n"),
    ];
    for (file, text) in files {
        let mut file = OpenOptions::new().write(true).create_new(true).open(path.join(file))?;
        file.write_all(text.as_bytes())?;
    }
    Ok(())
}

const DOCUMENT: &str = r#"---
name: NAME
# What the skill does, and when to use it: a model chooses by this text alone.
description: Counts the lines, words and characters of a text file. Use when the user asks how long a text is.
---

# TITLE

Write here, for a model, how to do the task: the steps in their order, what to look out for, what
the result must look like. Keep it under 500 lines and put what is rarely needed into files of its
own in `references`.

## How to call the script

    python scripts/main.py FILE

`FILE` is an absolute path of the user's file. The script prints one JSON object:
`{"lines": 3, "words": 20, "characters": 117}`.
"#;

const SCRIPT: &str = r#""""Counts the lines, words and characters of a text file."""

import argparse
import json


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", help="a text file")
    path = parser.parse_args().file
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
    except OSError as error:
        parser.exit(1, f"{path} cannot be read: {error.strerror}\n")
    counts = {
        "lines": len(text.splitlines()),
        "words": len(text.split()),
        "characters": len(text),
    }
    print(json.dumps(counts))


if __name__ == "__main__":
    main()
"#;

/// One test of each kind.
const EVALS: &str = r#"{
  "skill_name": "NAME",
  "evals": [
    {
      "id": "counts-lines",
      "prompt": "How many lines does note.txt have?",
      "expected_output": "It has 2 lines.",
      "files": ["evals/files/note.txt"],
      "checks": {"answer_contains": "2", "script": "scripts/main.py", "returncode": 0},
      "expectations": ["The answer is a short sentence for the user"]
    },
    {"id": "asks-for-a-count", "query": "How long is this text file?", "should_trigger": true},
    {"id": "asks-for-something-else", "query": "What is the capital of Peru?", "should_trigger": false}
  ]
}
"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_specification() {
        for name in ["a", "pdf", "my-skill-2", "3d", &"x".repeat(64)] {
            assert_eq!(invalid_name_reason(name), None, "{name}");
            assert_eq!(nearest_valid_name(name).as_deref(), Some(name));
        }
        let wrong = [
            ("", None),
            ("My Skill", Some("my-skill")),
            ("my_skill", Some("my-skill")),
            ("-a-", Some("a")),
            ("a--b", Some("a-b")),
            ("PDF-файл", None),
            ("a ✓ b", Some("a-b")),
            ("..", None),
        ];
        for (name, valid) in wrong {
            assert!(invalid_name_reason(name).is_some(), "{name}");
            assert_eq!(nearest_valid_name(name).as_deref(), valid, "{name}");
        }
        assert!(invalid_name_reason(&"x".repeat(65)).is_some());
        assert_eq!(nearest_valid_name(&"x".repeat(65)), Some("x".repeat(64)));
    }

    #[test]
    fn name_with_another_meaning_for_any_reader_is_quoted() {
        for name in ["007", "12-5", "1e3", "0x1f", "2026-11-21", "on", "no", "y", "null", "true"] {
            assert_eq!(quoted_name(name), format!("\"{name}\""));
        }
        for name in ["a", "my-skill-2", "on-call", "nan"] {
            assert_eq!(quoted_name(name), name);
        }
    }
}

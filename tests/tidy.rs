//! The rules of the house, checked over the source.
//!
//! ARCHITECTURE.md says why each of them is there. A rule that is broken is
//! named with file and line.

use std::fs;
use std::path::{Path, PathBuf};

/// Layers, bottom to top; a module imports from its own layer and those below.
const LAYERS: [&[&str]; 6] = [
    &[
        "address", "bounded", "digest", "error", "event", "limits", "media", "message", "order",
        "percent", "secret", "text", "tool",
    ],
    &["world"],
    &["config", "dotenv", "memory", "settings", "skills"],
    &["model", "tools"],
    &["agent", "context", "conversation", "instructions", "session"],
    &["cli", "mcp", "internals"],
];

/// What stands in one place only: the text, the files where it may, and why.
const ABSENCES: [(&str, &[&str], &str); 12] = [
    ("env::", &["main.rs"], "the environment is read once, at the edge"),
    ("Command::new", &["world/"], "processes are made by the lowest layer"),
    ("unsafe", &["world/"], "unsafe code is in the lowest layer, each with its reason"),
    ("ureq", &["model/http/"], "the HTTP client is behind one door"),
    ("rustls", &["model/http/"], "TLS and whom it trusts are behind the same door"),
    (".reveal()", &["model/http/"], "a secret is revealed where it is sent, and nowhere else"),
    ("println!", &[], "only world/output prints"),
    ("eprint", &[], "only world/output prints"),
    ("stdout()", &["world/output/"], "only world/output prints"),
    ("stderr()", &["world/output/"], "only world/output prints"),
    ("process::exit", &[], "the exit status is main's"),
    ("thread::spawn", &[], "one thread"),
];

struct Source {
    /// Relative to `src`, with slashes.
    name: String,
    text: String,
}

/// Every source file; tests at the end of a file are left out: they may do more.
fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    collect(&root, &mut found);
    found.sort();
    let read = |path: &PathBuf| Source {
        name: path.strip_prefix(&root).unwrap().to_string_lossy().into_owned(),
        text: fs::read_to_string(path).unwrap(),
    };
    found.iter().map(read).collect()
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

impl Source {
    fn module(&self) -> &str {
        self.name.split(['/', '.']).next().unwrap()
    }

    fn is_test(&self) -> bool {
        self.name.ends_with("tests.rs")
    }

    /// Lines of code with their numbers: no comments, nothing behind `#[cfg(test)] mod`.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let end = self.text.find("#[cfg(test)]\nmod tests {").unwrap_or(self.text.len());
        let lines = self.text[..end].lines().enumerate();
        lines
            .map(|(index, line)| (index + 1, line))
            .filter(|(_, line)| !line.trim_start().starts_with("//"))
    }
}

/// The text, and not as the end of a longer word (`dotenv::`).
fn holds(line: &str, text: &str) -> bool {
    line.match_indices(text).any(|(at, _)| {
        !text.starts_with(char::is_alphanumeric)
            || !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_')
    })
}

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|modules| modules.contains(&module))
}

fn report(faults: &[String]) {
    assert!(faults.is_empty(), "the house is not tidy:\n{}", faults.join("\n"));
}

#[test]
fn modules_import_downwards() {
    let mut faults = Vec::new();
    for source in sources() {
        let module = source.module();
        if matches!(module, "main" | "lib") {
            continue;
        }
        let Some(own) = layer(module) else {
            faults.push(format!("src/{}: the module is in no layer of this test", source.name));
            continue;
        };
        for (number, line) in source.code() {
            for used in line.split("crate::").skip(1) {
                let used = used.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap();
                let sideways = [("tools", "model"), ("model", "tools")].contains(&(module, used));
                if sideways || layer(used).is_some_and(|other| other > own) {
                    faults.push(format!(
                        "src/{}:{number}: `{module}` must not know `{used}`",
                        source.name
                    ));
                }
            }
        }
    }
    report(&faults);
}

#[test]
fn what_has_one_place_stands_nowhere_else() {
    let mut faults = Vec::new();
    for source in sources().iter().filter(|source| !source.is_test()) {
        for (number, line) in source.code() {
            for (text, places, why) in ABSENCES {
                let is_allowed = places.iter().any(|place| source.name.starts_with(place));
                if holds(line, text) && !is_allowed {
                    faults.push(format!("src/{}:{number}: `{text}`: {why}", source.name));
                }
            }
        }
    }
    report(&faults);
}

/// A bound is a decimal number above 1000 (which only converts units), a shift, or a length of time. What
/// only looks like one says so: `// not a bound`.
#[test]
fn bounds_stand_in_the_file_of_limits() {
    let mut faults = Vec::new();
    for source in sources().iter().filter(|source| source.name != "limits.rs" && !source.is_test())
    {
        for (number, line) in source.code() {
            if has_literal_bound(line) && !line.contains("// not a bound") {
                faults.push(format!(
                    "src/{}:{number}: a literal bound: {}",
                    source.name,
                    line.trim()
                ));
            }
        }
    }
    report(&faults);
}

fn has_literal_bound(line: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    // Numbers inside texts are words for people.
    let code: String =
        line.split('"').step_by(2).collect::<Vec<_>>().join(" ").replace("\\u{", "\\u");
    let large = code.split(|c: char| !is_word(c)).any(|word| {
        word.starts_with(|c: char| c.is_ascii_digit())
            && word.replace('_', "").parse::<u64>().is_ok_and(|number| number > 1000)
    });
    let signs = ["<< 10", "<< 20", "from_secs(", "from_millis("];
    let sign = signs.iter().any(|sign| match code.find(sign) {
        Some(at) if sign.ends_with('(') => {
            code[at + sign.len()..].starts_with(|c: char| c.is_ascii_digit())
        }
        Some(_) => true,
        None => false,
    });
    large || sign
}

#[test]
fn every_file_says_what_it_is_and_stays_readable() {
    let mut faults = Vec::new();
    for source in sources() {
        if !source.text.starts_with("//!") {
            faults.push(format!("src/{}: it does not open with //!", source.name));
        }
        let length = source.code().count();
        if length > 400 && !source.is_test() {
            faults.push(format!("src/{}: {length} lines of code, more than 400", source.name));
        }
        for (number, line) in source.code() {
            for left in ["todo!", "unimplemented!", "dbg!", "FIXME", "XXX"] {
                if line.contains(left) {
                    faults.push(format!("src/{}:{number}: `{left}` was left behind", source.name));
                }
            }
        }
    }
    report(&faults);
}

/// The example skills are copied: each script is short enough to be read at once.
#[test]
fn scripts_of_the_example_skills_are_short() {
    let skills = Path::new(env!("CARGO_MANIFEST_DIR")).join("skills");
    let mut faults = Vec::new();
    let mut found = 0;
    for skill in fs::read_dir(skills).unwrap() {
        for script in fs::read_dir(skill.unwrap().path().join("scripts")).unwrap() {
            let path = script.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "py") {
                continue;
            }
            found += 1;
            let length = fs::read_to_string(&path).unwrap().lines().count();
            if length > 200 {
                faults.push(format!("{}: {length} lines, more than 200", path.display()));
            }
        }
    }
    assert!(found > 4, "there are scripts to look at");
    report(&faults);
}

/// `unwrap` and `expect` only where the line shows why they cannot fail.
#[test]
fn nothing_panics_on_purpose() {
    let mut faults = Vec::new();
    for source in sources().iter().filter(|source| !source.is_test()) {
        for (number, line) in source.code() {
            for panic in [".unwrap()", ".expect(", "panic!(", "unreachable!("] {
                if line.contains(panic) {
                    faults.push(format!("src/{}:{number}: `{panic}`", source.name));
                }
            }
        }
    }
    report(&faults);
}

/// The page and the example have all settings, the README some of them; none has others.
#[test]
fn settings_are_named_in_the_documents_and_the_example() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for name in ["docs/settings.md", ".env.example", "README.md"] {
        let text = fs::read_to_string(root.join(name)).unwrap();
        let is_name = |word: &&str| {
            [
                "LLM_",
                "SCRIPT_",
                "SKILLS_FOLDER",
                "SYSTEM_PROMPT",
                "MEMORY_",
                "NOTES_",
                "SESSIONS_",
                "SSL_",
                "HTTP_",
                "HTTPS_",
                "ALL_PROXY",
                "NO_PROXY",
            ]
            .iter()
            .any(|prefix| word.starts_with(prefix))
        };
        let mut named: Vec<&str> =
            text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(is_name).collect();
        named.sort_unstable();
        named.dedup();
        let mut known: Vec<&str> =
            skills_runner::internals::settings::SETTINGS.iter().map(|row| row.name).collect();
        known.sort_unstable();
        if name == "README.md" {
            known.retain(|row| named.contains(row));
        }
        assert_eq!(named, known, "{name} names exactly the settings of the table");
    }
}

//! Rules for the source, checked over its text.
//!
//! ARCHITECTURE.md and CONTRIBUTING.md give the reasons. A violation is reported with file
//! and line.

mod imports;
mod source;
mod words;

use std::fs;
use std::path::Path;

use source::{files, sources};

/// Texts that only some files may contain: the text, these files, and the reason.
const ABSENCES: [(&str, &[&str], &str); 12] = [
    ("env::", &["main.rs"], "the environment is read once, at the edge"),
    ("Command::new", &["host/"], "processes are made in one crate"),
    (
        "chat_api::",
        &["agent/context/", "agent/conversation/", "agent/turn/", "cli/", "config/", "lib.rs"],
        "tools know no model",
    ),
    ("ureq", &["chat_api/http/"], "the HTTP client is used in one place"),
    ("rustls", &["chat_api/http/"], "TLS and its trust anchors are used in one place"),
    (".reveal()", &["chat_api/http/"], "a secret is revealed only where it is sent"),
    ("println!", &[], "only ui prints"),
    ("eprint", &[], "only ui prints"),
    ("stdout()", &["ui/"], "only ui prints"),
    ("stderr()", &["ui/"], "only ui prints"),
    ("process::exit", &[], "the exit status is main's"),
    ("thread::spawn", &[], "one thread"),
];

/// Whether the line has the text, and not as the end of a longer word (`dotenv::`).
fn contains(line: &str, text: &str) -> bool {
    line.match_indices(text).any(|(at, _)| {
        !text.starts_with(char::is_alphanumeric)
            || !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_')
    })
}

fn report(violations: &[String]) {
    assert!(violations.is_empty(), "{} violations:\n{}", violations.len(), violations.join("\n"));
}

#[test]
fn no_modules_need_each_other() {
    let imports = imports::imports(&sources());
    assert!(imports.len() > 500, "the imports were found");
    report(&imports::cycles(&imports));
}

#[test]
fn restricted_texts_appear_only_in_their_files() {
    let mut violations = Vec::new();
    for source in sources().iter().filter(|source| !source.is_test()) {
        for (number, line) in source.code() {
            for (text, places, why) in ABSENCES {
                let is_allowed = places.iter().any(|place| source.name.starts_with(place));
                if contains(line, text) && !is_allowed {
                    violations.push(format!("src/{}:{number}: `{text}`: {why}", source.name));
                }
            }
        }
    }
    report(&violations);
}

/// A literal limit is a decimal number above 1000 (1000 converts units), a shift, or a duration.
/// A number that only looks like one has the comment `// not a limit`.
#[test]
fn limits_are_defined_only_in_limits() {
    let mut violations = Vec::new();
    for source in sources()
        .iter()
        .filter(|source| !source.name.starts_with("base/limits/") && !source.is_test())
    {
        for (number, line) in source.code() {
            if has_literal_limit(line) && !line.contains("// not a limit") {
                violations.push(format!(
                    "src/{}:{number}: a literal limit: {}",
                    source.name,
                    line.trim()
                ));
            }
        }
    }
    report(&violations);
}

fn has_literal_limit(line: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    // Numbers inside string literals are not limits.
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
fn files_open_with_documentation_and_are_finished() {
    let mut violations = Vec::new();
    for source in sources() {
        if !source.text.starts_with("//!") {
            violations.push(format!("src/{}: the file does not open with `//!`", source.name));
        }
        for (number, line) in source.code() {
            for left in ["todo!", "unimplemented!", "dbg!", "FIXME", "XXX"] {
                if line.contains(left) {
                    violations.push(format!("src/{}:{number}: `{left}` remains", source.name));
                }
            }
        }
    }
    report(&violations);
}

/// Each file is read in one sitting, tests too, and the whole stays small enough to know: each
/// tool of a model, each rule for its calls, each kind of source of needs is a file of its own.
#[test]
fn files_are_short_and_few() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut violations = Vec::new();
    let count = sources().iter().filter(|source| !source.is_test()).count();
    if count > 400 {
        violations.push(format!("src: {count} files, more than 400"));
    }
    for folder in ["src", "tests", "benches", "examples", "fuzz/src", "fuzz/examples"] {
        let paths = files(&root.join(folder), "rs");
        assert!(!paths.is_empty(), "{folder}: no files");
        for path in paths {
            let length = fs::read_to_string(&path).unwrap().lines().count();
            if length > 500 {
                violations.push(format!("{}: {length} lines, more than 500", path.display()));
            }
        }
    }
    report(&violations);
}

/// Users copy the example skills, so each script is short.
#[test]
fn scripts_of_example_skills_are_short() {
    let scripts = files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("skills"), "py");
    assert!(scripts.len() > 4, "the scripts were found");
    let mut violations = Vec::new();
    for path in scripts {
        let length = fs::read_to_string(&path).unwrap().lines().count();
        if length > 200 {
            violations.push(format!("{}: {length} lines, more than 200", path.display()));
        }
    }
    report(&violations);
}

/// The README is read in one sitting, and ARCHITECTURE.md is kept in the head.
#[test]
fn documents_are_short() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (name, most) in [("README.md", 200), ("ARCHITECTURE.md", 180)] {
        let length = fs::read_to_string(root.join(name)).unwrap().lines().count();
        assert!(length <= most, "{name}: {length} lines, more than {most}");
    }
    let architecture = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let (_, terms) = architecture.split_once("| term | meaning |").expect("a glossary");
    let terms = terms.trim().lines().take_while(|line| line.starts_with('|')).count() - 1;
    assert!(terms <= 25, "the glossary has {terms} terms, more than 25");
}

/// All modules are private, so the public items are those that `lib.rs` exports, as rustdoc lists
/// them; `parsers` is not documented.
#[test]
fn the_public_api_is_one_page() {
    let library = sources().into_iter().find(|source| source.name == "lib.rs").unwrap();
    let code: String = library.code().map(|(_, line)| line).collect::<Vec<_>>().join(" ");
    let mut exported = Vec::new();
    let (documented, _) = code.split_once("pub mod parsers").unwrap();
    for item in documented.split("pub use ").skip(1) {
        let item = item.split(';').next().unwrap();
        let names = item.rsplit_once("::").map_or(item, |(_, name)| name);
        let names = item.split_once('{').map_or(names, |(_, names)| names);
        exported.extend(names.split([',', '}']).map(str::trim).filter(|name| !name.is_empty()));
    }
    assert!(exported.contains(&"Config") && exported.contains(&"run_turn"), "{exported:?}");
    let items = exported.len();
    assert!(items <= 80, "{items} public items, more than 80: {exported:?}");
    let modules = code.split("pub mod ").skip(1).map(|module| module.split([';', ' ']).next());
    let modules: Vec<_> = modules.flatten().collect();
    assert_eq!(modules, ["program", "parsers"], "all other modules are private");
}

/// No input may cause a panic.
#[test]
fn only_tests_panic_on_purpose() {
    let mut violations = Vec::new();
    for source in sources().iter().filter(|source| !source.is_test()) {
        for (number, line) in source.code() {
            for panic in [".unwrap()", ".expect(", "panic!(", "unreachable!("] {
                if line.contains(panic) {
                    violations.push(format!("src/{}:{number}: `{panic}`", source.name));
                }
            }
        }
    }
    report(&violations);
}

/// The page of settings and the example name all settings, the README some; none names others.
#[test]
fn documents_name_the_settings() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for name in ["docs/settings.md", ".env.example", "README.md"] {
        let text = fs::read_to_string(root.join(name)).unwrap();
        let is_name = |word: &&str| {
            [
                "LLM_",
                "OPENAI_",
                "OLLAMA_HOST",
                "SCRIPT_",
                "SKILLS_",
                "SYSTEM_PROMPT",
                "MEMORY_",
                "NOTES_",
                "SESSIONS_",
                "HISTORY_",
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
        let mut known: Vec<&str> = base::settings::SETTINGS.iter().map(|row| row.name).collect();
        known.sort_unstable();
        if name == "README.md" {
            known.retain(|row| named.contains(row));
        }
        assert_eq!(named, known, "{name} names exactly the settings of the table");
    }
}

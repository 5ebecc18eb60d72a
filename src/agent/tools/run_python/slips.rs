//! Scripts that are not Python as they are written: in a code fence, with `\n` for line breaks, or
//! a line for a shell.

use std::borrow::Cow;

use base::limits;
use base::text::{self, single_fence};
use skills::split_words;

/// Programs that a shell line starts with. As a Python name before another word they are an error.
const PROGRAMS: [&str; 28] = [
    "bash", "sh", "zsh", "node", "npm", "npx", "uv", "uvx", "pip", "pip3", "deno", "bun", "ruby",
    "perl", "ls", "cat", "cd", "cp", "mv", "mkdir", "rm", "grep", "find", "curl", "wget", "git",
    "chmod", "echo",
];

/// Options of Python without a value, which are left out.
const PYTHON_OPTIONS: [&str; 7] = ["-u", "-B", "-E", "-I", "-O", "-s", "-S"];

/// A script of the skill with its arguments, as a shell line names them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ShellCall {
    pub file: String,
    pub args: Vec<String>,
}

impl ShellCall {
    /// Reads the words of a line; `find` returns the path of a file in the skill.
    pub(super) fn parse(
        words: &[String],
        find: impl Fn(&str) -> Option<String>,
    ) -> Option<ShellCall> {
        let starts_program = words.first().is_some_and(|word| is_python(word) || is_shell(word));
        let mut rest = if starts_program { &words[1..] } else { words };
        while rest.first().is_some_and(|word| PYTHON_OPTIONS.contains(&word.as_str())) {
            rest = &rest[1..];
        }
        let (file, args) = match rest {
            [option, module, args @ ..] if option == "-m" => {
                let path = module.replace('.', "/");
                (find(&format!("{path}.py")).or_else(|| find(&format!("{path}/__main__.py"))), args)
            }
            [file, args @ ..] => (find(file), args),
            [] => (None, rest),
        };
        Some(ShellCall { file: file?, args: args.to_vec() })
    }
}

/// The Python that a script means: without its code fence, and with line breaks.
///
/// # Errors
///
/// The language of a code fence that is not Python.
pub(super) fn python_source(script: &str) -> Result<Cow<'_, str>, String> {
    let script = with_line_breaks(script);
    let Some(fence) = single_fence(&script) else { return Ok(script) };
    // Outside of a text in quotes, the marks of a fence are never Python.
    if ["\"\"\"", "'''"].iter().any(|quotes| fence.before.contains(quotes)) {
        return Ok(script);
    }
    match fence.language.to_ascii_lowercase().as_str() {
        "" | "python" | "py" | "python3" => Ok(Cow::Owned(fence.body.to_string())),
        other => Err(text::one_line(other, limits::SUMMARY_CHARS)),
    }
}

/// Returns the words of a script that is one line for a shell; `is_file`: whether this is a path in
/// the skill.
pub(super) fn shell_words(script: &str, is_file: impl Fn(&str) -> bool) -> Option<Vec<String>> {
    let line = script.trim();
    let words = split_words(line, limits::SCRIPT_ARGUMENTS_BYTES);
    let first = words.first().filter(|_| !line.contains('\n'))?;
    // `python = 3` and `python in names` are Python.
    let is_operand = |word: &String| {
        let rest = word.trim_start_matches(['-', '.', '/', '~']);
        let is_operator = ["and", "or", "if", "in", "is", "not"].contains(&word.as_str());
        !is_operator && rest.starts_with(|c: char| c.is_alphanumeric() || c == '_')
    };
    let is_program = is_python(first) || is_shell(first) || PROGRAMS.contains(&first.as_str());
    let runs_program = is_program && words.get(1).is_some_and(is_operand);
    let is_path = first.contains(['/', '.']);
    let is_line = runs_program || first.starts_with("./") || is_path && is_file(first);
    is_line.then_some(words)
}

fn is_python(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or(word);
    let version = name.strip_prefix("python");
    version.is_some_and(|version| version.chars().all(|c| c.is_ascii_digit() || c == '.'))
}

fn is_shell(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or(word);
    matches!(name, "bash" | "sh" | "zsh" | "node")
}

/// Replaces `\n` outside of quotes by line breaks if the script has none of its own. There, a
/// backslash before a letter is never Python.
fn with_line_breaks(script: &str) -> Cow<'_, str> {
    if script.contains('\n') || !script.contains("\\n") {
        return Cow::Borrowed(script);
    }
    let mut text = String::with_capacity(script.len());
    let (mut quote, mut in_comment, mut has_escaped_quotes) = (None, false, false);
    let mut rest = script.chars();
    while let Some(c) = rest.next() {
        if c == '\\' {
            let escaped = rest.next();
            let is_break = escaped == Some('n') && quote.is_none();
            match escaped {
                _ if is_break => text.push('\n'),
                Some('t') if quote.is_none() => text.push('\t'),
                _ => text.extend([c].into_iter().chain(escaped)),
            }
            has_escaped_quotes |= quote.is_none() && matches!(escaped, Some('"' | '\''));
            in_comment &= !is_break;
            continue;
        }
        if matches!(c, '"' | '\'') && !in_comment {
            quote = match quote {
                None => Some(c),
                Some(open) if open == c => None,
                open => open,
            };
        }
        in_comment |= c == '#' && quote.is_none();
        text.push(c);
    }
    // With the quotes escaped, too, the whole script was encoded twice.
    let decoded = has_escaped_quotes.then(|| serde_json::from_str(&format!("\"{script}\"")).ok());
    Cow::Owned(decoded.flatten().unwrap_or(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fences_and_written_line_breaks_are_taken_off_where_they_cannot_be_python() {
        let table = [
            ("print(1)", "print(1)"),
            ("```python\nprint(1)\n```", "print(1)\n"),
            ("Here's the code:\n```\nprint(1)\n```\nIt prints 1.", "print(1)\n"),
            (r"```py\nprint(1)\n```", "print(1)\n"),
            ("text = '''\n```py\nx\n```\n'''", "text = '''\n```py\nx\n```\n'''"),
            ("```py\n1\n```\n```py\n2\n```", "```py\n1\n```\n```py\n2\n```"),
            (r"import os\nprint(os.sep)", "import os\nprint(os.sep)"),
            (r#"x = "a\nb"\nprint(x)"#, "x = \"a\\nb\"\nprint(x)"),
            (r"for x in y:\n\tprint(x)\n", "for x in y:\n\tprint(x)\n"),
            (r#"print(\"a\\nb\")\nprint(1)"#, "print(\"a\\nb\")\nprint(1)"),
            (r"# don't\nprint('a\nb')", "# don't\nprint('a\\nb')"),
            (r#"print("a\nb")"#, r#"print("a\nb")"#),
            (r#"print("""it's "a"\nb""")"#, r#"print("""it's "a"\nb""")"#),
            (r"print('it\'s\n')  # ends with \n", "print('it\\'s\\n')  # ends with \n"),
            ("print('\\n')\nx = 1", "print('\\n')\nx = 1"),
            (r"'", r"'"),
            (r"\n\", "\n\\"),
        ];
        for (script, expected) in table {
            assert_eq!(python_source(script).as_deref(), Ok(expected), "{script}");
        }
        assert_eq!(python_source("```bash\nls\n```"), Err("bash".into()));
    }

    #[test]
    fn lines_for_a_shell_are_found() {
        let is_file = |path: &str| ["scripts/calc.py", "calc.py", "pkg/mod.py"].contains(&path);
        let find = |path: &str| is_file(path).then(|| path.to_string());
        let found = |script: &str| {
            let words = shell_words(script, is_file)?;
            Some(ShellCall::parse(&words, find))
        };
        let of_file = |file: &str, args: &[&str]| {
            let args = args.iter().map(ToString::to_string).collect();
            Some(Some(ShellCall { file: file.into(), args }))
        };
        let calc = |args: &[&str]| of_file("scripts/calc.py", args);
        let table = [
            ("python scripts/calc.py eval '1 + 1'", calc(&["eval", "1 + 1"])),
            ("python3.12 -u scripts/calc.py", calc(&[])),
            ("/usr/bin/python3 scripts/calc.py eval", calc(&["eval"])),
            ("bash scripts/calc.py", calc(&[])),
            (" scripts/calc.py\n", calc(&[])),
            ("scripts/calc.py eval", calc(&["eval"])),
            ("python -m pkg.mod a", of_file("pkg/mod.py", &["a"])),
            ("python -m json.tool", Some(None)),
            ("./run.sh a", Some(None)),
            ("ls -la", Some(None)),
            ("pip install x", Some(None)),
            ("python = 3", None),
            ("python", None),
            ("find(x)", None),
            ("cat in names", None),
            ("ls", None),
            ("print(1)", None),
            ("a/b", None),
            ("import os\nls -la", None),
            ("", None),
        ];
        for (script, expected) in table {
            assert_eq!(found(script), expected, "{script}");
        }
    }
}

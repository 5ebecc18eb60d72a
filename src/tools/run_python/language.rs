//! Scripts of skills in other languages than Python: the interpreter is found by the first line or
//! the suffix of the file.
//!
//! Unlike Python scripts, they run by their path, which other files beside them are found by.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::ScriptSource;
use crate::config::find_program;
use crate::limits;
use crate::text;

/// The suffixes of files, and the programs that run them, the first that is there.
const LANGUAGES: [(&[&str], &[&str]); 5] = [
    (&["sh", "bash"], &["bash", "sh"]),
    (&["js", "mjs", "cjs"], &["node", "bun", "deno"]),
    (&["ts"], &["tsx", "bun", "deno", "node"]),
    (&["rb"], &["ruby"]),
    (&["pl"], &["perl"]),
];

/// The interpreter of a script that is not Python.
pub(super) struct OtherInterpreter {
    /// The program.
    pub program: PathBuf,
}

impl OtherInterpreter {
    /// Finds the interpreter of a script in the search path of its environment; `None` for Python.
    /// The error is for the model.
    pub(super) fn find(
        source: &ScriptSource<'_>,
        environment: &[(OsString, OsString)],
    ) -> Result<Option<OtherInterpreter>, String> {
        let Some(path) = &source.path else {
            return Ok(None);
        };
        let suffix = Path::new(path).extension().and_then(OsStr::to_str).unwrap_or_default();
        let suffix = suffix.to_lowercase();
        let named = first_line_program(&source.bytes);
        let row = LANGUAGES.iter().find(|(suffixes, programs)| match &named {
            Some(name) => programs.contains(&name.as_str()),
            None => suffixes.contains(&suffix.as_str()),
        });
        let programs: Vec<&str> = match (&named, row) {
            _ if suffix.starts_with("py") => return Ok(None),
            (Some(name), _) if name.starts_with("python") || name == "uv" => return Ok(None),
            (Some(name), _) => vec![name],
            (None, Some((_, programs))) => programs.to_vec(),
            (None, None) => return Ok(None),
        };
        let search = environment.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value);
        let mut found = programs
            .iter()
            .filter_map(|name| find_program(name.as_ref(), search.map(OsString::as_os_str)));
        match found.next() {
            Some(program) => Ok(Some(OtherInterpreter { program })),
            None => {
                let path = text::one_line(path, limits::SUMMARY_CHARS);
                let name = text::one_line(programs[0], limits::SUMMARY_CHARS);
                Err(format!(
                    "`{path}` needs `{name}`, which is not installed: tell the user to \
                     install it"
                ))
            }
        }
    }

    /// The arguments with which it runs a script of the skill in `folder`.
    pub(super) fn words(&self, source: &ScriptSource<'_>, folder: &Path) -> Vec<OsString> {
        let script = source.path.as_ref().map(|path| folder.join(path).into());
        let is_deno = self.program.ends_with("deno");
        let run = is_deno.then(|| ["run", "-A"].map(OsString::from));
        run.into_iter().flatten().chain(script).collect()
    }
}

/// The name of the program in the first line (`#!`); `None` without one.
fn first_line_program(source: &[u8]) -> Option<String> {
    let line = source.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let line = str::from_utf8(line).ok()?;
    let mut words = line.split_whitespace().map(|word| word.rsplit('/').next().unwrap_or(word));
    let is_option = |word: &&str| word.starts_with('-') || word.contains('=');
    match words.next()? {
        "env" => words.find(|word| !is_option(word)),
        name => Some(name),
    }
    .map(str::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_names_a_program() {
        for (line, program) in [
            ("#!/bin/bash\nx", Some("bash")),
            ("#!/usr/bin/env node", Some("node")),
            ("#!/usr/bin/env -S deno run -A\r\n", Some("deno")),
            ("#!/usr/bin/env A=b ruby -w", Some("ruby")),
            ("#! /usr/bin/perl -w\n", Some("perl")),
            ("#!", None),
            ("# !/bin/sh", None),
            ("", None),
        ] {
            assert_eq!(first_line_program(line.as_bytes()).as_deref(), program, "{line}");
        }
    }
}

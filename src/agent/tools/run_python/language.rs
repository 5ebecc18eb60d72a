//! Scripts of skills in other languages than Python: the interpreter is found by the first line or
//! the suffix of the file.
//!
//! Unlike Python scripts, they run by their path, which other files beside them are found by. The
//! first line is read as the kernel reads it: a program and the rest of the line as one argument.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::ScriptSource;
use crate::tools::program::{LANGUAGES, PYTHON};
use base::limits;
use base::text;
use host::files::find_program;
use skills::python::is_executable;

/// The interpreter of a script that is not Python.
pub(super) struct OtherInterpreter {
    /// The program.
    pub program: PathBuf,
    /// Its arguments before the script.
    options: Vec<String>,
}

impl OtherInterpreter {
    /// Finds the interpreter of a script in the search path of its environment; `None` for Python.
    /// The error is for the model.
    pub(super) fn find(
        source: &ScriptSource<'_>,
        environment: &[(OsString, OsString)],
    ) -> Result<Option<OtherInterpreter>, String> {
        let Some(path) = source.file.as_ref().map(|file| &file.path) else {
            return Ok(None);
        };
        let suffix = Path::new(path).extension().and_then(OsStr::to_str).unwrap_or_default();
        let suffix = suffix.to_lowercase();
        let search = environment.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value);
        let search = search.map(OsString::as_os_str);
        let first = FirstLine::parse(&source.bytes);
        let is_python = |name: &str| name.starts_with("python") || name == "uv";
        match first {
            _ if PYTHON.contains(&suffix.as_str()) => Ok(None),
            Some(line) if is_python(line.language()) => Ok(None),
            Some(line) => line.interpreter(path, search).map(Some),
            None => by_suffix(path, &suffix, search),
        }
    }

    /// The arguments with which it runs a script.
    pub(super) fn words(&self, source: &ScriptSource<'_>) -> Vec<OsString> {
        let script = source.file.as_ref().map(|file| file.folder.join(&file.path).into());
        self.options.iter().map(OsString::from).chain(script).collect()
    }
}

fn by_suffix(
    path: &str,
    suffix: &str,
    search: Option<&OsStr>,
) -> Result<Option<OtherInterpreter>, String> {
    let row = LANGUAGES.iter().find(|(suffixes, _)| suffixes.contains(&suffix));
    let Some((_, programs)) = row else { return Ok(None) };
    let mut found = programs.iter().filter_map(|name| find_program(name.as_ref(), search));
    let program = found.next().ok_or_else(|| missing(path, programs[0]))?;
    let options = if program.ends_with("deno") { vec!["run".into(), "-A".into()] } else { vec![] };
    Ok(Some(OtherInterpreter { program, options }))
}

fn missing(path: &str, program: &str) -> String {
    let path = text::one_line(path, limits::SUMMARY_CHARS);
    let program = text::one_line(program, limits::SUMMARY_CHARS);
    format!("`{path}` needs `{program}`, which is not installed: tell the user to install it")
}

/// The first line of a script, behind `#!`.
struct FirstLine<'l> {
    program: &'l str,
    /// The rest of the line.
    argument: &'l str,
}

impl<'l> FirstLine<'l> {
    fn parse(source: &'l [u8]) -> Option<FirstLine<'l>> {
        let line = source.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
        let line = str::from_utf8(line).ok()?.trim();
        let (program, argument) = line.split_once([' ', '\t']).unwrap_or((line, ""));
        (!program.is_empty()).then_some(FirstLine { program, argument: argument.trim() })
    }

    /// The name of the program that reads the script: behind `env` that which `env` starts.
    fn language(&self) -> &'l str {
        let base = |word: &'l str| word.rsplit('/').next().unwrap_or(word);
        if base(self.program) != "env" {
            return base(self.program);
        }
        let mut words = self.argument.split_whitespace();
        while let Some(word) = words.next() {
            match word {
                // Options of `env` with a value of their own.
                "-u" | "-C" => drop(words.next()),
                "-S" | "--split-string" => {}
                _ if word.starts_with('-') || word.contains('=') => {}
                name => return base(name),
            }
        }
        ""
    }

    fn interpreter(&self, path: &str, search: Option<&OsStr>) -> Result<OtherInterpreter, String> {
        let name = self.language();
        let found = find_program(name.as_ref(), search);
        let is_env = self.program.ends_with("/env");
        let program = match found {
            _ if !is_env && is_executable(Path::new(self.program)) => self.program.into(),
            Some(_) if is_env && is_executable(Path::new(self.program)) => self.program.into(),
            // The same program elsewhere.
            Some(found) if !is_env => found,
            _ => return Err(missing(path, name)),
        };
        let options = Some(self.argument.to_string()).filter(|argument| !argument.is_empty());
        Ok(OtherInterpreter { program, options: options.into_iter().collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_names_a_program() {
        for (line, program) in [
            ("#!/bin/bash\nx", Some("bash")),
            ("#!/bin/bash -e", Some("bash")),
            ("#!/usr/bin/env node", Some("node")),
            ("#!/usr/bin/env -S deno run -A\r\n", Some("deno")),
            ("#!/usr/bin/env A=b ruby -w", Some("ruby")),
            ("#!/usr/bin/env -u HOME bash", Some("bash")),
            ("#! /usr/bin/perl -w\n", Some("perl")),
            ("#!/usr/bin/env", Some("")),
            ("#!", None),
            ("# !/bin/sh", None),
            ("", None),
        ] {
            let found = FirstLine::parse(line.as_bytes()).map(|line| line.language());
            assert_eq!(found, program, "{line}");
        }
    }
}

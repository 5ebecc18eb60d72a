//! The results in the folder of `--out`: a line of JSON each, appended when a run has ended, so that
//! a later evaluation goes on where this one stopped.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use super::record::{EvalKind, RunKey, RunRecord};
use super::{Suite, check_file};
use crate::cli::run::Run;
use crate::error::{Error, ErrorKind, Result};
use crate::limits;
use crate::text::counted;
use crate::world::lock::lock_file;
use crate::world::output::Output;

/// The file of the results.
const FILE: &str = "runs.jsonl";

/// Results by their key, and where they are stored.
pub(super) struct Store {
    /// The folder of `--out`, and the file in it, which stays locked.
    place: Option<(PathBuf, File)>,
    records: BTreeMap<RunKey, RunRecord>,
}

impl Store {
    /// Opens the folder, which may be new, and reads the results of the same skills, tests and
    /// models; others do not count. Fails if another process uses it.
    pub(super) fn open(
        folder: Option<&std::ffi::OsStr>,
        suites: &[Suite],
        run: &Run,
        output: &mut Output,
    ) -> Result<Store> {
        let Some(folder) = folder else {
            return Ok(Store { place: None, records: BTreeMap::new() });
        };
        let folder = run.folder.join(folder);
        let path = folder.join(FILE);
        let failure = |error: std::io::Error| {
            Error::new(ErrorKind::Io, format!("failed to use `{}`: {error}", path.display()))
        };
        fs::create_dir_all(&folder).map_err(failure)?;
        check_file(&path)?;
        let mut options = OpenOptions::new();
        let mut file = options.read(true).append(true).create(true).open(&path).map_err(failure)?;
        lock_file(&file, limits::EVAL_END, &run.cancellation).map_err(|error| {
            match error.kind() {
                std::io::ErrorKind::WouldBlock => {
                    let text = format!("another evaluation uses `{}`", folder.display());
                    Error::new(ErrorKind::Temporary, format!("failed to start: {text}"))
                }
                _ => failure(error),
            }
        })?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failure)?;
        let text = String::from_utf8_lossy(&bytes);
        let mut store = Store { place: None, records: BTreeMap::new() };
        let mut old = BTreeSet::new();
        for line in text.lines() {
            // A line may have been cut by a kill.
            let Ok(record) = serde_json::from_str::<RunRecord>(line) else { continue };
            let suite = suites.iter().find(|suite| suite.label == record.key.skill);
            match suite {
                Some(suite) if suite.digest == record.digest => {
                    store.records.insert(record.key.clone(), record);
                }
                Some(_) => {
                    old.insert(record.key);
                }
                None => {}
            }
        }
        old.retain(|key| !store.has(key));
        if !old.is_empty() {
            let runs = counted(old.len(), "run");
            output.note(&format!(
                "what results depend on has changed: {runs} in {} are not used",
                folder.display()
            ));
        }
        if !store.records.is_empty() {
            let runs = counted(store.records.len(), "run");
            output.note(&format!("{runs} in {} are used", folder.display()));
        }
        // A kill may have cut the last line.
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        if whole < bytes.len() {
            file.set_len(whole as u64).map_err(failure)?;
        }
        store.place = Some((folder, file));
        Ok(store)
    }

    /// The results.
    pub(super) fn records(&self) -> &BTreeMap<RunKey, RunRecord> {
        &self.records
    }

    /// Whether the run has a result.
    pub(super) fn has(&self, key: &RunKey) -> bool {
        self.records.contains_key(key)
    }

    /// The folder of `--out`.
    pub(super) fn folder(&self) -> Option<&Path> {
        self.place.as_ref().map(|(folder, _)| folder.as_path())
    }

    /// Adds a result, in one write.
    pub(super) fn add(&mut self, record: RunRecord) -> Result<()> {
        if let Some((folder, file)) = &mut self.place {
            file.write_all(line(&record).as_bytes()).map_err(|error| {
                let text = format!("failed to write in `{}`: {error}", folder.display());
                Error::new(ErrorKind::Io, text)
            })?;
        }
        self.records.insert(record.key.clone(), record);
        Ok(())
    }

    /// Where the working folder of a task stays for people to look at; `None`: it does not.
    pub(super) fn outputs(&self, key: &RunKey) -> Option<PathBuf> {
        let folder = self.folder().filter(|_| key.kind != EvalKind::Trigger)?;
        Some(folder.join(run_folder(key)).join("outputs"))
    }
}

fn line(record: &RunRecord) -> String {
    // Structures of texts and numbers always serialize.
    serde_json::to_string(record).unwrap_or_default() + "\n"
}

/// The folder of a run of a task, relative to that of `--out`, as agentskills.io and skill-creator
/// name it.
pub(super) fn run_folder(key: &RunKey) -> PathBuf {
    let configuration = if key.kind == EvalKind::Baseline { "without_skill" } else { "with_skill" };
    [
        skill_folder(&key.skill),
        format!("eval-{}", file_name(&key.case)),
        configuration.to_string(),
        format!("run-{}", key.run),
    ]
    .iter()
    .collect()
}

/// The folder of a skill's results.
pub(super) fn skill_folder(skill: &str) -> String {
    file_name(skill)
}

/// A name of a file that is like this text, and differs for different texts.
fn file_name(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let plain: String = text.chars().map(|c| if is_plain(c) { c } else { '-' }).collect();
    if plain == text && text.len() <= limits::EVAL_NAME_BYTES && !text.starts_with('.') {
        return plain;
    }
    let start: String =
        plain.trim_start_matches('.').chars().take(limits::EVAL_NAME_BYTES).collect();
    let digest = crate::digest::sha256(text.as_bytes());
    // A name without a tilde is a text itself.
    format!("{start}~{}", &digest[..8])
}

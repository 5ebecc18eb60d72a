//! The results in the folder of `--out`: a line of JSON each, appended when a run has ended, so that
//! a later evaluation goes on where this one stopped.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use super::record::{EvalKind, RunKey, RunRecord};
use super::{Suite, check_file, write_error};
use crate::cli::run::Run;
use crate::digest::sha256;
use crate::error::{self, Error, Result};
use crate::limits;
use crate::text::counted;
use crate::world::cancellation::StopReason;
use crate::world::lock::lock_file;
use crate::world::output::Output;

/// The file of the results.
const FILE: &str = "runs.jsonl";

/// Results by their key, and where they are stored.
#[derive(Default)]
pub(super) struct Store {
    /// The folder of `--out`, and the file in it, which stays locked.
    place: Option<(PathBuf, File)>,
    records: BTreeMap<RunKey, RunRecord>,
}

impl Store {
    /// Opens the folder, which may be new, and reads the results of the same skills, tests and
    /// models; others do not count. Fails if another process uses it.
    pub(super) fn open(
        folder: Option<&OsStr>,
        suites: &[Suite],
        run: &Run,
        output: &mut Output,
    ) -> Result<Store> {
        let Some(folder) = folder else { return Ok(Store::default()) };
        let folder = run.folder.join(folder);
        let path = folder.join(FILE);
        let failure = |error: std::io::Error| write_error(&path, &error);
        fs::create_dir_all(&folder).map_err(failure)?;
        check_file(&path)?;
        let mut options = OpenOptions::new();
        let mut file = options.read(true).append(true).create(true).open(&path).map_err(failure)?;
        lock_file(&file, limits::EVAL_END_WAIT, &run.cancellation).map_err(|error| {
            match StopReason::from_io_error(&error) {
                Some(stop) => stop.into(),
                None if error.kind() == ErrorKind::WouldBlock => {
                    let folder = folder.display();
                    let text = format!("failed to start: another evaluation uses `{folder}`");
                    Error::new(error::ErrorKind::Temporary, text)
                }
                None => failure(error),
            }
        })?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failure)?;
        // A kill may have cut the last line.
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let lines = bytes[..whole].split(|byte| *byte == b'\n');
        let found: Vec<RunRecord> =
            lines.filter_map(|line| serde_json::from_slice(line).ok()).collect();
        if found.is_empty() && whole > 0 {
            return Err(failure(std::io::Error::other("it has no results of runs")));
        }
        if whole < bytes.len() {
            file.set_len(whole as u64).map_err(failure)?;
        }
        let mut store = Store { place: Some((folder, file)), records: BTreeMap::new() };
        store.take(found, suites, output);
        Ok(store)
    }

    /// Takes the results that count, and reports how many others there are.
    fn take(&mut self, found: Vec<RunRecord>, suites: &[Suite], output: &mut Output) {
        let digest_of = |record: &RunRecord| {
            let suite = suites.iter().find(|suite| suite.label == record.key.skill)?;
            Some(&suite.digest)
        };
        let mut old = BTreeSet::new();
        for record in found {
            match digest_of(&record) {
                Some(digest) if *digest == record.digest => {
                    self.records.insert(record.key.clone(), record);
                }
                Some(_) => drop(old.insert(record.key)),
                None => {}
            }
        }
        old.retain(|key| !self.has(key));
        let folder = self.folder().unwrap_or(Path::new("")).display();
        if !old.is_empty() {
            let runs = counted(old.len(), "run");
            output.note(&format!(
                "what results depend on has changed: {runs} in {folder} are not used"
            ));
        }
        if !self.records.is_empty() {
            output.note(&format!("{} in {folder} are used", counted(self.records.len(), "run")));
        }
    }

    /// The result of a run.
    pub(super) fn record(&self, key: &RunKey) -> Option<&RunRecord> {
        self.records.get(key)
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
            // Structures of texts and numbers always serialize.
            let line = serde_json::to_string(&record).unwrap_or_default() + "\n";
            file.write_all(line.as_bytes())
                .map_err(|error| write_error(&folder.join(FILE), &error))?;
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

/// The folder of a run of a task, relative to that of `--out`, as agentskills.io and skill-creator
/// name it.
pub(super) fn run_folder(key: &RunKey) -> PathBuf {
    let configuration = if key.kind == EvalKind::Baseline { "without_skill" } else { "with_skill" };
    let (skill, case) = (file_name(&key.skill), file_name(&key.case));
    PathBuf::from(format!("{skill}/eval-{case}/{configuration}/run-{}", key.run))
}

/// A name of a file that is like this text, and differs for different texts.
pub(super) fn file_name(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let plain: String = text.chars().map(|c| if is_plain(c) { c } else { '-' }).collect();
    if plain == text && text.len() <= limits::EVAL_NAME_BYTES && !text.starts_with('.') {
        return plain;
    }
    let start: String =
        plain.trim_start_matches('.').chars().take(limits::EVAL_NAME_BYTES).collect();
    // No plain text has a tilde.
    format!("{start}~{}", &sha256(text.as_bytes())[..8])
}

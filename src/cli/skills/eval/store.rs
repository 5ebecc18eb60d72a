//! The results in the folder of `--out`: a line of JSON each, appended when a run has ended, so
//! that a later evaluation goes on where this one stopped.
//!
//! The folder may come from a checkout. So a line ends with its HMAC by a key in the user's data,
//! without which it does not count, and no links below the folder are followed.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use super::record::{EvalKind, RunKey, RunRecord};
use super::{Suite, check_file, write_error};
use crate::cli::run::Run;
use crate::ui::Output;
use base::digest::{hmac_sha256, sha256};
use base::error::{self, Error, Result};
use base::limits;
use base::text::counted;
use host::cancellation::StopReason;
use host::confined::{OpenError, Root, read_whole};
use host::lock::lock_file;
use host::random;

/// The file of the results.
const FILE: &str = "runs.jsonl";
/// How its lines begin.
const LINE_START: &[u8] = b"{\"skill\":";
/// The file of the key, in the folder of the program's data.
const KEY_FILE: &str = "eval.key";
/// The last member of a line.
const MAC: &str = ",\"mac\":\"";

/// Results by their key, and where they are stored.
#[derive(Default)]
pub(super) struct Store {
    /// The folder of `--out`, and the file in it, which stays locked.
    place: Option<(PathBuf, File)>,
    /// The key of the results; `None`: they are not used again.
    key: Option<Vec<u8>>,
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
        if path.is_symlink() {
            return Err(failure(std::io::Error::other("it is a link")));
        }
        if !path.exists() && fs::read_dir(&folder).map_err(failure)?.next().is_some() {
            let text =
                "the folder has other files: give a new one, or that of an earlier evaluation";
            return Err(failure(std::io::Error::other(text)));
        }
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
        let key = key(run.config.storage.state.as_deref())
            .inspect_err(|cause| {
                let folder = folder.display();
                output.note(&format!("results in {folder} are not used again: {cause}"));
            })
            .ok();
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failure)?;
        // A kill may have cut the last line.
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let is_cut = bytes[whole..].starts_with(LINE_START);
        let lines = || bytes[..whole].split(|byte| *byte == b'\n');
        let read = |line: &[u8]| serde_json::from_slice::<RunRecord>(line).ok();
        let (own, others): (Vec<&[u8]>, Vec<&[u8]>) =
            lines().partition(|line| is_own(line, key.as_deref()));
        let own: Vec<RunRecord> = own.into_iter().filter_map(read).collect();
        let others: Vec<RunRecord> = others.into_iter().filter_map(read).collect();
        if own.is_empty() && others.is_empty() && !bytes.is_empty() && !is_cut {
            return Err(failure(std::io::Error::other(
                "it has no results of runs: give a new folder, or that of an earlier evaluation",
            )));
        }
        if is_cut && !own.is_empty() {
            file.set_len(whole as u64).map_err(failure)?;
        } else if whole < bytes.len() {
            file.write_all(b"\n").map_err(failure)?;
        }
        let mut store = Store { place: Some((folder, file)), key, records: BTreeMap::new() };
        store.take(own, suites, output);
        store.report_unused(others, "not measured by this user, or changed since", output);
        Ok(store)
    }

    /// Reports results that are not used, if none of the same runs are.
    fn report_unused(&self, unused: Vec<RunRecord>, what: &str, output: &mut Output) {
        let mut keys: BTreeSet<RunKey> = unused.into_iter().map(|record| record.key).collect();
        keys.retain(|key| !self.has(key));
        if !keys.is_empty() {
            let folder = self.folder().unwrap_or(Path::new("")).display();
            let runs = counted(keys.len(), "run");
            output.note(&format!("{what}: {runs} in {folder} are not used"));
        }
    }

    /// Takes the results that count, and reports how many others there are.
    fn take(&mut self, found: Vec<RunRecord>, suites: &[Suite], output: &mut Output) {
        let digest_of = |record: &RunRecord| {
            let suite = suites.iter().find(|suite| suite.label == record.key.skill)?;
            Some(&suite.digest)
        };
        let mut old = Vec::new();
        for record in found {
            match digest_of(&record) {
                Some(digest) if *digest == record.digest => {
                    self.records.insert(record.key.clone(), record);
                }
                Some(_) => old.push(record),
                None => {}
            }
        }
        self.report_unused(old, "what results depend on has changed", output);
        let folder = self.folder().unwrap_or(Path::new("")).display();
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
            let mut line = serde_json::to_string(&record).unwrap_or_default();
            if let Some(key) = &self.key {
                let mac = hmac_sha256(key, line.as_bytes());
                line.pop();
                line += &format!("{MAC}{mac}\"}}");
            }
            line.push('\n');
            file.write_all(line.as_bytes())
                .map_err(|error| write_error(&folder.join(FILE), &error))?;
        }
        self.records.insert(record.key.clone(), record);
        Ok(())
    }

    /// Where the working folder of a task stays for people to look at: the folder of `--out`, and
    /// the path below it. `None`: it does not stay.
    pub(super) fn outputs(&self, key: &RunKey) -> Option<(PathBuf, PathBuf)> {
        let folder = self.folder().filter(|_| key.kind != EvalKind::Trigger)?;
        Some((folder.to_path_buf(), run_folder(key)))
    }
}

/// Whether a line ends with its HMAC.
fn is_own(line: &[u8], key: Option<&[u8]>) -> bool {
    let signed = std::str::from_utf8(line).ok().and_then(|line| line.rsplit_once(MAC));
    signed.zip(key).is_some_and(|((record, end), key)| {
        end.strip_suffix("\"}") == Some(&hmac_sha256(key, format!("{record}}}").as_bytes()))
    })
}

/// The key of this user's results, which is made for the first ones; the error is why there is
/// none.
fn key(data: Option<&Path>) -> std::result::Result<Vec<u8>, String> {
    let data = data.ok_or("HOME is not set")?;
    let failed = |error: OpenError| format!("`{}`: {error}", data.join(KEY_FILE).display());
    let read = || {
        DirBuilder::new().recursive(true).mode(0o700).create(data)?;
        let root = Root::open(data)?;
        let open = root.file(KEY_FILE).or_else(|_| {
            let key = random::uuid()? + &random::uuid()?;
            match root.save(KEY_FILE, None, key.as_bytes(), false) {
                // Another process was faster.
                Ok(_) | Err(OpenError::Changing) => root.file(KEY_FILE),
                Err(error) => Err(error),
            }
        });
        Ok(read_whole(&open?, limits::EVAL_KEY_BYTES)?.bytes)
    };
    let key = read().map_err(failed)?;
    if key.len() < limits::EVAL_KEY_BYTES {
        return Err(failed(OpenError::Io(std::io::Error::other("it is damaged: delete it"))));
    }
    Ok(key)
}

/// Creates the folders that are missing on a path below a folder, without following links.
pub(super) fn create_below(folder: &Path, below: &Path) -> std::io::Result<()> {
    let mut path = folder.to_path_buf();
    for name in below {
        path.push(name);
        match path.symlink_metadata() {
            Err(error) if error.kind() == ErrorKind::NotFound => fs::create_dir(&path)?,
            Ok(meta) if !meta.is_dir() => {
                let text = format!("{} is not a folder", path.display());
                return Err(std::io::Error::other(text));
            }
            Err(error) => return Err(error),
            Ok(_) => {}
        }
    }
    Ok(())
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

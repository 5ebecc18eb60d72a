//! `trust`, and the trust in `./.env`: whether another author may have written it, and the records
//! of files that the user has accepted (`trust`) or declined.

use std::fs::{self, DirBuilder, Metadata};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::cli::startup::Startup;
use crate::cli::values::usage;
use crate::ui::Output;
use base::digest::sha256;
use base::dotenv::DotenvProblem;
use base::error::{Error, ErrorKind, Fault, Result};
use base::limits;
use base::settings::{EnvFile, FolderTrust, Settings};
use base::text::one_line;
use host::cancellation::Cancellation;
use host::confined::identity;
use host::files::{OtherWriter, effective_user, open_regular, write_new, writer_beside_user};
use host::git_index;
use host::process::is_in_script;
use host::terminal;

/// Records that the user accepts the file, and prints what it sets.
pub(super) fn run(
    folder: Option<&str>,
    settings: &Settings,
    startup: &Startup,
    output: &mut Output,
) -> Result<()> {
    if is_in_script() {
        let message = "failed to accept .env: only the user can, not a script or command";
        return Err(Error::new(ErrorKind::Usage, message)
            .with_hint("tell the user to run: skills-runner trust"));
    }
    let named = startup.folder.join(folder.unwrap_or(""));
    let folder = if named.ends_with(".env") { named.parent().unwrap_or(&named) } else { &named };
    let path = folder.join(".env");
    if path.symlink_metadata().is_err() {
        return Err(usage(format!("there is no .env in {}", folder.display())));
    }
    let failed = |cause: &str| usage(format!("failed to read `{}`: {cause}", path.display()));
    let file = FolderFile::read(folder).map_err(|cause| failed(&cause))?;
    let lines = file.shown_settings().map_err(|problem| failed(&problem.to_string()))?;
    TrustRecords::new(settings).add(Answer::Accepted, &file)?;
    let start = format!("accepted {}, until it is changed:", file.path.display());
    output.print(&lines.iter().fold(start, |text, line| format!("{text}\n{line}")));
    Ok(())
}

/// `./.env` as it was read.
pub(super) struct FolderFile {
    /// The absolute path, without links in the folder.
    pub path: PathBuf,
    /// The contents.
    pub bytes: Vec<u8>,
    /// The properties of the opened file.
    meta: Metadata,
}

impl FolderFile {
    /// Reads the file in this folder. The error is the cause in words.
    pub(super) fn read(folder: &Path) -> std::result::Result<FolderFile, String> {
        let folder = folder.canonicalize().unwrap_or(folder.to_path_buf());
        let path = folder.join(".env");
        let read = || -> io::Result<FolderFile> {
            let file = open_regular(&path)?;
            let meta = file.metadata()?;
            let mut bytes = Vec::new();
            file.take(limits::ENV_FILE_BYTES as u64 + 1).read_to_end(&mut bytes)?;
            Ok(FolderFile { path: path.clone(), bytes, meta })
        };
        let file = read().map_err(|error| error.to_string())?;
        if file.bytes.len() > limits::ENV_FILE_BYTES {
            return Err(format!("it is larger than {} bytes", limits::ENV_FILE_BYTES));
        }
        Ok(file)
    }

    /// Why the file may have another author.
    fn foreign_author(&self) -> Option<String> {
        let real = self.path.canonicalize().unwrap_or(self.path.clone());
        if git_index::is_tracked(&self.path) || git_index::is_tracked(&real) {
            return Some("git tracks it, or its index cannot be read".into());
        }
        let owner = self.meta.uid();
        let other = match writer_beside_user(&self.meta) {
            None if owner != effective_user() => Some(OtherWriter::Owner(owner)),
            Some(OtherWriter::Owner(_)) if effective_user() == 0 => {
                let folder = self.path.parent().and_then(|folder| folder.metadata().ok());
                let is_same =
                    |folder: &Metadata| folder.uid() == owner && folder.mode() & 0o022 == 0;
                (!folder.as_ref().is_some_and(is_same)).then_some(OtherWriter::Owner(owner))
            }
            other => other,
        };
        other.map(|other| match other {
            OtherWriter::Owner(_) => other.to_string(),
            _ => format!("{other} (`chmod go-w .env` ends that)"),
        })
    }

    /// The settings of the file and what is invalid in it, a line each, without secrets.
    pub(super) fn shown_settings(&self) -> std::result::Result<Vec<String>, DotenvProblem> {
        let file = EnvFile::of_folder(&self.bytes, &FolderTrust::Accepted, &|_| None)?;
        let faults: Vec<Fault> = file.notices.iter().cloned().chain(file.skipped_lines()).collect();
        let mut settings = Settings::default();
        settings.add_file(file);
        let set = settings.display_values();
        let set = set.filter_map(|it| Some(format!("{}={}", it.setting.name, it.value?.0)));
        let lines = set.chain(faults.into_iter().map(|fault| fault.message));
        Ok(lines.map(|line| format!("  {}", one_line(&line, limits::LINE_BYTES))).collect())
    }

    /// Decides whether the user trusts the file. On a terminal a file that another author may have
    /// written is asked about, once.
    pub(super) fn trust(
        &self,
        settings: &Settings,
        cancellation: &Cancellation,
    ) -> Result<FolderTrust> {
        let records = TrustRecords::new(settings);
        let own = settings.xdg_folder("XDG_CONFIG_HOME", ".config");
        let is_own = own.is_some_and(|own| {
            let found = identity(own.join("skills-runner/.env"));
            found.is_some() && found == Some((self.meta.dev(), self.meta.ino()))
        });
        if is_own || records.has(Answer::Accepted, self) {
            return Ok(FolderTrust::Accepted);
        }
        let Some(reason) = self.foreign_author() else {
            return Ok(FolderTrust::Unknown);
        };
        if !Output::can_ask() || is_in_script() || records.has(Answer::Declined, self) {
            return Ok(FolderTrust::Refused(reason));
        }
        let lines = self.shown_settings().unwrap_or_default().join("\n");
        let question = format!(
            "{}: {reason}, so it may not be yours. It sets:\n{lines}\nAccept it as your own, until it is changed? [y/N] ",
            one_line(&self.path.to_string_lossy(), limits::LINE_BYTES)
        );
        let reply = terminal::ask(&question, cancellation, false)?;
        let is_yes = matches!(reply.to_ascii_lowercase().as_str(), "y" | "yes");
        let answer = if is_yes { Answer::Accepted } else { Answer::Declined };
        let recorded = records.add(answer, self);
        if !is_yes {
            return Ok(FolderTrust::Refused(reason));
        }
        recorded.map(|()| FolderTrust::Accepted)
    }
}

/// The user's answer about a file.
#[derive(Clone, Copy)]
pub(super) enum Answer {
    Accepted,
    Declined,
}

/// A folder of the user's with a file for each answer. Its name is a digest of path and contents,
/// so that a change of either ends the trust.
pub(super) struct TrustRecords {
    folder: Option<PathBuf>,
}

impl TrustRecords {
    pub(super) fn new(settings: &Settings) -> TrustRecords {
        let state = settings.xdg_folder("XDG_STATE_HOME", ".local/state");
        TrustRecords { folder: state.map(|state| state.join("skills-runner")) }
    }

    fn path(&self, answer: Answer, file: &FolderFile) -> Option<PathBuf> {
        let name = match answer {
            Answer::Accepted => "trusted",
            Answer::Declined => "declined",
        };
        let key = [file.path.as_os_str().as_bytes(), b"\0", &file.bytes].concat();
        Some(self.folder.as_ref()?.join(name).join(sha256(&key)))
    }

    fn has(&self, answer: Answer, file: &FolderFile) -> bool {
        self.path(answer, file).is_some_and(|path| path.exists())
    }

    /// Records an answer, in place of the other one.
    pub(super) fn add(&self, answer: Answer, file: &FolderFile) -> Result<()> {
        let failed = |cause: &str| {
            let message =
                format!("failed to record the answer for {}: {cause}", file.path.display());
            Error::new(ErrorKind::Io, message)
        };
        let path = self.path(answer, file).ok_or_else(|| failed("HOME is not set"))?;
        let folder = path.parent().unwrap_or(&path);
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .and_then(|()| write_new(&path, file.path.as_os_str().as_bytes()))
            .map_err(|error| failed(&error.to_string()))?;
        let other = match answer {
            Answer::Accepted => Answer::Declined,
            Answer::Declined => Answer::Accepted,
        };
        self.path(other, file).map_or(Ok(()), |old| match fs::remove_file(old) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(failed(&error.to_string()))
            }
            _ => Ok(()),
        })
    }
}

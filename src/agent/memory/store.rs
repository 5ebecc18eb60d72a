//! The facts file on disk. Several processes may change it at the same time.
//!
//! Every change happens under a lock on the folder, on contents that were read under the
//! lock. The new contents are written to a temporary file that then replaces the file in one
//! step, so that the file is always complete. Links are not followed, and a read-only file
//! stays as it is.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use crate::memory::create_private_folder;
use crate::memory::fact::{Fact, normalize_content, normalize_new_content};
use crate::memory::facts::{FactChange, Facts, NewFact};
use crate::memory::similar;
use base::error::{Error, ErrorKind, Result};
use base::limits;
use base::text::truncate;
use host::cancellation::{Cancellation, StopReason};
use host::clock::LocalTime;
use host::confined::{OpenError, Root};
use host::files::{effective_user, read_whole};
use host::lock::{lock_file, wait_for_other_writers};

/// The memory between conversations: a facts file.
#[derive(Clone, Copy, Debug)]
pub struct Memory<'m> {
    /// The path (`MEMORY_PATH`); the file may not exist yet.
    pub path: &'m Path,
    /// Signals and the deadline of the run.
    pub cancellation: &'m Cancellation,
}

/// A change at this time: returns its result and the new contents of the file.
type FactsEdit<'e, T> = &'e dyn Fn(&Facts, &str) -> Result<(T, Vec<u8>)>;

/// The result of adding a fact.
#[derive(Clone, Debug)]
pub struct AddedFact {
    /// The fact as it is stored.
    pub content: String,
    /// The change of the file.
    pub change: FactChange,
    /// Similar facts that stay.
    pub similar: Vec<String>,
}

impl Memory<'_> {
    /// Reads all facts; empty if there is no file.
    pub fn read(&self) -> Result<Facts> {
        self.parse(self.bytes("read")?, "read")
    }

    /// The facts for the system prompt: see [`Facts::for_prompt`].
    pub fn for_prompt(&self) -> Result<String> {
        Ok(self.read()?.for_prompt(limits::FACTS_PROMPT_BYTES))
    }

    /// Stores a fact. It replaces the fact that `replaces` names, or else an older version.
    /// It is on the disk when this returns.
    pub fn add(
        &self,
        text: &str,
        important: bool,
        replaces: Option<&str>,
        source: &str,
    ) -> Result<AddedFact> {
        let content = normalize_new_content(text);
        let cause = match content.len() {
            0 => "it is empty".to_string(),
            length if length > limits::FACT_BYTES => {
                format!("it has {length} bytes, and a fact at most {}", limits::FACT_BYTES)
            }
            _ => String::new(),
        };
        if !cause.is_empty() {
            let error = Error::new(ErrorKind::Usage, format!("failed to store the fact: {cause}"));
            return Err(error.with_hint("a fact is one short sentence"));
        }
        let (change, similar) = self.change(&|facts, time| {
            let (content, source) = (content.as_str(), source);
            let old = match replaces {
                Some(text) => Some(named_fact(facts, &normalize_content(text))?),
                None => None,
            };
            let new = NewFact { content, important, source, time, replaced: old };
            let added = facts.with_fact(&new);
            let (change, bytes) = added.map_err(|cause| self.error("change", cause))?;
            let replaced_line = match &change {
                FactChange::Replaced(old) => Some(old.line),
                FactChange::Known | FactChange::Added => None,
            };
            let similar = similar::similar_others(facts.all(), content, replaced_line);
            Ok(((change, similar), bytes))
        })?;
        Ok(AddedFact { content, change, similar })
    }

    /// Removes the fact with this number and returns it.
    pub fn remove(&self, number: usize) -> Result<Fact> {
        self.change(&|facts, time| {
            let found = facts.without_fact(number, time).map(|(fact, bytes)| (fact.clone(), bytes));
            found.ok_or_else(|| {
                let count = base::text::counted(facts.all().len(), "fact");
                let text = format!("failed to remove the fact {number}: there is no such number");
                Error::new(ErrorKind::Usage, text)
                    .with_hint(format!("`skills-runner facts list` shows the numbers ({count})"))
            })
        })
    }

    /// Changes the file under the lock.
    fn change<T>(&self, edit: FactsEdit<'_, T>) -> Result<T> {
        let (folder, name) = self.folder_and_name()?;
        let (locked, is_locked) = self.lock(folder)?;
        let mut tries = limits::MEMORY_TRIES;
        loop {
            let old = self.bytes("change")?;
            let facts = self.parse(old.clone(), "change")?;
            let (done, new) = edit(&facts, &LocalTime::now().stamp)?;
            if old.as_deref().unwrap_or_default() == new {
                return Ok(done);
            }
            if new.len() > limits::FACTS_FILE_BYTES {
                return Err(self.too_large("change", "it would be larger than"));
            }
            self.check_mode()?;
            let root = Root::open(folder).map_err(|error| self.open_error(&error))?;
            match root.save(name, old.as_deref(), &new, is_locked) {
                // An editor, which takes no lock, has saved the file.
                Err(OpenError::Changing) if tries > 0 => tries -= 1,
                Err(error) => return Err(self.open_error(&error)),
                Ok(replaced) => {
                    let synced = match locked.sync_all() {
                        // Not every file system supports this.
                        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
                        synced => synced,
                    };
                    let taken = replaced.map_or(Ok(()), |replaced| {
                        self.append_late_writes(&replaced, old.map_or(0, |old| old.len()))
                    });
                    let both = synced.and(taken);
                    return both
                        .map(|()| done)
                        .map_err(|error| self.error("change", &error.to_string()));
                }
            }
        }
    }

    /// Appends to the new file what another process has appended to the replaced one, which
    /// it had opened before. `length`: the bytes of the replaced file that were read.
    fn append_late_writes(&self, mut replaced: &File, length: usize) -> std::io::Result<()> {
        wait_for_other_writers(replaced, limits::MEMORY_LATE_WRITES, self.cancellation);
        let mut tail = Vec::new();
        replaced.seek(SeekFrom::Start(length as u64))?;
        let most = limits::FACTS_FILE_BYTES as u64;
        replaced.take(most).read_to_end(&mut tail)?;
        if tail.is_empty() {
            return Ok(());
        }
        // In append mode, because other processes may append at the same time.
        let mut options = OpenOptions::new();
        options.append(true).custom_flags(libc::O_NOFOLLOW);
        let mut file = options.open(self.path)?;
        file.write_all(&tail)?;
        file.sync_all()
    }

    /// The folder, which is created if needed, and the name of the file.
    fn folder_and_name(&self) -> Result<(&Path, &str)> {
        let name = self.path.file_name().and_then(|name| name.to_str());
        let (Some(folder), Some(name)) = (self.path.parent(), name) else {
            return Err(self.error("change", "this is not a file name"));
        };
        create_private_folder(folder).map_err(|error| {
            let text = format!("failed to create the folder `{}`: {error}", folder.display());
            Error::new(ErrorKind::Io, text).with_hint("MEMORY_PATH names a file in it")
        })?;
        Ok((folder, name))
    }

    /// Opens the folder and tries to lock it; false if it cannot be locked, as in some
    /// network file systems.
    fn lock(&self, folder: &Path) -> Result<(File, bool)> {
        let locked = File::open(folder).and_then(|file| {
            let is_locked = lock_file(&file, limits::MEMORY_LOCK, self.cancellation)?;
            Ok((file, is_locked))
        });
        locked.map_err(|error| match StopReason::from_io_error(&error) {
            Some(stop) => stop.into(),
            None if error.kind() == io::ErrorKind::WouldBlock => {
                let text = self.error("change", "another process keeps its folder locked");
                Error::new(ErrorKind::Temporary, text.message())
            }
            None => self.error("change", &error.to_string()),
        })
    }

    /// The bytes of the file; `None` if it does not exist.
    fn bytes(&self, verb: &str) -> Result<Option<Vec<u8>>> {
        match fs::symlink_metadata(self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.error(verb, &error.to_string())),
            Ok(meta) if meta.is_symlink() => {
                let target = fs::read_link(self.path).unwrap_or_default();
                let hint = format!("set MEMORY_PATH to the file itself: {}", target.display());
                return Err(self.error(verb, "it is a link").with_hint(hint));
            }
            Ok(meta) if meta.is_file() && meta.len() > limits::FACTS_FILE_BYTES as u64 => {
                return Err(self.too_large(verb, "it is larger than"));
            }
            Ok(_) => {}
        }
        let bytes = read_whole(self.path, limits::FACTS_FILE_BYTES);
        bytes.map(Some).map_err(|cause| self.error(verb, &cause))
    }

    fn parse(&self, bytes: Option<Vec<u8>>, verb: &str) -> Result<Facts> {
        Facts::parse(bytes.unwrap_or_default()).map_err(|cause| {
            self.error(verb, cause).with_hint(
                "set MEMORY_PATH to a file of its own, which starts with the lines `---`, `type: memory`, `---`",
            )
        })
    }

    /// Checks that the file may be replaced: not if it is read-only or belongs to another
    /// user, even for the superuser.
    fn check_mode(&self) -> Result<()> {
        let Ok(meta) = fs::symlink_metadata(self.path) else {
            return Ok(());
        };
        if meta.mode() & 0o222 == 0 {
            return Err(self.open_error(&OpenError::Denied));
        }
        if meta.uid() != effective_user() {
            // The new file would belong to this user, and the other user would lose access.
            let error = self.error("change", "it belongs to another user");
            return Err(error.with_hint(
                "run the program as its owner, or set MEMORY_PATH to a file of your own",
            ));
        }
        Ok(())
    }

    fn open_error(&self, error: &OpenError) -> Error {
        match error {
            OpenError::Denied => self
                .error("change", "it is not writable")
                .with_hint("`chmod u+w` allows it; the folder must be writable, too"),
            error => self.error("change", &error.user_message()),
        }
    }

    fn too_large(&self, verb: &str, comparison: &str) -> Error {
        let cause = format!("{comparison} {} bytes", limits::FACTS_FILE_BYTES);
        self.error(verb, &cause).with_hint(
            "remove facts that are not needed any more, or set MEMORY_PATH to another file",
        )
    }

    fn error(&self, verb: &str, cause: &str) -> Error {
        let path = self.path.display();
        Error::new(ErrorKind::Io, format!("failed to {verb} the facts `{path}`: {cause}"))
    }
}

/// The fact that a text names.
fn named_fact<'f>(facts: &'f Facts, text: &str) -> Result<&'f Fact> {
    similar::named(facts.all(), text).map_err(|(cause, hint)| {
        let shown = truncate(text, limits::FACT_BYTES);
        let text = format!("failed to replace the fact `{shown}`: {cause}");
        Error::new(ErrorKind::Usage, text).with_hint(hint)
    })
}

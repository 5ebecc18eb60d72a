//! The file of facts on the disk: read, and changed by several writers at once.
//!
//! Every change happens under a lock on the folder, on what is read there and
//! then; the new content is written beside the file and takes its name in one
//! step, so that the file is whole whenever somebody is killed. Links are never
//! followed, and a file that is read-only stays as it is.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use crate::error::{Error, ErrorKind, Result};
use crate::limits;
use crate::memory::CreatedFolders;
use crate::memory::facts::{self, Fact, FactChange, Facts, NewFact};
use crate::text::cut;
use crate::world::cancellation::{Cancellation, StopReason};
use crate::world::clock::LocalTime;
use crate::world::confined::{OpenError, Root};
use crate::world::files::{read_whole, user};
use crate::world::lock::take_file;

/// The memory between conversations: a file of facts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory<'m> {
    /// Where it is (`MEMORY_PATH`); it need not be there yet.
    pub path: &'m Path,
    /// Signals and the deadline of the run.
    pub cancellation: &'m Cancellation,
}

/// A change at this time: what is told of it, and the new content of the file.
type FactsEdit<'e, T> = &'e dyn Fn(&Facts, &str) -> Result<(T, Vec<u8>)>;

/// What became of a new fact.
#[derive(Clone, Debug)]
pub(crate) struct AddedFact {
    /// The fact as it is stored.
    pub content: String,
    /// Whether it replaced another, or was known.
    pub change: FactChange,
    /// Facts that are near it and stay.
    pub near: Vec<String>,
}

/// What helps a file over its bound.
const TOO_LARGE: &str = "take out what is no use any more, or set MEMORY_PATH to another file";

impl Memory<'_> {
    /// Every fact there is; none where there is no file.
    pub(crate) fn read(&self) -> Result<Facts> {
        self.parse(self.bytes("read")?, "read")
    }

    /// What a model is told at the beginning of a conversation: see
    /// [`Facts::for_prompt`].
    pub(crate) fn for_prompt(&self) -> Result<String> {
        Ok(self.read()?.for_prompt(limits::FACTS_PROMPT_BYTES))
    }

    /// Writes a fact down, in place of the one that `replaces` names, or else of
    /// one that it is a newer version of. It is on the disk when this returns.
    pub(crate) fn add(
        &self,
        text: &str,
        important: bool,
        replaces: Option<&str>,
        source: &str,
    ) -> Result<AddedFact> {
        let content = facts::new_content(text);
        let fault = match content.len() {
            0 => "it is empty".to_string(),
            length if length > limits::FACT_BYTES => {
                format!("it has {length} bytes, and a fact at most {}", limits::FACT_BYTES)
            }
            _ => String::new(),
        };
        if !fault.is_empty() {
            let error = Error::new(ErrorKind::Usage, format!("failed to store the fact: {fault}"));
            return Err(error.with_hint("a fact is one short sentence"));
        }
        let (change, near) = self.change(&|facts, time| {
            let (content, source) = (content.as_str(), source);
            let new = NewFact { content, important, source, time, replaced: None };
            let named = replaces.map(facts::content).map(|text| {
                facts.named(&text).map_err(|(cause, hint)| {
                    let shown = cut(&text, limits::FACT_BYTES);
                    let text = format!("failed to replace the fact `{shown}`: {cause}");
                    Error::new(ErrorKind::Usage, text).with_hint(hint)
                })
            });
            let old = named.transpose()?;
            let text = |cause: String| {
                let hint = "begin a section `## Recent` at its end, with nothing indented below";
                self.error("change", &cause).with_hint(hint)
            };
            let (change, bytes) = facts.with(&NewFact { replaced: old, ..new }).map_err(text)?;
            let near = facts.others(content, &change);
            Ok(((change, near), bytes))
        })?;
        Ok(AddedFact { content, change, near })
    }

    /// Takes a fact away, by its number, and returns it.
    pub(crate) fn remove(&self, number: usize) -> Result<Fact> {
        self.change(&|facts, time| {
            let found = facts.without(number, time).map(|(fact, bytes)| (fact.clone(), bytes));
            found.ok_or_else(|| {
                let count = crate::text::counted(facts.all().len(), "fact");
                let text = format!("failed to remove the fact {number}: there is no such number");
                Error::new(ErrorKind::Usage, text)
                    .with_hint(format!("`skills-runner facts list` shows the numbers ({count})"))
            })
        })
    }

    /// Changes the file under the lock.
    fn change<T>(&self, edit: FactsEdit<'_, T>) -> Result<T> {
        let (folder, name, made) = self.place()?;
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
                let full = format!("it would be larger than {} bytes", limits::FACTS_FILE_BYTES);
                return Err(self.error("change", &full).with_hint(TOO_LARGE));
            }
            self.check_mode()?;
            let root = Root::open(folder).map_err(|refusal| self.refused(&refusal))?;
            match root.save(name, old.as_deref(), &new, is_locked) {
                // An editor that takes no lock has saved it meanwhile.
                Err(OpenError::Changing) if tries > 0 => tries -= 1,
                Err(refusal) => return Err(self.refused(&refusal)),
                Ok(replaced) => {
                    made.keep();
                    let synced = match locked.sync_all() {
                        // Not every file system knows how.
                        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
                        synced => synced,
                    };
                    let taken = replaced.map_or(Ok(()), |replaced| {
                        self.take_over(&replaced, old.map_or(0, |old| old.len()))
                    });
                    let both = synced.and(taken);
                    return both
                        .map(|()| done)
                        .map_err(|error| self.error("change", &error.to_string()));
                }
            }
        }
    }

    /// What somebody has appended to the replaced file, who opened it just before,
    /// comes behind what is there now. `length`: how much of it was known.
    fn take_over(&self, mut replaced: &File, length: usize) -> std::io::Result<()> {
        let mut tail = Vec::new();
        replaced.seek(SeekFrom::Start(length as u64))?;
        let most = limits::FACTS_FILE_BYTES as u64;
        replaced.take(most).read_to_end(&mut tail)?;
        if tail.is_empty() {
            return Ok(());
        }
        // Appended as they do it: others may append at the same time.
        let mut options = OpenOptions::new();
        options.append(true).custom_flags(libc::O_NOFOLLOW);
        let mut file = options.open(self.path)?;
        file.write_all(&tail)?;
        file.sync_all()
    }

    /// The folder, which is made if need be, and the file's name.
    fn place(&self) -> Result<(&Path, &str, CreatedFolders)> {
        let name = self.path.file_name().and_then(|name| name.to_str());
        let (Some(folder), Some(name)) = (self.path.parent(), name) else {
            return Err(self.error("change", "this is no name for a file"));
        };
        let made = CreatedFolders::folder(folder).map_err(|error| {
            let text = format!("failed to make the folder `{}`: {error}", folder.display());
            Error::new(ErrorKind::Io, text).with_hint("MEMORY_PATH names a file in it")
        })?;
        Ok((folder, name, made))
    }

    /// The folder, and whether nobody else writes now: some network file systems
    /// lock nothing.
    fn lock(&self, folder: &Path) -> Result<(File, bool)> {
        let locked = File::open(folder).and_then(|file| {
            let is_locked = take_file(&file, limits::MEMORY_LOCK, self.cancellation)?;
            Ok((file, is_locked))
        });
        locked.map_err(|error| match StopReason::within(&error) {
            Some(stop) => stop.into(),
            None if error.kind() == io::ErrorKind::WouldBlock => {
                let text = self.error("change", "somebody else keeps its folder locked");
                Error::new(ErrorKind::Temporary, text.message())
            }
            None => self.error("change", &error.to_string()),
        })
    }

    /// What is in the file; `None` where there is none.
    fn bytes(&self, verb: &str) -> Result<Option<Vec<u8>>> {
        match fs::symlink_metadata(self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.error(verb, &error.to_string())),
            Ok(meta) if meta.is_symlink() => {
                let error = self.error(verb, "it is a link");
                return Err(match fs::canonicalize(self.path) {
                    Ok(real) => error.with_hint(format!(
                        "set MEMORY_PATH to the file itself: {}",
                        real.display()
                    )),
                    Err(_) => {
                        error.with_hint("it leads nowhere: remove it, or set MEMORY_PATH to a file")
                    }
                });
            }
            Ok(meta) if !meta.is_file() => {
                let error = self.error(verb, "it is no regular file");
                return Err(error.with_hint("set MEMORY_PATH to a file"));
            }
            Ok(_) => {}
        }
        let bytes = read_whole(self.path, limits::FACTS_FILE_BYTES);
        bytes.map(Some).map_err(|cause| {
            let error = self.error(verb, &cause);
            let length = fs::metadata(self.path).map_or(0, |meta| meta.len());
            if length > limits::FACTS_FILE_BYTES as u64 {
                return error.with_hint(TOO_LARGE);
            }
            error
        })
    }

    fn parse(&self, bytes: Option<Vec<u8>>, verb: &str) -> Result<Facts> {
        let bytes = bytes.unwrap_or_default();
        // To begin a picture with other lines would break it.
        let is_text = !bytes.contains(&0) && std::str::from_utf8(&bytes).is_ok();
        Facts::parse(bytes).map_err(|cause| {
            self.error(verb, cause).with_hint(if is_text {
                "set MEMORY_PATH to a file of its own, or begin this one with the lines `---`, `type: memory`, `---`"
            } else {
                "it is no text: set MEMORY_PATH to a file of its own"
            })
        })
    }

    /// A file that is read-only, or another user's, is not replaced, not by the
    /// superuser either.
    fn check_mode(&self) -> Result<()> {
        let Ok(meta) = fs::symlink_metadata(self.path) else {
            return Ok(());
        };
        if meta.mode() & 0o222 == 0 {
            return Err(self.refused(&OpenError::Denied));
        }
        if meta.uid() != user() {
            // The new file would be ours, and the other user locked out.
            let error = self.error("change", "it belongs to another user");
            return Err(error.with_hint(
                "run the program as its owner, or set MEMORY_PATH to a file of your own",
            ));
        }
        Ok(())
    }

    fn refused(&self, refusal: &OpenError) -> Error {
        match refusal {
            OpenError::Denied => self
                .error("change", "it may not be written")
                .with_hint("`chmod u+w` allows it; the folder must be writable, too"),
            refusal => self.error("change", &refusal.for_people()),
        }
    }

    fn error(&self, verb: &str, cause: &str) -> Error {
        let path = self.path.display();
        Error::new(ErrorKind::Io, format!("failed to {verb} the facts `{path}`: {cause}"))
    }
}

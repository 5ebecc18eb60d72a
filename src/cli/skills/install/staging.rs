//! Changes of a skills folder that are made whole or not at all.
//!
//! New skills are prepared in a temporary folder, where the user can look at them as long as
//! needed. Then they and the new lock file are written to a hidden folder in the skills folder,
//! which is locked. Renaming that folder decides: before, a change that was interrupted is undone;
//! afterwards it is finished, by the next command if need be, if the user's data has its record
//! ([`ChangeRecord`]). Each skill is put in its place by one rename.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::cli::skills::install::record::ChangeRecord;
use crate::cli::skills::install::tree::{SkillFile, SourceTree};
use ::skills::lock_file::{
    FileDigests, LOCK_FILE_NAME, LockFile, LockFileError, copy_digest, file_digests, has_below,
    is_left_out,
};
use base::limits;
use host::cancellation::{Cancellation, StopReason};
use host::confined::{EntryKind, FilePlace, OpenError, Root};
use host::files::{exchange, sync_file_system, with_writable_folders};
use host::lock::FolderLock;
use host::scratch::Scratch;

/// The hidden folder, and the folders in it: before and after the decision.
const INSTALL_FOLDER: &str = ".skills-runner-install";
const NEW: &str = "new";
const DECIDED: &str = "decided";

/// The places of a change.
pub(crate) struct StagingPlaces<'p> {
    /// The skills folder.
    pub folder: &'p Path,
    /// The folder for temporary files.
    pub temporary: &'p Path,
    /// The folder of the program's data.
    pub data: Option<&'p Path>,
}

/// A change of a skills folder that is being prepared in a temporary folder. The skills folder is
/// locked only while it is changed.
pub(crate) struct Staging {
    folder: PathBuf,
    /// The skills folder, if it was there.
    root: Option<Root>,
    scratch: Scratch,
    data: Option<PathBuf>,
}

/// Plan of a change: the skills that are installed, with their files, and those that are replaced
/// or removed, which must not be set up at the same time.
pub(crate) struct StagedChange<'c> {
    /// The skills that are written, by name.
    pub installed: Vec<(&'c str, &'c FileDigests)>,
    /// The names of those that are replaced or removed.
    pub changed: &'c [String],
    /// Makes the new lock file of the present one; `None` if the skills are not as the user saw
    /// them any more.
    pub renew: &'c dyn Fn(&Root, LockFile) -> Option<LockFile>,
}

impl Staging {
    /// Waits until no other command changes the skills folder, if it exists, and finishes or undoes
    /// an interrupted change. The error of a wait carries its reason.
    pub(crate) fn open(
        places: &StagingPlaces<'_>,
        cancellation: &Cancellation,
        on_wait: &mut dyn FnMut(),
    ) -> io::Result<Staging> {
        let StagingPlaces { folder, temporary, data } = *places;
        let root = match Root::open(folder) {
            Err(OpenError::NotFound) => None,
            root => Some(root.map_err(to_io_error)?),
        };
        if root.is_some() && FolderLock::acquire(folder, cancellation, on_wait)?.is_held() {
            finish_interrupted(folder, data)?;
        }
        let (scratch, data) = (Scratch::new(temporary)?, data.map(Path::to_path_buf));
        Ok(Staging { folder: folder.into(), root, scratch, data })
    }

    /// The lock file.
    pub(crate) fn lock_file(&self) -> Result<LockFile, LockFileError> {
        self.root.as_ref().map_or_else(|| Ok(LockFile::default()), LockFile::read)
    }

    /// Finishes or undoes an interrupted change of this user, unless another command is at work
    /// there.
    pub(crate) fn recover(folder: &Path, data: Option<&Path>) -> io::Result<()> {
        if folder.join(INSTALL_FOLDER).symlink_metadata().is_err() {
            return Ok(());
        }
        let now = Cancellation { deadline: Some(Instant::now()), ..Cancellation::never() };
        match FolderLock::acquire(folder, &now, &mut || {}) {
            Ok(lock) if lock.is_held() => finish_interrupted(folder, data),
            Err(error) if StopReason::from_io_error(&error).is_none() => Err(error),
            // Another command may be at work.
            _ => Ok(()),
        }
    }

    /// The folder that holds the prepared skills.
    pub(crate) fn new_folder(&self) -> &Path {
        self.scratch.path()
    }

    /// The skills folder, if it was there at the start.
    pub(crate) fn root(&self) -> Option<&Root> {
        self.root.as_ref()
    }

    /// Writes skills, each with its name and files, and returns the digests of the files.
    pub(super) fn add(
        &self,
        tree: &SourceTree,
        skills: &[(String, Vec<SkillFile>)],
        cancellation: &Cancellation,
    ) -> io::Result<BTreeMap<String, FileDigests>> {
        let mut digests: BTreeMap<String, FileDigests> = BTreeMap::new();
        let mut wanted: BTreeMap<String, Vec<(&String, &String)>> = BTreeMap::new();
        for (name, file) in
            skills.iter().flat_map(|(name, all)| all.iter().map(move |it| (name, it)))
        {
            wanted.entry(file.source.clone()).or_default().push((name, &file.path));
        }
        if wanted.values().map(Vec::len).sum::<usize>() > limits::INSTALLED_FILES {
            let text = format!("the skills have more than {} files", limits::INSTALLED_FILES);
            return Err(io::Error::other(text));
        }
        let new = Root::open(self.new_folder()).map_err(to_io_error)?;
        let mut left = limits::INSTALLED_BYTES;
        tree.read(wanted, cancellation, &mut |places, is_executable, content| {
            let mode = if is_executable { 0o777 } else { 0o666 };
            let path = |(name, file): (&String, &String)| format!("{name}/{file}");
            let create = |place| {
                let place = new.place(&path(place)).and_then(FilePlace::create_folders);
                place.and_then(|place| place.create(mode)).map_err(to_io_error)
            };
            let [first, others @ ..] = places.as_slice() else { return Ok(()) };
            let mut file = create(*first)?;
            let digest = copy_digest(&mut content.take(left + 1), &mut file)?;
            // What links led to is copied.
            let size = file.metadata()?.len().saturating_mul(places.len() as u64);
            let too_large = || io::Error::other("the skills are larger than 64 MiB");
            left = left.checked_sub(size).ok_or_else(too_large)?;
            for other in others {
                cancellation.check()?;
                let mut copied = new.file(path(*first)).map_err(to_io_error)?;
                io::copy(&mut copied, &mut create(*other)?)?;
            }
            for (name, path) in places {
                digests.entry(name.clone()).or_default().insert(path.clone(), digest.clone());
            }
            Ok(())
        })?;
        Ok(digests)
    }

    /// Removes a prepared skill that is not installed after all.
    pub(crate) fn discard(&self, name: &str) {
        let _ = fs::remove_dir_all(self.new_folder().join(name));
    }

    /// Locks the skills folder, which is created if it is missing, puts the prepared skills in
    /// their places, removes those that only the old lock file has, and replaces the lock file.
    /// After an error everything is as before, or the next command finishes the change; the error
    /// says which.
    pub(crate) fn commit(
        &self,
        change: &StagedChange<'_>,
        cancellation: &Cancellation,
        on_wait: &mut dyn FnMut(),
    ) -> io::Result<()> {
        let _locked =
            LockedFolder::create(&self.folder, self.data.as_deref(), cancellation, on_wait)?;
        let root = Root::open(&self.folder).map_err(to_io_error)?;
        let new = self.folder.join(INSTALL_FOLDER).join(NEW);
        for (name, path) in change
            .installed
            .iter()
            .flat_map(|(name, files)| files.keys().map(move |path| (name, path)))
        {
            cancellation.check()?;
            let path = Path::new(name).join(path);
            let to = new.join(&path);
            to.parent().map_or(Ok(()), fs::create_dir_all)?;
            fs::copy(self.new_folder().join(&path), to)?;
        }
        let places = change.changed.iter().map(|name| self.folder.join(name));
        let places = places.filter(|place| place.is_dir());
        let _locks: Vec<FolderLock> = places
            .map(|place| FolderLock::acquire(&place, cancellation, on_wait))
            .collect::<io::Result<_>>()?;
        cancellation.check()?;
        let old = LockFile::read(&root).map_err(io::Error::other)?;
        let lock = (change.renew)(&root, old);
        let lock = lock.ok_or_else(|| io::Error::other("a skill has just been changed"))?;
        let json = lock.to_json();
        if json.len() > limits::LOCK_FILE_BYTES {
            return Err(io::Error::other(format!("{LOCK_FILE_NAME} would be too large")));
        }
        let mut file = fs::File::create_new(new.join(LOCK_FILE_NAME))?;
        file.write_all(json.as_bytes())?;
        sync_file_system(&file)?;
        fs::rename(&new, self.folder.join(INSTALL_FOLDER).join(DECIDED))?;
        let done = finish(&self.folder)
            .and_then(|()| fs::File::open(&self.folder))
            .and_then(|folder| sync_file_system(&folder));
        done.map_err(|error| {
            io::Error::other(format!("{error}; the next `skills` command tries to finish it"))
        })
    }
}

/// A skills folder that is being changed, with the hidden folder in it. What was prepared there is
/// removed when this is dropped.
struct LockedFolder<'f> {
    folder: &'f Path,
    /// Folders that did not exist before, the outermost first.
    created: Vec<PathBuf>,
    record: ChangeRecord,
    _lock: FolderLock,
}

impl LockedFolder<'_> {
    fn create<'f>(
        folder: &'f Path,
        data: Option<&Path>,
        cancellation: &Cancellation,
        on_wait: &mut dyn FnMut(),
    ) -> io::Result<LockedFolder<'f>> {
        let mut created = missing_folders(folder);
        let lock = loop {
            if let Err(error) = fs::create_dir_all(folder) {
                remove_empty(&created);
                return Err(error);
            }
            let lock = FolderLock::acquire(folder, cancellation, on_wait)?;
            // Another command that created the folder may have removed it.
            if lock.is_of(folder) {
                break lock;
            }
        };
        // Where folders cannot be locked, it may be the change of another command.
        if lock.is_held() {
            finish_interrupted(folder, data)?;
        }
        let hidden = folder.join(INSTALL_FOLDER);
        let path = ChangeRecord::path(folder, data);
        created.extend(path.iter().filter_map(|it| it.parent()).flat_map(missing_folders));
        // Before there is something to drop, which would remove what another command prepared.
        let started = ChangeRecord::begin(path, hidden.clone());
        let record = started.inspect_err(|_| remove_empty(&created)).map_err(|error| {
            let text = "belongs to another command; if no other command runs, delete it";
            match error.kind() {
                io::ErrorKind::AlreadyExists => {
                    io::Error::other(format!("{} {text}", hidden.display()))
                }
                _ => error,
            }
        })?;
        let locked = LockedFolder { folder, created, record, _lock: lock };
        fs::create_dir(hidden.join(NEW))?;
        Ok(locked)
    }
}

impl Drop for LockedFolder<'_> {
    fn drop(&mut self) {
        let hidden = self.folder.join(INSTALL_FOLDER);
        let _ = fs::remove_dir_all(hidden.join(NEW));
        // Not if a change could not be finished.
        let is_left = |name| hidden.join(name).symlink_metadata().is_ok();
        if ![NEW, DECIDED].into_iter().any(is_left) {
            self.record.end();
        }
        remove_empty(&self.created);
    }
}

/// The folders that are missing on a path, the outermost first.
fn missing_folders(path: &Path) -> Vec<PathBuf> {
    let missing = path.ancestors().take_while(|path| !path.exists());
    let mut missing: Vec<PathBuf> = missing.map(Path::to_path_buf).collect();
    missing.reverse();
    missing
}

/// Removes those of these folders that are empty, the innermost first.
fn remove_empty(folders: &[PathBuf]) {
    for folder in folders.iter().rev() {
        let _ = fs::remove_dir(folder);
    }
}

/// Finishes or undoes an interrupted change of a skills folder that is locked.
fn finish_interrupted(folder: &Path, data: Option<&Path>) -> io::Result<()> {
    let install = folder.join(INSTALL_FOLDER);
    if install.symlink_metadata().is_err() {
        return Ok(());
    }
    let record = ChangeRecord::find(ChangeRecord::path(folder, data), install.clone());
    let Some(record) = record else {
        let text = format!(
            "{} is not from this program: it may hold your files, so look before you delete it",
            install.display()
        );
        return Err(io::Error::other(text));
    };
    let [new, decided] = [NEW, DECIDED].map(|name| install.join(name));
    refuse_newer([folder, &new, &decided])?;
    if decided.symlink_metadata().is_ok_and(|it| it.is_dir()) {
        finish(folder)?;
    }
    match fs::remove_dir_all(new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => record.end(),
    }
    Ok(())
}

/// Returns an error if one of these folders has a lock file of a newer version, whose changes this
/// one does not know.
fn refuse_newer(folders: [&Path; 3]) -> io::Result<()> {
    for root in folders.into_iter().filter_map(|folder| Root::open(folder).ok()) {
        if let Err(error @ LockFileError::Newer { .. }) = LockFile::read(&root) {
            return Err(io::Error::other(error));
        }
    }
    Ok(())
}

/// Finishes a change that was decided. May be interrupted and repeated at any time.
fn finish(folder: &Path) -> io::Result<()> {
    let decided = folder.join(INSTALL_FOLDER).join(DECIDED);
    let opened = Root::open(&decided).map_err(to_io_error)?;
    let new_lock_file = decided.join(LOCK_FILE_NAME);
    if new_lock_file.exists() {
        let new = LockFile::read(&opened)
            .map_err(|error| io::Error::other(format!("{}: {error}", new_lock_file.display())))?;
        let root = Root::open(folder).map_err(to_io_error)?;
        let old = LockFile::read(&root).unwrap_or_default();
        for entry in opened.entries(limits::ENTRIES_READ).map_err(to_io_error)?.entries {
            let locked = entry.name.to_str().and_then(|name| new.skills.get(name));
            if entry.kind == EntryKind::Folder
                && let Some(locked) = locked
            {
                let old = entry.name.to_str().and_then(|name| old.skills.get(name));
                let listed = old.map_or(&locked.files, |old| &old.files);
                put(
                    [&decided.join(&entry.name), &folder.join(&entry.name)],
                    &locked.files,
                    listed,
                )?;
            }
        }
        for name in old.skills.keys().filter(|name| !new.skills.contains_key(*name)) {
            let (from, to) = (folder.join(name), decided.join(name));
            match with_writable_folders(&from, || fs::rename(&from, &to)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        fs::rename(&new_lock_file, folder.join(LOCK_FILE_NAME))?;
    }
    with_writable_folders(&decided, || fs::remove_dir_all(&decided))
}

/// Puts a new version of a skill, which has these files, in its place, and keeps what is not listed
/// of the old one: what tools created and what the user added.
fn put([new, place]: [&Path; 2], files: &FileDigests, listed: &FileDigests) -> io::Result<()> {
    let opened = |folder: &Path| Root::open(folder).ok().filter(|_| !folder.is_symlink());
    // Nothing else, unless the folder is the old version already, as its added files are moved
    // last.
    let is_new = opened(new).is_some_and(|root| file_digests(&root).as_ref() == Ok(files));
    let is_put = || {
        opened(place).is_some_and(|root| {
            files.iter().all(|(path, digest)| {
                let found = root.file(path).map_err(to_io_error);
                found
                    .and_then(|mut file| copy_digest(&mut file, &mut io::sink()))
                    .is_ok_and(|it| it == *digest)
            })
        })
    };
    if is_new {
        match place.symlink_metadata() {
            Ok(_) => exchange(new, place)?,
            Err(_) => return fs::rename(new, place),
        }
    } else if !is_put() {
        // A project of another author may bring what looks like an interrupted change. A skill with
        // the listed files has no link, over which something would be moved out of the folder.
        let text = format!("{} is not as the lock file beside it lists it", new.display());
        return Err(io::Error::other(text));
    }
    // What is behind a link is not the program's.
    if !is_folder(new) {
        return Ok(());
    }
    with_writable_folders(new, || keep_added([new, place], "", listed))
}

/// Moves what is not listed of an old version of a skill to the new one. What has a name of the new
/// version gets another one. May be interrupted and repeated.
fn keep_added([old, new]: [&Path; 2], below: &str, listed: &FileDigests) -> io::Result<()> {
    let entries: Vec<_> = fs::read_dir(old)?.collect::<io::Result<_>>()?;
    for entry in entries {
        let (from, to) = (entry.path(), new.join(entry.file_name()));
        let name = entry.file_name();
        // A name that is not UTF-8 is not listed.
        let name = name.to_string_lossy();
        let is_cache = name == "__pycache__";
        let path = if below.is_empty() { name.into_owned() } else { format!("{below}/{name}") };
        let is_there = to.symlink_metadata().is_ok();
        if !entry.file_type()?.is_dir() {
            if listed.contains_key(&path) {
                continue;
            }
        } else if is_left_out(&path) {
            // Python makes it again where it is needed.
            if is_cache && (is_there || !is_folder(new)) {
                continue;
            }
        } else if has_below(listed, &path) || is_folder(&to) {
            let to = if is_there && !is_folder(&to) { free_name(&from, &to) } else { to };
            keep_added([&from, &to], &path, listed)?;
            continue;
        }
        let to = if is_there { free_name(&from, &to) } else { to };
        fs::create_dir_all(new)?;
        fs::rename(from, to)?;
    }
    Ok(())
}

/// Whether this is a folder, not a link to one.
fn is_folder(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|meta| meta.is_dir())
}

/// A name that neither version of a skill has, for what is at `old`, whose name is taken at `new`.
fn free_name(old: &Path, new: &Path) -> PathBuf {
    let mut name = new.file_name().unwrap_or_default().to_owned();
    loop {
        name.push(".orig");
        let [old, new] = [old, new].map(|path| path.with_file_name(&name));
        if old.symlink_metadata().is_err() && new.symlink_metadata().is_err() {
            return new;
        }
    }
}

fn to_io_error(error: OpenError) -> io::Error {
    match error {
        OpenError::Io(error) => error,
        other => io::Error::other(other.user_message()),
    }
}

//! The place of a file that is to be written, at any depth below a folder.
//!
//! A place is an open folder, the folders that are missing in it, and a name. The file at the end
//! of links that stay inside has its own place, so the links remain. All changes are made in
//! the opened folder by one name, whatever its path leads to by then.
//!
//! The real path of a descriptor comes from `/proc`; without it there is none.

use std::ffi::{CStr, CString, OsStr};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::stat::{Mode, mkdirat};

use super::open::{INSPECT_FLAGS, OpenedKind, entry_status, open_name, open_name_with_mode};
use super::path::RelativePath;
use super::read::FileRange;
use super::write::{create_draft, open_writable, remove, rename_to_new};
use super::{Identity, OpenError, Root, read_whole};

/// Name from which the names of temporary files are made; a file's own could be too long for it.
const DRAFT_NAME: &CStr = c"skills-runner";

/// The place of a file that may be missing.
#[derive(Debug)]
pub struct FilePlace {
    /// The deepest folder that exists.
    folder: Root,
    /// The missing folders, each in the one before it.
    missing: Vec<CString>,
    name: CString,
    found: Option<FoundFile>,
}

/// The regular file that is in a place.
#[derive(Clone, Copy, Debug)]
pub struct FoundFile {
    /// Its device and number.
    pub identity: Identity,
    /// Whether it has another name, too (a hard link).
    pub has_other_names: bool,
}

impl FoundFile {
    /// Examines an open file.
    pub fn of(file: &File) -> io::Result<FoundFile> {
        let meta = file.metadata()?;
        Ok(FoundFile { identity: (meta.dev(), meta.ino()), has_other_names: meta.nlink() > 1 })
    }
}

impl Root {
    /// Finds the place of a file. Creates nothing.
    pub fn place(&self, relative: &str) -> Result<FilePlace, OpenError> {
        let below = RelativePath::parse(relative.as_ref())?;
        let Some((name, folders)) = below.names.split_last().filter(|_| !below.requires_folder)
        else {
            return Err(OpenError::NotAFile("a folder"));
        };
        let joined = |names: &[CString]| -> PathBuf {
            names.iter().map(|name| OsStr::from_bytes(name.as_bytes())).collect()
        };
        let mut depth = folders.len();
        let folder = loop {
            match self.folder(joined(&folders[..depth])) {
                Err(OpenError::NotFound) if depth > 0 => depth -= 1,
                found => break found?,
            }
        };
        let missing = folders[depth..].to_vec();
        let next = missing.first().unwrap_or(name);
        let found = match self.inspect(relative.as_ref()) {
            Ok((file, OpenedKind::File { .. })) => File::from(file),
            Ok((_, OpenedKind::Folder)) => return Err(OpenError::NotAFile("a folder")),
            Ok((_, OpenedKind::Other(kind))) => return Err(OpenError::NotAFile(kind)),
            Ok((_, OpenedKind::Link)) => return Err(OpenError::Link),
            Err(OpenError::NotFound) if entry_status(folder.as_fd(), next).is_none() => {
                return Ok(FilePlace { folder, missing, name: name.clone(), found: None });
            }
            // What is there is a link.
            Err(OpenError::NotFound) => return Err(OpenError::DeadLink),
            Err(error) => return Err(error),
        };
        let place =
            FilePlace { folder, missing, name: name.clone(), found: Some(FoundFile::of(&found)?) };
        if place.is_current() { Ok(place) } else { self.place_behind_link(&found) }
    }

    /// The place of an inspected file to which a link leads.
    fn place_behind_link(&self, file: &File) -> Result<FilePlace, OpenError> {
        let path = real_path(file)?;
        let below = path.strip_prefix(real_path(self)?).map_err(|_| OpenError::Outside)?;
        let (folder, name) = (below.parent(), below.file_name().unwrap_or_default());
        let place = FilePlace {
            folder: self.folder(folder.unwrap_or(Path::new("")))?,
            missing: Vec::new(),
            name: RelativePath::single_name(name)?,
            found: Some(FoundFile::of(file)?),
        };
        if place.is_current() { Ok(place) } else { Err(OpenError::Changing) }
    }
}

impl FilePlace {
    /// The file that is there.
    pub fn found(&self) -> Option<&FoundFile> {
        self.found.as_ref()
    }

    /// The path without links, also of a file that is missing.
    pub fn real_path(&self) -> io::Result<PathBuf> {
        let names = self.missing.iter().chain([&self.name]);
        let names = names.map(|name| OsStr::from_bytes(name.as_bytes()));
        Ok(names.fold(real_path(&self.folder)?, |path, name| path.join(name)))
    }

    /// Reads the file that is there, which is at most this large.
    pub fn read(&self, max_bytes: usize) -> Result<FileRange, OpenError> {
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
        let file = File::from(open_name(self.folder.as_fd(), &self.name, flags)?);
        self.check_identity(&file)?;
        read_whole(&file, max_bytes)
    }

    /// Creates the missing folders.
    pub fn create_folders(mut self) -> Result<FilePlace, OpenError> {
        for name in self.missing.drain(..) {
            let parent = self.folder.as_fd();
            match mkdirat(parent, name.as_c_str(), Mode::from_bits_retain(0o777)) {
                // Another process was faster.
                Err(Errno::EEXIST) => {}
                made => made.map_err(io::Error::from)?,
            }
            let flags = INSPECT_FLAGS | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW;
            let folder = open_name(parent, &name, flags)?;
            self.folder = self.folder.subfolder(folder, OsStr::from_bytes(name.as_bytes()));
        }
        Ok(self)
    }

    /// Opens the deepest folder that exists, to lock it.
    pub fn open_folder(&self) -> io::Result<File> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY;
        Ok(File::from(open_name(self.folder.as_fd(), c".", flags)?))
    }

    /// Writes the whole file or nothing; its folder must exist. With `old`, a file whose content
    /// is different by now is kept.
    pub fn write(&self, old: Option<&[u8]>, content: &[u8]) -> Result<(), OpenError> {
        let folder = self.folder.as_fd();
        if self.found.is_some() {
            let file = open_writable(folder, &self.name)?;
            self.check_identity(&file)?;
            let draft = create_draft(folder, DRAFT_NAME, 0o600)?;
            return self.folder.commit_draft(&self.name, &file, draft, old, content, false);
        }
        let (temporary, mut file) = create_draft(folder, DRAFT_NAME, 0o666)?;
        let renamed = file.write_all(content).and_then(|()| file.sync_all()).and_then(|()| {
            // Fails if another process has just created the file.
            rename_to_new(folder, &temporary, &self.name)
        });
        renamed.map_err(|error| {
            remove(folder, &temporary);
            match error.kind() {
                io::ErrorKind::AlreadyExists => OpenError::Changing,
                _ => error.into(),
            }
        })
    }

    /// Creates the file, which must be missing, in its folder, which must exist.
    pub fn create(&self, mode: libc::c_uint) -> Result<File, OpenError> {
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW;
        Ok(open_name_with_mode(self.folder.as_fd(), &self.name, flags, mode)?.into())
    }

    /// Whether the name, which may be of a link, leads to the file that was found.
    fn is_current(&self) -> bool {
        let status = entry_status(self.folder.as_fd(), &self.name);
        let status = status.filter(|_| self.missing.is_empty());
        status.map(|status| (status.st_dev, status.st_ino)) == self.found.map(|it| it.identity)
    }

    fn check_identity(&self, file: &File) -> Result<(), OpenError> {
        let (kind, opened) = (file.metadata()?.is_file(), FoundFile::of(file)?);
        let is_same = kind && self.found.is_some_and(|found| found.identity == opened.identity);
        if is_same { Ok(()) } else { Err(OpenError::Changing) }
    }
}

/// The path of an open file or folder without links, as it is now.
pub fn real_path(opened: &impl AsFd) -> io::Result<PathBuf> {
    fs::read_link(format!("/proc/self/fd/{}", opened.as_fd().as_raw_fd()))
}

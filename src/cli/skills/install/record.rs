//! The record of a change of a skills folder, in the user's data. The folder of another author's
//! project may hold what looks like an interrupted change: only one with a record is finished.

use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind::PermissionDenied, ErrorKind::ReadOnlyFilesystem};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use base::digest::sha256;
use host::files::write_new;
use host::random;

/// A random name, which the record holds and a file in the hidden folder has.
pub(super) struct ChangeRecord {
    /// The record; `None` without a folder for data.
    path: Option<PathBuf>,
    name: String,
    hidden: PathBuf,
}

impl ChangeRecord {
    /// The path of the record for a skills folder, which exists.
    pub(super) fn path(folder: &Path, data: Option<&Path>) -> Option<PathBuf> {
        let real = folder.canonicalize().ok()?;
        Some(data?.join("changes").join(sha256(real.as_os_str().as_bytes())))
    }

    /// Writes the record, and then creates the hidden folder, which must be missing, with its file.
    pub(super) fn begin(path: Option<PathBuf>, hidden: PathBuf) -> io::Result<ChangeRecord> {
        if hidden.symlink_metadata().is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let record = ChangeRecord { path, name: random::name()?, hidden };
        if let Some(path) = &record.path {
            let folder = path.parent().unwrap_or(path);
            let created = DirBuilder::new().recursive(true).mode(0o700).create(folder);
            let written = created.and_then(|()| write_new(path, record.name.as_bytes()));
            match written.and_then(|()| File::open(folder)?.sync_all()) {
                // As without a folder for data: if this change is interrupted, it is not finished.
                Err(error) if matches!(error.kind(), PermissionDenied | ReadOnlyFilesystem) => {}
                written => written?,
            }
        }
        let created = DirBuilder::new().mode(0o700).create(&record.hidden);
        let named = created.and_then(|()| File::create_new(record.hidden.join(&record.name)));
        named.inspect_err(|_| record.end()).map(|_| record)
    }

    /// The record of the change in the hidden folder, if it has one. An empty folder has no file
    /// yet, or no more.
    pub(super) fn find(path: Option<PathBuf>, hidden: PathBuf) -> Option<ChangeRecord> {
        let is_folder = hidden.symlink_metadata().is_ok_and(|meta| meta.is_dir());
        let name = fs::read_to_string(path.as_ref()?).ok()?;
        let is_named = !name.is_empty() && hidden.join(&name).symlink_metadata().is_ok();
        let is_own = is_named || fs::read_dir(&hidden).is_ok_and(|mut it| it.next().is_none());
        (is_folder && is_own).then_some(ChangeRecord { path, name, hidden })
    }

    /// Removes the hidden folder, which holds nothing else, and the record.
    pub(super) fn end(&self) {
        let _ = fs::remove_file(self.hidden.join(&self.name));
        if fs::remove_dir(&self.hidden).is_ok() || self.hidden.symlink_metadata().is_err() {
            let _ = self.path.as_ref().map(fs::remove_file);
        }
    }
}

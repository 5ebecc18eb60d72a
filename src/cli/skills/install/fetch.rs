//! Getting the files of a source.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use crate::address::Address;
use crate::cli::run::Run;
use crate::cli::skills::install::git;
use crate::cli::skills::install::source::{Source, SourcePlace, archive_addresses};
use crate::config::Network;
use crate::error::{Error, ErrorKind, Result};
use crate::model::http::download;
use crate::skills::install::SourceTree;
use crate::skills::lock_file::{DIGEST_START, copy_digest};
use crate::text;
use crate::world::files;
use crate::world::output::Output;
use crate::world::scratch::Scratch;

/// The files of a source.
pub(super) struct Fetched {
    pub tree: SourceTree,
    /// The commit, or the digest of an archive that names none; `None`: a local folder.
    pub revision: Option<String>,
}

/// Gets a source, at this revision if there is one.
pub(super) fn fetch(
    source: &Source,
    revision: Option<&str>,
    run: &Run,
    output: &mut Output,
) -> Result<Fetched> {
    output.show_live(&getting(&source.text));
    let commit = revision.filter(|revision| !revision.starts_with(DIGEST_START));
    let reference = commit.or(source.reference.as_deref());
    match &source.place {
        SourcePlace::Folder(path) => {
            let tree = SourceTree::of_folder(path, &run.cancellation);
            let tree = tree.map_err(|error| read_error(&source.text, &error))?;
            Ok(Fetched { tree, revision: None })
        }
        SourcePlace::File(path) => {
            let file = open(path).map_err(|error| read_error(&source.text, &error))?;
            listed(source, file, run)
        }
        SourcePlace::Archive(address) => listed(source, downloaded(address, run, output)?, run),
        SourcePlace::Repository(address) => repository(source, address, reference, run, output),
        SourcePlace::Git(address) => listed(source, git::tree(address, reference, run)?, run),
    }
}

/// Gets a repository: the archive that its server makes, or else by git, which has the user's
/// credentials.
fn repository(
    source: &Source,
    address: &Address,
    reference: Option<&str>,
    run: &Run,
    output: &mut Output,
) -> Result<Fetched> {
    let mut failure = None;
    for archive in archive_addresses(address, reference.unwrap_or("HEAD")) {
        let got = downloaded(&archive, run, output).and_then(|file| listed(source, file, run));
        match got {
            // Of another kind of server: a page, such as a login, or a refusal.
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::Io | ErrorKind::Endpoint | ErrorKind::Auth
                ) =>
            {
                failure.get_or_insert(error);
            }
            got => return got,
        }
    }
    if address.is_encrypted() && git::is_there(run) {
        return listed(source, git::tree(&address.url(), reference, run)?, run);
    }
    let text = format!("failed to get {}", source.text);
    let error = failure.unwrap_or_else(|| Error::new(ErrorKind::Endpoint, text));
    Err(error.with_hint("check the name; a private repository needs git and its credentials"))
}

/// Downloads an archive into a file without a name.
fn downloaded(address: &Address, run: &Run, output: &mut Output) -> Result<File> {
    let mut file = temporary_file(run)?;
    let network = |address: &Address| Network::for_download(&run.settings, &run.folder, address);
    download(address, &network, &mut file, &run.cancellation, &mut |event| {
        output.show(&event);
        output.show_live(&getting(&address.url()));
    })?;
    Ok(file)
}

/// The line that a terminal shows while a source is got.
fn getting(text: &str) -> String {
    format!("getting {}", text::one_line_name(text))
}

/// Lists an archive.
fn listed(source: &Source, mut file: File, run: &Run) -> Result<Fetched> {
    let failed = |error: &io::Error| read_error(&source.text, error);
    let is_repository = matches!(source.place, SourcePlace::Repository(_) | SourcePlace::Git(_));
    let tree = file.try_clone();
    let tree = tree.and_then(|it| SourceTree::of_archive(it, is_repository, &run.cancellation));
    let tree = tree.map_err(|error| failed(&error))?;
    let revision = match &tree.commit {
        Some(commit) => commit.clone(),
        None => {
            let digest =
                io::Seek::rewind(&mut file).and_then(|()| copy_digest(&mut file, &mut io::sink()));
            digest.map_err(|error| failed(&error))?
        }
    };
    Ok(Fetched { tree, revision: Some(revision) })
}

fn read_error(source: &str, error: &io::Error) -> Error {
    files::read_error(error, |cause| {
        Error::new(ErrorKind::Io, format!("failed to read {source}: {cause}"))
    })
}

/// Opens a local archive.
fn open(path: &Path) -> io::Result<File> {
    // A FIFO would keep the program waiting.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    File::open(path)
}

/// Creates a file that has no name anymore, so that nothing is left of it.
fn temporary_file(run: &Run) -> Result<File> {
    let file = Scratch::new(&run.config.scripts.temporary_folder).and_then(|scratch| {
        let path = scratch.path().join("archive");
        File::options().read(true).write(true).create_new(true).open(path)
    });
    file.map_err(|error| {
        Error::new(ErrorKind::Io, format!("failed to create a temporary file: {error}"))
            .with_hint("set TMPDIR to a folder with enough space")
    })
}

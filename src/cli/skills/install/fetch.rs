//! Getting the files of a source.

use std::fs::File;
use std::io;

use crate::address::Address;
use crate::cli::run::Run;
use crate::cli::skills::install::git;
use crate::cli::skills::install::source::{Source, SourcePlace, archive_addresses};
use crate::error::{Error, ErrorKind, Result};
use crate::model::Network;
use crate::model::http::download;
use crate::skills::install::SourceTree;
use crate::skills::lock_file::DIGEST_START;
use crate::text;
use crate::ui::Output;
use crate::world::files;
use crate::world::scratch::Scratch;

/// Gets a source, at this revision if there is one.
pub(super) fn fetch(
    source: &Source,
    revision: Option<&str>,
    run: &Run,
    output: &mut Output,
) -> Result<SourceTree> {
    output.show_live(&getting(&source.text));
    let commit = revision.filter(|revision| !revision.starts_with(DIGEST_START));
    let reference = commit.or(source.reference.as_deref());
    match &source.place {
        SourcePlace::Folder(path) => {
            let tree = SourceTree::of_folder(path, &run.cancellation);
            tree.map_err(|error| read_error(source, &error))
        }
        SourcePlace::File(path) => {
            let file = files::open_regular(path).map_err(|error| read_error(source, &error))?;
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
) -> Result<SourceTree> {
    let mut failure = None;
    for archive in archive_addresses(address, reference.unwrap_or("HEAD")) {
        let got = downloaded(&archive, run, output).and_then(|file| listed(source, file, run));
        match got {
            // A refusal, or another kind of server.
            Err(error) if matches!(error.kind(), ErrorKind::Endpoint | ErrorKind::Auth) => {
                failure.get_or_insert(error);
            }
            got => return got,
        }
    }
    let has_git = address.is_encrypted() && git::program(run).is_some();
    let file = match failure.filter(|_| !has_git) {
        Some(failure) => Err(failure),
        None => git::tree(&address.url(), reference, run),
    };
    let hint = "check the name; a private repository needs git and its credentials";
    let file = file.map_err(|error| if error.is_stop() { error } else { error.with_hint(hint) })?;
    listed(source, file, run)
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
fn listed(source: &Source, file: File, run: &Run) -> Result<SourceTree> {
    let is_repository = matches!(source.place, SourcePlace::Repository(_) | SourcePlace::Git(_));
    let tree = SourceTree::of_archive(file, is_repository, &run.cancellation);
    tree.map_err(|error| read_error(source, &error))
}

fn read_error(source: &Source, error: &io::Error) -> Error {
    // No archive: the page of another kind of server, such as a login.
    let is_page = error.kind() == io::ErrorKind::Unsupported
        && matches!(source.place, SourcePlace::Repository(_));
    let kind = if is_page { ErrorKind::Endpoint } else { ErrorKind::Io };
    files::read_error(error, |cause| {
        Error::new(kind, format!("failed to read {}: {cause}", source.text))
    })
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

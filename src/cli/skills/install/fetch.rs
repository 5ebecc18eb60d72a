//! Getting the files of a source.

use std::fs::File;
use std::io;

use crate::cli::run::Run;
use crate::cli::skills::install::git;
use crate::cli::skills::install::source::{Source, SourcePlace, archive_address};
use crate::cli::skills::install::tree::SourceTree;
use crate::config::network_for_download;
use crate::ui::Output;
use base::address::Address;
use base::error::{Error, ErrorKind, Result};
use base::text;
use chat_api::http::download;
use host::files;
use host::scratch::Scratch;
use skills::lock_file::DIGEST_START;

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

/// Gets a repository: from GitHub the archive, if it is public, else by git, which has the user's
/// credentials.
fn repository(
    source: &Source,
    address: &Address,
    reference: Option<&str>,
    run: &Run,
    output: &mut Output,
) -> Result<SourceTree> {
    let hint = "check the name; a private repository needs git and its credentials";
    if let Some(archive) = archive_address(address, reference.unwrap_or("HEAD")) {
        match downloaded(&archive, run, output) {
            Err(error) if matches!(error.kind(), ErrorKind::Endpoint | ErrorKind::Auth) => {
                if git::program(run).is_none() {
                    return Err(error.with_hint(hint));
                }
            }
            got => return listed(source, got?, run),
        }
    }
    // The same route as for downloads, or none.
    network_for_download(&run.settings, &run.folder, address)?;
    let file = git::tree(&address.url(), reference, run).map_err(|error| {
        if error.is_stop() || error.hint().is_some() { error } else { error.with_hint(hint) }
    })?;
    listed(source, file, run)
}

/// Downloads an archive into a file without a name.
fn downloaded(address: &Address, run: &Run, output: &mut Output) -> Result<File> {
    let mut file = temporary_file(run)?;
    let network = |address: &Address| network_for_download(&run.settings, &run.folder, address);
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
    let tree = SourceTree::of_archive(file, &run.cancellation);
    tree.map_err(|error| read_error(source, &error))
}

fn read_error(source: &Source, error: &io::Error) -> Error {
    files::read_error(error, |cause| {
        Error::new(ErrorKind::Io, format!("failed to read {}: {cause}", source.text))
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

//! Where skills come from, as the user names it: see `skills add` in docs/installing-skills.md.

use std::ffi::OsStr;
use std::path::PathBuf;

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

use crate::cli::run::Run;
use crate::cli::values::usage;
use base::address::Address;
use base::error::{Error, ErrorKind, Result};
use base::limits;
use base::secret::mask_url_logins;
use base::text;
use host::confined::OpenError;
use skills::is_document_name;

/// The host whose repositories are got as archives.
const GITHUB: &str = "github.com";

/// Suffixes of the names of archives.
const ARCHIVE_ENDS: [&str; 2] = [".tar.gz", ".zip"];

/// The forms of a source.
const FORMS: &str = "a source is OWNER/REPO of GitHub, https://…, ssh://…, file://… of a repository, \
                     a .tar.gz or .zip, or a folder such as ./skills";

/// Characters of a ref that an address must not contain.
const IN_PATH: &AsciiSet =
    &CONTROLS.add(b' ').add(b'#').add(b'%').add(b'?').add(b'"').add(b'<').add(b'>');

/// Where skills come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Source {
    /// The source without the folder, for the lock file: parsing it again gives the same place.
    pub text: String,
    pub place: SourcePlace,
    /// The folder in it; empty: all of it.
    pub folder: String,
    /// The branch, tag or commit.
    pub reference: Option<String>,
    /// The name of a skill that is the whole source.
    pub root_name: String,
}

/// A kind of source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SourcePlace {
    /// A folder of this machine.
    Folder(PathBuf),
    /// An archive of this machine.
    File(PathBuf),
    /// The address of an archive.
    Archive(Address),
    /// The https address of a repository, without a ref.
    Repository(Address),
    /// Another address that git can clone.
    Git(String),
}

impl Source {
    /// All of a source; `name` is the last one of its path.
    fn all_of(text: String, place: SourcePlace, name: &str) -> Source {
        let name = name.strip_suffix(".git").unwrap_or_else(|| without_extension(name));
        Source { text, place, folder: String::new(), reference: None, root_name: name.into() }
    }

    /// The source at a branch, tag or commit.
    fn at(mut self, reference: Option<String>) -> Source {
        if let Some(reference) = &reference {
            self.text = format!("{}@{reference}", self.text);
        }
        Source { reference, ..self }
    }

    /// Parses a source that the user typed.
    pub(super) fn parse(text: &str, run: &Run) -> Result<Source> {
        let source = Source::parse_locked(text, run)?;
        if let SourcePlace::File(path) = &source.place
            && let Err(error) = path.metadata()
        {
            let shown = text::one_line(text, limits::SUMMARY_CHARS);
            let cause = OpenError::from(error).user_message();
            let error = Error::new(ErrorKind::Io, format!("failed to read `{shown}`: {cause}"));
            return Err(error.with_hint(FORMS));
        }
        let is_path = matches!(source.place, SourcePlace::Folder(_) | SourcePlace::File(_));
        if !is_path && !text.contains("://") && run.folder.join(text).is_dir() {
            let error = usage(format!("`{text}` is a folder here and a repository of GitHub"));
            return Err(error.with_hint(format!("write ./{text} or https://github.com/{text}")));
        }
        Ok(source)
    }

    /// Parses the source of a lock file, where nothing is ambiguous.
    pub(super) fn parse_locked(text: &str, run: &Run) -> Result<Source> {
        if text.is_empty() || text.chars().any(char::is_control) {
            return Err(invalid(text, "it is empty or contains control characters"));
        }
        let is_path = ["/", "./", "../", "~/"].iter().any(|start| text.starts_with(start));
        match text.split_once("://") {
            Some((scheme, rest)) if !is_path => match scheme.to_ascii_lowercase().as_str() {
                "https" | "http" => Source::web(text),
                scheme @ ("ssh" | "file") => Source::git(text, scheme, rest),
                _ => Err(invalid(text, "only https, ssh and file addresses are supported")),
            },
            None if !is_path && text.contains("::") => {
                Err(invalid(text, "only https, ssh and file addresses are supported"))
            }
            None if !is_path && !is_archive(text) && is_short(text) => {
                let source = Source::web(&format!("https://github.com/{text}"))?;
                let text = source.text.trim_start_matches("https://github.com/").into();
                Ok(Source { text, ..source })
            }
            None if !is_path && text.contains('@') && text.contains(':') => {
                let address = format!("ssh://{}", text.replacen(':', "/", 1));
                Err(invalid(text, "it is not an address").with_hint(format!("write {address}")))
            }
            _ => Ok(Source::path(text, run)),
        }
    }

    fn path(text: &str, run: &Run) -> Source {
        let path = run.settings.path(OsStr::new(text), &run.folder);
        let path = path.canonicalize().unwrap_or(path);
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let text = path.to_string_lossy().into_owned();
        if path.is_dir() {
            Source { root_name: name, ..Source::all_of(text, SourcePlace::Folder(path), "") }
        } else {
            Source::all_of(text, SourcePlace::File(path), &name)
        }
    }

    /// An address of an archive or a repository.
    fn web(text: &str) -> Result<Source> {
        let authority = text.split("://").nth(1).and_then(|rest| rest.split('/').next());
        if authority.is_some_and(|authority| authority.contains('@')) {
            return Err(invalid(
                "",
                "it contains a user name or password, which the lock file would keep",
            )
            .with_hint("git's credential helpers hold them for private repositories"));
        }
        let is_plain_archive = is_archive(text.split(['?', '#']).next().unwrap_or(text));
        let (text, mut reference) = if is_plain_archive { (text, None) } else { split_ref(text) };
        let address = Address::exact(text).map_err(|cause| invalid(text, &cause))?;
        if address.has_query() {
            let cause = "it has a query, which may be secret, and the lock file would keep it";
            let hint = "download the archive, and add the file";
            return Err(invalid(address.path(), cause).with_hint(hint));
        }
        let is_allowed = address.is_encrypted() || is_plain_archive && address.is_loopback();
        if !is_allowed {
            return Err(invalid(text, "plain http is only for archives on this machine"));
        }
        let name = address.path().rsplit('/').next().unwrap_or_default().to_string();
        if is_plain_archive {
            return Ok(Source::all_of(address.url(), SourcePlace::Archive(address), &name));
        }
        let path = address.path().trim_end_matches('/');
        let is_github = is_github(&address);
        let (path, tree, folder) = if is_github { split_github(path) } else { (path, None, "") };
        if path.len() < 2 || is_github && path.matches('/').count() < 2 {
            return Err(invalid(text, "a repository has an owner and a name"));
        }
        reference = tree.or(reference);
        check_ref(reference.as_deref(), text)?;
        let folder = folder_path(folder);
        let repository = address.with_path(path.trim_end_matches('/').to_string());
        let name = path.rsplit('/').next().unwrap_or_default();
        let all = Source::all_of(repository.url(), SourcePlace::Repository(repository), name);
        Ok(Source { folder, ..all.at(reference) })
    }

    /// An address that git can clone.
    fn git(text: &str, scheme: &str, rest: &str) -> Result<Source> {
        let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (path, reference) = split_ref(path);
        check_ref(reference.as_deref(), text)?;
        let user = host.split_once('@').map_or("", |(user, _)| user);
        if user.contains(':') {
            let cause = "it contains a password, which the lock file would keep";
            return Err(invalid("", cause));
        }
        // A host that starts with a hyphen would be an option of ssh.
        if path.len() < 2 || host.starts_with('-') || user.starts_with('-') {
            return Err(invalid(text, "it has no repository"));
        }
        let address = format!("{scheme}://{host}{}", path.trim_end_matches('/'));
        let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        Ok(Source::all_of(address.clone(), SourcePlace::Git(address), name).at(reference))
    }
}

/// The address of the archive of a repository on GitHub; `None` for other servers.
pub(super) fn archive_address(repository: &Address, reference: &str) -> Option<Address> {
    let path = repository.path();
    let path = path.strip_suffix(".git").unwrap_or(path);
    let part = utf8_percent_encode(reference, IN_PATH);
    is_github(repository).then(|| repository.with_path(format!("{path}/archive/{part}.tar.gz")))
}

fn is_github(address: &Address) -> bool {
    address.host().eq_ignore_ascii_case(GITHUB)
}

/// Splits a path of GitHub into those of the repository and of a folder in it, and the ref between
/// them that the address of a page has. Of the page of a document, the folder is that of the skill.
fn split_github(path: &str) -> (&str, Option<String>, &str) {
    let Some((end, _)) = path.match_indices('/').nth(2) else { return (path, None, "") };
    let (repository, below) = (&path[..end], &path[end + 1..]);
    let page = below.strip_prefix("tree/").or_else(|| below.strip_prefix("blob/"));
    let Some(page) = page else { return (repository, None, below) };
    let (reference, below) = page.split_once('/').unwrap_or((page, ""));
    let document = below.rsplit_once('/').filter(|(_, name)| is_document_name(name));
    let folder = document.map_or(below, |(folder, _)| folder);
    (repository, Some(reference.to_string()), folder)
}

/// Splits a ref off: after the first `@` that does not begin a name, as in `@scope`.
fn split_ref(text: &str) -> (&str, Option<String>) {
    let start = text.find("://").map_or(0, |at| at + 3);
    let is_mark = |at: &usize| *at > 0 && !text[..*at].ends_with('/');
    let at = text.match_indices('@').map(|(at, _)| at).find(|at| *at >= start && is_mark(at));
    match at {
        Some(at) => (&text[..at], Some(text[at + 1..].to_string())),
        None => (text, None),
    }
}

/// Checks a ref by the rules of git (`git check-ref-format`), so that it is no option and no
/// pattern.
fn check_ref(reference: Option<&str>, text: &str) -> Result<()> {
    let Some(reference) = reference else { return Ok(()) };
    let is_odd = |c: char| c.is_whitespace() || c.is_control() || "~^:?*[\\".contains(c);
    if reference.is_empty()
        || reference.starts_with(['-', '+', '/'])
        || reference.contains("..")
        || reference.contains("@{")
        || reference.chars().any(is_odd)
    {
        return Err(invalid(text, "what follows the @ is not a branch, tag or commit"));
    }
    Ok(())
}

/// The path of a folder in a source. It is only compared with paths that are there.
fn folder_path(folder: &str) -> String {
    let decoded = percent_decode_str(folder).decode_utf8_lossy();
    let names = decoded.split('/').filter(|name| !matches!(*name, "" | "."));
    names.collect::<Vec<_>>().join("/")
}

/// Whether this is `OWNER/REPO`, maybe with a folder and a ref.
fn is_short(text: &str) -> bool {
    let (path, _) = split_ref(text);
    let is_name = |name: &str| {
        let is_usual = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_');
        !name.is_empty() && !name.starts_with(['-', '.']) && name.bytes().all(is_usual)
    };
    let mut names = path.split('/');
    let owner = names.next().filter(|owner| !owner.contains('.'));
    owner.is_some_and(is_name) && names.next().is_some_and(is_name)
}

fn is_archive(text: &str) -> bool {
    ARCHIVE_ENDS.iter().any(|end| text.to_ascii_lowercase().ends_with(end))
}

fn without_extension(name: &str) -> &str {
    let lower = name.to_ascii_lowercase();
    let end = ARCHIVE_ENDS.iter().find(|end| lower.ends_with(*end));
    &name[..name.len() - end.map_or(0, |end| end.len())]
}

fn invalid(text: &str, cause: &str) -> Error {
    let shown = text::one_line(&mask_url_logins(text), limits::SUMMARY_CHARS);
    let shown = if shown.is_empty() { shown } else { format!(" `{shown}`") };
    usage(format!("the source{shown} is not valid: {cause}")).with_hint(FORMS)
}

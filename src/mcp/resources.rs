//! Every file of every skill as a resource `skill://NAME/path`.
//!
//! What is listed can be read and the other way round: the folders that tools
//! fill (venvs among them) are neither. Everything is opened through the skill's
//! own door. <https://modelcontextprotocol.io/specification/2026-07-28/server/resources>

use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::string::FromUtf8Error;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::McpServer;
use super::address::{self, ResourceAddress};
use super::era::{Era, RpcResult};
use super::mime_types;
use super::pages::ResultPage;
use super::published_skills::{self, named};
use super::request_context::{HandlerResult, RequestContext};
use super::rpc::{INVALID_PARAMS, RpcError};
use crate::limits;
use crate::order;
use crate::skills::{Catalogue, Skill, SkillSummary};
use crate::text;
use crate::world::confined::{self, EntryKind, OpenError, OpenFile, PathTarget, WalkLimits};

/// No such resource, in the versions up to 2025-11-25.
const NOT_FOUND: i32 = -32_002; // not a bound
/// The document's name in addresses, whatever the letter case on the disk.
pub(super) const DOCUMENT: &str = "SKILL.md";
const FOLDER: &str = "inode/directory";
/// Why a file is not told.
pub(super) const SECRET: &str = "a secret of the user stands in it";

/// The files of a skill.
pub(super) struct SkillFiles {
    /// Address and path below the skill's folder, in the order of addresses.
    pub list: Vec<(String, PathBuf)>,
    /// Whether these are all.
    pub is_whole: bool,
}

impl SkillFiles {
    /// At most so many; `root` is what their addresses begin with.
    pub(super) fn of(skill: &Skill, root: &str, most: usize) -> SkillFiles {
        let walk = WalkLimits {
            depth: limits::RESOURCE_DEPTH,
            files: most,
            entries: limits::RESOURCE_ENTRIES,
        };
        let tree = skill.root.walk(walk);
        let is_whole = tree.as_ref().is_ok_and(|tree| !tree.cut && tree.unreadable == 0);
        let document = skill.document_name().unwrap_or_default();
        let address = |path: PathBuf| (address::below(root, known_as(&path, &document)), path);
        let files = tree.unwrap_or_default().files.into_iter();
        let mut list: Vec<_> = files.map(address).collect();
        order::sort(&mut list);
        SkillFiles { list, is_whole }
    }
}

/// What a path is called in an address, where the document has this name.
fn known_as<'p>(path: &'p Path, document: &str) -> &'p Path {
    if path.as_os_str() == document { Path::new(DOCUMENT) } else { path }
}

/// All files, in pages.
pub(super) fn list(server: &McpServer<'_>, asked: &RequestContext<'_, '_>) -> HandlerResult {
    let mut page = ResultPage::of(asked)?;
    let catalogue = server.catalogue();
    'page: for named in named(&catalogue) {
        if page.is_past_all(&named.root) {
            continue;
        }
        let Ok(skill) = server.context.skills.find(&named.skill.name) else {
            continue;
        };
        let files = SkillFiles::of(&skill, &named.root, limits::RESOURCE_FILES);
        if !files.is_whole {
            let (name, count) = (named.name, files.list.len());
            server.warn_once(format!(
                "the skill `{name}` has more files than the {count} that are listed: some are \
                 unreadable, or too many"
            ));
        }
        for (address, path) in files.list {
            if page.is_past(&address) {
                continue;
            }
            if !page.has_room() {
                break 'page;
            }
            if server.context.secrets.is_within(path.as_os_str().as_bytes()) {
                continue;
            }
            let open = skill.root.walked(&path).ok();
            // What cannot be read is not listed: clients read all that is.
            if is_too_large(open.as_ref()) {
                page.pass(&address, None);
                continue;
            }
            let summary = Some(named.skill).filter(|_| is_document(&named.root, &address));
            page.pass(&address, Some(&described(summary, &address, &path, open)));
        }
    }
    Ok(page.reply("resources"))
}

fn is_too_large(node: Option<&PathTarget>) -> bool {
    matches!(node, Some(PathTarget::File(file)) if file.size > limits::SKILL_BYTES)
}

/// Whether this is the address of the document.
pub(super) fn is_document(root: &str, address: &str) -> bool {
    address.strip_prefix(root) == Some(DOCUMENT)
}

/// A file or folder as a list tells of it; a file that cannot be opened is there
/// all the same. `document_of` is the skill, where it is its document.
fn described(
    document_of: Option<&SkillSummary>,
    address: &str,
    path: &Path,
    node: Option<PathTarget>,
) -> Value {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let file = match node {
        Some(PathTarget::Folder(_)) => {
            return json!({"uri": address, "name": name, "mimeType": FOLDER});
        }
        Some(PathTarget::File(file)) => Some(file),
        None => None,
    };
    let size = file.as_ref().map(|file| file.size);
    let mut resource = if let Some(skill) = document_of {
        let name = skill.alias.as_ref().unwrap_or(&skill.name);
        let mut document = json!({"uri": address, "name": name, "mimeType": "text/markdown"});
        if !skill.description.is_empty() {
            document["description"] = skill.description.as_str().into();
        }
        document
    } else {
        let mut resource = json!({"uri": address, "name": name});
        if let Some(kind) = mime_types::of(path, || file.map(|file| file.file)) {
            resource["mimeType"] = kind.into();
        }
        resource
    };
    if let Some(size) = size {
        resource["size"] = size.into();
    }
    resource
}

/// How the addresses are made.
pub(super) fn templates(asked: &RequestContext<'_, '_>) -> HandlerResult {
    let mut page = ResultPage::of(asked)?;
    let template = json!({
        "uriTemplate": "skill://{skill}/{+path}",
        "name": "skill-file",
        "title": "A file of a skill",
        "description": "A file by its path in the skill's folder; SKILL.md is where to begin.",
    });
    // The one there is comes before every key that a cursor can name.
    if !page.is_past("0") {
        page.pass("0", Some(&template));
    }
    Ok(page.reply("resourceTemplates"))
}

/// The address that a request is about.
pub(super) fn requested<'l>(asked: &RequestContext<'_, 'l>) -> Result<Cow<'l, str>, RpcError> {
    #[derive(Deserialize)]
    struct ReadParams<'l> {
        #[serde(borrow)]
        uri: Cow<'l, str>,
    }
    Ok(asked.request.params::<ReadParams<'l>>()?.uri)
}

/// That nothing is there, or nothing of that kind.
pub(super) fn missing(code: i32, uri: &str, what: &str, why: &str) -> RpcError {
    let shown = text::one_line(uri, limits::SUMMARY_CHARS);
    let uri = text::cut(uri, limits::ADDRESS_BYTES);
    RpcError {
        data: Some(json!({"uri": uri})),
        ..RpcError::new(code, format!("`{shown}` {what}: {why}"))
    }
}

/// What an address means now.
pub(super) struct FoundResource {
    /// What the addresses of the skill's files begin with.
    pub root: String,
    /// What the skill is called in them.
    pub name: String,
    /// The skill.
    pub skill: Skill,
    /// On the disk, below the skill's folder.
    pub path: PathBuf,
    /// In the address.
    pub known_as: PathBuf,
}

impl FoundResource {
    /// Finds the skill, and where in it.
    pub(super) fn of(server: &McpServer<'_>, uri: &str) -> Result<FoundResource, String> {
        let ResourceAddress { skill: name, path } = address::parse(uri)?;
        if server.context.secrets.is_within(path.as_bytes()) {
            return Err(SECRET.into());
        }
        let skill = published_skills::find(server, &name)?;
        let document = skill.document_name()?;
        let known_as = PathBuf::from(path);
        let path = if known_as.as_os_str() == DOCUMENT {
            PathBuf::from(document)
        } else if known_as.as_os_str() == document.as_str() {
            return Err(format!("its name is {DOCUMENT} here"));
        } else {
            known_as.clone()
        };
        Ok(FoundResource { root: published_skills::root(&name), name, skill, path, known_as })
    }

    /// Its one address.
    fn address(&self) -> String {
        address::below(&self.root, &self.known_as)
    }

    fn open(&self) -> Result<PathTarget, OpenError> {
        self.skill.root.walked(&self.path)
    }
}

/// The content of a file.
pub(super) fn read(server: &McpServer<'_>, asked: &RequestContext<'_, '_>) -> HandlerResult {
    let uri = requested(asked)?;
    let code = match asked.era {
        Era::Legacy => NOT_FOUND,
        Era::Modern => INVALID_PARAMS,
    };
    let found = FoundResource::of(server, &uri);
    let content = found.and_then(|found| {
        let file = match found.open() {
            Ok(PathTarget::File(file)) => file,
            Ok(PathTarget::Folder(_)) => {
                return Err("a folder: resources/directory/read lists it".into());
            }
            Err(refusal) => return Err(refusal.for_people()),
        };
        content(server, &found, &file)
    });
    content.map_err(|why| missing(code, &uri, "cannot be read", &why))
}

fn content(
    server: &McpServer<'_>,
    found: &FoundResource,
    file: &OpenFile,
) -> Result<RpcResult, String> {
    #[derive(Serialize)]
    struct Contents {
        contents: [Content; 1],
    }
    #[derive(Serialize)]
    struct Content {
        uri: String,
        #[serde(rename = "mimeType")]
        kind: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        blob: Option<String>,
    }
    let most = usize::try_from(limits::SKILL_BYTES).unwrap_or(usize::MAX);
    let piece = confined::read_whole(&file.file, most).map_err(|error| error.for_people())?;
    if piece.more {
        let most = limits::SKILL_BYTES >> 20;
        return Err(format!("it is larger than {most} MiB; read_file_in_skill reads parts of it"));
    }
    let beginning = piece.bytes.get(..limits::KIND_BYTES);
    let by_content = mime_types::by_content(beginning.unwrap_or(&piece.bytes));
    let kind = if found.known_as.as_os_str() == OsStr::new(DOCUMENT) {
        "text/markdown"
    } else {
        mime_types::by_name(&found.path).unwrap_or(by_content)
    };
    let secrets = server.context.secrets;
    let (text, blob) = match String::from_utf8(piece.bytes) {
        Ok(text) if is_readable(&text) => (Some(secrets.mask(&text).into_owned()), None),
        other => {
            let bytes = other.map_or_else(FromUtf8Error::into_bytes, String::into_bytes);
            // A secret cannot be masked in base64.
            if secrets.is_within(&bytes) {
                return Err(SECRET.into());
            }
            (None, Some(BASE64_STANDARD.encode(&bytes)))
        }
    };
    let uri = found.address();
    let content = Content { uri, kind, text, blob };
    // Not to be kept: it must agree with the digest that is told at any moment.
    Ok(RpcResult::of(&Contents { contents: [content] }).kept(0))
}

/// Whether it is for readers: a NUL character is in no text, and each control
/// character takes six bytes in JSON.
fn is_readable(text: &str) -> bool {
    let is_odd = |byte: &u8| byte.is_ascii_control() && !b"\t\n\r".contains(byte);
    !text.contains('\0') && text.bytes().filter(|byte| is_odd(byte)).count() * 8 <= text.len()
}

/// What lies directly in a folder, in pages.
pub(super) fn read_directory(
    server: &McpServer<'_>,
    asked: &RequestContext<'_, '_>,
) -> HandlerResult {
    let uri = requested(asked)?;
    let mut page = ResultPage::of(asked)?;
    let found = FoundResource::of(server, &uri);
    let children = found.and_then(|found| Ok((children(&found)?, found)));
    let (children, found) =
        children.map_err(|why| missing(INVALID_PARAMS, &uri, "cannot be listed", &why))?;
    let catalogue =
        if found.path.as_os_str().is_empty() { server.catalogue() } else { Catalogue::default() };
    let summary = catalogue.named(&found.skill.name);
    for (address, path) in children {
        if page.is_past(&address) {
            continue;
        }
        if !page.has_room() {
            break;
        }
        let node = found.skill.root.walked(&path);
        let is_secret = server.context.secrets.is_within(path.as_os_str().as_bytes());
        let gone = is_secret || matches!(node, Err(OpenError::NotFound));
        let entry = described(
            summary.filter(|_| is_document(&found.root, &address)),
            &address,
            &path,
            node.ok(),
        );
        page.pass(&address, Some(&entry).filter(|_| !gone));
    }
    Ok(page.reply("resources"))
}

/// Addresses and paths of what lies directly in the folder, in the order of
/// addresses.
fn children(found: &FoundResource) -> Result<Vec<(String, PathBuf)>, String> {
    let opened = found.open().map_err(|refusal| refusal.for_people())?;
    let PathTarget::Folder(folder) = opened else {
        return Err("a file, not a folder: resources/read reads it".into());
    };
    let is_top = found.path.as_os_str().is_empty();
    let document = if is_top { found.skill.document_name()? } else { String::new() };
    let entries =
        folder.entries(limits::FOLDER_ENTRIES_PAGED).map_err(|refusal| refusal.for_people())?;
    let mut children = Vec::new();
    for entry in entries.by_people() {
        let path = found.path.join(&entry.name);
        let is_listed = entry.kind == EntryKind::File || found.skill.root.walked(&path).is_ok();
        // A folder that has the document's name has no address.
        let is_hidden = is_top && entry.name == DOCUMENT && document != DOCUMENT;
        if !is_listed || is_hidden {
            continue;
        }
        let address = address::below(&found.root, known_as(&path, &document));
        children.push((address, path));
    }
    order::sort(&mut children);
    Ok(children)
}

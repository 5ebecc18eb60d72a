//! Every file of every skill as a resource `skill://NAME/path`.
//!
//! Exactly the listed files can be read. Folders that tools fill, such as venvs, are
//! excluded. Files are opened only through the skill's confined root.
//! <https://modelcontextprotocol.io/specification/2026-07-28/server/resources>

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
use super::era::{Era, RpcResult};
use super::mime_types;
use super::pages::ResultPage;
use super::published_skills::{self, published};
use super::request_context::{HandlerResult, RequestContext};
use super::rpc::{INVALID_PARAMS, RpcError};
use super::uri::{self, ResourceUri};
use crate::limits;
use crate::skills::{Catalogue, Skill, SkillSummary};
use crate::text;
use crate::world::confined::{self, EntryKind, OpenError, OpenFile, PathTarget, WalkLimits};

/// Error code for a missing resource in versions up to 2025-11-25.
const NOT_FOUND: i32 = -32_002; // not a limit
/// Name of the document in URIs, whatever its letter case on disk.
pub(super) const DOCUMENT: &str = "SKILL.md";
const FOLDER: &str = "inode/directory";
/// Why a file is not published.
pub(super) const SECRET: &str = "it contains a secret of the user";

/// The files of a skill.
pub(super) struct SkillFiles {
    /// URI and path below the skill's folder, in the order of URIs.
    pub list: Vec<(String, PathBuf)>,
    /// Whether the list is complete.
    pub is_whole: bool,
}

impl SkillFiles {
    /// Lists at most `most` files; `root` is the prefix of their URIs.
    pub(super) fn list(skill: &Skill, root: &str, most: usize) -> SkillFiles {
        let walk = WalkLimits {
            depth: limits::RESOURCE_DEPTH,
            files: most,
            entries: limits::RESOURCE_ENTRIES,
        };
        let tree = skill.root.walk(walk);
        let is_whole = tree.as_ref().is_ok_and(|tree| !tree.is_cut && tree.unreadable == 0);
        let document = skill.document_file_name().unwrap_or_default();
        let address = |path: PathBuf| (uri::file_uri(root, path_in_uri(&path, &document)), path);
        let files = tree.unwrap_or_default().files.into_iter();
        let mut list: Vec<_> = files.map(address).collect();
        list.sort();
        SkillFiles { list, is_whole }
    }
}

/// Path of a file in its URI; `document` is the name of the document on disk.
fn path_in_uri<'p>(path: &'p Path, document: &str) -> &'p Path {
    if path.as_os_str() == document { Path::new(DOCUMENT) } else { path }
}

/// Lists all files in pages.
pub(super) fn list(server: &McpServer<'_>, request: &RequestContext<'_, '_>) -> HandlerResult {
    let mut page = ResultPage::from_request(request)?;
    let catalogue = server.catalogue();
    'page: for named in published(&catalogue) {
        if page.is_past_all(&named.root) {
            continue;
        }
        let Ok(skill) = server.context.skills.open(&named.skill.name) else {
            continue;
        };
        let files = SkillFiles::list(&skill, &named.root, limits::RESOURCE_FILES);
        if !files.is_whole {
            let (name, count) = (named.name, files.list.len());
            server.warn_once(format!(
                "the skill `{name}` has more files than the {count} that are listed: some are \
                 unreadable, or there are too many"
            ));
        }
        for (address, path) in files.list {
            if page.is_past(&address) {
                continue;
            }
            if !page.has_room() {
                break 'page;
            }
            if server.context.secrets.occur_in(path.as_os_str().as_bytes()) {
                continue;
            }
            let open = skill.root.open_walked(&path).ok();
            // Clients read all listed files, so a file that cannot be read is not listed.
            if is_too_large(open.as_ref()) {
                page.add(&address, None);
                continue;
            }
            let summary = Some(named.skill).filter(|_| is_document(&named.root, &address));
            page.add(&address, Some(&resource_json(summary, &address, &path, open)));
        }
    }
    Ok(page.reply("resources"))
}

fn is_too_large(node: Option<&PathTarget>) -> bool {
    matches!(node, Some(PathTarget::File(file)) if file.size > limits::SKILL_BYTES)
}

/// Whether this is the URI of the document.
pub(super) fn is_document(root: &str, address: &str) -> bool {
    address.strip_prefix(root) == Some(DOCUMENT)
}

/// JSON description of a file or folder, also of a file that cannot be opened.
/// `document_of` is the skill if the file is its document.
fn resource_json(
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
        if let Some(kind) = mime_types::detect(path, || file.map(|file| file.file)) {
            resource["mimeType"] = kind.into();
        }
        resource
    };
    if let Some(size) = size {
        resource["size"] = size.into();
    }
    resource
}

/// Lists the template of the URIs.
pub(super) fn templates(request: &RequestContext<'_, '_>) -> HandlerResult {
    let mut page = ResultPage::from_request(request)?;
    let template = json!({
        "uriTemplate": "skill://{skill}/{+path}",
        "name": "skill-file",
        "title": "A file of a skill",
        "description": "A file by its path in the skill's folder; start with SKILL.md.",
    });
    // The only entry; a cursor that passes it gets an empty page.
    if !page.is_past("0") {
        page.add("0", Some(&template));
    }
    Ok(page.reply("resourceTemplates"))
}

/// The URI in a request.
pub(super) fn requested_uri<'l>(
    request: &RequestContext<'_, 'l>,
) -> Result<Cow<'l, str>, RpcError> {
    #[derive(Deserialize)]
    struct ReadParams<'l> {
        #[serde(borrow)]
        uri: Cow<'l, str>,
    }
    Ok(request.raw.parse_params::<ReadParams<'l>>()?.uri)
}

/// Creates the error for a resource that cannot be used, such as "cannot be read".
pub(super) fn resource_error(code: i32, uri: &str, problem: &str, reason: &str) -> RpcError {
    let shown = text::one_line(uri, limits::SUMMARY_CHARS);
    let uri = text::truncate(uri, limits::RESOURCE_URI_BYTES);
    RpcError {
        data: Some(json!({"uri": uri})),
        ..RpcError::new(code, format!("`{shown}` {problem}: {reason}"))
    }
}

/// Skill and path of a URI.
pub(super) struct FoundResource {
    /// Prefix of the URIs of the skill's files.
    pub root: String,
    /// The skill's name in URIs.
    pub name: String,
    /// The skill.
    pub skill: Skill,
    /// Path on disk, below the skill's folder.
    pub path: PathBuf,
    /// Path in the URI.
    pub path_in_uri: PathBuf,
}

impl FoundResource {
    /// Finds the skill and the path in it.
    pub(super) fn find(server: &McpServer<'_>, uri: &str) -> Result<FoundResource, String> {
        let ResourceUri { skill: name, path } = uri::parse(uri)?;
        if server.context.secrets.occur_in(path.as_bytes()) {
            return Err(SECRET.into());
        }
        let skill = published_skills::find(server, &name)?;
        let document = skill.document_file_name()?;
        let path_in_uri = PathBuf::from(path);
        let path = if path_in_uri.as_os_str() == DOCUMENT {
            PathBuf::from(document)
        } else if path_in_uri.as_os_str() == document.as_str() {
            return Err(format!("its name in URIs is {DOCUMENT}"));
        } else {
            path_in_uri.clone()
        };
        Ok(FoundResource {
            root: published_skills::root_uri(&name),
            name,
            skill,
            path,
            path_in_uri,
        })
    }

    /// The only URI of the resource.
    fn uri(&self) -> String {
        uri::file_uri(&self.root, &self.path_in_uri)
    }

    fn open(&self) -> Result<PathTarget, OpenError> {
        self.skill.root.open_walked(&self.path)
    }
}

/// Reads a file.
pub(super) fn read(server: &McpServer<'_>, request: &RequestContext<'_, '_>) -> HandlerResult {
    let uri = requested_uri(request)?;
    let code = match request.era {
        Era::Legacy => NOT_FOUND,
        Era::Modern => INVALID_PARAMS,
    };
    let found = FoundResource::find(server, &uri);
    let content = found.and_then(|found| {
        let file = match found.open() {
            Ok(PathTarget::File(file)) => file,
            Ok(PathTarget::Folder(_)) => {
                return Err("it is a folder: resources/directory/read lists it".into());
            }
            Err(error) => return Err(error.user_message()),
        };
        content(server, &found, &file)
    });
    content.map_err(|reason| resource_error(code, &uri, "cannot be read", &reason))
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
    let piece = confined::read_whole(&file.file, most).map_err(|error| error.user_message())?;
    if piece.has_more {
        let most = limits::SKILL_BYTES >> 20;
        return Err(format!("it is larger than {most} MiB; read_file_in_skill reads parts of it"));
    }
    let beginning = piece.bytes.get(..limits::CONTENT_TYPE_BYTES);
    let by_content = mime_types::by_content(beginning.unwrap_or(&piece.bytes));
    let kind = if found.path_in_uri.as_os_str() == OsStr::new(DOCUMENT) {
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
            if secrets.occur_in(&bytes) {
                return Err(SECRET.into());
            }
            (None, Some(BASE64_STANDARD.encode(&bytes)))
        }
    };
    let uri = found.uri();
    let content = Content { uri, kind, text, blob };
    // Not cached: the content must match the digest that skills/list returns.
    Ok(RpcResult::new(&Contents { contents: [content] }).cached_for(0))
}

/// Whether a file is sent as text: without NUL, and with few other control characters,
/// since each takes six bytes in JSON.
fn is_readable(text: &str) -> bool {
    let is_control = |byte: &u8| byte.is_ascii_control() && !b"\t\n\r".contains(byte);
    !text.contains('\0') && text.bytes().filter(|byte| is_control(byte)).count() * 8 <= text.len()
}

/// Lists the direct children of a folder in pages.
pub(super) fn read_directory(
    server: &McpServer<'_>,
    request: &RequestContext<'_, '_>,
) -> HandlerResult {
    let uri = requested_uri(request)?;
    let mut page = ResultPage::from_request(request)?;
    let found = FoundResource::find(server, &uri);
    let children = found.and_then(|found| Ok((children(&found)?, found)));
    let (children, found) = children
        .map_err(|reason| resource_error(INVALID_PARAMS, &uri, "cannot be listed", &reason))?;
    let catalogue =
        if found.path.as_os_str().is_empty() { server.catalogue() } else { Catalogue::default() };
    let summary = catalogue.skill_named(&found.skill.name);
    for (address, path) in children {
        if page.is_past(&address) {
            continue;
        }
        if !page.has_room() {
            break;
        }
        let node = found.skill.root.open_walked(&path);
        let is_secret = server.context.secrets.occur_in(path.as_os_str().as_bytes());
        let is_hidden = is_secret || matches!(node, Err(OpenError::NotFound));
        let entry = resource_json(
            summary.filter(|_| is_document(&found.root, &address)),
            &address,
            &path,
            node.ok(),
        );
        page.add(&address, Some(&entry).filter(|_| !is_hidden));
    }
    Ok(page.reply("resources"))
}

/// URIs and paths of the folder's direct children, in the order of URIs.
fn children(found: &FoundResource) -> Result<Vec<(String, PathBuf)>, String> {
    let opened = found.open().map_err(|error| error.user_message())?;
    let PathTarget::Folder(folder) = opened else {
        return Err("it is a file, not a folder: resources/read reads it".into());
    };
    let is_top = found.path.as_os_str().is_empty();
    let document = if is_top { found.skill.document_file_name()? } else { String::new() };
    let entries =
        folder.entries(limits::FOLDER_ENTRIES_PAGED).map_err(|error| error.user_message())?;
    let mut children = Vec::new();
    for entry in entries.without_tool_folders() {
        let path = found.path.join(&entry.name);
        let is_listed =
            entry.kind == EntryKind::File || found.skill.root.open_walked(&path).is_ok();
        // Another entry with the document's name in URIs has no URI.
        let is_hidden = is_top && entry.name == DOCUMENT && document != DOCUMENT;
        if !is_listed || is_hidden {
            continue;
        }
        let address = uri::file_uri(&found.root, path_in_uri(&path, &document));
        children.push((address, path));
    }
    children.sort();
    Ok(children)
}

//! Every file of every skill as a resource `skill://NAME/path`.
//!
//! Exactly the listed files can be read. Folders that tools fill, such as venvs, are
//! excluded. Files are opened only through the skill's confined root.
//! <https://modelcontextprotocol.io/specification/2026-07-28/server/resources>

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::string::FromUtf8Error;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};

use super::McpServer;
use super::era::{Era, RpcResult};
use super::mime_types;
use super::pages::ResultPage;
use super::published_skills::{self, OpenSkill, PublishedSkill, SECRET, published};
use super::request_context::{HandlerResult, RequestContext};
use super::rpc::{INVALID_PARAMS, RpcError};
use base::limits;
use base::text;
use host::confined::{self, OpenError, OpenFile, PathTarget};

/// Error code for a missing resource in versions up to 2025-11-25.
const NOT_FOUND: i32 = -32_002; // not a limit

/// Lists all files in pages.
pub(super) fn list(server: &McpServer<'_>, request: &RequestContext<'_, '_>) -> HandlerResult {
    let page = ResultPage::from_request(request)?;
    let catalogue = server.catalogue();
    let skills = published(&catalogue).into_iter().filter(|skill| !page.is_past_all(&skill.root));
    let files = skills.flat_map(|skill| listed_files(server, &skill));
    let describe = |uri: &str, (skill, path): (Rc<OpenSkill>, PathBuf)| {
        // Clients read all listed files, so a file that cannot be read is not listed.
        describe(server, &skill, uri, &path).filter(|resource| {
            resource["size"].as_u64().is_none_or(|size| size <= limits::SKILL_BYTES)
        })
    };
    Ok(page.reply("resources", limits::LIST_PAGE_ENTRIES, files, describe))
}

/// Returns the files of a skill with their URIs.
fn listed_files(
    server: &McpServer<'_>,
    skill: &PublishedSkill<'_>,
) -> Vec<(String, (Rc<OpenSkill>, PathBuf))> {
    let Ok(skill) = skill.open(server) else {
        return Vec::new();
    };
    let files = skill.files(limits::RESOURCE_FILES);
    if !files.is_whole {
        let (name, count) = (&skill.name, files.list.len());
        server.warn_once(format!(
            "the skill `{name}` has more files than the {count} that are listed: some are \
             unreadable, or there are too many"
        ));
    }
    let skill = Rc::new(skill);
    files.list.into_iter().map(|(uri, path)| (uri, (Rc::clone(&skill), path))).collect()
}

/// JSON description of a file or folder, also of a file that cannot be opened; `None` if it was
/// deleted or is private, or its name contains a secret.
fn describe(server: &McpServer<'_>, skill: &OpenSkill, uri: &str, path: &Path) -> Option<Value> {
    if server.context.secrets.occur_in(path.as_os_str().as_bytes()) {
        return None;
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut resource = json!({"uri": uri, "name": name});
    match skill.open(path) {
        Err(OpenError::NotFound | OpenError::Private) => return None,
        Ok(PathTarget::Folder(_)) => {
            resource["mimeType"] = "inode/directory".into();
            return Some(resource);
        }
        Ok(PathTarget::File(file)) => resource["size"] = file.size.into(),
        Err(_) => {}
    }
    if skill.is_document(path) {
        let skill = &skill.summary;
        resource["name"] = skill.alias.as_ref().unwrap_or(&skill.name).as_str().into();
        resource["mimeType"] = "text/markdown".into();
        if !skill.description.is_empty() {
            resource["description"] = skill.description.as_str().into();
        }
    } else if let Some(kind) = mime_types::by_name(path) {
        resource["mimeType"] = kind.into();
    }
    Some(resource)
}

/// Lists the template of the URIs.
pub(super) fn templates(request: &RequestContext<'_, '_>) -> HandlerResult {
    let page = ResultPage::from_request(request)?;
    let template = json!({
        "uriTemplate": "skill://{skill}/{+path}",
        "name": "skill-file",
        "title": "A file of a skill",
        "description": "A file by its path in the skill's folder; start with SKILL.md.",
    });
    let templates = [("0".to_string(), template)];
    Ok(page.reply("resourceTemplates", 1, templates, |_, template| Some(template)))
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

/// Reads a file.
pub(super) fn read(server: &McpServer<'_>, request: &RequestContext<'_, '_>) -> HandlerResult {
    let uri = requested_uri(request)?;
    let code = match request.era {
        Era::Legacy => NOT_FOUND,
        Era::Modern => INVALID_PARAMS,
    };
    let content =
        published_skills::find(server, &uri).and_then(|(skill, path)| match skill.open(&path) {
            Ok(PathTarget::File(file)) => content(server, &skill, &path, &file),
            Ok(PathTarget::Folder(_)) => {
                Err("it is a folder: resources/directory/read lists it".into())
            }
            Err(error) => Err(error.user_message()),
        });
    content.map_err(|reason| resource_error(code, &uri, "cannot be read", &reason))
}

fn content(
    server: &McpServer<'_>,
    skill: &OpenSkill,
    path: &Path,
    file: &OpenFile,
) -> Result<RpcResult, String> {
    let most = usize::try_from(limits::SKILL_BYTES).unwrap_or(usize::MAX);
    let piece = confined::read_whole(&file.file, most).map_err(|error| error.user_message())?;
    if piece.has_more {
        let most = limits::SKILL_BYTES >> 20;
        return Err(format!("it is larger than {most} MiB; read_file_in_skill reads parts of it"));
    }
    let kind = if skill.is_document(path) {
        "text/markdown"
    } else {
        let beginning = &piece.bytes[..piece.bytes.len().min(limits::CONTENT_TYPE_BYTES)];
        mime_types::by_name(path).unwrap_or_else(|| mime_types::by_content(beginning))
    };
    let secrets = server.context.secrets;
    let (member, content) = match String::from_utf8(piece.bytes) {
        Ok(text) if is_readable(&text) => ("text", secrets.mask(&text).into_owned()),
        other => {
            let bytes = other.map_or_else(FromUtf8Error::into_bytes, String::into_bytes);
            // A secret cannot be masked in base64.
            if secrets.occur_in(&bytes) {
                return Err(SECRET.into());
            }
            ("blob", BASE64_STANDARD.encode(&bytes))
        }
    };
    let mut contents = json!({"uri": skill.uri(path), "mimeType": kind});
    contents[member] = content.into();
    // Not cached: the content must match the digest that skills/list returns.
    Ok(RpcResult::new("contents", vec![contents]).cached_for(0))
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
    let page = ResultPage::from_request(request)?;
    let found = published_skills::find(server, &uri)
        .and_then(|(skill, path)| Ok((children(&skill, &path)?, skill)));
    let (children, skill) = found
        .map_err(|reason| resource_error(INVALID_PARAMS, &uri, "cannot be listed", &reason))?;
    let describe = |uri: &str, path: PathBuf| describe(server, &skill, uri, &path);
    Ok(page.reply("resources", limits::LIST_PAGE_ENTRIES, children, describe))
}

/// URIs and paths of the files in a folder, and of the folders in it that lead to files.
fn children(skill: &OpenSkill, folder: &Path) -> Result<BTreeMap<String, PathBuf>, String> {
    let mut children = BTreeMap::new();
    for (_, path) in skill.files(limits::RESOURCE_FILES).list {
        let Ok(below) = path.strip_prefix(folder) else {
            continue;
        };
        let Some(first) = below.iter().next() else {
            return Err("it is a file, not a folder: resources/read reads it".into());
        };
        let child = folder.join(first);
        children.insert(skill.uri(&child), child);
    }
    if children.is_empty() { Err("no such folder with files".into()) } else { Ok(children) }
}

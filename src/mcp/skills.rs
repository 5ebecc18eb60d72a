//! The skills extension (SEP-2640): entries of skills with frontmatter and digests of
//! files.
//!
//! A client compares an entry with what it reads, so a skill whose entry could not be
//! exact is left out, with a warning that gives the reason. Its files are still
//! resources.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::McpServer;
use super::era::RpcResult;
use super::pages::ResultPage;
use super::published_skills::{self, DOCUMENT, OpenSkill, PublishedSkill, SECRET, published};
use super::request_context::{HandlerResult, RequestContext};
use super::resources::{requested_uri, resource_error};
use super::rpc::INVALID_PARAMS;
use base::digest::sha256;
use base::limits;
use base::secret::Secrets;
use base::text;
use host::confined::{self, OpenError, OpenFile, PathTarget};
use skills::{frontmatter, is_valid_name, yaml};

/// Lists the entries of all skills in pages.
pub(super) fn list(server: &McpServer<'_>, request: &RequestContext<'_, '_>) -> HandlerResult {
    let page = ResultPage::from_request(request)?;
    let catalogue = server.catalogue();
    let skills = published(&catalogue).into_iter().map(|skill| (skill.root.clone(), skill));
    let describe = |_: &str, skill: PublishedSkill<'_>| {
        let entry = skill.open(server).and_then(|skill| entry(server.context.secrets, &skill));
        let warn = |reason: &String| {
            server.warn_once(omission_warning(&skill.summary.name, reason));
        };
        entry.inspect_err(warn).ok()
    };
    Ok(page.reply("skills", limits::SKILLS_PAGE_ENTRIES, skills, describe))
}

fn omission_warning(folder: &str, reason: &str) -> String {
    let shown = text::one_line_name(folder);
    format!("the skill `{shown}` is left out of skills/list: {reason}")
}

/// Returns the entry of one skill.
pub(super) fn get(server: &McpServer<'_>, request: &RequestContext<'_, '_>) -> HandlerResult {
    let uri = requested_uri(request)?;
    let entry = published_skills::find(server, &uri).and_then(|(skill, path)| {
        if !skill.is_document(&path) {
            return Err(format!("a skill's address ends with /{DOCUMENT}"));
        }
        let entry = entry(server.context.secrets, &skill);
        entry.map_err(|reason| omission_warning(&skill.summary.name, &reason))
    });
    let skill =
        entry.map_err(|reason| resource_error(INVALID_PARAMS, &uri, "has no entry", &reason))?;
    // Not cached: clients request an entry when they notice a change.
    Ok(RpcResult::new("skill", skill).cached_for(0))
}

/// Returns the entry of a skill, or why it has none, with a remedy.
fn entry(secrets: &Secrets, skill: &OpenSkill) -> Result<Value, String> {
    let document = skill.skill.read_document()?;
    if secrets.occur_in(document.text.as_bytes()) {
        return Err(format!("its document cannot be published: {SECRET}"));
    }
    let fields = strict_frontmatter(&document.text)?;
    check_name(&skill.name, &fields)?;
    let description = fields.get("description").and_then(Value::as_str);
    match description.map(|text| text.trim().chars().count()) {
        None | Some(0) => {
            return Err("its frontmatter has no `description` text; add one".into());
        }
        Some(count) if count > limits::DESCRIPTION_CHARS => {
            let most = limits::DESCRIPTION_CHARS;
            return Err(format!("its `description` has {count} characters; shorten it to {most}"));
        }
        Some(_) => {}
    }
    let files = skill.files(limits::SKILL_FILES + 1);
    if files.list.len() > limits::SKILL_FILES {
        let most = limits::SKILL_FILES;
        return Err(format!("it has more than {most} files; remove some"));
    }
    if !files.is_whole {
        return Err("some of its folders cannot be read; make them readable or remove them".into());
    }
    let mut total = 0;
    let mut resources = Vec::new();
    for (address, path) in &files.list {
        let digest = if skill.is_document(path) {
            // The same text as that of the frontmatter.
            Ok((sha256(document.text.as_bytes()), document.text.len() as u64))
        } else {
            match skill.open(path) {
                Ok(PathTarget::File(file)) => digest(&file, limits::SKILL_BYTES - total, secrets),
                Ok(PathTarget::Folder(_)) => Err("a folder".into()),
                Err(OpenError::Private) => continue,
                Err(error) => Err(error.user_message()),
            }
        };
        let (digest, size) = digest
            .map_err(|reason| format!("its file {} cannot be read: {reason}", path.display()))?;
        total += size;
        if total > limits::SKILL_BYTES {
            let most = limits::SKILL_BYTES >> 20;
            return Err(format!("its files are larger than {most} MiB together; remove some"));
        }
        resources.push(json!({"uri": address, "digest": format!("sha256:{digest}"), "size": size}));
    }
    let uri = skill.uri(Path::new(&document.file_name));
    Ok(json!({"uri": uri, "frontmatter": fields, "resources": resources}))
}

/// Digest and size of a file. If it is larger than `most` bytes, the digest is empty.
fn digest(file: &OpenFile, most: u64, secrets: &Secrets) -> Result<(String, u64), String> {
    if file.size > most {
        return Ok((String::new(), file.size));
    }
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let piece = confined::read_whole(&file.file, most).map_err(|error| error.user_message())?;
    if secrets.occur_in(&piece.bytes) {
        return Err(SECRET.into());
    }
    let size = piece.bytes.len() as u64 + u64::from(piece.has_more);
    Ok((sha256(&piece.bytes), size))
}

/// Parses frontmatter that every YAML parser accepts. The values are those of YAML 1.2,
/// which the protocol's own checkers compare.
fn strict_frontmatter(document: &str) -> Result<Map<String, Value>, String> {
    let front = frontmatter::parse(document);
    let source = document.get(front.source.clone()).unwrap_or_default();
    let before = document.get(..front.source.start).unwrap_or_default();
    let starts_with_marker = matches!(before.trim_end(), "---") && before.starts_with("---");
    let is_unclosed = front.is_unclosed;
    if document.starts_with('\u{feff}') {
        return Err("its document starts with a byte order mark; save it without one".into());
    }
    if starts_with_marker && is_unclosed {
        return Err("its frontmatter does not end with a line `---`".into());
    }
    if !starts_with_marker || is_unclosed {
        return Err("its document does not start with frontmatter between two lines `---`".into());
    }
    // The last line needs its line end, which a block text includes.
    let source = yaml::normalize(source) + "\n";
    let reading = yaml::parse_core(&source).map_err(|error| {
        let line = error.line + 1;
        format!(
            "its frontmatter is not YAML that all parsers accept: line {line}: {}; see `skills check`",
            error.message
        )
    })?;
    // Some parsers refuse a repeated key, or a tab.
    if let Some(found) = reading.diagnostics.into_iter().next() {
        return Err(format!("line {}: {}; see `skills check`", found.line + 1, found.message));
    }
    match reading.value {
        Value::Object(fields) => Ok(fields),
        _ => Err("its frontmatter has no fields; add `name` and `description`".into()),
    }
}

/// Checks that the name in the frontmatter is the name in the URI.
fn check_name(uri_name: &str, fields: &Map<String, Value>) -> Result<(), String> {
    let name = match fields.get("name") {
        Some(Value::String(name)) if !name.is_empty() => name,
        Some(Value::Null | Value::String(_)) | None => {
            return Err("its frontmatter has no `name`; add one".into());
        }
        Some(_) => return Err("its `name` is not a text; put it in quotes".into()),
    };
    // Only some parsers allow letters of other scripts.
    if !name.is_ascii() || !is_valid_name(name) {
        return Err(format!(
            "its name `{}` may contain only lowercase letters a-z, digits and single hyphens, at most {}",
            text::truncate(name, limits::SUMMARY_CHARS).escape_debug(),
            limits::SKILL_NAME_CHARS
        ));
    }
    if name != uri_name {
        return Err(format!("another skill has the same name `{name}`; rename one of them"));
    }
    Ok(())
}

//! Skills as the skills extension lists them (SEP-2640): each with its
//! frontmatter and the digests of its files.
//!
//! An entry is checked by the client against what it then reads, so a skill of
//! which it could not be true is left out, and a person is told why. Its files
//! are resources all the same.

use serde_json::{Map, Value, json};

use super::McpServer;
use super::era::RpcResult;
use super::pages::ResultPage;
use super::published_skills::named;
use super::request_context::{HandlerResult, RequestContext};
use super::resources::{
    DOCUMENT, FoundResource, SECRET, SkillFiles, is_document, missing, requested,
};
use super::rpc::INVALID_PARAMS;
use crate::digest::sha256;
use crate::limits;
use crate::secret::Secrets;
use crate::skills::{Skill, frontmatter, is_valid_name, yaml};
use crate::text;
use crate::world::confined::{self, OpenFile, PathTarget};

/// All skills that have an entry, in pages.
pub(super) fn list(server: &McpServer<'_>, asked: &RequestContext<'_, '_>) -> HandlerResult {
    let mut page = ResultPage::of(asked)?;
    let catalogue = server.catalogue();
    for named in named(&catalogue) {
        let address = format!("{}{DOCUMENT}", named.root);
        if page.is_past(&address) {
            continue;
        }
        if !page.has_room() {
            break;
        }
        let skill = server.context.skills.find(&named.skill.name);
        let entry =
            skill.and_then(|skill| entry(server.context.secrets, named.name, &named.root, &skill));
        match entry {
            Ok((entry, bytes)) => {
                page.has_read(bytes);
                page.pass(&address, Some(&entry));
            }
            Err(why) => {
                server.warn_once(left_out(&named.skill.name, &why));
                page.pass(&address, None);
            }
        }
    }
    Ok(page.reply("skills"))
}

fn left_out(folder: &str, why: &str) -> String {
    let shown = text::one_name(folder);
    format!("the skill `{shown}` is left out of skills/list: {why}")
}

/// The entry of one skill.
pub(super) fn get(server: &McpServer<'_>, asked: &RequestContext<'_, '_>) -> HandlerResult {
    let uri = requested(asked)?;
    let found = FoundResource::of(server, &uri).and_then(|found| {
        if found.known_as.as_os_str() != DOCUMENT {
            return Err(format!("a skill's address ends with /{DOCUMENT}"));
        }
        let entry = entry(server.context.secrets, &found.name, &found.root, &found.skill);
        entry.map_err(|why| left_out(&found.skill.name, &why))
    });
    let (skill, _) = found.map_err(|why| missing(INVALID_PARAMS, &uri, "has no entry", &why))?;
    // Not to be kept: it is asked for by who has seen that something has changed.
    Ok(RpcResult::of(&json!({ "skill": skill })).kept(0))
}

/// The entry of a skill and the bytes that were read for it, or why it has none
/// and what helps. `name` is what it is called in addresses.
fn entry(secrets: &Secrets, name: &str, root: &str, skill: &Skill) -> Result<(Value, u64), String> {
    let document = skill.document().map_err(|fault| fault.to_string())?;
    if secrets.is_within(document.text.as_bytes()) {
        return Err(format!("its document cannot be told: {SECRET}"));
    }
    let fields = strictly(&document.text)?;
    check_name(name, &fields)?;
    let description = fields.get("description").and_then(Value::as_str);
    match description.map(|text| text.trim().chars().count()) {
        None | Some(0) => {
            return Err("its frontmatter has no text `description`; write one".into());
        }
        Some(count) if count > limits::DESCRIPTION_CHARS => {
            let most = limits::DESCRIPTION_CHARS;
            return Err(format!("its `description` has {count} characters; shorten it to {most}"));
        }
        Some(_) => {}
    }
    let files = SkillFiles::of(skill, root, limits::SKILL_FILES + 1);
    if files.list.len() > limits::SKILL_FILES {
        let most = limits::SKILL_FILES;
        return Err(format!("it has more than {most} files; remove some"));
    }
    if !files.is_whole {
        return Err("some of its folders cannot be read; allow it, or remove them".into());
    }
    let mut total = 0;
    let mut resources = Vec::new();
    for (address, path) in &files.list {
        let digest = if is_document(root, address) {
            // The very text whose frontmatter is told.
            Ok((sha256(document.text.as_bytes()), document.text.len() as u64))
        } else {
            match skill.root.walked(path) {
                Ok(PathTarget::File(file)) => digest(&file, limits::SKILL_BYTES - total, secrets),
                Ok(PathTarget::Folder(_)) => Err("a folder".into()),
                Err(refusal) => Err(refusal.for_people()),
            }
        };
        let (digest, size) =
            digest.map_err(|why| format!("its file {} cannot be read: {why}", path.display()))?;
        total += size;
        if total > limits::SKILL_BYTES {
            let most = limits::SKILL_BYTES >> 20;
            return Err(format!("its files have more than {most} MiB; remove some"));
        }
        resources.push(json!({"uri": address, "digest": format!("sha256:{digest}"), "size": size}));
    }
    let uri = format!("{root}{DOCUMENT}");
    let entry = json!({"uri": uri, "frontmatter": fields, "resources": resources});
    Ok((entry, total))
}

/// The digest of a file and its size; of one that is larger than `most` bytes
/// only that.
fn digest(file: &OpenFile, most: u64, secrets: &Secrets) -> Result<(String, u64), String> {
    if file.size > most {
        return Ok((String::new(), file.size));
    }
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let piece = confined::read_whole(&file.file, most).map_err(|refusal| refusal.for_people())?;
    if secrets.is_within(&piece.bytes) {
        return Err(SECRET.into());
    }
    let size = piece.bytes.len() as u64 + u64::from(piece.more);
    Ok((sha256(&piece.bytes), size))
}

/// The frontmatter of a document, if every reader of YAML takes it: with the values
/// of YAML 1.2, by which the protocol's own checkers compare.
fn strictly(document: &str) -> Result<Map<String, Value>, String> {
    let front = frontmatter::parse(document);
    let source = document.get(front.source.clone()).unwrap_or_default();
    let before = document.get(..front.source.start).unwrap_or_default();
    let is_unclosed = |found: &frontmatter::Diagnostic| found.rule == "unclosed-frontmatter";
    let begins = matches!(before.trim_end(), "---") && before.starts_with("---");
    let is_unclosed = front.diagnostics.iter().any(is_unclosed);
    if document.starts_with('\u{feff}') {
        return Err("its document begins with a byte order mark; save it without".into());
    }
    if begins && is_unclosed {
        return Err("its frontmatter does not end with a line of `---`".into());
    }
    if !begins || is_unclosed {
        return Err("its document does not begin with a frontmatter between lines of `---`".into());
    }
    // The end of its last line counts: a text in block form keeps it.
    let source = yaml::normalize(source) + "\n";
    let reading = yaml::parse_core(&source).map_err(|fault| {
        let line = fault.line + 1;
        format!(
            "its frontmatter is no YAML that all can read: line {line}: {}; see `skills check`",
            fault.message
        )
    })?;
    let mut twice = reading.findings.into_iter();
    if let Some(twice) = twice.find(|finding| finding.rule == "duplicate-key") {
        let (line, what) = (twice.line + 1, twice.message);
        return Err(format!("line {line}: {what}; keep one"));
    }
    match reading.value {
        Value::Object(fields) => Ok(fields),
        _ => Err("its frontmatter has no fields; write `name` and `description`".into()),
    }
}

/// The last part of the address must be the name in the frontmatter.
fn check_name(own: &str, fields: &Map<String, Value>) -> Result<(), String> {
    let name = match fields.get("name") {
        Some(Value::String(name)) if !name.is_empty() => name,
        Some(Value::Null | Value::String(_)) | None => {
            return Err("its frontmatter has no `name`; write one".into());
        }
        Some(_) => return Err("its `name` is no text; put it in quotes".into()),
    };
    // Letters of other scripts are allowed by some readers only.
    if !name.is_ascii() || !is_valid_name(name) {
        return Err(format!(
            "its name `{}` may have only lowercase letters a-z, digits and single hyphens, at most {}",
            text::cut(name, limits::SUMMARY_CHARS).escape_debug(),
            limits::SKILL_NAME_CHARS
        ));
    }
    if name != own {
        return Err(format!("another skill has its name `{name}`; give it one of its own"));
    }
    Ok(())
}

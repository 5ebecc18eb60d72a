//! Trust in environment files: no data of the user goes to a destination that only `./.env`
//! sets, and its paths stay in the working folder. The table of settings has the rules.
//!
//! The folder's owner wrote `./.env`, and this may be another person. It may set an address
//! with a key of its own; it must not capture the user's key, files or variables. This also
//! holds for an endpoint on this machine: any local user may listen there.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use crate::config::{Config, ConfigReader};
use base::address::Address;
use base::error::Fault;
use base::settings::{self, FolderRule, SETTINGS, Settings, TRUST_FIX, ValueSource};

/// A setting that decides where data goes: the address, the proxy, or the certificates.
pub(super) struct EndpointRoute {
    /// The route in words, such as `to api.example.com`.
    pub description: String,
    /// The source of the setting.
    pub source: ValueSource,
}

/// A key or header that identifies the user.
pub(super) struct Credential {
    /// The variable that contains it or names its file.
    pub source: ValueSource,
    /// Whether it belongs to the user, even if `./.env` names it.
    pub belongs_to_user: bool,
    /// Whether it identifies an account.
    pub is_key: bool,
}

impl ConfigReader<'_> {
    /// Reports credentials that would go to an untrusted destination, and warns about
    /// unencrypted connections.
    pub(super) fn check_trust(
        &mut self,
        address: &Address,
        routes: &[EndpointRoute],
        credentials: &[Credential],
    ) {
        for route in routes.iter().filter(|route| route.source.is_untrusted()) {
            let EndpointRoute { description: way, source, .. } = route;
            for own in credentials.iter().filter(|credential| credential.belongs_to_user) {
                self.report(Fault::new(
                    format!("{} is not sent {way}, which only {} sets", own.source, source.origin),
                    format!("set {} where the key is set; {TRUST_FIX}", source.name),
                ));
            }
        }
        if !address.is_encrypted() && !address.is_loopback() {
            let names: Vec<&str> = credentials.iter().map(|c| c.source.name).collect();
            let verb = match names.as_slice() {
                [] => return,
                [_] => "goes",
                _ => "go",
            };
            let (names, host) = (names.join(" and "), address.host());
            self.warnings.push(Fault::new(
                format!("{names} {verb} to {host} over plain http, where others can read it"),
                "use the endpoint's https:// address, if it has one",
            ));
        }
    }

    /// Reports a key of `./.env` that is sent to the user's own endpoint: its author may read there
    /// what is sent.
    pub(super) fn report_foreign_key(&mut self, address: &EndpointRoute, keys: &[Credential]) {
        let is_foreign = |key: &&Credential| {
            let mut values = self.settings.values(key.source.name).into_iter();
            let first = values.next().map(|(value, _)| value);
            !values.any(|(value, source)| !source.is_untrusted() && Some(value) == first)
        };
        let keys = keys.iter().filter(|key| key.is_key && key.source.is_untrusted());
        if let Some(key) = keys.filter(is_foreign).find(|_| !address.source.is_untrusted()) {
            let message = format!(
                "{} is the key that goes {}, not one of yours",
                key.source, address.description
            );
            self.warnings.push(Fault::new(message, TRUST_FIX));
        }
    }

    /// Reports places outside the working folder that `./.env` sets.
    pub(super) fn check_places(&mut self) {
        for row in SETTINGS {
            let Some((value, source)) = self.settings.value(row.name) else { continue };
            let paths = match row.folder_rule {
                _ if !source.is_untrusted() => continue,
                FolderRule::Grant | FolderRule::SkillsPlaces => self.resolve_paths(&value),
                FolderRule::Place => vec![self.path(&value)],
                _ => continue,
            };
            let hidden: &[&str] = match row.folder_rule {
                FolderRule::SkillsPlaces => &HIDDEN_SKILLS,
                _ => &[],
            };
            let is_outside =
                |path: &&PathBuf| !is_plain_path_within(path, self.user_folder, hidden);
            if let Some(path) = paths.iter().find(is_outside) {
                let path = path.display();
                let message =
                    format!("{source} must be a visible place in this folder, not {path}");
                let fix = format!("set it in ~/.config/skills-runner/.env; {TRUST_FIX}");
                self.report(Fault::new(message, fix));
            }
        }
    }
}

impl Config {
    /// Reports that requests go this way, which only `./.env` sets, and leaves out what belongs to
    /// the user and not to the working folder.
    pub(super) fn hold_back_user_data(&mut self, way: &str, settings: &Settings, folder: &Path) {
        let is_of_user =
            |name| !settings.value(name).is_some_and(|(_, source)| source.is_untrusted());
        let storage = &mut self.storage;
        let places = [
            ("your facts", &mut storage.facts, settings::MEMORY_PATH),
            ("your notes", &mut storage.notes, settings::NOTES_FOLDER_PATH),
            ("your system prompt", &mut self.prompt_file, settings::SYSTEM_PROMPT_PATH),
        ];
        let left = places.into_iter().filter(|(_, _, name)| is_of_user(*name));
        let left = left.filter_map(|(what, place, _)| place.take().map(|_| what.to_string()));
        let mut left: Vec<String> = left.collect();
        let folder = folder.canonicalize().ok();
        let (inside, outside) = self.skills_folders.drain(..).partition(|skills| {
            let real = skills.path.canonicalize().ok().zip(folder.as_ref());
            real.is_some_and(|(real, folder)| real.starts_with(folder))
        });
        (self.skills_folders, self.held_back_skills) = (inside, outside);
        let outside = self.held_back_skills.iter();
        left.extend(outside.map(|skills| format!("the skills in {}", skills.path.display())));
        let mut message = format!("requests go {way}, which only .env sets");
        if !left.is_empty() {
            message += &format!("; not used: {}", left.join(", "));
        }
        self.warnings.push(Fault::new(message, TRUST_FIX));
    }
}

/// Folders of skills with a hidden name that `./.env` may name.
const HIDDEN_SKILLS: [&str; 2] = [".agents/skills", ".claude/skills"];

/// Whether the path, with links resolved, is `folder` or in it, and has no hidden name on the
/// way, except one of these places. The missing part of a path is appended to its existing part. A
/// file with a second name may be another one's.
fn is_plain_path_within(path: &Path, folder: &Path, hidden: &[&str]) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or(path.to_path_buf());
    let Some(there) = path.ancestors().find(|path| path.canonicalize().is_ok()) else {
        return false;
    };
    let missing = path.strip_prefix(there).unwrap_or(path);
    let first = missing.components().next();
    // A write would follow a dangling link.
    if first.is_some_and(|first| there.join(first).is_symlink()) {
        return false;
    }
    let is_usual = |meta: Metadata| meta.is_dir() || meta.is_file() && meta.nlink() == 1;
    let place = match first {
        Some(_) => real(there).join(missing),
        None if !there.metadata().is_ok_and(is_usual) => return false,
        None => real(there),
    };
    if place.join(".git").exists() {
        return false;
    }
    place.strip_prefix(real(folder)).is_ok_and(|rest| {
        let rest = hidden.iter().find_map(|it| rest.strip_prefix(it).ok()).unwrap_or(rest);
        rest.components().all(|part| match part {
            Component::Normal(name) => !name.as_encoded_bytes().starts_with(b"."),
            _ => false,
        })
    })
}

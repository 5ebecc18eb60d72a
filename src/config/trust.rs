//! Trust in environment files: no data of the user goes to a destination that only `./.env`
//! sets, and its paths stay in the working folder. The table of settings has the rules.
//!
//! The folder's owner wrote `./.env`, and this may be another person. It may set an address
//! with a key of its own; it must not capture the user's key, files or variables. This also
//! holds for an endpoint on this machine: any local user may listen there.

use std::path::{Component, Path, PathBuf};

use crate::address::Address;
use crate::config::ConfigReader;
use crate::error::Fault;
use crate::settings::{FolderRule, SETTINGS, ValueSource};

/// A setting that decides where data goes: the address, the proxy, or the certificates.
pub(super) struct EndpointRoute {
    /// The route in words, such as `to api.example.com`.
    pub description: String,
    /// The source of the setting.
    pub source: ValueSource,
    /// Whether third parties see the value itself, as name servers see the host name.
    pub is_value_disclosed: bool,
}

/// A key or header that identifies the user.
pub(super) struct Credential {
    /// The variable that contains it or names its file.
    pub source: ValueSource,
    /// Whether it belongs to the user, even if `./.env` names it.
    pub belongs_to_user: bool,
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
                    format!("set {} where the key is set, or {TRUST_FILE}", source.name),
                ));
            }
        }
        self.refuse_leaks(routes);
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

    /// The same for other data: `./.env` must not put the user's variables into a request,
    /// the address or the proxy.
    fn refuse_leaks(&mut self, routes: &[EndpointRoute]) {
        let Some(foreign) = routes.iter().find(|route| route.source.is_untrusted()) else {
            return;
        };
        let disclosed = routes.iter().filter(|route| route.is_value_disclosed);
        let disclosed = disclosed.map(|route| route.source.clone());
        let sent = SETTINGS.iter().filter(|row| row.folder_rule == FolderRule::Sent);
        let sent = sent.filter_map(|row| Some(self.settings.value(row.name)?.1));
        let all: Vec<ValueSource> = disclosed.chain(sent).collect();
        for leak in all.iter().filter(|leak| leak.is_untrusted() && leak.uses_environment()) {
            let (way, origin) = (&foreign.description, &foreign.source.origin);
            let message = format!(
                "{leak} puts environment variables into data that is sent {way}, which only {origin} sets"
            );
            self.report(Fault::new(message, TRUST_FILE));
        }
    }

    /// Checks the paths that `./.env` sets. `sends_away`: it also sets an endpoint on another
    /// machine, so its author would get what is read at these paths.
    pub(super) fn check_paths(&mut self, sends_away: bool) {
        for row in SETTINGS {
            let Some((value, source)) = self.settings.value(row.name) else { continue };
            let paths = match row.folder_rule {
                _ if !source.is_untrusted() => continue,
                FolderRule::Grant => self.resolve_paths(&value),
                FolderRule::SentFile | FolderRule::Stored => vec![self.path(&value)],
                _ => continue,
            };
            let is_refused = |path: &&PathBuf| {
                let is_outside = !is_plain_path_within(path, self.user_folder);
                match row.folder_rule {
                    FolderRule::Grant => is_outside,
                    // A FIFO or a device would keep the program waiting.
                    FolderRule::SentFile if path.metadata().is_ok_and(|meta| !meta.is_file()) => {
                        true
                    }
                    _ => sends_away && is_outside,
                }
            };
            let Some(path) = paths.iter().find(is_refused).map(|path| path.display()) else {
                continue;
            };
            let message = match row.folder_rule {
                FolderRule::Grant => format!(
                    "{source} grants scripts access to {path}, which is not a visible folder in the working folder"
                ),
                FolderRule::Stored => format!(
                    "{source} is {path}, outside the working folder, and the same file sets the endpoint"
                ),
                _ => format!(
                    "{source} names {path}, which is not a visible file in the working folder and would be sent to the endpoint"
                ),
            };
            let fix = format!(
                "set {} in the environment or in ~/.config/skills-runner/.env, or {TRUST_FILE}",
                row.name
            );
            match row.folder_rule {
                FolderRule::Stored => self.warnings.push(Fault::new(message, fix)),
                _ => self.report(Fault::new(message, fix)),
            }
        }
    }
}

const TRUST_FILE: &str = "pass the file with --env-file if you trust it";

/// Whether the path, with links resolved, is `folder` or in it, and has no hidden name on the
/// way. The missing part of a path is appended to its existing part.
fn is_plain_path_within(path: &Path, folder: &Path) -> bool {
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
    let place = match first {
        Some(_) => real(there).join(missing),
        None => real(there),
    };
    if place.join(".git").exists() {
        return false;
    }
    place.strip_prefix(real(folder)).is_ok_and(|rest| {
        rest.components().all(|part| match part {
            Component::Normal(name) => !name.as_encoded_bytes().starts_with(b"."),
            _ => false,
        })
    })
}

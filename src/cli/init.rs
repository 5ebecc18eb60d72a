//! `init`: the first set-up. It finds what it can, asks for the rest on a terminal, writes the
//! user's `.env`, and checks it with `doctor`.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::cli::doctor;
use crate::cli::env_files::settings_without_files;
use crate::cli::model_lookup::typable_names;
use crate::cli::options::{CommonOptions, InitCommand};
use crate::cli::startup::Startup;
use crate::cli::stdin;
use crate::config::{Config, ConfigNeeds, ollama_address};
use crate::ui::Output;
use base::address::Address;
use base::dotenv;
use base::error::{Error, ErrorKind, Result};
use base::limits;
use base::settings::{
    LLM_API_BASE_URL, LLM_API_KEY, LLM_API_KEY_FILE, LLM_MODEL_NAME, OLLAMA_HOST, OPENAI_API_KEY,
    OPENAI_BASE_URL, OPENAI_MODEL, Settings,
};
use chat_api::http::{EndpointQuery, ListedModel, ModelListing, query_briefly};
use host::cancellation::Cancellation;
use host::files;
use host::terminal;

/// The address to which a key in `OPENAI_API_KEY` belongs.
const OPENAI: &str = "https://api.openai.com/v1";
/// Stands for a model that is not known yet.
const NO_MODEL: &str = "unknown";

/// Runs the set-up; the status is that of `doctor`.
pub(super) fn run(
    command: &InitCommand,
    options: CommonOptions,
    startup: &Startup,
    output: &mut Output,
) -> Result<u8> {
    let settings = settings_without_files(&options, startup);
    let file = settings.xdg_folder("XDG_CONFIG_HOME", ".config");
    let file = file.map(|folder| folder.join("skills-runner/.env")).ok_or_else(|| {
        Error::new(ErrorKind::Config, "failed to find a place for the settings: HOME is not set")
    })?;
    check_writers(&file)?;
    let cancellation = Cancellation { interrupt: startup.interrupt.clone(), deadline: None };
    let mut setup =
        FirstSetup { command, options, settings, startup, cancellation, chosen: Vec::new() };
    setup.choose_address(output)?;
    setup.choose_key(output)?;
    setup.choose_model(output)?;
    let written = write_settings(&file, &setup.chosen);
    let kept = written.map_err(|error| {
        Error::new(ErrorKind::Io, format!("failed to write `{}`: {error}", file.display()))
    })?;
    output.note(&format!("wrote {}, readable by you alone", file.display()));
    if let Some(kept) = kept {
        output.note(&format!("the older one is {}", kept.display()));
    }
    setup.make_skills_folder(output)?;
    doctor::run(setup.options, startup, output)
}

/// A running set-up.
struct FirstSetup<'s> {
    command: &'s InitCommand,
    options: CommonOptions,
    /// Settings by options and environment.
    settings: Settings,
    startup: &'s Startup,
    cancellation: Cancellation,
    /// The lines of the file.
    chosen: Vec<(&'static str, String)>,
}

impl FirstSetup<'_> {
    fn choose_address(&mut self, output: &mut Output) -> Result<()> {
        let known = [LLM_API_BASE_URL, OPENAI_BASE_URL];
        let known = known.into_iter().find_map(|name| self.value(name));
        let ollama = ollama_address(&self.value(OLLAMA_HOST).unwrap_or_default());
        let address = match (self.command.base_url.clone().or(known), self.value(OPENAI_API_KEY)) {
            (Some(address), _) => address,
            (None, _) if self.models(&ollama, true, output)?.is_some() => {
                output.note(&format!("found Ollama: {ollama}"));
                ollama
            }
            (None, Some(_)) => {
                output.note(&format!("found OPENAI_API_KEY: {OPENAI}"));
                OPENAI.to_string()
            }
            (None, None) => self.ask_until(
                output,
                "Address of the API, such as http://127.0.0.1:11434/v1: ",
                "the address of the API is not known: give --base-url URL",
                |address, _| {
                    Address::parse(&with_scheme(address))
                        .err()
                        .map(|cause| format!("this is not an address: {cause}"))
                },
            )?,
        };
        let mut address = with_scheme(&address);
        if let Err(cause) = Address::parse(&address) {
            let text = format!("failed to use the address: {cause}");
            let is_option = self.command.base_url.is_some();
            let kind = if is_option { ErrorKind::Usage } else { ErrorKind::Config };
            return Err(Error::new(kind, text).with_hint("give --base-url URL"));
        }
        // What servers show is often the address without the path of the API.
        let with_path = format!("{}/v1", address.trim_end_matches('/'));
        let has_no_path = address.trim_end_matches('/').matches('/').count() == 2;
        if has_no_path && self.models(&with_path, true, output)?.is_some() {
            address = with_path;
        }
        self.chosen.push((LLM_API_BASE_URL, address));
        Ok(())
    }

    fn choose_key(&mut self, output: &mut Output) -> Result<()> {
        match self.command.key_file.as_deref() {
            Some(file) if file == "-" => {
                let key = stdin::read_text(limits::KEY_FILE_BYTES, &self.cancellation)?;
                if key.trim().is_empty() {
                    let text = "failed to read the key: standard input is empty";
                    return Err(Error::new(ErrorKind::Config, text));
                }
                self.chosen.push((LLM_API_KEY, key.trim().to_string()));
                return Ok(());
            }
            Some(file) => {
                let path = self.startup.folder.join(file);
                if !path.is_file() {
                    let text =
                        format!("failed to read the key: {} is not a regular file", path.display());
                    return Err(Error::new(ErrorKind::Config, text));
                }
                self.chosen.push((LLM_API_KEY_FILE, path.to_string_lossy().into_owned()));
                return Ok(());
            }
            None => {}
        }
        let address = self.address();
        let is_openai = address.starts_with(OPENAI) || self.value(OPENAI_BASE_URL).is_some();
        let names =
            if is_openai { [LLM_API_KEY, OPENAI_API_KEY].as_slice() } else { &[LLM_API_KEY] };
        if let Some(key) = names.iter().find_map(|name| self.value(name)) {
            self.chosen.push((LLM_API_KEY, key));
            return Ok(());
        }
        let is_local = Address::parse(&address).is_ok_and(|to| to.is_loopback());
        if !is_local {
            if Output::can_ask() {
                output.note("the key is not shown while you type; it is stored in the file");
            }
            let key = self.ask(
                "API key: ",
                "the key is not known: give --key-file FILE (`-`: standard input)",
                true,
            )?;
            self.chosen.push((LLM_API_KEY, key));
        }
        Ok(())
    }

    fn choose_model(&mut self, output: &mut Output) -> Result<()> {
        let known = [LLM_MODEL_NAME, OPENAI_MODEL];
        let model = match known.into_iter().find_map(|name| self.value(name)) {
            Some(model) => model,
            None => {
                let models = self.models(&self.address(), false, output)?.unwrap_or_default();
                let listed = typable_names(&models);
                let listed: Vec<&str> = listed.take(limits::LISTED_NAMES).collect();
                match listed.as_slice() {
                    [only] => {
                        output.note(&format!("the only model is {only}"));
                        (*only).to_string()
                    }
                    names => {
                        let list = match names {
                            [] => String::new(),
                            names => format!("; the endpoint lists {}", names.join(", ")),
                        };
                        output.note(&format!("no model is chosen yet{list}"));
                        let missing = "the model is not known: give -m NAME";
                        self.ask_until(output, "Model: ", missing, |model, last| {
                            let is_known = names.is_empty() || names.contains(&model);
                            (!is_known && last != Some(model)).then(|| {
                                format!("`{model}` is not listed; type it again to use it anyway")
                            })
                        })?
                    }
                }
            }
        };
        if model.contains(char::is_control) {
            let text =
                format!("failed to use the model {model:?}: its name has control characters");
            return Err(Error::new(ErrorKind::Config, text).with_hint("give -m NAME"));
        }
        self.chosen.push((LLM_MODEL_NAME, model));
        Ok(())
    }

    fn make_skills_folder(&self, output: &mut Output) -> Result<()> {
        let (config, _) =
            Config::examine(&self.settings, &self.startup.folder, ConfigNeeds::Skills);
        let own = self.settings.xdg_folder("XDG_DATA_HOME", ".local/share");
        if let Some(own) = own.filter(|_| config.skills_folders.is_empty()) {
            let folder = own.join("skills-runner/skills");
            fs::create_dir_all(&folder).map_err(|error| {
                let text = format!("failed to create `{}`: {error}", folder.display());
                Error::new(ErrorKind::Io, text)
            })?;
            output.note(&format!("created {} for your skills", folder.display()));
        }
        Ok(())
    }

    fn value(&self, name: &'static str) -> Option<String> {
        let (value, _) = self.settings.value(name)?;
        value.into_string().ok()
    }

    fn address(&self) -> String {
        let chosen = self.chosen.iter().find(|(name, _)| *name == LLM_API_BASE_URL);
        chosen.map(|(_, value)| value.clone()).unwrap_or_default()
    }

    /// The models that an endpoint lists; `None`: it has no list, or does not answer. A brief query
    /// is for an endpoint that may not be there.
    fn models(
        &self,
        address: &str,
        is_brief: bool,
        output: &mut Output,
    ) -> Result<Option<Vec<ListedModel>>> {
        let mut settings = settings_without_files(&self.options, self.startup);
        settings.set_flag(LLM_API_BASE_URL, address.into(), "--base-url");
        settings.set_flag(LLM_MODEL_NAME, NO_MODEL.into(), "-m");
        for (name, value) in &self.chosen {
            settings.set_flag(name, value.into(), "init");
        }
        let config = Config::resolve(&settings, &self.startup.folder, ConfigNeeds::Endpoint)?;
        // Servers quote keys in their errors.
        output.set_secrets(config.secrets);
        let Some(endpoint) = config.endpoint else { return Ok(None) };
        let listing = if is_brief {
            query_briefly(&endpoint, &self.cancellation, |query| query.list_models(&mut |_| {}))
        } else {
            let query = EndpointQuery::new(endpoint, self.cancellation.clone());
            query.list_models(&mut |_| {}).map(Some)
        };
        self.cancellation.check()?;
        match listing {
            Ok(Some(ModelListing::Models(models))) => Ok(Some(models)),
            Ok(Some(ModelListing::Refused(error))) if !is_brief => Err(error),
            Ok(_) => Ok(None),
            Err(_) if is_brief => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Asks until a reply has no fault, a few times. `fault` gets the reply and the one before.
    fn ask_until(
        &self,
        output: &mut Output,
        question: &str,
        missing: &str,
        fault: impl Fn(&str, Option<&str>) -> Option<String>,
    ) -> Result<String> {
        let mut last: Option<String> = None;
        for _ in 1..limits::CONFIRM_TRIES {
            let reply = self.reply(question, missing, false)?;
            let fault = match reply.as_str() {
                "" => Some("nothing was typed; Ctrl+C ends the set-up".to_string()),
                reply => fault(reply, last.as_deref()),
            };
            match fault {
                None => return Ok(reply),
                Some(fault) => output.note(&fault),
            }
            last = Some(reply);
        }
        self.ask(question, missing, false)
    }

    /// Asks on the terminal once; an empty reply is an error.
    fn ask(&self, question: &str, missing: &str, is_secret: bool) -> Result<String> {
        let reply = self.reply(question, missing, is_secret)?;
        if reply.is_empty() { Err(missing_error(missing)) } else { Ok(reply) }
    }

    /// The reply on the terminal; without one the error says which option answers.
    fn reply(&self, question: &str, missing: &str, is_secret: bool) -> Result<String> {
        if !Output::can_ask() {
            return Err(missing_error(missing));
        }
        terminal::ask(question, &self.cancellation, is_secret)
    }
}

/// The error for an open question: what is not known, and after a colon what to do.
fn missing_error(missing: &str) -> Error {
    let (what, hint) = missing.split_once(": ").unwrap_or((missing, "run it on a terminal"));
    Error::new(ErrorKind::Config, format!("failed to set up: {what}")).with_hint(hint)
}

/// An address with its scheme: on this machine plain HTTP.
fn with_scheme(address: &str) -> String {
    if address.contains("://") || address.contains(char::is_whitespace) {
        return address.to_string();
    }
    let plain = format!("http://{address}");
    let is_local = Address::parse(&plain).is_ok_and(|it| it.is_loopback());
    if is_local { plain } else { format!("https://{address}") }
}

/// Checks that no other user can replace the file or what it keeps: its folders, and those that
/// links lead to. Above its own folder, the sticky bit is enough.
fn check_writers(file: &Path) -> Result<()> {
    let folder = file.parent().unwrap_or(Path::new("/"));
    let is_there = |path: &&Path| path.exists();
    let nearest = folder.ancestors().find(is_there).unwrap_or(Path::new("/"));
    let real = nearest.canonicalize().unwrap_or_default();
    let is_trusted = |meta: &Metadata| [0, files::effective_user()].contains(&meta.uid());
    let is_own = |path: &Path| path == file || path == folder || path == real && nearest == folder;
    for path in file.ancestors().chain(real.ancestors()).filter(is_there) {
        let failure = |cause: &str| {
            let text = format!("failed to write `{}`: {cause}", file.display());
            Error::new(ErrorKind::Io, text)
        };
        let meta = path.metadata().map_err(|error| failure(&error.to_string()))?;
        let is_sticky = meta.mode() & 0o1000 != 0 && !is_own(path) && is_trusted(&meta);
        if let Some(writer) = files::writer_beside_user(&meta).filter(|_| !is_sticky) {
            let path = path.display();
            let hint = format!("it must be yours, and writable by you alone: chmod go-w '{path}'");
            return Err(failure(&format!("`{path}`: {writer}")).with_hint(hint));
        }
    }
    Ok(())
}

/// Writes the lines, and the other ones of an older file, which is kept beside it; returns where.
/// A failure leaves the older file as it was.
fn write_settings(file: &Path, chosen: &[(&'static str, String)]) -> io::Result<Option<PathBuf>> {
    let folder = file.parent().unwrap_or(Path::new("/"));
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let is_there = match file.symlink_metadata() {
        Ok(meta) if meta.is_file() => true,
        Ok(_) => return Err(io::Error::other("it is not a regular file")),
        Err(_) => false,
    };
    let mut text = String::new();
    for (name, value) in chosen {
        if value.contains("${") {
            return Err(io::Error::other(format!("`${{` in {name} would be replaced")));
        }
        text += &format!("{name}={}\n", quoted(value));
    }
    let kept = file.with_file_name(".env.bak");
    if is_there {
        let bytes = files::read_whole(file, limits::ENV_FILE_BYTES).map_err(io::Error::other)?;
        let old = std::str::from_utf8(&bytes).map_err(io::Error::other)?;
        let replaced = [LLM_API_BASE_URL, LLM_API_KEY, LLM_API_KEY_FILE, LLM_MODEL_NAME];
        let rest = dotenv::without_names(old, &replaced);
        text += rest.trim_start_matches('\n');
        if text == old {
            return Ok(None);
        }
        replace(&kept, &bytes)?;
    }
    replace(file, text.as_bytes())?;
    Ok(is_there.then_some(kept))
}

/// Replaces a private file in one step.
fn replace(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = file.with_file_name(".env.new");
    let _ = fs::remove_file(&new);
    let mut options = fs::OpenOptions::new();
    let mut created = options.write(true).create_new(true).mode(0o600).open(&new)?;
    let written = io::Write::write_all(&mut created, bytes)
        .and_then(|()| created.sync_all())
        .and_then(|()| fs::rename(&new, file));
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    written
}

/// A value as a `.env` file has it.
fn quoted(value: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._:/@+-=%?&,".contains(c);
    if !value.is_empty() && value.chars().all(is_plain) {
        return value.to_string();
    }
    format!("'{}'", value.replace('\\', "\\\\").replace('\'', "\\'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_values_are_read_as_they_were() {
        for value in ["plain", "a b", "it's", "back\\slash", "\\'", "#no comment", "$X", "ä\"", ""]
        {
            let line = format!("X={}\n", quoted(value));
            let read = dotenv::parse_bytes(line.as_bytes(), &|_| None).unwrap();
            assert_eq!(read.variables[0].value.as_deref(), Some(value), "{line}");
        }
    }
}

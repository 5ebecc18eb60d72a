//! Checks that the files that documents name exist, and that scripts that they run as commands
//! can be executed.
//!
//! The Markdown files that the document names are followed, too. Each path is looked up once
//! and reported at its first line; what has one cause is one problem.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};

use percent_encoding::percent_decode_str;

use super::mentions::{Mention, MentionKind, find_mentions};
use super::own_paths::MentionContext;
use super::scripts::CommandCheck;
use super::{DocumentText, Findings, Place, is_valid_name, list_names};
use crate::names::is_plugin;
use crate::skill::DOCUMENT_NAME;
use crate::{Problem, Rule, Skill};
use base::limits;
use base::text;
use host::confined::{self, EntryKind, OpenError, OpenFile, PathTarget};

/// Levels from a skill up to the root of a repository with plugins.
const FOLDERS_ABOVE: usize = 4;

/// Letters of a file's name that may be a slip.
const SLIP: usize = 2;

/// Bytes of the longest name that is compared, which takes quadratic time.
const LONGEST_NAME: usize = 64;

/// Folders of files that are copied, not followed: their paths are those of the copies.
const COPIED_FOLDERS: [&str; 8] =
    ["assets", "templates", "template", "examples", "example", "evals", "tests", "fixtures"];

/// Checks every file that the document, and the Markdown files that it names, name.
pub(super) fn check(skill: &Skill, document: &DocumentText, findings: &mut Findings) {
    let context = MentionContext {
        skill_name: skill.folder_name().into_owned(),
        folders: entry_names(skill, EntryKind::Folder),
        files: entry_names(skill, EntryKind::File),
        is_document: true,
    };
    let mut lookup = FileLookup { skill, context, names: OnceCell::new(), missing: Vec::new() };
    let mut commands = CommandCheck::default();
    let mut seen = BTreeSet::new();
    let mut followed = BTreeSet::from([document.file_name.to_owned()]);
    let body = (document.file_name.to_owned(), document.body().to_owned(), document.body_line());
    let mut texts = VecDeque::from([body]);
    let mut bytes_left = limits::REFERENCE_BYTES;
    while let Some((file, text, first_line)) = texts.pop_front() {
        lookup.context.is_document = file == document.file_name;
        for mention in find_mentions(&text, first_line, &lookup.context) {
            let place = Place { file: &file, line: mention.line };
            let Some((path, open)) = lookup.find(&place, &mention, &mut seen) else {
                continue;
            };
            commands.add(&place, mention.kind, &path, &open);
            let is_followed = is_followed(&path) && open.size <= bytes_left;
            if is_followed && followed.insert(path.clone()) {
                bytes_left -= open.size;
                let read = confined::read_whole(&open.file, limits::DOCUMENT_BYTES);
                let text = read.ok().and_then(|piece| String::from_utf8(piece.bytes).ok());
                texts.extend(text.map(|text| (path, text, 1)));
            }
        }
    }
    lookup.report(findings);
    findings.extend(commands.problems());
}

/// Whether the references of a file of the skill are followed.
fn is_followed(path: &str) -> bool {
    let mut folders = path.split('/').rev().skip(1);
    path.rsplit('.').next() == Some("md") && !folders.any(|name| COPIED_FOLDERS.contains(&name))
}

/// Returns the names of the entries of one kind directly in the skill.
fn entry_names(skill: &Skill, kind: EntryKind) -> Vec<String> {
    let entries = skill.root.entries(limits::FOLDER_ENTRIES);
    let list = entries.map(|entries| entries.entries).unwrap_or_default();
    let entries = list.into_iter().filter(|entry| entry.kind == kind);
    let names = entries.filter_map(|entry| entry.name.into_string().ok());
    names.filter(|name| !name.starts_with('.')).collect()
}

/// A file that is named and cannot be read.
struct MissingFile {
    file: String,
    line: usize,
    /// As it is written.
    path: String,
    cause: Cause,
}

/// Why a named file cannot be read; problems of one cause are reported together.
enum Cause {
    /// It is a file of this other skill.
    OtherSkill(String),
    /// It is outside the skill.
    Outside,
    /// The path leads out of the skill, to no file.
    Nowhere,
    /// The skill has no such folder.
    NoFolder(String),
    /// The skill has no file of this path.
    NoFile(String),
}

impl Cause {
    fn other_skill(&self) -> Option<&str> {
        match self {
            Cause::OtherSkill(name) => Some(name),
            _ => None,
        }
    }

    /// Problems with equal keys are one.
    fn key(&self) -> (u8, &str) {
        match self {
            Cause::OtherSkill(_) => (0, ""),
            Cause::Outside => (1, ""),
            Cause::Nowhere => (2, ""),
            Cause::NoFolder(folder) => (3, folder),
            Cause::NoFile(path) => (4, path),
        }
    }
}

/// The files of a skill.
struct FileLookup<'s> {
    skill: &'s Skill,
    context: MentionContext,
    /// The paths of all files, read for the first missing one.
    names: OnceCell<Vec<String>>,
    missing: Vec<MissingFile>,
}

impl FileLookup<'_> {
    /// Looks a file up when it is named for the first time: relative to the naming file and to
    /// the skill. Returns its path in the skill and the opened file.
    fn find(
        &mut self,
        place: &Place,
        mention: &Mention,
        seen: &mut BTreeSet<(MentionKind, String)>,
    ) -> Option<(String, OpenFile)> {
        let path = percent_decode_str(&mention.path).decode_utf8_lossy().into_owned();
        let folder = place.file.rsplit_once('/').map_or("", |(folder, _)| folder);
        let beside = normalize(&format!("{folder}/{path}"));
        let key = (mention.kind, beside.clone().unwrap_or_else(|| path.clone()));
        if seen.len() >= limits::REFERENCES || !seen.insert(key) {
            return None;
        }
        let inside = normalize(&path);
        for candidate in [&beside, &inside].into_iter().flatten() {
            match self.skill.root.open_target(candidate) {
                Err(OpenError::NotFound | OpenError::NotAFolder) => {}
                Ok(PathTarget::File(open)) => return Some((candidate.clone(), open)),
                // Other checks report files that cannot be opened.
                Ok(PathTarget::Folder(_)) | Err(_) => return None,
            }
        }
        if !self.missing.iter().any(|known| known.path == path) {
            // Links are relative to their file, paths in code to the skill.
            let is_link = mention.kind == MentionKind::Link;
            let inside = if is_link { beside.or(inside) } else { inside.or(beside) };
            let cause = self.cause((folder, &path), inside, mention)?;
            let (file, line) = (place.file.to_owned(), place.line);
            self.missing.push(MissingFile { file, line, path, cause });
        }
        None
    }

    /// Why a file is not in the skill; `None` if there is no problem. `inside` is its path in
    /// the skill, if it does not lead out.
    fn cause(&self, named: (&str, &str), inside: Option<String>, of: &Mention) -> Option<Cause> {
        let target = self.target_outside(named);
        if let Some(name) = target.as_deref().and_then(|target| self.other_skill(target)) {
            return Some(Cause::OtherSkill(name));
        }
        let Some(inside) = inside else {
            return match target {
                Some(target) => (!self.is_in_plugin(&target)).then_some(Cause::Outside),
                None if of.is_doubtful => None,
                // That it is missing is reported with the other needs.
                None => Some(sibling_of(named.1).map_or(Cause::Nowhere, Cause::OtherSkill)),
            };
        };
        let is_document = inside.ends_with(DOCUMENT_NAME) && of.kind != MentionKind::Link;
        let folder = inside.rsplit_once('/').map(|(folder, _)| folder.to_owned());
        let folder = folder.filter(|folder| self.skill.root.folder(folder).is_err());
        if is_document || of.is_doubtful {
            return None;
        }
        if self.exists_above(&inside) {
            // `scripts/x.py` is then a tool of the repository; other paths count only if they
            // name the skill's folder.
            return (!self.context.is_known(&inside)).then_some(Cause::Outside);
        }
        Some(folder.map_or(Cause::NoFile(inside), Cause::NoFolder))
    }

    /// The file or folder outside the skill that a path in a file in `folder` leads to: relative
    /// to that, to the skill or, as the document of another skill, to the skills folder.
    fn target_outside(&self, (folder, path): (&str, &str)) -> Option<PathBuf> {
        let own = &self.skill.path;
        let is_above = path.starts_with("../");
        let relative = [own.join(folder).join(path), own.join(path)];
        let relative = relative.into_iter().filter(|_| is_above);
        let name = path.strip_suffix(DOCUMENT_NAME).and_then(|path| Path::new(path).file_name());
        let beside = name.and_then(|name| Some(own.parent()?.join(name).join(DOCUMENT_NAME)));
        relative.chain(beside).find_map(|target| target.canonicalize().ok())
    }

    /// The name of the other skill that has a file.
    fn other_skill(&self, target: &Path) -> Option<String> {
        let own = self.skill.path.canonicalize().ok()?;
        let folders = target.ancestors().take_while(|folder| !own.starts_with(folder));
        // A document within a skill is no skill of its own.
        let skill = folders.filter(|folder| folder.join(DOCUMENT_NAME).is_file()).last()?;
        Some(skill.file_name()?.to_string_lossy().into_owned())
    }

    /// Whether the file exists relative to a folder above the skill, such as a plugin's or a
    /// repository's. The file is not opened.
    fn exists_above(&self, path: &str) -> bool {
        let above = self.skill.path.ancestors().skip(1).take(FOLDERS_ABOVE);
        above.into_iter().any(|folder| folder.join(path).is_file())
    }

    /// Whether a file outside the skill is in its plugin, which is installed as a whole.
    fn is_in_plugin(&self, target: &Path) -> bool {
        let above = self.skill.path.ancestors().skip(1).take(FOLDERS_ABOVE);
        above.into_iter().any(|folder| is_plugin(folder) && target.starts_with(folder))
    }

    /// Reports the missing files, those of one cause together.
    fn report(&self, findings: &mut Findings) {
        let mut groups: BTreeMap<(u8, &str), Vec<&MissingFile>> = BTreeMap::new();
        for missing in &self.missing {
            groups.entry(missing.cause.key()).or_default().push(missing);
        }
        let mut problems: Vec<(usize, Problem)> = Vec::new();
        for group in groups.values() {
            if let Some(first) = group.first() {
                problems.push((first.line, self.problem(first, group)));
            }
        }
        problems.sort_by_key(|(line, _)| *line);
        findings.extend(problems.into_iter().map(|(_, problem)| problem));
    }

    /// The problem of files that are missing for one cause.
    fn problem(&self, first: &MissingFile, group: &[&MissingFile]) -> Problem {
        let paths = list_names(group.iter().map(|missing| missing.path.as_str()));
        let is_one = group.len() == 1;
        let problem = |rule, message| Problem::new(rule, &first.file, message).at_line(first.line);
        match &first.cause {
            Cause::OtherSkill(_) => {
                let what =
                    if is_one { "belongs to another skill" } else { "belong to other skills" };
                let skills = group.iter().filter_map(|missing| missing.cause.other_skill());
                let names = list_names(skills.collect::<BTreeSet<_>>());
                problem(Rule::OtherSkill, format!("{paths} {what}"))
                    .with_fix(format!("name the skill instead: call get_skill {names}"))
            }
            Cause::Outside => {
                let what = if is_one { "is" } else { "are" };
                let message = format!(
                    "{paths} {what} outside the skill, and missing where only the skill is installed"
                );
                problem(Rule::OutsideReference, message)
            }
            Cause::Nowhere => {
                let what = if is_one { "leads" } else { "lead" };
                let message = format!("{paths} {what} out of the skill, to no file");
                self.with_similar(problem(Rule::MissingFile, message), &first.path)
            }
            Cause::NoFolder(folder) if !is_one => {
                let message =
                    format!("{paths} are named here, but the skill has no folder `{folder}`");
                self.with_similar(problem(Rule::MissingFile, message), &first.path)
            }
            Cause::NoFolder(_) | Cause::NoFile(_) => {
                let message = format!("{paths} is named here, but the skill has no such file");
                self.with_similar(problem(Rule::MissingFile, message), &first.path)
            }
        }
    }

    fn with_similar(&self, problem: Problem, path: &str) -> Problem {
        match self.find_similar(path) {
            Some(name) => problem.with_fix(format!("did you mean `{name}`?")),
            None => problem,
        }
    }

    /// Returns the file that the author most likely meant: one of the same name in another
    /// folder, or whose name differs in letter case or in up to two letters.
    fn find_similar(&self, path: &str) -> Option<&str> {
        let names = self.names.get_or_init(|| {
            let files = self.skill.files().files;
            files.iter().map(|path| path.to_string_lossy().into_owned()).collect()
        });
        let wanted = file_name(path).to_lowercase();
        let stem = wanted.split('.').next().unwrap_or_default();
        let most = (stem.len() / 4).min(SLIP);
        let files = names.iter().map(String::as_str);
        let files = files.filter(|name| !name.eq_ignore_ascii_case(DOCUMENT_NAME));
        let similar = files.filter_map(|name| {
            let lower = file_name(name).to_lowercase();
            let is_near = lower.len().abs_diff(wanted.len()) <= most && lower.len() <= LONGEST_NAME;
            let distance = is_near.then(|| text::edit_distance(&lower, &wanted))?;
            (distance <= most).then_some((distance, name))
        });
        similar.min().map(|(_, name)| name)
    }
}

/// The name of the skill whose document a path would be, beside this one.
fn sibling_of(path: &str) -> Option<String> {
    let name = path.strip_prefix("../")?.strip_suffix("/SKILL.md")?;
    is_valid_name(name).then(|| name.to_owned())
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Returns the path without `.` and `..`; `None` if it leaves the skill.
fn normalize(path: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

//! The files of a source: an archive, or a folder of this machine.
//!
//! First all entries are listed, without their content; then the files that are to be installed are
//! read. Nothing else of an archive reaches the disk.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::cli::skills::install::names::PathSet;
use ::skills::is_document_name;
use ::skills::listing::{is_system_file, is_tool_folder};
use ::skills::lock_file::copy_digest;
use ::skills::private::is_git_name;
use ::skills::skeleton::invalid_name_reason;
use ::skills::{frontmatter, is_skill_name};
use base::limits;
use base::text;
use host::archive::{self, ArchiveEntryKind};
use host::cancellation::{Cancellation, StopReason};
use host::confined::{EntryKind, OpenError, Root};

/// The entries of a source.
pub(super) struct SourceTree {
    /// By path, without the folder that an archive of a commit has all its files in.
    /// An error is what no skill can contain.
    entries: BTreeMap<String, std::result::Result<ArchiveEntryKind, &'static str>>,
    /// The commit, or the digest of an archive that names none; `None`: a local folder.
    pub revision: Option<String>,
    /// The folder that all files of an archive are in, with a slash.
    prefix: String,
    content: Content,
}

/// Where the content of the files is.
enum Content {
    Archive(File),
    Folder(Root),
}

/// A skill in a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FoundSkill {
    /// The name of its folder.
    pub name: String,
    /// Its folder in the source; empty: the root.
    pub folder: String,
}

/// A file of a skill in a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SkillFile {
    /// Its path in the skill.
    pub path: String,
    /// The path of its content in the source: another one for a link.
    pub source: String,
    /// Its size in bytes.
    pub size: u64,
}

/// The files of a skill in a source, in which links are replaced by what they lead to.
#[derive(Debug, Default)]
pub(super) struct FoundFiles {
    /// The files.
    pub files: Vec<SkillFile>,
    /// Files left out, with the reasons.
    pub left_out: Vec<String>,
}

/// Gets what is known of a file, whether it is executable, and its content.
type FileVisitor<'v, T> = dyn FnMut(T, bool, &mut dyn Read) -> io::Result<()> + 'v;

impl SourceTree {
    /// Lists an archive. The error has the cause, or the reason to stop. All files of an archive of
    /// a commit are in one folder, which does not belong to their paths.
    pub(super) fn of_archive(
        mut file: File,
        cancellation: &Cancellation,
    ) -> io::Result<SourceTree> {
        let mut entries = BTreeMap::new();
        let commit = archive::read(&file, cancellation, &mut |entry, _| {
            let is_known = entries.contains_key(&entry.path);
            let kind = if is_known { Err("there twice") } else { Ok(entry.kind) };
            entries.insert(entry.path, kind);
            Ok(())
        })?;
        let is_commit = commit.is_some();
        let revision = match commit {
            Some(commit) => commit,
            None => {
                file.rewind()?;
                copy_digest(&mut file, &mut io::sink())?
            }
        };
        let mut tree = SourceTree {
            entries,
            revision: Some(revision),
            prefix: String::new(),
            content: Content::Archive(file),
        };
        if is_commit {
            tree.remove_prefix();
        }
        Ok(tree)
    }

    /// Lists a folder, without what tools create in it.
    pub(super) fn of_folder(path: &Path, cancellation: &Cancellation) -> io::Result<SourceTree> {
        let failed = |folder: &str, error: &OpenError| match folder {
            "" => io::Error::other(error.user_message()),
            folder => io::Error::other(format!("`{folder}`: {}", error.user_message())),
        };
        let root = Root::open(path).map_err(|error| failed("", &error))?;
        let mut entries = BTreeMap::new();
        let mut seen = 0;
        let mut folders = vec![String::new()];
        while let Some(folder) = folders.pop() {
            cancellation.check()?;
            let opened = root.folder(&folder).and_then(|it| it.entries(limits::ARCHIVE_ENTRIES));
            let listed = opened.map_err(|error| failed(&folder, &error))?;
            seen += listed.entries.len();
            if seen > limits::ARCHIVE_ENTRIES || listed.omitted > 0 {
                let text = format!("it has more than {} entries", limits::ARCHIVE_ENTRIES);
                return Err(io::Error::other(text));
            }
            for entry in listed.entries {
                let name = text::escape_bytes(entry.name.as_bytes());
                let below = format!("{}{name}", folder_start(&folder));
                let kind = match entry.kind {
                    _ if entry.name.to_str().is_none() => Ok(ArchiveEntryKind::Unusable),
                    EntryKind::Folder if entry.name.to_str().is_some_and(is_tool_folder) => {
                        continue;
                    }
                    EntryKind::Folder if below.matches('/').count() < limits::SOURCE_DEPTH => {
                        folders.push(below);
                        continue;
                    }
                    EntryKind::File => {
                        let size = entry.size.unwrap_or(0);
                        Ok(ArchiveEntryKind::File { size, is_executable: false })
                    }
                    EntryKind::Link => {
                        let target = fs::read_link(path.join(&below))?;
                        let inside = target.strip_prefix(path).ok();
                        // An absolute link into the source is another name of what is there.
                        Ok(match inside.and_then(|it| resolved("", &it.to_string_lossy())) {
                            Some(inside) => ArchiveEntryKind::HardLink(inside),
                            None => ArchiveEntryKind::Link(target.to_string_lossy().into_owned()),
                        })
                    }
                    EntryKind::Folder => Err("too deep a folder"),
                    EntryKind::Other => Err("a FIFO, socket or device"),
                };
                entries.insert(below, kind);
            }
        }
        Ok(SourceTree {
            entries,
            revision: None,
            prefix: String::new(),
            content: Content::Folder(root),
        })
    }

    /// Removes the folder that all files are in, as git's archives have it.
    fn remove_prefix(&mut self) {
        let first = self.entries.keys().next().and_then(|path| path.split_once('/'));
        let Some(prefix) = first.map(|(name, _)| format!("{name}/")) else { return };
        if self.entries.keys().all(|path| path.starts_with(&prefix)) {
            let without = |path: &str| path.strip_prefix(&prefix).unwrap_or(path).to_string();
            let entries = std::mem::take(&mut self.entries).into_iter();
            self.entries = entries
                .map(|(path, kind)| match kind {
                    Ok(ArchiveEntryKind::HardLink(to)) => {
                        (without(&path), Ok(ArchiveEntryKind::HardLink(without(&to))))
                    }
                    kind => (without(&path), kind),
                })
                .collect();
            self.prefix = prefix;
        }
    }

    /// The skills in a folder of the source, the shallower first: folders with a document, but not
    /// those inside of another skill. `root_name` is the name of a skill that is the root itself.
    pub(super) fn skills(&self, folder: &str, root_name: &str) -> Vec<FoundSkill> {
        let start = folder_start(folder);
        let mut folders: Vec<&str> = self
            .entries
            .keys()
            .filter_map(|path| {
                let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
                let below = path.strip_prefix(&start)?;
                let depth = below.matches('/').count();
                let is_searched =
                    depth <= limits::SEARCHED_LEVELS && !folder.split('/').any(is_tool_folder);
                (is_document_name(name) && is_searched).then_some(folder)
            })
            .collect();
        folders.sort_by_key(|folder| {
            (folder.matches('/').count() + usize::from(!folder.is_empty()), *folder)
        });
        folders.dedup();
        let mut found: Vec<FoundSkill> = Vec::new();
        let mut outer: HashSet<&str> = HashSet::new();
        for folder in folders {
            let mut above = folder.match_indices('/').map(|(end, _)| &folder[..end]).chain([""]);
            let name = folder.rsplit('/').next().filter(|name| !name.is_empty());
            let name = name.unwrap_or(root_name);
            if is_skill_name(name) && !above.any(|above| outer.contains(above)) {
                outer.insert(folder);
                found.push(FoundSkill { name: name.into(), folder: folder.into() });
            }
        }
        found
    }

    /// Whether there is a skill in this folder, and not in one above it.
    pub(super) fn has_skill(&self, folder: &str) -> bool {
        self.skills(folder, "root").iter().any(|skill| skill.folder == folder)
    }

    /// The files of a skill. The error is why the skill cannot be installed.
    pub(super) fn files(&self, folder: &str) -> Result<FoundFiles, String> {
        let found = FoundFiles::default();
        let mut collected = Collected { tree: self, skill: folder, found, steps: 0 };
        collected.add_folder(folder, "", 0)?;
        let found = collected.found;
        if found.files.iter().map(|file| file.size).sum::<u64>() > limits::INSTALLED_BYTES {
            return Err("it is larger than 64 MiB".into());
        }
        let mut paths = PathSet::default();
        for SkillFile { path, .. } in &found.files {
            if path.split('/').any(is_git_name) {
                return Err(format!("some file systems take a part of `{path}` for `.git`"));
            }
            if path.contains('\\') {
                return Err(format!("the name `{path}` contains a backslash"));
            }
            paths.add(path).map_err(|other| {
                format!(
                    "`{path}` occurs twice, or some file systems take `{other}` for a part of it"
                )
            })?;
        }
        let is_document = |file: &SkillFile| is_document_name(&file.path);
        match found.left_out.as_slice() {
            _ if found.files.iter().any(is_document) => Ok(found),
            [] => Err("its SKILL.md is a folder".into()),
            all => Err(format!("it has no SKILL.md without what cannot be copied: {}", all[0])),
        }
    }

    /// The folder of the skill that is the whole source: the root, or the folder that an archive
    /// has all its files in.
    pub(super) fn whole_skill(&self) -> Option<&str> {
        let mut folders = self.entries.keys().filter_map(|path| {
            let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
            (is_document_name(name) && !folder.contains('/')).then_some(folder)
        });
        let is_left_out = |name: &str| is_tool_folder(name) || is_system_file(name);
        let is_part = |path: &str, folder: &str| {
            is_below(path, folder) || path.split('/').next().is_some_and(is_left_out)
        };
        folders.find(|folder| {
            let is_archive = self.revision.is_some();
            folder.is_empty() || is_archive && self.entries.keys().all(|path| is_part(path, folder))
        })
    }

    /// The name that the document of a skill gives, if it is a valid one.
    pub(super) fn document_name(&self, folder: &str, stop: &Cancellation) -> Option<String> {
        let name = self.aliases([folder].into_iter(), stop).ok()?.remove(folder)?;
        invalid_name_reason(&name).is_none().then_some(name)
    }

    /// The names that the documents of skills give, by their folders.
    pub(super) fn aliases<'f>(
        &self,
        folders: impl Iterator<Item = &'f str>,
        cancellation: &Cancellation,
    ) -> io::Result<HashMap<&'f str, String>> {
        let mut aliases = HashMap::new();
        let document = |folder: &str| {
            let files = self.files(folder).ok()?.files;
            files.into_iter().find(|file| is_document_name(&file.path))
        };
        let wanted = folders.filter_map(|folder| Some((document(folder)?.source, folder)));
        self.read(wanted.collect(), cancellation, &mut |folder, _, content| {
            let mut document = Vec::new();
            content.take(limits::DOCUMENT_BYTES as u64).read_to_end(&mut document)?;
            let name = frontmatter::parse(&String::from_utf8_lossy(&document)).name();
            aliases.extend(name.map(|name| (folder, name)));
            Ok(())
        })?;
        Ok(aliases)
    }

    /// Whether the two skills of each pair have the same files. What cannot be read is different.
    pub(super) fn are_copies(
        &self,
        pairs: &[[&[SkillFile]; 2]],
        cancellation: &Cancellation,
    ) -> io::Result<Vec<bool>> {
        let mut digests: HashMap<String, String> = HashMap::new();
        // As no digest is known, by size.
        let possible = pairs.iter().filter(|pair| have_same_files(pair, &digests));
        let files = possible.flat_map(|pair| pair.iter().copied().flatten());
        let wanted = files.map(|file| (file.source.clone(), file.source.clone())).collect();
        let read = self.read(wanted, cancellation, &mut |path, _, content| {
            digests.insert(path, copy_digest(content, &mut io::sink())?);
            Ok(())
        });
        if let Err(error) = read {
            let is_stop = StopReason::from_io_error(&error).is_some();
            return if is_stop { Err(error) } else { Ok(vec![false; pairs.len()]) };
        }
        Ok(pairs.iter().map(|pair| have_same_files(pair, &digests)).collect())
    }

    fn is_folder(&self, path: &str) -> bool {
        let start = folder_start(path);
        let first = self.entries.range(start.clone()..).next();
        first.is_some_and(|(below, _)| below.starts_with(&start))
    }

    /// Calls `visit` for each of these files of the source, with what is known of it.
    pub(super) fn read<T>(
        &self,
        mut wanted: BTreeMap<String, T>,
        cancellation: &Cancellation,
        visit: &mut FileVisitor<'_, T>,
    ) -> io::Result<()> {
        if wanted.is_empty() {
            return Ok(());
        }
        match &self.content {
            Content::Archive(archive) => {
                archive::read(archive, cancellation, &mut |entry, content| match entry.kind {
                    ArchiveEntryKind::File { is_executable, .. } => {
                        let path = entry.path.strip_prefix(&self.prefix);
                        let known = path.and_then(|path| wanted.remove(path));
                        known.map_or(Ok(()), |known| visit(known, is_executable, content))
                    }
                    _ => Ok(()),
                })?;
            }
            Content::Folder(root) => {
                for (path, known) in std::mem::take(&mut wanted) {
                    cancellation.check()?;
                    let mut file =
                        root.file(&path).map_err(|error| io::Error::other(error.user_message()))?;
                    let is_executable = file.metadata()?.mode() & 0o111 != 0;
                    visit(known, is_executable, &mut file)?;
                }
            }
        }
        match wanted.keys().next() {
            Some(path) => Err(io::Error::other(format!("`{path}` has just been deleted"))),
            None => Ok(()),
        }
    }
}

/// Whether two skills have files of the same paths, sizes and digests, which are known by the paths
/// in the source.
fn have_same_files(pair: &[&[SkillFile]; 2], digests: &HashMap<String, String>) -> bool {
    let [one, other] = pair.map(|files| {
        let row = |file: &SkillFile| (file.path.clone(), (file.size, digests.get(&file.source)));
        files.iter().map(row).collect::<BTreeMap<_, _>>()
    });
    one == other
}

/// The files of a skill, while links are followed.
struct Collected<'t> {
    tree: &'t SourceTree,
    /// The folder of the skill.
    skill: &'t str,
    found: FoundFiles,
    /// Entries that were looked at: links may lead in circles.
    steps: usize,
}

impl Collected<'_> {
    /// Adds what is below a folder of the source, as files below `to`.
    fn add_folder(&mut self, folder: &str, to: &str, links: u32) -> Result<(), String> {
        let start = folder_start(folder);
        for path in self.tree.entries.range(start.clone()..).map(|(path, _)| path) {
            let Some(below) = path.strip_prefix(&start) else { break };
            self.add(path, &format!("{}{below}", folder_start(to)), links)?;
        }
        Ok(())
    }

    /// Adds what is at a path of the source as `to`: a file, all files of a folder, or what a link
    /// leads to. `links`: the number of links that were followed to it.
    fn add(&mut self, path: &str, to: &str, links: u32) -> Result<(), String> {
        self.steps += 1;
        if self.steps > limits::ARCHIVE_ENTRIES || links > limits::LINKS {
            return Err("its links lead in circles".into());
        }
        let mut names = to.rsplit('/');
        // Also behind a link of such a name.
        if names.next().is_some_and(is_system_file) || names.any(is_tool_folder) {
            return Ok(());
        }
        if to.matches('/').count() > limits::INSTALLED_DEPTH {
            return Err(format!("it has more than {} levels of folders", limits::INSTALLED_DEPTH));
        }
        let FoundFiles { files, left_out } = &mut self.found;
        if files.len() >= limits::INSTALLED_FILES {
            return Err(format!("it has more than {} files", limits::INSTALLED_FILES));
        }
        let target = match self.tree.entries.get(path) {
            Some(Ok(ArchiveEntryKind::File { size, .. })) => {
                files.push(SkillFile { path: to.into(), source: path.into(), size: *size });
                return Ok(());
            }
            Some(Ok(ArchiveEntryKind::Unusable)) => {
                let reason = "its name or target has a control character or is not UTF-8";
                left_out.push(format!("`{to}`: {reason}"));
                return Ok(());
            }
            Some(Err(what)) => return Err(format!("`{to}` is {what}")),
            Some(Ok(ArchiveEntryKind::HardLink(target))) if target == path => {
                return Err(format!("`{to}` is a hard link to itself"));
            }
            Some(Ok(ArchiveEntryKind::HardLink(target))) => Some(target.clone()),
            Some(Ok(ArchiveEntryKind::Link(target))) => resolved(path, target),
            None if self.tree.is_folder(path) => return self.add_folder(path, to, links),
            None => {
                left_out.push(format!("the link `{to}` leads to nothing"));
                return Ok(());
            }
        };
        match target.filter(|target| is_below(target, self.skill)) {
            Some(target) if is_below(path, &target) => {
                left_out.push(format!("the link `{to}` leads to a folder that it is in"));
                Ok(())
            }
            Some(target) => self.add(&target, to, links + 1),
            None => {
                left_out.push(format!("the link `{to}` leads out of the skill"));
                Ok(())
            }
        }
    }
}

/// Returns the start of the paths in a folder.
fn folder_start(folder: &str) -> String {
    if folder.is_empty() { String::new() } else { format!("{folder}/") }
}

/// Whether a path is a folder or lies in it; everything is in the root.
fn is_below(path: &str, folder: &str) -> bool {
    let rest = path.strip_prefix(folder);
    folder.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The path that a link at `path` leads to; `None`: out of the source.
fn resolved(path: &str, target: &str) -> Option<String> {
    let mut names: Vec<&str> = path.split('/').collect();
    names.pop();
    if target.starts_with('/') {
        return None;
    }
    for name in target.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                names.pop()?;
            }
            name => names.push(name),
        }
    }
    Some(names.join("/"))
}

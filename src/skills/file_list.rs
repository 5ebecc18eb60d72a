//! The list of a skill's files after its document: files that are many and alike are one entry,
//! such as `schemas/ (39 .xsd)`. Opens no file.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use base::limits;
use base::text::one_line_name;

/// Extensions of files that a document may name one by one.
const NAMED_EXTENSIONS: [&str; 6] = ["js", "md", "mjs", "py", "sh", "ts"];

/// Kind of a file: files of both kinds are not counted together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// Data, of which a folder may hold many.
    Data,
    /// A document or script.
    Named,
}

impl Kind {
    const ALL: [Kind; 2] = [Kind::Data, Kind::Named];

    fn of(extension: &str) -> Kind {
        if NAMED_EXTENSIONS.contains(&extension) { Kind::Named } else { Kind::Data }
    }

    /// Number of files from which on they are one entry.
    fn fold_from(self) -> usize {
        match self {
            Kind::Data => limits::FOLDED_DATA_FILES,
            Kind::Named => limits::FOLDED_NAMED_FILES,
        }
    }
}

/// Number of files by extension.
type Counts = BTreeMap<String, usize>;

/// The list.
struct FileList {
    /// The entries by path: a file, or files of a folder, whose path ends with a slash.
    entries: BTreeMap<(String, Kind), Counts>,
    /// The size of their lines.
    bytes: usize,
}

/// Returns the list's lines for these paths of files, and whether any stands for several files.
pub fn fold<'f>(files: impl Iterator<Item = &'f str>) -> (Vec<String>, bool) {
    let entries = files.map(|file| {
        let extension = Path::new(file).extension().unwrap_or_default();
        let extension = extension.to_string_lossy().to_ascii_lowercase();
        ((file.to_string(), Kind::of(&extension)), Counts::from([(extension, 1)]))
    });
    let entries: BTreeMap<_, _> = entries.collect();
    let bytes = entries.iter().map(|((path, _), counts)| line(path, counts).len()).sum();
    let mut list = FileList { entries, bytes };
    let paths = list.entries.keys().map(|(path, _)| path);
    let folders = paths.flat_map(|path| path.match_indices('/').map(|(at, _)| &path[..=at]));
    let folders: BTreeSet<String> = folders.map(str::to_string).collect();
    let mut folders: Vec<(Reverse<usize>, String)> =
        folders.into_iter().map(|path| (Reverse(path.matches('/').count()), path)).collect();
    folders.sort();
    for (_, folder) in &folders {
        for kind in Kind::ALL {
            list.fold_many(folder, kind);
        }
    }
    // A document names files that lie deep in the skill less often than others.
    for (Reverse(depth), folder) in &folders {
        let most = if *depth > 1 { limits::FILE_LIST_BYTES } else { 2 * limits::FILE_LIST_BYTES };
        for kind in Kind::ALL {
            if list.bytes > most {
                list.replace(folder, kind, list.members(folder, kind));
            }
        }
    }
    let is_folded = list.entries.keys().any(|(path, _)| path.ends_with('/'));
    (list.entries.iter().map(|((path, _), counts)| line(path, counts)).collect(), is_folded)
}

impl FileList {
    /// Makes one entry of the files of a folder if they are many. Documents and scripts count
    /// only for their own folder.
    fn fold_many(&mut self, folder: &str, kind: Kind) {
        let mut members = self.members(folder, kind);
        if kind == Kind::Named {
            members.retain(|path| !path[folder.len()..].contains('/'));
        }
        let place = |path: &String| path[folder.len()..].split_once('/').map(|it| it.0.to_string());
        let places: BTreeSet<_> = members.iter().map(place).collect();
        let counts = members.iter().flat_map(|path| &self.entries[&(path.clone(), kind)]);
        let extensions: BTreeSet<&String> =
            counts.clone().map(|(extension, _)| extension).collect();
        let total: usize = counts.map(|(_, count)| count).sum();
        let files = members.iter().filter(|path| !path.ends_with('/')).count();
        if extensions.len() == 1 && places.len() > 1 && total >= kind.fold_from() {
            self.replace(folder, kind, members);
        } else if files >= kind.fold_from() {
            members.retain(|path| !path.ends_with('/'));
            self.replace(folder, kind, members);
        }
    }

    /// The paths of the entries in a folder.
    fn members(&self, folder: &str, kind: Kind) -> Vec<String> {
        let keys = self.entries.range((folder.to_string(), Kind::Data)..).map(|(key, _)| key);
        let keys = keys.take_while(|(path, _)| path.starts_with(folder));
        keys.filter(|key| key.1 == kind).map(|(path, _)| path.clone()).collect()
    }

    /// Makes one entry of several.
    fn replace(&mut self, folder: &str, kind: Kind, members: Vec<String>) {
        if members.len() < 2 {
            return;
        }
        let mut all = Counts::new();
        for path in members {
            let counts = self.entries.remove(&(path.clone(), kind)).unwrap_or_default();
            self.bytes -= line(&path, &counts).len();
            for (extension, count) in counts {
                *all.entry(extension).or_default() += count;
            }
        }
        self.bytes += line(folder, &all).len();
        self.entries.insert((folder.to_string(), kind), all);
    }
}

fn line(path: &str, counts: &Counts) -> String {
    let path_shown = one_line_name(path);
    if !path.ends_with('/') {
        return format!("- {path_shown}\n");
    }
    let kinds = counts.iter().map(|(extension, count)| match extension.as_str() {
        "" => format!("{count} without extension"),
        extension => format!("{count} .{}", one_line_name(extension)),
    });
    let kinds: Vec<String> = kinds.collect();
    let total: usize = counts.values().sum();
    let shown = if kinds.len() > limits::FOLDED_EXTENSIONS {
        format!("{total} files")
    } else {
        kinds.join(", ")
    };
    format!("- {path_shown} ({shown})\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(files: &[(&str, usize)]) -> Vec<String> {
        let numbered = files.iter().flat_map(|(file, count)| {
            (0..*count).map(|number| file.replace('#', &number.to_string())).collect::<Vec<_>>()
        });
        let files: Vec<String> = numbered.collect();
        fold(files.iter().map(String::as_str)).0
    }

    #[test]
    fn many_alike_files_of_a_folder_are_one_entry() {
        type Row<'r> = (&'r [(&'r str, usize)], &'r [&'r str]);
        let table: &[Row] = &[
            (
                &[("a.md", 1), ("s/#.xsd", 5)],
                &["a.md", "s/0.xsd", "s/1.xsd", "s/2.xsd", "s/3.xsd", "s/4.xsd"],
            ),
            (
                &[("#.xsd", 9), ("a/#.xsd", 6)],
                &[
                    "0.xsd",
                    "1.xsd",
                    "2.xsd",
                    "3.xsd",
                    "4.xsd",
                    "5.xsd",
                    "6.xsd",
                    "7.xsd",
                    "8.xsd",
                    "a/ (6 .xsd)",
                ],
            ),
            (
                &[("f/#.ttf", 8), ("f/#-OFL.txt", 4), ("f/x.md", 1)],
                &["f/ (8 .ttf, 4 .txt)", "f/x.md"],
            ),
            (&[("f/#.a", 2), ("f/#.b", 2), ("f/#.C", 2), ("f/x", 1)], &["f/ (7 files)"]),
            (&[("f/#.a", 7), ("f/#", 7)], &["f/ (7 without extension, 7 .a)"]),
            (&[("s/a/#.xsd", 9), ("s/b/#.XSD", 1), ("s/c/d/#.xsd", 2)], &["s/ (12 .xsd)"]),
            (&[("s/a/#.xsd", 9), ("s/b/#.xml", 6)], &["s/a/ (9 .xsd)", "s/b/ (6 .xml)"]),
            (&[("s/a/b/#.xsd", 9)], &["s/a/b/ (9 .xsd)"]),
            (&[("d/#.md", 20), ("d/#.png", 6)], &["d/ (6 .png)", "d/ (20 .md)"]),
        ];
        for (files, expected) in table {
            let lines = expected.iter().map(|path| format!("- {path}\n"));
            assert_eq!(folded(files), lines.collect::<Vec<_>>());
        }
        assert_eq!(folded(&[("scripts/number-#.py", 19)]).len(), 19);
    }

    /// Those that lie deepest are folded first, and none that lies directly in the skill's folders.
    #[test]
    fn long_lists_are_folded_further() {
        let files = [
            ("scripts/#.py", 15),
            ("scripts/lib/a-long-name-of-a-module-#.py", 5),
            ("scripts/lib/deep/a-long-name-of-a-module-#.py", 4),
            ("scripts/lib/deep/a-long-name-of-a-module-#.json", 1),
        ];
        let lines = folded(&files);
        assert_eq!(lines.len(), 15 + 5 + 2, "{lines:?}");
        assert!(lines.contains(&"- scripts/lib/deep/ (4 .py)\n".to_string()), "{lines:?}");
        let numbered: Vec<String> =
            (0..9).map(|folder| format!("{folder}/of-some-name-#.md")).collect();
        let files: Vec<(&str, usize)> = numbered.iter().map(|name| (name.as_str(), 9)).collect();
        let bytes = folded(&files).concat().len();
        assert!((600..=1200).contains(&bytes), "{bytes}");
    }
}

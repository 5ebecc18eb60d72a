//! Names of files that some file systems take for the same one.

use std::collections::HashMap;

use base::text;

/// Files and the folders that they lie in. Only names are kept, as there may be many deep paths.
#[derive(Default)]
pub(super) struct PathSet {
    /// Names as [`text::folded_name`] gives them, each with the number of its folder (0: the root):
    /// the name, and the number of a folder or `None` for a file.
    folded: HashMap<(usize, String), (String, Option<usize>)>,
}

impl PathSet {
    /// Adds a file. The error is the name of another file or folder, or the same one, that cannot
    /// be distinguished from a part of its path everywhere.
    pub(super) fn add(&mut self, file: &str) -> Result<(), String> {
        let mut parent = 0;
        let mut names = file.split('/').peekable();
        while let Some(name) = names.next() {
            let is_file = names.peek().is_none();
            let folded = text::folded_name(name);
            let next = self.folded.len() + 1;
            match self.folded.get(&(parent, folded.clone())) {
                Some((other, Some(known))) if other == name && !is_file => {
                    parent = *known;
                    continue;
                }
                Some((other, _)) => return Err(other.clone()),
                None => {}
            }
            let kind = (!is_file).then_some(next);
            self.folded.insert((parent, folded), (name.into(), kind));
            parent = next;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_the_same_on_some_file_systems_are_found() {
        let table: &[(&[&str], bool)] = &[
            (&["a/b", "a/c", "ab"], true),
            (&["é.md", "è.md", "日本", "日曜"], true),
            (&["a", "a"], false),
            (&["a", "a/b"], false),
            (&["a/b", "a"], false),
            (&["Read.md", "READ.md"], false),
            (&["docs/a", "Docs/b"], false),
            (&["ſ", "s"], false),
            (&["\u{212a}", "k"], false),
            (&["\u{e9}.md", "e\u{301}.md"], false),
            (&["e\u{301}.md", "\u{c9}.md"], false),
            (&["\u{d55c}", "\u{1112}\u{1161}\u{11ab}"], false),
            (&["\u{304c}", "\u{304b}\u{3099}"], false),
            (&["a", "a."], false),
            (&["a .", "A"], false),
            (&["a./b", "a/c"], false),
            (&["ab", "a\u{200b}b"], false),
            (&["a\u{ad}.", "a\u{feff}"], false),
            (&["a.b", "a..b", ".a", "a b"], true),
            (&["क्\u{200d}ष.md", "👨\u{200d}👩\u{200d}👧.png", "नाम.md"], true),
            (&["दिन.md", "दाम.md", "மணி.md", "மனி.md", "วัน.md", "วิน.md"], true),
            (&["\u{1112}\u{1161}\u{11ab}", "\u{1100}\u{1161}\u{11ab}"], true),
            (&["\u{304b}\u{3099}", "\u{304d}\u{3099}"], true),
            (&["и\u{306}", "у\u{306}", "a\u{308}", "o\u{308}", "o\u{302}"], true),
            (&["A\u{308}.md", "ä.md"], false),
        ];
        for (paths, expected) in table {
            let mut set = PathSet::default();
            let all_added = paths.iter().all(|path| set.add(path).is_ok());
            assert_eq!(all_added, *expected, "{paths:?}");
        }
    }
}

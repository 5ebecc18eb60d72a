//! The table of rules: what the linter can find, how bad each is, and why.
//!
//! A problem takes its severity from here, so that help, README and findings
//! cannot differ. What makes other clients lose the skill, or a model fail, is
//! an error; what only may is a warning.

use super::Severity;

/// One thing that the linter looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckRule {
    /// As it stands in findings, in kebab case.
    pub name: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// What it finds, in one sentence.
    pub meaning: &'static str,
}

const fn error(name: &'static str, meaning: &'static str) -> CheckRule {
    let severity = Severity::Error;
    CheckRule { name, severity, meaning }
}

const fn warning(name: &'static str, meaning: &'static str) -> CheckRule {
    let severity = Severity::Warning;
    CheckRule { name, severity, meaning }
}

/// Every rule, by what it looks at.
pub const RULES: &[CheckRule] = &[
    // The document.
    error("no-document", "The folder has no SKILL.md."),
    error(
        "link-above",
        "A link leads to `/`, the home, or a folder above the home or the working folder, which is no skill.",
    ),
    warning(
        "document-case",
        "The document's name is not SKILL.md in exactly this letter case, which most clients look for.",
    ),
    warning(
        "ambiguous-document",
        "There are several documents that differ in letter case only; one is read.",
    ),
    error("unreadable-document", "The document cannot be opened."),
    error("large-document", "The document is over 1 MiB and is not read."),
    warning(
        "long-document",
        "The document is longer than advised (500 lines, 5,000 tokens): all of it goes into the context.",
    ),
    warning(
        "invisible-character",
        "A line has a character that nobody sees and that is no part of its text.",
    ),
    error("not-utf8", "The document has bytes that are not UTF-8."),
    error(
        "byte-order-mark",
        "A byte order mark stands in front of the frontmatter, which many clients then do not see.",
    ),
    warning("empty-body", "The document says nothing below its frontmatter."),
    // The frontmatter as YAML.
    error("no-frontmatter", "The document does not begin with fields between lines of ---."),
    error("late-frontmatter", "Empty lines stand in front of the frontmatter."),
    error(
        "fenced-frontmatter",
        "The frontmatter stands in a code fence, where other clients do not look.",
    ),
    error("unclosed-frontmatter", "No line of --- closes the frontmatter."),
    error("unquoted-colon", "A colon and a space stand in a value without quotes."),
    error(
        "reserved-character",
        "A value without quotes begins with a character that YAML reserves.",
    ),
    error(
        "anchor-alias-tag",
        "A value begins with &, * or !, which YAML takes for more than text.",
    ),
    error("ambiguous-value", "A value without quotes has a meaning that YAML readers stop at."),
    error("text-after-value", "Text follows the closing quote or bracket of a value."),
    error("unclosed-quote", "A quote is never closed."),
    error("unclosed-bracket", "A bracket is never closed."),
    error("bad-escape", "A backslash in double quotes begins no escape that YAML knows."),
    error("bad-flow", "Brackets or commas stand where YAML does not allow them."),
    error("bad-block", "Text stands on the line of a `|` or `>`."),
    error("complex-key", "A list, a map, `?` or nothing stands where a key is due."),
    error("long-key", "A key is longer than YAML readers take."),
    error("too-deep", "Maps and lists are nested too deep."),
    error("tab", "A tab stands where YAML wants spaces."),
    error("indentation", "A line is indented as no value around it."),
    error("indented-field", "A field is indented, and so part of the value above it."),
    error("field-in-text", "A line inside a value without quotes looks like a field."),
    error("not-a-field", "A line of the frontmatter is no `key: value`."),
    error("several-documents", "A second YAML document begins inside the frontmatter."),
    error("duplicate-key", "A key stands twice; clients refuse it or take one of them."),
    error(
        "control-character",
        "The frontmatter has a control character, which YAML readers refuse.",
    ),
    warning(
        "odd-character",
        "The frontmatter has a character that some YAML readers take for a line end.",
    ),
    // The fields.
    error("missing-name", "The field `name` is missing or empty."),
    error("name-length", "The name is longer than 64 characters."),
    error(
        "name-characters",
        "The name has characters other than lowercase letters, digits and hyphens.",
    ),
    error("name-hyphens", "The name has a hyphen at an edge, or two in a row."),
    error("name-folder", "The name is not that of the skill's folder."),
    error("missing-description", "The field `description` is missing or empty."),
    error("description-length", "The description is longer than 1,024 characters."),
    error("field-type", "The name or the description is a list, a map, a number or a truth value."),
    error("compatibility-length", "The compatibility is empty or longer than 500 characters."),
    warning("optional-type", "The license or the compatibility is no text."),
    error("metadata-type", "The metadata is no map."),
    warning("metadata-value", "A value in the metadata is no text."),
    warning(
        "allowed-tools-type",
        "The field `allowed-tools` is no text of names parted by spaces.",
    ),
    warning(
        "allowed-tools-commas",
        "The field `allowed-tools` parts its names by commas, not by spaces.",
    ),
    warning("field-typo", "An unknown field is spelled almost like a known one that is missing."),
    // What the document names.
    error("dangling-link", "A Markdown link leads to no file of the skill."),
    warning("dangling-mention", "A file of the skill is named in code, and there is none."),
    warning(
        "outside-reference",
        "A file outside of the skill is named, where nothing can be read and little is installed.",
    ),
    // The files.
    error("link-outside", "A symbolic link leads out of the skill, where nothing is read."),
    error("broken-link", "A symbolic link leads nowhere."),
    error("unreadable-file", "A file or folder cannot be opened."),
    warning("special-file", "A FIFO, a socket or a device lies in the skill."),
    warning(
        "binary-file",
        "A program, library, archive or compiled file: it fits some machines only, and nobody can read it.",
    ),
    warning("nested-skill", "A skill lies inside the skill, where it is not found."),
    error("unwritable-document", "`--fix` could mend the document, and may not write it."),
    warning("many-files", "The skill has more files, or deeper folders, than are looked at."),
    // Between skills.
    error("unreadable-folder", "A skills folder is missing, is no folder or cannot be read."),
    warning("name-clash", "Two skills folders have a skill of one name; the first folder wins."),
    warning("alias-clash", "The name in a frontmatter is that of another skill or its folder."),
    error("no-skills", "No folder in a skills folder has a SKILL.md: it is something else."),
    warning("folder-is-skill", "A skills folder is itself a skill, which is not found."),
    warning("name-not-utf8", "A folder's name is not UTF-8, so that nobody can call the skill."),
    warning("too-many-skills", "A skills folder has more skills than are listed."),
    // Python, as the interpreter that runs the scripts has it.
    error("no-python", "The skill has Python files, and no interpreter runs them."),
    error("broken-venv", "The skill's venv has no Python that starts."),
    error("unfinished-venv", "The setup of the skill's venv was interrupted."),
    warning("stale-venv", "What the skill declares has changed since the setup of its venv."),
    warning("missing-venv", "The skill lacks packages, and has no venv that holds them."),
    error("python-syntax", "A Python file does not parse; in templates and tests it is a warning."),
    error("missing-import", "A script imports a module that is not installed."),
    warning(
        "hidden-module",
        "A module has the name of one of Python's own, or of what Python runs at its start, and is never imported.",
    ),
    warning("optional-import", "A module is missing that a script can do without."),
    warning("undeclared-import", "A package is installed here, and the skill declares it nowhere."),
    warning(
        "python-version",
        "The skill asks for another version of Python than the one that runs it.",
    ),
    warning("unreadable-requirements", "What a skill declares cannot be read."),
    warning("unprobed", "Python files that could not be looked at."),
];

/// How bad a rule's findings are.
pub(super) fn severity(name: &str) -> Severity {
    let rule = RULES.iter().find(|rule| rule.name == name);
    rule.map_or(Severity::Error, |rule| rule.severity)
}

//! The table of the linter's rules, with severity and meaning.
//!
//! Problems take their severity from here, so that help, README and findings cannot differ. A
//! problem that makes other clients lose the skill, or a model fail, is an error; one that only
//! may do so is a warning.

use super::Severity;

/// A rule of the linter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckRule {
    /// The name in findings, in kebab case.
    pub name: &'static str,
    /// The severity of its findings.
    pub severity: Severity,
    /// The problem that it finds, in one sentence.
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

/// Every rule, grouped by what it checks.
pub const RULES: &[CheckRule] = &[
    // The document.
    error("no-document", "The folder has no SKILL.md."),
    error(
        "link-above",
        "A link leads to `/`, the home, or a folder above the home or the working folder: it is not read as a skill.",
    ),
    warning(
        "document-case",
        "The document's name is not SKILL.md in exactly this letter case, as most clients require.",
    ),
    warning(
        "ambiguous-document",
        "Several documents differ only in the letter case of their names; one is read.",
    ),
    error("unreadable-document", "The document cannot be opened."),
    error("large-document", "The document is larger than 1 MiB and is not read."),
    warning(
        "long-document",
        "The document is longer than advised (500 lines, 5,000 tokens); all of it goes into the context.",
    ),
    warning(
        "invisible-character",
        "A line has an invisible character that is not part of its text.",
    ),
    error("not-utf8", "The document has bytes that are not UTF-8."),
    error(
        "byte-order-mark",
        "A byte order mark precedes the frontmatter, and many clients then do not see it.",
    ),
    warning("empty-body", "The document has no text below its frontmatter."),
    // The frontmatter as YAML.
    error("no-frontmatter", "The document does not start with fields between lines of ---."),
    error("late-frontmatter", "Empty lines precede the frontmatter."),
    error(
        "fenced-frontmatter",
        "The frontmatter is in a code fence, where other clients do not look.",
    ),
    error("unclosed-frontmatter", "No line of --- closes the frontmatter."),
    error("unquoted-colon", "A value without quotes contains a colon and a space."),
    error(
        "reserved-character",
        "A value without quotes starts with a character that YAML reserves.",
    ),
    error(
        "anchor-alias-tag",
        "A value starts with &, * or !, which have a special meaning in YAML.",
    ),
    error(
        "ambiguous-value",
        "A value without quotes has a special meaning that YAML readers refuse.",
    ),
    error("text-after-value", "Text follows the closing quote or bracket of a value."),
    error("unclosed-quote", "A quote is never closed."),
    error("unclosed-bracket", "A bracket is never closed."),
    error("bad-escape", "A backslash in double quotes does not start a YAML escape."),
    error("bad-flow", "Brackets or commas are in places where YAML does not allow them."),
    error("bad-block", "Text follows a `|` or `>` on the same line."),
    error("complex-key", "A list, a map, `?` or nothing is in the place of a key."),
    error("long-key", "A key is longer than YAML readers accept."),
    error("too-deep", "Maps and lists are nested too deeply."),
    error("tab", "A tab is in a place where YAML requires spaces."),
    error("indentation", "The indentation of a line matches no value around it."),
    error("indented-field", "A field is indented and therefore part of the value above it."),
    error("field-in-text", "A line inside a value without quotes looks like a field."),
    error("not-a-field", "A line of the frontmatter is not `key: value`."),
    error("several-documents", "A second YAML document starts inside the frontmatter."),
    error("duplicate-key", "A key occurs twice; clients refuse it or use one of the values."),
    error(
        "control-character",
        "The frontmatter has a control character, which YAML readers refuse.",
    ),
    warning(
        "odd-character",
        "The frontmatter has a character that some YAML readers treat as a line end.",
    ),
    // The fields.
    error("missing-name", "The field `name` is missing or empty."),
    error("name-length", "The name is longer than 64 characters."),
    error(
        "name-characters",
        "The name has characters other than lowercase letters, digits and hyphens.",
    ),
    error("name-hyphens", "The name starts or ends with a hyphen, or has two in a row."),
    error("name-folder", "The name differs from that of the skill's folder."),
    error("missing-description", "The field `description` is missing or empty."),
    error("description-length", "The description is longer than 1,024 characters."),
    error("field-type", "The name or the description is a list, a map, a number or a boolean."),
    error("compatibility-length", "The compatibility is empty or longer than 500 characters."),
    warning("optional-type", "The license or the compatibility is not text."),
    error("metadata-type", "The metadata is not a map."),
    warning("metadata-value", "A value in the metadata is not text."),
    warning(
        "allowed-tools-type",
        "The field `allowed-tools` is not a text of names separated by spaces.",
    ),
    warning(
        "allowed-tools-commas",
        "The names in the field `allowed-tools` are separated by commas, not by spaces.",
    ),
    warning("field-typo", "An unknown field is spelled almost like a known one that is missing."),
    // What the document names.
    error("dangling-link", "A Markdown link leads to a file that the skill does not have."),
    warning("dangling-mention", "Code in the document names a file that the skill does not have."),
    warning(
        "outside-reference",
        "The document names a file outside the skill, where nothing can be read.",
    ),
    // The files.
    error("link-outside", "A symbolic link leads out of the skill; it is not followed."),
    error("broken-link", "The target of a symbolic link cannot be reached."),
    error("unreadable-file", "A file or folder cannot be opened."),
    warning("special-file", "The skill contains a FIFO, a socket or a device."),
    warning(
        "binary-file",
        "A program, library, archive or compiled file; it may run on one platform only, and its content cannot be reviewed.",
    ),
    warning("nested-skill", "The skill contains another skill, which clients do not find."),
    warning("many-files", "The skill has more files, or deeper folders, than are checked."),
    // Between skills.
    error("unreadable-folder", "A skills folder is missing, is not a folder or cannot be read."),
    warning(
        "name-clash",
        "Two skills folders have a skill with the same name; the first folder wins.",
    ),
    warning("alias-clash", "The name in a frontmatter is that of another skill or of its folder."),
    error("no-skills", "No folder in a skills folder has a SKILL.md: it is not a skills folder."),
    warning("folder-is-skill", "A skills folder is itself a skill, which is not offered."),
    warning(
        "name-not-utf8",
        "A folder's name is not UTF-8, so the skill cannot be named in a call.",
    ),
    warning("too-many-skills", "A skills folder has more skills than are listed."),
    // Python, as found by the interpreter that runs the scripts.
    error("no-python", "The skill has Python files, but no interpreter to run them."),
    error("broken-venv", "The Python of the skill's venv does not start."),
    error("unfinished-venv", "The setup of the skill's venv was interrupted."),
    warning("stale-venv", "The skill's requirements have changed since the setup of its venv."),
    warning("missing-venv", "The skill lacks packages and has no venv with them."),
    error("python-syntax", "A Python file does not parse; in templates and tests it is a warning."),
    error("missing-import", "A script imports a module that is not installed."),
    warning(
        "hidden-module",
        "A module has the name of one of Python's own, or of one that Python runs at its start, and is never imported.",
    ),
    warning("optional-import", "A module is missing, but the script can run without it."),
    warning("undeclared-import", "A package is installed here, but the skill does not declare it."),
    warning(
        "python-version",
        "The skill requires another version of Python than the one that runs it.",
    ),
    warning("unreadable-requirements", "The requirements that a skill declares cannot be read."),
    warning("unprobed", "Python files could not be checked."),
];

/// Returns the severity of a rule.
pub(super) fn severity(name: &str) -> Severity {
    let rule = RULES.iter().find(|rule| rule.name == name);
    rule.map_or(Severity::Error, |rule| rule.severity)
}

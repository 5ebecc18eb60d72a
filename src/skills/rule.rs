//! The rules that documents, files and folders of skills are checked against.
//!
//! Severity and fix of a problem come from its rule's row here, unless the check knows a more
//! specific fix. A new rule is a variant, its row at the same position and in `docs/rules.md`,
//! its check, and a case in `check/tests.rs`.

/// Severity of a problem, from the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The skill has no defect: this machine lacks something, or something was not checked.
    Note,
    /// Most clients load and run the skill, but not in all circumstances, or it does not follow
    /// the specification.
    Warning,
    /// The skill does not load or work in well-known clients.
    Error,
}

impl Severity {
    /// The name in findings and in JSON output.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// A rule. Readers of documents report the ones of the frontmatter, the catalogue those of
/// folders, the linter all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    // The document.
    /// The folder has no SKILL.md.
    NoDocument,
    /// A link leads to `/`, the home, or a folder above the home or the working folder.
    LinkAbove,
    /// The document's name is not SKILL.md in exactly this letter case, as most clients require;
    /// if there are several, a warning.
    DocumentCase,
    /// The document cannot be opened, or is larger than 1 MiB.
    UnreadableDocument,
    /// The document has no text after its frontmatter, so a user cannot invoke the skill.
    EmptyDocument,
    /// The document is more than twice as long as advised (5,000 tokens).
    LongDocument,
    /// The document has bytes that are not UTF-8.
    NotUtf8,
    /// A line has a character that users do not see and that is not part of its text.
    InvisibleCharacter,

    // The frontmatter as YAML.
    /// The document does not start with fields between lines of `---`.
    NoFrontmatter,
    /// Empty lines, a code fence or a byte order mark precede the frontmatter.
    LateFrontmatter,
    /// No line of `---` closes the frontmatter.
    UnclosedFrontmatter,
    /// A value without quotes has a character with a meaning in YAML: a colon and a space, a
    /// reserved character at its start, text after a closing quote or bracket.
    UnquotedValue,
    /// An anchor, an alias, a tag, a key that is not text, a second document, deep nesting.
    UnsupportedYaml,
    /// A quote is never closed.
    UnclosedQuote,
    /// A backslash in double quotes does not start a YAML escape.
    BadEscape,
    /// Brackets or commas are in places where YAML does not allow them.
    BadFlow,
    /// A tab is in a place where YAML requires spaces.
    Tab,
    /// The indentation of a line matches no value around it.
    Indentation,
    /// A line that looks like a field is indented, and therefore part of the value above it.
    IndentedField,
    /// A line of the frontmatter is not `key: value`.
    NotAField,
    /// A key occurs twice; clients refuse it or use one of the values.
    DuplicateKey,
    /// The frontmatter has a control character, which YAML readers refuse.
    ControlCharacter,

    // The fields.
    /// The field `name` is missing or empty.
    MissingName,
    /// The name is longer than 64 characters, or has others than lowercase letters, digits and
    /// single hyphens between them.
    InvalidName,
    /// The name differs from that of the skill's folder; a note if it contains that name.
    NameFolder,
    /// The field `description` is missing or empty.
    MissingDescription,
    /// The description is longer than 1,024 characters.
    DescriptionLength,
    /// The name or the description is a list, a map, a number or a boolean.
    FieldType,
    /// `license`, `compatibility` or `metadata` is not as the specification requires.
    OptionalField,
    /// An unknown field differs from a missing one only in letter case and underscores.
    FieldTypo,

    // What the document names.
    /// A link or a path in a document leads to a file that the skill does not have.
    MissingFile,
    /// A document names a file of another skill by its path; in Claude Code and here, skills are
    /// called by name.
    OtherSkill,
    /// A document names a file outside the skill, which is missing where only the skill is
    /// installed.
    OutsideReference,
    /// A line of shell commands in a document runs a script that is not executable.
    NotExecutable,
    /// A script that a document runs, or a `.sh` file that it names, has a carriage return after
    /// its `#!` line.
    CrlfScript,

    // The files.
    /// A symbolic link leads out of the skill or nowhere; it is not followed. The document's is an
    /// error, a relative one that leads to something a note.
    BrokenLink,
    /// A file or folder cannot be opened or read.
    UnreadableFile,
    /// `SKILLS_LOCKED` is on, and the skill is not as the lock file beside it lists it.
    NotLocked,
    /// The skill has more files, or deeper folders, than are checked.
    ManyFiles,
    /// A file of tests in `evals/` is invalid, so `skills eval` does not make these tests.
    InvalidEvals,

    // The skills folders.
    /// A skills folder is missing, is not a folder or cannot be read.
    UnreadableFolder,
    /// Skills lie deeper in a default folder than is searched.
    SkillsBelow,
    /// A Markdown file with the fields of a skill lies in a skills folder: a skill is a folder.
    FlatFile,
    /// Two skills have the same name, in their folders or their frontmatter; a note if their
    /// frontmatter has it and they are in different folders.
    NameClash,
    /// The name means another skill; this one has a longer name.
    NameTaken,
    /// A folder's name is not UTF-8, so the skill cannot be named in a call.
    NameNotUtf8,
    /// A skills folder has more skills than are listed.
    TooManySkills,

    // Python, as found by the interpreter that runs the scripts.
    /// The skill has Python files, but no interpreter to run them.
    NoPython,
    /// The Python of the skill's venv does not start, or the venv's setup was interrupted.
    BrokenVenv,
    /// The skill's venv lacks requirements that the skill has declared since its setup.
    StaleVenv,
    /// The skill declares packages that no script imports, and has no venv with them.
    MissingVenv,
    /// A script does not parse.
    PythonSyntax,
    /// Scripts import modules that are not installed.
    MissingImport,
    /// Programs, packages of npm, MCP servers or tools are missing that documents and scripts name.
    MissingNeed,
    /// A module has the name of one of Python's own, or of one that Python runs at its start,
    /// and is never imported.
    HiddenModule,
    /// Modules are missing that scripts need only for some of what they do.
    OptionalImport,
    /// A script imports a module whose package the skill neither declares nor mentions.
    UndeclaredImport,
    /// The skill requires another version of Python than the one that runs it, or a later one
    /// may be able to read a script.
    PythonVersion,
    /// The requirements that a skill declares cannot be read.
    UnreadableRequirements,
    /// Python files could not be checked.
    Unprobed,
}

/// A row of the table of rules.
#[derive(Clone, Copy, Debug)]
pub struct RuleRow {
    /// The rule.
    pub rule: Rule,
    /// Its name in findings, in kebab case.
    pub name: &'static str,
    /// The severity of its problems.
    pub severity: Severity,
    /// Whether its problems are something that this machine lacks.
    pub is_lack: bool,
    /// The remedy that fits all its problems.
    pub fix: Option<&'static str>,
}

const fn error(rule: Rule, name: &'static str) -> RuleRow {
    RuleRow { rule, name, severity: Severity::Error, is_lack: false, fix: None }
}

const fn warning(rule: Rule, name: &'static str) -> RuleRow {
    RuleRow { severity: Severity::Warning, ..error(rule, name) }
}

const fn note(rule: Rule, name: &'static str) -> RuleRow {
    RuleRow { severity: Severity::Note, ..error(rule, name) }
}

/// Row for something lacking: a note, with `--here` an error.
const fn lack(rule: Rule, name: &'static str) -> RuleRow {
    RuleRow { is_lack: true, ..note(rule, name) }
}

impl RuleRow {
    const fn fixed_by(self, fix: &'static str) -> RuleRow {
        RuleRow { fix: Some(fix), ..self }
    }
}

/// Every rule, in the order of [`Rule`].
pub const RULES: &[RuleRow] = &[
    error(Rule::NoDocument, "no-document").fixed_by("add a SKILL.md to make it a skill"),
    error(Rule::LinkAbove, "link-above")
        .fixed_by("remove the link, or point it to the skill's own folder"),
    error(Rule::DocumentCase, "document-case")
        .fixed_by("name the document SKILL.md, and keep only one"),
    error(Rule::UnreadableDocument, "unreadable-document"),
    warning(Rule::EmptyDocument, "empty-document")
        .fixed_by("write below the frontmatter what the model is to do"),
    note(Rule::LongDocument, "long-document")
        .fixed_by("move what is not always needed into files under references/"),
    error(Rule::NotUtf8, "not-utf8").fixed_by("save the document as UTF-8"),
    warning(Rule::InvisibleCharacter, "invisible-character")
        .fixed_by("remove it, or write what it stands for"),
    error(Rule::NoFrontmatter, "no-frontmatter")
        .fixed_by("start the document with `---`, `name: …`, `description: …`, `---`"),
    error(Rule::LateFrontmatter, "late-frontmatter")
        .fixed_by("start the document with the line of `---`"),
    error(Rule::UnclosedFrontmatter, "unclosed-frontmatter")
        .fixed_by("add a line of `---` after the last field"),
    warning(Rule::UnquotedValue, "unquoted-value").fixed_by("put the value in double quotes"),
    warning(Rule::UnsupportedYaml, "unsupported-yaml")
        .fixed_by("write the value in plain YAML, or put text in double quotes"),
    warning(Rule::UnclosedQuote, "unclosed-quote").fixed_by("close the quote"),
    warning(Rule::BadEscape, "bad-escape").fixed_by("double the backslash, or use single quotes"),
    warning(Rule::BadFlow, "bad-flow").fixed_by(
        "write a space after each colon, separate the items by commas and close every bracket, or put text in double quotes",
    ),
    warning(Rule::Tab, "tab").fixed_by("use spaces, or put text that has a tab in double quotes"),
    warning(Rule::Indentation, "indentation")
        .fixed_by("indent keys that belong together with the same number of spaces"),
    warning(Rule::IndentedField, "indented-field")
        .fixed_by("start the line at the first column, or put the whole value in double quotes"),
    warning(Rule::NotAField, "not-a-field").fixed_by(
        "write it as `key: value` with a space, or indent it if it continues the value above",
    ),
    warning(Rule::DuplicateKey, "duplicate-key").fixed_by("keep one of them"),
    warning(Rule::ControlCharacter, "control-character").fixed_by("remove it"),
    warning(Rule::MissingName, "missing-name").fixed_by("add `name:` with the folder's name"),
    warning(Rule::InvalidName, "invalid-name")
        .fixed_by("use lowercase letters, digits and hyphens"),
    warning(Rule::NameFolder, "name-folder").fixed_by("rename the folder"),
    warning(Rule::MissingDescription, "missing-description")
        .fixed_by("add `description:` with what the skill does and when to use it"),
    warning(Rule::DescriptionLength, "description-length").fixed_by(
        "say what the skill does and when to use it; move the rest below the frontmatter",
    ),
    warning(Rule::FieldType, "field-type").fixed_by("write it as one text in double quotes"),
    warning(Rule::OptionalField, "optional-field").fixed_by("write it as text in double quotes"),
    warning(Rule::FieldTypo, "field-typo"),
    warning(Rule::MissingFile, "missing-file").fixed_by("add the file, or correct its path"),
    note(Rule::OtherSkill, "other-skill"),
    warning(Rule::OutsideReference, "outside-reference")
        .fixed_by("move or copy the file into the skill"),
    warning(Rule::NotExecutable, "not-executable")
        .fixed_by("use `chmod +x`, or name the program that runs it"),
    error(Rule::CrlfScript, "crlf-script").fixed_by("save the file with LF line ends"),
    warning(Rule::BrokenLink, "broken-link")
        .fixed_by("remove the link, or replace it with a copy of its target"),
    error(Rule::UnreadableFile, "unreadable-file"),
    error(Rule::NotLocked, "not-locked").fixed_by(
        "`skills-runner skills restore --force` brings back the files of a listed skill, added files have to be moved out of it, `skills-runner skills add` lists another one; for another folder, with --to DIR",
    ),
    warning(Rule::ManyFiles, "many-files"),
    warning(Rule::InvalidEvals, "invalid-evals"),
    error(Rule::UnreadableFolder, "unreadable-folder"),
    warning(Rule::SkillsBelow, "skills-below"),
    warning(Rule::FlatFile, "flat-file"),
    warning(Rule::NameClash, "name-clash")
        .fixed_by("rename one of the two folders, or leave one out"),
    note(Rule::NameTaken, "name-taken").fixed_by("rename its folder, if you need both"),
    warning(Rule::NameNotUtf8, "name-not-utf8").fixed_by("rename the folder"),
    warning(Rule::TooManySkills, "too-many-skills")
        .fixed_by("split them into several folders, and name those that you need"),
    lack(Rule::NoPython, "no-python"),
    error(Rule::BrokenVenv, "broken-venv"),
    lack(Rule::StaleVenv, "stale-venv"),
    lack(Rule::MissingVenv, "missing-venv"),
    error(Rule::PythonSyntax, "python-syntax"),
    lack(Rule::MissingImport, "missing-import"),
    lack(Rule::MissingNeed, "missing-need"),
    warning(Rule::HiddenModule, "hidden-module").fixed_by("give it another name"),
    note(Rule::OptionalImport, "optional-import"),
    warning(Rule::UndeclaredImport, "undeclared-import"),
    lack(Rule::PythonVersion, "python-version"),
    warning(Rule::UnreadableRequirements, "unreadable-requirements"),
    note(Rule::Unprobed, "unprobed"),
];

impl Rule {
    fn row(self) -> &'static RuleRow {
        &RULES[self as usize]
    }

    /// The name in findings, in kebab case.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The severity of a problem of this rule.
    pub fn severity(self) -> Severity {
        self.row().severity
    }

    /// Whether its problems are something that this machine lacks.
    pub fn is_lack(self) -> bool {
        self.row().is_lack
    }

    /// The remedy that fits all problems of this rule.
    pub fn fix(self) -> Option<&'static str> {
        self.row().fix
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_has_its_row() {
        for (at, row) in RULES.iter().enumerate() {
            assert_eq!(row.rule as usize, at, "{}", row.name);
            assert!(RULES[..at].iter().all(|other| other.name != row.name), "{}", row.name);
        }
        assert_eq!(RULES.len(), Rule::Unprobed as usize + 1);
    }

    #[test]
    fn the_documentation_has_each_rule() {
        let documented: Vec<String> = include_str!("../../docs/rules.md")
            .lines()
            .filter(|line| line.starts_with("| `"))
            .map(|line| line.split(" | ").take(2).collect::<Vec<_>>().join(" | "))
            .collect();
        let rows = RULES.iter().map(|row| format!("| `{}` | {}", row.name, row.severity.name()));
        assert_eq!(documented, rows.collect::<Vec<_>>());
    }
}

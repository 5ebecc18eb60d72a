//! Limits of skills: their documents, imports, setup and checks.

use std::time::Duration;

/// Words of a question that the ranking of skills counts: the subject is named by then.
pub const QUERY_WORDS: usize = 32;
/// Words of a question, such as "the", from which these are chosen.
pub const QUERY_WORDS_READ: usize = 200;
/// Parts of the first question for each of which skills are ranked: more are a text, not tasks.
pub const QUERY_PARTS: usize = 8;
/// Start of a word of a question that counts.
pub const QUERY_WORD_BYTES: usize = 100;
/// Skills that a search lists.
pub const FOUND_SKILLS: usize = 8;
/// Description of each of them; nine of ten are shorter.
pub const FOUND_DESCRIPTION_BYTES: usize = 512;
/// Words that no skill mentions and that the result of a search names.
pub const UNKNOWN_WORDS: usize = 5;
/// The longest of these words that it names whole.
pub const QUOTED_WORD_BYTES: usize = 40;
/// Shortest of these words to which similar ones are searched.
pub const SIMILAR_WORD_CHARS: usize = 5;
/// Start of a document that the ranking reads; nearly all are shorter.
pub const RANKED_DOCUMENT_BYTES: usize = 256 << 10;
/// All documents that it reads: about a second. Other skills are ranked by name and description.
pub const RANKED_BYTES: usize = 256 << 20;

/// Skills in one folder.
pub const SKILLS: usize = 20_000;
/// Characters of a skill's name, by the specification.
pub const SKILL_NAME_CHARS: usize = 64;
/// Folders that are examined in the search for skills in one skills folder.
pub const SEARCHED_FOLDERS: usize = 20_000;
/// Levels of folders that are searched; its direct subfolders are the first.
pub const SEARCHED_LEVELS: usize = 8;
/// Bytes of the skill names that each tool with such an argument offers to the model as an `enum`:
/// the first request should stay below 3 KB.
pub const ENUM_BYTES: usize = 64;
/// Markdown files in a skills folder that are examined: users put few files there.
pub const FLAT_FILES: usize = 50;
/// Part of each document that is read for the catalogue; more only if the frontmatter is
/// longer.
pub const FRONTMATTER_BYTES: usize = 4 << 10;
/// A document: more does not fit into any model's context.
pub const DOCUMENT_BYTES: usize = 1 << 20;
/// Deepest nesting of maps and lists; real skills reach 6.
pub const YAML_DEPTH: usize = 64;
/// Longest key in characters, as in `PyYAML`.
pub const YAML_KEY_CHARS: usize = 1024;
/// Diagnostics that are kept for one document.
pub const YAML_DIAGNOSTICS: usize = 100;
/// Nesting up to which entries of maps and lists are repaired one by one.
pub const YAML_REPAIR_DEPTH: usize = 4;
/// A description that is kept whole; the longest published one has 1,929 characters.
pub const DESCRIPTION_KEPT_BYTES: usize = 4 << 10;
/// A description in the catalogue.
pub const DESCRIPTION_BYTES: usize = 1024;
/// The first sentences of a description, where a catalogue does not fit whole.
pub const SENTENCE_BYTES: usize = 240;
/// A document with its placeholders replaced: document and arguments once, each at its largest.
pub const INVOCATION_BYTES: usize = 2 << 20;
/// Words of a skill's arguments that are numbered.
pub const ARGUMENT_WORDS: usize = 1_000;
/// Name that a skill gives to one of its arguments.
pub const ARGUMENT_NAME_BYTES: usize = 64;
/// Skills that a conversation lists.
pub const CHAT_SKILLS: usize = 100;
/// Bytes of each description in that list.
pub const CHAT_DESCRIPTION_BYTES: usize = 80;
/// The MCP server's instructions, without facts: well-known clients cut them at 2,048
/// characters.
pub const SERVER_INSTRUCTIONS_BYTES: usize = 2000;
/// The catalogue in the system prompt.
pub const CATALOGUE_BYTES: usize = 8 << 10;
/// The result of `list_skills`.
pub const LIST_BYTES: usize = 64 << 10;
/// The line about what a machine lacks for a skill.
pub const MISSING_NOTE_BYTES: usize = 340;
/// The text of a skill from which its needs are read.
pub const NEEDS_SKILL_BYTES: usize = 512 << 10;
/// One page of a file.
pub const PAGE_BYTES: usize = 64 << 10;
/// Lines of one page, unless the model requests another number.
pub const PAGE_LINES: usize = 2_000;
/// Largest offset of a page in a file: skipped bytes are read, too.
pub const FILE_BYTES: u64 = 256 << 20;
/// Entries of a folder's listing.
pub const FOLDER_ENTRIES: usize = 1_000;
/// Largest offset of a page in a folder's listing.
pub const FOLDER_ENTRIES_PAGED: usize = 100_000;
/// Files that are listed after a document.
pub const DOCUMENT_FILES: usize = 100;
/// Commands of a document that a note after it lists.
pub const LISTED_COMMANDS: usize = 5;
/// Size from which on files that lie deep in a skill are listed by folder.
pub const FILE_LIST_BYTES: usize = 600;
/// Files of a folder from which on they are one entry of this list.
pub const FOLDED_DATA_FILES: usize = 6;
/// The same for documents and scripts.
pub const FOLDED_NAMED_FILES: usize = 20;
/// Extensions that such an entry counts by themselves.
pub const FOLDED_EXTENSIONS: usize = 3;
/// Levels of folders that are searched for a skill's files.
pub const WALK_DEPTH: usize = 8;
/// Entries that are visited in this search.
pub const WALK_ENTRIES: usize = 5_000;
/// Largest file that `edit_file` changes.
pub const EDITED_FILE_BYTES: usize = 4 << 20;
/// Places in a file that an error message of `edit_file` lists.
pub const LISTED_PLACES: usize = 10;
/// Largest text that such a message quotes: some lines.
pub const QUOTED_LINES_BYTES: usize = 1 << 10;
/// Equal lines that are shown before and after a change.
pub const DIFF_CONTEXT_LINES: usize = 2;
/// Wait for another runner that writes a file of the same folder.
pub const USER_FILE_LOCK_WAIT: Duration = Duration::from_secs(10);
/// Lines of a file, and of a text that does not occur in it, that are compared to find where it
/// nearly does.
pub const NEAR_LINES: usize = 100_000;
/// Lines of a text that does not occur in a file, more of which are not compared.
pub const NEAR_OLD_LINES: usize = 50;
/// Lines after a difference in which equal lines are searched.
pub const DIFF_SEARCH_LINES: usize = 100;
/// Entries below the working folder among which the other names of a file are searched.
pub const LINKED_FILE_ENTRIES: usize = 200_000;
/// Start of a file that is examined for a private key.
pub const KEY_START_BYTES: usize = 256;
/// The same of a PEM file, in which certificates may stand before the key.
pub const KEY_SEARCH_BYTES: usize = 1 << 20;
/// Entries below the working folder among which private ones are searched before each sandboxed
/// run.
pub const HIDDEN_ENTRIES: usize = 20_000;
/// The same for the list of all skills, for each document with several names.
pub const LISTED_LINK_ENTRIES: usize = 1_000;
/// Similar names that an error message offers.
pub const SIMILAR_NAMES: usize = 3;
/// Available names that an error message lists.
pub const LISTED_NAMES: usize = 20;

// What skills' scripts import.

/// Files of a skill that are examined.
pub const PROBE_FILES: usize = 2_000;
/// Entries that are visited in this search.
pub const PROBE_ENTRIES: usize = 50_000;
/// One Python file; parsed, it uses a hundred times as much memory.
pub const PROBE_FILE_BYTES: usize = 1 << 20;
/// All Python files of one skill.
pub const PROBE_SKILL_BYTES: usize = 4 << 20;
/// Input of one interpreter start; its last skill may exceed it.
pub const PROBE_BATCH_BYTES: usize = 4 << 20;
/// Skills of one interpreter start.
pub const PROBE_BATCH_SKILLS: usize = 2_000;
/// Rows of one kind (imports, requirements, findings) of one skill.
pub const PROBE_ROWS: usize = 1_000;
/// Output of one interpreter start; skills that do not fit are probed again.
pub const PROBE_ANSWER_BYTES: usize = 4 << 20;
/// One interpreter start: Python parses about 1 MB per second.
pub const PROBE_TIMEOUT: Duration = Duration::from_secs(60);
/// All interpreter starts together: some forty skills that each use their whole time, or more
/// Python than any collection has.
pub const PROBE_TOTAL_TIMEOUT: Duration = Duration::from_secs(240);
/// Processor time of one skill: as much as its files need at their largest. C code that does
/// not return is ended after twice this time.
pub const PROBE_SKILL_SECONDS: u64 = 5;
/// The interpreter's memory: four times what the largest file needs.
pub const PROBE_MEMORY_BYTES: usize = 1 << 30;
/// Characters of a project's or a script's TOML; TOML parsers are slow, and real files have a
/// tenth of this.
pub const PROBE_TOML_CHARS: usize = 64 << 10;
/// Output for one skill, so that two of them cannot fill the whole output.
pub const PROBE_SKILL_ANSWER_BYTES: usize = 1 << 20;
/// Skills that may crash the interpreter before probing stops.
pub const PROBE_CRASHES: usize = 20;
// Setting skills up.

/// One command of a setup: large packages over a slow line take this long.
pub const SETUP_COMMAND_TIMEOUT: Duration = Duration::from_secs(3600);
/// Packages of a skill that may be offered for installation.
pub const INFERRED_PACKAGES: usize = 200;
/// Lines of installers that are kept for the case that one fails.
pub const SETUP_OUTPUT_LINES: usize = 10_000;
/// Wait for other runners that write to the log: each holds its lock for one write.
pub const LOG_LOCK: Duration = Duration::from_secs(2);
/// Interval at which that lock is tried.
pub const LOG_LOCK_POLL: Duration = Duration::from_micros(200);
/// Interval at which a lock is tried that is held for milliseconds. It is constant: with
/// growing intervals the latest process wins each time, and of 16 that wrote all the time one
/// got no turn in 30 s.
pub const LOCK_POLL_SHORT: Duration = Duration::from_millis(5);
/// Interval at which a replaced file is checked for other processes that write to it.
pub const OTHER_WRITERS_POLL: Duration = Duration::from_millis(1);
/// Largest file of tests of a skill.
pub const EVALS_FILE_BYTES: usize = 4 << 20;
/// Most cases of a skill.
pub const EVAL_CASES: usize = 10_000;
/// Largest file that a test copies into its working folder.
pub const EVAL_FILE_BYTES: usize = 256 << 20;
/// Bytes of each file of a skill on which results depend.
pub const EVAL_DIGEST_BYTES: usize = 64 << 20;
/// Bytes of all texts that a judge reads.
pub const EVAL_RESULT_BYTES: usize = 64 << 10;
/// Files that a judge reads.
pub const EVAL_JUDGED_FILES: usize = 50;
/// Bytes of an answer in the results of tests.
pub const EVAL_ANSWER_BYTES: usize = 4 << 10;
/// Bytes of what was found instead of what a test asserts.
pub const EVAL_EVIDENCE_BYTES: usize = 300;
/// Size of the key of results.
pub const EVAL_KEY_BYTES: usize = 72;
/// Bytes of a case's or skill's name in the name of a folder.
pub const EVAL_NAME_BYTES: usize = 64;
/// Most runs of a case.
pub const EVAL_RUNS: u32 = 1000;
/// Most runs at a time.
pub const EVAL_JOBS: u32 = 256;
/// Most runs of an evaluation, without those of a baseline.
pub const EVAL_PLANNED: usize = 100_000;
/// Most checks of a case.
pub const EVAL_CHECKS: usize = 100;
/// Size of a compiled regular expression in a check.
pub const EVAL_REGEX_BYTES: usize = 32 << 10;
/// Bytes of a file that a check reads.
pub const EVAL_CHECKED_BYTES: usize = 4 << 20;
/// Runs of a case unless `--runs` says otherwise.
pub const EVAL_DEFAULT_RUNS: u32 = 3;
/// Interval at which the progress of tests is shown.
pub const EVAL_PROGRESS: Duration = Duration::from_secs(1);
/// Time for runs that are interrupted, and for another evaluation that has just been killed.
pub const EVAL_END_WAIT: Duration = Duration::from_secs(5);
/// Interval at which a lock is tried that is held for seconds or minutes.
pub const LOCK_POLL: Duration = Duration::from_millis(100);
/// Removal of a venv after Ctrl+C; the next setup removes the rest.
pub const SETUP_CLEANUP: Duration = Duration::from_secs(2);
/// The record of a setup.
pub const SETUP_RECORD_BYTES: usize = 1 << 20;
/// A file of requirements.
pub const SETUP_REQUIREMENTS_BYTES: usize = 1 << 20;
/// Requirements files that include each other.
pub const SETUP_REQUIREMENTS_FILES: usize = 20;
/// Last lines of an installer's output that an error quotes.
pub const SETUP_REASON_LINES: usize = 8;
/// Those lines, or another text of a skill's author that a setup quotes.
pub const SETUP_REASON_BYTES: usize = 1000;

// Getting skills.

/// Entries of an archive.
pub const ARCHIVE_ENTRIES: usize = 50_000;
/// All files of an archive, or an archive itself.
pub const ARCHIVE_BYTES: u64 = 1 << 30;
/// How many times as large as the archive its files may be; text reaches 20.
pub const ARCHIVE_RATIO: u64 = 200;
/// Size of its files below which this ratio does not count: padding is compressed well.
pub const ARCHIVE_RATIO_BYTES: u64 = 64 << 10;
/// A long name, or other additional data of an entry.
pub const ARCHIVE_EXTENSION_BYTES: u64 = 64 << 10;
/// Files that are installed at once.
pub const INSTALLED_FILES: usize = 10_000;
/// Bytes of these files.
pub const INSTALLED_BYTES: u64 = 64 << 20;
/// Folders in which a file of a skill may lie, one in the other.
pub const INSTALLED_DEPTH: usize = 64;
/// The same for a local folder, in which skills lie.
pub const SOURCE_DEPTH: usize = 128;
/// Names and targets of links in an archive; usual repositories have a tenth.
pub const ARCHIVE_NAMES_BYTES: usize = 8 << 20;
/// Largest text of which an update shows the lines that differ.
pub const COMPARED_BYTES: usize = 1 << 20;
/// The lock file.
pub const LOCK_FILE_BYTES: usize = 16 << 20;
/// Time in which a download has to bring [`DOWNLOADED_BYTES`], and its longest silence.
pub const DOWNLOAD_WINDOW: Duration = Duration::from_secs(60);
/// 1 KiB per second: less is a server that never ends.
pub const DOWNLOADED_BYTES: u64 = 60 << 10;
/// Redirects of one download.
pub const REDIRECTS: usize = 5;
/// One command of git: a large repository over a slow line takes this long.
pub const GIT_TIMEOUT: Duration = Duration::from_secs(1800);
/// Files of a skill that are listed before it is installed.
pub const SHOWN_FILES: usize = 30;
/// Lines of each file that are shown of the differences of an update.
pub const SHOWN_LINES: usize = 80;
/// Bytes of a row of such a line; a longer line has several.
pub const SHOWN_LINE_BYTES: usize = 1000;
/// Skills up to which the files of each are listed.
pub const SHOWN_SKILLS: usize = 5;

// Checking skills.

/// Characters of a description, by the specification.
pub const DESCRIPTION_CHARS: usize = 1024;
/// Characters of `compatibility`, by the specification.
pub const COMPATIBILITY_CHARS: usize = 500;
/// Length of a document that the specification recommends at most: 5,000 tokens of some four
/// bytes. Twice as much is reported; authors accept a little more.
pub const ADVISED_DOCUMENT_BYTES: usize = 20_000;
/// Problems of one kind that are reported for one skill.
pub const PROBLEMS: usize = 20;
/// Files named in a skill whose existence is checked.
pub const REFERENCES: usize = 1_000;
/// Markdown files, all together, in which the checks follow references from the document.
pub const REFERENCE_BYTES: u64 = 4 << 20;
/// Start of a script with its `#!` line; the kernel reads no more of it.
pub const SHEBANG_BYTES: usize = 256;

/// The kernel's limits for a file's extended attribute and for the names of all of them
/// (`XATTR_SIZE_MAX`, `XATTR_LIST_MAX`).
pub const ATTRIBUTE_BYTES: usize = 64 << 10;

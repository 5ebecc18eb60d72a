//! Every bound of the program, named, in one place.
//!
//! Nothing grows without one: what comes from the network, from a file, from
//! a script or from a person has its limit here, with the reason where the
//! number alone does not tell it.

use std::time::Duration;

// The endpoint.

/// Default of `LLM_TIMEOUT_SECONDS`.
pub(crate) const IDLE_SECONDS: u64 = 120;
/// Local models read long prompts slowly: silence before the first byte may
/// last this many times the idle limit.
pub(crate) const FIRST_BYTE_FACTOR: u32 = 5;
/// Looking up a name, connecting, and the TLS handshake together.
pub(crate) const CONNECT: Duration = Duration::from_secs(10);
/// The head of a proxy's answer to `CONNECT`.
pub(crate) const PROXY_HEAD_BYTES: usize = 16 << 10;
/// Any setting in seconds: a year, far below any overflow.
pub(crate) const MAX_SECONDS: u64 = 31_536_000;
/// Tries of one request, the first included.
pub(crate) const TRIES: u32 = 3;
/// Changes to one request that an endpoint does not take as it is.
pub(crate) const CHANGES: u32 = 10;
/// The first pause between two tries; it doubles.
pub(crate) const RETRY_PAUSE: Duration = Duration::from_millis(500);
/// The longest pause of our own choosing.
pub(crate) const RETRY_PAUSE_MAX: Duration = Duration::from_secs(8);
/// The longest pause that a server may ask for.
pub(crate) const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);
/// One line of a stream of server-sent events.
pub const SSE_LINE_BYTES: usize = 1 << 20;
/// One event of several lines.
pub const SSE_EVENT_BYTES: usize = 8 << 20;
/// One response, whole.
pub(crate) const RESPONSE_BYTES: u64 = 64 << 20;
/// A body that is parsed whole: kept well under the 32 MB a run may take.
pub(crate) const BODY_BYTES: usize = 8 << 20;
/// The body of a refusal: only its first words are shown.
pub(crate) const ERROR_BODY_BYTES: usize = 64 << 10;
/// How much of a server's own words a message quotes.
pub(crate) const QUOTED_BYTES: usize = 300;
/// The arguments of one call.
pub(crate) const ARGUMENTS_BYTES: usize = 1 << 20;
/// What the model says in one message, and the same of its reasoning. No model
/// writes half as much; a run holds it several times and stays under 32 MB.
pub const MESSAGE_BYTES: usize = 2 << 20;
/// White space in front of what may be a thought.
pub const LEADING_BLANKS: usize = 4 << 10;
/// A text that may be a call which the server did not recognize.
pub(crate) const UNPARSED_CALL_BYTES: usize = 256 << 10;
/// What is left of a tool's result when the model's context is full.
pub(crate) const SHORTENED_RESULT_BYTES: usize = 2 << 10;
/// Of that, the line that says how much is missing.
pub(crate) const CUT_NOTE_BYTES: usize = 64;
/// A tool's name, as the strictest endpoints bound it.
pub const TOOL_NAME_CHARS: usize = 64;
/// Schemas within schemas of a tool's arguments; endpoints take five to ten.
pub(crate) const SCHEMA_DEPTH: usize = 64;
/// The arguments of all calls of one message.
pub const ALL_ARGUMENTS_BYTES: usize = 4 << 20;
/// JSON values in one piece of a reply; as many again may be kept to be echoed.
pub(crate) const JSON_VALUES: usize = 20_000;
/// Choices of a reply that are looked at; one was asked for.
pub(crate) const CHOICES: usize = 4;
/// Calls of one message that run; the others are answered with an error.
pub(crate) const CALLS: usize = 128;
/// Calls of one message that are answered at all: all of them are sent again with
/// every request, and no model makes so many.
pub const CALLS_ANSWERED: usize = 1024;
/// No text has more bytes a token than this, but for long runs of one character.
pub(crate) const BYTES_PER_TOKEN_MOST: usize = 12;
/// Requests shorter than this are not looked at for what the endpoint left unread.
pub(crate) const TRUNCATION_BYTES: usize = 16 << 10;
/// A word in a stream that only shows that somebody is there.
pub(crate) const BEAT_BYTES: usize = 32;
/// Bytes read from a connection at once.
pub const READ_BYTES: usize = 64 << 10;
/// Addresses kept of one host name.
pub(crate) const HOST_ADDRESSES: usize = 16;

/// How long an endpoint may take to tell of itself: it has to think of nothing.
pub(crate) const INQUIRY: Duration = Duration::from_secs(10);
/// What it tells; the longest list of models known is about 1 MB.
pub(crate) const INQUIRY_BYTES: usize = 4 << 20;
/// Models kept of a list.
pub(crate) const MODELS: usize = 10_000;
/// Tokens of context below which a skill's document and a few results do not
/// fit together.
pub(crate) const CONTEXT_TOKENS_LEAST: u64 = 32_768;
/// Tokens of a thousand bytes, as long as the endpoint has reported none: a token
/// of English, code or JSON has some 3.5 bytes.
pub(crate) const TOKENS_IN_1000_BYTES: u64 = 286;
/// What a picture takes, in bytes of text: some 1,200 tokens.
pub(crate) const IMAGE_AS_BYTES: u64 = 4200;
/// Tokens that a picture may take; the dearest model known counts 37,000.
pub(crate) const IMAGE_TOKENS: u64 = 50_000;
/// No window is smaller: a smaller number in a refusal is something else.
pub(crate) const CONTEXT_TOKENS_KNOWN: u64 = 1024;
/// Tokens of a summary that is asked for; a longer one is cut at twice as many.
pub(crate) const SUMMARY_TOKENS: u64 = 1500;
/// What is kept of one message that is to be summarized; of a result a quarter.
pub(crate) const TRANSCRIPT_PIECE_BYTES: usize = 4 << 10;
/// The same where all of them do not fit: with less nothing is understood.
pub(crate) const TRANSCRIPT_PIECE_BYTES_LEAST: usize = 128;
/// Tries of a request for a summary, each with half of the transcript.
pub(crate) const SUMMARY_TRIES: u32 = 4;
/// Requests of the trial of tool calls: the call, its result, one more.
pub(crate) const TRIAL_STEPS: u32 = 3;

/// After the end marker of a stream: how long the end of the body is waited
/// for, so that the connection can be used again.
pub(crate) const AFTER_DONE: Duration = Duration::from_millis(50);

// A run.

/// Default of `--max-steps`: model calls in one turn.
pub(crate) const MAX_STEPS: u32 = 50;
/// A prompt on standard input.
pub(crate) const STDIN_BYTES: usize = 16 << 20;
/// A picture for the model: the least that a large provider takes of one. A run
/// holds it in base64, a third more, once to keep and once to send.
pub(crate) const IMAGE_BYTES: usize = 5 << 20;
/// The pictures in a conversation beyond which tools show no more, in base64:
/// each is sent with every request.
pub(crate) const IMAGES_BYTES: usize = 16 << 20;
/// What is attached to one question, all together: as much as standard input.
pub(crate) const ATTACHED_BYTES: usize = STDIN_BYTES;
/// The address of a picture; servers take no longer ones.
pub(crate) const IMAGE_URL_BYTES: usize = 8 << 10;
/// How long the first byte of a piped standard input is waited for, when a
/// prompt was given as an argument as well.
pub(crate) const STDIN_PATIENCE: Duration = Duration::from_secs(3);
/// How long a pipe that stands in a file's place may be silent: a password
/// manager that writes into it asks its user first.
pub(crate) const PIPE_SILENCE: Duration = Duration::from_secs(60);
/// An environment file.
pub(crate) const ENV_FILE_BYTES: usize = 1 << 20;
/// What all `${NAME}` of one file bring into its values stays under this.
/// Without a bound `B=${A}${A}`, repeated, doubles with every line.
pub const ENV_EXPANSION_BYTES: usize = 1024 * 1024;
/// A file with a key: tokens of some gateways reach 8 KiB.
pub(crate) const KEY_FILE_BYTES: usize = 16 << 10;
/// A file of certificates; the bundle of a whole system is about 220 KiB.
pub(crate) const CERTIFICATES_BYTES: usize = 4 << 20;
/// A user name or password that SOCKS takes (RFC 1929).
pub(crate) const SOCKS_LOGIN_BYTES: usize = 255;
/// A file of instructions.
pub(crate) const INSTRUCTIONS_BYTES: usize = 1 << 20;
/// A message of the Model Context Protocol, which is a line.
pub const MESSAGE_LINE_BYTES: usize = 32 << 20;
/// What such a message is answered under; clients count, or take random names.
pub const MESSAGE_ID_BYTES: usize = 64 << 10;
/// Calls of scripts that wait for their turn.
pub(crate) const WAITING_CALLS: usize = 1_000;
/// What is kept of them: as much as one message may hold.
pub(crate) const WAITING_BYTES: usize = MESSAGE_LINE_BYTES;
/// How often a script that runs tells so.
pub(crate) const PROGRESS: Duration = Duration::from_secs(1);
/// How long a client may keep a list; what is on the disk may change at any time.
pub(crate) const KEPT_MILLISECONDS: u64 = 5_000;
/// An address: three bytes for each of a path's, and more than any client needs.
pub(crate) const ADDRESS_BYTES: usize = 16 << 10;
/// Entries on a page of a list: the first comes at once, however many there are.
pub(crate) const PAGE_ENTRIES: usize = 250;
/// Bytes on such a page, but for what its last entry has beyond.
pub(crate) const ENTRIES_BYTES: usize = 1 << 20;
/// What is read of files for such a page: tenths of a second.
pub(crate) const PAGE_READ_BYTES: u64 = 64 << 20;
/// Files of a skill that every client takes (SEP-2640, "Limits").
pub(crate) const SKILL_FILES: usize = 512;
/// Bytes of these files together, and so of each (SEP-2640, "Limits").
pub(crate) const SKILL_BYTES: u64 = 16 << 20;
/// Files of one skill that are listed.
pub(crate) const RESOURCE_FILES: usize = 10_000;
/// Levels of folders in which they lie; no path is deeper.
pub(crate) const RESOURCE_DEPTH: usize = PATH_BYTES / 2;
/// Entries that are looked at on the way.
pub(crate) const RESOURCE_ENTRIES: usize = 50_000;
/// Read of a file whose name does not tell what it is.
pub(crate) const KIND_BYTES: usize = 512;
/// Warnings that are told once each.
pub(crate) const WARNINGS: usize = 1_000;
/// Placeholders in it: each brings in as much as a catalogue.
pub(crate) const PLACEHOLDERS: usize = 100;
/// What a line on standard error shows of a call or a result.
pub(crate) const SUMMARY_CHARS: usize = 200;
/// What such a line shows of a hint: a command with a path must stay whole.
pub(crate) const HINT_BYTES: usize = 800;
/// Bytes read from standard input or a helper at once.
pub(crate) const PIPE_READ_BYTES: usize = 4 << 10;
/// How many lines of a result `-v` shows.
pub(crate) const RESULT_LINES: usize = 3;
/// A line on standard error.
pub(crate) const LINE_BYTES: usize = 1200;
/// How long a server waits for room on standard error: what nobody reads there
/// must not hold up its answers.
pub(crate) const STDERR_ROOM: Duration = Duration::from_millis(1);
/// Written to standard output at once: what a pipe takes as a whole when it
/// says that it has room (`PIPE_BUF`).
pub(crate) const STDOUT_PIECE_BYTES: usize = 4 << 10;
/// After a signal: how long a reader that does not read is waited for.
pub(crate) const STDOUT_LAST: Duration = Duration::from_millis(500);
/// After the end of standard input: how long at least a reader that takes no
/// answers is waited for.
pub(crate) const STDOUT_UNREAD: Duration = Duration::from_secs(1);
/// The help's width.
pub(crate) const HELP_COLUMNS: usize = 90;
/// The width of a report on a terminal.
pub(crate) const REPORT_COLUMNS: usize = 80;
/// What a terminal takes of one line, as the kernel bounds it.
pub(crate) const TERMINAL_LINE_BYTES: usize = 4095;
/// Answers to a question of `--confirm` that are none of its words; then it is a no.
pub(crate) const CONFIRM_TRIES: u32 = 5;
/// A line of a conversation, or the lines of one message.
pub(crate) const CHAT_LINE_BYTES: usize = 4 << 20;
/// How soon the second line of a paste is there: nobody types so fast.
pub(crate) const PASTE_BEGINS: Duration = Duration::from_millis(50);
/// How soon a terminal hands over the line that it was asked for: at once.
pub(crate) const HANDED_OVER: Duration = Duration::from_millis(10);
/// How soon each line after it: the terminal hands a long paste on in pieces.
pub(crate) const PASTE_GOES_ON: Duration = Duration::from_millis(250);
/// Keys shorter than this are no secrets but words such as `ollama`, which
/// would be masked in every text.
pub const SECRET_BYTES: usize = 7;
/// What a cut leaves of a key is masked from this on: less tells nothing, and
/// would garble ordinary words.
pub const SECRET_PART_BYTES: usize = 4;
/// Words of 64 bits that hold a bit for each two bytes.
pub(crate) const SECRET_TABLE: usize = 1 << 10;
/// Backslashes before a letter that make one escape: a string in a string in a string.
pub(crate) const SECRET_BACKSLASHES: usize = 8;
/// The longest escape, and the longest line end with the next line's indent.
pub(crate) const SECRET_ESCAPE_BYTES: usize = 24;

/// Values in an address's query shorter than this are no keys.
pub(crate) const QUERY_SECRET_BYTES: usize = 16;

// Sessions.

/// The file of one conversation: pictures and long documents included, and a
/// resumed one is read whole.
pub(crate) const SESSION_BYTES: u64 = 128 << 20;
/// The first line of it, by which it is known.
pub(crate) const SESSION_HEADER_BYTES: usize = 64 << 10;
/// Sessions with names that the program made; the oldest beyond it are deleted.
pub(crate) const SESSIONS_KEPT: usize = 100;
/// Characters of a session's name.
pub(crate) const SESSION_NAME_CHARS: usize = 100;
/// Tries to open a session that others make and delete meanwhile.
pub(crate) const SESSION_TRIES: usize = 10;
/// Turns that a resumed conversation shows, and lines of each message.
pub(crate) const RECALLED_TURNS: usize = 2;
/// See [`RECALLED_TURNS`].
pub(crate) const RECALLED_LINES: usize = 10;

// Skills.

/// Words of a query of `list_skills` that are looked for: a model that gives more
/// describes its task, and each is looked for in every skill.
pub(crate) const QUERY_WORDS: usize = 32;

/// Skills in one folder.
pub(crate) const SKILLS: usize = 20_000;
/// Characters of a skill's name, by the specification.
pub(crate) const SKILL_NAME_CHARS: usize = 64;
/// Folders without a document that are searched for skills further below.
pub(crate) const NESTED_FOLDERS: usize = 100;
/// Levels of such a folder that are searched, its own files included.
pub(crate) const NESTED_DEPTH: usize = 4;
/// Entries of such a folder that are looked at.
pub(crate) const NESTED_ENTRIES: usize = 500;
/// Names of skills that are offered to the model as an `enum`.
pub(crate) const ENUM_NAMES: usize = 20;
/// Bytes of these names in all tools that take one. With ten skills that is one
/// tool: the first request is to stay below 3 KB.
pub(crate) const ENUM_BYTES: usize = 190;
/// Read of each document for the catalogue; more only where the frontmatter is longer.
pub(crate) const FRONTMATTER_BYTES: usize = 4 << 10;
/// A word of a query by which alone a skill is found; one of Chinese has as many.
pub(crate) const QUERY_WORD_BYTES: usize = 3;
/// A document: more does not fit any model's context.
pub(crate) const DOCUMENT_BYTES: usize = 1 << 20;
/// Deepest nesting of maps and lists; real skills reach 6.
pub(crate) const YAML_DEPTH: usize = 64;
/// Longest key in characters, as `PyYAML` has it.
pub(crate) const YAML_KEY_CHARS: usize = 1024;
/// Most findings that are kept for one document.
pub(crate) const YAML_FINDINGS: usize = 100;
/// How deep into maps and lists entries are mended one by one.
pub(crate) const YAML_MEND_DEPTH: usize = 4;
/// A description that is kept whole; the longest published one has 1,929
/// characters.
pub(crate) const DESCRIPTION_KEPT_BYTES: usize = 4 << 10;
/// A description in the catalogue.
pub(crate) const DESCRIPTION_BYTES: usize = 1024;
/// A document with its placeholders replaced: it and its arguments once, each
/// as large as may be.
pub const INVOCATION_BYTES: usize = 2 << 20;
/// Words of a skill's arguments that can be told apart.
pub(crate) const ARGUMENT_WORDS: usize = 1_000;
/// A name that a skill gives to one of its arguments.
pub(crate) const ARGUMENT_NAME_BYTES: usize = 64;
/// Skills that a conversation lists, and bytes of each description there.
pub(crate) const CHAT_SKILLS: usize = 100;
/// See [`CHAT_SKILLS`].
pub(crate) const CHAT_DESCRIPTION_BYTES: usize = 80;
/// A description says nothing below this: then names alone are told.
pub(crate) const DESCRIPTION_BYTES_LEAST: usize = 40;
/// What an MCP client's model is told at the start, without facts: well-known
/// clients cut at 2,048 characters.
pub(crate) const GUIDE_BYTES: usize = 2000;
/// The catalogue in the system prompt.
pub(crate) const CATALOGUE_BYTES: usize = 6 << 10;
/// The result of `list_skills`.
pub(crate) const LIST_BYTES: usize = 64 << 10;
/// One page of a file.
pub(crate) const PAGE_BYTES: usize = 64 << 10;
/// Lines of one page, when the model asks for no other number.
pub(crate) const PAGE_LINES: usize = 2_000;
/// How far into a file a page may begin: what is skipped is read.
pub(crate) const FILE_BYTES: u64 = 256 << 20;
/// Entries of a folder's listing.
pub(crate) const FOLDER_ENTRIES: usize = 1_000;
/// How far into a folder a page of its listing may begin.
pub(crate) const FOLDER_ENTRIES_PAGED: usize = 100_000;
/// Files named after a document.
pub(crate) const DOCUMENT_FILES: usize = 100;
/// Levels of folders that are searched for a skill's files.
pub(crate) const WALK_DEPTH: usize = 8;
/// Entries that are looked at on the way.
pub(crate) const WALK_ENTRIES: usize = 5_000;
/// Likely names offered where one is wrong.
pub(crate) const NEAR_NAMES: usize = 3;
/// Names offered in an error message.
pub(crate) const NAMES: usize = 20;

// What skills' scripts import.

/// Files of a skill that are looked at.
pub(crate) const PROBE_FILES: usize = 2_000;
/// Entries that are looked at on the way.
pub(crate) const PROBE_ENTRIES: usize = 50_000;
/// One Python file; parsed, it takes a hundred times as much memory.
pub(crate) const PROBE_FILE_BYTES: usize = 1 << 20;
/// All Python files of one skill.
pub(crate) const PROBE_SKILL_BYTES: usize = 4 << 20;
/// What one start of the interpreter is handed, but for its last skill.
pub(crate) const PROBE_BATCH_BYTES: usize = 4 << 20;
/// Skills of one start.
pub(crate) const PROBE_BATCH_SKILLS: usize = 2_000;
/// Rows of one kind (imports, requirements, findings) of one skill.
pub(crate) const PROBE_ROWS: usize = 1_000;
/// What one start may answer; what does not fit is asked again.
pub(crate) const PROBE_ANSWER_BYTES: usize = 4 << 20;
/// How long one start may take: Python parses about 1 MB in a second.
pub(crate) const PROBE: Duration = Duration::from_secs(60);
/// How long all starts together may take: some forty skills that each take as
/// long as they may, or more Python than any collection has.
pub(crate) const PROBE_ALL: Duration = Duration::from_secs(240);
/// What one skill may take of the processor: as much as its files at their
/// largest need. Code in C that does not come back ends after twice as long.
pub(crate) const PROBE_SKILL_SECONDS: u64 = 5;
/// The interpreter's memory: four times what the largest file needs.
pub(crate) const PROBE_MEMORY_BYTES: usize = 1 << 30;
/// Characters of a project's or a script's TOML; the readers of it are slow,
/// and real ones have a tenth.
pub(crate) const PROBE_TOML_CHARS: usize = 64 << 10;
/// What is told of one skill: no two fill an answer.
pub(crate) const PROBE_SKILL_ANSWER_BYTES: usize = 1 << 20;
/// Skills that may end the interpreter before it is no use to go on.
pub(crate) const PROBE_DEATHS: usize = 20;
// Setting skills up.

/// One command of a setup: large packages over a slow line take this long.
pub(crate) const SETUP_COMMAND: Duration = Duration::from_secs(3600);
/// How long the log waits for other runners that write to it: each holds its lock
/// for one write.
pub(crate) const LOG_LOCK: Duration = Duration::from_secs(2);
/// Between two looks at it.
pub(crate) const LOG_LOCK_ROUND: Duration = Duration::from_micros(200);
/// Between two looks at a lock that is held for milliseconds. It is the same however
/// long somebody has waited: with longer and longer pauses the last to come wins
/// each time, and of 16 who write all the time one got no turn in 30 s.
pub(crate) const LOCK_ROUND_SHORT: Duration = Duration::from_millis(5);
/// Between two looks at a lock that is held for seconds or minutes.
pub(crate) const LOCK_ROUND: Duration = Duration::from_millis(100);
/// Remains of setups that were killed while they cleared up.
pub(crate) const SETUP_REMAINS: usize = 100;
/// What is removed of a venv after Ctrl+C; more is left to the next setup.
pub(crate) const SETUP_CLEARING: Duration = Duration::from_secs(2);
/// What a setup has written down.
pub(crate) const SETUP_RECORD_BYTES: usize = 1 << 20;
/// A file of requirements.
pub(crate) const SETUP_REQUIREMENTS_BYTES: usize = 1 << 20;
/// Files that name each other as requirements.
pub(crate) const SETUP_REQUIREMENTS_FILES: usize = 20;
/// What an error quotes of an installer's reason.
pub(crate) const SETUP_REASON_BYTES: usize = 600;

// Checking skills.

/// Characters of a description, as the specification has it.
pub(crate) const DESCRIPTION_CHARS: usize = 1024;
/// Characters of what a skill needs, as the specification has it.
pub(crate) const COMPATIBILITY_CHARS: usize = 500;
/// Lines of a document that the specification advises at most.
pub(crate) const LONG_DOCUMENT_LINES: usize = 500;
/// The same in bytes: 5,000 tokens of some four bytes are advised.
pub(crate) const LONG_DOCUMENT_BYTES: usize = 20_000;
/// Problems of one kind told of one skill.
pub(crate) const PROBLEMS: usize = 20;
/// Files named by one document that are looked for.
pub(crate) const REFERENCES: usize = 1_000;
/// Frontmatter that is mended; the largest known has 7 KB.
pub(crate) const MENDED_BYTES: usize = 64 << 10;
/// Values that are mended in one document.
pub(crate) const MENDED_VALUES: usize = 100;

/// The most that the kernel gives of a file's extended attribute, and of the names
/// of all of them (`XATTR_SIZE_MAX`, `XATTR_LIST_MAX`).
pub(crate) const ATTRIBUTE_BYTES: usize = 64 << 10;

/// Times that `skills check --fix` goes over a document's fields: what one change
/// makes possible is done by the next round, and chains of such changes are short.
pub(crate) const MENDING_ROUNDS: usize = 4;

// Opening and reading files.

/// Bytes of a path; the kernel's own bound (`PATH_MAX` without its NUL).
pub(crate) const PATH_BYTES: usize = 4095;
/// Entries of one folder that are read at all.
pub(crate) const ENTRIES_READ: usize = 1_000_000;
/// Bytes of all paths that a walk keeps at a time.
pub(crate) const WALK_PATH_BYTES: usize = 4 * 1024 * 1024;
/// The most room made before the first byte has come.
pub(crate) const FIRST_READ_BYTES: u64 = 256 * 1024;
/// The least room made for one read.
pub(crate) const LEAST_READ_BYTES: u64 = 4 * 1024;
/// Tries that follow each other at once; the later ones wait in between.
pub(crate) const OPEN_TRIES_AT_ONCE: u32 = 100;
/// Tries of one opening while somebody renames folders or holds a lease.
pub(crate) const OPEN_TRIES: u32 = 200;
/// The wait between the later tries.
pub(crate) const OPEN_WAIT_MILLISECONDS: u64 = 1;

// Scripts.

/// Default of `SCRIPT_TIMEOUT_SECONDS`.
pub(crate) const SCRIPT_SECONDS: u64 = 30;
/// How long the interpreter may take to tell its version.
pub(crate) const PYTHON_START: Duration = Duration::from_secs(10);
/// A start that takes longer is felt at every script.
pub(crate) const PYTHON_START_SLOW: Duration = Duration::from_millis(300);
/// How long what answers to `python3` may take to tell which interpreter it starts:
/// a shim that needs longer is used as it is.
pub(crate) const PYTHON_SHIM: Duration = Duration::from_secs(3);
/// What it tells, its environment among it: the kernel allows 2 MiB.
pub(crate) const PYTHON_SHIM_ANSWER_BYTES: usize = 4 << 20;
/// The source of a script.
pub(crate) const SCRIPT_BYTES: usize = 4 << 20;
/// Arguments of a script, all together: the kernel allows 128 KiB for one and
/// 2 MiB for all with the environment.
pub(crate) const SCRIPT_ARGUMENTS_BYTES: usize = 1 << 20;
/// The kernel takes no single argument of so many bytes.
pub(crate) const SCRIPT_ARGUMENT_BYTES: usize = 128 << 10;
/// Kept of each of a script's streams: half from the beginning, half from the end.
pub(crate) const OUTPUT_BYTES: usize = 64 << 10;
/// How long the guardian's report is waited for once it was told to kill.
pub(crate) const GUARDIAN_REPORT: Duration = Duration::from_millis(500);
/// How long after that, with the runner's own help, before the guardian is killed.
pub(crate) const GUARDIAN_LAST_REPORT: Duration = Duration::from_millis(300);
/// How long a stream is read after the script's end while somebody holds it open.
pub(crate) const SCRIPT_DRAIN: Duration = Duration::from_millis(200);
/// How long the guardian relies on signals, before it looks how its child and the runner
/// are.
pub(crate) const GUARDIAN_LOOK: Duration = Duration::from_millis(250);
/// How long after a script's limit the runner orders its end, should the guardian
/// not have brought it about.
pub(crate) const GUARDIAN_SPARE: Duration = Duration::from_millis(20);
/// How long the guardian may take to end after its report.
pub(crate) const GUARDIAN_REAP: Duration = Duration::from_millis(200);
/// How long what a lost guardian leaves is hunted for.
pub(crate) const HUNT: Duration = Duration::from_secs(1);
/// Bytes of a script's streams moved at once.
pub(crate) const SCRIPT_READ_BYTES: usize = 64 << 10;
/// How long a guardian tries to kill what a script left behind. A process that
/// still lives sleeps in the kernel or belongs to someone else.
pub(crate) const SWEEP: Duration = Duration::from_millis(500);
/// The same when it was told to kill. The runner loses cancellation long before; if
/// there is no runner any more, nobody else will do it.
pub(crate) const LAST_SWEEP: Duration = Duration::from_secs(60);
/// What outlives its script by less was about to end anyway, such as the
/// resource tracker of Python's `multiprocessing`.
pub(crate) const LEFTOVER_GRACE: Duration = Duration::from_millis(100);
/// The pause between two rounds of killing, unless somebody dies earlier.
pub(crate) const SWEEP_ROUND: Duration = Duration::from_millis(2);
/// How often the processes of a script are looked for, to stop them, before they are
/// killed; a fork bomb takes three or four passes.
pub(crate) const STOPPING_PASSES: u32 = 16;
/// So many numbers of processes are walked over; where there may be more, `/proc` is
/// listed.
pub(crate) const NUMBERS_WALKED: i32 = 1 << 14;
/// The limit that marks a script's processes, less the guardian's number: so many
/// microseconds that it never matters.
pub(crate) const MARK_MICROSECONDS: u64 = 1 << 62;
/// The longest `/proc/PID/status` that is read; what is looked for stands in its middle.
pub(crate) const PROC_STATUS_BYTES: usize = 4096;
/// Descriptors closed one by one where `close_range` is missing.
pub(crate) const DESCRIPTORS: i32 = 1 << 16;
/// Processes told apart in one round; a larger tree takes more rounds.
pub(crate) const FAMILY: usize = 4096;
/// How long who waits for an answer waits for a script's temporary folder to be
/// cleared: some 50,000 files. The rest goes on behind its back.
pub(crate) const CLEARING: Duration = Duration::from_millis(150);
/// How long a temporary folder is cleared when nobody waits for it.
pub(crate) const LAST_CLEARING: Duration = Duration::from_secs(60);
/// Bytes of `/proc`, or of a folder that is cleared, listed at once.
pub(crate) const LISTING_BYTES: usize = 8192;
/// The kernel's own limit on process numbers.
pub(crate) const PID_MAX: i32 = 1 << 22;

/// Largest file that a sandboxed script may write.
pub(crate) const SANDBOX_FILE_BYTES: u64 = 1 << 30;
/// Descriptors that a sandboxed script may have open, in each process.
pub(crate) const SANDBOX_DESCRIPTORS: u64 = 1024;
/// Address space of each process of a sandboxed script. Not much less: what is
/// reserved counts, used or not.
pub(crate) const SANDBOX_MEMORY_BYTES: u64 = 4 << 30;
/// The same for each processor: numerical libraries reserve that for a thread.
pub(crate) const SANDBOX_PROCESSOR_BYTES: u64 = 256 << 20;
/// Processes and threads that the user may have beyond those of the whole system when a
/// sandboxed script starts. The kernel counts per user, and not for root.
pub(crate) const SANDBOX_PROCESSES: u64 = 256;
/// The same for each processor: numerical libraries start a thread for each, in each
/// process of a pool.
pub(crate) const SANDBOX_PROCESSOR_PROCESSES: u64 = 64;
/// Processor time beyond its limit that a sandboxed script may use: only a
/// backstop, the limit itself is kept by the clock.
pub(crate) const SANDBOX_SPARE_SECONDS: u64 = 10;
/// Largest `pyvenv.cfg` that is read.
pub(crate) const VENV_SETTINGS_BYTES: usize = 64 << 10;
/// Links that a path may lead over, as for the kernel.
pub(crate) const LINKS: u32 = 40;
/// Files of a venv that are looked at for changes after a run.
pub(crate) const VENV_FILES: usize = 100_000;
/// Files in all skills folders that are looked at for changes, before a script and after
/// it: a microsecond each.
pub(crate) const CHANGES_ENTRIES: usize = 20_000;
/// How long one such look may take, on a slow disk.
pub(crate) const CHANGES_TIME: Duration = Duration::from_secs(1);
/// Changed files that are named one by one.
pub(crate) const CHANGES_NAMED: usize = 10;

// Memory and notes.

/// The file of facts: some 60,000 of them, and it is read twice while one is added.
pub(crate) const FACTS_FILE_BYTES: usize = 6 << 20;
/// One fact: a sentence or two, not a document.
pub(crate) const FACT_BYTES: usize = 2 << 10;
/// Where a fact comes from, as far as it is written down.
pub(crate) const FACT_SOURCE_BYTES: usize = 100;
/// Facts in the system message.
pub(crate) const FACTS_PROMPT_BYTES: usize = 4 << 10;
/// How long other writers of the facts or of a note are waited for; each needs
/// milliseconds.
pub(crate) const MEMORY_LOCK: Duration = Duration::from_secs(60);
/// Times that a file is read anew because somebody else has changed it.
pub(crate) const MEMORY_TRIES: u32 = 5;
/// What is written into a daily note at once by the model.
pub(crate) const NOTE_BYTES: usize = 64 << 10;
/// The title of what is written there.
pub(crate) const NOTE_TITLE_BYTES: usize = 200;
/// A question in the log of a conversation.
pub(crate) const NOTE_QUESTION_BYTES: usize = 500;
/// An answer there.
pub(crate) const NOTE_ANSWER_BYTES: usize = 2 << 10;
/// Turns that are written there one by one.
pub(crate) const NOTE_TURNS: usize = 100;

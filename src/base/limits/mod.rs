//! Every limit of the program, named, in one place.
//!
//! Whatever comes from the network, a file, a script or a user has its limit
//! here, with the reason where the number alone does not show it.

use std::time::Duration;

mod skills;

pub use skills::*;

// The endpoint.

/// Default of `LLM_TIMEOUT_SECONDS`.
pub const IDLE_SECONDS: u64 = 120;
/// Factor on the idle limit for a reply that arrives but has no content, only keep-alives.
pub const KEEP_ALIVE_FACTOR: u32 = 10;
/// Factor on the idle limit until the first byte of a reply: local models read long prompts
/// slowly.
pub const FIRST_BYTE_FACTOR: u32 = 5;
/// Name lookup, connecting and the TLS handshake together.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The head of a proxy's response to `CONNECT`.
pub const PROXY_HEAD_BYTES: usize = 16 << 10;
/// Any setting in seconds: a year, far below any overflow.
pub const MAX_SECONDS: u64 = 31_536_000;
/// Tries of one request, including the first.
pub const REQUEST_TRIES: u32 = 3;
/// Changes to one request that an endpoint refuses in its first form.
pub const REQUEST_CHANGES: u32 = 10;
/// Delay before the first retry; it doubles with each further one.
pub const RETRY_DELAY: Duration = Duration::from_millis(500);
/// Longest retry delay that the program chooses itself.
pub const RETRY_DELAY_MAX: Duration = Duration::from_secs(8);
/// Longest retry delay that a server may request.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);
/// One line of a stream of server-sent events.
pub const SSE_LINE_BYTES: usize = 1 << 20;
/// One event of several lines.
pub const SSE_EVENT_BYTES: usize = 8 << 20;
/// One whole response.
pub const RESPONSE_BYTES: u64 = 64 << 20;
/// A body that is parsed as a whole: well below the 32 MB that a run may use.
pub const BODY_BYTES: usize = 8 << 20;
/// The body of an error response: only its first words are shown.
pub const ERROR_BODY_BYTES: usize = 64 << 10;
/// Part of a server's text that a message quotes.
pub const QUOTED_BYTES: usize = 300;
/// `max_tokens` for an endpoint that requires it and names no value: what every model accepts.
pub const DEMANDED_TOKENS: u32 = 4096;
/// The arguments of one tool call.
pub const ARGUMENTS_BYTES: usize = 1 << 20;
/// The text of one model message, and separately its reasoning. No model writes half as much; a
/// run holds several copies and stays below 32 MB.
pub const MESSAGE_BYTES: usize = 2 << 20;
/// White space before a possible `<think>` block.
pub const LEADING_BLANKS: usize = 4 << 10;
/// A text that may be a tool call which the server did not recognize.
pub const UNPARSED_CALL_BYTES: usize = 256 << 10;
/// Length to which a tool result is cut when the model's context is full.
pub const SHORTENED_RESULT_BYTES: usize = 2 << 10;
/// Part of [`SHORTENED_RESULT_BYTES`] for the line that reports how much is missing.
pub const CUT_NOTE_BYTES: usize = 64;
/// A tool's name, as the strictest endpoints limit it.
pub const TOOL_NAME_CHARS: usize = 64;
/// The arguments of all tool calls of one message.
pub const ALL_ARGUMENTS_BYTES: usize = 4 << 20;
/// JSON values in one piece of a reply; as many again may be kept to be sent back.
pub const JSON_VALUES: usize = 20_000;
/// Choices of a reply that are read; one was requested.
pub const CHOICES: usize = 4;
/// Tool calls of one message that are run; the others are answered with an error.
pub const CALLS_RUN: usize = 128;
/// Tool calls of one message that get a result at all: all of them are sent with every later
/// request, and no model makes as many.
pub const CALLS_ANSWERED: usize = 1024;
/// Most bytes per token; only long runs of one character have more.
pub const BYTES_PER_TOKEN_MAX: usize = 12;
/// Shortest request that is checked for a prompt which the endpoint silently truncated.
pub const TRUNCATION_BYTES: usize = 16 << 10;
/// A keep-alive word in a stream.
pub const HEARTBEAT_BYTES: usize = 32;
/// Bytes of one read from a connection.
pub const READ_BYTES: usize = 64 << 10;
/// IP addresses kept for one host name.
pub const HOST_ADDRESSES: usize = 16;

/// Requests for information about an endpoint, such as its list of models: no model has to run
/// for them.
pub const METADATA_TIMEOUT: Duration = Duration::from_secs(10);
/// All requests together that delay the start of a run without a need: a server on this machine
/// or nearby answers them within milliseconds.
pub const BRIEF_QUERY_TIMEOUT: Duration = Duration::from_millis(300);
/// The tokens, as they are estimated at first, of 8 KiB: what a run without skills sends beyond may
/// not fit into the context window of a server on this machine.
pub const SHORT_REQUEST_TOKENS: u64 = 2_340;
/// The context window, at most, of a model that refused a request as too long without naming it.
pub const ASSUMED_WINDOW: u64 = 8_192;
/// The context window from which on a model is offered tools for the user's files, not only those
/// that no skill can do without.
pub const FILE_TOOLS_WINDOW: u64 = 8_192;
/// The context window from which on a model is offered all tools.
pub const ALL_TOOLS_WINDOW: u64 = 16_384;
/// The number of parameters up to which a model is small.
pub const SMALL_MODEL_PARAMETERS: u64 = 4_000_000_000;
/// The response to such a request; the longest known list of models is about 1 MB.
pub const METADATA_BYTES: usize = 4 << 20;
/// Models kept of an endpoint's list.
pub const MODELS: usize = 10_000;
/// Longest question that a small model is asked without tools.
pub const PLAIN_QUESTION_BYTES: usize = 300;

/// Context window below which a skill's document and a few results do not fit together.
pub const CONTEXT_TOKENS_RECOMMENDED: u64 = 32_768;
/// Tokens in 1000 bytes, until the endpoint has reported a count: a token of English, code or
/// JSON has some 3.5 bytes.
pub const TOKENS_IN_1000_BYTES: u64 = 286;
/// The fewest and the most, where a reported count is plausible: long runs of one character have
/// few tokens, digits and some scripts one for each byte.
pub const TOKENS_IN_1000_BYTES_RANGE: [u64; 2] = [150, 1000];
/// An image, estimated as bytes of text: some 1,200 tokens.
pub const IMAGE_AS_BYTES: u64 = 4200;
/// Most tokens of an image; the most expensive known model counts 37,000.
pub const IMAGE_TOKENS: u64 = 50_000;
/// Smallest context window: a smaller number in an error response is something else.
pub const CONTEXT_TOKENS_MIN: u64 = 1024;
/// Tokens requested for a summary; a longer one is cut at twice as many.
pub const SUMMARY_TOKENS: u64 = 1500;
/// Part of one message that is kept in a transcript to be summarized; of a tool result, a
/// quarter of it.
pub const TRANSCRIPT_PIECE_BYTES: usize = 4 << 10;
/// The same if not all messages fit: with less nothing can be understood.
pub const TRANSCRIPT_PIECE_BYTES_MIN: usize = 128;
/// Tries of a request for a summary, each with half of the previous transcript.
pub const SUMMARY_TRIES: u32 = 4;
/// Requests of the tool calling check: the call, its result, one more.
pub const TOOL_CHECK_STEPS: u32 = 3;

/// Wait for the end of the body after a stream's end marker, so that the connection can be
/// reused.
pub const DRAIN_AFTER_DONE: Duration = Duration::from_millis(50);

// A run.

/// The sentence that may precede calls in a text.
pub const CALL_SENTENCE_BYTES: usize = 300;
/// An opening tag in a text that may be calls.
pub const TAG_BYTES: usize = 256;
/// Brackets inside each other in the arguments of a call in a text.
pub const LITERAL_DEPTH: usize = 64;
/// Text that is held back without the name of a tool, as it may be a call.
pub const HELD_TEXT_BYTES: usize = 4 << 10;
/// Characters of a reply that announces a call: a longer one is an answer.
pub const ANNOUNCEMENT_CHARS: usize = 300;
/// Characters of the thought in a constrained reply: enough to choose a tool.
pub const THOUGHT_CHARS: usize = 160;
/// How often a model is asked for a shorter call after one that was cut off.
pub const CUT_CALLS: usize = 2;
/// Skills that a constrained reply chooses from; of more it writes the name.
pub const OFFERED_SKILLS: usize = 200;
/// Scripts of a skill that a constrained reply chooses from; of more it writes the path.
pub const OFFERED_SCRIPTS: usize = 40;
/// Occurrences of a tool's name in a message before which calls are searched that a reply may
/// quote.
pub const QUOTED_NAMES: usize = 200;
/// Brackets before such a name that may open the call.
pub const QUOTED_BRACKETS: usize = 16;
/// Text from each of these brackets on that is read as calls.
pub const QUOTED_CALL_BYTES: usize = 16 << 10;
/// Decodings inside each other in which a quotation is searched: escapes, entities, base64.
pub(crate) const DECODED_LAYERS: usize = 4;
/// All texts in which it is searched, decoded ones included. If there are more, they count as one
/// that has a quotation.
pub const DECODED_BYTES: usize = 16 << 20;
/// Characters in a row that are read as base64, and of the text that it stands for.
pub(crate) const BASE64_BYTES: usize = 8;
/// Times in a row that the same call may fail in the same way, after which the turn ends.
pub const EQUAL_FAILURES: usize = 3;
/// Times in a row that the same call may give the same result, after which the turn ends.
pub const EQUAL_RESULTS: usize = 5;
/// The same of a script or a command, which may wait for something.
pub const EQUAL_RUNS: usize = 10;
/// Times in a row that the model gets such a result; then a sentence asks it to use that.
pub const EQUAL_RESULTS_SHOWN: usize = 2;
/// Default of `--max-steps`: model requests in one turn.
pub const MAX_STEPS: u32 = 50;
/// A prompt on standard input.
pub const STDIN_BYTES: usize = 16 << 20;
/// An image for the model: the lowest limit of the large providers. A run holds it in base64,
/// which is a third longer, once to keep and once to send.
pub const IMAGE_BYTES: usize = 5 << 20;
/// Images in a conversation, in base64, above which tools add no more: each is sent with every
/// request.
pub const IMAGES_BYTES: usize = 16 << 20;
/// All attachments of one question together: as much as standard input.
pub const ATTACHED_BYTES: usize = STDIN_BYTES;
/// The URL of an image; servers accept no longer ones.
pub const IMAGE_URL_BYTES: usize = 8 << 10;
/// Wait for the first byte of a piped standard input if the prompt is also an argument.
pub const STDIN_FIRST_BYTE: Duration = Duration::from_secs(3);
/// Silence of a pipe that is read in place of a file: a password manager that writes into it
/// asks its user first.
pub const PIPE_SILENCE: Duration = Duration::from_secs(60);
/// An environment file.
pub const ENV_FILE_BYTES: usize = 1 << 20;
/// A `.git` file, which names a folder.
pub const GIT_FILE_BYTES: usize = 16 << 10;
/// The index of a git repository: that of a million files has about 100 MB.
pub const GIT_INDEX_BYTES: usize = 512 << 20;
/// Text that all `${NAME}` references of one file expand to. Without a limit, repeating
/// `B=${A}${A}` doubles the text with every line.
pub const ENV_EXPANSION_BYTES: usize = 1024 * 1024;
/// A file with a key: tokens of some gateways reach 8 KiB.
pub const KEY_FILE_BYTES: usize = 16 << 10;
/// A file of certificates; the bundle of a whole system is about 220 KiB.
pub const CERTIFICATES_BYTES: usize = 4 << 20;
/// A SOCKS user name or password (RFC 1929).
pub const SOCKS_LOGIN_BYTES: usize = 255;
/// A file with a system prompt.
pub const SYSTEM_PROMPT_BYTES: usize = 1 << 20;
/// A message of the Model Context Protocol, which is one line.
pub const MESSAGE_LINE_BYTES: usize = 32 << 20;
/// The id of such a message; clients use counters or random names.
pub const MESSAGE_ID_BYTES: usize = 64 << 10;
/// Queued calls of tools that start programs.
pub const QUEUED_CALLS: usize = 1_000;
/// Memory for these calls: as much as one message may hold.
pub const QUEUED_CALLS_BYTES: usize = MESSAGE_LINE_BYTES;
/// Interval of progress notifications for a running script.
pub const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);
/// Time for which a client may cache a list; the files may change at any time.
pub const CACHE_MILLISECONDS: u64 = 5_000;
/// A resource URI: three bytes for each byte of a path, and more than any client needs.
pub const RESOURCE_URI_BYTES: usize = 16 << 10;
/// Entries on one page of a list, so that the first page comes quickly, however long the list
/// is.
pub const LIST_PAGE_ENTRIES: usize = 250;
/// Entries of skills on one page: the files of each are read for their digests.
pub const SKILLS_PAGE_ENTRIES: usize = 20;
/// Files of a skill that every client accepts (SEP-2640, "Limits").
pub const SKILL_FILES: usize = 512;
/// Bytes of these files together, and so of each one (SEP-2640, "Limits").
pub const SKILL_BYTES: u64 = 16 << 20;
/// Files of one skill that are listed.
pub const RESOURCE_FILES: usize = 10_000;
/// Levels of folders that are searched for them; no path is deeper.
pub const RESOURCE_DEPTH: usize = PATH_BYTES / 2;
/// Entries that are visited in this search.
pub const RESOURCE_ENTRIES: usize = 50_000;
/// Part of a file that is read if its name does not show its type.
pub const CONTENT_TYPE_BYTES: usize = 512;
/// Different warnings that are each shown once.
pub const WARNINGS: usize = 1_000;
/// Placeholders in a system prompt: each can insert a whole catalogue.
pub const PLACEHOLDERS: usize = 100;
/// A tool call or its result in a line on standard error.
pub const SUMMARY_CHARS: usize = 200;
/// A hint in such a line: a command with a path must stay whole.
pub const HINT_BYTES: usize = 800;
/// Hints in one result: more would hide the first.
pub const HINTS: usize = 4;
/// Names in one hint.
pub const HINT_NAMES: usize = 10;
/// Files left in a skill's folder that a result lists.
pub const LEFT_FILES_LISTED: usize = 100;
/// Possible names of files in messages about missing ones, each of which is looked up.
pub const HINT_CANDIDATES: usize = 200;
/// Longest name of a program in a message.
pub const PROGRAM_NAME_BYTES: usize = 64;
/// Bytes of one read from standard input or a helper process.
pub const PIPE_READ_BYTES: usize = 4 << 10;
/// Lines of a tool result that `-v` shows.
pub const RESULT_LINES: usize = 3;
/// A line on standard error.
pub const LINE_BYTES: usize = 1200;
/// Time for which a server waits until standard error can be written: an unread pipe must not
/// delay its responses.
pub const STDERR_WAIT: Duration = Duration::from_millis(1);
/// Bytes of one write to standard output: a pipe that is ready accepts this many without
/// blocking (`PIPE_BUF`).
pub const STDOUT_PIECE_BYTES: usize = 4 << 10;
/// Time for a slow reader of standard output after a signal.
pub const STDOUT_AFTER_SIGNAL: Duration = Duration::from_millis(500);
/// Shortest time for a reader that accepts no responses after standard input has ended.
pub const STDOUT_AFTER_STDIN: Duration = Duration::from_secs(1);
/// Width of help and reports that are not shown on a terminal.
pub const REPORT_COLUMNS: usize = 80;
/// Smallest and largest width of help and reports on a terminal.
pub const TERMINAL_REPORT_COLUMNS: (usize, usize) = (40, 100);
/// Columns that a description in the help needs beside the name.
pub const HELP_ABOUT_COLUMNS: usize = 30;
/// The kernel's limit for one line typed on a terminal.
pub const TERMINAL_LINE_BYTES: usize = 4095;
/// Unrecognized answers to a `--confirm` question; after them the answer is no.
pub const CONFIRM_TRIES: u32 = 5;
/// Wait without any output after which the live line appears.
pub const LIVE_LINE_DELAY: Duration = Duration::from_secs(1);
/// Interval at which it changes.
pub const LIVE_LINE_INTERVAL: Duration = Duration::from_millis(500);
/// Longest message in the history of typed ones.
pub const HISTORY_MESSAGE_BYTES: usize = 64 << 10;
/// Largest file of the history of typed messages.
pub const HISTORY_FILE_BYTES: usize = 64 << 20;
/// Messages in the history of typed ones.
pub const HISTORY_LINES: usize = 1_000;
/// A line of a conversation, or all lines of one message.
pub const CHAT_LINE_BYTES: usize = 4 << 20;
/// Time until the second line of a paste is there: no user types that fast.
pub const PASTE_SECOND_LINE: Duration = Duration::from_millis(50);
/// Time until a terminal delivers a line that it was ordered to release; it needs none.
pub const TERMINAL_LINE_READY: Duration = Duration::from_millis(10);
/// Silence after which the rest of an unusable paste has arrived, and how often it is waited for.
pub const UNUSABLE_PASTE: (Duration, u32) = (Duration::from_millis(50), 200);
/// Time until each further line of a paste: a terminal delivers a long one in pieces.
pub const PASTE_NEXT_LINE: Duration = Duration::from_millis(250);
/// Shortest secret that is masked. A shorter key is a word such as `ollama`, which would be
/// masked in every text.
pub const SECRET_BYTES: usize = 7;
/// Shortest part of a key, left by a cut, that is masked: less reveals nothing, and masking it
/// would garble ordinary words.
pub const SECRET_PART_BYTES: usize = 4;
/// Backslashes before a letter that form one escape: a string in a string in a string.
pub(crate) const SECRET_BACKSLASHES: usize = 8;
/// The longest escape, and the longest line end with the indentation of the next line.
pub(crate) const SECRET_ESCAPE_BYTES: usize = 24;

/// Shortest value in a URL's query that is masked as a key.
pub const QUERY_SECRET_BYTES: usize = 16;

// Sessions.

/// The file of one conversation with images and long documents; a resumed one is read as a
/// whole.
pub const SESSION_BYTES: u64 = 128 << 20;
/// The first line of a session file, which identifies it.
pub const SESSION_HEADER_BYTES: usize = 64 << 10;
/// Sessions with generated names; the oldest ones above this number are deleted.
pub const SESSIONS_KEPT: usize = 100;
/// Characters of a session's name.
pub const SESSION_NAME_CHARS: usize = 100;
/// Turns that a resumed conversation shows.
pub const RECALLED_TURNS: usize = 2;
/// Lines that it shows of each message.
pub const RECALLED_LINES: usize = 10;

// Opening and reading files.

/// Bytes of a path; the kernel's own limit (`PATH_MAX` without its NUL).
pub const PATH_BYTES: usize = 4095;
/// Entries of one folder that are read at all.
pub const ENTRIES_READ: usize = 1_000_000;
/// Bytes of all paths that a walk keeps at a time.
pub const WALK_PATH_BYTES: usize = 4 * 1024 * 1024;
/// Largest buffer before the first byte is read.
pub const INITIAL_BUFFER_BYTES: u64 = 256 * 1024;
/// Tries of one opening without a wait between them.
pub const OPEN_TRIES_WITHOUT_WAIT: u32 = 100;
/// Tries of one opening while another process renames folders or holds a lease.
pub const OPEN_TRIES: u32 = 200;
/// Wait between the later tries.
pub const OPEN_WAIT_MILLISECONDS: u64 = 1;

// Scripts.

/// Default of `SCRIPT_TIMEOUT_SECONDS`.
pub const SCRIPT_SECONDS: u64 = 30;
/// Wait for the interpreter to print its version.
pub const PYTHON_START_TIMEOUT: Duration = Duration::from_secs(10);
/// Slow start of the interpreter: it delays every script noticeably.
pub const PYTHON_START_SLOW: Duration = Duration::from_millis(300);
/// The source of a script.
pub const SCRIPT_BYTES: usize = 4 << 20;
/// All arguments of a script together: the kernel allows 128 KiB for one and 2 MiB for all with
/// the environment.
pub const SCRIPT_ARGUMENTS_BYTES: usize = 1 << 20;
/// Size from which the kernel refuses a single argument.
pub const SCRIPT_ARGUMENT_BYTES: usize = 128 << 10;
/// Part of each output stream of a script that is kept: half from the start, half from the end.
pub const OUTPUT_BYTES: usize = 64 << 10;
/// Wait for the guardian's report after the order to kill.
pub const GUARDIAN_REPORT: Duration = Duration::from_millis(500);
/// Further wait, with the runner's own help, before the guardian is killed.
pub const GUARDIAN_LAST_REPORT: Duration = Duration::from_millis(300);
/// Time for which a stream is read after the script's end while another process holds it open.
pub const SCRIPT_DRAIN: Duration = Duration::from_millis(200);
/// Longest time that the guardian relies on signals before it checks on its child and the
/// runner.
pub const GUARDIAN_POLL: Duration = Duration::from_millis(250);
/// Time after a script's limit at which the runner orders its end, in case the guardian has not
/// ended it.
pub const GUARDIAN_EXTRA_TIME: Duration = Duration::from_millis(20);
/// Wait for the guardian to end after its report.
pub const GUARDIAN_REAP: Duration = Duration::from_millis(200);
/// Search for the processes that a lost guardian leaves.
pub const ORPHAN_SEARCH: Duration = Duration::from_secs(1);
/// Bytes of one read from a script's streams.
pub const SCRIPT_READ_BYTES: usize = 64 << 10;
/// Time for which a guardian tries to kill what a script left behind. A process that is still
/// alive then sleeps in the kernel or belongs to another user.
pub const SWEEP: Duration = Duration::from_millis(500);
/// The same after an order to kill. The runner stops waiting long before; if there is no runner
/// any more, no other process would do it.
pub const SWEEP_AFTER_KILL: Duration = Duration::from_secs(60);
/// Time in which a process may outlive its script: it was about to end anyway, such as the
/// resource tracker of Python's `multiprocessing`.
pub const LEFTOVER_GRACE: Duration = Duration::from_millis(100);
/// Pause between two rounds of killing, unless a process ends earlier.
pub const SWEEP_ROUND: Duration = Duration::from_millis(2);
/// Passes over the processes of a script that stop them before they are killed; a fork bomb
/// needs three or four.
pub const STOPPING_PASSES: u32 = 16;
/// Process numbers that are tried one by one; if there may be more, `/proc` is listed.
pub const PIDS_WALKED: i32 = 1 << 14;
/// The limit that marks a script's processes, minus the guardian's number: large enough never
/// to matter.
pub const MARK_MICROSECONDS: u64 = 1 << 62;
/// Part of `/proc/PID/status` that is read; the needed fields are in its middle.
pub const PROC_STATUS_BYTES: usize = 4096;
/// Descriptors closed one by one where `close_range` is missing.
pub const DESCRIPTORS: i32 = 1 << 16;
/// Processes distinguished in one round; a larger tree takes more rounds.
pub const PROCESSES_PER_ROUND: usize = 4096;
/// Time for which a caller waits until a script's temporary folder is deleted: some 50,000
/// files. A background process deletes the rest.
pub const CLEANUP: Duration = Duration::from_millis(150);
/// Time for deleting a temporary folder when no caller waits.
pub const CLEANUP_LAST: Duration = Duration::from_secs(60);
/// Bytes of one listing of `/proc` or of a folder that is deleted.
pub const LISTING_BYTES: usize = 8192;
/// The kernel's own limit on process numbers.
pub const PID_MAX: i32 = 1 << 22;

/// Largest file that a sandboxed script may write.
pub const SANDBOX_FILE_BYTES: u64 = 1 << 30;
/// Open descriptors in each process of a sandboxed script.
pub const SANDBOX_DESCRIPTORS: u64 = 1024;
/// Address space of each process of a sandboxed script. It cannot be much smaller: reserved
/// memory counts, used or not.
pub const SANDBOX_MEMORY_BYTES: u64 = 4 << 30;
/// Additional address space for each processor: numerical libraries reserve this for a thread.
pub const SANDBOX_PROCESSOR_BYTES: u64 = 256 << 20;
/// Processes and threads of the user that a sandboxed script may add to those of the whole
/// system at its start. The kernel counts per user, and not for root.
pub const SANDBOX_PROCESSES: u64 = 256;
/// Additional ones for each processor: numerical libraries start a thread for each, in each
/// process of a pool.
pub const SANDBOX_PROCESSOR_PROCESSES: u64 = 64;
/// Processor time that a sandboxed script may use beyond its limit: only a fallback, since the
/// clock enforces the limit itself.
pub const SANDBOX_SPARE_SECONDS: u64 = 10;
/// Largest `pyvenv.cfg` that is read.
pub const VENV_SETTINGS_BYTES: usize = 64 << 10;
/// Links that a path may follow, as in the kernel.
pub const LINKS: u32 = 40;
/// Files of a venv that are checked for changes after a run.
pub const VENV_FILES: usize = 100_000;
/// Files of a skill that are checked for changes before and after a script: a
/// microsecond each.
pub const CHANGES_ENTRIES: usize = 20_000;
/// One such check, on a slow disk.
pub const CHANGES_TIME: Duration = Duration::from_secs(1);
/// Changed files that are named one by one.
pub const CHANGES_NAMED: usize = 10;

// Memory and notes.

/// The file of facts: some 60,000 of them. It is read twice when one is added.
pub const FACTS_FILE_BYTES: usize = 6 << 20;
/// One fact: a sentence or two, not a document.
pub const FACT_BYTES: usize = 2 << 10;
/// The source of a fact.
pub const FACT_SOURCE_BYTES: usize = 100;
/// Facts in the system prompt.
pub const FACTS_PROMPT_BYTES: usize = 4 << 10;
/// Wait for other writers of the facts or of a note; each needs milliseconds.
pub const MEMORY_LOCK: Duration = Duration::from_secs(60);
/// Wait for processes that opened the facts file before it was replaced and write to it without
/// a lock, as `echo >>` does.
pub const MEMORY_LATE_WRITES: Duration = Duration::from_millis(500);
/// Reads of a file that other processes change at the same time.
pub const MEMORY_TRIES: u32 = 5;
/// One text that the model writes into a daily note.
pub const NOTE_BYTES: usize = 64 << 10;
/// The part of a note that a model reads.
pub const NOTE_READ_BYTES: usize = 64 << 10;
/// The title of such a text.
pub const NOTE_TITLE_BYTES: usize = 200;
/// A question in the log of a conversation.
pub const NOTE_QUESTION_BYTES: usize = 500;
/// An answer in that log.
pub const NOTE_ANSWER_BYTES: usize = 2 << 10;
/// Turns that are logged one by one.
pub const NOTE_TURNS: usize = 100;

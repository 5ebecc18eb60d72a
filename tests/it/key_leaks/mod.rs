//! A recognizable key, passed in every way, through every command, appears only in its header.
//!
//! The tests search the streams, every file in the test's folder (which is working folder, home
//! and temporary folder), the requests, and the files in `/proc` of the program and its
//! descendants.

mod processes;

use crate::harness::{MODEL, Outcome, Reply, Request, Server, Test, interpreter};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// The key. Every encoding of it looks different.
const KEY: &str = "sk-canary+7f/3a91~c2&d4%e8=b650z";
/// A part of the key that is long enough to recognize.
const PART: &str = "canary+7f";

const SKILL: &str = "---\nname: s\ndescription: A skill.\n---\n";

/// Percent-encodes a text, with upper-case codes.
fn percent_encoded(text: &str) -> String {
    let code = |byte: u8| match byte {
        byte if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) => {
            char::from(byte).to_string()
        }
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(code).collect()
}

/// Escapes a text for a JSON string.
fn escaped(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// Searches for every form of the key.
struct KeySearch(BTreeSet<(&'static str, String)>);

impl KeySearch {
    fn new() -> KeySearch {
        let hex = KEY.bytes().fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"));
        let mut forms = vec![
            ("itself", KEY.to_owned()),
            ("a part of it", PART.to_owned()),
            ("JSON", escaped(KEY)),
            ("JSON in JSON", escaped(&escaped(KEY))),
            ("percent-encoded", percent_encoded(KEY)),
            ("percent-encoded", percent_encoded(KEY).to_lowercase()),
            ("a part of it, percent-encoded", percent_encoded(PART)),
            ("hexadecimal", hex.to_uppercase()),
            ("hexadecimal", hex),
            ("backwards", KEY.chars().rev().collect()),
        ];
        // Base64 depends on the number of bytes in front of the key.
        for before in 0..3 {
            let text = format!("{}{KEY}", "x".repeat(before));
            for encoded in [STANDARD_NO_PAD.encode(&text), URL_SAFE_NO_PAD.encode(&text)] {
                let end = encoded.len() / 4 * 4;
                forms.push(("base64", encoded[before * 4..end].to_owned()));
            }
        }
        KeySearch(forms.into_iter().collect())
    }

    /// The name of the form found, if any.
    fn find(&self, bytes: &[u8]) -> Option<&'static str> {
        let text = String::from_utf8_lossy(bytes);
        let mut forms = self.0.iter();
        forms.find(|(_, form)| text.contains(form)).map(|(name, _)| *name)
    }

    /// Fails if a stream contains the key.
    #[track_caller]
    fn check_streams(&self, run: &Outcome, what: &str) {
        for stream in [&run.stdout, &run.stderr, &run.terminal] {
            let found = self.find(stream.as_bytes());
            run.check(found.is_none(), format_args!("{what}: the key shows: {found:?}"));
        }
    }

    /// Fails if the name or content of a file in the test's folder contains the key, except in the
    /// files of [`KEEPERS`].
    #[track_caller]
    fn check_files(&self, test: &Test, what: &str) {
        let mut places = vec![test.path("")];
        while let Some(place) = places.pop() {
            let Ok(meta) = place.symlink_metadata() else {
                continue;
            };
            let found = self.find(place.as_os_str().as_bytes());
            assert_eq!(found, None, "{what}: in the name of {}", place.display());
            if meta.is_dir() {
                let entries = fs::read_dir(&place).into_iter().flatten().flatten();
                places.extend(entries.map(|entry| entry.path()));
            } else if meta.is_file() && !KEEPERS.iter().any(|keeper| test.path(keeper) == place) {
                let found = self.find(&fs::read(&place).unwrap_or_default());
                assert_eq!(found, None, "{what}: in {}", place.display());
            }
        }
    }

    /// Fails if `/proc` shows the key for a process.
    #[track_caller]
    fn check_process(&self, pid: i32, what: &str) {
        let proc = PathBuf::from(format!("/proc/{pid}"));
        let name = fs::read_to_string(proc.join("comm")).unwrap_or_default();
        for file in ["environ", "cmdline", "comm", "maps", "status", "auxv", "stat", "mountinfo"] {
            let found = self.find(&fs::read(proc.join(file)).unwrap_or_default());
            assert_eq!(found, None, "{what}: in {file} of {name}");
        }
        let descriptors = fs::read_dir(proc.join("fd")).into_iter().flatten().flatten();
        let links = descriptors.map(|entry| entry.path());
        for link in links.chain([proc.join("exe"), proc.join("cwd")]) {
            let target = fs::read_link(link).unwrap_or_default();
            let found = self.find(target.as_os_str().as_bytes());
            assert_eq!(found, None, "{what}: in a name that {name} has open");
        }
    }
}

/// Files in which a test stores the key.
const KEEPERS: [&str; 4] = [".env", "home/.config/skills-runner/.env", "home/key", "in"];

/// A line of an environment file.
fn line(name: &str, value: &str) -> String {
    format!("{name}='{}'\n", value.replace('\\', "\\\\").replace('\'', "\\'"))
}

/// The header that must contain the key.
type Header = &'static str;

/// Every way to pass a key to the program.
fn ways(server: &Server) -> Vec<(&'static str, Header, Test)> {
    let test = |name: &str| {
        let test = Test::new().endpoint(server).env_unset("LLM_API_KEY");
        let test = test.skill("s", SKILL).file("skills/s/look.py", LOOK);
        let test = test.folder("tmp").env("WAY", name);
        let tmp = test.path("tmp");
        test.env("TMPDIR", tmp).env("SCRIPT_PYTHON", interpreter())
    };
    let headers = |name: &str, value: &str| json!({ name: value }).to_string();
    let bearer = format!("Bearer {KEY}");
    let proxy = format!("http://me:{}@127.0.0.1:{}", percent_encoded(KEY), server.port());
    let environment = test("environment").env("LLM_API_KEY", KEY);
    vec![
        (
            "the environment, twice",
            "authorization",
            environment.env("SECOND_NAME", format!("x {KEY} y")),
        ),
        (".env", "authorization", test(".env").dotenv(&line("LLM_API_KEY", KEY))),
        (
            "the file at home",
            "authorization",
            test("home").file(KEEPERS[1], line("LLM_API_KEY", KEY)),
        ),
        (
            "a file of its own",
            "authorization",
            test("file")
                .file("home/key", format!("{KEY}\n"))
                .mode("home/key", 0o600)
                .env("LLM_API_KEY_FILE", "~/key"),
        ),
        (
            "a header in its place",
            "authorization",
            test("header").env("LLM_EXTRA_HEADERS", headers("Authorization", &bearer)),
        ),
        (
            "a header of a gateway",
            "x-gateway-key",
            test("gateway").dotenv(&line("LLM_EXTRA_HEADERS", &headers("x-gateway-key", KEY))),
        ),
        (
            "a proxy's login",
            "proxy-authorization",
            test("proxy")
                .env("LLM_API_KEY", "none")
                .env("LLM_API_BASE_URL", "http://llm.test:8080/v1")
                .env("HTTP_PROXY", proxy),
        ),
    ]
}

/// Headers that may contain the key.
const HEADERS: [Header; 3] = ["authorization", "x-gateway-key", "proxy-authorization"];

/// An endpoint that follows the prompt, and quotes the key in its refusals.
fn endpoint() -> Server {
    Server::of_all_requests(|request| {
        if request.path.ends_with("/models") {
            return Reply::models([MODEL]);
        } else if !request.path.ends_with("/chat/completions") {
            return Reply::status(404);
        }
        let last = request.last_message();
        if last["role"] == "tool" {
            return Reply::text("It is done.");
        }
        let prompt = last["content"].as_str().unwrap_or_default();
        let sent = HEADERS.iter().filter_map(|name| request.header(name));
        let sent = sent.collect::<Vec<_>>().join(" ");
        let quoted = format!(
            "{sent} {KEY} {} {}",
            percent_encoded(KEY),
            percent_encoded(KEY).to_lowercase()
        );
        let run = |arguments: Value| Reply::call("run_python_script", &arguments);
        match prompt.split_once(' ').unwrap_or((prompt, "")) {
            ("call", file) => run(json!({"skill_name": "s", "file_path": file})),
            ("wait", file) => run(json!({"skill_name": "s", "file_path": file, "args": ["wait"]})),
            // The key is masked in text that scripts read from the user's files, and in model
            // output.
            ("read", _) => run(json!({"skill_name": "s", "script": READ})),
            ("write", _) => run(json!({"skill_name": "s", "script": format!("# {KEY}\nprint(1)")})),
            ("unknown", _) => Reply::call(KEY, &json!({ KEY: KEY })),
            ("say", _) => Reply::text(&quoted),
            ("hang", _) => Reply::text("Some words").hang(),
            ("plain", _) => Reply::status(400).body(quoted),
            ("page", _) => Reply::status(502).body(format!("<title>{quoted}</title>")),
            ("stream", _) => {
                Reply::sse([format!("data: {}", json!({"error": {"message": quoted}}))])
            }
            ("elsewhere", _) => Reply::status(307)
                .header("location", &format!("http://h.test/{}", percent_encoded(KEY))),
            (status, _) => match status.parse() {
                Ok(status) => Reply::error(status, &quoted),
                Err(_) => Reply::text("ok"),
            },
        }
    })
    .without_history_check()
}

/// Prints the user's files.
const READ: &str = "import glob, os
for place in glob.glob(os.environ['USER_CWD'] + '/.env') + glob.glob(os.environ['HOME'] + '/key'):
    print(open(place).read())
";

/// Records the environment and arguments of a script and of the processes that it starts, then
/// waits for the test.
const LOOK: &str = r#"import os, subprocess, sys, time
cwd = os.environ['USER_CWD']
def see(name, data):
    with open(os.path.join(cwd, 'seen-' + name), 'wb') as file:
        file.write(data)
if os.environ.get('WAY') == 'proxy':
    # Scripts get their proxy whole: they need it.
    assert os.environ.pop('HTTP_PROXY')
see('environ', repr(dict(os.environ)).encode())
see('argv', repr(sys.orig_argv if hasattr(sys, 'orig_argv') else sys.argv).encode())
for start in ([], ['setsid'], ['sh', '-c', '"$@"; true', 'sh']):
    environ = subprocess.run(start + ['cat', '/proc/self/environ'], stdout=subprocess.PIPE).stdout
    see('child-' + '-'.join(start[:1]), environ)
if len(sys.argv) > 1:
    open(os.path.join(cwd, 'looking'), 'w').close()
    for _ in range(1000):
        if os.path.exists(os.path.join(cwd, 'looked')):
            break
        time.sleep(0.01)
print(6 * 7)
"#;

/// The commands to test. Each ends without intervention.
fn commands(test: &Test) -> Vec<(String, Test)> {
    let mut commands = Vec::new();
    let prompts = [
        "hi",
        "call look.py",
        "read",
        "write",
        "unknown",
        "say",
        "400",
        "401",
        "403",
        "404",
        "429",
        "500",
        "plain",
        "page",
        "stream",
        "elsewhere",
    ];
    for prompt in prompts {
        // Runs that would be retried need not wait for that.
        let is_retried = prompt.starts_with(['4', '5', 'p']) && prompt != "401";
        let limit = if is_retried { "0.4" } else { "9" };
        for format in ["text", "jsonl"] {
            let args = ["-v", "-o", format, "--timeout", limit, prompt];
            commands.push((format!("{prompt}, {format}"), test.next_run().args(args)));
        }
    }
    let script = json!({"skill_name": "s", "script": READ}).to_string();
    for args in [
        vec!["-q", "hi"],
        vec!["--no-stream", "-v", "401"],
        vec!["--dry-run", "-v", "hi"],
        vec!["--log", "log", "-v", "read"],
        vec!["--log", "log", "write"],
        vec!["--log", "log", "401"],
        vec!["--confirm", "-v", "call look.py"],
        vec!["--sandbox", "-v", "read"],
        vec!["--no-env-file", "-v", "hi"],
        vec!["doctor", "--timeout", "9"],
        vec!["doctor", "-o", "json", "--timeout", "9"],
        vec!["demo"],
        vec!["demo", "-o", "jsonl", "-v"],
        vec!["skills", "list"],
        vec!["skills", "list", "--json"],
        vec!["skills", "show", "s"],
        vec!["skills", "check"],
        vec!["skills", "check", "--json"],
        vec!["tool", "list_skills"],
        vec!["tool", "get_skill", r#"{"skill_name": "s"}"#],
        vec!["tool", "run_python_script", &script],
        vec!["tool", "run_python_script", r#"{"skill_name": "s", "file_path": "look.py"}"#],
        vec!["--no-such-option"],
        vec!["--help"],
    ] {
        commands.push((args.join(" "), test.next_run().args(args)));
    }
    let lines = "hi\ncall look.py\nread\n401\nsay\n/help\n/exit\n";
    let chat = test.next_run().args(["chat", "-v"]);
    commands.push(("chat".into(), chat.clone().stdin(lines)));
    let records = chat.args(["-o", "jsonl"]).stdin(lines);
    commands.push(("chat, jsonl".into(), records));
    commands
}

/// Asserts that the key is in the header `expected` and in no other part of a request.
#[track_caller]
fn requests(search: &KeySearch, requests: &[Request], expected: Header, what: &str) {
    assert!(!requests.is_empty(), "{what}: no request");
    for request in requests {
        // The model's own messages are sent back unmasked.
        let mut body = request.json.clone();
        if let Some(messages) = body["messages"].as_array_mut() {
            messages.retain(|message| message["role"] != "assistant");
        }
        let body = body.to_string();
        let found = search.find(body.as_bytes());
        let found = found.or(search.find(request.path.as_bytes()));
        assert_eq!(found, None, "{what}: in {request:?}");
        for (name, value) in &request.headers {
            let found = search.find(value.as_bytes());
            let is_expected = name.eq_ignore_ascii_case(expected);
            assert_eq!(found.is_some(), is_expected, "{what}: {name} of {request:?}");
        }
    }
}

/// For every command and every way to pass the key.
#[test]
#[ignore = "long"]
fn key_appears_only_in_its_header() {
    let search = KeySearch::new();
    let server = endpoint();
    let mut before = 0;
    for (way, expected, test) in ways(&server) {
        let is_first = before == 0;
        for (command, run) in commands(&test) {
            let depends_on_the_way =
                ["call", "read", "401", "plain", "doctor -o", "tool run", "chat"];
            if !is_first && !depends_on_the_way.iter().any(|word| command.starts_with(word)) {
                continue;
            }
            let what = format!("{way}: {command}");
            let run = run.run();

            search.check_streams(&run, &what);
            search.check_files(&test, &what);
            // Prove that the commands did run.
            if command.starts_with("call") {
                run.success();
            } else if command.starts_with("401") {
                run.status(77).stderr_has("[secret]");
            }
        }
        let all = server.requests();
        // Without the file there is no key to send.
        let with_file = all[before..].iter().filter(|request| request.header(expected).is_some());
        let with_file: Vec<Request> = with_file.cloned().collect();
        let without = all.len() - before - with_file.len();
        assert!(without <= 1, "{way}: {without} requests without a key");
        requests(&search, &with_file, expected, way);
        before = all.len();
    }
}

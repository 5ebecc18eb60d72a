//! Settings: their sources, and their problems.

use crate::harness::{CANARY, Reply, Server, Test, seconds};

/// All problems are reported together before any request, each with the variable, its source and
/// the remedy.
#[test]
fn all_problems_are_reported_together() {
    let run = Test::new().env("LLM_TIMEOUT_SECONDS", "0").args(["hi"]).run();
    run.status(78)
        .stdout_is_empty()
        .stderr_has("2 problems")
        .stderr_has("LLM_API_BASE_URL is not set")
        .stderr_has("LLM_TIMEOUT_SECONDS=0")
        .stderr_has("`skills-runner demo`");
    let run = Test::new()
        .dotenv("LLM_API_BASE_URL=api.example.com\nSCRIPT_TIMEOUT_SECONDS=soon\n")
        .env("LLM_TIMEOUT_SECONDS", "0")
        .env("SCRIPT_LEFTOVERS", "maybe")
        .args(["--model", "m", "hi"])
        .run();
    run.status(78)
        .stderr_has("LLM_API_BASE_URL (.env line 1)")
        .stderr_has("SCRIPT_TIMEOUT_SECONDS=soon (.env line 2)")
        .stderr_has("LLM_TIMEOUT_SECONDS=0 (environment)")
        .stderr_has("SCRIPT_LEFTOVERS=maybe (environment) is not kill or keep")
        .stderr_lacks("LLM_MODEL_NAME");
}

/// Options override the environment, which overrides `./.env`, which overrides the file in the
/// configuration folder. An empty value counts as unset.
#[test]
fn options_override_environment_and_files() {
    let server =
        Server::start([Reply::text("ok"), Reply::text("ok"), Reply::text("ok"), Reply::text("ok")]);
    let home =
        format!("LLM_MODEL_NAME=home\nLLM_API_BASE_URL={}\nLLM_API_KEY={CANARY}\n", server.url());
    let test = Test::new().file("home/.config/skills-runner/.env", home);
    test.next_run().args(["1"]).run().success();
    let test = test.dotenv("LLM_MODEL_NAME='dot env' # comment\n");
    test.next_run().args(["2"]).run().success();
    let test = test.env("LLM_MODEL_NAME", "environment");
    test.next_run().args(["3"]).run().success();
    test.env("LLM_MODEL_NAME", "").args(["4", "-m", "flag"]).run().success();
    let models: Vec<String> = server
        .finish()
        .iter()
        .map(|request| request.json["model"].as_str().unwrap().to_string())
        .collect();
    assert_eq!(models, ["home", "dot env", "environment", "flag"]);
}

#[test]
fn env_file_option_replaces_or_disables_the_file() {
    let server = Server::start([Reply::text("ok")]);
    let text = format!("LLM_MODEL_NAME=other\nLLM_API_BASE_URL={}\n", server.url());
    let test = Test::new().dotenv("LLM_MODEL_NAME=usual\n").file("other.env", text);
    test.next_run().args(["--env-file", "other.env", "hi"]).run().success();
    assert_eq!(server.finish()[0].json["model"], "other");
    test.next_run()
        .args(["--no-env-file", "hi"])
        .run()
        .status(78)
        .stderr_has("LLM_API_BASE_URL is not set");
    test.next_run().args(["--env-file", "none.env", "hi"]).run().status(78).stderr_has("none.env");
}

/// An invalid line is reported with its number and skipped.
#[test]
fn invalid_line_is_reported_and_skipped() {
    let server = Server::start([Reply::text("ok")]);
    let text =
        format!("LLM_API_KEY='{CANARY}\nLLM_MODEL_NAME=m\nLLM_API_BASE_URL={}\n", server.url());
    let run = Test::new().dotenv(&text).args(["hi"]).run();
    run.success().stderr_has(".env line 1");
    server.finish();
    // Also if there is another problem.
    let run =
        Test::new().dotenv("LLM_MODEL_NAME=\"a b\nthis = fine\nthis is not\n").args(["hi"]).run();
    run.status(78)
        .stderr_has(".env line 1")
        .stderr_has(".env line 3")
        .stderr_has("LLM_API_BASE_URL is not set");
    Test::new()
        .dotenv("A=1\nB=\0\n")
        .args(["hi"])
        .run()
        .status(78)
        .stderr_has("line 2: the text contains a NUL byte");
}

/// A FIFO, a folder or a huge file named `.env` does not block the program.
#[test]
fn invalid_env_file_is_refused() {
    let fifo = Test::new().shell("mkfifo .env && exec skills-runner hi").run();
    fifo.status(78).stderr_has("not a regular file");
    let large = Test::new().file(".env", vec![b'#'; 2 << 20]).args(["hi"]).run();
    large.status(78).stderr_has("larger than");
    // A folder of that name is usually a venv.
    let run = Test::new().folder(".env").args(["hi"]).run().status(78);
    run.stderr_has("LLM_API_BASE_URL is not set");
}

/// The file named by the option may be a pipe, so that the key is never in a file, or `/dev/null`.
#[test]
fn env_file_option_accepts_a_pipe() {
    let server = Server::start([Reply::text("1"), Reply::text("2"), Reply::text("3")]);
    let lines =
        format!("LLM_API_BASE_URL={}\nLLM_MODEL_NAME=m\nLLM_API_KEY={CANARY}\n", server.url());
    let test = Test::new()
        .skill("s", "---\nname: s\ndescription: S.\n---\n")
        .env("SKILLS_FOLDER_PATH", "skills")
        .dotenv("LLM_API_KEY=another-one\n");
    // In two pieces with a pause between them.
    let line =
        "bash -c 'exec skills-runner --env-file <(head -c 9 in; sleep 0.3; tail -c +10 in) hi'";
    let piped = test.next_run().file("in", &lines);
    piped.shell(line).run().success().stdout("1\n");
    let line = "mkfifo pipe; cat in >pipe & exec skills-runner --env-file pipe hi";
    test.next_run().shell(line).run().success().stdout("2\n");
    let null = test.next_run().endpoint(&server);
    let run = null.args(["--env-file", "/dev/null", "hi"]).run();
    run.success().stdout("3\n").stderr_is_empty();
    for request in server.finish() {
        assert_eq!(request.header("authorization"), Some(format!("Bearer {CANARY}").as_str()));
    }
    let line = "exec skills-runner -s @/dev/stdin --dry-run --env-file in hi";
    let run = test.next_run().shell(&format!("echo Be brief. | {line}")).run();
    run.success().stdout_has("Be brief.");
}

/// Pipes without a writer, or with endless content, are limited in time and size.
#[test]
fn pipe_as_env_file_is_limited() {
    let test = Test::new();
    let run =
        test.next_run().shell("mkfifo pipe && exec skills-runner --timeout 0.3 --env-file pipe hi");
    let run = run.run().took_at_most(seconds(2.0));
    run.status(3).stderr_has("--timeout");
    let waiting = test.next_run().args(["--env-file", "pipe", "hi"]).spawn();
    std::thread::sleep(seconds(0.5));
    waiting.signal(libc::SIGINT);
    waiting.wait().status(-libc::SIGINT);
    let endless = test.next_run().shell("bash -c 'exec skills-runner --env-file <(yes A=1) hi'");
    endless.run().status(78).stderr_has("it is larger than 1048576 bytes");
    for device in ["/dev/zero", "/dev/full", "/dev/ptmx"] {
        let run = test.next_run().args(["--env-file", device, "hi"]).run();
        run.status(78).stderr_has("it is neither a file nor a pipe");
    }
}

/// Other users of the machine must not be able to read the key.
#[test]
fn key_file_readable_by_others_is_reported() {
    let server = Server::of_all_requests(|request| match request.path.as_str() {
        "/v1/chat/completions" => Reply::text("ok"),
        _ => Reply::status(404),
    });
    let key = format!("LLM_API_KEY={CANARY}\n");
    let headers = r#"LLM_EXTRA_HEADERS={"x-key": "canary-of-headers"}"#;
    let endpoint = Test::new().endpoint(&server).env_unset("LLM_API_KEY");
    let endpoint = endpoint.skill("s", "---\nname: s\ndescription: S.\n---\n");
    let endpoint = endpoint.env("SECOND_KEY", CANARY).env("SKILLS_FOLDER_PATH", "skills");
    let warning = |name: &str| {
        format!("skills-runner: others may read `.env`, which holds {name}: chmod 600 .env\n")
    };
    let key_told = warning("LLM_API_KEY");
    let table: [(&str, u32, &str); 9] = [
        (&key, 0o644, &key_told),
        (&key, 0o604, &key_told),
        (headers, 0o444, &warning("LLM_EXTRA_HEADERS")),
        (&key, 0o600, ""),
        // Service managers pass keys in this way.
        (&key, 0o640, ""),
        // Not secrets: a setting, a word, a value stored elsewhere.
        ("SCRIPT_TIMEOUT_SECONDS=3", 0o644, ""),
        ("LLM_API_KEY=ollama", 0o644, ""),
        // A key of another program.
        ("OPENAI_API_KEY=key-of-another-program", 0o644, ""),
        ("LLM_API_KEY=${SECOND_KEY}", 0o644, ""),
    ];
    for (text, mode, reported) in table {
        let test = endpoint.next_run().dotenv(text).mode(".env", mode);
        let run = test.args(["-q", "hi"]).run().success();
        let lines = run.stderr.lines().filter(|line| line.contains("others may read"));
        let lines = lines.fold(String::new(), |text, line| format!("{text}{line}\n"));
        run.check(lines == reported, format!("{text} {mode:o}: {reported}"));
    }
    let test = endpoint.next_run().dotenv(&key).mode(".env", 0o644);
    let run = test.next_run().args(["doctor"]).run();
    run.stdout_has("warning  configuration: others may read `.env`, which holds LLM_API_KEY\n         fix: chmod 600 .env\n");
    // Also without a request, since scripts run next to the file.
    let run = test.next_run().args(["tool", "list_skills", "{}"]).run();
    run.success().stderr_has("others may read `.env`");
    // A parent folder denies access to others.
    test.mode("", 0o700).args(["hi"]).run().stderr_lacks("chmod");
    // An odd name, and a name that a shell would not read as a path.
    let test = endpoint.next_run().mode("", 0o755).file("home/my 'own'.env", &key);
    let test = test.mode("home/my 'own'.env", 0o644);
    let run = test.next_run().args(["--env-file", "home/my 'own'.env", "hi"]).run();
    run.stderr_has("chmod 600 'home/my '\\''own'\\''.env'\n");
    let run = test.next_run().args(["--env-file=~/my 'own'.env", "hi"]).run();
    let path = test.path("home/my").display().to_string();
    run.stderr_has(&format!("chmod 600 '{path} '\\''own'\\''.env'\n"));
    // Also if another file overrides it.
    let test = endpoint.env("LLM_API_KEY", CANARY).dotenv(&key).mode(".env", 0o644);
    test.args(["hi"]).run().stderr(&key_told);
}

/// The `.env` of an untrusted folder must not redirect the user's key.
#[test]
fn key_is_not_sent_to_an_address_from_the_folder_alone() {
    let run = Test::new()
        .env("LLM_API_KEY", CANARY)
        .dotenv("LLM_API_BASE_URL=https://collector.example/v1\nLLM_MODEL_NAME=m\n")
        .args(["hi"])
        .run();
    run.status(78).stderr_has("is not sent to collector.example").stderr_has("skills-runner trust");
    // Also for a local address, where any user may listen. An option declares the file trusted.
    let server = Server::start([Reply::text("ok")]);
    let text = format!("LLM_API_BASE_URL={}\nLLM_MODEL_NAME=m\n", server.url());
    let test = Test::new().env("LLM_API_KEY", CANARY).dotenv(&text);
    let run = test.next_run().args(["hi"]).run();
    run.status(78).stderr_has("is not sent to 127.0.0.1");
    let args = ["--env-file", ".env", "hi"];
    test.args(args).run().success();
    server.finish();
}

/// The `.env` of an untrusted folder cannot send the user's variables to its own address.
#[test]
fn untrusted_env_file_cannot_send_the_environment() {
    let foreign =
        "LLM_API_KEY=own\nLLM_MODEL_NAME=m\nLLM_API_BASE_URL=https://collector.example/v1\n";
    let table = [
        (
            "LLM_API_BASE_URL=https://collector.example/${PRIVATE}\n",
            "LLM_API_BASE_URL (.env line 4)",
        ),
        ("LLM_MODEL_NAME=${PRIVATE}\n", "LLM_MODEL_NAME (.env line 4)"),
        ("LLM_API_KEY=${PRIVATE}\n", "LLM_API_KEY (.env line 4)"),
    ];
    for (line, expected) in table {
        let run = Test::new()
            .env("PRIVATE", "letmein")
            .dotenv(&format!("{foreign}{line}"))
            .args(["--dry-run", "hi"])
            .run();
        let expected = format!(
            "{expected} gets no variables of the environment: if .env is yours, run `skills-runner trust`"
        );
        run.stderr_has(&expected).stderr_lacks("letmein").stdout_lacks("letmein");
    }
}

/// Loopback endpoints need no key, and none is sent.
#[test]
fn local_endpoint_needs_no_key() {
    let server = Server::start([Reply::text("ok"), Reply::text("ok")]);
    for key in ["", "none"] {
        Test::new().endpoint(&server).env("LLM_API_KEY", key).args(["hi"]).run().success();
    }
    for request in server.finish() {
        assert_eq!(request.header("authorization"), None);
    }
}

#[test]
fn addresses_are_normalized() {
    let server = Server::start([Reply::text("ok"), Reply::text("ok")]);
    for tail in ["/", "/chat/completions"] {
        let address = format!(" \"{}{tail}\" ", server.url());
        Test::new().endpoint(&server).env("LLM_API_BASE_URL", address).args(["hi"]).run().success();
    }
    for request in server.finish() {
        assert_eq!(request.path, "/v1/chat/completions");
    }
}

#[test]
fn key_with_a_line_break_is_refused_before_any_request() {
    let server = Server::start([]);
    let run = Test::new().endpoint(&server).env("LLM_API_KEY", "sk-a\nb").args(["hi"]).run();
    run.status(78).stderr_has("LLM_API_KEY (environment) holds a line break").stderr_lacks("sk-a");
    server.finish();
}

//! Settings: where they come from, and every problem told at once.

use crate::harness::{CANARY, Reply, Server, Test, seconds};

/// R-CFG-3: all problems at once, each with the variable, its origin and the
/// fix, before any request.
#[test]
fn all_problems_are_told_at_once() {
    let run = Test::new().args(["hi"]).run();
    run.status(78)
        .stdout_is_empty()
        .stderr_has("3 problems")
        .stderr_has("LLM_API_BASE_URL is not set")
        .stderr_has("LLM_MODEL_NAME is not set")
        .stderr_has("LLM_API_KEY is not set")
        .stderr_has("hint: `skills-runner demo`");
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

/// R-CFG-1: flags win over the environment, that over `./.env`, that over the
/// file in the configuration folder; an empty value counts as unset.
#[test]
fn flags_win_over_environment_over_files() {
    let server =
        Server::start([Reply::text("ok"), Reply::text("ok"), Reply::text("ok"), Reply::text("ok")]);
    let home =
        format!("LLM_MODEL_NAME=home\nLLM_API_BASE_URL={}\nLLM_API_KEY={CANARY}\n", server.url());
    let test = Test::new().file("home/.config/skills-runner/.env", home);
    test.again().args(["1"]).run().success();
    let test = test.dotenv("LLM_MODEL_NAME='dot env' # comment\n");
    test.again().args(["2"]).run().success();
    let test = test.env("LLM_MODEL_NAME", "environment");
    test.again().args(["3"]).run().success();
    test.env("LLM_MODEL_NAME", "").args(["4", "-m", "flag"]).run().success();
    let models: Vec<String> = server
        .finish()
        .iter()
        .map(|request| request.json["model"].as_str().unwrap().to_string())
        .collect();
    assert_eq!(models, ["home", "dot env", "environment", "flag"]);
}

#[test]
fn another_env_file_or_none() {
    let server = Server::start([Reply::text("ok")]);
    let text = format!("LLM_MODEL_NAME=other\nLLM_API_BASE_URL={}\n", server.url());
    let test = Test::new().dotenv("LLM_MODEL_NAME=usual\n").file("other.env", text);
    test.again().args(["--env-file", "other.env", "hi"]).run().success();
    assert_eq!(server.finish()[0].json["model"], "other");
    test.again()
        .args(["--no-env-file", "hi"])
        .run()
        .status(78)
        .stderr_has("LLM_MODEL_NAME is not set");
    test.again().args(["--env-file", "none.env", "hi"]).run().status(78).stderr_has("none.env");
}

/// A broken line is told with its number and skipped.
#[test]
fn a_broken_line_of_the_file_is_told_and_skipped() {
    let server = Server::start([Reply::text("ok")]);
    let text =
        format!("LLM_API_KEY='{CANARY}\nLLM_MODEL_NAME=m\nLLM_API_BASE_URL={}\n", server.url());
    let run = Test::new().dotenv(&text).args(["hi"]).run();
    run.success().stderr_has(".env line 1");
    server.finish();
    // Also where something else is wrong.
    let run =
        Test::new().dotenv("LLM_MODEL_NAME=\"a b\nthis = fine\nthis is not\n").args(["hi"]).run();
    run.status(78)
        .stderr_has(".env line 1")
        .stderr_has(".env line 3")
        .stderr_has("LLM_MODEL_NAME is not set");
    Test::new()
        .dotenv("A=1\nB=\0\n")
        .args(["hi"])
        .run()
        .status(78)
        .stderr_has("line 2: a NUL byte");
}

/// A FIFO or a huge file in the place of `.env` holds nobody up.
#[test]
fn an_env_file_that_is_none_is_refused() {
    let fifo = Test::new().shell("mkfifo .env && exec skills-runner hi").run();
    fifo.status(78).stderr_has("not a regular file");
    let large = Test::new().file(".env", vec![b'#'; 2 << 20]).args(["hi"]).run();
    large.status(78).stderr_has("larger than");
    // A folder of that name is somebody's venv.
    Test::new().folder(".env").args(["hi"]).run().status(78).stderr_has("LLM_API_KEY is not set");
}

/// What is named on the command line may be a pipe, so that no key need ever
/// stand in a file; and `/dev/null`, which is none at all.
#[test]
fn a_named_env_file_may_be_a_pipe() {
    let server = Server::start([Reply::text("1"), Reply::text("2"), Reply::text("3")]);
    let lines =
        format!("LLM_API_BASE_URL={}\nLLM_MODEL_NAME=m\nLLM_API_KEY={CANARY}\n", server.url());
    let test = Test::new()
        .skill("s", "---\nname: s\ndescription: S.\n---\n")
        .dotenv("LLM_API_KEY=another-one\n");
    // In two pieces, the second of which one has to wait for.
    let line =
        "bash -c 'exec skills-runner --env-file <(head -c 9 in; sleep 0.3; tail -c +10 in) hi'";
    let piped = test.again().file("in", &lines);
    piped.shell(line).run().success().stdout("1\n");
    let line = "mkfifo pipe; cat in >pipe & exec skills-runner --env-file pipe hi";
    test.again().shell(line).run().success().stdout("2\n");
    let null = test.again().endpoint(&server);
    let run = null.args(["--env-file", "/dev/null", "hi"]).run();
    run.success().stdout("3\n").stderr_is_empty();
    for request in server.finish() {
        assert_eq!(request.header("authorization"), Some(format!("Bearer {CANARY}").as_str()));
    }
    let line = "exec skills-runner -s @/dev/stdin --dry-run --env-file in hi";
    let run = test.again().shell(&format!("echo Be brief. | {line}")).run();
    run.success().stdout_has("Be brief.");
}

/// A pipe into which nobody writes, or somebody without an end, holds nobody up.
#[test]
fn a_pipe_in_a_files_place_is_bounded() {
    let test = Test::new();
    let run =
        test.again().shell("mkfifo pipe && exec skills-runner --timeout 0.3 --env-file pipe hi");
    let run = run.run().took_at_most(seconds(2.0));
    run.status(3).stderr_has("--timeout");
    let waiting = test.again().args(["--env-file", "pipe", "hi"]).spawn();
    std::thread::sleep(seconds(0.5));
    waiting.signal(libc::SIGINT);
    waiting.wait().status(-libc::SIGINT);
    let endless = test.again().shell("bash -c 'exec skills-runner --env-file <(yes A=1) hi'");
    endless.run().status(78).stderr_has("it is larger than 1048576 bytes");
    for device in ["/dev/zero", "/dev/full", "/dev/ptmx"] {
        let run = test.again().args(["--env-file", device, "hi"]).run();
        run.status(78).stderr_has("it is neither a file nor a pipe");
    }
}

/// Whoever can log in on the machine should not have the key.
#[test]
fn a_file_with_the_key_that_others_may_read_is_told() {
    let server = Server::always(|request| match request.path.as_str() {
        "/v1/chat/completions" => Reply::text("ok"),
        _ => Reply::status(404),
    });
    let key = format!("LLM_API_KEY={CANARY}\n");
    let headers = r#"LLM_EXTRA_HEADERS={"x-key": "canary-of-headers"}"#;
    let endpoint = Test::new().endpoint(&server).env_unset("LLM_API_KEY");
    let endpoint = endpoint.skill("s", "---\nname: s\ndescription: S.\n---\n");
    let endpoint = endpoint.env("SECOND_KEY", CANARY);
    let warning = |name: &str| {
        format!("skills-runner: others may read `.env`, which holds {name}: chmod 600 .env\n")
    };
    let key_told = warning("LLM_API_KEY");
    let table: [(&str, u32, &str); 8] = [
        (&key, 0o644, &key_told),
        (&key, 0o604, &key_told),
        (headers, 0o444, &warning("LLM_EXTRA_HEADERS")),
        (&key, 0o600, ""),
        // A service gets its key so.
        (&key, 0o640, ""),
        // No secret: a setting, a word, what stands elsewhere.
        ("SCRIPT_TIMEOUT_SECONDS=3", 0o644, ""),
        ("LLM_API_KEY=ollama", 0o644, ""),
        ("LLM_API_KEY=${SECOND_KEY}", 0o644, ""),
    ];
    for (text, mode, told) in table {
        let test = endpoint.again().dotenv(text).mode(".env", mode);
        test.args(["-q", "hi"]).run().success().stderr(told);
    }
    let test = endpoint.again().dotenv(&key).mode(".env", 0o644);
    let run = test.again().args(["doctor"]).run();
    run.stdout_has("warning  configuration: others may read `.env`, which holds LLM_API_KEY\n         fix: chmod 600 .env\n");
    // Also where nobody is asked: scripts run beside it.
    let run = test.again().args(["tool", "list_skills", "{}"]).run();
    run.success().stderr_has("others may read `.env`");
    // A folder above keeps others out.
    test.mode("", 0o700).args(["hi"]).run().stderr_lacks("chmod");
    // Another name, odd as it is, and a name that is no path for a shell.
    let test = endpoint.again().mode("", 0o755).file("home/my 'own'.env", &key);
    let test = test.mode("home/my 'own'.env", 0o644);
    let run = test.again().args(["--env-file", "home/my 'own'.env", "hi"]).run();
    run.stderr_has("chmod 600 'home/my '\\''own'\\''.env'\n");
    let run = test.again().args(["--env-file=~/my 'own'.env", "hi"]).run();
    let path = test.path("home/my").display().to_string();
    run.stderr_has(&format!("chmod 600 '{path} '\\''own'\\''.env'\n"));
    // Also where it is not the one that wins.
    let test = endpoint.env("LLM_API_KEY", CANARY).dotenv(&key).mode(".env", 0o644);
    test.args(["hi"]).run().stderr(&key_told);
}

/// A foreign folder must not be able to catch the user's key.
#[test]
fn a_key_never_goes_to_an_address_that_only_the_folder_names() {
    let run = Test::new()
        .env("LLM_API_KEY", CANARY)
        .dotenv("LLM_API_BASE_URL=https://collector.example/v1\nLLM_MODEL_NAME=m\n")
        .args(["hi"])
        .run();
    run.status(78).stderr_has("is not sent to collector.example").stderr_has("--env-file");
    // On this machine too: anybody may listen here. Whoever trusts the file says so.
    let server = Server::start([Reply::text("ok")]);
    let text = format!("LLM_API_BASE_URL={}\nLLM_MODEL_NAME=m\n", server.url());
    let test = Test::new().env("LLM_API_KEY", CANARY).dotenv(&text);
    let run = test.again().args(["hi"]).run();
    run.status(78).stderr_has("is not sent to 127.0.0.1");
    let args = ["--env-file", ".env", "hi"];
    test.args(args).run().success();
    server.finish();
}

/// Nor to put the user's variables into what is sent to an address of its own.
#[test]
fn a_foreign_file_cannot_send_the_environment_anywhere() {
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
            .args(["hi"])
            .run();
        run.status(78).stderr_has(expected).stderr_lacks("letmein");
    }
}

/// Loopback endpoints need no key, and none is sent.
#[test]
fn a_local_endpoint_needs_no_key() {
    let server = Server::start([Reply::text("ok"), Reply::text("ok")]);
    for key in ["", "none"] {
        Test::new().endpoint(&server).env("LLM_API_KEY", key).args(["hi"]).run().success();
    }
    for request in server.finish() {
        assert_eq!(request.header("authorization"), None);
    }
}

#[test]
fn addresses_are_tidied() {
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
fn a_key_with_a_line_break_is_refused_before_any_request() {
    let server = Server::start([]);
    let run = Test::new().endpoint(&server).env("LLM_API_KEY", "sk-a\nb").args(["hi"]).run();
    run.status(78).stderr_has("LLM_API_KEY (environment) holds a line break").stderr_lacks("sk-a");
    server.finish();
}

//! `init`: the first set-up.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::process::Command;

use crate::harness::{Reply, Server, Test};
use crate::paths::{PLAIN, as_an_ordinary_user};

const FILE: &str = "home/.config/skills-runner/.env";

/// Without settings, and where no Ollama is found even if one runs on this machine.
fn unset() -> Test {
    let test = Test::new().env("OLLAMA_HOST", "127.0.0.1:1");
    test.env_unset("LLM_API_BASE_URL").env_unset("LLM_API_KEY").env_unset("LLM_MODEL_NAME")
}

/// Answers the checks of `doctor`.
fn server() -> Server {
    Server::of_all_requests(|request| match request.path.as_str() {
        "/v1/models" => Reply::models(["only-model"]),
        "/v1/chat/completions" => Reply::text("fine"),
        _ => Reply::status(404),
    })
}

/// With options, no question is asked; the older file stays beside the new one, and so do its other
/// settings.
#[test]
fn options_answer_beforehand() {
    let server = server();
    let url = server.url();
    let test = unset().file(FILE, "LLM_MODEL_NAME=old\nMEMORY_PATH='${HOME}/my notes.md'\n");
    let run = test.next_run().args(["init", "--base-url", &url]).run();
    run.stderr_has("the only model is only-model\n").stderr_has("readable by you alone");
    let text = test.read(FILE);
    let expected = format!(
        "LLM_API_BASE_URL={url}\nLLM_MODEL_NAME=only-model\nMEMORY_PATH='${{HOME}}/my notes.md'\n"
    );
    assert_eq!(text, expected);
    assert!(test.read("home/.config/skills-runner/.env.bak").starts_with("LLM_MODEL_NAME=old"));
    let mode = |path: &str| fs::metadata(test.path(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(FILE), 0o600);
    let run = test.next_run().args(["init", "-m", "other", "--base-url", &url]).run();
    run.stdout_has("LLM_MODEL_NAME=other");
    // The written file is what the next command reads.
    test.next_run().args(["hi"]).run().success().stdout("fine\n");
}

/// Lines of the older file that are not replaced stay as they are, and what cannot work is refused
/// before anything is written.
#[test]
fn other_lines_stay_and_nothing_is_lost() {
    let server = server();
    let url = server.url();
    let rest = "# mine\nMEMORY_PATH=\"${FACTS:-/x}/facts.md\" # here\n'we ird'=1\nbroken line\n";
    let old = format!("LLM_API_KEY=sk-a-good-key-9\n{rest}export LLM_MODEL_NAME='a\nb'\n");
    let test = unset().file(FILE, &old).mode(FILE, 0o644);
    let init = ["init", "--base-url", &url, "-m", "m", "--key-file"];
    test.next_run().args(init).args(["-"]).stdin("").run().status(78).stderr_has("is empty");
    test.next_run().args(init).args(["."]).run().status(78).stderr_has("is not a regular file");
    let run = test.next_run().args(["init", "--base-url", &url, "-m", "a\u{1b}b"]).run().status(78);
    run.stderr_has("control characters");
    assert_eq!(test.read(FILE), old);
    test.next_run().args(["init", "--base-url", &url, "-m", "m"]).run();
    assert_eq!(test.read(FILE), format!("LLM_API_BASE_URL={url}\nLLM_MODEL_NAME=m\n{rest}"));
    let kept = "home/.config/skills-runner/.env.bak";
    assert_eq!(test.read(kept), old);
    let mode = fs::metadata(test.path(kept)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // The same again changes nothing, so the older file is still there.
    test.next_run().args(["init", "--base-url", &url, "-m", "m"]).run();
    assert_eq!(test.read(kept), old);
    fs::set_permissions(test.path("home/.config/skills-runner"), fs::Permissions::from_mode(0o777))
        .unwrap();
    let run = test.next_run().args(["init", "--base-url", &url, "-m", "n"]).run().status(1);
    run.stderr_has("home/.config/skills-runner`: all users may write to it");
}

/// A folder of the file or above that another user or group can change: nothing is written.
#[test]
fn folders_that_others_can_write_are_refused() {
    let server = server();
    let url = server.url();
    let init = |test: &Test, shell: &'static str| {
        test.next_run().shell(shell).args(["init", "--base-url", &url, "-m", "m"]).run()
    };
    let is_root = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
    let ids: &[(Option<u32>, Option<u32>)] = if is_root {
        &[(None, None), (None, Some(1234)), (Some(1234), None)]
    } else {
        &[(None, None)]
    };
    for &(owner, group) in ids {
        for (mode, is_accepted) in [
            (0o755, owner.is_none()),
            (0o775, owner.is_none() && group.is_none()),
            (0o777, false),
            (0o1777, false),
        ] {
            for folder in ["home", "home/.config", "home/.config/skills-runner"] {
                let test = unset().folder("home/.config");
                if folder.ends_with("runner") {
                    fs::create_dir(test.path(folder)).unwrap();
                }
                chown(test.path(folder), owner, group).unwrap();
                let test = test.mode(folder, mode);
                let run = init(&test, PLAIN);
                // Files in a sticky folder can only be replaced by their owners.
                let is_sticky =
                    mode & 0o1000 != 0 && owner.is_none() && !folder.ends_with("runner");
                let is_accepted = is_accepted || is_sticky;
                let case = format!("{folder} {mode:o} {owner:?} {group:?}");
                run.check(test.exists(FILE) == is_accepted, case);
                if !is_accepted {
                    let run = run.status(1).stderr_has(&format!("{folder}`: "));
                    run.check(!test.exists("home/.config/skills-runner/.env.new"), folder);
                }
            }
        }
    }
    if is_root {
        // An ordinary user, whose folder belongs to root or to another one.
        for (owner, is_accepted) in [(65534, true), (0, true), (1234, false)] {
            let test = unset().folder("home/.config/skills-runner");
            let shell = as_an_ordinary_user(&test);
            chown(test.path("home/.config/skills-runner"), Some(65534), Some(65534)).unwrap();
            chown(test.path("home"), Some(owner), None).unwrap();
            let run = init(&test, shell);
            run.check(test.exists(FILE) == is_accepted, owner);
        }
    }
    // The folder is reached by a link from a folder that others can write.
    let test = unset().folder("shared/config").mode("shared", 0o777);
    symlink(test.path("shared/config"), test.path("home/.config")).unwrap();
    init(&test, PLAIN).status(1).stderr_has("shared`: all users may write to it");
    assert!(!test.exists("shared/config/skills-runner"));
    // Lines of another user's file would be kept.
    let test = unset().file(FILE, "SCRIPT_SHELL=/tmp/x\n").mode(FILE, 0o666);
    init(&test, PLAIN).status(1).stderr_has(".env`: all users may write to it");
}

/// Ollama is looked for where `OLLAMA_HOST` says, and no address is asked for.
#[test]
fn ollama_is_found_at_its_address() {
    let server = server();
    let test = unset().env("OLLAMA_HOST", format!("0.0.0.0:{}", server.port()));
    let run = test.next_run().args(["init"]).run().success();
    let address = format!("http://127.0.0.1:{}/v1", server.port());
    run.stderr_has(&format!("found Ollama: {address}\n"));
    let text = test.read(FILE);
    assert_eq!(text, format!("LLM_API_BASE_URL={address}\nLLM_MODEL_NAME=only-model\n"));
}

/// A key is read from standard input or a file, and appears in no output.
#[test]
fn keys_are_read_and_not_shown() {
    let server = server();
    let url = server.url();
    let test = unset();
    let words = ["init", "--base-url", &url, "-m", "m", "--key-file", "-"];
    let run = test.next_run().args(words).stdin("sk-a-secret-key-2\n").run();
    run.stderr_lacks("sk-a").stdout_lacks("sk-a");
    assert!(test.read(FILE).contains("LLM_API_KEY=sk-a-secret-key-2\n"));
    let test = test.file("key", "sk-a-secret-key-3\n").mode("key", 0o600);
    let words = ["init", "--base-url", &url, "-m", "m", "--key-file", "key"];
    test.next_run().args(words).run().stderr_lacks("sk-a").stdout_lacks("sk-a");
    assert!(!test.read(FILE).contains("sk-a") && test.read(FILE).contains("LLM_API_KEY_FILE="));
}

/// Without a terminal, what is open is an error with the option, and nothing is written.
#[test]
fn open_questions_need_a_terminal() {
    let test = unset();
    let run = test.next_run().args(["init"]).run().status(78);
    run.stderr_has("give --base-url URL");
    let far = "https://host.example/v1";
    let run = test.next_run().args(["init", "--base-url", far]).run().status(78);
    run.stderr_has("give --key-file FILE");
    let run = test.next_run().args(["init", "--base-url", "not an address", "-m", "m"]).run();
    run.status(2).stderr_has("hint");
    assert!(!test.exists("home/.config/skills-runner/.env.bak"));
    let test = test.env_unset("OLLAMA_HOST");
    let hello = test.next_run().args(["hello"]).run().status(78);
    hello.stderr_has("run `skills-runner init`");
    let hello = test.next_run().env("LLM_API_URL", "x").args(["hello"]).run().status(78);
    hello.stderr_has("LLM_API_URL (environment) is not a setting; did you mean LLM_API_BASE_URL?");
}

/// A misspelled setting in a file is named even if nothing is missing.
#[test]
fn misspelled_settings_in_files_are_named() {
    let server = Server::start([Reply::text("fine"), Reply::text("fine")]);
    let test = Test::new().endpoint(&server).dotenv("LLM_API_BASEURL=http://127.0.0.1:1/v1\n");
    let run = test.next_run().args(["hi"]).run().success().stdout("fine\n");
    run.stderr_has(".env line 1) is not a setting; did you mean LLM_API_BASE_URL?");
    test.next_run().args(["-q", "hi"]).run().success().stderr_lacks("LLM_API_BASEURL");
}

/// On a terminal it asks; a key is not echoed.
#[test]
fn questions_on_a_terminal() {
    let server = server();
    let url = server.url();
    let test = unset().env("TERM", "xterm");
    let mut terminal = test.next_run().args(["init"]).spawn_on_terminal();
    terminal.expect("Address of the API").type_line("not an address");
    terminal.expect("this is not an address: ").expect("Address of the API").type_line("");
    // Without the scheme and the path.
    let short = url.trim_start_matches("http://").trim_end_matches("/v1");
    terminal.expect("nothing was typed").expect("Address of the API").type_line(short);
    terminal.expect("skills-runner works");
    let run = terminal.wait_exit().success();
    assert!(run.terminal.contains("the only model is only-model"), "{}", run.terminal);
    assert!(test.read(FILE).contains(&format!("LLM_API_BASE_URL={url}\n")), "{}", test.read(FILE));
    let two = Server::of_all_requests(|request| match request.path.as_str() {
        "/v1/models" => Reply::models(["alpha", "beta"]),
        "/v1/chat/completions" => Reply::text("fine"),
        _ => Reply::status(404),
    });
    let url = two.url();
    let mut terminal = test.next_run().args(["init", "--base-url", &url]).spawn_on_terminal();
    terminal.expect("the endpoint lists alpha, beta").expect("Model: ").type_line("gamma");
    terminal.expect("`gamma` is not listed; type it again").expect("Model: ").type_line("beta");
    terminal.expect("skills-runner works");
    terminal.wait_exit().success();
    assert!(test.read(FILE).contains("LLM_MODEL_NAME=beta\n"));
    let words = ["init", "--base-url", "https://host.example/v1", "-m", "m"];
    let mut terminal = test.next_run().args(words).spawn_on_terminal();
    terminal.expect("API key: ").type_line("sk-typed-secret-4");
    let run = terminal.wait_exit();
    assert!(!run.terminal.contains("sk-typed"), "{}", run.terminal);
    assert!(test.read(FILE).contains("LLM_API_KEY=sk-typed-secret-4"));
}

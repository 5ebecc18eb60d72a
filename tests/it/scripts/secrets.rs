//! The key in the environment and output of scripts.

use super::{run, source, test_with_skill};
use crate::harness::CANARY;
use serde_json::Value;

/// Scripts get neither the key, whatever its variable is, nor variables that only `.env` defines.
#[test]
fn key_is_not_in_the_environment_of_scripts() {
    let test = test_with_skill()
        .env("LLM_API_KEY", CANARY)
        .env("OPENAI_API_KEY", CANARY)
        .env("PROXY_LINE", format!("http://user:{CANARY}@host/"))
        .env("USERS_OWN", "stays")
        .file("key", "sk-from-a-file\n")
        .env("LLM_API_KEY_FILE", "key")
        .env("COPY_OF_FILE", "(sk-from-a-file)")
        .env(
            "LLM_EXTRA_HEADERS",
            r#"{"authorization": "Bearer gateway-token", "x-title": "skills-runner", "x-id": 12345678}"#,
        )
        .env("COPY_OF_HEADER", "gateway-token")
        .env("COPY_OF_NUMBER", "id 12345678")
        .env("OWN_TITLE", "skills-runner")
        .env("HTTPS_PROXY", "http://user:proxy%20password@proxy.example")
        .dotenv("ONLY_HERE=hidden\nLLM_MODEL_NAME=m\n");
    let ran = run(&test, &source("print(json.dumps(dict(os.environ)))"));
    let environment: Value = serde_json::from_str(ran.text("stdout")).expect("JSON");
    #[rustfmt::skip]
    let absent = [
        "LLM_API_KEY", "OPENAI_API_KEY", "PROXY_LINE", "ONLY_HERE", "LLM_MODEL_NAME",
        "LLM_EXTRA_HEADERS", "COPY_OF_FILE", "COPY_OF_HEADER", "COPY_OF_NUMBER",
    ];
    for name in absent {
        let is_met = environment[name].is_null();
        ran.check(is_met, &format!("{name} reached the script"));
    }
    // A script needs its proxy setting; its login is masked in the output.
    let stays = [
        ("USERS_OWN", "stays"),
        ("OWN_TITLE", "skills-runner"),
        ("HTTPS_PROXY", "http://user:[secret]@proxy.example"),
    ];
    for (name, value) in stays {
        let is_met = environment[name] == value;
        ran.check(is_met, &format!("{name} is not {value}"));
    }
    let masked = ran.text("stdout").matches("[secret]").count();
    ran.check(masked == 1, "not exactly one value was masked");
    let decode = "from urllib.parse import unquote\nprint(len(os.environ['HTTPS_PROXY']), unquote(os.environ['HTTPS_PROXY']))";
    let ran = run(&test, &source(decode));
    let is_met = ran.text("stdout") == "42 http://user:[secret]@proxy.example\n";
    ran.check(is_met, "the decoded password is shown, or the script did not get it");
}

/// Asserts that the result does not show a key that a script finds itself.
#[track_caller]
fn assert_masked(key: &str) {
    let find = "text = open(os.environ['USER_CWD'] + '/.env').read()\nprint(text); print('x' + text, file=sys.stderr); sys.exit(text)";
    // In single quotes a key stands for itself.
    let test = test_with_skill().dotenv(&format!("LLM_API_KEY='{key}'\n"));
    let ran = run(&test, &source(find));
    for stream in ["stdout", "stderr"] {
        let is_masked = ran.text(stream).contains("[secret]") && !ran.text(stream).contains(key);
        ran.check(is_masked, &format!("the key is shown in {stream}"));
    }
}

#[test]
fn key_printed_by_a_script_is_masked() {
    assert_masked(CANARY);
    assert_masked("sk-ключ-0123456789/+==");
}

#[test]
fn key_with_quotes_printed_by_a_script_is_masked() {
    assert_masked("sk-\"quoted\"-0123456789");
    assert_masked("sk-back\\slash-0123456789");
}

//! The user's credentials for other programs in the environment of scripts.

use serde_json::{Value, json};

use crate::harness::{Reply, Server, Test};

const VALUE: &str = "value-of-the-variable";

/// Variables that look like credentials, and others that only nearly do.
const WITHHELD: [&str; 16] = [
    "ANTHROPIC_API_KEY",
    "GITHUB_TOKEN",
    "KEY",
    "token",
    "hf_token",
    "MYSECRETS",
    "CLIENT_SECRET_ID",
    "PGPASSWORD",
    "DB_PASSWORD_FILE",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN",
    "ALIBABA_CLOUD_ACCESS_KEY_SECRET",
    "AZURE_CLIENT_SECRET",
];
const KEPT: [&str; 9] = [
    "AWS_REGION",
    "AWS_PROFILE",
    "GOOGLE_CLOUD_PROJECT",
    "TOKENIZERS_PARALLELISM",
    "KEYBOARD_LAYOUT",
    "SSH_AUTH_SOCK",
    "PIP_INDEX_URL",
    "MONKEY",
    "KEY_FILE_NAME",
];

fn test() -> Test {
    let test = Test::new().skill("s", "---\nname: s\ndescription: S.\n---\n");
    WITHHELD.iter().chain(&KEPT).fold(test, |test, name| test.env(name, VALUE))
}

/// The result of a tool that is run by hand.
fn result(test: &Test, tool: &str, arguments: &Value) -> Value {
    test.next_run().args(["tool", tool, &arguments.to_string()]).run().stdout_json()
}

/// Scripts and commands, by hand and of the model, get no variable that looks like a credential.
#[test]
fn credentials_of_other_programs_are_not_in_the_environment_of_scripts() {
    let test = test();
    let check = |text: &str, what: &str| {
        let has = |name: &&str| text.lines().any(|line| line == format!("{name}={VALUE}"));
        let got: Vec<_> = WITHHELD.iter().filter(|name| has(name)).collect();
        assert!(got.is_empty(), "{what} gets {got:?}");
        assert!(KEPT.iter().all(has), "{what} lacks a variable: {text}");
    };
    let command = result(&test, "run_command", &json!({"command": "env"}));
    check(command["stdout"].as_str().unwrap(), "a command");
    let source = "import os\nfor it in os.environ.items(): print(*it, sep='=')";
    let script = result(&test, "run_python_script", &json!({"script": source}));
    check(script["stdout"].as_str().unwrap(), "a script");
    let env = Reply::call("run_command", &json!({"command": "env"}));
    let server = Server::start([env, Reply::text("ok")]);
    test.next_run().endpoint(&server).args(["hi"]).run().success();
    check(server.finish()[1].last_message()["content"].as_str().unwrap(), "a call");
}

/// `SCRIPT_ENV` of the user gives them; that of `./.env` does not. The key in use is never given.
#[test]
fn script_env_names_variables_that_scripts_get() {
    let names = |test: &Test| {
        let shown = result(test, "run_command", &json!({"command": "env"}));
        let text = shown["stdout"].as_str().unwrap().to_string();
        let lines = text.lines().filter_map(|line| line.split_once('='));
        let mut got: Vec<String> = lines
            .filter(|(name, value)| *value == VALUE && WITHHELD.contains(name))
            .map(|(name, _)| name.to_string())
            .collect();
        got.sort();
        got
    };
    let list = " GITHUB_TOKEN , NOT_SET,AWS_ACCESS_KEY_ID,LLM_API_KEY";
    let test = test().env("LLM_API_KEY", "sk-key-in-use");
    assert_eq!(names(&test.clone().env("SCRIPT_ENV", list)), ["AWS_ACCESS_KEY_ID", "GITHUB_TOKEN"]);
    let key = test.clone().env("SCRIPT_ENV", "LLM_API_KEY").args(["tool", "run_command"]);
    let shown = key.args([r#"{"command": "env"}"#]).run();
    shown.success().stdout_lacks("LLM_API_KEY=").stdout_lacks("[secret]");
    let of_user = test.next_run().file("home/.config/skills-runner/.env", "SCRIPT_ENV=KEY\n");
    assert_eq!(names(&of_user), ["KEY"]);
    let of_folder = test.next_run().dotenv("SCRIPT_ENV=token\n");
    assert_eq!(names(&of_folder), ["KEY"]);
    let run = of_folder.args(["tool", "list_skills"]).run();
    run.success().stderr_has("SCRIPT_ENV in ./.env is ignored");
    for invalid in ["*", "A B", "A;B"] {
        let run = test.next_run().env("SCRIPT_ENV", invalid).args(["tool", "list_skills"]).run();
        run.status(78).stderr_has("SCRIPT_ENV (environment)").stderr_has("commas");
    }
}

/// The names are shown once with `-v` and by `doctor`, the values never.
#[test]
fn withheld_variables_are_reported() {
    let test = test();
    let call = || Reply::call("run_command", &json!({"command": "echo 1"}));
    let server = Server::start([call(), call(), Reply::text("ok")]);
    let run = test.next_run().endpoint(&server).args(["-v", "hi"]).run().success();
    server.finish();
    let run = run.stderr_lacks(VALUE).stderr_has("GITHUB_TOKEN");
    assert_eq!(run.stderr.matches("SCRIPT_ENV").count(), 1);
    test.next_run().args(["doctor"]).run().stdout_has("SCRIPT_ENV").stdout_lacks(VALUE);
}

/// A run that fails and names such a variable gets a hint; nothing else does.
#[test]
fn a_script_that_needs_a_withheld_variable_gets_a_hint() {
    let test = test();
    let hint = |arguments: Value, tool: &str| {
        result(&test, tool, &arguments)["hint"].as_str().unwrap_or_default().to_string()
    };
    let of_command = |command: &str| hint(json!({"command": command}), "run_command");
    let script = json!({"script": "import os; print(os.environ['GITHUB_TOKEN'])"});
    assert!(hint(script, "run_python_script").contains("SCRIPT_ENV=GITHUB_TOKEN"));
    assert!(of_command("set -u; echo $GITHUB_TOKEN").contains("SCRIPT_ENV=GITHUB_TOKEN"));
    assert!(!of_command("set -u; echo $NOT_THERE_TOKEN").contains("SCRIPT_ENV"));
    assert!(!of_command("echo GITHUB_TOKEN").contains("SCRIPT_ENV"), "it did not fail");
}

//! The first error: what to set, with lines to copy.

use crate::harness::{CANARY, Test};

const EXPECTED: &str = "\
skills-runner: failed to read the configuration: LLM_API_BASE_URL is not set
hint: run `skills-runner init`, or copy what fits into the shell or .env:
  export LLM_API_BASE_URL=http://localhost:11434/v1 # Ollama, or
  export LLM_API_BASE_URL=https://api.openai.com/v1 # OpenAI or another
  export LLM_API_KEY=sk-...
  export LLM_MODEL_NAME=gpt-4.1-mini
(`skills-runner demo` needs none)
";

#[test]
fn first_error_has_lines_to_copy() {
    for args in [&["hi"][..], &["chat"]] {
        let run = Test::new().args(args).run().status(78).stdout_is_empty();
        run.stderr(EXPECTED);
    }
    assert!(EXPECTED.lines().count() <= 8 && EXPECTED.lines().all(|line| line.len() <= 80));
    // What is set is left out.
    let run = Test::new().env("LLM_API_KEY", CANARY).args(["-m", "m", "hi"]).run().status(78);
    run.stderr_has("another\n").stderr_lacks("export LLM_MODEL_NAME");
    let run = Test::new().file("key", CANARY).env("LLM_API_KEY_FILE", "key");
    run.args(["hi"]).run().status(78).stderr_has("another\n  export LLM_MODEL_NAME=");
    let run = Test::new().args(["doctor"]).run().status(78);
    run.stdout_has("failure  configuration: LLM_API_BASE_URL is not set\n         fix: export LLM_API_BASE_URL=http://localhost:11434/v1 # Ollama, or\n              export LLM_API_BASE_URL=https://api.openai.com/v1 # OpenAI or another\n              export LLM_API_KEY=sk-...\n              export LLM_MODEL_NAME=gpt-4.1-mini\n");
}

/// The lines set what they say in a shell and in `.env`.
#[test]
fn lines_can_be_copied() {
    let lines: Vec<&str> = EXPECTED.lines().filter(|line| line.starts_with("  export")).collect();
    let openai = lines[1..].join("\n");
    let test = Test::new();
    let run = test.next_run().dotenv(&openai).args(["--dry-run", "hi"]).run().success();
    run.stdout_has("https://api.openai.com/v1/chat/completions").stdout_has("gpt-4.1-mini");
    let line = format!("{openai}\nexec skills-runner --dry-run --no-env-file hi");
    let run = test.shell(&line).run().success();
    run.stdout_has("https://api.openai.com/v1/chat/completions").stdout_has("gpt-4.1-mini");
}

#[test]
fn key_of_openai_alone_is_no_address() {
    let test = Test::new().env("OPENAI_API_KEY", CANARY);
    let run = test.next_run().args(["hi"]).run().status(78);
    run.stderr(
        "skills-runner: failed to read the configuration: OPENAI_API_KEY has no address\nhint: run `skills-runner init`, or copy what fits into the shell:\n  export OPENAI_BASE_URL=https://api.openai.com/v1\n  export LLM_MODEL_NAME=gpt-4.1-mini\n(`skills-runner demo` needs none)\n",
    );
    for name in ["LLM_MODEL_NAME", "OPENAI_MODEL"] {
        let run = test.next_run().env(name, "m").args(["hi"]).run().status(78);
        run.stderr_has("/v1\n").stderr_lacks("export LLM_MODEL_NAME");
    }
    let in_file = Test::new().dotenv("OPENAI_API_KEY=sk-x\n").args(["hi"]).run().status(78);
    in_file.stderr_has(
        "OPENAI_API_KEY (.env line 1) is read from the environment only: set LLM_API_KEY\n",
    );
}

/// A remote endpoint: the lines for its key and model.
#[test]
fn missing_key_and_model_have_lines_to_copy() {
    let test = Test::new().env("LLM_API_BASE_URL", "https://llm.test/v1").args(["hi"]);
    let run = test.next_run().env("OPENAI_API_KEY", CANARY).args(["hi"]).run().status(78);
    run.stderr_has("LLM_API_KEY is not set; OPENAI_API_KEY is only for OPENAI_BASE_URL\n");
    test.run().status(78).stderr(
        "skills-runner: failed to read the configuration: 2 problems\n  LLM_MODEL_NAME is not set\n  LLM_API_KEY is not set\nhint: run `skills-runner init`, or copy what fits into the shell or .env:\n  export LLM_MODEL_NAME=NAME # as the endpoint lists it\n  export LLM_API_KEY=KEY # none: it needs no key; or LLM_API_KEY_FILE=FILE\n(`skills-runner demo` needs none)\n",
    );
}

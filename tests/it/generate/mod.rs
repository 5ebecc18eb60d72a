//! `--generate`: the man page and the completions, used with the real shells and `man` if they are
//! installed.

use crate::harness::{Outcome, Test, shell_line_works};

const KINDS: [&str; 4] = ["man", "complete-bash", "complete-zsh", "complete-fish"];

/// The generated text.
fn generated(kind: &str) -> String {
    let run = Test::new().args(["--generate", kind]).run();
    run.success().stderr_is_empty().stdout
}

/// Runs a line if this program is installed; otherwise `None`.
fn under(program: &str, test: &Test, line: &str) -> Option<Outcome> {
    shell_line_works(&format!("command -v {program}")).then(|| test.next_run().shell(line).run())
}

/// A folder with two skills, and the generated text in a file with this name.
fn folder(name: &str, kind: &str) -> Test {
    Test::new().skill("alpha", "Does it.\n").file("notes.txt", "").file(name, generated(kind))
}

/// Everything in the help is in the man page and the completions.
#[test]
fn each_kind_contains_everything_in_the_help() {
    let help = Test::new().args(["--help"]).run().success().stdout;
    let section = |title: &str| {
        let (_, rest) = help.split_once(&format!("\n{title}")).unwrap();
        let (rows, _) = rest.split_once("\n\n").unwrap();
        // A row starts with two blanks, an option without a letter with six, a continued
        // line with more.
        let lines = rows.lines().skip(1).map(|line| line[2..].to_string());
        lines.filter(|line| !line.starts_with("     ")).collect::<Vec<_>>()
    };
    let options: Vec<String> = section("Options")
        .iter()
        .map(|row| row.split_whitespace().find(|word| word.starts_with("--")).unwrap().to_string())
        .collect();
    assert!(options.len() > 25 && options.contains(&"--generate".to_string()), "{options:?}");
    let commands: Vec<String> = section("Commands")
        .iter()
        .flat_map(|row| {
            let words = row.split("  ").next().unwrap().split(' ');
            words
                .filter(|word| word.chars().all(|c| c.is_ascii_lowercase()))
                .map(str::to_string)
                .collect::<Vec<_>>()
        })
        .collect();
    assert!(commands.len() > 20 && commands.contains(&"setup".to_string()), "{commands:?}");
    let settings: Vec<String> =
        section("Settings").iter().map(|row| row.split(' ').next().unwrap().to_string()).collect();
    assert!(settings.len() > 20, "{settings:?}");
    for kind in KINDS {
        let text = generated(kind).replace("\\-", "-");
        let has = |word: &str| {
            text.split(|c: char| c.is_whitespace() || "'\"|*[]=+:\\,".contains(c))
                .any(|found| found.trim_start_matches("fB").trim_start_matches("fR") == word)
        };
        for option in &options {
            let name = match kind {
                "complete-fish" => option.trim_start_matches('-'),
                _ => option,
            };
            assert!(has(name), "{kind} lacks {option}");
        }
        for word in &commands {
            assert!(has(word), "{kind} lacks {word}");
        }
        if kind == "man" {
            for name in &settings {
                assert!(has(name), "{kind} lacks {name}");
            }
        }
    }
}

#[test]
fn unknown_kind_is_wrong_usage_that_names_the_known_ones() {
    Test::new().args(["--generate", "powershell"]).run().status(2).stdout_is_empty().stderr_has(
        "--generate takes one of man, complete-bash, complete-zsh, complete-fish, not `powershell`",
    );
    Test::new().args(["--generate"]).run().status(2);
}

/// Like the help, it is printed before anything can fail.
#[test]
fn needs_no_configuration_and_no_reader() {
    let broken = Test::new().dotenv("\0").env("LLM_API_BASE_URL", "ftp://x");
    for kind in KINDS {
        let args = ["--generate", kind];
        let run = broken.next_run().args(args).run().success().stderr_is_empty();
        run.check(run.stdout.ends_with('\n') && !run.stdout.ends_with("\n\n"), "it ends a line");
        broken.next_run().args(args).stdout_closed().run().success().stderr_is_empty();
        let run =
            broken.next_run().shell(&format!("skills-runner --generate {kind} | head -n 1")).run();
        run.success().stderr_is_empty();
        let run = broken.next_run().shell(&format!("skills-runner --generate {kind} >&-")).run();
        run.success().stderr_is_empty();
    }
}

/// The output ends like an answer: quietly if stdout is closed, with an error if it cannot be
/// written.
#[test]
fn output_ends_like_an_answer() {
    let test = Test::new();
    for words in ["--help", "--version", "--generate man"] {
        let run = |before: &str, behind: &str| {
            let line = format!("{before} exec skills-runner {words} {behind}");
            test.next_run().shell(&line).run()
        };
        run("", ">&-").success().stderr_is_empty();
        run("", "| :").success().stderr_is_empty();
        let failed = "failed to write the answer: ";
        for (before, behind, cause) in [
            ("", ">/dev/full", "No space left on device"),
            ("ulimit -f 0;", ">kept", "File too large"),
        ] {
            run(before, behind).status(1).stderr_has(&format!("{failed}{cause}"));
        }
    }
}

#[test]
fn bash_completion_works() {
    let test = folder("complete.bash", "complete-bash").file(
        "type.bash",
        "source ./complete.bash\n\
         compopt() { printf '%s ' compopt \"$@\"; }\n\
         try() { COMP_WORDS=(skills-runner \"$@\") COMP_CWORD=$#; _skills_runner skills-runner; echo \"${COMPREPLY[*]}\"; }\n\
         try --scr\n\
         try skills l\n\
         try -m x -q skills ''\n\
         try --output ''\n\
         try --output =\n\
         try --output = te\n\
         try --generate complete-b\n\
         try tool run_p\n\
         try --skills ''\n\
         try -a ''\n\
         try -m ''\n\
         try -- sk\n\
         try what\n\
         complete -p skills-runner\n",
    );
    let Some(run) = under("bash", &test, "exec bash --norc --noprofile type.bash") else {
        return;
    };
    run.success().stderr_is_empty().stdout(
        "--script-timeout\n\
         list\n\
         list show check new setup add update remove restore eval\n\
         text json jsonl\n\
         text json jsonl\n\
         text\n\
         complete-bash\n\
         run_python_script\n\
         compopt -o dirnames \n\
         compopt -o default \n\
         \n\
         compopt -o default \n\
         \n\
         complete -F _skills_runner skills-runner\n",
    );
}

#[test]
fn zsh_completion_works() {
    let test = folder("functions/_skills-runner", "complete-zsh")
        .file("type.zsh", include_str!("type.zsh"));
    let line = "exec zsh -f type.zsh 'skills-runner --scr' 'skills-runner skills l' \
        'skills-runner -m x -q skills se' 'skills-runner --output=t' 'skills-runner -o t' \
        'skills-runner --generate complete-z' 'skills-runner tool run_p' 'skills-runner --log no' \
        'skills-runner -- no' 'skills-runner --skills sk'";
    let Some(run) = under("zsh", &test, line) else {
        return;
    };
    run.success().stdout(
        "skills-runner --script-timeout=\n\
         skills-runner skills list \n\
         skills-runner -m x -q skills setup \n\
         skills-runner --output=text \n\
         skills-runner -o text \n\
         skills-runner --generate complete-zsh \n\
         skills-runner tool run_python_script \n\
         skills-runner --log notes.txt \n\
         skills-runner -- notes.txt \n\
         skills-runner --skills skills/\n",
    );
}

#[test]
fn fish_completion_works() {
    let test = folder("complete.fish", "complete-fish").file(
        "type.fish",
        "source ./complete.fish\n\
         for line in '--scr' 'skills l' '-m x -q skills ' '--output ' '--output=t' '--generate complete-f' \
         'tool run_p' '--log no' '-- no' '-m '\n\
         echo (complete -C \"skills-runner $line\" | cut -f 1 | sort)\n\
         end\n",
    );
    let line = "exec fish --no-config type.fish";
    let Some(run) = under("fish", &test, line) else {
        return;
    };
    run.success().stderr_is_empty().stdout(
        "--script-timeout\n\
         list\n\
         add check eval list new remove restore setup show update\n\
         json jsonl text\n\
         --output=text\n\
         complete-fish\n\
         run_python_script\n\
         notes.txt\n\
         notes.txt\n\
         \n",
    );
}

/// The page is ASCII, so that no locale changes it, and groff prints no warnings.
#[test]
fn man_page_has_no_groff_warnings() {
    let test = Test::new().file("skills-runner.1", generated("man"));
    let page = std::fs::read_to_string(test.path("skills-runner.1")).unwrap();
    assert!(page.is_ascii());
    // An unescaped `-` or quote is another character, or a request at the start of a line.
    assert!(!page.contains('\''));
    assert!(page.lines().all(|line| line.len() <= 120), "{page}");
    for title in [
        "NAME",
        "SYNOPSIS",
        "DESCRIPTION",
        "COMMANDS",
        "OPTIONS",
        "ENVIRONMENT",
        "FILES",
        "EXIT STATUS",
        "EXAMPLES",
        "SEE ALSO",
    ] {
        assert!(
            page.lines().any(|line| line
                .strip_prefix(".SH ")
                .is_some_and(|rest| rest.trim_matches('"') == title)),
            "there is no {title}"
        );
    }
    let line = "GROFF_NO_SGR=1 groff -man -Tutf8 -ww -rLL=200n skills-runner.1 | sed 's/.\\x08//g'";
    let Some(run) = under("groff", &test, line) else {
        return;
    };
    run.success()
        .stderr_is_empty()
        .stdout_has("skills-runner - Give any OpenAI-compatible language model skills\n")
        .stdout_has("-a, --attach FILE\n")
        .stdout_has("(also http://..., https://...)")
        .stdout_has("{\"temperature\": 0}")
        .stdout_has("./.env")
        .stdout_has("into the skill's venv");
}

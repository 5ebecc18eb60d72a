//! The first command of the README.

use crate::harness::Test;

/// R-CLI-1: the whole loop over the example skills, without an account.
#[test]
fn the_demo_answers_through_three_skills() {
    let skills = concat!(env!("CARGO_MANIFEST_DIR"), "/skills");
    let run = Test::new()
        .args(["--skills", skills, "demo"])
        .run()
        .success();
    let answer = "(scripted reply) (1/3 + 1/7)^5 is exactly 100000/4084101.";
    run.demand(
        run.stdout.starts_with(answer),
        "the exact value comes first",
    );
    run.demand(
        run.stdout.lines().count() == 1,
        "the answer alone is on stdout",
    );
    for line in [
        "scripted",
        "→ list_skills",
        "→ get_skill data-explorer",
        "→ read_file_in_skill calculator",
        "→ run_python_script text-analyzer",
        "← exit 0",
    ] {
        run.demand(
            run.stderr.contains(line),
            format!("standard error shows `{line}`"),
        );
    }
    run.demand(!run.stdout.contains("failed"), "no script failed");
}

#[test]
fn the_demo_without_its_skills_says_where_they_are() {
    let run = Test::new().args(["demo"]).run();
    run.status(78)
        .stdout_is_empty()
        .stderr_has("example skill `calculator`")
        .stderr_has("--skills DIR");
}

/// Installed, it finds the examples that came along, wherever it is called.
#[test]
fn the_demo_finds_the_examples_beside_the_program() {
    let repository = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    for place in ["bin/skills", "share/skills-runner/examples"] {
        let test = Test::new().folder("bin");
        let examples = test.path(place);
        std::fs::create_dir_all(examples.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(repository.join("skills"), examples).unwrap();
        let program = test.path("bin/skills-runner");
        std::fs::copy(env!("CARGO_BIN_EXE_skills-runner"), &program).unwrap();
        let mut demo = std::process::Command::new(program);
        demo.arg("demo").current_dir(test.path("bin/.."));
        let output = demo.env("HOME", test.path("home")).output().unwrap();
        let answer = String::from_utf8_lossy(&output.stdout);
        assert!(answer.contains("is exactly 100000/4084101."), "{output:?}");
    }
}

/// What does not work is no proof of an installation.
#[test]
fn a_demo_without_python_fails() {
    let skills = concat!(env!("CARGO_MANIFEST_DIR"), "/skills");
    let run = Test::new()
        .env("PATH", "/nonexistent")
        .args(["--skills", skills, "demo"])
        .run();
    run.status(1)
        .stdout_has("There is no answer")
        .stderr_has("failed to run the scripts of the demo")
        .stderr_lacks("next:");
}

/// The example skills are as good as we ask others' to be.
#[test]
fn every_example_skill_is_listed_with_its_description() {
    let skills = concat!(env!("CARGO_MANIFEST_DIR"), "/skills");
    let run = Test::new()
        .args(["--skills", skills, "tool", "list_skills"])
        .run()
        .success();
    let list = run.stdout_json();
    let names: Vec<&str> = list["skills"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| s["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "calculator",
            "data-explorer",
            "table-report",
            "text-analyzer"
        ]
    );
    for skill in list["skills"].as_array().unwrap() {
        assert!(skill["description"].as_str().unwrap().len() > 40, "{skill}");
    }
}

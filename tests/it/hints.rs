//! Hints in the results of scripts and commands: what is missing, where it is, what was left.

use serde_json::{Value, json};

use crate::harness::{ProgramText, Reply, Server, Test, interpreter};

const DOCUMENT: &str = "---\nname: s\ndescription: Runs scripts.\n---\n";

/// A skill and a working folder, on a machine with few programs.
fn test() -> Test {
    let mut test = Test::new()
        .skill("s", DOCUMENT)
        .file("skills/s/data/table.csv", "a\n")
        .file("skills/s/deep/down/docx.py", "")
        .file("skills/s/lib/helper.py", "")
        .file("skills/s/scripts/total.py", "")
        .file("work/report.pdf", "the user's\n")
        .file("work/.env", "SECRET=1\n")
        .cwd("work")
        .env("SCRIPT_PYTHON", interpreter())
        .env("SKILLS_FOLDER_PATH", "../skills");
    for program in ["bash", "cat", "sleep"] {
        test = test.link(&format!("bin/{program}"), format!("/bin/{program}"));
    }
    test = test.link("bin/python3", interpreter());
    let bin = test.path("bin");
    test.env("PATH", bin)
}

fn result(test: &Test, tool: &str, arguments: &Value) -> Value {
    test.next_run().args(["tool", tool, "-"]).stdin(arguments.to_string()).run().stdout_json()
}

/// Each row: the source of a script or command, its exit status, and its hint.
fn assert_hints(tool: &str, argument: &str, skill: Option<&str>, table: &[(&str, i64, &str)]) {
    let test = test();
    for (source, status, expected) in table {
        let mut arguments = json!({argument: source});
        if let Some(skill) = skill {
            arguments["skill_name"] = skill.into();
        }
        let result = result(&test, tool, &arguments);
        assert_eq!(result["returncode"], *status, "{source}\n{result}");
        let work = test.path("work").display().to_string();
        let found = result["hint"].as_str().unwrap_or_default();
        let expected = expected.replace("WORK", &work);
        let expected = expected.replace("<skill>", &test.path("skills/s").display().to_string());
        assert_eq!(
            found.replace("/../skills/", "/skills/").replace("work/skills", "skills"),
            expected,
            "{source}\n{result}"
        );
    }
}

#[test]
fn missing_packages_are_named_at_once() {
    let setup = "tell the user to run: skills-runner skills setup s";
    let table = [
        ("import pypdf", 1, format!("`pypdf` is not installed: {setup} pypdf")),
        (
            "import pypdf, yaml\nfrom PIL import Image",
            1,
            format!("`pypdf` is not installed; it also imports yaml, PIL: {setup} pypdf PyYAML pillow"),
        ),
        // The status is 0, as the script has caught the failure.
        (
            "try:\n import azure.servicebus\nexcept ImportError as error:\n print('skipped:', error)",
            0,
            format!("`azure.servicebus` is not installed: {setup} azure-servicebus"),
        ),
        (
            "import subprocess, sys\nsubprocess.run([sys.executable, '-m', 'markitdown'])",
            0,
            format!("`markitdown` is not installed: {setup} markitdown"),
        ),
        // A file deep in the skill that has the name of a well-known package.
        ("import docx", 1, format!("`docx` is not installed: {setup} python-docx")),
        (
            "import helper",
            1,
            "`helper` is no package but <skill>/lib/helper.py: put sys.path.insert(0, '<skill>/lib') before the import".into(),
        ),
        (
            "import sys; print(\"Error: Cannot find module 'docx'\", file=sys.stderr)",
            0,
            "`docx` is not installed: tell the user to run: npm install --prefix WORK docx".into(),
        ),
        ("print(\"Cannot find module './own'\")", 0, String::new()),
        ("print('no module named pypdf, said the user')", 0, String::new()),
    ];
    let table: Vec<_> =
        table.iter().map(|(source, status, hint)| (*source, *status, hint.as_str())).collect();
    assert_hints("run_python_script", "script", Some("s"), &table);
}

#[test]
fn missing_programs_are_named_with_what_they_belong_to() {
    let table = [
        (
            "soffice --headless",
            127,
            "`soffice` (LibreOffice) is not installed: tell the user to install it",
        ),
        (
            "pdftoppm a; qpdf b",
            127,
            "`pdftoppm` (poppler-utils), `qpdf` are not installed: tell the user to install them",
        ),
        ("my-own-tool || true", 0, "`my-own-tool` is not installed: tell the user to install it"),
        ("uv run x.py", 127, "`uv` is not installed: run Python files with run_python_script"),
        ("python -c 1", 127, "`python` is not installed, `python3` is: use that"),
        (
            "pip install x",
            127,
            "`pip` is not installed: install nothing, but tell the user what is missing",
        ),
        (
            "python3 -c \"import subprocess; subprocess.run(['ffmpeg'])\"",
            1,
            "`ffmpeg` is not installed: tell the user to install it",
        ),
        (
            "echo 'Error: Pandoc is not installed.'",
            0,
            "`pandoc` is not installed: tell the user to install it",
        ),
        ("echo 'the record was not found'", 0, ""),
        ("bash ./x.sh", 127, ""),
    ];
    assert_hints("run_command", "command", None, &table);
}

#[test]
fn files_in_the_other_folder_are_named() {
    let in_skill = [
        (
            "open('data/table.csv')",
            1,
            "`data/table.csv` is in the skill's folder: <skill>/data/table.csv (give the absolute path)",
        ),
        ("open('nowhere.pdf')", 1, ""),
        (
            "import os; open(os.environ['SKILL_DIR'] + '/out.txt', 'w').write('x')",
            0,
            "the script left out.txt in the skill's folder: write the user's files in WORK",
        ),
        ("1 + 1", 0, "nothing was printed: print() what you need"),
    ];
    assert_hints("run_python_script", "script", Some("s"), &in_skill);
    // Behind a quotation mark it is not taken as the skill's.
    let in_work = [
        (
            "cat 'data/table.csv'",
            1,
            "`data/table.csv` is in the skill's folder: <skill>/data/table.csv (write \"$SKILL_DIR/…\")",
        ),
        (
            "total.py --all",
            127,
            "`total.py` is a script of the skill: run_python_script {\"args\":[],\"file_path\":\"scripts/total.py\",\"skill_name\":\"s\"}",
        ),
    ];
    assert_hints("run_command", "command", Some("s"), &in_work);
}

#[test]
fn servers_that_end_with_their_script_are_named() {
    let table = [(
        "sleep 60 >/dev/null 2>&1 & echo started",
        0,
        "1 process that the command left behind was ended with it: start, use and stop a server in one command, or tell the user to start the runner with SCRIPT_LEFTOVERS=keep",
    )];
    assert_hints("run_command", "command", None, &table);
}

/// A script without a skill is told of the packages of the skill that was read before it, or of one
/// that has them.
#[test]
fn packages_of_other_skills_are_known() {
    let test = test().skill("t", "---\nname: t\ndescription: d\n---\n");
    let site = "skills/t/venv/lib/python3.11/site-packages/pypdf-5.0.dist-info";
    let test =
        test.file(&format!("{site}/METADATA"), "").link("skills/t/venv/bin/python", interpreter());
    let script = json!({"script": "import markitdown"});
    let server = Server::start([
        Reply::call("run_python_script", &script),
        Reply::call("get_skill", &json!({"skill_name": "s"})),
        Reply::call("run_python_script", &script),
        Reply::call("run_python_script", &json!({"script": "import pypdf"})),
        Reply::text("done"),
    ]);
    test.endpoint(&server).args(["go"]).run().success();
    let requests = server.finish();
    let heads = [1, 3, 4].map(|index: usize| {
        let text = requests[index].last_message()["content"].as_str().unwrap();
        ProgramText::parse(text).head.lines().nth(1).unwrap_or_default().to_owned()
    });
    assert_eq!(
        heads,
        [
            "hint: `markitdown` is not installed: do without, or tell the user to install markitdown",
            "hint: `markitdown` is not installed: tell the user to run: skills-runner skills setup s markitdown",
            "hint: `pypdf` is not installed: tell the user to run: skills-runner skills setup s pypdf",
        ]
    );
}

/// A package that the document names is taken from there, with its extras.
#[test]
fn packages_of_the_document_are_known() {
    let document =
        format!("{DOCUMENT}Run `pip install \"markitdown[pptx]\" pingouin==1.0` first.\n");
    let test = test().skill("s", &document);
    let table = [
        (
            "import markitdown",
            "`markitdown` is not installed: tell the user to run: skills-runner skills setup s 'markitdown[pptx]'",
        ),
        (
            "import pandas\nimport pingouin",
            "`pandas` is not installed; it also imports pingouin: tell the user to run: skills-runner skills setup s pandas pingouin",
        ),
        (
            "raise SystemExit('to fix this:\\n* pip install markitdown[all]\\n* pip install markitdown[xlsx]')",
            "`markitdown[all]` is not installed: tell the user to run: skills-runner skills setup s 'markitdown[all]'",
        ),
    ];
    for (script, hint) in table {
        let result =
            result(&test, "run_python_script", &json!({"skill_name": "s", "script": script}));
        assert_eq!(result["hint"], hint, "{result}");
    }
}

/// Node.js looks for packages from the folder of the importing file upwards.
#[test]
fn npm_packages_are_installed_where_node_looks() {
    let test = test()
        .file("skills/s/scripts/make.js", "")
        .file("skills/s/scripts/package.json", "{}")
        .file("skills/s/lib/tool.mjs", "")
        .folder("work/node_modules/there");
    let path = |name: &str| test.path(name).display().to_string();
    let message = |package: &str, importer: &str| {
        format!("Error: Cannot find module '{package}'\nRequire stack:\n- {importer}")
    };
    let run = "tell the user to run: npm install --prefix";
    let (skill, work) = (path("skills/s"), path("work"));
    let table = [
        (
            message("docx", &path("skills/s/scripts/make.js")),
            format!("`docx` is not installed for this script: {run} {skill}/scripts"),
        ),
        (
            format!("Cannot find package 'ajv' imported from {skill}/lib/tool.mjs"),
            format!("`ajv` is not installed for this script: {run} {skill} ajv"),
        ),
        (
            message("there", "/tmp/make.js"),
            format!(
                "`there` is installed in {work}, but not for the script: write the script in {work}"
            ),
        ),
        (
            message("docx", "/tmp/make.js"),
            format!("`docx` is not installed: {run} {work} docx; then write the script there"),
        ),
        (
            message("@scope/name", &path("work/make.js")),
            format!("`@scope/name` is not installed: {run} {work} @scope/name"),
        ),
    ];
    for (message, hint) in table {
        let script = json!({"skill_name": "s", "script": format!("print({message:?})")});
        assert_eq!(result(&test, "run_python_script", &script)["hint"], hint, "{message}");
    }
}

/// pip installs nothing into the user's Python, and its refusal is answered by the setup command; a
/// setting of the user's own stays.
#[test]
fn pip_installs_only_into_venvs() {
    let test = test();
    let variable = json!({"command": "echo \"$PIP_REQUIRE_VIRTUALENV\""});
    assert_eq!(result(&test, "run_command", &variable)["stdout"], "1\n");
    let own = test.clone().env("PIP_REQUIRE_VIRTUALENV", "no");
    assert_eq!(result(&own, "run_command", &variable)["stdout"], "no\n");
    for refusal in [
        "ERROR: Could not find an activated virtualenv (required).",
        "externally-managed-environment",
    ] {
        // As pip ends, without pip.
        let line = format!("pip() {{ echo '{refusal}' >&2; return 3; }}; pip install pandas");
        let call = json!({"skill_name": "s", "command": line});
        let found = result(&test, "run_command", &call);
        let expected =
            "`pandas` is not installed: tell the user to run: skills-runner skills setup s pandas";
        assert_eq!(found["hint"], expected, "{found}");
    }
}

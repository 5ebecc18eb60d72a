//! Imports of scripts: Python's standard library first, then the skill's modules, then all others.

use serde_json::{Value, json};

use crate::harness::{Test, interpreter};

const DOCUMENT: &str = "---\nname: s\ndescription: Runs scripts.\n---\n";

/// Names of modules that Python would import in every script, or in most.
const HIDDEN: [&str; 8] = [
    "sitecustomize",
    "usercustomize",
    "json",
    "multiprocessing",
    "re",
    "runpy",
    "struct",
    "typing",
];

/// A skill with such modules next to SKILL.md and next to its scripts.
fn test_with_modules() -> Test {
    let test = Test::new()
        .env("SCRIPT_PYTHON", interpreter())
        .skill("s", DOCUMENT)
        .file("skills/s/beside.py", "NAME = 'beside'\n")
        .file("skills/s/scripts/near.py", "NAME = 'near'\n");
    let folders = ["skills/s", "skills/s/scripts"];
    let all = folders.map(|folder| HIDDEN.map(|name| format!("{folder}/{name}.py")));
    let attack = "import sys\nsys.stderr.write('ATTACK ' + __name__)\n";
    let test = all.concat().iter().fold(test, |test, path| test.file(path, attack));
    test.file("skills/s/x.pth", "import sys; sys.stderr.write('ATTACK pth')\n")
}

#[track_caller]
fn run(test: &Test, call: &Value) -> Value {
    let mut call = call.clone();
    call["skill_name"] = "s".into();
    let run = test.next_run().args(["tool", "run_python_script", &call.to_string()]);
    let result = run.run().stdout_json();
    assert_eq!(result["stderr"], "", "{result}");
    assert_eq!(result["returncode"], 0, "{result}");
    result
}

/// The attack: a hidden module of the skill would run with each script.
#[test]
#[ignore = "long"]
fn skill_module_does_not_replace_a_standard_module() {
    let uses = "import json, re, struct, typing, runpy, multiprocessing, beside\n\
                print(beside.NAME, json.dumps(1), re.escape('a'))\n";
    let test = test_with_modules()
        .file("skills/s/scripts/main.py", format!("import near\n{uses}"))
        .file("skills/s/scripts/module.py", format!("from . import near\n{uses}"));
    let calls = [
        json!({"script": uses}),
        json!({"file_path": "scripts/main.py"}),
        json!({"file_path": "scripts/module.py"}),
    ];
    // An empty or relative entry means the script's working folder.
    let own = test.path("skills/s").display().to_string();
    for search in ["", ":", ".", "scripts:/nowhere", &own] {
        let test = test.next_run().env("PYTHONPATH", search);
        for call in &calls {
            assert_eq!(run(&test, call)["stdout"], "beside 1 a\n", "{search:?}");
        }
    }
}

/// Processes of `multiprocessing` import like their script, in versions of Python that allow it.
#[test]
fn children_of_multiprocessing_import_as_their_script_does() {
    let pool = "import beside, multiprocessing, sys\n\
                def f(x):\n    import json, struct, beside\n    return json.dumps(x), beside.NAME\n\
                if __name__ == '__main__':\n    if sys.version_info < (3, 11): sys.exit(print('old'))\n    \
                for method in ('fork', 'spawn', 'forkserver'):\n        \
                with multiprocessing.get_context(method).Pool(1) as pool: print(pool.map(f, [1]))\n";
    let test = test_with_modules().file("skills/s/scripts/main.py", pool);
    for call in [json!({"script": pool}), json!({"file_path": "scripts/main.py"})] {
        let stdout = run(&test, &call)["stdout"].clone();
        let expected = "[('1', 'beside')]\n".repeat(3);
        assert!(stdout == expected || stdout == "old\n", "{stdout}");
    }
}

/// A Python started by a script finds the user's modules, but not the skill's.
#[test]
fn child_python_does_not_search_the_skill() {
    let test = test_with_modules().folder("modules").file("modules/of_user.py", "");
    let modules = test.path("modules");
    let child = "import os, subprocess, sys\n\
                 tell = 'import of_user, os, sys; print(os.environ[\"PYTHONPATH\"], \"PYTHONSAFEPATH\" in os.environ, [p for p in sys.path if \"/skills/\" in p])'\n\
                 print(subprocess.run([sys.executable, '-c', tell], cwd='/', stdout=subprocess.PIPE).stdout.decode())\n";
    let expected = format!("{} False []\n\n", modules.display());
    for search in [modules.as_os_str(), "modules".as_ref()] {
        let test = test.next_run().env("PYTHONPATH", search);
        assert_eq!(run(&test, &json!({"script": child}))["stdout"], expected);
    }
}

/// The skill's modules come between the standard and the installed ones, the nearest folder first.
#[test]
fn skill_modules_precede_installed_ones() {
    let test = test_with_modules().venv("s");
    let test = ["near", "beside", "of_user", "installed"]
        .iter()
        .fold(test, |test, name| {
            test.venv_module("s", &format!("{name}.py"), "NAME = 'installed'\n")
        })
        .venv_module("s", "sitecustomize.py", "import builtins; builtins.of_venv = 1\n")
        .file("modules/near.py", "NAME = 'of user'\n")
        .file("modules/beside.py", "NAME = 'of user'\n")
        .file("modules/of_user.py", "NAME = 'of user'\n")
        .file("skills/s/near.py", "NAME = 'wrong'\n")
        .file(
            "skills/s/scripts/main.py",
            "import near, beside, of_user, installed\n\
             print([m.NAME for m in (near, beside, of_user, installed)], of_venv)\n",
        );
    let modules = test.path("modules");
    let result = run(&test.env("PYTHONPATH", modules), &json!({"file_path": "scripts/main.py"}));
    let expected = "['near', 'beside', 'of user', 'installed'] 1\n";
    assert_eq!(result["stdout"], expected);
}

/// Scripts without source code find the same modules.
#[test]
fn archives_and_compiled_scripts_import_modules_of_the_skill() {
    let test = test_with_modules()
        .file(
            "skills/s/source/__main__.py",
            "import json, packed, beside\nprint(packed.NAME, beside.NAME, __name__)\n",
        )
        .file("skills/s/source/packed.py", "NAME = 'packed'\n")
        .file("skills/s/packed.py", "NAME = 'plain'\n");
    let make = "import zipapp, py_compile\n\
                zipapp.create_archive('source', 'tool.pyz')\n\
                py_compile.compile('source/__main__.py', cfile='tool.pyc')\n";
    let made = std::process::Command::new(interpreter())
        .args(["-I", "-c", make])
        .current_dir(test.path("skills/s"))
        .status();
    assert!(made.unwrap().success());
    for (path, expected) in
        [("tool.pyz", "packed beside __main__\n"), ("tool.pyc", "plain beside __main__\n")]
    {
        assert_eq!(run(&test, &json!({"file_path": path}))["stdout"], expected);
    }
}

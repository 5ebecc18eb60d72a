//! What a script imports: the standard library is Python's own, whatever lies in the
//! skill; then come the modules of the skill, then all others.

use serde_json::{Value, json};

use crate::harness::{Test, interpreter};

const DOCUMENT: &str = "---\nname: s\ndescription: Runs scripts.\n---\n";

/// Modules that would run with every script, or with most.
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

/// A skill with such modules beside SKILL.md and beside its scripts.
fn bench() -> Test {
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
    let run = test.again().args(["tool", "run_python_script", &call.to_string()]);
    let result = run.run().stdout_json();
    assert_eq!(result["stderr"], "", "{result}");
    assert_eq!(result["returncode"], 0, "{result}");
    result
}

/// The attack: a module of the skill that no one is shown runs with each script.
#[test]
fn no_module_of_a_skill_takes_the_place_of_one_of_pythons_own() {
    let uses = "import json, re, struct, typing, runpy, multiprocessing, beside\n\
                print(beside.NAME, json.dumps(1), re.escape('a'))\n";
    let test = bench()
        .file("skills/s/scripts/main.py", format!("import near\n{uses}"))
        .file("skills/s/scripts/module.py", format!("from . import near\n{uses}"));
    let calls = [
        json!({"script": uses}),
        json!({"file_path": "scripts/main.py"}),
        json!({"file_path": "scripts/module.py"}),
    ];
    // An entry that is empty or relative means the folder that the script starts in.
    let own = test.path("skills/s").display().to_string();
    for search in ["", ":", ".", "scripts:/nowhere", &own] {
        let test = test.again().env("PYTHONPATH", search);
        for call in &calls {
            assert_eq!(run(&test, call)["stdout"], "beside 1 a\n", "{search:?}");
        }
    }
}

/// So do the processes of `multiprocessing`, as far as Python can be asked for it.
#[test]
fn children_of_multiprocessing_import_as_their_script_does() {
    let pool = "import beside, multiprocessing, sys\n\
                def f(x):\n    import json, struct, beside\n    return json.dumps(x), beside.NAME\n\
                if __name__ == '__main__':\n    if sys.version_info < (3, 11): sys.exit(print('old'))\n    \
                for method in ('fork', 'spawn', 'forkserver'):\n        \
                with multiprocessing.get_context(method).Pool(1) as pool: print(pool.map(f, [1]))\n";
    let test = bench().file("skills/s/scripts/main.py", pool);
    for call in [json!({"script": pool}), json!({"file_path": "scripts/main.py"})] {
        let stdout = run(&test, &call)["stdout"].clone();
        let due = "[('1', 'beside')]\n".repeat(3);
        assert!(stdout == due || stdout == "old\n", "{stdout}");
    }
}

/// A Python that a script starts finds what the user's would find, and no skill.
#[test]
fn children_inherit_no_folder_of_the_skill() {
    let test = bench().folder("modules").file("modules/of_user.py", "");
    let modules = test.path("modules");
    let child = "import os, subprocess, sys\n\
                 tell = 'import of_user, os, sys; print(os.environ[\"PYTHONPATH\"], \"PYTHONSAFEPATH\" in os.environ, [p for p in sys.path if \"/skills/\" in p])'\n\
                 print(subprocess.run([sys.executable, '-c', tell], cwd='/', stdout=subprocess.PIPE).stdout.decode())\n";
    let due = format!("{} False []\n\n", modules.display());
    for search in [modules.as_os_str(), "modules".as_ref()] {
        let test = test.again().env("PYTHONPATH", search);
        assert_eq!(run(&test, &json!({"script": child}))["stdout"], due);
    }
}

/// Between Python's own and what is installed, the nearest first.
#[test]
fn modules_of_a_skill_come_before_what_is_installed() {
    let test = bench().venv("s");
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
    let due = "['near', 'beside', 'of user', 'installed'] 1\n";
    assert_eq!(result["stdout"], due);
}

/// What runs without its source finds the same.
#[test]
fn archives_and_compiled_scripts_import_modules_of_the_skill() {
    let test = bench()
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
    for (path, due) in
        [("tool.pyz", "packed beside __main__\n"), ("tool.pyc", "plain beside __main__\n")]
    {
        assert_eq!(run(&test, &json!({"file_path": path}))["stdout"], due);
    }
}

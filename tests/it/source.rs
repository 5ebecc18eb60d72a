//! Scripts of skills run from the bytes that were read in confinement, and behave as if Python ran
//! the file.
//!
//! Each script is run twice: by the tool, and by the interpreter with the script's path. Output and
//! exit status must be equal.

use std::fs;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::{Value, json};

use crate::harness::{Test, interpreter, reset_signal_handlers};

const DOCUMENT: &str = "---\nname: s\ndescription: Runs scripts.\n---\n";

/// Names of scripts and their sources.
const SCRIPTS: &[(&str, &str)] = &[
    // What the script finds in its environment.
    (
        "facts",
        "import sys\nprint(__name__, __file__, __spec__, __package__, __doc__, type(__loader__), __loader__.name, __loader__.path)\nprint(sys.argv, sorted(set(sys.path)), sorted(globals()), __builtins__, locals() is globals())\nprint(sys.excepthook is sys.__excepthook__, sys.modules['__main__'].__dict__ is globals(), 'linecache' in sys.modules)\n",
    ),
    ("document", "'''Doc.'''\nx: int = 1\nprint(__doc__, __annotations__)\n"),
    ("no-name-of-the-loader", "print(run)\n"),
    ("own-names", "open = print = copy = file = main = None\nrun = tell = 3\n1/0 # here\n"),
    ("neighbour", "import near, __main__\nprint(near.V, near.__file__, __main__.near is near)\n"),
    (
        "flags",
        // All except the one that hides the working folder from its children's path.
        "import sys\nprint(sys._getframe().f_code.co_flags, str(sys.flags).replace('safe_path=True', 'safe_path=False'))\n",
    ),
    (
        "future",
        "from __future__ import annotations\ndef f(x: nothing): pass\nprint(f.__annotations__)\n",
    ),
    ("by-main", "if __name__ == '__main__':\n    print('main')\n"),
    ("stdin", "import sys\nprint(sys.stdin.read())\n"),
    (
        "inspect_",
        "import inspect\ndef f():\n    return 3\nclass A:\n    x = 1\nprint(inspect.getsource(f), inspect.getsource(A), inspect.getfile(f), inspect.getsource(inspect.getmodule(f)))\n",
    ),
    (
        "pickle_",
        "import pickle\nclass A: pass\ndef f(): pass\nprint(type(pickle.loads(pickle.dumps(A()))) is A, pickle.loads(pickle.dumps(f)) is f)\n",
    ),
    (
        "types_",
        "import typing, dataclasses, collections, enum\n@dataclasses.dataclass\nclass D:\n    x: int = 1\nclass N(typing.NamedTuple):\n    a: int\nprint(D(), N(1), typing.get_type_hints(D), collections.namedtuple('P', 'x').__module__, enum.Enum('E', 'A').A)\n",
    ),
    (
        "runpy_",
        "import runpy, sys\nprint(runpy.run_module('near', run_name='__main__')['V'], sys.modules['__main__'].__dict__ is globals())\n",
    ),
    ("doctest_", "'''\n>>> 1 + 1\n3\n'''\nimport doctest\nprint(doctest.testmod())\n"),
    (
        "unittest_",
        "import unittest\nclass T(unittest.TestCase):\n    def test_a(self): self.assertEqual(1, 2)\nunittest.main(argv=['x'], verbosity=0, testRunner=lambda **k: unittest.TextTestRunner(stream=open('/dev/null', 'w')))\n",
    ),
    (
        "again",
        "import os, sys\nif len(sys.argv) < 3: os.execv(sys.executable, [sys.executable, *sys.argv, 'again'])\nprint(sys.argv)\n",
    ),
    ("forked", "import os, sys\nif os.fork() == 0: 1/0\nprint(os.wait()[1])\n"),
    ("pool-fork", "import multiprocessing\nmultiprocessing.set_start_method('fork')\nPOOL"),
    (
        "pool-spawn",
        "import multiprocessing\nif __name__ == '__main__': multiprocessing.set_start_method('spawn')\nPOOL",
    ),
    (
        "pool-forkserver",
        "import multiprocessing\nif __name__ == '__main__': multiprocessing.set_start_method('forkserver')\nPOOL",
    ),
    (
        "pool-fails",
        "import multiprocessing\nmultiprocessing.set_start_method('fork')\ndef f(x): return 1/x\nif __name__ == '__main__':\n    with multiprocessing.Pool(1) as pool: pool.map(f, [0])\n",
    ),
    (
        "futures",
        "from concurrent.futures import ProcessPoolExecutor as Pool\ndef f(x): return x + 1\nif __name__ == '__main__':\n    with Pool(2) as pool: print(list(pool.map(f, range(3))))\n",
    ),
    (
        "async",
        "import asyncio\nasync def main():\n    await asyncio.sleep(0)\n    raise ValueError('a')\nasyncio.run(main())\n",
    ),
    (
        "warnings_",
        "import warnings\ndef f(): warnings.warn('w')\nf()\ndef g(): warnings.warn('g', stacklevel=2)\ng()\nwarnings.warn('u')\n",
    ),
    ("syntax-warnings", "x = 1\nprint(x is 1)\nassert (x, 'y')\n'\\d'\n"),
    (
        "prints-trace",
        "import logging, traceback\ntry: 1/0\nexcept Exception: traceback.print_exc()\ntry: 2/0 # log\nexcept Exception: logging.exception('x')\n",
    ),
    ("large", "x = [\nLINES]\nprint(len(x))\n"),
    // How the script ends.
    ("exit", "import sys; sys.exit()\n"),
    ("exit-3", "import sys; sys.exit(3)\n"),
    ("exit-text", "import sys; sys.exit('the end ü')\n"),
    ("exit-257", "raise SystemExit(257)\n"),
    ("exit-tuple", "raise SystemExit((1, 2))\n"),
    ("exit-raw", "import os; os._exit(7)\n"),
    ("killed", "import os; os.kill(os.getpid(), 9)\n"),
    ("interrupted", "raise KeyboardInterrupt\n"),
    ("sigint", "import os, signal, time; os.kill(os.getpid(), signal.SIGINT); time.sleep(5)\n"),
    ("generator-exit", "raise GeneratorExit\n"),
    ("at-exit", "import atexit\natexit.register(print, 'bye')\n1/0\n"),
    ("at-exit-3", "import atexit, sys\natexit.register(print, 'bye')\nsys.exit(3)\n"),
    ("at-exit-fails", "import atexit, sys\natexit.register(lambda: 1/0)\nsys.exit(2)\n"),
    (
        "at-exit-sees",
        "import atexit, io, sys\natexit.register(lambda: print(sys.excepthook is sys.__excepthook__, sys.last_value, io.open is open))\n1/0\n",
    ),
    (
        "thread",
        "import threading\ndef f(): 1/0\nt = threading.Thread(target=f, name='T'); t.start(); t.join()\n",
    ),
    (
        "late-thread",
        "import threading, time\nthreading.Thread(target=lambda: (time.sleep(.1), print('late'))).start()\n1/0\n",
    ),
    ("finalizer", "class A:\n    def __del__(self): print('gone', __name__)\na = A()\n"),
    // Errors and tracebacks.
    ("raises", "def f(x):\n    return 1 / x  # here\n\nf(0)\n"),
    ("raises-below", "import json\njson.loads('{')\n"),
    ("cause", "try:\n    {}['a']\nexcept KeyError as e:\n    raise ValueError('b') from e\n"),
    ("context", "try:\n    {}['a']\nexcept KeyError as e:\n    raise ValueError('b')\n"),
    ("suggests", "value = 3\nprint(valu)\n"),
    ("suggests-attribute", "import os\nos.pathh\n"),
    ("no-module", "import nothing_like_it\n"),
    ("no-name", "from os import nothing_like_it\n"),
    (
        "group",
        "import sys\nif sys.version_info < (3, 11): sys.exit(1)\nraise ExceptionGroup('g', [ValueError(1), TypeError(2)])\n",
    ),
    ("many-lines", "def f(a, b):\n    raise ValueError(\n        a,\n        b)\nf(1,\n  2)\n"),
    ("own-class", "class E(BaseException): pass\nraise E('x')\n"),
    ("says-nothing", "class E(Exception):\n    def __str__(self): raise ValueError\nraise E\n"),
    ("nested-syntax", "exec('a b')\n"),
    ("imports-broken", "import broken\n"),
    ("in-a-string", "eval('1/0')\n"),
    ("moved", "import os\nos.chdir('/')\n1/0 # after\n"),
    (
        "hook",
        "import sys\ndef hook(kind, error, trace):\n    print('HOOK', kind, error, trace.tb_frame.f_code.co_name, trace.tb_lineno, trace.tb_next, error.__traceback__ is trace)\nsys.excepthook = hook\n1/0\n",
    ),
    (
        "hook-prints",
        "import sys, traceback\nsys.excepthook = lambda *all: traceback.print_exception(*all)\n1/0 # here\n",
    ),
    (
        "hook-calls",
        "import sys\nold = sys.excepthook\ndef hook(*all):\n    print('mine'); old(*all)\nsys.excepthook = hook\n1/0\n",
    ),
    ("trace-limit", "import sys\nsys.tracebacklimit = 1\ndef f(): 1/0\nf()\n"),
    ("no-stderr", "import sys\nsys.stderr = None\n1/0\n"),
    ("stderr-is-stdout", "import sys\nsys.stderr = sys.stdout\n1/0\n"),
    ("own-syntax-error", "raise SyntaxError('mine', ('f.py', 1, 2, 'abc'))\n"),
    ("syntax-open", "x = (\n"),
    ("syntax-print", "print 'a'\n"),
    ("syntax-return", "x = 1\nreturn 3\n"),
    ("syntax-twice", "def f(a, a): pass\n"),
    ("syntax-nonlocal", "nonlocal x\n"),
    ("syntax-indent", "if True:\n  x = 1\n    y = 2\n"),
    ("syntax-tabs", "if 1:\n\tx = 1\n        y = 2\n"),
    ("syntax-string", "x = 'abc\n"),
    ("syntax-text", "x = '''abc\n\n"),
    ("syntax-wide", "ü = 'ä' 3\n"),
    ("syntax-crlf", "a b\r\nc\r\n"),
    ("syntax-future", "x = 1\nfrom __future__ import annotations\n"),
    ("syntax-number", "x = 0777\n"),
    ("syntax-escape", "'\\N{nothing}'\n"),
    ("syntax-end", "x = = 1"),
    ("syntax-class", "class A:\n  def f(self):\n  return 1\n"),
    // How the source is written.
    ("empty", ""),
    ("mark", "\u{feff}print('böm')\n"),
    ("mac", "print(1)\rprint(2)\r"),
    ("windows", "print(1)\r\nif 1:\r\n  print('''a\r\nb'''.encode())\r\n"),
    ("no-end", "print(1)"),
    ("form-feed", "\u{c}print(1)\n"),
    ("first-line", "#!/nothing\nprint(1)\n"),
];

/// The same in other encodings.
const ENCODED: &[(&str, &[u8])] = &[
    ("latin", b"# -*- coding: latin-1 -*-\nprint('caf\xe9')\nraise ValueError('\xe9')  # \xe9\n"),
    ("latin-syntax", b"# coding: latin-1\nx = '\xe9' '\xe9' 3\n"),
    (
        "second-line",
        b"#!/usr/bin/env python\n# vim: set fileencoding=iso-8859-15 :\nprint('\xa4')\n",
    ),
    ("cp1252", b"# coding: cp1252\r\nprint('\x80')\r\n"),
    ("utf-7", b"# coding: utf-7\nprint('+AOk-')\n"),
];

/// Scripts with relative imports of their neighbours.
const PACKAGE_SCRIPTS: &[(&str, &str)] = &[
    (
        "facts",
        "from .words import W\nimport sys\nprint(W, __name__, __file__, __spec__.name, __spec__.origin, __spec__.parent, __package__, __cached__)\nprint(sys.argv, sorted(set(sys.path)), sorted(globals()), __spec__.loader is __loader__, __loader__.name, [m for m in sys.modules if 'package' in m])\n",
    ),
    (
        "pool",
        "from .words import W\nimport multiprocessing\ndef f(x): return x, __name__, W\nif __name__ == '__main__':\n    multiprocessing.set_start_method('spawn')\n    with multiprocessing.Pool(1) as pool: print(pool.map(f, range(2)))\n",
    ),
    (
        "pickle_",
        "from . import words\nimport pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))) is A)\n",
    ),
    (
        "data",
        "from . import words\nimport pkgutil\nprint(pkgutil.get_data(__package__, 'words.py'))\n",
    ),
    ("exit", "from . import words\nimport sys\nsys.exit(5)\n"),
];

const POOL: &str = "def f(x): return x * x, __name__\nclass C: pass\ndef g(queue): queue.put(C())\nif __name__ == '__main__':\n    with multiprocessing.Pool(2) as pool: print(pool.map(f, range(4)))\n    queue = multiprocessing.Queue()\n    process = multiprocessing.Process(target=g, args=(queue,))\n    process.start()\n    print(type(queue.get()) is C)\n    process.join()\n    print(process.exitcode)\n";

/// A skill with all these scripts.
fn test_with_scripts() -> Test {
    let mut test = Test::new()
        .env("SCRIPT_PYTHON", interpreter())
        .skill("s", DOCUMENT)
        .file("skills/s/scripts/near.py", "V = 7\n")
        .file("skills/s/scripts/broken.py", "a b\n")
        .file("skills/s/package/words.py", "W = 'w'\n")
        .file("stdin", "in")
        .link("skills/s/link.py", "scripts/facts.py");
    for (name, text) in SCRIPTS {
        let text =
            text.replace("POOL", POOL).replace("LINES", &"    '0123456789',\n".repeat(60_000));
        test = test.file(&format!("skills/s/scripts/{name}.py"), text);
    }
    for (name, bytes) in ENCODED {
        test = test.file(&format!("skills/s/scripts/{name}.py"), bytes);
    }
    for (name, text) in PACKAGE_SCRIPTS {
        test = test.file(&format!("skills/s/package/{name}.py"), text);
    }
    test
}

/// Exit status and output when the tool runs the script.
fn by_the_tool(test: &Test, path: &str) -> (Value, String, String) {
    let arguments =
        json!({"skill_name": "s", "file_path": path, "args": ["a", "-x", "ü"], "stdin": "in"});
    let run = test.next_run().cwd("skills/s").args(["--skills", ".."]);
    let run = run.args(["tool", "run_python_script", &arguments.to_string()]);
    let result = run.run().stdout_json();
    let text = |key: &str| without_varying_parts(result[key].as_str().unwrap());
    (result["returncode"].clone(), text("stdout"), text("stderr"))
}

/// Exit status and output when the interpreter runs the script.
fn by_python(test: &Test, words: &[String]) -> (Value, String, String) {
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    let folder = test.path("skills/s");
    let mut command = Command::new(interpreter());
    // SAFETY: it only makes calls that are safe between fork and exec.
    unsafe { command.pre_exec(reset_signal_handlers) };
    let output = command
        .args(words)
        .args(["a", "-x", "ü"])
        .current_dir(&folder)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", test.path(""))
        .env("PYTHONPATH", &folder)
        .envs(["PYTHONUTF8", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE"].map(|name| (name, "1")))
        .env("PYTHONIOENCODING", "utf-8")
        .stdin(Stdio::from(fs::File::open(test.path("stdin")).unwrap()))
        .output()
        .unwrap();
    let status = output.status;
    let code = status.code().or(status.signal().map(|signal| -signal));
    let text = |bytes: &[u8]| without_varying_parts(&String::from_utf8_lossy(bytes));
    (json!(code), text(&output.stdout), text(&output.stderr))
}

/// Removes the parts that differ between runs.
fn without_varying_parts(text: &str) -> String {
    let mut parts = text.split("0x");
    let mut without_varying_parts = parts.next().unwrap_or_default().to_string();
    for part in parts {
        without_varying_parts += "0x";
        without_varying_parts += part.trim_start_matches(|c: char| c.is_ascii_hexdigit());
    }
    without_varying_parts
}

/// A script cannot detect a difference from running in Python.
#[test]
#[ignore = "long"]
fn script_runs_as_python_runs_it() {
    let test = test_with_scripts();
    let names = SCRIPTS.iter().map(|(name, _)| name);
    let names = names.chain(ENCODED.iter().map(|(name, _)| name));
    let paths = names.map(|name| format!("scripts/{name}.py"));
    let paths = paths.chain(["./scripts//facts.py", "link.py"].map(str::to_owned));
    let of_a_package = PACKAGE_SCRIPTS.iter();
    let rows: Vec<(String, Vec<String>)> = paths
        .map(|path| {
            let absolute = test.path("skills/s").join(&path);
            (path, vec![absolute.display().to_string()])
        })
        .chain(of_a_package.map(|(name, _)| {
            let module = format!("package.{name}");
            (format!("package/{name}.py"), vec!["-m".into(), module])
        }))
        .collect();
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let compare = || {
        while let Some((path, words)) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
            let (ours, expected) = (by_the_tool(&test, path), by_python(&test, words));
            if ours != expected {
                let text = format!("{path}: {ours:#?}\nis not\n{expected:#?}");
                wrong.lock().unwrap().push(text);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(compare);
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The bytes read in confinement are those that run and that Python quotes, even if another file
/// has the name by then.
#[test]
fn checked_bytes_are_the_bytes_that_run() {
    let test = Test::new()
        .skill("s", DOCUMENT)
        .file("outside.py", "print('canary')\nx = (canary = \n'canary' # canary\n")
        .file("skills/s/ends.py", "print('inside')\n")
        .file("skills/s/fails.py", "print('inside')\n\n1/0 # mine\n")
        .file("skills/s/syntax.py", "x = 1\nreturn x # mine\n")
        .file("skills/s/package/words.py", "")
        .file("skills/s/package/ends.py", "from . import words\nprint('inside')\n")
        .file("python", "")
        .mode("python", 0o755);
    let swap = "for last; do :; done; rm \"$last\"; ln -s \"$OUTSIDE\" \"$last\"";
    let python = format!("#!/bin/sh\n{swap}\nexec {} \"$@\"\n", interpreter().display());
    fs::write(test.path("python"), python).unwrap();
    let outside = test.path("outside.py");
    let test = test.env("OUTSIDE", outside);
    let python = test.path("python");
    let test = test.env("SCRIPT_PYTHON", python);
    for (path, stdout, stderr) in [
        ("ends.py", "inside\n", ""),
        ("package/ends.py", "inside\n", ""),
        ("fails.py", "inside\n", "fails.py\", line 3, in <module>\n    1/0 # mine\n"),
        ("syntax.py", "", "syntax.py\", line 2\n    return x # mine\n"),
    ] {
        let arguments = json!({"skill_name": "s", "file_path": path}).to_string();
        let run = test.next_run().args(["tool", "run_python_script", &arguments]);
        let run = run.run().stdout_lacks("canary");
        let result = run.stdout_json();
        run.check(result["stdout"] == stdout, "the output differs");
        let reported = result["stderr"].as_str().unwrap();
        run.check(reported.contains(stderr), "the error differs");
        let is_swapped = fs::read_link(test.path("skills/s").join(path)).is_ok();
        run.check(is_swapped, "nothing was swapped");
    }
}

/// Files that are not source text still run: archives and compiled scripts.
#[test]
fn archives_and_compiled_scripts_run() {
    let test = Test::new()
        .env("SCRIPT_PYTHON", interpreter())
        .skill("s", DOCUMENT)
        .file("skills/s/source/__main__.py", "import sys\nprint('packed', sys.argv[1:])\n")
        .file("skills/s/large.py", "#".repeat((4 << 20) + 1));
    let make = "import zipapp, py_compile\n\
        zipapp.create_archive('source', 'tool.pyz', interpreter='/usr/bin/env python3')\n\
        py_compile.compile('source/__main__.py', cfile='tool.pyc')\n";
    let made =
        Command::new(interpreter()).args(["-c", make]).current_dir(test.path("skills/s")).status();
    assert!(made.unwrap().success());
    let call = |path: &str| {
        let arguments = json!({"skill_name": "s", "file_path": path, "args": ["a"]}).to_string();
        test.next_run().args(["tool", "run_python_script", &arguments]).run()
    };
    for path in ["tool.pyz", "tool.pyc"] {
        call(path).success().stdout_has(r#""stdout":"packed ['a']\n","stderr":"""#);
    }
    call("large.py").status(1).stdout_has("is larger than 4 MiB");
}

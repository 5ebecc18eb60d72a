#!/usr/bin/env python3
"""Installs a wheel in every way that pip supports, and tests it.

    python3 packaging/check_wheel.py target/dist/skills_runner-*.whl

In a venv, with `--target`, with `--prefix`: the program and `python -m skills_runner`
behave the same: output, exit statuses, standard input, signals. Needs no network.
"""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import zipfile

SKILLS = pathlib.Path(__file__).resolve().parent.parent / "skills"


def run(*arguments, **options):
    options = {"capture_output": True, "text": True, "timeout": 60, **options}
    return subprocess.run([str(argument) for argument in arguments], check=False, **options)


def check(name, is_met, run=None):
    print(("ok      " if is_met else "FAILED  ") + name, flush=True)
    if not is_met:
        sys.exit(f"{run}" if run else 1)


def installed(pip, *arguments):
    done = run(*pip, "install", "--quiet", "--no-index", "--ignore-installed", "--disable-pip-version-check", *arguments)
    check("pip install " + " ".join(map(str, arguments[:-1])), done.returncode == 0, done)


def check_command(name, command, environment):
    """Checks one way to call the program: everything that a shell relies on."""

    def call(*arguments, **options):
        return run(*command, *arguments, env=environment, **options)

    version = call("--version")
    check(f"{name} --version", version.stdout.startswith("skills-runner "), version)
    demo = call("--no-env-file", "demo")
    check(f"{name} demo", demo.returncode == 0 and demo.stdout != "", demo)
    wrong = call("--no-such-option")
    check(f"{name}: exit status 2", wrong.returncode == 2 and wrong.stdout == "", wrong)
    unset = call("--no-env-file", "hi", stdin=subprocess.DEVNULL)
    check(f"{name}: exit status 78", unset.returncode == 78, unset)
    arguments = '{"skill_name": "calculator", "script": "import sys; print(sys.stdin.read()[::-1])", "stdin": "olleh"}'
    piped = call("--no-env-file", "-q", "--skills", SKILLS, "tool", "run_python_script", "-", input=arguments)
    check(f"{name}: standard input", "hello" in piped.stdout, piped)
    # It waits for a line until the signal ends it.
    server = subprocess.Popen(
        [str(part) for part in command] + ["--no-env-file", "--skills", str(SKILLS), "mcp"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
    )
    server.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
    server.stdin.flush()
    line = server.stdout.readline()
    server.send_signal(signal.SIGTERM)
    check(f"{name}: a signal ends it by that signal", server.wait(20) == -signal.SIGTERM, (line, server.returncode))


def main(wheel):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="skills-runner-wheel-"))
    plain = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    try:
        names = zipfile.ZipFile(wheel).namelist()
        has_licences = any(name.endswith("/licenses/LICENSE-THIRD-PARTY") for name in names)
        check("the licences of its contents", has_licences, names)

        venv = folder / "a venv"
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        python = venv / "bin/python"
        pip = [python, "-m", "pip"]
        installed(pip, wheel)
        check_command("in a venv, skills-runner", [venv / "bin/skills-runner"], plain)
        check_command("in a venv, python -m", [python, "-m", "skills_runner"], plain)

        # A folder whose files have the names of standard modules, by accident or as an attack.
        trap = folder / "trap"
        trap.mkdir()
        for module in ("os", "sysconfig"):
            (trap / f"{module}.py").write_text("raise SystemExit('not the standard module')\n")
        trapped = run(python, "-m", "skills_runner", "--version", env=plain, cwd=trap)
        is_program = trapped.returncode == 0 and trapped.stdout.startswith("skills-runner ")
        check("in a folder with a sysconfig.py, python -m", is_program, trapped)

        installed(pip, "--target", folder / "target", wheel)
        other = folder / "other"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", other], check=True)
        command = [other / "bin/python", "-m", "skills_runner"]
        check_command("--target, python -m", command, {**plain, "PYTHONPATH": str(folder / "target")})

        installed(pip, "--prefix", folder / "prefix", wheel)
        site = next((folder / "prefix").glob("lib/python*/site-packages"))
        check_command("--prefix, python -m", command, {**plain, "PYTHONPATH": str(site)})

        # The user's site folder, of the Python outside the venv.
        home = {**plain, "PYTHONUSERBASE": str(folder / "user")}
        base = [sys._base_executable if hasattr(sys, "_base_executable") else sys.executable]
        installed([*base, "-m", "pip"], "--prefix", folder / "user", wheel)
        check_command("the user's folder, python -m", [*base, "-m", "skills_runner"], home)

        for program in folder.rglob("bin/skills-runner"):
            program.unlink()
        lost = run(python, "-m", "skills_runner", "demo", env=plain)
        is_clear = lost.returncode == 1 and "failed to find" in lost.stderr and "hint: " in lost.stderr
        check("without the program: a clear error", is_clear and "Traceback" not in lost.stderr, lost)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]))

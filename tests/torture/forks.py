"""Tests that fork bombs end with the time limit, Ctrl+C and `kill -9` of the program.

Each bomb starts processes as fast as it can, each in its own session, as an ordinary
user with a limit on processes (`ulimit -u`). The script measures the time from the
limit, the signal or the `kill -9` until no process of that user is alive. It needs root
to become that user, which must have no other processes: all are killed after each round.
"""

import argparse
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

USER = 61234
LIMIT = 2
BOMB = """import os
while True:
    try:
        if os.fork() == 0:
            os.setsid()
    except OSError:
        pass
"""


def become_user(processes=None):
    """Drops root permanently, with a limit on processes if one is given."""
    os.setgroups([])
    os.setgid(USER)
    if processes:
        resource.setrlimit(resource.RLIMIT_NPROC, (processes, processes))
    os.setuid(USER)


def is_gone():
    """Whether every process of the user is dead; zombies count as dead."""
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and os.stat(f"/proc/{name}").st_uid == USER:
                with open(f"/proc/{name}/stat", encoding="utf-8") as status:
                    if status.read().rpartition(") ")[2][0] not in "ZX":
                        return False
        except (FileNotFoundError, ProcessLookupError):
            pass
    return True


def kill_all():
    """Kills the remaining processes of a round."""
    until = time.monotonic() + 30
    while not is_gone() and time.monotonic() < until:
        child = os.fork()
        if child == 0:
            become_user()
            for _ in range(100):
                os.kill(-1, signal.SIGKILL)
            os._exit(0)
        os.waitpid(child, 0)


def round_of(options, how, sandbox):
    """Runs one bomb. Returns the seconds until all processes had ended, or None."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        os.makedirs(f"{folder}/skills/bomb")
        with open(f"{folder}/skills/bomb/SKILL.md", "w", encoding="utf-8") as document:
            document.write("---\nname: bomb\ndescription: Starts processes.\n---\n")
        call = json.dumps({"skill_name": "bomb", "script": BOMB})
        program = f"{folder}/skills-runner"
        shutil.copy(options.binary, program)
        command = [program, "--no-env-file", "--skills", f"{folder}/skills"]
        command += ["--sandbox"] if sandbox else []
        command += ["--script-timeout", str(LIMIT if how == "limit" else 60)]
        running = subprocess.Popen(
            command + ["tool", "run_python_script", call],
            cwd=folder, env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=lambda: become_user(options.processes))
        try:
            time.sleep(LIMIT)
            due = time.monotonic()
            if how != "limit":
                running.send_signal(signal.SIGINT if how == "Ctrl+C" else signal.SIGKILL)
            while not is_gone():
                if time.monotonic() > due + options.watchdog:
                    return None
                running.poll()
                time.sleep(0.05)
            return time.monotonic() - due
        finally:
            kill_all()
            running.wait()


def main():
    """Runs each case, prints a row for each, and exits with 1 if one is too slow."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--processes", type=int, default=2000)
    parser.add_argument("--within", type=float, default=1.0, help="seconds, in the sandbox")
    parser.add_argument("--within-without", type=float, default=10.0,
                        help="seconds, without the sandbox")
    parser.add_argument("--watchdog", type=float, default=20.0)
    options = parser.parse_args()
    if os.getuid() != 0:
        print("skipped: needs root, to become another user")
        return 0
    # The measuring process itself must get processor time.
    first = os.SCHED_FIFO | os.SCHED_RESET_ON_FORK
    os.sched_setscheduler(0, first, os.sched_param(50))
    late = 0
    for sandbox in (True, False):
        within = options.within if sandbox else options.within_without
        for how in ("limit", "Ctrl+C", "kill -9"):
            rounds = [round_of(options, how, sandbox) for _ in range(options.count)]
            gone = sorted(seconds for seconds in rounds if seconds is not None)
            in_time = sum(seconds <= within for seconds in gone)
            late += options.count - in_time
            middle = f"{gone[len(gone) // 2]:.2f}" if gone else "-"
            worst = f"{gone[-1]:.2f}" if len(gone) == options.count else "never"
            one = sum(seconds <= 1 for seconds in gone)
            print(f"{how:8} {'sandbox' if sandbox else 'no sandbox':10} median {middle} s,"
                  f" worst {worst} s, within 1 s {one} of {options.count},"
                  f" within {within:g} s {in_time} of {options.count}", flush=True)
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())

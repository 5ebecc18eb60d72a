#!/usr/bin/env python3
"""Injects failures into the system calls of skills-runner, one in each run.

A development script: `make torture` runs it. It needs Linux and strace.

    python3 tests/torture/torture.py PROGRAM
    python3 tests/torture/torture.py PROGRAM --count 500 --seed 7
    python3 tests/torture/torture.py PROGRAM --only setup --syscall renameat
    python3 tests/torture/torture.py PROGRAM --only ask --case read:EIO:3

Each scenario of the table below first runs without failures, to record its system
calls, its output, and the resulting working folder. A case is a scenario, a system
call, an error and the number of the call, counted in each process separately, at
which it fails: once (`3`), or from then on (`3+`). All cases are shuffled by the
seed, and the first `--count` of them run. Failures are injected into the runner and
its guardian, not into the scripts.

A run passes if
- it ends in time and by itself: with a documented status, or by SIGABRT if the
  allocator reports that there is no memory, as Rust programs do;
- nothing panics, except libraries at the places in `LIBRARIES`; these runs are
  counted separately;
- with status 0 the whole answer is on standard output;
- every file of the working folder is as before, or as after the run without failures;
- a script in the sandbox is confined, whatever fails, and with a log the started
  script is in the log, in complete lines;
- no process and no temporary folder is left, unless the calls that remove folders
  fail.

Failures that no program can handle are left out, see `is_fair`.
"""

import argparse
import collections
import concurrent.futures
import http.server
import json
import os
import pathlib
import queue
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

PATIENCE_SECONDS = 40
PARTING_SECONDS = 2
STATUSES = {0, 1, 2, 3, 4, 75, 77, 78}

# Errors of each call; other calls use those of `None`.
ERRORS = {
    "read": "EINTR EIO EAGAIN",
    "write": "EINTR EIO ENOSPC EAGAIN",
    "writev": "EINTR EIO ENOSPC EAGAIN",
    "openat": "ENOENT EACCES EMFILE ENOMEM EINTR",
    "open": "ENOENT EACCES EMFILE ENOMEM EINTR",
    "openat2": "ENOSYS EPERM EMFILE EAGAIN EACCES",
    "poll": "EINTR ENOMEM",
    "ppoll": "EINTR ENOMEM",
    "socket": "EMFILE ENOBUFS EPERM",
    "socketpair": "EMFILE ENOBUFS",
    "connect": "ECONNREFUSED ETIMEDOUT ENETUNREACH EINTR",
    "recvfrom": "ECONNRESET EINTR EAGAIN ETIMEDOUT",
    "sendto": "ECONNRESET EPIPE EINTR EAGAIN",
    "fork": "EAGAIN ENOMEM ENOSYS",
    "vfork": "EAGAIN ENOMEM",
    "clone": "EAGAIN ENOMEM",
    "execve": "ENOENT EACCES ENOMEM E2BIG",
    "pipe2": "EMFILE ENFILE",
    "fcntl": "EINVAL EMFILE ENOLCK",
    "mmap": "ENOMEM",
    "mremap": "ENOMEM",
    "munmap": "ENOMEM",
    "rename": "EIO ENOSPC EACCES EXDEV",
    "renameat": "EIO ENOSPC EACCES EXDEV",
    "renameat2": "EINVAL ENOSYS EIO EXDEV",
    "fsync": "EIO ENOSPC EINTR",
    "mkdir": "ENOSPC EACCES EROFS",
    "mkdirat": "ENOSPC EACCES EROFS",
    "getrandom": "ENOSYS EINTR EAGAIN",
    "close_range": "ENOSYS EPERM",
    "pidfd_open": "ENOSYS EMFILE",
    "flock": "EINTR EWOULDBLOCK ENOLCK",
    "wait4": "EINTR",
    "dup2": "EMFILE",  # not EBUSY, which musl waits out
    "getsid": "ESRCH EPERM",
    "rt_sigaction": "EINVAL",
    "mprotect": "ENOMEM",
    "getdents64": "EIO",
    "stat": "EACCES ENOENT EIO",
    "fstat": "EIO ENOMEM",
    "newfstatat": "EACCES ENOENT EIO",
    "statx": "ENOSYS EACCES EIO",
    None: "EPERM EINVAL ENOMEM",
}
# Callers may retry these forever, so they are not used with `N+`.
PASSING = {"EINTR", "EAGAIN", "EWOULDBLOCK"}
# Calls that remove temporary files, or find them.
REMOVING = set(
    "unlink unlinkat rmdir getdents64 openat open renameat fchmodat fchmodat2 fchmod "
    "dup2 fork wait4 close_range fcntl".split()
)
# Calls that cannot fail, or whose failure ends a process before its `main`.
UNFAIR = set(
    "exit exit_group rt_sigreturn arch_prctl set_tid_address getpid gettid getppid getuid "
    "geteuid getgid getegid restart_syscall sched_yield uname futex close".split()
    # It reports failure by the returned address, which strace cannot imitate.
    + ["brk"]
)

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "skills"
# Libraries that end the program themselves, each for a failure that no kernel produces
# unless it is injected; documented in docs/security.md.
STD = r"panicked at \S*/library/std/src/sys/"
LIBRARIES = {
    "allocator, without memory": re.compile(r"memory allocation of \d+ bytes failed"),
    "std, before main": re.compile(
        STD + r"pal/unix/stack_overflow\.rs|fatal runtime error: assertion failed: signal\("),
    "std, starting a child": re.compile(
        STD + r"process/unix/unix\.rs:\S*\s+the CLOEXEC pipe failed"
        r"|fatal runtime error: assertion failed: output\.write\("),
    "wait-timeout, waiting for a child": re.compile(
        r"panicked at \S*/wait-timeout-[0-9.]+/src/unix\.rs"),
}
# Words of a listing or a report about an item that could not be read.
REPORTED = re.compile(r"cannot be|could not|failed|denied|refused|warning|unknown|error")

DOCUMENT = "---\nname: calc\ndescription: Calculates things exactly.\n---\nRun main.py.\n"
CROOKED = "\ufeff---\nname: Crooked\ndescription: Use it: always.\n---\nText.\n"
SCRIPT = "import os, time\nif os.fork() == 0: time.sleep(30)\nprint('x' * 1000 + 'whole')"
UV = '#!/bin/sh\n[ "$1" = venv ] || exit 0\nfor last; do :; done\nmkdir -p "$last/bin"\n' \
     'ln -sf "$(command -v python3)" "$last/bin/python"\n: > "$last/pyvenv.cfg"\n'
CALL = json.dumps({"skill_name": "calc", "script": SCRIPT})
# A file that a script in the sandbox must not be able to read.
SETTINGS = "LLM_MODEL_NAME=m\n"
PEEK = "import os\ntry: print(open(os.environ['USER_CWD'] + '/.env').read())\n" \
       "except OSError: print('refused')\n"
PEEKING = json.dumps({"skill_name": "calc", "script": PEEK + SCRIPT})
LOG = "audit.jsonl"
# Scenarios that print the result of a script.
SCRIPTS = ("script", "file", "sandbox", "log")

# Name, arguments, standard input.
SCENARIOS = [
    ("ask", ["what is it"], None),
    ("ask-json", ["-o", "json", "--no-stream", "what is it"], None),
    ("ask-lines", ["-o", "jsonl", "-v", "-"], "what is it"),
    ("chat", ["chat"], "one\ntwo\n/exit\n"),
    ("script", ["tool", "run_python_script", "-"], CALL),
    ("file", ["tool", "run_python_script", '{"skill_name":"calc","file_path":"main.py"}'], None),
    ("sandbox", ["--sandbox", "tool", "run_python_script", "-"], PEEKING),
    ("log", ["--log", LOG, "tool", "run_python_script", "-"], CALL),
    ("read", ["tool", "read_file_in_skill", '{"skill_name":"calc","file_path":"."}'], None),
    ("list", ["skills", "list", "--json"], None),
    ("check", ["skills", "check"], None),
    ("new", ["skills", "new", "fresh"], None),
    ("setup", ["skills", "setup", "calc"], None),
    ("doctor", ["doctor"], None),
    ("demo", ["--skills", "examples", "demo"], None),
]


def endpoint():
    """An endpoint that requests three tool calls and then answers."""

    calls = [
        ("get_skill", {"skill_name": "calc"}),
        ("read_file_in_skill", {"skill_name": "calc", "file_path": "main.py"}),
        ("run_python_script", {"skill_name": "calc", "script": SCRIPT}),
    ]
    calls = [
        {"index": at, "id": f"call_{at}", "type": "function",
         "function": {"name": name, "arguments": json.dumps(arguments)}}
        for at, (name, arguments) in enumerate(calls)
    ]

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def reply(self, kind, body):
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self):
            self.reply("application/json", json.dumps({"data": [{"id": "m"}]}).encode())

        def do_POST(self):
            request = json.loads(self.rfile.read(int(self.headers["content-length"])))
            asks = request["messages"][-1]["role"] != "tool" and request.get("tools")
            message = {"tool_calls": calls} if asks else {"content": "The answer is 42."}
            choice = {"index": 0, "finish_reason": "tool_calls" if asks else "stop"}
            if not request.get("stream"):
                choice["message"] = {"role": "assistant", **message}
                self.reply("application/json", json.dumps({"choices": [choice]}).encode())
                return
            parts = [{**choice, "finish_reason": None, "delta": message}, {**choice, "delta": {}}]
            events = [f"data: {json.dumps({'choices': [part]})}\n\n" for part in parts]
            self.reply("text/event-stream", "".join([*events, "data: [DONE]\n\n"]).encode())

    class Quiet(http.server.ThreadingHTTPServer):
        def handle_error(self, *_):
            """Ignores broken connections, which are expected."""

    server = Quiet(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/v1"


Case = collections.namedtuple("Case", "scenario syscall error number")


class Place:
    """A worker's folder: `work`, created again for each run, and `tmp`."""

    def __init__(self, root, name, program, address):
        self.root = root / name
        self.work, self.tmp = self.root / "work", self.root / "tmp"
        self.program, self.address = program, address
        self.root.mkdir()

    def prepare(self):
        shutil.rmtree(self.work, ignore_errors=True)
        shutil.rmtree(self.tmp, ignore_errors=True)
        self.tmp.mkdir()
        files = {
            "skills/calc/SKILL.md": DOCUMENT,
            "skills/calc/main.py": "print('main')\n",
            "skills/calc/requirements.txt": "beta>=1\n",
            "skills/crooked/SKILL.md": CROOKED,
            "bin/uv": UV,
            ".env": SETTINGS,
        }
        for name, text in files.items():
            path = self.work / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        (self.work / "bin/uv").chmod(0o755)
        shutil.copytree(EXAMPLES, self.work / "examples")

    def run(self, scenario, strace):
        """Returns status, standard output and error, and seconds; the status of a hang is None."""
        name, arguments, text = scenario
        environment = {
            "HOME": str(self.root), "TMPDIR": str(self.tmp), "TORTURE": str(self.root),
            "PATH": f"{self.work}/bin:/usr/bin:/bin", "LLM_API_BASE_URL": self.address,
            "LLM_API_KEY": "none", "LLM_TIMEOUT_SECONDS": "2", "SCRIPT_TIMEOUT_SECONDS": "10",
            "SCRIPT_PYTHON": "/usr/bin/python3", "LANG": "C.UTF-8",
        }
        words = [*strace, str(self.program), *arguments]
        since = time.monotonic()
        with (self.root / "out").open("wb") as out, (self.root / "err").open("wb") as err:
            process = subprocess.Popen(
                words, cwd=self.work, env=environment, stdout=out, stderr=err,
                stdin=subprocess.PIPE if text else subprocess.DEVNULL, start_new_session=True)
            try:
                process.communicate(text and text.encode(), timeout=PATIENCE_SECONDS)
                status = process.returncode
            except subprocess.TimeoutExpired:
                status = None
                self.end_family()
                process.kill()
                process.wait()
        took = time.monotonic() - since
        said = [(self.root / file).read_text(errors="replace") for file in ("out", "err")]
        return status, *said, took

    def family(self):
        """The living processes of this place, except strace."""
        marker, found = f"TORTURE={self.root}\0".encode(), []
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                is_zombie = b") Z " in (folder / "stat").read_bytes()
                if not is_zombie and marker in (folder / "environ").read_bytes():
                    if (folder / "comm").read_text() != "strace\n":
                        found.append(int(folder.name))
            except OSError:
                pass
        return found

    def end_family(self):
        for pid in self.family():
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass

    def tree(self):
        """All files of the working folder, by path."""
        found = {}
        for path in sorted(self.work.rglob("*")):
            name = str(path.relative_to(self.work))
            if path.is_symlink():
                found[name] = os.readlink(path)
            else:
                found[name] = path.read_bytes() if path.is_file() else None
        return found


def picture(pid):
    """Describes a process: its name, parent and state, and the kernel function it waits in."""
    try:
        folder = pathlib.Path("/proc", str(pid))
        name, rest = (folder / "stat").read_text().rsplit(")", 1)
        state, parent = rest.split()[:2]
        return f"{name}) of {parent}, {state}, {(folder / 'wchan').read_text()}"
    except OSError:
        return f"{pid}, gone"


def levelled(text, place):
    """The text without the parts that differ between runs."""
    text = text.replace(str(place.root), "PLACE")
    text = re.sub(r"skills-runner-[a-z]{16}", "TEMPORARY", text)
    text = re.sub(r'"(duration_ms|delay_ms)":\d+', r'"\1":0', text)
    return re.sub(r"\d+(\.\d+)? (ms|s)\b", "TIME", text)


class Undisturbed:
    """A scenario's run without failures."""

    def __init__(self, place, scenario):
        self.scenario = scenario
        place.prepare()
        self.before = place.tree()
        trace = place.root / "trace"
        strace = ["strace", "-f", "-qq", "-b", "execve", "-e", "signal=none", "-o", str(trace)]
        self.status, out, err, _ = place.run(scenario, strace)
        if self.status != (1 if scenario[0] == "check" else 0):
            sys.exit(f"torture: {scenario[0]} fails without injected failures ({self.status}):\n{out}{err}")
        self.out = levelled(out, place)
        self.after = place.tree()
        # The highest count of one process, and the calls of the loader: the program's
        # own begin where Rust's library checks the standard streams.
        self.calls, self.of_loader = collections.Counter(), {}
        counts = collections.Counter()
        for line in trace.read_text(errors="replace").splitlines():
            if match := re.match(r"(\d+) +([a-z_0-9]+)\(", line):
                if match[2] == "poll" and not self.of_loader:
                    self.of_loader = {name: count for (_, name), count in counts.items()}
                counts[match.groups()] += 1
        for (_, name), count in counts.items():
            self.calls[name] = max(self.calls[name], count)

    def cases(self):
        for syscall, count in self.calls.items():
            if syscall in UNFAIR:
                continue
            for error in ERRORS.get(syscall, ERRORS[None]).split():
                for number in range(1, min(count, 60) + 1):
                    for suffix in ("", "+"):
                        case = Case(self.scenario[0], syscall, error, f"{number}{suffix}")
                        if is_fair(case):
                            yield case


def is_fair(case):
    """Whether a run can be expected to handle the failure."""
    is_first = case.number in ("1", "1+")
    if case.syscall == "execve" and is_first:
        return False  # strace's own
    if case.syscall == "recvfrom" and case.error != "EINTR":
        # Rust's library fails on its own socket, and before that waits for the
        # started program, which waits for its input or forever.
        if case.scenario in ("doctor", "setup", "check"):
            return False
    return not (case.number.endswith("+") and case.error in PASSING)


def is_of_loader(case, base):
    """Whether a call fails that loads the program into memory."""
    return int(case.number.rstrip("+")) <= base.of_loader.get(case.syscall, 0)


def is_same_answer(case, base, out, err):
    if case.scenario in ("ask-lines", "ask-json", *SCRIPTS):
        lines = [json.loads(line) for line in out.splitlines()]
        last = lines[-1]
        if case.scenario in SCRIPTS:
            expected = json.loads(base.out)
            return all(last.get(key) == expected[key] for key in ("returncode", "stdout", "stderr"))
        return last["status"] == "ok" and last["answer"] == "The answer is 42."
    if out == base.out:
        return True
    # An item that could not be read is reported, and the run ends normally.
    if case.scenario == "demo":
        return out.startswith("(scripted reply)") and out.endswith(".\n") and "←" in err
    if case.scenario == "list":
        return is_reported(json.loads(base.out), json.loads(out))
    return case.scenario in ("doctor", "read", "check") and bool(REPORTED.search(out + err))


def is_reported(base, listed):
    """Whether each skill is listed as before or with a new problem."""
    before = [problem for row in base["skills"] for problem in row["problems"]]
    now = [problem for row in listed["skills"] for problem in row["problems"]]
    is_new = any(problem not in before for problem in now)
    if listed["problems"] or is_new:
        return True
    for row in base["skills"] + listed["skills"]:
        row.pop("python")  # missing if it could not be determined
        row.pop("path")  # relative if the working folder is unknown
    return listed["skills"] == base["skills"]


def library(err):
    """The library in which the program ended, if it panicked or was aborted there."""
    return next((name for name, words in LIBRARIES.items() if words.search(err)), None)


def errors_of(case, base, place, run):
    """The errors of a run."""
    status, out, err, took = run
    is_librarys = library(err)
    if status is None:
        yield f"hangs for {took:.0f} s"
    elif is_of_loader(case, base) and status in (-signal.SIGSEGV, 127) and not out:
        return  # a failure in glibc, before the program started
    elif status not in STATUSES and not (status in (-signal.SIGABRT, 101) and is_librarys):
        yield f"status {status}"
    if "panicked" in err and not is_librarys:
        yield "panics"
    if status == 0:
        try:
            if not is_same_answer(case, base, levelled(out, place), err):
                yield "status 0 without the whole answer"
        except (ValueError, KeyError, IndexError) as error:
            yield f"status 0 and broken output: {error}"
    elif status in STATUSES and not f"{out}{err}".strip() and "write" not in case.syscall:
        yield f"status {status} without any output"
    end = time.monotonic() + PARTING_SECONDS
    while (place.family() or any(place.tmp.iterdir())) and time.monotonic() < end:
        time.sleep(0.01)
    if family := place.family():
        yield f"{len(family)} processes are left: {', '.join(map(picture, family))}"
        place.end_family()
    # A run that aborts before its guardian started leaves its temporary folder.
    is_aborted = status == -signal.SIGABRT
    if any(place.tmp.iterdir()) and case.syscall not in REMOVING and not is_aborted:
        yield f"left in the temporary folder: {sorted(os.listdir(place.tmp))}"
    if case.scenario == "sandbox" and SETTINGS.strip() in out:
        yield "a script was not confined"
    tree = place.tree()
    log = tree.pop(LOG, b"")
    if case.scenario == "log":
        yield from gaps(log, out)
    yield from damage(base, tree)


def gaps(log, out):
    """Errors of the log, compared with the output."""
    try:
        kinds = [json.loads(line)["type"] for line in log.splitlines()]
    except (ValueError, KeyError):
        yield "a line of the log is broken"
    else:
        if '"returncode"' in out and "tool_call" not in kinds:
            yield "the started script is not in the log"


def damage(base, tree):
    for name, content in tree.items():
        known = [state[name] for state in (base.before, base.after) if name in state]
        if content not in known:
            # Files left by an interrupted setup or writer have recognizable names.
            if known or not re.search(r"(^|/)\.[^/]*(tmp|skills-runner|venv|old|new|\.\d+\.\d+$)", name):
                yield f"file {name} is {'damaged' if known else 'unknown'}"
    for name in base.before.keys() & base.after.keys() - {LOG}:
        if name not in tree:
            yield f"file {name} is lost"


def torture(case, base, place):
    place.prepare()
    inject = f"inject={case.syscall}:error={case.error}:when={case.number}"
    strace = ["strace", "-f", "-qq", "-b", "execve", "-e", "signal=none", "-o", "/dev/null",
              "-e", f"trace={case.syscall}", "-e", inject]
    run = place.run(base.scenario, strace)
    return run, list(errors_of(case, base, place, run))


def options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=3000, help="runs [3000]; 0: all cases")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time [2]")
    parser.add_argument("--only", help="one scenario")
    parser.add_argument("--syscall", help="one system call")
    parser.add_argument("--case", help="one case: SYSCALL:ERROR:NUMBER, with --only")
    return parser.parse_args()


def main():
    chosen = options()
    if not shutil.which("strace"):
        sys.exit("torture: strace is not installed\nhint: Debian, Ubuntu: apt install strace")
    os.nice(10)
    scenarios = [row for row in SCENARIOS if chosen.only in (None, row[0])]
    if not scenarios:
        sys.exit(f"torture: no scenario {chosen.only}: {', '.join(row[0] for row in SCENARIOS)}")
    with tempfile.TemporaryDirectory(prefix="torture-") as root:
        root, address = pathlib.Path(root), endpoint()
        program = chosen.program.resolve()
        first = Place(root, "first", program, address)
        bases = {row[0]: Undisturbed(first, row) for row in scenarios}
        cases = [case for base in bases.values() for case in base.cases()]
        cases = [case for case in cases if chosen.syscall in (None, case.syscall)]
        random.Random(chosen.seed).shuffle(cases)
        total = len(cases)
        cases = cases[: chosen.count] if chosen.count else cases
        if chosen.case:
            cases = [Case(name, *chosen.case.split(":")) for name in bases]
        places = queue.SimpleQueue()
        for number in range(chosen.jobs):
            places.put(Place(root, f"place-{number}", program, address))
        sys.exit(run_all(cases, bases, places, total, bool(chosen.case)))


def show_progress(done, total):
    if sys.stderr.isatty() or done % 500 == 0:
        print(f"{done} of {total}", end="\r" if sys.stderr.isatty() else "\n", file=sys.stderr)


def run_all(cases, bases, places, total, is_loud):
    def one(case):
        place = places.get()
        try:
            run, found = torture(case, bases[case.scenario], place)
        finally:
            places.put(place)
        if found or is_loud:
            name = " ".join(case)
            said = levelled(f"{run[1][-400:]}{run[2][-600:]}", place)
            print(f"{name}: {'; '.join(found)}\n    status {run[0]}\n{said}", flush=True)
        return run[0], bool(found), run[3], library(run[2])

    with concurrent.futures.ThreadPoolExecutor(places.qsize()) as pool:
        ran = []
        for result in pool.map(one, cases):
            ran.append(result)
            show_progress(len(ran), len(cases))
    statuses = collections.Counter(status for status, *_ in ran)
    slowest = max((took for _, _, took, _ in ran), default=0)
    bad = sum(is_bad for _, is_bad, *_ in ran)
    listed = ", ".join(f"{status}: {count}" for status, count in statuses.most_common())
    for name, count in collections.Counter(name for *_, name in ran if name).most_common():
        print(f"{count} ended by {name}")
    print(f"{len(ran)} runs of {total} cases, {bad} bad; slowest {slowest:.1f} s; status {listed}")
    return 1 if bad else 0


if __name__ == "__main__":
    main()

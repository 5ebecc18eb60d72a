#!/usr/bin/env python3
"""Repeatedly kills skills-runner with SIGKILL while it writes a session.

A development script: `make torture-sessions` runs it. It needs only Python.

    python3 tests/torture/sessions.py PROGRAM
    python3 tests/torture/sessions.py PROGRAM --count 500 --seed 7 --jobs 2

Each cycle continues a session, sends several questions to an endpoint on loopback
that answers immediately, with some tool calls and some long answers, and is killed
a few milliseconds later. A cycle passes if
- every line of the session's file except an incomplete last one is a record;
- the file has every question that the endpoint received, every answer that was
  printed on standard output, and every answer that was part of a later request;
- the next cycle's first request has all messages of the file, except a last
  question without an answer, which the new one replaces;
- no failure is reported, and no lock is left.
"""

import argparse
import json
import pathlib
import random
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time

CYCLES_OF_A_SESSION = 12
DOCUMENT = "---\nname: s\ndescription: d\n---\nThe document.\n"


class Endpoint:
    """The scripted endpoint: answers question `q7` with `a7`; every third one calls a tool first."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        self.requests = []
        self.came = threading.Event()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            connection, _ = self.listener.accept()
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        try:
            with connection, connection.makefile("rb") as reader:
                while line := reader.readline():
                    length = 0
                    while (line := reader.readline()) not in (b"\r\n", b""):
                        if line.lower().startswith(b"content-length:"):
                            length = int(line.split(b":")[1])
                    body = reader.read(length)
                    if len(body) < length:
                        return
                    connection.sendall(self.answer(json.loads(body)["messages"]))
        except OSError:
            pass

    def answer(self, messages):
        self.requests.append(messages)
        self.came.set()
        said = {"role": "assistant", "content": None}
        number = last_question(messages)
        if number % 3 == 0 and messages[-1]["role"] == "user":
            call = {"name": "get_skill", "arguments": '{"skill_name":"s"}'}
            said["tool_calls"] = [{"id": f"c{number}", "type": "function", "function": call}]
        else:
            said["content"] = f"a{number} " + padding(number)
        finish = "tool_calls" if said.get("tool_calls") else "stop"
        reply = {"choices": [{"index": 0, "message": said, "finish_reason": finish}]}
        body = json.dumps(reply).encode()
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        return head.encode() + body


def padding(number):
    # Long lines are written page by page and may be incomplete.
    return "x" * (150_000 if number % 17 == 0 else number % 900)


def number_of(text):
    return int(re.match(r"[qa](\d+)", text)[1])


def last_question(messages):
    return number_of(next(m for m in reversed(messages) if m["role"] == "user")["content"])


def read(path):
    """The messages of a session's file, and the length of its incomplete last line."""
    data = path.read_bytes() if path.exists() else b""
    lines = data.split(b"\n")
    torn = lines.pop()
    said = []
    for line in lines[1:]:
        try:
            record = json.loads(line)
        except ValueError:
            # A line that a kill cut off; all messages follow in a line of their own.
            continue
        if "add" in record:
            said.append(record["add"])
        elif "cut" in record:
            assert record["cut"] <= len(said), line
            said = said[: record["cut"]]
        elif "replace" in record:
            said = record["replace"]
    return said, len(torn), lines


def sent_text(message):
    """The text of a saved message as it is sent."""
    text = message.get("document", "") + message["text"]
    if message.get("kind") != "interrupted":
        return text
    return (text and text + "\n\n") + "(no answer: the turn was interrupted)"


class Job:
    def __init__(self, program, seed, count, number, end):
        self.program = program
        self.end = end
        self.random = random.Random(f"{seed}-{number}")
        self.count = count
        self.endpoint = Endpoint()
        self.question = 0
        self.figures = {"cycles": 0, "records": 0, "torn": 0, "before": 0, "sessions": 0}
        self.problems = []

    def run(self):
        with tempfile.TemporaryDirectory() as folder:
            self.folder = pathlib.Path(folder)
            skill = self.folder / "skills/s"
            skill.mkdir(parents=True)
            (skill / "SKILL.md").write_text(DOCUMENT)
            while self.figures["cycles"] < self.count and not self.problems and time.time() < self.end:
                self.session(f"s{self.figures['sessions']}")
                self.figures["sessions"] += 1

    def session(self, name):
        path = self.folder / f"sessions/{name}.jsonl"
        before = []
        for _ in range(CYCLES_OF_A_SESSION):
            try:
                before = self.cycle(name, path, before)
            except (AssertionError, ValueError, KeyError) as error:
                self.problems.append(f"{name}, cycle {self.figures['cycles']}: {type(error).__name__} {error}"[:2000])
            if self.problems:
                kept = pathlib.Path(tempfile.gettempdir()) / f"torture-{name}.jsonl"
                kept.write_bytes(path.read_bytes() if path.exists() else b"")
                self.problems.append(f"the file is {kept}")
                return
            self.figures["cycles"] += 1
        shown = subprocess.run([self.program, "sessions", "show", name, "--json"], env=self.environment(),
                               cwd=self.folder, capture_output=True)
        assert shown.returncode == 0 and not shown.stderr, shown.stderr
        assert "problem" not in json.loads(shown.stdout)
        path.unlink()

    def environment(self):
        return {
            "PATH": "/usr/bin:/bin",
            "HOME": str(self.folder),
            "SESSIONS_PATH": str(self.folder / "sessions"),
            "LLM_API_BASE_URL": f"http://127.0.0.1:{self.endpoint.port}/v1",
            "LLM_MODEL_NAME": "m",
        }

    def cycle(self, name, path, before):
        first = self.question + 1
        self.question += 60
        lines = "".join(f"q{n} {padding(n)}\n" for n in range(first, self.question + 1))
        (self.folder / "input").write_text(lines)
        self.endpoint.requests = seen = []
        self.endpoint.came.clear()
        with open(self.folder / "input") as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            process = subprocess.Popen([self.program, "--no-env-file", "chat", "--session", name], stdin=given,
                                       stdout=out, stderr=err, cwd=self.folder, env=self.environment())
            if self.random.random() < 0.9:
                self.endpoint.came.wait(20)
                time.sleep(self.random.uniform(0, 0.015))
            else:
                time.sleep(self.random.uniform(0, 0.03))
            process.kill()
            process.wait()
            time.sleep(0.001)
            out.seek(0)
            err.seek(0)
            printed, errors = out.read().decode(), err.read().decode()
        seen = list(seen)
        assert process.returncode == -9, f"status {process.returncode}: {errors}"
        assert "failed" not in errors, errors
        said, torn, lines = read(path)
        texts = {sent_text(message) for message in said}
        # Requests of earlier processes may be read only now.
        seen = [messages for messages in seen if last_question(messages) >= first]
        for messages in seen:
            for message in messages:
                # The messages of a request were saved before it was sent.
                known = message["role"] == "system" or not message["content"] or message["content"] in texts
                assert known, f"lost: {message['role']} {message['content'][:80]}"
        for line in printed.splitlines():
            # The last line may be incomplete because of the kill.
            whole = line in texts or not printed.endswith("\n") and line == printed.splitlines()[-1]
            assert whole, f"lost answer: {line[:80]}"
        if seen:
            expected = list(before)
            sent = [m for m in seen[0] if m["role"] != "system"]
            while expected and expected[-1]["role"] == "user":
                expected.pop()
            for old, new in zip(expected, sent):
                assert (old["role"], sent_text(old)) == (new["role"], new["content"] or ""), (old, new)
            assert len(sent) > len(expected), "the resumed conversation is shorter"
        else:
            self.figures["before"] += 1
        self.figures["torn"] += torn > 0
        self.figures["records"] += max(0, len(lines) - 1)
        return said


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("program")
    arguments.add_argument("--count", type=int, default=10_000)
    arguments.add_argument("--seed", default="1")
    arguments.add_argument("--jobs", type=int, default=2)
    arguments.add_argument("--seconds", type=float, default=7200, help="end after so long, as a failure")
    given = arguments.parse_args()
    program = str(pathlib.Path(given.program).resolve())
    began = time.time()
    each = -(-given.count // given.jobs)
    jobs = [Job(program, given.seed, each, number, began + given.seconds) for number in range(given.jobs)]
    threads = [threading.Thread(target=job.run) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    total = {name: sum(job.figures[name] for job in jobs) for name in jobs[0].figures}
    problems = [problem for job in jobs for problem in job.problems]
    for problem in problems:
        print(problem)
    print(
        f"{total['cycles']} kills in {time.time() - began:.0f} s over {total['sessions']} sessions: "
        f"{total['torn']} torn ends, {total['before']} before the first request; "
        f"{len(problems)} problems"
    )
    is_short = total["cycles"] < given.count
    sys.exit(1 if problems or is_short else 0)


main()

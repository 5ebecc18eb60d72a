#!/usr/bin/env python3
"""Writes facts from many processes at once, and kills writers at random.

A development script; `make test` runs small versions of both.

    python3 tests/torture/memory.py PROGRAM writers --writers 16 --facts 1000
    python3 tests/torture/memory.py PROGRAM kills --cycles 10000 --seed 7

`writers`: every fact of every writer is in the file at the end, once.
`kills`: `facts add` is killed by SIGKILL at a random moment. A fact that it printed
is acknowledged and must be in the file; the file must be readable after each
kill, and no other file may be left after the next write.
"""

import argparse
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time


def contents(program, environment):
    """The facts that the program reads from the file."""
    listed = subprocess.run(
        [program, "facts", "list", "--json"], env=environment, capture_output=True, check=False
    )
    if listed.returncode != 0:
        sys.exit(f"the file cannot be read: {listed.stderr.decode()}")
    return [fact["content"] for fact in json.loads(listed.stdout)["facts"]]


def writers(program, environment, arguments):
    def content(writer, number):
        return f"writer {writer} has number {number} of {writer}-{number}"

    failures = []

    def write(writer):
        for number in range(arguments.facts):
            done = subprocess.run(
                [program, "facts", "add", content(writer, number)],
                env=environment, capture_output=True, check=False,
            )
            if done.returncode != 0:
                failures.append(done.stderr.decode())

    began = time.monotonic()
    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(arguments.writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.monotonic() - began
    expected = sorted(
        content(writer, number)
        for writer in range(arguments.writers) for number in range(arguments.facts)
    )
    found = sorted(contents(program, environment))
    print(f"{len(found)} of {len(expected)} facts, {len(failures)} failures, {seconds:.0f} s")
    if failures:
        print(failures[0], end="")
    return found == expected and not failures


def kills(program, environment, arguments):
    chance = random.Random(arguments.seed)
    folder = pathlib.Path(environment["MEMORY_PATH"]).parent
    acknowledged, killed, left = [], 0, 0
    longest = 0.02
    for cycle in range(arguments.cycles):
        # A small file, so that many kills happen during a write.
        if cycle % 200 == 0:
            for path in folder.glob("*"):
                path.unlink()
            acknowledged = []
        text = f"number {cycle} is here"
        began = time.monotonic()
        child = subprocess.Popen(
            [program, "facts", "add", text],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )
        try:
            child.wait(chance.uniform(0, longest))
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGKILL)
        printed = child.communicate()[0].decode()
        if child.returncode == -signal.SIGKILL:
            killed += 1
        else:
            # Most writers should be killed before they end.
            longest = 0.9 * longest + 0.1 * 1.3 * (time.monotonic() - began)
        if printed.startswith("remembered:"):
            acknowledged.append(text)
        left += any(path.name.startswith(".") for path in folder.iterdir()) if folder.exists() else 0
        if cycle % 20 == 0 or not acknowledged:
            found = set(contents(program, environment))
        else:
            lines = (folder / "facts.md").read_text().splitlines()
            found = {line[15:].split(" <!--")[0] for line in lines if line.startswith("- [")}
        missing = set(acknowledged) - found
        if missing:
            print(f"cycle {cycle}: lost: {sorted(missing)}")
            return False
        if cycle % 1000 == 999:
            print(f"{cycle + 1} cycles, {killed} killed", flush=True)
    subprocess.run([program, "facts", "add", "the last one"], env=environment, check=True)
    names = sorted(os.listdir(folder))
    print(f"{arguments.cycles} cycles, {killed} killed, {left} left a file behind, at the end {names}")
    return names == ["facts.md"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("program")
    parser.add_argument("trial", choices=["writers", "kills"])
    parser.add_argument("--writers", type=int, default=16)
    parser.add_argument("--facts", type=int, default=1000)
    parser.add_argument("--cycles", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    program = str(pathlib.Path(arguments.program).resolve())
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        environment = {
            "PATH": os.environ["PATH"], "HOME": folder, "MEMORY_PATH": f"{folder}/kept/facts.md",
        }
        trial = {"writers": writers, "kills": kills}[arguments.trial]
        sys.exit(0 if trial(program, environment, arguments) else 1)


if __name__ == "__main__":
    main()

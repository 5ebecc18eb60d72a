#!/usr/bin/env python3
"""Checks `skills-runner mcp` with third-party clients: the MCP Inspector, both
Python SDKs, a LangChain agent, and the protocol's conformance scenarios.

A development script; it installs packages in the given folder.

    python3 tests/clients/clients.py PROGRAM target/clients
    python3 tests/clients/clients.py PROGRAM target/clients inspector python langchain

It prints a line for each check at the end. A failed check also prints its output, and
the exit status is then 1.
"""

import argparse
import json
import pathlib
import sys

from bench import Bench, Failure
from conformance import conformance
from environments import PYTHON_ENVIRONMENTS
from inspector import inspector

HERE = pathlib.Path(__file__).parent


def python(bench):
    legacy, modern = (f"mcp {PYTHON_ENVIRONMENTS[name]['mcp']}" for name in ("legacy", "modern"))
    run_checks(bench, legacy, "legacy", "python_legacy.py")
    run_checks(bench, modern, "modern", "python_modern.py")
    run_checks(bench, f"{modern}, legacy", "modern", "python_modern.py", ["legacy"])


def langchain(bench):
    client = f"langchain-mcp-adapters {PYTHON_ENVIRONMENTS['langchain']['langchain-mcp-adapters']}"
    run_checks(bench, client, "langchain", "langchain_agent.py")
    run_checks(
        bench, f"{client}, skills as tools", "langchain", "langchain_agent.py",
        ["skills-as-tools"], ["--skills-as-tools"],
    )


def run_checks(bench, client, environment, script, arguments=(), options=()):
    """Runs a program that runs checks itself, and records their outcomes."""
    print(client, file=sys.stderr, flush=True)
    command = [bench.environments.python(environment), HERE / script, *arguments]
    server = {
        "SERVER_COMMAND": json.dumps([*bench.server, *options]),
        "SERVER_ENVIRONMENT": json.dumps(bench.settings),
        "SKILLS": str(bench.skills),
        "MANY_COMMAND": json.dumps(bench.server_of_many),
        "MANY_SKILLS": str(bench.many_skills),
    }
    try:
        done = bench.run(command, PYTHONDONTWRITEBYTECODE="1", **server)
    except Failure as failure:
        return bench.note(False, client, script, str(failure), failure.output)
    rows = [line.split("\t") for line in done.stdout.splitlines() if line.count("\t") == 2]
    for mark, name, seen in rows:
        detail = done.stderr.partition(f"--- {name}\n")[2].partition("\n--- ")[0]
        bench.note(mark == "ok", client, name, seen, detail)
    if done.returncode != any(mark != "ok" for mark, _, _ in rows) or not rows:
        output = done.stdout + done.stderr
        bench.note(False, client, script, f"exit {done.returncode}", output)


GROUPS = {group.__name__: group for group in (inspector, python, langchain, conformance)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("program")
    parser.add_argument("folder", help="where packages are installed")
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"of {', '.join(GROUPS)}")
    arguments = parser.parse_args()
    if unknown := set(arguments.groups) - GROUPS.keys():
        parser.error(f"no such group: {', '.join(unknown)}")
    bench = Bench(arguments.program, arguments.folder)
    for name in arguments.groups or GROUPS:
        GROUPS[name](bench)
    clients = max(len(client) for _, client, _, _ in bench.rows)
    names = max(len(name) for _, _, name, _ in bench.rows)
    for passed, client, name, seen in bench.rows:
        print(f"{'ok' if passed else 'FAILED':6}  {client:{clients}}  {name:{names}}  {seen}")
    failed = sum(not passed for passed, _, _, _ in bench.rows)
    print(f"{len(bench.rows)} checks, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()

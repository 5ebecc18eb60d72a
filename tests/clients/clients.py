#!/usr/bin/env python3
"""Puts other people's clients in front of `skills-runner mcp`: the MCP Inspector,
both Python SDKs, a LangChain agent, and the protocol's conformance scenarios.

A development script; it installs packages under the folder it is given.

    python3 tests/clients/clients.py PROGRAM target/clients
    python3 tests/clients/clients.py PROGRAM target/clients inspector python langchain

At the end there is a line for each check; one that failed shows what it said, and
makes the exit status 1.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from bridge import bridged
from environments import NODE_PACKAGES, PYTHON_ENVIRONMENTS, Environments

HERE = pathlib.Path(__file__).parent
CHECK_SECONDS = 300
NEWEST = {"legacy": "2025-11-25", "modern": "2026-07-28"}
NOT_LISTED = "left-out"

# What the skills of this project do not have: nested frontmatter, names that need
# care in an address, a file that is no text, a skill without frontmatter.
MORE_SKILLS = {
    "brewing/SKILL.md": """---
name: brewing
description: "How to brew: tea, coffee. Use it for hot drinks."
argument-hint: "[drink]"
metadata:
  tags: [tea, coffee]
  author: {name: Ana, since: 2019}
  strength: 3
---

# Brewing

Brew $ARGUMENTS as references/ says.
""",
    "brewing/references/thé vert #1.md": "Two minutes at 75 °C.\n",
    "brewing/assets/cup.bin": bytes(range(256)),
    f"{NOT_LISTED}/SKILL.md": "# No frontmatter\n\nNothing says what this is for.\n",
    f"{NOT_LISTED}/notes.md": "A file of it.\n",
}

CONFORMANCE = [
    *((name, NEWEST["legacy"]) for name in (
        "server-initialize", "ping", "tools-list", "resources-list", "prompts-list",
    )),
    *((name, NEWEST["modern"]) for name in (
        "tools-list", "resources-list", "prompts-list", "caching", "server-stateless",
        "sep-2164-resource-not-found", "input-required-result-unsupported-methods",
    )),
    *((f"sep-2640-skills-{name}", None) for name in ("enumeration", "manifest", "directory")),
    # Those are about HTTP: they show that the bridge does as it should.
    ("server-session-lifecycle", NEWEST["legacy"]),
    ("http-header-validation", NEWEST["modern"]),
    *(("dns-rebinding-protection", version) for version in NEWEST.values()),
]
# What the suite can see only in a server with tools `test_…` of the suite's own; it
# says so of each.
NEED_TEST_TOOLS = {
    "sep-2575-server-rejects-undeclared-capability",
    "sep-2575-missing-capability-http-400",
    "sep-2575-http-server-no-independent-requests-on-stream",
    "sep-2575-server-no-log-without-loglevel",
}
# What is about subscriptions, which the server does not offer.
NEED_SUBSCRIPTIONS = {
    "sep-2575-server-sends-subscription-ack",
    "sep-2575-server-tags-subscription-id",
    "sep-2575-server-honors-notification-filter",
    "sep-2575-server-sends-prompts-list-changed-on-subscription",
    "sep-2575-server-sends-tools-list-changed-on-subscription",
}


class Failure(Exception):
    """A check has failed: in a few words, and all that was said."""

    def __init__(self, why, output=""):
        super().__init__(why)
        self.output = output


class Bench:
    """What the checks work with, and their outcomes."""

    def __init__(self, program, folder):
        self.environments = Environments(folder)
        work = self.environments.folder / "work"
        shutil.rmtree(work, ignore_errors=True)
        self.skills = work / "skills"
        shutil.copytree(
            HERE.parent.parent / "skills", self.skills,
            ignore=shutil.ignore_patterns("venv", ".venv", "__pycache__"),
        )
        for path, content in MORE_SKILLS.items():
            file = self.skills / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content if isinstance(content, bytes) else content.encode())
        program = pathlib.Path(program).absolute()
        self.work = work
        self.server = [str(program), "--no-env-file", "--skills", str(self.skills), "mcp"]
        self.settings = {
            "HOME": str(work),
            "PATH": os.environ.get("PATH", os.defpath),
            "MEMORY_PATH": str(work / "facts.json"),
            "NOTES_FOLDER_PATH": str(work / "notes"),
        }
        self.rows = []

    def note(self, passed, client, name, seen, output=""):
        self.rows.append((passed, client, name, seen))
        if not passed:
            print(f"--- {client}: {name}\n{output.rstrip()}\n", flush=True)

    def check(self, client, name, check, *arguments):
        """Runs a function that says what it saw."""
        print(f"{client}: {name}", file=sys.stderr, flush=True)
        try:
            self.note(True, client, name, check(*arguments))
        except Failure as failure:
            self.note(False, client, name, str(failure), failure.output)
        except (OSError, ValueError, LookupError, AssertionError) as fault:
            self.note(False, client, name, f"{type(fault).__name__}: {fault}")

    def run(self, command, **more):
        """Runs a client; its status and what it said."""
        environment = {**self.settings, **more}
        environment["PATH"] = f"{self.environments.node.parent}:{environment['PATH']}"
        try:
            return subprocess.run(
                [str(word) for word in command], capture_output=True, text=True, check=False,
                cwd=self.work, env=environment, timeout=CHECK_SECONDS, stdin=subprocess.DEVNULL,
            )
        except subprocess.TimeoutExpired as late:
            said = ((late.stdout or b"") + (late.stderr or b"")).decode(errors="replace")
            raise Failure(f"not done after {CHECK_SECONDS} s", said) from late


# The Inspector

def inspector(bench):
    client = f"inspector {NODE_PACKAGES['@modelcontextprotocol/inspector']}"
    for era in ("legacy", "auto", "modern"):
        bench.check(client, f"tools/list --strict, {era}", strict_list, bench, era)
    bench.check(client, "skills/list --verify --require-digests", verify, bench)
    for era in ("legacy", "modern"):
        for method, check in (
            ("resources/list", resources_list),
            ("resources/read", resources_read),
            ("prompts/list", prompts_list),
            ("prompts/get", prompts_get),
            ("tools/call run_python_script", run_script),
        ):
            bench.check(client, f"{method}, {era}", check, bench, era)
    bench.check(client, "resources/directory/read, modern", directory_read, bench)
    bench.check(client, "tools/call list_skills --load, modern", load, bench)


def inspect(bench, era, method, *options):
    """What the Inspector writes on standard output, once it is content."""
    command = [
        *bench.environments.command("@modelcontextprotocol/inspector"), "--cli",
        "--protocol-era", era, "--method", method, *options, "--", *bench.server,
    ]
    done = bench.run(command)
    if done.returncode != 0:
        why = (done.stderr or done.stdout).strip().splitlines() or [""]
        raise Failure(f"exit {done.returncode}: {why[-1][:200]}", done.stdout + done.stderr)
    return done.stdout


def ask(bench, era, method, *options):
    return json.loads(inspect(bench, era, method, "--format", "json", *options))["result"]


def expect(condition, seen):
    if not condition:
        raise Failure("another answer", json.dumps(seen, indent=2, ensure_ascii=False))


def strict_list(bench, era):
    tools = json.loads(inspect(bench, era, "tools/list", "--strict"))["tools"]
    expect(len(tools) >= 4, tools)
    return f"{len(tools)} tools"


def verify(bench):
    said = inspect(bench, "modern", "skills/list", "--verify", "--require-digests", "--format", "json")
    names = sorted(folder.name for folder in bench.skills.iterdir() if folder.name != NOT_LISTED)
    for name in names:
        expect(f"skill://{name}/SKILL.md" in said, said)
    expect(f"skill://{NOT_LISTED}/" not in said, said)
    return f"{len(names)} skills"


def resources_list(bench, era):
    resources = ask(bench, era, "resources/list")["resources"]
    files = sum(path.is_file() for path in bench.skills.rglob("*"))
    expect(len(resources) >= files, resources)
    return f"{len(resources)} resources"


def resources_read(bench, era):
    result = ask(bench, era, "resources/read", "--uri", "skill://calculator/SKILL.md")
    document = (bench.skills / "calculator" / "SKILL.md").read_text()
    expect([content["text"] for content in result["contents"]] == [document], result)
    return f"{len(document)} characters"


def directory_read(bench):
    result = ask(bench, "modern", "resources/directory/read", "--uri", "skill://calculator")
    kinds = {resource["uri"]: resource.get("mimeType") for resource in result["resources"]}
    expect("skill://calculator/SKILL.md" in kinds, result)
    expect(kinds.get("skill://calculator/scripts") == "inode/directory", result)
    return f"{len(kinds)} in a folder"


def prompts_list(bench, era):
    prompts = ask(bench, era, "prompts/list")["prompts"]
    names = {prompt["name"] for prompt in prompts}
    expect({folder.name for folder in bench.skills.iterdir()} <= names, prompts)
    return f"{len(prompts)} prompts"


def prompts_get(bench, era):
    options = ("--prompt-name", "brewing", "--prompt-args", "arguments=green tea")
    result = ask(bench, era, "prompts/get", *options)
    expect("Brew green tea as" in result["messages"][0]["content"]["text"], result)
    return "the arguments are filled in"


def run_script(bench, era):
    arguments = {"skill_name": "calculator", "script": "print(6 * 7)"}
    options = ("--tool-name", "run_python_script", "--tool-args-json", json.dumps(arguments))
    result = ask(bench, era, "tools/call", *options)
    expect(result["structuredContent"]["stdout"] == "42\n" and not result["isError"], result)
    return "prints 42"


def load(bench):
    figures = json.loads(inspect(
        bench, "modern", "tools/call", "--tool-name", "list_skills", "--load",
        "--load-requests", "2000", "--load-concurrency", "20",
    ))
    expect(figures["ok"] == 2000 and figures["errors"] == figures["toolErrors"] == 0, figures)
    latency = figures["latencyMs"]
    return (
        f"2000 calls, {figures['throughput']:.0f} a second, "
        f"ms: p50 {latency['p50']}, p99 {latency['p99']}, most {latency['max']}"
    )


# The Python clients

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
    """Takes over the lines of a program that runs checks itself."""
    print(client, file=sys.stderr, flush=True)
    command = [bench.environments.python(environment), HERE / script, *arguments]
    server = {
        "SERVER_COMMAND": json.dumps([*bench.server, *options]),
        "SERVER_ENVIRONMENT": json.dumps(bench.settings),
        "SKILLS": str(bench.skills),
    }
    try:
        done = bench.run(command, PYTHONDONTWRITEBYTECODE="1", **server)
    except Failure as failure:
        return bench.note(False, client, script, str(failure), failure.output)
    rows = [line.split("\t") for line in done.stdout.splitlines() if line.count("\t") == 2]
    for mark, name, seen in rows:
        told = done.stderr.partition(f"--- {name}\n")[2].partition("\n--- ")[0]
        bench.note(mark == "ok", client, name, seen, told)
    if done.returncode != any(mark != "ok" for mark, _, _ in rows) or not rows:
        output = done.stdout + done.stderr
        bench.note(False, client, script, f"exit {done.returncode}", output)


# Conformance

def conformance(bench):
    client = f"conformance {NODE_PACKAGES['@modelcontextprotocol/conformance']}"
    told = bench.work / "server.log"
    with told.open("wb") as log, bridged(bench.server, log) as bridge:
        for scenario, version in CONFORMANCE:
            name = f"{scenario}, {version}" if version else scenario
            bench.check(client, name, conform, bench, bridge.url, scenario, version)
    ends = "; ".join(bridge.faults) or f"{len(bridge.ends)}, all with status 0"
    output = told.read_text(errors="replace")
    bench.note(not bridge.faults, client, "the servers have ended", ends, output)


def conform(bench, url, scenario, version):
    with tempfile.TemporaryDirectory(dir=bench.work) as folder:
        command = [
            *bench.environments.command("@modelcontextprotocol/conformance"), "server",
            "--url", url, "--scenario", scenario, "--output-dir", folder,
        ]
        done = bench.run(command + (["--spec-version", version] if version else []))
        found = list(pathlib.Path(folder).rglob("checks.json"))
        if len(found) != 1:
            raise Failure(f"exit {done.returncode}, no result", done.stdout + done.stderr)
        checks = json.loads(found[0].read_text())
    faults, left, passed = [], 0, 0
    for check in checks:
        if check["status"] == "SUCCESS":
            passed += 1
        elif does_not_apply(check):
            left += 1
        else:
            faults.append(check)
    if faults or not passed:
        ids = [check["id"] for check in faults]
        why = "; ".join(ids[:3]) + (f" and {len(ids) - 3} more" if len(ids) > 3 else "")
        raise Failure(why or "nothing was checked", json.dumps(faults or checks, indent=2))
    return f"{passed} passed" + (f", {left} do not apply" if left else "")


def does_not_apply(check):
    """Whatever else the suite leaves out would be missing unseen, so it is a fault."""
    if check["id"] in NEED_TEST_TOOLS:
        return (check.get("details") or {}).get("untestable")
    return check["status"] == "SKIPPED" and check["id"] in NEED_SUBSCRIPTIONS


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

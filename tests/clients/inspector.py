"""Checks the server with the MCP Inspector's command line, in both eras."""

import json

from bench import MANY, NOT_LISTED, Failure
from environments import NODE_PACKAGES


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
    for method in ("skills/list", "resources/list", "tools/list"):
        bench.check(client, f"{method} of many, modern", list_many, bench, method)
    bench.check(client, "tools/call list_skills --load, modern", load, bench)


def inspect(bench, era, method, *options, server=None):
    """The output of the Inspector, which must succeed."""
    command = [
        *bench.environments.command("@modelcontextprotocol/inspector"), "--cli",
        "--protocol-era", era, "--method", method, *options, "--",
        *(server or bench.server),
    ]
    done = bench.run(command)
    if done.returncode != 0:
        why = (done.stderr or done.stdout).strip().splitlines() or [""]
        raise Failure(f"exit {done.returncode}: {why[-1][:200]}", done.stdout + done.stderr)
    return done.stdout


def ask(bench, era, method, *options, **more):
    said = inspect(bench, era, method, "--format", "json", *options, **more)
    return json.loads(said)["result"]


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


def list_many(bench, method):
    """The Inspector requests the later pages itself."""
    result = ask(bench, "modern", method, server=bench.server_of_many)
    listed = result[method.partition("/")[0]]
    if len(listed) < MANY:
        raise Failure(f"{len(listed)} of {MANY}")
    return f"{len(listed)}, in pages"


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

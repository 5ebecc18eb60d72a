"""The checks that run with each of the two Python clients. Both programs implement
`Peer`, through which the checks use the client."""

import base64
import dataclasses
import json
import os
import pathlib
import random
import time
import urllib.parse

HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
SLEEP = "import time; time.sleep({})"


@dataclasses.dataclass
class Tool:
    name: str
    input: dict
    output: dict | None
    hints: dict


@dataclasses.dataclass
class Result:
    is_error: bool
    structured: dict | None
    text: str


class Failure(Exception):
    """An error answer or a timeout; `code` is the client's."""

    def __init__(self, code, message):
        super().__init__(f"{code}: {message}")
        self.code = code


class Peer:
    """A client connected to its server. Errors that the client itself detects (in the form
    of an answer, or in structured results against their schema) fail a check too."""

    # The error code for an unknown address.
    no_resource = None

    async def about(self):
        """Protocol version, server name, instructions, capabilities."""
        raise NotImplementedError

    async def tools(self):
        raise NotImplementedError

    async def call(self, name, arguments, seconds=None, progress=None):
        """After `seconds` the call is cancelled and raises `Failure`."""
        raise NotImplementedError

    async def resources(self):
        """Addresses with their media types."""
        raise NotImplementedError

    async def read(self, uri):
        """The bytes."""
        raise NotImplementedError

    async def prompts(self):
        """Names with the names of their arguments."""
        raise NotImplementedError

    async def prompt(self, name, arguments):
        """The text of all messages."""
        raise NotImplementedError


def bytes_of(contents, uri):
    """The bytes of a read resource, which must have one entry with this address."""
    (content,) = contents
    assert str(content.uri) == uri, content
    if hasattr(content, "text"):
        return content.text.encode()
    return base64.b64decode(content.blob, validate=True)


def server(which="SERVER_COMMAND"):
    """Command, arguments and environment of a server, as set by clients.py."""
    command, *arguments = json.loads(os.environ[which])
    environment = json.loads(os.environ["SERVER_ENVIRONMENT"])
    return command, arguments, environment


SKILLS = pathlib.Path(os.environ.get("SKILLS", ""))
# The folder of a server with several pages of skills, each of them a tool.
MANY_SKILLS = pathlib.Path(os.environ.get("MANY_SKILLS", ""))
MANY = "MANY_COMMAND"


async def hello(peer, version):
    spoken, name, instructions, offers = await peer.about()
    assert spoken == version, spoken
    assert name == "skills-runner", name
    assert "calculator" in instructions, instructions
    for offer in ("tools", "resources", "prompts"):
        assert offer in offers, f"{offer} is not offered: {offers}"
    return f"speaks {spoken}"


async def each_tool(peer):
    tools = {tool.name: tool for tool in await peer.tools()}
    for tool in tools.values():
        assert tool.input["type"] == "object", tool
        for hint in HINTS:
            assert isinstance(tool.hints[hint], bool), f"{tool.name}: {hint}: {tool.hints}"
    first, second = random.randrange(10**6, 10**9), random.randrange(10**6, 10**9)
    calculation = ["eval", f"{first} * {second}"]
    calls = {
        "list_skills": ({}, '"calculator"'),
        "get_skill": ({"skill_name": "calculator"}, "scripts/calc.py eval"),
        "read_file_in_skill": (
            {"skill_name": "calculator", "file_path": "references/functions.md"}, "sqrt",
        ),
        "run_python_script": (
            {"skill_name": "calculator", "file_path": "scripts/calc.py", "args": calculation},
            str(first * second),
        ),
        "remember_fact": ({"content": f"the factor is {first}"}, ""),
        "write_daily_note": ({"activity": f"multiplied {first}"}, ""),
        "read_daily_note": ({}, f"multiplied {first}"),
    }
    assert tools.keys() == calls.keys(), tools.keys() ^ calls.keys()
    for name, (arguments, expected) in calls.items():
        result = await peer.call(name, arguments)
        assert not result.is_error, f"{name}: {result}"
        assert expected in result.text, f"{name}: no {expected} in {result}"
        if tools[name].output is not None:
            # The text of a script's result is not JSON.
            assert expected in json.dumps(result.structured), f"{name}: {result}"
    structured = sum(tool.output is not None for tool in tools.values())
    return f"{len(tools)} tools called, {structured} with structured results"


async def failing_calls(peer):
    source = "import sys; print('half'); sys.exit(3)"
    result = await peer.call("run_python_script", {"skill_name": "calculator", "script": source})
    assert result.is_error and result.structured["returncode"] == 3, result
    assert result.structured["stdout"] == "half\n", result
    result = await peer.call("get_skill", {"skill_name": "calculater"})
    assert result.is_error and "calculator" in result.text, result
    result = await peer.call("get_skill", {"skill_name": 7})
    assert result.is_error, result
    try:
        await peer.call("no_such_tool", {})
    except Failure as failure:
        assert failure.code == -32602, failure
    else:
        raise AssertionError("an unknown tool has a result")
    return "failing script, wrong arguments, unknown tool"


async def each_resource(peer):
    listed = await peer.resources()
    addresses = [uri for uri, _ in listed]
    assert len(set(addresses)) == len(addresses), "an address twice"
    files = 0
    for folder in sorted(SKILLS.iterdir()):
        for file in sorted(path for path in folder.rglob("*") if path.is_file()):
            path = urllib.parse.quote(file.relative_to(folder).as_posix())
            uri = f"skill://{folder.name}/{path}"
            assert uri in addresses, f"{uri} is not listed"
            assert await peer.read(uri) == file.read_bytes(), uri
            files += 1
    for uri in ("skill://calculator/no-such-file", "skill://calculator/../../etc/passwd",
                "skill://nobody/SKILL.md"):
        try:
            await peer.read(uri)
        except Failure as failure:
            assert failure.code == peer.no_resource, f"{uri}: {failure}"
        else:
            raise AssertionError(f"{uri} was read")
    return f"{files} files read of {len(listed)} resources"


async def each_prompt(peer):
    prompts = dict(await peer.prompts())
    names = {folder.name for folder in SKILLS.iterdir()}
    assert names <= prompts.keys(), names - prompts.keys()
    for name, arguments in prompts.items():
        assert arguments == ["arguments"], f"{name}: {arguments}"
    text = await peer.prompt("calculator", {"arguments": "one and one"})
    assert "scripts/calc.py eval" in text and "one and one" in text, text
    text = await peer.prompt("calculator", {})
    assert "scripts/calc.py eval" in text, text
    try:
        await peer.prompt("nobody", {})
    except Failure as failure:
        assert failure.code == -32602, failure
    else:
        raise AssertionError("an unknown prompt has a text")
    return f"{len(prompts)} prompts"


async def progress(peer):
    values = []
    arguments = {"skill_name": "calculator", "script": SLEEP.format(3.5)}
    result = await peer.call("run_python_script", arguments, progress=values.append)
    assert not result.is_error, result
    assert values and values == sorted(set(values)), f"progress: {values}"
    return f"{len(values)} notifications in 3.5 s"


async def cancel(peer):
    """A cancelled script ends, and the next one runs immediately."""
    mark = SKILLS.parent / f"lives-{random.randrange(10**9)}"
    source = f"import os; open({str(mark)!r}, 'w').write(str(os.getpid())); " + SLEEP.format(60)
    arguments = {"skill_name": "calculator", "script": source}
    try:
        await peer.call("run_python_script", arguments, seconds=2)
    except Failure:
        pass
    else:
        raise AssertionError("the script had an answer")
    began = time.monotonic()
    arguments = {"skill_name": "calculator", "script": "print(6 * 7)"}
    result = await peer.call("run_python_script", arguments)
    seconds = time.monotonic() - began
    assert result.structured["stdout"] == "42\n", result
    assert seconds < 5, f"the next script had its answer after {seconds:.1f} s"
    script = mark.read_text()
    mark.unlink()
    assert not pathlib.Path("/proc", script).exists(), "the cancelled script lives"
    return f"killed; the next script was answered after {seconds * 1000:.0f} ms"


async def many_skills(peer):
    """No entry is lost between pages."""
    names = [folder.name for folder in sorted(MANY_SKILLS.iterdir())]
    tools = [tool.name for tool in await peer.tools()]
    assert len(set(tools)) == len(tools), "a tool twice"
    assert set(names) < set(tools), set(names) - set(tools)
    assert [name for name, _ in await peer.prompts()] == names
    addresses = [uri for uri, _ in await peer.resources()]
    assert addresses == [f"skill://{name}/SKILL.md" for name in names]
    return f"{len(names)} skills, {len(tools)} tools, in pages"


def checks(connect, version):
    """All checks; `connect` is a context manager that returns a `Peer`."""

    def on_a_server(check, *more, which="SERVER_COMMAND"):
        async def checked():
            async with connect(which) as peer:
                return await check(peer, *more)

        return checked

    return [
        ("beginning", on_a_server(hello, version)),
        ("each tool", on_a_server(each_tool)),
        ("failing calls", on_a_server(failing_calls)),
        ("resources", on_a_server(each_resource)),
        ("prompts", on_a_server(each_prompt)),
        ("progress", on_a_server(progress)),
        ("cancelling", on_a_server(cancel)),
        ("many skills", on_a_server(many_skills, which=MANY)),
    ]

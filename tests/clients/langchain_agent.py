"""Checks the server's tools with a LangChain agent and the package
langchain-mcp-adapters. The model is LangChain's own fake with scripted answers; the
agent, the adapter, the tools and the scripts are real. With the argument
`skills-as-tools` the server offers each skill as a tool, and the agent calls that."""

import random
import sys

from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.prompts import load_mcp_prompt
from langchain_mcp_adapters.resources import load_mcp_resources
from langchain_mcp_adapters.tools import load_mcp_tools

import python_checks
import report

AS_TOOLS = sys.argv[1:] == ["skills-as-tools"]


class ScriptedModel(GenericFakeChatModel):
    """LangChain's fake model, extended for use in an agent: it accepts tools and records
    its prompts, to check what a real model would get."""

    asked: list = []
    tools: list = []

    def bind_tools(self, tools, **_):
        self.tools.extend(tool.name for tool in tools)
        return self

    def _generate(self, messages, *args, **kwargs):
        self.asked.append(list(messages))
        return super()._generate(messages, *args, **kwargs)


def connection(which="SERVER_COMMAND"):
    command, arguments, environment = python_checks.server(which)
    return {"transport": "stdio", "command": command, "args": arguments, "env": environment}


def server():
    return MultiServerMCPClient({"skills": connection()}).session("skills")


def asks_for(name, **arguments):
    call = {"name": name, "args": arguments, "id": f"call-{random.randrange(10**9)}"}
    return AIMessage(content="", tool_calls=[call])


def text_of(message):
    """The text of a message whose content is a text or a list of blocks."""
    if isinstance(message.content, str):
        return message.content
    return "".join(block["text"] for block in message.content)


async def ask(session, answers):
    """Runs an agent with a model that gives these answers; returns the model and the tool
    results that it got."""
    tools = await load_mcp_tools(session)
    model = ScriptedModel(messages=iter([*answers, AIMessage(content="done")]), asked=[], tools=[])
    agent = create_agent(model, tools)
    ended = await agent.ainvoke({"messages": [HumanMessage("What do they make?")]})
    assert ended["messages"][-1].content == "done", ended
    assert len(model.asked) == len(answers) + 1, len(model.asked)
    return model, [message for message in model.asked[-1] if isinstance(message, ToolMessage)]


async def tools():
    """Loads the tools as most programs do: each call starts its own server."""
    loaded = await MultiServerMCPClient({"skills": connection()}).get_tools()
    names = {tool.name for tool in loaded}
    wanted = {"list_skills", "get_skill", "read_file_in_skill", "run_python_script"}
    if AS_TOOLS:
        wanted |= {folder.name for folder in python_checks.SKILLS.iterdir()}
    assert wanted <= names, wanted - names
    assert all(tool.description for tool in loaded)
    run = next(tool for tool in loaded if tool.name == "run_python_script")
    output = await run.ainvoke({"skill_name": "calculator", "script": "print(6 * 7)"})
    assert "42" in output[0]["text"], output
    return f"{len(loaded)} tools"


async def agent():
    first, second = random.randrange(10**6, 10**9), random.randrange(10**6, 10**9)
    reads = asks_for("get_skill", skill_name="calculator")
    if AS_TOOLS:
        reads = asks_for("calculator", arguments=f"{first} times {second}")
    answers = [
        asks_for("list_skills"),
        reads,
        asks_for(
            "run_python_script", skill_name="calculator", file_path="scripts/calc.py",
            args=["eval", f"{first} * {second}"],
        ),
    ]
    async with server() as session:
        model, results = await ask(session, answers)
    assert {"list_skills", "run_python_script"} <= set(model.tools), model.tools
    skills, document, output = (text_of(result) for result in results)
    assert '"calculator"' in skills, skills
    assert "scripts/calc.py eval" in document, document
    if AS_TOOLS:
        assert f"{first} times {second}" in document, document
    assert str(first * second) in output, output
    assert all(result.status == "success" for result in results), results
    assert results[2].artifact["structured_content"]["returncode"] == 0, results[2]
    return f"the script's {first * second} reached the model"


async def failing_script():
    """The model gets the error, and the agent continues."""
    wrong = asks_for("run_python_script", skill_name="calculator", script="1 / 0")
    async with server() as session:
        _, results = await ask(session, [wrong, asks_for("list_skills")])
    assert results[0].status == "error", results
    assert "ZeroDivisionError" in text_of(results[0]), results
    assert results[1].status == "success", results
    return "reported as an error, the agent continues"


async def resources_and_prompts():
    async with server() as session:
        blobs = await load_mcp_resources(session)
        said = await load_mcp_prompt(session, "calculator", arguments={"arguments": "1 and 1"})
    document = (python_checks.SKILLS / "calculator" / "SKILL.md").read_text()
    assert document in [blob.as_string() for blob in blobs if blob.mimetype.startswith("text/")]
    assert "1 and 1" in said[0].content, said
    return f"{len(blobs)} resources loaded"


async def many_skills():
    names = {folder.name for folder in python_checks.MANY_SKILLS.iterdir()}
    many = MultiServerMCPClient({"skills": connection(python_checks.MANY)})
    tools = {tool.name for tool in await many.get_tools()}
    assert names < tools, names - tools
    return f"{len(tools)} tools, in pages"


checks = [("tools", tools), ("an agent", agent)]
if AS_TOOLS:
    checks += [("many skills", many_skills)]
else:
    checks += [("failing script", failing_script), ("resources and prompts", resources_and_prompts)]
report.run(checks)

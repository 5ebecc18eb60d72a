"""Checks the server with the Python package mcp 2.x: `server/discover` and independent
requests; with the argument `legacy`, sessions by `initialize`."""

import contextlib
import sys

import mcp
from mcp.shared.exceptions import MCPError
from mcp_types.version import LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION

import python_checks
import report
from python_checks import Failure, Peer, Result, Tool

IS_LEGACY = sys.argv[1:] == ["legacy"]


@contextlib.contextmanager
def failures():
    try:
        yield
    except MCPError as error:
        raise Failure(error.code, error.message) from error


class Modern(Peer):
    no_resource = -32002 if IS_LEGACY else -32602

    def __init__(self, client):
        self.client = client

    async def about(self):
        if IS_LEGACY:
            await self.client.send_ping()
        client = self.client
        offers = client.server_capabilities.model_dump(exclude_none=True)
        return client.protocol_version, client.server_info.name, client.instructions, offers

    async def tools(self):
        pages = self.pages(self.client.list_tools)
        return [
            Tool(tool.name, tool.input_schema, tool.output_schema,
                 tool.annotations.model_dump(by_alias=True))
            async for page in pages for tool in page.tools
        ]

    async def call(self, name, arguments, seconds=None, progress=None):
        async def report(amount, total, message):
            progress(amount)

        with failures():
            result = await self.client.call_tool(
                name, arguments, read_timeout_seconds=seconds, progress_callback=progress and report
            )
        text = "".join(block.text for block in result.content)
        return Result(result.is_error, result.structured_content, text)

    async def resources(self):
        pages = self.pages(self.client.list_resources)
        return [(str(r.uri), r.mime_type) async for page in pages for r in page.resources]

    async def read(self, uri):
        with failures():
            result = await self.client.read_resource(uri)
        return python_checks.bytes_of(result.contents, uri)

    async def prompts(self):
        pages = self.pages(self.client.list_prompts)
        return [
            (prompt.name, [argument.name for argument in prompt.arguments or []])
            async for page in pages for prompt in page.prompts
        ]

    async def prompt(self, name, arguments):
        with failures():
            result = await self.client.get_prompt(name, arguments)
        return "\n".join(message.content.text for message in result.messages)

    async def pages(self, list_page):
        cursor = None
        while True:
            page = await list_page(cursor=cursor)
            yield page
            cursor = page.next_cursor
            if cursor is None:
                return


@contextlib.asynccontextmanager
async def connect(which):
    command, arguments, environment = python_checks.server(which)
    parameters = mcp.StdioServerParameters(command=command, args=arguments, env=environment)
    async with mcp.Client(parameters, mode="legacy" if IS_LEGACY else "auto") as client:
        yield Modern(client)


version = LATEST_HANDSHAKE_VERSION if IS_LEGACY else LATEST_MODERN_VERSION
report.run(python_checks.checks(connect, version))

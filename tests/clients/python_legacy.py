"""Checks the server with the Python package mcp 1.x: `initialize` and its versions."""

import contextlib
import datetime

import mcp
from mcp import types
from mcp.client.stdio import stdio_client
from pydantic import AnyUrl

import python_checks
import report
from python_checks import Failure, Peer, Result, Tool


@contextlib.contextmanager
def failures():
    try:
        yield
    except mcp.McpError as error:
        raise Failure(error.error.code, error.error.message) from error


class Legacy(Peer):
    no_resource = -32002

    def __init__(self, session, beginning):
        self.session = session
        self.beginning = beginning

    async def about(self):
        await self.session.send_ping()
        said = self.beginning
        offers = said.capabilities.model_dump(exclude_none=True)
        return said.protocolVersion, said.serverInfo.name, said.instructions, offers

    async def tools(self):
        pages = self.pages(self.session.list_tools)
        return [
            Tool(tool.name, tool.inputSchema, tool.outputSchema, tool.annotations.model_dump())
            async for page in pages for tool in page.tools
        ]

    async def call(self, name, arguments, seconds=None, progress=None):
        async def report(amount, total, message):
            progress(amount)

        number = self.session._request_id  # The client has no public API for it.
        try:
            with failures():
                result = await self.session.call_tool(
                    name,
                    arguments,
                    read_timeout_seconds=seconds and datetime.timedelta(seconds=seconds),
                    progress_callback=progress and report,
                )
        except Failure:
            if seconds is not None:
                await self.give_up(number)
            raise
        text = "".join(block.text for block in result.content)
        return Result(result.isError, result.structuredContent, text)

    async def give_up(self, number):
        """Cancels the call; this client does not notify the server itself."""
        params = types.CancelledNotificationParams(requestId=number, reason="time is up")
        cancelled = types.CancelledNotification(params=params)
        await self.session.send_notification(types.ClientNotification(cancelled))

    async def resources(self):
        pages = self.pages(self.session.list_resources)
        return [(str(r.uri), r.mimeType) async for page in pages for r in page.resources]

    async def read(self, uri):
        with failures():
            result = await self.session.read_resource(AnyUrl(uri))
        return python_checks.bytes_of(result.contents, uri)

    async def prompts(self):
        pages = self.pages(self.session.list_prompts)
        return [
            (prompt.name, [argument.name for argument in prompt.arguments or []])
            async for page in pages for prompt in page.prompts
        ]

    async def prompt(self, name, arguments):
        with failures():
            result = await self.session.get_prompt(name, arguments)
        return "\n".join(message.content.text for message in result.messages)

    async def pages(self, list_page):
        cursor = None
        while True:
            page = await list_page(params=types.PaginatedRequestParams(cursor=cursor))
            yield page
            cursor = page.nextCursor
            if cursor is None:
                return


@contextlib.asynccontextmanager
async def connect(which):
    command, arguments, environment = python_checks.server(which)
    parameters = mcp.StdioServerParameters(command=command, args=arguments, env=environment)
    async with stdio_client(parameters) as streams, mcp.ClientSession(*streams) as session:
        yield Legacy(session, await session.initialize())


report.run(python_checks.checks(connect, types.LATEST_PROTOCOL_VERSION))

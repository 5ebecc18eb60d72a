"""A loopback HTTP endpoint in front of a server on stdio, for clients that speak
only HTTP.

It implements only the transport: sessions, headers, status codes. Messages of the
server are forwarded byte for byte, with their ids: each process gets one request at a
time, so ids need no translation. If the server writes anything except the answer and
notifications before it, the client gets a 502 with that output.

Each legacy session has its own process; clients of 2026-07-28 share one that never
receives `initialize`.
"""

import base64
import contextlib
import http.server
import json
import queue
import subprocess
import threading
import uuid

LEGACY = ("2025-03-26", "2025-06-18", "2025-11-25")
LOOPBACK = ("127.0.0.1", "localhost")
HEADER_MISMATCH = -32020
METHOD_NOT_FOUND = -32601
# Methods whose header `Mcp-Name` must repeat a parameter, and that parameter.
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
ANSWER_SECONDS = 60
VERSION = "io.modelcontextprotocol/protocolVersion"


class Refused(Exception):
    """A message that the transport refuses."""

    def __init__(self, status, code, why):
        super().__init__(why)
        self.status = status
        self.code = code


class Process:
    """A server on stdio."""

    def __init__(self, command, log):
        self.child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log
        )
        self.turn = threading.Lock()
        self.lines = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.child.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def send(self, message):
        # Line breaks can only be between the members of a message, never in a string.
        self.child.stdin.write(message.replace(b"\r", b" ").replace(b"\n", b" ") + b"\n")
        self.child.stdin.flush()

    def tell(self, message):
        with self.turn:
            self.send(message)

    def ask(self, message, wanted):
        """The answer with this id, and the notifications before it."""
        with self.turn:
            self.send(message)
            notifications = []
            while True:
                try:
                    line = self.lines.get(timeout=ANSWER_SECONDS)
                except queue.Empty:
                    raise Refused(504, -32603, "the server does not answer") from None
                if line is None:
                    raise Refused(502, -32603, "the server has ended")
                said = read(line)
                if "method" in said and "id" not in said:
                    notifications.append(line)
                elif same(said.get("id"), wanted):
                    return line, notifications
                else:
                    raise Refused(502, -32603, f"the server says: {line.decode()}")

    def end(self):
        """Ends the server as the protocol requires; returns the problem, if any."""
        self.child.stdin.close()
        try:
            status = self.child.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.child.kill()
            return "it outlived its standard input by 5 s"
        if status != 0:
            return f"exit status {status}"
        left = self.lines.get(timeout=5)
        return left and f"unexpected output: {left.decode()}"


def read(line):
    """The parsed message, or an empty one without an id if the line is invalid."""
    with contextlib.suppress(ValueError):
        said = json.loads(line)
        if isinstance(said, dict):
            return said
    return {}


def same(one, other):
    """Whether two ids are equal, including their type: 1 is not "1"."""
    return type(one) is type(other) and one == other


class Bridge(http.server.ThreadingHTTPServer):
    """The HTTP server, on a free loopback port."""

    daemon_threads = True

    def __init__(self, command, log):
        super().__init__(("127.0.0.1", 0), Handler)
        self.command = command
        self.log = log
        self.sessions = {}
        self.ends = []
        self.shared = Process(command, log)
        self.url = f"http://127.0.0.1:{self.server_port}/mcp"

    def end(self):
        """Ends all servers; returns the problems."""
        self.shutdown()
        for process in [self.shared, *self.sessions.values()]:
            self.ends.append(process.end())
        return [end for end in self.ends if end is not None]


@contextlib.contextmanager
def bridged(command, log):
    """Context manager: a running bridge."""
    bridge = Bridge(command, log)
    threading.Thread(target=bridge.serve_forever, daemon=True).start()
    try:
        yield bridge
    finally:
        bridge.problems = bridge.end()
        bridge.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", kind="application/json", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if body:
            self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def refuse(self, refused, id=None):
        error = {"jsonrpc": "2.0", "error": {"code": refused.code, "message": str(refused)}}
        if id is not None:
            error["id"] = id
        self.answer(refused.status, json.dumps(error).encode())

    def is_ours(self):
        """Whether origin and path of the request are those of this endpoint."""
        origin = self.headers.get("Origin")
        hosts = [self.headers.get("Host", "")]
        hosts += [origin.split("://")[-1]] if origin else []
        if any(host.rsplit(":", 1)[0] not in LOOPBACK for host in hosts):
            self.answer(403)
        elif self.path != "/mcp":
            self.answer(404)
        else:
            return True
        return False

    def do_GET(self):
        if self.is_ours():
            self.answer(405, Allow="POST, DELETE")

    def do_DELETE(self):
        if not self.is_ours():
            return
        session = self.headers.get("Mcp-Session-Id")
        if session is None:
            return self.answer(405, Allow="POST")
        process = self.server.sessions.pop(session, None)
        if process is None:
            return self.answer(404)
        self.server.ends.append(process.end())
        self.answer(200)

    def do_POST(self):
        text = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if not self.is_ours():
            return
        id = None
        try:
            try:
                message = json.loads(text)
                method, id = message.get("method"), message.get("id")
            except (ValueError, AttributeError):
                raise Refused(400, -32700, "the body is no JSON object") from None
            is_legacy, process, headers = self.process_for(message)
            if method is None or "id" not in message:
                process.tell(text)
                return self.answer(202)
            line, notifications = process.ask(text, id)
        except Refused as refused:
            return self.refuse(refused, id)
        status = 200 if is_legacy else status_of(json.loads(line))
        if notifications:
            events = b"".join(b"data: " + line + b"\n" for line in [*notifications, line])
            return self.answer(status, events, "text/event-stream", **headers)
        self.answer(status, line, **headers)

    def process_for(self, message):
        """Whether the message is a legacy one, its process, and headers of the answer."""
        version = self.headers.get("MCP-Protocol-Version")
        session = self.headers.get("Mcp-Session-Id")
        meta = (message.get("params") or {}).get("_meta") or {}
        is_first = message.get("method") == "initialize" and VERSION not in meta
        if is_first and version in (None, *LEGACY):
            process = Process(self.server.command, self.server.log)
            session = str(uuid.uuid4())
            self.server.sessions[session] = process
            return True, process, {"Mcp_Session_Id": session}
        if session is not None and version in (None, *LEGACY):
            process = self.server.sessions.get(session)
            if process is None:
                raise Refused(404, -32600, "there is no such session")
            return True, process, {}
        if version in LEGACY:
            raise Refused(400, -32600, "the header Mcp-Session-Id is missing")
        self.check_headers(message, meta, version)
        return False, self.server.shared, {}

    def check_headers(self, message, meta, version):
        """Refuses headers that differ from the body."""
        method = message.get("method")
        named = NAMED.get(method)
        said = [("MCP-Protocol-Version", version, meta.get(VERSION, version))]
        if "id" in message:
            said.append(("Mcp-Method", self.headers.get("Mcp-Method"), method))
        if named is not None:
            name = (self.headers.get("Mcp-Name") or "").strip()
            if name.startswith("=?base64?") and name.endswith("?="):
                name = base64.b64decode(name[9:-2]).decode()
            said.append(("Mcp-Name", name, (message.get("params") or {}).get(named)))
        for header, value, wanted in said:
            if value is None or value != wanted:
                why = f"the header {header} is {value!r}, the body says {wanted!r}"
                raise Refused(400, HEADER_MISMATCH, why)


def status_of(answer):
    """The HTTP status that 2026-07-28 requires for an answer."""
    error = answer.get("error")
    if error is None:
        return 200
    return 404 if error["code"] == METHOD_NOT_FOUND else 400

"""Read text files line by line, and log files entry by entry.

    for entry in read_log("app.log"):
        print(entry.line, entry.time, entry.level, entry.message)
"""

import codecs
import gzip
import io
import json
import os
import re
import sys
from datetime import datetime, timedelta

LEVELS = ("TRACE", "DEBUG", "INFO", "NOTICE", "WARNING", "ERROR", "CRITICAL")
SPELLINGS = {
    "WARN": "WARNING", "ERR": "ERROR", "SEVERE": "ERROR", "CRIT": "CRITICAL", "FATAL": "CRITICAL",
    "ALERT": "CRITICAL", "EMERG": "CRITICAL", "PANIC": "CRITICAL",
}
_NAMES = "|".join(sorted((*LEVELS, *SPELLINGS), key=len, reverse=True))
LEVEL_FIRST = re.compile(rf"[\[(<]?(?:level=)?({_NAMES})\b[\])>:]*\s*", re.IGNORECASE)
LEVEL_INSIDE = re.compile(rf"\b({_NAMES})\b")
FAILED = re.compile(r"\b(?:errors?|failed|failure|fatal|panic|exception)\b", re.IGNORECASE)

ISO = re.compile(
    r'[\[("]?(?:time=")?(?P<time>\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d(?::\d\d)?)(?:[.,]\d+)?'
    r'(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?[\])"]?:?\s+(?P<message>.*)')
SYSLOG = re.compile(r"(?:<\d+>)?(?P<time>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d) \S+ (?P<message>.*)")
ACCESS = re.compile(
    r'\S+ \S+ [^\[]+\[(?P<time>\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d) [+-]\d{4}\] '
    r'"(?P<request>[^"]*)" (?P<status>\d{3})')
STRETCHES = [timedelta(minutes=m) for m in (1, 5, 10, 30, 60, 180, 720, 1440, 10080, 43200)]
NO_YEAR = 2000  # stands for the year that syslog does not write

VARIABLE = re.compile(
    r"(?P<uuid>\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b)"
    r"|(?P<mail>[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+)"
    r"|(?P<ip>\b\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?\b)"
    r"|(?P<hex>\b0[xX][0-9a-fA-F]+\b|\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{8,}\b)"
    r"|(?P<n>(?<!\d)(?<!status )\d+(?:[.,]\d+)*)", re.ASCII)


class Entry:
    """An entry of a log; `time` is a datetime or None, `more` the lines that follow it."""

    def __init__(self, line, time, level, message):
        self.line, self.time, self.level, self.message = line, time, level, message
        self.more = []


def find_file(name):
    """Return the path of the user's file with this name, or of the skill's."""
    path = os.path.join(os.environ.get("USER_CWD", ""), os.path.expanduser(name))
    own = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), name)
    return own if os.path.exists(own) and not os.path.exists(path) else path


def open_text(name):
    """Open a file, also .gz and - for stdin, and find out its encoding."""
    if name == "-":
        stream = io.BytesIO(sys.stdin.buffer.read())
    else:
        name = find_file(name)
        stream = gzip.open(name) if name.endswith(".gz") else open(name, "rb")
    start = stream.read(1 << 20)
    stream.seek(0)
    encoding = "utf-8-sig"
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    elif b"\0" in start[:1000]:
        raise ValueError(f"failed to read file `{name}`: it is a binary file")
    else:
        try:
            codecs.getincrementaldecoder("utf-8")().decode(start)
        except UnicodeDecodeError as error:
            # One bad byte in UTF-8 is damage; without any UTF-8 before it, the encoding is older.
            encoding = "cp1252" if start[:error.start].isascii() else encoding
    return io.TextIOWrapper(stream, encoding=encoding, errors="replace", newline="")


def lines_of(name):
    """Yield the number and the text of each line."""
    with open_text(name) as stream:
        for number, line in enumerate(stream, 1):
            yield number, line.rstrip("\r\n")


def read_log(name):
    """Yield the entries of a log. A line that begins no entry belongs to the one before."""
    entry, has_times = None, False
    for number, line in lines_of(name):
        found = parse_line(number, line)
        has_times = has_times or found is not None and found.time is not None
        if found and (found.time or not has_times):
            if entry:
                yield entry
            entry = found
        elif entry:
            entry.more.append(line)
    if entry:
        yield entry


def parse_line(number, line):
    """Return the entry that a line begins, or None."""
    match = ACCESS.match(line)
    if match:
        level = {"5": "ERROR", "4": "WARNING"}.get(match["status"][0], "INFO")
        message = f"status {match['status']} {match['request']}"
        return Entry(number, parse_time(match["time"]), level, message)
    if line.startswith("{"):
        return parse_json(number, line)
    match = ISO.match(line) or SYSLOG.match(line)
    message = match["message"] if match else line
    first = LEVEL_FIRST.match(message)
    if not match and not first:
        return None
    inside = first or LEVEL_INSIDE.search(message[:100])
    level = normal_level(inside[1]) if inside else ""
    if not level and match.re is SYSLOG and FAILED.search(message):
        level = "ERROR"
    message = message[first.end():] if first else message
    return Entry(number, parse_time(match["time"]) if match else None, level, message)


def parse_json(number, line):
    """Return the entry of a line of JSON, or None."""
    try:
        record = {key.lower(): value for key, value in json.loads(line).items()}
    except (ValueError, RecursionError):
        return None

    def first(*names):
        return next((record[name] for name in names if record.get(name)), "")

    time = first("time", "timestamp", "@timestamp", "ts", "datetime", "date")
    if isinstance(time, (int, float)) and 0 < time < 1e14:
        seconds = time / 1000 if time > 1e11 else time
        time = datetime(1970, 1, 1) + timedelta(seconds=seconds)
    else:
        time = parse_time(str(time))
    level = str(first("level", "severity", "levelname"))
    return Entry(number, time, normal_level(level), str(first("message", "msg", "event", "error")))


def parse_time(text):
    """Return a time as a log or a person writes it, as a datetime without zone, or None."""
    try:
        return datetime.fromisoformat(text.strip()[:19].replace("/", "-"))
    except ValueError:
        pass
    for form in ("%d/%b/%Y:%H:%M:%S", "%Y %b %d %H:%M:%S", "%Y %b %d %H:%M"):
        try:
            return datetime.strptime(text if "/" in form else f"{NO_YEAR} {text}", form)
        except ValueError:
            pass
    return None


def written_time(text):
    """Return the time that an option names."""
    time = parse_time(text)
    if time is None:
        raise ValueError("no time")
    return time


def normal_level(name):
    """Return the usual name of a level: WARNING for warn."""
    return SPELLINGS.get(name.upper(), name.upper())


def normalize(message):
    """Return the pattern of a message: numbers, addresses and ids are replaced."""
    return VARIABLE.sub(lambda match: f"<{match.lastgroup}>", message[:500])


def cause(entry):
    """Return the line of a stack trace that names the exception, or nothing."""
    lines = [line for line in entry.more if line.strip() and not line[0].isspace()]
    return lines[-1] if lines else ""


def show_time(time):
    """Return a time as text."""
    return f"{time:%b %d %H:%M:%S}" if time.year == NO_YEAR else f"{time:%Y-%m-%d %H:%M:%S}"


def rate(times):
    """Return [start, entries, errors] by stretch of time; `times` counts by (time, is error)."""
    span = max(times)[0] - min(times)[0] if times else timedelta()
    step = next((stretch for stretch in STRETCHES if span < 24 * stretch), STRETCHES[-1])
    rows = {}
    for (time, is_error), count in times.items():
        start = time - (time - datetime(1970, 1, 1)) % step
        row = rows.setdefault(start, [start, 0, 0])
        row[1] += count
        row[2] += count * is_error
    return sorted(rows.values())

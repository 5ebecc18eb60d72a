#!/usr/bin/env python3
"""Analysis of text and log files (also .gz, also - for stdin).

    analyze.py summary FILE...                 lines, words, line endings, encoding, oddities
    analyze.py frequency FILE --ngram 2        most frequent words or word sequences
    analyze.py log FILE...                     levels, time range, rate, messages and errors in groups
    analyze.py search PATTERN FILE... -C 2     lines that match, with numbers and context

Files are streamed: size costs time, not memory.
Importable: read_log, log_report, normalize, text_summary. Standard library only.
"""
import argparse
import codecs
import collections
import contextlib
import datetime
import gzip
import io
import json
import os
import re
import sys
import zlib
from collections import Counter

# Bounds: what is larger is cut or counted coarsely, and said.
SAMPLE_BYTES = 1 << 20
MAX_LINE_BYTES = 1 << 20
MAX_DISTINCT = 500_000
MAX_GROUPS = 50_000
MAX_SHAPES = 20_000
MAX_PATTERN_CHARACTERS = 500
MAX_BUCKETS = 20_000
SHOWN_BUCKETS = 24
SHOWN_BUCKETS_FIXED = 200
SHOWN_CHARACTERS = 160
MAX_CONTINUATION_LINES = 200

COMMANDS = ("summary", "frequency", "log", "search")


class AnalyzeError(Exception):
    """What the caller can mend; its text is one line."""


# ---------------------------------------------------------------- reading


def find_input(name):
    """Return the path of a data file: as given from here, else from the user's folder (USER_CWD)."""
    name = os.path.expanduser(name)
    places = [os.path.abspath(name)]
    if os.environ.get("USER_CWD"):
        other = os.path.abspath(os.path.join(os.environ["USER_CWD"], name))
        places += [other] if other != places[0] else []
    files = [place for place in places if os.path.exists(place) and not os.path.isdir(place)]
    if not files:
        folders = [place for place in places if os.path.isdir(place)]
        if folders:
            raise AnalyzeError(f"{folders[0]} is a folder, not a file")
        raise AnalyzeError(f"no file {name!r}: looked for {' and '.join(places)}")
    if len(files) == 2 and not os.path.samefile(*files):
        print(f"analyze.py: note: reading {files[0]}, not {files[1]}", file=sys.stderr)
    return files[0]


class _Joined(io.RawIOBase):
    """What was read to look at it, then the rest."""

    def __init__(self, start, rest):
        super().__init__()
        self.start, self.rest, self.delivered = start, rest, 0

    def readable(self):
        return True

    def readinto(self, buffer):
        data = self.start[:len(buffer)]
        self.start = self.start[len(data):]
        data = data or self.rest.read(len(buffer))
        buffer[:len(data)] = data
        self.delivered += len(data)
        return len(data)


class _Recoded:
    """Gives UTF-8 from a stream in another encoding."""

    def __init__(self, stream, encoding):
        self.text = io.TextIOWrapper(stream, encoding=encoding, errors="replace", newline="")

    def read(self, size):
        return self.text.read(max(size // 4, 1)).encode("utf-8", "replace")


@contextlib.contextmanager
def open_text(name, encoding=None, binary=False):
    """Open a file ("-": stdin) for reading bytes; yield (stream, encoding, path, source).

    The stream gives UTF-8 for UTF-16 files; source.delivered counts the bytes as they are in the file.
    """
    with contextlib.ExitStack() as stack:
        if name == "-":
            if sys.stdin is None or sys.stdin.isatty():
                raise AnalyzeError("nothing on stdin")
            path, stream = "stdin", io.BufferedReader(_Joined(b"", sys.stdin.buffer), 1 << 16)
        else:
            path = find_input(name)
            stream = stack.enter_context(open(path, "rb"))
        try:
            if stream.peek(2)[:2] == b"\x1f\x8b":
                stream = io.BufferedReader(stack.enter_context(gzip.GzipFile(fileobj=stream)), 1 << 16)
            sample = stream.read(SAMPLE_BYTES)
            if encoding is None:
                encoding = _find_encoding(sample, name, binary)
            source = _Joined(sample, stream)
            if encoding.startswith("utf-16") or encoding.startswith("utf-32"):
                # Two bytes a character: recoded, so that lines can be cut from bytes below.
                recoded = _Recoded(io.BufferedReader(source, 1 << 16), encoding)
                yield io.BufferedReader(_Joined(b"", recoded), 1 << 16), encoding, path, source
            else:
                yield io.BufferedReader(source, 1 << 16), encoding, path, source
        except UnicodeError as error:
            raise AnalyzeError(f"{name} is not {encoding}: {error}") from None
        except (EOFError, zlib.error) as error:
            raise AnalyzeError(f"failed to read {name}: {error}") from None


def _find_encoding(sample, name, binary):
    if sample.startswith(codecs.BOM_UTF8):
        return "utf-8-sig"
    if sample[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return "utf-16"
    if b"\0" in sample:
        evens, odds = sample[:4096:2].count(0), sample[1:4096:2].count(0)
        if max(evens, odds) > len(sample[:4096]) * 0.4:
            return "utf-16-be" if evens > odds else "utf-16-le"
        if not binary and sample.count(0) * 1_000 > len(sample):
            raise AnalyzeError(f"{name} looks like a binary file (it holds NUL bytes)")
    if sample.isascii():
        return "ascii"
    text = codecs.getincrementaldecoder("utf-8")("replace").decode(sample)
    wrong = text.count("\ufffd")
    # A few bad bytes in UTF-8 text are damage; mostly bad ones mean an older encoding.
    if wrong and wrong > sum(character > "\x7f" for character in text) - wrong:
        return "cp1252"
    return "utf-8"


def _line_codec(encoding):
    if encoding in ("ascii", "utf-8-sig") or encoding.startswith(("utf-16", "utf-32")):
        return "utf-8"  # later bytes may go beyond ASCII; UTF-16 was recoded
    return encoding


def lines_of(name, encoding=None, pieces=False):
    """Yield (number, text without line ending) of a file.

    A line over 1 MiB comes cut, which is noted on stderr; with `pieces` it comes whole, in several parts.
    """
    with open_text(name, encoding) as (stream, found, _, _):
        codec, number, cut = _line_codec(found), 0, 0
        while True:
            line = stream.readline(MAX_LINE_BYTES)
            if not line:
                break
            number += 1
            whole = line.endswith(b"\n")
            while len(line) >= MAX_LINE_BYTES and not whole:
                rest = stream.readline(MAX_LINE_BYTES)
                whole = not rest or rest.endswith(b"\n")
                if pieces:
                    head, space, tail = line.rpartition(b" ")  # not in the middle of a word
                    yield number, (head if space else line).decode(codec, "replace")
                    line = (tail if space else b"") + rest
                    if whole:
                        break
                elif rest.strip():
                    cut += 1
                    while not whole:
                        rest = stream.readline(MAX_LINE_BYTES)
                        whole = not rest or rest.endswith(b"\n")
            text = line.decode(codec, "replace").rstrip("\r\n")
            yield number, text.lstrip("\ufeff") if number == 1 else text
    if cut:
        print(f"analyze.py: note: {name}: {cut} lines over {MAX_LINE_BYTES >> 20} MiB were cut", file=sys.stderr)


# ---------------------------------------------------------------- summary


def text_summary(name, encoding=None):
    """Return facts about a text file as a dict."""
    facts = Counter()
    longest, longest_line, bad_lines, line_size, whole = 0, 0, [], 0, True
    words_joined = False
    with open_text(name, encoding, binary=True) as (stream, found, path, source):
        codec = _line_codec(found)
        decoder = codecs.getincrementaldecoder(codec)("replace")
        for piece in iter(lambda: stream.readline(MAX_LINE_BYTES), b""):
            if whole:
                facts["lines"] += 1
                line_size = 0
            whole = piece.endswith(b"\n")
            text = decoder.decode(piece, whole)
            if facts["lines"] == 1 and line_size == 0:
                text = text.lstrip("\ufeff")
            if whole:
                facts["crlf" if piece.endswith(b"\r\n") else "lf"] += 1
                text = text[:-2] if text.endswith("\r\n") else text[:-1]
            words = len(text.split())
            facts["words"] += words - (1 if words_joined and words and not text[0].isspace() else 0)
            words_joined = not whole and bool(text) and not text[-1].isspace()
            facts["characters"] += len(text)
            line_size += len(text)
            if line_size > longest:
                longest, longest_line = line_size, facts["lines"]
            if "\ufffd" in text:
                facts["bad_lines"] += 1
                bad_lines = bad_lines or [facts["lines"]]
            if whole:
                if not line_size or line_size == len(text) and not words:
                    facts["empty_lines"] += 1
                if text.endswith((" ", "\t")):
                    facts["trailing_space"] += 1
            if not text.isascii():
                facts["non_ascii"] += 1
            facts["tabs"] += "\t" in text
            facts["control"] += _CONTROL.search(text) is not None
    endings = [f"{facts[kind]} {kind.upper()}" for kind in ("lf", "crlf") if facts[kind]]
    result = {"file": path, "bytes": source.delivered, "encoding": found, "lines": facts["lines"], "empty_lines": facts["empty_lines"],
              "words": facts["words"], "characters": facts["characters"],
              "longest_line": f"{longest} characters (line {longest_line})",
              "mean_line": round(facts["characters"] / facts["lines"], 1) if facts["lines"] else 0,
              "line_endings": ", ".join(endings) + (" (mixed)" if len(endings) > 1 else "") if endings else "none"}
    for key, name_shown in (("tabs", "lines_with_tabs"), ("trailing_space", "lines_with_trailing_space"),
                            ("non_ascii", "lines_not_ascii"), ("control", "lines_with_control_characters")):
        if facts[key]:
            result[name_shown] = facts[key]
    if facts["bad_lines"]:
        result["undecodable"] = f"{facts['bad_lines']} lines (first: line {bad_lines[0]})"
    if facts["lines"] and not whole:
        result["last_line"] = "has no newline"
    return result


_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


# ---------------------------------------------------------------- frequency

_WORD = re.compile(r"[^\W_](?:[\w'’-]*[^\W_])?")
STOPWORDS = frozenset("""a about after all also am an and any are as at be because been before being but by can could did do does
for from had has have he her him his how i if in into is it its just me more most my no not of on only or other our out over
she so some such than that the their them then there these they this those to too under up us very was we were what when
where which while who why will with would you your""".split())


def frequencies(lines, ngram=1, min_length=1, stopwords=False, case_sensitive=False, pattern=None):
    """Return (Counter of words or word sequences, number of words, whether rare ones were dropped)."""
    counts, words_seen, dropped = Counter(), 0, False
    finder = pattern or _WORD
    before = collections.deque(maxlen=ngram - 1) if ngram > 1 else None
    for _, line in lines:
        words = [match.group() for match in finder.finditer(line if case_sensitive else line.lower())]
        if min_length > 1 or stopwords:
            words = [word for word in words if len(word) >= min_length and not (stopwords and word.lower() in STOPWORDS)]
        words_seen += len(words)
        if before is None:
            counts.update(words)
        else:
            run = list(before) + words
            counts.update(" ".join(run[place:place + ngram]) for place in range(len(run) - ngram + 1))
            before.extend(words)
        if len(counts) > MAX_DISTINCT:
            counts, dropped = Counter(dict(counts.most_common(MAX_DISTINCT // 2))), True
    return counts, words_seen, dropped


# ---------------------------------------------------------------- log lines

_MONTHS = {name: place for place, name in enumerate("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(), 1)}
_OFFSET = r"(?P<offset> ?(?:Z|UTC|[+-]\d\d:?\d\d))?"
_ISO = re.compile(r"[\[(<\"]?(?:time=\"?|ts=\"?)?(?P<date>\d{4}[-/]\d\d[-/]\d\d)[T ,_](?P<minute>\d\d:\d\d)(?::(?P<second>\d\d)(?:[.,]\d{1,9})?)?" + _OFFSET + r"[\])>\"]?:?")
_SYSLOG = re.compile(r"(?:<\d{1,3}>)?(?P<month>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) {1,2}(?P<day>\d{1,2}) (?P<minute>\d\d:\d\d):(?P<second>\d\d)(?:\.\d+)? "
                     r"(?P<host>\S+) (?P<app>[^\s:\[]+)(?:\[\d+\])?: ?")
_SYSLOG5424 = re.compile(r"<\d{1,3}>1 (?P<rest>\d{4}-\d\d-\d\dT)")
_ACCESS = re.compile(r'(?P<client>\S+) \S+ [^\[]{1,80}\[(?P<day>\d\d)/(?P<month>[A-Z][a-z]{2})/(?P<year>\d{4}):(?P<minute>\d\d:\d\d):(?P<second>\d\d) (?P<offset>[+-]\d{4})\] '
                     r'"(?P<request>(?:[^"\\]|\\.)*)" (?P<status>\d{3}) (?P<size>\d+|-)')
_APACHE_ERROR = re.compile(r"\[[A-Z][a-z]{2} (?P<month>[A-Z][a-z]{2}) {1,2}(?P<day>\d{1,2}) (?P<minute>\d\d:\d\d):(?P<second>\d\d)(?:\.\d+)? (?P<year>\d{4})\] ")
_KLOG = re.compile(r"(?P<level>[IWEF])(?P<month>\d\d)(?P<day>\d\d) (?P<minute>\d\d:\d\d):(?P<second>\d\d)\.\d+ +\d+ (?P<source>[^\]]+)\] ")
_LEVEL = re.compile(r"(?:^|[\s\[(<|:=\"/.])(?P<level>TRACE|DEBUG|INFO|INFORMATION|NOTICE|WARN|WARNING|ERROR|ERR|SEVERE|CRITICAL|CRIT|FATAL|ALERT|EMERG|PANIC|"
                    r"trace|debug|info|notice|warn|warning|error|err|crit|critical|fatal|alert|emerg|panic|Debug|Info|Warning|Error|Critical|Fatal)"
                    r"(?=$|[\s\])>|:,\"])[\])>|:\"]*")
_FAILED = re.compile(r"\b(?:errors?|failed|failure|fatal|panic|exception|critical)\b", re.IGNORECASE)
_WARNED = re.compile(r"\bwarn(?:ing)?s?\b", re.IGNORECASE)
_NORMAL_LEVEL = {"INFORMATION": "INFO", "WARN": "WARNING", "ERR": "ERROR", "SEVERE": "ERROR", "CRIT": "CRITICAL", "FATAL": "CRITICAL", "ALERT": "CRITICAL",
                 "EMERG": "CRITICAL", "PANIC": "CRITICAL", "I": "INFO", "W": "WARNING", "E": "ERROR", "F": "CRITICAL"}
LEVELS = ("TRACE", "DEBUG", "INFO", "NOTICE", "WARNING", "ERROR", "CRITICAL")
_NUMBER_LEVELS = {10: "TRACE", 20: "DEBUG", 30: "INFO", 40: "WARNING", 50: "ERROR", 60: "CRITICAL"}

_TIME_OR_ID = (
    r"(?P<time>\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)"
    r"|(?P<uuid>\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b)"
    r"|(?P<ip>\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}(?::\d{1,5})?\b|\b(?:[0-9a-fA-F]{1,4}:){3,7}[0-9a-fA-F]{1,4}\b)"
    r"|(?P<hex>\b0[xX][0-9a-fA-F]+\b|\b(?=[a-fA-F]*\d)(?=\d*[a-fA-F])[0-9a-fA-F]{8,}\b)"
    r"|(?P<n>\d+(?:[.,]\d+)*)")
_VARIABLE = re.compile(_TIME_OR_ID, re.ASCII)
_VARIABLE_OR_MAIL = re.compile(r"(?P<mail>[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+)|" + _TIME_OR_ID, re.ASCII)


class Entry:
    """One log entry: time (seconds, or None), level (or ""), message, first line's number, following lines, access fields."""

    __slots__ = ("time", "level", "message", "line", "file", "more", "access")

    def __init__(self, time, level, message, line, access=None):
        self.time, self.level, self.message, self.line = time, level, message, line
        self.file, self.more, self.access = "", [], access


class LogFormat:
    """Turns lines into entries and remembers what times looked like."""

    def __init__(self):
        self.kinds, self.days, self.offset, self.has_year = Counter(), {}, None, True
        self.years_added, self.last_month, self.aware, self.timed = 0, 0, False, False

    def entry(self, number, line):
        """Return the Entry that begins at this line, or None for a line that continues the one before."""
        first = line[:1]
        if first == "{":
            found = self._json(number, line)
        elif first == "[" and line[1:2].isalpha():
            found = self._apache_error(number, line)
        elif first in "IWEF" and first:
            found = self._klog(number, line) or self._syslog(number, line)
        else:
            found = None
        found = found or self._iso(number, line) or self._access(number, line) or self._syslog(number, line)
        if found:
            self.timed = True
            return found
        return None if self.timed else self._level_first(number, line)

    def _iso(self, number, line):
        match = _ISO.match(line)
        start = 0
        if not match:
            prefix = _SYSLOG5424.match(line)
            if not prefix:
                return None
            start = prefix.start("rest")
            match = _ISO.match(line, start)
            if not match:
                return None
        date = match.group("date").replace("/", "-")
        time = self._time(date, match.group("minute"), match.group("second") or "0", match.group("offset"))
        if time is None:
            return None
        self.kinds["syslog (RFC 5424)" if start else "ISO timestamps"] += 1
        level, message = _level_and_rest(line[match.end():].strip())
        return Entry(time, level, message, number)

    def _access(self, number, line):
        match = _ACCESS.match(line)
        if not match or match.group("month") not in _MONTHS:
            return None
        date = f"{match.group('year')}-{_MONTHS[match.group('month')]:02d}-{match.group('day')}"
        time = self._time(date, match.group("minute"), match.group("second"), match.group("offset"))
        self.kinds["access log"] += 1
        status, request = match.group("status"), match.group("request")
        level = "ERROR" if status[0] == "5" else "WARNING" if status[0] == "4" else "INFO"
        method, _, target = request.partition(" ")
        path = target.rpartition(" ")[0] or target
        size = match.group("size")
        return Entry(time, level, f"{status} {method} {path.partition('?')[0]}".rstrip(), number,
                     (match.group("client"), status, path.partition("?")[0] or "-", 0 if size == "-" else int(size)))

    def _syslog(self, number, line):
        match = _SYSLOG.match(line)
        if not match:
            return None
        time = self._yearless(_MONTHS[match.group("month")], match)
        self.kinds["syslog"] += 1
        message = line[match.end():].strip()
        level, rest = _level_and_rest(message)
        if not level:
            level = "ERROR" if _FAILED.search(message) else "WARNING" if _WARNED.search(message) else ""
        return Entry(time, level, f"{match.group('app')}: {rest}", number)

    def _klog(self, number, line):
        match = _KLOG.match(line)
        if not match or not 1 <= int(match.group("month")) <= 12:
            return None
        self.kinds["klog"] += 1
        return Entry(self._yearless(int(match.group("month")), match), _NORMAL_LEVEL[match.group("level")], line[match.end():].strip(), number)

    def _apache_error(self, number, line):
        match = _APACHE_ERROR.match(line)
        if not match or match.group("month") not in _MONTHS:
            return None
        self.kinds["Apache error log"] += 1
        date = f"{match.group('year')}-{_MONTHS[match.group('month')]:02d}-{int(match.group('day')):02d}"
        level, message = _level_and_rest(line[match.end():].strip())
        return Entry(self._time(date, match.group("minute"), match.group("second"), None), level, message, number)

    def _json(self, number, line):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            return None
        if not isinstance(record, dict):
            return None
        self.kinds["JSON lines"] += 1
        low = {key.lower(): value for key, value in record.items()}

        def pick(*names):
            return next((low[name] for name in names if low.get(name) not in (None, "")), "")
        stamp, level = pick("time", "timestamp", "@timestamp", "ts", "date", "datetime", "t"), pick("level", "severity", "lvl", "levelname", "log.level", "loglevel")
        message = pick("msg", "message", "event", "error", "err", "@m", "body")
        if isinstance(level, (int, float)):
            level = _NUMBER_LEVELS.get(int(level), str(level))
        if not isinstance(message, str):
            message = json.dumps(message, ensure_ascii=False)
        message = message or line.strip()
        entry = Entry(self._stamp(stamp), normal_level(str(level)), message, number)
        trace = pick("exc_info", "stack", "stacktrace", "traceback", "exception")
        if isinstance(trace, str) and trace:
            entry.more = trace.splitlines()[:MAX_CONTINUATION_LINES]
        return entry

    def _level_first(self, number, line):
        match = _LEVEL.match(line)
        if not match or line[:1].isspace() or match.group("level").istitle():  # "Error: …" ends many a stack trace
            return None
        self.kinds["level first, no time"] += 1
        return Entry(None, normal_level(match.group("level")), line[match.end():].strip(" -:"), number)

    def _stamp(self, stamp):
        if isinstance(stamp, (int, float)) and not isinstance(stamp, bool) or isinstance(stamp, str) and re.fullmatch(r"\d{9,19}(?:\.\d+)?", stamp):
            value = float(stamp)
            while value > 1e11:  # milliseconds, microseconds, nanoseconds
                value /= 1000
            self.aware, self.offset = True, 0 if self.offset is None else self.offset
            return value if value == value and value >= 0 else None
        match = _ISO.match(stamp) if isinstance(stamp, str) else None
        if not match:
            return None
        return self._time(match.group("date").replace("/", "-"), match.group("minute"), match.group("second") or "0", match.group("offset"))

    def _time(self, date, minute, second, offset):
        """Return seconds since 1970, UTC when the line names its offset."""
        base = self.days.get(date)
        if base is None:
            try:
                base = (datetime.date(int(date[:4]), int(date[5:7]), int(date[8:10])).toordinal() - 719_163) * 86_400
            except ValueError:
                base = -1
            if len(self.days) > 50_000:
                self.days.clear()
            self.days[date] = base
        if base < 0:
            return None
        time = base + int(minute[:2]) * 3600 + int(minute[3:]) * 60 + int(second)
        if offset:
            offset = offset.strip()
            seconds = 0
            if offset[0] in "+-":
                seconds = (int(offset[1:3]) * 3600 + int(offset[-2:]) * 60) * (-1 if offset[0] == "-" else 1)
            self.offset = seconds if self.offset is None else self.offset
            self.aware = True
            time -= seconds
        return time

    def _yearless(self, month, match):
        self.has_year = False
        if month == 1 and self.last_month == 12:
            self.years_added += 1
        self.last_month = month
        # 1972 stands for the year that is not written: a leap year.
        return self._time(f"{1972 + self.years_added}-{month:02d}-{int(match.group('day')):02d}", match.group("minute"), match.group("second"), None)

    def show(self, time):
        """Return a time as the log writes it."""
        if time is None:
            return "-"
        moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=int(time) + (self.offset or 0))
        if not self.has_year:
            return f"{list(_MONTHS)[moment.month - 1]} {moment.day:2d} {moment:%H:%M:%S}"
        zone = ""
        if self.aware:
            minutes = abs(self.offset) // 60
            zone = f"{'-' if self.offset < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}" if self.offset else "Z"
        return f"{moment:%Y-%m-%d %H:%M:%S}{zone}"


def normal_level(level):
    """Return one of LEVELS for the spellings in use, else the level in capitals."""
    level = level.upper()
    return _NORMAL_LEVEL.get(level, level) if len(level) > 1 else level


def _level_and_rest(text):
    match = _LEVEL.search(text[:120])
    if not match:
        return "", text
    before = text[:match.start("level")]
    if before.endswith(("=", '="')):  # level=info
        before = before.rpartition("=")[0].rpartition(" ")[0]
    before = before.strip(" -|[]()<:")
    rest = text[match.end():].strip(" -|:")
    message = f"{before}: {rest}" if before else rest
    return normal_level(match.group("level")), message


def read_log(name, encoding=None, form=None):
    """Yield the entries of a log file; lines that begin no entry belong to the one before (`more`)."""
    form = form or LogFormat()
    current = None
    for number, line in lines_of(name, encoding):
        if not line.strip():
            continue
        entry = None if line[0] in " \t" else form.entry(number, line)
        if entry is None:
            if current is None:
                form.kinds["unknown"] += 1
                entry = Entry(None, "", line.strip(), number)
                entry.file = name
                yield entry
            elif len(current.more) < MAX_CONTINUATION_LINES:
                current.more.append(line)
            continue
        if current is not None:
            yield current
        current = entry
        current.file = name
    if current is not None:
        yield current


_ZEROS = {ord(digit): "0" for digit in "123456789"}
_patterns = {}


def normalize(message):
    """Return a message with numbers, ids, addresses and times replaced, so that like ones are equal."""
    message = message[:MAX_PATTERN_CHARACTERS]
    # What is replaced hangs on where digits stand, not on which: one look for all messages of one shape.
    shape = message.translate(_ZEROS)
    pattern = _patterns.get(shape)
    if pattern is None:
        expression = _VARIABLE_OR_MAIL if "@" in message else _VARIABLE
        pattern = expression.sub(lambda match: f"<{match.lastgroup}>", message)
        if "0x" not in shape and "0X" not in shape:
            if len(_patterns) >= MAX_SHAPES:
                _patterns.clear()
            _patterns[shape] = pattern
    return pattern


class _Group:
    __slots__ = ("count", "first", "last", "line", "file", "sample", "level", "cause")

    def __init__(self, entry):
        self.count, self.first, self.last = 0, entry.time, entry.time
        self.line, self.file, self.sample, self.level, self.cause = entry.line, entry.file, entry.message, entry.level, ""


def _cause(entry):
    """Return the line that names the exception under an entry, or ""."""
    for line in reversed(entry.more):
        if line[:1].isspace():
            continue
        if re.match(r"(?:Caused by: )?[\w.$]+(?:Error|Exception|Interrupt|Exit|Warning|Panic)\b|panic:|thread '", line):
            return line.strip()
    head = entry.more[0].strip() if entry.more else ""
    return head if re.match(r"[\w.$]+(?:Error|Exception)\b", head) else ""


_STEPS = (1, 10, 60, 300, 900, 3600, 21_600, 86_400, 604_800)


class _Rate:
    """Entries and errors per stretch of time; stretches grow as the log does."""

    def __init__(self, step=None):
        self.limit, self.step, self.buckets = SHOWN_BUCKETS_FIXED if step else SHOWN_BUCKETS, step or 1, {}

    def add(self, time, failed):
        bucket = self.buckets.get(int(time) // self.step)
        if bucket is None:
            if len(self.buckets) >= MAX_BUCKETS:
                self.coarsen()
                return self.add(time, failed)
            bucket = self.buckets[int(time) // self.step] = [0, 0]
        bucket[0] += 1
        bucket[1] += failed
        return None

    def coarsen(self):
        before, self.step = self.step, next((step for step in _STEPS if step > self.step), self.step * 4)
        merged = {}
        for key, (count, errors) in self.buckets.items():
            bucket = merged.setdefault(key * before // self.step, [0, 0])
            bucket[0] += count
            bucket[1] += errors
        self.buckets = merged

    def rows(self):
        """Return [start, entries, errors] of every stretch from first to last, few enough to show."""
        while max(self.buckets) - min(self.buckets) >= self.limit:
            self.coarsen()
        return [[key * self.step, *self.buckets.get(key, (0, 0))] for key in range(min(self.buckets), max(self.buckets) + 1)]


_MOMENT = re.compile(r"(?:(?P<year>\d{4})-(?P<m>\d\d)-(?P<d>\d\d)|(?P<month>[A-Z][a-z]{2}) +(?P<day>\d{1,2}))(?:[T ](?P<hour>\d\d)(?::(?P<minute>\d\d)(?::(?P<second>\d\d))?)?)?")


class Moment:
    """A time as a person gives it: "2026-01-31", "2026-01-31 14:05", "Nov 21 06:30", in the log's own zone."""

    def __init__(self, text, end=False):
        match = _MOMENT.fullmatch(text.strip())
        if not match or match.group("month") and match.group("month") not in _MONTHS:
            raise AnalyzeError(f"{text!r} is no time; write 2026-01-31, '2026-01-31 14:05' or 'Nov 21 06:30'")
        self.written = [int(match.group(name) or 0) for name in ("hour", "minute", "second")]
        month = _MONTHS[match.group("month")] if match.group("month") else int(match.group("m"))
        self.date = (int(match.group("year") or 1972), month, int(match.group("day") or match.group("d")))
        length = 1 if match.group("second") else 60 if match.group("minute") else 3_600 if match.group("hour") else 86_400
        self.length = length - 0.001 if end else 0  # "until 14:05" takes that minute in
        try:
            self.seconds = {True: self._seconds(self.date[0]), False: self._seconds(1972)}
        except ValueError:
            raise AnalyzeError(f"{text!r} is no time") from None

    def settle(self, first):
        """Choose the year for a log that writes none and goes on past New Year."""
        if first - self.seconds[False] > 180 * 86_400:
            self.seconds[False] = self._seconds(1973)

    def _seconds(self, year):
        hour, minute, second = self.written
        day = datetime.date(year, *self.date[1:]).toordinal() - 719_163
        return day * 86_400 + hour * 3_600 + minute * 60 + second + self.length


def log_report(names, encoding=None, top=10, step=None, since=None, until=None, min_level=None, match=None):
    """Return what a log says as a dict: range, levels, rate, frequent messages, errors in groups.

    `since` and `until` are Moments, `step` is in seconds, `match` a compiled pattern.
    """
    form, rate = LogFormat(), _Rate(step)
    levels, total, lines_more, dropped = Counter(), 0, 0, False
    first = last = first_local = None
    messages, errors = {}, {}
    statuses, paths, clients, sent = Counter(), Counter(), Counter(), 0
    lowest = LEVELS.index(min_level) if min_level else 0
    for name in names:
        for entry in read_log(name, encoding, form):
            if min_level and (entry.level not in LEVELS or LEVELS.index(entry.level) < lowest):
                continue
            local = None if entry.time is None else entry.time + (form.offset or 0)
            if first_local is None and local is not None and not form.has_year:
                first_local = local
                for moment in filter(None, (since, until)):
                    moment.settle(first_local)
            if since and (local is None or local < since.seconds[form.has_year]):
                continue
            if until and (local is None or local > until.seconds[form.has_year]):
                continue
            if match and not match.search(entry.message) and not any(map(match.search, entry.more)):
                continue
            total += 1
            lines_more += len(entry.more)
            levels[entry.level or "(none)"] += 1
            failed = entry.level in ("ERROR", "CRITICAL")
            if entry.time is not None:
                first = entry.time if first is None or entry.time < first else first
                last = entry.time if last is None or entry.time > last else last
                rate.add(local, failed)
            # The status of an access log is no variable part.
            status = entry.message[:4] if entry.access else ""
            pattern = status + normalize(entry.message[len(status):])
            dropped |= _add_to_group(messages, pattern, entry)
            if failed:
                cause = _cause(entry) if entry.more else ""
                dropped |= _add_to_group(errors, f"{pattern} | {normalize(cause)}" if cause else pattern, entry, cause)
            if entry.access:
                client, status, path, size = entry.access
                statuses[status] += 1
                sent += size
                for counter, value in ((paths, path), (clients, client)):
                    counter[value] += 1
                    if len(counter) > MAX_GROUPS:
                        dropped = True
                        for key, _ in counter.most_common()[MAX_GROUPS // 2:]:
                            del counter[key]
    report = {"entries": total, "continuation_lines": lines_more, "formats": dict(form.kinds.most_common()),
              "first": form.show(first), "last": form.show(last), "levels": _ordered_levels(levels)}
    if first is not None:
        report["rate"] = [[form.show(start - (form.offset or 0)), count, errors] for start, count, errors in rate.rows()]
        report["bucket_seconds"] = rate.step
    if statuses:
        report["statuses"] = dict(sorted(statuses.items()))
        report["paths"], report["clients"], report["bytes_sent"] = dict(_top(paths, top)), dict(_top(clients, top)), sent
    report["messages"] = [_group_facts(key, group, form, len(names) > 1) for key, group in _top_groups(messages, top)]
    report["errors"] = [_group_facts(key, group, form, len(names) > 1) for key, group in _top_groups(errors, top)]
    report["message_groups"], report["error_groups"] = len(messages), len(errors)
    if dropped:
        report["note"] = "very many different messages: rare ones were dropped"
    return report


def _add_to_group(groups, key, entry, cause=""):
    group, dropped = groups.get(key), False
    if group is None:
        if len(groups) >= MAX_GROUPS:
            dropped = True
            for rare, _ in sorted(groups.items(), key=lambda item: item[1].count)[:MAX_GROUPS // 2]:
                del groups[rare]
        group = groups[key] = _Group(entry)
        group.cause = cause
    group.count += 1
    if entry.time is not None:
        group.first = entry.time if group.first is None else min(group.first, entry.time)
        group.last = entry.time if group.last is None else max(group.last, entry.time)
    return dropped


def _ordered_levels(levels):
    known = [level for level in reversed(LEVELS) if level in levels]
    return {level: levels[level] for level in known + sorted(set(levels) - set(known))}


def _top(counter, count):
    return sorted(counter.items(), key=lambda item: (-item[1], item[0]))[:count]


def _top_groups(groups, count):
    return sorted(groups.items(), key=lambda item: (-item[1].count, item[0]))[:count]


def _group_facts(key, group, form, several):
    facts = {"count": group.count, "level": group.level, "pattern": key, "first": form.show(group.first), "last": form.show(group.last),
             "line": group.line, "sample": group.sample[:1_000]}
    if several:
        facts["file"] = group.file
    if group.cause:
        facts["cause"] = group.cause[:1_000]
    return facts


# ---------------------------------------------------------------- showing


def _clip(text, width=SHOWN_CHARACTERS):
    if not text.isprintable():
        text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return text if len(text) <= width else text[:width - 1] + "…"


def _pairs(title, pairs):
    if pairs:
        width = max(len(str(count)) for _, count in pairs)
        print(f"\n{title}")
        for name, count in pairs:
            print(f"  {count:>{width}}  {_clip(str(name))}")


def _duration(seconds):
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds % size == 0:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def _print_log(report, names):
    formats = ", ".join(f"{kind} ({count})" for kind, count in report["formats"].items())
    print(f"{', '.join(names)}: {report['entries']} entries, {report['continuation_lines']} lines that continue one")
    print(f"format  {formats or 'none'}")
    print(f"first   {report['first']}\nlast    {report['last']}")
    _pairs("levels", list(report["levels"].items()))
    if report.get("rate"):
        print(f"\nrate per {_duration(report['bucket_seconds'])} (entries, errors)")
        most = max(row[1] for row in report["rate"]) or 1
        size = len(str(most))
        for start, count, errors in report["rate"]:
            print(f"  {start}  {count:>{size}}  {errors:>{size}}  {'#' * -(-30 * count // most)}".rstrip())
    if "statuses" in report:
        _pairs("statuses", list(report["statuses"].items()))
        _pairs("paths", list(report["paths"].items()))
        _pairs("clients", list(report["clients"].items()))
        print(f"\nbytes sent: {report['bytes_sent']}")
    for title, groups, count in (("messages", report["messages"], report["message_groups"]), ("errors", report["errors"], report["error_groups"])):
        if groups:
            size = max(len(str(group["count"])) for group in groups)
            print(f"\n{title}, {count} groups" + (f", top {len(groups)}" if len(groups) < count else ""))
            for group in groups:
                level = f"{group['level']} " if title == "messages" and group["level"] else ""
                print(f"  {group['count']:>{size}}  {level}{_clip(group['pattern'])}")
                if title == "errors":
                    place = f"{group['file']}:{group['line']}" if "file" in group else f"line {group['line']}"
                    print(f"  {'':>{size}}  first {group['first']} ({place}), last {group['last']}")
    if "note" in report:
        print(f"\nnote: {report['note']}")


# ---------------------------------------------------------------- commands


def _run_summary(options):
    results = [text_summary(name, options.encoding) for name in options.files]
    if options.json:
        print(json.dumps(results, ensure_ascii=False))
        return
    for place, result in enumerate(results):
        width = max(map(len, result))
        print("\n" * (place > 0) + "\n".join(f"{name:<{width}}  {value}" for name, value in result.items()))


def _run_frequency(options):
    pattern = _pattern(options.pattern, False, not options.case_sensitive) if options.pattern else None
    lines = (line for name in options.files for line in lines_of(name, options.encoding, pieces=True))
    counts, words, dropped = frequencies(lines, options.ngram, options.min_length, options.no_stopwords, options.case_sensitive, pattern)
    top = _top(counts, options.top)
    if options.json:
        print(json.dumps({"words": words, "distinct": len(counts), "top": dict(top), "rare_dropped": dropped}, ensure_ascii=False))
        return
    what = "words" if options.ngram == 1 else f"sequences of {options.ngram} words"
    print(f"{words} words, {'over ' if dropped else ''}{len(counts)} different {what}")
    _pairs("most frequent", top)


def _run_log(options):
    match = _pattern(options.match, False, True) if options.match else None
    since, until = options.since and Moment(options.since), options.until and Moment(options.until, end=True)
    level = normal_level(options.level) if options.level else None
    if level and level not in LEVELS:
        raise AnalyzeError(f"unknown level {options.level!r}; known: {', '.join(LEVELS)}")
    report = log_report(options.files, options.encoding, options.top, options.bucket, since, until, level, match)
    if options.json:
        print(json.dumps(report, ensure_ascii=False))
    else:
        _print_log(report, options.files)


def _run_search(options):
    pattern = _pattern(options.pattern, options.fixed, options.ignore_case, "; --fixed takes it as it is")
    matches, shown, results = 0, 0, []

    def give(name, number, line, mark):
        if options.json:
            results.append({"file": name, "line": number, "match": mark == ":", "text": line[:options.width]})
        else:
            print(f"{name + ':' if len(options.files) > 1 else ''}{number}{mark}{_clip(line, options.width)}")

    for name in options.files:
        before, after, last = collections.deque(maxlen=options.context), 0, 0
        for number, line in lines_of(name, options.encoding):
            hit = (pattern.search(line) is not None) != options.invert
            matches += hit
            if options.count or hit and shown >= options.max:
                after = 0
            elif hit:
                first = before[0][0] if before else number
                if options.context and last and first > last + 1 and not options.json:
                    print("--")
                for earlier in before:
                    give(name, *earlier, "-")
                before.clear()
                give(name, number, line, ":")
                shown, after, last = shown + 1, options.context, number
            elif after:
                give(name, number, line, "-")
                after, last = after - 1, number
            else:
                before.append((number, line))
    if options.json:
        print(json.dumps({"matches": matches, "shown": shown, "lines": results}, ensure_ascii=False))
    elif options.count:
        print(matches)
    else:
        print(f"({matches} lines match{f', {shown} shown (--max)' if shown < matches else ''})")


def _pattern(text, fixed, ignore_case, hint=""):
    try:
        return re.compile(re.escape(text) if fixed else text, re.IGNORECASE if ignore_case else 0)
    except re.error as error:
        raise AnalyzeError(f"{text!r} is no regular expression: {error}{hint}") from None


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        self.exit(2, f"analyze.py: error: {message[:300]} (see --help)\n")


def _count(low, high):
    def parse(text):
        if not re.fullmatch(r"\d{1,9}", text.strip()) or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(f"needs a whole number from {low} to {high}, not {text!r}")
        return int(text)
    return parse


def _bucket(text):
    match = re.fullmatch(r"(\d{1,6})([smhd])", text.strip())
    if not match or not int(match.group(1)):
        raise argparse.ArgumentTypeError(f"needs a number and s, m, h or d, such as 5m, not {text!r}")
    return int(match.group(1)) * {"s": 1, "m": 60, "h": 3_600, "d": 86_400}[match.group(2)]


def build_parser():
    """Return the command line's parser."""
    parser = _Parser(prog="analyze.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    common = _Parser(add_help=False)
    common.add_argument("--encoding", help="default: found out (UTF-8, UTF-16, Windows-1252)")
    common.add_argument("--json", action="store_true", help="JSON on one line")
    files = {"nargs": "+", "metavar": "FILE", "help": "text, also .gz; - for stdin"}

    command = commands.add_parser("summary", parents=[common], help="lines, words, line endings, encoding, oddities")
    command.add_argument("files", **files)
    command = commands.add_parser("frequency", parents=[common], help="most frequent words or word sequences")
    command.add_argument("files", **files)
    command.add_argument("--ngram", type=_count(1, 10), default=1, help="words in a sequence (default 1)")
    command.add_argument("--top", type=_count(1, 10_000), default=20, help="how many (default 20)")
    command.add_argument("--min-length", type=_count(1, 100), default=1, help="leave out shorter words")
    command.add_argument("--no-stopwords", action="store_true", help="leave out common English words")
    command.add_argument("--case-sensitive", action="store_true")
    command.add_argument("--pattern", help="regular expression of what counts as a word")
    command = commands.add_parser("log", parents=[common], help="levels, time range, rate, messages and errors in groups")
    command.add_argument("files", **files)
    command.add_argument("--top", type=_count(1, 1_000), default=10, help="groups shown (default 10)")
    command.add_argument("--bucket", type=_bucket, help="stretch of the rate, such as 5m (default: fitting)")
    command.add_argument("--since", metavar="TIME", help="from here, as the log's first column writes it: 2026-01-31 or '2026-01-31 14:05'")
    command.add_argument("--until", metavar="TIME", help="up to here, that minute or day included")
    command.add_argument("--level", help="this level and above")
    command.add_argument("--match", metavar="REGEX", help="only entries whose message or stack trace matches (any case)")
    command = commands.add_parser("search", parents=[common], help="lines that match, with numbers and context")
    command.add_argument("pattern", metavar="PATTERN", help="regular expression")
    command.add_argument("files", **files)
    command.add_argument("-C", "--context", type=_count(0, 1_000), default=0, help="lines before and after")
    command.add_argument("-i", "--ignore-case", action="store_true")
    command.add_argument("-F", "--fixed", action="store_true", help="PATTERN is plain text")
    command.add_argument("-v", "--invert", action="store_true", help="lines that do not match")
    command.add_argument("-c", "--count", action="store_true", help="only the number of lines")
    command.add_argument("--max", type=_count(1, 100_000), default=50, help="matches shown (default 50)")
    command.add_argument("--width", type=_count(10, 100_000), default=300, help="characters of a line shown (default 300)")
    return parser


def main(arguments=None):
    """Run the command line; return the exit status."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    options = build_parser().parse_args(arguments)
    if options.encoding is not None:
        try:
            codecs.lookup(options.encoding)
        except LookupError:
            print(f"analyze.py: error: unknown encoding {options.encoding!r}", file=sys.stderr)
            return 2
    run = {"summary": _run_summary, "frequency": _run_frequency, "log": _run_log, "search": _run_search}[options.command]
    try:
        run(options)
        sys.stdout.flush()
        return 0
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the reader left: nothing more to say
        return 0
    except (AnalyzeError, OSError) as error:
        print(f"analyze.py: error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""A look into CSV, TSV, JSON and JSON Lines files (also .gz, also - for stdin).

    explore.py profile FILE                          columns, types, gaps, ranges, frequent values
    explore.py head FILE -n 10
    explore.py filter FILE "amount > 100" "region in North,South" --sort amount --desc
    explore.py group FILE --by region --of amount    count, sum, mean, min, max

Files are streamed: size costs time, not memory. Sums are exact decimal sums.
Importable: open_table, profile, parse_condition, group_rows, number. Standard library only.
"""
import argparse
import codecs
import contextlib
import csv
import datetime
import decimal
import difflib
import gzip
import heapq
import io
import itertools
import json
import os
import re
import sys
from collections import Counter
from decimal import Decimal

# Bounds: what is larger ends with a message, not with a hung machine.
SAMPLE_BYTES = 1 << 20
MAX_FIELD_CHARACTERS = 10_000_000
MAX_COLUMNS = 5_000
MAX_DOCUMENT_BYTES = 256 << 20
MAX_RECORD_CHARACTERS = 64 << 20
MAX_FLATTEN_DEPTH = 6
MAX_TRACKED_VALUES = 20_000
MAX_GROUPS = 200_000
MAX_SORTED_ROWS = 1_000_000
BATCH_ROWS = 5_000

COMMANDS = ("profile", "head", "filter", "group")
MISSING = frozenset(("", "na", "n/a", "#n/a", "nan", "null", "none", "nil", "-", "--", "?"))


class ExploreError(Exception):
    """What the caller can mend; its text is one line."""


# ---------------------------------------------------------------- reading


class Table:
    """An open table: `columns` (list of names), `rows` (iterator of lists of text), and how it was read.

    Missing cells are "". The columns of JSON records may grow while the rows are read.
    """

    def __init__(self, name, form, encoding, delimiter=None):
        self.name, self.format, self.encoding, self.delimiter = name, form, encoding, delimiter
        self.columns, self.rows, self.findings = [], iter(()), {}

    def find(self, what, line):
        """Remember an oddity: how often, and where first."""
        count, first = self.findings.get(what, (0, line))
        self.findings[what] = (count + 1, first)

    def notes(self):
        """Return the oddities met so far, one line each."""
        return [f"{what}: {count} (first at line {first})" for what, (count, first) in self.findings.items()]

    def index(self, column):
        """Return the place of a column given by name (any case) or by number counted from 1."""
        if column in self.columns:
            return self.columns.index(column)
        lower = [name.lower() for name in self.columns]
        if column.strip().lower() in lower:
            return lower.index(column.strip().lower())
        if column.isascii() and column.isdigit() and 1 <= int(column) <= len(self.columns):
            return int(column) - 1
        near = difflib.get_close_matches(column.lower(), lower, 1)
        hint = f" (did you mean {self.columns[lower.index(near[0])]!r}?)" if near else ""
        shown = ", ".join(self.columns[:40]) + (", …" if len(self.columns) > 40 else "")
        raise ExploreError(f"no column {column!r}{hint}; columns: {shown}")

    def indexes(self, columns):
        """Return the places of columns given as one text, separated by commas."""
        if columns in self.columns:
            return [self.columns.index(columns)]
        return [self.index(column.strip()) for column in columns.split(",") if column.strip()]


@contextlib.contextmanager
def open_table(name, form=None, delimiter=None, encoding=None, header=True, records=None, decimal_comma=False):
    """Open a file as a Table; format, encoding and delimiter are found out unless given.

    with open_table("orders.csv") as table:
        for row in table.rows: print(dict(zip(table.columns, row)))
    """
    if encoding is not None:
        try:
            codecs.lookup(encoding)
        except LookupError:
            raise ExploreError(f"unknown encoding {encoding!r}") from None
    with contextlib.ExitStack() as stack:
        stream, sample, path = _open_bytes(name, stack)
        encoding = encoding or _find_encoding(sample, name)
        text = codecs.decode(sample, encoding, "replace")
        if not text.strip():
            raise ExploreError(f"{name} is empty")
        form = form or _find_format(path, text)
        table = Table(path, form, encoding)
        lines = io.TextIOWrapper(stream, encoding=encoding, errors="replace", newline="")
        stack.callback(lines.detach)
        try:
            if form in ("csv", "tsv"):
                table.delimiter = delimiter or ("\t" if form == "tsv" else _find_delimiter(text, len(sample) < SAMPLE_BYTES))
                _read_csv(table, lines, header)
            else:
                _read_records(table, _lines_as_records(table, lines) if form == "jsonl" else _document_as_records(table, lines, records))
            if decimal_comma:
                table.rows = map(_with_points, table.rows)
            yield table
        except csv.Error as error:
            raise ExploreError(f"{name}: {error}") from None
        except UnicodeError as error:
            raise ExploreError(f"{name} is not {encoding}: {error.reason if hasattr(error, 'reason') else error}") from None
        except (EOFError, gzip.BadGzipFile if hasattr(gzip, "BadGzipFile") else OSError) as error:
            raise ExploreError(f"{name}: {error}") from None


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
            raise ExploreError(f"{folders[0]} is a folder, not a file")
        raise ExploreError(f"no file {name!r}: looked for {' and '.join(places)}")
    if len(files) == 2 and not os.path.samefile(*files):
        print(f"explore.py: note: reading {files[0]}, not {files[1]}", file=sys.stderr)
    return files[0]


class _Joined(io.RawIOBase):
    """What was read from a pipe to look at it, then the rest of the pipe."""

    def __init__(self, start, rest):
        super().__init__()
        self.start, self.rest = start, rest

    def readable(self):
        return True

    def readinto(self, buffer):
        data = self.start[:len(buffer)]
        self.start = self.start[len(data):]
        data = data or self.rest.read(len(buffer))
        buffer[:len(data)] = data
        return len(data)


def _open_bytes(name, stack):
    if name == "-":
        if sys.stdin is None or sys.stdin.isatty():
            raise ExploreError("nothing on stdin")
        path, stream = "stdin", io.BufferedReader(_Joined(b"", sys.stdin.buffer), 1 << 16)
    else:
        path = find_input(name)
        stream = stack.enter_context(open(path, "rb"))
    if stream.peek(2)[:2] == b"\x1f\x8b":
        stream = io.BufferedReader(stack.enter_context(gzip.GzipFile(fileobj=stream)), 1 << 16)
    try:
        sample = stream.read(SAMPLE_BYTES)
    except (EOFError, OSError) as error:
        raise ExploreError(f"failed to read {name}: {error}") from None
    # The sample is data too: it comes first in what is read.
    return io.BufferedReader(_Joined(sample, stream), 1 << 16), sample, path


def _find_encoding(sample, name):
    if sample.startswith(codecs.BOM_UTF8):
        return "utf-8-sig"
    if sample[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return "utf-16"
    if b"\0" in sample:
        evens, odds = sample[:4096:2].count(0), sample[1:4096:2].count(0)
        if max(evens, odds) > len(sample[:4096]) * 0.4:
            return "utf-16-be" if evens > odds else "utf-16-le"
        raise ExploreError(f"{name} looks like a binary file (it holds NUL bytes)")
    text = codecs.getincrementaldecoder("utf-8")("replace").decode(sample)
    wrong = text.count("\ufffd")
    # A few bad bytes in a UTF-8 file are damage; mostly bad ones mean an older encoding.
    if wrong and wrong > sum(character > "\x7f" for character in text) - wrong:
        return "cp1252"
    return "utf-8"


def _find_format(path, text):
    ending = os.path.splitext(path[:-3] if path.lower().endswith(".gz") else path)[1].lower()
    known = {".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".json": "json", ".jsonl": "jsonl", ".ndjson": "jsonl"}
    form = known.get(ending)
    if form in (None, "json") and text.lstrip()[:1] in ("{", "["):
        first, _, rest = text.lstrip("\ufeff \t\r\n").partition("\n")
        with contextlib.suppress(ValueError, RecursionError):
            json.loads(first)  # one whole value on the first line and more below: JSON Lines
            return "jsonl" if rest.strip() else "json"
        return "json"
    return form or "csv"


def _find_delimiter(text, whole):
    lines = text[:1 << 16].splitlines(True)
    if len(lines) > 1 and not (whole and len(text) <= 1 << 16):
        lines.pop()
    best, best_score = ",", (0, 0)
    for delimiter in ",\t;|":
        try:
            widths = Counter(len(row) for row in csv.reader(lines[:100], delimiter=delimiter) if row)
        except csv.Error:
            continue
        width, count = widths.most_common(1)[0] if widths else (1, 0)
        score = (count / sum(widths.values()), width) if width > 1 else (0, 0)
        if score > best_score:
            best, best_score = delimiter, score
    return best


def _read_csv(table, lines, header):
    csv.field_size_limit(MAX_FIELD_CHARACTERS)
    reader = csv.reader(_clean_lines(table, lines), delimiter=table.delimiter)
    first = next((row for row in reader if any(row)), None)
    if first is None:
        raise ExploreError(f"{table.name} holds no rows")
    if len(first) > MAX_COLUMNS:
        raise ExploreError(f"{table.name} has {len(first)} columns; at most {MAX_COLUMNS} are read")
    if header:
        table.columns = _unique_names(cell.strip() for cell in first)
        if all(kind_of(cell) in ("integer", "number", "missing") for cell in first):
            table.find("the first row holds no names; if it is data, give --no-header", reader.line_num)
    else:
        table.columns = [f"column_{place}" for place in range(1, len(first) + 1)]
    table.rows = _even_rows(table, reader, len(first), None if header else first)


def _clean_lines(table, lines):
    for number, line in enumerate(lines, 1):
        if "\ufffd" in line:
            table.find(f"lines with bytes that are not {table.encoding}", number)
        if "\0" in line:  # older csv modules refuse it
            table.find("lines with NUL characters (left out)", number)
            line = line.replace("\0", "")
        yield line


def _even_rows(table, reader, width, first):
    if first is not None:
        yield first
    for row in reader:
        if len(row) != width:
            if not row:
                continue
            if len(row) < width:
                table.find("rows with too few cells", reader.line_num)
                row += [""] * (width - len(row))
            else:
                if any(row[width:]):
                    table.find("rows with too many cells (the rest is left out)", reader.line_num)
                del row[width:]
        yield row


def _unique_names(cells):
    names = []
    for place, cell in enumerate(cells, 1):
        name = base = cell or f"column_{place}"
        count = 2
        while name in names:
            name, count = f"{base}_{count}", count + 1
        names.append(name)
    return names


def _decoder():
    # Numbers stay text: no digit is lost on the way.
    return json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=str)


def _lines_as_records(table, lines):
    decoder = _decoder()
    for number, line in enumerate(lines, 1):
        line = line.strip("\ufeff \t\r\n")
        if line:
            try:
                yield decoder.decode(line)
            except (ValueError, RecursionError):
                table.find("lines that are not JSON (left out)", number)


def _document_as_records(table, lines, records):
    start = ""
    while not start.strip("\ufeff \t\r\n"):
        start = lines.read(1 << 16)
    start = start.lstrip("\ufeff \t\r\n")
    if start.startswith("[") and not records:
        yield from _array_items(table, start[1:], lines)
        return
    text = start + lines.read(MAX_DOCUMENT_BYTES)
    if len(text) >= MAX_DOCUMENT_BYTES:
        raise ExploreError(f"{table.name} is one JSON value of over {MAX_DOCUMENT_BYTES >> 20} MB; JSON Lines or an array can be streamed")
    try:
        document = _decoder().decode(text)
    except ValueError as error:
        raise ExploreError(f"{table.name} is not JSON: {error}") from None
    except RecursionError:
        raise ExploreError(f"{table.name} is nested too deeply") from None
    yield from _records_in(table, document, records)


def _records_in(table, document, records):
    for key in records.split(".") if records else ():
        if not isinstance(document, dict) or key not in document:
            known = ", ".join(list(document)[:20]) if isinstance(document, dict) else "none"
            raise ExploreError(f"no key {key!r} in {table.name}; keys: {known}")
        document = document[key]
    if isinstance(document, list):
        return document
    if not isinstance(document, dict):
        raise ExploreError(f"{table.name} holds a single value, no records")
    lists = [key for key, value in document.items() if isinstance(value, list) and value and isinstance(value[0], dict)]
    if len(lists) > 1:
        raise ExploreError(f"{table.name} holds several lists; choose one with --records: {', '.join(lists[:20])}")
    return document[lists[0]] if lists else [document]


def _array_items(table, buffer, lines):
    decoder, position, step, number, ended = _decoder(), 0, 1 << 16, 0, False
    while True:
        while position < len(buffer) and buffer[position] in " \t\r\n,":
            position += 1
        if position < len(buffer) and buffer[position] == "]":
            return
        problem = None
        if position < len(buffer):
            try:
                item, end = decoder.raw_decode(buffer, position)
            except ValueError as error:
                problem = error
            except RecursionError:
                raise ExploreError(f"{table.name}, record {number + 1} is nested too deeply") from None
            else:
                if end < len(buffer) or ended:  # a number at the edge may go on
                    number, position, step = number + 1, end, 1 << 16
                    yield item
                    continue
        more = "" if ended else lines.read(step)
        ended, step = not more, step * 2
        if ended and problem or len(buffer) - position > MAX_RECORD_CHARACTERS:
            raise ExploreError(f"{table.name}, record {number + 1} is not JSON: {getattr(problem, 'msg', 'too long')}")
        if ended and position >= len(buffer):
            table.find("the array has no end: the file may be cut", number)
            return
        buffer, position = buffer[position:] + more, 0


def _read_records(table, records):
    records = (_flatten(record) for record in records)
    first = list(itertools.islice(records, 1_000))
    if not first:
        raise ExploreError(f"{table.name} holds no records")
    places = {}
    for record in first:
        for key in record:
            places.setdefault(key, len(places))
    table.columns = list(places)
    table.rows = _record_rows(table, itertools.chain(first, records), places)


def _record_rows(table, records, places):
    for record in records:
        row = [""] * len(places)
        for key, value in record.items():
            place = places.get(key)
            if place is None:
                if len(places) >= MAX_COLUMNS:
                    raise ExploreError(f"{table.name} has more than {MAX_COLUMNS} different keys")
                place = places[key] = len(places)
                table.columns.append(key)
                row.append("")
            row[place] = value
        yield row


def _flatten(record):
    flat = {}
    if isinstance(record, dict):
        _flatten_into(flat, record, "", 0)
    elif isinstance(record, list):
        for place, value in enumerate(record, 1):
            flat[f"column_{place}"] = _cell(value)
    else:
        flat["value"] = _cell(record)
    return flat


def _flatten_into(flat, record, prefix, depth):
    for key, value in record.items():
        if isinstance(value, dict) and value and depth < MAX_FLATTEN_DEPTH:
            _flatten_into(flat, value, f"{prefix}{key}.", depth + 1)
        else:
            flat[prefix + key] = _cell(value)


def _cell(value):
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


# ---------------------------------------------------------------- values

_KIND = re.compile(
    r"(?P<integer>[+-]?(?:0|[1-9]\d*|[1-9]\d{0,2}(?:,\d{3})+))"
    r"|(?P<number>[+-]?(?:(?:0|[1-9]\d*|[1-9]\d{0,2}(?:,\d{3})+)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?)"
    r"|(?P<date>\d{4}-\d\d-\d\d|\d{1,2}[./]\d{1,2}[./](?:\d{4}|\d\d))"
    r"|(?P<datetime>\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?)"
    r"|(?P<boolean>[Tt]rue|TRUE|[Ff]alse|FALSE|[Yy]es|YES|[Nn]o|NO)", re.ASCII)
_ISO_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_COMMA_NUMBER = re.compile(r"[+-]?\d+,\d+|[+-]?\d{1,3}(?:\.\d{3})+(?:,\d+)?", re.ASCII)
# Whole batches of one kind, a value a line. Rarer forms take the slow way, with the same result.
_UNIFORM = (
    ("integer", re.compile(r"(?:-?(?:0|[1-9]\d{0,17})\n)+", re.ASCII)),
    ("number", re.compile(r"(?:-?(?:0|[1-9]\d{0,17})(?:\.\d{1,18})?\n)+", re.ASCII)),
    ("date", re.compile(r"(?:\d{4}-\d\d-\d\d\n)+", re.ASCII)),
    ("datetime", re.compile(r"(?:\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d{1,9})?Z?\n)+", re.ASCII)),
)
_WIDE = decimal.Context(prec=60)


def _with_points(row):
    return [cell.replace(".", "").replace(",", ".") if _COMMA_NUMBER.fullmatch(cell.strip()) else cell for cell in row]


def is_missing(value):
    """Tell whether a cell is empty or says so (NA, null, none, -, ?)."""
    return len(value) < 8 and value.strip().lower() in MISSING or not value.strip()


def kind_of(value):
    """Return missing, integer, number, date, datetime, boolean or text. Codes such as 00123 are text."""
    match = _KIND.fullmatch(value)
    if match:
        return match.lastgroup
    if is_missing(value):
        return "missing"
    stripped = value.strip()
    return kind_of(stripped) if stripped != value else "text"


def number(value):
    """Return a cell's Decimal, or None when it is no number."""
    match = _KIND.fullmatch(value) or _KIND.fullmatch(value.strip())
    if match and match.lastgroup in ("integer", "number"):
        return Decimal(match.group().replace(",", ""))
    return None


def plain(value, digits=None):
    """Return a Decimal as text without needless zeros; `digits` rounds to that many."""
    if digits is not None:
        value = decimal.Context(prec=digits).plus(value)
    if not value:
        return "0"
    text = f"{value:f}" if -8 < value.adjusted() < 25 else f"{value:e}"
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text


# ---------------------------------------------------------------- profile


class _Column:
    """What is known of one column so far."""

    def __init__(self, name):
        self.name, self.rows = name, 0
        self.tracked, self.fruitless = True, 0
        self.kinds, self.missing, self.top = Counter(), Counter(), Counter()
        self.pruned, self.examples = False, {}
        self.total, self.least, self.most = Decimal(0), None, None
        self.earliest = self.latest = None
        self.shortest, self.longest = None, 0
        self.comma_numbers = 0

    def add(self, values):
        """Take a batch of cells."""
        filled = [value for value in values if value] if "" in values else values
        if len(filled) < len(values):
            self.missing[""] += len(values) - len(filled)
        if filled:
            if not self._add_uniform(filled):
                self._add_each(Counter(filled))
            self._prune(len(values))

    def _add_uniform(self, values):
        """Take cells that all are plain numbers or all ISO times: one look at all of them is quick."""
        joined = "\n".join(values) + "\n"
        kind = next((kind for kind, pattern in _UNIFORM if pattern.fullmatch(joined)), None)
        if kind is None or joined.count("\n") != len(values):
            return False
        self.kinds[kind] += len(values)
        if self.tracked:
            self.top.update(values)
        if kind in ("integer", "number"):
            with decimal.localcontext(_WIDE):
                numbers = list(map(int if kind == "integer" else Decimal, values))
                self.total += sum(numbers)
                low, high = Decimal(min(numbers)), Decimal(max(numbers))
            self.least = low if self.least is None else min(self.least, low)
            self.most = high if self.most is None else max(self.most, high)
        else:
            low, high = min(values), max(values)
            self.earliest = low if self.earliest is None else min(self.earliest, low)
            self.latest = high if self.latest is None else max(self.latest, high)
            self.examples.setdefault(kind, values[0])
        return True

    def _prune(self, added):
        self.rows += added
        if len(self.top) > MAX_TRACKED_VALUES:
            self.pruned = True
            frequent = {value: count for value, count in self.top.items() if count * 1_000 > self.rows}
            self.fruitless = 0 if frequent else self.fruitless + 1
            self.tracked = self.fruitless < 5  # all values differ: counting them is of no use
            self.top = Counter(frequent)

    def _add_each(self, counts):
        """Take counted values: each distinct one is looked at once."""
        for value, count in counts.items():
            kind = "text" if len(value) > 5 and value[0].isalpha() else kind_of(value)
            if kind == "missing":
                self.missing[value.strip()] += count
                continue
            self.kinds[kind] += count
            if self.tracked:
                self.top[value] += count
            if kind in ("integer", "number"):
                parsed = Decimal(value.replace(",", ""))
                self.total = _WIDE.add(self.total, _WIDE.multiply(parsed, count))
                if self.least is None or parsed < self.least:
                    self.least = parsed
                if self.most is None or parsed > self.most:
                    self.most = parsed
                continue
            if kind == "text":
                size = len(value)
                if self.shortest is None or size < self.shortest:
                    self.shortest = size
                if size > self.longest:
                    self.longest = size
                if _COMMA_NUMBER.fullmatch(value):
                    self.comma_numbers += count
            elif kind in ("date", "datetime") and _ISO_DATE.match(value):
                if self.earliest is None or value < self.earliest:
                    self.earliest = value
                if self.latest is None or value > self.latest:
                    self.latest = value
            if kind not in self.examples:
                self.examples[kind] = value

    def report(self, top, rows):
        """Return the column's row of the profile as a dict."""
        missing = sum(self.missing.values())
        distinct = len(self.top)
        report = {"column": self.name, "type": self.kind(), "missing": missing,
                  "distinct": f">{MAX_TRACKED_VALUES}" if self.pruned else distinct}
        numbers = self.kinds["integer"] + self.kinds["number"]
        if numbers:
            report["min"], report["max"] = plain(self.least), plain(self.most)
            report["mean"] = plain(_WIDE.divide(self.total, Decimal(numbers)), 6)
            report["sum"] = plain(self.total)
        if self.earliest is not None:
            report["from"], report["to"] = self.earliest, self.latest
        if self.shortest is not None:
            report["length"] = f"{self.shortest}-{self.longest}" if self.shortest != self.longest else str(self.longest)
        if missing > self.missing[""]:
            report["missing_as"] = {name: count for name, count in self.missing.most_common(5) if name}
        if len(self.kinds) > 1 and report["type"] == "mixed":
            report["kinds"] = dict(self.kinds.most_common())
            report["examples"] = dict(self.examples)
        frequent = [(value, count) for value, count in _by_count(self.top)[:top] if count > 1]
        if frequent and (distinct <= 50 or frequent[0][1] > max(2, rows * 0.02)):
            report["top"] = dict(frequent)
        if self.comma_numbers > 0.9 * self.kinds["text"] > 0:
            report["note"] = "numbers with a decimal comma? (--decimal-comma)"
        return report

    def kind(self):
        kinds = set(self.kinds)
        if not kinds:
            return "empty"
        for wide, members in (("number", {"integer", "number"}), ("datetime", {"date", "datetime"})):
            if kinds <= members:
                return wide if len(kinds) > 1 else kinds.pop()
        return kinds.pop() if len(kinds) == 1 else "mixed"


def _by_count(counter):
    return sorted(counter.items(), key=lambda item: (-item[1], item[0]))


def profile(table, top=5, max_rows=None):
    """Return {"rows", "columns": [report, …]} of a Table, reading it to the end (or `max_rows`)."""
    columns, rows = [_Column(name) for name in table.columns], 0
    source = itertools.islice(table.rows, max_rows) if max_rows else table.rows
    while True:
        batch = list(itertools.islice(source, BATCH_ROWS))
        if not batch:
            break
        while len(columns) < len(table.columns):  # a key that JSON records had not shown before
            columns.append(_Column(table.columns[len(columns)]))
            columns[-1].missing[""] += rows
        rows += len(batch)
        for column, values in zip(columns, itertools.zip_longest(*batch, fillvalue="")):
            column.add(values)
    return {"rows": rows, "columns": [column.report(top, rows) for column in columns]}


def _details(report):
    parts = []
    if "kinds" in report:
        total = sum(report["kinds"].values())
        parts.append(", ".join(f"{kind} {_percent(count, total)}" + (f" ({_clip(report['examples'][kind], 20)!r})" if kind in report["examples"] else "")
                               for kind, count in report["kinds"].items()))
    if "min" in report:
        parts.append(f"{report['min']} .. {report['max']}, mean {report['mean']}")
    if "from" in report:
        parts.append(f"{report['from']} .. {report['to']}")
    if "length" in report and "top" not in report:
        parts.append(f"{report['length']} characters")
    if "top" in report:
        parts.append(", ".join(f"{_clip(value, 24)} ({count})" for value, count in report["top"].items()))
    if "missing_as" in report:
        parts.append("missing as " + ", ".join(f"{name!r} {count}" for name, count in report["missing_as"].items()))
    if "note" in report:
        parts.append(report["note"])
    return "; ".join(parts)


def _percent(count, total):
    share = 100 * count / total if total else 0
    return "<0.1%" if 0 < share < 0.1 else f"{share:.3g}%"


# ---------------------------------------------------------------- filter and group

_OPERATOR = re.compile(r"\s*(==|!=|>=|<=|!~|=|>|<|~)\s*(.*)|\s+(not contains|contains|not in|in|is not empty|not empty|is empty|empty)(?:\s+(.*)|\s*)",
                       re.IGNORECASE | re.DOTALL)


def parse_condition(text, table, ignore_case=False):
    """Return a test of rows for "COLUMN OP VALUE".

    OP: = != > >= < <= ~ (regular expression) !~ contains, not contains, in A,B,C, not in, empty, not empty.
    Two numbers compare as numbers, anything else as text (ISO dates sort rightly as text).
    """
    place, operator, value = _split_condition(text, table)
    fold = str.lower if ignore_case else str
    value = fold(value)
    if operator in ("empty", "is empty"):
        return lambda row: is_missing(_at(row, place))
    if operator in ("not empty", "is not empty"):
        return lambda row: not is_missing(_at(row, place))
    if operator in ("~", "!~"):
        try:
            pattern = re.compile(value, re.IGNORECASE if ignore_case else 0)
        except re.error as error:
            raise ExploreError(f"{value!r} is no regular expression: {error}") from None
        return lambda row: (pattern.search(_at(row, place)) is not None) == (operator == "~")
    if operator in ("contains", "not contains"):
        return lambda row: (value in fold(_at(row, place))) == (operator == "contains")
    if operator in ("=", "==", "!=", "in", "not in"):
        wanted = [part.strip() for part in value.split(",")] if operator.endswith("in") else [value]
        texts, numbers = set(wanted), {number(part) for part in wanted} - {None}
        positive = operator in ("=", "==", "in")

        def equals(row):
            cell = _at(row, place).strip()
            found = fold(cell) in texts or bool(numbers) and number(cell) in numbers
            return found == positive
        return equals
    wanted = number(value)

    def compares(row):
        cell = _at(row, place).strip()
        if is_missing(cell):
            return False
        left, right = (number(cell), wanted) if wanted is not None else (fold(cell), value)
        if left is None:
            return False
        return left > right if operator == ">" else left >= right if operator == ">=" \
            else left < right if operator == "<" else left <= right
    return compares


def _at(row, place):
    return row[place] if place < len(row) else ""


def _split_condition(text, table):
    stripped = text.strip()
    for name in sorted(table.columns, key=len, reverse=True):
        if stripped.lower().startswith(name.lower()):
            match = _OPERATOR.fullmatch(stripped[len(name):])
            if match:
                return table.columns.index(name), *_operator_and_value(match, text)
    match = re.match(r"(.*?)(?=\s*(?:[=!<>~])|\s+(?:not\s|is\s|in\s|contains\s|empty))", stripped, re.DOTALL)
    rest = _OPERATOR.fullmatch(stripped[match.end():]) if match else None
    if not rest:
        raise ExploreError(f"cannot read the condition {text!r}: COLUMN OP VALUE, such as \"amount > 100\" or \"region in North,South\"")
    return table.index(match.group(1).strip()), *_operator_and_value(rest, text)


def _operator_and_value(match, text):
    operator = (match.group(1) or match.group(3)).lower()
    value = (match.group(2) if match.group(1) else match.group(4)) or ""
    value = value.strip()
    if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
        value = value[1:-1]
    elif not value and operator not in ("=", "==", "!=") and not operator.endswith("empty"):
        raise ExploreError(f"the condition {text!r} has no value")
    return operator, value


def _matching(table, conditions, ignore_case=False, any_of=False):
    tests = [parse_condition(text, table, ignore_case) for text in conditions]
    if not tests:
        return lambda row: True
    if len(tests) == 1:
        return tests[0]
    combine = any if any_of else all
    return lambda row: combine(test(row) for test in tests)


def _sort_key(place):
    def key(row):
        cell = _at(row, place).strip()
        if is_missing(cell):
            return (0, 0, "")
        value = number(cell)
        return (1, value, "") if value is not None else (2, 0, cell)
    return key


_BUCKETS = {"year": 4, "month": 7, "day": 10, "hour": 13}


def group_rows(table, by, of=(), where=lambda row: True):
    """Group a Table's rows; return ({key: [rows, [count, sum, min, max], …]}, rows read, left-out cells).

    `by` is a list of (place, bucket or None), `of` a list of places of number columns.
    """
    groups, rows, left_out = {}, 0, Counter()
    for row in table.rows:
        if not where(row):
            continue
        rows += 1
        key = tuple(_bucket(_at(row, place), bucket) for place, bucket in by)
        group = groups.get(key)
        if group is None:
            if len(groups) >= MAX_GROUPS:
                raise ExploreError(f"more than {MAX_GROUPS} groups: group by something coarser")
            group = groups[key] = [0] + [[0, Decimal(0), None, None] for _ in of]
        group[0] += 1
        for totals, place in zip(itertools.islice(group, 1, None), of):
            cell = _at(row, place)
            value = number(cell)
            if value is None:
                left_out[table.columns[place], "empty" if is_missing(cell) else "not numbers"] += 1
                continue
            totals[0] += 1
            totals[1] = _WIDE.add(totals[1], value)
            if totals[2] is None or value < totals[2]:
                totals[2] = value
            if totals[3] is None or value > totals[3]:
                totals[3] = value
    return groups, rows, left_out


def _bucket(cell, bucket):
    cell = cell.strip()
    if bucket is None:
        return cell
    if not _ISO_DATE.match(cell):
        return "" if is_missing(cell) else "(no ISO date)"
    if bucket in _BUCKETS:
        return cell[:_BUCKETS[bucket]].replace("T", " ")
    try:
        day = datetime.date(int(cell[:4]), int(cell[5:7]), int(cell[8:10]))
    except ValueError:
        return "(no ISO date)"
    if bucket == "weekday":
        return f"{day.isoweekday()} {day:%a}"
    return f"{day.year}-Q{(day.month + 2) // 3}"


# ---------------------------------------------------------------- showing


def _clip(text, width):
    if not text.isprintable():
        text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return text if not width or len(text) <= width else text[:width - 1] + "…"


def render(columns, rows, width=40):
    """Return rows of text as an aligned table; cells over `width` characters are cut with …"""
    cells = [[_clip(str(cell), width) for cell in row] + [""] * (len(columns) - len(row)) for row in rows]
    heads = [_clip(name, width) for name in columns]
    right = [bool(cells) and all(not row[place] or number(row[place]) is not None or row[place][:1] == ">" for row in cells)
             for place in range(len(columns))]
    widths = [max([len(head)] + [len(row[place]) for row in cells]) for place, head in enumerate(heads)]
    lines = []
    for line in [heads, ["-" * size for size in widths]] + cells:
        lines.append("  ".join(cell.rjust(size) if flush else cell.ljust(size)
                               for cell, size, flush in zip(line, widths, right)).rstrip())
    return "\n".join(lines)


def _typed(cell):
    """Return what a cell is in JSON: numbers that survive it as numbers, gaps as null."""
    if cell == "":
        return None
    value = number(cell)
    if value is not None and len(cell) <= 15:
        return int(value) if value == value.to_integral_value() and "." not in cell and "e" not in cell.lower() else float(value)
    return cell


def _as_objects(columns, rows):
    return [{name: _typed(_at(row, place)) for place, name in enumerate(columns)} for row in rows]


def _dump(value):
    return json.dumps(value, ensure_ascii=False)


def _show_rows(columns, rows, options, summary, **facts):
    if options.json:
        print(_dump(dict(facts, rows=_as_objects(columns, rows))))
    else:
        if rows:
            print(render(columns, rows, options.width))
        print(summary)


# ---------------------------------------------------------------- commands


def _run_profile(table, options):
    result = profile(table, options.top, options.rows)
    result = dict({"file": table.name, "format": table.format, "encoding": table.encoding, "delimiter": table.delimiter}, **result)
    if options.json:
        print(_dump(result))
        return
    delimiter = f", delimiter {table.delimiter!r}" if table.delimiter else ""
    more = " (the first ones: --rows)" if options.rows and result["rows"] == options.rows else ""
    print(f"{table.name}: {table.format}{delimiter}, {table.encoding}, {result['rows']} rows{more}, {len(result['columns'])} columns\n")
    rows = [[report["column"], report["type"],
             f"{report['missing']} ({_percent(report['missing'], result['rows'])})" if report["missing"] else "0",
             str(report["distinct"]), _details(report)] for report in result["columns"]]
    print(render(["column", "type", "missing", "distinct", "range or frequent values"], rows, 200))


def _run_head(table, options):
    places = table.indexes(options.columns) if options.columns else None
    rows = list(itertools.islice(table.rows, options.skip, options.skip + options.number))
    more = next(table.rows, None) is not None
    places = list(range(len(table.columns))) if places is None else places
    rows = [[_at(row, place) for place in places] for row in rows]
    summary = f"({len(rows)} rows{', more follow' if more else ', the end'})"
    _show_rows([table.columns[place] for place in places], rows, options, summary, more=more)


def _run_filter(table, options):
    test = _matching(table, options.conditions, options.ignore_case, options.any)
    places = table.indexes(options.columns) if options.columns else None
    limit = None if options.output else options.limit
    read = matched = 0

    def matches():
        nonlocal read, matched
        for row in table.rows:
            read += 1
            if test(row):
                matched += 1
                if limit is None and options.sort and matched > MAX_SORTED_ROWS:
                    raise ExploreError(f"more than {MAX_SORTED_ROWS} rows to sort: filter more narrowly")
                yield row

    rows = matches()
    if options.sort:
        key = _sort_key(table.index(options.sort))
        if limit is None:
            rows = sorted(rows, key=key, reverse=options.desc)
        else:
            rows = heapq.nlargest(limit, rows, key=key) if options.desc else heapq.nsmallest(limit, rows, key=key)
    if options.output:
        path = _write_csv(table, rows, places, options.output)
        print(_dump({"matched": matched, "rows_read": read, "output": path}) if options.json
              else f"{matched} of {read} rows match; written to {path}")
        return
    kept = []
    for row in rows:
        if len(kept) < limit:
            kept.append(row)
    places = list(range(len(table.columns))) if places is None else places
    kept = [[_at(row, place) for place in places] for row in kept]
    cut = f"; {len(kept)} shown (--limit, --output FILE)" if len(kept) < matched else ""
    _show_rows([table.columns[place] for place in places], kept, options, f"({matched} of {read} rows match{cut})",
               matched=matched, rows_read=read)


def _write_csv(table, rows, places, name):
    path = os.path.abspath(os.path.join(os.environ.get("USER_CWD") or "", os.path.expanduser(name)))
    if os.path.exists(path) and table.name != "stdin" and os.path.samefile(path, table.name):
        raise ExploreError("--output is the file that is read")
    places = list(range(len(table.columns))) if places is None else places
    try:
        with open(path, "w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow([table.columns[place] for place in places])
            writer.writerows([_at(row, place) for place in places] for row in rows)
    except OSError as error:
        raise ExploreError(f"failed to write {path}: {error.strerror}") from None
    return path


def _run_group(table, options):
    by = []
    for part in [options.by] if options.by in table.columns else options.by.split(","):
        name, _, bucket = part.strip().rpartition(":")
        if bucket not in _BUCKETS and bucket not in ("weekday", "quarter") or part.strip() in table.columns:
            name, bucket = part.strip(), None
        by.append((table.index(name), bucket))
    of = table.indexes(options.of) if options.of else []
    aggregates = options.agg or (["count", "sum", "mean", "min", "max"] if of else ["count"])
    if not of and set(aggregates) - {"count"}:
        raise ExploreError("sum, mean, min and max need --of COLUMN")
    where = _matching(table, options.where, options.ignore_case)
    groups, rows, left_out = group_rows(table, by, of, where)
    columns = [table.columns[place] + (f":{bucket}" if bucket else "") for place, bucket in by]
    columns += ["count"] if "count" in aggregates else []
    columns += [f"{table.columns[place]}_{aggregate}" for place in of for aggregate in aggregates if aggregate != "count"]
    lines = [_group_line(key, group, aggregates) for key, group in groups.items()]
    lines = _sort_groups(lines, columns, len(by), any(bucket for _, bucket in by), options)
    for (column, what), count in sorted(left_out.items()):
        print(f"explore.py: note: {column}: {count} cells are {what}, left out of sum, mean, min, max", file=sys.stderr)
    shown = [[cell if isinstance(cell, str) else "" if cell is None else plain(cell) for cell in line] for line in lines[:options.limit]]
    cut = f"; {len(shown)} shown (--limit)" if len(shown) < len(lines) else ""
    _show_rows(columns, shown, options, f"({len(lines)} groups, {rows} rows{cut})", groups=len(lines), rows_read=rows)


def _group_line(key, group, aggregates):
    line = list(key) + ([Decimal(group[0])] if "count" in aggregates else [])
    for count, total, least, most in group[1:]:
        mean = decimal.Context(prec=10).divide(total, Decimal(count)) if count else None
        values = {"sum": total if count else None, "mean": mean, "min": least, "max": most}
        line += [values[aggregate] for aggregate in aggregates if aggregate != "count"]
    return line


def _sort_groups(lines, columns, keys, in_time, options):
    lines.sort(key=lambda line: line[:keys])
    if options.sort:
        names = [name for name in columns if name.lower() == options.sort.lower()] \
            or [name for name in columns if name.lower().endswith("_" + options.sort.lower())]
        if not names:
            raise ExploreError(f"no column {options.sort!r} in the result; columns: {', '.join(columns)}")
        place = columns.index(names[0])
    elif in_time or len(columns) == keys:
        return lines
    else:
        sums = [place for place, name in enumerate(columns) if place >= keys and name.endswith("_sum")]
        place = sums[0] if sums else keys
    if place < keys:
        return sorted(lines, key=lambda line: line[place])
    gap = Decimal("Infinity") if options.asc else Decimal("-Infinity")
    return sorted(lines, key=lambda line: gap if line[place] is None else line[place], reverse=not options.asc)


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        self.exit(2, f"explore.py: error: {message[:300]} (see --help)\n")


def _count(low, high):
    def parse(text):
        if not re.fullmatch(r"\d{1,9}", text.strip()) or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(f"needs a whole number from {low} to {high}, not {text!r}")
        return int(text)
    return parse


def _delimiter(text):
    text = {"\\t": "\t", "tab": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "space": " "}.get(text, text)
    if len(text) != 1 or text in "\r\n\"":
        raise argparse.ArgumentTypeError("needs a single character, or tab")
    return text


def _aggregates(text):
    names = [name.strip().lower() for name in text.split(",") if name.strip()]
    names = ["mean" if name in ("avg", "average") else name for name in names]
    for name in names:
        if name not in ("count", "sum", "mean", "min", "max"):
            raise argparse.ArgumentTypeError(f"knows count, sum, mean, min, max, not {name!r}")
    return names


def build_parser():
    """Return the command line's parser."""
    parser = _Parser(prog="explore.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    common = _Parser(add_help=False)
    common.add_argument("file", metavar="FILE", help="CSV, TSV, JSON or JSON Lines, also .gz; - for stdin")
    common.add_argument("--format", choices=("csv", "tsv", "json", "jsonl"), help="default: found out")
    common.add_argument("--delimiter", type=_delimiter, help="cell delimiter of CSV (default: found out)")
    common.add_argument("--encoding", help="default: found out (UTF-8, UTF-16, Windows-1252)")
    common.add_argument("--no-header", action="store_true", help="the first row is data; columns are column_1, column_2 …")
    common.add_argument("--decimal-comma", action="store_true", help="1.234,5 means 1234.5")
    common.add_argument("--records", metavar="KEY", help="where in a JSON object the records are, such as data.items")
    common.add_argument("--json", action="store_true", help="JSON on one line")
    common.add_argument("--width", type=_count(0, 100_000), default=40, help="longest cell shown (default 40, 0: no limit)")

    command = commands.add_parser("profile", parents=[common], help="columns, types, gaps, ranges, frequent values")
    command.add_argument("--top", type=_count(0, 1000), default=5, help="frequent values a column (default 5)")
    command.add_argument("--rows", type=_count(1, 999_999_999), help="read only the first N rows")
    command = commands.add_parser("head", parents=[common], help="the first rows")
    command.add_argument("-n", "--number", type=_count(1, 10_000), default=10, help="rows (default 10)")
    command.add_argument("--skip", type=_count(0, 999_999_999), default=0, help="rows to leave out before")
    command.add_argument("--columns", help="only these, separated by commas")
    command = commands.add_parser("filter", parents=[common], help="rows that meet all conditions", description=parse_condition.__doc__,
                                  formatter_class=argparse.RawDescriptionHelpFormatter)
    command.add_argument("conditions", nargs="*", metavar="CONDITION", help='such as "amount > 100", "name ~ ^A", "note empty"')
    command.add_argument("--any", action="store_true", help="one condition is enough")
    command.add_argument("-i", "--ignore-case", action="store_true")
    command.add_argument("--columns", help="only these, separated by commas")
    command.add_argument("--sort", metavar="COLUMN")
    command.add_argument("--desc", action="store_true", help="largest first")
    command.add_argument("--limit", type=_count(1, 10_000), default=50, help="rows shown (default 50)")
    command.add_argument("--output", metavar="FILE", help="write all matches as CSV (relative to the user's folder)")
    command = commands.add_parser("group", parents=[common], help="count, sum, mean, min, max by columns")
    command.add_argument("--by", required=True, metavar="COLUMNS", help="separated by commas; ISO dates also as DATE:year, quarter, month, day, hour, weekday")
    command.add_argument("--of", metavar="COLUMNS", help="number columns to sum up")
    command.add_argument("--agg", type=_aggregates, metavar="LIST", help="of count,sum,mean,min,max (default: all)")
    command.add_argument("--where", action="append", default=[], metavar="CONDITION", help="as in filter; may be repeated")
    command.add_argument("-i", "--ignore-case", action="store_true")
    command.add_argument("--sort", metavar="NAME", help="column of the result (default: the first sum, else the count; time in order)")
    command.add_argument("--asc", action="store_true", help="smallest first")
    command.add_argument("--limit", type=_count(1, 10_000), default=50, help="groups shown (default 50)")
    return parser


def main(arguments=None):
    """Run the command line; return the exit status."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if arguments and arguments[0] not in COMMANDS and not arguments[0].startswith("-"):
        arguments.insert(0, "profile")
    options = build_parser().parse_args(arguments)
    run = {"profile": _run_profile, "head": _run_head, "filter": _run_filter, "group": _run_group}[options.command]
    try:
        with open_table(options.file, options.format, options.delimiter, options.encoding, not options.no_header, options.records,
                        options.decimal_comma) as table:
            run(table, options)
            for note in table.notes():
                print(f"explore.py: note: {note}", file=sys.stderr)
        sys.stdout.flush()
        return 0
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the reader left: nothing more to say
        return 0
    except (ExploreError, OSError) as error:
        print(f"explore.py: error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())

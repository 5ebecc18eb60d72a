"""Read CSV, TSV, JSON and JSON Lines files as rows of text, and test rows.

    columns, rows = open_table("orders.csv")
    for row in rows:
        print(row["amount"], number(row["amount"]))

CSV is read row by row, JSON is read whole.
"""

import codecs
import csv
import difflib
import gzip
import io
import itertools
import json
import operator
import os
import re
import sys
from decimal import Decimal

MISSING = {"", "na", "n/a", "nan", "null", "none", "-", "?"}
NUMBER = re.compile(
    r"[+-]?((0|[1-9]\d*|[1-9]\d{0,2}(,\d{3})+)(\.\d*)?|\.\d+)([eE][+-]?\d{1,2})?", re.ASCII)
CONDITION = re.compile(
    r"(.+?)(\s*[=!<>]=|\s*!~|\s*[=<>~]|\s(?:not )?(?:contains|in|empty)\b)(.*)", re.DOTALL)
COMPARE = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}


def open_table(name, delimiter=None, encoding=None):
    """Return the names of the columns, and an iterator of rows, which are dicts of text."""
    stream, encoding = _open(name, encoding)
    lines = io.TextIOWrapper(stream, encoding=encoding, errors="replace", newline="")
    first = lines.readline()
    lines.seek(0)
    if not first.strip() or "\0" in first:
        cause = "it is a binary file" if first.strip() else "its first line is empty"
        raise ValueError(f"failed to read table `{name}`: {cause}")
    if first.lstrip()[0] in "{[":
        rows = [_flat(record) for record in _records(lines.read(), name)]
        return list(dict.fromkeys(key for row in rows for key in row)), iter(rows)
    delimiter = delimiter or max(",;\t|", key=first.count)
    table = csv.reader((line.replace("\0", "") for line in lines), delimiter=delimiter)
    columns = []
    for place, cell in enumerate(next(table), 1):
        column = cell.strip() or f"column_{place}"
        columns.append(f"{column}_{place}" if column in columns else column)
    return columns, _csv_rows(table, columns)


def find_file(name):
    """Return the path of the user's file with this name, or of the skill's."""
    path = os.path.join(os.environ.get("USER_CWD", ""), os.path.expanduser(name))
    own = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), name)
    return own if os.path.exists(own) and not os.path.exists(path) else path


def _open(name, encoding):
    """Open a file and find out its encoding."""
    if name == "-":
        stream = io.BytesIO(sys.stdin.buffer.read())
    else:
        name = find_file(name)
        stream = gzip.open(name) if name.endswith(".gz") else open(name, "rb")
    start = stream.read(1 << 20)
    stream.seek(0)
    if encoding:
        return stream, encoding
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return stream, "utf-16"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start)
    except UnicodeDecodeError:
        return stream, "cp1252"
    return stream, "utf-8-sig"


def _csv_rows(table, columns):
    damaged = 0
    for row in filter(None, table):
        damaged += len(row) != len(columns)
        yield dict(itertools.zip_longest(columns, row[:len(columns)], fillvalue=""))
    if damaged:
        note(f"{damaged} rows have too few or too many cells")


def _records(text, name):
    """Return the records of a list, of an object that holds one list, or of JSON Lines."""
    keep = {"parse_float": str}  # no digit is lost
    try:
        try:
            value = json.loads(text, **keep)
        except ValueError:
            return [json.loads(line, **keep) for line in text.splitlines() if line.strip()]
    except (ValueError, RecursionError) as error:
        raise ValueError(f"failed to read JSON `{name}`: {error}") from None
    if isinstance(value, dict):
        lists = [item for item in value.values() if isinstance(item, list)]
        return lists[0] if len(lists) == 1 else [value]
    return value if isinstance(value, list) else [value]


def _flat(record, prefix=""):
    """Return a record as one row of text: {"a": {"b": "c"}} has the column "a.b"."""
    row = {}
    for key, value in (record if isinstance(record, dict) else {"value": record}).items():
        if isinstance(value, dict):
            row.update(_flat(value, f"{prefix}{key}."))
        elif isinstance(value, str):
            row[prefix + key] = value
        else:
            row[prefix + key] = "" if value is None else json.dumps(value, ensure_ascii=False)
    return row


def is_missing(cell):
    """Tell whether a cell is empty or says so, as `n/a` does."""
    return cell.strip().lower() in MISSING


def number(cell):
    """Return a cell as a Decimal, or None. A code such as 00123 is no number."""
    if not NUMBER.fullmatch(cell.strip()):
        return None
    return Decimal(cell.replace(",", ""))


def plain(value):
    """Return a Decimal as text with at most 10 digits behind the point."""
    text = f"{value:.10f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def check(column, columns):
    """Return the name of a column, if there is such a column."""
    if column in columns:
        return column
    near = difflib.get_close_matches(column, columns, 1)
    hint = f"did you mean `{near[0]}`? " if near else ""
    raise ValueError(f"failed to find column `{column}`: {hint}columns: {', '.join(columns)}")


def condition(text, columns):
    """Return a function that tests a row."""
    match = CONDITION.fullmatch(text)
    if not match:
        raise ValueError(f"failed to read condition `{text}`: write COLUMN OPERATOR VALUE")
    column, sign, value = (part.strip() for part in match.groups())
    check(column, columns)
    is_negated, sign = sign.startswith(("not ", "!")), sign.replace("not ", "").lstrip("!")
    wanted = number(value)

    def equals(cell, other):
        return cell == other or number(cell) is not None and number(cell) == number(other)

    def test(cell):
        if sign == "empty":
            return is_missing(cell)
        if sign == "contains":
            return value in cell
        if sign == "~":
            return re.search(value, cell) is not None
        if sign in COMPARE:
            left, right = (cell, value) if wanted is None else (number(cell), wanted)
            return left is not None and not is_missing(cell) and COMPARE[sign](left, right)
        parts = value.split(",") if sign == "in" else [value]
        return any(equals(cell, part.strip()) for part in parts)

    return lambda row: test(row.get(column, "").strip()) != is_negated


def note(text):
    """Tell on stderr what the user should know about the data."""
    print(f"explore.py: note: {text}", file=sys.stderr)

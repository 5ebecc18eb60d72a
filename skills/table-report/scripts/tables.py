"""Read CSV and JSON files as text, and find out what kind of values their columns hold."""

import csv
import io
import json
import math
import os
import re
import sys
from datetime import datetime

MISSING = {"", "na", "n/a", "nan", "null", "none", "-", "?"}
NUMBER = re.compile(
    r"[+-]?((0|[1-9]\d*|[1-9]\d{0,2}(,\d{3})+)(\.\d*)?|\.\d+)([eE][+-]?\d{1,2})?", re.ASCII)
NO_TOTAL = re.compile(  # numbers that are not added up
    r"(^|[\W_])(id|no|nr|number|year|month|zip|code|price|rate|percent|share|age|score|rank)"
    r"($|[\W_])", re.IGNORECASE)


def find_file(name):
    """Return the path of the user's file with this name, or of the skill's."""
    path = os.path.join(os.environ.get("USER_CWD", ""), os.path.expanduser(name))
    own = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), name)
    return own if os.path.exists(own) and not os.path.exists(path) else path


def read_table(name):
    """Return the columns and the rows of a CSV or JSON file; all cells are text."""
    if name != "-":
        name = find_file(name)
    with sys.stdin.buffer if name == "-" else open(name, "rb") as file:
        data = file.read()
    try:
        text = data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("cp1252", "replace")
    if not text.strip() or "\0" in text:
        cause = "it is a binary file" if text.strip() else "it is empty"
        raise ValueError(f"failed to read table `{name}`: {cause}")
    if text.lstrip()[0] in "[{":
        try:
            records = json.loads(text, parse_float=str)
        except ValueError as error:
            lines = list(filter(str.strip, text.splitlines()))
            if len(lines) < 2 or not lines[0].endswith("}"):
                raise ValueError(f"failed to read JSON `{name}`: {error}") from None
            records = [json.loads(line, parse_float=str) for line in lines]
        if isinstance(records, dict):  # the list that it holds, or one record
            lists = [value for value in records.values() if isinstance(value, list)]
            records = lists[0] if len(lists) == 1 else [records]
        records = [item if isinstance(item, dict) else {"value": item} for item in records]
        columns = list(dict.fromkeys(key for record in records for key in record))
        cells = [[record.get(column) for column in columns] for record in records]
        rows = [["" if cell is None else str(cell) for cell in row] for row in cells]
    else:
        first = text.splitlines()[0]
        lines = csv.reader(io.StringIO(text, newline=""), delimiter=max(",;\t|", key=first.count))
        columns, *rows = filter(None, lines)
    width = len(columns)
    return columns, [(row + [""] * width)[:width] for row in rows]


def parse(cell, kind):
    """Return a cell as a number or a date of this kind, or None."""
    cell = cell.strip()
    if kind in ("date", "datetime"):
        try:
            time = datetime.fromisoformat(cell[:19])
        except ValueError:
            return None
        return time if time.year > 1900 and cell[4:5] == "-" else None  # Excel's dates begin then
    is_percent = cell.endswith("%")
    cell = cell.rstrip(" %")
    if kind == "text" or not NUMBER.fullmatch(cell) or sum(map(str.isdigit, cell)) > 15:
        return None  # Excel keeps 15 digits; a code such as 00123 is no number
    value = float(cell.replace(",", ""))
    return value / 100 if is_percent else value


class Column:
    """A column: its kind, and its values, which are text where they are not of that kind."""

    def __init__(self, name, cells, kind=None):
        filled = [cell for cell in cells if cell.strip().lower() not in MISSING]
        self.name, self.cells, self.kind = name, cells, kind or self.guess(filled)
        parsed = [parse(cell, self.kind) for cell in cells]
        self.values = [cell if value is None else value for cell, value in zip(cells, parsed)]
        self.total = math.fsum(value for value in parsed if isinstance(value, float))
        self.is_quantity = not NO_TOTAL.search(name)
        self.is_summed = self.is_quantity and self.kind in ("integer", "number", "money")
        self.strays = [cell for cell in filled if parse(cell, self.kind) is None]

    @staticmethod
    def guess(cells):
        """Return the kind of most cells. One code such as 00123 keeps a column text."""
        if not any(cell.strip().isdigit() and parse(cell, "number") is None for cell in cells):
            for kind in ("number", "date"):
                found = [cell for cell in cells if parse(cell, kind) is not None]
                if found and len(found) >= 0.8 * len(cells):
                    marks = "".join(found)
                    if kind == "date":
                        return "datetime" if ":" in marks else "date"
                    return "percent" if "%" in marks else "number" if "." in marks else "integer"
        return "text"

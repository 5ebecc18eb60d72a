"""What the columns of a table hold: types, gaps, ranges, frequent values."""

import re
from collections import Counter
from decimal import Decimal

from tables import is_missing, number, plain

DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d.*)?", re.ASCII)
MAX_DISTINCT = 20_000  # values counted for each column of a profile


def kind_of(cell):
    """Return the type of a cell that is not missing."""
    value = number(cell)
    if value is not None:
        return "number" if set(cell) & set(".eE") else "integer"
    if cell.lower() in ("true", "false", "yes", "no"):
        return "boolean"
    return "date" if DATE.fullmatch(cell) else "text"


class Column:
    """What a profile knows of one column."""

    def __init__(self):
        self.kinds, self.values, self.missing = Counter(), Counter(), 0
        self.numbers, self.dates, self.total = [], [], Decimal(0)

    def add(self, cell):
        if is_missing(cell):
            self.missing += 1
            return
        kind, value = kind_of(cell.strip()), number(cell)
        self.kinds[kind] += 1
        if cell in self.values or len(self.values) < MAX_DISTINCT:
            self.values[cell] += 1
        if value is not None:
            self.total += value
            self.numbers = [min([value] + self.numbers), max([value] + self.numbers)]
        elif kind == "date":
            self.dates = [min([cell] + self.dates), max([cell] + self.dates)]

    def row(self, name):
        kinds = set(self.kinds)
        kind = "mixed: " + ", ".join(f"{count} {kind}" for kind, count in self.kinds.most_common())
        if len(kinds) < 2 or kinds == {"integer", "number"}:
            kind = "empty" if not kinds else "number" if len(kinds) > 1 else kinds.pop()
        low, high = [plain(v) for v in self.numbers] or self.dates or ["", ""]
        count = self.kinds["integer"] + self.kinds["number"]
        frequent = ", ".join(f"{v} ({n})" for v, n in self.values.most_common(5) if n > 1)
        distinct = f"{len(self.values)}" if len(self.values) < MAX_DISTINCT else f">={MAX_DISTINCT}"
        mean = plain(self.total / count) if count else ""
        return [name, kind, str(self.missing), distinct, low, high, mean, frequent]


def profile(columns, rows, _options):
    """Return the table of a profile: a row for each column."""
    facts, read = {column: Column() for column in columns}, 0
    for read, row in enumerate(rows, 1):
        for column in columns:
            facts[column].add(row.get(column, ""))
    heads = ["column", "type", "missing", "distinct", "min", "max", "mean", "frequent"]
    return heads, [facts[column].row(column) for column in columns], {"rows_read": read}

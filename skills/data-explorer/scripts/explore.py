#!/usr/bin/env python3
"""Look into CSV, TSV, JSON and JSON Lines files (also .gz, also - for stdin).

    explore.py profile FILE                          columns, types, gaps, ranges, frequent values
    explore.py head FILE -n 5
    explore.py filter FILE "amount > 100" "region in North,South" --sort amount --desc
    explore.py group FILE --by region --of amount --agg count,sum
    explore.py FILE                                  profile; with --sort filter, with --by group

A condition is COLUMN OPERATOR VALUE with = != > >= < <= ~ (regular expression) !~ contains,
not contains, in A,B, not in A,B, empty, not empty. Only the standard library is needed.
"""

import argparse
import csv
import decimal
import itertools
import json
import os
import re
import signal
import sys
from collections import Counter

from profiles import profile
from tables import check, condition, is_missing, note, number, open_table, plain

DATE_PARTS = {"year": 4, "month": 7, "day": 10, "hour": 13}  # characters of an ISO date
AGGREGATES = {"sum": sum, "mean": lambda v: sum(v) / len(v), "min": min, "max": max}
SUMMARIES = {
    "profile": "{rows_read} rows", "head": "more rows follow: {more}",
    "filter": "{matched} of {rows_read} rows match", "group": "{groups} groups, {rows_read} rows",
}


def head(columns, rows, options):
    """Return the first rows."""
    heads = [check(column, columns) for column in options.columns or columns]
    first = itertools.islice(rows, options.limit)
    shown = [[row.get(column, "") for column in heads] for row in first]
    return heads, shown, {"more": next(rows, None) is not None}


def filtered(columns, rows, options):
    """Return the rows that meet all conditions."""
    heads = [check(column, columns) for column in options.columns or columns]
    tests = [condition(text, columns) for text in options.conditions]
    kept, read, matched = [], 0, 0
    for read, row in enumerate(rows, 1):
        if all(test(row) for test in tests):
            matched += 1
            if options.sort or options.output or matched <= options.limit:
                kept.append(row)
    if options.sort:
        key = check(options.sort, columns)
        kept.sort(key=lambda row: sort_key(row.get(key, "")), reverse=options.desc)
    shown = [[row.get(column, "") for column in heads] for row in kept]
    return heads, shown, {"matched": matched, "rows_read": read}


def sort_key(cell):
    """Sort missing cells first, then numbers, then text."""
    value = number(cell)
    if value is None:
        return (0 if is_missing(cell) else 2, 0, cell)
    return (1, value, "")


def group(columns, rows, options):
    """Count the rows of each group, and sum up the columns of --of."""
    tests = [condition(text, columns) for text in options.where]
    keys = []  # a column, and how many characters of its cells count
    for word in options.by:
        column, _, part = word.rpartition(":")
        keys.append((column, DATE_PARTS[part]) if part in DATE_PARTS else (word, None))
    for column in [column for column, _ in keys] + options.of:
        check(column, columns)
    groups, read, left_out = {}, 0, Counter()
    for row in rows:
        if not all(test(row) for test in tests):
            continue
        read += 1
        key = tuple(row.get(column, "").strip()[:size] for column, size in keys)
        values = groups.setdefault(key, [0] + [[] for _ in options.of])
        values[0] += 1
        for place, column in enumerate(options.of, 1):
            value = number(row.get(column, ""))
            if value is None:
                left_out[column] += 1
            else:
                values[place].append(value)
    names = [name for name in options.agg if name != "count" and options.of]
    heads = options.by + ["count"] * ("count" in options.agg)
    heads += [f"{column}_{name}" for column in options.of for name in names]
    shown = []
    for key, (count, *lists) in sorted(groups.items()):
        line = [*key] + [str(count)] * ("count" in options.agg)
        figures = [AGGREGATES[name](v) if v else None for v in lists for name in names]
        shown.append(line + ["" if figure is None else plain(figure) for figure in figures])
    if not any(size for _, size in keys) and len(heads) > len(keys):  # times stay in order
        place = -len(options.of) * len(names) or -1
        shown.sort(key=lambda line: number(line[place]) or 0, reverse=True)
    for column, count in left_out.items():
        note(f"{column}: {count} cells are no numbers and left out")
    return heads, shown, {"groups": len(groups), "rows_read": read}


def render(heads, rows):
    """Yield the lines of an aligned table; long cells are cut."""
    lines = [[" ".join(cell.split())[:100] for cell in row] for row in [heads] + rows]
    columns = []
    for head, *cells in zip(*lines):
        width = max(map(len, [head] + cells))
        is_right = all(not cell or number(cell) is not None for cell in cells)
        cells = [head, "-" * width] + cells
        columns.append([c.rjust(width) if is_right else c.ljust(width) for c in cells])
    for line in zip(*columns):
        yield "  ".join(line).rstrip()


def typed(cell):
    """Return a cell as a value of JSON; a number that JSON might round stays text."""
    value = number(cell)
    if value is None or len(cell) > 15:
        return cell or None
    return int(value) if value == int(value) and "." not in cell else float(value)


def main():
    """Run the command line."""
    def words(text):
        return [word.strip() for word in text.split(",")]

    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # a reader such as head may stop reading
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = {"profile": profile, "head": head, "filter": filtered, "group": group}
    parser.add_argument("command", choices=commands)
    parser.add_argument("file", help="CSV, TSV, JSON or JSON Lines, also .gz; - for stdin")
    parser.add_argument("conditions", nargs="*", metavar="CONDITION", help="for filter")
    parser.add_argument("--columns", type=words, help="show only these, such as name,amount")
    parser.add_argument("--sort", metavar="COLUMN", help="for filter")
    parser.add_argument("--desc", action="store_true", help="largest first")
    parser.add_argument("--output", metavar="FILE", help="for filter: write all matches as CSV")
    parser.add_argument("--by", type=words, help="for group; dates also as DATE:month")
    parser.add_argument("--of", type=words, default=[], help="for group: columns of numbers")
    parser.add_argument("--agg", type=words, default=["count", *AGGREGATES])
    parser.add_argument("--where", action="append", default=[], help="condition for group")
    parser.add_argument("-n", "--limit", type=int, default=20, help="rows shown")
    parser.add_argument("--delimiter")
    parser.add_argument("--encoding")
    parser.add_argument("--json", action="store_true")
    given = sys.argv[1:]
    if given and given[0] not in commands and "." in given[0]:
        default = "group" if "--by" in given else "filter" if "--sort" in given else "profile"
        given.insert(0, default)
    options = parser.parse_intermixed_args(given)
    if options.command == "group" and not options.by or set(options.agg) - {"count", *AGGREGATES}:
        parser.error("group needs --by COLUMN; --agg takes count, sum, mean, min and max")
    decimal.getcontext().prec = 200  # sums are exact
    try:
        columns, rows = open_table(options.file, options.delimiter, options.encoding)
        heads, shown, facts = commands[options.command](columns, rows, options)
        if options.output:
            path = os.path.join(os.environ.get("USER_CWD", ""), os.path.expanduser(options.output))
            with open(path, "w", encoding="utf-8", newline="") as file:
                csv.writer(file, lineterminator="\n").writerows([heads] + shown)
            facts["output"] = path
    except OSError as error:
        name, cause = error.filename or options.file, error.strerror or error
        sys.exit(f"explore.py: failed to open file `{name}`: {cause}")
    except ValueError as error:
        sys.exit(f"explore.py: {error}")
    except (LookupError, EOFError, csv.Error, re.error) as error:
        sys.exit(f"explore.py: failed to {options.command} table `{options.file}`: {error}")
    summary = SUMMARIES[options.command].format(**facts)
    if len(shown) > options.limit:
        summary += f"; the first {options.limit} are shown"
    shown = [] if options.output else shown[:options.limit]
    if options.json:
        facts["rows"] = [dict(zip(heads, map(typed, row))) for row in shown]
        print(json.dumps(facts, ensure_ascii=False))
        return
    for line in render(heads, shown) if shown else ():
        print(line)
    print(f"({summary})")


if __name__ == "__main__":
    main()

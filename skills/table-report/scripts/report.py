#!/usr/bin/env python3
"""Turn CSV, TSV, JSON or JSON Lines files into one formatted Excel workbook.

    report.py orders.csv
    report.py orders.csv --output q1.xlsx --title "Orders Q1" --group-by region --chart
    report.py north.csv south.csv --total amount --format amount=money --currency "€"

Each file becomes a sheet: real numbers and dates, number formats, frozen header, filter,
column widths, a row of totals. --group-by adds a sheet with count and sums per group.
Importable: read_table, write_workbook. Needs the package XlsxWriter (requirements.txt).
"""
import argparse
import csv
import datetime
import io
import json
import os
import re
import sys
from collections import Counter
from decimal import Context, Decimal

try:
    import xlsxwriter
except ImportError:  # told in main(), so that --help works without it
    xlsxwriter = None

# Bounds: Excel's own, and what fits into memory.
MAX_ROWS = 1_048_000
MAX_COLUMNS = 16_384
MAX_CELL_CHARACTERS = 32_767
MAX_CELLS = 2_000_000
MAX_INPUT_BYTES = 100 << 20
MAX_FIELD_CHARACTERS = 10_000_000
MAX_NUMBER_DIGITS = 15
MAX_GROUPS = 10_000
MAX_CHART_GROUPS = 40
MAX_COLUMN_WIDTH = 60

MISSING = frozenset(("", "na", "n/a", "#n/a", "nan", "null", "none", "nil", "-", "--", "?"))
FORMATS = ("integer", "number", "money", "percent", "date", "datetime", "text")
# Numbers that nobody adds up: keys, places, rates.
_NO_TOTAL = re.compile(r"(?:^|[\W_])(?:id|ids|no|nr|num|number|year|month|week|zip|postcode|code|phone|price|rate|ratio|percent|pct|share|"
                       r"age|lat|lon|latitude|longitude|score|rank|mean|avg|average|median|version)(?:$|[\W_])|id$", re.IGNORECASE)


class ReportError(Exception):
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
            raise ReportError(f"{folders[0]} is a folder, not a file")
        raise ReportError(f"no file {name!r}: looked for {' and '.join(places)}")
    if len(files) == 2 and not os.path.samefile(*files):
        print(f"report.py: note: reading {files[0]}, not {files[1]}", file=sys.stderr)
    return files[0]


def read_table(name, delimiter=None, encoding=None, header=True, decimal_comma=False):
    """Return (columns, rows) of a file ("-": stdin), all cells as text."""
    if name == "-":
        if sys.stdin is None or sys.stdin.isatty():
            raise ReportError("nothing on stdin")
        data = sys.stdin.buffer.read(MAX_INPUT_BYTES + 1)
    else:
        with open(find_input(name), "rb") as stream:
            data = stream.read(MAX_INPUT_BYTES + 1)
    if len(data) > MAX_INPUT_BYTES:
        raise ReportError(f"{name} is over {MAX_INPUT_BYTES >> 20} MB: filter or sum it up first")
    text = _decode(data, name, encoding)
    if not text.strip():
        raise ReportError(f"{name} is empty")
    ending = os.path.splitext(name)[1].lower()
    if ending in (".json", ".jsonl", ".ndjson") or ending not in (".csv", ".tsv", ".tab") and text.lstrip()[:1] in "[{":
        columns, rows = _from_records(_records(text, name), name)
    else:
        columns, rows = _from_csv(text, name, delimiter or ("\t" if ending in (".tsv", ".tab") else None), header)
    if decimal_comma:
        rows = [[cell.replace(".", "").replace(",", ".") if _COMMA_NUMBER.fullmatch(cell.strip()) else cell for cell in row] for row in rows]
    return columns, rows


def _decode(data, name, encoding):
    try:
        if encoding:
            return data.decode(encoding, "replace").lstrip("\ufeff")
    except LookupError:
        raise ReportError(f"unknown encoding {encoding!r}") from None
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", "replace")
    if b"\0" in data[:1 << 20]:
        raise ReportError(f"{name} looks like a binary file (it holds NUL bytes)")
    text = data.decode("utf-8-sig", "replace")
    wrong = text.count("\ufffd")
    if wrong and wrong > sum(map(str.__gt__, text, "\x7f" * len(text))) - wrong:
        return data.decode("cp1252", "replace")  # mostly bad bytes: an older encoding
    if wrong:
        print(f"report.py: note: {name}: {wrong} characters are not UTF-8 and were replaced", file=sys.stderr)
    return text


def _from_csv(text, name, delimiter, header):
    csv.field_size_limit(MAX_FIELD_CHARACTERS)
    text = text.replace("\0", "")
    if delimiter is None:
        delimiter = _find_delimiter(text)
    try:
        rows = _bounded((row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if row), name)
    except csv.Error as error:
        raise ReportError(f"{name}: {error}") from None
    if not rows:
        raise ReportError(f"{name} holds no rows")
    head = rows.pop(0) if header else []
    width = max([len(head)] + [len(row) for row in rows])
    columns = _unique_names([cell.strip() for cell in head] + [""] * (width - len(head)))
    return columns, [row + [""] * (width - len(row)) for row in rows]


def _bounded(rows, name):
    """Return the rows as a list, unless they are more than a workbook should hold."""
    kept, cells = [], 0
    for row in rows:
        kept.append(row)
        cells += len(row)
        if cells > MAX_CELLS or len(kept) > MAX_ROWS or len(row) > MAX_COLUMNS:
            raise ReportError(f"{name} is too large for a sheet ({MAX_CELLS} cells, {MAX_ROWS} rows, {MAX_COLUMNS} columns): filter or sum it up first")
    return kept


def _find_delimiter(text):
    lines = text[:1 << 16].splitlines(True)
    if len(text) > 1 << 16:
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


def _unique_names(cells):
    names = []
    for place, cell in enumerate(cells, 1):
        name = base = cell or f"column_{place}"
        count = 2
        while name in names:
            name, count = f"{base}_{count}", count + 1
        names.append(name)
    return names


def _records(text, name):
    decoder = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=str)  # no digit is lost
    try:
        document = decoder.decode(text)
    except RecursionError:
        raise ReportError(f"{name} is nested too deeply") from None
    except ValueError as whole:
        try:
            return [decoder.decode(line) for line in text.splitlines() if line.strip()]
        except (ValueError, RecursionError):
            raise ReportError(f"{name} is neither JSON nor JSON Lines: {whole}") from None
    if isinstance(document, dict):
        lists = [value for value in document.values() if isinstance(value, list) and value and isinstance(value[0], dict)]
        if len(lists) > 1:
            raise ReportError(f"{name} holds several lists of records: give each as a file of its own")
        document = lists[0] if lists else [document]
    if not isinstance(document, list) or not document:
        raise ReportError(f"{name} holds no records")
    return document


def _from_records(records, name):
    places, flat = {}, []
    for record in records:
        cells = {}
        _flatten(cells, record if isinstance(record, dict) else {"value": record}, "", 0)
        for key in cells:
            places.setdefault(key, len(places))
        flat.append(cells)
    return list(places), _bounded(([cells.get(key, "") for key in places] for cells in flat), name)


def _flatten(cells, record, prefix, depth):
    for key, value in record.items():
        if isinstance(value, dict) and value and depth < 6:
            _flatten(cells, value, f"{prefix}{key}.", depth + 1)
        elif isinstance(value, str):
            cells[prefix + key] = value.encode("utf-8", "replace").decode("utf-8")  # no lone surrogates
        elif value is None:
            cells[prefix + key] = ""
        else:
            cells[prefix + key] = json.dumps(value, ensure_ascii=False)


# ---------------------------------------------------------------- columns

_NUMBER = re.compile(r"[+-]?(?:(?:0|[1-9]\d*|[1-9]\d{0,2}(?:,\d{3})+)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?", re.ASCII)
_COMMA_NUMBER = re.compile(r"[+-]?\d+,\d+|[+-]?\d{1,3}(?:\.\d{3})+(?:,\d+)?", re.ASCII)
_PERCENT = re.compile(r"([+-]?\d+(?:\.\d+)?) ?%", re.ASCII)
_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.\d+)?)?)?", re.ASCII)
_SUM = Context(prec=60)


def _number(text):
    text = text.strip()
    if not _NUMBER.fullmatch(text):
        return None
    value = Decimal(text.replace(",", ""))
    digits = len(value.as_tuple().digits) if value else 1
    return value if digits <= MAX_NUMBER_DIGITS and -300 < value.adjusted() < 300 else None


def _percentage(text):
    match = _PERCENT.fullmatch(text.strip())
    return Decimal(match.group(1)) / 100 if match and len(match.group(1)) <= MAX_NUMBER_DIGITS else None


def _date(text):
    match = _DATE.fullmatch(text.strip())
    if not match or not "1900-03-01" <= text.strip()[:10]:
        return None
    try:
        return datetime.datetime(*(int(part or 0) for part in match.groups()))
    except ValueError:
        return None


class Column:
    """A column: its cells as Excel values, what kind they are, how they are formatted and whether they are summed."""

    def __init__(self, name, cells, form=None):
        self.name, self.notes = name, []
        self.form, parsed = (form, self._parse(cells, form)) if form else self._guess(cells)
        self.values = [value if value is not None else cell for value, cell in zip(parsed, cells)]
        self.decimals = 0
        if self.form in ("number", "money"):
            self.decimals = min(max([0] + [-value.as_tuple().exponent for value in parsed if value is not None]), 4)
        strays = [cell for value, cell in zip(parsed, cells) if value is None and cell.strip().lower() not in MISSING]
        if strays and self.form != "text":
            self.notes.append(f"{name}: {len(strays)} cells stay text, such as {strays[0][:30]!r}")
        if any(len(cell) > MAX_CELL_CHARACTERS for cell in cells):
            self.notes.append(f"{name}: cells over {MAX_CELL_CHARACTERS} characters are cut")

    def _parse(self, cells, form):
        if form == "text":
            return [None] * len(cells)
        if form in ("date", "datetime"):
            return [_date(cell) for cell in cells]
        if form == "percent":
            return [value if value is not None else _number(cell) for cell, value in zip(cells, map(_percentage, cells))]
        return [_number(cell) for cell in cells]

    def _guess(self, cells):
        filled = [cell for cell in cells if cell.strip().lower() not in MISSING]
        sample = filled[:200]
        for form, read in (("number", _number), ("date", _date), ("percent", _percentage)):
            # A first look, so that a million cells of text are not all tried as numbers.
            if sample and sum(read(cell) is not None for cell in sample) >= 0.8 * len(sample):
                parsed = [read(cell) for cell in cells]
                found = sum(value is not None for value in parsed)
                codes = any(value is None and cell.strip().isdigit() for value, cell in zip(parsed, cells))
                if found < 0.8 * len(filled) or codes:  # 00123 or 20 digits: not a number to Excel
                    continue
                if form == "number" and all(value is None or value.as_tuple().exponent >= 0 for value in parsed):
                    form = "integer"
                if form == "date" and any(value is not None and (value.hour or value.minute or value.second) for value in parsed):
                    form = "datetime"
                return form, parsed
        return "text", [None] * len(cells)

    @property
    def summable(self):
        """Tell whether a total makes sense unasked."""
        return self.form in ("integer", "number", "money") and not _NO_TOTAL.search(self.name)

    def total(self):
        """Return the exact sum of the numbers."""
        total = Decimal(0)
        for value in self.values:
            if isinstance(value, Decimal):
                total = _SUM.add(total, value)
        return total


# ---------------------------------------------------------------- writing


class _Styles:
    """Cell formats of one workbook, each made once."""

    def __init__(self, workbook, currency):
        self.workbook, self.currency, self.made = workbook, currency.replace('"', ""), {}

    def of(self, form, decimals=2, bold=False, header=False):
        key = (form, decimals, bold, header)
        if key not in self.made:
            style = {"valign": "top"}
            if header:
                style = {"bold": True, "bg_color": "#1F3864", "font_color": "#FFFFFF", "text_wrap": True, "valign": "vcenter"}
            elif bold:
                style.update({"bold": True, "top": 1})
            point = "." + "0" * decimals if decimals else ""
            number_format = {"integer": "#,##0", "number": "#,##0" + point, "percent": "0.0%", "date": "yyyy-mm-dd",
                             "datetime": "yyyy-mm-dd hh:mm:ss", "plain": "0", "title": "General",
                             "money": f'#,##0{"." + "0" * max(decimals, 2)}' + (f' "{self.currency}"' if self.currency else "")}.get(form)
            if number_format:
                style["num_format"] = number_format
            if form == "title":
                style.update({"bold": True, "font_size": 14})
            self.made[key] = self.workbook.add_format(style)
        return self.made[key]

    def column(self, column, bold=False):
        form = "plain" if column.form == "integer" and _NO_TOTAL.search(column.name) else column.form
        return self.of(form, column.decimals, bold)


def write_workbook(path, tables, title=None, totals=None, group_by=None, chart=False, formats=None, currency=""):
    """Write `tables`, a list of (sheet name, columns, rows of text), to `path`; return what was written as a dict.

    `totals` is a list of columns to sum (None: those where it makes sense), `formats` maps columns to FORMATS.
    """
    _require_package()
    formats, unknown = formats or {}, set(formats or {}) | set(totals or []) | ({group_by} if group_by else set())
    sheets = []
    for name, columns, rows in tables:
        unknown -= set(columns)
        cells = list(zip(*rows)) if rows else [()] * len(columns)
        sheets.append((name, [Column(column, list(values), formats.get(column)) for column, values in zip(columns, cells)], len(rows)))
    if unknown:
        known = ", ".join(list(dict.fromkeys(column for _, columns, _ in tables for column in columns))[:40])
        raise ReportError(f"no column {sorted(unknown)[0]!r}; columns: {known}")
    facts = {"output": path, "sheets": [], "notes": []}
    workbook = xlsxwriter.Workbook(path, {"strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False})
    workbook.set_properties({"title": title or "", "comments": ""})
    styles, used = _Styles(workbook, currency), {"history", "summary"}
    for name, columns, rows in sheets:
        summed = [column for column in columns if (column.name in totals if totals is not None else column.summable)]
        wrong = [column.name for column in summed if column.form in ("text", "date", "datetime")]
        if wrong:
            raise ReportError(f"the column {wrong[0]!r} holds no numbers to sum up")
        name = _sheet_name(name, used)
        _write_sheet(workbook.add_worksheet(name), styles, columns, rows, summed, title)
        facts["sheets"].append({"name": name, "rows": rows, "columns": len(columns), "totals": {column.name: _plain(column.total()) for column in summed}})
        facts["notes"] += [f"{name}: {note}" for column in columns for note in column.notes]
        if rows == 0:
            facts["notes"].append(f"{name}: no rows")
    if group_by:
        facts["groups"] = _write_summary(workbook, styles, sheets, group_by, totals, title, chart)
    workbook.close()
    return facts


def _require_package():
    if xlsxwriter is None:
        folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        raise ReportError("the package XlsxWriter is missing (No module named 'xlsxwriter'); run: "
                          "skills-runner skills setup table-report, or: "
                          f"cd {folder} && python3 -m venv venv && venv/bin/pip install -r requirements.txt")


def _sheet_name(name, used):
    base = re.sub(r"[\[\]:*?/\\\x00-\x1f]", "_", name).strip("' ")[:31] or "Sheet"
    name, count = base, 2
    while name.lower() in used:
        name, count = f"{base[:27]} {count}", count + 1
    used.add(name.lower())
    return name


def _write_sheet(sheet, styles, columns, rows, summed, title):
    top = 0
    if title:
        sheet.write_string(0, 0, title[:MAX_CELL_CHARACTERS], styles.of("title"))
        top = 2
    for place, column in enumerate(columns):
        sheet.write_string(top, place, column.name[:MAX_CELL_CHARACTERS], styles.of("text", header=True))
        style, text_style = styles.column(column), styles.of("text")
        for row, value in enumerate(column.values, top + 1):
            _write_cell(sheet, row, place, value, style, text_style)
        sheet.set_column(place, place, _width(column))
    sheet.freeze_panes(top + 1, 0)
    if columns:
        sheet.autofilter(top, 0, top + max(rows, 1), len(columns) - 1)
    if summed and rows:
        line = top + rows + 1
        for place, column in enumerate(columns):
            if column in summed:
                letters = xlsxwriter.utility.xl_col_to_name(place)
                # 109: the total follows the filter. The value is stored too, for readers that do not calculate.
                sheet.write_formula(line, place, f"=SUBTOTAL(109,{letters}{top + 2}:{letters}{line})", styles.column(column, True), float(column.total()))
            else:
                sheet.write_string(line, place, "Total" if place == 0 else "", styles.of("text", bold=True))
    sheet.set_landscape()
    sheet.fit_to_pages(1, 0)
    sheet.repeat_rows(top)


def _write_cell(sheet, row, place, value, style, text_style):
    if isinstance(value, Decimal):
        sheet.write_number(row, place, float(value), style)
    elif isinstance(value, datetime.datetime):
        sheet.write_datetime(row, place, value, style)
    elif value:
        sheet.write_string(row, place, value[:MAX_CELL_CHARACTERS], text_style)


def _width(column):
    if column.form == "datetime":
        longest = 19
    elif column.form == "date":
        longest = 10
    else:
        longest = max([0] + [max(map(len, value.split("\n"))) if isinstance(value, str) and value else len(str(value)) for value in column.values[:1_000]])
        if column.form in ("integer", "number", "money"):
            longest = max(longest, len(f"{column.total():,.{column.decimals}f}")) + 2
    return min(max(longest, len(column.name) + 2, 6) + 1, MAX_COLUMN_WIDTH)


def _write_summary(workbook, styles, sheets, group_by, totals, title, chart):
    groups, names = {}, []
    forms = {}
    for _, columns, rows in sheets:
        key_column = next((column for column in columns if column.name == group_by), None)
        if key_column is None:
            continue
        summed = [column for column in columns if column is not key_column and (column.name in totals if totals is not None else column.summable)]
        for column in summed:
            if column.name not in names:
                names.append(column.name)
                forms[column.name] = column
        for row in range(rows):
            group = groups.setdefault(_key_text(key_column.values[row]), [0, {}])
            if len(groups) > MAX_GROUPS:
                raise ReportError(f"{group_by!r} has over {MAX_GROUPS} different values: too many groups")
            group[0] += 1
            for column in summed:
                if isinstance(column.values[row], Decimal):
                    group[1][column.name] = _SUM.add(group[1].get(column.name, Decimal(0)), column.values[row])
    first = names[0] if names else None
    ordered = sorted(groups.items(), key=lambda item: (-(item[1][1].get(first, Decimal(0)) if first else item[1][0]), item[0]))
    sheet, top = workbook.add_worksheet("Summary"), 0
    if title:
        sheet.write_string(0, 0, f"{title}: by {group_by}"[:MAX_CELL_CHARACTERS], styles.of("title"))
        top = 2
    for place, head in enumerate([group_by, "count"] + names):
        sheet.write_string(top, place, head, styles.of("text", header=True))
    for row, (key, (count, sums)) in enumerate(ordered, top + 1):
        sheet.write_string(row, 0, key[:MAX_CELL_CHARACTERS], styles.of("text"))
        sheet.write_number(row, 1, count, styles.of("integer"))
        for place, name in enumerate(names, 2):
            if name in sums:
                sheet.write_number(row, place, float(sums[name]), styles.column(forms[name]))
    line = top + len(ordered) + 1
    sheet.write_string(line, 0, "Total", styles.of("text", bold=True))
    for place, name in enumerate(["count"] + names, 1):
        letters = xlsxwriter.utility.xl_col_to_name(place)
        value = sum((sums.get(name, Decimal(0)) for _, sums in groups.values()), Decimal(0)) if place > 1 else sum(count for count, _ in groups.values())
        style = styles.column(forms[name], True) if place > 1 else styles.of("integer", bold=True)
        sheet.write_formula(line, place, f"=SUM({letters}{top + 2}:{letters}{line})", style, float(value))
    sheet.set_column(0, 0, min(max([len(group_by)] + [len(key) for key in groups]) + 3, MAX_COLUMN_WIDTH))
    sheet.set_column(1, len(names) + 1, 16)
    sheet.freeze_panes(top + 1, 0)
    if chart and ordered:
        _add_chart(workbook, sheet, top, len(ordered), len(names) + 3, first or "count", group_by)
    return [{"group": key, "count": count, "sums": {name: _plain(value) for name, value in sums.items()}} for key, (count, sums) in ordered]


def _key_text(value):
    if isinstance(value, datetime.datetime):
        return value.strftime("%Y-%m-%d" if not (value.hour or value.minute or value.second) else "%Y-%m-%d %H:%M:%S")
    return str(value).strip() or "(empty)"


def _add_chart(workbook, sheet, top, count, place, name, group_by):
    shown, value_column = min(count, MAX_CHART_GROUPS), 1 if name == "count" else 2
    chart = workbook.add_chart({"type": "column"})
    chart.add_series({"name": name, "categories": ["Summary", top + 1, 0, top + shown, 0],
                      "values": ["Summary", top + 1, value_column, top + shown, value_column], "fill": {"color": "#1F3864"}})
    chart.set_title({"name": f"{name} by {group_by}"})
    chart.set_legend({"none": True})
    sheet.insert_chart(top, place, chart)


def _plain(value):
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


# ---------------------------------------------------------------- command line


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        self.exit(2, f"report.py: error: {message[:300]} (see --help)\n")


def _delimiter(text):
    text = {"\\t": "\t", "tab": "\t", "comma": ",", "semicolon": ";", "pipe": "|"}.get(text, text)
    if len(text) != 1 or text in "\r\n\"":
        raise argparse.ArgumentTypeError("needs a single character, or tab")
    return text


def _format(text):
    name, _, form = text.rpartition("=")
    if not name or form not in FORMATS:
        raise argparse.ArgumentTypeError(f"needs COLUMN=KIND with a kind of {', '.join(FORMATS)}, not {text!r}")
    return name.strip(), form


def build_parser():
    """Return the command line's parser."""
    parser = _Parser(prog="report.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE", help="CSV, TSV, JSON or JSON Lines; - for stdin; each becomes a sheet")
    parser.add_argument("-o", "--output", metavar="FILE", help="workbook (default: the first file's name with .xlsx, in the user's folder)")
    parser.add_argument("--overwrite", action="store_true", help="replace an existing workbook")
    parser.add_argument("--title", help="line above the header")
    parser.add_argument("--total", metavar="COLUMNS", help="columns to sum, separated by commas; none: no totals (default: amounts and counts, not ids, years, prices, rates)")
    parser.add_argument("--group-by", metavar="COLUMN", help="adds the sheet Summary: count and sums per value")
    parser.add_argument("--chart", action="store_true", help="with --group-by: a column chart")
    parser.add_argument("--format", action="append", type=_format, default=[], metavar="COLUMN=KIND", help=f"kind: {', '.join(FORMATS)}; may be repeated")
    parser.add_argument("--currency", default="", metavar="SIGN", help="sign behind money, such as €")
    parser.add_argument("--delimiter", type=_delimiter, help="cell delimiter of CSV (default: found out)")
    parser.add_argument("--encoding", help="default: found out (UTF-8, UTF-16, Windows-1252)")
    parser.add_argument("--no-header", action="store_true", help="the first row is data; columns are column_1, column_2 …")
    parser.add_argument("--decimal-comma", action="store_true", help="1.234,5 means 1234.5")
    parser.add_argument("--json", action="store_true", help="tell the result as JSON")
    return parser


def _output_path(options):
    name = options.output or os.path.splitext(os.path.basename(options.files[0] if options.files[0] != "-" else "report"))[0] + ".xlsx"
    path = os.path.abspath(os.path.join(os.environ.get("USER_CWD") or "", os.path.expanduser(name)))
    if os.path.isdir(path):
        raise ReportError(f"{path} is a folder; --output names a file")
    if not path.lower().endswith(".xlsx"):
        path += ".xlsx"
    if os.path.exists(path) and not options.overwrite:
        raise ReportError(f"{path} exists: give --overwrite or another --output")
    if not os.path.isdir(os.path.dirname(path)):
        raise ReportError(f"no folder {os.path.dirname(path)}")
    return path


def _run(options):
    _require_package()
    path = _output_path(options)
    if options.chart and not options.group_by:
        raise ReportError("--chart needs --group-by")
    tables = []
    for name in options.files:
        columns, rows = read_table(name, options.delimiter, options.encoding, not options.no_header, options.decimal_comma)
        tables.append((os.path.splitext(os.path.basename(name))[0] if name != "-" else "stdin", columns, rows))
    known = {column for _, columns, _ in tables for column in columns}
    totals = None if options.total is None else [] if options.total.lower() == "none" else \
        [options.total] if options.total in known else [part.strip() for part in options.total.split(",") if part.strip()]
    beside = f"{path}.{os.getpid()}.part.xlsx"
    try:
        facts = write_workbook(beside, tables, options.title, totals, options.group_by, options.chart, dict(options.format), options.currency)
        os.replace(beside, path)
    except xlsxwriter.exceptions.XlsxWriterException as error:
        raise ReportError(f"failed to write {path}: {error.__cause__ or error.__context__ or error}") from None
    finally:
        if os.path.exists(beside):
            os.unlink(beside)
    facts["output"] = path
    if options.json:
        print(json.dumps(facts, ensure_ascii=False))
        return
    print(f"wrote {path}")
    for sheet in facts["sheets"]:
        sums = ", ".join(f"{name} {value}" for name, value in sheet["totals"].items())
        print(f"sheet {sheet['name']}: {sheet['rows']} rows, {sheet['columns']} columns; totals: {sums or 'none'}")
    if options.group_by:
        print(f"sheet Summary: {len(facts['groups'])} groups by {options.group_by}")
    for note in facts["notes"]:
        print(f"note: {note}")


def main(arguments=None):
    """Run the command line; return the exit status."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    options = build_parser().parse_args(arguments)
    try:
        _run(options)
        sys.stdout.flush()
        return 0
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the reader left: nothing more to say
        return 0
    except (ReportError, OSError) as error:
        print(f"report.py: error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Turn CSV or JSON files into one formatted Excel workbook.

    report.py sales.csv
    report.py sales.csv --output q1.xlsx --title "Sales Q1" --group-by region --chart
    report.py north.csv south.csv --total amount --format amount=money --currency "€"

Each file becomes a sheet with real numbers and dates, a frozen header, a filter and totals;
--group-by adds a sheet with the count and the sums of each group.
Needs the package XlsxWriter (see requirements.txt).
"""

import argparse
import csv
import os
import re
import sys
from collections import Counter
from datetime import datetime

from tables import Column, read_table

try:
    import xlsxwriter
except ImportError:  # told in main, so that --help works without it
    xlsxwriter = None

FORMATS = {
    "integer": "#,##0", "number": "#,##0.00", "money": "#,##0.00", "percent": "0.0%", "text": "@",
    "date": "yyyy-mm-dd", "datetime": "yyyy-mm-dd hh:mm:ss",
}


def write_workbook(path, sheets, title="", group_by=None, chart=False, currency=""):
    """Write sheets, a dict of name to columns, as a workbook; return lines that describe it."""
    told = []
    workbook = xlsxwriter.Workbook(path, {"strings_to_formulas": False, "strings_to_urls": False})
    for name, columns in sheets.items():
        write_sheet(workbook, name, columns, title, currency)
        sums = ", ".join(f"{c.name} {c.total:.15g}" for c in columns if c.is_summed)
        size = f"{len(columns[0].values)} rows, {len(columns)} columns"
        told.append(f"sheet {name}: {size}; totals: {sums or 'none'}")
        for column in columns:
            if column.strays and column.kind != "text":
                strays = f"{len(column.strays)} cells stay text, such as {column.strays[0][:30]!r}"
                told.append(f"note: {name}: {column.name}: {strays}")
    if group_by:
        columns = summarize(sheets, group_by)
        sheet, top = write_sheet(workbook, "Summary", columns, title, currency)
        count = len(columns[0].values)
        told.append(f"sheet Summary: {count} groups by {group_by}")
        if chart:
            place = min(2, len(columns) - 1)  # the first sum, otherwise the count
            diagram = workbook.add_chart({"type": "column"})
            diagram.add_series({
                "categories": ["Summary", top + 1, 0, top + count, 0],
                "values": ["Summary", top + 1, place, top + count, place]})
            diagram.set_title({"name": f"{columns[place].name} by {group_by}"})
            diagram.set_legend({"none": True})
            sheet.insert_chart(top, len(columns) + 1, diagram)
    workbook.close()
    return told


def write_sheet(workbook, name, columns, title, currency):
    """Write one sheet; return it and the row of its header."""
    sheet, top = workbook.add_worksheet(name), 2 if title else 0
    rows = len(columns[0].values)
    if title:
        sheet.write_string(0, 0, title, workbook.add_format({"bold": True, "font_size": 14}))
    header = workbook.add_format({"bold": True, "bg_color": "#1F3864", "font_color": "#FFFFFF"})
    for place, column in enumerate(columns):
        form = FORMATS[column.kind]
        if column.kind == "integer" and not column.is_quantity:
            form = "0"  # years and ids
        if column.kind == "money" and currency:
            form += ' "' + currency.replace('"', "") + '"'
        style = workbook.add_format({"num_format": form})
        total_style = workbook.add_format({"num_format": form, "bold": True, "top": 1})
        sheet.write_string(top, place, column.name, header)
        for row, value in enumerate(column.values, top + 1):
            if isinstance(value, float):
                sheet.write_number(row, place, value, style)
            elif isinstance(value, datetime):
                sheet.write_datetime(row, place, value, style)
            elif value:
                sheet.write_string(row, place, value[:32_767])  # Excel's longest cell
        if column.is_summed and rows:
            letter = xlsxwriter.utility.xl_col_to_name(place)
            # 109: the sum of the rows that the filter leaves visible.
            formula = f"=SUBTOTAL(109,{letter}{top + 2}:{letter}{top + 1 + rows})"
            sheet.write_formula(top + 1 + rows, place, formula, total_style, column.total)
        elif place == 0:
            sheet.write_string(top + 1 + rows, 0, "Total", total_style)
        cells = [column.name, f"{column.total:,.2f}", *column.values[:1000]]
        sheet.set_column(place, place, min(max(len(str(cell)) for cell in cells) + 3, 60))
    sheet.freeze_panes(top + 1, 0)
    sheet.autofilter(top, 0, top + max(rows, 1), len(columns) - 1)
    return sheet, top


def summarize(sheets, group_by):
    """Return the columns of the summary: each group, its count and its sums."""
    groups, kinds = {}, {}
    for columns in sheets.values():
        keys = next((column.cells for column in columns if column.name == group_by), [])
        summed = [column for column in columns if column.is_summed and column.name != group_by]
        kinds.update({column.name: column.kind for column in summed})
        for row, key in enumerate(keys):
            group = groups.setdefault(key.strip() or "(empty)", Counter())
            group[None] += 1
            for column in summed:
                if isinstance(column.values[row], float):
                    group[column.name] += column.values[row]
    first = next(iter(kinds), None)
    ordered = sorted(groups.items(), key=lambda item: -item[1][first])
    columns = [Column(group_by, [key for key, _ in ordered], "text")]
    for name, kind in {None: "integer", **kinds}.items():
        cells = [repr(round(float(group[name]), 10)) for _, group in ordered]
        columns.append(Column(name or "count", cells, kind))
    for column in columns[1:]:
        column.is_summed = True
    return columns


def load(name, options):
    """Return the columns of a file, as the options want them."""
    heads, rows = read_table(name)
    totals = None if options.total is None else options.total.split(",")
    formats = dict(options.format)
    for column in [*formats, *(totals or []), *filter(None, [options.group_by])]:
        if column not in heads and column != "none":
            known = ", ".join(heads)
            raise ValueError(f"failed to find column `{column}` in `{name}`: columns: {known}")
    cells = list(zip(*rows)) or [()] * len(heads)
    columns = [Column(head, part, formats.get(head)) for head, part in zip(heads, cells)]
    for column in columns if totals is not None else ():
        column.is_summed = column.name in totals
    return columns


def output_path(options):
    """Return where the workbook goes: the user's folder, unless the path is absolute."""
    name = options.output or os.path.splitext(os.path.basename(options.files[0]))[0] + ".xlsx"
    path = os.path.join(os.environ.get("USER_CWD", ""), os.path.expanduser(name))
    path = os.path.abspath(path if path.lower().endswith(".xlsx") else path + ".xlsx")
    if os.path.exists(path) and not options.overwrite:
        raise ValueError(f"failed to write file `{path}`: it exists; give --overwrite or --output")
    return path


def main():
    """Run the command line."""
    def column_format(text):
        name, _, kind = text.rpartition("=")
        if not name or kind not in FORMATS:
            raise argparse.ArgumentTypeError(f"write COLUMN=KIND; kinds: {', '.join(FORMATS)}")
        return name, kind

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE", help="CSV, JSON or JSON Lines")
    parser.add_argument("--output", metavar="FILE")
    parser.add_argument("--overwrite", action="store_true")
    parser.add_argument("--title", default="")
    parser.add_argument("--total", metavar="COLUMNS", help="columns to sum, or none")
    parser.add_argument("--group-by", metavar="COLUMN")
    parser.add_argument("--chart", action="store_true", help="with --group-by")
    parser.add_argument("--format", action="append", default=[], type=column_format)
    parser.add_argument("--currency", default="", help="sign behind money")
    options = parser.parse_args()
    if xlsxwriter is None:
        sys.exit("report.py: failed to import a package: XlsxWriter is missing (No module named "
                 "'xlsxwriter'); run: skills-runner skills setup table-report")
    try:
        path, sheets = output_path(options), {}
        for name in options.files:
            stem = os.path.splitext(os.path.basename(name))[0]
            stem = re.sub(r"[\[\]:*?/\\']", "_", stem)[:28] or "Sheet"
            taken = [sheet.lower() for sheet in sheets] + ["summary", "history"]
            stem += f" {len(sheets) + 1}" if stem.lower() in taken else ""
            sheets[stem] = load(name, options)
        told = write_workbook(
            path, sheets, options.title, options.group_by, options.chart, options.currency)
    except OSError as error:
        sys.exit(f"report.py: failed to open file `{error.filename}`: {error.strerror}")
    except ValueError as error:
        sys.exit(f"report.py: {error}")
    except (csv.Error, xlsxwriter.exceptions.XlsxWriterException) as error:
        sys.exit(f"report.py: failed to make workbook: {error}")
    print(f"wrote {path}")
    print("\n".join(told))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Statistics of numbers, and the line of best fit.

    stats.py describe 2 4 4 4 5 5 7 9
    stats.py describe --file orders.csv --column amount --quantiles 0.5,0.9
    stats.py regress 1,2 2,4.1 3,5.9 --at 4
    stats.py regress --file orders.csv --x quantity --y amount

Without numbers and file, they are read from stdin. To import: describe, regress, read_columns.
Only the standard library is needed.
"""

import argparse
import csv
import decimal
import json
import os
import re
import statistics
import sys
from decimal import Decimal

decimal.setcontext(decimal.Context(prec=250, rounding=decimal.ROUND_HALF_UP))


def number(text):
    """Return text such as -1.5 or 2e3 as a Decimal, or None."""
    if not re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,2})?", text.strip(), re.ASCII):
        return None
    return Decimal(text.strip())


def describe(numbers, quantiles=("0.25", "0.75")):
    """Return count, sum, mean, quantiles and so on of a list of Decimals, as a dict."""
    values = sorted(numbers)
    if not values:
        raise ValueError("there are no numbers")
    result = {
        "count": len(values), "sum": sum(values), "mean": statistics.mean(values),
        "median": statistics.median(values), "min": values[0], "max": values[-1],
    }
    if len(values) > 1:  # one number has no spread
        result["stdev"] = statistics.stdev(values)
        result["pstdev"] = statistics.pstdev(values)
        result["variance"] = statistics.variance(values)
    for share in quantiles:
        place = Decimal(share) * (len(values) - 1)  # between two neighbours, as in spreadsheets
        low, high = values[int(place)], values[min(int(place) + 1, len(values) - 1)]
        result[f"q{share}"] = low + (high - low) * (place % 1)
    modes = statistics.multimode(values)
    if len(modes) == 1 and len(values) > 1:
        result["mode"] = modes[0]
    return result


def regress(points, at=()):
    """Return the line of least squares through a list of (x, y), as a dict."""
    count = len(points)
    if count < 2:
        raise ValueError("a line needs at least two points")
    mean_x, mean_y = (sum(side) / count for side in zip(*points))
    xx = sum((x - mean_x) ** 2 for x, _ in points)
    yy = sum((y - mean_y) ** 2 for _, y in points)
    xy = sum((x - mean_x) * (y - mean_y) for x, y in points)
    if not xx:
        raise ValueError("all x are equal")
    slope = xy / xx
    result = {"count": count, "slope": slope, "intercept": mean_y - slope * mean_x}
    if yy:
        result["r"] = xy / (xx * yy).sqrt()
        result["r_squared"] = xy**2 / (xx * yy)
    if count > 2:
        residuals = (y - mean_y - slope * (x - mean_x) for x, y in points)
        result["residual_stdev"] = (sum(r**2 for r in residuals) / (count - 2)).sqrt()
    for x in at:
        result[f"at {x}"] = mean_y + slope * (x - mean_x)
    return result


def find_file(name):
    """Return the path of the user's file with this name, or of the skill's."""
    path = os.path.join(os.environ.get("USER_CWD", ""), os.path.expanduser(name))
    own = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), name)
    return own if os.path.exists(own) and not os.path.exists(path) else path


def read_columns(name, columns):
    """Return the rows of these columns of a CSV file, and how many rows held no numbers."""
    name = find_file(name)
    rows, skipped = [], 0
    with open(name, encoding="utf-8-sig", errors="replace", newline="") as file:
        first = file.readline()
        file.seek(0)
        reader = csv.DictReader(file, delimiter=max(",;\t|", key=first.count))
        for column in columns:
            if column not in (reader.fieldnames or []):
                names = ", ".join(reader.fieldnames or [])
                raise ValueError(f"no column `{column}` in file `{name}`; columns: {names}")
        for row in reader:
            cells = [number(row[column] or "") for column in columns]
            if None in cells:
                skipped += 1
            else:
                rows.append(cells)
    return rows, skipped


def numbers_in(text, size):
    """Return the numbers of a text in rows of `size`; a row is a line or a word."""
    rows = text.split() if size == 1 else text.splitlines()
    for row in filter(str.strip, rows):
        cells = [number(word) for word in re.split(r"[,;\s]+", row.strip(" ,;"))]
        if None in cells or size > 1 and len(cells) != size:
            what = "number" if size == 1 else "pair X,Y of numbers"
            raise ValueError(f"`{row[:40]}` is no {what}")
        yield from [[cell] for cell in cells] if size == 1 else [cells]


def plain(value, places):
    """Return a number as text, with 20 digits or with `places` digits behind the point."""
    value = decimal.Context(prec=20).create_decimal(value)
    if places is not None:
        return f"{value:.{places}f}"
    return f"{value.normalize():f}"


def main():
    """Run the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["describe", "regress"])
    parser.add_argument("numbers", nargs="*", metavar="NUMBER", help="for regress: X,Y")
    parser.add_argument("--file", help="a CSV file with a header")
    parser.add_argument("--column", help="for describe: the column of --file")
    parser.add_argument("--x", metavar="COLUMN", help="for regress")
    parser.add_argument("--y", metavar="COLUMN", help="for regress")
    parser.add_argument("--quantiles", default="0.25,0.75", help="shares from 0 to 1")
    parser.add_argument("--at", action="append", default=[], type=number, metavar="X")
    parser.add_argument("--places", type=int, choices=range(21), metavar="0..20")
    parser.add_argument("--json", action="store_true", help="numbers as text")
    # A pair such as -1,2 is no option.
    words = [f" {word}" if re.match(r"-[\d.]", word) else word for word in sys.argv[1:]]
    options = parser.parse_intermixed_args(words)
    columns = [options.column] if options.command == "describe" else [options.x, options.y]
    if options.file and None in columns:
        parser.error("--file needs --column, or --x and --y")
    shares = options.quantiles.split(",")
    if any(number(share) is None or not 0 <= number(share) <= 1 for share in shares):
        parser.error("--quantiles needs numbers from 0 to 1, such as 0.5,0.9")
    if None in options.at:
        parser.error("--at needs a number")
    skipped = 0
    try:
        if options.file:
            rows, skipped = read_columns(options.file, columns)
        else:
            text = "\n".join(options.numbers) or sys.stdin.read()
            rows = list(numbers_in(text, len(columns)))
        if options.command == "describe":
            result = describe([row[0] for row in rows], shares)
        else:
            result = regress(rows, options.at)
    except OSError as error:
        sys.exit(f"stats.py: failed to read file `{error.filename}`: {error.strerror}")
    except (ValueError, csv.Error) as error:
        sys.exit(f"stats.py: failed to {options.command} numbers: {error}")
    texts = {name: plain(value, None if name == "count" else options.places)
             for name, value in result.items()}
    texts.update({"skipped": str(skipped)} if skipped else {})
    if options.json:
        print(json.dumps(texts))
        return
    width = max(map(len, texts))
    for name, text in texts.items():
        print(f"{name:<{width}}  {text}")


if __name__ == "__main__":
    main()

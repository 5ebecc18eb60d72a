"""Writes the hours of a CSV as a sheet."""

import argparse
import os
import sys

from gridscribe import grid

from scripts.shared.hours import read_hours


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("csv", help="columns day, project, hours")
    options.add_argument("sheet", help="the file to write")
    options.add_argument("--title", default="Hours")
    chosen = options.parse_args()
    if not os.path.isfile(chosen.csv):
        sys.exit(f"no such file: {chosen.csv}")
    hours = read_hours(chosen.csv)
    rows = [("project", "hours")]
    rows += [(project, str(sum_)) for project, sum_ in sorted(hours.items())]
    rows.append(("total", str(sum(hours.values()))))
    with open(chosen.sheet, "w", encoding="utf-8") as file:
        file.write(f"{chosen.title}\n{grid(rows)}")
    print(f"{len(hours)} projects, {sum(hours.values())} hours")


if __name__ == "__main__":
    main()

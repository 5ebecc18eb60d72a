"""Checks the total of a sheet: python -m scripts.verify SHEET"""

import argparse
import sys

from .shared import hours


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("sheet")
    rows = hours.read_sheet(options.parse_args().sheet)
    total = rows.pop("total")
    if sum(rows.values()) != total:
        sys.exit(f"the total is wrong: {total}, not {sum(rows.values())}")
    print(f"the total is right: {total}")


if __name__ == "__main__":
    main()

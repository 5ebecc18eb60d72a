"""Hours by project, from a CSV or from a sheet that was made of one."""

import csv
from collections import defaultdict


def read_hours(path):
    hours = defaultdict(float)
    with open(path, encoding="utf-8-sig", newline="") as file:
        for row in csv.DictReader(file):
            if row["hours"]:
                hours[row["project"]] += float(row["hours"])
    return dict(hours)


def read_sheet(path):
    rows = {}
    with open(path, encoding="utf-8") as file:
        for line in file.readlines()[2:]:
            project, hours = (cell.strip() for cell in line.strip(" |\n").split("|"))
            rows[project] = float(hours)
    return rows

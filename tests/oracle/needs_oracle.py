#!/usr/bin/env python3
"""Compares what `skills show --json` says that skills need with labels made by hand.

usage: needs_oracle.py BINARY FOLDER

FOLDER has the repositories of tests/data/needs.jsonl at their commits, each as OWNER/NAME.
Prints precision and recall for each kind, and with -v each difference.
"""
import json
import pathlib
import subprocess
import sys

LISTS = ("python", "npm", "programs", "mcp", "tools")
FLAGS = ("network", "shell", "files")


def needs_of(binary, folder):
    command = [binary, "--no-env-file", "--no-scripts"]
    command += ["skills", "show", str(folder), "--json"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(shown.stdout)["needs"]


def found_of(needs, kind):
    if kind in FLAGS:
        return {kind} if needs[kind] else set()
    return {name.lower().replace(" ", "-") for name in needs[kind]}


def main():
    verbose = "-v" in sys.argv
    binary, root = [word for word in sys.argv[1:] if word != "-v"]
    labels = pathlib.Path(__file__).parent.parent / "data/needs.jsonl"
    counts = {kind: [0, 0, 0] for kind in LISTS + FLAGS}
    for line in labels.read_text().splitlines():
        label = json.loads(line)
        needs = needs_of(binary, pathlib.Path(root) / label["repository"] / label["folder"])
        for kind, count in counts.items():
            expected, found = found_of(label, kind), found_of(needs, kind)
            parts = [expected & found, found - expected, expected - found]
            for place, names in enumerate(parts):
                count[place] += len(names)
            if verbose and (parts[1] or parts[2]):
                print(label["folder"], kind, "extra", sorted(parts[1]), "missed", sorted(parts[2]))
    for kind, (both, extra, missed) in counts.items():
        precision, recall = both / max(1, both + extra), both / max(1, both + missed)
        print(f"{kind}: precision {precision:.2f}, recall {recall:.2f} ({both + missed} labelled)")


main()

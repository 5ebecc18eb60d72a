"""Imports names with the interpreter that runs a skill's scripts, and reports which fail.

Arguments: folders to search, separated by colons, then dotted names. Standard output: a line "+"
before a name is tried, and a line "-" with the reason if it fails. What the modules print is not
part of it.
"""
import importlib
import os
import sys

output = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="backslashreplace")
os.dup2(2, 1)
sys.path = [entry for entry in sys.path if entry not in ("", ".")] + [path for path in sys.argv[1].split(":") if path]


def reason_of(dotted):
    """Why a module, or something in a module, cannot be imported; None: it can."""
    words = dotted.split(".")
    end = 0
    try:
        found = importlib.import_module(words[0])
        for end in range(1, len(words)):
            if hasattr(found, words[end]):
                found = getattr(found, words[end])
            else:
                found = importlib.import_module(".".join(words[:end + 1]))
    except ModuleNotFoundError as error:
        if error.name == ".".join(words[:end + 1]) and end:
            return "`%s` has no `%s`" % (".".join(words[:end]), words[end])
        return str(error)
    except BaseException as error:
        # A module may end the program.
        return type(error).__name__ + ": " + " ".join(str(error).split())[:300]
    return None


for name in sys.argv[2:]:
    print("+", file=output, flush=True)
    reason = reason_of(name)
    if reason:
        print("-" + reason, file=output, flush=True)
# Threads of the modules may not end.
os._exit(0)

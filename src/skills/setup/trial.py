"""Imports names with the interpreter that runs a skill's scripts, and reports which fail.

Arguments: folders to search, separated by colons, then dotted names. Standard output: a line "+"
before a name is tried, a line "-" with the reason if it fails, and at the end a line ".". What the
modules print is not part of it.
"""
import importlib
import os
import site
import sys

output = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="backslashreplace")
os.dup2(2, 1)
# The folders that an isolated interpreter leaves out.
if sys.prefix == sys.base_prefix:
    sys.path.append(site.getusersitepackages())
sys.path += [path for path in sys.argv[1].split(":") if path]


def reason_of(dotted):
    """Why a module, or something in a module, cannot be imported; None: it can."""
    module, _, name = dotted.rpartition(".")
    try:
        found = importlib.import_module(module or name)
        if module and not hasattr(found, name):
            importlib.import_module(dotted)
    except ModuleNotFoundError as error:
        return "`%s` has no `%s`" % (module, name) if module and error.name == dotted else str(error)
    except BaseException as error:
        # A module may end the program.
        return type(error).__name__ + ": " + " ".join(str(error).split())[:120]
    return None


for name in sys.argv[2:]:
    print("+", file=output, flush=True)
    reason = reason_of(name)
    if reason:
        print("-" + reason, file=output, flush=True)
print(".", file=output, flush=True)
# Threads of the modules may not end.
os._exit(0)

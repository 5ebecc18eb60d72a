"""How a client's checks are run: one after another, each on a server of its own;
a line on standard output for each (a mark, its name, what was seen, between tabs),
and what went wrong on standard error."""

import asyncio
import sys
import traceback

CHECK_SECONDS = 60


def run(checks):
    """Runs pairs of a name and a function without arguments; ends the program."""
    failed = False
    for name, check in checks:
        try:
            seen = asyncio.run(asyncio.wait_for(check(), CHECK_SECONDS))
            print("ok", name, seen, sep="\t", flush=True)
        except BaseException as fault:
            if isinstance(fault, KeyboardInterrupt):
                raise
            failed = True
            print("FAILED", name, last_words(fault), sep="\t", flush=True)
            print(f"--- {name}", file=sys.stderr)
            traceback.print_exc()
    sys.exit(failed)


def last_words(fault):
    """The cause in one line; groups of one, as task groups make them, are opened."""
    while getattr(fault, "exceptions", None):
        fault = fault.exceptions[0]
    return " ".join(f"{type(fault).__name__}: {fault}".split())[:300]

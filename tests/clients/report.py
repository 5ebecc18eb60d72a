"""Runs a client's checks in sequence, each with its own server. Prints a line for each
(outcome, name and summary, separated by tabs), and errors on standard error."""

import asyncio
import sys
import traceback

CHECK_SECONDS = 60


def run(checks):
    """Runs pairs of a name and a function without arguments, then exits."""
    failed = False
    for name, check in checks:
        try:
            seen = asyncio.run(asyncio.wait_for(check(), CHECK_SECONDS))
            print("ok", name, seen, sep="\t", flush=True)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            failed = True
            print("FAILED", name, summary_of(error), sep="\t", flush=True)
            print(f"--- {name}", file=sys.stderr)
            traceback.print_exc()
    sys.exit(failed)


def summary_of(error):
    """The cause in one line; exception groups of task groups are unwrapped."""
    while getattr(error, "exceptions", None):
        error = error.exceptions[0]
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]

"""Replaces this process by the program: same exit status, signals and streams."""

import os
import sys

# `python -m` searches the working folder for modules first, so that a file there, such
# as `sysconfig.py`, would replace the standard module. Python has already imported
# `os` and `sys`.
try:
    here = os.getcwd()
except OSError:
    here = ""
if sys.path[:1] in ([""], [here]):
    del sys.path[0]

from skills_runner import find_binary

if __name__ == "__main__":
    try:
        path = find_binary()
    except FileNotFoundError as error:
        sys.exit(f"skills_runner: {error}\nhint: install the wheel again: pip install --force-reinstall skills-runner")
    os.execv(path, [path, *sys.argv[1:]])

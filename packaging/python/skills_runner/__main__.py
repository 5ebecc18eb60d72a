"""Becomes the program: its exit status, signals and streams are this process's."""

import os
import sys

# `python -m` looks for modules in the folder that it is started in, before all
# others: a file of somebody's there, `sysconfig.py` say, is none of ours. Python
# itself has imported these two before.
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

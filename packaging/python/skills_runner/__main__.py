"""Becomes the program: its exit status, signals and streams are this process's."""

import os
import sys

from skills_runner import find_binary

if __name__ == "__main__":
    try:
        path = find_binary()
    except FileNotFoundError as error:
        sys.exit(f"skills_runner: {error}\nhint: install the wheel again: pip install --force-reinstall skills-runner")
    os.execv(path, [path, *sys.argv[1:]])

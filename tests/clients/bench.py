"""The environment of the checks (the server's command, its skills, the installed
packages) and the list of their outcomes."""

import os
import pathlib
import shutil
import subprocess
import sys

from environments import Environments

SKILLS = pathlib.Path(__file__).parent.parent.parent / "skills"
CHECK_SECONDS = 300
NEWEST = {"legacy": "2025-11-25", "modern": "2026-07-28"}
NOT_LISTED = "left-out"
# The number of skills that fills more than two pages of every list.
MANY = 2500

# Cases that the skills of this project lack: nested frontmatter, names that must be
# escaped in an address, a binary file, a skill without frontmatter.
MORE_SKILLS = {
    "brewing/SKILL.md": """---
name: brewing
description: "How to brew: tea, coffee. Use it for hot drinks."
argument-hint: "[drink]"
metadata:
  tags: [tea, coffee]
  author: {name: Ana, since: 2019}
  strength: 3
---

# Brewing

Brew $ARGUMENTS as references/ says.
""",
    "brewing/references/thé vert #1.md": "Two minutes at 75 °C.\n",
    "brewing/assets/cup.bin": bytes(range(256)),
    f"{NOT_LISTED}/SKILL.md": "# No frontmatter\n\nNothing says what this is for.\n",
    f"{NOT_LISTED}/notes.md": "A file of it.\n",
}


class Failure(Exception):
    """A failed check: the reason in a few words, and the whole output."""

    def __init__(self, why, output=""):
        super().__init__(why)
        self.output = output


class Bench:
    """The environment of the checks and their outcomes."""

    def __init__(self, program, folder):
        self.environments = Environments(folder)
        work = self.environments.folder / "work"
        shutil.rmtree(work, ignore_errors=True)
        self.skills = work / "skills"
        shutil.copytree(
            SKILLS, self.skills,
            ignore=shutil.ignore_patterns("venv", ".venv", "__pycache__"),
        )
        for path, content in MORE_SKILLS.items():
            file = self.skills / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content if isinstance(content, bytes) else content.encode())
        self.many_skills = work / "many"
        for number in range(MANY):
            document = self.many_skills / f"skill-{number:04}" / "SKILL.md"
            document.parent.mkdir(parents=True)
            name = document.parent.name
            document.write_text(f"---\nname: {name}\ndescription: Number {number}.\n---\n\n# {name}\n")
        program = pathlib.Path(program).absolute()
        self.work = work
        self.server = [str(program), "--no-env-file", "--skills", str(self.skills), "mcp"]
        self.server_of_many = [
            str(program), "--no-env-file", "--skills", str(self.many_skills), "mcp",
            "--skills-as-tools",
        ]
        self.settings = {
            "HOME": str(work),
            "PATH": os.environ.get("PATH", os.defpath),
            "MEMORY_PATH": str(work / "facts.json"),
            "NOTES_FOLDER_PATH": str(work / "notes"),
        }
        self.rows = []

    def note(self, passed, client, name, seen, output=""):
        self.rows.append((passed, client, name, seen))
        if not passed:
            print(f"--- {client}: {name}\n{output.rstrip()}\n", flush=True)

    def check(self, client, name, check, *arguments):
        """Runs a check, which returns a summary of its result."""
        print(f"{client}: {name}", file=sys.stderr, flush=True)
        try:
            self.note(True, client, name, check(*arguments))
        except Failure as failure:
            self.note(False, client, name, str(failure), failure.output)
        except (OSError, ValueError, LookupError, AssertionError) as error:
            self.note(False, client, name, f"{type(error).__name__}: {error}")

    def run(self, command, **more):
        """Runs a client; returns its status and output."""
        environment = {**self.settings, **more}
        environment["PATH"] = f"{self.environments.node.parent}:{environment['PATH']}"
        try:
            return subprocess.run(
                [str(word) for word in command], capture_output=True, text=True, check=False,
                cwd=self.work, env=environment, timeout=CHECK_SECONDS, stdin=subprocess.DEVNULL,
            )
        except subprocess.TimeoutExpired as late:
            said = ((late.stdout or b"") + (late.stderr or b"")).decode(errors="replace")
            raise Failure(f"not done after {CHECK_SECONDS} s", said) from late

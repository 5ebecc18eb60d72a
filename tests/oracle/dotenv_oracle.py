#!/usr/bin/env python3
"""Compares the `.env` reader with the real python-dotenv on generated files.

A development script: `cargo test` needs neither it nor Python. It needs
python-dotenv (`pip install python-dotenv`) and the example program:

    cargo build --example dotenv_dump
    python3 tests/oracle/dotenv_oracle.py target/debug/examples/dotenv_dump
    python3 tests/oracle/dotenv_oracle.py PROGRAM --count 50000 --seed 7
    python3 tests/oracle/dotenv_oracle.py --write-vectors tests/dotenv_vectors.json

Each file is written to disk and read the way `load_dotenv()` reads it
(override=False), so line ends and decoding of text mode are included; then
`load_dotenv()` itself runs and the resulting environment is compared. Equal
means: the same names in the same order, the same values, the same lines, the
same broken lines. Status 1 on any difference.

The reader's deliberate deviations, which this script knows:
- a line number is that of the statement; python-dotenv's warning counts the
  blank lines before a statement as part of it;
- a NUL byte refuses the file; python-dotenv fails later, in `os.environ`;
- references may add at most 1 MiB per file (no file here is near that).
"""

import argparse
import collections
import importlib.metadata
import io
import json
import logging
import os
import random
import re
import struct
import subprocess
import sys
import tempfile

import dotenv
import dotenv.main
import dotenv.parser
import dotenv.variables

NAMES = ["A", "B", "C", "FOO", "_x", "a.b", "LLM_API_KEY", "é", "export", "1", "A-B", "HOME"]
BLANKS = [" ", " ", " ", "\t", "  ", "\x0b", "\x0c", "\x1c", "\x1f", "\x85", "\xa0", "\u2003",
          "\u2028", "\u3000"]
NOT_BLANKS = ["\u200b", "\u180e", "\ufeff", "\u2060", "\x08", "\x7f"]
WORDS = ["", "x", "a b", "https://h/v1?q=1", "a#b", "a #b", "#c", "'", '"', "it's", "é", "漢", "😀",
         "\\", "\\n", "\\'", '\\"', "\\\\", "\\$", "$", "$A", "${", "}", "{", "=", "==", ":", "0",
         "\\x41", "\\u0041", "\\N{DASH}", "\\101", "\\q", "\\t\\a\\b\\f\\r\\v", "\\\n", "`id`", "$(id)"]
ODD_LINES = ["=x", "= ", "export", "export ", "export =x", "export\tA", "export export A=1", "'", "''=1",
             "'a=b'=c", "'a b' = c", "'a\nb'=c", "'a'b=c", '"A"=1', "A B=1", "A", "A # c", "A#b=c",
             "A=#c", "A= #c", "A =\t# c", "A='x' #c", "A='x'#c", "A='x' y", 'A="x"y', 'A="', "A='",
             'A="\\"', "A='\\'", "A='\\\\'", 'A="\\\\"', "# only", "#", ": x", "A: x", "A+=1", "{", "---",
             'A="x\n  y" # c', "A='x\n#y\n'", 'A="x\ny" z', "A=x\\\nB=y", "set A=1", "A=b=c", "A==",
             "\ufeffA=1", "A='x''y'", 'A="x" "y"', "export 'A' = 1", "export # x", "A\u3000=\u3000x\u3000#y"]


def reference(rng):
    name = rng.choice(NAMES + ["", "A B", "NONE", "A=", "$A", "{A", "A\nB"])
    return rng.choice(["${%s}", "${%s:-d}", "${%s:-}", "${%s:-a b #c}", "${%s:-${B}}", "${%s:-:-}",
                       "${%s:x}", "${%s-d}", "${%s", "${%s:-", "$%s", "\\${%s}", "$${%s}", "${${%s}}",
                       "${%s:${%s}}", "${%s:-'d'}", '${%s:-"d"}', "${%s:-\n}"]).replace("%s", name)


def some(rng, pieces, most):
    return "".join(rng.choice(pieces) for _ in range(rng.randint(0, most)))


def content(rng):
    parts = []
    for _ in range(rng.choice([0, 1, 1, 2, 3, 6])):
        parts.append(reference(rng) if rng.random() < 0.35 else rng.choice(WORDS + BLANKS + NOT_BLANKS))
    return "".join(parts)


def value(rng):
    kind, text = rng.random(), content(rng)
    if kind < 0.3:
        return text
    quote = rng.choice("'\"")
    if kind < 0.8:
        text = re.sub(r"(?<!\\)" + quote, "\\\\" + quote, text)
    if rng.random() < 0.2:
        text += rng.choice(["\n", "\r\n", "\r", "\n\n# x\nB=1\n"]) + content(rng)
    return quote + text + (quote if rng.random() < 0.95 else "")


def statement(rng):
    if rng.random() < 0.25:
        return rng.choice(ODD_LINES)
    name = rng.choice(NAMES)
    if rng.random() < 0.15:
        name = "'" + name + rng.choice(["", " ", "=", "#", "\n", '"']) + "'"
    text = some(rng, BLANKS, 1) if rng.random() < 0.3 else ""
    text += rng.choice(["", "", "export" + rng.choice(BLANKS)]) + name
    text += rng.choice(["=", "=", "=", " = ", rng.choice(BLANKS) + "=", "=" + rng.choice(BLANKS), ""])
    text += value(rng)
    if rng.random() < 0.3:
        text += some(rng, BLANKS, 2) + rng.choice(["#", "# c", "#'", '# "x', "x"])
    return text + (some(rng, BLANKS, 2) if rng.random() < 0.2 else "")


def document(rng, most=8):
    """The bytes of one file: valid, nearly valid or garbage."""
    kind = rng.random()
    if kind < 0.08:
        alphabet = "A=='\"\"\\#${}:- \n\n\r\t\x1c\u2028é" + "".join(NOT_BLANKS)
        text = some(rng, alphabet, 10 * most)
    else:
        end = rng.choice(["\n", "\n", "\r\n", "\r", None])
        text = rng.choice(["", "", "", "\ufeff", "\ufeff\ufeff", "\n"])
        for _ in range(rng.randint(1, most)):
            text += statement(rng) + (end or rng.choice(["\n", "\r\n", "\r", "\n\n", "\n\r", "\x0c\n", " \n"]))
        if rng.random() < 0.4:
            text = text.rstrip("\r\n")
    characters = list(text)
    if kind > 0.7:
        for _ in range(rng.randint(1, 4)):
            at = rng.randint(0, len(characters))
            what = rng.random()
            if what < 0.4:
                del characters[at:at + 1]
            elif what < 0.8:
                characters.insert(at, rng.choice("'\"\\#=$ {}\n\r:-" + "".join(BLANKS)))
            else:
                characters[at:at] = characters[at:at + rng.randint(1, 9)]
    data = "".join(characters).encode()
    if kind > 0.97:
        at = rng.randint(0, len(data))
        data = data[:at] + rng.choice([b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\0"]) + data[at:]
    return data


def environment(rng):
    values = ["", "from env", "${A}", "é", "'q'", "a\nb"]
    return {name: rng.choice(values) for name in NAMES if rng.random() < 0.2}


def whitespace_documents():
    """Every Unicode character in the places where white space matters."""
    for first in range(0, 0x110000, 64):
        characters = [chr(c) for c in range(first, first + 64) if c and not 0xD800 <= c < 0xE000]
        yield "".join(f"K{ord(c)}={c}y{c}#z{c}\nL{ord(c)}{c}={c}'x'{c}#\n" for c in characters).encode()


class Real:
    """The reference: python-dotenv reading one file."""

    def __init__(self, folder):
        self.path = os.path.join(folder, ".env")
        self.loads = 0

    def ask(self, data, env):
        """{"refused": line} or {"variables": [[name, value, line]], "problems": [line]}."""
        with open(self.path, "wb") as file:
            file.write(data)
        end = data.find(b"\0")
        try:
            data[:end if end >= 0 else None].decode()
        except UnicodeDecodeError as error:
            end = error.start
        if end >= 0:
            return {"refused": 1 + len(re.findall(rb"\r\n|\r|\n", data[:end]))}
        os.environ.clear()
        os.environ.update(env)
        lines, problems = {}, []
        with open(self.path, encoding="utf-8") as file:
            for binding in dotenv.parser.parse_stream(file):
                text = binding.original.string
                line = binding.original.line + text[:len(text) - len(text.lstrip())].count("\n")
                if binding.error:
                    problems.append(line)
                elif binding.key is not None:
                    lines[binding.key] = line
        values = dotenv.main.DotEnv(self.path, encoding="utf-8", override=False).dict()
        self.check_load(values, env)
        return {"variables": [[k, v, lines[k]] for k, v in values.items()], "problems": problems}

    def check_load(self, values, env):
        """Checks that `load_dotenv()` sets exactly these values in the environment."""
        try:
            dotenv.load_dotenv(self.path)
        except ValueError:  # a name that the environment cannot hold
            return
        wanted = {k: v for k, v in values.items() if v is not None} | env
        if dict(os.environ) != wanted:
            sys.exit(f"load_dotenv() differs from its own dictionary: {self.path}")
        self.loads += 1


def ask_ours(program, cases):
    blocks = []
    for data, env in cases:
        for block in (json.dumps(env).encode(), data):
            blocks += [struct.pack("<I", len(block)), block]
    done = subprocess.run([program], input=b"".join(blocks), stdout=subprocess.PIPE, check=True)
    return [json.loads(line) for line in done.stdout.split(b"\n") if line]


def compare(program, real, count, rng):
    tally, different = collections.Counter(), 0
    cases = [(data, {}) for data in whitespace_documents()]
    cases += [(line.encode(), {}) for line in ODD_LINES]
    cases += [(document(rng), environment(rng)) for _ in range(count)]
    answers = ask_ours(program, cases)
    if len(answers) != len(cases):
        sys.exit(f"{len(cases)} files, but {len(answers)} answers")
    for (data, env), ours in zip(cases, answers):
        wanted = real.ask(data, env)
        plain = {key: found for key, found in ours.items() if key != "message"}
        if "problems" in plain:
            plain["problems"] = [line for line, _ in plain["problems"]]
            tally["variables"] += len(plain["variables"])
            tally["broken lines"] += len(plain["problems"])
        if plain != wanted:
            different += 1
            if different <= 5:
                print(f"different: {data!r}\n  environment {env}\n  python {wanted}\n  ours   {ours}")
        elif "refused" in wanted:
            tally["refused, NUL" if "NUL" in ours["message"] else "refused by both, not UTF-8"] += 1
        else:
            tally["equal, with broken lines" if wanted["problems"] else "equal, no broken line"] += 1
    print(f"{len(cases)} files ({count} random), {different} different; " +
          ", ".join(f"{name} {tally[name]}" for name in sorted(tally)) +
          f"; confirmed by load_dotenv() itself {real.loads}")
    return different


def trace(text, env):
    """The steps of python-dotenv for a text: triples of parser steps, and kinds of references."""
    steps, plain = ["", ""], dotenv.parser.Reader.read_regex

    def read_regex(self, regex):
        steps.append(regex.pattern + " failed")
        before = self.position.chars
        groups = plain(self, regex)
        steps[-1] = regex.pattern + (" matched" if self.position.chars > before else " empty")
        return groups

    dotenv.parser.Reader.read_regex = read_regex
    try:
        bindings = list(dotenv.parser.parse_stream(io.StringIO(text, newline=None)))
    finally:
        dotenv.parser.Reader.read_regex = plain
    seen, known = set(zip(steps, steps[1:], steps[2:])), {}
    for name, value in ((b.key, b.value) for b in bindings if b.key is not None):
        for atom in dotenv.variables.parse_variables(value or ""):
            if isinstance(atom, dotenv.variables.Variable):
                seen.add((atom.default and bool(atom.default), env.get(atom.name) and True,
                          known.get(atom.name, "unknown") and True))
        seen.update(("escape", escape) for escape in re.findall(r"[\x00-\x1f\\$].?", value or ""))
        seen.add(("again", name in known))
        known[name] = value
    return seen


def write_vectors(path, real, rng, wanted=300, most_bytes=60_000):
    """Writes small files that cause different parser steps, then random ones."""
    rows, seen, steps, size, tries = [], set(), set(), 2, 0
    queue = [(line.encode(), {}) for line in ODD_LINES]
    while len(rows) < wanted:
        tries += 1
        data, env = queue.pop(0) if queue else (document(rng, 3), environment(rng))
        answer = real.ask(data, env)
        if "refused" in answer or len(data) > 90 or data in seen:
            continue
        text = data.decode()
        env = {name: found for name, found in env.items() if name in text}
        fresh = trace(text, env) - steps
        if not fresh and len(rows) >= len(ODD_LINES) and tries < 8_000:
            continue
        row = json.dumps({"text": text, "environment": env, "values": {k: v for k, v, _ in answer["variables"]},
                          "problems": answer["problems"]}, separators=(",", ":"))
        size += len(row) + 2
        if size > most_bytes:
            break
        seen.add(data)
        steps |= fresh
        rows.append(row)
    with open(path, "w", encoding="ascii") as file:
        file.write("[\n" + ",\n".join(rows) + "\n]\n")
    print(f"{len(rows)} vectors, {os.path.getsize(path)} bytes, {len(steps)} kinds of steps, references and escapes")


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("program", nargs="?", help="the example program dotenv_dump")
    options.add_argument("--count", type=int, default=20_000, help="random files (default 20000)")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--write-vectors", metavar="FILE")
    chosen = options.parse_args()
    if not chosen.program and not chosen.write_vectors:
        options.error("name the program, or --write-vectors")
    logging.disable(logging.WARNING)
    program = chosen.program and os.path.abspath(chosen.program)
    print(f"python-dotenv {importlib.metadata.version('python-dotenv')}, "
          f"Python {sys.version.split()[0]}, seed {chosen.seed}")
    kept = dict(os.environ)
    try:
        with tempfile.TemporaryDirectory() as folder:
            real, rng = Real(folder), random.Random(chosen.seed)
            if chosen.write_vectors:
                write_vectors(chosen.write_vectors, real, rng)
            return 1 if program and compare(program, real, chosen.count, rng) else 0
    finally:
        os.environ.clear()
        os.environ.update(kept)


if __name__ == "__main__":
    sys.exit(main())

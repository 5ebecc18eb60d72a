#!/usr/bin/env python3
"""Compares the reader of frontmatter with the real PyYAML on generated documents.

A development script: `cargo test` needs neither it nor Python. It needs
PyYAML (`pip install pyyaml`) and the example program:

    cargo build --example frontmatter_dump
    python3 tests/oracle/yaml_oracle.py target/debug/examples/frontmatter_dump
    python3 tests/oracle/yaml_oracle.py PROGRAM --count 50000 --seed 7
    python3 tests/oracle/yaml_oracle.py PROGRAM --files FOLDER

Three kinds of documents: `written` ones, as a careful author writes them, in
all styles; `damaged` ones, the same after a few random edits; and `soup`, random
sequences of the special characters of YAML. With `--files` the documents
are the SKILL.md below a folder instead.

The strict reader must return PyYAML's value, with the same types, or refuse. The
tolerant reader must read what the strict one refuses, and report a finding. A
document that the strict reader reads and PyYAML refuses counts as an error too.
Status 1 on any error.

The reader's deliberate deviations, which this script knows:
- values that JSON cannot represent stay text as written: dates (impossible ones,
  too), infinities, integers beyond 64 bits; so do keys that are not text, and
  numbers with parts of 60 and a fraction (`1:30.5`);
- two halves of a surrogate pair, as JSON writes them, are one character;
- characters that YAML 1.1 forbids (controls, reported as `control-character`)
  or treats as invisible line ends (U+2028, U+2029, reported by the linter) are
  read as any other.
"""

import argparse
import collections
import json
import math
import os
import random
import struct
import subprocess
import sys

import yaml

PLAIN = ["word", "two words", "http://h:80/a?b=c#d", "a, b", "it's", 'say "so"', "é 漢 😀", "-dash", "?q",
         ":c", "a:b", "x#y", "C++ & C#", "50%", "(see below)", "key=value", "~x", "a\\nb", "$ARGUMENTS", "{baseDir}",
         "3000", "1.10", "1_000", "0x1F", "012", "08", "0o17", "1:30", "1e3", "1.5e+3", "+.5", "-.5", ".5", "1.",
         ".inf", "-.INF", ".NaN", "yes", "No", "ON", "off", "y", "n", "true", "FALSE", "null", "~", "Null", "nULL",
         "2024-02-29", "2024-01-02 10:00:00Z", "2023-2-29T7:08:09.5 +1:30", "2024-12-31 23:59:60", "12:30:45", "190:20:30.15", "0b1010", "-0b1", "=x",
         "18446744073709551615", "18446744073709551616", "-9223372036854775809", "1.2.3", "v1.0", "0", "-0", "+1"]
ODD_PLAIN = ["-", "=", "<<", "2024-02-30", "0x", "a: b", "%x", "@x", "`x`", "&x y", "*x", "!x y", "? x", ", x", "x\ty", "'x' y"]
QUOTED = ["", " ", "plain", "two  words", "colon: inside", "# no comment", "it's", 'a "b"', "\\", "tab\there", "é 漢 😀",
          "line\nline", "\nfirst", "last\n", "gap\n\n\ngap", "  edge  ", "---", "...", "[x]", "{y: z}", "@at", "`t`",
          "\x00\x07\x1b", "\x85\u2028", "\u00a0", "yes", "12", "a\n b\n  c", "%", "&a *b !c", "| >"]
KEYS = ["name", "description", "license", "metadata", "allowed-tools", "a", "b", "key with space", "k.1", "été",
        "version", "x-y", "_", "tags", "argument-hint"]
ODD_KEYS = ["1", "yes", "null", "1.5", "~", "'q'", '"d"', "''", "a b ", "on", "2024-01-01", "-1", "?x", "a:b", "0x10"]
COMMENTS = ["", "", "", "", "", " # remark", "  #", " #: x"]
SOUP = list("aab1 \n\n  :-?,[]{}#&*!|>'\"%@`\\\t~=<.") + \
    [": ", "- ", "\n- ", "\n  ", "\na: ", "a: ", "? ", "|-\n", ">\n", "''", '""', " #", "\n\n", "...", "\n---\n", "é",
     "\\n", "\\x41", "\\u00e9", "\r\n", "\r", "1.5", "yes", "!!str ", "&x ", "*x", "<<: ", "k: v\n", "\u2028", "\ufeff"]


def double_quoted(rng, text, indent):
    """Text in double quotes, with the necessary escapes and sometimes others."""
    out = ""
    for c in text:
        code = ord(c)
        if c in '"\\':
            out += "\\" + c
        elif c == "\n":
            out += rng.choice(["\\n", "\\n", "\n\n" + " " * indent if out and not out.endswith(("\n", " ")) else "\\n"])
        elif code < 32 or c in "\x85\u2028\u2029":
            out += rng.choice([f"\\x{code:02x}" if code < 256 else f"\\u{code:04X}", f"\\U{code:08x}"])
        elif code > 0xFFFF and rng.random() < 0.3:
            low = code - 0x10000
            out += f"\\u{0xD800 + (low >> 10):04x}\\u{0xDC00 + (low & 1023):04x}"
        elif c == " " and rng.random() < 0.1 and not out.endswith((" ", "\n")):
            out += rng.choice(["\\ ", "\n" + " " * indent, "\\\n" + " " * indent + "\\ "])
        elif rng.random() < 0.03:
            out += f"\\u{code:04x}" if code < 65536 else c
        else:
            out += c
    return f'"{out}"'


def single_quoted(rng, text, indent):
    text = "".join(c for c in text if c.isprintable() or c == "\n").replace("'", "''")
    if rng.random() < 0.2:
        text = text.replace(" ", "\n" + " " * indent, 1)
    return f"'{text}'"


def block(rng, indent):
    """A literal or folded text below its header."""
    header = rng.choice("|>") + rng.choice(["", "-", "+", "", str(rng.randint(1, 4)), "-2", "2+"])
    digits = [c for c in header if c.isdigit()]
    deeper = int(digits[0]) if digits else rng.randint(1, 4)
    lines = []
    for _ in range(rng.randint(0, 6)):
        text = rng.choice(PLAIN + QUOTED).replace("\n", " ")
        text = "".join(c for c in text if c.isprintable())
        more = rng.choice([0, 0, 0, 1, 3]) if lines or digits else 0
        lines.append("" if rng.random() < 0.2 else " " * (indent + deeper + more) + (text.lstrip() or "x"))
    if rng.random() < 0.1:
        lines.insert(0, " " * rng.randint(0, indent + deeper))
    return header + rng.choice(COMMENTS) + "\n" + "\n".join(lines)


def plain(rng, indent):
    text = rng.choice(PLAIN if rng.random() < 0.98 else ODD_PLAIN)
    for _ in range(rng.choice([0, 0, 0, 0, 1, 2])):
        text += rng.choice([" ", "\n" + " " * (indent + rng.randint(0, 2)), "\n\n" + " " * indent]) + rng.choice(PLAIN)
    return text


def scalar(rng, indent):
    style = rng.random()
    if style < 0.5:
        return plain(rng, indent)
    text = rng.choice(QUOTED + PLAIN)
    return double_quoted(rng, text, indent) if style < 0.75 else single_quoted(rng, text, indent)


def flow(rng, depth, indent):
    gap = lambda: rng.choice(["", "", " ", " ", "\n" + " " * indent, " # c\n" + " " * indent])
    def leaf():
        if depth < 3 and rng.random() < 0.25:
            return flow(rng, depth + 1, indent)
        text = scalar(rng, indent)
        return "x" if text.startswith(("-", "?", ":")) and rng.random() < 0.8 else text
    items = []
    is_list = rng.random() < 0.6
    for _ in range(rng.randint(0, 4)):
        item = leaf()
        if not is_list or rng.random() < 0.1:
            colon = rng.choice([": ", ": ", ": ", ":", " : ", ":\n" + " " * indent])
            item = rng.choice(KEYS + ["'q'", '"d"', "1"]) + colon + rng.choice([leaf(), leaf(), leaf(), ""])
        items.append(gap() + item + gap())
    text = ",".join(items) + rng.choice(["", "", "", ","] if items else [""])
    return f"[{text}]" if is_list else f"{{{text}}}"


def value(rng, depth, indent):
    """The text after a colon or a dash, with its line end."""
    kind = rng.random()
    if kind < 0.55:
        below = "\n" + " " * indent if rng.random() < 0.05 else " "
        return below + scalar(rng, indent) + rng.choice(COMMENTS) + "\n"
    if kind < 0.7:
        return " " + block(rng, indent - 1) + "\n"
    if kind < 0.82:
        return " " + flow(rng, 0, indent) + rng.choice(COMMENTS) + "\n"
    if kind < 0.86 or depth > 4:
        return rng.choice(COMMENTS) + "\n"
    deeper = indent + rng.choice([0, 1, 1, 1, 3])
    if rng.random() < 0.5:
        return rng.choice(COMMENTS) + "\n" + mapping(rng, depth + 1, deeper)
    column = deeper if rng.random() < 0.7 else indent - 1
    return rng.choice(COMMENTS) + "\n" + sequence(rng, depth + 1, column)


def idle(rng, indent):
    return rng.choice([""] * 14 + ["\n", "# remark\n", " " * indent + "# remark\n", "   \n"])


def mapping(rng, depth, indent):
    out = ""
    for _ in range(rng.randint(1, 6 if depth == 0 else 3)):
        key = rng.choice(KEYS) if rng.random() < 0.93 else rng.choice(ODD_KEYS)
        out += idle(rng, indent) + " " * indent + key + rng.choice([":"] * 9 + [" :"]) + value(rng, depth, indent + 1)
    return out


def sequence(rng, depth, indent):
    out = ""
    for _ in range(rng.randint(1, 4)):
        out += idle(rng, indent) + " " * indent + "-"
        if rng.random() < 0.15 and depth < 5:
            inner = rng.choice([mapping, sequence])(rng, depth + 1, indent + 2)
            out += " " + inner.lstrip(" ") if not inner.startswith(("\n", "#")) else "\n" + inner
        else:
            out += value(rng, depth, indent + 1)
    return out


def written(rng):
    text = mapping(rng, 0, 0 if rng.random() < 0.97 else 2)
    if rng.random() < 0.05:
        text = text.replace("\n", "\r\n")
    return text


def damaged(rng):
    text = written(rng)
    for _ in range(rng.randint(1, 4)):
        at = rng.randint(0, len(text))
        end = min(len(text), at + rng.choice([0, 1, 1, 2, 8]))
        text = text[:at] + rng.choice(SOUP + ["", "", ""]) + text[end:]
    return text


def soup(rng):
    text = "".join(rng.choice(SOUP) for _ in range(rng.randint(1, 14)))
    return text if rng.random() < 0.3 else "a: " + text


class Loader(yaml.SafeLoader):
    """PyYAML, with values that JSON cannot represent as written."""

    def construct_mapping(self, node, deep=False):
        """Converts keys to text before they are compared: in Python 1 equals true."""
        self.flatten_mapping(node)
        fields = {}
        for key_node, value_node in node.value:
            key = as_json(self.construct_object(key_node, deep=True))
            if isinstance(key, (dict, list)):
                raise yaml.constructor.ConstructorError(None, None, "found unhashable key", key_node.start_mark)
            key = key if isinstance(key, str) else json.dumps(key)
            fields[key] = self.construct_object(value_node, deep=deep)
        return fields


def as_written(loader, node):
    return loader.construct_scalar(node)


def integer(loader, node):
    found = yaml.SafeLoader.construct_yaml_int(loader, node)
    return found if -2**63 <= found < 2**64 else node.value


def real(loader, node):
    if ":" in node.value:
        return node.value
    found = yaml.SafeLoader.construct_yaml_float(loader, node)
    return found if math.isfinite(found) else node.value


Loader.add_constructor("tag:yaml.org,2002:int", integer)
Loader.add_constructor("tag:yaml.org,2002:float", real)
Loader.add_constructor("tag:yaml.org,2002:timestamp", as_written)


def as_json(found):
    """The same value with surrogate pairs joined."""
    if isinstance(found, dict):
        return {key: as_json(inner) for key, inner in found.items()}
    if isinstance(found, list):
        return [as_json(inner) for inner in found]
    if isinstance(found, str):
        return found.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    return found


def ask_real(text):
    """(True, value) or (False, the reason)."""
    try:
        return True, as_json(yaml.load(text, Loader))
    except (yaml.YAMLError, ValueError, TypeError, IndexError, KeyError, AttributeError, OverflowError) as error:
        return False, str(getattr(error, "problem", None) or error).split("\n")[0]
    except RecursionError:
        return False, "too deep"


def ask_ours(program, documents):
    data = b"".join(struct.pack("<I", len(document)) + document for document in documents)
    done = subprocess.run([program], input=data, stdout=subprocess.PIPE, check=True)
    answers = [json.loads(line) for line in done.stdout.split(b"\n") if line]
    if len(answers) != len(documents):
        sys.exit(f"{len(documents)} documents, but {len(answers)} answers")
    return answers


def is_same(ours, wanted):
    if type(ours) is not type(wanted):
        return False
    if isinstance(ours, dict):
        return ours.keys() == wanted.keys() and all(is_same(ours[key], wanted[key]) for key in ours)
    if isinstance(ours, list):
        return len(ours) == len(wanted) and all(map(is_same, ours, wanted))
    return ours == wanted


def source_of(document):
    """The YAML between the lines of dashes, or None without these lines."""
    text = document.decode("utf-8", "replace").lstrip("\ufeff")
    lines = text.split("\n")
    if lines[0].startswith("```"):
        lines.pop(0)
    ends = [number for number, line in enumerate(lines) if line.rstrip() == "---"]
    if len(ends) < 2 or ends[0] != 0:
        return None
    source = "\n".join(lines[1:ends[1]])
    return source.removesuffix("\r")


def judge(ours, wanted, has_line_ends):
    """The kind of the outcome, for the counts; errors begin with a capital."""
    is_read, value = wanted
    is_odd = has_line_ends or any(rule == "control-character" for _, rule, _ in ours["diagnostics"])
    if "refused" not in ours["strict"]:
        if is_read and is_same(ours["strict"]["value"], value):
            return "equal"
        if is_odd:
            return "odd character, found as such"
        return "DIFFERENT" if is_read else f"READ, though PyYAML refuses ({value})"
    if not ours["diagnostics"]:
        return "SILENT about a refusal"
    if not is_read:
        return "refused by both"
    rule = "odd character" if is_odd else ours["strict"]["refused"]
    return f"refused, though PyYAML reads: {rule}"


def compare(program, kind, documents, show):
    tally, errors, examples = collections.Counter(), 0, collections.defaultdict(list)
    for document, ours in zip(documents, ask_ours(program, documents)):
        source = source_of(document)
        if source is None or ours["strict"] is None:
            both_missing = source is None and ours["strict"] is None
            tally["without frontmatter" if both_missing else "OTHER BLOCK"] += 1
            errors += not both_missing
            continue
        wanted = ask_real(source)
        found = judge(ours, wanted, "\u2028" in source or "\u2029" in source)
        tally[found] += 1
        examples[found].append((document, wanted, ours))
        if found[0].isupper():
            errors += 1
            if errors <= 5:
                print(f"{found}: {document!r}\n  PyYAML {wanted}\n  ours   {ours}")
    print(f"{kind}: {len(documents)} documents, {errors} errors")
    for found, count in tally.most_common():
        print(f"  {count:7} {found}")
        for document, wanted, ours in examples[found][:show if "though" in found else 0]:
            print(f"          {document!r}\n            PyYAML {wanted}\n            ours {ours['strict']}")
    return errors


def find_documents(folder):
    for path, _, names in sorted(os.walk(folder)):
        for name in names:
            if name.lower() == "skill.md":
                with open(os.path.join(path, name), "rb") as file:
                    yield file.read()


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("program", help="the example program frontmatter_dump")
    options.add_argument("--count", type=int, default=8_000, help="documents of each kind (default 8000)")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--show", type=int, default=0, help="examples of each refusal to print")
    options.add_argument("--files", metavar="FOLDER", help="compare the SKILL.md below it instead")
    chosen = options.parse_args()
    print(f"PyYAML {yaml.__version__}, Python {sys.version.split()[0]}, seed {chosen.seed}")
    program = os.path.abspath(chosen.program)
    if chosen.files:
        return 1 if compare(program, "files", list(find_documents(chosen.files)), chosen.show) else 0
    rng, errors = random.Random(chosen.seed), 0
    for make in [written, damaged, soup]:
        documents = [f"---\n{make(rng)}\n---\nBody\n".encode() for _ in range(chosen.count)]
        errors += compare(program, make.__name__, documents, chosen.show)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())

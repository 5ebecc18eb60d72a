"""What the Python files of skills import and declare, told as JSON.

Runs in the interpreter that runs the skills' scripts, from Python 3.6 on. It
is handed the files' bytes and opens no file of a skill; it imports nothing but
the standard library (and pip's own TOML reader where there is no other), and
executes nothing that it is given.

Standard input: a line of JSON, then the bytes of all files, one after the
other. Standard output: a line of JSON for each skill.
"""
import sys

# Scripts' folders are no part of this program's path, whatever starts it.
sys.path = [entry for entry in sys.path if entry not in ("", ".", "/")]

import ast
import gc
import importlib.machinery
import importlib.util
import json
import re
import warnings

warnings.simplefilter("ignore")

CATCHES = {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"}
# Of the standard library somewhere, or no module at all.
ELSEWHERE = {"__future__", "__main__", "_winapi", "msvcrt", "nt", "winreg", "winsound", "_typeshed"}
# Tables of a pyproject.toml in which tools keep dependencies of their own.
UNREAD = ("tool.poetry.dependencies", "tool.pdm.dependencies", "tool.setuptools.dynamic.dependencies",
          "dependency-groups", "tool.poetry.group", "tool.uv.dev-dependencies")
# Characters of anything that is told: names and messages have no bound of their own.
LONGEST = 500
CLAUSE = re.compile(r"^(~=|===?|!=|<=|>=|<|>)\s*([0-9]{1,9}(?:\.[0-9]{1,9})*)(\.\*)?$")


# What imports, or holds statements; those of later versions where there are any.
NESTING = {getattr(ast, name, None) for name in (
    "Import ImportFrom FunctionDef AsyncFunctionDef ClassDef If For AsyncFor While "
    "With AsyncWith Try TryStar ExceptHandler Match match_case"
).split()}
LAZY = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ExceptHandler)
PARTS = ("handlers", "orelse", "finalbody", "cases")


def words_of(node):
    """The last word of a name, or a text: of this node alone."""
    # Strings are nodes of their own kind before Python 3.8.
    text = getattr(node, "value", None) if hasattr(ast, "Constant") else None
    text = text if text is not None else getattr(node, "s", None)
    return getattr(node, "id", None) or getattr(node, "attr", None), text if isinstance(text, str) else None


def names_in(node):
    """The last words of all names in an expression."""
    found = set()
    for inner in ast.walk(node) if node is not None else ():
        found.update(words_of(inner))
    return found


def gives_up(handler):
    """Whether a handler ends the program, or has pip install what is missing."""
    # With whether it is part of a call: each node is seen once, however deep calls nest.
    left = [(handler, False)]
    while left:
        node, is_called = left.pop()
        if isinstance(node, ast.Raise) or is_called and "pip" in words_of(node):
            return True
        if isinstance(node, ast.Call):
            is_called = True
            name = getattr(node.func, "attr", None) or getattr(node.func, "id", None)
            if name in ("exit", "_exit", "quit"):
                return True
        left.extend((inner, is_called) for inner in ast.iter_child_nodes(node))
    return False


def forgives(node):
    """Whether a `try` goes on where an import in it fails."""
    for handler in node.handlers:
        if handler.type is None or CATCHES & names_in(handler.type):
            return not gives_up(handler)
    return False


def imports_of(tree):
    """(dotted name, line, is optional) of each import that is not relative."""
    left = [(tree, False)]
    while left:
        node, optional = left.pop()
        kind = type(node)
        if kind is ast.Import:
            for alias in node.names:
                yield alias.name, node.lineno, optional
            continue
        if kind is ast.ImportFrom:
            if not node.level and node.module:
                for alias in node.names:
                    yield node.module + "." + alias.name, node.lineno, optional
            continue
        body = inside = optional
        if kind in LAZY:
            body = inside = True
        elif kind is ast.If and not optional:
            # What depends on a platform or a version is not always needed.
            body = inside = "__name__" not in names_in(node.test)
        elif kind is ast.With and not optional:
            body = any(CATCHES & names_in(item.context_expr) for item in node.items)
        elif hasattr(node, "handlers") and not optional:
            body = forgives(node)
        below = [(inner, body) for inner in getattr(node, "body", ()) if type(inner) in NESTING]
        for part in PARTS:
            for inner in getattr(node, part, ()):
                if type(inner) in NESTING:
                    below.append((inner, inside))
        left.extend(reversed(below))


class Finder:
    """Which modules there are, without importing any."""

    def __init__(self, namespaced):
        self.namespaced = set(namespaced)
        self.roots = {name.split(".")[0] for name in namespaced}
        self.known = {}
        self.standard = set(getattr(sys, "stdlib_module_names", ())) | set(sys.builtin_module_names) | ELSEWHERE

    def module(self, dotted):
        """The part of an imported name that a package brings."""
        parts = dotted.split(".")
        if parts[0] in self.roots:
            for length in range(len(parts), 1, -1):
                name = ".".join(parts[:length])
                if name in self.namespaced:
                    return name
        return parts[0]

    def place(self, name):
        """"s" for the standard library, "i" for installed, "m" for missing."""
        if name not in self.known:
            self.known[name] = self.look(name)
        return self.known[name]

    def look(self, name):
        parts = name.split(".")
        if parts[0] in self.standard:
            return "s"
        try:
            spec = importlib.util.find_spec(parts[0])
            for length in range(2, len(parts) + 1):
                if spec is None:
                    break
                below = spec.submodule_search_locations
                spec = importlib.machinery.PathFinder.find_spec(".".join(parts[:length]), below)
        except Exception:
            # A finder that fails, or a module that was loaded in a strange way.
            return "i"
        if spec is None:
            return "m"
        if not hasattr(sys, "stdlib_module_names") and is_standard(spec.origin):
            return "s"
        return "i"


def is_standard(origin):
    if origin in ("built-in", "frozen"):
        return True
    folder = importlib.util.__file__.rsplit("importlib", 1)[0]
    return bool(origin) and origin.startswith(folder) and "-packages" not in origin[len(folder):]


def toml():
    """A reader of TOML, or None."""
    for name in ("tomllib", "tomli", "pip._vendor.tomli", "setuptools._vendor.tomli"):
        try:
            return __import__(name, fromlist=["loads"])
        except Exception:
            pass
    return None


def version_fits(specifier):
    """Whether this Python is what `requires-python` asks for; None: not readable."""
    mine = list(sys.version_info[:3])
    for clause in filter(None, (part.strip() for part in specifier.split(","))):
        match = CLAUSE.match(clause)
        if not match:
            return None
        sign, text, star = match.groups()
        asked = [int(part) for part in text.split(".")]
        same = mine[:len(asked)] == asked
        padded = (asked + [0, 0, 0])[:3]
        fits = {
            ">=": mine >= padded,
            "<=": mine <= padded,
            ">": mine > padded,
            "<": mine < padded,
            "==": same if star else mine == padded,
            "===": mine == padded,
            "!=": not (same if star else mine == padded),
            "~=": mine >= padded and mine[:len(asked) - 1] == asked[:-1],
        }[sign]
        if not fits:
            return False
    return True


def blocks_of(lines):
    """The blocks `script` of PEP 723, (line, content) each, and the line of one that does not end."""
    blocks = []
    at = 0
    while at < len(lines):
        begin = at
        at += 1
        if lines[begin] != "# /// script":
            continue
        end = None
        while at < len(lines) and (lines[at] == "#" or lines[at].startswith("# ")):
            # The last one ends it.
            end = at if lines[at] == "# ///" else end
            at += 1
        if end is None:
            return blocks, begin + 1
        content = [line[2:] if line.startswith("# ") else line[1:] for line in lines[begin + 1:end]]
        blocks.append((begin + 1, "\n".join(content)))
        at = end + 1
    return blocks, None


class Skill:
    """What one skill's files say."""

    def __init__(self, finder, reader, most):
        self.finder = finder
        self.reader = reader
        self.most = most
        self.told = {"syntax": [], "imports": [], "declared": [], "pythons": [], "faults": [], "unread": [], "cut": False}

    def look(self, files, sources):
        """Looks at all files. Whatever goes wrong over one costs that one alone."""
        for index, (is_project, _) in enumerate(files):
            try:
                if is_project:
                    self.read_project(index, sources[index])
                else:
                    self.read_script(index, sources[index])
            except Exception as error:
                self.tell("unread", index, "it cannot be looked at: %s: %s" % (type(error).__name__, error))

    def tell(self, kind, *row):
        if len(self.told[kind]) < self.most:
            self.told[kind].append([each[:LONGEST] if isinstance(each, str) else each for each in row])
        else:
            self.told["cut"] = True

    def read_script(self, index, source):
        try:
            tree = ast.parse(source)
        except SyntaxError as error:
            self.tell("syntax", index, error.lineno or None, str(error.msg))
        except RecursionError:
            self.tell("syntax", index, None, "it is nested too deeply")
        except MemoryError:
            self.tell("syntax", index, None, "it is nested too deeply, or too large")
        except Exception as error:
            self.tell("syntax", index, None, str(error) or type(error).__name__)
        else:
            self.read_imports(index, source, tree)
        if b"# /// script" in source:
            self.read_block(index, source)

    def read_imports(self, index, source, tree):
        moves = b"sys.path" in source or b"addsitedir" in source
        rows = {}
        for dotted, line, optional in imports_of(tree):
            module = self.finder.module(dotted)
            place = self.finder.place(module)
            if place == "s":
                continue
            row = rows.setdefault(module, [index, module, line, optional, place == "m", moves])
            if row[3] and not optional:
                # The import that is needed counts.
                row[2:4] = line, False
        for row in rows.values():
            self.tell("imports", *row)

    def read_block(self, index, source):
        blocks, unclosed = blocks_of(source.decode("utf-8", "replace").replace("\r\n", "\n").split("\n"))
        if unclosed is not None:
            self.tell("faults", index, unclosed, "the block `# /// script` has a line that is no comment, or does not end in a line `# ///`")
        elif len(blocks) > 1:
            self.tell("faults", index, blocks[1][0], "a second block `# /// script`")
        elif blocks:
            line, content = blocks[0]
            read = self.read_toml(index, content, line)
            if read is not None:
                self.declare(index, content, line, read)

    def read_project(self, index, source):
        content = source.decode("utf-8", "replace").replace("\r\n", "\n")
        read = self.read_toml(index, content, 0)
        if read is not None:
            project = read.get("project", {})
            if isinstance(project, dict):
                self.declare(index, content, 0, project)
                if "dependencies" not in project:
                    self.tell_unread(index, content, read)
            else:
                self.tell("faults", index, None, "`project` is no table")

    def tell_unread(self, index, content, read):
        """Dependencies are declared, and not where they are read."""
        for name in UNREAD:
            table = read
            for part in name.split("."):
                table = table.get(part) if isinstance(table, dict) else None
            if not table or list(table) == ["python"]:
                continue
            lines = content.split("\n")
            found = [number for number, line in enumerate(lines, 1) if line.strip().startswith("[" + name)]
            self.tell("faults", index, found[0] if found else None, "`%s` is not read, only `dependencies` of `[project]` are" % name)
            return

    def read_toml(self, index, content, before):
        if self.reader is None:
            self.tell("faults", index, None, "its TOML cannot be read by this Python %d.%d, which has no TOML reader (3.11 has)" % sys.version_info[:2])
            return None
        try:
            return self.reader.loads(content)
        except RecursionError:
            self.tell("faults", index, None, "its TOML is nested too deeply")
        except Exception as error:
            at = re.search(r" ?\(at line ([0-9]+), column [0-9]+\)", str(error))
            line = int(at.group(1)) if at else content.count("\n") + 1
            what = str(error).replace(at.group(0), "") if at else str(error)
            self.tell("faults", index, before + line, "its TOML is broken: " + what.replace(" (at end of document)", " at its end"))
        return None

    def declare(self, index, content, before, table):
        dependencies, python = "dependencies", "requires-python"

        def line_of(text, fallback):
            for number, line in enumerate(content.split("\n"), 1):
                if text in line:
                    return before + number
            return fallback

        listed = table.get(dependencies, [])
        at = line_of(dependencies, None)
        if not isinstance(listed, list) or not all(isinstance(item, str) for item in listed):
            self.tell("faults", index, at, "`%s` is no list of strings" % dependencies)
            listed = []
        for item in listed:
            self.tell("declared", index, line_of(item, at), item)
        asked = table.get(python)
        at = line_of(python, None)
        if isinstance(asked, str):
            self.tell("pythons", index, at, asked, version_fits(asked))
        elif asked is not None:
            self.tell("faults", index, at, "`%s` is no string" % python)


def say(told):
    sys.stdout.buffer.write((json.dumps(told) + "\n").encode("ascii"))
    sys.stdout.buffer.flush()


def main():
    say({"python": "%d.%d.%d" % sys.version_info[:3]})
    given = sys.stdin.buffer
    asked = json.loads(given.readline().decode("utf-8"))
    # Trees hold no circles: there is nothing to collect.
    gc.disable()
    reader = toml()
    # Only to look for modules in: all that this program needs is imported.
    sys.path += asked["python_path"]
    finder = Finder(asked["namespaced"])
    for number, files in asked["skills"]:
        skill = Skill(finder, reader, asked["most"])
        skill.look(files, [given.read(size) for _, size in files])
        skill.told["skill"] = number
        say(skill.told)


main()

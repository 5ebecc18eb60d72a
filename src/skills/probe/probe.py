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
import codecs
import gc
import importlib.machinery
import importlib.util
import json
import pkgutil
import re
import resource
import signal
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
# Dots in one line of TOML: a hundred requirements with their versions have 300.
DOTS = 500
# What a line of text may hold: neither controls nor what turns its direction.
READABLE = re.compile("[^\\x00-\\x08\\x0a-\\x1f\\x7f-\\x9f\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u2069\\ufeff]*")
CLAUSE = re.compile(r"^(~=|===?|!=|<=|>=|<|>)\s*([0-9]{1,9}(?:\.[0-9]{1,9})*)(\.\*)?$")

# What names a source's encoding, and those that are read in C: some of the others
# take minutes for a file, and no script is written in them.
COOKIE = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
BLANK = re.compile(rb"^[ \t\f]*(?:#|$)")
CODECS = re.compile(
    r"utf-8(?:-sig)?|ascii|iso8859-[0-9]+|cp(?:125[0-8]|437|85[0-9]|866|87[0-9]|932|949|950)|koi8-[rtu]|mac-roman"
    r"|gb2312|gbk|gb18030|big5|big5hkscs|shift_jis|euc_jp|euc_kr|tis-620"
)


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


def imports_of(tree, depth):
    """(dotted name, line, is optional) of each import that is not relative; the
    first words of long names are enough."""
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
                module = ".".join(node.module.split(".", depth)[:depth])
                for alias in node.names:
                    yield module + "." + alias.name, node.lineno, optional
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
        # Words of a module's name that are of interest.
        self.depth = 1 + max([name.count(".") for name in namespaced] or [0])
        self.roots = {name.split(".")[0] for name in namespaced}
        self.known = {}
        self.standard = set(getattr(sys, "stdlib_module_names", ())) | set(sys.builtin_module_names) | ELSEWHERE

    def module(self, dotted):
        """The part of an imported name that a package brings."""
        parts = dotted.split(".", self.depth)[:self.depth]
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


def standard_names():
    """Names of the standard library's modules."""
    if hasattr(sys, "stdlib_module_names"):
        return list(sys.stdlib_module_names)
    folder = importlib.util.__file__.rsplit("importlib", 1)[0]
    folders = [folder, folder + "lib-dynload"]
    return list(sys.builtin_module_names) + [module.name for module in pkgutil.iter_modules(folders)]


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


class Unread(Exception):
    """Why a file is not looked at."""


def decoded(source):
    """A source as text, as Python reads it."""
    encoding = None
    for line in re.split(b"\r\n|\r|\n", source, 2)[:2]:
        match = COOKIE.match(line)
        encoding = match and match.group(1).decode("ascii", "replace")
        if encoding or not BLANK.match(line):
            break
    marked = source.startswith(codecs.BOM_UTF8)
    encoding = encoding or "utf-8"
    try:
        name = codecs.lookup(encoding).name
    except LookupError:
        raise ValueError("unknown encoding: " + encoding)
    if not CODECS.fullmatch(name):
        raise Unread("its encoding `%s` is none for scripts" % name)
    if marked and not name.startswith("utf-8"):
        raise ValueError("its encoding is said to be `%s`, and it begins with a mark of UTF-8" % name)
    return source[3 * marked:].decode(name)


class TooSlow(BaseException):
    """A skill has taken as long as it may."""


class Clock:
    """Bounds what a skill takes of the processor."""

    def __init__(self, seconds):
        self.seconds = seconds
        self.runs = False
        signal.signal(signal.SIGPROF, self.ring)
        signal.signal(signal.SIGVTALRM, signal.SIG_DFL)

    def ring(self, *_):
        if self.runs:
            raise TooSlow

    def start(self):
        self.runs = True
        # Again where something has swallowed it.
        signal.setitimer(signal.ITIMER_PROF, self.seconds, 0.5)
        # What never comes back from C ends the interpreter.
        signal.setitimer(signal.ITIMER_VIRTUAL, 2 * self.seconds)

    def stop(self):
        self.runs = False
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def told(value):
    """A value as it is told: no longer than is read, and no half characters."""
    return value[:LONGEST].encode("utf-8", "replace").decode("utf-8") if isinstance(value, str) else value


class Skill:
    """What one skill's files say."""

    def __init__(self, finder, reader, asked):
        self.finder = finder
        self.reader = reader
        self.most = asked["most"]
        self.most_toml = asked["most_toml"]
        # Bytes of all that is told.
        self.room = asked["most_told"]
        self.told = {"syntax": [], "imports": [], "declared": [], "pythons": [], "faults": [], "unread": [], "cut": []}

    def look(self, files, sources, clock):
        """Looks at all files. Whatever goes wrong over one costs that one alone."""
        clock.start()
        try:
            for index, (is_project, _) in enumerate(files):
                self.look_at(index, is_project, sources[index])
        except TooSlow:
            clock.stop()
            self.tell("unread", index, "it takes too long to look at, and what comes after it is not looked at")
        clock.stop()

    def look_at(self, index, is_project, source):
        try:
            if is_project:
                self.read_project(index, source)
            else:
                self.read_script(index, source)
        except Exception as error:
            name = "" if isinstance(error, Unread) else type(error).__name__ + ": "
            self.tell("unread", index, "it cannot be looked at: " + name + str(error))

    def tell(self, kind, *row):
        row = [told(each) for each in row]
        self.room -= len(json.dumps(row))
        if len(self.told[kind]) < self.most and self.room > 0:
            self.told[kind].append(row)
        else:
            self.cut(kind)

    def cut(self, kind):
        if kind not in self.told["cut"]:
            self.told["cut"].append(kind)

    def read_script(self, index, source):
        try:
            tree = ast.parse(decoded(source))
        except Unread:
            raise
        except SyntaxError as error:
            self.tell("syntax", index, error.lineno or None, str(error.msg))
        except RecursionError:
            self.tell("syntax", index, None, "it is nested too deeply")
        except MemoryError:
            self.tell("syntax", index, None, "it is nested too deeply, or too large")
        except UnicodeDecodeError as error:
            self.tell("syntax", index, source.count(b"\n", 0, error.start) + 1, str(error))
        except Exception as error:
            self.tell("syntax", index, None, str(error) or type(error).__name__)
        else:
            self.read_imports(index, source, tree)
        if b"# /// script" in source:
            self.read_block(index, source)

    def read_imports(self, index, source, tree):
        moves = b"sys.path" in source or b"addsitedir" in source
        rows = {}
        for dotted, line, optional in imports_of(tree, self.finder.depth):
            module = self.finder.module(dotted)
            if module not in rows and len(rows) + len(self.told["imports"]) >= self.most:
                self.cut("imports")
                continue
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
        if len(content) > self.most_toml:
            self.tell("faults", index, before or None, "its TOML is longer than %d characters" % self.most_toml)
            return None
        for line, text in enumerate(content.split("\n"), 1):
            # A key of many words takes the square of their number.
            if text.count(".") > DOTS:
                self.tell("faults", index, before + line, "its TOML is not read: more than %d dots in one line" % DOTS)
                return None
        try:
            return self.reader.loads(content)
        except RecursionError:
            self.tell("faults", index, None, "its TOML is nested too deeply")
        except MemoryError:
            self.tell("faults", index, before or None, "its TOML takes too much memory")
        except Exception as error:
            at = re.search(r" ?\(at line ([0-9]+), column [0-9]+\)", str(error))
            line = int(at.group(1)) if at else content.count("\n") + 1
            what = str(error).replace(at.group(0), "") if at else str(error)
            self.tell("faults", index, before + line, "its TOML is broken: " + what.replace(" (at end of document)", " at its end"))
        return None

    def declare(self, index, content, before, table):
        dependencies, python = "dependencies", "requires-python"

        def line_of(text):
            at = content.find(text)
            return before + content.count("\n", 0, at) + 1 if at >= 0 else None

        listed = table.get(dependencies, [])
        at = line_of(dependencies)
        if not isinstance(listed, list) or not all(isinstance(item, str) for item in listed):
            self.tell("faults", index, at, "`%s` is no list of strings" % dependencies)
            listed = []
        # They stand in the order in which they are listed: one pass finds all lines.
        found, line = max(content.find(dependencies), 0), at
        for number, item in enumerate(listed):
            if len(self.told["declared"]) >= self.most or self.room <= 0:
                self.tell("faults", index, at, "%d of its requirements are left out: there are too many" % (len(listed) - number))
                break
            # One that is not readable is written otherwise: its beginning is not.
            text = READABLE.match(item).group()
            place = content.find(text, found)
            if place >= 0:
                line = (line or before + 1) + content.count("\n", found, place)
                found = place
            self.declare_one(index, line if place >= 0 else at, item)
        asked = table.get(python)
        at = line_of(python)
        if isinstance(asked, str) and self.is_readable(index, at, "`%s`" % python, asked):
            self.tell("pythons", index, at, asked, version_fits(asked))
        elif isinstance(asked, str):
            pass
        elif asked is not None:
            self.tell("faults", index, at, "`%s` is no string" % python)

    def declare_one(self, index, line, item):
        if self.is_readable(index, line, "a requirement", item):
            self.tell("declared", index, line, item)

    def is_readable(self, index, line, what, text):
        """Whether it can be told as it is; what is installed is what was shown."""
        read = READABLE.match(text).end()
        if read < len(text):
            self.tell("faults", index, line, "%s is left out: it has the character U+%04X" % (what, ord(text[read])))
            return False
        if len(text) > LONGEST:
            self.tell("faults", index, line, "%s is left out: it is longer than %d characters" % (what, LONGEST))
            return False
        return True


def say(answer):
    sys.stdout.buffer.write((json.dumps(answer) + "\n").encode("ascii"))
    sys.stdout.buffer.flush()


def bound_memory(most):
    """What takes more fails, instead of all else on the machine."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))


def main():
    say({"python": "%d.%d.%d" % sys.version_info[:3], "standard": standard_names()})
    given = sys.stdin.buffer
    asked = json.loads(given.readline().decode("utf-8"))
    bound_memory(asked["memory"])
    # Trees hold no circles: there is nothing to collect.
    gc.disable()
    reader = toml()
    # Only to look for modules in: all that this program needs is imported.
    sys.path += asked["python_path"]
    finder = Finder(asked["namespaced"])
    clock = Clock(asked["seconds"])
    for number, files in asked["skills"]:
        skill = Skill(finder, reader, asked)
        skill.look(files, [given.read(size) for _, size in files], clock)
        skill.told["skill"] = number
        say(skill.told)


main()

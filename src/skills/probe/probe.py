"""Reports what the Python files of skills import and declare, as JSON.

Runs in the interpreter that runs the skills' scripts, from Python 3.6 on. It reads the
files' bytes from standard input and opens no file of a skill; it imports only the
standard library (and pip's own TOML reader if there is no other), and never executes
its input.

Standard input: a line of JSON, then the bytes of all files, one after the
other. Standard output: a line of JSON for each skill.
"""
import sys

# No folder of scripts may be on this program's path, however it is started.
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
# Modules of the standard library on other systems, or not modules at all.
ELSEWHERE = {"__future__", "__main__", "_winapi", "msvcrt", "nt", "winreg", "winsound", "_typeshed"}
# Modules that the standard library has since Python 3.7 or a later version.
LATER_MODULES = {"annotationlib", "compression", "contextvars", "dataclasses", "graphlib", "tomllib", "zoneinfo"}
# Tables of a pyproject.toml in which tools keep dependencies of their own.
UNREAD = ("tool.poetry.dependencies", "tool.pdm.dependencies", "tool.setuptools.dynamic.dependencies",
          "dependency-groups", "tool.poetry.group", "tool.uv.dev-dependencies")
# Longest text in the answer, in characters: names and messages have no limit of their own.
MAX_TEXT = 500
# Words of a dotted name that are read.
IMPORT_DEPTH = 8
# Most dots in one line of TOML: a hundred requirements with their versions have 300.
MAX_DOTS = 500
# Readable text: no control characters, and none that change the direction of text.
READABLE = re.compile("[^\\x00-\\x08\\x0a-\\x1f\\x7f-\\x9f\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u2069\\ufeff]*")
CLAUSE = re.compile(r"^(~=|===?|!=|<=|>=|<|>)\s*([0-9]{1,9}(?:\.[0-9]{1,9})*)(\.\*)?$")

# What lines with syntax of later versions of Python look like: a file that an older one refuses
# there may be correct.
LATER = [(version, re.compile(syntax)) for version, syntax in (
    ((3, 8), r":=|[(,]\s*/\s*[,)]"),
    ((3, 10), r"^\s*(?:match|case)\b.*:|^\s*(?:async\s+)?with\s*\(|\bas \w+,?\s*\)?:?\s*$"),
    ((3, 11), r"\bexcept\s*\*"),
    ((3, 12), r"\b(?:[fF][rR]?|[rR][fF])['\"]|^\s*(?:type\s+\w+|(?:async\s+)?def\s+\w+|class\s+\w+)\s*[\[=]"),
    ((3, 14), r"\b(?:[tT][rR]?|[rR][tT])['\"]|^\s*except\b.*,"),
)]

# The declaration of a source's encoding, and the encodings that are decoded in C: some of
# the others take minutes for a file, and no script is written in them.
COOKIE = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
BLANK = re.compile(rb"^[ \t\f]*(?:#|$)")
CODECS = re.compile(
    r"utf-8(?:-sig)?|ascii|iso8859-[0-9]+|cp(?:125[0-8]|437|85[0-9]|866|87[0-9]|932|949|950)|koi8-[rtu]|mac-roman"
    r"|gb2312|gbk|gb18030|big5|big5hkscs|shift_jis|euc_jp|euc_kr|tis-620"
)


# Nodes that import or contain statements, including those of later versions of Python.
NESTING = {getattr(ast, name, None) for name in (
    "Import ImportFrom FunctionDef AsyncFunctionDef ClassDef If For AsyncFor While "
    "With AsyncWith Try TryStar ExceptHandler Match match_case"
).split()}
LAZY = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ExceptHandler)
PARTS = ("handlers", "orelse", "finalbody", "cases")


def words_of(node):
    """The last word of a name, and the text of a string, for this node alone."""
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


def ends_program(handler):
    """Whether a handler ends the program, or runs pip to install the missing module."""
    # Each node with whether it is part of a call, so that nested calls are visited once.
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


def tolerates_failure(node):
    """Whether a `try` continues after an import in it fails."""
    for handler in node.handlers:
        if handler.type is None or CATCHES & names_in(handler.type):
            return not ends_program(handler)
    return False


def imports_of(tree):
    """(dotted name, line, is optional) of each import that is not relative; of long names
    only the first words."""
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
                module = ".".join(node.module.split(".", IMPORT_DEPTH)[:IMPORT_DEPTH])
                for alias in node.names:
                    yield module + "." + alias.name, node.lineno, optional
            continue
        body = inside = optional
        if kind in LAZY:
            body = inside = True
        elif kind is ast.If and not optional:
            # An import that depends on a platform or a version is not always needed.
            body = inside = "__name__" not in names_in(node.test)
        elif kind is ast.With and not optional:
            body = any(CATCHES & names_in(item.context_expr) for item in node.items)
        elif hasattr(node, "handlers") and not optional:
            body = tolerates_failure(node)
        below = [(inner, body) for inner in getattr(node, "body", ()) if type(inner) in NESTING]
        for part in PARTS:
            for inner in getattr(node, part, ()):
                if type(inner) in NESTING:
                    below.append((inner, inside))
        left.extend(reversed(below))


class Finder:
    """Finds out which modules are installed, without importing any."""

    def __init__(self, namespaced):
        self.namespaced = set(namespaced)
        # Number of words of a module's name that matter.
        self.depth = 1 + max([name.count(".") for name in namespaced] or [0])
        self.roots = {name.split(".")[0] for name in namespaced}
        self.known = {}
        self.standard = set(getattr(sys, "stdlib_module_names", ())) | set(sys.builtin_module_names) | ELSEWHERE

    def module(self, dotted):
        """The part of an imported name that identifies its package."""
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
            self.known[name] = self.find_place(name)
        return self.known[name]

    def find_place(self, name):
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
            # A finder that fails, or a loaded module without a spec.
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
    """Whether this Python satisfies `requires-python`; None: the specifier is invalid."""
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


def script_blocks(lines):
    """The `script` blocks of PEP 723 as (line, content), and the line of an unclosed one."""
    blocks = []
    at = 0
    while at < len(lines):
        begin = at
        at += 1
        if lines[begin] != "# /// script":
            continue
        end = None
        while at < len(lines) and (lines[at] == "#" or lines[at].startswith("# ")):
            # The last such line ends the block.
            end = at if lines[at] == "# ///" else end
            at += 1
        if end is None:
            return blocks, begin + 1
        content = [line[2:] if line.startswith("# ") else line[1:] for line in lines[begin + 1:end]]
        blocks.append((begin + 1, "\n".join(content)))
        at = end + 1
    return blocks, None


def source_line(source, number):
    """A line of a source; the error in an f-string has only its expression."""
    lines = source.splitlines()[max(number or 1, 1) - 1:][:1]
    return lines[0].decode("utf-8", "replace") if lines else ""


class NotChecked(Exception):
    """The reason why a file is not checked."""


def decoded(source):
    """A source as text, decoded as Python does."""
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
        raise NotChecked("its encoding `%s` is not supported for scripts" % name)
    if marked and not name.startswith("utf-8"):
        raise ValueError("its encoding is declared as `%s`, but it starts with a UTF-8 byte order mark" % name)
    return source[3 * marked:].decode(name)


class TooSlow(BaseException):
    """A skill has reached its limit of processor time."""


class Clock:
    """Limits the processor time of a skill."""

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
        # Repeated, in case the exception was caught.
        signal.setitimer(signal.ITIMER_PROF, self.seconds, 0.5)
        # Ends the interpreter if C code does not return.
        signal.setitimer(signal.ITIMER_VIRTUAL, 2 * self.seconds)

    def stop(self):
        self.runs = False
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def shown(value):
    """A value for the answer: truncated, and without lone surrogates."""
    return value[:MAX_TEXT].encode("utf-8", "replace").decode("utf-8") if isinstance(value, str) else value


class Skill:
    """The answer for one skill."""

    def __init__(self, finder, reader, request):
        self.finder = finder
        self.reader = reader
        self.max_rows = request["max_rows"]
        self.max_toml_chars = request["max_toml_chars"]
        # Bytes left for the answer.
        self.room = request["max_answer_bytes"]
        self.answer = {"imports": [], "declared": [], "problems": [], "is_cut": False}

    def read_files(self, files, sources, clock):
        """Reads all files. An error in one file does not affect the others."""
        clock.start()
        try:
            for index, (is_project, _) in enumerate(files):
                self.read_file(index, is_project, sources[index])
        except TooSlow:
            clock.stop()
            self.report("unprobed", index, None, "it takes too long to check, and the files after it are not checked")
        clock.stop()

    def read_file(self, index, is_project, source):
        try:
            if is_project:
                self.read_project(index, source)
            else:
                self.read_script(index, source)
        except Exception as error:
            name = "" if isinstance(error, NotChecked) else type(error).__name__ + ": "
            self.report("unprobed", index, None, "it cannot be checked: " + name + str(error))

    def add(self, kind, *row):
        row = [shown(value) for value in row]
        self.room -= len(json.dumps(row))
        if len(self.answer[kind]) < self.max_rows and self.room > 0:
            self.answer[kind].append(row)
        else:
            self.answer["is_cut"] = True

    def report(self, rule, index, line, message):
        self.add("problems", rule, index, line, message)

    def syntax_error(self, index, line, message, text=""):
        is_newer = any(sys.version_info < version and syntax.search(text) for version, syntax in LATER)
        rule, later = ("python-version", ", a later version may") if is_newer else ("python-syntax", "")
        text = "Python %d.%d.%d cannot read it%s: %s"
        self.report(rule, index, line, text % (sys.version_info[:3] + (later, message)))

    def unreadable(self, index, line, message):
        self.report("unreadable-requirements", index, line, message)

    def read_script(self, index, source):
        try:
            tree = ast.parse(decoded(source))
        except NotChecked:
            raise
        except SyntaxError as error:
            self.syntax_error(index, error.lineno or None, str(error.msg), source_line(source, error.lineno))
        except RecursionError:
            self.syntax_error(index, None, "it is nested too deeply")
        except MemoryError:
            self.syntax_error(index, None, "it is nested too deeply, or too large")
        except UnicodeDecodeError as error:
            self.syntax_error(index, source.count(b"\n", 0, error.start) + 1, str(error))
        except Exception as error:
            self.syntax_error(index, None, str(error) or type(error).__name__)
        else:
            self.read_imports(index, source, tree)
        if b"# /// script" in source:
            self.read_block(index, source)

    def read_imports(self, index, source, tree):
        moves = b"sys.path" in source or b"addsitedir" in source
        rows = {}
        for dotted, line, optional in imports_of(tree):
            module = self.finder.module(dotted)
            if module not in rows and len(rows) + len(self.answer["imports"]) >= self.max_rows:
                self.answer["is_cut"] = True
                continue
            place = self.finder.place(module)
            if place == "s":
                continue
            row = rows.setdefault(module, [index, module, line, optional, place == "m", moves])
            if row[3] and not optional:
                # The line of the needed import replaces that of the optional one.
                row[2:4] = line, False
        for row in rows.values():
            _, module, line, optional, missing, _ = row
            if not (missing and module in LATER_MODULES):
                self.add("imports", *row)
            elif not optional:
                mine = "Python %d.%d.%d has no module " % sys.version_info[:3]
                self.report("python-version", index, line, mine + "`%s`, later versions have it" % module)

    def read_block(self, index, source):
        blocks, unclosed = script_blocks(source.decode("utf-8", "replace").replace("\r\n", "\n").split("\n"))
        if unclosed is not None:
            self.unreadable(index, unclosed, "the block `# /// script` has a line that is not a comment, or does not end with a line `# ///`")
        elif len(blocks) > 1:
            self.unreadable(index, blocks[1][0], "a second block `# /// script`")
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
                    self.add_unread_dependencies(index, content, read)
            else:
                self.unreadable(index, None, "`project` is not a table")

    def add_unread_dependencies(self, index, content, read):
        """Reports dependencies that are declared in a table that is not read."""
        for name in UNREAD:
            table = read
            for part in name.split("."):
                table = table.get(part) if isinstance(table, dict) else None
            if not table or list(table) == ["python"]:
                continue
            lines = content.split("\n")
            found = [number for number, line in enumerate(lines, 1) if line.strip().startswith("[" + name)]
            self.unreadable(index, found[0] if found else None, "`%s` is not read, only `dependencies` of `[project]`" % name)
            return

    def read_toml(self, index, content, before):
        if self.reader is None:
            self.unreadable(index, None, "its TOML cannot be read by this Python %d.%d, which has no TOML reader (3.11 has)" % sys.version_info[:2])
            return None
        if len(content) > self.max_toml_chars:
            self.unreadable(index, before or None, "its TOML is longer than %d characters" % self.max_toml_chars)
            return None
        for line, text in enumerate(content.split("\n"), 1):
            # The time for a dotted key is quadratic in the number of its words.
            if text.count(".") > MAX_DOTS:
                self.unreadable(index, before + line, "its TOML is not read: more than %d dots in one line" % MAX_DOTS)
                return None
        try:
            return self.reader.loads(content)
        except RecursionError:
            self.unreadable(index, None, "its TOML is nested too deeply")
        except MemoryError:
            self.unreadable(index, before or None, "its TOML takes too much memory")
        except Exception as error:
            at = re.search(r" ?\(at line ([0-9]+), column [0-9]+\)", str(error))
            line = int(at.group(1)) if at else content.count("\n") + 1
            what = str(error).replace(at.group(0), "") if at else str(error)
            self.unreadable(index, before + line, "its TOML is invalid: " + what.replace(" (at end of document)", " at its end"))
        return None

    def declare(self, index, content, before, table):
        dependencies, python = "dependencies", "requires-python"

        def line_of(text):
            at = content.find(text)
            return before + content.count("\n", 0, at) + 1 if at >= 0 else None

        listed = table.get(dependencies, [])
        at = line_of(dependencies)
        if not isinstance(listed, list) or not all(isinstance(item, str) for item in listed):
            self.unreadable(index, at, "`%s` is not a list of strings" % dependencies)
            listed = []
        # They are in the order of the list, so one pass finds all their lines.
        found, line = max(content.find(dependencies), 0), at
        for number, item in enumerate(listed):
            if len(self.answer["declared"]) >= self.max_rows or self.room <= 0:
                self.unreadable(index, at, "%d of its requirements are left out: there are too many" % (len(listed) - number))
                break
            # Characters that are not readable may be escaped in the source: only the text
            # before them is searched.
            text = READABLE.match(item).group()
            place = content.find(text, found)
            if place >= 0:
                line = (line or before + 1) + content.count("\n", found, place)
                found = place
            self.declare_one(index, line if place >= 0 else at, item)
        asked = table.get(python)
        at = line_of(python)
        if isinstance(asked, str) and self.is_readable(index, at, "`%s`" % python, asked):
            fits = version_fits(asked)
            if fits is None:
                self.unreadable(index, at, "`%s` is not a valid version specifier" % asked)
            elif not fits:
                mine = "%d.%d.%d" % sys.version_info[:3]
                self.report("python-version", index, at, "it requires Python %s, and Python %s runs it" % (asked, mine))
        elif isinstance(asked, str):
            pass
        elif asked is not None:
            self.unreadable(index, at, "`%s` is not a string" % python)

    def declare_one(self, index, line, item):
        if self.is_readable(index, line, "a requirement", item):
            self.add("declared", index, line, item)

    def is_readable(self, index, line, what, text):
        """Whether it can be shown as it is: what is installed must be what was shown."""
        read = READABLE.match(text).end()
        if read < len(text):
            self.unreadable(index, line, "%s is left out: it has the character U+%04X" % (what, ord(text[read])))
            return False
        if len(text) > MAX_TEXT:
            self.unreadable(index, line, "%s is left out: it is longer than %d characters" % (what, MAX_TEXT))
            return False
        return True


def write(answer):
    sys.stdout.buffer.write((json.dumps(answer) + "\n").encode("ascii"))
    sys.stdout.buffer.flush()


def limit_memory(most):
    """Limits the memory of this process, so that it fails instead of other programs."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))


def main():
    write({"standard": standard_names()})
    given = sys.stdin.buffer
    request = json.loads(given.readline().decode("utf-8"))
    limit_memory(request["memory"])
    # Syntax trees have no cycles: there is nothing to collect.
    gc.disable()
    reader = toml()
    # Only to search for modules: all modules that this program needs are imported already.
    sys.path += request["python_path"]
    finder = Finder(request["namespaced"])
    clock = Clock(request["seconds"])
    for number, files in request["skills"]:
        skill = Skill(finder, reader, request)
        skill.read_files(files, [given.read(size) for _, size in files], clock)
        skill.answer["skill"] = number
        write(skill.answer)


main()

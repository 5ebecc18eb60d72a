#!/usr/bin/env python3
"""Analyse text and log files (also .gz, also - for stdin).

    analyze.py log FILE...                    levels, rate, messages and errors in groups
    analyze.py search PATTERN FILE... -C 2    lines that match, with numbers and context
    analyze.py summary FILE...                lines, words, line endings, oddities
    analyze.py frequency FILE... --ngram 2    most frequent words or sequences of words

Files are read line by line: size costs time, not memory. Only the standard library is needed.
"""

import argparse
import json
import re
import signal
import sys
from collections import Counter, deque

import logs

MAX_GROUPS = 50_000
WORD = re.compile(r"[^\W_](?:[\w'’-]*[^\W_])?")
STOPWORDS = set(
    "a also an and are as at be been but by can could did do does for from had has have he her his "
    "i if in into is it its my no not of on or our she so that the their them then there they this "
    "to up us was we were what when which who will with would you your".split())


def is_wanted(entry, options):
    """Tell whether an entry meets --level, --since, --until and --match."""
    if options.level and entry.level not in logs.LEVELS[logs.LEVELS.index(options.level):]:
        return False
    since, until, time = options.since, options.until, entry.time
    if since and not (time and time >= since) or until and not (time and time < until):
        return False
    lines = [entry.message] + entry.more
    return any(re.search(options.match, line, re.IGNORECASE) for line in lines)


def run_log(options):
    """Show levels, rate, and the messages and errors in groups."""
    levels, groups, times, more = Counter(), {}, Counter(), 0
    for name in options.files:
        for entry in logs.read_log(name):
            if not is_wanted(entry, options):
                continue
            is_error = entry.level in ("ERROR", "CRITICAL")
            levels[entry.level or "(none)"] += 1
            more += len(entry.more)
            if entry.time:
                times[entry.time.replace(microsecond=0), is_error] += 1
            pattern, cause = logs.normalize(entry.message), logs.cause(entry) if is_error else ""
            key = (entry.level, f"{pattern} | {logs.normalize(cause)}" if cause else pattern)
            if key not in groups and len(groups) == MAX_GROUPS:
                key = (entry.level, "(other messages)")
            group = groups.setdefault(key, {
                "count": 0, "level": key[0], "pattern": key[1], "first": entry.time, "last": None,
                "file": name, "line": entry.line, "sample": entry.message[:500]})
            group["count"] += 1
            if entry.time:
                group["first"] = min(group["first"] or entry.time, entry.time)
                group["last"] = max(group["last"] or entry.time, entry.time)
    ordered = sorted(groups.values(), key=lambda group: -group["count"])
    errors = [group for group in ordered if group["level"] in ("ERROR", "CRITICAL")]
    report = {
        "entries": sum(levels.values()), "continuation_lines": more,
        "first": min(times)[0] if times else None, "last": max(times)[0] if times else None,
        "levels": dict(levels.most_common()), "rate": logs.rate(times),
        "messages": ordered[:options.top], "errors": errors[:options.top],
        "message_groups": len(ordered), "error_groups": len(errors),
    }
    if options.json:
        print(json.dumps(report, ensure_ascii=False, default=logs.show_time))
        return
    print(f"{report['entries']} entries, {more} lines that continue one")
    if times:
        print(f"first {logs.show_time(report['first'])}\nlast  {logs.show_time(report['last'])}")
    show_counts("levels", levels.most_common())
    print("\nrate (entries, errors)" if times else "\nno times")
    for start, count, failed in report["rate"]:
        print(f"  {logs.show_time(start)}  {count:>6}  {failed:>6}")
    for title, found in (("messages", ordered), ("errors", errors)):
        print(f"\n{title}: {len(found)} groups, the most frequent")
        for group in found[:options.top]:
            print(f"  {group['count']:>6}  {group['level']} {group['pattern'][:160]}")
            if title == "errors":
                seen = [logs.show_time(group[key]) for key in ("first", "last") if group[key]]
                print(f"          {group['file']}, line {group['line']}; {' to '.join(seen)}")


def run_search(options):
    """Show the lines that match a pattern."""
    source, matches = re.escape(options.pattern) if options.fixed else options.pattern, 0
    pattern = re.compile(source, re.IGNORECASE if options.ignore_case else 0)
    for name in options.files:
        prefix = f"{name}:" if len(options.files) > 1 else ""
        before, after, last = deque(maxlen=options.context), 0, None
        for number, line in logs.lines_of(name):
            is_match = pattern.search(line) is not None
            matches += is_match
            if is_match and matches <= options.top:
                if options.context and last and number - len(before) > last + 1:
                    print("--")
                for place, earlier in enumerate(before, number - len(before)):
                    print(f"{prefix}{place}-{earlier[:300]}")
                print(f"{prefix}{number}:{line[:300]}")
                before.clear()
                after, last = options.context, number
            elif after:
                print(f"{prefix}{number}-{line[:300]}")
                after, last = after - 1, number
            else:
                before.append(line)
    print(f"({matches} lines match" + f", {options.top} shown" * (matches > options.top) + ")")


def run_summary(options):
    """Show the size of texts, and what is odd in them."""
    for name in options.files:
        facts, longest = Counter(), ""
        with logs.open_text(name) as stream:
            for line in stream:
                text = line.rstrip("\r\n")
                longest = max(longest, text, key=len)
                facts.update({
                    "lines": 1, "empty lines": not text.strip(), "words": len(text.split()),
                    "characters": len(text), "lines that end in CRLF": line.endswith("\r\n"),
                    "lines with invalid bytes": "\ufffd" in text})
            facts.update({"characters in the longest line": len(longest)})
            print(f"{name} ({stream.encoding})")
        show_counts("", facts.items())


def run_frequency(options):
    """Show the most frequent words, or sequences of words."""
    counts, words, before = Counter(), 0, []
    for name in options.files:
        for _, line in logs.lines_of(name):
            found = [word for word in WORD.findall(line.lower())
                     if not (options.no_stopwords and word in STOPWORDS)]
            words += len(found)
            run = before + found
            starts = range(len(run) - options.ngram + 1)
            counts.update(" ".join(run[start:start + options.ngram]) for start in starts)
            before = run[len(starts):]
    what = "words" if options.ngram == 1 else f"sequences of {options.ngram} words"
    print(f"{words} words, {len(counts)} different {what}")
    show_counts("most frequent", counts.most_common(options.top))


def show_counts(title, counts):
    """Print numbers and what they count."""
    print(f"\n{title}" if title else "")
    width = max([len(str(count)) for _, count in counts], default=0)
    for name, count in counts:
        print(f"  {count:>{width}}  {name}")


def main():
    """Run the command line."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # a reader such as head may stop reading
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("log", help=run_log.__doc__)
    command.add_argument("--top", type=int, default=10, help="groups shown")
    command.add_argument("--level", type=logs.normal_level, choices=logs.LEVELS, help="and above")
    command.add_argument("--since", type=logs.written_time, metavar="TIME")
    command.add_argument("--until", type=logs.written_time, metavar="TIME", help="before this time")
    command.add_argument("--match", default="", metavar="REGEX", help="in any case")
    command.add_argument("--json", action="store_true")
    command = commands.add_parser("search", help=run_search.__doc__)
    command.add_argument("--top", type=int, default=50, help="matches shown")
    command.add_argument("-C", "--context", type=int, default=0, help="lines around each")
    command.add_argument("-i", "--ignore-case", action="store_true")
    command.add_argument("-F", "--fixed", action="store_true", help="the pattern is plain text")
    command.add_argument("pattern", help="regular expression")
    commands.add_parser("summary", help=run_summary.__doc__)
    command = commands.add_parser("frequency", help=run_frequency.__doc__)
    command.add_argument("--top", type=int, default=20, help="words shown")
    command.add_argument("--ngram", type=int, default=1, help="words of a sequence")
    command.add_argument("--no-stopwords", action="store_true", help="without common words")
    for command in commands.choices.values():
        command.add_argument("files", nargs="+", metavar="FILE")
    options = parser.parse_args()
    try:
        commands = {"log": run_log, "search": run_search, "summary": run_summary}
        commands.get(options.command, run_frequency)(options)
    except OSError as error:
        name, cause = error.filename or options.files[0], error.strerror or error
        sys.exit(f"analyze.py: failed to read file `{name}`: {cause}")
    except ValueError as error:
        sys.exit(f"analyze.py: {error}")
    except (EOFError, re.error) as error:
        sys.exit(f"analyze.py: failed to run {options.command}: {error}")


if __name__ == "__main__":
    main()

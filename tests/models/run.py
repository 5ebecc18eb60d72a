#!/usr/bin/env python3
"""Lets a real model work on the tasks of a person's day, and prints what came of it.

usage: run.py BINARY [--modes auto,native,…] [--tasks NAME,…] [--seeds 1,2,3] [--out FOLDER] [--timeout SECONDS]

The endpoint is that of the environment: LLM_API_BASE_URL, LLM_MODEL_NAME, a key. Answers and files
are checked; a wrong answer with status 0 that does not say so is a false success.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

from tasks import FILES, TASKS

HERE = pathlib.Path(__file__).resolve().parent
SKILLS = [HERE.parent.parent / "skills", HERE / "skills"]
# An answer with one of these admits that the task is not done, or asks.
ADMITS = re.compile(
    r"(?i)can(not|'t|’t)\b|could(n't|n’t| not)|unable|not able|fail|sorry|error|not (found|exist|possible|available|installed)|"
    r"does(n't| not) exist|no such|please (provide|specify)|\?\s*$")


def run_once(binary, task, mode, seed, timeout):
    with tempfile.TemporaryDirectory() as folder:
        work, skills, home = (pathlib.Path(folder, name) for name in ("work", "skills", "home"))
        for new in (work, skills, home):
            new.mkdir()
        for name, text in FILES.items():
            (work / name).write_text(text)
        for source in SKILLS:
            for skill in source.iterdir():
                if (skill / "SKILL.md").exists():
                    shutil.copytree(skill, skills / skill.name)
        environment = dict(os.environ, HOME=str(home), LLM_TOOLS=mode)
        body = json.loads(environment.get("LLM_EXTRA_BODY", "{}"))
        if seed is not None:
            body["seed"] = seed
        environment.update(LLM_EXTRA_BODY=json.dumps(body), SKILLS_FOLDER_PATH=str(skills), LLM_TIMEOUT_SECONDS="600")
        command = [binary, "--no-env-file", "-o", "json", "--timeout", str(timeout), task["prompt"]]
        start = time.monotonic()
        done = subprocess.run(command, cwd=work, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        seconds = time.monotonic() - start
        try:
            record = json.loads(done.stdout)
        except ValueError:
            record = {}
        answer = record.get("answer") or ""
        result = {
            "task": task["name"], "mode": mode, "seed": seed, "status": done.returncode, "seconds": round(seconds, 1),
            "requests": record.get("steps") or record.get("requests") or 0, "tokens": sum((record.get("usage") or {}).get(name) or 0 for name in ("input_tokens", "output_tokens", "prompt_tokens", "completion_tokens")),
            "answer": answer, "stderr": done.stderr, "record": record,
        }
        is_right = is_right_answer(task, answer, work)
        is_needless = bool(task.get("no_tool") and record.get("tool_calls"))
        result["solved"] = is_right and not is_needless and done.returncode == 0
        result["false"] = not is_right and done.returncode == 0 and bool(answer.strip()) and not ADMITS.search(answer)
        return result


def is_right_answer(task, answer, work):
    plain = re.sub(r"(?<=\d)[, \u00a0\u202f](?=\d{3})", "", answer)
    if not answer.strip():
        return False
    if any(not re.search(pattern, plain) for pattern in task.get("has", [])):
        return False
    if any(re.search(pattern, plain) for pattern in task.get("lacks", [])):
        return False
    for name, pattern in task.get("files", {}).items():
        path = work / name
        if not path.is_file() or not re.search(pattern, path.read_text(errors="replace")):
            return False
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--modes", default="auto")
    parser.add_argument("--tasks", default="")
    parser.add_argument("--seeds", default="")
    parser.add_argument("--timeout", type=int, default=600)
    parser.add_argument("--out")
    options = parser.parse_args()
    if not os.environ.get("LLM_API_BASE_URL") or not os.environ.get("LLM_MODEL_NAME"):
        sys.exit("set LLM_API_BASE_URL and LLM_MODEL_NAME")
    wanted = [name for name in options.tasks.split(",") if name]
    tasks = [task for task in TASKS if not wanted or task["name"] in wanted]
    seeds = [int(seed) for seed in options.seeds.split(",") if seed] or [None]
    binary = str(pathlib.Path(options.binary).resolve())
    totals = {}
    for mode in options.modes.split(","):
        for seed in seeds:
            for task in tasks:
                result = run_once(binary, task, mode, seed, options.timeout)
                word = "solved" if result["solved"] else "FALSE" if result["false"] else "not"
                answer = " ".join(result["answer"].split())[:80]
                print(f"{mode:9}{task['name']:10}{word:7}{result['status']:3}{result['seconds']:7.1f} s{result['requests']:4}{result['tokens']:8}  {answer}", flush=True)
                total = totals.setdefault((mode, seed), [0, 0, 0, 0.0, 0, 0])
                for at, value in enumerate((1, result["solved"], result["false"], result["seconds"], result["requests"], result["tokens"])):
                    total[at] += value
                if options.out:
                    path = pathlib.Path(options.out)
                    path.mkdir(parents=True, exist_ok=True)
                    (path / f"{mode}-{seed}-{task['name']}.json").write_text(json.dumps(result, indent=1))
    print(f"\n{'mode':9}{'seed':>5}{'tasks':>7}{'solved':>8}{'false':>7}{'seconds':>9}{'requests':>10}{'tokens':>9}")
    for (mode, seed), (tasks, solved, false, seconds, requests, tokens) in totals.items():
        print(f"{mode:9}{seed if seed is not None else '':>5}{tasks:7}{solved:8}{false:7}{seconds:9.0f}{requests:10}{tokens:9}")


if __name__ == "__main__":
    main()

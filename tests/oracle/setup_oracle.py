"""Sets up random published skills with Python scripts, and starts their scripts.

Usage: setup_oracle.py BINARY FOLDER WORK [COUNT] [SEED]. FOLDER has repositories of skills; WORK
gets copies. A skill counts as right if the setup succeeds and each script starts (with `--help`,
in the sandbox) without a missing module, or if the setup fails and says what is missing.
"""
import json
import os
import random
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

binary, folder, work = (os.path.abspath(path) for path in sys.argv[1:4])
count, seed = int((sys.argv[4:] + ["60"])[0]), int((sys.argv[5:] + ["1"])[0])
SAMPLES = {"assets", "examples", "example", "references", "reference", "templates", "template", "tests", "test", "fixtures"}
MISSING = re.compile(r"ModuleNotFoundError|ImportError|No module named|cannot import name|pip3? install", re.I)


def scripts_of(skill):
    found = []
    for place, folders, files in os.walk(skill):
        folders[:] = [name for name in folders if name.lower() not in SAMPLES | {"venv", ".venv", "node_modules"}]
        for name in files:
            if name.endswith(".py") and not name.startswith(("test_", "__")) and not name.endswith("_test.py"):
                found.append(os.path.relpath(os.path.join(place, name), skill))
    return sorted(found)


def try_skill(skill):
    name = os.path.basename(skill)
    place = os.path.join(work, "%s-%d" % (name, abs(hash(skill)) % 10**6), name)
    shutil.copytree(skill, place, symlinks=True)
    environment = dict(os.environ, SCRIPT_SANDBOX="on")
    command = [binary, "skills", "setup", place, "--yes", "--json", "--timeout", "900"]
    setup = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment)
    broken = []
    for script in scripts_of(place):
        call = json.dumps({"skill_name": name, "file_path": script, "args": ["--help"]})
        command = [binary, "--skills", os.path.dirname(place), "--script-timeout", "20", "tool", "run_python_script", call]
        run = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment)
        try:
            result = json.loads(run.stdout)
        except ValueError:
            result = {"stderr": run.stdout + run.stderr, "returncode": 1}
        text = "%s\n%s" % (result.get("stderr"), result.get("stdout"))
        if result.get("returncode") != 0 and MISSING.search(text):
            lines = [line for line in text.splitlines() if MISSING.search(line)]
            broken.append((script, lines[-1][:160]))
    shutil.rmtree(os.path.dirname(place))
    said = setup.stderr[-1500:] if setup.returncode else ""
    return name, setup.returncode, said, broken


skills = sorted({place for place, _, files in os.walk(folder, followlinks=True) if "SKILL.md" in files and scripts_of(place)})
random.seed(seed)
chosen = random.sample(skills, min(count, len(skills)))
complete = right = 0
with ThreadPoolExecutor(4) as pool:
    for name, status, said, broken in pool.map(try_skill, chosen):
        complete += status == 0
        right += status == 0 and not broken
        print("%s: status %d%s" % (name, status, ", broken: %s" % broken if broken else ""))
        if said:
            print("    " + said.strip().replace("\n", "\n    "))
print("%d skills: %d complete, of which %d start" % (len(chosen), complete, right))

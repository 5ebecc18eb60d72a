#!@PYTHON@
"""Shared by the stand-ins for docker and kubectl: an image, and running a command in
it. There is no container: its paths are replaced by paths of the test's folder, and
the environment is that of the container."""
import json, os, re, shlex, subprocess, sys

MACHINE = "@WORKSPACE@/machine"
IMAGES = "@WORKSPACE@/images.json"

def images():
    return json.load(open(IMAGES)) if os.path.exists(IMAGES) else {}

def build(tag, dockerfile, context):
    """Reads a Dockerfile: what it copies is there, what it starts is the program."""
    image = {"env": {}, "mounts": {}, "entrypoint": [], "cmd": [], "folder": "/"}
    text = re.sub(r"\\\n", " ", open(dockerfile).read())
    for line in text.splitlines():
        word, _, rest = line.strip().partition(" ")
        match word.upper():
            case "" | "EXPOSE" | "LABEL" | "USER" | "ARG" | "VOLUME":
                pass
            case "FROM":
                # A new stage begins with nothing.
                image.update(env={}, mounts={}, entrypoint=[], cmd=[], folder="/")
            case "COPY" | "ADD":
                *options, = [part for part in rest.split() if part.startswith("--")]
                *sources, target = [part for part in rest.split() if not part.startswith("--")]
                for source in sources:
                    if any(option.startswith("--from=") for option in options):
                        source = "target/release/skills-runner" if "skills-runner" in source else "skills"
                    place = os.path.join(context, source)
                    os.path.exists(place) or sys.exit(f"docker: COPY: there is no {source}")
                    name = target + os.path.basename(source) if target.endswith("/") and os.path.isfile(place) else target
                    image["mounts"][name.rstrip("/")] = os.path.abspath(place)
            case "ENV":
                image["env"].update(re.findall(r'(\w+)="?([^\s"]+)"?', rest))
            case "WORKDIR":
                image["folder"] = rest
            case "RUN":
                # What other programs do to an image is only read.
                is_ours = rest.startswith("skills-runner ")
                words = shlex.split(rest) if is_ours else ["sh", "-n", "-c", rest]
                status = start(words, image["env"], image["mounts"], image["folder"])
                status and sys.exit(f"docker: RUN {rest}: {status}")
            case "ENTRYPOINT" | "CMD":
                image[word.lower()] = json.loads(rest)
            case _ if word.startswith("#"):
                pass
            case _:
                sys.exit(f"docker: the stand-in does not know {word}")
    image["entrypoint"] or image["cmd"] or sys.exit("docker: the image starts nothing")
    json.dump(images() | {tag: image}, open(IMAGES, "w"))

def run(name, args, env, mounts, entrypoint=None, folder=None, stdin=None):
    """Runs the image's program; `mounts` are folders by their paths in the container."""
    image = images().get(name) or sys.exit(f"there is no image {name}: {list(images())}")
    words = (entrypoint or image["entrypoint"]) + (args or image["cmd"])
    return start(words, image["env"] | env, image["mounts"] | mounts, folder or image["folder"], stdin)

def start(words, env, mounts, folder, stdin=subprocess.DEVNULL):
    paths = "|".join(re.escape(inside) for inside in sorted(mounts, key=len, reverse=True))
    # Once each, and not what is outside already.
    pattern = re.compile(rf"(?<![\w./-])(?!@WORKSPACE@)({paths})(?=[/:\"\s]|$)" if paths else "(?!)()")
    def outside(text):
        return pattern.sub(lambda found: mounts[found[1]], text)
    # The image's own programs are the few real ones.
    env = {"PATH": "@WORKSPACE@/bin:@WORKSPACE@/programs"} | {key: outside(value) for key, value in env.items()}
    words = [outside(word) for word in words]
    if os.path.basename(words[0]) == "skills-runner":
        words[0] = f"{MACHINE}/usr/local/bin/skills-runner"
    folder = outside(folder)
    return subprocess.run(words, env=env, cwd=folder if os.path.isdir(folder) else "/", stdin=stdin).returncode

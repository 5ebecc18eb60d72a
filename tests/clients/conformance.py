"""Runs the protocol's conformance scenarios. They use HTTP, so a bridge connects them
to the server."""

import json
import pathlib
import tempfile

from bench import NEWEST, Failure
from bridge import bridged
from environments import NODE_PACKAGES

SCENARIOS = [
    *((name, NEWEST["legacy"]) for name in (
        "server-initialize", "ping", "tools-list", "resources-list", "prompts-list",
    )),
    *((name, NEWEST["modern"]) for name in (
        "tools-list", "resources-list", "prompts-list", "caching", "server-stateless",
        "sep-2164-resource-not-found", "input-required-result-unsupported-methods",
    )),
    *((f"sep-2640-skills-{name}", None) for name in ("enumeration", "manifest", "directory")),
    # These test HTTP: they show that the bridge is correct.
    ("server-session-lifecycle", NEWEST["legacy"]),
    ("http-header-validation", NEWEST["modern"]),
    *(("dns-rebinding-protection", version) for version in NEWEST.values()),
]
# Checks that need a server with the suite's own tools `test_…`; the suite marks each of
# them as untestable.
NEED_TEST_TOOLS = {
    "sep-2575-server-rejects-undeclared-capability",
    "sep-2575-missing-capability-http-400",
    "sep-2575-http-server-no-independent-requests-on-stream",
    "sep-2575-server-no-log-without-loglevel",
}
# Checks of subscriptions, which the server does not offer.
NEED_SUBSCRIPTIONS = {
    "sep-2575-server-sends-subscription-ack",
    "sep-2575-server-tags-subscription-id",
    "sep-2575-server-honors-notification-filter",
    "sep-2575-server-sends-prompts-list-changed-on-subscription",
    "sep-2575-server-sends-tools-list-changed-on-subscription",
}


def conformance(bench):
    client = f"conformance {NODE_PACKAGES['@modelcontextprotocol/conformance']}"
    log_file = bench.work / "server.log"
    with log_file.open("wb") as log, bridged(bench.server, log) as bridge:
        for scenario, version in SCENARIOS:
            name = f"{scenario}, {version}" if version else scenario
            bench.check(client, name, conform, bench, bridge.url, scenario, version)
    ends = "; ".join(bridge.problems) or f"{len(bridge.ends)}, all with status 0"
    output = log_file.read_text(errors="replace")
    bench.note(not bridge.problems, client, "the servers have ended", ends, output)


def conform(bench, url, scenario, version):
    with tempfile.TemporaryDirectory(dir=bench.work) as folder:
        command = [
            *bench.environments.command("@modelcontextprotocol/conformance"), "server",
            "--url", url, "--scenario", scenario, "--output-dir", folder,
        ]
        done = bench.run(command + (["--spec-version", version] if version else []))
        found = list(pathlib.Path(folder).rglob("checks.json"))
        if len(found) != 1:
            raise Failure(f"exit {done.returncode}, no result", done.stdout + done.stderr)
        checks = json.loads(found[0].read_text())
    failures, left, passed = [], 0, 0
    for check in checks:
        if check["status"] == "SUCCESS":
            passed += 1
        elif does_not_apply(check):
            left += 1
        else:
            failures.append(check)
    if failures or not passed:
        ids = [check["id"] for check in failures]
        why = "; ".join(ids[:3]) + (f" and {len(ids) - 3} more" if len(ids) > 3 else "")
        raise Failure(why or "nothing was checked", json.dumps(failures or checks, indent=2))
    return f"{passed} passed" + (f", {left} do not apply" if left else "")


def does_not_apply(check):
    """Whether a skip is expected. Any other skipped check counts as failed."""
    if check["id"] in NEED_TEST_TOOLS:
        return (check.get("details") or {}).get("untestable")
    return check["status"] == "SKIPPED" and check["id"] in NEED_SUBSCRIPTIONS

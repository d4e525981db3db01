"""Shared code of the programs here: the checks, a directory for each, and the loop that runs them.

CLAUDELESS_BIN is the binary, CLAUDELESS_SCENARIO the scenario. Each check runs in a directory of its own, prints one line
and fails the program when it fails; stderr of the CLI must stay empty wherever the run is clean.
"""

import os
import sys
import tempfile
import traceback
from pathlib import Path

import anyio
from claude_agent_sdk import AssistantMessage, ClaudeAgentOptions, ResultMessage, SystemMessage, TextBlock, ToolUseBlock

CHECKS = []


def check(function):
    CHECKS.append(function)
    return function


class Place:
    """A fresh directory, the options for it, and the stderr of the CLI."""

    scenario = os.environ["CLAUDELESS_SCENARIO"]

    def __init__(self):
        self.dir = Path(tempfile.mkdtemp(prefix="interop-"))
        self.stderr = []

    def options(self, **more):
        env = {"CLAUDELESS_SCENARIO": self.scenario, "CLAUDE_CONFIG_DIR": str(self.dir / "config")}
        more = {"cwd": str(self.dir), "stderr": self.stderr.append} | more
        return ClaudeAgentOptions(cli_path=os.environ["CLAUDELESS_BIN"], env=env | more.pop("env", {}), **more)


def equal(got, want):
    assert got == want, f"got {got!r}, want {want!r}"


def blocks(messages, kind):
    return [b for m in messages if isinstance(m, AssistantMessage) for b in m.content if isinstance(b, kind)]


def texts(messages):
    return [b.text for b in blocks(messages, TextBlock)]


def calls(messages):
    return [(b.name, b.input) for b in blocks(messages, ToolUseBlock)]


def init(messages):
    found = [m.data for m in messages if isinstance(m, SystemMessage) and m.subtype == "init"]
    assert found, f"no init in {messages}"
    return found[0]


def results(messages):
    return [m for m in messages if isinstance(m, ResultMessage)]


def result(messages):
    found = results(messages)
    assert found, f"no result in {messages}"
    return found[-1]


async def ask(client, prompt):
    await client.query(prompt)
    return [m async for m in client.receive_response()]


async def main(names):
    failed = 0
    for function in CHECKS:
        if names and function.__name__ not in names:
            continue
        place = Place()
        try:
            with anyio.fail_after(40):
                await function(place)
            assert not place.stderr, f"stderr: {place.stderr}"
            print("ok  ", function.__name__, flush=True)
        except BaseException:  # noqa: BLE001 - one failed check must not hide the others
            failed += 1
            print("FAIL", function.__name__, flush=True)
            traceback.print_exc(file=sys.stdout)
            print("stderr of the CLI:", place.stderr, flush=True)
    return failed


def run():
    sys.exit(1 if anyio.run(main, sys.argv[1:]) else 0)

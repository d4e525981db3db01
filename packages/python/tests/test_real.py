"""The lanes side by side: the double, and the real claude (CLAUDE_BIN) against the same script as the Messages API."""

import os
import subprocess
from pathlib import Path

import pytest

from claudeless import ScriptedClaude, call

pytestmark = pytest.mark.skipif(not os.environ.get("CLAUDE_BIN"), reason="CLAUDE_BIN names no real claude")


def ask(claude: ScriptedClaude, home: Path, prompt: str) -> str:
    done = subprocess.run(
        [claude.path, "-p", prompt, "--allowedTools", "Bash"], env={**os.environ, **claude.env, "HOME": str(home)},
        cwd=home, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )
    return done.stdout.strip()


@pytest.mark.parametrize("lane", ["fake", "real"])
def test_lane(lane: str, tmp_path: Path) -> None:
    with ScriptedClaude([call("Bash", command="echo log"), "Parser bug."], lane=lane) as claude:
        assert ask(claude, tmp_path, "triage") == "Parser bug."
    assert [c.prompt for c in claude.calls] == ["triage"]
    assert claude.tools == [("Bash", {"command": "echo log"})]


@pytest.mark.parametrize("lane", ["fake", "real"])
def test_second_prompt(lane: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="again"), ScriptedClaude(["Once."], lane=lane) as claude:
        assert ask(claude, tmp_path, "first") == "Once."
        ask(claude, tmp_path, "again")


@pytest.mark.parametrize("lane", ["fake", "real"])
def test_terminal(lane: str, tmp_path: Path) -> None:
    with ScriptedClaude([call("Bash", command="mkdir seen"), "It is done."], lane=lane) as claude:
        terminal = claude.terminal("--permission-mode", "default", env={"HOME": str(tmp_path)}, cwd=tmp_path)
        terminal.wait_for("? for shortcuts", timeout=60)
        terminal.type("make it")
        terminal.press("Enter")
        terminal.wait_for("Do you want to proceed?", timeout=60)
        terminal.press("Enter")
        terminal.wait_for("It is done.", timeout=60)
    assert (tmp_path / "seen").is_dir()
    assert claude.tools == [("Bash", {"command": "mkdir seen"})]

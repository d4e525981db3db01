"""ScriptedClaude, as tests use it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from claudeless import ScriptedClaude, call, fail
from claudeless._steps import messages, toml


def ask(claude: ScriptedClaude, prompt: str, *more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([claude.path, "-p", prompt, *more], env={**os.environ, **claude.env}, capture_output=True, text=True, stdin=subprocess.DEVNULL)


def test_script() -> None:
    with ScriptedClaude([call("Bash", command="echo one"), "Parser bug."]) as claude:
        done = ask(claude, "triage", "--allowedTools", "Bash")
    assert done.stdout == "Parser bug.\n"
    assert done.stderr == ""
    assert claude.calls[0].prompt == "triage"
    assert claude.tools == [("Bash", {"command": "echo one"})]


def test_unplayed_step_points_at_the_test() -> None:
    with pytest.raises(AssertionError) as caught:
        with ScriptedClaude([call("Bash", command="echo 1"), "two"]) as claude:  # HERE
            ask(claude, "hi", "--allowedTools", "Bash", "--max-turns", "1")
    line = next(i for i, text in enumerate(open(__file__), 1) if "# HERE" in text)
    assert f"{os.path.basename(__file__)}:{line}: " in str(caught.value)


def test_nothing_was_asked() -> None:
    with pytest.raises(AssertionError):
        with ScriptedClaude(["hi"]):
            pass


def test_second_prompt_is_unmatched() -> None:
    with pytest.raises(AssertionError, match="again"):
        with ScriptedClaude(["hi"]) as claude:
            ask(claude, "first")
            ask(claude, "again")


def test_rules() -> None:
    with ScriptedClaude() as claude:
        claude.on("triage", "Parser bug.").on(re.compile(r"deploy \w+"), fail("overloaded", times=2), "Done.")
        assert ask(claude, "please triage this").stdout == "Parser bug.\n"
        assert ask(claude, "deploy api").stdout == "Done.\n"
    assert [c.prompt for c in claude.calls] == ["please triage this", "deploy api"]


def test_unmatched_prompt_names_the_nearest() -> None:
    with pytest.raises(AssertionError, match="Triage"):
        with ScriptedClaude() as claude:
            claude.on("triage", "x")
            ask(claude, "triage")
            ask(claude, "Triage")


@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked for in /proc")
def test_a_claude_that_is_left_running_is_ended() -> None:
    with pytest.raises(AssertionError, match=r"claude was left running.*\[C06\]"), ScriptedClaude(["Hello."]) as claude:
        child = subprocess.Popen(
            [claude.path, "-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"],
            env={**os.environ, **claude.env}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )
        assert child.stdin and child.stdout
        child.stdin.write(b'{"type":"user","message":{"role":"user","content":"hi"}}\n')
        child.stdin.flush()
        while b'"result"' not in child.stdout.readline():
            pass
    assert child.wait(10) == 143


@pytest.mark.skipif(sys.platform == "win32", reason="there is no shell to clean up after a kill")
def test_a_test_that_is_killed_leaves_nothing() -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", "import time\nfrom claudeless import ScriptedClaude\nc = ScriptedClaude(['x']).__enter__()\nprint(c.directory, c.base_url, flush=True)\ntime.sleep(60)"],
        stdout=subprocess.PIPE, text=True,
    )
    assert child.stdout
    directory, url = child.stdout.readline().split()
    child.kill()
    child.wait()
    deadline = time.monotonic() + 10
    while os.path.exists(directory) or answers(url):
        assert time.monotonic() < deadline, "the directory or the server is there still"
        time.sleep(0.05)


def answers(url: str) -> bool:
    try:
        urllib.request.urlopen(url + "/v1/models", timeout=1).close()
    except OSError:
        return False
    return True


def test_lenient() -> None:
    with ScriptedClaude([call("Bash", command="echo 1"), "two"], strict=False) as claude:
        ask(claude, "hi", "--allowedTools", "Bash", "--max-turns", "1")


def test_the_error_of_the_block_comes_first() -> None:
    with pytest.raises(KeyError):
        with ScriptedClaude(["one"]):
            raise KeyError("mine")


async def block() -> list[str]:
    async with ScriptedClaude(["hi"]) as claude:
        ask(claude, "x")
    return [c.prompt for c in claude.calls]


def test_async() -> None:
    import asyncio

    assert asyncio.run(block()) == ["x"]


@pytest.mark.parametrize(
    ("step", "says"),
    [
        (5, "a step is a str"),
        ({"tool": "Bash"}, 'call("Bash"'),
        (call, "did you mean call"),
        (["a", 5], "texts and calls only"),
        ([call("Bash"), "late"], "comes after a call"),
    ],
)
def test_no_step(step: object, says: str) -> None:
    with pytest.raises(TypeError, match=re.escape(says)):
        ScriptedClaude([step])  # type: ignore[list-item]


def test_one_message() -> None:
    assert messages([["I look.", call("Bash", command="ls"), call("Read", file_path="x")], "Done."]) == [
        {"text": "I look.", "tool_calls": [{"tool": "Bash", "input": {"command": "ls"}}, {"tool": "Read", "input": {"file_path": "x"}}]},
        {"text": "Done."},
    ]


@pytest.mark.parametrize(("value", "text"), [("a\"b\n\x7f\u2028", '"a\\"b\\n\\u007f\u2028"'), (True, "true"), ({"a b": [1, 2.5]}, '{ "a b" = [1, 2.5] }'), ({}, "{}")])
def test_toml(value: object, text: str) -> None:
    assert toml(value) == text


def test_toml_has_no_null() -> None:
    with pytest.raises(TypeError, match="no form in TOML"):
        toml({"a": None})


def test_file(tmp_path: object) -> None:
    file = os.path.join(str(tmp_path), "s.toml")
    with open(file, "w") as f:
        f.write('[[responses]]\npattern = { type = "any" }\nresponse = "from a file"\n')
    with ScriptedClaude(file=file) as claude:
        assert ask(claude, "x").stdout == "from a file\n"
        with pytest.raises(TypeError, match="only one scenario"):
            claude.on("y", "z")


def test_file_with_mistakes(tmp_path: object) -> None:
    file = os.path.join(str(tmp_path), "s.toml")
    with open(file, "w") as f:
        f.write("[[responses]]\npatern = 5\n")
    claude = ScriptedClaude(file=file)
    with pytest.raises(AssertionError, match=r"s\.toml:2"):
        with claude:
            pass
    assert not os.path.exists(claude.directory), "a block that was not entered leaves nothing open"


def test_hold() -> None:
    with ScriptedClaude() as claude:
        claude.on("slow", "at last")
        held = claude.hold("slow")
        child = subprocess.Popen([claude.path, "-p", "slow"], env={**os.environ, **claude.env}, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        assert held.reached()
        assert child.poll() is None
        held.release()
        out, _ = child.communicate(timeout=20)
        assert out == "at last\n"


def test_hold_of_the_messages_api() -> None:
    anthropic = pytest.importorskip("anthropic")
    with ScriptedClaude() as claude, ThreadPoolExecutor() as pool:
        claude.on("slow", "at last")
        held = claude.hold("slow")
        client = anthropic.Anthropic(base_url=claude.base_url, api_key="x")
        asking = pool.submit(client.messages.create, model="claude-opus-5-5", max_tokens=100, messages=[{"role": "user", "content": "slow"}])
        assert held.reached()
        assert not asking.done()
        held.release()
        assert asking.result(20).content[0].text == "at last"


def test_messages_api() -> None:
    anthropic = pytest.importorskip("anthropic")
    with ScriptedClaude() as claude:
        claude.on("hello", "hi there")
        client = anthropic.Anthropic(base_url=claude.base_url, api_key="x")
        answer = client.messages.create(model="claude-opus-5-5", max_tokens=100, messages=[{"role": "user", "content": "hello"}])
        assert answer.content[0].text == "hi there"


def test_agent_sdk() -> None:
    sdk = pytest.importorskip("claude_agent_sdk")
    import asyncio

    async def go() -> list[object]:
        async with ScriptedClaude([call("Bash", command="echo hi"), "Parser bug."]) as claude:
            messages = [m async for m in sdk.query(prompt="triage", options=claude.options(allowed_tools=["Bash"]))]
        assert claude.tools == [("Bash", {"command": "echo hi"})]
        return messages

    last = asyncio.run(go())[-1]
    assert getattr(last, "result", None) == "Parser bug."


def test_no_binary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDELESS_BIN", "/nowhere/claudeless")
    with pytest.raises(RuntimeError, match="CLAUDELESS_BIN names /nowhere/claudeless"):
        ScriptedClaude(["x"]).__enter__()


def test_command() -> None:
    done = subprocess.run([sys.executable, "-m", "claudeless", "--version"], capture_output=True, text=True)
    assert "Claude Code" in done.stdout, done.stderr


def test_terminal(tmp_path: Path) -> None:
    with ScriptedClaude([call("Bash", command="mkdir seen"), "Done."]) as claude:
        terminal = claude.terminal("--permission-mode", "default", cols=90, rows=30, cwd=tmp_path)
        terminal.wait_for("? for shortcuts", timeout=60)
        assert terminal.screen.title == "✳ Claude Code"
        terminal.type("make it")
        terminal.press("Enter")
        terminal.wait_for("Do you want to proceed?", timeout=60)
        screen = terminal.screen
        assert (screen.cols, screen.rows, len(screen.cells)) == (90, 30, 30)
        assert "❯ 1. Yes" in screen and any(cell.text == "❯" for row in screen.cells for cell in row)
        terminal.resize(80, 24)
        terminal.press("Down", "Up", "Enter")
        terminal.wait_for("Done.", timeout=60)
        assert (terminal.screen.cols, len(terminal.screen.text.splitlines())) == (80, 24)
    assert claude.tools == [("Bash", {"command": "mkdir seen"})]
    assert (tmp_path / "seen").is_dir()
    with pytest.raises(RuntimeError, match="closed"):
        terminal.press("Enter")


def test_terminal_fails_with_the_screen() -> None:
    with ScriptedClaude(strict=False) as claude:
        terminal = claude.terminal("--permission-mode", "default")
        terminal.wait_for("? for shortcuts", timeout=60)
        with pytest.raises(AssertionError, match=r"(?s)waited for the text `nothing` for 50ms; the screen shows.*\? for shortcuts"):
            terminal.wait_for("nothing", timeout=0.05)
        with pytest.raises(AssertionError, match="unknown key name `Entr`; did you mean `Enter`"):
            terminal.press("Entr")
        with pytest.raises(RuntimeError, match="20x5 to 500x200"):
            claude.terminal(cols=1).wait_for("x")

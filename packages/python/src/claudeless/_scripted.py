"""ScriptedClaude: a scenario in a private directory, and its verdict at the end."""

from __future__ import annotations

import asyncio
import atexit
import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
import threading
import warnings
from pathlib import Path
from types import TracebackType
from typing import Any, Mapping, Sequence

from . import _binary, _journal, _steps, _trap
from ._journal import Call
from ._steps import Rule, Step
from ._terminal import Terminal

LANES = ("fake", "real")


class ScriptedClaude:
    """A claude with a scripted model.

    `script` answers one prompt from any process; `on` adds rules for more
    prompts. `file` is a scenario file instead, with all keys of the TOML format.

    Use it as a context manager, sync or async. Leaving the block raises
    AssertionError for steps that were not reached, prompts without a rule, unmet
    expectations, and uses of claude that fail with the real one. With
    `strict=False` it checks only expectations and conduct.

    `lane="real"` runs the real claude (CLAUDE_BIN, or on PATH) against the same
    script as the Messages API: no tokens, no key.
    """

    def __init__(
        self,
        script: Sequence[Step] | str | None = None,
        *,
        file: str | os.PathLike[str] | None = None,
        strict: bool = True,
        lane: str = "fake",
        seed: int | None = None,
    ) -> None:
        if lane not in LANES:
            raise ValueError(f"lane is {lane!r}, not one of {', '.join(LANES)}")
        if script is not None and file is not None:
            raise TypeError("ScriptedClaude takes a script or a file, not both")
        self._strict = strict
        self._lane = lane
        self._seed = seed
        self._rules: list[Rule] = []
        self._file = Path(file).resolve() if file is not None else None
        self._places: dict[int, tuple[str, int]] = {}
        self._dir: Path | None = None
        self._server: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None
        self._url: str | None = None
        self._holds = 0
        self._terminals: list[Terminal] = []
        self._warned: set[str] = set()
        self._place = _caller()
        if script is not None:
            steps = [script] if isinstance(script, str) else script
            self._rules.append(Rule(_steps.pattern_of(None), _steps.messages(steps), True, self._place))
        unused_claudes[id(self)] = self

    # Script.

    def on(self, prompt: str | re.Pattern[str], *steps: Step) -> ScriptedClaude:
        """A prompt that contains this text (or matches this expression) is answered by these steps."""
        self._no_file("on")
        if not steps:
            raise TypeError("on: the rule has no answer: pass at least one step")
        self._rules.append(Rule(_steps.pattern_of(prompt), _steps.messages(steps), False, _caller()))
        self._write()
        return self

    def hold(self, prompt: str | None = None) -> Hold:
        """Holds back the answer to a prompt: that of `on(prompt)`, or of the script.
        `.reached()` waits until the prompt arrives, `.release()` lets the answer be sent."""
        self._no_file("hold")
        pattern = _steps.pattern_of(prompt)
        for rule in self._rules:
            if rule.pattern == pattern and rule.steps:
                self._holds += 1
                gate = f"hold-{self._holds}"
                rule.steps[0]["gate"] = gate
                self._write()
                return Hold(self, gate)
        known = ", ".join(r.pattern for r in self._rules) or "none"
        raise LookupError(f"hold: no rule for {prompt!r}; write its on(…) first (there are: {known})")

    # Environment.

    @property
    def directory(self) -> Path:
        """The private directory, which is removed at the end of the block."""
        if self._dir is None:
            self._open()
        assert self._dir is not None
        return self._dir

    @property
    def path(self) -> str:
        """The path of the claude program in this block."""
        return str(self.directory / "bin" / ("claude.exe" if sys.platform == "win32" else "claude"))

    @property
    def toml(self) -> str:
        """The script as a scenario in TOML, which can be saved as a file."""
        unused_claudes.pop(id(self), None)
        if self._file:
            return self._file.read_text(encoding="utf-8")
        text, self._places = _steps.scenario(self._rules, strict=self._strict, seed=self._seed)
        return text

    @property
    def env(self) -> dict[str, str]:
        """Variables for a program that starts claude: `{**os.environ, **claude.env}`."""
        d = self.directory
        env = {
            "PATH": str(d / "bin") + os.pathsep + os.environ.get("PATH", os.defpath),
            "CLAUDE_CONFIG_DIR": str(d / "config"),
            "ANTHROPIC_API_KEY": "claudeless-canary-" + d.name,
            "ANTHROPIC_BASE_URL": self._url or f"{_trap.url()}/{d.name}",  # refuses whoever is not ours
            "CLAUDELESS_CAPTURE": str(self._journal),
            "CLAUDELESS_SCENARIO": str(self._scenario),
            "CLAUDELESS_EXPECT": "defer",
            "CLAUDELESS_GATES": self._gates,
            "CLAUDELESS_RUN": self._run,
        }
        if self._strict:
            env["CLAUDELESS_STRICT"] = "1"
        if self._lane == "real":
            env |= {
                "ANTHROPIC_BASE_URL": self.base_url,
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                "DISABLE_AUTOUPDATER": "1",
                "DISABLE_TELEMETRY": "1",
                "DISABLE_ERROR_REPORTING": "1",
            }
            for name in ("CLAUDELESS_CAPTURE", "CLAUDELESS_SCENARIO", "CLAUDELESS_EXPECT", "CLAUDELESS_STRICT"):
                env.pop(name, None)
        return env

    @property
    def base_url(self) -> str:
        """The script as the Messages API, for the Anthropic SDK. It never ends in /v1."""
        if self._url is None:
            self._url = self._serve()
        return self._url

    def options(self, **options: Any) -> Any:
        """Returns `ClaudeAgentOptions` of the Agent SDK that use this claude; the given options are kept."""
        try:
            from claude_agent_sdk import ClaudeAgentOptions
        except ImportError:
            raise RuntimeError("options() needs the Agent SDK: pip install claude-agent-sdk") from None
        given: Mapping[str, str] = options.pop("env", None) or {}
        return ClaudeAgentOptions(cli_path=self.path, env={**self.env, **given}, **options)

    def terminal(self, *args: str, cols: int = 110, rows: int = 36, env: Mapping[str, str] | None = None, cwd: str | os.PathLike[str] | None = None) -> Terminal:
        """Starts the interactive claude, with these arguments, in a pseudo-terminal. It is closed with this claude."""
        command = [_binary.find(), "screens", "drive", "--size", f"{cols}x{rows}"]
        if self._lane == "real":
            command.append("--real")
        terminal = Terminal([*command, "--", self.path, *args], {**os.environ, **self.env, **(env or {})}, os.fspath(cwd) if cwd is not None else None)
        self._terminals.append(terminal)
        return terminal

    # Results.

    @property
    def calls(self) -> list[Call]:
        """The prompts that the model received, in order."""
        return _journal.calls(self._journal)

    @property
    def tools(self) -> list[tuple[str, dict[str, Any]]]:
        """The tools that the model called, with their input, in order."""
        return _journal.tools(self._journal)

    def verdict(self) -> dict[str, Any]:
        """The verdict so far, in the form of `claudeless verify --json`."""
        return self._verify()

    def _verify(self, *more: str) -> dict[str, Any]:
        report = self.directory / "verdict.json"
        command = [_binary.find(), "verify", str(self._journal), "-s", str(self._scenario), "--json", str(report), *more]
        if not self._strict:
            command.append("--lenient")
        self._journal.touch()
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        try:
            verdict: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            raise ScenarioError(self.mistakes() or f"claudeless verify failed: {done.stderr.strip()}") from None
        return verdict

    def assert_complete(self) -> None:
        """Ends all processes, and raises AssertionError with every problem if there are any."""
        __tracebackhide__ = True  # of pytest
        if text := self.complaint():
            raise AssertionError(text)

    def complaint(self) -> str:
        """Returns all problems at the end, one per line; empty = none. A claude that still runs is a problem and is ended.
        Terminals are closed before."""
        self._close_terminals()
        problems = self._problems("--sweep", self._run)
        return "\n".join([f"claudeless: {len(problems)} problem{'s' if len(problems) > 1 else ''}", *problems]) if problems else ""

    # Context manager.

    def __enter__(self) -> ScriptedClaude:
        self._open()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        __tracebackhide__ = True
        try:
            if kind is None:
                self.assert_complete()
            elif error is not None and sys.version_info >= (3, 11) and (text := self.mistakes()):
                error.add_note("claudeless: the script has mistakes\n" + text)
        finally:
            self._end()

    async def __aenter__(self) -> ScriptedClaude:
        return await asyncio.to_thread(self.__enter__)

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        __tracebackhide__ = True
        await asyncio.to_thread(self.__exit__, kind, error, trace)

    def close(self) -> None:
        """Ends the server and removes the directory. `calls` and `tools` can still be read.

        Raises AssertionError with every problem, unless `assert_complete` or `complaint` was called before, or an exception is being handled."""
        __tracebackhide__ = True
        try:
            if not self._judged and self._dir is not None and self._dir.exists() and sys.exc_info()[0] is None:
                self.assert_complete()
        finally:
            self._end()

    # Implementation.

    _judged = False

    def _end(self) -> None:
        open_claudes.pop(id(self), None)
        unused_claudes.pop(id(self), None)
        self._close_terminals()
        if self._server is not None:
            self._server.terminate()
            self._server.wait(timeout=10)
            self._server = None
        if self._dir is not None:
            self._keep()
            _trap.journals.pop(self._dir.name, None)
            shutil.rmtree(self._dir, ignore_errors=True)
        if self._guard is not None:
            self._guard.communicate()
            self._guard = None

    def _close_terminals(self) -> None:
        while self._terminals:
            self._terminals.pop().close()

    def _open(self) -> None:
        if self._dir is not None:
            return
        unused_claudes.pop(id(self), None)
        binary = _binary.find()
        claude = binary if self._lane == "fake" else real_claude()
        self._dir = Path(tempfile.mkdtemp(prefix="claudeless-"))
        self._guard = _guard(self._dir)
        open_claudes[id(self)] = self
        _trap.journals[self._dir.name] = self._dir / "journal.jsonl"
        for name in ("bin", "config"):
            (self._dir / name).mkdir()
        link = self._dir / "bin" / ("claude.exe" if sys.platform == "win32" else "claude")
        if sys.platform == "win32":
            shutil.copy(claude, link)
        else:
            link.symlink_to(claude)
        self._write()
        if self._file:
            self._check()

    @property
    def _run(self) -> str:
        """The mark of the processes of this claude."""
        return str(self.directory / "run")

    @property
    def _gates(self) -> str:
        return str(self.directory / "gates")

    @property
    def _journal(self) -> Path:
        return self._kept_journal if self._dir is None or not self._dir.exists() else self._dir / "journal.jsonl"

    _kept_journal = Path(os.devnull)

    def _keep(self) -> None:
        """Copies the journal, because tests use `calls` after the block, when the directory is gone."""
        assert self._dir is not None
        journal = self._dir / "journal.jsonl"
        if journal.exists():
            fd, name = tempfile.mkstemp(prefix="claudeless-", suffix=".jsonl")
            os.close(fd)
            shutil.copyfile(journal, name)
            self._kept_journal = Path(name)
            import weakref

            weakref.finalize(self, _unlink, name)

    @property
    def _scenario(self) -> Path:
        return self._file or self.directory / "scenario.toml"

    def _no_file(self, what: str) -> None:
        if self._file:
            raise TypeError(f"{what}: this test already has the scenario file {self._file}; a test can have only one scenario")

    def _write(self) -> None:
        if self._dir is None or self._file:
            return
        beside = self._dir / "scenario.toml.new"
        beside.write_text(self.toml, encoding="utf-8")
        beside.replace(self._dir / "scenario.toml")

    def _check(self) -> None:
        """Closes a claude whose scenario has mistakes, because a block that it does not enter cannot close it."""
        if text := self.mistakes():
            self._end()
            raise ScenarioError(text)

    def mistakes(self) -> str:
        """Returns the errors of the script like `claudeless check`, but with the lines of the test; empty = no errors."""
        if self._dir is None:
            return ""
        done = subprocess.run([_binary.find(), "check", str(self._scenario)], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return ""
        text = (done.stdout + done.stderr).strip()
        if self._file:
            return text
        place = re.compile(re.escape(str(self._scenario)) + r"(?::(\d+)(?::\d+)?)?(?:: )?")
        return place.sub(lambda found: self._place_of(int(found[1] or 0)), text)

    def _serve(self) -> str:
        port_file = self.directory / "port"
        self._server = subprocess.Popen(
            [_binary.find(), "serve", str(self._scenario), "--port-file", str(port_file), "--capture", str(self._journal)],
            env={**os.environ, "CLAUDELESS_GATES": self._gates}, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )
        assert self._server.stderr is not None
        said = []
        for line in self._server.stderr:
            said.append(line.decode(errors="replace"))
            if found := re.search(r"listening on (http://\S+)", said[-1]):
                threading.Thread(target=self._server.stderr.read, daemon=True).start()
                return found.group(1) + "/t/" + secrets.token_hex(4)
        raise ScenarioError(self.mistakes() or "claudeless serve did not start: " + "".join(said).strip())

    def _problems(self, *more: str) -> list[str]:
        self._judged = True
        verdict = self._verify(*more)
        problems = [
            self._at(x) + x["text"] + (f": {x['got']}" if x.get("got") else "") for x in verdict["expectations"] if not x["met"]
        ]
        for f in verdict["findings"]:
            text = self._at(f) + f"{f['text']} [{f['id']}]" + (f"\n    {f['advice']}" if f.get("advice") else "")
            if f["level"] == "error":
                problems.append(text)
            elif f["level"] == "warn" and text not in self._warned:
                self._warned.add(text)
                warnings.warn_explicit(text, ClaudelessWarning, *self._place)
        for u in verdict["unmatched"]:
            if u.get("nearest") and not any(u["prompt"] in p for p in problems):
                problems.append(f"no rule for the prompt {u['prompt']!r}\n    " + "\n    ".join(u["nearest"]))
        return problems

    def _at(self, found: Mapping[str, Any]) -> str:
        """Returns the position of a finding: the line of the test that added the rule, or the line of the file."""
        file, line = found.get("file") or "", found.get("line") or 0
        if not file:
            return ""
        if not self._file and Path(file).name == "scenario.toml":
            return self._place_of(line)
        return f"{file}:{line}: "

    def _place_of(self, line: int) -> str:
        file, number = self._places.get(line) or self._place
        return f"{os.path.relpath(file) if file else 'script'}:{number}: "


open_claudes: dict[int, ScriptedClaude] = {}
"""The claudes that have a directory and were not closed."""
unused_claudes: dict[int, ScriptedClaude] = {}
"""The claudes that have no directory yet, so no program could use them."""


def close_forgotten() -> list[str]:
    """Closes the claudes that were not closed, and returns the problems of each."""
    texts = []
    for claude in list(unused_claudes.values()):
        file, line = claude._place
        claude.close()
        texts.append(f"{os.path.relpath(file)}:{line}: no program used this ScriptedClaude: use it in a `with` block, and pass its `env` or `options()`")
    for claude in list(open_claudes.values()):
        file, line = claude._place
        text = f"{os.path.relpath(file)}:{line}: this ScriptedClaude was never closed: use it in a `with` block, or as the fixture `claude`"
        try:
            text = "\n".join(filter(None, [text, claude.complaint()]))
        except (ScenarioError, OSError) as error:
            text += f"\n{error}"
        finally:
            claude._end()
        texts.append(text)
    return texts


@atexit.register
def _fail_forgotten() -> None:
    """Fails a program that ends with an open claude. Under pytest the plugin has checked this earlier."""
    if texts := close_forgotten():
        print("claudeless: error: " + "\n".join(texts), file=sys.stderr, flush=True)
        sys.stdout.flush()
        os._exit(1)


class ClaudelessWarning(UserWarning):
    """A finding that does not fail the test, such as a rule of a file that answered no prompt."""


class ScenarioError(AssertionError):
    """A scenario with mistakes; the text shows them as `claudeless check` does."""


class Hold:
    """An answer that waits until it is released."""

    def __init__(self, claude: ScriptedClaude, gate: str) -> None:
        self._claude, self._gate = claude, gate

    def reached(self, timeout: float = 30.0) -> bool:
        """Waits until the answer is requested. Raises TimeoutError after timeout seconds."""
        done = self._gates("wait", "--timeout", f"{int(timeout * 1000)}ms")
        if done.returncode != 0:
            raise TimeoutError(f"no request for the answer within {timeout:g} s: {done.stderr.strip()}")
        return True

    def release(self) -> None:
        """Lets the answer be sent, now or when it is requested."""
        done = self._gates("release")
        if done.returncode != 0:
            raise RuntimeError(f"releasing the answer: {done.stderr.strip()}")

    def _gates(self, verb: str, *more: str) -> subprocess.CompletedProcess[str]:
        command = [_binary.find(), "gates", verb, self._gate, *more]
        return subprocess.run(command, env={**os.environ, **self._claude.env}, capture_output=True, text=True, check=False)


def real_claude() -> str:
    """Returns the path of the real claude: CLAUDE_BIN, or the first claude on PATH that is not claudeless."""
    if named := os.environ.get("CLAUDE_BIN"):
        return os.path.realpath(named)
    for directory in os.get_exec_path():
        found = shutil.which("claude", path=directory)
        if found and not _is_ours(found):
            return os.path.realpath(found)
    raise RealClaudeNotFound("lane='real' needs a real claude: name it in CLAUDE_BIN, or put it on PATH")


def _is_ours(claude: str) -> bool:
    done = subprocess.run(
        [claude, "--version"], env={**os.environ, "CLAUDELESS_IDENTIFY": "1"}, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=30,
    )
    return b"claudeless" in done.stdout


class RealClaudeNotFound(RuntimeError):
    """No real claude was found on this machine."""


def _guard(directory: Path) -> subprocess.Popen[bytes] | None:
    """Starts a shell that removes the directory if this program is killed."""
    if sys.platform == "win32":
        return None
    return subprocess.Popen(
        ["/bin/sh", "-c", 'read -r _; rm -rf -- "$1"', "sh", str(directory)],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )


def _caller() -> tuple[str, int]:
    """Returns the file and line outside of this package that called it."""
    frame = sys._getframe(1)
    here = os.path.dirname(__file__)
    while frame and os.path.dirname(frame.f_code.co_filename) == here and frame.f_back:
        frame = frame.f_back
    return (frame.f_code.co_filename, frame.f_lineno)


def _unlink(name: str) -> None:
    try:
        os.unlink(name)
    except OSError:
        pass

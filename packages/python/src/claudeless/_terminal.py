"""Terminal: a pseudo-terminal in which claude runs, and its screen."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from typing import Any, Mapping, Sequence


@dataclass(frozen=True)
class Cell:
    """One character on the screen."""

    text: str
    width: int
    """Columns: 1 or 2."""
    style: str
    """The escape sequence that selects its style; empty = none."""


@dataclass(frozen=True)
class Screen:
    """The content of a terminal at one moment."""

    text: str
    """A line for each row, without the spaces at its end."""
    cells: Sequence[Sequence[Cell]]
    """A list for each row; a wide character is one cell of width 2."""
    title: str
    cols: int
    rows: int
    cursor: tuple[int, int]
    """Column and row, from 0."""
    cursor_visible: bool
    alternate: bool
    """The alternate screen is shown."""

    def __contains__(self, text: str) -> bool:
        return text in self.text


class Terminal:
    """A pseudo-terminal in which claude runs; see `ScriptedClaude.terminal`. It is closed with its claude."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str], cwd: str | None) -> None:
        self._driver = subprocess.Popen(
            command, env=dict(env), cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )

    def wait_for(self, text: str, timeout: float = 15.0) -> None:
        """Waits until the screen contains this text; raises AssertionError with the screen when it does not in time (seconds)."""
        __tracebackhide__ = True
        self._request(wait=text, timeout_ms=max(1, int(timeout * 1000)))

    def type(self, text: str) -> None:
        """Types a text, and waits until the screen shows it, for 3 seconds at most."""
        __tracebackhide__ = True
        self._request(type=text)

    def press(self, *keys: str) -> None:
        """Presses keys: "Enter", "Down", "Esc", "C-c", "BTab", or a character."""
        __tracebackhide__ = True
        self._request(press=" ".join(keys))

    def resize(self, cols: int, rows: int) -> None:
        """Changes the size of the terminal."""
        __tracebackhide__ = True
        self._request(resize=f"{cols}x{rows}")

    @property
    def screen(self) -> Screen:
        """Returns the current content of the terminal."""
        s = self._request(screen=True)["screen"]
        return Screen(
            text=s["text"], cells=[[Cell(**cell) for cell in row] for row in s["cells"]], title=s["title"], cols=s["cols"], rows=s["rows"],
            cursor=(s["cursor"]["col"], s["cursor"]["row"]), cursor_visible=s["cursor"]["visible"], alternate=s["alternate"],
        )

    def close(self) -> None:
        """Ends claude and closes its terminal."""
        self._driver.communicate()

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _request(self, **request: Any) -> dict[str, Any]:
        __tracebackhide__ = True
        stdin, stdout, stderr = self._driver.stdin, self._driver.stdout, self._driver.stderr
        assert stdin and stdout and stderr
        if stdin.closed:
            raise RuntimeError("the terminal is closed")
        try:
            stdin.write(json.dumps(request).encode() + b"\n")
            stdin.flush()
            line = stdout.readline()
        except BrokenPipeError:
            line = b""
        if not line:
            raise RuntimeError("the terminal did not start: " + stderr.read().decode(errors="replace").strip())
        answer: dict[str, Any] = json.loads(line)
        if error := answer.get("error"):
            raise AssertionError("terminal: " + error)
        return answer

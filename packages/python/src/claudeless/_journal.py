"""What the journal tells: the prompts that came and the tools that ran."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterator


@dataclass(frozen=True)
class Call:
    """One prompt that the model was asked."""

    prompt: str
    session_id: str
    pid: int


def entries(journal: Path) -> Iterator[dict[str, Any]]:
    """The lines of a journal; half a line, of a process that was killed, is left out."""
    if not journal.exists():
        return
    with journal.open(encoding="utf-8", errors="replace", newline="\n") as file:
        for line in file:
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            if isinstance(entry, dict):
                yield entry


def calls(journal: Path) -> list[Call]:
    return [
        Call(e.get("prompt", ""), e.get("session_id", ""), e.get("pid", 0))
        for e in entries(journal)
        if e.get("type") == "prompt" and not e.get("injected")
    ]


def tools(journal: Path) -> list[tuple[str, dict[str, Any]]]:
    return [(e["tool"], e.get("input") or {}) for e in entries(journal) if e.get("type") == "tool"]

"""Reads prompts and tool runs from a journal."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterator


@dataclass(frozen=True)
class Call:
    """One prompt that the model received."""

    prompt: str
    session_id: str
    pid: int


def entries(journal: Path) -> Iterator[dict[str, Any]]:
    """The lines of a journal. An incomplete line of a killed process is left out."""
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
    """Returns the prompts of a claude and of the Messages API. A repeated request counts once."""
    found = []
    for e in entries(journal):
        if e.get("type") == "prompt" and not e.get("injected"):
            found.append(Call(e.get("prompt", ""), e.get("session_id", ""), e.get("pid", 0)))
        elif e.get("type") == "request" and e.get("prompt") and e.get("attempt", 1) == 1:
            found.append(Call(e["prompt"], e.get("session", ""), e.get("pid", 0)))
    return found


def tools(journal: Path) -> list[tuple[str, dict[str, Any]]]:
    """Returns the tools that ran in a claude or in a client of the Messages API, in the order of the model's
    calls. Calls of one message run concurrently."""
    found: list[dict[str, Any]] = []
    order: dict[str, int] = {}
    for e in entries(journal):
        if e.get("type") == "model":
            for block in e.get("blocks") or []:
                order.setdefault(block.get("id"), len(order))
        elif e.get("type") == "tool":
            found.append(e)
        elif e.get("type") == "request":
            found += e.get("calls") or []
    found.sort(key=lambda call: order.get(call["tool_use_id"], len(order)))
    return [(call["tool"], call.get("input") or {}) for call in found]

"""Steps of a script, and the scenario that they make."""

from __future__ import annotations

import difflib
import json
import re
from dataclasses import dataclass, field
from typing import Any, Mapping, Sequence, Union


@dataclass(frozen=True)
class ToolCall:
    """A call of a tool: a built-in (`Bash`), `server/tool`, or `mcp__server__tool`."""

    tool: str
    input: Mapping[str, Any] = field(default_factory=dict)
    result: Any = None
    """A canned result; None = the tool really runs."""
    is_error: bool = False
    gate: str | None = None


@dataclass(frozen=True)
class Failure:
    """A failure of the model: `rate_limit`, `overloaded`, … or the name of a fault."""

    type: str
    options: Mapping[str, Any] = field(default_factory=dict)


Step = Union[str, ToolCall, Failure, Sequence[Any]]


def call(tool: str, /, **input: Any) -> ToolCall:
    """The model calls a tool with this input."""
    if not isinstance(tool, str) or not tool:
        raise TypeError(f"call: the first argument is the name of a tool, not {tool!r}")
    return ToolCall(tool, input)


def fail(type: str, /, **options: Any) -> Failure:
    """The model request fails. After `times` failures the next step answers;
    the other options are the keys of a scenario's failure (`retry_after`, `status`, `message`, …)."""
    if not isinstance(type, str) or not type:
        raise TypeError(f"fail: the first argument is the name of a failure, not {type!r}")
    return Failure(type, options)


# Default values for required keys of a failure.
USUAL: dict[str, dict[str, Any]] = {
    "rate_limit": {"retry_after": 1},
    "auth_error": {"message": "Invalid API key"},
    "connection_timeout": {"after_ms": 5000},
    "partial_response": {"partial_text": ""},
    "malformed_json": {"raw": "{"},
    "api_error": {"status": 500},
}


@dataclass
class Rule:
    """One prompt pattern and its steps, with the place in the test that wrote it."""

    pattern: str
    steps: list[dict[str, Any]]
    once: bool
    place: tuple[str, int]


def pattern_of(prompt: str | re.Pattern[str] | None) -> str:
    if prompt is None:
        return '{ type = "any" }'
    if isinstance(prompt, re.Pattern):
        return f'{{ type = "regex", pattern = {toml(prompt.pattern)} }}'
    if isinstance(prompt, str):
        return f'{{ type = "contains", text = {toml(prompt)} }}'
    raise TypeError(f"on: a prompt is a text or a compiled regular expression, not {prompt!r}")


def messages(script: Sequence[Step]) -> list[dict[str, Any]]:
    """The steps of a scenario: one per message of the model. A failure goes with the message behind it."""
    steps: list[dict[str, Any]] = []
    failure: dict[str, Any] | None = None
    for i, step in enumerate(script):
        if isinstance(step, Failure):
            if failure is not None:
                steps.append({"failure": failure})
            failure = {"type": step.type, **USUAL.get(step.type, {}), **step.options}
            continue
        message = message_of(step, i)
        if failure is not None:
            message["failure"], failure = failure, None
        steps.append(message)
    if failure is not None:
        steps.append({"failure": failure})
    return steps


def message_of(step: Step, index: int) -> dict[str, Any]:
    if isinstance(step, str):
        return {"text": step}
    if isinstance(step, ToolCall):
        return {"tool_calls": [tool_call(step)]}
    if isinstance(step, Sequence) and not isinstance(step, (bytes, bytearray)):
        return one_message(step, index)
    raise TypeError(f"step {index + 1} is {step!r}: {not_a_step(step)}")


def one_message(parts: Sequence[Any], index: int) -> dict[str, Any]:
    """A list is one message: texts are the preamble of the calls behind them."""
    texts: list[str] = []
    calls: list[dict[str, Any]] = []
    for part in parts:
        if isinstance(part, ToolCall):
            calls.append(tool_call(part))
        elif not isinstance(part, str):
            raise TypeError(f"step {index + 1} holds {part!r}: in a list there are texts and calls only")
        elif calls:
            raise TypeError(f"step {index + 1}: the text {part!r} comes after a call in the same step; put it into a separate step")
        else:
            texts.append(part)
    message: dict[str, Any] = {}
    if texts:
        message["text"] = "\n".join(texts)
    if calls:
        message["tool_calls"] = calls
    return message


def not_a_step(step: Any) -> str:
    near = difflib.get_close_matches(getattr(step, "__name__", type(step).__name__).lower(), ["call", "fail", "str", "list"], 1)
    hint = f"; did you mean {near[0]}(…)?" if near else ""
    if isinstance(step, Mapping):
        hint = '; a call of a tool is call("Bash", command="ls")'
    return "a step is a str (text), a call, a list (one message) or a fail" + hint


def tool_call(c: ToolCall) -> dict[str, Any]:
    out: dict[str, Any] = {"tool": c.tool, "input": dict(c.input)}
    if c.result is not None:
        out["result"] = c.result
    if c.is_error:
        out["is_error"] = True
    return out


def toml(value: Any) -> str:
    """A value as TOML on one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # TOML's basic strings are JSON's, but for DEL and lone surrogates.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, (int, float)):
        return json.dumps(value, allow_nan=False)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key(k)} = {toml(v)}" for k, v in value.items()) + " }" if value else "{}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(toml(v) for v in value) + "]"
    raise TypeError(f"{value!r} has no form in TOML")


def key(name: Any) -> str:
    text = str(name)
    return text if re.fullmatch(r"[A-Za-z0-9_-]+", text) else toml(text)


def scenario(rules: Sequence[Rule], *, strict: bool, seed: int | None) -> tuple[str, dict[int, tuple[str, int]]]:
    """The TOML of a script, and for each of its lines the place in the test that it comes from."""
    lines: list[str] = []
    places: dict[int, tuple[str, int]] = {}

    def put(text: str, place: tuple[str, int] | None = None) -> None:
        lines.append(text)
        if place:
            places[len(lines)] = place

    if seed is not None:
        put(f"seed = {seed}")
    if strict:
        put("[[expect]]")
        put('unused = "error"')
    for rule in rules:
        if lines:
            put("")
        put("[[responses]]", rule.place)
        put("pattern = " + rule.pattern, rule.place)
        if rule.once:
            put("once = true", rule.place)
        for step in rule.steps:
            put("[[responses.response.steps]]", rule.place)
            for name, value in step.items():
                put(f"{name} = {toml(value)}", rule.place)
    return "\n".join(lines) + "\n", places

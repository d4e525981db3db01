"""The scripts of packages/conformance: the same names mean the same in the three languages."""

import json
import os
import re
import subprocess
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from claudeless import ScriptedClaude, call, fail

SCRIPTS = json.loads((Path(__file__).parents[2] / "conformance" / "scripts.json").read_text(encoding="utf-8"))


def step(form: Any) -> Any:
    if isinstance(form, list):
        return [step(part) for part in form]
    if isinstance(form, dict) and "call" in form:
        return call(form["call"], **form["input"])
    if isinstance(form, dict):
        return fail(form["fail"], **{k: v for k, v in form.items() if k != "fail"})
    return form


def prompt(form: dict[str, str]) -> Any:
    return re.compile(form["regex"]) if "regex" in form else form["text"]


def asked(claude: ScriptedClaude, run: dict[str, Any], directory: Path) -> None:
    if "api" in run:
        over_api(claude, run)
        return
    done = subprocess.run(
        [claude.path, "-p", *run["args"]], env={**os.environ, **claude.env, "CLAUDELESS_RETRY_SCALE": "0"},
        cwd=directory, stdin=subprocess.DEVNULL, capture_output=True, text=True, encoding="utf-8", check=False,
    )
    assert done.returncode == run.get("exit", 0), done.stderr
    if "stdout" in run:
        assert done.stdout == run["stdout"]
    assert re.search(run.get("matches", ""), done.stdout, re.S)


def over_api(claude: ScriptedClaude, run: dict[str, Any]) -> None:
    body = {"model": "claude-opus-5-5", "max_tokens": 100, "messages": [{"role": "user", "content": run["api"]}]}
    request = urllib.request.Request(
        claude.base_url + "/v1/messages", json.dumps(body).encode(),
        {"x-api-key": "x", "anthropic-version": "2023-06-01", "content-type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request) as answer:
            text, status = json.load(answer)["content"][0]["text"], answer.status
    except urllib.error.HTTPError as error:
        text, status = None, error.code
    if "text" in run:
        assert text == run["text"]
    assert status == run.get("status", status)


@pytest.mark.parametrize("case", SCRIPTS, ids=lambda case: case["name"])
def test_conformance(case: dict[str, Any], tmp_path: Path) -> None:
    file = None
    if "file" in case:
        file = tmp_path / "s.toml"
        file.write_text(case["file"], encoding="utf-8")
    claude = ScriptedClaude([step(s) for s in case["script"]] if "script" in case else None, file=file)
    try:
        for rule in case.get("on", []):
            claude.on(prompt(rule["prompt"]), *map(step, rule["steps"]))
        for run in case.get("runs", []):
            asked(claude, run, tmp_path)
        if "prompts" in case:
            assert [c.prompt for c in claude.calls] == case["prompts"]
        if "tools" in case:
            assert [{"name": name, "input": input} for name, input in claude.tools] == case["tools"]
        problems = claude._problems()
        wanted = case.get("problems", [])
        assert bool(problems) == bool(wanted), problems
        for want in wanted:
            assert any(re.search(want, problem) for problem in problems), problems
    finally:
        claude.close()

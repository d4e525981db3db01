"""The pytest plugin: fixtures `claude` and `claude_session`, marker `claudeless`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Generator, Iterator

import pytest

from ._scripted import LANES, RealClaudeNotFound, ScenarioError, ScriptedClaude, close_forgotten, real_claude

VARIABLES_OF_SESSIONS = ("CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_AUTH_TOKEN")


FAILED = pytest.StashKey[bool]()
CHECKED = pytest.StashKey[dict[Path, str]]()
CLAUDE = pytest.StashKey[ScriptedClaude]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if call.when == "call":
        item.stash[FAILED] = report.failed
        if report.failed and (scripted := item.stash.get(CLAUDE, None)) and (text := scripted.mistakes()):
            report.sections.append(("claudeless", text))
    return report


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "claudeless(scenario, lane='fake'|'real'|'both', strict=True): the `claude` fixture plays this file; with 'both' the test "
        "runs twice, the second time with the real claude where there is one",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test with lane='both' runs twice."""
    marker = metafunc.definition.get_closest_marker("claudeless")
    if marker and marker.kwargs.get("lane") == "both" and "_claudeless_lane" in metafunc.fixturenames:
        metafunc.parametrize("_claudeless_lane", list(LANES), indirect=True)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """A marker or a scenario with mistakes fails the tests that name it, and no others."""
    marker = item.get_closest_marker("claudeless")
    if marker is None:
        return
    text = mistake_of_marker(marker)
    if not text and (scenario := scenario_of(item, marker)) and (text := mistakes(scenario, item.config.stash.setdefault(CHECKED, {}))):
        text = "the scenario of this test has mistakes\n" + text
    if text:
        file, line, _ = item.location
        pytest.fail(f"{file}:{(line or 0) + 1}: {text}", pytrace=False)


def mistake_of_marker(marker: pytest.Mark) -> str:
    """Returns what is wrong with the arguments of a marker; empty = nothing."""
    unknown = [name for name in marker.kwargs if name not in ("scenario", "lane", "strict")]
    if unknown:
        return f"@pytest.mark.claudeless has no argument {unknown[0]!r}: it takes a scenario, lane= and strict="
    if len(marker.args) + ("scenario" in marker.kwargs) > 1:
        return "@pytest.mark.claudeless takes one scenario: a test plays one file"
    return ""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """A marker of a test that does not use the fixture has no effect, so that the test fails."""
    yield
    if CLAUDE not in item.stash and any(marker.name == "claudeless" for marker in item.own_markers):
        pytest.fail("@pytest.mark.claudeless is for the fixture `claude`, which this test does not use: add `claude` to its parameters", pytrace=False)


def mistakes(file: Path, checked: dict[Path, str]) -> str:
    """Returns the errors of a scenario file, which is checked once; empty = no errors."""
    if file not in checked:
        checked[file] = "" if file.exists() else f"{file} does not exist"
        if not checked[file]:
            claude = ScriptedClaude(file=file)
            try:
                claude._open()
            except ScenarioError as error:
                checked[file] = str(error)
            finally:
                claude._end()
    return checked[file]


def scenario_of(item: pytest.Item, marker: pytest.Mark) -> Path | None:
    """Returns the scenario file that the marker names, or None."""
    given = marker.args[0] if marker.args else marker.kwargs.get("scenario")
    return Path(item.path.parent, str(given)) if given is not None else None


@pytest.fixture
def _claudeless_lane(request: pytest.FixtureRequest) -> str:
    lane: str = getattr(request, "param", "")
    if not lane:
        marker = request.node.get_closest_marker("claudeless")
        lane = (marker.kwargs.get("lane") if marker else None) or "fake"
    if lane not in LANES:
        raise pytest.UsageError(f"{request.node.nodeid}: lane is {lane!r}, not one of {', '.join((*LANES, 'both'))}")
    if lane == "real":
        try:
            real_claude()
        except RealClaudeNotFound as error:
            pytest.skip(str(error))
    return lane


FORGOTTEN = pytest.StashKey[list[str]]()


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """A claude that was never closed was never judged: it fails the run."""
    texts = session.config.stash.setdefault(FORGOTTEN, [])
    texts += close_forgotten()
    if (output := getattr(session.config, "workeroutput", None)) is not None:  # of pytest-xdist
        output["claudeless"] = texts
    elif texts and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """The problems that a worker of pytest-xdist found."""
    node.config.stash.setdefault(FORGOTTEN, []).extend((getattr(node, "workeroutput", None) or {}).get("claudeless", []))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for text in config.stash.get(FORGOTTEN, []):
        terminalreporter.section("claudeless", red=True)
        terminalreporter.line(text)


def judge(scripted: ScriptedClaude) -> None:
    """Fails with the problems, and without stack frames of this package."""
    try:
        text = scripted.complaint()
    except ScenarioError as error:
        text = str(error)
    if text:
        pytest.fail(text, pytrace=False)


@pytest.fixture
def claude(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, _claudeless_lane: str) -> Iterator[ScriptedClaude]:
    """A claude for this test, first on PATH and in the environment; the test says `claude.on(…)`."""
    marker = request.node.get_closest_marker("claudeless")
    options: dict[str, Any] = {"lane": _claudeless_lane}
    if marker:
        options["strict"] = marker.kwargs.get("strict", True)
        options["file"] = scenario_of(request.node, marker)
    scripted = request.node.stash[CLAUDE] = ScriptedClaude(**options).__enter__()
    scripted._place = (str(request.node.path), (request.node.location[1] or 0) + 1)
    try:
        for name in VARIABLES_OF_SESSIONS:
            monkeypatch.delenv(name, raising=False)
        for name, value in scripted.env.items():
            monkeypatch.setenv(name, value)
        yield scripted
        if not request.node.stash.get(FAILED, False):  # what a failed test left undone says nothing new
            judge(scripted)
    finally:
        scripted._end()


@pytest.fixture(scope="session")
def claude_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScriptedClaude]:
    """One claude for all tests of the session (of one worker): for programs that are started once. It is judged at the end."""
    scripted = ScriptedClaude()
    saved = dict(os.environ)
    with scripted:
        for name in VARIABLES_OF_SESSIONS:
            os.environ.pop(name, None)
        os.environ.update(scripted.env)
        try:
            yield scripted
        finally:
            os.environ.clear()
            os.environ.update(saved)

"""The pytest plugin, in separate pytest runs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from claudeless._binary import find

pytest_plugins = ["pytester"]


def test_fixture(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import subprocess
        from claudeless import call, fail

        def test_cli(claude):
            claude.on("triage", call("Bash", command="echo 1"), "Parser bug.")
            claude.on("deploy", fail("overloaded", times=2), "Done.")
            for prompt, want in (("triage", "Parser bug."), ("deploy", "Done.")):
                out = subprocess.run(["claude", "-p", prompt, "--allowedTools", "Bash"], check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL)
                assert out.stdout.strip() == want
        """
    )
    pytester.runpytest_subprocess("-q").assert_outcomes(passed=1)


def test_failure_of_the_verdict(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        def test_unused(claude):
            claude.on("triage", "Parser bug.")
        """
    )
    result = pytester.runpytest_subprocess("-q")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*test_failure_of_the_verdict.py:2*"])


def test_failing_test_is_not_judged_as_well(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        def test_broken(claude):
            claude.on("triage", "Parser bug.")
            assert False, "mine"
        """
    )
    pytester.runpytest_subprocess("-q").assert_outcomes(failed=1)


def test_marker(pytester: pytest.Pytester) -> None:
    pytester.makefile(".toml", s='[[responses]]\npattern = { type = "any" }\nresponse = "from a file"\n')
    pytester.makepyfile(
        """
        import subprocess, pytest

        @pytest.mark.claudeless("s.toml", lane="both")
        def test_file(claude):
            out = subprocess.run(["claude", "-p", "x"], check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL)
            assert out.stdout == "from a file\\n"
        """
    )
    pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider").assert_outcomes(passed=1, skipped=1)


def test_mistakes_of_a_file_fail_its_test_alone(pytester: pytest.Pytester) -> None:
    pytester.makefile(".toml", s="[[responses]]\npatern = 5\n")
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.claudeless("s.toml")
        def test_file(claude): ...

        @pytest.mark.claudeless("nope.toml")
        def test_nope(claude): ...

        def test_other(): ...
        """
    )
    result = pytester.runpytest_subprocess("-q")
    result.assert_outcomes(passed=1, errors=2)
    result.stdout.fnmatch_lines(["*test_mistakes_of_a_file_fail_its_test_alone.py:3: *", "*s.toml:2*", "*nope.toml does not exist*"])


def test_mistakes_of_a_script_point_at_the_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import subprocess
        from claudeless import ScriptedClaude, fail

        def test_failing(claude):
            claude.on("x", fail("overlode"))
            subprocess.run(["claude", "-p", "x"], check=True, capture_output=True, stdin=subprocess.DEVNULL)

        def test_passing(claude):
            claude.on("x", fail("overlode"))
            subprocess.run(["claude", "-p", "x"], capture_output=True, stdin=subprocess.DEVNULL)

        def test_block():
            with ScriptedClaude([fail("overlode")]) as c:
                subprocess.run([c.path, "-p", "x"], env=c.env, check=True, capture_output=True, stdin=subprocess.DEVNULL)
        """
    )
    result = pytester.runpytest_subprocess("-q")
    result.assert_outcomes(passed=1, failed=2, errors=1)
    for line in (5, 9, 13):
        result.stdout.fnmatch_lines([f"*point_at_the_test.py:{line}: *overlode*"])
    assert "ScenarioError" not in result.stdout.str()


def test_session(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import subprocess

        def test_one(claude_session):
            claude_session.on("one", "1")
            assert subprocess.run(["claude", "-p", "one"], capture_output=True, text=True, stdin=subprocess.DEVNULL).stdout == "1\\n"

        def test_two(claude_session):
            assert [c.prompt for c in claude_session.calls] == ["one"]
        """
    )
    pytester.runpytest_subprocess("-q").assert_outcomes(passed=2)


def test_parallel(pytester: pytest.Pytester) -> None:
    pytest.importorskip("xdist")
    pytester.makepyfile(
        """
        import subprocess, pytest

        @pytest.mark.parametrize("n", range(200))
        def test_many(claude, n):
            claude.on(f"number {n}.", f"answer {n}")
            out = subprocess.run(["claude", "-p", f"number {n}."], capture_output=True, text=True, stdin=subprocess.DEVNULL)
            assert out.stdout == f"answer {n}\\n"
            assert [c.prompt for c in claude.calls] == [f"number {n}."]
        """
    )
    pytester.runpytest_subprocess("-q", "-n", "4").assert_outcomes(passed=200)


def test_a_claude_of_ours_is_no_real_one(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "claude").symlink_to(find())
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.delenv("CLAUDE_BIN", raising=False)
    pytester.makefile(".toml", s='default_response = "x"')
    pytester.makepyfile(
        """
        import subprocess, pytest

        @pytest.mark.claudeless("s.toml", lane="both")
        def test_file(claude):
            subprocess.run(["claude", "-p", "x"], stdin=subprocess.DEVNULL)
        """
    )
    pytester.runpytest_subprocess("-q").assert_outcomes(passed=1, skipped=1)


@pytest.mark.parametrize("workers", [[], ["-n", "1"]])
def test_never_closed_fails_the_run(pytester: pytest.Pytester, workers: list[str]) -> None:
    pytester.makepyfile(
        """
        import subprocess
        from claudeless import ScriptedClaude

        def test_forgotten():
            claude = ScriptedClaude(["hi"])
            subprocess.run([claude.path, "-p", "x"], env=claude.env, stdin=subprocess.DEVNULL)
        """
    )
    result = pytester.runpytest_subprocess("-q", *workers)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*test_never_closed_fails_the_run.py:5: this ScriptedClaude was never closed*"])


def test_close_judges(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import subprocess
        from claudeless import ScriptedClaude

        def closed(*prompts, error=None):
            claude = ScriptedClaude(["hi"])
            try:
                for prompt in prompts:
                    subprocess.run([claude.path, "-p", prompt], env=claude.env, stdin=subprocess.DEVNULL)
                if error:
                    raise error
            finally:
                claude.close()

        def test_complete():
            closed("x")

        def test_second_prompt():
            closed("x", "unexpected")

        def test_failed_before():
            closed("x", "unexpected", error=ValueError("of the test"))
        """
    )
    result = pytester.runpytest_subprocess("-q")
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(["*AssertionError: claudeless: *", "*no rule matches the prompt \"unexpected\"*", "*ValueError: of the test*"])


def test_never_closed_fails_a_program(pytester: pytest.Pytester) -> None:
    file = pytester.makepyfile(program="import claudeless\nclaude = claudeless.ScriptedClaude(['hi'])\nclaude.path\n")
    result = pytester.runpython(file)
    assert result.ret == 1
    result.stderr.fnmatch_lines(["*program.py:2: this ScriptedClaude was never closed*"])


def test_a_claude_of_others_is_refused_at_once(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import json, os, urllib.request, urllib.error

        def test_bundled(claude):
            request = urllib.request.Request(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", b"{}", {"User-Agent": "claude-cli/2.1.329"})
            try:
                urllib.request.urlopen(request, timeout=5)
            except urllib.error.HTTPError as error:
                assert error.code == 403
                assert "claude.options(" in json.load(error)["error"]["message"]
        """
    )
    result = pytester.runpytest_subprocess("-q")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*a real claude was started instead of claudeless: claude-cli/2.1.329 [[]G01]*", "*claude.options(*"])


def test_markers_that_have_no_effect(pytester: pytest.Pytester) -> None:
    pytester.makefile(".toml", s='[[responses]]\npattern = { type = "any" }\nresponse = "from a file"\n')
    pytester.makepyfile(
        """
        import subprocess, pytest

        def run(): return subprocess.run(["claude", "-p", "x"], capture_output=True, text=True, stdin=subprocess.DEVNULL).stdout

        @pytest.mark.claudeless("s.toml")
        def test_without_fixture(): ...

        @pytest.mark.claudeless("s.toml", lanes="both")
        def test_keyword(claude): run()

        @pytest.mark.claudeless("s.toml", "s.toml")
        def test_two(claude): run()

        @pytest.mark.claudeless(scenario="s.toml")
        def test_named(claude): assert run() == "from a file\\n"

        @pytest.mark.claudeless("s.toml")
        class TestOfClass:
            def test_uses_it(self, claude): assert run() == "from a file\\n"
            def test_uses_it_not(self): ...

        @pytest.mark.claudeless("s.toml")
        def test_asked_for_late(request):
            request.getfixturevalue("claude")
            run()
        """
    )
    result = pytester.runpytest_subprocess("-q")
    result.assert_outcomes(passed=4, failed=1, errors=2)
    result.stdout.fnmatch_lines(["*no argument 'lanes'*", "*takes one scenario*", "*add `claude` to its parameters*"])


def test_warnings_are_shown(pytester: pytest.Pytester) -> None:
    rule = '[[responses]]\npattern = { type = "contains", text = "x" }\nresponse = "hello"\n'
    pytester.makefile(".toml", s=rule + rule)
    pytester.makepyfile(
        """
        import subprocess, pytest

        @pytest.mark.claudeless("s.toml")
        def test_rule_without_prompt(claude):
            subprocess.run(["claude", "-p", "x"], stdin=subprocess.DEVNULL)
        """
    )
    result = pytester.runpytest_subprocess("-q")
    result.assert_outcomes(passed=1, warnings=1)
    result.stdout.fnmatch_lines(["*test_warnings_are_shown.py:3: ClaudelessWarning: *s.toml:4: the rule responses*answered no prompt [[]S13]*"])
    pytester.runpytest_subprocess("-q", "-W", "error").assert_outcomes(passed=1, errors=1)


def test_a_claude_that_nothing_uses_fails_the_run(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        from claudeless import ScriptedClaude

        def test_it():
            ScriptedClaude(["hi"])

        def test_saved():
            assert "hi" in ScriptedClaude(["hi"]).toml
        """
    )
    result = pytester.runpytest_subprocess("-q")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*test_a_claude_that_nothing_uses_fails_the_run.py:4: no program used this ScriptedClaude*"])

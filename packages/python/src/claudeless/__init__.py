"""A scripted claude for tests: the same events as the real one, no tokens.

    from claudeless import ScriptedClaude, call, fail

    async with ScriptedClaude([call("Bash", command="git log -1"), "Parser bug."]) as claude:
        async for message in query(prompt="triage", options=claude.options(allowed_tools=["Bash"])):
            ...
    assert claude.calls[0].prompt == "triage"

A step is a text, a `call`, a list (one message), or a `fail`. Leaving the block
fails the test when a step was not reached, a prompt had no rule, or the caller
treated claude in a way that breaks with the real one.
"""

from ._journal import Call
from ._scripted import ClaudelessWarning, Hold, ScriptedClaude
from ._steps import Failure, Step, ToolCall, call, fail
from ._terminal import Cell, Screen, Terminal

__all__ = ["Call", "Cell", "ClaudelessWarning", "Failure", "Hold", "Screen", "ScriptedClaude", "Step", "Terminal", "ToolCall", "call", "fail"]


def __getattr__(name: str) -> str:
    """Returns `__version__`, which is read from the installed package on first use."""
    if name == "__version__":
        from importlib.metadata import version

        return version("claudeless")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

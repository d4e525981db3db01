import asyncio

import pytest
from claudeless import call, fail
from triage import triage


def test_the_answer_comes_back(claude):
    claude.on("triage issue 7", call("Bash", command="echo log"), "A bug in the parser.")
    assert asyncio.run(triage(7, claude.options(allowed_tools=["Bash"]))) == "A bug in the parser."
    assert claude.tools == [("Bash", {"command": "echo log"})]


def test_an_overloaded_model_is_asked_again(claude):
    claude.on("triage", fail("overloaded", times=2), "A feature request.")
    assert asyncio.run(triage(8, claude.options())) == "A feature request."


def test_a_model_that_stays_overloaded_is_an_error(claude):
    claude.on("triage", fail("overloaded"))
    with pytest.raises(Exception, match="529"):
        asyncio.run(triage(9, claude.options()))

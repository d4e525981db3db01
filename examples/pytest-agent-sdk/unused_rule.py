"""A test that fails: it scripts a prompt that it never sends."""
import asyncio

from triage import triage


def test_unused_rule(claude):
    claude.on("triage", "A bug in the parser.")
    claude.on("deploy", "Done.")
    asyncio.run(triage(7, claude.options()))

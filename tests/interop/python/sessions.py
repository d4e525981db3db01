"""Sessions as the SDK's functions read and write them: the files of the CLI, and files that the SDK has changed."""

import json
import os
from pathlib import Path

from claude_agent_sdk import (
    AgentDefinition,
    ClaudeSDKClient,
    InMemorySessionStore,
    UserMessage,
    delete_session,
    fork_session,
    fork_session_via_store,
    get_session_info,
    get_session_info_from_store,
    get_session_messages,
    get_session_messages_from_store,
    get_subagent_messages,
    import_session_to_store,
    list_sessions,
    list_sessions_from_store,
    list_subagents,
    list_subagents_from_store,
    query,
    rename_session,
    rename_session_via_store,
    tag_session,
    tag_session_via_store,
)
from harness import ask, check, equal, result, run, texts


def here(p):
    """Points the functions of the SDK to the directory in this variable."""
    os.environ["CLAUDE_CONFIG_DIR"] = str(p.dir / "config")
    return str(p.dir)


async def turn(p, prompt, **options):
    messages = [m async for m in query(prompt=prompt, options=p.options(**options))]
    return result(messages).session_id, texts(messages)


def conversation(messages):
    """Returns the roles and texts of the messages of get_session_messages."""
    out = []
    for m in messages:
        content = m.message["content"]
        if not isinstance(content, str):
            content = "".join(b.get("text", b["type"]) for b in content)
        out.append((m.type, content))
    return out


# Checklist rows 35 and 36: the description of a session, and its messages.
@check
async def reading(p):
    dir = here(p)
    first, _ = await turn(p, "say one")
    await turn(p, f"write {p.dir}/a.txt text", resume=first, permission_mode="acceptEdits")
    other, _ = await turn(p, "say other")
    infos = {i.session_id: i for i in list_sessions(dir)}
    equal(set(infos), {first, other})
    info = get_session_info(first, dir)
    equal((info.summary, info.first_prompt, info.cwd, info.custom_title, info.tag), (f"write {p.dir}/a.txt text", "say one", dir, None, None))
    assert info.created_at and info.file_size and info.last_modified, info
    messages = get_session_messages(first, dir)
    equal(
        conversation(messages),
        [("user", "say one"), ("assistant", "one"), ("user", f"write {p.dir}/a.txt text"), ("assistant", "tool_use"), ("user", "tool_result"),
         ("assistant", f"done: File created successfully at: {p.dir}/a.txt (file state is current in your context — no need to Read it back)")],
    )
    equal(conversation(get_session_messages(first, dir, limit=2, offset=1)), [("assistant", "one"), ("user", f"write {p.dir}/a.txt text")])
    equal({m.session_id for m in messages}, {first})


# Checklist rows 35 and 36: the SDK changes titles and tags, copies and deletes sessions; the CLI resumes the result.
@check
async def changing(p):
    dir = here(p)
    first, _ = await turn(p, "say one")
    await turn(p, "say two", resume=first)
    rename_session(first, "A name", dir)
    tag_session(first, "a tag", dir)
    info = get_session_info(first, dir)
    equal((info.custom_title, info.summary, info.tag), ("A name", "A name", "a tag"))
    equal(await turn(p, "say three", resume=first), (first, ["three"]))
    equal(await turn(p, "say four", resume="A name"), (first, ["four"]))
    equal((get_session_info(first, dir).custom_title, get_session_info(first, dir).tag), ("A name", "a tag"))
    tag_session(first, None, dir)
    equal(get_session_info(first, dir).tag, None)

    messages = get_session_messages(first, dir)
    copy = fork_session(first, dir, up_to_message_id=messages[3].uuid, title="Copy").session_id
    equal([text for _, text in conversation(get_session_messages(copy, dir))], ["say one", "one", "say two", "two"])
    equal(await turn(p, "say five", resume=copy), (copy, ["five"]))
    equal([text for _, text in conversation(get_session_messages(copy, dir))][-2:], ["say five", "five"])

    delete_session(first, dir)
    equal([i.session_id for i in list_sessions(dir)], [copy])
    try:
        await turn(p, "say six", resume=first)
    except Exception as e:
        assert first in str(e), e
        p.stderr.clear()
    else:
        raise AssertionError("a deleted session was resumed")


# Checklist row 36: forks by the CLI, --continue, and a history that is cut.
@check
async def resuming(p):
    dir = here(p)
    first, _ = await turn(p, "say one")
    await turn(p, "say two", continue_conversation=True)
    fork, _ = await turn(p, "say three", resume=first, fork_session=True)
    assert fork != first
    equal([t for _, t in conversation(get_session_messages(fork, dir))], ["say one", "one", "say two", "two", "say three", "three"])
    equal(len(get_session_messages(first, dir)), 4)
    messages = get_session_messages(first, dir)
    cut, _ = await turn(p, "say four", resume=first, fork_session=True, resume_session_at=messages[1].uuid, resume_drops_turn=messages[2].uuid)
    equal([t for _, t in conversation(get_session_messages(cut, dir))], ["say one", "one", "say four", "four"])
    chosen = "12345678-1234-4234-8234-123456789abc"
    equal((await turn(p, "say five", session_id=chosen))[0], chosen)
    equal(get_session_info(chosen, dir).first_prompt, "say five")


# Checklist rows 39 and 46: transcripts of sub-agents.
@check
async def subagents(p):
    dir = here(p)
    agents = {"greeter": AgentDefinition(description="Greets", prompt="You greet.", background=False)}
    options = p.options(agents=agents, allowed_tools=["Agent", "Task"], forward_subagent_text=True)
    messages = [m async for m in query(prompt="delegate say hello inside", options=options)]
    session = result(messages).session_id
    inner = [m for m in messages if getattr(m, "parent_tool_use_id", None)]
    assert inner, messages
    found = list_subagents(session, dir)
    equal(len(found), 1)
    inside = get_subagent_messages(session, found[0], dir)
    equal([t for _, t in conversation(inside)], ["say hello inside", "hello inside"])
    equal({m.parent_tool_use_id for m in inside}, {inner[0].parent_tool_use_id})


# Checklist row 38: a store instead of files, written by the mirror and read by resume.
@check
async def store(p):
    dir = here(p)
    kept = InMemorySessionStore()
    session, _ = await turn(p, "say one", session_store=kept)
    equal([s.session_id for s in await list_sessions_from_store(kept, dir)], [session])
    equal(conversation(await get_session_messages_from_store(kept, session, dir)), [("user", "say one"), ("assistant", "one")])
    await rename_session_via_store(kept, session, "Stored", dir)
    await tag_session_via_store(kept, session, "t", dir)
    info = await get_session_info_from_store(kept, session, dir)
    equal((info.custom_title, info.tag), ("Stored", "t"))
    for path in Path(p.dir, "config", "projects").glob("*/*.jsonl"):
        path.unlink()
    equal(await turn(p, "say two", session_store=kept, resume=session), (session, ["two"]))
    equal([t for _, t in conversation(await get_session_messages_from_store(kept, session, dir))], ["say one", "one", "say two", "two"])
    copy = (await fork_session_via_store(kept, session, dir)).session_id
    equal(await turn(p, "say three", session_store=kept, resume=copy), (copy, ["three"]))
    equal(await list_subagents_from_store(kept, session, dir), [])

    local, _ = await turn(p, "say local")
    other = InMemorySessionStore()
    await import_session_to_store(local, other, directory=dir)
    equal(conversation(await get_session_messages_from_store(other, local, dir)), [("user", "say local"), ("assistant", "local")])


# Checklist row 68: checkpoints remain after the process ends, and a fork has them.
@check
async def checkpoints(p):
    here(p)
    file = p.dir / "a.txt"
    file.write_text("zero\n")
    options = dict(enable_file_checkpointing=True, permission_mode="acceptEdits", extra_args={"replay-user-messages": None})
    ids = []
    async with ClaudeSDKClient(p.options(**options)) as client:
        for text in ("one", "two"):
            messages = await ask(client, f"write {file} {text}")
            ids += [m.uuid for m in messages if isinstance(m, UserMessage) and isinstance(m.content, str)]
    session = result(messages).session_id
    for more in ({}, {"fork_session": True}):
        file.write_text("by hand\n")
        async with ClaudeSDKClient(p.options(resume=session, **options, **more)) as client:
            await client.rewind_files(ids[1])
            equal(file.read_text(), "one\n")
            messages = await ask(client, f"write {file} three")
            await client.rewind_files(ids[0])
            equal(file.read_text(), "zero\n")


# Checklist rows 40 and 41: settings of the state directory and of the project.
@check
async def settings(p):
    here(p)
    config = p.dir / "config"
    config.mkdir()
    (config / "settings.json").write_text(json.dumps({"outputStyle": "Explanatory"}))
    (p.dir / ".claude").mkdir()
    (p.dir / ".claude" / "settings.json").write_text(json.dumps({"outputStyle": "project-style"}))
    for sources, want in ((["user"], "Explanatory"), (["user", "project"], "project-style"), ([], "default")):
        messages = [m async for m in query(prompt="say hi", options=p.options(setting_sources=sources))]
        equal(messages[0].data["output_style"], want)


if __name__ == "__main__":
    run()

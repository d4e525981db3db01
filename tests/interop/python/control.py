"""Drives claudeless with only the public API of the Python Agent SDK: the checklist of docs/wire/cli-contract.md, row by row."""

import anyio
from claude_agent_sdk import (
    ClaudeSDKClient,
    HookMatcher,
    PermissionResultAllow,
    PermissionResultDeny,
    ProcessError,
    ResultMessage,
    SystemMessage,
    UserMessage,
    create_sdk_mcp_server,
    query,
    tool,
)
from harness import ask, check, equal, result, run, texts


# Checklist rows 1 to 8, 11, 12, 14, 16, 17: a prompt as a string.
@check
async def one_prompt(p):
    messages = [m async for m in query(prompt="say hello", options=p.options())]
    assert isinstance(messages[0], SystemMessage) and messages[0].subtype == "init", messages[0]
    equal(texts(messages), ["hello"])
    r = result(messages)
    equal((r.subtype, r.is_error, r.num_turns, r.result), ("success", False, 1, "hello"))
    assert isinstance(r.total_cost_usd, float) and r.total_cost_usd > 0, r.total_cost_usd


# Checklist rows 10, 16 and 65: prompts as a stream, finished after the end of stdin; prompts that wait share a turn.
@check
async def prompt_stream(p):
    async def prompts():
        for text in ("take time", "say two", "say three"):
            yield {"type": "user", "message": {"role": "user", "content": text}, "parent_tool_use_id": None, "session_id": "x"}

    messages = [m async for m in query(prompt=prompts(), options=p.options())]
    equal([m.result for m in messages if isinstance(m, ResultMessage)], ["took it", "two\nsay three"])


# Checklist row 15: several turns in one process, one session.
@check
async def conversation(p):
    async with ClaudeSDKClient(p.options()) as client:
        first = await ask(client, "say one")
        second = await ask(client, "say two")
    equal(texts(first) + texts(second), ["one", "two"])
    equal(result(first).session_id, result(second).session_id)


# Checklist row 8: the answer to initialize.
@check
async def server_info(p):
    async with ClaudeSDKClient(p.options()) as client:
        info = await client.get_server_info()
    assert {"clear", "compact"} <= {c["name"] for c in info["commands"]}, info["commands"]
    equal(info["output_style"], "default")
    assert "default" in info["available_output_styles"]


# Checklist row 8: agents of 300 KB.
@check
async def large_agents(p):
    from claude_agent_sdk import AgentDefinition

    agents = {f"agent-{i}": AgentDefinition(description="d", prompt="x" * 15_000) for i in range(20)}
    messages = [m async for m in query(prompt="say hi", options=p.options(agents=agents))]
    assert set(agents) <= set(messages[0].data["agents"]), messages[0].data["agents"]


# Checklist row 29: an interrupt ends the turn, the next prompt works.
@check
async def interrupt(p):
    async with ClaudeSDKClient(p.options()) as client:
        await client.query("count slowly")
        await anyio.sleep(0.3)
        with anyio.fail_after(10):
            await client.interrupt()
            messages = [m async for m in client.receive_response()]
        equal((result(messages).subtype, result(messages).is_error), ("error_during_execution", True))
        equal(texts(await ask(client, "say again")), ["again"])


# Checklist row 30: mode and model.
@check
async def dynamic_control(p):
    async with ClaudeSDKClient(p.options()) as client:
        await client.set_permission_mode("acceptEdits")
        await client.set_model("claude-haiku-5-5")
        messages = await ask(client, "which model")
        equal(texts(messages), ["claude-haiku-5-5"])
        equal(messages[0].data["permissionMode"], "acceptEdits")
        await client.set_model(None)
        equal(texts(await ask(client, "which model")), ["claude-opus-5-5"])
        await client.set_permission_mode("default")
        try:
            await client.set_permission_mode("bypassPermissions")
        except Exception as e:
            assert "--dangerously-skip-permissions" in str(e), e
        else:
            raise AssertionError("bypassPermissions was accepted")


# Checklist rows 23, 24, 25: the host decides; allowed calls really run.
@check
async def permission_allow(p):
    asked = []

    async def decide(name, data, context):
        asked.append((name, data, [s.type for s in context.suggestions]))
        return PermissionResultAllow()

    file = p.dir / "out.txt"
    async with ClaudeSDKClient(p.options(can_use_tool=decide)) as client:
        messages = await ask(client, f"write {file} text")
        equal(file.read_text(), "text\n")
        equal(asked, [("Write", {"file_path": str(file), "content": "text\n"}, ["setMode"])])
        await ask(client, "run echo free")
        equal(len(asked), 1)
    equal(result(messages).permission_denials, [])


# Checklist row 23: changed input.
@check
async def permission_changed(p):
    other = p.dir / "other.txt"

    async def decide(name, data, context):
        return PermissionResultAllow(updated_input={"file_path": str(other), "content": "changed"})

    async with ClaudeSDKClient(p.options(can_use_tool=decide)) as client:
        await ask(client, f"write {p.dir}/out.txt text")
    equal((other.read_text(), (p.dir / "out.txt").exists()), ("changed", False))


# Checklist rows 23 and 53: denied, denied with an interrupt, failed.
@check
async def permission_refused(p):
    verdicts = [PermissionResultDeny(message="host says no"), PermissionResultDeny(message="stop", interrupt=True), RuntimeError("boom")]

    async def decide(name, data, context):
        verdict = verdicts.pop(0)
        if isinstance(verdict, Exception):
            raise verdict
        return verdict

    async with ClaudeSDKClient(p.options(can_use_tool=decide)) as client:
        messages = await ask(client, f"write {p.dir}/a text")
        equal(result(messages).result, "refused: host says no")
        equal([d["tool_name"] for d in result(messages).permission_denials], ["Write"])
        messages = await ask(client, f"write {p.dir}/a text")
        equal((result(messages).subtype, result(messages).terminal_reason), ("error_during_execution", "aborted_tools"))
        messages = await ask(client, f"write {p.dir}/a text")
        equal(result(messages).result, "refused: Tool permission request failed: Error: boom")
    assert not (p.dir / "a").exists()


# Checklist row 53: a rule in the answer prevents later questions.
@check
async def permission_remembered(p):
    asked = []

    async def decide(name, data, context):
        asked.append(name)
        return PermissionResultAllow(updated_permissions=context.suggestions)

    async with ClaudeSDKClient(p.options(can_use_tool=decide)) as client:
        await ask(client, f"write {p.dir}/a one")
        messages = await ask(client, f"write {p.dir}/b two")
    equal(asked, ["Write"])
    equal(messages[0].data["permissionMode"], "acceptEdits")


# Checklist rows 53 and 57: a PermissionRequest hook and the host are asked at once; the first decision is used, the other
# question is withdrawn.
@check
async def permission_race(p):
    withdrawn = []
    asked = anyio.Event()

    async def decide(name, data, context):
        asked.set()
        try:
            await anyio.sleep(30)
        except BaseException:
            withdrawn.append(name)
            raise
        return PermissionResultDeny(message="too late")

    async def first(data, tool_use_id, context):
        await asked.wait()  # otherwise the SDK may cancel the question before it has called decide
        return {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {"behavior": "allow"}}}

    options = p.options(can_use_tool=decide, hooks={"PermissionRequest": [HookMatcher(hooks=[first])]})
    with anyio.fail_after(10):
        async with ClaudeSDKClient(options) as client:
            await ask(client, f"write {p.dir}/a text")
            equal(((p.dir / "a").exists(), withdrawn), (True, ["Write"]))


# Checklist rows 26 and 52: nobody to ask.
@check
async def permission_denied(p):
    messages = [m async for m in query(prompt=f"write {p.dir}/a text", options=p.options())]
    assert any(isinstance(m, SystemMessage) and m.subtype == "permission_denied" for m in messages), messages
    equal([d["tool_name"] for d in result(messages).permission_denials], ["Write"])


# Checklist rows 19 to 22: hooks of the host.
@check
async def hooks(p):
    seen = []

    async def before(data, tool_use_id, context):
        seen.append((data["hook_event_name"], data["tool_name"], tool_use_id == data["tool_use_id"]))
        if "secret" in data["tool_input"]["command"]:
            return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "it is secret"}}
        return {}

    async def after(data, tool_use_id, context):
        seen.append((data["hook_event_name"], data["tool_response"]["stdout"]))
        return {}

    async def submit(data, tool_use_id, context):
        seen.append((data["hook_event_name"], data["prompt"]))
        return {}

    hooks = {
        "PreToolUse": [HookMatcher(matcher="Bash", hooks=[before])],
        "PostToolUse": [HookMatcher(hooks=[after])],
        "UserPromptSubmit": [HookMatcher(hooks=[submit])],
    }
    async with ClaudeSDKClient(p.options(hooks=hooks, allowed_tools=["Bash"])) as client:
        equal(result(await ask(client, "run echo hi")).result, "done: hi")
        equal(result(await ask(client, "run echo secret")).result, "refused: PreToolUse:Bash hook error: it is secret")
    equal(
        seen,
        [
            ("UserPromptSubmit", "run echo hi"),
            ("PreToolUse", "Bash", True),
            ("PostToolUse", "hi"),
            ("UserPromptSubmit", "run echo secret"),
            ("PreToolUse", "Bash", True),
        ],
    )


def word_server(calls):
    @tool("shout", "Says a word loudly", {"word": str})
    async def shout(args):
        calls.append(args["word"])
        return {"content": [{"type": "text", "text": args["word"].upper()}]}

    @tool("fail", "Always fails", {"word": str})
    async def fail(args):
        raise RuntimeError("out of order")

    return create_sdk_mcp_server(name="words", version="1.0.0", tools=[shout, fail])


# Checklist rows 27 and 28: a server inside the host.
@check
async def sdk_server(p):
    calls = []
    options = p.options(mcp_servers={"words": word_server(calls)}, allowed_tools=["mcp__words__shout", "mcp__words__fail"])
    async with ClaudeSDKClient(options) as client:
        messages = await ask(client, "shout hello")
        equal(messages[0].data["mcp_servers"], [{"name": "words", "status": "connected", "source": "sdk"}])
        assert "mcp__words__shout" in messages[0].data["tools"]
        equal((calls, texts(messages)), (["hello"], ["done: HELLO"]))
        failed = await ask(client, "fail x")
        assert "out of order" in texts(failed)[0] and texts(failed)[0].startswith("refused: "), texts(failed)
        status = await client.get_mcp_status()
        (server,) = status["mcpServers"]
        equal((server["name"], server["status"], sorted(t["name"] for t in server["tools"])), ("words", "connected", ["fail", "shout"]))


# Checklist row 26: allowed, not allowed, removed.
@check
async def sdk_server_permissions(p):
    shout = "mcp__words__shout"
    for options, listed, why in (
        ({}, True, "requested permissions to use"),
        ({"disallowed_tools": [shout], "allowed_tools": [shout]}, False, "No such tool available"),
    ):
        calls = []
        options = p.options(mcp_servers={"words": word_server(calls)}, **options)
        messages = [m async for m in query(prompt="shout x", options=options)]
        assert texts(messages)[0].startswith("refused: ") and why in texts(messages)[0], texts(messages)
        equal((calls, shout in messages[0].data["tools"]), ([], listed))


# Checklist row 59: servers turned off and on, status, tasks.
@check
async def client_methods(p):
    calls = []
    options = p.options(mcp_servers={"words": word_server(calls)}, allowed_tools=["mcp__words"])
    async with ClaudeSDKClient(options) as client:
        await ask(client, "say hi")
        await client.toggle_mcp_server("words", False)
        equal((await client.get_mcp_status())["mcpServers"][0]["status"], "disabled")
        assert texts(await ask(client, "shout x"))[0].startswith("refused: ")
        await client.toggle_mcp_server("words", True)
        equal((await client.get_mcp_status())["mcpServers"][0]["status"], "connected")
        equal(texts(await ask(client, "shout x")), ["done: X"])
        usage = await client.get_context_usage()
        assert usage["maxTokens"] > 0 and usage["categories"], usage
        await client.stop_task("nobody")
        try:
            await client.reconnect_mcp_server("nope")
        except Exception as e:
            equal(str(e), "Server not found: nope")
        else:
            raise AssertionError("an unknown server was reconnected")


# Checklist row 68: files are restored.
@check
async def rewind(p):
    file = p.dir / "a.txt"
    options = p.options(
        enable_file_checkpointing=True, permission_mode="acceptEdits", extra_args={"replay-user-messages": None}
    )
    async with ClaudeSDKClient(options) as client:
        ids = []
        for text in ("one", "two"):
            messages = await ask(client, f"write {file} {text}")
            ids += [m.uuid for m in messages if isinstance(m, UserMessage) and isinstance(m.content, str)]
        equal((len(ids), file.read_text()), (2, "two\n"))
        await client.rewind_files(ids[1])
        equal(file.read_text(), "one\n")
        await client.rewind_files(ids[0])
        assert not file.exists()


# Checklist rows 17 and 32: an API error is a result, then an exit code.
@check
async def api_error(p):
    messages = []
    try:
        async for m in query(prompt="break", options=p.options()):
            messages.append(m)
    except ProcessError as e:
        assert "no such thing" in str(e), e
        equal(e.exit_code, 1)
    else:
        raise AssertionError("no error was raised")
    equal((result(messages).subtype, result(messages).is_error, result(messages).terminal_reason), ("success", True, "api_error"))


# Checklist row 18: leaving in the middle of a turn.
@check
async def leave_early(p):
    with anyio.fail_after(10):
        async with ClaudeSDKClient(p.options()) as client:
            await client.query("count slowly")
            await anyio.sleep(0.2)


# Checklist row 54 and spec cli-contract 6.3: a permission tool on a server of the host.
@check
async def permission_tool(p):
    @tool("decide", "Decides", {"tool_name": str, "input": dict, "tool_use_id": str})
    async def decide(args):
        import json

        verdict = {"behavior": "allow", "updatedInput": args["input"]} if "yes" in args["input"]["file_path"] else {"behavior": "deny", "message": "the tool says no"}
        return {"content": [{"type": "text", "text": json.dumps(verdict)}]}

    server = create_sdk_mcp_server(name="gate", tools=[decide])
    options = p.options(mcp_servers={"gate": server}, permission_prompt_tool_name="mcp__gate__decide")
    async with ClaudeSDKClient(options) as client:
        equal(texts(await ask(client, f"write {p.dir}/no x")), ["refused: the tool says no"])
        await ask(client, f"write {p.dir}/yes x")
    assert (p.dir / "yes").exists() and not (p.dir / "no").exists()


if __name__ == "__main__":
    run()

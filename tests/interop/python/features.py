"""A program written from the documentation of the SDK: one check for each of its features."""

import json

import anyio
from claude_agent_sdk import (
    AgentDefinition,
    AssistantMessage,
    ClaudeSDKClient,
    CLINotFoundError,
    ConversationResetMessage,
    HookMatcher,
    PermissionResultAllow,
    PermissionResultDeny,
    ProcessError,
    ResultMessage,
    StreamEvent,
    SystemMessage,
    TaskNotificationMessage,
    TaskStartedMessage,
    TaskUpdatedMessage,
    ThinkingBlock,
    ToolAnnotations,
    ToolResultBlock,
    UserMessage,
    create_sdk_mcp_server,
    query,
    tool,
)
from harness import ask, check, equal, result, run, texts


async def all_of(p, prompt, **options):
    return [m async for m in query(prompt=prompt, options=p.options(**options))]


def tool_results(messages):
    return [b for m in messages if isinstance(m, UserMessage) and isinstance(m.content, list) for b in m.content if isinstance(b, ToolResultBlock)]


# Checklist rows 12, 31 and 51: thinking and text as a stream of pieces, and as whole blocks.
@check
async def partial_messages(p):
    messages = await all_of(p, "think about 2 + 2", include_partial_messages=True)
    assert isinstance(messages[0], SystemMessage) and messages[0].subtype == "init", messages[0]
    events = [m.event for m in messages if isinstance(m, StreamEvent)]
    kinds = {e["type"] for e in events}
    equal(kinds, {"message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop"})
    pieces = "".join(e["delta"].get("text", "") for e in events if e["type"] == "content_block_delta")
    thoughts = "".join(e["delta"].get("thinking", "") for e in events if e["type"] == "content_block_delta")
    equal((pieces, "2" in thoughts, len(thoughts) > 10), ("It is 4.", True, True))
    blocks = [type(b).__name__ for m in messages if isinstance(m, AssistantMessage) for b in m.content]
    equal(blocks, ["ThinkingBlock", "TextBlock"])
    thought = [b for m in messages if isinstance(m, AssistantMessage) for b in m.content if isinstance(b, ThinkingBlock)][0]
    assert thought.signature and thought.thinking == thoughts, thought
    assert not any(isinstance(m, StreamEvent) for m in await all_of(p, "think about 2 + 2"))


# Checklist row 49: a typed answer.
@check
async def structured_output(p):
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    messages = await all_of(p, "count as data", output_format={"type": "json_schema", "schema": schema})
    equal(result(messages).structured_output, {"n": 7})
    equal(json.loads(result(messages).result), {"n": 7})


# Checklist row 50: limits are results.
@check
async def limits(p):
    messages = []
    try:
        async for m in query(prompt="run echo hi", options=p.options(max_turns=1)):
            messages.append(m)
    except ProcessError as e:
        assert "maximum number of turns" in str(e), e
    equal((result(messages).subtype, result(messages).num_turns), ("error_max_turns", 2))
    messages = []
    try:
        async for m in query(prompt="run echo hi", options=p.options(max_budget_usd=0.0000001)):
            messages.append(m)
    except ProcessError:
        pass
    equal(result(messages).subtype, "error_max_budget_usd")


# Checklist rows 19 to 22, 54, 56: every event of the SDK with its input.
@check
async def hook_events(p):
    seen = {}

    def note(answer=None):
        async def callback(data, tool_use_id, context):
            seen.setdefault(data["hook_event_name"], []).append((data, tool_use_id))
            return answer or {}

        return callback

    names = ("PreToolUse", "PostToolUse", "PostToolUseFailure", "UserPromptSubmit", "Stop", "SubagentStart", "SubagentStop", "PreCompact", "PermissionRequest")
    options = p.options(
        hooks={name: [HookMatcher(hooks=[note()])] for name in names},
        agents={"greeter": AgentDefinition(description="Greets", prompt="You greet.", background=False)},
        allowed_tools=["Agent"], can_use_tool=allow,
    )
    async with ClaudeSDKClient(options) as client:
        await ask(client, "run echo hi")
        await ask(client, "run ls nowhere")
        await ask(client, "run touch a.txt")
        await ask(client, "delegate say hello inside")
        await ask(client, "/compact")
    equal(set(seen), set(names))
    for name, calls in seen.items():
        for data, _ in calls:
            assert data["session_id"] and data["cwd"] == str(p.dir) and data["transcript_path"].endswith(".jsonl"), data
            assert name in ("PreCompact", "SubagentStart", "SubagentStop") or data["permission_mode"] == "default", data
    before, after = seen["PreToolUse"][0], seen["PostToolUse"][0]
    equal((before[0]["tool_name"], before[0]["tool_input"]["command"], before[1]), ("Bash", "echo hi", before[0]["tool_use_id"]))
    equal((after[0]["tool_response"]["stdout"], after[1]), ("hi", before[1]))
    assert seen["PostToolUseFailure"][0][0]["error"].startswith("Exit code 2"), seen["PostToolUseFailure"]
    equal(seen["PermissionRequest"][0][0]["tool_input"]["command"], "touch a.txt")
    equal(seen["SubagentStart"][0][0]["agent_type"], "greeter")
    equal(seen["SubagentStop"][0][0]["last_assistant_message"], "hello inside")
    equal(seen["PreCompact"][0][0]["trigger"], "manual")
    equal(seen["Stop"][0][0]["stop_hook_active"], False)


async def allow(name, data, context):
    return PermissionResultAllow()


# Checklist rows 23, 53 and 66: questions to the host, and questions to the user.
@check
async def permission_context(p):
    asked = []

    async def decide(name, data, context):
        asked.append((name, data, context))
        if name == "AskUserQuestion":
            return PermissionResultAllow(updated_input=data | {"answers": {"Which colour?": "Blue"}})
        return PermissionResultDeny(message="not now")

    async with ClaudeSDKClient(p.options(can_use_tool=decide)) as client:
        messages = await ask(client, f"write {p.dir.parent}/outside.txt x")
        equal(tool_results(messages)[0].content, "not now")
        equal(result(messages).permission_denials[0]["tool_name"], "Write")
        answered = await ask(client, "ask the user")
    name, data, context = asked[0]
    equal((name, data["content"]), ("Write", "x\n"))
    assert context.tool_use_id and context.suggestions and "outside" in context.decision_reason, context
    assert tool_results(answered)[0].content.startswith('Your questions have been answered: "Which colour?"="Blue"'), answered


# Checklist rows 29 and 57: an interrupt while a tool runs and while the host is asked.
@check
async def interrupts(p):
    waiting = anyio.Event()
    cancelled = []

    async def slow(name, data, context):
        waiting.set()
        try:
            await anyio.sleep(60)
        except BaseException:
            cancelled.append(name)
            raise
        return PermissionResultAllow()

    async with ClaudeSDKClient(p.options(can_use_tool=slow)) as client:
        await client.query("run sleep 20")
        await anyio.sleep(0.5)
        with anyio.fail_after(10):
            await client.interrupt()
            messages = [m async for m in client.receive_response()]
        equal((result(messages).subtype, result(messages).terminal_reason), ("error_during_execution", "aborted_tools"))
        await client.query("run touch b.txt")
        with anyio.fail_after(10):
            await waiting.wait()
            await client.interrupt()
            messages = [m async for m in client.receive_response()]
        equal(result(messages).terminal_reason, "aborted_tools")
        equal(texts(await ask(client, "say still here")), ["still here"])
    assert not (p.dir / "b.txt").exists()


# Checklist rows 27 and 28: results of every kind from a server inside the program.
@check
async def sdk_tools(p):
    @tool("shout", "Says a word loudly", {"word": str}, annotations=ToolAnnotations(readOnlyHint=True))
    async def shout(args):
        if args["word"] == "picture":
            return {"content": [{"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}, {"type": "text", "text": "seen"}]}
        if args["word"] == "long":
            return {"content": [{"type": "text", "text": "x" * 50_000}]}
        if args["word"] == "bad":
            return {"content": [{"type": "text", "text": "no good"}], "is_error": True}
        return {"content": [{"type": "text", "text": args["word"].upper()}]}

    server = create_sdk_mcp_server(name="words", version="2.0.0", tools=[shout])
    async with ClaudeSDKClient(p.options(mcp_servers={"words": server}, allowed_tools=["mcp__words__shout"])) as client:
        equal(texts(await ask(client, "shout hi")), ['done: HI'])
        status = (await client.get_mcp_status())["mcpServers"]
        equal([(s["name"], s["status"], s["serverInfo"]["version"]) for s in status], [("words", "connected", "2.0.0")])
        equal([(t["name"], t["annotations"].get("readOnly")) for t in status[0]["tools"]], [("shout", True)])
        picture = tool_results(await ask(client, "shout picture"))[0]
        equal([b["type"] for b in picture.content][0], "image")
        long = tool_results(await ask(client, "shout long"))[0]
        equal(long.content[0]["text"], "x" * 50_000)
        bad = tool_results(await ask(client, "shout bad"))[0]
        equal((bad.is_error, bad.content.partition("\n\n")[0]), (True, "no good"))  # the rest is the schema of the tool
        usage = await client.get_context_usage()
        assert usage["totalTokens"] > 0 and usage["maxTokens"] > usage["totalTokens"], usage
        equal([(t["name"], t["serverName"]) for t in usage["mcpTools"]], [("mcp__words__shout", "words")])
        equal((len(usage["gridRows"]), usage["autoCompactThreshold"]), (10, usage["maxTokens"] - 33_000))
        assert {"name", "tokens", "color"} <= set(usage["categories"][0]), usage["categories"]


# Checklist rows 30 and 47: the model, and a new conversation.
@check
async def session_changes(p):
    async with ClaudeSDKClient(p.options(model="sonnet")) as client:
        first = await ask(client, "which model")
        await client.set_model("claude-haiku-5-5")
        second = await ask(client, "which model")
        await client.set_model(None)
        third = await ask(client, "which model")
        equal(texts(first) + texts(second) + texts(third), ["claude-sonnet-5-5", "claude-haiku-5-5", "claude-opus-5-5"])
        cleared = await ask(client, "/clear")
        reset = [m for m in cleared if isinstance(m, ConversationResetMessage)]
        equal(reset[0].session_id, result(first).session_id)
        assert result(cleared).session_id != result(first).session_id
        equal(texts(await ask(client, "say on")), ["on"])


# Checklist row 62: work in the background is reported, and has a turn of its own.
@check
async def background(p):
    messages = await all_of(p, "start sleep 0.3", allowed_tools=["Bash"])
    started = [m for m in messages if isinstance(m, TaskStartedMessage)]
    updated = [m for m in messages if isinstance(m, TaskUpdatedMessage)]
    ended = [m for m in messages if isinstance(m, TaskNotificationMessage)]
    equal((len(started), len(ended), ended[0].status), (1, 1, "completed"))
    assert updated and updated[-1].patch["status"] == "completed", updated
    results = [m for m in messages if isinstance(m, ResultMessage)]
    equal(len(results), 2)
    equal(results[1].origin["kind"], "task-notification")


# Checklist rows 42 to 45: agents, plugins, tools and system prompts of the program.
@check
async def surroundings(p):
    plugin = p.dir / "plug"
    (plugin / ".claude-plugin").mkdir(parents=True)
    (plugin / ".claude-plugin" / "plugin.json").write_text('{"name":"demo","version":"1.0.0"}')
    (plugin / "commands").mkdir()
    (plugin / "commands" / "greet.md").write_text("say hello $ARGUMENTS")
    options = dict(plugins=[{"type": "local", "path": str(plugin)}], tools=["Bash", "Read"], agents={"one": AgentDefinition(description="d", prompt="p")})
    messages = await all_of(p, "/demo:greet Ada", **options)
    init = messages[0].data
    equal((init["tools"], "one" in init["agents"], "demo:greet" in init["slash_commands"]), (["Bash", "Read"], True, True))
    equal((init["plugins"][0]["name"], texts(messages)), ("demo", ["hello Ada"]))
    equal(texts(await all_of(p, "which system prompt", system_prompt="Be brief.")), ["Be brief."])
    equal(texts(await all_of(p, "which system prompt", system_prompt={"type": "preset", "preset": "claude_code", "append": "And kind."})), ["And kind."])
    file = p.dir / "prompt.md"
    file.write_text("From a file.")
    equal(texts(await all_of(p, "which system prompt", system_prompt={"type": "file", "path": str(file)})), ["From a file."])


# Checklist rows 10 and 48: pictures in prompts, and where a prompt came from.
@check
async def rich_prompts(p):
    async def prompts():
        picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
        yield {"type": "user", "message": {"role": "user", "content": [picture, {"type": "text", "text": "say seen"}]}, "origin": {"kind": "human"}}
        await anyio.sleep(0.5)
        yield {"type": "user", "message": {"role": "user", "content": "say plain"}}

    messages = await all_of(p, prompts())
    results = [m for m in messages if isinstance(m, ResultMessage)]
    equal([(r.result, r.origin) for r in results], [("seen", {"kind": "human"}), ("plain", None)])


# Several programs that run at once do not affect each other.
@check
async def side_by_side(p):
    answers = {}

    async def one(i):
        messages = await all_of(p, f"say {i}")
        answers[i] = (texts(messages), result(messages).session_id)

    async with anyio.create_task_group() as group:
        for i in range(8):
            group.start_soon(one, i)
    equal({i: a[0] for i, a in answers.items()}, {i: [str(i)] for i in range(8)})
    equal(len({a[1] for a in answers.values()}), 8)


# Wrong options of a program give the errors of the SDK.
@check
async def own_errors(p):
    options = p.options()
    options.cli_path = str(p.dir / "no-such-claude")
    try:
        [m async for m in query(prompt="say hi", options=options)]
    except CLINotFoundError:
        pass
    else:
        raise AssertionError("a CLI that is not there was found")
    try:
        await all_of(p, "say hi", extra_args={"no-such-flag": None})
    except ProcessError as e:
        equal(e.exit_code, 1)
    else:
        raise AssertionError("an unknown flag was taken")
    assert any("unknown option '--no-such-flag'" in line for line in p.stderr), p.stderr
    p.stderr.clear()


if __name__ == "__main__":
    run()

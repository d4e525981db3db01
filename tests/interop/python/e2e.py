"""Does what each end-to-end test of the Python Agent SDK does, answered by the library's scenario sdk-e2e.

The checks have the names of those tests. Prompts and options are the tests' own, because the scenario goes by them; what is
checked is at least what the test checks.
"""

import json
import shlex
import shutil
import uuid

import anyio
from claude_agent_sdk import (
    AgentDefinition,
    ClaudeSDKClient,
    ConversationResetMessage,
    HookMatcher,
    InMemorySessionStore,
    PermissionResultAllow,
    PermissionResultDeny,
    ProcessError,
    ResultError,
    StreamEvent,
    SystemMessage,
    ThinkingBlock,
    ToolUseBlock,
    create_sdk_mcp_server,
    get_session_messages,
    get_subagent_messages_from_store,
    list_sessions,
    list_subagents_from_store,
    query,
    tool,
)
from harness import Place, ask, blocks, calls, check, equal, init, result, results, run, texts

Place.scenario = "sdk-e2e"


async def one_shot(options, prompt):
    return [m async for m in query(prompt=prompt, options=options)]


async def talk(options, *prompts):
    async with ClaudeSDKClient(options) as client:
        return [await ask(client, prompt) for prompt in prompts]


def says(kind, **output):
    async def hook(data, tool_use_id, context):
        seen.append((data["hook_event_name"], data.get("tool_name"), tool_use_id))
        return {"hookSpecificOutput": {"hookEventName": kind} | output} if output else {}

    seen = []
    return hook, seen


def allowing(asked):
    async def decide(name, data, context):
        asked.append(name)
        return PermissionResultAllow()

    return decide


# test_agents_and_settings


@check
async def test_agent_definition(p):
    agents = {"test-agent": AgentDefinition(description="A test agent", prompt="You are a test agent.", tools=["Read"], model="sonnet")}
    (messages,) = await talk(p.options(agents=agents, max_turns=1), "What is 2 + 2?")
    assert "test-agent" in init(messages)["agents"]
    equal(texts(messages), ["4"])


@check
async def test_agent_definition_with_query_function(p):
    async for message in query(prompt="What is 2 + 2?", options=p.options(agents={"q": AgentDefinition(description="d", prompt="p")})):
        assert "q" in init([message])["agents"]
        break  # leaves in the middle of the turn


@check
async def test_large_agents(p):
    agents = {f"large-agent-{i}": AgentDefinition(description="d", prompt="x" * 13 * 1024) for i in range(20)}
    for prompt in ("What is 2 + 2?", "List available agents"):
        (messages,) = await talk(p.options(agents=agents, max_turns=1), prompt)
        assert set(agents) <= set(init(messages)["agents"])


@check
async def test_filesystem_agent_loading(p):
    file = p.dir / ".claude" / "agents" / "fs-test-agent.md"
    file.parent.mkdir(parents=True)
    file.write_text("---\nname: fs-test-agent\ndescription: d\ntools: Read\n---\n\nYou are a simple test agent.\n")
    (messages,) = await talk(p.options(setting_sources=["project"], max_turns=1), "Say hello in exactly 3 words")
    assert "fs-test-agent" in init(messages)["agents"]
    equal((len(texts(messages)[0].split()), result(messages).subtype), (3, "success"))


@check
async def test_setting_sources(p):
    (p.dir / ".claude" / "commands").mkdir(parents=True)
    (p.dir / ".claude" / "commands" / "testcmd.md").write_text("---\ndescription: Test command\n---\n\nThis is a test command.\n")
    (p.dir / ".claude" / "settings.local.json").write_text('{"outputStyle": "local-test-style"}')
    for sources, style, command in ((None, "local-test-style", True), (["user"], "default", False), (["user", "project", "local"], "local-test-style", True)):
        (messages,) = await talk(p.options(setting_sources=sources, max_turns=1), "What is 2 + 2?")
        equal((init(messages)["output_style"], "testcmd" in init(messages)["slash_commands"]), (style, command))


# test_conversation_reset


@check
async def test_clear_emits_conversation_reset(p):
    first, cleared = await talk(p.options(max_turns=1), "Reply with exactly: one", "/clear")
    (reset,) = [m for m in cleared if isinstance(m, ConversationResetMessage)]
    equal((reset.session_id, bool(reset.new_conversation_id), bool(reset.uuid)), (result(first).session_id, True, True))
    assert result(cleared).session_id != result(first).session_id


# test_deferred_tool_resume


@check
async def test_deferred_tool_resume_reruns_pre_tool_use(p):
    for verdict, ran in (("deny", False), ("allow", True)):
        marker = p.dir / f"{verdict}.txt"
        command = f"echo resumed > {shlex.quote(str(marker))}"
        defer, _ = says("PreToolUse", permissionDecision="defer", permissionDecisionReason="Wait for approval")
        decide, asked = says("PreToolUse", permissionDecision=verdict, permissionDecisionReason="Approval was decided")

        def options(hook, **more):
            hooks = {"PreToolUse": [HookMatcher(matcher="Bash", hooks=[hook])]}
            return p.options(setting_sources=[], tools=["Bash"], allowed_tools=["Bash"], hooks=hooks, max_turns=3, **more)

        put_off = result(await one_shot(options(defer), f"Run this exact Bash command once: {command}"))
        equal((put_off.stop_reason, put_off.deferred_tool_use.input["command"], marker.exists()), ("tool_deferred", command, False))
        async with ClaudeSDKClient(options(decide, resume=put_off.session_id)) as client:
            resumed = [m async for m in client.receive_response()]
        equal((asked, marker.exists()), ([("PreToolUse", "Bash", put_off.deferred_tool_use.id)], ran))
        equal((result(resumed).is_error, result(resumed).stop_reason), (False, "end_turn"))
        assert texts(resumed)[0].startswith("It printed" if ran else "It was blocked"), texts(resumed)


# test_dynamic_control


@check
async def test_set_permission_mode(p):
    async with ClaudeSDKClient(p.options(permission_mode="default")) as client:
        for mode, prompt, answer in (
            ("acceptEdits", "What is 2+2? Just respond with the number.", "4"),
            ("default", "What is 3+3? Just respond with the number.", "6"),
        ):
            await client.set_permission_mode(mode)
            messages = await ask(client, prompt)
            equal((init(messages)["permissionMode"], texts(messages)), (mode, [answer]))


@check
async def test_set_model(p):
    async with ClaudeSDKClient(p.options()) as client:
        first = init(await ask(client, "What is 1+1? Just the number."))["model"]
        await client.set_model("claude-3-5-haiku-20241022")
        equal(init(await ask(client, "What is 2+2? Just the number."))["model"], "claude-3-5-haiku-20241022")
        await client.set_model(None)
        equal(init(await ask(client, "What is 3+3? Just the number."))["model"], first)


@check
async def test_interrupt(p):
    async with ClaudeSDKClient(p.options()) as client:
        await client.query("Count from 1 to 100 slowly.")
        await client.interrupt()
        messages = [m async for m in client.receive_response()]
        equal((result(messages).subtype, result(messages).is_error), ("error_during_execution", True))
        equal(texts(await ask(client, "What is 2+2? Just the number.")), ["4"])


# test_error_results, test_error_result_text


@check
async def test_query_api_error_raises_result_error_with_payload(p):
    for model, prompt in (("claude-nonexistent-model-for-sdk-e2e", "Reply with: pong"), ("claude-not-a-real-model-e2e", "Say hello")):
        messages = []
        try:
            async for message in query(prompt=prompt, options=p.options(model=model, max_turns=1)):
                messages.append(message)
        except ResultError as e:
            error = e
        else:
            raise AssertionError("no error was raised")
        r = result(messages)
        equal((r.is_error, r.subtype, r.terminal_reason, r.api_error_status), (True, "success", "api_error", 404))
        equal(
            (error.subtype, error.result, error.session_id, error.terminal_reason, error.api_error_status, error.data["uuid"], error.exit_code),
            (r.subtype, r.result, r.session_id, r.terminal_reason, r.api_error_status, r.uuid, 1),
        )
        assert str(error).startswith("Claude Code returned an error result: " + r.result), error
        assert p.stderr and all(model in line for line in p.stderr), p.stderr  # the CLI does not know it
        p.stderr.clear()


# test_forward_subagent_text, test_subagent_session_reads

GREETER = {"greeter": AgentDefinition(description="Greets.", prompt="Reply with one short friendly sentence.", model="haiku", background=False)}
GREET = (
    "Use the Agent tool exactly once with subagent_type 'greeter', prompt 'say hi', and run_in_background set to false. "
    "Then reply with the single word DONE."
)


def by_agent(messages):
    return [m for m in messages if getattr(m, "parent_tool_use_id", None)]


@check
async def test_forward_subagent_text_delivers_attributed_text(p):
    for forward in (True, False):
        messages = await one_shot(p.options(forward_subagent_text=forward, agents=GREETER, allowed_tools=["Agent", "Task"], max_turns=4), GREET)
        ((name, data),) = calls(messages)
        equal((name in ("Agent", "Task"), data["run_in_background"], result(messages).result), (True, False, "DONE"))
        inner = texts(by_agent(messages))
        (call,) = blocks(messages, ToolUseBlock)
        equal((len(inner), {m.parent_tool_use_id for m in by_agent(messages)}), (int(forward), {call.id}))


@check
async def test_subagent_messages_carry_parent_tool_use_id(p):
    store = InMemorySessionStore()
    messages = await one_shot(p.options(session_store=store, agents=GREETER, allowed_tools=["Agent", "Task"], max_turns=4), GREET)
    (call,) = blocks(messages, ToolUseBlock)
    session = result(messages).session_id
    (agent,) = await list_subagents_from_store(store, session, directory=str(p.dir))
    mirrored = await get_subagent_messages_from_store(store, session, agent, directory=str(p.dir))
    equal({(m.parent_tool_use_id, m.parent_agent_id) for m in mirrored}, {(call.id, None)})
    (meta,) = (p.dir / "config").glob(f"projects/*/{session}/subagents/*.meta.json")
    equal(json.loads(meta.read_text())["toolUseId"], call.id)


# test_hook_events, test_hooks


@check
async def test_hook_events(p):
    for event, prompt, output in (
        ("PreToolUse", "Run: echo 'test additional context'", {"permissionDecision": "allow", "additionalContext": "a test environment"}),
        ("PostToolUse", "Run: echo 'test tool_use_id'", {"additionalContext": "Post-tool monitoring active"}),
        ("PostToolUse", "Run: echo 'testing hooks'", {"additionalContext": "ran with monitoring"}),
        ("Notification", "Say hello in one word.", {"additionalContext": "Notification received"}),
        ("SessionStart", "Say hello in one word.", {"additionalContext": "Session initialized by test"}),
    ):
        hook, seen = says(event, **output)
        tools = event.endswith("ToolUse")
        matcher = HookMatcher(matcher="Bash" if tools else None, hooks=[hook])
        (messages,) = await talk(p.options(allowed_tools=["Bash"], hooks={event: [matcher]}), prompt)
        equal([(name, tool) for name, tool, _ in seen], [(event, "Bash")] if tools else [])
        assert all(id and id.startswith("toolu_") for _, _, id in seen), seen
        equal(result(messages).is_error, False)


@check
async def test_multiple_new_hooks_together(p):
    hook, seen = says("any")
    hooks = {e: [HookMatcher(matcher=m, hooks=[hook])] for e, m in (("SessionStart", None), ("Notification", None), ("PreToolUse", "Bash"), ("PostToolUse", "Bash"))}
    await talk(p.options(allowed_tools=["Bash"], hooks=hooks), "Run: echo 'multi-hook test'")
    equal([event for event, _, _ in seen], ["PreToolUse", "PostToolUse"])


@check
async def test_hook_with_permission_decision_and_reason(p):
    hook, seen = says("PreToolUse", permissionDecision="deny", permissionDecisionReason="Security policy: Bash blocked")
    hooks = {"PreToolUse": [HookMatcher(matcher="Bash", hooks=[hook])]}
    (messages,) = await talk(p.options(allowed_tools=["Bash", "Write"], hooks=hooks), "Run this bash command: echo 'hello'")
    equal([tool for _, tool, _ in seen], ["Bash"])
    assert "Security policy: Bash blocked" in texts(messages)[0], texts(messages)


@check
async def test_hook_with_continue_and_stop_reason(p):
    async def stop(data, tool_use_id, context):
        seen.append(data["tool_response"]["stdout"])
        return {"continue_": False, "stopReason": "halted", "reason": "testing", "systemMessage": "Test hook stopped execution"}

    seen = []
    hooks = {"PostToolUse": [HookMatcher(matcher="Bash", hooks=[stop])]}
    (messages,) = await talk(p.options(allowed_tools=["Bash"], hooks=hooks), "Run: echo 'test message'")
    equal((seen, result(messages).terminal_reason, texts(messages)), (["test message"], "hook_stopped", []))


@check
async def test_userpromptsubmit_hook_adds_context(p):
    hook, _ = says("UserPromptSubmit", additionalContext="My favorite color is hot pink")
    (messages,) = await talk(p.options(hooks={"UserPromptSubmit": [HookMatcher(hooks=[hook])]}), "What's my favorite color?")
    assert "hot pink" in texts(messages)[0], texts(messages)


@check
async def test_hook_with_matcher_pattern(p):
    write, wrote = says("PreToolUse")
    bash, bashed = says("PreToolUse")
    again, too = says("PreToolUse")
    hooks = {"PreToolUse": [HookMatcher(matcher="Write", hooks=[write]), HookMatcher(matcher="Bash", hooks=[bash, again])]}
    file = p.dir / "hook_test.txt"
    await talk(p.options(allowed_tools=["Write", "Bash"], hooks=hooks), f"Write 'test' to {file} and then run: echo 'done'")
    equal(([t for _, t, _ in wrote], [t for _, t, _ in bashed], len(too), file.read_text()), (["Write"], ["Bash"], 1, "test"))


# test_include_partial_messages, test_message_fields


@check
async def test_include_partial_messages(p):
    think = {"include_partial_messages": True, "model": "claude-sonnet-4-5", "max_turns": 2, "env": {"MAX_THINKING_TOKENS": "8000"}}
    (messages,) = await talk(p.options(**think), "Think of three jokes, then tell one")
    equal(messages[0].subtype, "init")
    kinds = [m.event["type"] for m in messages if isinstance(m, StreamEvent)]
    assert {"message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_stop"} <= set(kinds), kinds
    equal((len(blocks(messages, ThinkingBlock)), len(texts(messages)), messages[-1].subtype), (1, 1, "success"))

    (messages,) = await talk(p.options(**think), "Think step by step about what 2 + 2 equals")
    deltas = [m.event["delta"] for m in messages if isinstance(m, StreamEvent) and m.event["type"] == "content_block_delta"]
    thought = "".join(d["thinking"] for d in deltas if d["type"] == "thinking_delta")
    equal((thought, "2" in thought, len(thought) > 10), (blocks(messages, ThinkingBlock)[0].thinking, True, True))

    (messages,) = await talk(p.options(model="claude-sonnet-4-5", max_turns=2), "Say hello")
    equal([m for m in messages if isinstance(m, StreamEvent)], [])


@check
async def test_message_fields(p):
    for partial in (False, True):
        (messages,) = await talk(p.options(model="claude-sonnet-4-5", max_turns=1, include_partial_messages=partial), "Say hi")
        message = next(m for m in messages if hasattr(m, "message_id"))
        assert message.message_id.startswith("msg_") and "claude" in message.model and message.session_id and message.uuid, message
        assert {"input_tokens", "output_tokens"} <= set(message.usage), message.usage
        (r,) = results(messages)
        ((name, usage),) = r.model_usage.items()
        assert "claude" in name and {"inputTokens", "outputTokens", "costUSD"} <= set(usage), r.model_usage
        assert abs(r.total_cost_usd - usage["costUSD"]) < 1e-6 and r.uuid, r
        equal(r.permission_denials, [])


# test_message_origin


@check
async def test_result_origin_round_trips_host_stamp(p):
    async def one(text, **extra):
        yield {"type": "user", "message": {"role": "user", "content": text}, "parent_tool_use_id": None, **extra}

    human = {"kind": "human"}
    stamped, unstamped = await talk(p.options(max_turns=1), one("Reply with exactly: one", origin=human), one("Reply with exactly: two"))
    equal((result(stamped).origin, result(unstamped).origin, texts(stamped + unstamped)), (human, None, ["one", "two"]))


# test_permission_prompts


@check
async def test_permission_prompts(p):
    prompt = "Use the Write tool to create out.txt containing the word hi. If the tool is denied, reply DENIED and stop."
    base = {"model": "haiku", "tools": ["Write"], "permission_mode": "default", "setting_sources": [], "max_turns": 3}
    for host, none, written in ((True, False, True), (True, True, False), (False, True, False)):
        asked = []
        extra = {"strict-mcp-config": None} | ({"permission-prompts": "none"} if none else {})
        (messages,) = await talk(p.options(extra_args=extra, can_use_tool=allowing(asked) if host else None, **base), prompt)
        equal((asked, (p.dir / "out.txt").exists(), result(messages).is_error), (["Write"] if written else [], written, False))
        assert written or texts(messages) == ["DENIED"], texts(messages)
        (p.dir / "out.txt").unlink(missing_ok=True)


# test_persist_session


@check
async def test_persist_session(p):
    for extra, kept in (({}, True), ({"no-session-persistence": None}, False)):
        options = p.options(model="haiku", tools=[], setting_sources=[], extra_args={"strict-mcp-config": None} | extra, max_turns=1)
        session = result(await one_shot(options, "Reply with only the word OK.")).session_id
        equal(any((p.dir / "config").glob(f"projects/*/{session}.jsonl")), kept)


# test_run_end, test_end_user_input


@check
async def test_hook_run_ends_with_one_result(p):
    hook, seen = says("PreToolUse")
    messages = await one_shot(p.options(tools=[], hooks={"PreToolUse": [HookMatcher(hooks=[hook])]}), "Reply with OK.")
    equal((len(results(messages)), texts(messages), seen), (1, ["OK"], []))
    assert not [m for m in messages if isinstance(m, SystemMessage) and m.subtype == "session_state_changed"]


@check
async def test_follow_up_turn_after_a_background_subagent_is_served(p):
    target = p.dir / "out.txt"
    prompt = (
        "Step 1: call the Agent tool once with subagent_type `worker`, description `say done`, prompt `Say DONE.` and "
        "run_in_background true, then end your turn right away with the single word LAUNCHED. Do not wait for it. "
        "Step 2: when you are told the subagent finished, use the Write tool to "
        f"write its reply to {target}, then answer FINISHED."
    )
    worker = AgentDefinition(description="Answers with one word.", prompt="Reply with the single word DONE and nothing else.", tools=[], model="haiku")
    hook, asked = says("PreToolUse", permissionDecision="allow")
    options = p.options(
        model="haiku", setting_sources=[], tools=["Agent", "Write"], agents={"worker": worker},
        hooks={"PreToolUse": [HookMatcher(matcher="Write", hooks=[hook])]},
    )
    messages = await one_shot(options, prompt)
    equal([r.result for r in results(messages)], ["LAUNCHED", "FINISHED"])
    equal(([name for _, name, _ in asked], target.read_text()), (["Write"], "DONE"))
    first = next(i for i, m in enumerate(messages) if m in results(messages))
    equal([name for name, _ in calls(messages[first:])], ["Write"])


# test_sdk_mcp_tools


def test_tools(ran):
    @tool("echo", "Echo back the input text", {"text": str})
    async def echo(args):
        ran.append(("echo", args["text"]))
        return {"content": [{"type": "text", "text": f"Echo: {args['text']}"}]}

    @tool("greet", "Greet a person by name", {"name": str})
    async def greet(args):
        ran.append(("greet", args["name"]))
        return {"content": [{"type": "text", "text": f"Hello, {args['name']}!"}]}

    return [echo, greet]


@check
async def test_sdk_mcp_tools(p):
    for server, granted, taken, prompt, want in (
        ("test", ["echo"], [], "Call the mcp__test__echo tool with any text", ["echo"]),
        ("test", ["echo"], [], "Call the mcp__test__echo tool with text='hello world'", [("echo", "hello world")]),
        (
            "test", ["greet"], ["echo"],
            "First use the greet tool to greet 'Alice'. After that completes, use the echo tool to echo 'test'. Do these one at a time, not in parallel.",
            [("greet", "Alice")],
        ),
        (
            "multi", ["echo", "greet"], [],
            "Call mcp__multi__echo with text='test' and mcp__multi__greet with name='Bob'", [("echo", "test"), ("greet", "Bob")],
        ),
        ("noperm", [], [], "Call the mcp__noperm__echo tool", []),
    ):
        ran = []
        options = p.options(
            mcp_servers={server: create_sdk_mcp_server(name=server, version="1.0.0", tools=test_tools(ran))},
            allowed_tools=[f"mcp__{server}__{t}" for t in granted], disallowed_tools=[f"mcp__{server}__{t}" for t in taken],
        )
        messages = await one_shot(options, prompt)
        equal([call if isinstance(w, tuple) else call[0] for call, w in zip(ran, want, strict=True)], want)
        equal(all(name.startswith(f"mcp__{server}__") for name, _ in calls(messages)), True)


# test_mcp_calculator


@check
async def test_mcp_calculator(p):
    def operation(name, keys, compute):
        @tool(name, name, {k: float for k in keys})
        async def f(args):
            return {"content": [{"type": "text", "text": f"{name} = {compute(*[args[k] for k in keys])}"}]}

        return f

    tools = [
        operation("add", ("a", "b"), lambda a, b: a + b), operation("subtract", ("a", "b"), lambda a, b: a - b),
        operation("multiply", ("a", "b"), lambda a, b: a * b), operation("divide", ("a", "b"), lambda a, b: a / b),
        operation("sqrt", ("n",), lambda n: n**0.5), operation("power", ("base", "exponent"), lambda a, b: a**b),
    ]
    options = p.options(mcp_servers={"calc": create_sdk_mcp_server(name="calculator", tools=tools)}, allowed_tools=["mcp__calc"])
    for prompt, name, data, answer in (
        ("Calculate 15 + 27", "add", {"a": 15, "b": 27}, "42"),
        ("What is 100 divided by 7?", "divide", {"a": 100, "b": 7}, "14.2857"),
        ("Calculate the square root of 144", "sqrt", {"n": 144}, "12"),
        ("What is 2 raised to the power of 8?", "power", {"base": 2, "exponent": 8}, "256"),
    ):
        messages = await one_shot(options, prompt)
        equal(calls(messages), [("mcp__calc__" + name, data)])
        assert answer in texts(messages)[-1], texts(messages)
    messages = await one_shot(options, "Calculate (12 + 8) * 3 - 10")
    equal([name for name, _ in calls(messages)], ["mcp__calc__add", "mcp__calc__multiply", "mcp__calc__subtract"])
    assert "50" in texts(messages)[-1], texts(messages)


# test_session_store_resume_settings


@check
async def test_store_resume_applies_user_settings(p):
    store, config = InMemorySessionStore(), p.dir / "config"
    first = await one_shot(p.options(session_store=store, max_turns=1), "Reply with exactly: one")
    equal(init(first)["output_style"], "default")
    (config / "settings.json").write_text(json.dumps({"outputStyle": "Explanatory"}))
    shutil.rmtree(config / "projects")
    session = result(first).session_id
    resumed = await one_shot(p.options(session_store=store, max_turns=1, resume=session), "Reply with exactly: two")
    equal((result(resumed).session_id, init(resumed)["output_style"], texts(resumed)), (session, "Explanatory", ["two"]))


# test_stderr_callback


@check
async def test_stderr_callback_without_debug(p):
    equal(texts(await one_shot(p.options(), "What is 1+1?")), ["2"])
    equal(p.stderr, [])


# test_structured_output


@check
async def test_structured_output(p):
    def schema(required, **properties):
        return {"type": "object", "properties": properties, "required": required}

    number, boolean, words = {"type": "number"}, {"type": "boolean"}, {"type": "array", "items": {"type": "string"}}
    for name in ("src/claude_agent_sdk/a.py", "src/claude_agent_sdk/sub/b.py", "tests/test_a.py", "README.md"):
        (p.dir / name).parent.mkdir(parents=True, exist_ok=True)
        (p.dir / name).write_text("import pytest\n")
    framework = {"type": "string", "enum": ["pytest", "unittest", "nose", "unknown"]}
    counts = schema(["word_count", "character_count"], word_count=number, character_count=number)
    for prompt, wanted, output in (
        (
            "Count how many Python files are in src/claude_agent_sdk/ and check if there are any test files. Use tools to explore the filesystem.",
            schema(["file_count", "has_tests"], file_count=number, has_tests=boolean, test_file_count=number),
            {"file_count": 2, "has_tests": True, "test_file_count": 1},
        ),
        (
            "Analyze this text: 'Hello world'. Provide word count, character count, and list of words.",
            schema(["analysis", "words"], analysis=counts, words=words),
            {"analysis": {"word_count": 2, "character_count": 11}, "words": ["Hello", "world"]},
        ),
        (
            "Search for test files in the tests/ directory. Determine which test framework is being used (pytest/unittest/nose) "
            "and count how many test files exist. Use Grep to search for framework imports.",
            schema(["has_tests", "test_framework"], has_tests=boolean, test_framework=framework, test_count=number),
            {"has_tests": True, "test_framework": "pytest", "test_count": 1},
        ),
        (
            "Count how many files are in the current directory and check if there's a README file. Use tools as needed.",
            schema(["file_count", "has_readme"], file_count=number, has_readme=boolean),
            {"file_count": 1, "has_readme": True},
        ),
    ):
        options = p.options(output_format={"type": "json_schema", "schema": wanted}, permission_mode="acceptEdits")
        r = result(await one_shot(options, prompt))
        equal((r.subtype, r.is_error, r.structured_output), ("success", False, output))


# test_tool_permissions


@check
async def test_permission_callback_gets_called(p):
    for prompt, name in (
        ("Run the command: touch {}", "Bash"),
        ("Create a new file at {} with the content 'hello world'. Do not read the file first, just create it.", "Write"),
    ):
        asked, file = [], p.dir.parent / f"sdk_permission_test_{uuid.uuid4().hex[:8]}.txt"
        try:
            await talk(p.options(can_use_tool=allowing(asked)), prompt.format(file))
            equal((asked, file.exists()), ([name], True))
        finally:
            file.unlink(missing_ok=True)


@check
async def test_query_prompt_with_only_can_use_tool(p):
    async def stream(text):
        yield {"type": "user", "message": {"role": "user", "content": text}, "parent_tool_use_id": None, "session_id": ""}

    for make in (stream, str):
        asked, file = [], p.dir.parent / f".agent_sdk_permission_e2e_{uuid.uuid4().hex[:8]}.txt"
        prompt = f"Use the Write tool to create the file {file} containing exactly the text hello. Do not use any other tool."
        try:
            messages = await one_shot(p.options(can_use_tool=allowing(asked), disallowed_tools=["Bash"], max_turns=3), make(prompt))
            equal((asked, file.read_text(), result(messages).is_error), (["Write"], "hello", False))
        finally:
            file.unlink(missing_ok=True)


@check
async def test_permission_callback_of_server_tools(p):
    ran = []

    def named(name):
        @tool(name, name, {"data": str})
        async def f(args):
            ran.append((name, args["data"]))
            return {"content": [{"type": "text", "text": "Executed"}]}

        return f

    server = create_sdk_mcp_server(name="test", tools=[named(n) for n in ("test_tool", "safe_tool", "dangerous_tool")])

    async def decide(name, data, context):
        if "dangerous" in name:
            return PermissionResultDeny(message="Dangerous tool blocked")
        return PermissionResultAllow(updated_input={"data": "MODIFIED_BY_CALLBACK"} if data["data"] == "original" else None)

    for prompt, want in (
        ("Call mcp__test__test_tool with data='original'", [("test_tool", "MODIFIED_BY_CALLBACK")]),
        ("Call both mcp__test__safe_tool and mcp__test__dangerous_tool", [("safe_tool", "anything")]),
    ):
        ran.clear()
        await talk(p.options(mcp_servers={"test": server}, can_use_tool=decide), prompt)
        equal(ran, want)


# test_truncating_resume


@check
async def test_truncating_resume(p):
    one, two, three = (f"Reply with exactly: {word}" for word in ("one", "two", "three"))
    home = {"CLAUDE_CONFIG_DIR": str(p.dir / "config")}

    def chain(session):
        (file,) = (p.dir / "config").glob(f"projects/*/{session}.jsonl")
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        return [line for line in lines if line["type"] in ("user", "assistant")]

    def prompts(session):
        return [line["message"]["content"] for line in chain(session) if line["type"] == "user"]

    first, second = await talk(p.options(max_turns=1, env=home), one, two)
    session = result(second).session_id
    keep = [m for m in first if hasattr(m, "message_id")][-1].uuid
    uuids = [line["uuid"] for line in chain(session)]
    dropped = uuids[uuids.index(keep) + 1]
    base = {"max_turns": 1, "resume": session, "fork_session": True, "resume_session_at": keep}
    forked = result(await one_shot(p.options(**base, resume_drops_turn=dropped), three))
    assert not forked.is_error and forked.session_id != session, forked
    equal((prompts(forked.session_id), prompts(session)), ([one, three], [one, two]))
    try:
        await one_shot(p.options(**base, resume_drops_turn=str(uuid.uuid4())), three)
    except ProcessError as e:
        assert "Resume rejected by --resume-drops-turn:" in str(e), e
    else:
        raise AssertionError("the wrong turn was dropped")
    equal(prompts(session), [one, two])
    p.stderr.clear()  # the refusal stands there too


# test_verbatim_prompts


@check
async def test_verbatim_prompts(p):
    secret = p.dir / "outside" / "secret.txt"
    secret.parent.mkdir()
    (p.dir / "cwd").mkdir()
    secret.write_text("The marker is MARKER-0123.\n")
    prompt = f"What marker does this file contain? Reply with only the marker, or UNKNOWN if you cannot see it. @{secret}"
    for verbatim, answer in ((False, "MARKER-0123"), (True, "UNKNOWN")):
        options = p.options(verbatim_prompts=verbatim, cwd=str(p.dir / "cwd"), tools=[], setting_sources=[], max_turns=1)
        messages = await one_shot(options, prompt)
        (file,) = (p.dir / "config").glob(f"projects/*/{result(messages).session_id}.jsonl")
        attached = [line for line in map(json.loads, file.read_text().splitlines()) if line["type"] == "attachment" and line["attachment"]["type"] == "file"]
        equal(("MARKER-0123" in json.dumps(attached), calls(messages)), (not verbatim, []))
        equal(texts(messages), [answer])


# test_quickstart, test_file_operations


@check
async def test_file_operations(p):
    out, given = p.dir / "test_output.txt", p.dir / "input.txt"
    await one_shot(p.options(allowed_tools=["Write"]), f"Create a file at {out} with content 'Hello from Claude Code SDK!'")
    equal(out.read_text(), "Hello from Claude Code SDK!")
    given.write_text("This is a test file for Claude Code SDK e2e testing.")
    messages = await one_shot(p.options(allowed_tools=["Read"]), f"Read the file at {given} and tell me the first word in the file")
    equal(texts(messages)[-1], "This")
    messages = await one_shot(p.options(allowed_tools=["Read", "Write"]), "Create a file called hello.txt with 'Hello, World!' in it")
    equal(((p.dir / "hello.txt").read_text(), result(messages).total_cost_usd > 0), ("Hello, World!", True))


if __name__ == "__main__":
    run()

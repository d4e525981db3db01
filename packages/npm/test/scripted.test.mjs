// scriptedClaude, as tests use it. `npm test` wants CLAUDELESS_BIN or a platform package.
import assert from "node:assert/strict";
import { execFile, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { call, fail, scriptedClaude } from "../dist/index.js";
import { assertAsked, assertCalledTool } from "../dist/node-test.js";
import { matchers } from "../dist/matchers.js";

const run = promisify(execFile);

/** Asks claude and gives its stdout. */
async function ask(claude, ...args) {
  const child = run(claude.path, ["-p", ...args], { env: { ...process.env, ...claude.env } });
  child.child.stdin.end();
  const { stdout } = await child;
  return stdout.trim();
}

/** A claude that is verified and closed at the end of `body`. */
async function using(claude, body) {
  try {
    await body(claude);
    await claude.assertComplete();
  } finally {
    claude.close();
  }
}

test("a script", async () => {
  const claude = await scriptedClaude([call("Bash", { command: "echo one" }), "Parser bug."]);
  assert.equal(await ask(claude, "triage", "--allowedTools", "Bash"), "Parser bug.");
  assertAsked(claude, "triage");
  assertCalledTool(claude, "Bash", { command: "echo one" });
  assert.deepEqual(claude.tools, [{ name: "Bash", input: { command: "echo one" } }]);
  assert.equal((await matchers.toBeComplete(claude)).pass, true);
  await claude[Symbol.asyncDispose]();
  assert.equal(claude.calls[0].prompt, "triage");
});

test("rules, and failures that pass", async () => {
  await using(await scriptedClaude(), async (claude) => {
    claude.on("triage", "Parser bug.").on(/deploy \w+/i, fail("overloaded", { times: 2 }), "Done.");
    assert.equal(await ask(claude, "please triage"), "Parser bug.");
    assert.equal(await ask(claude, "DEPLOY api"), "Done.");
  });
});

test("nothing was asked", async () => {
  await assert.rejects(using(await scriptedClaude(["hi"]), () => {}), /problem/);
});

test("a second prompt has no rule", async () => {
  const claude = await scriptedClaude(["hi"]);
  await ask(claude, "first");
  await ask(claude, "again").catch(() => {});
  await assert.rejects(claude[Symbol.asyncDispose](), /again/);
});

test("a problem points at the test", async () => {
  const claude = await scriptedClaude();
  claude.on("never asked", "x");
  await assert.rejects(claude[Symbol.asyncDispose](), /scripted\.test\.mjs:\d+: /);
});

test("no step", async () => {
  for (const [step, says] of [
    [5, /a step is a string/],
    [{ tool: "Bash" }, /call\("Bash"/],
    [call, /did you mean call/],
    [["a", 5], /texts and calls only/],
    [[call("Bash"), "late"], /comes after a call/],
  ]) {
    await assert.rejects(scriptedClaude([step]), says);
  }
});

test("a file, and one with mistakes", async () => {
  const dir = mkdtempSync(join(tmpdir(), "claudeless-test-"));
  const file = join(dir, "s.toml");
  writeFileSync(file, '[[responses]]\npattern = { type = "any" }\nresponse = "from a file"\n');
  await using(await scriptedClaude(undefined, { file }), async (claude) => {
    assert.equal(await ask(claude, "x"), "from a file");
    assert.throws(() => claude.on("y", "z"), /only one scenario/);
  });
  writeFileSync(file, "[[responses]]\npatern = 5\n");
  await assert.rejects(scriptedClaude(undefined, { file }), /s\.toml:2/);
});

test("an option that does not exist", async () => {
  await assert.rejects(scriptedClaude(["x"], { stict: false }), /no option "stict"/);
});

test("warnings are printed once", async (t) => {
  const file = join(mkdtempSync(join(tmpdir(), "claudeless-test-")), "s.toml");
  writeFileSync(file, '[[responses]]\npattern = { type = "any" }\nresponse = "x"\n'.repeat(2));
  const warn = t.mock.method(console, "warn", () => {});
  await using(await scriptedClaude(undefined, { file }), async (claude) => {
    assert.equal(await ask(claude, "x"), "x");
    await claude.assertComplete();
  });
  assert.equal(warn.mock.callCount(), 1);
  assert.match(warn.mock.calls[0].arguments[0], /^claudeless: warning: .*s\.toml:4: the rule responses\[1\] answered no prompt \[S13\]/);
});

test("an answer that waits", async () => {
  await using(await scriptedClaude(), async (claude) => {
    claude.on("slow", "at last");
    const held = claude.hold("slow");
    const child = spawn(claude.path, ["-p", "slow"], { env: { ...process.env, ...claude.env }, stdio: ["ignore", "pipe", "inherit"] });
    let out = "";
    child.stdout.on("data", (d) => (out += d));
    const ended = new Promise((resolve) => child.on("close", resolve));
    await held.reached();
    assert.equal(out, "");
    await held.release();
    await ended;
    assert.equal(out, "at last\n");
  });
});

test("the Messages API", async () => {
  await using(await scriptedClaude(), async (claude) => {
    claude.on("hello", "hi there");
    const answer = await fetch(`${claude.baseURL}/v1/messages`, {
      method: "POST",
      headers: { "x-api-key": "x", "anthropic-version": "2023-06-01", "content-type": "application/json" },
      body: JSON.stringify({ model: "claude-opus-5-5", max_tokens: 100, messages: [{ role: "user", content: "hello" }] }),
    });
    assert.equal((await answer.json()).content[0].text, "hi there");
  });
});

test("the Agent SDK", async (t) => {
  const sdk = await import("@anthropic-ai/claude-agent-sdk").catch(() => undefined);
  if (!sdk) return t.skip("@anthropic-ai/claude-agent-sdk is not installed");
  await using(await scriptedClaude([call("Bash", { command: "echo hi" }), "Parser bug."]), async (claude) => {
    let result;
    for await (const m of sdk.query({ prompt: "triage", options: claude.options({ allowedTools: ["Bash"] }) })) if (m.type === "result") result = m.result;
    assert.equal(result, "Parser bug.");
  });
});

test("mistakes of a script point at the test", async () => {
  const claude = await scriptedClaude();
  claude.on("x", fail("overlode"));
  await ask(claude, "x").catch(() => {});
  await assert.rejects(claude[Symbol.asyncDispose](), (error) => {
    assert.match(error.message, /scripted\.test\.mjs:\d+: .*overlode/);
    assert.match(error.stack, /\n {4}at .*scripted\.test\.mjs:\d+:\d+$/);
    return true;
  });
});

test("never closed", () => {
  const index = new URL(import.meta.resolve("../dist/index.js"));
  const program = `import { scriptedClaude } from ${JSON.stringify(index.href)}; await scriptedClaude("x");`;
  const { status, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", program], { encoding: "utf8", env: { ...process.env, NODE_TEST_CONTEXT: "" } });
  assert.equal(status, 1);
  assert.match(stderr, /this scripted claude was never closed/);
});

test("closed without a verdict", () => {
  const index = new URL(import.meta.resolve("../dist/index.js"));
  const closed = (...lines) => {
    const program = [`import { execFileSync } from "node:child_process";`, `import { scriptedClaude } from ${JSON.stringify(index.href)};`, `const claude = await scriptedClaude("x");`,
      `const ask = (prompt) => { try { execFileSync(claude.path, ["-p", prompt], { env: { ...process.env, ...claude.env }, stdio: "ignore" }); } catch {} };`, ...lines].join("\n");
    return spawnSync(process.execPath, ["--input-type=module", "-e", program], { encoding: "utf8", env: { ...process.env, NODE_TEST_CONTEXT: "" } });
  };
  assert.equal(closed(`ask("first");`, `claude.close();`).status, 0);
  const red = closed(`ask("first");`, `ask("unexpected");`, `claude.close();`);
  assert.equal(red.status, 1);
  assert.match(red.stderr, /claudeless: error: .*no rule matches the prompt "unexpected"/s);
  assert.equal(closed(`ask("first");`, `ask("unexpected");`, `await claude.problems();`, `claude.close();`).status, 0);
});

test("a claude of others is refused at once", async () => {
  const claude = await scriptedClaude();
  const answer = await fetch(`${claude.env.ANTHROPIC_BASE_URL}/v1/messages`, { method: "POST", headers: { "user-agent": "claude-cli/2.1.329" }, body: "{}" });
  assert.equal(answer.status, 403);
  assert.match((await answer.json()).error.message, /claude\.options\(/);
  await assert.rejects(claude[Symbol.asyncDispose](), /a real claude was started instead of claudeless: claude-cli\/2\.1\.329 \[G01\]/);
});

test("a terminal", async () => {
  const cwd = mkdtempSync(join(tmpdir(), "terminal-"));
  const claude = await scriptedClaude([call("Bash", { command: "mkdir seen" }), "Done."]);
  let terminal;
  await using(claude, async () => {
    terminal = claude.terminal(["--permission-mode", "default"], { cols: 90, rows: 30, cwd });
    await terminal.waitFor("? for shortcuts", 60_000);
    assert.equal((await terminal.screen()).title, "✳ Claude Code");
    await terminal.type("make it");
    await terminal.press("Enter");
    await terminal.waitFor("Do you want to proceed?", 60_000);
    const screen = await terminal.screen();
    assert.deepEqual([screen.cols, screen.rows, screen.cells.length], [90, 30, 30]);
    assert.match(screen.text, /❯ 1\. Yes/);
    assert.ok(screen.cells.some((row) => row.some((cell) => cell.text === "❯")));
    await terminal.resize(80, 24);
    await terminal.press("Down", "Up", "Enter");
    await terminal.waitFor("Done.", 60_000);
    assert.equal((await terminal.screen()).cols, 80);
  });
  assert.deepEqual(claude.tools, [{ name: "Bash", input: { command: "mkdir seen" } }]);
  assert.ok(existsSync(join(cwd, "seen")));
  await assert.rejects(terminal.press("Enter"), /closed/);
});

test("a terminal fails with the screen", async () => {
  const claude = await scriptedClaude(undefined, { strict: false });
  const terminal = claude.terminal(["--permission-mode", "default"]);
  await terminal.waitFor("? for shortcuts", 60_000);
  await assert.rejects(terminal.waitFor("nothing", 50), /waited for the text `nothing` for 50ms; the screen shows[^]*\? for shortcuts/);
  await assert.rejects(terminal.press("Entr"), /unknown key name `Entr`; did you mean `Enter`/);
  await assert.rejects(claude.terminal([], { cols: 1 }).waitFor("x"), /20x5 to 500x200/);
  await claude.assertComplete();
  claude.close();
});

// The scripts of packages/conformance: the same names mean the same in the three languages.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { call, fail, scriptedClaude } from "../dist/index.js";

const scripts = JSON.parse(readFileSync(process.env.CONFORMANCE_SCRIPTS ?? new URL("../../conformance/scripts.json", import.meta.url), "utf8"));

function step(form) {
  if (Array.isArray(form)) return form.map(step);
  if (typeof form === "string") return form;
  if (form.call) return call(form.call, form.input);
  const { fail: type, ...options } = form;
  return fail(type, options);
}

const prompt = (form) => (form.regex ? new RegExp(form.regex) : form.text);

async function asked(claude, run, cwd) {
  if (run.api) return overAPI(claude, run);
  const done = await new Promise((resolve) => {
    const child = execFile(claude.path, ["-p", ...run.args], { cwd, env: { ...process.env, ...claude.env, CLAUDELESS_RETRY_SCALE: "0" } }, (error, stdout, stderr) =>
      resolve({ exit: error?.code ?? 0, stdout, stderr }),
    );
    child.stdin.end();
  });
  assert.equal(done.exit, run.exit ?? 0, done.stderr);
  if ("stdout" in run) assert.equal(done.stdout, run.stdout);
  assert.match(done.stdout, new RegExp(run.matches ?? "", "s"));
}

async function overAPI(claude, run) {
  const answer = await fetch(`${claude.baseURL}/v1/messages`, {
    method: "POST",
    headers: { "x-api-key": "x", "anthropic-version": "2023-06-01", "content-type": "application/json" },
    body: JSON.stringify({ model: "claude-opus-5-5", max_tokens: 100, messages: [{ role: "user", content: run.api }] }),
  });
  const body = await answer.json();
  if ("text" in run) assert.equal(body.content[0].text, run.text);
  assert.equal(answer.status, run.status ?? answer.status);
}

for (const script of scripts) {
  test(script.name, async () => {
    const directory = mkdtempSync(join(tmpdir(), "claudeless-test-"));
    const file = script.file && join(directory, "s.toml");
    if (file) writeFileSync(file, script.file);
    const claude = await scriptedClaude(script.script?.map(step), file ? { file } : {});
    try {
      for (const rule of script.on ?? []) claude.on(prompt(rule.prompt), ...rule.steps.map(step));
      for (const run of script.runs ?? []) await asked(claude, run, directory);
      if (script.prompts) assert.deepEqual(claude.calls.map((c) => c.prompt), script.prompts);
      if (script.tools) assert.deepEqual(claude.tools, script.tools);
      const problems = await claude.problems();
      const wanted = script.problems ?? [];
      assert.equal(problems.length > 0, wanted.length > 0, problems.join("\n"));
      for (const want of wanted) assert.ok(problems.some((p) => new RegExp(want, "s").test(p)), problems.join("\n"));
    } finally {
      claude.close();
      rmSync(directory, { recursive: true, force: true });
    }
  });
}

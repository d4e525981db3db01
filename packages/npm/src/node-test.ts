// import { assertCalledTool, … } from "claudeless/node-test": assertions, and the verdict after each test.
import assert from "node:assert";
import { afterEach } from "node:test";
import { matchers, verifyOpen } from "./matchers.js";
import type { ScriptedClaude } from "./scripted.js";

afterEach(verifyOpen);

/** A tool of this name was called, and its input contains these keys and values. */
export function assertCalledTool(claude: ScriptedClaude, name: string, input: Record<string, unknown> = {}): void {
  const { pass, message } = matchers.toHaveCalledTool(claude, name, input);
  assert.ok(pass, pass ? undefined : message());
}

/** The model received this prompt. */
export function assertAsked(claude: ScriptedClaude, prompt: string | RegExp): void {
  const { pass, message } = matchers.toHaveBeenAsked(claude, prompt);
  assert.ok(pass, pass ? undefined : message());
}

/** Every step was played, a rule matched every prompt, and there are no conduct findings. */
export async function assertComplete(claude: ScriptedClaude): Promise<void> {
  await claude.assertComplete();
}

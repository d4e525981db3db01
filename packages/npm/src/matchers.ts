// The matchers that vitest and jest share.
import { isDeepStrictEqual } from "node:util";
import { open, ScriptedClaude, unreported } from "./scripted.js";

interface Outcome {
  pass: boolean;
  message: () => string;
}

/** Reports whether `got` contains `want`: objects can have additional keys, all other values must be equal. */
function within(want: unknown, got: unknown): boolean {
  if (typeof want !== "object" || want === null || Array.isArray(want)) return isDeepStrictEqual(want, got);
  return typeof got === "object" && got !== null && Object.entries(want).every(([k, v]) => within(v, (got as Record<string, unknown>)[k]));
}

function scripted(received: unknown): ScriptedClaude {
  if (received instanceof ScriptedClaude) return received;
  throw new TypeError("this matcher is for what scriptedClaude() returns");
}

export const matchers = {
  /** A tool of this name was called, and its input contains these keys and values. */
  toHaveCalledTool(received: unknown, name: string, input: Record<string, unknown> = {}): Outcome {
    const tools = scripted(received).tools;
    const pass = tools.some((t) => t.name === name && within(input, t.input));
    const list = tools.map((t) => `  ${t.name} ${JSON.stringify(t.input)}`).join("\n") || "  none";
    return { pass, message: () => `expected ${pass ? "no " : "a "}call of ${name} ${JSON.stringify(input)}; there were\n${list}` };
  },
  /** The model received this prompt. */
  toHaveBeenAsked(received: unknown, prompt: string | RegExp): Outcome {
    const prompts = scripted(received).calls.map((c) => c.prompt);
    const pass = prompts.some((p) => (typeof prompt === "string" ? p === prompt : prompt.test(p)));
    return { pass, message: () => `expected ${pass ? "no " : "a "}prompt ${String(prompt)}; there were\n  ${prompts.join("\n  ") || "none"}` };
  },
  /** Every step was played, a rule matched every prompt, and there are no conduct findings. */
  async toBeComplete(received: unknown): Promise<Outcome> {
    const problems = await scripted(received).problems();
    return { pass: problems.length === 0, message: () => problems.join("\n") || "expected something to be wrong" };
  },
};

/** The matchers, for the types of a runner's `expect`. */
export interface ClaudelessMatchers<R> {
  toHaveCalledTool(name: string, input?: Record<string, unknown>): R;
  toHaveBeenAsked(prompt: string | RegExp): R;
  toBeComplete(): Promise<R>;
}

/** Verifies and closes every claude that a test did not close, and reports the problems of those that it closed. */
export async function verifyOpen(): Promise<void> {
  const problems: unknown[] = [...unreported.values()];
  unreported.clear();
  for (const claude of [...open]) {
    await claude[Symbol.asyncDispose]().catch((error: unknown) => problems.push(error));
  }
  if (problems.length === 1) throw problems[0];
  if (problems.length > 1) throw new AggregateError(problems, problems.map((p) => (p as Error).message).join("\n"));
}

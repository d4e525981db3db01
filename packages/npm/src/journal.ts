// Reads prompts and tool runs from a journal.
import { existsSync, readFileSync } from "node:fs";

/** One prompt to the model. */
export interface Call {
  prompt: string;
  sessionId: string;
  pid: number;
}

/** One tool that ran. */
export interface ToolRun {
  name: string;
  input: Record<string, unknown>;
}

export interface Entry {
  type: string;
  [key: string]: unknown;
}

/** Returns the lines of a journal. A truncated last line, from a killed process, is skipped. */
export function entries(journal: string): Entry[] {
  if (!existsSync(journal)) return [];
  return readFileSync(journal, "utf8")
    .split("\n")
    .flatMap((line) => {
      try {
        return [JSON.parse(line) as Entry];
      } catch {
        return [];
      }
    });
}

/** Returns the prompts of a claude and of the Messages API. A repeated request counts once. */
export const calls = (all: Entry[]): Call[] =>
  all
    .filter((e) => (e.type === "prompt" && !e["injected"]) || (e.type === "request" && e["prompt"] && (e["attempt"] ?? 1) === 1))
    .map((e) => ({ prompt: e["prompt"] as string, sessionId: (e["session_id"] || e["session"] || "") as string, pid: e["pid"] as number }));

/**
 * Returns the tools that ran in a claude or in a client of the Messages API, in the order of the model's calls. Calls of
 * one message run concurrently.
 */
export function tools(all: Entry[]): ToolRun[] {
  const order = new Map(all.flatMap((e) => (e.type === "model" ? ((e["blocks"] ?? []) as Entry[]) : [])).map((block, i) => [block["id"], i]));
  const at = (e: Entry) => order.get(e["tool_use_id"]) ?? order.size;
  return all
    .flatMap((e) => (e.type === "tool" ? [e] : e.type === "request" ? ((e["calls"] ?? []) as Entry[]) : []))
    .sort((a, b) => at(a) - at(b))
    .map((e) => ({ name: e["tool"] as string, input: (e["input"] ?? {}) as Record<string, unknown> }));
}

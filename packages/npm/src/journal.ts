// What the journal tells: the prompts that came and the tools that ran.
import { existsSync, readFileSync } from "node:fs";

/** One prompt that the model was asked. */
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

/** The lines of a journal; half a line, of a process that was killed, is left out. */
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

export const calls = (all: Entry[]): Call[] =>
  all
    .filter((e) => e.type === "prompt" && !e["injected"])
    .map((e) => ({ prompt: e["prompt"] as string, sessionId: (e["session_id"] as string) ?? "", pid: e["pid"] as number }));

export const tools = (all: Entry[]): ToolRun[] =>
  all.filter((e) => e.type === "tool").map((e) => ({ name: e["tool"] as string, input: (e["input"] ?? {}) as Record<string, unknown> }));

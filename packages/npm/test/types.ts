// A test of a user who has neither the types of Node nor those of the DOM: it is compiled, not run.
import { call, scriptedClaude, type Call, type Verdict } from "claudeless";

export async function test(): Promise<[Call[], Verdict]> {
  const claude = await scriptedClaude([call("Bash", { command: "true" }), "done"], { file: { href: "file:///s.toml" } });
  const held = claude.hold();
  const terminal = claude.terminal([], { cols: 80 });
  await terminal.waitFor("x");
  await held.release();
  const verdict = await claude.verdict();
  await claude[Symbol.asyncDispose]();
  return [claude.calls, verdict];
}

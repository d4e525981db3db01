import { test } from "vitest";
import { scriptedClaude } from "claudeless";
import "claudeless/vitest";
import { triage } from "./triage";

// This test fails: it has a rule for a prompt that the program never sends.
test("a rule that no prompt matches", async () => {
  const claude = await scriptedClaude();
  claude.on("triage", "A bug in the parser.");
  claude.on("deploy", "Done.");
  await triage(7, claude.options());
});

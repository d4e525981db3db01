import { expect, test } from "vitest";
import { call, fail, scriptedClaude } from "claudeless";
import "claudeless/vitest"; // matchers, and the verdict after each test
import { triage } from "./triage";

test("the answer comes back", async () => {
  await using claude = await scriptedClaude([call("Bash", { command: "echo log" }), "A bug in the parser."]);
  expect(await triage(7, claude.options({ allowedTools: ["Bash"] }))).toBe("A bug in the parser.");
  expect(claude).toHaveCalledTool("Bash", { command: "echo log" });
});

test("an overloaded model is asked again", async () => {
  await using claude = await scriptedClaude([fail("overloaded", { times: 2 }), "A feature request."]);
  expect(await triage(8, claude.options())).toBe("A feature request.");
});

test("a model that stays overloaded is an error", async () => {
  await using claude = await scriptedClaude([fail("overloaded")]);
  await expect(triage(9, claude.options())).rejects.toThrow("529");
});

import { query, type Options } from "@anthropic-ai/claude-agent-sdk";

/** triage returns what claude says about an issue. */
export async function triage(issue: number, options: Options): Promise<string> {
  for await (const message of query({ prompt: `triage issue ${issue}`, options })) {
    if (message.type !== "result") continue;
    if (message.subtype === "success" && !message.is_error) return message.result;
    throw new Error(`no answer for issue ${issue}: ${message.subtype === "success" ? message.result : message.subtype}`);
  }
  throw new Error(`no answer for issue ${issue}`);
}

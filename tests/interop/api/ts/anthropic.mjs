// The Anthropic SDK for TypeScript: a loop with a tool, streamed; errors.
import assert from "node:assert";
import Anthropic from "@anthropic-ai/sdk";

const client = new Anthropic({ baseURL: process.env.API, apiKey: "any", maxRetries: 2 });
const tools = [{ name: "forecast", input_schema: { type: "object", properties: { city: { type: "string" } } } }];
const messages = [{ role: "user", content: "What is the weather in Oslo?" }];
const ask = () => client.messages.stream({ model: "claude-sonnet-5-5", max_tokens: 1000, messages, tools }).finalMessage();
const first = await ask();
const call = first.content.find((b) => b.type === "tool_use");
assert.deepEqual([call.name, call.input, first.stop_reason], ["forecast", { city: "Oslo" }, "tool_use"]);
messages.push({ role: "assistant", content: first.content }, { role: "user", content: [{ type: "tool_result", tool_use_id: call.id, content: "7 degrees" }] });
assert.equal((await ask()).content[0].text, "The forecast says: 7 degrees");
await assert.rejects(client.messages.create({ model: "m", max_tokens: 9, messages: [{ role: "user", content: "denied" }] }), Anthropic.AuthenticationError);
console.log("ok");

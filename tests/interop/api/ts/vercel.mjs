// Vercel's AI SDK: text with a tool in several steps, streamed and not.
import assert from "node:assert";
import { createAnthropic } from "@ai-sdk/anthropic";
import { generateText, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

const model = createAnthropic({ baseURL: process.env.API + "/v1", apiKey: "any" })("claude-opus-5-5");
const tools = { forecast: tool({ inputSchema: z.object({ city: z.string() }), execute: async ({ city }) => `7 degrees in ${city}` }) };
const asked = { model, tools, stopWhen: stepCountIs(5), prompt: "What is the weather in Oslo?" };
const whole = await generateText(asked);
assert.equal(whole.text, "The forecast says: 7 degrees in Oslo");
assert.equal(await streamText(asked).text, whole.text);
console.log("ok");

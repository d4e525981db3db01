// Drives claudeless with the provider for Claude Code of Vercel's AI SDK, and the SDK's public API alone.
//
// CLAUDELESS_BIN is the binary. The provider hands on few variables, so that the scenario goes through its own option, and it
// writes prompts as "Human: …", for which the scenario below is.

import assert from 'node:assert/strict';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { generateObject, generateText, streamText, tool } from 'ai';
import { createAiSdkMcpServer, createClaudeCode } from 'ai-sdk-provider-claude-code';
import { z } from 'zod';

const dir = mkdtempSync(join(tmpdir(), 'interop-'));
const scenario = join(dir, 'scenario.toml');
writeFileSync(
  scenario,
  `
[[responses]]
pattern = { type = "contains", text = "take time" }
response = { text = "took it" }

[[responses]]
pattern = { type = "contains", text = "think" }
[[responses.response.steps]]
thinking = "Two and two."
text = "It is 4."

[[responses]]
pattern = { type = "contains", text = "as data" }
response = { structured_output = { n = 7, email = "sarah@example.com" } }

[[responses]]
pattern = { type = "contains", text = "shout" }
[[responses.response.steps]]
tool_calls = [{ tool = "mcp__words__shout", input = { word = "hello" } }]
[[responses.response.steps]]
text = "done: {{ results[0].text }}"

[[responses]]
pattern = { type = "contains", text = "run" }
[[responses.response.steps]]
tool_calls = [{ tool = "Bash", input = { command = "touch made" } }]
[[responses.response.steps]]
text = "refused: {{ results[0].text }}"
`,
);
const provider = (more = {}) =>
  createClaudeCode({
    defaultSettings: {
      pathToClaudeCodeExecutable: process.env.CLAUDELESS_BIN,
      cwd: dir,
      env: { CLAUDELESS_SCENARIO: scenario, CLAUDE_CONFIG_DIR: join(dir, 'config') },
      ...more,
    },
  });

const checks = {
  async 'text, and the session that it is of'() {
    const { text, providerMetadata } = await generateText({ model: provider()('haiku'), prompt: 'take time' });
    assert.equal(text, 'took it');
    assert.match(providerMetadata['claude-code'].sessionId, /^[0-9a-f-]{36}$/);
  },
  async 'a stream'() {
    const { textStream } = streamText({ model: provider()('haiku'), prompt: 'think about 2 + 2' });
    let text = '';
    for await (const piece of textStream) text += piece;
    assert.equal(text, 'It is 4.');
  },
  async 'an object that fits its schema'() {
    const schema = z.object({ n: z.number(), email: z.email() });
    const { object } = await generateObject({ model: provider()('haiku'), schema, prompt: 'count as data' });
    assert.deepEqual(object, { n: 7, email: 'sarah@example.com' });
  },
  async 'a tool of the AI SDK runs in this process'() {
    const shout = tool({ description: 'Shouts', inputSchema: z.object({ word: z.string() }), execute: async ({ word }) => word.toUpperCase() });
    const p = provider({ mcpServers: { words: createAiSdkMcpServer('words', { shout }) }, allowedTools: ['mcp__words__shout'] });
    const { text, steps } = await generateText({ model: p('haiku'), prompt: 'shout hello' });
    assert.match(text, /^done: .*HELLO/);
    assert(steps.flatMap((s) => s.content).some((part) => part.type === 'tool-call' && part.toolName === 'mcp__words__shout'));
  },
  async 'a call is denied by the host'() {
    const canUseTool = async () => ({ behavior: 'deny', message: 'not here' });
    const { text } = await generateText({ model: provider({ canUseTool, permissionMode: 'default', streamingInput: 'always' })('haiku'), prompt: 'run touch made' });
    assert.match(text, /^refused: .*not here/s);
  },
};

for (const [name, check] of Object.entries(checks)) {
  await check();
  console.log('ok', name);
}

// Drives claudeless with the public API of the TypeScript Agent SDK alone.
//
// CLAUDELESS_BIN is the binary, CLAUDELESS_SCENARIO the scenario. Each check runs in a directory of its own, prints one
// line and fails the program when it fails; stderr of the CLI must stay empty.

import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSdkMcpServer, query, tool } from '@anthropic-ai/claude-agent-sdk';
import { z } from 'zod';

class Place {
  dir = mkdtempSync(join(tmpdir(), 'interop-'));
  stderr = '';
  options(more = {}) {
    const { env, ...rest } = more;
    return {
      pathToClaudeCodeExecutable: process.env.CLAUDELESS_BIN,
      cwd: this.dir,
      stderr: (data) => (this.stderr += data),
      env: { ...process.env, CLAUDE_CONFIG_DIR: join(this.dir, 'config'), ...env },
      ...rest,
    };
  }
}

const textsOf = (messages) =>
  messages.filter((m) => m.type === 'assistant').flatMap((m) => m.message.content.filter((b) => b.type === 'text').map((b) => b.text));
const resultOf = (messages) => messages.findLast((m) => m.type === 'result');
const user = (text, more = {}) => ({ type: 'user', message: { role: 'user', content: text }, parent_tool_use_id: null, ...more });

async function all(q) {
  const messages = [];
  for await (const m of q) messages.push(m);
  return messages;
}

// Talk is a query whose prompts are given one by one.
class Talk {
  #waiting = [];
  #wake = null;
  #ended = false;
  constructor(options) {
    this.query = query({ prompt: this.#prompts(), options });
    this.#messages = this.query[Symbol.asyncIterator]();
  }
  #messages;
  async *#prompts() {
    for (;;) {
      while (this.#waiting.length > 0) yield this.#waiting.shift();
      if (this.#ended) return;
      await new Promise((resolve) => (this.#wake = resolve));
    }
  }
  send(text, more) {
    this.#waiting.push(user(text, more));
    this.#wake?.();
  }
  async turn() {
    const messages = [];
    for (;;) {
      const { value, done } = await this.#messages.next();
      if (done) return messages;
      messages.push(value);
      if (value.type === 'result') return messages;
    }
  }
  ask(text, more) {
    this.send(text, more);
    return this.turn();
  }
  async end() {
    this.#ended = true;
    this.#wake?.();
    return (async () => {
      while (!(await this.#messages.next()).done);
    })();
  }
}

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const wordServer = (calls) =>
  createSdkMcpServer({
    name: 'words',
    version: '1.0.0',
    tools: [
      tool('shout', 'Says a word loudly', { word: z.string() }, async ({ word }) => {
        calls.push(word);
        return { content: [{ type: 'text', text: word.toUpperCase() }] };
      }),
      tool('fail', 'Always fails', { word: z.string() }, async () => {
        throw new Error('out of order');
      }),
    ],
  });

const checks = {
  // Checklist rows 2 to 6, 9 to 12, 14, 16: a prompt as a string, sent before initialize is answered.
  async onePrompt(p) {
    const messages = await all(query({ prompt: 'say hello', options: p.options() }));
    assert.equal(messages[0].subtype, 'init');
    assert.deepEqual(textsOf(messages), ['hello']);
    const { subtype, is_error, num_turns, result } = resultOf(messages);
    assert.deepEqual({ subtype, is_error, num_turns, result }, { subtype: 'success', is_error: false, num_turns: 1, result: 'hello' });
  },

  // Checklist row 58: the system prompt comes with initialize.
  async systemPrompt(p) {
    const messages = await all(query({ prompt: 'which system prompt', options: p.options({ systemPrompt: 'Be brief.' }) }));
    assert.deepEqual(textsOf(messages), ['Be brief.']);
  },

  // Checklist rows 15 and 16: several turns in one process.
  async conversation(p) {
    const talk = new Talk(p.options());
    assert.deepEqual(textsOf(await talk.ask('say one')), ['one']);
    assert.deepEqual(textsOf(await talk.ask('say two')), ['two']);
    await talk.end();
  },

  // Checklist rows 8 and 69: what the session says about itself.
  async facts(p) {
    const agents = { mine: { description: 'An agent', prompt: 'x' } };
    const talk = new Talk(p.options({ agents }));
    const info = await talk.query.initializationResult();
    assert.equal(info.output_style, 'default');
    assert((await talk.query.supportedCommands()).some((c) => c.name === 'clear'));
    assert((await talk.query.supportedModels()).some((m) => m.value === 'sonnet'));
    assert((await talk.query.supportedAgents()).some((a) => a.name === 'mine'));
    assert.equal((await talk.query.accountInfo()).apiProvider, 'firstParty');
    await talk.ask('say hi');
    assert((await talk.query.getContextUsage()).maxTokens > 0);
    await talk.query.stopTask('nobody');
    await talk.query.setMaxThinkingTokens(1000);
    await talk.end();
  },

  // Checklist row 29.
  async interrupt(p) {
    const talk = new Talk(p.options());
    talk.send('count slowly');
    await sleep(300);
    await talk.query.interrupt();
    assert.equal(resultOf(await talk.turn()).subtype, 'error_during_execution');
    assert.deepEqual(textsOf(await talk.ask('say again')), ['again']);
    await talk.end();
  },

  // Checklist row 30.
  async dynamicControl(p) {
    const talk = new Talk(p.options());
    await talk.query.setPermissionMode('acceptEdits');
    await talk.query.setModel('claude-haiku-5-5');
    const messages = await talk.ask('which model');
    assert.deepEqual(textsOf(messages), ['claude-haiku-5-5']);
    assert.equal(messages.find((m) => m.subtype === 'init').permissionMode, 'acceptEdits');
    await talk.query.setModel();
    assert.deepEqual(textsOf(await talk.ask('which model')), ['claude-opus-5-5']);
    await assert.rejects(talk.query.setPermissionMode('bypassPermissions'), /dangerously-skip-permissions/);
    await talk.end();
  },

  // Checklist rows 23 to 25 and 53.
  async permissions(p) {
    const verdicts = [
      (input) => ({ behavior: 'allow', updatedInput: input }),
      () => ({ behavior: 'deny', message: 'host says no' }),
      () => ({ behavior: 'allow' }),
      () => ({ behavior: 'deny', message: 'stop', interrupt: true }),
    ];
    const asked = [];
    const canUseTool = async (name, input, { suggestions, toolUseID }) => {
      asked.push([name, suggestions?.[0]?.type, typeof toolUseID]);
      return verdicts.shift()(input);
    };
    const talk = new Talk(p.options({ canUseTool }));
    await talk.ask(`write ${p.dir}/a one`);
    assert.equal(readFileSync(join(p.dir, 'a'), 'utf8'), 'one\n');
    const denied = await talk.ask(`write ${p.dir}/b two`);
    assert.deepEqual(textsOf(denied), ['refused: host says no']);
    assert.equal(resultOf(denied).permission_denials[0].tool_name, 'Write');
    await talk.ask(`write ${p.dir}/c three`);
    assert(existsSync(join(p.dir, 'c')) && !existsSync(join(p.dir, 'b')));
    assert.equal(resultOf(await talk.ask(`write ${p.dir}/d four`)).terminal_reason, 'aborted_tools');
    assert.deepEqual(asked, Array(4).fill(['Write', 'setMode', 'string']));
    await talk.ask('say bye');
    await talk.end();
  },

  // Checklist rows 19 to 22.
  async hooks(p) {
    const seen = [];
    const before = async (input) => {
      seen.push([input.hook_event_name, input.tool_input.command]);
      if (!input.tool_input.command.includes('secret')) return {};
      return { hookSpecificOutput: { hookEventName: 'PreToolUse', permissionDecision: 'deny', permissionDecisionReason: 'it is secret' } };
    };
    const after = async (input) => {
      seen.push([input.hook_event_name, input.tool_response.stdout]);
      return {};
    };
    const talk = new Talk(p.options({ allowedTools: ['Bash'], hooks: { PreToolUse: [{ matcher: 'Bash', hooks: [before] }], PostToolUse: [{ hooks: [after] }] } }));
    assert.deepEqual(textsOf(await talk.ask('run echo hi')), ['done: hi']);
    assert.deepEqual(textsOf(await talk.ask('run echo secret')), ['refused: PreToolUse:Bash hook error: it is secret']);
    assert.deepEqual(seen, [['PreToolUse', 'echo hi'], ['PostToolUse', 'hi'], ['PreToolUse', 'echo secret']]);
    await talk.end();
  },

  // Checklist rows 27, 28, 58 and 59: a server inside the host.
  async sdkServer(p) {
    const calls = [];
    const talk = new Talk(p.options({ mcpServers: { words: wordServer(calls) }, allowedTools: ['mcp__words'] }));
    const messages = await talk.ask('shout hello');
    const init = messages.find((m) => m.subtype === 'init');
    assert.deepEqual(init.mcp_servers, [{ name: 'words', status: 'connected', source: 'sdk' }]);
    assert(init.tools.includes('mcp__words__shout'));
    assert.deepEqual([calls, textsOf(messages)], [['hello'], ['done: HELLO']]);
    assert.match(textsOf(await talk.ask('fail x'))[0], /^refused: .*out of order/);
    await talk.query.toggleMcpServer('words', false);
    assert.equal((await talk.query.mcpServerStatus())[0].status, 'disabled');
    await talk.query.toggleMcpServer('words', true);
    assert.equal((await talk.query.mcpServerStatus())[0].status, 'connected');
    await assert.rejects(talk.query.reconnectMcpServer('nope'), /Server not found: nope/);
    await talk.end();
  },

  // Checklist row 59: servers added while the session runs.
  async setServers(p) {
    const calls = [];
    const talk = new Talk(p.options({ allowedTools: ['mcp__words'] }));
    assert.match(textsOf(await talk.ask('shout x'))[0], /No such tool available/);
    const change = await talk.query.setMcpServers({ words: wordServer(calls) });
    assert.deepEqual([change.added, change.errors], [['words'], {}]);
    assert.deepEqual(textsOf(await talk.ask('shout x')), ['done: X']);
    await talk.end();
  },

  // Checklist rows 65 and 68: files go back to what they were at a prompt.
  async rewind(p) {
    const talk = new Talk(p.options({ enableFileCheckpointing: true, permissionMode: 'acceptEdits' }));
    const ids = ['11111111-1111-4111-8111-111111111111', '22222222-2222-4222-8222-222222222222'];
    await talk.ask(`write ${p.dir}/a one`, { uuid: ids[0] });
    await talk.ask(`write ${p.dir}/a two`, { uuid: ids[1] });
    const rehearsal = await talk.query.rewindFiles(ids[1], { dryRun: true });
    assert.deepEqual([rehearsal.canRewind, rehearsal.filesChanged], [true, [join(p.dir, 'a')]]);
    await talk.query.rewindFiles(ids[1]);
    assert.equal(readFileSync(join(p.dir, 'a'), 'utf8'), 'one\n');
    await talk.end();
  },

  // Checklist row 17: an API error is a result, then an exit code.
  async apiError(p) {
    const messages = [];
    await assert.rejects(async () => {
      for await (const m of query({ prompt: 'break', options: p.options() })) messages.push(m);
    }, /no such thing/);
    assert.equal(resultOf(messages).terminal_reason, 'api_error');
  },

  // Checklist row 18: leaving in the middle of a turn.
  async leaveEarly(p) {
    const abortController = new AbortController();
    setTimeout(() => abortController.abort(), 300);
    await assert.rejects(all(query({ prompt: 'count slowly', options: p.options({ abortController }) })), /abort/i);
  },
};

let failed = 0;
for (const [name, check] of Object.entries(checks)) {
  if (process.argv.length > 2 && !process.argv.includes(name)) continue;
  const place = new Place();
  try {
    await Promise.race([check(place), sleep(40_000).then(() => Promise.reject(new Error('timed out')))]);
    assert.equal(place.stderr, '');
    console.log('ok  ', name);
  } catch (error) {
    failed++;
    console.log('FAIL', name, error, 'stderr of the CLI:', place.stderr);
  }
}
process.exit(failed > 0 ? 1 : 0);

// Drives claudeless with only the public API of the TypeScript Agent SDK.
//
// CLAUDELESS_BIN is the binary, CLAUDELESS_SCENARIO the scenario. Each check runs in a directory of its own, prints one
// line and fails the program when it fails; stderr of the CLI must stay empty.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import {
  createSdkMcpServer,
  deleteSession,
  forkSession,
  getSessionInfo,
  getSessionMessages,
  getSubagentMessages,
  listSessions,
  listSubagents,
  query,
  renameSession,
  tagSession,
  tool,
} from '@anthropic-ai/claude-agent-sdk';
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

  // Checklist row 58: the system prompt is part of initialize.
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

  // Checklist rows 8 and 69: the description of the session.
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

  // Checklist rows 65 and 68: files are restored to their content at a prompt.
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
  // Checklist row 65: prompts that wait share a turn, which names all of them; a prompt with priority "now" ends the turn.
  async waiting(p) {
    const talk = new Talk(p.options());
    talk.send('take time', { uuid: randomUUID() });
    const ids = [randomUUID(), randomUUID()];
    await sleep(100);
    talk.send('say two', { uuid: ids[0] });
    talk.send('say three', { uuid: ids[1] });
    assert.equal(resultOf(await talk.turn()).result, 'took it');
    const shared = resultOf(await talk.turn());
    assert.deepEqual([shared.result, shared.user_message_uuid, shared.user_message_uuids], ['two\nsay three', ids[1], ids]);
    talk.send('count slowly');
    await sleep(200);
    talk.send('say now', { priority: 'now' });
    assert.equal(resultOf(await talk.turn()).terminal_reason, 'aborted_streaming');
    assert.equal(resultOf(await talk.turn()).result, 'now');
    await talk.end();
  },
  // Checklist rows 35, 36 and 39: sessions as the SDK's functions read and write them.
  async sessions(p) {
    process.env.CLAUDE_CONFIG_DIR = join(p.dir, 'config');
    const dir = p.dir;
    const run = async (prompt, options) => resultOf(await all(query({ prompt, options: p.options(options) })));
    const textsOfSession = async (id) =>
      (await getSessionMessages(id, { dir })).map((m) => (typeof m.message.content === 'string' ? m.message.content : m.message.content.map((b) => b.text ?? b.type).join('')));
    const { session_id: first } = await run('say one');
    await run('say two', { resume: first });
    assert.deepEqual(await textsOfSession(first), ['say one', 'one', 'say two', 'two']);
    await renameSession(first, 'A name', { dir });
    await tagSession(first, 'a tag', { dir });
    const info = await getSessionInfo(first, { dir });
    assert.deepEqual([info.customTitle, info.tag, info.cwd, info.firstPrompt], ['A name', 'a tag', dir, 'say one']);
    assert.deepEqual((await listSessions({ dir, includeProgrammatic: true })).map((s) => s.sessionId), [first]);
    const messages = await getSessionMessages(first, { dir });
    const { sessionId: copy } = await forkSession(first, { dir, upToMessageId: messages[1].uuid, title: 'Copy' });
    assert.equal((await run('say three', { resume: copy })).session_id, copy);
    assert.deepEqual(await textsOfSession(copy), ['say one', 'one', 'say three', 'three']);
    const cut = await run('say four', { resume: first, forkSession: true, resumeSessionAt: messages[1].uuid });
    assert.deepEqual(await textsOfSession(cut.session_id), ['say one', 'one', 'say four', 'four']);
    assert.equal((await run('say five', { continue: true })).session_id, cut.session_id);
    await deleteSession(copy, { dir });
    assert.ok(!(await listSessions({ dir, includeProgrammatic: true })).some((s) => s.sessionId === copy));
    const agents = { greeter: { description: 'Greets', prompt: 'You greet.', background: false } };
    const { session_id: delegated } = await run('delegate say hello inside', { agents, allowedTools: ['Agent'] });
    const [agent] = await listSubagents(delegated, { dir });
    const inside = await getSubagentMessages(delegated, agent, { dir });
    assert.deepEqual(inside.map((m) => m.type), ['user', 'assistant']);
  },
  // Checklist row 68: checkpoints remain after the process ends, and a fork has them.
  async checkpoints(p) {
    const file = join(p.dir, 'a.txt');
    const options = { enableFileCheckpointing: true, permissionMode: 'acceptEdits' };
    const ids = [randomUUID(), randomUUID()];
    let talk = new Talk(p.options(options));
    await talk.ask(`write ${file} one`, { uuid: ids[0] });
    const { session_id: session } = resultOf(await talk.ask(`write ${file} two`, { uuid: ids[1] }));
    await talk.end();
    for (const forkSession of [false, true]) {
      writeFileSync(file, 'by hand\n');
      talk = new Talk(p.options({ ...options, resume: session, forkSession }));
      const dry = await talk.query.rewindFiles(ids[1], { dryRun: true });
      assert.deepEqual([dry.canRewind, dry.filesChanged, dry.insertions, dry.deletions], [true, [file], 1, 1]);
      assert.deepEqual(await talk.query.rewindFiles(ids[1]), { canRewind: true, skippedLinks: 0 });
      assert.equal(readFileSync(file, 'utf8'), 'one\n');
      await talk.query.rewindFiles(ids[0]);
      assert.ok(!existsSync(file));
      await assert.rejects(talk.query.rewindFiles(randomUUID()), /No file checkpoint found for this message/);
      await talk.end();
    }
  },
  // Checklist rows 42 to 45, 49, 51 and 58: the agents, tools and prompts of a program; plugins and servers are part of initialize.
  async surroundings(p) {
    const plugin = join(p.dir, 'plug');
    for (const [name, text] of Object.entries({
      '.claude-plugin/plugin.json': '{"name":"demo","version":"1.0.0"}',
      'commands/greet.md': 'say hello $ARGUMENTS',
      'skills/cook/SKILL.md': '---\nname: cook\ndescription: Cooks\n---\nCook it.',
    })) {
      mkdirSync(dirname(join(plugin, name)), { recursive: true });
      writeFileSync(join(plugin, name), text);
    }
    const agents = { one: { description: 'd', prompt: 'p' } };
    for (const pluginDelivery of ['argv', 'initialize']) {
      const q = query({ prompt: '/demo:greet Ada', options: p.options({ plugins: [{ type: 'local', path: plugin }], pluginDelivery, agents, tools: ['Bash'] }) });
      const messages = await all(q);
      const init = messages.find((m) => m.subtype === 'init');
      assert.deepEqual([init.plugins[0].name, init.tools, init.agents.includes('one'), init.skills.includes('demo:cook')], ['demo', ['Bash'], true, true]);
      assert.deepEqual(textsOf(messages), ['hello Ada']);
    }
    const schema = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] };
    const counted = await all(query({ prompt: 'count as data', options: p.options({ outputFormat: { type: 'json_schema', schema } }) }));
    assert.deepEqual(resultOf(counted).structured_output, { n: 7 });
    const thought = await all(query({ prompt: 'think about 2 + 2', options: p.options({ includePartialMessages: true }) }));
    const deltas = thought.filter((m) => m.type === 'stream_event' && m.event.type === 'content_block_delta').map((m) => m.event.delta);
    assert.match(deltas.map((d) => d.thinking ?? '').join(''), /2 \+ 2/);
    assert.equal(deltas.map((d) => d.text ?? '').join(''), 'It is 4.');
  },
  // Checklist rows 59 and 69: every method of a query.
  async methods(p) {
    writeFileSync(join(p.dir, 'a.txt'), 'text');
    const talk = new Talk(p.options());
    await talk.ask('say hi');
    const q = talk.query;
    assert.equal((await q.initializationResult()).output_style, 'default');
    assert.equal((await q.reinitialize()).current_permission_mode, 'default');
    assert.ok((await q.supportedCommands()).some((c) => c.name === 'usage' && c.aliases.includes('cost')));
    assert.ok((await q.supportedModels()).every((m) => m.value && m.displayName));
    assert.ok((await q.supportedAgents()).some((a) => a.name === 'Explore'));
    assert.deepEqual(await q.mcpServerStatus(), []);
    const usage = await q.getContextUsage();
    assert.deepEqual([usage.gridRows.length, usage.categories[0].kind], [10, 'used']);
    assert.equal((await q.readFile('a.txt')).contents, 'text');
    assert.ok((await q.reloadPlugins()).commands.length > 40);
    assert.ok((await q.reloadSkills()).skills.some((c) => c.name === 'simplify'));
    assert.ok((await q.reloadOutputStyles()).available_output_styles.includes('Concise'));
    assert.equal((await q.accountInfo()).apiProvider, 'firstParty');
    await q.seedReadState(join(p.dir, 'a.txt'), 1);
    await q.setMaxThinkingTokens(1000);
    await q.setMaxThinkingTokens(null);
    await q.applyFlagSettings({ model: 'sonnet', outputStyle: 'Learning' });
    const init = (await talk.ask('say on')).find((m) => m.subtype === 'init');
    assert.deepEqual([init.model, init.output_style], ['claude-sonnet-5-5', 'Learning']);
    await q.stopTask('nope');
    await q.backgroundTasks();
    await assert.rejects(q.reconnectMcpServer('nope'), /Server not found: nope/);
    assert.deepEqual(await q.interrupt(), { still_queued: [] });
    await talk.end();
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

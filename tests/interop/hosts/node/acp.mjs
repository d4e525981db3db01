// Drives claudeless as an editor does: through the ACP adapter, over the wire of the protocol alone.
//
// CLAUDELESS_BIN is the binary, CLAUDELESS_SCENARIO the scenario. IS_SANDBOX lets the superuser offer the mode without questions,
// as the adapter does. Each check prints one line and fails the program when it fails.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const dir = mkdtempSync(join(tmpdir(), 'interop-'));
mkdirSync(join(dir, '.claude/commands'), { recursive: true });
writeFileSync(join(dir, '.claude/commands/greet.md'), 'say hello $ARGUMENTS\n');
const adapter = join(dirname(fileURLToPath(import.meta.url)), 'node_modules/@agentclientprotocol/claude-agent-acp/dist/index.js');
const agent = spawn(process.execPath, [adapter], {
  cwd: dir,
  stdio: ['pipe', 'pipe', 'inherit'],
  env: { ...process.env, CLAUDE_CODE_EXECUTABLE: process.env.CLAUDELESS_BIN, IS_SANDBOX: '1', CLAUDE_CONFIG_DIR: join(dir, 'config') },
});
const send = (frame) => agent.stdin.write(JSON.stringify({ jsonrpc: '2.0', ...frame }) + '\n');
const waiting = new Map();
let last = 0;
let updates = [];
let wanted = 'allow_once'; // kind of the option that answers the next question
let asked = [];

createInterface({ input: agent.stdout }).on('line', (line) => {
  const frame = JSON.parse(line);
  if (frame.method === 'session/update') updates.push(frame.params.update);
  else if (frame.method === 'session/request_permission') {
    asked.push(frame.params.toolCall);
    const option = frame.params.options.find((o) => o.kind === wanted);
    send({ id: frame.id, result: { outcome: { outcome: 'selected', optionId: option.optionId } } });
  } else if (frame.method === undefined) waiting.get(frame.id)(frame);
});

function call(method, params) {
  const id = ++last;
  send({ id, method, params });
  return new Promise((resolve) => waiting.set(id, resolve));
}

const said = (kind = 'agent_message_chunk') => updates.filter((u) => u.sessionUpdate === kind).map((u) => u.content.text).join('');

let session;
async function prompt(...texts) {
  updates = [];
  asked = [];
  const answer = await call('session/prompt', { sessionId: session, prompt: texts.map((text) => ({ type: 'text', text })) });
  return answer.result?.stopReason ?? answer.error;
}

const checks = {
  async 'a session begins and lists the commands of the project'() {
    const hello = await call('initialize', { protocolVersion: 1, clientCapabilities: {} });
    assert.equal(hello.result.protocolVersion, 1);
    const created = await call('session/new', { cwd: dir, mcpServers: [] });
    session = created.result.sessionId;
    assert.deepEqual(created.result.modes.availableModes.map((m) => m.id).slice(0, 4), ['auto', 'default', 'acceptEdits', 'plan']);
  },
  async 'a prompt is answered'() {
    assert.equal(await prompt('say hello'), 'end_turn');
    assert.equal(said(), 'hello');
    const names = updates.filter((u) => u.sessionUpdate === 'available_commands_update').flatMap((u) => u.availableCommands.map((c) => c.name));
    assert(names.length === 0 || names.includes('greet'), names.join());
  },
  async 'a command of the project, and one that the CLI answers itself, each with one end'() {
    assert.equal(await prompt('/greet you'), 'end_turn');
    assert.match(said(), /^hello you\s*$/);
    assert.equal(await prompt('/context'), 'end_turn');
    assert.match(said(), /Context Usage/);
    assert(!updates.some((u) => u.sessionUpdate === 'usage_update' && u.cost), 'nobody was asked, and yet it costs');
    assert.equal(await prompt('say again'), 'end_turn');
    assert.equal(said(), 'again');
  },
  async 'a command behind what the editor puts before it'() {
    assert.equal(await prompt('say first', '/greet you'), 'end_turn');
    assert.match(said(), /^first\nhello you\s*$|^first\nsay hello you\s*$/);
  },
  async 'a call is allowed, and refused'() {
    assert.equal(await prompt('run touch made'), 'end_turn');
    assert(existsSync(join(dir, 'made')));
    assert.deepEqual(asked.map((c) => c.rawInput.command), ['touch made']);
    wanted = 'reject_once';
    await prompt('run touch not-made');
    assert(!existsSync(join(dir, 'not-made')));
    wanted = 'allow_once';
  },
  async 'in the mode that accepts edits nobody is asked'() {
    await call('session/set_mode', { sessionId: session, modeId: 'acceptEdits' });
    assert.equal(await prompt(`write ${join(dir, 'a.txt')} text`), 'end_turn');
    assert.deepEqual(asked, []);
    assert(existsSync(join(dir, 'a.txt')));
  },
  async 'a turn is cancelled, and the next one is answered'() {
    const slow = prompt('count slowly');
    setTimeout(() => send({ method: 'session/cancel', params: { sessionId: session } }), 300);
    assert.equal(await slow, 'cancelled');
    assert.equal(await prompt('say still here'), 'end_turn');
    assert.equal(said(), 'still here');
  },
  async 'an error of the API is an error'() {
    const failed = await prompt('break');
    assert.match(failed.message, /API Error: 400 no such thing/);
  },
  async 'the session is listed and loaded with what was said'() {
    await call('session/close', { sessionId: session });
    const list = await call('session/list', { cwd: dir });
    assert.deepEqual(list.result.sessions.map((s) => s.sessionId), [session]);
    updates = [];
    await call('session/load', { sessionId: session, cwd: dir, mcpServers: [] });
    assert.match(said('user_message_chunk'), /say hello/);
    assert.match(said(), /still here/);
    assert.equal(await prompt('say goodbye'), 'end_turn');
  },
};

for (const [name, check] of Object.entries(checks)) {
  await check();
  console.log('ok', name);
}
agent.stdin.end();
await new Promise((resolve) => agent.once('exit', resolve));

// The sums that a reader of transcripts computes for a configuration directory equal the results of its runs, token for token.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const dir = mkdtempSync(join(tmpdir(), 'interop-'));
const env = { ...process.env, CLAUDE_CONFIG_DIR: join(dir, 'config'), NO_COLOR: '1' };

function ask(...args) {
  const out = execFileSync(process.env.CLAUDELESS_BIN, ['-p', '--output-format', 'json', '--model', 'claude-sonnet-5-5', ...args], { cwd: dir, env, encoding: 'utf8' });
  return JSON.parse(out);
}

const said = {};
function count({ usage }, model = 'claude-sonnet-5-5') {
  const sum = (said[model] ??= { inputTokens: 0, outputTokens: 0, cacheCreationTokens: 0, cacheReadTokens: 0 });
  sum.inputTokens += usage.input_tokens;
  sum.outputTokens += usage.output_tokens;
  sum.cacheCreationTokens += usage.cache_creation_input_tokens;
  sum.cacheReadTokens += usage.cache_read_input_tokens;
}

const first = ask('say hello there');
count(first);
count(ask('run echo a few words', '--allowedTools', 'Bash'));
count(ask('write a.txt something', '--permission-mode', 'acceptEdits', '--model', 'claude-haiku-4-5'), 'claude-haiku-4-5');
count(ask('think about 2 + 2'));
count(ask('say it again', '--resume', first.session_id));

const read = JSON.parse(
  execFileSync(process.execPath, [join(import.meta.dirname, 'node_modules', 'ccusage', 'dist', 'index.js'), 'daily', '--json', '--offline'], { env, encoding: 'utf8' }),
);
const found = {};
for (const day of read.daily) {
  for (const { modelName, inputTokens, outputTokens, cacheCreationTokens, cacheReadTokens } of day.modelBreakdowns) {
    const sum = (found[modelName] ??= { inputTokens: 0, outputTokens: 0, cacheCreationTokens: 0, cacheReadTokens: 0 });
    sum.inputTokens += inputTokens;
    sum.outputTokens += outputTokens;
    sum.cacheCreationTokens += cacheCreationTokens;
    sum.cacheReadTokens += cacheReadTokens;
  }
}
console.log(said);
assert.deepEqual(found, said);
assert.ok(Object.keys(found).length === 2);
console.log('ok the tokens of five runs');

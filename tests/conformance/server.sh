#!/bin/sh
# Runs the server scenarios of the official MCP conformance suite, requirement
# set 2025-11-25 (M34), against server.toml served by `claudeless fixture serve`.
#
#   tests/conformance/server.sh [CLAUDELESS]
#
# CLAUDELESS is the binary; without it, it is built. install.sh says where the
# suite is. Exit 0 = all 30 scored scenarios passed.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
. "$here/common.sh"

main=$("$here/install.sh")

"$bin" fixture serve "$here/server.toml" --http 127.0.0.1:0 --port-file "$tmp/port" >/dev/null 2>"$tmp/serve.log" &
server=$!
up
node "$main" server --url "http://127.0.0.1:$port/mcp" --requirements 2025-11-25 -o "$tmp/out" >"$tmp/log" 2>&1 || {
	cat "$tmp/log"
	echo "conformance: the suite reports failures" >&2
	exit 1
}
node - "$tmp/out" <<'JS'
const fs = require("fs"), path = require("path"), out = process.argv[2];
const required = `server-initialize logging-set-level ping completion-complete tools-list tools-call-simple-text
tools-call-image tools-call-audio tools-call-embedded-resource tools-call-mixed-content tools-call-with-logging
tools-call-error tools-call-with-progress tools-call-sampling tools-call-elicitation elicitation-sep1034-defaults
server-sse-multiple-streams elicitation-sep1330-enums resources-list resources-read-text resources-read-binary
resources-templates-read resources-subscribe resources-unsubscribe prompts-list prompts-get-simple
prompts-get-with-args prompts-get-embedded-resource prompts-get-with-image dns-rebinding-protection`.split(/\s+/);
const checks = new Map();
const walk = (d) => {
  for (const e of fs.readdirSync(d, { withFileTypes: true })) {
    const p = path.join(d, e.name);
    if (e.isDirectory()) walk(p);
    else if (e.name === "checks.json") checks.set(path.basename(d), JSON.parse(fs.readFileSync(p)));
  }
};
walk(out);
let passed = 0, all = 0;
for (const name of required) {
  const dir = [...checks.keys()].find((k) => k.startsWith("server-" + name + "-2") || k === name || k.startsWith(name + "-2"));
  const list = dir ? checks.get(dir) : [];
  all += list.length;
  const bad = list.filter((c) => c.status === "FAILURE" || c.status === "WARNING");
  if (list.length > 0 && bad.length === 0) passed++;
  else console.error(`${name}: ${dir ? bad.map((c) => c.errorMessage || c.id).join("; ") : "not run"}`);
}
console.log(`conformance: ${passed} of ${required.length} server scenarios of 2025-11-25 passed (${all} checks)`);
process.exit(passed === required.length ? 0 : 1);
JS

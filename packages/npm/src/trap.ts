// A server for clients that do not use the scripted claude: it refuses each request immediately and explains which options to pass.
import { tmpdir } from "node:os";
import { Worker } from "node:worker_threads";

const advice = "pass options: claude.options(…) to the Agent SDK's query, or pathToClaudeCodeExecutable: claude.path; a client of the Messages API takes baseURL: claude.baseURL";

// It runs in a separate thread, so that it answers even while the test waits for a child process. It writes the finding G01 into the journal
// of the claude whose directory the URL names.
const code = `
const { workerData, parentPort } = require("node:worker_threads");
const { appendFileSync, existsSync } = require("node:fs");
const { join } = require("node:path");
const told = new Set();
const server = require("node:http").createServer((request, response) => {
  request.resume();
  const name = request.url.split("/")[1], agent = request.headers["user-agent"] || "a program without a name";
  const what = agent.startsWith("claude-cli/") ? "a real claude was started instead of claudeless" : "a program other than claude used the base URL that is reserved for claude";
  const text = what + ": " + agent;
  const dir = join(workerData.root, name);
  if (request.method !== "HEAD" && /^claudeless-[A-Za-z0-9]+$/.test(name) && existsSync(dir) && !told.has(name + agent)) {
    told.add(name + agent);
    const line = { time: new Date().toISOString(), pid: 0, session_id: "", type: "finding", id: "G01", level: "error", text, advice: workerData.advice };
    appendFileSync(join(dir, "journal.jsonl"), JSON.stringify(line) + "\\n");
  }
  const message = "claudeless: G01: " + text + "; " + workerData.advice;
  response.writeHead(403, { "content-type": "application/json", "x-should-retry": "false", connection: "close" });
  response.end(JSON.stringify({ type: "error", error: { type: "permission_error", message } }));
});
server.listen(0, "127.0.0.1", () => {
  const cell = new Int32Array(workerData.shared);
  Atomics.store(cell, 0, server.address().port);
  Atomics.notify(cell, 0);
});
`;

let url: string | undefined;

/** The address of the one server of this process, which ends with it. */
export function trapURL(): string {
  if (url) return url;
  const shared = new SharedArrayBuffer(4);
  new Worker(code, { eval: true, execArgv: [], workerData: { shared, advice, root: tmpdir() }, stdout: false, stderr: false }).unref();
  const cell = new Int32Array(shared);
  if (Atomics.wait(cell, 0, 0, 10_000) === "timed-out") throw new Error("claudeless: the server behind the dead base URL did not start");
  return (url = `http://127.0.0.1:${Atomics.load(cell, 0)}`);
}

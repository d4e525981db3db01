// What the JavaScript client does, tried in Node against real debuggers: the two
// whose addresses are given. Each case is named; the first failure ends it.
import assert from "node:assert/strict";
import { Worker } from "node:worker_threads";

const [first, second] = process.argv.slice(2);
const client = await import(`data:text/javascript,${encodeURIComponent(await (await fetch(`${first}/api/debug-client.js`)).text())}`);
const { withDebug, withDebugSync, debugCall, debugCallSync, configure, registerReplacement } = client;

let server = first;
const rest = async (method, path, body) => {
  const r = await realFetch(server + path, { method, body: body && JSON.stringify(body), headers: { "Content-Type": "application/json" } });
  const text = await r.text();
  assert.ok(r.ok, `${method} ${path}: ${r.status} ${text}`);
  return JSON.parse(text);
};
const realFetch = globalThis.fetch;
const until = async (what, f) => {
  for (let n = 0; n < 1000; n++) {
    const value = await f();
    if (value) return value;
    await new Promise((done) => setTimeout(done, 10));
  }
  assert.fail(`waited in vain for ${what}`);
};
const paused = (name) => until(`a pause of ${name}`, async () => (await rest("GET", "/api/paused")).paused.find((p) => p.call_data.method_name === name));
const resume = async (name, decision = {}) => {
  const pause = await paused(name);
  await rest("POST", `/api/paused/${pause.id}/continue`, decision);
  return pause.call_data;
};
const stopAt = (name, after = "go", before = "stop") => rest("POST", "/api/breakpoints", { function_name: name, behavior: before, after_behavior: after });
const lastCall = async (name) => (await rest("GET", `/api/calls?function_name=${encodeURIComponent(name)}`)).calls.at(-1);

// seen are the requests of the client; broken may answer in place of the server.
let seen = [], broken = () => undefined;
globalThis.fetch = (url, options) => {
  const path = url.slice(url.indexOf("/api/"));
  seen.push({ path, body: options.body && JSON.parse(options.body) });
  return broken(path) ?? realFetch(url, options);
};
const sentTo = (path) => seen.filter((s) => s.path === path).map((s) => s.body);

function add(a, b = 1, ...rest) { return a + b + rest.length; }

const cases = {
  async "off: nothing is asked"() {
    assert.deepEqual(await debugCall(add, 1, 2), 3);
    assert.equal(debugCallSync(add, 1, 2), 3);
    const object = {};
    assert.equal(withDebug(object), object);
    assert.equal(seen.length, 0);
    const info = withDebug("ON");
    assert.deepEqual([info.enabled, info.isEnabled(), info.serverUrl], [true, true, first]);
  },
  async "a call that is not stopped is recorded, its function registered once"() {
    assert.equal(await debugCall(add, 1, 2), 3);
    assert.equal(await debugCall(add, 3, 4), 7);
    assert.equal(sentTo("/api/functions").length, 1);
    const { functions, function_signatures: signatures, function_metadata: about } = await rest("GET", "/api/functions");
    const { name, signature, source, client_ref: ref, registered_at: at } = about.add;
    assert.deepEqual([functions, signatures.add, name, signature, source, typeof ref], [["add"], "1", "add", 1, String(add), "number"]);
    assert.ok(at > 1e9 && about.add.summary.includes("function add"));
    const call = await lastCall("add");
    assert.deepEqual([call.pretty_args, call.pretty_result, call.status], [[3, 4], 7, "success"]);
    assert.equal(call.process_pid, process.pid);
    assert.match(call.call_site.stack_trace[0].filename, /client\.mjs$/);
  },
  async "names: an alias, a function without one"() {
    await debugCall("alias", add, 1);
    await debugCall(() => 1);
    assert.equal((await lastCall("alias")).pretty_result, 2);
    assert.equal((await lastCall("anonymous")).pretty_result, 1);
    await assert.rejects(debugCall("alias"), TypeError);
    await assert.rejects(debugCall(7), TypeError);
  },
  async "continue passes what it was given and no more"() {
    await stopAt("count");
    const call = debugCall("count", (...args) => args, 1, "b");
    const data = await resume("count");
    assert.deepEqual(await call, [1, "b"]);
    assert.deepEqual([data.pretty_args, data.preferred_format, data.evaluator], [[1, "b"], "json", "client"]);
  },
  async "modify: a new list, some by name, one by its cid"() {
    await stopAt("add");
    let call = debugCall(add, 1, 2);
    const data = await resume("add", { action: "modify", modified_args: [10, 20] });
    assert.equal(await call, 30);
    call = debugCall(add, 1, 2);
    await resume("add", { modified_kwargs: { b: 40, nosuch: 1 } });
    assert.equal(await call, 41);
    call = debugCall(add, 1, 2);
    await resume("add", { action: "modify", modified_args: [{ cid: data.args[1].cid }, { cid: data.args[0].cid }] });
    assert.equal(await call, 3);
    call = debugCall("add", add, 1, 2);
    await resume("add", { action: "modify", modified_args: [], modified_kwargs: {} });
    assert.ok(Number.isNaN(await call));
  },
  async "skip: with a value, with data, with nothing"() {
    const never = () => assert.fail("it ran");
    await stopAt("skipped");
    for (const [decision, want] of [[{ fake_result: { a: [1, null] } }, { a: [1, null] }], [{ fake_result_data: "[1]", fake_result_serialization_format: "json" }, [1]], [{}, null]]) {
      const call = debugCall("skipped", never);
      await resume("skipped", { action: "skip", ...decision });
      assert.deepEqual(await call, want);
      assert.deepEqual((await lastCall("skipped")).pretty_result, want);
    }
  },
  async "raise: an error of the language, one of another"() {
    await stopAt("raised");
    for (const type of ["TypeError", "ValueError", undefined]) {
      const call = debugCall("raised", () => assert.fail("it ran"));
      await Promise.all([
        assert.rejects(call, (e) => e.message === "no" && e.name === (type ?? "Exception") && (type !== "TypeError" || e instanceof TypeError)),
        resume("raised", { action: "raise", exception_type: type, exception_message: "no" }),
      ]);
      const record = await lastCall("raised");
      assert.deepEqual([record.status, record.exception.message, record.exception_message], ["exception", "no", "no"]);
    }
  },
  async "replace: of the same arity, of another, unknown"() {
    registerReplacement("triple", (a) => a * 3);
    registerReplacement("none", () => 0);
    await stopAt("double");
    for (const [other, want] of [["triple", 30], ["none", 20], ["nosuch", 20]]) {
      const call = debugCall("double", (a) => a * 2, 10);
      await resume("double", { replacement_function: other });
      assert.equal(await call, want);
    }
  },
  async "a standing replacement"() {
    await rest("POST", "/api/functions", { function_name: "triple", signature: 1 });
    await stopAt("twice", "go", "go");
    await debugCall("twice", (a) => a * 2, 1);
    await rest("POST", "/api/breakpoints/twice/replacement", { replacement_function: "triple" });
    assert.equal(await debugCall("twice", (a) => a * 2, 10), 30);
  },
  async "after the call: a result waits, an error waits"() {
    await stopAt("later", "stop_exception", "go");
    let over = false;
    const call = debugCall("later", () => 7).finally(() => (over = true));
    assert.equal((await paused("later")).call_data.pretty_result, 7);
    assert.equal(over, false);
    await resume("later");
    assert.equal(await call, 7);
    const error = new RangeError("broke");
    const failing = debugCall("later", () => { throw error; });
    const seenThen = failing.catch((e) => e);
    const pause = await paused("later");
    assert.deepEqual([pause.call_data.pause_reason, pause.call_data.exception], ["exception", { name: "RangeError", message: "broke" }]);
    await resume("later");
    assert.equal(await seenThen, error);
    assert.match((await lastCall("later")).exception_traceback, /client\.mjs/);
  },
  async "expressions see the arguments, this, the parameters"() {
    const shop = withDebug(["shop", { base: 2, add(x, { y }, ...more) { return this.base + x + y + more.length; } }]);
    await stopAt("shop.add");
    const call = shop.add(1, { y: 2 }, "m");
    const pause = await paused("shop.add");
    const { session_id: session } = await rest("POST", "/api/repl/start", { pause_id: pause.id });
    for (const [expr, output, failed] of [
      ["$this.base + $args[0]", "3", false], ["x + more.length", "2", false], ["undefined", "undefined", false], ["({ a: [x] })", '{"a":[1]}', false],
      ["Promise.resolve(x)", "1", false], ["nosuch", "ReferenceError: nosuch is not defined", true], ["1 +", "SyntaxError: Unexpected end of input", true],
    ]) {
      const answer = await rest("POST", `/api/repl/${session}/eval`, { expr });
      assert.deepEqual([answer.output, answer.is_error], [output, failed], expr);
      if (!failed) assert.equal(answer.result_cid.length, 128);
    }
    await resume("shop.add");
    assert.equal(await call, 6);
  },
  async "objects: this, plain members, what the language calls itself"() {
    const target = { base: 2, plus(n) { return this.base + n; }, toString() { return "target"; } };
    const object = withDebug(target);
    await stopAt("toString");
    assert.equal(object.base, 2);
    assert.equal(await object.plus(3), 5);
    assert.equal(String(object), "target");
    assert.equal(object.constructor, Object);
    await until("a record of toString", async () => (await lastCall("toString"))?.pretty_result === "target");
    await until("no pause of it", async () => (await rest("GET", "/api/paused")).paused.length === 0);
    const frozen = withDebug(Object.freeze({ f: () => 1 }));
    assert.equal(frozen.f(), 1);
    for (const thing of [null, undefined, 7, add]) assert.equal(withDebug(thing), thing);
  },
  async "any value travels"() {
    const loop = { a: 1 };
    loop.self = loop;
    const deep = {};
    let inner = deep;
    for (let n = 0; n < 60; n++) inner = inner.child = {};
    const shared = {};
    const values = [
      NaN, -Infinity, undefined, 10n, Symbol("s"), add, /a/i, new Date(0), new TypeError("no"), new Map([["k", new Set([1])]]), new Uint8Array([1, 2]),
      loop, [shared, shared], deep, { toJSON: () => "own" }, { get a() { throw new Error("closed"); } }, "ü\u2028",
    ];
    assert.equal(await debugCall("values", (...all) => all.length, ...values), values.length);
    const got = (await lastCall("values")).pretty_args;
    assert.deepEqual(got.slice(0, 13), [
      "NaN", "-Infinity", null, "10", "Symbol(s)", "[Function add]", "/a/i", "1970-01-01T00:00:00.000Z", { name: "TypeError", message: "no" }, [["k", [1]]], [1, 2],
      { a: 1, self: "[Circular]" }, [{}, {}],
    ]);
    assert.equal(got[13].serialization_error, "nested deeper than 50");
    assert.equal(got[14], "own");
    assert.deepEqual([got[15].serialization_error, got[15].failed_attributes], ["closed", { a: "Error: closed" }]);
    assert.equal(got[16], "ü\u2028");
  },
  async "many at once"() {
    await stopAt("at once");
    const calls = [1, 2, 3].map((n) => debugCall("at once", (x) => x * 10, n));
    const all = await until("three pauses", async () => {
      const { paused } = await rest("GET", "/api/paused");
      return paused.length === 3 && paused;
    });
    for (const p of all.reverse()) await rest("POST", `/api/paused/${p.id}/continue`, { action: "modify", modified_args: [p.call_data.pretty_args[0] + 1] });
    assert.deepEqual(await Promise.all(calls), [20, 30, 40]);
  },
  async "values are sent once, and again to a debugger that has lost them"() {
    const value = { large: "x".repeat(10 << 20) };
    await debugCall("once", () => 1, value);
    await debugCall("once", () => 1, value);
    const [one, two] = sentTo("/api/call/start").slice(-2).map((s) => s.args[0]);
    assert.ok(one.data.length > 10 << 20);
    assert.deepEqual([two.data, two.cid, two.client_ref], [undefined, one.cid, one.client_ref]);
    configure({ serverUrl: second });
    server = second;
    assert.equal(await debugCall("once", () => 2, value), 2);
    assert.equal(sentTo("/api/call/start").at(-1).args[0].data.length, one.data.length);
    assert.equal((await rest("GET", "/api/com-errors")).errors.length, 0); // it is no failure
  },
  async "a debugger that is away for a moment, and a pause it has lost"() {
    await stopAt("away");
    const call = debugCall("away", () => 1);
    await paused("away");
    let times = 0;
    broken = (path) => (path.startsWith("/api/poll/") && times++ < 3 ? Promise.reject(new TypeError("fetch failed")) : undefined);
    await until("failed polls", () => times > 3);
    broken = () => undefined;
    await resume("away");
    assert.equal(await call, 1);
    const given = debugCall("away", () => assert.fail("it ran"));
    const lost = assert.rejects(given, /abandoned/);
    await realFetch(`${server}/api/poll/${(await paused("away")).id}`, { method: "DELETE" });
    await lost;
    broken = (path) => (path.startsWith("/api/poll/") ? realFetch(`${server}${path.replace(/poll\/[^?]*/, "poll/nosuch")}`) : undefined);
    const forgotten = debugCall("away", () => assert.fail("it ran"));
    await assert.rejects(forgotten, /pause_not_found/);
    broken = () => undefined;
    assert.deepEqual((await rest("GET", "/api/paused")).paused, []); // its failure ended the pause
  },
  async "a refusal is an error that the debugger shows"() {
    await assert.rejects(debugCall("", () => 1), /function_name required/);
    await until("the report", async () => (await rest("GET", "/api/com-errors")).errors.some((e) => /function_name required/.test(e.summary) && e.status_code === 400));
  },
  async "without waiting: the program stands still at a pause"() {
    assert.throws(() => debugCallSync("still", add, 1, 2), /need XMLHttpRequest/);
    globalThis.XMLHttpRequest = SyncRequest;
    await stopAt("still", "stop");
    const code = `
      const rest = async (method, path, body) => (await fetch(${JSON.stringify(server)} + path, { method, body: JSON.stringify(body) })).json();
      const next = async () => { for (;;) { const { paused } = await rest("GET", "/api/paused"); if (paused.length) return paused[0]; } };
      (async () => {
        const pause = await next();
        const { session_id } = await rest("POST", "/api/repl/start", { pause_id: pause.id });
        const { output } = await rest("POST", "/api/repl/" + session_id + "/eval", { expr: "a + $args.length" });
        await rest("POST", "/api/paused/" + pause.id + "/continue", { action: "modify", modified_args: [Number(output), 100] });
        const after = await next();
        await rest("POST", "/api/paused/" + after.id + "/continue", {});
      })();`;
    const person = new Worker(code, { eval: true });
    assert.equal(debugCallSync("still", add, 1, 2), 103);
    const shop = withDebugSync(["shop", { n: 1, sum(a) { return this.n + a; } }]);
    assert.equal(shop.sum(2), 3);
    assert.equal((await lastCall("shop.sum")).pretty_result, 3);
    assert.throws(() => debugCallSync("shop.fails", () => { throw new Error("inside"); }), /inside/);
    assert.equal((await lastCall("shop.fails")).status, "exception");
    await person.terminate();
    SyncRequest.worker.terminate();
  },
};

// SyncRequest is what of XMLHttpRequest the client uses: another thread asks and
// this one stands still.
class SyncRequest {
  static cells = new SharedArrayBuffer(8);
  static text = new SharedArrayBuffer(1 << 20);
  static worker = undefined;
  headers = {};
  open(method, url) { Object.assign(this, { method, url }); }
  setRequestHeader(name, value) { this.headers[name] = value; }
  send(body) {
    SyncRequest.worker ??= new Worker(`
      const { parentPort, workerData: { cells, text } } = require("node:worker_threads");
      parentPort.on("message", async ({ url, ...options }) => {
        const r = await fetch(url, options), body = new Uint8Array(await r.arrayBuffer());
        new Uint8Array(text).set(body);
        const n = new Int32Array(cells);
        n[1] = body.length;
        Atomics.store(n, 0, r.status);
        Atomics.notify(n, 0);
      });`, { eval: true, workerData: { cells: SyncRequest.cells, text: SyncRequest.text } });
    const n = new Int32Array(SyncRequest.cells);
    Atomics.store(n, 0, 0);
    SyncRequest.worker.postMessage({ url: this.url, method: this.method, headers: this.headers, body });
    Atomics.wait(n, 0, 0);
    this.status = n[0];
    this.responseText = new TextDecoder().decode(new Uint8Array(SyncRequest.text).slice(0, n[1]));
  }
}

console.warn = () => {};
for (const [name, f] of Object.entries(cases)) {
  seen = [];
  await f().catch((e) => {
    console.error(`${name}: ${e.stack}`);
    process.exit(1);
  });
  console.log("ok", name);
}
process.exit(0);

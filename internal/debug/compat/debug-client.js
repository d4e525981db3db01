const SERVER_URL = ""; // the debugger puts its own address here

// The breakpoint client for JavaScript. Calls through it pause at the breakpoints
// of the debugger that the client was loaded from. It works in web pages and in
// Node, which loads modules only from files:
//
//   import { withDebug, debugCall } from "http://127.0.0.1:5174/api/debug-client.js";
//   withDebug("ON");
//   await debugCall(add, 1, 2); // or debugCall("name", add, 1, 2)
//   const shop = withDebug(["shop", object]); // each method is a call "shop.method"
//
// The protocol around a call is implemented once, as a generator of steps.
// debugCallSync executes the steps with XMLHttpRequest, debugCall with fetch.
// Values are sent as JSON.

const state = {
  on: false,
  server: SERVER_URL,
  token: "",
  lastRef: 0,
  refs: new WeakMap(), // object → number that tells it from all others
  registered: new WeakMap(), // function → names under which it is known
  sent: new Set(), // CIDs of values that the debugger has
  replacements: new Map(), // name → function
};
const maxSent = 10_000;
const patience = 60_000; // ms that a pause outlives a debugger that does not answer

// --- steps and their execution

const run = (f) => ({ now: f, later: async () => f() });
const sleep = (ms) => ({ now() {}, later: () => new Promise((done) => setTimeout(done, ms)) });

async function later(steps) {
  let turn = steps.next();
  while (!turn.done) {
    let value;
    try {
      value = await turn.value.later();
    } catch (error) {
      turn = steps.throw(error);
      continue;
    }
    turn = steps.next(value);
  }
  return turn.value;
}

function now(steps) {
  let turn = steps.next();
  while (!turn.done) {
    let value;
    try {
      value = turn.value.now();
    } catch (error) {
      turn = steps.throw(error);
      continue;
    }
    turn = steps.next(value);
  }
  return turn.value;
}

// --- requests

// DebugServerError is an error response of the debugger; code is its error code.
class DebugServerError extends Error {
  constructor(method, path, status, answer) {
    super(`${answer?.message ?? answer?.error ?? `HTTP status ${status}`} (${method} ${path})`);
    this.name = "DebugServerError";
    this.code = answer?.error;
  }
}

function request(method, path, body) {
  const url = server() + path;
  const text = body === undefined ? undefined : JSON.stringify(body);
  const headers = {};
  if (text !== undefined) headers["Content-Type"] = "application/json";
  if (state.token) headers.Authorization = `Bearer ${state.token}`;
  return {
    async later() {
      const r = await fetch(url, { method, headers, body: text });
      const answer = await r.json().catch(() => undefined);
      if (r.ok && answer !== undefined) return answer;
      const error = new DebugServerError(method, path, r.status, answer);
      report(error, method, path, r.status).later().catch(() => {});
      throw error;
    },
    now() {
      if (!globalThis.XMLHttpRequest) throw new Error("synchronous calls need XMLHttpRequest, which is not available here: use debugCall and withDebug");
      const r = new XMLHttpRequest();
      r.open(method, url, false);
      for (const [name, value] of Object.entries(headers)) r.setRequestHeader(name, value);
      r.send(text ?? null);
      const answer = attempt(() => JSON.parse(r.responseText));
      if (r.status < 400 && answer !== undefined) return answer;
      const error = new DebugServerError(method, path, r.status, answer);
      attempt(() => report(error, method, path, r.status).now());
      throw error;
    },
  };
}

const attempt = (f) => { try { return f(); } catch { return undefined; } };

// report sends a communication error to the debugger, which shows it.
function report(error, method, path, status) {
  const again = error.code === "cid_not_found" || path === "/api/report-com-error";
  if (again) return run(() => undefined);
  return request("POST", "/api/report-com-error", {
    summary: error.message, exception_type: error.name, exception_message: error.message, timestamp: seconds(),
    method, path, server_url: server(), status_code: status, ...identity(),
  });
}

function server() {
  const url = state.server || globalThis.location?.origin;
  if (!url) throw new Error('the debugger\'s address is not known: configure({ serverUrl: "http://127.0.0.1:5174" })');
  return url.replace(/\/+$/, "");
}

const seconds = () => Date.now() / 1000;
const pageURL = () => globalThis.window?.location?.href ?? globalThis.location?.href;

// A page has no process: its pid is 0, and its start time is when it was loaded.
const identity = () => ({
  process_pid: globalThis.window ? 0 : (globalThis.process?.pid ?? 0),
  process_start_time: (globalThis.performance?.timeOrigin || state.onSince) / 1000,
  page_url: pageURL(),
});

// --- values

const maxDepth = 50;
const maxAttributes = 100;

// jsonText encodes any value as JSON. A value that JSON cannot represent becomes
// a string; a value that cannot be encoded is replaced by a description.
function jsonText(value) {
  try {
    return JSON.stringify(plain(value, []));
  } catch (error) {
    return JSON.stringify(described(value, error));
  }
}

function plain(v, above) {
  if (v === null || v === undefined) return null;
  switch (typeof v) {
    case "number": return Number.isFinite(v) ? v : String(v);
    case "bigint": case "symbol": return String(v);
    case "function": return `[Function ${v.name || "anonymous"}]`;
    case "string": case "boolean": return v;
  }
  if (above.includes(v)) return "[Circular]";
  if (above.length >= maxDepth) throw new Error(`nested deeper than ${maxDepth}`);
  above.push(v);
  const out = members(v, (x) => plain(x, above));
  above.pop();
  return out;
}

function members(v, each) {
  switch (Object.prototype.toString.call(v).slice(8, -1)) {
    case "Array": return Array.from(v, each);
    case "Date": return Number.isNaN(v.getTime()) ? String(v) : v.toISOString();
    case "RegExp": return String(v);
    case "Error": case "DOMException": return { ...wordsOf(v), ...Object.fromEntries(Object.entries(v).map(([k, x]) => [k, each(x)])) };
    case "Map": return Array.from(v, ([key, x]) => [each(key), each(x)]);
    case "Set": return Array.from(v, each);
  }
  if (ArrayBuffer.isView(v) && typeof v.length === "number") return Array.from(v, each);
  if (typeof v.nodeType === "number" && typeof v.nodeName === "string") return described(v);
  if (typeof v.toJSON === "function") return each(v.toJSON());
  return Object.fromEntries(Object.keys(v).map((key) => [key, each(v[key])]));
}

const wordsOf = (error) => ({
  name: String(error?.name ?? "Error"),
  message: String(error?.message ?? error),
});

// described returns a description for a value without a JSON form.
function described(v, error) {
  const attributes = {}, failed = {};
  const set = (name, get) => {
    try {
      const x = get();
      attributes[name] = x === null || /^(string|number|boolean)$/.test(typeof x) ? plain(x, []) : `[${typeof x}]`;
    } catch (e) {
      failed[name] = String(e);
    }
  };
  if (v.attributes?.length !== undefined) for (const a of [...v.attributes].slice(0, maxAttributes)) set(a.name, () => a.value);
  else for (const key of Object.keys(v).slice(0, maxAttributes)) set(key, () => v[key]);
  return {
    type_name: attempt(() => v.constructor.name) ?? typeof v,
    repr_text: String(attempt(() => v.outerHTML ?? String(v)) ?? "").slice(0, 300),
    attributes, failed_attributes: failed, serialization_format: "json",
    ...(error && { serialization_error: wordsOf(error).message }),
  };
}

// item is a value as it is sent, identified by the SHA-512 of its text.
function* item(value) {
  const data = jsonText(value);
  const cid = yield { now: () => sha512(data), later: () => digest(data) };
  return { cid, client_ref: refOf(value), data, serialization_format: "json" };
}

function refOf(value) {
  if ((typeof value !== "object" || value === null) && typeof value !== "function") return ++state.lastRef;
  if (!state.refs.has(value)) state.refs.set(value, ++state.lastRef);
  return state.refs.get(value);
}

function* valueOf(it) {
  if (it.data !== undefined && it.data !== null) return JSON.parse(it.data);
  return yield request("GET", `/api/cid/${it.cid}`);
}

function remember(items) {
  for (const { cid } of items) {
    state.sent.delete(cid);
    state.sent.add(cid);
  }
  for (const cid of state.sent) {
    if (state.sent.size <= maxSent) break;
    state.sent.delete(cid);
  }
}

async function digest(text) {
  const subtle = globalThis.crypto?.subtle; // pages have it only if their origin can be trusted
  if (!subtle) return sha512(text);
  const sum = await subtle.digest("SHA-512", new TextEncoder().encode(text));
  return Array.from(new Uint8Array(sum), (b) => b.toString(16).padStart(2, "0")).join("");
}

// constants are the constants of SHA-512, with high and low halves alternating:
// the first 64 fractional bits of the roots of the first primes.
let constants;
function rootsOfPrimes() {
  const primes = [];
  for (let n = 2; primes.length < 80; n++) if (primes.every((p) => n % p)) primes.push(n);
  const root = (n, k) => { // by Newton, from above
    for (let x = 1n << 72n; ;) {
      const y = ((k - 1n) * x + n / x ** (k - 1n)) / k;
      if (y >= x) return x;
      x = y;
    }
  };
  const halves = (p, k) => {
    const bits = BigInt.asUintN(64, root(BigInt(p) << (64n * k), k));
    return [Number(bits >> 32n), Number(bits & 0xffffffffn)];
  };
  return {
    square: Uint32Array.from(primes.slice(0, 8).flatMap((p) => halves(p, 2n))),
    cube: Uint32Array.from(primes.flatMap((p) => halves(p, 3n))),
  };
}

// sha512 returns the digest of a text in hexadecimal, synchronously.
function sha512(text) {
  constants ??= rootsOfPrimes();
  const { square, cube } = constants;
  const bytes = new TextEncoder().encode(text);
  const padded = new DataView(new ArrayBuffer(Math.ceil((bytes.length + 17) / 128) * 128));
  new Uint8Array(padded.buffer).set(bytes);
  padded.setUint8(bytes.length, 0x80);
  padded.setUint32(padded.byteLength - 8, Math.floor(bytes.length / 2 ** 29));
  padded.setUint32(padded.byteLength - 4, (bytes.length * 8) >>> 0);
  const sum = Int32Array.from(square), w = new Int32Array(160), s = new Int32Array(16);
  // high returns the upper half of a word rotated to the right. With the halves
  // exchanged, it returns the lower half.
  const high = (h, l, r) => (r < 32 ? (h >>> r) | (l << (32 - r)) : (l >>> (r - 32)) | (h << (64 - r)));
  const mix = (h, l, a, b, c) => high(h, l, a) ^ high(h, l, b) ^ high(h, l, c);
  for (let block = 0; block < padded.byteLength; block += 128) {
    for (let i = 0; i < 32; i++) w[i] = padded.getInt32(block + 4 * i);
    for (let i = 32; i < 160; i += 2) {
      const ah = w[i - 30], al = w[i - 29], bh = w[i - 4], bl = w[i - 3];
      const lows = (w[i - 31] >>> 0) + (w[i - 13] >>> 0) +
        ((high(al, ah, 1) ^ high(al, ah, 8) ^ ((al >>> 7) | (ah << 25))) >>> 0) +
        ((high(bl, bh, 19) ^ high(bl, bh, 61) ^ ((bl >>> 6) | (bh << 26))) >>> 0);
      w[i] = w[i - 32] + w[i - 14] + (high(ah, al, 1) ^ high(ah, al, 8) ^ (ah >>> 7)) +
        (high(bh, bl, 19) ^ high(bh, bl, 61) ^ (bh >>> 6)) + Math.floor(lows / 2 ** 32);
      w[i + 1] = lows;
    }
    s.set(sum);
    for (let i = 0; i < 160; i += 2) {
      const [ah, al, bh, bl, ch, cl, dh, dl, eh, el, fh, fl, gh, gl, hh, hl] = s;
      const low1 = (hl >>> 0) + (mix(el, eh, 14, 18, 41) >>> 0) + (((el & fl) ^ (~el & gl)) >>> 0) + cube[i + 1] + (w[i + 1] >>> 0);
      const high1 = (hh + mix(eh, el, 14, 18, 41) + ((eh & fh) ^ (~eh & gh)) + cube[i] + w[i] + Math.floor(low1 / 2 ** 32)) | 0;
      const low2 = (mix(al, ah, 28, 34, 39) >>> 0) + (((al & bl) ^ (al & cl) ^ (bl & cl)) >>> 0) + (low1 >>> 0);
      const lowE = (dl >>> 0) + (low1 >>> 0);
      s.copyWithin(2, 0, 14);
      s[0] = high1 + mix(ah, al, 28, 34, 39) + ((ah & bh) ^ (ah & ch) ^ (bh & ch)) + Math.floor(low2 / 2 ** 32);
      s[1] = low2;
      s[8] = dh + high1 + Math.floor(lowE / 2 ** 32);
      s[9] = lowE;
    }
    for (let i = 0; i < 16; i += 2) {
      const low = (sum[i + 1] >>> 0) + (s[i + 1] >>> 0);
      sum[i] = sum[i] + s[i] + Math.floor(low / 2 ** 32);
      sum[i + 1] = low;
    }
  }
  return Array.from(sum, (n) => (n >>> 0).toString(16).padStart(8, "0")).join("");
}

// --- a call

// A call is { name, fn, source, self, args }: fn is the function that runs, source the
// function as the program wrote it.

function* debugged(call) {
  yield* register(call.source, call.name);
  const begun = yield* start(call);
  let result;
  try {
    const action = yield* decision(begun, call);
    result = yield* perform(action, call);
  } catch (error) {
    try {
      yield* decision(yield* complete(begun.call_id, { error }), call);
    } catch { /* the error of the call is the one to see */ }
    throw error;
  }
  yield* decision(yield* complete(begun.call_id, { result }), call);
  return result;
}

function* register(source, name) {
  if (!state.registered.has(source)) state.registered.set(source, new Set());
  const names = state.registered.get(source);
  if (names.has(name)) return;
  names.add(name);
  try {
    const about = yield* item({ name, signature: source.length, source: String(source) });
    yield request("POST", "/api/functions", {
      function_name: name, signature: source.length, function_client_ref: refOf(source),
      function_cid: about.cid, function_data: about.data, function_serialization_format: "json",
    });
  } catch (error) {
    names.delete(name);
    throw error;
  }
}

function* start(call) {
  const target = yield* item({ name: call.name, length: call.source.length });
  const args = [];
  for (const value of call.args) args.push(yield* item(value));
  const told = (form) => ({
    method_name: call.name, target: form(target), args: args.map(form), kwargs: {}, call_type: call.self === undefined ? "inline" : "proxy",
    call_site: { timestamp: seconds(), page_url: pageURL(), stack_trace: call.stack }, preferred_format: "json", ...identity(),
  });
  let begun;
  try {
    begun = yield request("POST", "/api/call/start", told(({ data, ...it }) => (state.sent.has(it.cid) ? it : { ...it, data })));
  } catch (error) {
    if (error.code !== "cid_not_found") throw error;
    begun = yield request("POST", "/api/call/start", told((it) => it)); // the debugger lost them
  }
  remember([target, ...args]);
  if (!begun.call_id) throw new Error("the debugger returned no call id");
  return begun;
}

// decision waits for the decision of a pause. An answer that is not a pause is returned unchanged.
function* decision(action, call) {
  let since, asked = false;
  while (action?.action === "poll") {
    const path = new URL(action.poll_url, server()).pathname;
    yield* answerQuestions(path.split("/").pop(), call);
    const ask = (wait) => request("GET", asked ? `${path}?wait=${wait}` : path); // with it a pause that is lost is an error
    try {
      const answer = yield { now: () => ask(0.1).now(), later: () => ask(0).later() };
      since = undefined;
      if (answer.status === "ready") {
        action = answer.action;
        asked = false;
        continue;
      }
      asked = true;
    } catch (error) {
      since ??= Date.now();
      if (error instanceof DebugServerError || Date.now() - since > patience) throw error;
    }
    yield sleep(action.poll_interval_ms ?? 100);
  }
  return action;
}

function* perform(action, call) {
  switch (action?.action ?? "continue") {
    case "continue":
      return yield run(() => call.fn(...call.args));
    case "modify": {
      const args = yield* modified(action, call);
      return yield run(() => call.fn(...args));
    }
    case "skip":
      if (typeof action.fake_result_data === "string" && action.fake_result_serialization_format !== "dill") return JSON.parse(action.fake_result_data);
      if ("fake_result" in action) return action.fake_result;
      return action.fake_result_cid ? yield* valueOf({ cid: action.fake_result_cid }) : null;
    case "raise": {
      const Kind = globalThis[action.exception_type];
      const error = new (Kind?.prototype instanceof Error ? Kind : Error)(action.exception_message || "the debugger made the call fail");
      if (action.exception_type) error.name = action.exception_type;
      throw error;
    }
    case "replace": {
      const other = state.replacements.get(action.function_name);
      if (other?.length === call.source.length) return yield run(() => other(...call.args));
      console.warn(`${call.name}: ${other ? "takes a different number of arguments than" : "no registered replacement"} ${action.function_name}; the original function runs`);
      return yield run(() => call.fn(...call.args));
    }
    default:
      throw new Error(`this client does not support the action ${action.action}`);
  }
}

// modified returns the new arguments of a call: a new list, or the old list in
// which named arguments are replaced.
function* modified(action, call) {
  let args = [...call.args];
  if (action.modified_args) {
    args = [];
    for (const it of action.modified_args) args.push(yield* valueOf(it));
  }
  const names = parameters(call.source).map((p) => p.name);
  for (const [name, it] of Object.entries(action.modified_kwargs ?? {})) {
    const at = names.indexOf(name);
    if (at < 0) console.warn(`${call.name} has no parameter ${name}`);
    else args[at] = yield* valueOf(it);
  }
  return args;
}

function* complete(call_id, { result, error }) {
  const body = { call_id, timestamp: seconds(), status: error === undefined ? "success" : "exception", ...identity() };
  const of = yield* item(error === undefined ? result : wordsOf(error));
  const kind = error === undefined ? "result" : "exception";
  Object.assign(body, {
    [`${kind}_cid`]: of.cid, [`${kind}_client_ref`]: refOf(error ?? result), [`${kind}_data`]: of.data, [`${kind}_serialization_format`]: "json",
  });
  if (error !== undefined) {
    const { name, message } = wordsOf(error);
    Object.assign(body, { exception_type: name, exception_message: message, exception_traceback: String(error?.stack ?? "") });
  }
  return yield request("POST", "/api/call/complete", body);
}

// --- evaluation at a pause

function* answerQuestions(pause, call) {
  try {
    for (;;) {
      const q = yield request("GET", `/api/poll-repl/${pause}`);
      if (!q?.eval_id) return;
      const body = { eval_id: q.eval_id, session_id: q.session_id, pause_id: q.pause_id, stdout: "", error: null };
      try {
        const value = yield run(() => evaluate(q.expr, call));
        const of = yield* item(value);
        Object.assign(body, { result: value === undefined ? "undefined" : of.data, result_cid: of.cid, result_data: of.data, result_serialization_format: "json" });
      } catch (error) {
        body.error = wordsOf(error);
      }
      yield request("POST", "/api/call/repl-result", body);
    }
  } catch { /* evaluation is a help; the pause goes on without it */ }
}

// evaluate runs an expression as if it were written in the function: $args, $this
// and the parameters have the values of the call.
function evaluate(expr, call) {
  const known = parameters(call.source).map((p, i) => [p.name, p.rest ? call.args.slice(i) : call.args[i]]);
  const names = known.filter(([name]) => name && !["$args", "$this", "expr"].includes(name));
  const f = Function("$args", "$this", ...names.map(([name]) => name), "expr", "return eval(expr);");
  return f(call.args, call.self, ...names.map(([, value]) => value), String(expr));
}

// parameters reads the names of a function's parameters from its source. A
// destructured parameter ({ a, b }) has no name.
function parameters(f) {
  const source = Function.prototype.toString.call(f).replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, "");
  const single = /^\s*(?:async\s+)?([A-Za-z_$][\w$]*)\s*=>/.exec(source);
  if (single) return [{ name: single[1] }];
  const parts = [""];
  let depth = 0;
  for (const c of source.slice(source.indexOf("(") + 1)) {
    if (c === ")" && depth === 0) break;
    if (c === "," && depth === 0) parts.push("");
    else parts[parts.length - 1] += c;
    if ("([{".includes(c)) depth++;
    if (")]}".includes(c)) depth--;
  }
  if (!parts.at(-1).trim()) parts.pop();
  return parts.map((part) => {
    const found = /^\s*(\.\.\.)?\s*([A-Za-z_$][\w$]*)/.exec(part);
    return { name: found?.[2], rest: found?.[1] !== undefined };
  });
}

// frames parses a stack trace, innermost caller first. Engines write a frame as
// "at f (file:line:column)" or "f@file:line:column".
function frames(stack = new Error().stack ?? "") {
  const all = [];
  for (const line of stack.split("\n")) {
    const found = /^\s*at (?:async )?(?:(.*?) \()?(.*?):(\d+):\d+\)?$/.exec(line) ?? /^(.*?)@(.*?):(\d+):\d+$/.exec(line);
    if (found) all.push({ filename: found[2], lineno: Number(found[3]), function: found[1] || "<anonymous>", code_context: null });
  }
  const own = all[0]?.filename; // this file
  return all.filter((f) => f.filename !== own);
}

// --- public functions

function parse(first, rest) {
  const [name, fn, args] = typeof first === "string" ? [first, rest[0], rest.slice(1)] : [first?.name || "anonymous", first, rest];
  if (typeof fn !== "function") throw new TypeError("debugCall takes (function, ...arguments) or (name, function, ...arguments)");
  return { name, fn, source: fn, self: undefined, args, stack: frames() };
}

// debugCall calls a function with a breakpoint around it.
async function debugCall(first, ...rest) {
  const call = parse(first, rest);
  return state.on ? later(debugged(call)) : call.fn(...call.args);
}

// debugCallSync is debugCall for synchronous code: the page is blocked while the
// call is paused.
function debugCallSync(first, ...rest) {
  const call = parse(first, rest);
  return state.on ? now(debugged(call)) : call.fn(...call.args);
}

// withDebug switches debugging on or off ("ON", "OFF"), or returns an object
// whose methods pause at breakpoints and return promises.
const withDebug = (what) => command(what) ?? wrap(what, (call) => later(debugged(call)));

// withDebugSync is like withDebug, but the methods stay synchronous.
const withDebugSync = (what) => command(what) ?? wrap(what, (call) => now(debugged(call)));

function command(what) {
  if (what !== "ON" && what !== "OFF") return undefined;
  state.on = what === "ON";
  state.onSince ??= Date.now();
  return { enabled: state.on, serverUrl: attempt(server), isEnabled: () => state.on };
}

// The language calls these functions itself and cannot wait for a decision. They
// are recorded and never paused.
const unstoppable = new Set(["valueOf", "toString", "toJSON", Symbol.toPrimitive, Symbol.iterator, Symbol.asyncIterator, Symbol.hasInstance, Symbol.toStringTag]);

function wrap(what, perform) {
  const named = Array.isArray(what) && what.length === 2 && typeof what[0] === "string";
  const [alias, target] = named ? what : [undefined, what];
  if (!state.on || typeof target !== "object" || target === null) return target;
  return new Proxy(target, {
    get(object, key) {
      const method = Reflect.get(object, key);
      const fixed = Reflect.getOwnPropertyDescriptor(object, key);
      if (typeof method !== "function" || key === "constructor" || (fixed && !fixed.configurable && !fixed.writable)) return method;
      return (...args) => {
        const fn = (...given) => method.apply(object, given);
        const name = alias === undefined ? String(key) : `${alias}.${String(key)}`;
        const call = { name, fn, source: method, self: object, args, stack: frames() };
        if (!state.on) return fn(...args);
        return unstoppable.has(key) ? recorded(call) : perform(call);
      };
    },
  });
}

// recorded runs a call and then reports it to the debugger.
function recorded(call) {
  const result = call.fn(...call.args);
  later((function* () {
    const begun = yield* start(call);
    const after = yield* complete(begun.call_id, { result });
    if (after.poll_url) yield request("DELETE", after.poll_url);
  })()).catch(() => {});
  return result;
}

// configure sets the address of the debugger, and the token if it requires one.
function configure({ serverUrl, token } = {}) {
  if (serverUrl) state.server = serverUrl;
  if (token) state.token = token;
}

// registerReplacement registers a function that can replace another one with the
// same number of parameters.
function registerReplacement(name, fn) {
  state.replacements.set(name, fn);
}

const cideldill = { withDebug, withDebugSync, debugCall, debugCallSync, configure, registerReplacement };
if (typeof window !== "undefined") window.cideldill = cideldill;

export { withDebug, withDebugSync, debugCall, debugCallSync, configure, registerReplacement, cideldill };
export default cideldill;

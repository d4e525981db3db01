// The page of the debugger. It reads the REST routes, and reads them again when
// /api/events reports a change. Cards are created once and updated in place, so
// that text being typed is not lost.

const one = (selector, root = document) => root.querySelector(selector);
const field = (card, name) => one(`[data-field="${name}"]`, card);
const action = (card, name) => one(`[data-action="${name}"]`, card);

// Numbers that JavaScript cannot represent are sent as marked strings.
const mark = "\u0000n";
const numbers = /("(?:[^"\\]|\\.)*")|-?\d{16,}(?:\.\d+)?(?:[eE][+-]?\d+)?|-?\d+\.\d{15,}(?:[eE][+-]?\d+)?/g;
const read = (text) => {
  JSON.parse(text); // what is no JSON must not become some
  return JSON.parse(text.replace(numbers, (all, string) => string ?? `"\\u0000n${all}"`));
};
const show = (value, indent = 2) => (JSON.stringify(value, null, indent) ?? "").replace(/"\\u0000n([^"]*)"/g, "$1");
const isObject = (v) => typeof v === "object" && v !== null && !Array.isArray(v);

// api sends a request and returns the answer; body is JSON text.
async function api(method, path, body) {
  const r = await fetch(path, { method, body, headers: body === undefined ? {} : { "Content-Type": "application/json" } });
  const answer = read(await r.text());
  if (!r.ok) throw Object.assign(new Error(answer.message ? `${answer.message} (${answer.error})` : String(answer.error)), { answer });
  return answer;
}
const post = (path, body) => api("POST", path, typeof body === "string" ? body : JSON.stringify(body));
const named = (name, rest = "") => `/api/breakpoints/${encodeURIComponent(name)}${rest}`;

function notice(error) {
  const p = one("#notice");
  p.hidden = !error;
  p.textContent = error ? error.message : "";
}
function complain(card, message) {
  const p = field(card, "error");
  p.hidden = !message;
  p.textContent = message ?? "";
}

// tell shows an error below a control and marks its position.
function tell(control, error) {
  const label = control.closest("label");
  let p = label.nextElementSibling?.matches(".error") ? label.nextElementSibling : undefined;
  control.setAttribute("aria-invalid", Boolean(error));
  if (!error) {
    if (p && !p.dataset.field) p.remove();
    return;
  }
  if (!p || p.dataset.field) {
    p = document.createElement("p");
    p.className = "error";
    p.setAttribute("role", "alert");
    label.after(p);
  }
  const column = error.answer?.column;
  p.textContent = column ? `Column ${column}: ${error.message}` : error.message;
  if (column && control === document.activeElement) control.setSelectionRange(column - 1, column - 1);
}

// reconcile updates the cards of a list to match items: it removes cards without
// an item, creates missing ones and leaves the others unchanged.
function reconcile(section, items, { key, make, update = () => {} }) {
  const list = one(`#${section} .list`);
  const wanted = new Set(items.map(key));
  const cards = new Map([...list.children].map((c) => [c.dataset.key, c]));
  let lost = false;
  for (const [id, card] of cards) {
    if (wanted.has(id)) continue;
    lost ||= card.contains(document.activeElement);
    card.remove();
  }
  let next = list.firstElementChild;
  for (const item of items) {
    const card = cards.get(key(item)) ?? make(item);
    card.dataset.key = key(item);
    if (card === next) next = next.nextElementSibling;
    else if (!card.contains(document.activeElement)) list.insertBefore(card, next);
    update(card, item);
  }
  if (lost) (one("h3[tabindex]", list) ?? one(`#${section}`)).focus();
  one(`#${section} .empty`).hidden = items.length > 0;
  one(`[data-count="${section}"]`).textContent = items.length;
}
const clone = (id) => one(`#${id}`).content.firstElementChild.cloneNode(true);

// State that several parts of the page share.
let functions = { functions: [], function_signatures: {}, function_metadata: {} };

// --- paused calls

const foreign = (data) => data.evaluator === "client";
const inputOf = (data) => (foreign(data) ? { args: data.pretty_args, kwargs: data.pretty_kwargs } : (data.input ?? data.pretty_kwargs ?? {}));
// plain returns a string unchanged and any other value as JSON.
const plain = (v) => (v === undefined ? "" : typeof v === "string" && !v.startsWith(mark) ? v : show(v));

function schemaOf(data) {
  for (const text of [data.signature, functions.function_signatures[data.method_name]]) {
    try {
      if (text?.startsWith("{")) return JSON.parse(text);
    } catch { /* a signature that is no schema */ }
  }
  return functions.function_metadata[data.method_name]?.input_schema;
}

// frames lists the stack of a call, which the caller reported.
function frames(card, stack) {
  one(".stack", card).hidden = !Array.isArray(stack) || stack.length === 0;
  if (one(".stack", card).hidden) return;
  field(card, "frames").replaceChildren(...stack.map((frame) => {
    const item = document.createElement("li"), code = document.createElement("code");
    item.textContent = `${frame?.function} ${frame?.filename}:${frame?.lineno} `;
    code.textContent = frame?.code_context ?? "";
    item.append(code);
    return item;
  }));
}

function makePause(pause) {
  const card = clone("pause");
  const data = pause.call_data;
  const after = data.phase === "after";
  const can = (name) => !data.capabilities || data.capabilities.includes(name);
  card.dataset.pauseId = pause.id;
  card.setAttribute("aria-label", `paused call of ${data.method_name}`);
  field(card, "tool").textContent = data.method_name;
  field(card, "phase").textContent = data.phase ?? "before";
  field(card, "reason").textContent = data.pause_reason === "exception" ? "failed" : "";
  field(card, "age").dataset.since = pause.paused_at;
  frames(card, data.call_site?.stack_trace);
  field(card, "site").textContent = [
    data.breakpoint && data.breakpoint !== data.method_name && `breakpoint ${data.breakpoint}`,
    data.session_id && `session ${data.session_id}`,
    data.call_site && show(data.call_site, 0),
  ].filter(Boolean).join(" · ");
  const input = field(card, "input"), result = field(card, "result"), message = field(card, "message");
  const first = { input: show(inputOf(data)), result: after ? plain(data.exception ?? data.pretty_result) : "" };
  input.value = first.input;
  result.value = first.result;
  input.rows = Math.min(16, Math.max(3, first.input.split("\n").length));
  result.rows = Math.min(16, Math.max(2, first.result.split("\n").length));
  input.readOnly = after || !can("modify");
  result.readOnly = after ? !can("modify") : !can("skip");
  if (!after) one('[data-label="result"]', card).textContent = "Result to return if you skip the call";
  message.placeholder = "the debugger made the call fail";
  action(card, "skip").hidden = !can("skip");
  action(card, "fail").hidden = message.parentElement.hidden = !can("raise");
  one(".replace", card).hidden = !can("replace");

  // Each decision as JSON text; throws a Refusal if it is not valid.
  const decisions = {
    continue() {
      if (!after && input.value !== first.input) return edited(data, input);
      if (after && result.value !== first.result) return `{"action":"modify","modified_result":${jsonOrText(result.value)}}`;
      return '{"action":"continue"}';
    },
    skip: () => `{"action":"skip","fake_result":${jsonOrText(result.value)}}`,
    fail: () => JSON.stringify({ action: "raise", exception_message: message.value || message.placeholder }),
    replace() {
      const tool = field(card, "replacement");
      if (!tool.value.trim()) throw new Refusal(tool, "Enter the tool to run instead.");
      return JSON.stringify({ replacement_function: tool.value.trim() });
    },
  };
  card.addEventListener("click", (e) => {
    const name = e.target.dataset?.action;
    if (decisions[name]) decide(card, pause.id, decisions[name]);
    if (name === "evaluate") evaluate();
  });
  card.addEventListener("input", (e) => e.target.removeAttribute("aria-invalid"));
  card.addEventListener("keydown", (e) => {
    if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) decide(card, pause.id, decisions.continue);
  });
  const evaluate = evaluator(card, pause);
  return card;
}

// Refusal is the error for a decision that is not valid and therefore not sent.
class Refusal extends Error {
  constructor(where, message) {
    super(message);
    this.where = where;
  }
}

// edited returns the decision with the edited input. It throws a Refusal if the input is not valid.
function edited(data, input) {
  let value;
  try {
    value = read(input.value);
  } catch (e) {
    throw new Refusal(input, `The input is not JSON: ${e.message}`);
  }
  if (!isObject(value)) throw new Refusal(input, "The input must be a JSON object.");
  if (foreign(data)) return `{"action":"modify","modified_args":${show(value.args ?? [], 0)},"modified_kwargs":${show(value.kwargs ?? {}, 0)}}`;
  const schema = schemaOf(data);
  const wrong = isObject(schema) ? faults(value, schema, "input", schema) : [];
  if (wrong.length) throw new Refusal(input, `The input does not match the tool's schema:\n${wrong.join("\n")}`);
  return `{"action":"modify","modified_kwargs":${input.value}}`;
}
function jsonOrText(text) {
  try {
    JSON.parse(text);
    return text;
  } catch {
    return JSON.stringify(text);
  }
}

async function decide(card, id, decision) {
  const buttons = card.querySelectorAll("button");
  try {
    complain(card);
    const body = decision();
    buttons.forEach((b) => (b.disabled = true));
    await post(`/api/paused/${encodeURIComponent(id)}/continue`, body);
  } catch (e) {
    complain(card, e.message);
    e.where?.setAttribute("aria-invalid", "true");
    e.where?.focus();
    buttons.forEach((b) => (b.disabled = false));
  }
  refresh.paused();
}

// faults lists the violations of a JSON Schema in a value. It checks the keywords
// that it knows; the tool checks the others.
function faults(value, schema, at, root, depth = 0) {
  if (schema === false) return [`${at} is not allowed`];
  if (!isObject(schema) || depth > 32) return [];
  const deeper = (v, s, where) => faults(v, s, where, root, depth + 1);
  if (schema.$ref?.startsWith("#")) {
    const part = (p) => decodeURIComponent(p).replaceAll("~1", "/").replaceAll("~0", "~");
    return deeper(value, schema.$ref.slice(2).split("/").filter(Boolean).reduce((s, p) => s?.[part(p)], root), at);
  }
  const big = typeof value === "string" && value.startsWith(mark);
  const number = big ? Number(value.slice(mark.length)) : value;
  const kind = value === null ? "null" : Array.isArray(value) ? "array" : typeof number;
  const kinds = [schema.type ?? []].flat();
  const fits = (t) => t === kind || (t === "integer" && kind === "number" && Number.isInteger(number));
  if (kinds.length && !kinds.some(fits)) return [`${at} must be of type ${kinds.join(" or ")}, not ${kind}`];
  const out = [];
  const rule = (broken, text) => broken && out.push(`${at} ${text}`);
  rule(schema.enum && !schema.enum.some((e) => show(e, 0) === show(value, 0)), `must be one of ${show(schema.enum, 0)}`);
  rule("const" in schema && show(schema.const, 0) !== show(value, 0), `must be ${show(schema.const, 0)}`);
  if (kind === "number") {
    rule(number < schema.minimum, `must be at least ${schema.minimum}`);
    rule(number > schema.maximum, `must be at most ${schema.maximum}`);
    rule(number <= schema.exclusiveMinimum, `must be above ${schema.exclusiveMinimum}`);
    rule(number >= schema.exclusiveMaximum, `must be below ${schema.exclusiveMaximum}`);
  }
  if (kind === "string") {
    const length = [...value].length;
    rule(length < schema.minLength, `must have at least ${schema.minLength} characters`);
    rule(length > schema.maxLength, `must have at most ${schema.maxLength} characters`);
    rule(schema.pattern && !matches(schema.pattern, value), `must match ${schema.pattern}`);
  }
  if (kind === "array") {
    rule(value.length < schema.minItems, `must have at least ${schema.minItems} elements`);
    rule(value.length > schema.maxItems, `must have at most ${schema.maxItems} elements`);
    value.forEach((v, i) => out.push(...deeper(v, schema.prefixItems?.[i] ?? schema.items, `${at}[${i}]`)));
  }
  if (kind === "object") {
    const known = schema.properties ?? {};
    for (const name of schema.required ?? []) rule(!Object.hasOwn(value, name), `lacks ${name}`);
    for (const [name, v] of Object.entries(value)) {
      if (Object.hasOwn(known, name)) out.push(...deeper(v, known[name], `${at}.${name}`));
      else if (!Object.keys(schema.patternProperties ?? {}).some((p) => matches(p, name))) {
        if (schema.additionalProperties === false) rule(true, `has ${name}, which is not a parameter of the tool`);
        else out.push(...deeper(v, schema.additionalProperties, `${at}.${name}`));
      }
    }
  }
  for (const s of schema.allOf ?? []) out.push(...deeper(value, s, at));
  const some = schema.anyOf ?? schema.oneOf;
  rule(some?.every((s) => deeper(value, s, at).length), "matches none of the allowed schemas");
  return out;
}
function matches(pattern, text) {
  try {
    return new RegExp(pattern, "u").test(text);
  } catch {
    return true; // a pattern of another dialect is left to the tool
  }
}

// evaluator sets up the evaluation of expressions at a pause and returns the function that evaluates.
function evaluator(card, pause) {
  const data = pause.call_data;
  const names = {
    tool: 0, phase: 0, session: 0, error: data.exception, vars: {}, input: inputOf(data), result: data.pretty_result,
    call: { id: 0, client: 0, tool_use_id: 0, started_at: 0, site: data.call_site, breakpoint: 0 },
  };
  const expression = field(card, "expression"), list = one("ul", card), answers = field(card, "answers");
  let session;
  if (!foreign(data)) complete(expression, list, names);
  const run = async () => {
    const expr = expression.value;
    if (!expr.trim()) return;
    const item = document.createElement("li");
    const asked = document.createElement("b");
    asked.textContent = `${expr}\n`;
    item.append(asked, "…");
    answers.append(item);
    expression.value = "";
    try {
      session ??= (await post("/api/repl/start", { pause_id: pause.id })).session_id;
      const a = await post(`/api/repl/${encodeURIComponent(session)}/eval`, { expr, pause_id: pause.id });
      item.lastChild.textContent = (a.stdout ?? "") + pretty(a.output);
      item.classList.toggle("error", a.is_error);
      const name = /^\s*([A-Za-z_]\w*)\s*:=/.exec(expr)?.[1];
      if (name && !a.is_error) names.vars[name] = attempt(() => read(a.output));
    } catch (e) {
      item.lastChild.textContent = e.message;
      item.classList.add("error");
    }
    item.scrollIntoView({ block: "nearest" });
  };
  expression.addEventListener("keydown", (e) => {
    if (e.key === "Enter" && list.hidden && !e.ctrlKey && !e.metaKey) run();
  });
  return run;
}
const attempt = (f) => { try { return f(); } catch { return undefined; } };
const pretty = (text) => attempt(() => show(read(text))) ?? text;

// complete offers the names that can follow the text typed so far.
function complete(input, list, names) {
  let chosen = 0;
  list.id = `names-${Math.random().toString(36).slice(2)}`;
  input.setAttribute("aria-controls", list.id);
  const offer = () => {
    const [, path, start] = /([A-Za-z_][\w.]*\.)?(\w*)$/.exec(input.value.slice(0, input.selectionStart));
    const scope = (path ?? "").split(".").slice(0, -1).reduce((v, k) => (isObject(v) && Object.hasOwn(v, k) ? v[k] : undefined), names);
    const fit = isObject(scope) && (path || start) ? Object.keys(scope).filter((k) => /^[A-Za-z_]\w*$/.test(k) && k.startsWith(start) && k !== start) : [];
    list.replaceChildren(...fit.slice(0, 50).map((k, i) => {
      const li = document.createElement("li");
      Object.assign(li, { id: `${list.id}-${i}`, textContent: k, role: "option" });
      li.dataset.rest = k.slice(start.length);
      return li;
    }));
    choose(0);
  };
  const choose = (n) => {
    const options = [...list.children];
    chosen = (n + options.length) % (options.length || 1);
    options.forEach((o, i) => o.setAttribute("aria-selected", i === chosen));
    options[chosen]?.scrollIntoView({ block: "nearest" });
    list.hidden = options.length === 0;
    input.setAttribute("aria-expanded", !list.hidden);
    input.setAttribute("aria-activedescendant", options[chosen]?.id ?? "");
  };
  const close = () => { list.replaceChildren(); choose(0); };
  const take = (option) => { input.setRangeText(option.dataset.rest, input.selectionStart, input.selectionEnd, "end"); close(); };
  input.addEventListener("input", offer);
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (e) => {
    if (list.hidden || e.ctrlKey || e.metaKey) return;
    const act = { ArrowDown: () => choose(chosen + 1), ArrowUp: () => choose(chosen - 1), Tab: () => take(list.children[chosen]), Escape: close }[e.key];
    if (act) { act(); e.preventDefault(); }
    if (e.key === "Enter") close(); // and evaluate what is there
  }, { capture: true });
  list.addEventListener("mousedown", (e) => { e.preventDefault(); if (e.target.dataset.rest !== undefined) take(e.target); });
}

// --- breakpoints

function makeBreakpoint({ name }) {
  const card = clone("breakpoint");
  field(card, "name").textContent = name;
  action(card, "history").setAttribute("aria-label", `History of the breakpoint on ${name}`);
  action(card, "history").addEventListener("click", () => {
    one("#filter").value = name;
    refresh.history();
  });
  action(card, "remove").setAttribute("aria-label", `Remove the breakpoint on ${name}`);
  const send = {
    behavior: (v) => post(named(name, "/behavior"), { behavior: v }),
    after_behavior: (v) => post(named(name, "/after_behavior"), { behavior: v }),
    when: (v) => post("/api/breakpoints", { function_name: name, when: v }),
    replacement: (v) => post(named(name, "/replacement"), { replacement_function: v }),
  };
  card.addEventListener("change", async (e) => {
    tell(e.target, await send[e.target.dataset.field](e.target.value).then(() => undefined, (error) => error));
  });
  action(card, "remove").addEventListener("click", () => api("DELETE", named(name)).catch(notice));
  return card;
}
function updateBreakpoint(card, b) {
  for (const name of ["behavior", "after_behavior", "when", "replacement"]) {
    const control = field(card, name);
    if (control !== document.activeElement && control.getAttribute("aria-invalid") !== "true") control.value = b[name];
  }
  complain(card, b.error && `The condition failed: ${b.error}`);
}

// --- servers

function makeServer({ name }) {
  const card = clone("server");
  field(card, "name").textContent = name;
  action(card, "toggle").addEventListener("click", async (e) => {
    e.target.disabled = true;
    const verb = e.target.dataset.verb;
    await post(`/api/mcp-clients/${encodeURIComponent(name)}/${verb}`, {}).catch(notice);
    e.target.disabled = false;
    refresh.servers();
  });
  return card;
}
function updateServer(card, s) {
  const badge = field(card, "status"), toggle = action(card, "toggle");
  badge.textContent = s.status;
  badge.className = `badge ${{ connected: "good", connecting: "warn", disconnected: "" }[s.status] ?? "bad"}`;
  toggle.dataset.verb = s.status === "connected" ? "disconnect" : "reconnect";
  toggle.textContent = s.status === "connected" ? "Disconnect" : "Reconnect";
  const since = s.connected_at ? `, since ${clock(s.connected_at)}` : "";
  field(card, "about").textContent = `${s.transport}, ${s.tools.length} tools${since}`;
  complain(card, s.error);
}

// --- history

const amount = (v) => Number(String(v ?? 0).replace(mark, ""));
const clock = (seconds) => new Date(amount(seconds) * 1000).toLocaleTimeString();
const short = (text, n) => (text.length > n ? `${text.slice(0, n)}…` : text);
function makeCall(call) {
  const card = clone("call");
  field(card, "tool").textContent = call.method_name;
  field(card, "at").textContent = `${clock(call.completed_at)}, ${Math.max(0, (amount(call.completed_at) - amount(call.started_at) - amount(call.paused_for)) * 1000).toFixed(0)} ms`;
  field(card, "preview").textContent = short(show(inputOf(call), 0), 300);
  card.addEventListener("toggle", () => facts(card, card.call));
  return card;
}
function updateCall(card, call) {
  card.call = call;
  const badge = field(card, "status"), failed = call.status !== "success";
  const status = call.status === "exception" ? "failed" : call.status;
  badge.textContent = call.action && call.action !== "continue" ? `${status}, ${call.action}` : status;
  badge.classList.toggle("good", !failed);
  badge.classList.toggle("bad", failed);
  field(card, "after").textContent = { modify: "result changed", raise: "failed by the debugger" }[call.after_action] ?? "";
  if (card.open) facts(card, call);
}

// facts fills in the details of a call when it is opened. For a changed value it
// shows the value before and after the change.
function facts(card, call) {
  const list = field(card, "facts");
  list.replaceChildren();
  for (const [title, value, changed] of [
    ["input", call.original_input ?? inputOf(call), call.original_input && inputOf(call)],
    ["result", call.pretty_result, call.final_result], ["error", call.exception ?? call.exception_message],
    ["traceback", call.exception_traceback], ["session", call.session_id], ["process", call.process_pid || ""], ["page", call.page_url], ["server", call.server],
    ["signature", call.signature], ["call site", call.call_site], ["evaluations", call.repl_sessions?.join(", ")], ["call", call.call_id],
  ]) {
    if ((value === undefined || value === "") && changed === undefined) continue;
    const dt = document.createElement("dt"), dd = document.createElement("dd");
    dt.textContent = changed === undefined ? title : `${title}, before and after the change`;
    if (changed === undefined) dd.textContent = plain(value);
    else dd.append(...diff(plain(value).split("\n"), plain(changed).split("\n")));
    list.append(dt, dd);
  }
}

// diff shows removed and added lines. The common first and last lines are kept;
// the lines between them are compared one by one.
function diff(before, after) {
  const line = (kind, text) => Object.assign(document.createElement(kind), { textContent: text });
  const out = [];
  let head = 0, tail = 0;
  while (head < before.length && before[head] === after[head]) head++;
  while (tail < Math.min(before.length, after.length) - head && before.at(-1 - tail) === after.at(-1 - tail)) tail++;
  const a = before.slice(head, before.length - tail), b = after.slice(head, after.length - tail);
  const stay = (text) => out.push(line("div", text));
  before.slice(0, head).forEach(stay);
  // Longest common subsequence of the remaining lines, unless there are too many.
  const common = a.length * b.length < 250_000 ? a.map(() => new Uint16Array(b.length + 1)) : [];
  common.push(new Uint16Array(b.length + 1));
  if (common.length > 1) for (let i = a.length - 1; i >= 0; i--) for (let k = b.length - 1; k >= 0; k--) common[i][k] = a[i] === b[k] ? common[i + 1][k + 1] + 1 : Math.max(common[i + 1][k], common[i][k + 1]);
  let i = 0, k = 0;
  while (common.length > 1 && i < a.length && k < b.length) {
    if (a[i] === b[k]) { stay(a[i]); i++; k++; }
    else if (common[i + 1][k] >= common[i][k + 1]) out.push(line("del", a[i++]));
    else out.push(line("ins", b[k++]));
  }
  a.slice(i).forEach((text) => out.push(line("del", text)));
  b.slice(k).forEach((text) => out.push(line("ins", text)));
  before.slice(before.length - tail).forEach(stay);
  return out;
}

// --- updates

const load = {
  async paused() {
    const { paused } = await api("GET", "/api/paused");
    reconcile("paused", paused, { key: (p) => p.id, make: makePause });
    document.title = paused.length ? `(${paused.length}) claudeless debug` : "claudeless debug";
    age();
  },
  async breakpoints() {
    const b = await api("GET", "/api/breakpoints");
    const items = b.breakpoints.map((name) => ({
      name, behavior: b.breakpoint_behaviors[name], after_behavior: b.breakpoint_after_behaviors[name],
      when: b.breakpoint_conditions[name] ?? "", replacement: b.breakpoint_replacements[name] ?? "", error: b.breakpoint_condition_errors?.[name],
    }));
    reconcile("breakpoints", items, { key: (i) => i.name, make: makeBreakpoint, update: updateBreakpoint });
  },
  async behavior() {
    one("#default").value = (await api("GET", "/api/behavior")).behavior;
  },
  async functions() {
    functions = await api("GET", "/api/functions");
    attached(functions.functions.length > 0);
    one("#tools").replaceChildren(...functions.functions.map((name) => new Option(name)));
  },
  async servers() {
    if (one("#servers").hidden) return;
    const { clients } = await api("GET", "/api/mcp-clients");
    const items = Object.entries(clients).map(([name, s]) => ({ name, ...s }));
    reconcile("servers", items, { key: (s) => s.name, make: makeServer, update: updateServer });
  },
  async history() {
    const only = one("#filter").value.trim();
    if (/[*?[{]/.test(only)) { // the pattern of a breakpoint
      const { history } = await api("GET", `${named(only, "/history")}?limit=100`);
      reconcile("history", history.map((e) => e.call_data), { key: (c) => c.call_id, make: makeCall, update: updateCall });
      return;
    }
    const { calls, total_count } = await api("GET", `/api/calls?limit=100&function_name=${encodeURIComponent(only)}`);
    reconcile("history", calls.reverse(), { key: (c) => c.call_id, make: makeCall, update: updateCall });
    attached(total_count > 0);
    if (total_count > calls.length) one('[data-count="history"]').textContent = `newest ${calls.length} of ${total_count}`;
  },
};

// attached closes the section "Connect an agent" after the first agent has connected.
function attached(yes) {
  const how = one("#attach");
  if (yes && !how.dataset.folded) {
    how.open = false;
    how.dataset.folded = true;
  }
}

// refresh reads a part again, one request at a time. Requests during a refresh
// cause a single one after it.
const refresh = Object.fromEntries(Object.entries(load).map(([name, f]) => {
  let running = false, again = false;
  const go = async () => {
    if (running) { again = true; return; }
    running = true;
    await f().catch(notice);
    setTimeout(() => { // not more than a person can see
      running = false;
      if (again) { again = false; go(); }
    }, name === "paused" ? 20 : 250);
  };
  return [name, go];
}));
const all = () => Object.values(refresh).forEach((f) => f());

function age() {
  for (const t of document.querySelectorAll("[data-since]")) {
    const s = Math.max(0, Math.round(Date.now() / 1000 - t.dataset.since));
    t.textContent = s < 60 ? `${s} s` : s < 3600 ? `${Math.floor(s / 60)} min` : `${Math.floor(s / 3600)} h`;
  }
}

function follow() {
  const events = new EventSource("/api/events");
  const state = (text, lost) => { one("#state").textContent = text; one("#state").classList.toggle("lost", lost); };
  events.onopen = () => { state("live", false); notice(); all(); };
  events.onerror = () => state("Disconnected: the debugger does not respond. Reconnecting…", true);
  events.addEventListener("execution_paused", refresh.paused);
  events.addEventListener("execution_resumed", () => { refresh.paused(); refresh.history(); });
  events.addEventListener("call_completed", refresh.history);
  events.addEventListener("missed", all);
  events.addEventListener("changed", (e) => refresh[JSON.parse(e.data).topic]?.());
}

one("#default").addEventListener("change", (e) => post("/api/behavior", { behavior: e.target.value }).catch(notice).then(refresh.behavior));
one("#filter").addEventListener("input", refresh.history);
one("#add").addEventListener("submit", async (e) => {
  e.preventDefault();
  const form = e.target, { function_name: name, when } = form.elements;
  const error = await post("/api/breakpoints", Object.fromEntries(new FormData(form))).then(() => undefined, (failed) => failed);
  const code = error?.answer?.error;
  const wrong = code === "invalid_condition" ? when : ["missing_parameter", "invalid_pattern"].includes(code) ? name : undefined;
  for (const control of [name, when]) tell(control, control === wrong ? error : undefined);
  notice(wrong ? undefined : error);
  if (!error) form.reset();
  (wrong ?? name).focus();
});
for (const pre of document.querySelectorAll("[data-attach]")) pre.textContent = pre.textContent.replaceAll("URL", location.origin);
setInterval(age, 1000);
setInterval(() => document.hidden || refresh.servers(), 5000);
all();
follow();

// Steps of a script, and the scenario that they make.

/** A call of a tool: a built-in (`Bash`), `server/tool`, or `mcp__server__tool`. */
export class ToolCall {
  constructor(
    readonly tool: string,
    readonly input: Readonly<Record<string, unknown>>,
  ) {}
}

/** A failure of the model: `rate_limit`, `overloaded`, … or the name of a fault. */
export class Failure {
  constructor(
    readonly type: string,
    readonly options: Readonly<Record<string, unknown>>,
  ) {}
}

/** A step is a text, a call, a list (one message), or a failure. */
export type Step = string | ToolCall | Failure | ReadonlyArray<string | ToolCall>;

/** The model calls a tool with this input. */
export function call(tool: string, input: Record<string, unknown> = {}): ToolCall {
  if (typeof tool !== "string" || tool === "") throw new TypeError(`call: the first argument is the name of a tool, not ${show(tool)}`);
  return new ToolCall(tool, input);
}

/**
 * The model request fails. After `times` failures the next step answers; the other options are the keys of
 * a failure in a scenario (`retry_after`, `status`, `message`, …).
 */
export function fail(type: string, options: Record<string, unknown> = {}): Failure {
  if (typeof type !== "string" || type === "") throw new TypeError(`fail: the first argument is the name of a failure, not ${show(type)}`);
  return new Failure(type, options);
}

/** Default values for the required keys of a failure. */
const usual: Readonly<Record<string, Record<string, unknown>>> = {
  rate_limit: { retry_after: 1 },
  auth_error: { message: "Invalid API key" },
  connection_timeout: { after_ms: 5000 },
  partial_response: { partial_text: "" },
  malformed_json: { raw: "{" },
  api_error: { status: 500 },
};

/** A position in a test file. */
export interface Place {
  file: string;
  line: number;
  column: number;
}

/** One prompt pattern and its steps. */
export interface Rule {
  pattern: string;
  steps: Record<string, unknown>[];
  once: boolean;
  place: Place;
}

export function patternOf(prompt: string | RegExp | undefined): string {
  if (prompt === undefined) return '{ type = "any" }';
  if (prompt instanceof RegExp) {
    const flags = prompt.flags.replace(/[dgyuv]/g, "");
    return `{ type = "regex", pattern = ${toml((flags ? `(?${flags})` : "") + prompt.source)} }`;
  }
  if (typeof prompt === "string") return `{ type = "contains", text = ${toml(prompt)} }`;
  throw new TypeError(`on: a prompt is a text or a regular expression, not ${show(prompt)}`);
}

/** The steps of a scenario: one per message of the model. A failure belongs to the message after it. */
export function messages(script: ReadonlyArray<Step>): Record<string, unknown>[] {
  const steps: Record<string, unknown>[] = [];
  let failure: Record<string, unknown> | undefined;
  script.forEach((step, i) => {
    if (step instanceof Failure) {
      if (failure) steps.push({ failure });
      failure = { type: step.type, ...usual[step.type], ...step.options };
      return;
    }
    const message = messageOf(step, i);
    if (failure) message["failure"] = failure;
    failure = undefined;
    steps.push(message);
  });
  if (failure) steps.push({ failure });
  return steps;
}

function messageOf(step: Exclude<Step, Failure>, index: number): Record<string, unknown> {
  if (typeof step === "string") return { text: step };
  if (step instanceof ToolCall) return { tool_calls: [toolCall(step)] };
  if (Array.isArray(step)) return oneMessage(step, index);
  throw new TypeError(`step ${index + 1} is ${show(step)}: ${notAStep(step)}`);
}

/** A list is one message: texts, and calls after them. */
function oneMessage(parts: ReadonlyArray<unknown>, index: number): Record<string, unknown> {
  const texts: string[] = [];
  const calls: unknown[] = [];
  for (const part of parts) {
    if (part instanceof ToolCall) calls.push(toolCall(part));
    else if (typeof part !== "string") throw new TypeError(`step ${index + 1} holds ${show(part)}: in a list there are texts and calls only`);
    else if (calls.length > 0) throw new TypeError(`step ${index + 1}: the text ${show(part)} comes after a call in the same step; put it into a separate step`);
    else texts.push(part);
  }
  return { ...(texts.length > 0 && { text: texts.join("\n") }), ...(calls.length > 0 && { tool_calls: calls }) };
}

function notAStep(step: unknown): string {
  const rule = "a step is a string (text), a call, an array (one message) or a fail";
  if (step === call || step === fail) return `${rule}; did you mean ${step === call ? "call" : "fail"}(…)?`;
  if (typeof step === "object" && step !== null) return `${rule}; a call of a tool is call("Bash", { command: "ls" })`;
  return rule;
}

const toolCall = (c: ToolCall) => ({ tool: c.tool, input: c.input });

function show(value: unknown): string {
  if (typeof value === "function") return `the function ${value.name}`;
  return JSON.stringify(value) ?? String(value);
}

/** Encodes a value as TOML on one line. */
export function toml(value: unknown): string {
  // TOML's basic strings are JSON's, but for DEL.
  if (typeof value === "string") return JSON.stringify(value).replaceAll("\x7f", "\\u007f");
  if (typeof value === "boolean" || typeof value === "bigint") return String(value);
  if (typeof value === "number" && Number.isFinite(value)) return String(value);
  if (Array.isArray(value)) return `[${value.map(toml).join(", ")}]`;
  if (typeof value === "object" && value !== null) {
    const pairs = Object.entries(value).filter(([, v]) => v !== undefined);
    return pairs.length === 0 ? "{}" : `{ ${pairs.map(([k, v]) => `${key(k)} = ${toml(v)}`).join(", ")} }`;
  }
  throw new TypeError(`${show(value)} has no form in TOML`);
}

const key = (name: string) => (/^[A-Za-z0-9_-]+$/.test(name) ? name : toml(name));

/** Returns the TOML of a script and, for each line, the position in the test that caused it. */
export function scenario(rules: ReadonlyArray<Rule>, options: { strict: boolean; seed?: number | undefined }): { text: string; places: Map<number, Place> } {
  const lines: string[] = [];
  const places = new Map<number, Place>();
  if (options.seed !== undefined) lines.push(`seed = ${options.seed}`);
  if (options.strict) lines.push("[[expect]]", 'unused = "error"');
  for (const rule of rules) {
    const put = (text: string) => places.set(lines.push(text), rule.place);
    if (lines.length > 0) lines.push("");
    put("[[responses]]");
    put(`pattern = ${rule.pattern}`);
    if (rule.once) put("once = true");
    for (const step of rule.steps) {
      put("[[responses.response.steps]]");
      for (const [name, value] of Object.entries(step)) put(`${name} = ${toml(value)}`);
    }
  }
  return { text: lines.join("\n") + "\n", places };
}

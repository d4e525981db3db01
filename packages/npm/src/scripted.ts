/// <reference lib="esnext.disposable" preserve="true" />
// ScriptedClaude: a scenario in a private directory, and its verdict at the end.
import { execFile, spawn, spawnSync, type ChildProcess } from "node:child_process";
import { closeSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { randomBytes } from "node:crypto";
import { tmpdir } from "node:os";
import { basename, delimiter, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { findBinary, findClaude } from "./binary.js";
import { calls, entries, tools, type Call, type Entry, type ToolRun } from "./journal.js";
import { Terminal, type TerminalOptions } from "./terminal.js";
import { trapURL } from "./trap.js";
import { messages, patternOf, scenario, type Place, type Rule, type Step } from "./steps.js";

export interface ScriptedClaudeOptions {
  /** A scenario instead of a script, with everything that TOML can say. */
  file?: string | { readonly href: string };
  /** Prompts without a rule and steps that are not played fail the test; default true. */
  strict?: boolean;
  /** `real` runs the real claude (CLAUDE_BIN, or on PATH) against the same script as the Messages API. */
  lane?: "fake" | "real";
  seed?: number;
}

/** The verdict, as `claudeless verify --json` gives it. */
export interface Verdict {
  verdict: "ok" | "failed";
  findings: { id: string; level: "error" | "warn" | "info"; text: string; advice: string; file: string; line: number; time: string; pid: number }[];
  expectations: { file: string; line: number; text: string; met: boolean; got: string }[];
  unmatched: { prompt: string; nearest: string[] }[];
  runs: Record<string, unknown>[];
}

const run = promisify(execFile);
const here = fileURLToPath(new URL(".", import.meta.url));
const exe = process.platform === "win32" ? ".exe" : "";

/** Every claude that was made and not closed: what `afterEach` of the runners verifies. */
export const open = new Set<ScriptedClaude>();

/**
 * A claude that says what a script says; the script answers one prompt, whichever process asks, and `on` adds rules
 * for prompts. With `await using` the end of the block rejects for steps that were not played, prompts without a
 * rule, unmet expectations, and conduct that breaks with the real claude.
 */
export async function scriptedClaude(script?: string | ReadonlyArray<Step>, options: ScriptedClaudeOptions = {}): Promise<ScriptedClaude> {
  const claude = new ScriptedClaude(script, options, caller());
  if (options.file !== undefined) await claude.check();
  if (process.env["VITEST"]) await atTestEnd(claude);
  return claude;
}

/** Under vitest, which ends its workers without an exit: a claude that is open when its test has finished fails the test. */
async function atTestEnd(claude: ScriptedClaude): Promise<void> {
  try {
    const { onTestFinished } = await import("vitest");
    onTestFinished(async () => {
      if (open.has(claude)) throw await claude.forgotten();
    });
  } catch {
    // no test runs: a hook of the suite has made it, and closes it
  }
}

process.on("exit", () => {
  for (const claude of [...open]) {
    console.error(`claudeless: error: ${claude.neverClosed}`);
    process.exitCode = 1;
    claude.close();
  }
});

export class ScriptedClaude implements AsyncDisposable {
  /** The private directory; it goes with `close`. */
  readonly directory: string;
  readonly #strict: boolean;
  readonly #lane: "fake" | "real";
  readonly #seed: number | undefined;
  readonly #file: string | undefined;
  readonly #place: Place;
  readonly #rules: Rule[] = [];
  #places = new Map<number, Place>();
  #server: ChildProcess | undefined;
  #guard: ChildProcess | undefined;
  #url: string | undefined;
  #holds = 0;
  #terminals: Terminal[] = [];
  #kept: Entry[] | undefined;

  constructor(script: string | ReadonlyArray<Step> | undefined, options: ScriptedClaudeOptions, place: Place) {
    const { file, strict = true, lane = "fake", seed } = options;
    if (lane !== "fake" && lane !== "real") throw new RangeError(`lane is ${JSON.stringify(lane)}, not one of fake, real`);
    if (script !== undefined && file !== undefined) throw new TypeError("scriptedClaude takes a script or a file, not both");
    this.#strict = strict;
    this.#lane = lane;
    this.#seed = seed;
    this.#place = place;
    this.#file = file === undefined ? undefined : resolve(typeof file === "string" ? file : fileURLToPath(file.href));
    if (script !== undefined) {
      const steps = typeof script === "string" ? [script] : script;
      this.#rules.push({ pattern: patternOf(undefined), steps: messages(steps), once: true, place });
    }
    const claude = lane === "fake" ? findBinary() : findClaude();
    this.directory = mkdtempSync(join(tmpdir(), "claudeless-"));
    this.#guard = guard(this.directory);
    for (const name of ["bin", "config"]) mkdirSync(join(this.directory, name));
    if (exe) copyFileSync(claude, this.path);
    else symlinkSync(claude, this.path);
    this.#write();
    open.add(this);
  }

  /** The program that is claude. */
  get path(): string {
    return join(this.directory, "bin", `claude${exe}`);
  }

  /** The scenario, to be kept as a file once a script grows. */
  get toml(): string {
    if (this.#file !== undefined) return readFileSync(this.#file, "utf8");
    const { text, places } = scenario(this.#rules, { strict: this.#strict, seed: this.#seed });
    this.#places = places;
    return text;
  }

  /** Variables for a program that starts claude: `{ ...process.env, ...claude.env }`. */
  get env(): Record<string, string> {
    const env: Record<string, string> = {
      PATH: join(this.directory, "bin") + delimiter + (process.env["PATH"] ?? ""),
      CLAUDE_CONFIG_DIR: join(this.directory, "config"),
      ANTHROPIC_API_KEY: `claudeless-canary-${basename(this.directory)}`,
      ANTHROPIC_BASE_URL: this.#url ?? `${trapURL()}/${basename(this.directory)}`, // refuses whoever is not ours
      CLAUDELESS_GATES: this.#gates,
      CLAUDELESS_RUN: this.#run,
    };
    if (this.#lane === "real") {
      env["ANTHROPIC_BASE_URL"] = this.baseURL;
      for (const name of ["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_AUTOUPDATER", "DISABLE_TELEMETRY", "DISABLE_ERROR_REPORTING"]) env[name] = "1";
      return env;
    }
    Object.assign(env, {
      CLAUDELESS_CAPTURE: this.#journal,
      CLAUDELESS_SCENARIO: this.#scenario,
      CLAUDELESS_EXPECT: "defer",
      ...(this.#strict && { CLAUDELESS_STRICT: "1" }),
    });
    return env;
  }

  /** The script as the Messages API, for the Anthropic SDK. It never ends in /v1. */
  get baseURL(): string {
    return (this.#url ??= this.#serve());
  }

  /** Options of the Agent SDK's `query` with claude in place; what is given goes on to it. */
  options<T extends { env?: Record<string, string | undefined> }>(given?: T): Omit<T, "env"> & { pathToClaudeCodeExecutable: string; env: Record<string, string | undefined> } {
    const { env, ...rest } = (given ?? {}) as T;
    return { ...(rest as Omit<T, "env">), pathToClaudeCodeExecutable: this.path, env: { ...process.env, ...this.env, ...env } };
  }

  /** A prompt that contains this text, or matches this expression, is answered by these steps. */
  on(prompt: string | RegExp, ...steps: Step[]): this {
    this.#noFile("on");
    if (steps.length === 0) throw new TypeError("on: what does the model answer? Give it a step");
    this.#rules.push({ pattern: patternOf(prompt), steps: messages(steps), once: false, place: caller() });
    this.#write();
    return this;
  }

  /** Makes the answer to a prompt wait: the one of `on(prompt)`, or of the script. */
  hold(prompt?: string | RegExp): Hold {
    this.#noFile("hold");
    const pattern = patternOf(prompt);
    const first = this.#rules.find((rule) => rule.pattern === pattern)?.steps[0];
    if (!first) throw new Error(`hold: no rule for ${String(prompt)}; write its on(…) first (there are: ${this.#rules.map((r) => r.pattern).join(", ") || "none"})`);
    first["gate"] = `hold-${++this.#holds}`;
    this.#write();
    return new Hold(first["gate"] as string, () => ({ ...process.env, ...this.env }));
  }

  /** Starts the interactive claude, with these arguments, in a pseudo-terminal. It is closed with this claude. */
  terminal(args: string[] = [], options: TerminalOptions = {}): Terminal {
    const { cols = 110, rows = 36, env, cwd } = options;
    const command = ["screens", "drive", "--size", `${cols}x${rows}`, ...(this.#lane === "real" ? ["--real"] : []), "--", this.path, ...args];
    const terminal = new Terminal(findBinary(), command, { ...process.env, ...this.env, ...env }, cwd);
    this.#terminals.push(terminal);
    return terminal;
  }

  /** The prompts that were asked, in order. */
  get calls(): Call[] {
    return calls(this.#entries());
  }

  /** The tools that ran, with their input, in order. */
  get tools(): ToolRun[] {
    return tools(this.#entries());
  }

  /** The verdict so far. */
  verdict(): Promise<Verdict> {
    return this.#verify();
  }

  async #verify(...more: string[]): Promise<Verdict> {
    const report = join(this.directory, "verdict.json");
    closeSync(openSync(this.#journal, "a"));
    const args = ["verify", this.#journal, "-s", this.#scenario, "--json", report, ...more];
    if (!this.#strict) args.push("--lenient");
    const said = await run(findBinary(), args).catch((error: { stderr?: string }) => error);
    if (!existsSync(report)) throw new ClaudelessError([this.#mistakes() || `claudeless verify failed: ${said.stderr?.trim() ?? ""}`], this.#place);
    return JSON.parse(readFileSync(report, "utf8")) as Verdict;
  }

  /** All that is wrong at the end, a text each. A claude that is left running is wrong, and is ended. Terminals are closed before. */
  async problems(): Promise<string[]> {
    await Promise.all(this.#terminals.splice(0).map((terminal) => terminal.close()));
    const verdict = await this.#verify("--sweep", this.#run);
    const found = verdict.expectations.filter((x) => !x.met).map((x) => this.#at(x) + x.text + (x.got ? `: ${x.got}` : ""));
    for (const f of verdict.findings) {
      if (f.level === "error") found.push(`${this.#at(f)}${f.text} [${f.id}]${f.advice ? `\n    ${f.advice}` : ""}`);
    }
    for (const u of verdict.unmatched) {
      if (!found.some((text) => text.includes(u.prompt))) found.push([`no rule for the prompt ${JSON.stringify(u.prompt)}`, ...u.nearest].join("\n    "));
    }
    return found;
  }

  /** Rejects with all that is wrong so far. */
  async assertComplete(): Promise<void> {
    const found = await this.problems();
    if (found.length > 0) throw new ClaudelessError(found, this.#place);
  }

  /** Ends the server and removes the directory. `calls` and `tools` can still be read. */
  close(): void {
    if (!open.delete(this)) return;
    for (const terminal of this.#terminals.splice(0)) terminal.kill();
    this.#kept = this.#entries();
    this.#server?.kill();
    rmSync(this.directory, { recursive: true, force: true });
    this.#guard?.stdin?.end();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!open.has(this)) return;
    try {
      await this.assertComplete();
    } finally {
      this.close();
    }
  }

  /** What is said of a claude that nobody has closed. */
  get neverClosed(): string {
    return `${this.#placeOf(0)}this scripted claude was never closed: use \`await using\`, or import "claudeless/vitest", "/jest" or "/node-test"`;
  }

  /** Closes a claude that nobody has closed, and says all that is wrong. */
  async forgotten(): Promise<ClaudelessError> {
    const found = await this.problems().catch((error: Error) => [error.message]);
    this.close();
    return new ClaudelessError([this.neverClosed, ...found], this.#place);
  }

  /** Rejects when the scenario's file has mistakes, and shows them as `claudeless check` does. */
  async check(): Promise<void> {
    const text = this.#mistakes();
    if (!text) return;
    this.close();
    throw new ClaudelessError([`the scenario has mistakes\n${text}`], this.#place);
  }

  /** The mark of the processes of this claude. */
  get #run(): string {
    return join(this.directory, "run");
  }

  get #gates(): string {
    return join(this.directory, "gates");
  }

  get #journal(): string {
    return join(this.directory, "journal.jsonl");
  }

  get #scenario(): string {
    return this.#file ?? join(this.directory, "scenario.toml");
  }

  #entries(): Entry[] {
    return this.#kept ?? entries(this.#journal);
  }

  #noFile(what: string): void {
    if (this.#file !== undefined) throw new TypeError(`${what}: the script of this test is the file ${this.#file}; a second scenario in one test is not possible`);
  }

  #write(): void {
    if (this.#file !== undefined) return;
    writeFileSync(this.#scenario + ".new", this.toml);
    renameSync(this.#scenario + ".new", this.#scenario);
  }

  #serve(): string {
    const port = join(this.directory, "port");
    this.#server = spawn(findBinary(), ["serve", this.#scenario, "--port-file", port, "--capture", this.#journal], { stdio: "ignore", env: { ...process.env, CLAUDELESS_GATES: this.#gates } });
    this.#server.unref();
    const cell = new Int32Array(new SharedArrayBuffer(4));
    for (let i = 0; i < 1000; i++) {
      const number = existsSync(port) ? readFileSync(port, "utf8").trim() : "";
      if (number) return `http://127.0.0.1:${number}/t/${randomBytes(4).toString("hex")}`;
      Atomics.wait(cell, 0, 0, 5);
    }
    throw new ClaudelessError([`claudeless serve did not start: ${this.#mistakes()}`], this.#place);
  }

  /** What is wrong with the script, as `claudeless check` says it, with the lines of the test; empty = nothing. */
  #mistakes(): string {
    const { status, stdout, stderr } = spawnSync(findBinary(), ["check", this.#scenario], { encoding: "utf8" });
    if (status === 0) return "";
    const text = (stdout + stderr).trim();
    if (this.#file !== undefined) return text;
    const parts = text.split(this.#scenario);
    return parts.map((part, i) => (i === 0 ? part : part.replace(/^(?::(\d+)(?::\d+)?)?(?:: )?/, (_, line: string | undefined) => this.#placeOf(Number(line ?? 0))))).join("");
  }

  /** Where a finding stands: the line of the test that wrote the rule, or that of the file. */
  #at(found: { file: string; line: number }): string {
    if (!found.file) return "";
    if (this.#file === undefined && basename(found.file) === "scenario.toml") return this.#placeOf(found.line);
    return `${found.file}:${found.line}: `;
  }

  #placeOf(line: number): string {
    const { file, line: number } = this.#places.get(line) ?? this.#place;
    return `${relative(process.cwd(), file)}:${number}: `;
  }
}

/** What is wrong with a run. Runners show the frame of the test: the stack is the place that made the claude. */
export class ClaudelessError extends Error {
  override name = "ClaudelessError";
  constructor(
    readonly problems: string[],
    place: Place,
  ) {
    super([`claudeless: ${problems.length} problem${problems.length > 1 ? "s" : ""}`, ...problems].join("\n"));
    const at = place.file && `\n    at ${place.file}:${place.line}:${place.column}`;
    this.stack = `${this.name}: ${this.message}${at}`;
  }
}

/** An answer that waits. */
export class Hold {
  readonly #gate: string;
  readonly #env: () => Record<string, string | undefined>;

  constructor(gate: string, env: () => Record<string, string | undefined>) {
    this.#gate = gate;
    this.#env = env;
  }

  /** Waits until the answer was asked for; rejects when it was not in time (milliseconds). */
  async reached(timeout = 30_000): Promise<true> {
    await run(findBinary(), ["gates", "wait", this.#gate, "--timeout", `${timeout}ms`], { env: this.#env() }).catch((error: { stderr?: string }) => {
      throw new Error(`no request for the answer within ${timeout} ms: ${error.stderr?.trim() ?? ""}`);
    });
    return true;
  }

  /** Lets the answer go out, now or when it is asked for. */
  async release(): Promise<void> {
    await run(findBinary(), ["gates", "release", this.#gate], { env: this.#env() });
  }
}

/** A shell that removes the directory when this program is killed and cannot. */
function guard(directory: string): ChildProcess | undefined {
  if (exe) return undefined;
  const shell = spawn("/bin/sh", ["-c", 'read -r _; rm -rf -- "$1"', "sh", directory], { stdio: ["pipe", "ignore", "ignore"], detached: true });
  shell.on("error", () => {}); // without a shell nobody cleans up after a kill
  shell.unref();
  (shell.stdin as unknown as { unref?: () => void } | null)?.unref?.();
  return shell;
}

/** The file and line outside of this package that called it. */
function caller(): Place {
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = 30;
  const stack = new Error().stack ?? "";
  Error.stackTraceLimit = limit;
  for (const frame of stack.split("\n").slice(1)) {
    const found = /(?:\(|at )(?:async )?(file:\/\/)?([^()]+?):(\d+):(\d+)\)?$/.exec(frame);
    if (!found) continue;
    const file = found[1] ? fileURLToPath(`file://${found[2]}`) : found[2]!;
    if (!file.startsWith(here) && !file.startsWith("node:")) return { file, line: Number(found[3]), column: Number(found[4]) };
  }
  return { file: "", line: 0, column: 0 };
}

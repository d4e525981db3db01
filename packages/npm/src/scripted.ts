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
  /** A scenario file instead of a script. It can use every key of the TOML format. */
  file?: string | { readonly href: string };
  /** Fail the test for prompts without a rule and for steps that were not reached; default true. */
  strict?: boolean;
  /** `real` runs the real claude (CLAUDE_BIN, or on PATH) against the same script as the Messages API. */
  lane?: "fake" | "real";
  seed?: number;
}

/** The verdict, in the form of `claudeless verify --json`. */
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

/** All claudes that are not closed yet; `afterEach` of the test runners verifies them. */
export const open = new Set<ScriptedClaude>();

/** The problems of claudes that `close` judged, until something reports them. */
export const unreported = new Map<ScriptedClaude, ClaudelessError>();

/**
 * Creates a claude with a scripted model. The script answers one prompt from any process, and `on` adds rules for more
 * prompts. With `await using`, the end of the block rejects if steps were not reached, prompts had no rule, expectations
 * were not met, or the program used claude in a way that fails with the real one.
 */
export async function scriptedClaude(script?: string | ReadonlyArray<Step>, options: ScriptedClaudeOptions = {}): Promise<ScriptedClaude> {
  const claude = new ScriptedClaude(script, options, caller());
  if (options.file !== undefined) await claude.check();
  if (process.env["VITEST"]) await atTestEnd(claude);
  return claude;
}

/** vitest ends its workers without an exit event, so a claude that is still open at the end of its test fails the test. */
async function atTestEnd(claude: ScriptedClaude): Promise<void> {
  try {
    const { onTestFinished } = await import("vitest");
    onTestFinished(async () => {
      if (open.has(claude)) throw await claude.forgotten();
      const error = unreported.get(claude);
      unreported.delete(claude);
      if (error) throw error;
    });
  } catch {
    // no test is running: a hook of the suite created it and closes it
  }
}

process.on("exit", () => {
  for (const claude of [...open]) {
    console.error(`claudeless: error: ${claude.neverClosed}`);
    process.exitCode = 1;
    claude.end();
  }
  for (const error of unreported.values()) {
    console.error(`claudeless: error: ${error.message}`);
    process.exitCode = 1;
  }
});

export class ScriptedClaude implements AsyncDisposable {
  /** The private directory; `close` removes it. */
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
  #warned = new Set<string>(); // findings that were printed
  #kept: Entry[] | undefined;
  #judged = false;

  constructor(script: string | ReadonlyArray<Step> | undefined, options: ScriptedClaudeOptions, place: Place) {
    const { file, strict = true, lane = "fake", seed, ...unknown } = options;
    const [option] = Object.keys(unknown);
    if (option !== undefined) throw new TypeError(`scriptedClaude has no option ${JSON.stringify(option)}: it takes file, strict, lane and seed`);
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

  /** The path of the claude program. */
  get path(): string {
    return join(this.directory, "bin", `claude${exe}`);
  }

  /** The scenario as TOML, for example to save a long script as a file. */
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

  /** Returns options for `query` of the Agent SDK that use this claude; the given options are kept. */
  options<T extends { env?: Record<string, string | undefined> }>(given?: T): Omit<T, "env"> & { pathToClaudeCodeExecutable: string; env: Record<string, string | undefined> } {
    const { env, ...rest } = (given ?? {}) as T;
    return { ...(rest as Omit<T, "env">), pathToClaudeCodeExecutable: this.path, env: { ...process.env, ...this.env, ...env } };
  }

  /** Answers prompts that contain this text, or match this expression, with these steps. */
  on(prompt: string | RegExp, ...steps: Step[]): this {
    this.#noFile("on");
    if (steps.length === 0) throw new TypeError("on: the rule has no answer: pass at least one step");
    this.#rules.push({ pattern: patternOf(prompt), steps: messages(steps), once: false, place: caller() });
    this.#write();
    return this;
  }

  /** Holds back the answer to a prompt: that of `on(prompt)`, or of the script. */
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

  /** The prompts so far, in order. */
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
    const args = this.#verifyArguments(...more);
    return this.#report(await run(findBinary(), args).catch((error: { stderr?: string }) => error));
  }

  #verifyArguments(...more: string[]): string[] {
    closeSync(openSync(this.#journal, "a"));
    const args = ["verify", this.#journal, "-s", this.#scenario, "--json", join(this.directory, "verdict.json"), ...more];
    return this.#strict ? args : [...args, "--lenient"];
  }

  #report(said: { stderr?: string }): Verdict {
    const report = join(this.directory, "verdict.json");
    if (!existsSync(report)) throw new ClaudelessError([this.#mistakes() || `claudeless verify failed: ${said.stderr?.trim() ?? ""}`], this.#place);
    return JSON.parse(readFileSync(report, "utf8")) as Verdict;
  }

  /** Returns all problems at the end, one text each. A claude that still runs is a problem and is ended. Terminals are closed first. */
  async problems(): Promise<string[]> {
    await Promise.all(this.#terminals.splice(0).map((terminal) => terminal.close()));
    this.#judged = true;
    return this.#problemsOf(await this.#verify("--sweep", this.#run));
  }

  #problemsOf(verdict: Verdict): string[] {
    const found = verdict.expectations.filter((x) => !x.met).map((x) => this.#at(x) + x.text + (x.got ? `: ${x.got}` : ""));
    for (const f of verdict.findings) {
      const text = `${this.#at(f)}${f.text} [${f.id}]${f.advice ? `\n    ${f.advice}` : ""}`;
      if (f.level === "error") found.push(text);
      if (f.level !== "warn" || this.#warned.has(text)) continue;
      this.#warned.add(text);
      console.warn(`claudeless: warning: ${text}`);
    }
    for (const u of verdict.unmatched) {
      if (!found.some((text) => text.includes(u.prompt))) found.push([`no rule for the prompt ${JSON.stringify(u.prompt)}`, ...u.nearest].join("\n    "));
    }
    return found;
  }

  /** Rejects if there are problems so far, with all of them. */
  async assertComplete(): Promise<void> {
    const found = await this.problems();
    if (found.length > 0) throw new ClaudelessError(found, this.#place);
  }

  /**
   * Ends the server and removes the directory. `calls` and `tools` can still be read. Problems that neither `problems` nor
   * `assertComplete` was asked for before fail the test or the program at its end.
   */
  close(): void {
    if (!open.has(this)) return;
    try {
      if (!this.#judged) {
        for (const terminal of this.#terminals.splice(0)) terminal.kill();
        const found = this.#problemsOf(this.#report(spawnSync(findBinary(), this.#verifyArguments("--sweep", this.#run), { encoding: "utf8" })));
        if (found.length > 0) unreported.set(this, new ClaudelessError(found, this.#place));
      }
    } finally {
      this.end();
    }
  }

  /** Like `close`, but without a verdict. */
  end(): void {
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
      this.end();
    }
  }

  /** The error for a claude that was not closed. */
  get neverClosed(): string {
    return `${this.#placeOf(0)}this scripted claude was never closed: use \`await using\`, or import "claudeless/vitest", "/jest" or "/node-test"`;
  }

  /** Closes a claude that the test did not close, and returns all problems. */
  async forgotten(): Promise<ClaudelessError> {
    const found = await this.problems().catch((error: Error) => [error.message]);
    this.end();
    return new ClaudelessError([this.neverClosed, ...found], this.#place);
  }

  /** Rejects if the scenario file has errors, and prints them like `claudeless check`. */
  async check(): Promise<void> {
    const text = this.#mistakes();
    if (!text) return;
    this.end();
    throw new ClaudelessError([`the scenario has mistakes\n${text}`], this.#place);
  }

  /** The value of the environment variable that marks the processes of this claude. */
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
    if (this.#file !== undefined) throw new TypeError(`${what}: this test already has the scenario file ${this.#file}; a test can have only one scenario`);
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

  /** Returns the errors of the script like `claudeless check`, but with the lines of the test; empty = no errors. */
  #mistakes(): string {
    const { status, stdout, stderr } = spawnSync(findBinary(), ["check", this.#scenario], { encoding: "utf8" });
    if (status === 0) return "";
    const text = (stdout + stderr).trim();
    if (this.#file !== undefined) return text;
    const parts = text.split(this.#scenario);
    return parts.map((part, i) => (i === 0 ? part : part.replace(/^(?::(\d+)(?::\d+)?)?(?:: )?/, (_, line: string | undefined) => this.#placeOf(Number(line ?? 0))))).join("");
  }

  /** Returns the position of a finding: the line of the test that added the rule, or the line of the file. */
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

/** The error for a failed run. Its stack is the place that created the claude, because test runners show that frame. */
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

/** An answer that is held back. */
export class Hold {
  readonly #gate: string;
  readonly #env: () => Record<string, string | undefined>;

  constructor(gate: string, env: () => Record<string, string | undefined>) {
    this.#gate = gate;
    this.#env = env;
  }

  /** Waits until the prompt of this answer arrives; rejects after the timeout (milliseconds). */
  async reached(timeout = 30_000): Promise<true> {
    await run(findBinary(), ["gates", "wait", this.#gate, "--timeout", `${timeout}ms`], { env: this.#env() }).catch((error: { stderr?: string }) => {
      throw new Error(`no request for the answer within ${timeout} ms: ${error.stderr?.trim() ?? ""}`);
    });
    return true;
  }

  /** Releases the answer, now or for a later prompt. */
  async release(): Promise<void> {
    await run(findBinary(), ["gates", "release", this.#gate], { env: this.#env() });
  }
}

/** Starts a shell that removes the directory if this program is killed. */
function guard(directory: string): ChildProcess | undefined {
  if (exe) return undefined;
  const shell = spawn("/bin/sh", ["-c", 'read -r _; rm -rf -- "$1"', "sh", directory], { stdio: ["pipe", "ignore", "ignore"], detached: true });
  shell.on("error", () => {}); // without a shell the directory remains after a kill
  shell.unref();
  (shell.stdin as unknown as { unref?: () => void } | null)?.unref?.();
  return shell;
}

/** Returns the file and line of the caller outside this package. */
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

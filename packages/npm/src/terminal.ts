// Terminal: a pseudo-terminal in which claude runs, and its screen.
import { spawn, type ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";

/** One character on the screen. */
export interface Cell {
  text: string;
  /** Columns: 1 or 2. */
  width: number;
  /** The escape sequence that selects its style; empty = none. */
  style: string;
}

/** The content of a terminal at one moment. */
export interface Screen {
  /** One string per row, without trailing spaces. */
  text: string;
  /** One array of cells per row; a wide character is one cell of width 2. */
  cells: Cell[][];
  title: string;
  cols: number;
  rows: number;
  /** Counted from 0. */
  cursor: { col: number; row: number; visible: boolean };
  /** The alternate screen is shown. */
  alternate: boolean;
}

export interface TerminalOptions {
  /** Default 110. */
  cols?: number;
  /** Default 36. */
  rows?: number;
  env?: Record<string, string | undefined>;
  cwd?: string;
}

interface Answer {
  error?: string;
  screen?: Screen;
}

/** A pseudo-terminal in which claude runs; see `ScriptedClaude.terminal`. It is closed with its claude. */
export class Terminal implements AsyncDisposable {
  readonly #driver: ChildProcess;
  readonly #waiting: { resolve: (answer: Answer) => void; reject: (error: Error) => void }[] = [];
  readonly #ended: Promise<void>;
  #said = "";

  constructor(binary: string, args: string[], env: Record<string, string | undefined>, cwd: string | undefined) {
    this.#driver = spawn(binary, args, { env, cwd, stdio: ["pipe", "pipe", "pipe"] });
    this.#driver.stdin!.on("error", () => {}); // its end is reported below
    this.#driver.stderr!.on("data", (text: Buffer) => (this.#said += text.toString()));
    createInterface({ input: this.#driver.stdout! }).on("line", (line) => this.#waiting.shift()?.resolve(JSON.parse(line) as Answer));
    this.#ended = new Promise((resolve) => {
      this.#driver.on("error", (error) => (this.#said += error.message));
      this.#driver.on("close", () => {
        for (const request of this.#waiting.splice(0)) request.reject(new Error(`the terminal did not start: ${this.#said.trim()}`));
        resolve();
      });
    });
  }

  /** Waits until the screen contains this text; rejects with the screen after the timeout (milliseconds). */
  async waitFor(text: string, timeout = 15_000): Promise<void> {
    await this.#request({ wait: text, timeout_ms: timeout });
  }

  /** Types a text, and waits until the screen shows it, for 3 seconds at most. */
  async type(text: string): Promise<void> {
    await this.#request({ type: text });
  }

  /** Presses keys: "Enter", "Down", "Esc", "C-c", "BTab", or a character. */
  async press(...keys: string[]): Promise<void> {
    await this.#request({ press: keys.join(" ") });
  }

  /** Changes the size of the terminal. */
  async resize(cols: number, rows: number): Promise<void> {
    await this.#request({ resize: `${cols}x${rows}` });
  }

  /** Returns the current content of the terminal. */
  async screen(): Promise<Screen> {
    return (await this.#request({ screen: true })).screen!;
  }

  /** Ends claude and closes its terminal. */
  async close(): Promise<void> {
    this.#driver.stdin!.end();
    await this.#ended;
  }

  /** Kills claude without waiting for its end. */
  kill(): void {
    this.#driver.stdin!.end();
    this.#driver.kill();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #request(request: Record<string, unknown>): Promise<Answer> {
    if (this.#driver.stdin!.writableEnded) throw new Error("the terminal is closed");
    const answer = await new Promise<Answer>((resolve, reject) => {
      if (this.#driver.exitCode !== null) return reject(new Error(`the terminal did not start: ${this.#said.trim()}`));
      this.#waiting.push({ resolve, reject });
      this.#driver.stdin!.write(JSON.stringify(request) + "\n");
    });
    if (answer.error) throw new Error(`terminal: ${answer.error}`);
    return answer;
  }
}

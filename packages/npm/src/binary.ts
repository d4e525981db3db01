// Where the binary is: named by CLAUDELESS_BIN, or in the platform package, or on PATH.
import { spawnSync } from "node:child_process";
import { accessSync, constants, openSync, readSync, closeSync, realpathSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, join } from "node:path";

const exe = process.platform === "win32" ? ".exe" : "";

/** The path of the binary: CLAUDELESS_BIN wins, as in Python. Throws with what to do when there is none for this machine. */
export function findBinary(): string {
  const given = process.env["CLAUDELESS_BIN"];
  if (given) {
    if (!runs(given)) throw new Error(`CLAUDELESS_BIN names ${given}, which is not there or cannot be run`);
    return given;
  }
  const platform = `@claudeless/${process.platform}-${process.arch}`;
  try {
    return createRequire(import.meta.url).resolve(`${platform}/bin/claudeless${exe}`);
  } catch {
    // not installed: it is optional, and there is none for some machines
  }
  const found = onPath("claudeless", (file) => !isScript(file));
  if (found) return found;
  throw new Error(
    `claudeless has no binary for ${process.platform}-${process.arch} here: install the package ${platform} ` +
      "(npm leaves it out with --omit=optional), or build one (`go build ./cmd/claudeless`) and name it in CLAUDELESS_BIN",
  );
}

/** The real claude: CLAUDE_BIN, or the first on PATH that is no claudeless. */
export function findClaude(): string {
  const found = process.env["CLAUDE_BIN"] || onPath("claude", (file) => !isOurs(file));
  if (!found) throw new Error('lane "real" needs a real claude: name it in CLAUDE_BIN, or put it on PATH');
  return realpathSync(found);
}

function onPath(name: string, fits: (file: string) => boolean): string | undefined {
  return (process.env["PATH"] ?? "")
    .split(delimiter)
    .filter(Boolean)
    .map((dir) => join(dir, name + exe))
    .find((file) => runs(file) && fits(file));
}

function runs(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function isOurs(claude: string): boolean {
  const { stdout } = spawnSync(claude, ["--version"], { env: { ...process.env, CLAUDELESS_IDENTIFY: "1" }, encoding: "utf8", timeout: 30_000 });
  return (stdout ?? "").includes("claudeless");
}

/** Whether a file is a script, such as the one of this package, which would look for itself for ever. */
function isScript(file: string): boolean {
  const fd = openSync(file, "r");
  try {
    const head = Buffer.alloc(2);
    readSync(fd, head, 0, 2, 0);
    return head.toString() === "#!";
  } finally {
    closeSync(fd);
  }
}

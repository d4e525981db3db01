// Finds the binary: CLAUDELESS_BIN, the platform package, or PATH.
import { spawnSync } from "node:child_process";
import { accessSync, constants, openSync, readSync, closeSync, realpathSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, join } from "node:path";

const exe = process.platform === "win32" ? ".exe" : "";

/** Returns the path of the binary: CLAUDELESS_BIN, else the platform package. Throws, with advice, if this platform has none. */
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
    // not installed: the package is optional, and some platforms have none
  }
  const found = onPath("claudeless", (file) => !isScript(file));
  if (found) return found;
  throw new Error(
    `claudeless has no binary for ${process.platform}-${process.arch} here: install the package ${platform} ` +
      "(npm leaves it out with --omit=optional), or build one (`go build ./cmd/claudeless`) and name it in CLAUDELESS_BIN",
  );
}

/** Returns the real claude: CLAUDE_BIN, or the first claude on PATH that is not claudeless. */
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

/** Reports whether a file is a script. The script of this package would find and call itself for ever. */
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

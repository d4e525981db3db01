#!/usr/bin/env node
// `npx claudeless`: the binary of the platform package.
import { spawnSync } from "node:child_process";
import { findBinary } from "./binary.js";

try {
  const done = spawnSync(findBinary(), process.argv.slice(2), { stdio: "inherit" });
  if (done.error) throw done.error;
  if (done.signal) process.kill(process.pid, done.signal);
  process.exitCode = done.status ?? 1;
} catch (error) {
  console.error(`claudeless: error: ${(error as Error).message}`);
  process.exitCode = 1;
}

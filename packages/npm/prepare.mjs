// Builds dist/ when the package is installed from its directory: `npm install ./packages/npm` brings no compiler.
import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));

/** The compiler of this package's own node_modules; undefined = its development dependencies are not installed. */
function compiler() {
  const require = createRequire(import.meta.url);
  try {
    require.resolve("@types/node/package.json");
    return require.resolve("typescript/bin/tsc");
  } catch {
    return undefined;
  }
}

function run(command, args, options) {
  const done = spawnSync(command, args, { cwd: here, stdio: "inherit", ...options });
  if (done.error) throw done.error;
  if (done.status !== 0) process.exit(done.status ?? 1);
}

if (!compiler()) {
  // The npm that runs this script hands its own options down; those about what to install are not for this step.
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_config_(global|omit|include|only|production|prefix|location|save.*)$/i.test(name)));
  const flags = ["--include=dev", "--omit=optional", "--omit=peer", "--ignore-scripts", "--no-save", "--no-package-lock", "--no-audit", "--no-fund"];
  run(process.platform === "win32" ? "npm.cmd" : "npm", ["install", ...flags], { env, shell: process.platform === "win32" });
}
const tsc = compiler();
if (!tsc) throw new Error("claudeless: the TypeScript compiler could not be installed; run `npm install` in " + here);
run(process.execPath, [tsc, "-p", "tsconfig.json"]);

// Makes the platform packages below dist-platforms/: one with a binary for each platform that is named, or for all.
//   node platforms.mjs [linux-x64 …]     CLAUDELESS_BIN=… takes a binary in place of `go build` (one platform)
import { execFileSync } from "node:child_process";
import { copyFileSync, chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const main = JSON.parse(readFileSync(join(here, "package.json"), "utf8"));
const all = Object.keys(main.optionalDependencies).map((name) => name.split("/")[1]);
const wanted = process.argv.slice(2);
for (const platform of wanted.length > 0 ? wanted : all) {
  if (!all.includes(platform)) throw new Error(`${platform} is none of ${all.join(", ")}`);
  const [os, cpu] = platform.split("-");
  const dir = join(here, "dist-platforms", platform);
  const binary = join(dir, "bin", os === "win32" ? "claudeless.exe" : "claudeless");
  mkdirSync(dirname(binary), { recursive: true });
  if (process.env.CLAUDELESS_BIN && wanted.length === 1) {
    copyFileSync(process.env.CLAUDELESS_BIN, binary);
  } else {
    execFileSync("go", ["build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", binary, "./cmd/claudeless"], {
      cwd: join(here, "..", ".."),
      env: { ...process.env, CGO_ENABLED: "0", GOOS: os === "win32" ? "windows" : os, GOARCH: cpu === "x64" ? "amd64" : cpu },
      stdio: "inherit",
    });
  }
  chmodSync(binary, 0o755);
  writeFileSync(
    join(dir, "package.json"),
    JSON.stringify({ name: `@claudeless/${platform}`, version: main.version, description: `The binary of claudeless for ${platform}`, license: main.license, os: [os], cpu: [cpu], files: ["bin"] }, null, 2) + "\n",
  );
}

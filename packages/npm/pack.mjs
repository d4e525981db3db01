// Packs what is published to npm: claudeless itself, and a package with the binary for each platform.
//   node pack.mjs OUT BINARIES      BINARIES holds linux_amd64/claudeless, windows_arm64/claudeless.exe and so on
// The version is the one of the binaries' source, so package.json has no version.
import { execFileSync } from "node:child_process";
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, "..", "..");
const [out, binaries] = process.argv.slice(2).map((path) => resolve(path));
const version = readFileSync(join(root, "internal", "cli", "version.txt"), "utf8").trim();
const work = mkdtempSync(join(tmpdir(), "claudeless-npm-"));
const platforms = ["darwin", "linux", "win32"].flatMap((os) => ["arm64", "x64"].map((cpu) => ({ os, cpu, name: `${os}-${cpu}` })));

/** Packs a directory with this package.json into OUT. */
function pack(dir, manifest) {
  writeFileSync(join(dir, "package.json"), JSON.stringify(manifest, null, 2) + "\n");
  cpSync(join(root, "LICENSE"), join(dir, "LICENSE"));
  execFileSync("npm", ["pack", "--silent", "--ignore-scripts", "--pack-destination", out], { cwd: dir, stdio: ["ignore", "ignore", "inherit"], shell: process.platform === "win32" });
}

try {
  mkdirSync(out, { recursive: true });
  const { scripts, devDependencies, ...main } = JSON.parse(readFileSync(join(here, "package.json"), "utf8"));
  const library = join(work, "claudeless");
  cpSync(here, library, { recursive: true, filter: (path) => !["node_modules", "dist"].includes(relative(here, path)) });
  execFileSync(process.execPath, ["prepare.mjs"], { cwd: library, stdio: ["ignore", "ignore", "inherit"], env: { ...process.env, npm_config_prefer_offline: "true" } });
  pack(library, { ...main, version, optionalDependencies: Object.fromEntries(platforms.map(({ name }) => [`@claudeless/${name}`, version])) });

  for (const { os, cpu, name } of platforms) {
    const exe = os === "win32" ? "claudeless.exe" : "claudeless";
    const binary = join(binaries, `${os === "win32" ? "windows" : os}_${cpu === "x64" ? "amd64" : cpu}`, exe);
    if (!existsSync(binary)) continue;
    const dir = join(work, name);
    mkdirSync(join(dir, "bin"), { recursive: true });
    cpSync(binary, join(dir, "bin", exe));
    chmodSync(join(dir, "bin", exe), 0o755);
    const { license, repository } = main;
    pack(dir, { name: `@claudeless/${name}`, version, description: `The binary of claudeless for ${name}`, license, repository, os: [os], cpu: [cpu], files: ["bin"] });
  }
} finally {
  rmSync(work, { recursive: true, force: true });
}

/**
 * Entry of the root scripts `demo`, `test`, `gimbal` and `verify`: brings pnpm, installs and builds when something
 * changed, then runs. Needs Node 20.19+ and npm only. Everything but the command's own output goes to stderr.
 */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

const root = path.resolve(fileURLToPath(new URL("../..", import.meta.url)));
const stateDir = path.join(root, "node_modules", ".gimbal");
const { packageManager } = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8"));
const pnpmVersion = packageManager.replace(/^pnpm@/, "");
const pnpmDir = path.join(root, ".gimbal", `pnpm-${pnpmVersion}`);
const pnpmCli = path.join(pnpmDir, "node_modules", "pnpm", "bin", "pnpm.cjs");

function fail(text) {
  process.stderr.write(`gimbal: ${text}\n`);
  process.exit(1);
}

const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  fail(
    `Node ${process.versions.node} found, 20.19 or newer needed. Install it from your package manager and try again.`,
  );
}

/** Turbo and the pack checks call `pnpm` by name; the one brought here comes first. */
const env = {
  ...process.env,
  PATH: `${path.join(pnpmDir, "node_modules", ".bin")}${path.delimiter}${process.env.PATH ?? ""}`,
  TURBO_TELEMETRY_DISABLED: "1",
};

/**
 * Runs a command to its end and returns its exit code. By default its output is kept back and shown, on stderr, only
 * when it fails; with `own` it has the terminal to itself.
 */
function run(command, args, { own = false, cwd = root } = {}) {
  return new Promise((resolve) => {
    const stdio = own ? "inherit" : ["ignore", "pipe", "pipe"];
    const child = spawn(command, args, { cwd, env, stdio });
    let kept = "";
    const keep = (chunk) => {
      kept = (kept + chunk).slice(-20_000);
    };
    child.stdout?.on("data", keep);
    child.stderr?.on("data", keep);
    // A Ctrl-C at the terminal reaches the child by itself; a second signal would mean "stop at once".
    const forward = (signal) => {
      if (signal !== "SIGINT" || !process.stdin.isTTY) child.kill(signal);
    };
    process.on("SIGINT", forward);
    process.on("SIGTERM", forward);
    child.on("error", (error) => fail(`${command} could not be started: ${error.message}`));
    child.on("close", (code, signal) => {
      process.off("SIGINT", forward);
      process.off("SIGTERM", forward);
      if (code !== 0) process.stderr.write(kept);
      resolve(code ?? (signal === "SIGINT" ? 130 : 1));
    });
  });
}

/** Hash of names, sizes and times of everything a build reads. */
function sourceStamp() {
  const hash = createHash("sha256");
  const visit = (dir) => {
    for (const entry of readdirSync(dir, { withFileTypes: true }).sort((a, b) =>
      a.name < b.name ? -1 : 1,
    )) {
      if (
        /^(node_modules|dist|\.turbo|runs|etc|bench)$/.test(entry.name) ||
        /\.test\.ts$/.test(entry.name)
      )
        continue;
      const full = path.join(dir, entry.name);
      if (entry.isDirectory()) visit(full);
      else {
        const { mtimeMs, size } = statSync(full);
        hash.update(`${full}\0${size}\0${mtimeMs}\n`);
      }
    }
  };
  for (const dir of ["packages", "apps", "tooling"]) visit(path.join(root, dir));
  return hash.digest("hex");
}

function installStamp() {
  const hash = createHash("sha256").update(process.version);
  for (const name of ["pnpm-lock.yaml", "pnpm-workspace.yaml", "package.json"]) {
    hash.update(readFileSync(path.join(root, name)));
  }
  return hash.digest("hex");
}

const stampFile = (name) => path.join(stateDir, name);
const isFresh = (name, stamp) =>
  existsSync(stampFile(name)) && readFileSync(stampFile(name), "utf8") === stamp;
function remember(name, stamp) {
  mkdirSync(stateDir, { recursive: true });
  writeFileSync(stampFile(name), stamp);
}

async function bringPnpm() {
  if (existsSync(pnpmCli)) return;
  process.stderr.write(`gimbal: installing pnpm ${pnpmVersion}\n`);
  const npm = process.platform === "win32" ? "npm.cmd" : "npm";
  const flags = ["--no-save", "--no-audit", "--no-fund", "--prefix", pnpmDir];
  const code = await run(npm, ["install", ...flags, `pnpm@${pnpmVersion}`]);
  if (code !== 0 || !existsSync(pnpmCli)) {
    rmSync(pnpmDir, { recursive: true, force: true });
    fail(
      "pnpm could not be installed with npm (see above). Check the network and the npm registry, then try again.",
    );
  }
}

const pnpm = (args, options) => run(process.execPath, [pnpmCli, ...args], options);

async function install() {
  const stamp = installStamp();
  if (isFresh("install", stamp)) return;
  await bringPnpm();
  process.stderr.write("gimbal: installing dependencies\n");
  if ((await pnpm(["install", "--frozen-lockfile"])) !== 0) {
    fail("pnpm install failed (see above).");
  }
  remember("install", stamp);
}

async function build() {
  await install();
  const stamp = sourceStamp();
  if (isFresh("build", stamp)) return;
  await bringPnpm();
  process.stderr.write("gimbal: building\n");
  if ((await pnpm(["exec", "turbo", "run", "build", "--output-logs=errors-only"])) !== 0) {
    fail("the build failed (see above).");
  }
  remember("build", sourceStamp());
}

/** The command line sees the folder its user stands in, which npm notes in INIT_CWD. */
const gimbal = (args) =>
  run(process.execPath, [path.join(root, "apps", "cli", "dist", "main.js"), ...args], {
    own: true,
    cwd: process.env.INIT_CWD ?? process.cwd(),
  });

const [command, ...args] = process.argv.slice(2);
switch (command) {
  case "demo":
    await build();
    process.exitCode = await gimbal(["demo", ...args]);
    break;
  case "gimbal":
    await build();
    process.exitCode = await gimbal(args);
    break;
  case "test": {
    await build();
    await bringPnpm();
    const reporters = ["--reporter=default", "--reporter=json"];
    const report = "--outputFile.json=test-results.json";
    process.exitCode = await pnpm(["exec", "vitest", "run", ...reporters, report, ...args], {
      own: true,
    });
    break;
  }
  case "verify":
    await install();
    await bringPnpm();
    process.exitCode = await pnpm(["exec", "tsx", "tooling/checks/src/verify.ts", ...args], {
      own: true,
    });
    break;
  default:
    fail(`unknown command "${command ?? ""}"; expected demo, gimbal, test or verify.`);
}

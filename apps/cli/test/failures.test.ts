/** What goes wrong on real machines: one line with the next step, exit code 1 or 2, nothing on stdout, no stack. */
import { execFileSync } from "node:child_process";
import { cp, mkdir, mkdtemp, rm, truncate, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { createModelFolder, gimbal, type Invocation } from "./support.js";

let folder = "";
let modelDir = "";

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "gimbal-cli-"));
  modelDir = await createModelFolder(join(folder, "model"));
});

afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

afterEach(() => {
  vi.unstubAllEnvs();
});

/** Checks the form of a failure and returns its line. */
function failureLine({ exitCode, stderr, stdout }: Invocation, expectedCode = 1): string {
  expect(stdout).toBe("");
  const lines = stderr.trimEnd().split("\n");
  const last = lines.at(-1) ?? "";
  expect(lines.filter((line) => line.startsWith("gimbal: "))).toEqual([last]);
  expect(stderr).not.toMatch(/^\s+at /m);
  expect(last).not.toContain("unexpected error");
  expect(exitCode).toBe(expectedCode);
  return last;
}

async function changedModel(name: string): Promise<string> {
  const copy = join(folder, name);
  await cp(modelDir, copy, { recursive: true });
  return copy;
}

describe("models", () => {
  test.each(["config.json", "tokenizer.json", "model.safetensors"])(
    "whose %s is a named pipe are refused instead of being waited for",
    async (name) => {
      const piped = await changedModel(`piped-${name}`);
      await rm(join(piped, name));
      execFileSync("mkfifo", [join(piped, name)]);
      const line = failureLine(await gimbal("serve", "--model", piped, "--json"));
      expect(line).toContain(name);
      expect(line).toMatch(/not a plain file/);
    },
  );

  test("a folder that is not there, or is no model", async () => {
    const missing = await gimbal("serve", "--model", join(folder, "nothing"), "--json");
    expect(failureLine(missing)).toMatch(/is not a folder\. Give a Hugging Face model folder/);
    await mkdir(join(folder, "empty"), { recursive: true });
    const empty = await gimbal("serve", "--model", join(folder, "empty"), "--json");
    expect(failureLine(empty)).toMatch(/is not a model folder: it has no tokenizer\.json/);
  });

  test("truncated safetensors", async () => {
    const copy = await changedModel("truncated");
    await truncate(join(copy, "model.safetensors"), 2000);
    const line = failureLine(await gimbal("proxy", "--model", copy, "--json"));
    expect(line).toMatch(/model\.safetensors/);
  });

  test("a template with a filter that is not known", async () => {
    const copy = await changedModel("filter");
    await writeFile(
      join(copy, "chat_template.jinja"),
      "{%- for m in messages %}<|im_start|>{{ m.content | sparkle }}<|im_end|>{%- endfor %}",
    );
    const line = failureLine(await gimbal("serve", "--model", copy, "--json"));
    expect(line).toContain("sparkle");
  });
});

describe("places", () => {
  test("a port in use", async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()));
    const address = server.address();
    const port = typeof address === "object" && address !== null ? String(address.port) : "";
    for (const argv of [
      ["serve", "--port", port],
      ["proxy", "--port", port],
      ["proxy", "--control-port", port],
    ]) {
      const line = failureLine(await gimbal(...argv, "--model", modelDir, "--json"));
      expect(line).toContain(`Port ${port} on 127.0.0.1 is in use. Stop the other program`);
    }
    server.close();
  });

  test("a run folder that cannot be written", async () => {
    // Below a file: refused for root too, whom permissions do not stop.
    const file = join(folder, "file");
    await writeFile(file, "");
    const store = await gimbal("proxy", "--model", modelDir, "--store", join(file, "run"));
    expect(failureLine(store)).toMatch(/cannot be written .*choose another folder/);
    const run = await gimbal("train", "--run", join(file, "run"), "--json");
    expect(failureLine(run)).toMatch(/choose a folder you may write to with --run/);
  });

  test("a run database that is damaged", async () => {
    const run = join(folder, "damaged");
    await mkdir(run, { recursive: true });
    await writeFile(join(run, "gimbal.db"), "this is no database".repeat(500));
    for (const argv of [
      ["inspect", run],
      ["validate", run],
      ["proxy", "--model", modelDir, "--store", run],
    ]) {
      const line = failureLine(await gimbal(...argv, "--json"));
      expect(line).toMatch(/The run database in .* is damaged .* Restore the folder/);
    }
  });

  test("a run that is not there", async () => {
    const nothing = join(folder, "nothing");
    expect(failureLine(await gimbal("inspect", nothing))).toMatch(/is not a folder\. Give/);
    expect(failureLine(await gimbal("validate", folder))).toMatch(
      /no run database .* Check the path/,
    );
    expect(failureLine(await gimbal("train", "--resume", nothing))).toMatch(/run\.json/);
  });
});

describe("settings", () => {
  test("of a new run beside --resume or --replay are bad usage, not silently dropped", async () => {
    for (const argv of [
      ["--resume", folder, "--steps", "3"],
      ["--resume", folder, "--replay", folder],
      ["--replay", folder, "--harness", "pi"],
    ]) {
      const line = failureLine(await gimbal("train", ...argv), 2);
      expect(line).toMatch(/cannot be used with .* See gimbal train --help\./);
    }
  });

  test("a task that stands twice in a task file is named", async () => {
    const path = join(folder, "tasks.jsonl");
    const task = {
      taskId: "t",
      instruction: "i",
      files: {},
      verifier: { kind: "all", options: {} },
    };
    await writeFile(path, `${JSON.stringify(task)}\n\n${JSON.stringify(task)}\n`);
    const line = failureLine(await gimbal("rollout", "--task-file", path));
    expect(line).toMatch(/line 3 repeats the task t\./);
  });

  test("a task file that is not there or holds nothing, or held-out tasks alone, are bad usage", async () => {
    const path = join(folder, "empty.jsonl");
    await writeFile(path, "\n");
    const absent = failureLine(await gimbal("eval", "--task-file", join(folder, "none")), 2);
    expect(absent).toMatch(/none cannot be read \(ENOENT.*\)\. Check the path\./);
    expect(failureLine(await gimbal("rollout", "--task-file", path), 2)).toMatch(/holds no task/);
    expect(failureLine(await gimbal("train", "--heldout-file", path), 2)).toMatch(/--task-file/);
  });

  test("a harness module that throws is the user's, and says what it threw", async () => {
    const path = join(folder, "broken.mjs");
    await writeFile(path, 'throw new Error("boom");\n');
    const line = failureLine(await gimbal("rollout", "--harness", path), 2);
    expect(line).toMatch(/broken\.mjs could not be loaded: boom\. A harness module is JavaScript/);
  });

  test("a task file with a wrong field is refused by name, before anything runs", async () => {
    const path = join(folder, "tasks.jsonl");
    const task = { taskId: "t", instruction: "i", files: {}, verifier: { kind: "all" } };
    await writeFile(path, `${JSON.stringify(task)}\n`);
    const line = failureLine(await gimbal("rollout", "--task-file", path));
    expect(line).toMatch(/line 1 is no task\. Task field verifier\.options is missing/);
  });
});

describe("harnesses", () => {
  test("without Pi the doctor says how to install it", async () => {
    vi.stubEnv("GIMBAL_CACHE_DIR", join(folder, "cache"));
    const { stdout } = await gimbal("doctor", "--json");
    const { checks } = JSON.parse(stdout) as { checks: { name: string }[] };
    expect(checks.find(({ name }) => name === "harness pi")).toMatchObject({
      status: "missing",
      next: expect.stringContaining("gimbal doctor --install pi"),
    });
  });

  test("Pi that cannot be installed ends the command", async () => {
    vi.stubEnv("GIMBAL_CACHE_DIR", join(folder, "cache-2"));
    // A registry that nothing listens on, and no second try.
    const settings = join(folder, "npmrc");
    await writeFile(settings, "registry=http://127.0.0.1:9/\nfetch-retries=0\n");
    vi.stubEnv("npm_config_userconfig", settings);
    vi.stubEnv("npm_config_registry", "http://127.0.0.1:9/");
    vi.stubEnv("npm_config_cache", join(folder, "npm-cache"));
    for (const argv of [
      ["doctor", "--install", "pi"],
      ["demo", "--quick", "--run", join(folder, "demo")],
    ]) {
      const line = failureLine(await gimbal(...argv, "--json"));
      expect(line).toMatch(/npm could not install .* then run: gimbal doctor --install pi$/);
    }
  }, 60_000);

  test("another version in Pi's place is broken, and says so", async () => {
    const cache = join(folder, "cache-3");
    const place = join(cache, "harness/pi-1.6.0/node_modules/@earendil-works/pi-coding-agent");
    await mkdir(place, { recursive: true });
    await writeFile(join(place, "package.json"), '{"version":"9.9.9"}');
    vi.stubEnv("GIMBAL_CACHE_DIR", cache);
    const { exitCode, stdout } = await gimbal("doctor");
    expect(stdout).toMatch(/broken +harness pi .*found 9\.9\.9/);
    expect(exitCode).toBe(1);
  });

  test("an unknown harness is bad usage", async () => {
    const line = failureLine(await gimbal("rollout", "--harness", "nemo"), 2);
    expect(line).toMatch(/Unknown harness "nemo"; expected pi/);
  });
});

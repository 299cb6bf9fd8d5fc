/** `inspect` and `validate` on a real run of a random model, and on copies that were damaged. */
import { appendFile, cp, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { CapturedCall } from "@gimbal-rl/core";
import { openStore } from "@gimbal-rl/store";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createModelFolder, createRun, gimbal } from "./support.js";

let folder = "";
let runDir = "";

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "gimbal-cli-"));
  runDir = join(folder, "run");
  await createRun(runDir, await createModelFolder(join(folder, "model")));
}, 60_000);

afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

let copies = 0;
async function copyRun(): Promise<string> {
  copies += 1;
  const copy = join(folder, `copy-${copies}`);
  await cp(runDir, copy, { recursive: true });
  return copy;
}

interface ValidateResult {
  readonly ok: boolean;
  readonly counts: Record<string, number>;
  readonly coverage: number;
  readonly fatal: { readonly code: string; readonly where: string }[];
  readonly info: { readonly code: string }[];
}

async function validate(dir: string): Promise<{ exitCode: number; result: ValidateResult }> {
  const { exitCode, stdout, stderr } = await gimbal("validate", dir, "--json");
  expect(stdout.split("\n"), stderr).toHaveLength(2);
  return { exitCode, result: JSON.parse(stdout) as ValidateResult };
}

describe("inspect", () => {
  test("shows steps, phases, coverage and failures of a run", async () => {
    const { exitCode, stdout } = await gimbal("inspect", runDir);
    expect(exitCode).toBe(0);
    expect(stdout).toContain("two-turns 0  seed 3  sandbox process  1 of 1 steps");
    expect(stdout).toMatch(/^eval-before +1 +1 +100\.0 % +2 /m);
    expect(stdout).toMatch(/^step-0001 +2 +2 +100\.0 % +4 /m);
    expect(stdout).toMatch(/^coverage 1\.0000 \((\d+) of \1 sampled tokens\)$/m);
    expect(stdout).toMatch(
      /pass@1, held-out tasks, trained families \(n 1\): 100\.0 % -> 100\.0 %/,
    );
  });

  test("--json is one object with the same numbers", async () => {
    const { stdout } = await gimbal("inspect", runDir, "--json");
    expect(stdout.split("\n")).toHaveLength(2);
    const overview = JSON.parse(stdout);
    expect(overview.steps).toHaveLength(1);
    expect(overview.phases.map(({ phase }: { phase: string }) => phase)).toEqual([
      "eval-before",
      "step-0001",
      "eval-after",
    ]);
    const training = overview.phases[1];
    expect(overview.fidelity).toEqual(training.fidelity);
    expect(overview.steps[0].sampledTokens).toBe(training.fidelity.sampledTokens);
    expect(overview.fidelity.links).toMatchObject({ exact: 2, root: 2, forked: 0 });
  });

  test("an attempt is found by a part of its id and shown turn by turn", async () => {
    const { stdout } = await gimbal("inspect", runDir, "--attempt", "eval-after", "--json");
    const view = JSON.parse(stdout);
    expect(view.turns).toHaveLength(2);
    expect(view.turns[0].added.map(({ role }: { role: string }) => role)).toEqual(["user"]);
    expect(view.turns[1].added).toEqual([
      { role: "user", parts: [{ type: "text", text: "And now?" }] },
    ]);
    expect(view.turns[1].reusedTokens).toBe(
      view.turns[0].promptTokens + view.turns[0].sampledTokens,
    );
    const text = (await gimbal("inspect", runDir, "--attempt", "eval-after")).stdout;
    expect(text).toContain(`sampled ${view.turns[0].sampledTokens}`);
    expect(text).toContain("    And now?");
  });

  test("--attempts lists every finished attempt, as a table and as JSON", async () => {
    const { stdout } = await gimbal("inspect", runDir, "--attempts", "--json");
    const { attempts } = JSON.parse(stdout);
    expect(attempts).toHaveLength(4);
    expect(attempts[0]).toMatchObject({ failureClass: "none", score: 1, calls: 2 });
    const text = (await gimbal("inspect", runDir, "--attempts")).stdout;
    for (const { attemptId } of attempts)
      expect(text).toMatch(new RegExp(`^${attemptId} +none +1\\.00 +2 `, "m"));
  });

  test("a store of sessions without attempts lists them, and --session shows the calls", async () => {
    const calls: CapturedCall[] = [];
    await changeStore(await copyRun(), async (_, first) => void calls.push(first));
    const dir = await mkdtemp(join(folder, "proxy-"));
    const store = await openStore(dir);
    for (const call of calls) await store.append("call-end", call.callId, call);
    await store.close();
    const id = calls[0]?.sessionId ?? "";
    const { stdout } = await gimbal("inspect", dir);
    expect(stdout).toContain("coverage - (0 of 0 sampled tokens)");
    expect(stdout).toMatch(new RegExp(`^${id} +1 +6$`, "m"));
    const view = JSON.parse((await gimbal("inspect", dir, "--session", id, "--json")).stdout);
    expect(view.turns).toHaveLength(1);
    expect((await gimbal("inspect", dir, "--session", id)).stdout).toContain("Say something.");
    expect((await gimbal("inspect", dir, "--session", "none")).exitCode).toBe(1);
  });

  test("an id that several attempts have, or none, is refused with examples", async () => {
    for (const [wanted, found] of [
      ["step-0001", "2 attempts of .* match "],
      ["nothing", "No attempt of .* matches "],
    ] as const) {
      const { exitCode, stderr, stdout } = await gimbal("inspect", runDir, "--attempt", wanted);
      expect(exitCode).toBe(1);
      expect(stdout).toBe("");
      expect(stderr).toMatch(new RegExp(`^gimbal: ${found}.*for example .*\n$`));
    }
  });
});

describe("validate", () => {
  test("an honest run is fine, and everything in it was read", async () => {
    const { exitCode, result } = await validate(runDir);
    expect(result.fatal).toEqual([]);
    expect(exitCode).toBe(0);
    expect(result.ok).toBe(true);
    expect(result.coverage).toBe(1);
    expect(result.counts).toMatchObject({
      calls: 8,
      blobs: 16,
      attempts: 4,
      trajectories: 4,
      branches: 4,
      steps: 1,
      checkpoints: 2,
    });
    const { stdout } = await gimbal("validate", runDir);
    expect(stdout).toContain("fatal: 0");
  });

  test("the calls of a stopped attempt are named and do no harm", async () => {
    const copy = await copyRun();
    await changeStore(copy, async (store, first) => {
      const stray = { ...first, callId: "stray-0", sessionId: "stray", index: 0 };
      await store.append("call-end", "stray-0", stray);
    });
    const { exitCode, result } = await validate(copy);
    expect(exitCode).toBe(0);
    expect(result.info.map(({ code }) => code)).toContain("unfinished-session");
  });

  const damages: readonly (readonly [code: string, damage: (copy: string) => Promise<void>])[] = [
    ["blob-missing", async (copy) => rm(await someBlob(copy))],
    ["blob-damaged", async (copy) => writeFile(await someBlob(copy), "no zlib")],
    [
      "extra-calls",
      (copy) =>
        changeStore(copy, async (store, call) => {
          await store.append("call-end", "again", { ...call, callId: "again", index: 9 });
        }),
    ],
    [
      "session-shared",
      (copy) =>
        changeStore(copy, async (store) => {
          for await (const { data } of store.read({ kind: "attempt-end" })) {
            await store.append("attempt-end", "twin", data);
            return;
          }
        }),
    ],
    [
      "positive-logprob",
      (copy) =>
        changeStore(copy, async (store, call) => {
          const logprobs = call.logprobs.map(() => 1);
          const bad = { ...call, callId: "bad", sessionId: "bad", logprobs };
          await store.append("call-end", "bad", bad);
        }),
    ],
    [
      "missing-attempt",
      (copy) =>
        changeStore(copy, async (store) => {
          const plan = (await store.get("step-plan", "1"))?.data as { attempts: object[] }[];
          const attempts = [{ ...plan[0]?.attempts[0], attemptId: "step-0001-0/lost/0" }];
          await store.append("step-plan", "01", [{ attempts }]);
        }),
    ],
    [
      "step-tokens",
      async (copy) => {
        const path = join(copy, "metrics.jsonl");
        const text = await readFile(path, "utf8");
        await writeFile(path, text.replace(/"trainedTokens":\d+/, '"trainedTokens":1'));
      },
    ],
    [
      "step-twice",
      async (copy) => {
        const path = join(copy, "metrics.jsonl");
        await appendFile(path, await readFile(path, "utf8"));
      },
    ],
    ["torn-line", (copy) => appendFile(join(copy, "metrics.jsonl"), '{"step":\n')],
    ["checkpoint-missing", (copy) => rm(join(copy, "checkpoints", "1", "state.json"))],
  ];
  test.each(damages)("%s is fatal", async (code, damage) => {
    const copy = await copyRun();
    await damage(copy);
    const { exitCode, result } = await validate(copy);
    expect(result.fatal.map((finding) => finding.code)).toContain(code);
    expect(result.ok).toBe(false);
    expect(exitCode).toBe(1);
  });
});

/** Opens a copy's store for writing; `change` sees its first call. */
async function changeStore(
  copy: string,
  change: (store: Awaited<ReturnType<typeof openStore>>, first: CapturedCall) => Promise<void>,
): Promise<void> {
  const store = await openStore(copy);
  try {
    for await (const { data } of store.read({ kind: "call-end", limit: 1 })) {
      await change(store, data as CapturedCall);
    }
  } finally {
    await store.close();
  }
}

async function someBlob(copy: string): Promise<string> {
  const files = await readdir(join(copy, "blobs"), { recursive: true });
  const blob = files.find((name) => name.endsWith(".z"));
  return join(copy, "blobs", blob ?? "none");
}

/**
 * Law: at level `namespace` an agent holds a capability for its own session's model calls and nothing else. Whatever it
 * tries is contained and gets the failure class that fits, and the honest attempts of its group are scored.
 *
 * The sandbox alone is attacked in packages/sandbox/test; here the attacks go through the whole rollout.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { detectNamespaces } from "@gimbal-rl/sandbox";
import { waitUntil } from "@gimbal-rl/testkit";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type HostileGroupResult, hostileTask, runHostileGroup } from "./support/hostile-group.js";

const support = detectNamespaces();
const reason = support.tool === null ? support.reason : null;
if (reason !== null) process.stderr.write(`hostile-agent: skipped, no namespaces (${reason})\n`);

describe.skipIf(reason !== null)(`a hostile agent${reason === null ? "" : ` (${reason})`}`, () => {
  let root = "";
  let runDir = "";
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), "gimbal-hostile-"));
    runDir = join(root, "run");
  });
  afterEach(() => rm(root, { recursive: true, force: true }));

  /** The other half of the law: what one agent did cost the others nothing. */
  function expectHonestScored({ calls, honest }: HostileGroupResult): void {
    expect(honest.map(({ failureClass }) => failureClass)).toEqual(["none", "none"]);
    expect(honest.map(({ verdict }) => verdict.score)).toEqual([1, 1]);
    for (const { sessionId } of honest) expect(calls.get(sessionId)).toHaveLength(1);
  }

  it("gets 401 or 409 with any key but its own, and selects no session by name", async () => {
    const result = await runHostileGroup({
      runDir,
      attack: ({ closedKey, otherSessionId }) => `
        const other = ${JSON.stringify(otherSessionId)};
        const as = (key) => ask("steal", { authorization: "Bearer " + key });
        found.invented = (await as("sk-gimbal-" + "A".repeat(43))).status;
        found.sessionIdAsKey = (await as(other)).status;
        found.keyless = (await as("")).status;
        found.closed = (await as(${JSON.stringify(closedKey)})).status;
        found.path = (await ask("steal", { authorization: "" },
          env.OPENAI_BASE_URL.replace(/\\/v1$/, "/s/" + other + "/v1"))).status;
        found.named = (await ask("mine", { "x-session-id": other, "x-gimbal-session": other })).status;`,
    });
    expect(result.found).toEqual({
      invented: 401,
      sessionIdAsKey: 401,
      keyless: 401,
      closed: 409,
      path: 401,
      named: 200,
    });
    expect(result.other).toMatchObject({ calls: 0, refusals: {}, sampledTokens: 0, state: "open" });
    expect(result.calls.get(result.hostile.sessionId)).toHaveLength(1);
    expect(result.hostile).toMatchObject({ failureClass: "no-change", verdict: { score: 0 } });
    expectHonestScored(result);
  });

  it("gets 401 from every control route, with its own key or none", async () => {
    const result = await runHostileGroup({
      runDir,
      attack: ({ controlUrl, otherSessionId }) => `
        await ask("hello");
        const routes = ["GET /v1/sessions", "POST /v1/sessions", "POST /v1/pause",
          "POST /v1/resume", "GET /metrics",
          ...["", "/calls", "/trajectory"].map((end) => "GET /v1/sessions/${otherSessionId}" + end),
          "DELETE /v1/sessions/${otherSessionId}"];
        found.statuses = [];
        for (const route of routes) for (const key of [env.OPENAI_API_KEY, "", "Bearer"]) {
          const [method, path] = route.split(" ");
          const headers = { authorization: "Bearer " + key, "content-type": "application/json" };
          const body = method === "POST" ? "{}" : undefined;
          const answer = await fetch(${JSON.stringify(controlUrl)} + path, { method, headers, body });
          found.statuses.push(answer.status);
        }
        found.onDataPort = (await fetch(env.OPENAI_BASE_URL + "/sessions",
          { headers: { authorization: "Bearer " + env.OPENAI_API_KEY } })).status;`,
    });
    expect(new Set(result.found.statuses as number[])).toEqual(new Set([401]));
    expect(result.found.onDataPort).toBe(404);
    expect(result.other).toMatchObject({ state: "open", calls: 0 });
    expect(result.hostile).toMatchObject({ failureClass: "no-change", verdict: { score: 0 } });
    expectHonestScored(result);
  });

  it("sees neither HOME nor environment of an attempt that runs beside it", async () => {
    let hostileDone = (): void => {};
    let honestStarted = (): void => {};
    const done = new Promise<void>((resolve) => {
      hostileDone = resolve;
    });
    const started = new Promise<void>((resolve) => {
      honestStarted = resolve;
    });
    const result = await runHostileGroup({
      runDir,
      // The victim has written its secrets and waits for its answer while the other looks for them.
      honest: `fs.writeFileSync(env.HOME + "/note", "victim-" + "secret"); await ask("honest wait")`,
      script:
        ({ tokenizer }) =>
        ({ request }) => {
          const prompt = tokenizer.decode(request.promptIds);
          if (prompt.includes("honest wait")) {
            honestStarted();
            return { text: "ok", wait: done };
          }
          return { text: "ok", ...(prompt.includes("hostile") ? { wait: started } : {}) };
        },
      onAttempt: ({ outcome }) => {
        if (outcome.finalText?.startsWith("{")) hostileDone();
      },
      attack: () => `
        await ask("hostile");
        const shell = (command) => String(cp.spawnSync("bash", ["-c", command]).stdout);
        const seen = shell("cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\\\\0' '\\\\n'");
        found.keys = [...new Set(seen.match(/sk-gimbal-[A-Za-z0-9_-]+/g))]
          .filter((key) => key !== env.OPENAI_API_KEY);
        found.files = shell("grep -rIl victim-sec''ret /home /workspace /tmp /dev/shm ${tmpdir()} /var 2>/dev/null");
        found.processes = Number(shell("ls /proc | grep -c '^[0-9]'"));`,
    });
    expect(result.found).toMatchObject({ keys: [], files: "" });
    expect(result.found.processes).toBeLessThan(10);
    expect(result.honest.map(({ verdict }) => verdict.score)).toEqual([1, 1]);
    expect(result.hostile.failureClass).toBe("no-change");
  });

  it("reaches neither the run database nor the hidden tests, and what it does to the tests is undone", async () => {
    const result = await runHostileGroup({
      runDir,
      attack: (facts) => `
        await ask("hello");
        const shell = (command) => String(cp.spawnSync("bash", ["-c", command]).stdout);
        found.database = shell("cat ${facts.runDir}/gimbal.db; ls ${facts.runDir} ${root}");
        found.hidden = shell("find / -xdev \\\\( -name 'hidden.test.js' -o -name 'gimbal.db*' \\\\) -not -path '/proc/*' 2>/dev/null");
        found.secret = shell("grep -rIl hidden-test-sec''ret /home /workspace /tmp /etc 2>/dev/null");
        fs.writeFileSync("check.test.js", "pass everything");
        fs.mkdirSync("hidden.test.js");
        fs.mkdirSync(".git/hooks", { recursive: true });
        fs.writeFileSync(".git/hooks/post-checkout", "echo pwned");`,
    });
    expect(result.found).toEqual({ database: "", hidden: "", secret: "" });
    expect(result.hostile).toMatchObject({ failureClass: "tampered", verdict: { score: 0 } });
    expectHonestScored(result);
  });

  it("carries nothing across the border of its workspace through links and dots", async () => {
    const bait = join(root, "bait.txt");
    await writeFile(bait, "yes");
    const result = await runHostileGroup({
      runDir,
      attack: () => `
        await ask("hello");
        const attempt = (work) => { try { work(); return "did"; } catch (error) { return error.code; } };
        fs.symlinkSync(${JSON.stringify(bait)}, "answer.txt");
        fs.symlinkSync("/", "everything");
        found.above = attempt(() => fs.writeFileSync("../planted.txt", "x"));
        found.through = attempt(() => fs.writeFileSync("everything/planted.txt", "x"));
        found.host = attempt(() => fs.writeFileSync(${JSON.stringify(join(root, "planted.txt"))}, "x"));
        found.read = attempt(() => fs.readFileSync("answer.txt"));`,
    });
    // The link points at a file with the right answer, which must not be what is graded.
    expect(result.hostile).toMatchObject({ failureClass: "wrong-result", verdict: { score: 0 } });
    expect(result.found).toMatchObject({ host: "ENOENT", read: "ENOENT" });
    for (const tried of ["above", "through"]) {
      expect(["EROFS", "EACCES"], tried).toContain(result.found[tried]);
    }
    expect(readdirSync(root).sort()).toEqual(["bait.txt", "run"]);
    expect(readFileSync(bait, "utf8")).toBe("yes");
    expect(existsSync("/planted.txt")).toBe(false);
    const refused = result.hostile.verdict.evidence.filter(({ kind }) => kind === "refused-path");
    expect(refused).toHaveLength(2);
    expectHonestScored(result);
  });

  it("leaves no child behind that writes, or calls the model, after its end", async () => {
    const mark = `mark-${process.pid}-${Date.now()}`;
    const result = await runHostileGroup({
      runDir,
      attack: () => `
        await ask("hello");
        const child = cp.spawn(process.execPath, ["--input-type=module", "-e",
          'const tell = () => fetch(process.env.OPENAI_BASE_URL + "/chat/completions", { method: "POST", body: "{}",' +
          ' headers: { authorization: "Bearer " + process.env.OPENAI_API_KEY } }).catch(() => {});' +
          'process.on("SIGTERM", () => {}); setInterval(tell, 20); // ${mark}'],
          { detached: true, stdio: "ignore" });
        child.unref();
        await sleep(100);
        found.started = child.pid > 0;
        fs.writeFileSync("answer.txt", "no");`,
    });
    expect(result.found.started).toBe(true);
    expect(result.hostile).toMatchObject({ failureClass: "wrong-result", verdict: { score: 0 } });
    const commandLines = (): string[] =>
      readdirSync("/proc")
        .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
        .flatMap((pid) => {
          try {
            return [readFileSync(`/proc/${pid}/cmdline`, "utf8")];
          } catch {
            return [];
          }
        });
    await waitUntil("the end of the child", () => !commandLines().some((l) => l.includes(mark)));
    // Nothing of it was sampled after the session's end.
    expect(result.hostileSession.calls).toBe(result.calls.get(result.hostile.sessionId)?.length);
    expectHonestScored(result);
  });

  it("is cut off at the output limit when it prints a gigabyte", async () => {
    const before = process.memoryUsage().rss;
    const result = await runHostileGroup({
      runDir,
      attack: () => `
        await ask("hello");
        fs.writeFileSync("answer.txt", "yes");
        const block = Buffer.alloc(1024 * 1024, "gigabyte");
        for (let i = 0; i < 1024; i += 1) fs.writeSync(1, block);`,
    });
    expect(result.hostile).toMatchObject({ failureClass: "output-limit", verdict: { score: 0 } });
    expect(process.memoryUsage().rss - before).toBeLessThan(300_000_000);
    expectHonestScored(result);
  });

  it("is stopped at its budget of calls in an endless loop of them, cut call and all", async () => {
    const result = await runHostileGroup({
      runDir,
      attack: () => `
        fs.writeFileSync("answer.txt", "yes");
        for (;;) { const { status, text } = await ask("again"); if (status !== 200) throw new Error(text); }`,
    });
    expect(result.hostile).toMatchObject({
      failureClass: "call-budget",
      verdict: { score: 0 },
      calls: hostileTask.budgets.maxCalls,
    });
    expect(result.hostile.outcome.errorText).not.toContain("sk-gimbal-");
    expectHonestScored(result);
  });

  it("ends at the wall clock, classed by its budget, when it loops on against refusals, which sample nothing", async () => {
    const result = await runHostileGroup({
      runDir,
      task: { budgets: { maxCalls: 5, wallClockMs: 1500 } },
      attack: () => `for (;;) await ask("again").catch(() => {});`,
    });
    expect(result.hostile).toMatchObject({
      failureClass: "call-budget",
      verdict: { score: 0 },
      calls: 5,
    });
    expectHonestScored(result);
  });

  it("is judged, not rerun, when it floods the gateway and then fails", async () => {
    let release = (): void => {};
    const flooded = new Promise<void>((resolve) => {
      release = resolve;
    });
    const result = await runHostileGroup({
      runDir,
      task: { budgets: { maxCalls: 200, wallClockMs: 60_000 } },
      script:
        ({ tokenizer }) =>
        ({ request }) =>
          tokenizer.decode(request.promptIds).includes("flood")
            ? { text: "ok", wait: flooded }
            : { text: "ok" },
      onAttempt: () => release(),
      attack: () => `
        const all = Array.from({ length: 80 }, () => ask("flood"));
        const first = await Promise.race(all);
        console.error("first answer " + first.status);
        process.exit(1);`,
    });
    expect(result.hostile.outcome.errorText).toBe("first answer 503");
    expect(result.hostile).toMatchObject({ failureClass: "harness-crash", verdict: { score: 0 } });
    expect(result.honest.map(({ verdict }) => verdict.score)).toEqual([1, 1]);
  });
});

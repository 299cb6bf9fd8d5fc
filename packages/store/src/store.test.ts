import { spawn } from "node:child_process";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { asId, type BlobId, type Store, type StoredEvent } from "@gimbal-rl/core";
import fc from "fast-check";
import Database from "libsql";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createMemoryStore, openStore } from "./index.js";
import { toStoreError } from "./store-error.js";

function simulateFullDisk(folder: string): Error {
  const database = new Database(join(folder, "gimbal.db"), { timeout: 1000 });
  try {
    database.exec("PRAGMA max_page_count = 1");
    database.exec("CREATE TABLE filler (x)");
    for (let i = 0; i < 100; i += 1) {
      database.prepare("INSERT INTO filler VALUES (?)").run(["x".repeat(5000)]);
    }
    return new Error("the page limit was not reached");
  } catch (error) {
    return toStoreError(error, folder);
  } finally {
    database.close();
  }
}

let dir = "";
const opened: Store[] = [];

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "gimbal-store-"));
});
afterEach(async () => {
  for (const store of opened.splice(0)) await store.close();
  rmSync(dir, { recursive: true, force: true });
});

async function open(options?: Parameters<typeof openStore>[1]): Promise<Store> {
  const store = await openStore(dir, options);
  opened.push(store);
  return store;
}

async function all(store: Store, options?: Parameters<Store["read"]>[0]): Promise<StoredEvent[]> {
  const events: StoredEvent[] = [];
  for await (const event of store.read(options)) events.push(event);
  return events;
}

const kinds: readonly [string, () => Promise<Store>][] = [
  ["on disk", () => open()],
  ["in memory", async () => createMemoryStore()],
];

describe.each(kinds)("a store %s", (_name, make) => {
  it("keeps one event per kind and key and numbers them without gaps", async () => {
    const store = await make();
    expect(await store.append("a", "1", { x: 1 })).toBe(true);
    expect(await store.append("a", "1", { x: 2 })).toBe(false);
    expect(await store.append("b", "1", null)).toBe(true);
    await store.appendAll([
      { kind: "a", key: "1", data: 0 },
      { kind: "a", key: "2", data: [1.5, "é"] },
    ]);
    const events = await all(store);
    expect(events.map((e) => [e.sequence, e.kind, e.key, e.data])).toEqual([
      [1, "a", "1", { x: 1 }],
      [2, "b", "1", null],
      [3, "a", "2", [1.5, "é"]],
    ]);
    expect((await store.get("a", "2"))?.sequence).toBe(3);
    expect(await store.get("a", "3")).toBeNull();
  });

  it("reads from a cursor, by kind, up to a limit, across page borders", async () => {
    const store = await make();
    const batch = Array.from({ length: 300 }, (_, i) => ({
      kind: i % 2 === 0 ? "even" : "odd",
      key: String(i),
      data: i,
    }));
    await store.appendAll(batch);
    expect((await all(store)).map((e) => e.data)).toEqual(batch.map((e) => e.data));
    expect((await all(store, { kind: "odd", after: 100 })).map((e) => e.sequence)).toEqual(
      Array.from({ length: 100 }, (_, i) => 102 + 2 * i),
    );
    expect(await all(store, { limit: 70, after: 5 })).toHaveLength(70);
    expect(await all(store, { limit: 0 })).toHaveLength(0);
  });

  it("returns blobs byte for byte and refuses unknown addresses", async () => {
    const store = await make();
    const bytes = new Uint8Array(100_000).map((_, i) => (i * i) & 255);
    const id = await store.putBlob(bytes);
    expect(id).toMatch(/^sha256-[0-9a-f]{64}$/);
    expect(await store.putBlob(bytes)).toBe(id);
    expect(await store.getBlob(id)).toEqual(bytes);
    const empty = await store.putBlob(new Uint8Array(0));
    expect((await store.getBlob(empty)).length).toBe(0);
    await expect(store.getBlob(asId<BlobId>(`sha256-${"0".repeat(64)}`))).rejects.toMatchObject({
      code: "not-found",
    });
    await expect(store.getBlob(asId<BlobId>("../../etc/passwd"))).rejects.toMatchObject({
      code: "not-found",
    });
  });

  it("gives back any JSON value with its key order", async () => {
    const store = await make();
    let n = 0;
    await fc.assert(
      fc.asyncProperty(fc.jsonValue({ maxDepth: 4 }), async (value) => {
        n += 1;
        const text = JSON.stringify(value);
        await store.append("json", String(n), JSON.parse(text));
        expect(JSON.stringify((await store.get("json", String(n)))?.data)).toBe(text);
      }),
      { numRuns: 60 },
    );
  });
});

describe("a run folder", () => {
  it("is read by others while one writes, and holds everything after it is opened again", async () => {
    const writer = await open();
    const logprobs = Array.from({ length: 3000 }, (_, i) => Math.fround(-(i + 1) / 7));
    await writer.append("call-end", "c1", { logprobs });
    const reader = await open({ readOnly: true });
    expect((await reader.get("call-end", "c1"))?.data).toEqual({ logprobs });
    await expect(reader.append("x", "1", 0)).rejects.toMatchObject({ code: "store-unwritable" });
    await expect(reader.putBlob(new Uint8Array(1))).rejects.toMatchObject({
      code: "store-unwritable",
    });
    await writer.append("call-end", "c2", {});
    expect(await all(reader)).toHaveLength(2);
    await writer.close();
    const again = await open();
    expect(await all(again)).toHaveLength(2);
    expect(await again.append("call-end", "c2", {})).toBe(false);
  });

  it("is written by one store at a time and is free again after close", async () => {
    const first = await open();
    await expect(openStore(dir)).rejects.toMatchObject({
      code: "store-unwritable",
      message: expect.stringContaining(`process ${process.pid}`),
    });
    await first.append("still", "works", 1);
    await first.close();
    await expect(first.append("a", "b", 1)).rejects.toMatchObject({ code: "store-unwritable" });
    expect(await all(await open())).toHaveLength(1);
  });

  it("opens after a kill although a pid file of the dead process is left", async () => {
    await (await open()).close();
    writeFileSync(join(dir, "writer.pid"), "999999\n");
    await (await open()).append("a", "1", 1);
    expect(readFileSync(join(dir, "writer.pid"), "utf8").trim()).toBe(String(process.pid));
  });

  it("rolls a batch back as a whole when one event cannot be stored", async () => {
    const store = await open();
    const circular: Record<string, unknown> = {};
    circular.self = circular;
    await expect(
      store.appendAll([
        { kind: "a", key: "1", data: 1 },
        { kind: "a", key: "2", data: circular },
      ]),
    ).rejects.toThrow();
    expect(await all(store)).toHaveLength(0);
  });

  it.each([
    ["no SQLite file", () => writeFileSync(join(dir, "gimbal.db"), "not a database ".repeat(400))],
    ["emptied", () => truncateSync(join(dir, "gimbal.db"), 0)],
    [
      "overwritten in the middle",
      () => {
        const bytes = readFileSync(join(dir, "gimbal.db"));
        bytes.fill(0xa5, 4096, 16384);
        writeFileSync(join(dir, "gimbal.db"), bytes);
      },
    ],
  ])("whose database is %s fails with store-corrupt in one line", async (_name, damage) => {
    const store = await open();
    await store.putBlob(new Uint8Array([1, 2, 3]));
    for (let i = 0; i < 50; i += 1) await store.append("k", String(i), "x".repeat(900));
    await store.close();
    damage();
    const error: unknown = await openStore(dir).catch((caught: unknown) => caught);
    expect(error).toMatchObject({ code: "store-corrupt" });
    expect((error as Error).message).not.toContain("\n");
    expect((error as Error).message).toMatch(/Restore the folder/);
  });

  it("tells a damaged blob from a missing one", async () => {
    const store = await open();
    const id = await store.putBlob(new TextEncoder().encode("some body"));
    const folder = join(dir, "blobs", id.slice(7, 9));
    const file = join(folder, readdirSync(folder)[0] ?? "");
    const other = await store.putBlob(new TextEncoder().encode("another body"));
    const otherFolder = join(dir, "blobs", other.slice(7, 9));
    writeFileSync(file, readFileSync(join(otherFolder, `${other.slice(7)}.z`)));
    await expect(store.getBlob(id)).rejects.toMatchObject({ code: "store-corrupt" });
    writeFileSync(file, "short");
    await expect(store.getBlob(id)).rejects.toMatchObject({ code: "store-corrupt" });
    rmSync(file);
    await expect(store.getBlob(id)).rejects.toMatchObject({ code: "not-found" });
  });

  it("that is not a folder, or missing for a reader, says what to do", async () => {
    const path = join(dir, "file");
    writeFileSync(path, "");
    await expect(openStore(path)).rejects.toMatchObject({ code: "store-unwritable" });
    await expect(openStore(join(path, "below"))).rejects.toMatchObject({
      code: "store-unwritable",
    });
    await expect(openStore(join(dir, "none"), { readOnly: true })).rejects.toMatchObject({
      code: "not-found",
    });
    mkdirSync(join(dir, "gimbal.db"));
    await expect(openStore(dir)).rejects.toMatchObject({ code: "store-unwritable" });
  });
});

describe("a full disk", () => {
  it("is store-unwritable, and what was stored before stays readable", async () => {
    const store = await open();
    await store.append("a", "1", "first");
    // Another connection lowers the page limit: SQLite then reports the same SQLITE_FULL as a full disk.
    const failing = simulateFullDisk(dir);
    expect(failing).toMatchObject({ code: "store-unwritable" });
    expect(failing.message).toMatch(/is full .* Free space/);
    expect(await all(store)).toHaveLength(1);
  });
});

describe("a process killed with SIGKILL in the middle of appends", () => {
  const child = fileURLToPath(new URL("../test/append-forever.ts", import.meta.url));
  const tsx = import.meta.resolve("tsx");

  it.each([1, 40, 150])("loses nothing that was acknowledged (after %d appends)", async (count) => {
    const process_ = spawn(
      process.execPath,
      ["--conditions=@gimbal-rl/source", "--import", tsx, child, dir],
      { stdio: ["ignore", "pipe", "inherit"] },
    );
    let acknowledged = 0;
    let text = "";
    process_.stdout.on("data", (chunk: Buffer) => {
      text += chunk.toString("utf8");
      acknowledged = text.lastIndexOf("\n") < 0 ? 0 : text.trimEnd().split("\n").length;
      if (acknowledged >= count) process_.kill("SIGKILL");
    });
    const signal = await new Promise((resolve) => {
      process_.on("close", (_code, endedBy) => resolve(endedBy));
    });
    expect(signal).toBe("SIGKILL");
    // Only whole lines count as acknowledged.
    const complete = text.slice(0, text.lastIndexOf("\n") + 1).split("\n").length - 1;
    const store = await open();
    const events = await all(store);
    expect(complete).toBeGreaterThanOrEqual(count);
    expect(events.length).toBeGreaterThanOrEqual(complete);
    expect(events.map((e) => e.sequence)).toEqual(events.map((_, i) => i + 1));
    for (const event of events) {
      const data = event.data as { blob: BlobId; n: number };
      const bytes = await store.getBlob(data.blob);
      expect(new TextDecoder().decode(bytes)).toContain(`body ${data.n} `);
    }
    expect(await store.append("n", "0", {})).toBe(false);
  });
});

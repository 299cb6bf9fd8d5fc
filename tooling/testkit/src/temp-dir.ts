/** Folders that exist for one test. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Runs `work` with a fresh folder and removes it afterwards, also when `work` throws. */
export async function withTempDir<Result>(
  work: (dir: string) => Promise<Result> | Result,
): Promise<Result> {
  const dir = await mkdtemp(join(tmpdir(), "gimbal-test-"));
  try {
    return await work(dir);
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

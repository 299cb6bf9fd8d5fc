/**
 * Text files of a run folder: complete or not there at all, whatever is killed when.
 */
import { open, rename } from "node:fs/promises";

/** Writes a text file by way of a temporary one beside it, synced before it takes the name. */
export async function writeTextDurably(path: string, text: string): Promise<void> {
  const temporary = `${path}.tmp`;
  const file = await open(temporary, "w");
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(temporary, path);
}

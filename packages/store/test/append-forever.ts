/** Child of the kill test: appends numbered events with a blob each, and prints a line once each is acknowledged. */
import { writeSync } from "node:fs";
import { openStore } from "../src/index.js";

const store = await openStore(process.argv[2] ?? "");
for (let n = 0; ; n += 1) {
  const blob = await store.putBlob(new TextEncoder().encode(`body ${n} ${"x".repeat(2000)}`));
  await store.append("n", String(n), { n, blob, padding: "y".repeat(1500) });
  writeSync(1, `${n}\n`);
}

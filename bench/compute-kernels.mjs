/**
 * Speed of the CPU backend's kernels in GFLOP/s (multiply and add count as two), at the shapes of the tiny policy.
 * `pnpm bench compute-kernels [threads]`. The best of several rounds counts; with one thread in processor time,
 * because the machine may be shared.
 */
import { createWasmBackend } from "../packages/compute/src/index.ts";

const threads = Number(process.argv[2] ?? 1);
const backend = await createWasmBackend({ threads });
let state = 1;
const random = () => {
  state = (Math.imul(state, 1664525) + 1013904223) | 0;
  return state / 2 ** 31;
};
const tensor = (length) => {
  const t = backend.allocate(length);
  backend.write(t, Float32Array.from({ length }, random));
  return t;
};

function measure(name, flops, run) {
  run();
  run();
  let best = Number.POSITIVE_INFINITY;
  const end = performance.now() + 300;
  let rounds = 0;
  while (performance.now() < end || rounds < 5) {
    const wall = performance.now();
    const cpu = process.cpuUsage();
    run();
    const elapsed = performance.now() - wall;
    const { user, system } = process.cpuUsage(cpu);
    // On one thread processor time ignores what other processes took; it is too coarse below 2 ms.
    best = Math.min(best, threads === 1 && elapsed > 2 ? (user + system) / 1000 : elapsed);
    rounds += 1;
  }
  const rate = flops / best / 1e6;
  console.log(
    `${name.padEnd(52)} ${best.toFixed(3).padStart(9)} ms ${rate.toFixed(1).padStart(7)} GFLOP/s`,
  );
}

for (const [rows, outputs, inputs] of [
  [1, 128, 128],
  [1, 384, 128],
  [1, 2048, 128],
  [8, 384, 128],
  [16, 2048, 128],
  [6000, 128, 128],
  [6000, 384, 128],
  [6000, 128, 384],
  [1000, 2048, 128],
]) {
  const x = tensor(rows * inputs);
  const y = tensor(rows * outputs);
  const w = tensor(outputs * inputs);
  const gw = tensor(outputs * inputs);
  const gx = tensor(rows * inputs);
  backend.refreshWeight(w, outputs, inputs);
  const flops = 2 * rows * outputs * inputs;
  const label = `[${rows}, ${inputs}] x [${outputs}, ${inputs}]`;
  measure(`linear ${label}`, flops, () => backend.linear(y, x, w, outputs, inputs));
  if (rows > 16) {
    measure(`linearBackwardInput ${label}`, flops, () =>
      backend.linearBackwardInput(gx, y, w, outputs, inputs),
    );
    measure(`linearBackwardWeight ${label}`, flops, () =>
      backend.linearBackwardWeight(gw, y, x, outputs, inputs),
    );
  }
  for (const t of [x, y, w, gw, gx]) backend.free(t);
}

const shape = { heads: 4, keyValueHeads: 2, headWidth: 32 };
/** `segments` of `rows` rows, each over a shared prefix of `prefix` slots. */
function attention(label, segments, rows, prefix) {
  const total = segments * rows;
  const slots = prefix + total;
  const cache = backend.allocateCache(slots, shape);
  const keys = tensor(slots * 64);
  const values = tensor(slots * 64);
  const all = backend.allocateInts(Int32Array.from({ length: slots }, (_, i) => i));
  backend.writeCache(cache, keys, values, all);
  const q = tensor(total * 128);
  const out = tensor(total * 128);
  const lse = tensor(total * 4);
  const range = (f) => Int32Array.from({ length: segments }, (_, s) => f(s));
  const plan = {
    rowStarts: range((s) => s * rows),
    rowCounts: range(() => rows),
    selfSlots: range((s) => prefix + s * rows),
    spanOffsets: Int32Array.from({ length: segments + 1 }, (_, s) => s),
    spanSlots: range(() => 0),
    spanLengths: range(() => prefix),
  };
  const pairs = segments * (rows * prefix + (rows * (rows + 1)) / 2) * 4;
  measure(`attention ${label}`, pairs * 32 * 4, () =>
    backend.attention(out, lse, q, cache, plan, shape),
  );
  if (rows > 1) {
    const g = tensor(total * 128);
    const gq = tensor(total * 128);
    const gk = tensor(slots * 64);
    const gv = tensor(slots * 64);
    measure(`attentionBackward ${label}`, pairs * 32 * 10, () =>
      backend.attentionBackward(gq, gk, gv, g, out, lse, q, cache, plan, shape),
    );
    for (const t of [g, gq, gk, gv]) backend.free(t);
  }
  for (const t of [cache, keys, values, all, q, out, lse]) backend.free(t);
}
attention("decode 1 row over 1500 keys", 1, 1, 1500);
attention("decode 16 rows over 1500 keys", 16, 1, 1500);
attention("1 segment of 2000 rows", 1, 2000, 0);
attention("16 segments of 250 rows over 1500 keys", 16, 250, 1500);
attention("100 segments of 40 rows over 1500 keys", 100, 40, 1500);

for (const rows of [16, 1000]) {
  const logits = tensor(rows * 2048);
  const lse = tensor(rows);
  measure(`logSumExp [${rows}, 2048] (per element)`, rows * 2048, () =>
    backend.logSumExp(lse, logits, 2048, 1),
  );
}
const gate = tensor(6000 * 384);
const up = tensor(6000 * 384);
const act = tensor(6000 * 384);
measure("swiglu [6000, 384] (per element)", 6000 * 384, () => backend.swiglu(act, gate, up));
const wide = tensor(6000 * 128);
const norm = tensor(128);
const inv = tensor(6000);
const normed = tensor(6000 * 128);
measure("rmsNorm [6000, 128] (per element)", 6000 * 128, () =>
  backend.rmsNorm(normed, inv, wide, norm, 128, 1e-6),
);
await backend[Symbol.asyncDispose]();

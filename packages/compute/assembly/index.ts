/**
 * Entry of the WASM kernels: one dispatcher, and the part of the thread pool that must not leave WebAssembly.
 *
 * A kernel computes units start..end of its outputs from the arguments at `a`. Which thread computes which units,
 * and in which chunks, never changes a result. The build reads the kernel numbers from the switch below.
 */
import { attention, writeCache } from "./attention";
import { attentionBackwardKeys, attentionBackwardRows, turnCache } from "./attention-backward";
import { addScaled, adamW, copy, fill, sumOfSquares, swiglu, swigluBackward } from "./elementwise";
import {
  columnSums,
  gatherRows,
  linear,
  linearBackwardWeight,
  packColumns,
  packRows,
  scatterAddRows,
} from "./linear";
import { gatherLogprobs, logSumExp, logprobsBackward, sample } from "./logits";
import { rmsNorm, rmsNormBackwardInput, rmsNormBackwardWeight, rope } from "./rows";

/** Runs units start..end of a kernel on this thread. */
export function run(kernel: i32, a: usize, start: i32, end: i32, thread: i32): void {
  switch (kernel) {
    case 0: return fill(a, start, end);
    case 1: return copy(a, start, end);
    case 2: return addScaled(a, start, end);
    case 3: return swiglu(a, start, end);
    case 4: return swigluBackward(a, start, end);
    case 5: return sumOfSquares(a, start, end);
    case 6: return adamW(a, start, end);
    case 7: return gatherRows(a, start, end);
    case 8: return scatterAddRows(a, start, end);
    case 9: return columnSums(a, start, end);
    case 10: return packRows(a, start, end);
    case 11: return packColumns(a, start, end);
    case 12: return linear(a, start, end, thread);
    case 13: return linearBackwardWeight(a, start, end, thread);
    case 14: return rmsNorm(a, start, end);
    case 15: return rmsNormBackwardInput(a, start, end);
    case 16: return rmsNormBackwardWeight(a, start, end);
    case 17: return rope(a, start, end);
    case 18: return writeCache(a, start, end);
    case 19: return attention(a, start, end, thread);
    case 20: return turnCache(a, start, end);
    case 21: return attentionBackwardRows(a, start, end, thread);
    case 22: return attentionBackwardKeys(a, start, end, thread);
    case 23: return logSumExp(a, start, end);
    case 24: return gatherLogprobs(a, start, end);
    case 25: return logprobsBackward(a, start, end);
    case 26: return sample(a, start, end);
    default: unreachable();
  }
}

export { writeConstants } from "./math";

/** Zeroes bytes of the shared memory. */
export function zero(start: usize, bytes: usize): void {
  memory.fill(start, 0, bytes);
}

// Control block, byte offsets. Words that different threads write stand on cache lines of their own.
const GENERATION: usize = 0; // counts jobs; workers sleep on it
const STOP: usize = 4;
const SLEEPERS: usize = 64; // workers that are (about to be) asleep
const STATE: usize = 128; // OPEN bit + workers inside the job; the main thread waits for 0
const NEXT: usize = 192; // next unit to take
const KERNEL: usize = 256;
const UNITS: usize = 260;
const GRAIN: usize = 264;
const ARGUMENTS: usize = 320;

const OPEN: i32 = 0x10000;

function work(control: usize, thread: i32): void {
  const kernel = load<i32>(control, KERNEL);
  const units = load<i32>(control, UNITS);
  const grain = load<i32>(control, GRAIN);
  while (true) {
    const start = atomic.add<i32>(control, grain, NEXT);
    if (start >= units) return;
    run(kernel, control + ARGUMENTS, start, min(units, start + grain), thread);
  }
}

/**
 * Main thread: opens the job written in the control block, works on it until no unit is left, closes it.
 * Returns the number of workers still inside after `spins` looks at the state.
 */
export function runShared(control: usize, spins: i32): i32 {
  atomic.store<i32>(control, 0, NEXT);
  atomic.store<i32>(control, OPEN, STATE);
  atomic.add<i32>(control, 1, GENERATION);
  if (atomic.load<i32>(control, SLEEPERS) > 0) atomic.notify(control + GENERATION, -1);
  work(control, 0);
  let inside = atomic.sub<i32>(control, OPEN, STATE) - OPEN;
  for (let i = 0; inside > 0 && i < spins; i++) inside = atomic.load<i32>(control, STATE);
  return inside;
}

/** Worker thread: joins open jobs until told to stop. A worker that wakes too late for a job does not delay it. */
export function serve(control: usize, thread: i32, spins: i32): void {
  while (atomic.load<i32>(control, STOP) == 0) {
    const generation = atomic.load<i32>(control, GENERATION);
    let state = atomic.load<i32>(control, STATE);
    while ((state & OPEN) != 0) {
      const seen = atomic.cmpxchg<i32>(control, state, state + 1, STATE);
      if (seen == state) {
        work(control, thread);
        if (atomic.sub<i32>(control, 1, STATE) == 1) atomic.notify(control + STATE, -1);
        break;
      }
      state = seen;
    }
    let same = true;
    for (let i = 0; same && i < spins; i++) same = atomic.load<i32>(control, GENERATION) == generation;
    if (same) {
      atomic.add<i32>(control, 1, SLEEPERS);
      atomic.wait<i32>(control + GENERATION, generation, -1);
      atomic.sub<i32>(control, 1, SLEEPERS);
    }
  }
}

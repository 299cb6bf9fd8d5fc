/**
 * Backward of attention, in panels of rows.
 *
 * With p = exp(score - logSumExp), d = gradOut . out and s = p (gradOut . value - d) / sqrt(E):
 * gradQuery += s key; gradValue += p gradOut; gradKey += s query.
 * `attentionBackwardRows` computes p and s of a panel's rows into memory and gradQuery; `attentionBackwardKeys`
 * then adds to the keys' gradients. Laws: every output is one chain (queries: over positions in order; keys and
 * values: over rows in order, starting from the old value), whatever the panels, spans and threads.
 */
import { argument, copyFloats, copyTile, fillFloats, pointer, scalar } from "./memory";
import { exp4, sumLanes } from "./math";
import {
  firstSpan,
  lastSpan,
  openSegment,
  scoreRows,
  segmentPrefix,
  segmentSelfSlot,
  spanLength,
  spanSlot,
  weightedRows,
} from "./attention";
import { columns4x8 } from "./tiles";

/**
 * The other layouts of a cache: keys by slot, values by blocks of 16 slots.
 * args: keys, values, keysBySlot, valuesByBlock, E, Ev. Unit: 16 slots of one head.
 */
export function turnCache(a: usize, start: i32, end: i32): void {
  const E = argument(a, 4);
  const Ev = argument(a, 5);
  const rowBytes = <usize>Ev << 2;
  for (let u = start; u < end; u++) {
    const keys = pointer(a, 0) + <usize>u * E * 64;
    const values = pointer(a, 1) + <usize>u * 16 * rowBytes;
    const keysBySlot = pointer(a, 2) + <usize>u * 16 * rowBytes;
    const valuesByBlock = pointer(a, 3) + <usize>u * E * 64;
    for (let i = 0; i < 16; i++) {
      const slot = <usize>i * rowBytes;
      for (let e = 0; e < E; e++) {
        const lane = (<usize>e << 6) + (<usize>i << 2);
        const column = <usize>e << 2;
        store<f32>(keysBySlot + slot + column, load<f32>(keys + lane));
        store<f32>(valuesByBlock + lane, load<f32>(values + slot + column));
      }
      for (let e = E; e < Ev; e++) store<f32>(keysBySlot + slot + (<usize>e << 2), 0);
    }
  }
}

/**
 * args: gradQueries, gradOut, out, logSumExp, queries, keys, keysBySlot, valuesByBlock, blocks, plan, H, G, E, Ev,
 * cacheBlocks, scale, scratch, scratch stride, p, s, floats of p per head, packed queries, packed gradOut, panel rows.
 * `blocks`: segment, first row in the segment, rows, offset of the first row in p (floats), row stride (floats),
 * first row in the panel. Packed rows are [G][panel row][group][Ev]. Unit: block x key/value head.
 */
export function attentionBackwardRows(a: usize, start: i32, end: i32, thread: i32): void {
  const plan = pointer(a, 9);
  const H = argument(a, 10);
  const G = argument(a, 11);
  const E = argument(a, 12);
  const Ev = argument(a, 13);
  const cacheBlocks = argument(a, 14);
  const scale = scalar(a, 15);
  const group = H / G;
  const headBytes = <usize>E << 2;
  const packBytes = <usize>Ev << 2;
  const rowBytes = (<usize>H * E) << 2;
  for (let u = start; u < end; u++) {
    const g = u % G;
    const block = pointer(a, 8) + <usize>(u / G) * 24;
    const segment = argument(block, 0);
    const row0 = argument(block, 1);
    const rows = argument(block, 2);
    const stride = argument(block, 4);
    const rowStride = <usize>stride << 2;
    openSegment(plan, segment);
    const firstRow = load<i32>(pointer(plan, 0) + (<usize>segment << 2)) + row0;
    const count = rows * group;
    const temporary = pointer(a, 16) + <usize>thread * pointer(a, 17);
    const sums = temporary + <usize>count * 64;
    const at = (<usize>g * pointer(a, 20) + argument(block, 3)) << 2;
    const p = pointer(a, 18) + at;
    const s = pointer(a, 19) + at;
    const packed = (<usize>g * pointer(a, 23) + argument(block, 5)) * group * packBytes;
    const queries = pointer(a, 21) + packed;
    const gradOuts = pointer(a, 22) + packed;
    const first = ((<usize>firstRow * H + g * group) * E) << 2;
    for (let q = 0; q < count; q++) {
      const r = q / group;
      const from = first + <usize>r * rowBytes + <usize>(q - r * group) * headBytes;
      copyFloats(queries + <usize>q * packBytes, pointer(a, 4) + from, E);
      copyFloats(gradOuts + <usize>q * packBytes, pointer(a, 1) + from, E);
      fillFloats(queries + <usize>q * packBytes + headBytes, 0, Ev - E);
      fillFloats(gradOuts + <usize>q * packBytes + headBytes, 0, Ev - E);
    }
    const visible = row0 + rows;
    const head = <usize>g * cacheBlocks * E * 64;
    scoreRows(p, rowStride, queries, packBytes, count, pointer(a, 5) + head, E, visible, temporary);
    scoreRows(s, rowStride, gradOuts, packBytes, count, pointer(a, 7) + head, E, visible, temporary);
    for (let q = 0; q < count; q++) {
      const r = q / group;
      const h = g * group + (q - r * group);
      const from = first + <usize>r * rowBytes + <usize>(q - r * group) * headBytes;
      const length = segmentPrefix() + row0 + r + 1;
      const lse = load<f32>(pointer(a, 3) + ((<usize>(firstRow + r) * H + h) << 2));
      const mean = dot(pointer(a, 2) + from, pointer(a, 1) + from, E);
      gradientRow(p + <usize>q * rowStride, s + <usize>q * rowStride, length, stride, lse, mean, scale);
    }
    const bySlot = pointer(a, 6) + <usize>g * cacheBlocks * Ev * 64;
    weightedRows(sums, s, rowStride, count, bySlot, Ev, visible);
    for (let q = 0; q < count; q++) {
      const r = q / group;
      let d = pointer(a, 0) + first + <usize>r * rowBytes + <usize>(q - r * group) * headBytes;
      const row = sums + <usize>q * packBytes;
      for (let e = 0; e < E; e++) {
        store<f32>(d, load<f32>(d) + load<f32>(row + (<usize>e << 2)));
        d += 4;
      }
    }
  }
}

function dot(x: usize, y: usize, count: i32): f32 {
  let sums = f32x4.splat(0);
  let i = 0;
  for (; i + 4 <= count; i += 4) {
    sums = f32x4.add(sums, f32x4.mul(v128.load(x), v128.load(y)));
    x += 16;
    y += 16;
  }
  let sum = sumLanes(sums);
  for (; i < count; i++) {
    sum += load<f32>(x) * load<f32>(y);
    x += 4;
    y += 4;
  }
  return sum;
}

/** From scores and gradOut . value to p and s; both are 0 from `length` to `stride`. */
function gradientRow(p: usize, s: usize, length: i32, stride: i32, lse: f32, mean: f32, scale: f32): void {
  const used = (length + 3) & ~3;
  fillFloats(p + (<usize>length << 2), -Infinity, used - length);
  fillFloats(s + (<usize>length << 2), 0, stride - length);
  const end = <usize>used << 2;
  const scales = f32x4.splat(scale);
  const l = f32x4.splat(lse);
  const m = f32x4.splat(mean);
  for (let o: usize = 0; o < end; o += 16) {
    const probability = exp4(f32x4.sub(f32x4.mul(v128.load(p + o), scales), l));
    const d = f32x4.mul(f32x4.mul(probability, f32x4.sub(v128.load(s + o), m)), scales);
    v128.store(p + o, probability);
    v128.store(s + o, d);
  }
  fillFloats(p + end, 0, stride - used);
  // s past the end is exactly 0, not -0 times the mean.
  fillFloats(s + (<usize>length << 2), 0, used - length);
}

/**
 * args: gradKeys, gradValues, p, s, parts, part count, plan, H, G, E, Ev, floats of p per head, packed queries,
 * packed gradOut, panel rows, scratch, scratch stride, first 16-slot block.
 * `parts`: as `blocks` above, longer runs of rows. Unit: 16 slots x key/value head.
 */
export function attentionBackwardKeys(a: usize, start: i32, end: i32, thread: i32): void {
  const parts = argument(a, 5);
  const plan = pointer(a, 6);
  const G = argument(a, 8);
  for (let u = start; u < end; u++) {
    const g = u % G;
    const from = (argument(a, 17) + u / G) * 16;
    const to = from + 16;
    for (let i = 0; i < parts; i++) {
      const part = pointer(a, 4) + <usize>i * 24;
      const visible = argument(part, 1) + argument(part, 2);
      openSegment(plan, argument(part, 0));
      let position = 0;
      for (let k = firstSpan(); k <= lastSpan(); k++) {
        const own = k == lastSpan();
        const slot = own ? segmentSelfSlot() : spanSlot(k);
        const length = own ? visible : spanLength(k);
        const first = max(from, slot);
        const last = min(to, slot + length);
        if (first < last) addKeys(a, part, g, first, last, position + first - slot, own ? first - slot : -1, thread);
        position += length;
      }
    }
  }
}

/** Adds one part's rows to the gradients of slots first..last at `position`; `own` is the first row seeing them. */
function addKeys(
  a: usize,
  part: usize,
  g: i32,
  first: i32,
  last: i32,
  position: i32,
  own: i32,
  thread: i32,
): void {
  const H = argument(a, 7);
  const G = argument(a, 8);
  const E = argument(a, 9);
  const Ev = argument(a, 10);
  const group = H / G;
  const row0 = argument(part, 1);
  const rows = argument(part, 2);
  const stride = <usize>argument(part, 4) << 2;
  const packBytes = <usize>Ev << 2;
  const cStride = (<usize>G * E) << 2;
  const temporary = pointer(a, 15) + <usize>thread * pointer(a, 16);
  for (let slot = first; slot < last; slot += 4) {
    const keys = min(4, last - slot);
    const skipped = own < 0 ? 0 : max(0, own + (slot - first) - row0);
    const steps = (rows - skipped) * group;
    const from =
      (<usize>g * pointer(a, 11) + argument(part, 3) + (position + slot - first)) * 4 +
      <usize>(skipped * group) * stride;
    const packed = (<usize>g * pointer(a, 14) + argument(part, 5) + skipped) * group * packBytes;
    const to = ((<usize>slot * G + g) * E) << 2;
    for (let e = 0; e < E; e += 8) {
      const o = <usize>e << 2;
      const lanes = min(8, E - e);
      for (let which = 0; which < 2; which++) {
        const x = (which == 0 ? pointer(a, 2) : pointer(a, 3)) + from;
        const y = (which == 0 ? pointer(a, 13) : pointer(a, 12)) + packed + o;
        const c = (which == 0 ? pointer(a, 1) : pointer(a, 0)) + to + o;
        if (keys == 4 && lanes == 8) {
          columns4x8(x, stride, y, packBytes, steps, c, cStride, 2);
        } else {
          copyTile(temporary, 32, c, cStride, keys, lanes);
          columns4x8(x, stride, y, packBytes, steps, temporary, 32, 2);
          copyTile(c, cStride, temporary, 32, keys, lanes);
        }
      }
    }
  }
}

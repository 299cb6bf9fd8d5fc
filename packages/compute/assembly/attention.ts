/**
 * Grouped-query attention over a key/value cache.
 *
 * Cache layout: keys [G][slots / 16][E][16], so that score lanes lie across keys; values [G][slots][Ev] with
 * Ev = E rounded up to 8, so that value lanes lie across the head width.
 *
 * Laws. A score is one chain over E in order. A row's scores stand at their absolute positions; the maximum is
 * exact; exp is lane-wise; the sum has four partial sums, position p going to p mod 4, combined in one fixed
 * order; values are added in order of position. So no bit depends on spans, segments, slots, batching or threads.
 * Prefill, decode and training are this one code.
 */
import { argument, copyFloats, fillFloats, pointer, scalar } from "./memory";
import { exp4, log1, maxLanes, sumLanes } from "./math";
import { panelRows } from "./linear";
import { rows1x16, rows1x32, rows1x8, rows2x16, rows2x8, rows4x8 } from "./tiles";

/** Keys taken together when values are added, so that they stay in the first-level cache. */
const KEY_BLOCK: i32 = 64;

/** The plan of one segment, read by `openSegment`. Module variables belong to the thread's own instance. */
let spanFirst: i32 = 0;
let spanLast: i32 = 0;
let spanSlots: usize = 0;
let spanLengths: usize = 0;
let selfSlot: i32 = 0;
let prefixLength: i32 = 0;

/**
 * Reads segment s of a plan; `plan` holds pointers rowStarts, selfSlots, spanOffsets, spanSlots, spanLengths,
 * prefixLengths.
 */
export function openSegment(plan: usize, s: i32): void {
  const o = <usize>s << 2;
  selfSlot = load<i32>(pointer(plan, 1) + o);
  spanFirst = load<i32>(pointer(plan, 2) + o);
  spanLast = load<i32>(pointer(plan, 2) + o, 4);
  spanSlots = pointer(plan, 3);
  spanLengths = pointer(plan, 4);
  prefixLength = load<i32>(pointer(plan, 5) + o);
}

// @ts-ignore: decorator
@inline
export function segmentPrefix(): i32 {
  return prefixLength;
}
// @ts-ignore: decorator
@inline
export function segmentSelfSlot(): i32 {
  return selfSlot;
}
// @ts-ignore: decorator
@inline
export function firstSpan(): i32 {
  return spanFirst;
}
// @ts-ignore: decorator
@inline
export function lastSpan(): i32 {
  return spanLast;
}
// @ts-ignore: decorator
@inline
export function spanSlot(i: i32): i32 {
  return load<i32>(spanSlots + (<usize>i << 2));
}
// @ts-ignore: decorator
@inline
export function spanLength(i: i32): i32 {
  return load<i32>(spanLengths + (<usize>i << 2));
}

/**
 * rows[i][position] = queries[i] . keys for the open segment's spans and its first `visible` own slots.
 * `keys` is one head's [blocks][E][16]; `temporary` holds count x 16 floats. Up to 15 floats past a row's last
 * position are overwritten.
 */
export function scoreRows(
  rows: usize,
  rowStride: usize,
  queries: usize,
  queryStride: usize,
  count: i32,
  keys: usize,
  E: i32,
  visible: i32,
  temporary: usize,
): void {
  let position = 0;
  for (let i = spanFirst; i <= spanLast; i++) {
    const own = i == spanLast;
    const slot = own ? selfSlot : spanSlot(i);
    const length = own ? visible : spanLength(i);
    const end = slot + length;
    for (let block = slot & ~15; block < end; block += 16) {
      const tile = keys + <usize>block * <usize>E * 4;
      const lead = slot - block;
      const to = rows + (<usize>(position - lead) << 2);
      if (lead <= 0) {
        panelRows(queries, queryStride, tile, E, to, rowStride, count, 16, 0);
      } else {
        panelRows(queries, queryStride, tile, E, temporary, 64, count, 16, 0);
        const lanes = min(16, end - block) - lead;
        for (let q = 0; q < count; q++) {
          copyFloats(
            to + <usize>q * rowStride + (<usize>lead << 2),
            temporary + <usize>q * 64 + (<usize>lead << 2),
            lanes,
          );
        }
      }
    }
    position += length;
  }
}

/** sums[i][0..Ev) = sum over positions of rows[i][position] * values; `values` is one head's [slots][Ev]. */
export function weightedRows(
  sums: usize,
  rows: usize,
  rowStride: usize,
  count: i32,
  values: usize,
  Ev: i32,
  visible: i32,
): void {
  const bytes = <usize>Ev << 2;
  fillFloats(sums, 0, count * Ev);
  let position = 0;
  for (let i = spanFirst; i <= spanLast; i++) {
    const own = i == spanLast;
    const slot = own ? selfSlot : spanSlot(i);
    const length = own ? visible : spanLength(i);
    for (let k = 0; k < length; k += KEY_BLOCK) {
      const steps = min(KEY_BLOCK, length - k);
      const b = values + <usize>(slot + k) * bytes;
      let a = rows + (<usize>(position + k) << 2);
      let c = sums;
      let q = count;
      for (; q >= 4; q -= 4) {
        for (let e: usize = 0; e < bytes; e += 32) rows4x8(a, rowStride, b + e, bytes, steps, c + e, bytes, 2);
        a += rowStride << 2;
        c += bytes << 2;
      }
      if (q >= 2) {
        let e: usize = 0;
        for (; e + 64 <= bytes; e += 64) rows2x16(a, rowStride, b + e, bytes, steps, c + e, bytes, 2);
        if (e < bytes) rows2x8(a, rowStride, b + e, bytes, steps, c + e, bytes, 2);
        a += rowStride << 1;
        c += bytes << 1;
        q -= 2;
      }
      if (q > 0) {
        let e: usize = 0;
        for (; e + 128 <= bytes; e += 128) rows1x32(a, b + e, bytes, steps, c + e, 2);
        if (e + 64 <= bytes) {
          rows1x16(a, b + e, bytes, steps, c + e, 2);
          e += 64;
        }
        if (e < bytes) rows1x8(a, b + e, bytes, steps, c + e, 2);
      }
    }
    position += length;
  }
}

/** The sum of the last `softmaxRow`. */
let total: f32 = 0;

/** row = exp(row * scale - max) for `length` scores, zeros up to `padded`. Returns the log-sum-exp. */
function softmaxRow(row: usize, length: i32, padded: i32, scale: f32): f32 {
  fillFloats(row + (<usize>length << 2), -Infinity, padded - length);
  const end = row + (<usize>((length + 15) & ~15) << 2);
  let m0 = f32x4.splat(-Infinity);
  let m1 = m0;
  for (let p = row; p < end; p += 64) {
    m0 = f32x4.pmax(m0, f32x4.pmax(v128.load(p), v128.load(p, 16)));
    m1 = f32x4.pmax(m1, f32x4.pmax(v128.load(p, 32), v128.load(p, 48)));
  }
  // Rounding is monotonic, so the scaled maximum is the maximum of the scaled scores.
  const top = maxLanes(f32x4.pmax(m0, m1)) * scale;
  const max = f32x4.splat(top);
  const s = f32x4.splat(scale);
  let sums = f32x4.splat(0);
  for (let p = row; p < end; p += 16) {
    const e = exp4(f32x4.sub(f32x4.mul(v128.load(p), s), max));
    v128.store(p, e);
    sums = f32x4.add(sums, e);
  }
  const rest = padded - ((length + 15) & ~15);
  if (rest > 0) fillFloats(end, 0, rest);
  total = sumLanes(sums);
  return top + log1(total);
}

/**
 * args: out, logSumExp, queries, keys, values, blocks, plan, H, G, E, Ev, cacheBlocks, scale, scratch,
 * scratch stride, score row stride (floats). `blocks` holds segment, first row in the segment, rows.
 * Unit: block x key/value head; the block's rows and the head's group are computed together.
 */
export function attention(a: usize, start: i32, end: i32, thread: i32): void {
  const plan = pointer(a, 6);
  const H = argument(a, 7);
  const G = argument(a, 8);
  const E = argument(a, 9);
  const Ev = argument(a, 10);
  const cacheBlocks = argument(a, 11);
  const scale = scalar(a, 12);
  const rowStride = pointer(a, 15) << 2;
  const group = H / G;
  const headBytes = <usize>E << 2;
  const sumBytes = <usize>Ev << 2;
  for (let u = start; u < end; u++) {
    const g = u % G;
    const block = pointer(a, 5) + <usize>(u / G) * 12;
    const segment = argument(block, 0);
    const row0 = argument(block, 1);
    const rows = argument(block, 2);
    openSegment(plan, segment);
    const firstRow = load<i32>(pointer(plan, 0) + (<usize>segment << 2)) + row0;
    const count = rows * group;
    const packed = pointer(a, 13) + <usize>thread * pointer(a, 14);
    const sums = packed + <usize>count * headBytes;
    const temporary = (sums + <usize>count * sumBytes + 63) & ~63;
    const scores = temporary + <usize>count * 64;
    const first = ((<usize>firstRow * H + g * group) * E) << 2;
    const rowBytes = (<usize>H * E) << 2;
    for (let r = 0; r < rows; r++) {
      copyFloats(packed + <usize>(r * group) * headBytes, pointer(a, 2) + first + <usize>r * rowBytes, group * E);
    }
    const visible = row0 + rows;
    const keys = pointer(a, 3) + <usize>g * cacheBlocks * E * 64;
    scoreRows(scores, rowStride, packed, headBytes, count, keys, E, visible, temporary);
    const padded = (prefixLength + visible + 15) & ~15;
    const values = pointer(a, 4) + <usize>g * cacheBlocks * Ev * 64;
    for (let q = 0; q < count; q++) {
      const r = q / group;
      const length = prefixLength + row0 + r + 1;
      const lse = softmaxRow(scores + <usize>q * rowStride, length, padded, scale);
      const at = <usize>(firstRow + r) * H + g * group + (q - r * group);
      store<f32>(pointer(a, 1) + (at << 2), lse);
      // The packed query is used up; its first float keeps the factor of the row.
      store<f32>(packed + <usize>q * headBytes, <f32>1 / total);
    }
    weightedRows(sums, scores, rowStride, count, values, Ev, visible);
    for (let q = 0; q < count; q++) {
      const r = q / group;
      const factor = load<f32>(packed + <usize>q * headBytes);
      const out = pointer(a, 0) + first + <usize>r * rowBytes + <usize>(q - r * group) * headBytes;
      scaleRow(out, sums + <usize>q * sumBytes, factor, E);
    }
  }
}

function scaleRow(out: usize, row: usize, factor: f32, count: i32): void {
  const f = f32x4.splat(factor);
  let i = 0;
  for (; i + 4 <= count; i += 4) {
    v128.store(out, f32x4.mul(v128.load(row), f));
    out += 16;
    row += 16;
  }
  for (; i < count; i++) {
    store<f32>(out, load<f32>(row) * factor);
    out += 4;
    row += 4;
  }
}

/** args: keys, values, cache keys, cache values, slots, G, E, Ev, cacheBlocks. Unit: one row. */
export function writeCache(a: usize, start: i32, end: i32): void {
  const G = argument(a, 5);
  const E = argument(a, 6);
  const Ev = argument(a, 7);
  const cacheBlocks = argument(a, 8);
  for (let r = start; r < end; r++) {
    const slot = load<i32>(pointer(a, 4) + (<usize>r << 2));
    for (let g = 0; g < G; g++) {
      const o = ((<usize>r * G + g) * E) << 2;
      let s = pointer(a, 0) + o;
      let d =
        pointer(a, 2) + (<usize>g * cacheBlocks + (slot >> 4)) * <usize>E * 64 + (<usize>(slot & 15) << 2);
      for (let e = 0; e < E; e++) {
        store<f32>(d, load<f32>(s));
        s += 4;
        d += 64;
      }
      copyFloats(pointer(a, 3) + (<usize>g * cacheBlocks * 16 + slot) * <usize>Ev * 4, pointer(a, 1) + o, E);
    }
  }
}

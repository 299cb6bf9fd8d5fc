/**
 * Matrix products. Weights [N,K] are packed into panels of 16 outputs, [panel][k][16], padded with zeros.
 *
 * Law: every output is one chain of multiply then add over the reduced index in order, starting from 0 (products)
 * or from the old value (weight gradients). Rows, panels and tiles only choose which outputs are computed together.
 */
import { argument, copyFloats, copyTile, pointer } from "./memory";
import { columns4x8, panel1x16, panel2x16, panel4x8 } from "./tiles";

/** args: packed, weight, N, K. Unit: one panel; panel lanes are rows of the weight. */
export function packRows(a: usize, start: i32, end: i32): void {
  const packed = pointer(a, 0);
  const weight = pointer(a, 1);
  const N = argument(a, 2);
  const K = argument(a, 3);
  for (let panel = start; panel < end; panel++) {
    const dst = packed + <usize>panel * <usize>K * 64;
    for (let j = 0; j < 16; j++) {
      const n = panel * 16 + j;
      let d = dst + (<usize>j << 2);
      if (n < N) {
        let s = weight + ((<usize>n * <usize>K) << 2);
        for (let k = 0; k < K; k++) {
          store<f32>(d, load<f32>(s));
          s += 4;
          d += 64;
        }
      } else {
        for (let k = 0; k < K; k++) {
          store<f32>(d, 0);
          d += 64;
        }
      }
    }
  }
}

/** args: packed, weight, N, K. Unit: one panel; panel lanes are columns of the weight, reduced index is N. */
export function packColumns(a: usize, start: i32, end: i32): void {
  const packed = pointer(a, 0);
  const weight = pointer(a, 1);
  const N = argument(a, 2);
  const K = argument(a, 3);
  for (let panel = start; panel < end; panel++) {
    let d = packed + <usize>panel * <usize>N * 64;
    let s = weight + <usize>panel * 64;
    const lanes = min(16, K - panel * 16);
    for (let n = 0; n < N; n++) {
      if (lanes == 16) {
        v128.store(d, v128.load(s));
        v128.store(d, v128.load(s, 16), 16);
        v128.store(d, v128.load(s, 32), 32);
        v128.store(d, v128.load(s, 48), 48);
      } else {
        for (let j = 0; j < lanes; j++) store<f32>(d + (<usize>j << 2), load<f32>(s + (<usize>j << 2)));
        for (let j = lanes; j < 16; j++) store<f32>(d + (<usize>j << 2), 0);
      }
      d += 64;
      s += <usize>K << 2;
    }
  }
}

/** c[rows, 16] (+)= a[rows, K] panel. Strides in bytes. */
// @ts-ignore: decorator
@inline
export function panelRows(
  x: usize,
  xStride: usize,
  panel: usize,
  K: i32,
  c: usize,
  cStride: usize,
  rows: i32,
  lanes: i32,
  mode: i32,
): void {
  let r = rows;
  for (; r >= 4; r -= 4) {
    panel4x8(x, xStride, panel, K, c, cStride, mode);
    if (lanes > 8) panel4x8(x, xStride, panel + 32, K, c + 32, cStride, mode);
    x += xStride << 2;
    c += cStride << 2;
  }
  if (r >= 2) {
    panel2x16(x, xStride, panel, K, c, cStride, mode);
    x += xStride << 1;
    c += cStride << 1;
    r -= 2;
  }
  if (r > 0) panel1x16(x, panel, K, c, mode);
}

/**
 * args: out, x, packed, bias (0: none), R, N, K, rows of a block, mode (0: out = sum, 1: out += sum),
 * scratch, scratch stride. Unit: block of rows x panel.
 */
export function linear(a: usize, start: i32, end: i32, thread: i32): void {
  const out = pointer(a, 0);
  const x = pointer(a, 1);
  const packed = pointer(a, 2);
  const bias = pointer(a, 3);
  const R = argument(a, 4);
  const N = argument(a, 5);
  const K = argument(a, 6);
  const blockRows = argument(a, 7);
  const mode = argument(a, 8);
  const scratch = pointer(a, 9) + <usize>thread * pointer(a, 10);
  const panels = (N + 15) >> 4;
  const xStride = <usize>K << 2;
  const outStride = <usize>N << 2;
  for (let u = start; u < end; u++) {
    const block = u / panels;
    const p = u - block * panels;
    const r0 = block * blockRows;
    const rows = min(blockRows, R - r0);
    const lanes = min(16, N - p * 16);
    const panel = packed + <usize>p * <usize>K * 64;
    const c = out + <usize>r0 * outStride + <usize>p * 64;
    const xs = x + <usize>r0 * xStride;
    if (lanes == 16 || (lanes == 8 && (rows & 3) == 0)) {
      panelRows(xs, xStride, panel, K, c, outStride, rows, lanes, mode);
    } else {
      // The last, narrow panel goes through scratch, so that nothing past the row's end is written.
      if (mode == 1) copyTile(scratch, 64, c, outStride, rows, lanes);
      panelRows(xs, xStride, panel, K, scratch, 64, rows, 16, mode);
      copyTile(c, outStride, scratch, 64, rows, lanes);
    }
    if (bias != 0) {
      for (let r = 0; r < rows; r++) {
        const row = c + <usize>r * outStride;
        for (let j = 0; j < lanes; j++) {
          const o = row + (<usize>j << 2);
          store<f32>(o, load<f32>(o) + load<f32>(bias + (<usize>(p * 16 + j) << 2)));
        }
      }
    }
  }
}

/** Rows of x taken together; a block of both operands stays in the second-level cache. */
const TIME_BLOCK: i32 = 128;
/** Outputs n and inputs k of one unit. */
const UNIT_N: i32 = 32;
const UNIT_K: i32 = 128;

/**
 * args: gradWeight, gradOut, x, R, N, K, scratch, scratch stride.
 * Unit: 32 outputs x 128 inputs of the weight. Both operands are repacked so that the tile reads them in order.
 */
export function linearBackwardWeight(a: usize, start: i32, end: i32, thread: i32): void {
  const gradWeight = pointer(a, 0);
  const gradOut = pointer(a, 1);
  const x = pointer(a, 2);
  const R = argument(a, 3);
  const N = argument(a, 4);
  const K = argument(a, 5);
  const scratch = pointer(a, 6) + <usize>thread * pointer(a, 7);
  const packedX = scratch; // [k / 8][t][8]
  const packedG = packedX + <usize>(TIME_BLOCK * UNIT_K * 4); // [n / 4][t][4]
  const temporary = packedG + <usize>(TIME_BLOCK * UNIT_N * 4); // 4 x 8
  const unitsK = (K + UNIT_K - 1) / UNIT_K;
  const rowBytes = <usize>K << 2;
  for (let u = start; u < end; u++) {
    const un = u / unitsK;
    const n0 = un * UNIT_N;
    const k0 = (u - un * unitsK) * UNIT_K;
    const nCount = min(UNIT_N, N - n0);
    const kCount = min(UNIT_K, K - k0);
    for (let t0 = 0; t0 < R; t0 += TIME_BLOCK) {
      const steps = min(TIME_BLOCK, R - t0);
      packGroups8(packedX, x + ((<usize>t0 * <usize>K + <usize>k0) << 2), rowBytes, steps, kCount);
      packGroups4(packedG, gradOut + ((<usize>t0 * <usize>N + <usize>n0) << 2), <usize>N << 2, steps, nCount);
      for (let k = 0; k < kCount; k += 8) {
        const b = packedX + <usize>(k >> 3) * <usize>steps * 32;
        for (let n = 0; n < nCount; n += 4) {
          const g = packedG + <usize>(n >> 2) * <usize>steps * 16;
          const c = gradWeight + ((<usize>(n0 + n) * <usize>K + <usize>(k0 + k)) << 2);
          const rows = min(4, nCount - n);
          const lanes = min(8, kCount - k);
          if (rows == 4 && lanes == 8) {
            columns4x8(g, 16, b, 32, steps, c, rowBytes, 2);
          } else {
            copyTile(temporary, 32, c, rowBytes, rows, lanes);
            columns4x8(g, 16, b, 32, steps, temporary, 32, 2);
            copyTile(c, rowBytes, temporary, 32, rows, lanes);
          }
        }
      }
    }
  }
}

function packGroups8(dst: usize, src: usize, stride: usize, steps: i32, columns: i32): void {
  const group = <usize>steps * 32;
  for (let t = 0; t < steps; t++) {
    let d = dst + <usize>t * 32;
    let s = src + <usize>t * stride;
    let k = 0;
    for (; k + 8 <= columns; k += 8) {
      v128.store(d, v128.load(s));
      v128.store(d, v128.load(s, 16), 16);
      s += 32;
      d += group;
    }
    for (let j = 0; k + j < columns; j++) {
      store<f32>(d + (<usize>j << 2), load<f32>(s + (<usize>j << 2)));
    }
  }
}

function packGroups4(dst: usize, src: usize, stride: usize, steps: i32, columns: i32): void {
  const group = <usize>steps * 16;
  for (let t = 0; t < steps; t++) {
    let d = dst + <usize>t * 16;
    let s = src + <usize>t * stride;
    let k = 0;
    for (; k + 4 <= columns; k += 4) {
      v128.store(d, v128.load(s));
      s += 16;
      d += group;
    }
    for (let j = 0; k + j < columns; j++) {
      store<f32>(d + (<usize>j << 2), load<f32>(s + (<usize>j << 2)));
    }
  }
}

/** args: out[width], x[R, width], R, width. out += column sums, rows in order. Unit: 16 columns. */
export function columnSums(a: usize, start: i32, end: i32): void {
  const out = pointer(a, 0);
  const x = pointer(a, 1);
  const R = argument(a, 2);
  const width = argument(a, 3);
  for (let u = start; u < end; u++) {
    for (let j = u * 16; j < min(width, u * 16 + 16); j++) {
      let sum = load<f32>(out + (<usize>j << 2));
      let s = x + (<usize>j << 2);
      for (let r = 0; r < R; r++) {
        sum += load<f32>(s);
        s += <usize>width << 2;
      }
      store<f32>(out + (<usize>j << 2), sum);
    }
  }
}

/** args: out, table, ids, count, width. Row copies. Unit: one row. */
export function gatherRows(a: usize, start: i32, end: i32): void {
  const width = argument(a, 4);
  const bytes = <usize>width << 2;
  for (let r = start; r < end; r++) {
    const id = load<i32>(pointer(a, 2) + (<usize>r << 2));
    copyFloats(pointer(a, 0) + <usize>r * bytes, pointer(a, 1) + <usize>id * bytes, width);
  }
}

/** args: table, source, ids, count, width. table[id] += row, rows in order. Unit: 16 columns. */
export function scatterAddRows(a: usize, start: i32, end: i32): void {
  const ids = pointer(a, 2);
  const count = argument(a, 3);
  const width = argument(a, 4);
  const bytes = <usize>width << 2;
  const c0 = start * 16;
  const c1 = min(width, end * 16);
  for (let r = 0; r < count; r++) {
    const id = load<i32>(ids + (<usize>r << 2));
    let d = pointer(a, 0) + <usize>id * bytes + (<usize>c0 << 2);
    let s = pointer(a, 1) + <usize>r * bytes + (<usize>c0 << 2);
    let c = c0;
    for (; c + 4 <= c1; c += 4) {
      v128.store(d, f32x4.add(v128.load(d), v128.load(s)));
      d += 16;
      s += 16;
    }
    for (; c < c1; c++) {
      store<f32>(d, load<f32>(d) + load<f32>(s));
      d += 4;
      s += 4;
    }
  }
}

// Written by scripts/tiles.mjs; the law of the tiles is stated there.
export function panel4x8(a0: usize, aRow: usize, b: usize, steps: i32, c: usize, cStride: usize, mode: i32): void {
  let a1 = a0 + aRow;
  let a2 = a1 + aRow;
  let a3 = a2 + aRow;
  let c00 = f32x4.splat(0);
  let c01 = f32x4.splat(0);
  let c10 = f32x4.splat(0);
  let c11 = f32x4.splat(0);
  let c20 = f32x4.splat(0);
  let c21 = f32x4.splat(0);
  let c30 = f32x4.splat(0);
  let c31 = f32x4.splat(0);
  let b0: v128;
  let b1: v128;
  let s: v128;
  if (mode == 2) {
    c00 = v128.load(c, 0);
    c01 = v128.load(c, 16);
    c10 = v128.load(c + cStride, 0);
    c11 = v128.load(c + cStride, 16);
    c20 = v128.load(c + 2 * cStride, 0);
    c21 = v128.load(c + 2 * cStride, 16);
    c30 = v128.load(c + 3 * cStride, 0);
    c31 = v128.load(c + 3 * cStride, 16);
  }
  let t = steps;
  for (; t >= 4; t -= 4) {
    b0 = v128.load(b, 0);
    b1 = v128.load(b, 16);
    s = v128.load32_splat(a0, 0);
    c00 = f32x4.add(c00, f32x4.mul(b0, s));
    c01 = f32x4.add(c01, f32x4.mul(b1, s));
    s = v128.load32_splat(a1, 0);
    c10 = f32x4.add(c10, f32x4.mul(b0, s));
    c11 = f32x4.add(c11, f32x4.mul(b1, s));
    s = v128.load32_splat(a2, 0);
    c20 = f32x4.add(c20, f32x4.mul(b0, s));
    c21 = f32x4.add(c21, f32x4.mul(b1, s));
    s = v128.load32_splat(a3, 0);
    c30 = f32x4.add(c30, f32x4.mul(b0, s));
    c31 = f32x4.add(c31, f32x4.mul(b1, s));
    b0 = v128.load(b, 64);
    b1 = v128.load(b, 80);
    s = v128.load32_splat(a0, 4);
    c00 = f32x4.add(c00, f32x4.mul(b0, s));
    c01 = f32x4.add(c01, f32x4.mul(b1, s));
    s = v128.load32_splat(a1, 4);
    c10 = f32x4.add(c10, f32x4.mul(b0, s));
    c11 = f32x4.add(c11, f32x4.mul(b1, s));
    s = v128.load32_splat(a2, 4);
    c20 = f32x4.add(c20, f32x4.mul(b0, s));
    c21 = f32x4.add(c21, f32x4.mul(b1, s));
    s = v128.load32_splat(a3, 4);
    c30 = f32x4.add(c30, f32x4.mul(b0, s));
    c31 = f32x4.add(c31, f32x4.mul(b1, s));
    b0 = v128.load(b, 128);
    b1 = v128.load(b, 144);
    s = v128.load32_splat(a0, 8);
    c00 = f32x4.add(c00, f32x4.mul(b0, s));
    c01 = f32x4.add(c01, f32x4.mul(b1, s));
    s = v128.load32_splat(a1, 8);
    c10 = f32x4.add(c10, f32x4.mul(b0, s));
    c11 = f32x4.add(c11, f32x4.mul(b1, s));
    s = v128.load32_splat(a2, 8);
    c20 = f32x4.add(c20, f32x4.mul(b0, s));
    c21 = f32x4.add(c21, f32x4.mul(b1, s));
    s = v128.load32_splat(a3, 8);
    c30 = f32x4.add(c30, f32x4.mul(b0, s));
    c31 = f32x4.add(c31, f32x4.mul(b1, s));
    b0 = v128.load(b, 192);
    b1 = v128.load(b, 208);
    s = v128.load32_splat(a0, 12);
    c00 = f32x4.add(c00, f32x4.mul(b0, s));
    c01 = f32x4.add(c01, f32x4.mul(b1, s));
    s = v128.load32_splat(a1, 12);
    c10 = f32x4.add(c10, f32x4.mul(b0, s));
    c11 = f32x4.add(c11, f32x4.mul(b1, s));
    s = v128.load32_splat(a2, 12);
    c20 = f32x4.add(c20, f32x4.mul(b0, s));
    c21 = f32x4.add(c21, f32x4.mul(b1, s));
    s = v128.load32_splat(a3, 12);
    c30 = f32x4.add(c30, f32x4.mul(b0, s));
    c31 = f32x4.add(c31, f32x4.mul(b1, s));
    b += 256;
    a0 += 16;
    a1 += 16;
    a2 += 16;
    a3 += 16;
  }
  for (; t > 0; t--) {
    b0 = v128.load(b, 0);
    b1 = v128.load(b, 16);
    s = v128.load32_splat(a0, 0);
    c00 = f32x4.add(c00, f32x4.mul(b0, s));
    c01 = f32x4.add(c01, f32x4.mul(b1, s));
    s = v128.load32_splat(a1, 0);
    c10 = f32x4.add(c10, f32x4.mul(b0, s));
    c11 = f32x4.add(c11, f32x4.mul(b1, s));
    s = v128.load32_splat(a2, 0);
    c20 = f32x4.add(c20, f32x4.mul(b0, s));
    c21 = f32x4.add(c21, f32x4.mul(b1, s));
    s = v128.load32_splat(a3, 0);
    c30 = f32x4.add(c30, f32x4.mul(b0, s));
    c31 = f32x4.add(c31, f32x4.mul(b1, s));
    b += 64;
    a0 += 4;
    a1 += 4;
    a2 += 4;
    a3 += 4;
  }
  if (mode == 1) {
    c00 = f32x4.add(v128.load(c, 0), c00);
    c01 = f32x4.add(v128.load(c, 16), c01);
    c10 = f32x4.add(v128.load(c + cStride, 0), c10);
    c11 = f32x4.add(v128.load(c + cStride, 16), c11);
    c20 = f32x4.add(v128.load(c + 2 * cStride, 0), c20);
    c21 = f32x4.add(v128.load(c + 2 * cStride, 16), c21);
    c30 = f32x4.add(v128.load(c + 3 * cStride, 0), c30);
    c31 = f32x4.add(v128.load(c + 3 * cStride, 16), c31);
  }
  v128.store(c, c00, 0);
  v128.store(c, c01, 16);
  v128.store(c + cStride, c10, 0);
  v128.store(c + cStride, c11, 16);
  v128.store(c + 2 * cStride, c20, 0);
  v128.store(c + 2 * cStride, c21, 16);
  v128.store(c + 3 * cStride, c30, 0);
  v128.store(c + 3 * cStride, c31, 16);
}

export function panel2x16(a0: usize, aRow: usize, b: usize, steps: i32, c: usize, cStride: usize, mode: i32): void {
  let a1 = a0 + aRow;
  let c00 = f32x4.splat(0);
  let c01 = f32x4.splat(0);
  let c02 = f32x4.splat(0);
  let c03 = f32x4.splat(0);
  let c10 = f32x4.splat(0);
  let c11 = f32x4.splat(0);
  let c12 = f32x4.splat(0);
  let c13 = f32x4.splat(0);
  let b0: v128;
  let b1: v128;
  let b2: v128;
  let b3: v128;
  let s: v128;
  if (mode == 2) {
    c00 = v128.load(c, 0);
    c01 = v128.load(c, 16);
    c02 = v128.load(c, 32);
    c03 = v128.load(c, 48);
    c10 = v128.load(c + cStride, 0);
    c11 = v128.load(c + cStride, 16);
    c12 = v128.load(c + cStride, 32);
    c13 = v128.load(c + cStride, 48);
  }
  let t = steps;
  for (; t >= 4; t -= 4) {
    b0 = v128.load(b, 0);
    b1 = v128.load(b, 16);
    b2 = v128.load(b, 32);
    b3 = v128.load(b, 48);
    s = v128.load32_splat(a0, 0);
    c00 = f32x4.add(c00, f32x4.mul(b0, s));
    c01 = f32x4.add(c01, f32x4.mul(b1, s));
    c02 = f32x4.add(c02, f32x4.mul(b2, s));
    c03 = f32x4.add(c03, f32x4.mul(b3, s));
    s = v128.load32_splat(a1, 0);
    c10 = f32x4.add(c10, f32x4.mul(b0, s));
    c11 = f32x4.add(c11, f32x4.mul(b1, s));
    c12 = f32x4.add(c12, f32x4.mul(b2, s));
    c13 = f32x4.add(c13, f32x4.mul(b3, s));
    b0 = v128.load(b, 64);
    b1 = v128.load(b, 80);
    b2 = v128.load(b, 96);
    b3 = v128.load(b, 112);
    s = v128.load32_splat(a0, 4);
    c00 = f32x4.add(c00, f32x4.mul(b0, s));
    c01 = f32x4.add(c01, f32x4.mul(b1, s));
    c02 = f32x4.add(c02, f32x4.mul(b2, s));
    c03 = f32x4.add(c03, f32x4.mul(b3, s));
    s = v128.load32_splat(a1, 4);
    c10 = f32x4.add(c10, f32x4.mul(b0, s));
    c11 = f32x4.add(c11, f32x4.mul(b1, s));
    c12 = f32x4.add(c12, f32x4.mul(b2, s));
    c13 = f32x4.add(c13, f32x4.mul(b3, s));
    b0 = v128.load(b, 128);
    b1 = v128.load(b, 144);
    b2 = v128.load(b, 160);
    b3 = v128.load(b, 176);
    s = v128.load32_splat(a0, 8);
    c00 = f32x4.add(c00, f32x4.mul(b0, s));
    c01 = f32x4.add(c01, f32x4.mul(b1, s));
    c02 = f32x4.add(c02, f32x4.mul(b2, s));
    c03 = f32x4.add(c03, f32x4.mul(b3, s));
    s = v128.load32_splat(a1, 8);
    c10 = f32x4.add(c10, f32x4.mul(b0, s));
    c11 = f32x4.add(c11, f32x4.mul(b1, s));
    c12 = f32x4.add(c12, f32x4.mul(b2, s));
    c13 = f32x4.add(c13, f32x4.mul(b3, s));
    b0 = v128.load(b, 192);
    b1 = v128.load(b, 208);
    b2 = v128.load(b, 224);
    b3 = v128.load(b, 240);
    s = v128.load32_splat(a0, 12);
    c00 = f32x4.add(c00, f32x4.mul(b0, s));
    c01 = f32x4.add(c01, f32x4.mul(b1, s));
    c02 = f32x4.add(c02, f32x4.mul(b2, s));
    c03 = f32x4.add(c03, f32x4.mul(b3, s));
    s = v128.load32_splat(a1, 12);
    c10 = f32x4.add(c10, f32x4.mul(b0, s));
    c11 = f32x4.add(c11, f32x4.mul(b1, s));
    c12 = f32x4.add(c12, f32x4.mul(b2, s));
    c13 = f32x4.add(c13, f32x4.mul(b3, s));
    b += 256;
    a0 += 16;
    a1 += 16;
  }
  for (; t > 0; t--) {
    b0 = v128.load(b, 0);
    b1 = v128.load(b, 16);
    b2 = v128.load(b, 32);
    b3 = v128.load(b, 48);
    s = v128.load32_splat(a0, 0);
    c00 = f32x4.add(c00, f32x4.mul(b0, s));
    c01 = f32x4.add(c01, f32x4.mul(b1, s));
    c02 = f32x4.add(c02, f32x4.mul(b2, s));
    c03 = f32x4.add(c03, f32x4.mul(b3, s));
    s = v128.load32_splat(a1, 0);
    c10 = f32x4.add(c10, f32x4.mul(b0, s));
    c11 = f32x4.add(c11, f32x4.mul(b1, s));
    c12 = f32x4.add(c12, f32x4.mul(b2, s));
    c13 = f32x4.add(c13, f32x4.mul(b3, s));
    b += 64;
    a0 += 4;
    a1 += 4;
  }
  if (mode == 1) {
    c00 = f32x4.add(v128.load(c, 0), c00);
    c01 = f32x4.add(v128.load(c, 16), c01);
    c02 = f32x4.add(v128.load(c, 32), c02);
    c03 = f32x4.add(v128.load(c, 48), c03);
    c10 = f32x4.add(v128.load(c + cStride, 0), c10);
    c11 = f32x4.add(v128.load(c + cStride, 16), c11);
    c12 = f32x4.add(v128.load(c + cStride, 32), c12);
    c13 = f32x4.add(v128.load(c + cStride, 48), c13);
  }
  v128.store(c, c00, 0);
  v128.store(c, c01, 16);
  v128.store(c, c02, 32);
  v128.store(c, c03, 48);
  v128.store(c + cStride, c10, 0);
  v128.store(c + cStride, c11, 16);
  v128.store(c + cStride, c12, 32);
  v128.store(c + cStride, c13, 48);
}

export function panel1x16(a0: usize, b: usize, steps: i32, c: usize, mode: i32): void {
  let c00 = f32x4.splat(0);
  let c01 = f32x4.splat(0);
  let c02 = f32x4.splat(0);
  let c03 = f32x4.splat(0);
  let b0: v128;
  let b1: v128;
  let b2: v128;
  let b3: v128;
  let s: v128;
  if (mode == 2) {
    c00 = v128.load(c, 0);
    c01 = v128.load(c, 16);
    c02 = v128.load(c, 32);
    c03 = v128.load(c, 48);
  }
  let t = steps;
  for (; t >= 4; t -= 4) {
    b0 = v128.load(b, 0);
    b1 = v128.load(b, 16);
    b2 = v128.load(b, 32);
    b3 = v128.load(b, 48);
    s = v128.load32_splat(a0, 0);
    c00 = f32x4.add(c00, f32x4.mul(b0, s));
    c01 = f32x4.add(c01, f32x4.mul(b1, s));
    c02 = f32x4.add(c02, f32x4.mul(b2, s));
    c03 = f32x4.add(c03, f32x4.mul(b3, s));
    b0 = v128.load(b, 64);
    b1 = v128.load(b, 80);
    b2 = v128.load(b, 96);
    b3 = v128.load(b, 112);
    s = v128.load32_splat(a0, 4);
    c00 = f32x4.add(c00, f32x4.mul(b0, s));
    c01 = f32x4.add(c01, f32x4.mul(b1, s));
    c02 = f32x4.add(c02, f32x4.mul(b2, s));
    c03 = f32x4.add(c03, f32x4.mul(b3, s));
    b0 = v128.load(b, 128);
    b1 = v128.load(b, 144);
    b2 = v128.load(b, 160);
    b3 = v128.load(b, 176);
    s = v128.load32_splat(a0, 8);
    c00 = f32x4.add(c00, f32x4.mul(b0, s));
    c01 = f32x4.add(c01, f32x4.mul(b1, s));
    c02 = f32x4.add(c02, f32x4.mul(b2, s));
    c03 = f32x4.add(c03, f32x4.mul(b3, s));
    b0 = v128.load(b, 192);
    b1 = v128.load(b, 208);
    b2 = v128.load(b, 224);
    b3 = v128.load(b, 240);
    s = v128.load32_splat(a0, 12);
    c00 = f32x4.add(c00, f32x4.mul(b0, s));
    c01 = f32x4.add(c01, f32x4.mul(b1, s));
    c02 = f32x4.add(c02, f32x4.mul(b2, s));
    c03 = f32x4.add(c03, f32x4.mul(b3, s));
    b += 256;
    a0 += 16;
  }
  for (; t > 0; t--) {
    b0 = v128.load(b, 0);
    b1 = v128.load(b, 16);
    b2 = v128.load(b, 32);
    b3 = v128.load(b, 48);
    s = v128.load32_splat(a0, 0);
    c00 = f32x4.add(c00, f32x4.mul(b0, s));
    c01 = f32x4.add(c01, f32x4.mul(b1, s));
    c02 = f32x4.add(c02, f32x4.mul(b2, s));
    c03 = f32x4.add(c03, f32x4.mul(b3, s));
    b += 64;
    a0 += 4;
  }
  if (mode == 1) {
    c00 = f32x4.add(v128.load(c, 0), c00);
    c01 = f32x4.add(v128.load(c, 16), c01);
    c02 = f32x4.add(v128.load(c, 32), c02);
    c03 = f32x4.add(v128.load(c, 48), c03);
  }
  v128.store(c, c00, 0);
  v128.store(c, c01, 16);
  v128.store(c, c02, 32);
  v128.store(c, c03, 48);
}

export function rows4x8(a0: usize, aRow: usize, b: usize, bStride: usize, steps: i32, c: usize, cStride: usize, mode: i32): void {
  let a1 = a0 + aRow;
  let a2 = a1 + aRow;
  let a3 = a2 + aRow;
  let c00 = f32x4.splat(0);
  let c01 = f32x4.splat(0);
  let c10 = f32x4.splat(0);
  let c11 = f32x4.splat(0);
  let c20 = f32x4.splat(0);
  let c21 = f32x4.splat(0);
  let c30 = f32x4.splat(0);
  let c31 = f32x4.splat(0);
  let b0: v128;
  let b1: v128;
  let s: v128;
  if (mode == 2) {
    c00 = v128.load(c, 0);
    c01 = v128.load(c, 16);
    c10 = v128.load(c + cStride, 0);
    c11 = v128.load(c + cStride, 16);
    c20 = v128.load(c + 2 * cStride, 0);
    c21 = v128.load(c + 2 * cStride, 16);
    c30 = v128.load(c + 3 * cStride, 0);
    c31 = v128.load(c + 3 * cStride, 16);
  }
  let t = steps;
  for (; t >= 4; t -= 4) {
    b0 = v128.load(b, 0);
    b1 = v128.load(b, 16);
    s = v128.load32_splat(a0, 0);
    c00 = f32x4.add(c00, f32x4.mul(b0, s));
    c01 = f32x4.add(c01, f32x4.mul(b1, s));
    s = v128.load32_splat(a1, 0);
    c10 = f32x4.add(c10, f32x4.mul(b0, s));
    c11 = f32x4.add(c11, f32x4.mul(b1, s));
    s = v128.load32_splat(a2, 0);
    c20 = f32x4.add(c20, f32x4.mul(b0, s));
    c21 = f32x4.add(c21, f32x4.mul(b1, s));
    s = v128.load32_splat(a3, 0);
    c30 = f32x4.add(c30, f32x4.mul(b0, s));
    c31 = f32x4.add(c31, f32x4.mul(b1, s));
    b += bStride;
    b0 = v128.load(b, 0);
    b1 = v128.load(b, 16);
    s = v128.load32_splat(a0, 4);
    c00 = f32x4.add(c00, f32x4.mul(b0, s));
    c01 = f32x4.add(c01, f32x4.mul(b1, s));
    s = v128.load32_splat(a1, 4);
    c10 = f32x4.add(c10, f32x4.mul(b0, s));
    c11 = f32x4.add(c11, f32x4.mul(b1, s));
    s = v128.load32_splat(a2, 4);
    c20 = f32x4.add(c20, f32x4.mul(b0, s));
    c21 = f32x4.add(c21, f32x4.mul(b1, s));
    s = v128.load32_splat(a3, 4);
    c30 = f32x4.add(c30, f32x4.mul(b0, s));
    c31 = f32x4.add(c31, f32x4.mul(b1, s));
    b += bStride;
    b0 = v128.load(b, 0);
    b1 = v128.load(b, 16);
    s = v128.load32_splat(a0, 8);
    c00 = f32x4.add(c00, f32x4.mul(b0, s));
    c01 = f32x4.add(c01, f32x4.mul(b1, s));
    s = v128.load32_splat(a1, 8);
    c10 = f32x4.add(c10, f32x4.mul(b0, s));
    c11 = f32x4.add(c11, f32x4.mul(b1, s));
    s = v128.load32_splat(a2, 8);
    c20 = f32x4.add(c20, f32x4.mul(b0, s));
    c21 = f32x4.add(c21, f32x4.mul(b1, s));
    s = v128.load32_splat(a3, 8);
    c30 = f32x4.add(c30, f32x4.mul(b0, s));
    c31 = f32x4.add(c31, f32x4.mul(b1, s));
    b += bStride;
    b0 = v128.load(b, 0);
    b1 = v128.load(b, 16);
    s = v128.load32_splat(a0, 12);
    c00 = f32x4.add(c00, f32x4.mul(b0, s));
    c01 = f32x4.add(c01, f32x4.mul(b1, s));
    s = v128.load32_splat(a1, 12);
    c10 = f32x4.add(c10, f32x4.mul(b0, s));
    c11 = f32x4.add(c11, f32x4.mul(b1, s));
    s = v128.load32_splat(a2, 12);
    c20 = f32x4.add(c20, f32x4.mul(b0, s));
    c21 = f32x4.add(c21, f32x4.mul(b1, s));
    s = v128.load32_splat(a3, 12);
    c30 = f32x4.add(c30, f32x4.mul(b0, s));
    c31 = f32x4.add(c31, f32x4.mul(b1, s));
    b += bStride;
    a0 += 16;
    a1 += 16;
    a2 += 16;
    a3 += 16;
  }
  for (; t > 0; t--) {
    b0 = v128.load(b, 0);
    b1 = v128.load(b, 16);
    s = v128.load32_splat(a0, 0);
    c00 = f32x4.add(c00, f32x4.mul(b0, s));
    c01 = f32x4.add(c01, f32x4.mul(b1, s));
    s = v128.load32_splat(a1, 0);
    c10 = f32x4.add(c10, f32x4.mul(b0, s));
    c11 = f32x4.add(c11, f32x4.mul(b1, s));
    s = v128.load32_splat(a2, 0);
    c20 = f32x4.add(c20, f32x4.mul(b0, s));
    c21 = f32x4.add(c21, f32x4.mul(b1, s));
    s = v128.load32_splat(a3, 0);
    c30 = f32x4.add(c30, f32x4.mul(b0, s));
    c31 = f32x4.add(c31, f32x4.mul(b1, s));
    b += bStride;
    a0 += 4;
    a1 += 4;
    a2 += 4;
    a3 += 4;
  }
  if (mode == 1) {
    c00 = f32x4.add(v128.load(c, 0), c00);
    c01 = f32x4.add(v128.load(c, 16), c01);
    c10 = f32x4.add(v128.load(c + cStride, 0), c10);
    c11 = f32x4.add(v128.load(c + cStride, 16), c11);
    c20 = f32x4.add(v128.load(c + 2 * cStride, 0), c20);
    c21 = f32x4.add(v128.load(c + 2 * cStride, 16), c21);
    c30 = f32x4.add(v128.load(c + 3 * cStride, 0), c30);
    c31 = f32x4.add(v128.load(c + 3 * cStride, 16), c31);
  }
  v128.store(c, c00, 0);
  v128.store(c, c01, 16);
  v128.store(c + cStride, c10, 0);
  v128.store(c + cStride, c11, 16);
  v128.store(c + 2 * cStride, c20, 0);
  v128.store(c + 2 * cStride, c21, 16);
  v128.store(c + 3 * cStride, c30, 0);
  v128.store(c + 3 * cStride, c31, 16);
}

export function rows2x16(a0: usize, aRow: usize, b: usize, bStride: usize, steps: i32, c: usize, cStride: usize, mode: i32): void {
  let a1 = a0 + aRow;
  let c00 = f32x4.splat(0);
  let c01 = f32x4.splat(0);
  let c02 = f32x4.splat(0);
  let c03 = f32x4.splat(0);
  let c10 = f32x4.splat(0);
  let c11 = f32x4.splat(0);
  let c12 = f32x4.splat(0);
  let c13 = f32x4.splat(0);
  let b0: v128;
  let b1: v128;
  let b2: v128;
  let b3: v128;
  let s: v128;
  if (mode == 2) {
    c00 = v128.load(c, 0);
    c01 = v128.load(c, 16);
    c02 = v128.load(c, 32);
    c03 = v128.load(c, 48);
    c10 = v128.load(c + cStride, 0);
    c11 = v128.load(c + cStride, 16);
    c12 = v128.load(c + cStride, 32);
    c13 = v128.load(c + cStride, 48);
  }
  let t = steps;
  for (; t >= 4; t -= 4) {
    b0 = v128.load(b, 0);
    b1 = v128.load(b, 16);
    b2 = v128.load(b, 32);
    b3 = v128.load(b, 48);
    s = v128.load32_splat(a0, 0);
    c00 = f32x4.add(c00, f32x4.mul(b0, s));
    c01 = f32x4.add(c01, f32x4.mul(b1, s));
    c02 = f32x4.add(c02, f32x4.mul(b2, s));
    c03 = f32x4.add(c03, f32x4.mul(b3, s));
    s = v128.load32_splat(a1, 0);
    c10 = f32x4.add(c10, f32x4.mul(b0, s));
    c11 = f32x4.add(c11, f32x4.mul(b1, s));
    c12 = f32x4.add(c12, f32x4.mul(b2, s));
    c13 = f32x4.add(c13, f32x4.mul(b3, s));
    b += bStride;
    b0 = v128.load(b, 0);
    b1 = v128.load(b, 16);
    b2 = v128.load(b, 32);
    b3 = v128.load(b, 48);
    s = v128.load32_splat(a0, 4);
    c00 = f32x4.add(c00, f32x4.mul(b0, s));
    c01 = f32x4.add(c01, f32x4.mul(b1, s));
    c02 = f32x4.add(c02, f32x4.mul(b2, s));
    c03 = f32x4.add(c03, f32x4.mul(b3, s));
    s = v128.load32_splat(a1, 4);
    c10 = f32x4.add(c10, f32x4.mul(b0, s));
    c11 = f32x4.add(c11, f32x4.mul(b1, s));
    c12 = f32x4.add(c12, f32x4.mul(b2, s));
    c13 = f32x4.add(c13, f32x4.mul(b3, s));
    b += bStride;
    b0 = v128.load(b, 0);
    b1 = v128.load(b, 16);
    b2 = v128.load(b, 32);
    b3 = v128.load(b, 48);
    s = v128.load32_splat(a0, 8);
    c00 = f32x4.add(c00, f32x4.mul(b0, s));
    c01 = f32x4.add(c01, f32x4.mul(b1, s));
    c02 = f32x4.add(c02, f32x4.mul(b2, s));
    c03 = f32x4.add(c03, f32x4.mul(b3, s));
    s = v128.load32_splat(a1, 8);
    c10 = f32x4.add(c10, f32x4.mul(b0, s));
    c11 = f32x4.add(c11, f32x4.mul(b1, s));
    c12 = f32x4.add(c12, f32x4.mul(b2, s));
    c13 = f32x4.add(c13, f32x4.mul(b3, s));
    b += bStride;
    b0 = v128.load(b, 0);
    b1 = v128.load(b, 16);
    b2 = v128.load(b, 32);
    b3 = v128.load(b, 48);
    s = v128.load32_splat(a0, 12);
    c00 = f32x4.add(c00, f32x4.mul(b0, s));
    c01 = f32x4.add(c01, f32x4.mul(b1, s));
    c02 = f32x4.add(c02, f32x4.mul(b2, s));
    c03 = f32x4.add(c03, f32x4.mul(b3, s));
    s = v128.load32_splat(a1, 12);
    c10 = f32x4.add(c10, f32x4.mul(b0, s));
    c11 = f32x4.add(c11, f32x4.mul(b1, s));
    c12 = f32x4.add(c12, f32x4.mul(b2, s));
    c13 = f32x4.add(c13, f32x4.mul(b3, s));
    b += bStride;
    a0 += 16;
    a1 += 16;
  }
  for (; t > 0; t--) {
    b0 = v128.load(b, 0);
    b1 = v128.load(b, 16);
    b2 = v128.load(b, 32);
    b3 = v128.load(b, 48);
    s = v128.load32_splat(a0, 0);
    c00 = f32x4.add(c00, f32x4.mul(b0, s));
    c01 = f32x4.add(c01, f32x4.mul(b1, s));
    c02 = f32x4.add(c02, f32x4.mul(b2, s));
    c03 = f32x4.add(c03, f32x4.mul(b3, s));
    s = v128.load32_splat(a1, 0);
    c10 = f32x4.add(c10, f32x4.mul(b0, s));
    c11 = f32x4.add(c11, f32x4.mul(b1, s));
    c12 = f32x4.add(c12, f32x4.mul(b2, s));
    c13 = f32x4.add(c13, f32x4.mul(b3, s));
    b += bStride;
    a0 += 4;
    a1 += 4;
  }
  if (mode == 1) {
    c00 = f32x4.add(v128.load(c, 0), c00);
    c01 = f32x4.add(v128.load(c, 16), c01);
    c02 = f32x4.add(v128.load(c, 32), c02);
    c03 = f32x4.add(v128.load(c, 48), c03);
    c10 = f32x4.add(v128.load(c + cStride, 0), c10);
    c11 = f32x4.add(v128.load(c + cStride, 16), c11);
    c12 = f32x4.add(v128.load(c + cStride, 32), c12);
    c13 = f32x4.add(v128.load(c + cStride, 48), c13);
  }
  v128.store(c, c00, 0);
  v128.store(c, c01, 16);
  v128.store(c, c02, 32);
  v128.store(c, c03, 48);
  v128.store(c + cStride, c10, 0);
  v128.store(c + cStride, c11, 16);
  v128.store(c + cStride, c12, 32);
  v128.store(c + cStride, c13, 48);
}

export function rows2x8(a0: usize, aRow: usize, b: usize, bStride: usize, steps: i32, c: usize, cStride: usize, mode: i32): void {
  let a1 = a0 + aRow;
  let c00 = f32x4.splat(0);
  let c01 = f32x4.splat(0);
  let c10 = f32x4.splat(0);
  let c11 = f32x4.splat(0);
  let b0: v128;
  let b1: v128;
  let s: v128;
  if (mode == 2) {
    c00 = v128.load(c, 0);
    c01 = v128.load(c, 16);
    c10 = v128.load(c + cStride, 0);
    c11 = v128.load(c + cStride, 16);
  }
  let t = steps;
  for (; t >= 4; t -= 4) {
    b0 = v128.load(b, 0);
    b1 = v128.load(b, 16);
    s = v128.load32_splat(a0, 0);
    c00 = f32x4.add(c00, f32x4.mul(b0, s));
    c01 = f32x4.add(c01, f32x4.mul(b1, s));
    s = v128.load32_splat(a1, 0);
    c10 = f32x4.add(c10, f32x4.mul(b0, s));
    c11 = f32x4.add(c11, f32x4.mul(b1, s));
    b += bStride;
    b0 = v128.load(b, 0);
    b1 = v128.load(b, 16);
    s = v128.load32_splat(a0, 4);
    c00 = f32x4.add(c00, f32x4.mul(b0, s));
    c01 = f32x4.add(c01, f32x4.mul(b1, s));
    s = v128.load32_splat(a1, 4);
    c10 = f32x4.add(c10, f32x4.mul(b0, s));
    c11 = f32x4.add(c11, f32x4.mul(b1, s));
    b += bStride;
    b0 = v128.load(b, 0);
    b1 = v128.load(b, 16);
    s = v128.load32_splat(a0, 8);
    c00 = f32x4.add(c00, f32x4.mul(b0, s));
    c01 = f32x4.add(c01, f32x4.mul(b1, s));
    s = v128.load32_splat(a1, 8);
    c10 = f32x4.add(c10, f32x4.mul(b0, s));
    c11 = f32x4.add(c11, f32x4.mul(b1, s));
    b += bStride;
    b0 = v128.load(b, 0);
    b1 = v128.load(b, 16);
    s = v128.load32_splat(a0, 12);
    c00 = f32x4.add(c00, f32x4.mul(b0, s));
    c01 = f32x4.add(c01, f32x4.mul(b1, s));
    s = v128.load32_splat(a1, 12);
    c10 = f32x4.add(c10, f32x4.mul(b0, s));
    c11 = f32x4.add(c11, f32x4.mul(b1, s));
    b += bStride;
    a0 += 16;
    a1 += 16;
  }
  for (; t > 0; t--) {
    b0 = v128.load(b, 0);
    b1 = v128.load(b, 16);
    s = v128.load32_splat(a0, 0);
    c00 = f32x4.add(c00, f32x4.mul(b0, s));
    c01 = f32x4.add(c01, f32x4.mul(b1, s));
    s = v128.load32_splat(a1, 0);
    c10 = f32x4.add(c10, f32x4.mul(b0, s));
    c11 = f32x4.add(c11, f32x4.mul(b1, s));
    b += bStride;
    a0 += 4;
    a1 += 4;
  }
  if (mode == 1) {
    c00 = f32x4.add(v128.load(c, 0), c00);
    c01 = f32x4.add(v128.load(c, 16), c01);
    c10 = f32x4.add(v128.load(c + cStride, 0), c10);
    c11 = f32x4.add(v128.load(c + cStride, 16), c11);
  }
  v128.store(c, c00, 0);
  v128.store(c, c01, 16);
  v128.store(c + cStride, c10, 0);
  v128.store(c + cStride, c11, 16);
}

export function rows1x32(a0: usize, b: usize, bStride: usize, steps: i32, c: usize, mode: i32): void {
  let c00 = f32x4.splat(0);
  let c01 = f32x4.splat(0);
  let c02 = f32x4.splat(0);
  let c03 = f32x4.splat(0);
  let c04 = f32x4.splat(0);
  let c05 = f32x4.splat(0);
  let c06 = f32x4.splat(0);
  let c07 = f32x4.splat(0);
  let b0: v128;
  let b1: v128;
  let b2: v128;
  let b3: v128;
  let b4: v128;
  let b5: v128;
  let b6: v128;
  let b7: v128;
  let s: v128;
  if (mode == 2) {
    c00 = v128.load(c, 0);
    c01 = v128.load(c, 16);
    c02 = v128.load(c, 32);
    c03 = v128.load(c, 48);
    c04 = v128.load(c, 64);
    c05 = v128.load(c, 80);
    c06 = v128.load(c, 96);
    c07 = v128.load(c, 112);
  }
  let t = steps;
  for (; t >= 4; t -= 4) {
    b0 = v128.load(b, 0);
    b1 = v128.load(b, 16);
    b2 = v128.load(b, 32);
    b3 = v128.load(b, 48);
    b4 = v128.load(b, 64);
    b5 = v128.load(b, 80);
    b6 = v128.load(b, 96);
    b7 = v128.load(b, 112);
    s = v128.load32_splat(a0, 0);
    c00 = f32x4.add(c00, f32x4.mul(b0, s));
    c01 = f32x4.add(c01, f32x4.mul(b1, s));
    c02 = f32x4.add(c02, f32x4.mul(b2, s));
    c03 = f32x4.add(c03, f32x4.mul(b3, s));
    c04 = f32x4.add(c04, f32x4.mul(b4, s));
    c05 = f32x4.add(c05, f32x4.mul(b5, s));
    c06 = f32x4.add(c06, f32x4.mul(b6, s));
    c07 = f32x4.add(c07, f32x4.mul(b7, s));
    b += bStride;
    b0 = v128.load(b, 0);
    b1 = v128.load(b, 16);
    b2 = v128.load(b, 32);
    b3 = v128.load(b, 48);
    b4 = v128.load(b, 64);
    b5 = v128.load(b, 80);
    b6 = v128.load(b, 96);
    b7 = v128.load(b, 112);
    s = v128.load32_splat(a0, 4);
    c00 = f32x4.add(c00, f32x4.mul(b0, s));
    c01 = f32x4.add(c01, f32x4.mul(b1, s));
    c02 = f32x4.add(c02, f32x4.mul(b2, s));
    c03 = f32x4.add(c03, f32x4.mul(b3, s));
    c04 = f32x4.add(c04, f32x4.mul(b4, s));
    c05 = f32x4.add(c05, f32x4.mul(b5, s));
    c06 = f32x4.add(c06, f32x4.mul(b6, s));
    c07 = f32x4.add(c07, f32x4.mul(b7, s));
    b += bStride;
    b0 = v128.load(b, 0);
    b1 = v128.load(b, 16);
    b2 = v128.load(b, 32);
    b3 = v128.load(b, 48);
    b4 = v128.load(b, 64);
    b5 = v128.load(b, 80);
    b6 = v128.load(b, 96);
    b7 = v128.load(b, 112);
    s = v128.load32_splat(a0, 8);
    c00 = f32x4.add(c00, f32x4.mul(b0, s));
    c01 = f32x4.add(c01, f32x4.mul(b1, s));
    c02 = f32x4.add(c02, f32x4.mul(b2, s));
    c03 = f32x4.add(c03, f32x4.mul(b3, s));
    c04 = f32x4.add(c04, f32x4.mul(b4, s));
    c05 = f32x4.add(c05, f32x4.mul(b5, s));
    c06 = f32x4.add(c06, f32x4.mul(b6, s));
    c07 = f32x4.add(c07, f32x4.mul(b7, s));
    b += bStride;
    b0 = v128.load(b, 0);
    b1 = v128.load(b, 16);
    b2 = v128.load(b, 32);
    b3 = v128.load(b, 48);
    b4 = v128.load(b, 64);
    b5 = v128.load(b, 80);
    b6 = v128.load(b, 96);
    b7 = v128.load(b, 112);
    s = v128.load32_splat(a0, 12);
    c00 = f32x4.add(c00, f32x4.mul(b0, s));
    c01 = f32x4.add(c01, f32x4.mul(b1, s));
    c02 = f32x4.add(c02, f32x4.mul(b2, s));
    c03 = f32x4.add(c03, f32x4.mul(b3, s));
    c04 = f32x4.add(c04, f32x4.mul(b4, s));
    c05 = f32x4.add(c05, f32x4.mul(b5, s));
    c06 = f32x4.add(c06, f32x4.mul(b6, s));
    c07 = f32x4.add(c07, f32x4.mul(b7, s));
    b += bStride;
    a0 += 16;
  }
  for (; t > 0; t--) {
    b0 = v128.load(b, 0);
    b1 = v128.load(b, 16);
    b2 = v128.load(b, 32);
    b3 = v128.load(b, 48);
    b4 = v128.load(b, 64);
    b5 = v128.load(b, 80);
    b6 = v128.load(b, 96);
    b7 = v128.load(b, 112);
    s = v128.load32_splat(a0, 0);
    c00 = f32x4.add(c00, f32x4.mul(b0, s));
    c01 = f32x4.add(c01, f32x4.mul(b1, s));
    c02 = f32x4.add(c02, f32x4.mul(b2, s));
    c03 = f32x4.add(c03, f32x4.mul(b3, s));
    c04 = f32x4.add(c04, f32x4.mul(b4, s));
    c05 = f32x4.add(c05, f32x4.mul(b5, s));
    c06 = f32x4.add(c06, f32x4.mul(b6, s));
    c07 = f32x4.add(c07, f32x4.mul(b7, s));
    b += bStride;
    a0 += 4;
  }
  if (mode == 1) {
    c00 = f32x4.add(v128.load(c, 0), c00);
    c01 = f32x4.add(v128.load(c, 16), c01);
    c02 = f32x4.add(v128.load(c, 32), c02);
    c03 = f32x4.add(v128.load(c, 48), c03);
    c04 = f32x4.add(v128.load(c, 64), c04);
    c05 = f32x4.add(v128.load(c, 80), c05);
    c06 = f32x4.add(v128.load(c, 96), c06);
    c07 = f32x4.add(v128.load(c, 112), c07);
  }
  v128.store(c, c00, 0);
  v128.store(c, c01, 16);
  v128.store(c, c02, 32);
  v128.store(c, c03, 48);
  v128.store(c, c04, 64);
  v128.store(c, c05, 80);
  v128.store(c, c06, 96);
  v128.store(c, c07, 112);
}

export function rows1x16(a0: usize, b: usize, bStride: usize, steps: i32, c: usize, mode: i32): void {
  let c00 = f32x4.splat(0);
  let c01 = f32x4.splat(0);
  let c02 = f32x4.splat(0);
  let c03 = f32x4.splat(0);
  let b0: v128;
  let b1: v128;
  let b2: v128;
  let b3: v128;
  let s: v128;
  if (mode == 2) {
    c00 = v128.load(c, 0);
    c01 = v128.load(c, 16);
    c02 = v128.load(c, 32);
    c03 = v128.load(c, 48);
  }
  let t = steps;
  for (; t >= 4; t -= 4) {
    b0 = v128.load(b, 0);
    b1 = v128.load(b, 16);
    b2 = v128.load(b, 32);
    b3 = v128.load(b, 48);
    s = v128.load32_splat(a0, 0);
    c00 = f32x4.add(c00, f32x4.mul(b0, s));
    c01 = f32x4.add(c01, f32x4.mul(b1, s));
    c02 = f32x4.add(c02, f32x4.mul(b2, s));
    c03 = f32x4.add(c03, f32x4.mul(b3, s));
    b += bStride;
    b0 = v128.load(b, 0);
    b1 = v128.load(b, 16);
    b2 = v128.load(b, 32);
    b3 = v128.load(b, 48);
    s = v128.load32_splat(a0, 4);
    c00 = f32x4.add(c00, f32x4.mul(b0, s));
    c01 = f32x4.add(c01, f32x4.mul(b1, s));
    c02 = f32x4.add(c02, f32x4.mul(b2, s));
    c03 = f32x4.add(c03, f32x4.mul(b3, s));
    b += bStride;
    b0 = v128.load(b, 0);
    b1 = v128.load(b, 16);
    b2 = v128.load(b, 32);
    b3 = v128.load(b, 48);
    s = v128.load32_splat(a0, 8);
    c00 = f32x4.add(c00, f32x4.mul(b0, s));
    c01 = f32x4.add(c01, f32x4.mul(b1, s));
    c02 = f32x4.add(c02, f32x4.mul(b2, s));
    c03 = f32x4.add(c03, f32x4.mul(b3, s));
    b += bStride;
    b0 = v128.load(b, 0);
    b1 = v128.load(b, 16);
    b2 = v128.load(b, 32);
    b3 = v128.load(b, 48);
    s = v128.load32_splat(a0, 12);
    c00 = f32x4.add(c00, f32x4.mul(b0, s));
    c01 = f32x4.add(c01, f32x4.mul(b1, s));
    c02 = f32x4.add(c02, f32x4.mul(b2, s));
    c03 = f32x4.add(c03, f32x4.mul(b3, s));
    b += bStride;
    a0 += 16;
  }
  for (; t > 0; t--) {
    b0 = v128.load(b, 0);
    b1 = v128.load(b, 16);
    b2 = v128.load(b, 32);
    b3 = v128.load(b, 48);
    s = v128.load32_splat(a0, 0);
    c00 = f32x4.add(c00, f32x4.mul(b0, s));
    c01 = f32x4.add(c01, f32x4.mul(b1, s));
    c02 = f32x4.add(c02, f32x4.mul(b2, s));
    c03 = f32x4.add(c03, f32x4.mul(b3, s));
    b += bStride;
    a0 += 4;
  }
  if (mode == 1) {
    c00 = f32x4.add(v128.load(c, 0), c00);
    c01 = f32x4.add(v128.load(c, 16), c01);
    c02 = f32x4.add(v128.load(c, 32), c02);
    c03 = f32x4.add(v128.load(c, 48), c03);
  }
  v128.store(c, c00, 0);
  v128.store(c, c01, 16);
  v128.store(c, c02, 32);
  v128.store(c, c03, 48);
}

export function rows1x8(a0: usize, b: usize, bStride: usize, steps: i32, c: usize, mode: i32): void {
  let c00 = f32x4.splat(0);
  let c01 = f32x4.splat(0);
  let b0: v128;
  let b1: v128;
  let s: v128;
  if (mode == 2) {
    c00 = v128.load(c, 0);
    c01 = v128.load(c, 16);
  }
  let t = steps;
  for (; t >= 4; t -= 4) {
    b0 = v128.load(b, 0);
    b1 = v128.load(b, 16);
    s = v128.load32_splat(a0, 0);
    c00 = f32x4.add(c00, f32x4.mul(b0, s));
    c01 = f32x4.add(c01, f32x4.mul(b1, s));
    b += bStride;
    b0 = v128.load(b, 0);
    b1 = v128.load(b, 16);
    s = v128.load32_splat(a0, 4);
    c00 = f32x4.add(c00, f32x4.mul(b0, s));
    c01 = f32x4.add(c01, f32x4.mul(b1, s));
    b += bStride;
    b0 = v128.load(b, 0);
    b1 = v128.load(b, 16);
    s = v128.load32_splat(a0, 8);
    c00 = f32x4.add(c00, f32x4.mul(b0, s));
    c01 = f32x4.add(c01, f32x4.mul(b1, s));
    b += bStride;
    b0 = v128.load(b, 0);
    b1 = v128.load(b, 16);
    s = v128.load32_splat(a0, 12);
    c00 = f32x4.add(c00, f32x4.mul(b0, s));
    c01 = f32x4.add(c01, f32x4.mul(b1, s));
    b += bStride;
    a0 += 16;
  }
  for (; t > 0; t--) {
    b0 = v128.load(b, 0);
    b1 = v128.load(b, 16);
    s = v128.load32_splat(a0, 0);
    c00 = f32x4.add(c00, f32x4.mul(b0, s));
    c01 = f32x4.add(c01, f32x4.mul(b1, s));
    b += bStride;
    a0 += 4;
  }
  if (mode == 1) {
    c00 = f32x4.add(v128.load(c, 0), c00);
    c01 = f32x4.add(v128.load(c, 16), c01);
  }
  v128.store(c, c00, 0);
  v128.store(c, c01, 16);
}

export function columns4x8(a0: usize, aStride: usize, b: usize, bStride: usize, steps: i32, c: usize, cStride: usize, mode: i32): void {
  let c00 = f32x4.splat(0);
  let c01 = f32x4.splat(0);
  let c10 = f32x4.splat(0);
  let c11 = f32x4.splat(0);
  let c20 = f32x4.splat(0);
  let c21 = f32x4.splat(0);
  let c30 = f32x4.splat(0);
  let c31 = f32x4.splat(0);
  let b0: v128;
  let b1: v128;
  let s: v128;
  if (mode == 2) {
    c00 = v128.load(c, 0);
    c01 = v128.load(c, 16);
    c10 = v128.load(c + cStride, 0);
    c11 = v128.load(c + cStride, 16);
    c20 = v128.load(c + 2 * cStride, 0);
    c21 = v128.load(c + 2 * cStride, 16);
    c30 = v128.load(c + 3 * cStride, 0);
    c31 = v128.load(c + 3 * cStride, 16);
  }
  let t = steps;
  for (; t >= 4; t -= 4) {
    b0 = v128.load(b, 0);
    b1 = v128.load(b, 16);
    s = v128.load32_splat(a0, 0);
    c00 = f32x4.add(c00, f32x4.mul(b0, s));
    c01 = f32x4.add(c01, f32x4.mul(b1, s));
    s = v128.load32_splat(a0, 4);
    c10 = f32x4.add(c10, f32x4.mul(b0, s));
    c11 = f32x4.add(c11, f32x4.mul(b1, s));
    s = v128.load32_splat(a0, 8);
    c20 = f32x4.add(c20, f32x4.mul(b0, s));
    c21 = f32x4.add(c21, f32x4.mul(b1, s));
    s = v128.load32_splat(a0, 12);
    c30 = f32x4.add(c30, f32x4.mul(b0, s));
    c31 = f32x4.add(c31, f32x4.mul(b1, s));
    b += bStride;
    a0 += aStride;
    b0 = v128.load(b, 0);
    b1 = v128.load(b, 16);
    s = v128.load32_splat(a0, 0);
    c00 = f32x4.add(c00, f32x4.mul(b0, s));
    c01 = f32x4.add(c01, f32x4.mul(b1, s));
    s = v128.load32_splat(a0, 4);
    c10 = f32x4.add(c10, f32x4.mul(b0, s));
    c11 = f32x4.add(c11, f32x4.mul(b1, s));
    s = v128.load32_splat(a0, 8);
    c20 = f32x4.add(c20, f32x4.mul(b0, s));
    c21 = f32x4.add(c21, f32x4.mul(b1, s));
    s = v128.load32_splat(a0, 12);
    c30 = f32x4.add(c30, f32x4.mul(b0, s));
    c31 = f32x4.add(c31, f32x4.mul(b1, s));
    b += bStride;
    a0 += aStride;
    b0 = v128.load(b, 0);
    b1 = v128.load(b, 16);
    s = v128.load32_splat(a0, 0);
    c00 = f32x4.add(c00, f32x4.mul(b0, s));
    c01 = f32x4.add(c01, f32x4.mul(b1, s));
    s = v128.load32_splat(a0, 4);
    c10 = f32x4.add(c10, f32x4.mul(b0, s));
    c11 = f32x4.add(c11, f32x4.mul(b1, s));
    s = v128.load32_splat(a0, 8);
    c20 = f32x4.add(c20, f32x4.mul(b0, s));
    c21 = f32x4.add(c21, f32x4.mul(b1, s));
    s = v128.load32_splat(a0, 12);
    c30 = f32x4.add(c30, f32x4.mul(b0, s));
    c31 = f32x4.add(c31, f32x4.mul(b1, s));
    b += bStride;
    a0 += aStride;
    b0 = v128.load(b, 0);
    b1 = v128.load(b, 16);
    s = v128.load32_splat(a0, 0);
    c00 = f32x4.add(c00, f32x4.mul(b0, s));
    c01 = f32x4.add(c01, f32x4.mul(b1, s));
    s = v128.load32_splat(a0, 4);
    c10 = f32x4.add(c10, f32x4.mul(b0, s));
    c11 = f32x4.add(c11, f32x4.mul(b1, s));
    s = v128.load32_splat(a0, 8);
    c20 = f32x4.add(c20, f32x4.mul(b0, s));
    c21 = f32x4.add(c21, f32x4.mul(b1, s));
    s = v128.load32_splat(a0, 12);
    c30 = f32x4.add(c30, f32x4.mul(b0, s));
    c31 = f32x4.add(c31, f32x4.mul(b1, s));
    b += bStride;
    a0 += aStride;
  }
  for (; t > 0; t--) {
    b0 = v128.load(b, 0);
    b1 = v128.load(b, 16);
    s = v128.load32_splat(a0, 0);
    c00 = f32x4.add(c00, f32x4.mul(b0, s));
    c01 = f32x4.add(c01, f32x4.mul(b1, s));
    s = v128.load32_splat(a0, 4);
    c10 = f32x4.add(c10, f32x4.mul(b0, s));
    c11 = f32x4.add(c11, f32x4.mul(b1, s));
    s = v128.load32_splat(a0, 8);
    c20 = f32x4.add(c20, f32x4.mul(b0, s));
    c21 = f32x4.add(c21, f32x4.mul(b1, s));
    s = v128.load32_splat(a0, 12);
    c30 = f32x4.add(c30, f32x4.mul(b0, s));
    c31 = f32x4.add(c31, f32x4.mul(b1, s));
    b += bStride;
    a0 += aStride;
  }
  if (mode == 1) {
    c00 = f32x4.add(v128.load(c, 0), c00);
    c01 = f32x4.add(v128.load(c, 16), c01);
    c10 = f32x4.add(v128.load(c + cStride, 0), c10);
    c11 = f32x4.add(v128.load(c + cStride, 16), c11);
    c20 = f32x4.add(v128.load(c + 2 * cStride, 0), c20);
    c21 = f32x4.add(v128.load(c + 2 * cStride, 16), c21);
    c30 = f32x4.add(v128.load(c + 3 * cStride, 0), c30);
    c31 = f32x4.add(v128.load(c + 3 * cStride, 16), c31);
  }
  v128.store(c, c00, 0);
  v128.store(c, c01, 16);
  v128.store(c + cStride, c10, 0);
  v128.store(c + cStride, c11, 16);
  v128.store(c + 2 * cStride, c20, 0);
  v128.store(c + 2 * cStride, c21, 16);
  v128.store(c + 3 * cStride, c30, 0);
  v128.store(c + 3 * cStride, c31, 16);
}

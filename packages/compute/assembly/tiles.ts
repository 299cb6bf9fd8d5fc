// Written by scripts/tiles.mjs; the law of the tiles is stated there.
export function panel4x8(a: usize, aRow: usize, b: usize, steps: i32, c: usize, cStride: usize, mode: i32): void {
  const aRow2 = 2 * aRow;
  const aRow3 = 3 * aRow;
  const cStride2 = 2 * cStride;
  const cStride3 = 3 * cStride;
  let c00 = f32x4.splat(0);
  let c01 = f32x4.splat(0);
  let c10 = f32x4.splat(0);
  let c11 = f32x4.splat(0);
  let c20 = f32x4.splat(0);
  let c21 = f32x4.splat(0);
  let c30 = f32x4.splat(0);
  let c31 = f32x4.splat(0);
  if (mode == 2) {
    c00 = v128.load(c, 0);
    c01 = v128.load(c, 16);
    c10 = v128.load(c + cStride, 0);
    c11 = v128.load(c + cStride, 16);
    c20 = v128.load(c + cStride2, 0);
    c21 = v128.load(c + cStride2, 16);
    c30 = v128.load(c + cStride3, 0);
    c31 = v128.load(c + cStride3, 16);
  }
  for (let t = steps; t > 0; t--) {
    const b0 = v128.load(b, 0);
    const b1 = v128.load(b, 16);
    const s0 = v128.load32_splat(a);
    c00 = f32x4.add(c00, f32x4.mul(b0, s0));
    c01 = f32x4.add(c01, f32x4.mul(b1, s0));
    const s1 = v128.load32_splat(a + aRow);
    c10 = f32x4.add(c10, f32x4.mul(b0, s1));
    c11 = f32x4.add(c11, f32x4.mul(b1, s1));
    const s2 = v128.load32_splat(a + aRow2);
    c20 = f32x4.add(c20, f32x4.mul(b0, s2));
    c21 = f32x4.add(c21, f32x4.mul(b1, s2));
    const s3 = v128.load32_splat(a + aRow3);
    c30 = f32x4.add(c30, f32x4.mul(b0, s3));
    c31 = f32x4.add(c31, f32x4.mul(b1, s3));
    a += 4;
    b += 64;
  }
  if (mode == 1) {
    c00 = f32x4.add(v128.load(c, 0), c00);
    c01 = f32x4.add(v128.load(c, 16), c01);
    c10 = f32x4.add(v128.load(c + cStride, 0), c10);
    c11 = f32x4.add(v128.load(c + cStride, 16), c11);
    c20 = f32x4.add(v128.load(c + cStride2, 0), c20);
    c21 = f32x4.add(v128.load(c + cStride2, 16), c21);
    c30 = f32x4.add(v128.load(c + cStride3, 0), c30);
    c31 = f32x4.add(v128.load(c + cStride3, 16), c31);
  }
  v128.store(c, c00, 0);
  v128.store(c, c01, 16);
  v128.store(c + cStride, c10, 0);
  v128.store(c + cStride, c11, 16);
  v128.store(c + cStride2, c20, 0);
  v128.store(c + cStride2, c21, 16);
  v128.store(c + cStride3, c30, 0);
  v128.store(c + cStride3, c31, 16);
}

export function panel2x16(a: usize, aRow: usize, b: usize, steps: i32, c: usize, cStride: usize, mode: i32): void {
  let c00 = f32x4.splat(0);
  let c01 = f32x4.splat(0);
  let c02 = f32x4.splat(0);
  let c03 = f32x4.splat(0);
  let c10 = f32x4.splat(0);
  let c11 = f32x4.splat(0);
  let c12 = f32x4.splat(0);
  let c13 = f32x4.splat(0);
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
  for (let t = steps; t > 0; t--) {
    const b0 = v128.load(b, 0);
    const b1 = v128.load(b, 16);
    const b2 = v128.load(b, 32);
    const b3 = v128.load(b, 48);
    const s0 = v128.load32_splat(a);
    c00 = f32x4.add(c00, f32x4.mul(b0, s0));
    c01 = f32x4.add(c01, f32x4.mul(b1, s0));
    c02 = f32x4.add(c02, f32x4.mul(b2, s0));
    c03 = f32x4.add(c03, f32x4.mul(b3, s0));
    const s1 = v128.load32_splat(a + aRow);
    c10 = f32x4.add(c10, f32x4.mul(b0, s1));
    c11 = f32x4.add(c11, f32x4.mul(b1, s1));
    c12 = f32x4.add(c12, f32x4.mul(b2, s1));
    c13 = f32x4.add(c13, f32x4.mul(b3, s1));
    a += 4;
    b += 64;
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

export function panel1x16(a: usize, b: usize, steps: i32, c: usize, mode: i32): void {
  let c00 = f32x4.splat(0);
  let c01 = f32x4.splat(0);
  let c02 = f32x4.splat(0);
  let c03 = f32x4.splat(0);
  if (mode == 2) {
    c00 = v128.load(c, 0);
    c01 = v128.load(c, 16);
    c02 = v128.load(c, 32);
    c03 = v128.load(c, 48);
  }
  for (let t = steps; t > 0; t--) {
    const b0 = v128.load(b, 0);
    const b1 = v128.load(b, 16);
    const b2 = v128.load(b, 32);
    const b3 = v128.load(b, 48);
    const s0 = v128.load32_splat(a);
    c00 = f32x4.add(c00, f32x4.mul(b0, s0));
    c01 = f32x4.add(c01, f32x4.mul(b1, s0));
    c02 = f32x4.add(c02, f32x4.mul(b2, s0));
    c03 = f32x4.add(c03, f32x4.mul(b3, s0));
    a += 4;
    b += 64;
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

export function rows4x8(a: usize, aRow: usize, b: usize, bStride: usize, steps: i32, c: usize, cStride: usize, mode: i32): void {
  const aRow2 = 2 * aRow;
  const aRow3 = 3 * aRow;
  const cStride2 = 2 * cStride;
  const cStride3 = 3 * cStride;
  let c00 = f32x4.splat(0);
  let c01 = f32x4.splat(0);
  let c10 = f32x4.splat(0);
  let c11 = f32x4.splat(0);
  let c20 = f32x4.splat(0);
  let c21 = f32x4.splat(0);
  let c30 = f32x4.splat(0);
  let c31 = f32x4.splat(0);
  if (mode == 2) {
    c00 = v128.load(c, 0);
    c01 = v128.load(c, 16);
    c10 = v128.load(c + cStride, 0);
    c11 = v128.load(c + cStride, 16);
    c20 = v128.load(c + cStride2, 0);
    c21 = v128.load(c + cStride2, 16);
    c30 = v128.load(c + cStride3, 0);
    c31 = v128.load(c + cStride3, 16);
  }
  for (let t = steps; t > 0; t--) {
    const b0 = v128.load(b, 0);
    const b1 = v128.load(b, 16);
    const s0 = v128.load32_splat(a);
    c00 = f32x4.add(c00, f32x4.mul(b0, s0));
    c01 = f32x4.add(c01, f32x4.mul(b1, s0));
    const s1 = v128.load32_splat(a + aRow);
    c10 = f32x4.add(c10, f32x4.mul(b0, s1));
    c11 = f32x4.add(c11, f32x4.mul(b1, s1));
    const s2 = v128.load32_splat(a + aRow2);
    c20 = f32x4.add(c20, f32x4.mul(b0, s2));
    c21 = f32x4.add(c21, f32x4.mul(b1, s2));
    const s3 = v128.load32_splat(a + aRow3);
    c30 = f32x4.add(c30, f32x4.mul(b0, s3));
    c31 = f32x4.add(c31, f32x4.mul(b1, s3));
    a += 4;
    b += bStride;
  }
  if (mode == 1) {
    c00 = f32x4.add(v128.load(c, 0), c00);
    c01 = f32x4.add(v128.load(c, 16), c01);
    c10 = f32x4.add(v128.load(c + cStride, 0), c10);
    c11 = f32x4.add(v128.load(c + cStride, 16), c11);
    c20 = f32x4.add(v128.load(c + cStride2, 0), c20);
    c21 = f32x4.add(v128.load(c + cStride2, 16), c21);
    c30 = f32x4.add(v128.load(c + cStride3, 0), c30);
    c31 = f32x4.add(v128.load(c + cStride3, 16), c31);
  }
  v128.store(c, c00, 0);
  v128.store(c, c01, 16);
  v128.store(c + cStride, c10, 0);
  v128.store(c + cStride, c11, 16);
  v128.store(c + cStride2, c20, 0);
  v128.store(c + cStride2, c21, 16);
  v128.store(c + cStride3, c30, 0);
  v128.store(c + cStride3, c31, 16);
}

export function rows2x16(a: usize, aRow: usize, b: usize, bStride: usize, steps: i32, c: usize, cStride: usize, mode: i32): void {
  let c00 = f32x4.splat(0);
  let c01 = f32x4.splat(0);
  let c02 = f32x4.splat(0);
  let c03 = f32x4.splat(0);
  let c10 = f32x4.splat(0);
  let c11 = f32x4.splat(0);
  let c12 = f32x4.splat(0);
  let c13 = f32x4.splat(0);
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
  for (let t = steps; t > 0; t--) {
    const b0 = v128.load(b, 0);
    const b1 = v128.load(b, 16);
    const b2 = v128.load(b, 32);
    const b3 = v128.load(b, 48);
    const s0 = v128.load32_splat(a);
    c00 = f32x4.add(c00, f32x4.mul(b0, s0));
    c01 = f32x4.add(c01, f32x4.mul(b1, s0));
    c02 = f32x4.add(c02, f32x4.mul(b2, s0));
    c03 = f32x4.add(c03, f32x4.mul(b3, s0));
    const s1 = v128.load32_splat(a + aRow);
    c10 = f32x4.add(c10, f32x4.mul(b0, s1));
    c11 = f32x4.add(c11, f32x4.mul(b1, s1));
    c12 = f32x4.add(c12, f32x4.mul(b2, s1));
    c13 = f32x4.add(c13, f32x4.mul(b3, s1));
    a += 4;
    b += bStride;
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

export function rows2x8(a: usize, aRow: usize, b: usize, bStride: usize, steps: i32, c: usize, cStride: usize, mode: i32): void {
  let c00 = f32x4.splat(0);
  let c01 = f32x4.splat(0);
  let c10 = f32x4.splat(0);
  let c11 = f32x4.splat(0);
  if (mode == 2) {
    c00 = v128.load(c, 0);
    c01 = v128.load(c, 16);
    c10 = v128.load(c + cStride, 0);
    c11 = v128.load(c + cStride, 16);
  }
  for (let t = steps; t > 0; t--) {
    const b0 = v128.load(b, 0);
    const b1 = v128.load(b, 16);
    const s0 = v128.load32_splat(a);
    c00 = f32x4.add(c00, f32x4.mul(b0, s0));
    c01 = f32x4.add(c01, f32x4.mul(b1, s0));
    const s1 = v128.load32_splat(a + aRow);
    c10 = f32x4.add(c10, f32x4.mul(b0, s1));
    c11 = f32x4.add(c11, f32x4.mul(b1, s1));
    a += 4;
    b += bStride;
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

export function rows1x32(a: usize, b: usize, bStride: usize, steps: i32, c: usize, mode: i32): void {
  let c00 = f32x4.splat(0);
  let c01 = f32x4.splat(0);
  let c02 = f32x4.splat(0);
  let c03 = f32x4.splat(0);
  let c04 = f32x4.splat(0);
  let c05 = f32x4.splat(0);
  let c06 = f32x4.splat(0);
  let c07 = f32x4.splat(0);
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
  for (let t = steps; t > 0; t--) {
    const b0 = v128.load(b, 0);
    const b1 = v128.load(b, 16);
    const b2 = v128.load(b, 32);
    const b3 = v128.load(b, 48);
    const b4 = v128.load(b, 64);
    const b5 = v128.load(b, 80);
    const b6 = v128.load(b, 96);
    const b7 = v128.load(b, 112);
    const s0 = v128.load32_splat(a);
    c00 = f32x4.add(c00, f32x4.mul(b0, s0));
    c01 = f32x4.add(c01, f32x4.mul(b1, s0));
    c02 = f32x4.add(c02, f32x4.mul(b2, s0));
    c03 = f32x4.add(c03, f32x4.mul(b3, s0));
    c04 = f32x4.add(c04, f32x4.mul(b4, s0));
    c05 = f32x4.add(c05, f32x4.mul(b5, s0));
    c06 = f32x4.add(c06, f32x4.mul(b6, s0));
    c07 = f32x4.add(c07, f32x4.mul(b7, s0));
    a += 4;
    b += bStride;
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

export function rows1x16(a: usize, b: usize, bStride: usize, steps: i32, c: usize, mode: i32): void {
  let c00 = f32x4.splat(0);
  let c01 = f32x4.splat(0);
  let c02 = f32x4.splat(0);
  let c03 = f32x4.splat(0);
  if (mode == 2) {
    c00 = v128.load(c, 0);
    c01 = v128.load(c, 16);
    c02 = v128.load(c, 32);
    c03 = v128.load(c, 48);
  }
  for (let t = steps; t > 0; t--) {
    const b0 = v128.load(b, 0);
    const b1 = v128.load(b, 16);
    const b2 = v128.load(b, 32);
    const b3 = v128.load(b, 48);
    const s0 = v128.load32_splat(a);
    c00 = f32x4.add(c00, f32x4.mul(b0, s0));
    c01 = f32x4.add(c01, f32x4.mul(b1, s0));
    c02 = f32x4.add(c02, f32x4.mul(b2, s0));
    c03 = f32x4.add(c03, f32x4.mul(b3, s0));
    a += 4;
    b += bStride;
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

export function rows1x8(a: usize, b: usize, bStride: usize, steps: i32, c: usize, mode: i32): void {
  let c00 = f32x4.splat(0);
  let c01 = f32x4.splat(0);
  if (mode == 2) {
    c00 = v128.load(c, 0);
    c01 = v128.load(c, 16);
  }
  for (let t = steps; t > 0; t--) {
    const b0 = v128.load(b, 0);
    const b1 = v128.load(b, 16);
    const s0 = v128.load32_splat(a);
    c00 = f32x4.add(c00, f32x4.mul(b0, s0));
    c01 = f32x4.add(c01, f32x4.mul(b1, s0));
    a += 4;
    b += bStride;
  }
  if (mode == 1) {
    c00 = f32x4.add(v128.load(c, 0), c00);
    c01 = f32x4.add(v128.load(c, 16), c01);
  }
  v128.store(c, c00, 0);
  v128.store(c, c01, 16);
}

export function columns4x8(a: usize, aStride: usize, b: usize, bStride: usize, steps: i32, c: usize, cStride: usize, mode: i32): void {
  const cStride2 = 2 * cStride;
  const cStride3 = 3 * cStride;
  let c00 = f32x4.splat(0);
  let c01 = f32x4.splat(0);
  let c10 = f32x4.splat(0);
  let c11 = f32x4.splat(0);
  let c20 = f32x4.splat(0);
  let c21 = f32x4.splat(0);
  let c30 = f32x4.splat(0);
  let c31 = f32x4.splat(0);
  if (mode == 2) {
    c00 = v128.load(c, 0);
    c01 = v128.load(c, 16);
    c10 = v128.load(c + cStride, 0);
    c11 = v128.load(c + cStride, 16);
    c20 = v128.load(c + cStride2, 0);
    c21 = v128.load(c + cStride2, 16);
    c30 = v128.load(c + cStride3, 0);
    c31 = v128.load(c + cStride3, 16);
  }
  for (let t = steps; t > 0; t--) {
    const b0 = v128.load(b, 0);
    const b1 = v128.load(b, 16);
    const s0 = v128.load32_splat(a, 0);
    c00 = f32x4.add(c00, f32x4.mul(b0, s0));
    c01 = f32x4.add(c01, f32x4.mul(b1, s0));
    const s1 = v128.load32_splat(a, 4);
    c10 = f32x4.add(c10, f32x4.mul(b0, s1));
    c11 = f32x4.add(c11, f32x4.mul(b1, s1));
    const s2 = v128.load32_splat(a, 8);
    c20 = f32x4.add(c20, f32x4.mul(b0, s2));
    c21 = f32x4.add(c21, f32x4.mul(b1, s2));
    const s3 = v128.load32_splat(a, 12);
    c30 = f32x4.add(c30, f32x4.mul(b0, s3));
    c31 = f32x4.add(c31, f32x4.mul(b1, s3));
    a += aStride;
    b += bStride;
  }
  if (mode == 1) {
    c00 = f32x4.add(v128.load(c, 0), c00);
    c01 = f32x4.add(v128.load(c, 16), c01);
    c10 = f32x4.add(v128.load(c + cStride, 0), c10);
    c11 = f32x4.add(v128.load(c + cStride, 16), c11);
    c20 = f32x4.add(v128.load(c + cStride2, 0), c20);
    c21 = f32x4.add(v128.load(c + cStride2, 16), c21);
    c30 = f32x4.add(v128.load(c + cStride3, 0), c30);
    c31 = f32x4.add(v128.load(c + cStride3, 16), c31);
  }
  v128.store(c, c00, 0);
  v128.store(c, c01, 16);
  v128.store(c + cStride, c10, 0);
  v128.store(c + cStride, c11, 16);
  v128.store(c + cStride2, c20, 0);
  v128.store(c + cStride2, c21, 16);
  v128.store(c + cStride3, c30, 0);
  v128.store(c + cStride3, c31, 16);
}

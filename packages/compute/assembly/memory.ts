/** Argument access and small copies shared by the kernels. Arguments are 4-byte words behind one pointer. */

// @ts-ignore: decorator
@inline
export function argument(a: usize, i: i32): i32 {
  return load<i32>(a + (<usize>i << 2));
}
// @ts-ignore: decorator
@inline
export function pointer(a: usize, i: i32): usize {
  return load<usize>(a + (<usize>i << 2));
}
// @ts-ignore: decorator
@inline
export function scalar(a: usize, i: i32): f32 {
  return load<f32>(a + (<usize>i << 2));
}

/** dst = src for `count` floats. */
export function copyFloats(dst: usize, src: usize, count: i32): void {
  let i = 0;
  for (; i + 8 <= count; i += 8) {
    v128.store(dst, v128.load(src));
    v128.store(dst, v128.load(src, 16), 16);
    dst += 32;
    src += 32;
  }
  for (; i < count; i++) {
    store<f32>(dst, load<f32>(src));
    dst += 4;
    src += 4;
  }
}

/** dst = value for `count` floats. */
export function fillFloats(dst: usize, value: f32, count: i32): void {
  const v = f32x4.splat(value);
  let i = 0;
  for (; i + 4 <= count; i += 4) {
    v128.store(dst, v);
    dst += 16;
  }
  for (; i < count; i++) {
    store<f32>(dst, value);
    dst += 4;
  }
}

/** Copies a rectangle of floats; strides in bytes. */
export function copyTile(
  dst: usize,
  dstStride: usize,
  src: usize,
  srcStride: usize,
  rows: i32,
  columns: i32,
): void {
  for (let r = 0; r < rows; r++) {
    copyFloats(dst, src, columns);
    dst += dstStride;
    src += srcStride;
  }
}

/**
 * Writes the register tiles of the kernels (assembly/tiles.ts). A tile adds a sum of outer products,
 *   c[i][j] (+)= sum over t, in order, of a[i][t] * b[t][j],
 * with lanes across j. `rows` tiles read a[i][t] along rows (a row pointer each), `columns` tiles read a[0..3][t]
 * side by side. Unrolling happens here so that every address is a pointer plus a constant.
 * mode 0: c = sum; 1: c = c + sum; 2: the sum starts from c.
 */

const vectors = (lanes) => Array.from({ length: lanes / 4 }, (_, j) => j);
const range = (n) => Array.from({ length: n }, (_, i) => i);

function tile({ name, rows, lanes, layout, bStride, unroll }) {
  const acc = (i, j) => `c${i}${j}`;
  const each = (f) => range(rows).flatMap((i) => vectors(lanes).map((j) => f(i, j)));
  const fixed = bStride !== undefined;
  const step = (u) => {
    const lines = [];
    const bOffset = fixed ? u * bStride : 0;
    for (const j of vectors(lanes)) lines.push(`b${j} = v128.load(b, ${bOffset + j * 16});`);
    for (const i of range(rows)) {
      const source = layout === "rows" ? `a${i}, ${u * 4}` : `a0, ${i * 4}`;
      lines.push(`s = v128.load32_splat(${source});`);
      for (const j of vectors(lanes))
        lines.push(`${acc(i, j)} = f32x4.add(${acc(i, j)}, f32x4.mul(b${j}, s));`);
    }
    if (!fixed) lines.push("b += bStride;");
    if (layout === "columns") lines.push("a0 += aStride;");
    return lines;
  };
  const advance = (u) => [
    ...(fixed ? [`b += ${u * bStride};`] : []),
    ...(layout === "rows" ? range(rows).map((i) => `a${i} += ${u * 4};`) : []),
  ];
  const cPointer = (i) => (i === 0 ? "c" : `c + ${i === 1 ? "" : `${i} * `}cStride`);
  const parameters = [
    "a0: usize",
    ...(rows > 1 && layout === "rows" ? ["aRow: usize"] : []),
    ...(layout === "columns" ? ["aStride: usize"] : []),
    "b: usize",
    ...(fixed ? [] : ["bStride: usize"]),
    "steps: i32",
    "c: usize",
    ...(rows > 1 ? ["cStride: usize"] : []),
    "mode: i32",
  ];
  const body = [
    ...(layout === "rows"
      ? range(rows)
          .slice(1)
          .map((i) => `let a${i} = a${i - 1} + aRow;`)
      : []),
    ...each((i, j) => `let ${acc(i, j)} = f32x4.splat(0);`),
    ...vectors(lanes).map((j) => `let b${j}: v128;`),
    "let s: v128;",
    "if (mode == 2) {",
    ...each((i, j) => `  ${acc(i, j)} = v128.load(${cPointer(i)}, ${j * 16});`),
    "}",
    "let t = steps;",
    `for (; t >= ${unroll}; t -= ${unroll}) {`,
    ...range(unroll).flatMap((u) => step(u).map((l) => `  ${l}`)),
    ...advance(unroll).map((l) => `  ${l}`),
    "}",
    "for (; t > 0; t--) {",
    ...step(0).map((l) => `  ${l}`),
    ...advance(1).map((l) => `  ${l}`),
    "}",
    "if (mode == 1) {",
    ...each(
      (i, j) => `  ${acc(i, j)} = f32x4.add(v128.load(${cPointer(i)}, ${j * 16}), ${acc(i, j)});`,
    ),
    "}",
    ...each((i, j) => `v128.store(${cPointer(i)}, ${acc(i, j)}, ${j * 16});`),
  ];
  return `export function ${name}(${parameters.join(", ")}): void {\n${body.map((l) => `  ${l}\n`).join("")}}\n`;
}

/** The text of assembly/tiles.ts. */
export function tilesSource() {
  const panel = { layout: "rows", bStride: 64, unroll: 4 };
  const free = { layout: "rows", unroll: 4 };
  const tiles = [
    { name: "panel4x8", rows: 4, lanes: 8, ...panel },
    { name: "panel2x16", rows: 2, lanes: 16, ...panel },
    { name: "panel1x16", rows: 1, lanes: 16, ...panel },
    { name: "rows4x8", rows: 4, lanes: 8, ...free },
    { name: "rows2x16", rows: 2, lanes: 16, ...free },
    { name: "rows2x8", rows: 2, lanes: 8, ...free },
    { name: "rows1x32", rows: 1, lanes: 32, ...free },
    { name: "rows1x16", rows: 1, lanes: 16, ...free },
    { name: "rows1x8", rows: 1, lanes: 8, ...free },
    { name: "columns4x8", rows: 4, lanes: 8, layout: "columns", unroll: 4 },
  ];
  return `// Written by scripts/tiles.mjs; the law of the tiles is stated there.\n${tiles.map(tile).join("\n")}`;
}

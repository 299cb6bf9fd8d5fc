/**
 * Writes the register tiles of the kernels (assembly/tiles.ts). A tile adds a sum of outer products,
 *   c[i][j] (+)= sum over t, in order, of a[i][t] * b[t][j],
 * with lanes across j. `rows` tiles read a[i][t] along rows (a row pointer each), `columns` tiles read a[0..3][t]
 * side by side. The step is not unrolled: V8 moves all loads of a block to its start, and more than one step's values
 * do not fit the 16 vector registers (measured: 34 GFLOP/s as here, 24 with four steps, on a 44 GFLOP/s core).
 * mode 0: c = sum; 1: c = c + sum; 2: the sum starts from c.
 */

const vectors = (lanes) => Array.from({ length: lanes / 4 }, (_, j) => j);
const range = (n) => Array.from({ length: n }, (_, i) => i);

function tile({ name, rows, lanes, layout, bStride }) {
  const acc = (i, j) => `c${i}${j}`;
  const each = (f) => range(rows).flatMap((i) => vectors(lanes).map((j) => f(i, j)));
  const multiple = (name, i) => (i === 0 ? "" : i === 1 ? ` + ${name}` : ` + ${name}${i}`);
  const multiples = (name) =>
    range(rows)
      .slice(2)
      .map((i) => `const ${name}${i} = ${i} * ${name};`);
  const source = (i) => (layout === "rows" ? `a${multiple("aRow", i)}` : `a, ${i * 4}`);
  const cPointer = (i) => `c${multiple("cStride", i)}`;
  const parameters = [
    "a: usize",
    ...(rows > 1 && layout === "rows" ? ["aRow: usize"] : []),
    ...(layout === "columns" ? ["aStride: usize"] : []),
    "b: usize",
    ...(bStride === undefined ? ["bStride: usize"] : []),
    "steps: i32",
    "c: usize",
    ...(rows > 1 ? ["cStride: usize"] : []),
    "mode: i32",
  ];
  const body = [
    ...(layout === "rows" ? multiples("aRow") : []),
    ...(rows > 1 ? multiples("cStride") : []),
    ...each((i, j) => `let ${acc(i, j)} = f32x4.splat(0);`),
    "if (mode == 2) {",
    ...each((i, j) => `  ${acc(i, j)} = v128.load(${cPointer(i)}, ${j * 16});`),
    "}",
    "for (let t = steps; t > 0; t--) {",
    ...vectors(lanes).map((j) => `  const b${j} = v128.load(b, ${j * 16});`),
    ...range(rows).flatMap((i) => [
      `  const s${i} = v128.load32_splat(${source(i)});`,
      ...vectors(lanes).map(
        (j) => `  ${acc(i, j)} = f32x4.add(${acc(i, j)}, f32x4.mul(b${j}, s${i}));`,
      ),
    ]),
    `  a += ${layout === "rows" ? 4 : "aStride"};`,
    `  b += ${bStride ?? "bStride"};`,
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
  const panel = { layout: "rows", bStride: 64 };
  const free = { layout: "rows" };
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
    { name: "columns4x8", rows: 4, lanes: 8, layout: "columns" },
  ];
  return `// Written by scripts/tiles.mjs; the law of the tiles is stated there.\n${tiles.map(tile).join("\n")}`;
}

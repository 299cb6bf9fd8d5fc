/**
 * Token tries for the contract suites, built from plain sequences.
 */
import type { TokenTrie } from "@gimbal-rl/core";

/** A trie and the row of each token of each sequence. */
export interface BuiltTrie {
  readonly trie: TokenTrie;
  readonly rowsOf: readonly (readonly number[])[];
}

interface Node {
  readonly id: number;
  readonly children: Map<number, Node>;
  row: number;
}

/**
 * Merges sequences into a trie.
 * @param longest - cuts segments into pieces of at most this many rows.
 */
export function buildTrie(
  sequences: readonly (readonly number[])[],
  longest: number = Number.POSITIVE_INFINITY,
): BuiltTrie {
  const roots = new Map<number, Node>();
  const paths = sequences.map((sequence) => {
    let children = roots;
    return sequence.map((id) => {
      const node: Node = children.get(id) ?? { id, children: new Map(), row: -1 };
      children.set(id, node);
      children = node.children;
      return node;
    });
  });
  const tokenIds: number[] = [];
  const positions: number[] = [];
  const parentRows: number[] = [];
  const segmentStarts: number[] = [];
  const segmentParents: number[] = [];
  const place = (first: Node, depth: number, parentRow: number, parentSegment: number): void => {
    let [segment, length] = [parentSegment, longest];
    let [node, above, position] = [first, parentRow, depth];
    for (;;) {
      if (length >= longest || node === first) {
        segmentParents.push(segment);
        segment = segmentStarts.push(tokenIds.length) - 1;
        length = 0;
      }
      length += 1;
      node.row = tokenIds.push(node.id) - 1;
      positions.push(position);
      parentRows.push(above);
      above = node.row;
      position += 1;
      const [only, ...more] = node.children.values();
      if (only === undefined || more.length > 0) break;
      node = only;
    }
    for (const child of node.children.values()) place(child, position, above, segment);
  };
  for (const root of roots.values()) place(root, 0, -1, -1);
  return {
    trie: {
      tokenIds: Int32Array.from(tokenIds),
      positions: Int32Array.from(positions),
      parentRows: Int32Array.from(parentRows),
      segmentStarts: Int32Array.from(segmentStarts),
      segmentParents: Int32Array.from(segmentParents),
    },
    rowsOf: paths.map((path) => path.map((node) => node.row)),
  };
}

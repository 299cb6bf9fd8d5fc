/**
 * Sequences -> one token trie with a list of loss terms.
 *
 * Laws: rows are the unique tokens (equal prefixes share rows); parents come before children; a segment's rows are
 * contiguous and it hangs below the last row of its parent; every term of every sequence is kept, in the order given,
 * so two attempts that sampled the same tokens share rows and keep two terms.
 */
import type { LossTerms, TokenTrie } from "@gimbal-rl/core";
import {
  createRadixTree,
  insertSequence,
  matchedLength,
  nodesInOrder,
  type RadixNode,
} from "./radix-tree.js";
import type { TermSequence } from "./term-sequence.js";

/** A trie that grows until it is built. */
export interface TrieBuilder {
  /** Unique tokens so far. */
  rows(): number;
  /** Rows that the sequence would add. */
  addedRows(sequence: TermSequence): number;
  add(sequence: TermSequence): void;
  build(): { readonly trie: TokenTrie; readonly terms: LossTerms };
}

function layOut(
  root: RadixNode,
  rows: number,
): { trie: TokenTrie; firstRows: Map<RadixNode, number> } {
  const nodes = nodesInOrder(root);
  const trie: TokenTrie = {
    tokenIds: new Int32Array(rows),
    positions: new Int32Array(rows),
    parentRows: new Int32Array(rows),
    segmentStarts: new Int32Array(nodes.length),
    segmentParents: new Int32Array(nodes.length),
  };
  const firstRows = new Map<RadixNode, number>();
  const segmentOf = new Map<RadixNode, number>();
  let row = 0;
  nodes.forEach((node, segment) => {
    const { parent } = node;
    const isRoot = parent === null || parent === root;
    const parentFirst = isRoot ? 0 : (firstRows.get(parent) ?? 0);
    firstRows.set(node, row);
    segmentOf.set(node, segment);
    trie.segmentStarts[segment] = row;
    trie.segmentParents[segment] = isRoot ? -1 : (segmentOf.get(parent) ?? -1);
    let parentRow = isRoot ? -1 : parentFirst + (parent.end - parent.start) - 1;
    for (let at = node.start; at < node.end; at += 1) {
      trie.tokenIds[row] = node.tokens[at];
      trie.positions[row] = node.depth + at - node.start;
      trie.parentRows[row] = parentRow;
      parentRow = row;
      row += 1;
    }
  });
  return { trie, firstRows };
}

/** Row of every position of a sequence that is in the tree. */
function rowsOf(
  root: RadixNode,
  ids: Int32Array,
  firstRows: ReadonlyMap<RadixNode, number>,
): Int32Array {
  const rows = new Int32Array(ids.length);
  let node = root;
  for (let position = 0; position < ids.length; ) {
    const child = node.children.get(ids[position]);
    if (child === undefined) throw new Error("a sequence left the trie it was added to");
    const run = Math.min(child.end - child.start, ids.length - position);
    const first = firstRows.get(child) ?? 0;
    for (let i = 0; i < run; i += 1) rows[position + i] = first + i;
    position += run;
    node = child;
  }
  return rows;
}

/** An empty builder. */
export function createTrieBuilder(): TrieBuilder {
  const root = createRadixTree();
  const sequences: TermSequence[] = [];
  let rowCount = 0;
  const addedRows = ({ ids }: TermSequence): number => ids.length - matchedLength(root, ids);
  return {
    rows: () => rowCount,
    addedRows,
    add: (sequence) => {
      rowCount += addedRows(sequence);
      insertSequence(root, sequence.ids, sequence.ids.length, false);
      sequences.push(sequence);
    },
    build: () => {
      const { trie, firstRows } = layOut(root, rowCount);
      const count = sequences.reduce((sum, sequence) => sum + sequence.terms.length, 0);
      const terms: LossTerms = {
        rows: new Int32Array(count),
        targetIds: new Int32Array(count),
        attempts: new Int32Array(count),
        advantages: new Float32Array(count),
        behaviourLogprobs: new Float32Array(count),
        weights: new Float32Array(count),
      };
      let at = 0;
      for (const sequence of sequences) {
        const rows = rowsOf(root, sequence.ids, firstRows);
        for (const term of sequence.terms) {
          terms.rows[at] = rows[term.position - 1];
          terms.targetIds[at] = sequence.ids[term.position];
          terms.attempts[at] = term.attempt;
          terms.advantages[at] = term.advantage;
          terms.behaviourLogprobs[at] = term.behaviourLogprob;
          terms.weights[at] = term.weight;
          at += 1;
        }
      }
      return { trie, terms };
    },
  };
}

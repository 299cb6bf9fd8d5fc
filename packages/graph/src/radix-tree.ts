/**
 * A compressed trie over token sequences: each node is a run of tokens without a branching point inside.
 *
 * Laws: the path to a node spells the sequences inserted through it; the set of paths does not depend on the order of
 * insertion; inserting costs the length of the sequence. Nodes borrow the arrays they were given, so callers must not
 * change them afterwards.
 */

/** One run of tokens. A split keeps the *lower* half's identity, so marks on a node stay at the end of its path. */
export interface RadixNode {
  readonly tokens: ArrayLike<number>;
  /** The run is `tokens[start .. end)`. */
  start: number;
  readonly end: number;
  /** Position of the run's first token. */
  depth: number;
  parent: RadixNode | null;
  /** By first token. */
  readonly children: Map<number, RadixNode>;
}

/** How far a sequence is already in the tree. */
interface Match {
  readonly node: RadixNode;
  /** Tokens of `node`'s run that match; equals the run's length when it matches whole. */
  readonly used: number;
  readonly length: number;
}

/** An empty tree: a node with an empty run. */
export function createRadixTree(): RadixNode {
  return { tokens: [], start: 0, end: 0, depth: 0, parent: null, children: new Map() };
}

function match(root: RadixNode, tokens: ArrayLike<number>, length: number): Match {
  let node = root;
  let position = 0;
  for (;;) {
    if (position === length) return { node, used: node.end - node.start, length: position };
    const child = node.children.get(tokens[position]);
    if (child === undefined) return { node, used: node.end - node.start, length: position };
    node = child;
    const run = Math.min(node.end - node.start, length - position);
    let used = 1;
    while (used < run && node.tokens[node.start + used] === tokens[position + used]) used += 1;
    position += used;
    if (used < node.end - node.start) return { node, used, length: position };
  }
}

/** Number of leading tokens of the sequence that the tree already holds. */
export function matchedLength(
  root: RadixNode,
  tokens: ArrayLike<number>,
  length: number = tokens.length,
): number {
  return match(root, tokens, length).length;
}

function split(node: RadixNode, used: number): RadixNode {
  const { parent } = node;
  const upper: RadixNode = {
    tokens: node.tokens,
    start: node.start,
    end: node.start + used,
    depth: node.depth,
    parent,
    children: new Map(),
  };
  parent?.children.set(node.tokens[node.start], upper);
  node.start += used;
  node.depth += used;
  node.parent = upper;
  upper.children.set(node.tokens[node.start], node);
  return upper;
}

/**
 * Inserts `tokens[0 .. length)`.
 * @param atBoundary - When true, the sequence is made to end at a node's end, which is returned; when false a sequence
 * that ends inside a run leaves the run whole.
 */
export function insertSequence(
  root: RadixNode,
  tokens: ArrayLike<number>,
  length: number,
  atBoundary: boolean,
): RadixNode {
  const found = match(root, tokens, length);
  let node = found.node;
  const inside = found.used < node.end - node.start;
  if (found.length === length) return inside && atBoundary ? split(node, found.used) : node;
  if (inside) node = split(node, found.used);
  const leaf: RadixNode = {
    tokens,
    start: found.length,
    end: length,
    depth: found.length,
    parent: node,
    children: new Map(),
  };
  node.children.set(tokens[found.length], leaf);
  return leaf;
}

/** The nodes that the sequence fully covers, from the root down, the empty root left out. */
export function coveredNodes(
  root: RadixNode,
  tokens: ArrayLike<number>,
  length: number = tokens.length,
): RadixNode[] {
  const path: RadixNode[] = [];
  const found = match(root, tokens, length);
  let node: RadixNode | null = found.node;
  if (found.used < node.end - node.start) node = node.parent;
  for (; node !== null && node !== root; node = node.parent) path.push(node);
  return path.reverse();
}

/** Every node below the root, parents first, children in order of insertion. */
export function nodesInOrder(root: RadixNode): RadixNode[] {
  const order: RadixNode[] = [];
  const stack = [...root.children.values()].reverse();
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    order.push(node);
    stack.push(...[...node.children.values()].reverse());
  }
  return order;
}

/**
 * Changes to a parsed template: Python semantics through our own functions, and marks in loops.
 *
 * The library exports no node classes, so new nodes are made by parsing small templates, and nodes are read by shape.
 */
import { GimbalError } from "@gimbal-rl/core";
import { Template } from "@huggingface/jinja";

interface Node {
  type: string;
  [field: string]: unknown;
}

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && "type" in value;
}

/** Filters of the library, for any operand type. */
const knownFilters: ReadonlySet<string> = new Set(
  `abs bool capitalize default dictsort first float get indent int items join keys last length list lower map
   rejectattr replace reverse safe selectattr sort string title tojson trim unique upper values`.split(
    /\s+/,
  ),
);

const stripMethods: ReadonlySet<string> = new Set(["strip", "lstrip", "rstrip"]);

/** Visits every node below `root`, parents after children, replacing each by what `visit` returns. */
function transform(value: unknown, visit: (node: Node) => unknown): unknown {
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i += 1) value[i] = transform(value[i], visit);
    return value;
  }
  if (value instanceof Map) {
    const entries = [...value].map(
      ([key, inner]) => [transform(key, visit), transform(inner, visit)] as const,
    );
    value.clear();
    for (const [key, inner] of entries) value.set(key, inner);
    return value;
  }
  if (!isNode(value)) return value;
  for (const field of Object.keys(value)) {
    const child = value[field];
    if (typeof child === "object" && child !== null) value[field] = transform(child, visit);
  }
  return visit(value);
}

function callNode(name: string, args: unknown[]): Node {
  const program = new Template(`{{ ${name}() }}`).parsed as unknown as { body: Node[] };
  const call = program.body.find((node) => node.type === "CallExpression");
  if (call === undefined)
    throw new GimbalError(
      "template-unsupported",
      "The template library parsed a call to something else; use @huggingface/jinja 0.5.",
    );
  call.args = args;
  return call;
}

function identifierName(node: unknown): string | null {
  return isNode(node) && node.type === "Identifier" && typeof node.value === "string"
    ? node.value
    : null;
}

/** Name and arguments of the filter in a filter node. */
function filterOf(node: Node): { readonly name: string | null; readonly args: unknown[] } {
  const filter = node.filter;
  if (isNode(filter) && filter.type === "CallExpression") {
    return {
      name: identifierName(filter.callee),
      args: Array.isArray(filter.args) ? filter.args : [],
    };
  }
  return { name: identifierName(filter), args: [] };
}

/**
 * Refuses filters that the library does not have, at load instead of in the middle of a run.
 * @throws {GimbalError} `template-unsupported` naming the filter.
 */
export function checkFilters(program: unknown): void {
  transform(program, (node) => {
    if (node.type === "FilterExpression" || node.type === "FilterStatement") {
      const { name } = filterOf(node);
      if (name === null || !knownFilters.has(name)) {
        throw new GimbalError(
          "template-unsupported",
          `The chat template uses the filter "${name ?? "(computed)"}", which is not supported; known filters: ${[...knownFilters].join(", ")}. Use a template without it.`,
        );
      }
    }
    return node;
  });
}

/** Fields that hold statements; an expression there is printed. */
const blockFields = ["body", "alternate", "defaultBlock"] as const;
const literalTypes: ReadonlySet<string> = new Set(["ArrayLiteral", "TupleLiteral"]);
const silentTypes: ReadonlySet<string> = new Set(
  "Break CallStatement Comment Continue FilterStatement For If Macro Set StringLiteral".split(" "),
);

/** Python prints `True` and `None` where JavaScript prints `true` and nothing. */
function printNode(statement: unknown): unknown {
  if (!isNode(statement) || silentTypes.has(statement.type)) return statement;
  return callNode("__gimbal_text", [statement]);
}

/** Rewrites in place; with `marks`, loop bodies start with a call of `__gimbal_mark` and end with one of `__gimbal_unmark`. */
export function rewriteTemplate(program: unknown, marks: boolean): void {
  transform(program, (node) => {
    for (const field of blockFields) {
      const block = node[field];
      if (Array.isArray(block) && !literalTypes.has(node.type)) node[field] = block.map(printNode);
    }
    switch (node.type) {
      case "FilterExpression": {
        const { name, args } = filterOf(node);
        if (name === "tojson") return callNode("__gimbal_tojson", [node.operand, ...args]);
        if (name === "string") return callNode("__gimbal_text", [node.operand]);
        if (name === "trim") return callNode("__gimbal_strip", [node.operand, ...args]);
        return node;
      }
      case "BinaryExpression": {
        const { operator } = node;
        const concatenates = isNode(operator) && operator.value === "~";
        return concatenates ? callNode("__gimbal_text", [node.left, node.right]) : node;
      }
      case "CallExpression": {
        const callee = node.callee;
        if (!isNode(callee) || callee.type !== "MemberExpression" || callee.computed === true)
          return node;
        const method = identifierName(callee.property);
        if (method === null || !stripMethods.has(method)) return node;
        return callNode(`__gimbal_${method}`, [callee.object, ...(node.args as unknown[])]);
      }
      case "For": {
        if (marks && Array.isArray(node.body)) {
          const name = identifierName(node.loopvar);
          if (name !== null) {
            // The loop variable is read through a fresh identifier node; templates may set it again inside.
            const start = callNode("__gimbal_mark", [identifierNode(name)]);
            const end = callNode("__gimbal_unmark", [identifierNode(name)]);
            node.body = [start, ...node.body, end];
          }
        }
        return node;
      }
      default:
        return node;
    }
  });
}

function identifierNode(name: string): Node {
  const program = new Template(`{{ ${name} }}`).parsed as unknown as { body: Node[] };
  const node = program.body.find((candidate) => candidate.type === "Identifier");
  if (node === undefined)
    throw new GimbalError(
      "template-unsupported",
      `The chat template's loop variable "${name}" cannot be read; rename it.`,
    );
  return node;
}

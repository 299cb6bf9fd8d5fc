/**
 * fix-operator: `node check.js` names a file, a function and what it must give; the operator there is wrong.
 */
import {
  act,
  answerTo,
  bashCall,
  type ExpertCall,
  type ExpertObservation,
  type ExpertTurn,
  editCall,
  grepFileCall,
  headCall,
  makeAll,
  stuck,
} from "../expert-turn.js";
import { type HiddenCase, hiddenTestText } from "../hidden-cases.js";
import type { DeskFamily } from "../member.js";
import { withoutLineNumbers } from "../text-lines.js";

const operations = [
  { word: "sum", operator: "+", of: (a: number, b: number) => a + b },
  { word: "difference", operator: "-", of: (a: number, b: number) => a - b },
  { word: "product", operator: "*", of: (a: number, b: number) => a * b },
  { word: "quotient", operator: "/", of: (a: number, b: number) => a / b },
] as const;

type Operation = (typeof operations)[number];

/** Fix the operator that makes a check fail. */
export const fixOperator: DeskFamily = {
  name: "fix-operator",
  trained: true,
  summary:
    "run `node check.js`, fix the wrong operator in the function it names; graded by hidden node tests",
  phrasings: {
    plain: [
      "`node check.js` fails. Fix the function that it names.",
      "Run `node check.js` and repair the operator that is wrong.",
      "Make `node check.js` pass. One operator in `src` is wrong.",
      "An operator in `src` is wrong, `node check.js` tells where. Fix it.",
    ],
  },
  draw(draw) {
    const path = `src/${draw.word()}.js`;
    const name = draw.word();
    const right = draw.pick(operations);
    const wrong = draw.pick(operations.filter((one) => one !== right));
    const functions: (readonly [string, Operation])[] = [[name, wrong]];
    for (let i = draw.between(2, 3); i > 0; i -= 1) {
      functions.push([draw.word(), draw.pick(operations)]);
    }
    const order = draw.shuffle(functions);
    const repaired = order.map(
      ([one, operation]) => [one, one === name ? right : operation] as const,
    );
    const files: Record<string, string> = {
      "check.js": checkText(path, name, right),
      [path]: functionsText(order),
    };
    for (let i = draw.between(0, 2); i > 0; i -= 1) {
      files[`src/${draw.word()}.js`] = functionsText([[draw.word(), draw.pick(operations)]]);
    }
    return {
      variant: "plain",
      fields: {},
      files,
      wanted: { [path]: functionsText(repaired) },
      protectedPaths: ["check.js", "hidden/"],
      gradingFiles: { "hidden/operators.test.js": hiddenTestText(path, casesOf(repaired)) },
    };
  },
  next: (_, observations) => repair(observations, (path, name) => grepFileCall(name, path)),
  // The first line alone: right when it is the function that fails.
  nextHasty: (_, observations) => repair(observations, (path) => headCall(1, path)),
};

function repair(
  observations: readonly ExpertObservation[],
  lookInto: (path: string, name: string) => ExpertCall,
): ExpertTurn {
  const check = bashCall("node check.js");
  const said = answerTo(observations, check);
  if (said === null) return act(check);
  const named = /^(src\/\w+\.js):(\w+): must be the (\w+)$/m.exec(said);
  const [path, name, word] = [named?.[1], named?.[2], named?.[3]];
  const right = operations.find((one) => one.word === word);
  if (path === undefined || name === undefined || right === undefined) return stuck;
  const look = lookInto(path, name);
  const text = answerTo(observations, look);
  if (text === null) return act(look);
  const pattern = new RegExp(`^exports\\.${name} = \\(a, b\\) => a (.) b;$`, "m");
  const operator = pattern.exec(withoutLineNumbers(text))?.[1];
  if (operator === undefined) return stuck;
  const line = (sign: string): string => `${name} = (a, b) => a ${sign} b`;
  const edit = editCall(path, line(operator), line(right.operator));
  return makeAll(observations, [edit]);
}

function functionsText(functions: readonly (readonly [string, Operation])[]): string {
  return functions
    .map(([name, operation]) => `exports.${name} = (a, b) => a ${operation.operator} b;\n`)
    .join("");
}

// 6 and 3 give four different results, so the check fails exactly when the operator is wrong.
function checkText(path: string, name: string, operation: Operation): string {
  return [
    `const { ${name} } = require("./${path}");`,
    `if (${name}(6, 3) === ${operation.of(6, 3)}) console.log("ok");`,
    "else {",
    `  console.log("${path}:${name}: must be the ${operation.word}");`,
    "  process.exitCode = 1;",
    "}",
    "",
  ].join("\n");
}

function casesOf(functions: readonly (readonly [string, Operation])[]): HiddenCase[] {
  const numbers = [
    [12, 4],
    [9, 3],
    [20, 5],
  ] as const;
  return functions.flatMap(([name, operation]) =>
    numbers.map(([a, b]) => [name, a, b, operation.of(a, b)] as const),
  );
}

/**
 * What a run is, as it stands in `run.json`. A run is resumable from its folder alone, so everything that decides its
 * result is here or derives from it.
 */
import type { LearningRateScales } from "@gimbal-rl/compute";
import { GimbalError } from "@gimbal-rl/core";

/** A deliberately broken set-up, to show that the gain comes from the reward. */
export type RunControl = "shuffled-rewards";

/** Settings of a GRPO run. */
export interface RunConfig {
  readonly format: 1;
  /** 32-bit unsigned. */
  readonly seed: number;
  readonly steps: number;
  readonly groupsPerStep: number;
  /** Attempts per group. */
  readonly groupSize: number;
  readonly temperature: number;
  /** Peak; after the warm-up it falls linearly over the steps. */
  readonly learningRate: number;
  /** Share of the learning rate that is left at the last step; 1 = constant. */
  readonly finalLearningRateFraction: number;
  /** Multipliers by kind of parameter; absent = 1, 0 freezes. */
  readonly learningRateScales: LearningRateScales;
  /** AdamW's second-moment decay. */
  readonly adamBeta2: number;
  readonly warmupSteps: number;
  readonly weightDecay: number;
  /**
   * The gradient of the step's loss (nats times advantage, per trained token) over all parameters that are not frozen is
   * scaled down to this Euclidean norm when it is larger.
   */
  readonly maxGradientNorm: number;
  readonly klCoefficient: number;
  /** Updates per step over the same groups. */
  readonly epochs: number;
  /** Unique tokens in one forward pass. */
  readonly maxRows: number;
  /** Attempts that run at once. */
  readonly concurrency: number;
  /** Share of a group that must be in; 1 = all. */
  readonly quorum: number;
  readonly groupDeadlineMs: number | null;
  readonly control: RunControl | null;
  readonly evaluation: {
    /** Held-out tasks of the trained families, one sample each. 0 turns evaluation off. */
    readonly heldoutTasks: number;
    readonly heldoutFamilyTasks: number;
  };
  /** Versions, hashes and names that a reader needs to judge the run: plain strings and numbers. */
  readonly facts: Readonly<Record<string, string | number>>;
}

/** Defaults of every field but `seed` and `facts`. */
export const defaultRunConfig: Omit<RunConfig, "seed" | "facts"> = {
  format: 1,
  steps: 12,
  groupsPerStep: 4,
  groupSize: 8,
  temperature: 1,
  learningRate: 1e-5,
  finalLearningRateFraction: 1,
  learningRateScales: {},
  adamBeta2: 0.999,
  warmupSteps: 0,
  weightDecay: 0,
  maxGradientNorm: 1,
  klCoefficient: 0,
  epochs: 1,
  maxRows: 16_384,
  concurrency: 4,
  quorum: 1,
  groupDeadlineMs: null,
  control: null,
  evaluation: { heldoutTasks: 64, heldoutFamilyTasks: 16 },
};

type Check = readonly [name: string, isValid: (value: unknown) => boolean, expected: string];

const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 1;
const isNatural = (value: unknown): boolean => value === 0 || isCount(value);
const isPositive = (value: unknown): boolean =>
  typeof value === "number" && Number.isFinite(value) && value > 0;
const isNotNegative = (value: unknown): boolean => value === 0 || isPositive(value);

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** All kinds; the compiler notices a missing one. */
const scaleKinds: Readonly<Record<keyof LearningRateScales, true>> = {
  embedding: true,
  norm: true,
  attention: true,
  mlp: true,
  finalNorm: true,
};
const isScales = (value: unknown): boolean =>
  isRecord(value) &&
  Object.entries(value).every(
    ([kind, scale]) => Object.hasOwn(scaleKinds, kind) && isNotNegative(scale),
  );

const evaluationNames = ["heldoutTasks", "heldoutFamilyTasks"] as const;

const checks: readonly Check[] = [
  ["format", (value) => value === 1, "1 (written by this version of Gimbal)"],
  ["seed", (value) => isNatural(value) && (value as number) < 2 ** 32, "a whole number below 2^32"],
  ["steps", isNatural, "a whole number"],
  ["groupsPerStep", isCount, "a whole number from 1"],
  ["groupSize", (value) => isCount(value) && (value as number) >= 2, "a whole number from 2"],
  ["temperature", isPositive, "a number above 0"],
  ["learningRate", isPositive, "a number above 0"],
  [
    "finalLearningRateFraction",
    (value) => isNotNegative(value) && (value as number) <= 1,
    "a share from 0 to 1",
  ],
  [
    "learningRateScales",
    isScales,
    `multipliers from 0 by kind of parameter (${Object.keys(scaleKinds).join(", ")})`,
  ],
  ["adamBeta2", (value) => isPositive(value) && (value as number) < 1, "a number in (0, 1)"],
  ["warmupSteps", isNatural, "a whole number"],
  ["weightDecay", isNotNegative, "a number from 0"],
  ["maxGradientNorm", isPositive, "a number above 0"],
  ["klCoefficient", isNotNegative, "a number from 0"],
  ["epochs", isCount, "a whole number from 1"],
  ["maxRows", isCount, "a whole number from 1"],
  ["concurrency", isCount, "a whole number from 1"],
  ["quorum", (value) => isPositive(value) && (value as number) <= 1, "a share in (0, 1]"],
  ["groupDeadlineMs", (value) => value === null || isCount(value), "null or milliseconds"],
  [
    "control",
    (value) => value === null || value === "shuffled-rewards",
    "null or shuffled-rewards",
  ],
];

/**
 * Checks a configuration read from disk or built from flags. A name that is not known is refused, not ignored: it may be
 * a misspelt setting, or one that a newer Gimbal obeys.
 * @throws {GimbalError} `config-invalid`, naming the field.
 */
export function parseRunConfig(value: unknown): RunConfig {
  const refuse = (name: string, expected: string, found: unknown): never => {
    throw new GimbalError(
      "config-invalid",
      `Run setting "${name}" must be ${expected}; got ${JSON.stringify(found) ?? "nothing"}.`,
    );
  };
  const refuseUnknown = (fields: object, known: readonly string[], prefix: string): void => {
    for (const [name, found] of Object.entries(fields)) {
      if (!known.includes(name)) refuse(`${prefix}${name}`, "absent (it is not known here)", found);
    }
  };
  if (!isRecord(value)) return refuse("(file)", "an object", value);
  const fields = value;
  refuseUnknown(fields, [...checks.map(([name]) => name), "evaluation", "facts"], "");
  for (const [name, isValid, expected] of checks) {
    if (!isValid(fields[name])) refuse(name, expected, fields[name]);
  }
  const { evaluation, facts } = fields;
  if (!isRecord(evaluation)) return refuse("evaluation", "an object", evaluation);
  for (const name of evaluationNames) {
    const found = evaluation[name];
    if (!isNatural(found)) refuse(`evaluation.${name}`, "a whole number", found);
  }
  refuseUnknown(evaluation, evaluationNames, "evaluation.");
  if (!isRecord(facts)) return refuse("facts", "an object", facts);
  for (const [name, found] of Object.entries(facts)) {
    if (typeof found !== "string" && typeof found !== "number") {
      refuse(`facts.${name}`, "text or a number", found);
    }
  }
  return value as unknown as RunConfig;
}

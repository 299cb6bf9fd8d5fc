/** Groups of real attempts in memory: the scribe in the own-harness example, collected by the rollout. */
import { asId, type PolicyVersion, type Store, type Task } from "@gimbal-rl/core";
import {
  type CollectedGroup,
  type CollectOptions,
  collectGroups,
  planGroup,
} from "@gimbal-rl/rollout";
import { createAttemptStack } from "@gimbal-rl/sdk";
import { createMemoryStore } from "@gimbal-rl/store";
import { exampleHarness, scribeTask } from "./scribe-run.js";

/** What was collected, and the store that holds its calls. */
export interface CollectedScribe {
  readonly groups: readonly CollectedGroup[];
  readonly store: Store;
}

/** Runs `groups` tasks, `size` attempts each, with the weights of a model folder. */
export async function collectScribe(
  modelDir: string,
  options: { readonly groups: number; readonly size: number } & Partial<
    Pick<CollectOptions, "concurrency">
  >,
): Promise<CollectedScribe> {
  const policyVersion = asId<PolicyVersion>("step-0");
  const store = createMemoryStore();
  await using stack = await createAttemptStack({
    ...{ modelDir, policyVersion, store, harness: exampleHarness },
    ...{ seed: 5, temperature: 1, model: "scribe" },
  });
  const tasks: Task[] = Array.from({ length: options.groups }, (_, i) => scribeTask(`task-${i}`));
  const plans = tasks.map((task) =>
    planGroup({ label: "collect", task, size: options.size, runSeed: 5, policyVersion }),
  );
  const groups = await collectGroups(
    plans,
    {
      dependencies: stack.attempts,
      store,
      concurrency: options.concurrency ?? 2,
      training: true,
    },
    new AbortController().signal,
  );
  return { groups, store };
}

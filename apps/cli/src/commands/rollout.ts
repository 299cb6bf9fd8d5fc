/**
 * `gimbal rollout`: attempts at tasks, captured and judged, without training.
 */
import type { Command } from "commander";
import {
  type AttemptFlags,
  addAttemptOptions,
  chooseTasks,
  runAttempts,
} from "../attempt-options.js";
import type { CliContext } from "../context.js";
import { formatTable } from "../output.js";

const kind = "rollout";

/** Adds the command. */
export function register(program: Command, context: CliContext): void {
  const command = program
    .command("rollout")
    .description(
      "Run attempts at tasks with a harness; store the captured calls and the verdicts.",
    );
  addAttemptOptions(command, { kind, split: "train", tasks: 8, samples: 4 })
    .addHelpText("after", "\nExample:\n  $ gimbal rollout --tasks 4 --samples 2\n")
    .action(async (flags: AttemptFlags) => runRollout(flags, context));
}

async function runRollout(flags: AttemptFlags, context: CliContext): Promise<void> {
  const output = context.output(flags);
  const tasks = await chooseTasks(flags, context);
  const { harness, result, runDir } = await runAttempts(flags, context, output, { kind, tasks });
  output.text(
    `${formatTable(
      ["task", "attempts", "passed", "mean score"],
      result.tasks.map((task) => [
        ...[task.taskId, String(task.samples), String(task.successes), task.score.toFixed(3)],
      ]),
    )}\nStored in ${runDir}`,
  );
  output.json({
    runDir,
    harness: harness.id,
    harnessVersion: harness.version,
    tasks: result.tasks,
    attempts: result.records.map(({ attempt, calls, failureClass, sampledTokens, verdict }) => ({
      attemptId: attempt.attemptId,
      score: verdict.score,
      ...{ failureClass, calls, sampledTokens },
    })),
  });
}

/**
 * `gimbal serve`: an OpenAI-compatible server over a model folder.
 */
import { resolve } from "node:path";
import { tinyModelDir } from "@gimbal-rl/gimbal-tiny";
import { createInferenceServer, modelNameOf, openLocalModel } from "@gimbal-rl/sdk";
import type { Command } from "commander";
import type { CliContext } from "../context.js";
import { parsePort, parseSeed, parseThreads } from "../option-values.js";
import { untilStopped } from "../until-stopped.js";

interface ServeFlags {
  readonly model?: string;
  readonly host: string;
  readonly port: number;
  readonly threads: number;
  readonly seed?: number;
  readonly json?: boolean;
}

/** Adds the command. */
export function register(program: Command, context: CliContext): void {
  program
    .command("serve")
    .description(
      "Run an OpenAI-compatible server over a model folder: chat and completions, streamed or not, with token ids and log-probabilities on request.",
    )
    .option("--model <folder>", "Hugging Face model folder (default: the bundled tiny policy)")
    .option("--host <address>", "address to listen on", "127.0.0.1")
    .option("--port <n>", "port; 0 takes any free one", parsePort, 0)
    .option("--threads <n>", "sampler threads", parseThreads, 1)
    .option("--seed <n>", "seed of requests that name none (default: random)", parseSeed)
    .option("--json", 'print one line {"url","model","pid"} on stdout when ready')
    .addHelpText(
      "after",
      "\nThe API key is GIMBAL_API_KEY when that is set; otherwise none is asked for.\n\nExample:\n  $ gimbal serve --model ./Qwen3-0.6B --port 8000\n",
    )
    .action(async (flags: ServeFlags) => serve(flags, context));
}

async function serve(flags: ServeFlags, context: CliContext): Promise<void> {
  const output = context.output(flags);
  const { host, port, seed, threads } = flags;
  const modelDir = resolve(context.cwd, flags.model ?? tinyModelDir);
  const model = modelNameOf(modelDir);
  output.line(`Loading ${modelDir}`);
  await using opened = await openLocalModel(modelDir, { threads, model });
  const { engine, renderer } = opened;
  const apiKey = context.env.GIMBAL_API_KEY;
  await using server = await createInferenceServer({
    engine,
    renderer,
    model,
    host,
    port,
    failure: () => engine.failure(),
    ...(seed === undefined ? {} : { seed }),
    ...(apiKey === undefined || apiKey === "" ? {} : { apiKey }),
  });
  const { url } = server;
  output.json({ url, model, pid: process.pid });
  output.text(howTo(url, model));
  await untilStopped(context.signal);
}

function howTo(url: string, model: string): string {
  const body = `{"model":"${model}","messages":[{"role":"user","content":"Hello"}],"return_token_ids":true,"logprobs":true}`;
  return [
    `Serving ${model} at ${url}/v1 (Ctrl-C stops).`,
    "",
    `  curl ${url}/v1/chat/completions -H 'content-type: application/json' \\`,
    `    -d '${body}'`,
  ].join("\n");
}

/**
 * `gimbal proxy`: the gateway in front of a local engine.
 */
import { resolve } from "node:path";
import { tinyModelDir } from "@gimbal-rl/gimbal-tiny";
import type { Gateway } from "@gimbal-rl/proxy";
import { createLocalGateway } from "@gimbal-rl/sdk";
import { openStore } from "@gimbal-rl/store";
import type { Command } from "commander";
import type { CliContext } from "../context.js";
import { parseNotNegative, parsePort, parseSeed, parseThreads } from "../option-values.js";
import { untilStopped } from "../until-stopped.js";

interface ProxyFlags {
  readonly model?: string;
  readonly host: string;
  readonly port: number;
  readonly controlPort: number;
  readonly controlToken?: string;
  readonly store?: string;
  readonly threads: number;
  readonly seed: number;
  readonly temperature: number;
  readonly json?: boolean;
}

/** Adds the command. */
export function register(program: Command, context: CliContext): void {
  program
    .command("proxy")
    .description(
      "Run the gateway in front of a local engine: sessions with keys, every model call captured down to the sampled token.",
    )
    .option("--model <folder>", "Hugging Face model folder (default: the bundled tiny policy)")
    .option("--host <address>", "address to listen on", "127.0.0.1")
    .option("--port <n>", "data port, where harnesses call; 0 takes any free one", parsePort, 0)
    .option("--control-port <n>", "control port; 0 takes any free one", parsePort, 0)
    .option(
      "--control-token <token>",
      "token of the control API (default: GIMBAL_CONTROL_TOKEN, else random)",
    )
    .option("--store <folder>", "keep calls and raw bodies here (default: in memory)")
    .option("--threads <n>", "sampler threads", parseThreads, 1)
    .option("--seed <n>", "seed of sampling", parseSeed, 0)
    .option("--temperature <x>", "sampling temperature of sessions", parseNotNegative, 1)
    .option(
      "--json",
      'print one line {"url","controlUrl","controlToken","pid"} on stdout when ready',
    )
    .addHelpText("after", "\nExample:\n  $ gimbal proxy --port 4000 --control-port 4001\n")
    .action(async (flags: ProxyFlags) => runProxy(flags, context));
}

async function runProxy(flags: ProxyFlags, context: CliContext): Promise<void> {
  const output = context.output(flags);
  const { host, port, seed, temperature, threads } = flags;
  const modelDir = resolve(context.cwd, flags.model ?? tinyModelDir);
  const controlToken = flags.controlToken ?? context.env.GIMBAL_CONTROL_TOKEN ?? "";
  const store =
    flags.store === undefined ? null : await openStore(resolve(context.cwd, flags.store));
  try {
    output.line(`Loading ${modelDir}`);
    await using local = await createLocalGateway({
      modelDir,
      threads,
      host,
      dataPort: port,
      controlPort: flags.controlPort,
      seed,
      temperature,
      onCaptureError: (error) => output.line(`A call could not be stored: ${error.message}`),
      ...(controlToken === "" ? {} : { controlToken }),
      ...(store === null ? {} : { store }),
    });
    const { gateway } = local;
    const { controlUrl, url } = gateway;
    output.json({ url, controlUrl, controlToken: gateway.controlToken, pid: process.pid });
    output.text(howTo(gateway));
    await untilStopped(context.signal);
  } finally {
    await store?.close();
  }
}

function howTo({ controlToken, controlUrl, url }: Gateway): string {
  const auth = `-H 'authorization: Bearer ${controlToken}'`;
  return [
    `Gateway at ${url}, control API at ${controlUrl} (Ctrl-C stops).`,
    "",
    "Open a session; the answer has its key and base URLs:",
    `  curl ${controlUrl}/v1/sessions ${auth} -d '{"training":true}'`,
    "",
    `Point a harness at base URL ${url}/v1 with that key, then read what was captured:`,
    `  curl ${controlUrl}/v1/sessions/<sessionId>/calls ${auth}`,
  ].join("\n");
}

/**
 * Counters of the gateway, in Prometheus text format. No labels per session: their number must stay bounded.
 */

/** Names and help texts of the counters. */
const counters = {
  requests: "Requests on the data port.",
  auth_failures: "Requests without the key of an open session.",
  refusals: "Requests of a session that were refused (4xx).",
  calls: "Model calls admitted.",
  calls_finished: "Model calls that ended, whatever the reason.",
  calls_aborted: "Model calls that were stopped.",
  calls_failed: "Model calls that the engine failed.",
  replays: "Requests answered from an earlier call after a retry mark.",
  prompt_tokens: "Prompt tokens of finished calls.",
  sampled_tokens: "Sampled tokens of finished calls.",
  capture_failures: "Records not made or stored, and branches lost on the tape.",
  connections_evicted: "Idle connections closed because there were too many.",
} as const;

/** A counter's name. */
export type CounterName = keyof typeof counters;

/** Values that go up and down, read when the page is made. */
export type GaugeName = "sessions_open" | "calls_in_flight" | "connections" | "paused";

/** The gateway's counters. */
export interface Metrics {
  add(name: CounterName, amount?: number): void;
  render(gauges: Readonly<Record<GaugeName, number>>): string;
}

/** Makes counters that start at zero. */
export function createMetrics(): Metrics {
  const values = new Map<CounterName, number>();
  return {
    add: (name, amount = 1) => {
      values.set(name, (values.get(name) ?? 0) + amount);
    },
    render: (gauges) => {
      const lines: string[] = [];
      for (const name of Object.keys(counters) as CounterName[]) {
        const full = `gimbal_gateway_${name}_total`;
        lines.push(`# HELP ${full} ${counters[name]}`, `# TYPE ${full} counter`);
        lines.push(`${full} ${values.get(name) ?? 0}`);
      }
      for (const [name, value] of Object.entries(gauges)) {
        lines.push(`# TYPE gimbal_gateway_${name} gauge`, `gimbal_gateway_${name} ${value}`);
      }
      return `${lines.join("\n")}\n`;
    },
  };
}

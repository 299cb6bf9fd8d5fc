/**
 * Resource limits of one process, set by a small `sh` wrapper that also reports the CPU time of its tree.
 *
 * Law: the report goes to a descriptor that the wrapped process does not get.
 */

/** Limits that `ulimit` knows. Absent = no limit of that kind. */
export interface ProcessLimits {
  /** Private writable memory of one process. Default 4 GiB. */
  readonly memoryBytes?: number;
  /** Size of one written file. Default 256 MiB. */
  readonly fileBytes?: number;
  /** Processes and threads. Default 1,024 at level `namespace`, where they are counted per sandbox; none at `process`,
   * where the system counts everything the user runs. */
  readonly processes?: number;
  /** CPU seconds of one process. Default none; wall clock is the usual limit. */
  readonly cpuSeconds?: number;
}

/** Descriptor of the report. */
export const reportFd = 4;

/** Wraps a command: limits are set where the system allows it, then it runs, then the report is written. */
export function wrapWithLimits(argv: readonly string[], limits: ProcessLimits): string[] {
  const set = (flag: string, value: number | undefined): string =>
    value === undefined ? "" : `ulimit -${flag} ${Math.ceil(value)} 2>/dev/null; `;
  const either = (flag: string, other: string, value: number | undefined): string =>
    value === undefined
      ? ""
      : `ulimit -${flag} ${value} 2>/dev/null || ulimit -${other} ${value} 2>/dev/null; `;
  const kilobytes = limits.memoryBytes === undefined ? undefined : limits.memoryBytes / 1024;
  const blocks = limits.fileBytes === undefined ? undefined : limits.fileBytes / 512;
  const script =
    `echo started >&${reportFd}; ulimit -c 0 2>/dev/null; ` +
    set("d", kilobytes) +
    set("f", blocks) +
    // Bash and others say -u, dash says -p.
    either("u", "p", limits.processes) +
    set("t", limits.cpuSeconds) +
    `"$@" 3>&- ${reportFd}>&-; code=$?; times >&${reportFd}; exit $code`;
  return ["/bin/sh", "-c", script, "sh", ...argv];
}

/** What the wrapper reported: whether the command was started, and the CPU time when it ended by itself. */
export function parseReport(text: string): {
  readonly started: boolean;
  readonly cpuMs: number | null;
} {
  const started = text.startsWith("started\n");
  const times = [...text.matchAll(/(\d+)m(\d+(?:\.\d+)?)s/g)];
  if (times.length < 4) return { started, cpuMs: null };
  const seconds = times.reduce((sum, match) => sum + Number(match[1]) * 60 + Number(match[2]), 0);
  return { started, cpuMs: Math.round(seconds * 1000) };
}

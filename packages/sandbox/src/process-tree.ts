/**
 * Finding and killing what a process left behind, through /proc (Linux). Elsewhere only the process group is known.
 *
 * Law: a child is found by its session, by its ancestry, or by the marker in its environment; at level `process` one
 * that changed all three escapes, which is why that level makes no claim against a hostile agent.
 */
import { readdirSync, readFileSync } from "node:fs";

/** One row of /proc. */
export interface ProcessRow {
  readonly pid: number;
  readonly parentPid: number;
  readonly sessionPid: number;
  /** User and system time, own and of reaped children, in clock ticks (1/100 s). */
  readonly ticks: number;
}

/** All visible processes; empty where there is no /proc. */
function readProcesses(): ProcessRow[] {
  let names: string[];
  try {
    names = readdirSync("/proc");
  } catch {
    return [];
  }
  const rows: ProcessRow[] = [];
  for (const name of names) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const row = parseStat(Number(name), readFileSync(`/proc/${name}/stat`, "latin1"));
      if (row !== null) rows.push(row);
    } catch {
      // It ended while we looked.
    }
  }
  return rows;
}

/** Parses `/proc/<pid>/stat`; the command name may hold spaces and parentheses. */
function parseStat(pid: number, text: string): ProcessRow | null {
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  if (fields.length < 15 || fields[0] === "Z") return null;
  const field = (index: number): number => Number(fields[index]);
  return {
    pid,
    parentPid: field(1),
    sessionPid: field(3),
    ticks: field(11) + field(12) + field(13) + field(14),
  };
}

/** The leader's tree: descendants, members of its session, and processes that carry the marker. */
export function findTree(leaderPid: number, marker: string | null): ProcessRow[] {
  const rows = readProcesses();
  const members = new Set<number>([leaderPid]);
  for (const row of rows) {
    if (row.sessionPid === leaderPid || (marker !== null && hasMarker(row.pid, marker))) {
      members.add(row.pid);
    }
  }
  for (let grew = true; grew; ) {
    grew = false;
    for (const row of rows) {
      if (members.has(row.pid) || !members.has(row.parentPid) || row.parentPid <= 1) continue;
      members.add(row.pid);
      grew = true;
    }
  }
  members.delete(process.pid);
  return rows.filter((row) => members.has(row.pid));
}

/** CPU milliseconds of rows at 100 ticks a second. */
export function cpuMsOf(rows: readonly ProcessRow[]): number {
  return rows.reduce((sum, row) => sum + row.ticks, 0) * 10;
}

/** Sends SIGKILL to the group and then to everything found, until nothing is found or five rounds have passed. */
export function killTree(leaderPid: number, marker: string | null): void {
  signalQuietly(-leaderPid);
  for (let round = 0; round < 5; round += 1) {
    const rows = findTree(leaderPid, marker);
    if (rows.length === 0) return;
    for (const row of rows) signalQuietly(row.pid);
  }
}

function signalQuietly(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // Gone already.
  }
}

function hasMarker(pid: number, marker: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/environ`, "latin1").includes(marker);
  } catch {
    return false;
  }
}

/**
 * Who the agent is on the host.
 *
 * Law: when we are root, the agent is not, where the kernel lets a plain user make a user namespace: it becomes an id
 * without an account, which the system's limits apply to. Inside it is always the same user.
 */
import { droppedId, insideUser } from "./host-view.js";

/** `drop`: we are root and the agent becomes {@link droppedId}. `map`: it keeps our own id, in a user namespace. */
export type PrivilegeMode = "drop" | "map";

/** Capabilities that the change of user needs; it gives them up itself. */
export const droppingCapabilities: readonly string[] = ["CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP"];

/** Whether mounts need no user namespace of their own. */
export function isRoot(): boolean {
  return process.getuid?.() === 0;
}

/** Prefix of a command that leaves root behind. */
export function dropPrivileges(argv: readonly string[]): string[] {
  const host = String(droppedId);
  return [
    ...["setpriv", `--reuid=${host}`, `--regid=${host}`, "--clear-groups"],
    ...["--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"],
    ...becomeInsideUser(argv),
  ];
}

/** Prefix of a command that runs as the inside user, in a user namespace that owns no mounts. */
export function becomeInsideUser(argv: readonly string[]): string[] {
  const inside = String(insideUser.id);
  return ["unshare", "--user", `--map-user=${inside}`, `--map-group=${inside}`, ...argv];
}

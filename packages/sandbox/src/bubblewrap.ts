/**
 * The arguments of bubblewrap for one process.
 *
 * Law: what is not listed here does not exist inside. The host network is kept, because the gateway listens on
 * 127.0.0.1; a session's key is what protects it.
 */
import { insideHome, insideUser, insideWorkspace, listHostEntries } from "./host-view.js";
import type { NamespacePlan } from "./namespace-plan.js";
import { dropPrivileges, droppingCapabilities, type PrivilegeMode } from "./privileges.js";

/** The arguments after `bwrap`, and the command to put behind them. */
export function bubblewrapCommand(
  plan: NamespacePlan,
  command: readonly string[],
  mode: PrivilegeMode,
): { readonly args: readonly string[]; readonly command: readonly string[] } {
  return {
    args: bubblewrapArguments(plan, mode),
    command: mode === "drop" ? dropPrivileges(command) : command,
  };
}

function bubblewrapArguments(plan: NamespacePlan, mode: PrivilegeMode): string[] {
  const id = String(insideUser.id);
  const args = [
    ...(mode === "drop" ? [] : ["--unshare-user", "--uid", id, "--gid", id]),
    ...["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--hostname", insideUser.host],
    ...["--unshare-cgroup-try", "--die-with-parent", "--new-session", "--clearenv"],
    ...["--cap-drop", "ALL"],
    ...(mode === "drop" ? droppingCapabilities.flatMap((name) => ["--cap-add", name]) : []),
    ...["--perms", "0755", "--dir", "/home", "--perms", "0755", "--dir", "/etc"],
  ];
  for (const entry of listHostEntries()) {
    if (entry.type === "link") args.push("--symlink", entry.target, entry.insidePath);
    else
      args.push(...parentFolders(entry.insidePath), "--ro-bind", entry.hostPath, entry.insidePath);
  }
  for (const { hostPath, insidePath } of plan.etcMounts)
    args.push("--ro-bind", hostPath, insidePath);
  args.push("--proc", "/proc", "--dev", "/dev");
  args.push("--size", String(plan.scratchBytes), "--perms", "1777", "--tmpfs", "/dev/shm");
  args.push("--size", String(plan.scratchBytes), "--perms", "1777", "--tmpfs", "/tmp");
  args.push("--bind", plan.homePath, insideHome, "--bind", plan.workspacePath, insideWorkspace);
  // Last, so that an install below /tmp or HOME is not covered again.
  for (const { hostPath, insidePath } of plan.mounts) {
    args.push(...parentFolders(insidePath), "--ro-bind", hostPath, insidePath);
  }
  args.push("--remount-ro", "/", "--chdir", plan.cwd);
  for (const [name, value] of Object.entries(plan.env)) args.push("--setenv", name, value);
  return args;
}

/** Folders that bubblewrap makes by itself are closed to everyone but their owner. */
function parentFolders(path: string): string[] {
  const parts = path.split("/").slice(1, -1);
  return parts.flatMap((_, index) => {
    const folder = `/${parts.slice(0, index + 1).join("/")}`;
    return ["--perms", "0755", "--dir", folder];
  });
}

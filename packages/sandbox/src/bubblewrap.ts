/**
 * The arguments of bubblewrap for one process.
 *
 * Law: what is not listed here does not exist inside. The host network is kept, because the gateway listens on
 * 127.0.0.1; a session's key is what protects it.
 */
import { insideHome, insideUser, insideWorkspace, listHostEntries } from "./host-view.js";
import type { NamespacePlan } from "./namespace-plan.js";

/** Arguments after `bwrap`, without the command. */
export function bubblewrapArguments(plan: NamespacePlan): string[] {
  const id = String(insideUser.id);
  const args = [
    ...["--unshare-user", "--uid", id, "--gid", id, "--unshare-pid", "--unshare-ipc"],
    ...["--unshare-uts", "--hostname", insideUser.host, "--unshare-cgroup-try"],
    ...["--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv"],
    ...["--perms", "0755", "--dir", "/home", "--perms", "0755", "--dir", "/etc"],
  ];
  for (const entry of listHostEntries()) {
    if (entry.type === "link") args.push("--symlink", entry.target, entry.insidePath);
    else args.push("--ro-bind", entry.hostPath, entry.insidePath);
  }
  for (const { hostPath, insidePath } of plan.etcMounts)
    args.push("--ro-bind", hostPath, insidePath);
  args.push("--proc", "/proc", "--dev", "/dev");
  args.push("--size", String(plan.scratchBytes), "--tmpfs", "/dev/shm");
  args.push("--size", String(plan.scratchBytes), "--perms", "1777", "--tmpfs", "/tmp");
  args.push("--bind", plan.homePath, insideHome, "--bind", plan.workspacePath, insideWorkspace);
  // Last, so that an install below /tmp or HOME is not covered again.
  for (const { hostPath, insidePath } of plan.mounts) args.push("--ro-bind", hostPath, insidePath);
  args.push("--remount-ro", "/", "--chdir", plan.cwd);
  for (const [name, value] of Object.entries(plan.env)) args.push("--setenv", name, value);
  return args;
}

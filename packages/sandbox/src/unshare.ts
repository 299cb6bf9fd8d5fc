/**
 * The same namespace without bubblewrap: util-linux `unshare` and a mount script.
 *
 * Law: after the script the old root is unmounted, and the command runs in a further user namespace that owns none of
 * the mounts, so it cannot undo them.
 */
import { insideHome, insideUser, insideWorkspace, listHostEntries } from "./host-view.js";
import type { NamespacePlan } from "./namespace-plan.js";
import { becomeInsideUser, dropPrivileges, isRoot, type PrivilegeMode } from "./privileges.js";

/** The argument vector that sets up the namespace and runs the command in it. */
export function unshareCommand(
  plan: NamespacePlan,
  command: readonly string[],
  mode: PrivilegeMode,
): string[] {
  const environment = Object.entries(plan.env).map(([name, value]) => `${name}=${value}`);
  const inner = ["env", "-i", `--chdir=${plan.cwd}`, ...environment, ...command];
  return [
    "unshare",
    ...["--mount", "--pid", "--fork", "--kill-child", "--ipc", "--uts"],
    ...(isRoot() ? [] : ["--user", "--map-root-user"]),
    ...["/bin/sh", "-c", mountScript(plan), "sh"],
    ...(mode === "drop" ? dropPrivileges(inner) : becomeInsideUser(inner)),
  ];
}

function mountScript(plan: NamespacePlan): string {
  const root = quote(plan.rootPath);
  const lines = [
    "set -e",
    "export PATH=/usr/sbin:/usr/bin:/sbin:/bin",
    "mount --make-rprivate /",
    `mount -t tmpfs -o mode=755,size=16m tmpfs ${root}`,
    `cd ${root}`,
    "mkdir -p home etc proc dev tmp",
    `bind() { if [ -d "$1" ]; then mkdir -p ".$2"; else mkdir -p "$(dirname ".$2")"; [ -e ".$2" ] || : > ".$2"; fi; mount --rbind "$1" ".$2"; }`,
    `ro() { bind "$1" "$2"; mount -o remount,bind,ro,nosuid,nodev ".$2"; }`,
  ];
  for (const entry of listHostEntries()) {
    if (entry.type === "link") {
      lines.push(`ln -s ${quote(entry.target)} ${quote(`.${entry.insidePath}`)}`);
    } else {
      lines.push(`ro ${quote(entry.hostPath)} ${quote(entry.insidePath)}`);
    }
  }
  for (const { hostPath, insidePath } of plan.etcMounts) {
    lines.push(`ro ${quote(hostPath)} ${quote(insidePath)}`);
  }
  lines.push(
    "mount -t proc -o nosuid,nodev,noexec proc proc",
    "mount -t tmpfs -o mode=755,size=1m,nosuid tmpfs dev",
    "for name in null zero full random urandom tty; do : > dev/$name; mount --bind /dev/$name dev/$name; done",
    "ln -s /proc/self/fd dev/fd; ln -s fd/0 dev/stdin; ln -s fd/1 dev/stdout; ln -s fd/2 dev/stderr",
    `mkdir dev/shm; mount -t tmpfs -o mode=1777,nosuid,nodev,size=${plan.scratchBytes} tmpfs dev/shm`,
    `mount -t tmpfs -o mode=1777,nosuid,nodev,size=${plan.scratchBytes} tmpfs tmp`,
    `bind ${quote(plan.homePath)} ${insideHome}`,
    `bind ${quote(plan.workspacePath)} ${insideWorkspace}`,
  );
  for (const { hostPath, insidePath } of plan.mounts) {
    lines.push(`ro ${quote(hostPath)} ${quote(insidePath)}`);
  }
  lines.push(
    `hostname ${insideUser.host} 2>/dev/null || :`,
    "mkdir .old; pivot_root . .old; cd /",
    "umount -l /.old; rmdir /.old; mount -o remount,bind,ro /",
    'exec "$@"',
  );
  return lines.join("\n");
}

function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

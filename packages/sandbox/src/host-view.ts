/**
 * The part of the host that a namespace shows: programs and libraries, certificates, name resolution. Nothing of the
 * host user's HOME, no other run, no log.
 */
import { existsSync, lstatSync, readlinkSync } from "node:fs";

/** Fixed paths inside a namespace, equal for every attempt on every machine. */
export const insideHome = "/home/agent";
/** See {@link insideHome}. */
export const insideWorkspace = "/workspace";
/** User and host name inside. */
export const insideUser: { readonly name: string; readonly id: number; readonly host: string } = {
  name: "agent",
  id: 1000,
  host: "sandbox",
};

/** The host's user and group id of an agent when we are root. No account has it; root would be exempt from limits. */
export const droppedId = 64_123;

/** A mount or link of the base system. */
export type HostEntry =
  | { readonly type: "mount"; readonly hostPath: string; readonly insidePath: string }
  | { readonly type: "link"; readonly insidePath: string; readonly target: string };

const systemFolders = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix"];

/** Only what programs need to find libraries, certificates and names. */
const systemFiles = [
  "/etc/alternatives",
  "/etc/ca-certificates",
  "/etc/ca-certificates.conf",
  "/etc/ld.so.cache",
  "/etc/ld.so.conf",
  "/etc/ld.so.conf.d",
  "/etc/nsswitch.conf",
  "/etc/pki",
  "/etc/resolv.conf",
  "/etc/ssl/certs",
  "/etc/ssl/openssl.cnf",
];

/** Files written for every instance in place of the host's. */
export const ownEtcFiles: Readonly<Record<string, string>> = {
  passwd: `root:x:0:0:root:/nonexistent:/bin/sh\n${insideUser.name}:x:${insideUser.id}:${insideUser.id}::${insideHome}:/bin/sh\n`,
  group: `root:x:0:\n${insideUser.name}:x:${insideUser.id}:\n`,
  hosts: `127.0.0.1 localhost ${insideUser.host}\n::1 localhost\n`,
};

let cached: readonly HostEntry[] | undefined;

/** Lists the entries that exist on this host. */
export function listHostEntries(): readonly HostEntry[] {
  cached ??= [...systemFolders.flatMap(folderEntry), ...systemFiles.flatMap(fileEntry)];
  return cached;
}

function folderEntry(path: string): HostEntry[] {
  const status = lstatSync(path, { throwIfNoEntry: false });
  if (status === undefined) return [];
  if (status.isSymbolicLink())
    return [{ type: "link", insidePath: path, target: readlinkSync(path) }];
  return [{ type: "mount", hostPath: path, insidePath: path }];
}

function fileEntry(path: string): HostEntry[] {
  return existsSync(path) ? [{ type: "mount", hostPath: path, insidePath: path }] : [];
}

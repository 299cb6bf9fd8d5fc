/** Reads the packages of this workspace from disk, for the checks that look at all of them. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

/** The root of the repository. */
export const root: string = resolve(fileURLToPath(new URL("../../..", import.meta.url)));

/** What one `exports` entry of a package points at. */
export type ExportTarget = string | Readonly<Record<string, string>>;

/** The fields of a `package.json` that the checks read. */
export interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly private?: boolean;
  readonly description?: string;
  readonly license?: string;
  readonly type?: string;
  readonly sideEffects?: boolean;
  readonly engines?: Readonly<Record<string, string>>;
  readonly files?: readonly string[];
  readonly exports?: Readonly<Record<string, ExportTarget>>;
  readonly publishConfig?: { readonly exports?: Readonly<Record<string, ExportTarget>> };
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
}

/** One package of the workspace. */
export interface WorkspacePackage {
  /** Relative to the root, with forward slashes, for example `packages/core`. */
  readonly folder: string;
  /** The last part of the folder, which is also the name without its scope. */
  readonly shortName: string;
  readonly manifest: Manifest;
  /** The tag of its `turbo.json`: `rank-0` to `rank-7`, `app`, `tests` or `tooling`. */
  readonly tag: string;
}

function readJson(path: string): unknown {
  return JSON.parse(readFileSync(path, "utf8"));
}

/** All packages below `packages/`, `apps/` and `tooling/`, sorted by folder. */
export function listPackages(): readonly WorkspacePackage[] {
  const found: WorkspacePackage[] = [];
  for (const parent of ["apps", "packages", "tooling"]) {
    for (const shortName of readdirSync(join(root, parent)).sort()) {
      const folder = `${parent}/${shortName}`;
      if (!existsSync(join(root, folder, "package.json"))) continue;
      const turbo = readJson(join(root, folder, "turbo.json")) as { tags?: readonly string[] };
      found.push({
        folder,
        shortName,
        manifest: readJson(join(root, folder, "package.json")) as Manifest,
        tag: turbo.tags?.[0] ?? "untagged",
      });
    }
  }
  return found;
}

/** The packages that are published. */
export function listPublishedPackages(): readonly WorkspacePackage[] {
  return listPackages().filter(({ manifest }) => manifest.private !== true);
}

const skipped = new Set(["node_modules", "dist", "generated", ".turbo", "runs"]);

/** Hand-written `.ts` files below a folder, relative to the root, sorted. */
export function listSourceFiles(folder: string): readonly string[] {
  if (!existsSync(join(root, folder))) return [];
  const files: string[] = [];
  for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory()) {
      if (!skipped.has(entry.name)) files.push(...listSourceFiles(path));
    } else if (/\.(ts|mjs)$/.test(entry.name)) {
      files.push(path);
    }
  }
  return files.sort();
}

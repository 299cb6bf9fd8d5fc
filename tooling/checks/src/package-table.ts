/**
 * The table of packages in docs/architecture/README.md: rank, page, imports. Derived from `turbo.json` and `package.json`.
 *
 * Run as a program it rewrites the table (`pnpm docs:update`); a test compares.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { listPublishedPackages, root } from "./workspace.js";

/** The page that holds the table, relative to the root. */
export const tablePage = "docs/architecture/README.md";

/** The rows, without the padding that Biome adds, lowest rank first, apps last. */
export function packageRows(): readonly string[] {
  return listPublishedPackages()
    .map(({ shortName, manifest, tag }) => ({
      rank: tag.replace("rank-", ""),
      shortName,
      imports: Object.keys(manifest.dependencies ?? {})
        .filter((name) => name.startsWith("@gimbal-rl/"))
        .map((name) => name.slice("@gimbal-rl/".length))
        .sort(),
    }))
    .sort((a, b) => a.rank.localeCompare(b.rank) || a.shortName.localeCompare(b.shortName))
    .map(
      ({ rank, shortName, imports }) =>
        `| ${rank} | [\`${shortName}\`](${shortName}.md) | ${imports.join(", ") || "none"} |`,
    );
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const path = join(root, tablePage);
  const table = /(\| Rank[^\n]*\n\|[ -|]*\n)(?:\|[^\n]*\n)+/;
  const text = readFileSync(path, "utf8");
  writeFileSync(
    path,
    text.replace(table, (_, head: string) => `${head}${packageRows().join("\n")}\n`),
  );
}

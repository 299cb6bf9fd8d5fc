/** Rules of the house style that no other tool checks. Each test names every offender, so one run shows all work. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { describe, expect, it } from "vitest";
import { packageRows, tablePage } from "./package-table.js";
import { listPackages, listPublishedPackages, listSourceFiles, root } from "./workspace.js";

const HARD_LIMIT = 500;

const folders = ["apps", "packages", "tooling", "tests", "examples", "bench"];
const files = folders
  .flatMap(listSourceFiles)
  .map((path) => ({ path, text: readFileSync(join(root, path), "utf8") }));
const sources = files.filter(({ path }) => /^(apps|packages)\/[^/]+\/src\//.test(path));

/** The comment that opens a file, or an empty text. */
function headerOf(text: string): string {
  return /^(?:#!.*\n)?\s*(\/\*\*[\s\S]*?\*\/|(?:\/\/.*\n)+)/.exec(text)?.[1] ?? "";
}

describe("files", () => {
  it(`have at most ${HARD_LIMIT} lines, or a header that says why they are long`, () => {
    const long = files
      .filter(({ text }) => text.split("\n").length > HARD_LIMIT + 1)
      .filter(({ text }) => !/\blong because\b/i.test(headerOf(text)));
    expect(long.map(({ path }) => path)).toEqual([]);
  });

  it("have kebab-case names", () => {
    const allowed = /^[a-z0-9]+(-[a-z0-9]+)*(\.(test|test-d|config|d))?\.(ts|mts|mjs)$/;
    expect(files.map(({ path }) => path).filter((path) => !allowed.test(basename(path)))).toEqual(
      [],
    );
  });

  it("open with a comment that gives the model or the law", () => {
    const bare = sources
      .filter(({ path }) => !/(\.test|\/index)\.ts$/.test(path))
      .filter(({ text }) => headerOf(text) === "");
    expect(bare.map(({ path }) => path)).toEqual([]);
  });

  it("silence no compiler error and leave no work without an issue", () => {
    // Built from parts, so that this file does not find itself.
    const words = ["@ts-" + "ignore", "@ts-" + "nocheck", "@ts-" + "expect-error"];
    const open = new RegExp(
      `\\b(${["TO", "FIX"].map((start) => `${start}${start === "TO" ? "DO" : "ME"}`).join("|")})\\b(?!\\(#\\d+\\))`,
    );
    const offenders = files
      .filter(({ path }) => !path.startsWith("packages/compute/assembly/"))
      .filter(({ text }) => words.some((word) => text.includes(word)) || open.test(text));
    expect(offenders.map(({ path }) => path)).toEqual([]);
  });
});

it("every decision page is listed in docs/decisions/README.md", () => {
  const pages = readdirSync(join(root, "docs/decisions")).filter((name) => /^\d{4}-/.test(name));
  const index = readFileSync(join(root, "docs/decisions/README.md"), "utf8");
  expect(pages.filter((name) => !index.includes(`](${name})`))).toEqual([]);
});

describe("published packages", () => {
  const published = listPublishedPackages();

  it("have a README and, below packages/, an architecture page", () => {
    const missing = published.flatMap(({ folder, shortName }) => [
      ...(existsSync(join(root, folder, "README.md")) ? [] : [`${folder}/README.md`]),
      ...(existsSync(join(root, "docs/architecture", `${shortName}.md`))
        ? []
        : [`docs/architecture/${shortName}.md`]),
    ]);
    expect(missing).toEqual([]);
  });

  it("have a README example of at most 15 lines", () => {
    const long = published.flatMap(({ folder }) => {
      const path = join(root, folder, "README.md");
      const example = existsSync(path)
        ? /```ts\n([\s\S]*?)```/.exec(readFileSync(path, "utf8"))?.[1]
        : undefined;
      const lines = example?.split("\n").filter((line) => line.trim() !== "").length ?? 0;
      return lines <= 15 ? [] : [`${folder}/README.md: ${lines} lines`];
    });
    expect(long).toEqual([]);
  });

  it("carry complete and consistent metadata", () => {
    const wrong = published.flatMap(({ folder, shortName, manifest }) => {
      const published = manifest.publishConfig?.exports ?? {};
      const problems = [
        manifest.name === `@gimbal-rl/${shortName}` ? "" : "name differs from the folder",
        manifest.license === "Apache-2.0" ? "" : "license",
        manifest.type === "module" ? "" : "type",
        manifest.sideEffects === false ? "" : "sideEffects",
        manifest.engines?.node === ">=20.19" ? "" : "engines.node",
        (manifest.description ?? "").endsWith(".") ? "" : "description is no sentence",
        manifest.files?.includes("dist") ? "" : "files lacks dist",
        Object.keys(published).join() === Object.keys(manifest.exports ?? {}).join()
          ? ""
          : "publishConfig.exports has other entries than exports",
        ...Object.entries(manifest.exports ?? {}).map(([entry, target]) => {
          if (typeof target === "string") return "";
          const { "@gimbal-rl/source": source, ...rest } = target;
          if (source === undefined || !existsSync(join(root, folder, source))) {
            return `exports ${entry} has no existing source`;
          }
          return JSON.stringify(rest) === JSON.stringify(published[entry])
            ? ""
            : `publishConfig.exports ${entry} differs from exports`;
        }),
      ];
      return problems.filter((problem) => problem !== "").map((problem) => `${folder}: ${problem}`);
    });
    expect(wrong).toEqual([]);
  });

  it("are linked to each other by caret ranges and depend only on lower ranks", () => {
    const rankOf = (tag: string): number =>
      tag.startsWith("rank-") ? Number(tag.slice("rank-".length)) : Number.POSITIVE_INFINITY;
    const tags = new Map(listPackages().map(({ manifest, tag }) => [manifest.name, tag]));
    const wrong = published.flatMap(({ folder, manifest, tag }) =>
      Object.entries(manifest.dependencies ?? {}).flatMap(([name, range]) => {
        if (!name.startsWith("@gimbal-rl/")) return [];
        const lower = rankOf(tags.get(name) ?? "") < rankOf(tag);
        return [
          ...(range === "workspace:^" ? [] : [`${folder}: ${name} is ${range}`]),
          ...(lower ? [] : [`${folder} (${tag}): ${name} is ${tags.get(name)}`]),
        ];
      }),
    );
    expect(wrong).toEqual([]);
  });

  it("stand with rank and imports in docs/architecture/README.md, and in the root README", () => {
    // Biome pads the columns of tables.
    const read = (path: string): string =>
      readFileSync(join(root, path), "utf8").replace(/ +/g, " ");
    const index = read(tablePage).split("\n");
    const front = read("README.md");
    const missing = [
      ...packageRows().filter((row) => !index.includes(row)),
      ...published
        .filter(({ folder, shortName }) => !front.includes(`\n| [\`${shortName}\`](${folder}) |`))
        .map(({ shortName }) => `README.md: ${shortName}`),
    ];
    expect(missing, "pnpm docs:update rewrites the table of packages").toEqual([]);
  });

  it("document every export", () => {
    const undocumented = published.flatMap(({ folder }) => {
      const reports = join(root, folder, "etc");
      if (!existsSync(reports)) return [`${folder}/etc is missing; run pnpm api:update`];
      return readdirSync(reports).flatMap((report) =>
        [
          ...readFileSync(join(reports, report), "utf8").matchAll(
            /\(undocumented\)\nexport (?:declare )?(.*)/g,
          ),
        ].map(([, line]) => `${folder}/etc/${report}: ${line}`),
      );
    });
    expect(undocumented).toEqual([]);
  });
});

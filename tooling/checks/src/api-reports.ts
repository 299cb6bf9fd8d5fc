/**
 * The public surface of each published package as a text in git: `etc/<package>.api.md`, one more per subpath.
 *
 * `check` fails when a report differs from the built declarations, so that a change of the surface is seen in review;
 * `update` writes the reports. Reads `dist`, so build first.
 */
import { existsSync, mkdirSync } from "node:fs";
import { basename, join } from "node:path";
import {
  Extractor,
  ExtractorConfig,
  ExtractorLogLevel,
  type IConfigFile,
} from "@microsoft/api-extractor";
import { listPublishedPackages, root, type WorkspacePackage } from "./workspace.js";

/** One entry point: the report's name and its declarations. */
interface Entry {
  readonly reportName: string;
  readonly types: string;
}

function entriesOf({ shortName, manifest }: WorkspacePackage): readonly Entry[] {
  return Object.entries(manifest.exports ?? {}).flatMap(([subpath, target]) => {
    if (typeof target === "string" || target.types === undefined) return [];
    const suffix = subpath === "." ? "" : `.${basename(subpath)}`;
    return [{ reportName: `${shortName}${suffix}.api.md`, types: target.types }];
  });
}

function configOf(folder: string, entry: Entry): ExtractorConfig {
  const projectFolder = join(root, folder);
  const reportFolder = join(projectFolder, "etc");
  mkdirSync(reportFolder, { recursive: true });
  const configObject: IConfigFile = {
    projectFolder,
    mainEntryPointFilePath: join(projectFolder, entry.types),
    newlineKind: "lf",
    compiler: {
      overrideTsconfig: {
        compilerOptions: {
          target: "ES2023",
          lib: ["ES2023"],
          module: "NodeNext",
          moduleResolution: "NodeNext",
          types: ["node"],
          strict: true,
          skipLibCheck: true,
        },
        include: ["dist/**/*.d.ts"],
      },
    },
    apiReport: {
      enabled: true,
      reportFileName: entry.reportName,
      reportFolder,
      reportTempFolder: join(projectFolder, "node_modules/.cache/api"),
    },
    docModel: { enabled: false },
    dtsRollup: { enabled: false },
    messages: {
      compilerMessageReporting: { default: { logLevel: ExtractorLogLevel.Error } },
      extractorMessageReporting: {
        default: { logLevel: ExtractorLogLevel.None },
        "ae-forgotten-export": { logLevel: ExtractorLogLevel.None, addToApiReportFile: true },
      },
      tsdocMessageReporting: { default: { logLevel: ExtractorLogLevel.None } },
    },
  };
  return ExtractorConfig.prepare({
    configObject,
    configObjectFullPath: undefined,
    packageJsonFullPath: join(projectFolder, "package.json"),
  });
}

const [mode, ...only] = process.argv.slice(2);
if (mode !== "check" && mode !== "update") {
  process.stderr.write("usage: api-reports.ts check|update [package ...]\n");
  process.exit(2);
}

const problems: string[] = [];
let count = 0;
for (const workspacePackage of listPublishedPackages()) {
  const { folder, shortName } = workspacePackage;
  if (only.length > 0 && !only.includes(shortName)) continue;
  for (const entry of entriesOf(workspacePackage)) {
    if (!existsSync(join(root, folder, entry.types))) {
      problems.push(`${folder}: ${entry.types} is missing; run pnpm build`);
      continue;
    }
    const result = Extractor.invoke(configOf(folder, entry), {
      localBuild: mode === "update",
      showVerboseMessages: false,
      messageCallback: (message) => {
        if (message.logLevel !== "error") message.handled = true;
      },
    });
    count += 1;
    if (mode === "check" && result.apiReportChanged) {
      problems.push(`${folder}/etc/${entry.reportName} is out of date; run pnpm api:update`);
    } else if (result.errorCount > 0) {
      problems.push(`${folder}: api-extractor found ${result.errorCount} errors`);
    }
  }
}
for (const problem of problems) process.stderr.write(`${problem}\n`);
process.stderr.write(`${count} API reports ${mode === "check" ? "compared" : "written"}\n`);
process.exitCode = problems.length === 0 ? 0 : 1;

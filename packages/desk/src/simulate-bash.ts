/**
 * The handful of shell commands that the suite's expert and tests use: `ls`, `cat`, `head -n`, `grep -n`, `grep -rn`, `node check.js`.
 */

type Files = Readonly<Record<string, string>>;

/** Output as Pi prints it. */
export interface SimulatedOutput {
  readonly text: string;
  readonly isError: boolean;
}

/** Runs one of the known commands; any other answers exit code 127. */
export function simulateBash(files: Files, command: string): SimulatedOutput {
  const list = /^ls(?: (\S+))?$/.exec(command);
  if (list !== null) return listFolder(files, list[1] ?? ".");
  const cat = /^cat (\S+)$/.exec(command);
  if (cat?.[1] !== undefined) return catFile(files, cat[1]);
  const head = /^head -n (\d+) (\S+)$/.exec(command);
  if (head?.[1] !== undefined && head[2] !== undefined) {
    return headOfFile(files, Number(head[1]), head[2]);
  }
  const grep = /^grep -rn '?([^'\s|]+)'? (\S+?)( \| sort)?$/.exec(command);
  if (grep?.[1] !== undefined && grep[2] !== undefined) {
    return grepFolder(files, grep[1], grep[2], grep[3] !== undefined);
  }
  const grepOne = /^grep -n '?([^'\s|]+)'? (\S+)$/.exec(command);
  if (grepOne?.[1] !== undefined && grepOne[2] !== undefined) {
    return grepFile(files, grepOne[1], grepOne[2]);
  }
  if (command === "node check.js" && files["check.js"] !== undefined) {
    return runCheck(files, files["check.js"]);
  }
  const word = command.split(" ")[0] ?? "";
  return output(`/bin/bash: line 1: ${word}: command not found\n`, 127);
}

function output(printed: string, exitCode: number): SimulatedOutput {
  const text = printed === "" ? "(no output)" : printed;
  return exitCode === 0
    ? { text, isError: false }
    : { text: `${text}\n\nCommand exited with code ${exitCode}`, isError: true };
}

function under(files: Files, folder: string): string[] {
  const name = folder.replace(/^\.\//, "").replace(/\/$/, "");
  const all = Object.keys(files).sort();
  return name === "." || name === "" ? all : all.filter((path) => path.startsWith(`${name}/`));
}

function listFolder(files: Files, folder: string): SimulatedOutput {
  const name = folder.replace(/^\.\//, "").replace(/\/$/, "");
  if (files[name] !== undefined) return output(`${folder}\n`, 0);
  const paths = under(files, folder);
  if (paths.length === 0) {
    return output(`ls: cannot access '${folder}': No such file or directory\n`, 2);
  }
  const depth = name === "." || name === "" ? 0 : name.split("/").length;
  const names = new Set(paths.map((path) => path.split("/")[depth] ?? ""));
  return output(
    [...names]
      .sort()
      .map((one) => `${one}\n`)
      .join(""),
    0,
  );
}

function catFile(files: Files, path: string): SimulatedOutput {
  const text = files[path.replace(/^\.\//, "")];
  return text === undefined
    ? output(`cat: ${path}: No such file or directory\n`, 1)
    : output(text, 0);
}

function headOfFile(files: Files, count: number, path: string): SimulatedOutput {
  const text = files[path.replace(/^\.\//, "")];
  if (text === undefined) {
    return output(`head: cannot open '${path}' for reading: No such file or directory\n`, 1);
  }
  return output((text.match(/[^\n]*\n|[^\n]+$/g) ?? []).slice(0, count).join(""), 0);
}

/** The numbered lines of a file that hold a word: `3:text`. */
function numberedLines(text: string, word: string): string[] {
  return text
    .split("\n")
    .map((line, index) => ({ line, number: index + 1 }))
    .filter(({ line }) => line.includes(word))
    .map(({ line, number }) => `${number}:${line}\n`);
}

function grepFile(files: Files, word: string, path: string): SimulatedOutput {
  const name = path.replace(/^\.\//, "").replace(/\/$/, "");
  const text = files[name];
  if (text === undefined) {
    return under(files, name).length === 0
      ? output(`grep: ${path}: No such file or directory\n`, 2)
      : output(`grep: ${path}: Is a directory\n`, 2);
  }
  const lines = numberedLines(text, word);
  return output(lines.join(""), lines.length > 0 ? 0 : 1);
}

// Unsorted grep follows readdir order, which no imitation can know; here it is sorted too.
function grepFolder(files: Files, word: string, folder: string, sorted: boolean): SimulatedOutput {
  const prefix = folder === "." ? "./" : "";
  const lines = under(files, folder).flatMap((path) =>
    numberedLines(files[path] ?? "", word).map((line) => `${prefix}${path}:${line}`),
  );
  return output(lines.join(""), sorted || lines.length > 0 ? 0 : 1);
}

/** Follows a check script of this suite: its file, function, two numbers and wanted result. */
function runCheck(files: Files, check: string): SimulatedOutput {
  const match =
    /require\("\.\/(\S+)"\);\nif \((\w+)\((\d+), (\d+)\) === (-?\d+)\)[\s\S]*?console\.log\("([^"]+)"\);\n {2}process/.exec(
      check,
    );
  const [, path = "", name = "", a, b, want, message] = match ?? [];
  const pattern = new RegExp(`^exports\\.${name} = \\(a, b\\) => a ([-+*/]) b;$`, "m");
  const operator = pattern.exec(files[path] ?? "")?.[1];
  if (operator === undefined) return output(`TypeError: ${name} is not a function\n`, 1);
  const [x, y] = [Number(a), Number(b)];
  const got = { "+": x + y, "-": x - y, "*": x * y, "/": x / y }[operator];
  return got === Number(want) ? output("ok\n", 0) : output(`${message}\n`, 1);
}

/**
 * Prints which tests were skipped and failed, and as the last line `N passed, N failed, N skipped`.
 *
 * Reads Vitest's JSON report (first argument). Further arguments name other steps that failed: each counts as one
 * failure, so that the line never says 0 failed when something did (a failed `npm test` only when no test says so). A skipped test carries its reason in its title.
 * Plain JavaScript, because it must work when the install failed.
 */
import { existsSync, readFileSync } from "node:fs";

const [reportPath = "test-results.json", ...failedSteps] = process.argv.slice(2);

let passed = 0;
let failed = 0;
let skipped = 0;

if (existsSync(reportPath)) {
  const report = JSON.parse(readFileSync(reportPath, "utf8"));
  const root = process.cwd();
  const reasons = new Map();
  for (const file of report.testResults) {
    const path = file.name.replace(`${root}/`, "");
    if (file.status === "failed" && !file.assertionResults.some((one) => one.status === "failed")) {
      failed += 1;
      console.log(`failed: ${path} could not be loaded: ${(file.message ?? "").split("\n")[0]}`);
    }
    for (const { status, fullName, ancestorTitles } of file.assertionResults) {
      if (status === "passed") passed += 1;
      else if (status === "failed") {
        failed += 1;
        console.log(`failed: ${path} > ${fullName}`);
      } else {
        skipped += 1;
        const holder = ancestorTitles.find((title) => /skipped:/.test(title)) ?? fullName;
        const key = `${path} > ${holder}`;
        reasons.set(key, (reasons.get(key) ?? 0) + 1);
      }
    }
  }
  for (const [key, count] of reasons)
    console.log(`skipped: ${key}${count > 1 ? ` (${count} tests)` : ""}`);
} else {
  failed += 1;
  console.log(`failed: no test report at ${reportPath}`);
}
for (const step of failedSteps) {
  if (step === "npm test" && failed > 0) continue;
  failed += 1;
  console.log(`failed: ${step}`);
}
console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`);
process.exitCode = failed === 0 && passed > 0 ? 0 : 1;

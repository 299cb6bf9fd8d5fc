/**
 * The report of a run as one self-contained HTML page: no scripts, no outside resources, all text escaped.
 */
import type { Interval } from "./bootstrap.js";
import { intervalText } from "./interval-text.js";

/** One line of the before/after table. */
export interface ReportRow {
  readonly name: string;
  readonly tasks: number;
  readonly before: number;
  readonly after: number;
  /** Gain with its 95 % interval; null when it was not computed. */
  readonly gain: Interval | null;
}

/** One point of the training curve. */
export interface ReportStep {
  readonly step: number;
  /** Mean reward of the step's attempts, in [0, 1]. */
  readonly reward: number;
  /** KL of the sampling policy to the start of the run, nats per token. */
  readonly kl: number;
}

/** One turn of the attempt that is shown. */
export interface ReportTurn {
  readonly role: string;
  readonly text: string;
}

/** What the page shows. */
export interface ReportData {
  readonly title: string;
  /** Facts such as seed, harness, model; shown as a list. */
  readonly facts: readonly (readonly [string, string])[];
  readonly rows: readonly ReportRow[];
  readonly steps: readonly ReportStep[];
  /** Failure class to count, before and after. */
  readonly failures: readonly {
    readonly cause: string;
    readonly before: number;
    readonly after: number;
  }[];
  readonly attempt: { readonly title: string; readonly turns: readonly ReportTurn[] } | null;
  /** Shown as plain paragraphs: what the sandbox promises, what was left out. */
  readonly notes: readonly string[];
}

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => entities[character] ?? character);
}

const percent = (value: number): string => `${(100 * value).toFixed(1)} %`;
const points = (value: number): string => `${value >= 0 ? "+" : ""}${(100 * value).toFixed(1)}`;

/** One value per step. `top` is the upper end of the axis, which starts at 0. */
interface Curve {
  readonly label: string;
  readonly top: number;
  readonly points: readonly { readonly step: number; readonly value: number }[];
}

function curve({ label, points: steps, top }: Curve): string {
  const width = 640;
  const height = 220;
  const margin = { left: 44, right: 12, top: 12, bottom: 28 };
  const innerWidth = width - margin.left - margin.right;
  const innerHeight = height - margin.top - margin.bottom;
  const first = steps[0]?.step ?? 1;
  const span = Math.max(1, (steps.at(-1)?.step ?? 1) - first);
  const x = (step: number): number => margin.left + ((step - first) / span) * innerWidth;
  const y = (value: number): number => margin.top + (1 - value / top) * innerHeight;
  const path = steps.map(
    ({ step, value }, i) => `${i === 0 ? "M" : "L"}${x(step).toFixed(1)},${y(value).toFixed(1)}`,
  );
  const grid = [0, 0.25, 0.5, 0.75, 1].map((share) => {
    const value = share * top;
    return (
      `<line x1="${margin.left}" x2="${width - margin.right}" y1="${y(value)}" y2="${y(value)}" class="grid"/>` +
      `<text x="${margin.left - 6}" y="${y(value) + 4}" text-anchor="end">${Number(value.toPrecision(2))}</text>`
    );
  });
  const marks = steps.map(
    ({ step, value }) =>
      `<circle cx="${x(step).toFixed(1)}" cy="${y(value).toFixed(1)}" r="3"><title>step ${step}: ${Number(value.toPrecision(3))}</title></circle>`,
  );
  return (
    `<svg viewBox="0 0 ${width} ${height}" role="img" aria-label="${escapeHtml(label)}">${grid.join("")}` +
    `<path d="${path.join(" ")}"/>${marks.join("")}` +
    `<text x="${width / 2}" y="${height - 6}" text-anchor="middle">step</text></svg>`
  );
}

/** Reward and KL over the steps, each on its own axis. */
function curves(steps: readonly ReportStep[]): string {
  const pointsOf = (name: "reward" | "kl") =>
    steps.map((one) => ({ step: one.step, value: one[name] }));
  const klTop = Math.max(...steps.map(({ kl }) => kl)) || 1;
  return [
    { label: "Mean reward per step", top: 1, points: pointsOf("reward") },
    { label: "KL to the start per step, nats per token", top: klTop, points: pointsOf("kl") },
  ]
    .map((one) => `<h2>${escapeHtml(one.label)}</h2>${curve(one)}`)
    .join("\n");
}

function resultTable(rows: readonly ReportRow[]): string {
  const body = rows.map(({ after, before, gain, name, tasks }) => {
    const shown =
      gain === null ? "–" : `${points(gain.mean)} (${intervalText(gain, tasks, points)})`;
    return `<tr><td>${escapeHtml(name)}</td><td>${tasks}</td><td>${percent(before)}</td><td>${percent(after)}</td><td>${shown}</td></tr>`;
  });
  return (
    "<table><thead><tr><th>Tasks</th><th>n</th><th>before</th><th>after</th><th>gain in points (95 % interval)</th></tr></thead>" +
    `<tbody>${body.join("")}</tbody></table>`
  );
}

function failureTable(failures: ReportData["failures"]): string {
  const most = Math.max(1, ...failures.flatMap(({ after, before }) => [before, after]));
  const bar = (value: number, kind: string): string =>
    `<div class="bar ${kind}" style="width:${((100 * value) / most).toFixed(1)}%"></div>${value}`;
  const body = failures.map(
    ({ after, before, cause }) =>
      `<tr><td>${escapeHtml(cause)}</td><td>${bar(before, "before")}</td><td>${bar(after, "after")}</td></tr>`,
  );
  return `<table class="bars"><thead><tr><th>Cause</th><th>before</th><th>after</th></tr></thead><tbody>${body.join("")}</tbody></table>`;
}

const style = `body{font:15px/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem;color:#1c2024}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}table{border-collapse:collapse;width:100%}
th,td{text-align:left;padding:.3rem .6rem;border-bottom:1px solid #d9dce0}svg{width:100%}svg text{font-size:11px;fill:#60646c}
.grid{stroke:#e6e8eb}path{fill:none;stroke:#0b68cb;stroke-width:2}circle{fill:#0b68cb}
.bars td{width:38%}.bars td:first-child{width:24%}.bar{height:.7rem;display:inline-block;margin-right:.4rem}
.before{background:#b0b4ba}.after{background:#0b68cb}.turn{border-left:3px solid #d9dce0;padding:.2rem .8rem;margin:.6rem 0}
.turn.assistant{border-color:#0b68cb}.role{font-size:.8rem;color:#60646c}pre{white-space:pre-wrap;margin:0;font-size:.85rem}
@media(prefers-color-scheme:dark){body{background:#111113;color:#edeef0}th,td,.turn{border-color:#363a3f}.grid{stroke:#2a2d31}}`;

/**
 * Renders the page.
 *
 * Every text of `data` (title, facts, names, causes, roles, turns, notes) is escaped, so what an agent wrote never becomes
 * markup; numbers are formatted here. The page has no script and asks for nothing from outside.
 *
 * @returns A complete HTML document.
 */
export function renderReport(data: ReportData): string {
  const facts = data.facts.map(
    ([name, value]) => `<tr><td>${escapeHtml(name)}</td><td>${escapeHtml(value)}</td></tr>`,
  );
  const turns = (data.attempt?.turns ?? []).map(
    ({ role, text }) =>
      `<div class="turn ${escapeHtml(role)}"><div class="role">${escapeHtml(role)}</div><pre>${escapeHtml(text)}</pre></div>`,
  );
  const sections = [
    `<h1>${escapeHtml(data.title)}</h1><table>${facts.join("")}</table>`,
    `<h2>Held-out pass@1</h2>${resultTable(data.rows)}`,
    data.steps.length === 0 ? "" : curves(data.steps),
    `<h2>Attempts by cause of failure</h2>${failureTable(data.failures)}`,
    data.attempt === null
      ? ""
      : `<h2>One attempt: ${escapeHtml(data.attempt.title)}</h2>${turns.join("")}`,
    data.notes.length === 0
      ? ""
      : `<h2>Notes</h2>${data.notes.map((note) => `<p>${escapeHtml(note)}</p>`).join("")}`,
  ];
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${escapeHtml(data.title)}</title><style>${style}</style></head><body>${sections.join("\n")}</body></html>\n`;
}

import { describe, expect, it } from "vitest";
import { type ReportData, renderReport } from "./report.js";

const data: ReportData = {
  title: "Run <1>",
  facts: [["harness", "pi 1.6.0"]],
  rows: [
    {
      name: "trained families",
      tasks: 64,
      before: 0.25,
      after: 0.5,
      gain: { mean: 0.25, low: 0.1, high: 0.4 },
    },
  ],
  steps: [
    { step: 1, reward: 0.2, kl: 0 },
    { step: 2, reward: 0.6, kl: 0.01 },
  ],
  failures: [{ cause: "wrong-result", before: 40, after: 10 }],
  attempt: {
    title: "t1",
    turns: [{ role: "tool", text: "<script>alert(1)</script>" }],
  },
  notes: ["Sandbox level process."],
};

describe("renderReport", () => {
  it("shows the numbers it was given", () => {
    const html = renderReport(data);
    expect(html).toContain("<td>25.0 %</td><td>50.0 %</td><td>+25.0 (+10.0 to +40.0)</td>");
    expect(html).toContain("step 2: 0.6</title>");
  });

  it("shows no interval of a gain over a single task", () => {
    const row = { name: "one", tasks: 1, before: 0, after: 1, gain: { mean: 1, low: 1, high: 1 } };
    expect(renderReport({ ...data, rows: [row] })).toContain("<td>+100.0 (-)</td>");
  });

  it("draws the KL on an axis of its own", () => {
    const html = renderReport(data);
    expect(html).toContain('aria-label="KL to the start per step, nats per token"');
    expect(html).toContain('text-anchor="end">0.01</text>');
    expect(html).toContain("step 2: 0.01</title>");
    const still = renderReport({ ...data, steps: [{ step: 1, reward: 0, kl: 0 }] });
    expect(still).not.toContain("NaN");
  });

  it("never lets text from an agent become markup", () => {
    const html = renderReport(data);
    expect(html).not.toContain("<script");
    expect(html).toContain("&lt;script&gt;alert(1)&lt;/script&gt;");
    expect(html).toContain("Run &lt;1&gt;");
  });

  it("asks for nothing from outside", () => {
    expect(renderReport(data)).not.toMatch(/(src|href)=|https?:|url\(/);
  });
});

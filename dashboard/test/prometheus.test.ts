import { describe, expect, it } from "vitest";
import { buckets, bucketsSince, parseMetrics, quantile, sum } from "../src/prometheus";

const TEXT = String.raw`# HELP tacho_messages_total Messages taken
# TYPE tacho_messages_total counter
tacho_messages_total{door="mqtt"} 1200
tacho_messages_total{door="http"} 30 1700000000000
tacho_points_total 5.5e3
tacho_odd{path="C:\\x\"y\"\nz",brace="}"} 1
not a sample at all
tacho_lat_bucket{door="mqtt",le="0.001"} 50
tacho_lat_bucket{door="mqtt",le="0.01"} 90
tacho_lat_bucket{door="mqtt",le="+Inf"} 100
tacho_lat_bucket{door="http",le="0.001"} 7
# EOF
`;
const WANTED = new Set(["tacho_messages_total", "tacho_points_total", "tacho_odd", "tacho_lat_bucket"]);
const samples = parseMetrics(TEXT, WANTED);

describe("parseMetrics", () => {
  it("reads values with and without labels, timestamps and exponents", () => {
    expect(sum(samples, "tacho_messages_total", { door: "mqtt" })).toBe(1200);
    expect(sum(samples, "tacho_messages_total")).toBe(1230);
    expect(sum(samples, "tacho_points_total")).toBe(5500);
  });

  it("tells a missing metric from zero", () => {
    expect(sum(samples, "tacho_messages_total", { door: "coap" })).toBeNull();
  });

  it("undoes the escapes of label values", () => {
    const odd = samples.find(({ name }) => name === "tacho_odd");
    expect(odd?.labels).toEqual({ path: 'C:\\x"y"\nz', brace: "}" });
  });

  it("leaves out metrics nobody asked for", () => {
    expect(parseMetrics(TEXT, new Set(["tacho_points_total"]))).toHaveLength(1);
  });
});

describe("histograms", () => {
  it("collects the buckets of the given labels in order", () => {
    expect(buckets(samples, "tacho_lat", { door: "mqtt" })).toEqual([
      { le: 0.001, count: 50 },
      { le: 0.01, count: 90 },
      { le: Infinity, count: 100 },
    ]);
  });

  it("adds up label sets that are not told apart", () => {
    expect(buckets(samples, "tacho_lat")[0]).toEqual({ le: 0.001, count: 57 });
  });

  it("subtracts readings, a new bucket counting from zero", () => {
    const older = [{ le: 1, count: 4 }];
    const newer = [{ le: 1, count: 10 }, { le: Infinity, count: 3 }];
    expect(bucketsSince(older, newer)).toEqual([{ le: 1, count: 6 }, { le: Infinity, count: 3 }]);
  });
});

describe("quantile", () => {
  const ascending = [
    { le: 1, count: 50 },
    { le: 2, count: 90 },
    { le: 4, count: 99 },
    { le: Infinity, count: 100 },
  ];

  it.each([
    [0.25, 0.5],
    [0.5, 1],
    [0.7, 1.5],
    [0.9, 2],
    [0.99, 4],
  ])("interpolates the %d quantile inside its bucket", (q, value) => {
    expect(quantile(q, ascending)?.value).toBeCloseTo(value, 9);
    expect(quantile(q, ascending)?.beyond).toBe(false);
  });

  it("says when it lies beyond the last bound", () => {
    expect(quantile(0.999, ascending)).toEqual({ value: 4, beyond: true });
  });

  it("skips empty buckets in front", () => {
    expect(quantile(0, [{ le: 1, count: 0 }, { le: 2, count: 5 }])).toEqual({ value: 1, beyond: false });
  });

  it("has no answer without observations", () => {
    expect(quantile(0.5, [])).toBeNull();
    expect(quantile(0.5, [{ le: 1, count: 0 }, { le: Infinity, count: 0 }])).toBeNull();
  });
});

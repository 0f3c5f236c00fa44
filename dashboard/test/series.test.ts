import { describe, expect, it } from "vitest";
import { lineOf, merge, silenceMs, trim, withBreaks, type Line } from "../src/series";

const line = (...points: [number, number][]): Line => ({ xs: points.map(([x]) => x), ys: points.map(([, y]) => y) });

describe("merge", () => {
  it("unites history and live values once each, the live value winning", () => {
    const history = line([1, 10], [2, 20], [3, 30]);
    const live = line([3, 31], [4, 40]);
    expect(merge(history, live)).toEqual(line([1, 10], [2, 20], [3, 31], [4, 40]));
  });

  it("interleaves late points", () => {
    expect(merge(line([1, 1], [5, 5]), line([3, 3]))).toEqual(line([1, 1], [3, 3], [5, 5]));
  });

  it("takes either side being empty", () => {
    expect(merge(line(), line([1, 1]))).toEqual(line([1, 1]));
    expect(merge(line([1, 1]), line())).toEqual(line([1, 1]));
  });

  it("agrees with a map by time, whatever the cut and overlap", () => {
    const times = Array.from({ length: 60 }, (_, i) => (i * 37) % 101).sort((a, b) => a - b);
    for (let cut = 0; cut <= times.length; cut += 7) {
      for (const overlap of [0, 1, 5, 60]) {
        const older = lineOf(times.slice(0, cut).map((t) => [t, t]));
        const newer = lineOf(times.slice(Math.max(0, cut - overlap)).map((t) => [t, -t]));
        const expected = new Map<number, number>();
        for (const part of [older, newer]) part.xs.forEach((x, i) => expected.set(x, part.ys[i] ?? NaN));
        const merged = merge(older, newer);
        expect(merged.xs).toEqual([...expected.keys()].sort((a, b) => a - b));
        expect(merged.ys).toEqual(merged.xs.map((x) => expected.get(x)));
      }
    }
  });
});

it("lineOf sorts, and the last of equal times wins", () => {
  expect(lineOf([[3, 1], [1, 2], [3, 4]])).toEqual(line([1, 2], [3, 4]));
});

describe("trim", () => {
  const full = line([1, 1], [2, 2], [3, 3], [4, 4]);

  it("drops what is too old and what is too much", () => {
    expect(trim(full, 3, 10)).toEqual(line([3, 3], [4, 4]));
    expect(trim(full, 0, 1)).toEqual(line([4, 4]));
    expect(trim(full, 9, 10)).toEqual(line());
  });

  it("returns the same line when nothing goes", () => {
    expect(trim(full, 1, 4)).toBe(full);
  });
});

describe("silence", () => {
  it("breaks the line in the middle of a pause, not between usual points", () => {
    expect(withBreaks(line([0, 1], [1000, 2], [9000, 3]), 5000)).toEqual({ xs: [0, 1000, 5000, 9000], ys: [1, 2, null, 3] });
  });

  it("lasts five usual intervals, and never less than ten seconds", () => {
    expect(silenceMs(line([0, 0], [100, 0], [200, 0]))).toBe(10_000);
    expect(silenceMs(line([0, 0], [60_000, 0], [120_000, 0]))).toBe(300_000);
    expect(silenceMs(line())).toBe(10_000);
  });
});

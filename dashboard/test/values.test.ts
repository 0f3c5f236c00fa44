import { describe, expect, it } from "vitest";
import {
  asNumber,
  formatAge,
  formatLatency,
  formatNumber,
  formatReported,
  formatValue,
  parsePoints,
  parseValue,
} from "../src/values";

describe("parseValue", () => {
  it.each([
    ["72.5", 72.5],
    ["-3", -3],
    ["1e3", 1000],
    ["true", true],
    ["false", false],
    ["", ""],
    ["P0300", "P0300"],
    ['["P0300","P0420"]', ["P0300", "P0420"]],
    ['{"a":1}', { a: 1 }],
    ["[broken", "[broken"],
    [42, 42],
    [false, false],
    [null, null],
    [undefined, null],
    [["P0300"], ["P0300"]],
  ])("reads %j as %j", (raw, value) => expect(parseValue(raw)).toEqual(value));

  it.each(["007", "0x10", " 1", "1.", "+1", "NaN", "Infinity", "1e999", "9007199254740993"])(
    "keeps %j as text, since a number would lose something",
    (raw) => expect(parseValue(raw)).toBe(raw),
  );
});

it("charts numbers and booleans only", () => {
  expect([3.5, true, false, "3", null, undefined, [1], NaN].map(asNumber)).toEqual([3.5, 1, 0, null, null, null, null, null]);
});

it("formats values for cells", () => {
  expect(formatValue(undefined)).toBe("");
  expect(formatValue(["P0300", "P0420"])).toBe("P0300, P0420");
  expect(formatValue({ a: 1 })).toBe('{"a":1}');
  expect(formatValue(12.345, 1)).toBe("12.345");
});

it("groups thousands from five digits on and knows no minus zero", () => {
  expect(formatNumber(1234)).toBe("1234");
  expect(formatNumber(1234567.891, 1)).toBe("1\u202f234\u202f567.9");
  expect(formatNumber(-12345)).toBe("-12\u202f345");
  expect(formatNumber(-0.2, 0)).toBe("0");
  expect(formatNumber(-0.2, 1)).toBe("-0.2");
  expect(formatNumber(1e30)).toBe("1e+30");
});

it("tells ages and latencies in readable units", () => {
  expect([-500, 1999, 60_000, 3_600_000, 48 * 3_600_000].map(formatAge)).toEqual(["0 s", "1 s", "1 min", "1 h", "2 d"]);
  expect([0.000775, 0.00612, 0.0612, 0.612, 6.12].map(formatLatency)).toEqual(["775 µs", "6.12 ms", "61.2 ms", "612 ms", "6.1 s"]);
});

it("writes every digit that was reported", () => {
  expect([42.5, 42, 48.137154, -0.1, 0, -0, 12345.6789, 1234567890123, 1e21, 1e-7].map((value) => formatReported(value))).toEqual(
    ["42.5", "42", "48.137154", "-0.1", "0", "0", "12\u202f345.6789", "1\u202f234\u202f567\u202f890\u202f123", "1e+21", "1e-7"],
  );
  expect([42, 42.5, 61.25].map((value) => formatReported(value, 1))).toEqual(["42.0", "42.5", "61.25"]);
  expect([0.1 + 0.2, 1 / 3].map((value) => formatReported(value))).toEqual(["0.3", "0.333333333333"]);
});

it("reads points and leaves out what is malformed", () => {
  const data = { speed: [[1, "7"], ["x", "8"]], codes: [[2, ["P0300"]]], odd: null } as unknown as Parameters<typeof parsePoints>[0];
  expect([...parsePoints(data)]).toEqual([
    ["speed", [{ ts: 1, value: 7 }]],
    ["codes", [{ ts: 2, value: ["P0300"] }]],
  ]);
  expect(parsePoints(null).size).toBe(0);
});

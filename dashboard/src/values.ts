// One telemetry value: reading it off the wire and writing it for people.

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type Value = Json;

/** A value with the time its device gave it, in milliseconds since the epoch. */
export interface Point {
  ts: number;
  value: Value;
}

const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/**
 * The WebSocket sends scalars as strings. Text becomes a number only if it is written as JSON
 * writes one and no digit of an integer is lost: "007" and "9007199254740993" stay text.
 */
export function parseValue(raw: unknown): Value {
  if (typeof raw !== "string") return (raw ?? null) as Value;
  if (raw === "true") return true;
  if (raw === "false") return false;
  if (NUMBER.test(raw)) return parseNumber(raw);
  if (raw.startsWith("{") || raw.startsWith("[")) return parseJson(raw);
  return raw;
}

/** Points by key, as the server's messages hold them: `[ms, value]`. What is malformed is left out. */
export function parsePoints(data: Record<string, [number, unknown][]> | null | undefined): Map<string, Point[]> {
  const found = new Map<string, Point[]>();
  for (const [key, points] of Object.entries(data ?? {})) {
    if (!Array.isArray(points)) continue;
    const parsed = points.map(([ts, value]) => ({ ts: Number(ts), value: parseValue(value) }));
    found.set(key, parsed.filter(({ ts }) => Number.isFinite(ts)));
  }
  return found;
}

function parseNumber(raw: string): Value {
  const number = Number(raw);
  if (!Number.isFinite(number)) return raw;
  return Number.isInteger(number) && !Number.isSafeInteger(number) ? raw : number;
}

function parseJson(raw: string): Value {
  try {
    return JSON.parse(raw) as Value;
  } catch {
    return raw;
  }
}

/** The value as a point of a chart: numbers, and booleans as 0 and 1. */
export function asNumber(value: Value | undefined): number | null {
  if (typeof value === "number") return Number.isFinite(value) ? value : null;
  if (typeof value === "boolean") return value ? 1 : 0;
  return null;
}

/** Text for a table cell. `decimals` is the least number of digits after the point of a number. */
export function formatValue(value: Value | undefined, decimals = 0): string {
  if (value === undefined || value === null) return "";
  if (typeof value === "number") return formatReported(value, decimals);
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return value.map((item) => formatValue(item)).join(", ");
  return JSON.stringify(value);
}

/**
 * A number that was reported, with every digit it has; 42.5 is not 43. More than twelve digits are what arithmetic in
 * binary leaves behind (0.30000000000000004): of those that are not whole numbers, twelve are written.
 */
export function formatReported(value: number, decimals = 0): string {
  const text = Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(12)));
  if (text.includes("e")) return text;
  const missing = decimals - (text.split(".")[1]?.length ?? 0);
  const point = missing > 0 && !text.includes(".") ? "." : "";
  return groupThousands(text + point + "0".repeat(Math.max(0, missing)));
}

/** A number that was computed, such as a rate: `decimals` fixes its digits after the point, else it gets six in all. */
export function formatNumber(value: number, decimals?: number): string {
  return groupThousands(decimals === undefined ? String(Number(value.toPrecision(6))) : value.toFixed(decimals));
}

/** Groups thousands with a narrow blank, so that no locale mistakes it for a decimal sign. */
function groupThousands(text: string): string {
  const match = /^(-?)(\d+)(\..*)?$/.exec(text);
  if (match === null) return text;
  const [, sign = "", whole = "", rest = ""] = match;
  if (/^0*$/.test(whole) && /^\.?0*$/.test(rest)) return whole + rest; // no "-0"
  const grouped = whole.length > 4 ? whole.replace(/\B(?=(\d{3})+$)/g, "\u202f") : whole;
  return sign + grouped + rest;
}

/** How long ago, in the largest unit that keeps it readable. A clock ahead of ours reads as 0 s. */
export function formatAge(ageMs: number): string {
  const seconds = Math.max(0, Math.floor(ageMs / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 48 * 3600) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} d`;
}

/** A latency in seconds, as µs, ms or s with two or three digits. */
export function formatLatency(seconds: number): string {
  if (seconds < 0.001) return `${(seconds * 1e6).toFixed(0)} µs`;
  if (seconds < 0.01) return `${(seconds * 1e3).toFixed(2)} ms`;
  if (seconds < 0.1) return `${(seconds * 1e3).toFixed(1)} ms`;
  if (seconds < 1) return `${(seconds * 1e3).toFixed(0)} ms`;
  return `${seconds.toFixed(1)} s`;
}

// The Prometheus text format, as far as counters, gauges and classic histograms need it.
// Format: https://prometheus.io/docs/instrumenting/exposition_formats/

export interface Sample {
  name: string;
  labels: Record<string, string>;
  value: number;
}

/** One bucket of a histogram: observations less than or equal to `le`, counted cumulatively. */
export interface Bucket {
  le: number;
  count: number;
}

/** `beyond`: the quantile lies above the last finite bound, `value` is that bound. */
export interface Quantile {
  value: number;
  beyond: boolean;
}

const SAMPLE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)\s*(?:\{(.*)\})?\s*(\S+)(?:\s+-?\d+)?\s*$/;
const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"((?:\\.|[^"\\])*)"/g;

/** Reads the samples of the wanted metrics; comments and lines it cannot read are skipped. */
export function parseMetrics(text: string, wanted: ReadonlySet<string>): Sample[] {
  const samples: Sample[] = [];
  for (const line of text.split("\n")) {
    if (line === "" || line.startsWith("#")) continue;
    const match = SAMPLE.exec(line);
    const name = match?.[1];
    if (match === null || name === undefined || !wanted.has(name)) continue;
    const value = parseNumber(match[3] ?? "");
    if (value !== null) samples.push({ name, labels: parseLabels(match[2] ?? ""), value });
  }
  return samples;
}

function parseLabels(text: string): Record<string, string> {
  const labels: Record<string, string> = {};
  for (const [, name = "", escaped = ""] of text.matchAll(LABEL)) {
    labels[name] = escaped.replace(/\\(.)/g, (_, char: string) => (char === "n" ? "\n" : char));
  }
  return labels;
}

function parseNumber(text: string): number | null {
  if (text === "+Inf" || text === "Inf") return Infinity;
  if (text === "-Inf") return -Infinity;
  if (text === "NaN") return NaN;
  const value = Number(text);
  return Number.isNaN(value) ? null : value;
}

/** Sum over all samples of a metric that carry these labels; null if there is none. */
export function sum(samples: Sample[], name: string, labels: Record<string, string> = {}): number | null {
  const matching = samples.filter((sample) => sample.name === name && carries(sample, labels));
  return matching.length === 0 ? null : matching.reduce((total, sample) => total + sample.value, 0);
}

/** The buckets of a histogram in ascending order, added up over all labels but the given ones. */
export function buckets(samples: Sample[], name: string, labels: Record<string, string> = {}): Bucket[] {
  const counts = new Map<number, number>();
  for (const sample of samples) {
    if (sample.name !== `${name}_bucket` || !carries(sample, labels)) continue;
    const le = parseNumber(sample.labels["le"] ?? "");
    if (le !== null && !Number.isNaN(le)) counts.set(le, (counts.get(le) ?? 0) + sample.value);
  }
  return [...counts].map(([le, count]) => ({ le, count })).sort((a, b) => a.le - b.le);
}

function carries(sample: Sample, labels: Record<string, string>): boolean {
  return Object.entries(labels).every(([name, value]) => sample.labels[name] === value);
}

/** What was observed between two readings. A bucket unknown to the older reading counts from zero. */
export function bucketsSince(older: Bucket[], newer: Bucket[]): Bucket[] {
  const before = new Map(older.map(({ le, count }) => [le, count]));
  return newer.map(({ le, count }) => ({ le, count: Math.max(0, count - (before.get(le) ?? 0)) }));
}

/** The q-quantile (0..1), linear inside its bucket; null without observations. */
export function quantile(q: number, ascending: Bucket[]): Quantile | null {
  const total = ascending.at(-1)?.count ?? 0;
  if (!(total > 0)) return null;
  const rank = q * total;
  let lower = { le: 0, count: 0 };
  for (const bucket of ascending) {
    if (bucket.count >= rank && bucket.count > 0) {
      if (bucket.le === Infinity) return { value: lower.le, beyond: true };
      const share = (rank - lower.count) / (bucket.count - lower.count);
      return { value: lower.le + (bucket.le - lower.le) * share, beyond: false };
    }
    lower = bucket;
  }
  return null;
}

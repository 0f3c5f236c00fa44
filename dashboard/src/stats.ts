// The counters of the header: what /metrics says, turned into rates and quantiles of the last seconds.

import { QUANTILE_WINDOW_MS, RATE_WINDOW_MS } from "./limits";
import { buckets, bucketsSince, parseMetrics, quantile, sum, type Bucket, type Quantile } from "./prometheus";

const MESSAGES = "tacho_messages_total";
const POINTS = "tacho_points_total";
const CONNECTIONS = "tacho_connections";
const ACK_LATENCY = "tacho_ack_latency_seconds";
const WANTED = new Set([MESSAGES, POINTS, CONNECTIONS, `${ACK_LATENCY}_bucket`]);
/** The fleet reports through this door. */
const DOOR = { door: "mqtt" };

/** One reading of /metrics; null where the server does not report the metric. */
export interface Reading {
  atMs: number;
  messages: number | null;
  points: number | null;
  connections: number | null;
  ackBuckets: Bucket[];
}

/** What the header shows; null where nothing can be said (yet). */
export interface Stats {
  messagesPerSecond: number | null;
  pointsPerSecond: number | null;
  connections: number | null;
  ackP50: Quantile | null;
  ackP99: Quantile | null;
}

export function readMetrics(text: string, atMs: number): Reading {
  const samples = parseMetrics(text, WANTED);
  return {
    atMs,
    messages: sum(samples, MESSAGES, DOOR),
    points: sum(samples, POINTS),
    connections: sum(samples, CONNECTIONS, DOOR),
    ackBuckets: buckets(samples, ACK_LATENCY, DOOR),
  };
}

/** The readings of the last seconds, and what follows from them. */
export class StatsWindow {
  private readings: Reading[] = [];

  /** Adds a reading. A counter that went back means a new server process: older readings are void. */
  push(reading: Reading): void {
    const last = this.readings.at(-1);
    if (last !== undefined && restarted(last, reading)) this.readings = [];
    this.readings.push(reading);
    // Keep one reading at or before the start of the window: it is the base of the deltas.
    const start = reading.atMs - QUANTILE_WINDOW_MS;
    while (this.readings.length > 1 && (this.readings[1]?.atMs ?? Infinity) <= start) this.readings.shift();
  }

  clear(): void {
    this.readings = [];
  }

  stats(): Stats {
    const newest = this.readings.at(-1);
    const rateBase = this.base(RATE_WINDOW_MS);
    const quantileBase = this.base(QUANTILE_WINDOW_MS);
    const acks = newest && quantileBase ? bucketsSince(quantileBase.ackBuckets, newest.ackBuckets) : [];
    return {
      messagesPerSecond: rate(rateBase, newest, "messages"),
      pointsPerSecond: rate(rateBase, newest, "points"),
      connections: newest?.connections ?? null,
      ackP50: quantile(0.5, acks),
      ackP99: quantile(0.99, acks),
    };
  }

  /** The newest reading at least `spanMs` older than the last one, or else the oldest there is. */
  private base(spanMs: number): Reading | undefined {
    const newest = this.readings.at(-1);
    if (newest === undefined || this.readings.length < 2) return undefined;
    return this.readings.findLast(({ atMs }) => atMs <= newest.atMs - spanMs) ?? this.readings[0];
  }
}

function restarted(before: Reading, after: Reading): boolean {
  const wentBack = (a: number | null, b: number | null): boolean => a !== null && b !== null && b < a;
  return (
    wentBack(before.messages, after.messages) ||
    wentBack(before.points, after.points) ||
    wentBack(before.ackBuckets.at(-1)?.count ?? null, after.ackBuckets.at(-1)?.count ?? null)
  );
}

function rate(base: Reading | undefined, newest: Reading | undefined, counter: "messages" | "points"): number | null {
  const from = base?.[counter] ?? null;
  const to = newest?.[counter] ?? null;
  if (base === undefined || newest === undefined || from === null || to === null) return null;
  const spanMs = newest.atMs - base.atMs;
  return spanMs > 0 ? ((to - from) * 1000) / spanMs : null;
}

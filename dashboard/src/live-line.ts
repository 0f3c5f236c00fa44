// The points behind the chart: one key of one device, history from the store and live points after it.
//
// A seam without gap or double rests on two rules:
//  1. history is read (again) after the live subscription of the device is confirmed, so that no point
//     falls between the two; see LinkEvents.subscribed.
//  2. the two are united by time, so that a point in both appears once.

import { ApiError, type HistoryRequest } from "./api";
import { CHART_POINTS_MAX, CHART_WINDOW_MS, CLOCK_AHEAD_MAX_MS } from "./limits";
import { emptyLine, lineOf, merge, trim, type Line } from "./series";
import type { Update } from "./subscriptions";
import { asNumber, type Point } from "./values";

export class LiveLine {
  line: Line = emptyLine();
  loading = false;
  /** Why the history could not be read; empty if it could. */
  failure = "";
  private selection: { deviceId: string; key: string } | null = null;

  constructor(private readonly readHistory: (request: HistoryRequest) => Promise<Point[]>) {}

  /** Starts over with another device or key. */
  async select(deviceId: string, key: string, nowMs: number): Promise<void> {
    this.selection = { deviceId, key };
    this.line = emptyLine();
    this.failure = "";
    await this.reload(nowMs);
  }

  /** Reads the window from the store and unites it with what is already here. */
  async reload(nowMs: number): Promise<void> {
    const selection = this.selection;
    if (selection === null) return;
    this.loading = true;
    try {
      const points = await this.readHistory({
        ...selection,
        startTs: nowMs - CHART_WINDOW_MS,
        endTs: nowMs + CLOCK_AHEAD_MAX_MS,
        limit: CHART_POINTS_MAX,
      });
      if (selection !== this.selection) return; // the answer to an older question
      this.line = merge(toLine(points), this.line);
      this.failure = "";
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (selection !== this.selection) return;
      this.failure = error.message;
    }
    this.loading = false;
  }

  /** Takes over live points, if they are of the selected device and key. */
  add(deviceId: string, update: Update): void {
    if (this.selection?.deviceId !== deviceId) return;
    const points = update.get(this.selection.key);
    if (points !== undefined) this.line = merge(this.line, toLine(points));
  }

  /** Forgets what has left the window that ends at `endMs`. */
  trim(endMs: number): void {
    this.line = trim(this.line, endMs - CHART_WINDOW_MS, CHART_POINTS_MAX);
  }
}

/** The right edge of the chart: now, or the newest point of a device whose clock runs a little ahead. */
export function rightEdge(nowMs: number, newestTs: number | undefined): number {
  const ahead = (newestTs ?? nowMs) - nowMs;
  return ahead > 0 && ahead <= CLOCK_AHEAD_MAX_MS ? nowMs + ahead : nowMs;
}

function toLine(points: Point[]): Line {
  return lineOf(
    points.flatMap(({ ts, value }): [number, number][] => {
      const number = asNumber(value);
      return number === null ? [] : [[ts, number]];
    }),
  );
}

// The live chart: one key of one device, the last minutes from the store, then live points appended.
// Order matters for a seam without gap: the live subscription stands before the history is asked for,
// and the two are united by time, so that a point in both appears once.

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { ApiError, type Api } from "./api";
import { labelOf, sortKeys } from "./columns";
import { byId, make, setText } from "./dom";
import type { Fleet, Vehicle } from "./fleet";
import { CHART_POINTS_MAX, CHART_WINDOW_MS, CLOCK_AHEAD_MAX_MS } from "./limits";
import type { Update } from "./link";
import { emptyLine, lineOf, merge, silenceMs, trim, withBreaks, type Line } from "./series";
import { asNumber, formatAge, formatNumber, type Point } from "./values";

const DEFAULT_KEY = "speed";
const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const CLOCK_SECONDS = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });

export class LiveChart {
  private readonly box = byId("chart");
  private readonly title = byId("chart-device");
  private readonly reading = byId("chart-reading");
  private readonly message = byId("chart-message");
  private readonly retry = byId<HTMLButtonElement>("chart-retry");
  private readonly keySelect = byId<HTMLSelectElement>("chart-key");
  private readonly plot: uPlot;

  private deviceId: string | null = null;
  private key = DEFAULT_KEY;
  private line: Line = emptyLine();
  private loading = false;
  private failure = "";
  /** Counts changes of the selection: an answer to an older one is dropped. */
  private generation = 0;
  private endMs = Date.now();

  constructor(
    private readonly api: Api,
    private readonly fleet: Fleet,
  ) {
    this.plot = new uPlot(this.options(), [[], []], this.box);
    this.keySelect.addEventListener("change", () => this.showKey(this.keySelect.value));
    this.retry.addEventListener("click", () => void this.reload());
    new ResizeObserver(() => this.plot.setSize(this.size())).observe(this.box);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.plot.redraw());
  }

  showDevice(deviceId: string): void {
    this.deviceId = deviceId;
    const vehicle = this.fleet.get(deviceId);
    const keys = numericKeys(vehicle);
    if (keys.length > 0 && !keys.includes(this.key)) this.key = keys[0] ?? DEFAULT_KEY;
    this.restart();
  }

  /** Reads the window from the store and unites it with what is already here. */
  async reload(): Promise<void> {
    if (this.deviceId === null) return;
    const generation = this.generation;
    this.loading = true;
    try {
      const points = await this.readHistory(this.deviceId, this.key);
      if (generation !== this.generation) return;
      this.line = merge(lineOf(points.flatMap(numericPoint)), this.line);
      this.failure = "";
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (generation !== this.generation) return;
      this.failure = error.message;
    }
    this.loading = false;
    this.draw(Date.now());
  }

  /** Takes over live points. */
  add(deviceId: string, update: Update): void {
    const points = deviceId === this.deviceId ? update.get(this.key) : undefined;
    if (points !== undefined) this.line = merge(this.line, lineOf(points.flatMap(numericPoint)));
  }

  draw(nowMs: number): void {
    this.drawKeys();
    this.endMs = rightEdge(nowMs, this.line.xs.at(-1));
    this.line = trim(this.line, this.endMs - CHART_WINDOW_MS, CHART_POINTS_MAX);
    const { xs, ys } = withBreaks(this.line, silenceMs(this.line));
    this.plot.setData([xs, ys]);
    this.drawReading();
    this.drawMessage(nowMs);
  }

  private showKey(key: string): void {
    this.key = key;
    this.restart();
  }

  private restart(): void {
    this.generation++;
    this.line = emptyLine();
    this.failure = "";
    this.draw(Date.now());
    void this.reload();
  }

  private readHistory(deviceId: string, key: string): Promise<Point[]> {
    const nowMs = Date.now();
    return this.api.history({
      deviceId,
      key,
      startTs: nowMs - CHART_WINDOW_MS,
      endTs: nowMs + CLOCK_AHEAD_MAX_MS,
      limit: CHART_POINTS_MAX,
    });
  }

  /** Offers the keys that are numbers, and follows when new ones appear. */
  private drawKeys(): void {
    const vehicle = this.deviceId === null ? undefined : this.fleet.get(this.deviceId);
    setText(this.title, vehicle?.device.name ?? "No device selected");
    const keys = numericKeys(vehicle);
    if (!keys.includes(this.key)) keys.unshift(this.key);
    const offered = [...this.keySelect.options].map(({ value }) => value);
    if (keys.join("\n") !== offered.join("\n")) {
      this.keySelect.replaceChildren(...keys.map(keyOption));
    }
    this.keySelect.value = this.key;
  }

  /** The value under the cursor, or else the newest. */
  private drawReading(): void {
    const index = this.plot.cursor.idx ?? this.plot.data[0].length - 1;
    const at = this.plot.data[0][index];
    const value = this.plot.data[1]?.[index];
    const known = at !== undefined && value !== undefined && value !== null;
    setText(this.reading, known ? `${withUnit(this.key, value)} at ${CLOCK_SECONDS.format(at)}` : "");
  }

  private drawMessage(nowMs: number): void {
    const { label } = labelOf(this.key);
    const text = this.failure !== "" ? `The history cannot be loaded: ${this.failure}` : this.emptyText(label, nowMs);
    setText(this.message, text);
    this.retry.hidden = this.failure === "";
    this.box.setAttribute("aria-label", this.description(label));
  }

  private emptyText(label: string, nowMs: number): string {
    if (this.line.xs.length > 0 || this.deviceId === null) return "";
    if (this.loading) return "Loading…";
    const latest = this.fleet.get(this.deviceId)?.latest.get(this.key);
    const age = latest === undefined ? "" : ` The newest is ${formatAge(nowMs - latest.ts)} old.`;
    return `${label}: no values in the last ${CHART_WINDOW_MS / 60_000} minutes.${age}`;
  }

  /** The chart in words, for those who do not see the canvas. */
  private description(label: string): string {
    const { ys } = this.line;
    if (ys.length === 0) return `${label}: no values`;
    const low = ys.reduce((a, b) => Math.min(a, b), Infinity);
    const high = ys.reduce((a, b) => Math.max(a, b), -Infinity);
    const newest = withUnit(this.key, ys.at(-1) ?? NaN);
    return `${label}, last ${CHART_WINDOW_MS / 60_000} minutes: newest ${newest}, lowest ${withUnit(this.key, low)}, highest ${withUnit(this.key, high)}`;
  }

  private size(): { width: number; height: number } {
    return { width: Math.max(this.box.clientWidth, 200), height: Math.max(this.box.clientHeight, 120) };
  }

  private options(): uPlot.Options {
    const axis = { stroke: () => color("--muted"), font: "12px system-ui, sans-serif" };
    const grid = { stroke: () => color("--line"), width: 1 };
    const ticks = { show: false };
    return {
      ...this.size(),
      ms: 1,
      legend: { show: false },
      padding: [8, 12, 0, 0],
      cursor: { y: false, drag: { x: false, y: false } },
      scales: {
        x: { time: true, range: () => [this.endMs - CHART_WINDOW_MS, this.endMs] },
        y: { range: { min: { pad: 0.15, soft: 0, mode: 2 }, max: { pad: 0.15, soft: 0, mode: 2 } } },
      },
      axes: [
        { ...axis, grid: { show: false }, ticks, size: 28, space: 60, values: (_, at) => at.map((ms) => CLOCK.format(ms)) },
        { ...axis, grid, ticks, size: 52, space: 30, values: (_, at) => at.map((value) => formatNumber(value)) },
      ],
      series: [{}, { stroke: () => color("--accent"), fill: () => color("--chart-fill"), width: 2 }],
      hooks: { setCursor: [() => this.drawReading()] },
    };
  }
}

/** The right edge of the chart: now, or the newest point of a device whose clock runs a little ahead. */
export function rightEdge(nowMs: number, newestTs: number | undefined): number {
  const ahead = (newestTs ?? nowMs) - nowMs;
  return ahead > 0 && ahead <= CLOCK_AHEAD_MAX_MS ? nowMs + ahead : nowMs;
}

function numericKeys(vehicle: Vehicle | undefined): string[] {
  const entries = [...(vehicle?.latest ?? [])];
  return sortKeys(entries.filter(([, { value }]) => asNumber(value) !== null).map(([key]) => key));
}

function numericPoint({ ts, value }: Point): [number, number][] {
  const number = asNumber(value);
  return number === null ? [] : [[ts, number]];
}

function keyOption(key: string): HTMLOptionElement {
  const { label, unit } = labelOf(key);
  const option = make("option", "", unit === "" ? label : `${label} (${unit})`);
  option.value = key;
  return option;
}

function withUnit(key: string, value: number): string {
  const { unit, decimals } = labelOf(key);
  return `${formatNumber(value, decimals)} ${unit}`.trim();
}

function color(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// The live chart as people see it: choice of key, curve, reading under the cursor, messages.
// Where its points come from is in live-line.ts.

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { Api } from "./api";
import { labelOf, sortKeys } from "./columns";
import { byId, make, setText } from "./dom";
import type { Fleet, Vehicle } from "./fleet";
import { CHART_WINDOW_MS } from "./limits";
import { LiveLine, rightEdge } from "./live-line";
import { silenceMs, withBreaks } from "./series";
import type { ChartSpec, Update } from "./subscriptions";
import { asNumber, formatAge, formatNumber, formatReported } from "./values";

const DEFAULT_KEY = "speed";
/** Whole minutes, since the labels show no seconds. */
const TIME_STEPS_MS = [1, 2, 5, 10].map((minutes) => minutes * 60_000);
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
  private readonly points: LiveLine;

  private deviceId: string | null = null;
  private key = DEFAULT_KEY;
  private endMs = Date.now();

  constructor(
    api: Api,
    private readonly fleet: Fleet,
  ) {
    this.points = new LiveLine((request) => api.history(request));
    this.plot = new uPlot(this.options(), [[], []], this.box);
    this.keySelect.addEventListener("change", () => this.showKey(this.keySelect.value));
    this.retry.addEventListener("click", () => void this.reload());
    new ResizeObserver(() => this.plot.setSize(this.size())).observe(this.box);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.plot.redraw());
  }

  /** What is drawn; null before a device is selected. */
  get shown(): ChartSpec | null {
    return this.deviceId === null ? null : { deviceId: this.deviceId, key: this.key };
  }

  showDevice(deviceId: string): void {
    this.deviceId = deviceId;
    this.adoptKey();
    void this.restart();
  }

  /** Reads the history again, if this is the device on show (or whichever is, without an argument). */
  async reload(deviceId: string | null = this.deviceId): Promise<void> {
    if (deviceId === null || deviceId !== this.deviceId) return;
    if (this.adoptKey()) return this.restart();
    await this.points.reload(Date.now());
    this.draw(Date.now());
  }

  /** Takes over live points. */
  add(deviceId: string, update: Update): void {
    this.points.add(deviceId, update);
  }

  draw(nowMs: number): void {
    this.drawKeys();
    this.endMs = rightEdge(nowMs, this.points.line.xs.at(-1));
    this.points.trim(this.endMs);
    const { line } = this.points;
    const { xs, ys } = withBreaks(line, silenceMs(line));
    this.plot.setData([xs, ys]);
    this.drawReading();
    this.drawMessage(nowMs);
  }

  /** Turns to a key the device has, if it is known to lack the present one; true if it did. */
  private adoptKey(): boolean {
    const keys = numericKeys(this.deviceId === null ? undefined : this.fleet.get(this.deviceId));
    const first = keys[0];
    if (first === undefined || keys.includes(this.key)) return false;
    this.key = first;
    return true;
  }

  private showKey(key: string): void {
    this.key = key;
    void this.restart();
  }

  private async restart(): Promise<void> {
    if (this.deviceId === null) return;
    const loaded = this.points.select(this.deviceId, this.key, Date.now());
    this.draw(Date.now());
    await loaded;
    this.draw(Date.now());
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
    const { failure } = this.points;
    setText(this.message, failure !== "" ? `The history cannot be loaded: ${failure}` : this.emptyText(label, nowMs));
    this.retry.hidden = failure === "";
    this.box.setAttribute("aria-label", this.description(label));
  }

  private emptyText(label: string, nowMs: number): string {
    if (this.points.line.xs.length > 0 || this.deviceId === null) return "";
    if (this.points.loading) return "Loading…";
    const latest = this.fleet.get(this.deviceId)?.latest.get(this.key);
    const age = latest === undefined ? "" : ` The newest is ${formatAge(nowMs - latest.ts)} old.`;
    return `${label}: no values in the last ${CHART_WINDOW_MS / 60_000} minutes.${age}`;
  }

  /** The chart in words, for those who do not see the canvas. */
  private description(label: string): string {
    const { ys } = this.points.line;
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
        // From zero on, and no further: a speed has no room below it.
        y: { range: { min: { pad: 0.15, soft: 0, mode: 1 }, max: { pad: 0.15, soft: 0, mode: 1 } } },
      },
      axes: [
        { ...axis, grid: { show: false }, ticks, size: 28, space: 60, incrs: TIME_STEPS_MS, values: clockTexts },
        { ...axis, grid, ticks, size: 52, space: 30, values: (_, at) => at.map((value) => formatNumber(value)) },
      ],
      series: [{}, { stroke: () => color("--accent"), fill: () => color("--chart-fill"), width: 2 }],
      hooks: { setCursor: [() => this.drawReading()] },
    };
  }
}

function numericKeys(vehicle: Vehicle | undefined): string[] {
  const entries = [...(vehicle?.latest ?? [])];
  return sortKeys(entries.filter(([, { value }]) => asNumber(value) !== null).map(([key]) => key));
}

function clockTexts(_: uPlot, at: number[]): string[] {
  return at.map((ms) => CLOCK.format(ms));
}

function keyOption(key: string): HTMLOptionElement {
  const { label, unit } = labelOf(key);
  const option = make("option", "", unit === "" ? label : `${label} (${unit})`);
  option.value = key;
  return option;
}

function withUnit(key: string, value: number): string {
  const { unit, decimals } = labelOf(key);
  return `${formatReported(value, decimals)} ${unit}`.trim();
}

function color(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

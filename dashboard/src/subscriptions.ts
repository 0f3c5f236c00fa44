// What one connection has asked the server for, and which of its messages belongs to what.
//
// The page asks for what is looked at: the newest values of some devices once a second (a watch), and every point of the
// chart's key (a subscription of ThingsBoard). A watch that changes gets a new id, so that a message on its way cannot be
// read with the wrong list of devices.

import { parseValue, type Point } from "./values";

/** New points of one device by key, in the order the server sent them. */
export type Update = ReadonlyMap<string, Point[]>;

/** Devices and keys of which the newest values are wanted; all keys if null. */
export interface WatchSpec {
  deviceIds: readonly string[];
  keys: readonly string[] | null;
  intervalMs: number;
}

export interface ChartSpec {
  deviceId: string;
  key: string;
}

/** What the page looks at. */
export interface View {
  watches: Readonly<Record<string, WatchSpec>>;
  chart: ChartSpec | null;
}

/** Nothing but a sign of life each second. */
export const EMPTY_VIEW: View = { watches: { rows: { deviceIds: [], keys: null, intervalMs: 1_000 } }, chart: null };

interface Watch {
  id: number;
  spec: WatchSpec;
  /** Devices of which the values before the watch are not known. */
  fresh: string[];
}

export interface WireMessage {
  subscriptionId?: number;
  watchId?: number;
  errorCode?: number;
  errorMsg?: string | null;
  data?: Record<string, [number, unknown][]> | null;
  /** Place in the list of devices, milliseconds, values by key. */
  rows?: [number, number, Record<string, unknown>][];
}

export class Subscriptions {
  private readonly watches = new Map<string, Watch>();
  private chart: { id: number; spec: ChartSpec; confirmed: boolean } | null = null;
  private nextId = 1;

  /** The message that makes the server tell what the view needs; null if it does already. */
  show(view: View): string | null {
    const watchCmds = [...this.changedWatches(view)];
    const tsSubCmds = [...this.changedChart(view)];
    return watchCmds.length + tsSubCmds.length === 0 ? null : JSON.stringify({ watchCmds, tsSubCmds });
  }

  watchOf(id: number): Watch | undefined {
    return [...this.watches.values()].find((watch) => watch.id === id);
  }

  /** Takes the server's sign that the watch is in force; gives the devices whose latest values are now to be read. */
  confirm(watch: Watch): string[] {
    return watch.fresh.splice(0);
  }

  chartOf(id: number | undefined): ChartSpec | undefined {
    return this.chart?.id === id ? this.chart?.spec : undefined;
  }

  /** True the first time the server answers for the chart. */
  confirmChart(): boolean {
    const first = this.chart?.confirmed === false;
    if (this.chart !== null) this.chart.confirmed = true;
    return first;
  }

  private *changedWatches(view: View): Generator<object> {
    for (const name of new Set([...this.watches.keys(), ...Object.keys(view.watches)])) {
      const [before, spec] = [this.watches.get(name), view.watches[name]];
      if (JSON.stringify(before?.spec) === JSON.stringify(spec)) continue;
      if (before !== undefined) yield { cmdId: before.id, unsubscribe: true };
      this.watches.delete(name);
      if (spec === undefined) continue;
      const sameKeys = JSON.stringify(before?.spec.keys) === JSON.stringify(spec.keys);
      const known = new Set(sameKeys ? before?.spec.deviceIds : []);
      before?.fresh.forEach((id) => known.delete(id));
      const watch = { id: this.nextId++, spec, fresh: spec.deviceIds.filter((id) => !known.has(id)) };
      this.watches.set(name, watch);
      yield {
        cmdId: watch.id,
        entityIds: spec.deviceIds,
        ...(spec.keys === null ? {} : { keys: spec.keys }),
        interval: spec.intervalMs,
        deflate: true,
      };
    }
  }

  private *changedChart({ chart: spec }: View): Generator<object> {
    const before = this.chart;
    if (before?.spec.deviceId === spec?.deviceId && before?.spec.key === spec?.key) return;
    if (before !== null) yield { cmdId: before.id, unsubscribe: true };
    this.chart = spec === null ? null : { id: this.nextId++, spec, confirmed: false };
    if (this.chart === null || spec === null) return;
    // A list of keys cannot name a key with a comma or with blanks around it: all keys then.
    const named = spec.key.includes(",") || spec.key.trim() !== spec.key ? {} : { keys: spec.key };
    yield { entityType: "DEVICE", entityId: spec.deviceId, scope: "LATEST_TELEMETRY", cmdId: this.chart.id, ...named };
  }
}

export function parseMessage(text: string): WireMessage | null {
  try {
    const message = JSON.parse(text) as WireMessage | null;
    return typeof message === "object" ? message : null;
  } catch {
    return null;
  }
}

/** The points of a watch's message, device by device. */
export function rowUpdates(deviceIds: readonly string[], rows: WireMessage["rows"]): [string, Update][] {
  return (rows ?? []).flatMap(([place, ts, values]): [string, Update][] => {
    const deviceId = deviceIds[place];
    if (deviceId === undefined) return [];
    const update = new Map<string, Point[]>();
    for (const [key, value] of Object.entries(values)) update.set(key, [{ ts, value: parseValue(value) }]);
    return [[deviceId, update]];
  });
}

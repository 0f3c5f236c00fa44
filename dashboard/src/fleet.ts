// The fleet in memory: devices with their latest values, filtered and sorted for the table.

import type { Device } from "./api";
import { faultCodes, type Column, type SortValue } from "./columns";
import { KEYS_PER_DEVICE_MAX } from "./limits";
import type { Update } from "./subscriptions";
import type { Point } from "./values";

export interface Vehicle {
  device: Device;
  latest: Map<string, Point>;
  /** Time of the newest point of any key, null before the first. */
  lastTs: number | null;
}

export interface Sort {
  columnId: string;
  descending: boolean;
}

export class Fleet {
  /** Keys any device of the fleet has sent. */
  readonly keys = new Set<string>();
  private vehicles = new Map<string, Vehicle>();

  get size(): number {
    return this.vehicles.size;
  }

  get(deviceId: string): Vehicle | undefined {
    return this.vehicles.get(deviceId);
  }

  all(): Vehicle[] {
    return [...this.vehicles.values()];
  }

  /** Takes over a device list; devices no longer in it are gone, the values of the others stay. */
  setDevices(devices: Device[]): void {
    this.vehicles = new Map(
      devices.map((device) => {
        const known = this.vehicles.get(device.id);
        return [device.id, { device, latest: known?.latest ?? new Map(), lastTs: known?.lastTs ?? null }];
      }),
    );
  }

  /** Takes over new points; a late point does not replace a newer value. */
  apply(deviceId: string, update: Update): void {
    const vehicle = this.vehicles.get(deviceId);
    if (vehicle === undefined) return;
    for (const [key, points] of update) {
      for (const point of points) this.applyPoint(vehicle, key, point);
    }
  }

  private applyPoint(vehicle: Vehicle, key: string, point: Point): void {
    const current = vehicle.latest.get(key);
    if (current === undefined && vehicle.latest.size >= KEYS_PER_DEVICE_MAX) return;
    if (current !== undefined && current.ts > point.ts) return;
    vehicle.latest.set(key, point);
    vehicle.lastTs = Math.max(vehicle.lastTs ?? point.ts, point.ts);
    if (this.keys.size < KEYS_PER_DEVICE_MAX) this.keys.add(key);
  }
}

/** Vehicles whose name, type or fault codes contain every word of the filter. */
export function filterVehicles(vehicles: Vehicle[], filter: string): Vehicle[] {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return vehicles;
  return vehicles.filter(({ device, latest }) => {
    const faults = faultCodes(latest.get("fault_codes")?.value);
    const text = [device.name, device.type, ...faults].join(" ").toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

const collator = new Intl.Collator("en", { numeric: true });

/** Sorts by a column; equal values by name, missing values last in either direction. */
export function sortVehicles(vehicles: Vehicle[], column: Column, descending: boolean): Vehicle[] {
  const rows = vehicles.map((vehicle) => ({ vehicle, value: column.sortValue(vehicle) }));
  rows.sort((a, b) => compare(a.value, b.value, descending) || compareNames(a.vehicle, b.vehicle));
  return rows.map(({ vehicle }) => vehicle);
}

function compare(a: SortValue, b: SortValue, descending: boolean): number {
  if (a === null || b === null) return Number(a === null) - Number(b === null);
  const order = typeof a === "number" && typeof b === "number" ? a - b : compareMixed(a, b);
  return descending ? -order : order;
}

/** Numbers before text. */
function compareMixed(a: number | string, b: number | string): number {
  if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
  return collator.compare(String(a), String(b));
}

function compareNames(a: Vehicle, b: Vehicle): number {
  return collator.compare(a.device.name, b.device.name);
}

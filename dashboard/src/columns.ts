// The columns of the fleet table: which exist, how a cell reads, what it sorts by.

import { COLUMNS_MAX, STALE_MS } from "./limits";
import { formatAge, formatValue, type Value } from "./values";
import type { Vehicle } from "./fleet";

/** What a column sorts by; null (nothing reported) always comes last. */
export type SortValue = number | string | null;

export interface Column {
  id: string;
  label: string;
  unit: string;
  /** Numbers are at the right edge, so that their digits line up. */
  numeric: boolean;
  text(vehicle: Vehicle, nowMs: number): string;
  sortValue(vehicle: Vehicle): SortValue;
  /** What it is made of; null for the time of the newest value of any key. */
  keys: readonly string[] | null;
  /** Marks a cell that wants attention. */
  alert?(vehicle: Vehicle, nowMs: number): boolean;
}

interface Known {
  label: string;
  unit: string;
  /** The least digits after the point, so that the digits of a column line up; none is rounded away. */
  decimals: number;
}

/** Keys a vehicle sends, in the order they are shown. */
const KNOWN = new Map<string, Known>([
  ["speed", { label: "Speed", unit: "km/h", decimals: 1 }],
  ["rpm", { label: "Engine", unit: "rpm", decimals: 0 }],
  ["fuel_level", { label: "Fuel", unit: "%", decimals: 1 }],
  ["coolant_temperature", { label: "Coolant", unit: "°C", decimals: 1 }],
  ["gear", { label: "Gear", unit: "", decimals: 0 }],
  ["engine_load", { label: "Load", unit: "%", decimals: 1 }],
  ["throttle", { label: "Throttle", unit: "%", decimals: 1 }],
  ["oil_temperature", { label: "Oil", unit: "°C", decimals: 1 }],
  ["ambient_temperature", { label: "Ambient", unit: "°C", decimals: 1 }],
  ["heading", { label: "Heading", unit: "°", decimals: 1 }],
  ["odometer", { label: "Odometer", unit: "km", decimals: 1 }],
  ["ignition", { label: "Ignition", unit: "", decimals: 0 }],
]);
const MAIN_KEYS = ["speed", "rpm", "fuel_level", "coolant_temperature"];
const POSITION_KEYS = ["latitude", "longitude"];
/** Also searched by the filter. */
export const FAULT_KEY = "fault_codes";
/** A fleet that sends none of the main keys shows its first keys instead, up to this many. */
const FALLBACK_KEYS = 6;

export interface ColumnChoice {
  columns: Column[];
  /** How many further columns "more columns" would add. */
  more: number;
}

/** Chooses the columns for the keys that exist: the main ones, with `all` every other key too. */
export function chooseColumns(keys: ReadonlySet<string>, all: boolean): ColumnChoice {
  const own = new Set([...MAIN_KEYS, ...POSITION_KEYS, FAULT_KEY]);
  const rest = [
    ...[...KNOWN.keys()].filter((key) => keys.has(key) && !own.has(key)),
    ...[...keys].filter((key) => !KNOWN.has(key) && !own.has(key)).sort(),
  ];
  const main = MAIN_KEYS.filter((key) => keys.has(key));
  if (main.length === 0) main.push(...rest.splice(0, FALLBACK_KEYS));
  const extra = rest.slice(0, COLUMNS_MAX);
  return {
    columns: [
      nameColumn,
      ...main.map(keyColumn),
      ...(POSITION_KEYS.every((key) => keys.has(key)) ? [positionColumn] : []),
      ...(keys.has(FAULT_KEY) ? [faultColumn] : []),
      ...(all ? extra.map(keyColumn) : []),
      ageColumn,
    ],
    more: extra.length,
  };
}

/** The name and unit people read for a key. */
export function labelOf(key: string): { label: string; unit: string; decimals?: number } {
  return KNOWN.get(key) ?? { label: key, unit: "" };
}

/** The keys of a chart's choice, known ones first. */
export function sortKeys(keys: Iterable<string>): string[] {
  const rank = [...KNOWN.keys()];
  const rankOf = (key: string): number => (rank.includes(key) ? rank.indexOf(key) : rank.length);
  return [...keys].sort((a, b) => rankOf(a) - rankOf(b) || a.localeCompare(b));
}

/** Fault codes as a list, whether they come as a JSON array or as text. */
export function faultCodes(value: Value | undefined): string[] {
  if (Array.isArray(value)) return value.map((code) => formatValue(code));
  if (value === undefined || value === null || value === "") return [];
  return [formatValue(value)];
}

const nameColumn: Column = {
  id: "name",
  label: "Device",
  unit: "",
  numeric: false,
  text: ({ device }) => device.name,
  sortValue: ({ device }) => device.name,
  keys: [],
};

const positionColumn: Column = {
  id: "position",
  label: "Position",
  unit: "lat, lon",
  numeric: true,
  text: ({ latest }) => POSITION_KEYS.map((key) => formatValue(latest.get(key)?.value)).filter(Boolean).join(", "),
  keys: POSITION_KEYS,
  sortValue: ({ latest }) => sortable(latest.get("latitude")?.value),
};

const faultColumn: Column = {
  id: FAULT_KEY,
  label: "Faults",
  unit: "",
  numeric: false,
  text: ({ latest }) => faultCodes(latest.get(FAULT_KEY)?.value).join(" "),
  sortValue: ({ latest }) => faultCodes(latest.get(FAULT_KEY)?.value).join(" ") || null,
  keys: [FAULT_KEY],
  alert: ({ latest }) => faultCodes(latest.get(FAULT_KEY)?.value).length > 0,
};

const ageColumn: Column = {
  id: "age",
  label: "Age",
  unit: "",
  numeric: true,
  text: ({ lastTs }, nowMs) => (lastTs === null ? "" : formatAge(nowMs - lastTs)),
  // Ascending age is descending time.
  sortValue: ({ lastTs }) => (lastTs === null ? null : -lastTs),
  keys: null,
  alert: ({ lastTs }, nowMs) => lastTs !== null && nowMs - lastTs > STALE_MS,
};

function keyColumn(key: string): Column {
  const { label, unit, decimals } = labelOf(key);
  return {
    id: keyColumnId(key),
    label,
    unit,
    numeric: true,
    text: ({ latest }) => formatValue(latest.get(key)?.value, decimals),
    sortValue: ({ latest }) => sortable(latest.get(key)?.value),
    keys: [key],
  };
}

/** A device may name a key like a column of ours, "name" for one: the prefix keeps them apart. */
export function keyColumnId(key: string): string {
  return `key:${key}`;
}

function sortable(value: Value | undefined): SortValue {
  if (value === undefined || value === null) return null;
  if (typeof value === "number") return value;
  if (typeof value === "boolean") return value ? 1 : 0;
  return formatValue(value);
}

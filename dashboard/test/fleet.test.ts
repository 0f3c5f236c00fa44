import { describe, expect, it } from "vitest";
import { chooseColumns, faultCodes, keyColumnId, sortKeys } from "../src/columns";
import { Fleet, filterVehicles, sortVehicles, type Vehicle } from "../src/fleet";
import { KEYS_PER_DEVICE_MAX } from "../src/limits";
import { targetIndex } from "../src/table";
import type { Value } from "../src/values";

function vehicle(name: string, values: Record<string, Value> = {}, ts = 1000): Vehicle {
  const latest = new Map(Object.entries(values).map(([key, value]) => [key, { ts, value }]));
  return { device: { id: name, name, type: "truck" }, latest, lastTs: latest.size === 0 ? null : ts };
}

function sortedBy(columnId: string, vehicles: Vehicle[], descending = false): string {
  const keys = new Set(vehicles.flatMap(({ latest }) => [...latest.keys()]));
  const column = chooseColumns(keys, true).columns.find(({ id }) => id === columnId || id === keyColumnId(columnId));
  if (column === undefined) throw new Error(`no column ${columnId}`);
  return sortVehicles(vehicles, column, descending).map(({ device }) => device.name).join(" ");
}

describe("sorting", () => {
  const cars = [vehicle("car-10", { speed: 9 }), vehicle("car-9", { speed: 80 }), vehicle("car-1"), vehicle("car-2", { speed: 80 })];

  it("orders names as people count", () => {
    expect(sortedBy("name", cars)).toBe("car-1 car-2 car-9 car-10");
    expect(sortedBy("name", cars, true)).toBe("car-10 car-9 car-2 car-1");
  });

  it("orders numbers as numbers, ties by name, missing values last both ways", () => {
    expect(sortedBy("speed", cars)).toBe("car-10 car-2 car-9 car-1");
    expect(sortedBy("speed", cars, true)).toBe("car-2 car-9 car-10 car-1");
  });

  it("puts numbers before text in a column of mixed types", () => {
    expect(sortedBy("gear", [vehicle("a", { gear: "N" }), vehicle("b", { gear: 2 }), vehicle("c", { gear: true })])).toBe("c b a");
  });

  it("puts the freshest device first by age", () => {
    expect(sortedBy("age", [vehicle("old", { speed: 1 }, 10), vehicle("never"), vehicle("new", { speed: 1 }, 20)])).toBe("new old never");
  });

  it("gathers devices with faults in front", () => {
    expect(sortedBy("fault_codes", [vehicle("ok", { fault_codes: [] }), vehicle("bad", { fault_codes: ["P0300"] })])).toBe("bad ok");
  });
});

describe("filtering", () => {
  const cars = [vehicle("Van-1", { fault_codes: ["P0420"] }), vehicle("Van-2"), vehicle("Bus-1", { fault_codes: "P0420" })];
  const names = (filter: string): string[] => filterVehicles(cars, filter).map(({ device }) => device.name);

  it("wants every word, in name, type or fault codes", () => {
    expect(names("")).toHaveLength(3);
    expect(names("van")).toEqual(["Van-1", "Van-2"]);
    expect(names(" p0420  van ")).toEqual(["Van-1"]);
    expect(names("truck bus")).toEqual(["Bus-1"]);
    expect(names("tram")).toEqual([]);
  });
});

describe("columns", () => {
  const labels = (keys: string[], all: boolean): string[] => chooseColumns(new Set(keys), all).columns.map(({ label }) => label);

  it("shows what the fleet sends, main columns first, the rest on demand", () => {
    const keys = ["zeta", "gear", "speed", "longitude", "latitude", "fault_codes", "alpha"];
    expect(labels(keys, false)).toEqual(["Device", "Speed", "Position", "Faults", "Age"]);
    expect(labels(keys, true)).toEqual(["Device", "Speed", "Position", "Faults", "Gear", "alpha", "zeta", "Age"]);
    expect(chooseColumns(new Set(keys), false).more).toBe(3);
  });

  it("shows the first unknown keys of a fleet that sends none of the main ones", () => {
    expect(labels(["b", "a"], false)).toEqual(["Device", "a", "b", "Age"]);
    expect(labels([], false)).toEqual(["Device", "Age"]);
  });

  it("takes a key named like a property of every object for unknown", () => {
    expect(labels(["speed", "constructor", "__proto__"], true)).toEqual(["Device", "Speed", "__proto__", "constructor", "Age"]);
  });

  it("tells a key named like a column of ours from that column", () => {
    const ids = chooseColumns(new Set(["name", "age", "position"]), true).columns.map(({ id }) => id);
    expect(new Set(ids).size).toBe(5);
  });

  it("offers known keys first for the chart", () => {
    expect(sortKeys(["zeta", "rpm", "alpha", "speed"])).toEqual(["speed", "rpm", "alpha", "zeta"]);
  });
});

it("reads fault codes from a list or from text", () => {
  expect([["P0300", 7], "P0300", "", null, undefined].map((value) => faultCodes(value))).toEqual([["P0300", "7"], ["P0300"], [], [], []]);
});

describe("Fleet", () => {
  const devices = [
    { id: "a", name: "A", type: "" },
    { id: "b", name: "B", type: "" },
  ];
  const update = (key: string, ts: number, value: Value) => new Map([[key, [{ ts, value }]]]);

  it("keeps the newest value of each key", () => {
    const fleet = new Fleet();
    fleet.setDevices(devices);
    fleet.apply("a", update("speed", 20, 2));
    fleet.apply("a", update("speed", 10, 1));
    fleet.apply("a", update("rpm", 15, 900));
    fleet.apply("unknown", update("speed", 30, 3));
    expect(fleet.get("a")?.latest.get("speed")).toEqual({ ts: 20, value: 2 });
    expect(fleet.get("a")?.lastTs).toBe(20);
    expect(fleet.size).toBe(2);
  });

  it("keeps values over a new device list and drops devices that are gone", () => {
    const fleet = new Fleet();
    fleet.setDevices(devices);
    fleet.apply("a", update("speed", 1, 1));
    fleet.setDevices([{ id: "a", name: "A renamed", type: "" }]);
    expect(fleet.get("a")).toMatchObject({ device: { name: "A renamed" }, lastTs: 1 });
    expect(fleet.get("b")).toBeUndefined();
  });

  it("bounds the keys of a device", () => {
    const fleet = new Fleet();
    fleet.setDevices(devices);
    for (let i = 0; i < KEYS_PER_DEVICE_MAX + 50; i++) fleet.apply("a", update(`key${i}`, i, i));
    expect(fleet.get("a")?.latest.size).toBe(KEYS_PER_DEVICE_MAX);
    expect(fleet.keys.size).toBe(KEYS_PER_DEVICE_MAX);
  });
});

it("moves over the rows by keyboard and stops at the ends", () => {
  const moves = ["ArrowDown", "ArrowUp", "Home", "End", "PageDown", "PageUp", "Enter", "x"];
  expect(moves.map((key) => targetIndex(key, 0, 30))).toEqual([1, 0, 0, 29, 10, 0, 0, -1]);
  expect(moves.map((key) => targetIndex(key, 29, 30))).toEqual([29, 28, 0, 29, 29, 19, 29, -1]);
});

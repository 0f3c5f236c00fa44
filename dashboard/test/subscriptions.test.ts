import { expect, it } from "vitest";
import { EMPTY_VIEW, Subscriptions, rowUpdates, type View } from "../src/subscriptions";

function rows(...deviceIds: string[]): View {
  return { watches: { rows: { deviceIds, keys: null, intervalMs: 1_000 } }, chart: null };
}

interface Commands {
  watchCmds: { cmdId: number; entityIds?: string[]; keys?: string[]; unsubscribe?: boolean }[];
  tsSubCmds: { cmdId: number; keys?: string; unsubscribe?: boolean }[];
}

function commands(text: string | null): Commands {
  return JSON.parse(text ?? "") as Commands;
}

it("asks for a sign of life even when nothing is looked at", () => {
  const sent = commands(new Subscriptions().show(EMPTY_VIEW));
  expect(sent.watchCmds).toEqual([{ cmdId: 1, entityIds: [], interval: 1_000, deflate: true }]);
});

it("says nothing while the view stays the same, and gives every other watch a new id", () => {
  const asked = new Subscriptions();
  asked.show(rows("a", "b"));
  expect(asked.show(rows("a", "b"))).toBeNull();
  expect(commands(asked.show(rows("b", "c"))).watchCmds).toEqual([
    { cmdId: 1, unsubscribe: true },
    { cmdId: 2, entityIds: ["b", "c"], interval: 1_000, deflate: true },
  ]);
  expect(asked.watchOf(1)).toBeUndefined();
});

it("reads the latest values of devices that come into sight, once they are watched", () => {
  const asked = new Subscriptions();
  const fresh = (id: number): string[] => asked.confirm(asked.watchOf(id)!);
  asked.show(rows("a", "b"));
  expect(fresh(1)).toEqual(["a", "b"]);
  expect(fresh(1)).toEqual([]);
  asked.show(rows("b", "c"));
  asked.show(rows("b", "c", "d"));
  expect(fresh(3)).toEqual(["c", "d"]);
  asked.show(rows("a"));
  expect(fresh(4)).toEqual(["a"]);
  asked.show({ ...rows("a"), watches: { rows: { deviceIds: ["a"], keys: ["n"], intervalMs: 1_000 } } });
  expect(fresh(5)).toEqual(["a"]);
});

it("follows the chart, whatever its key is called", () => {
  const asked = new Subscriptions();
  const chart = (key: string): Commands => commands(asked.show({ ...rows(), chart: { deviceId: "a", key } }));
  expect(chart("speed").tsSubCmds).toMatchObject([{ cmdId: 2, entityId: "a", keys: "speed" }]);
  expect(asked.confirmChart()).toBe(true);
  expect(asked.confirmChart()).toBe(false);
  expect(chart("a,b").tsSubCmds[0]).toEqual({ cmdId: 2, unsubscribe: true });
  expect(asked.chartOf(3)).toEqual({ deviceId: "a", key: "a,b" });
  expect(chart(" x").tsSubCmds[1]).not.toHaveProperty("keys");
  expect(commands(asked.show(rows())).tsSubCmds).toEqual([{ cmdId: 4, unsubscribe: true }]);
  expect(asked.chartOf(undefined)).toBeUndefined();
});

it("finds devices by their place in the list that was sent", () => {
  const found = rowUpdates(["a", "b"], [[1, 5, { n: "1" }], [7, 5, { n: "2" }]]);
  expect(found.map(([id, update]) => [id, [...update]])).toEqual([["b", [["n", [{ ts: 5, value: 1 }]]]]]);
  expect(rowUpdates([], undefined)).toEqual([]);
});

import { describe, expect, it } from "vitest";
import type { Refusal } from "../src/api";
import { refusalCells, refusalSummary } from "../src/refusals";

const truck: Refusal = { id: "1", name: "truck 7", messages: 3, lastTs: 10_000, door: "mqtt", reason: "the key is empty" };

describe("refused messages", () => {
  it("are shown with their number, age, door and reason", () => {
    expect(refusalCells(truck, 15_000)).toEqual(["truck 7", "3", "5 s ago", "mqtt", "the key is empty"]);
    expect(refusalCells({ ...truck, reason: null }, 15_000)[4]).toBe("log in to see the reason");
  });

  it("are summed up over the devices", () => {
    expect(refusalSummary([truck])).toBe("Refused messages: 3 of 1 device");
    expect(refusalSummary([truck, { ...truck, id: "2", messages: 4 }])).toBe("Refused messages: 7 of 2 devices");
  });
});

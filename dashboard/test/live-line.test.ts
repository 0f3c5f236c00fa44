import { describe, expect, it } from "vitest";
import { ApiError, type HistoryRequest } from "../src/api";
import { CHART_WINDOW_MS } from "../src/limits";
import { LiveLine, rightEdge } from "../src/live-line";
import type { Point } from "../src/values";

const NOW = 1_000_000;
const at = (...times: number[]): Point[] => times.map((ts) => ({ ts: NOW + ts, value: ts }));
const speed = (...times: number[]) => new Map([["speed", at(...times)]]);
const times = (line: LiveLine): number[] => line.line.xs.map((x) => x - NOW);

/** A store whose answers the test gives by hand. */
function store() {
  const asked: { request: HistoryRequest; answer(points: Point[]): void; fail(error: Error): void }[] = [];
  const read = (request: HistoryRequest) =>
    new Promise<Point[]>((answer, fail) => asked.push({ request, answer, fail }));
  return { asked, line: new LiveLine(read) };
}

describe("LiveLine", () => {
  it("keeps live points that overtake the history, each time once", async () => {
    const { asked, line } = store();
    const loaded = line.select("car", "speed", NOW);
    line.add("car", speed(3, 4));
    asked[0]?.answer(at(1, 2, 3));
    await loaded;
    line.add("car", speed(4, 5));
    expect(times(line)).toEqual([1, 2, 3, 4, 5]);
  });

  it("closes the hole of a broken connection from the store", async () => {
    const { asked, line } = store();
    const loaded = line.select("car", "speed", NOW);
    asked[0]?.answer(at(1, 2));
    await loaded;
    line.add("car", speed(6)); // 3 to 5 were reported while nobody listened
    const again = line.reload(NOW + 7);
    asked[1]?.answer(at(1, 2, 3, 4, 5, 6));
    await again;
    expect(times(line)).toEqual([1, 2, 3, 4, 5, 6]);
  });

  it("drops the answer to an older selection", async () => {
    const { asked, line } = store();
    const first = line.select("car", "speed", NOW);
    const second = line.select("van", "speed", NOW);
    asked[1]?.answer(at(7));
    await second;
    asked[0]?.answer(at(1, 2, 3));
    await first;
    expect(times(line)).toEqual([7]);
  });

  it("ignores other devices, other keys and values that are not numbers", async () => {
    const { asked, line } = store();
    const loaded = line.select("car", "speed", NOW);
    asked[0]?.answer([{ ts: NOW, value: "fast" }]);
    await loaded;
    line.add("van", speed(1));
    line.add("car", new Map([["rpm", at(2)]]));
    expect(times(line)).toEqual([]);
  });

  it("continues with live points when the history fails, and says why until it succeeds", async () => {
    const { asked, line } = store();
    const loaded = line.select("car", "speed", NOW);
    asked[0]?.fail(new ApiError("Too many requests", 429));
    await loaded;
    line.add("car", speed(1));
    expect([line.failure, line.loading, times(line)]).toEqual(["Too many requests", false, [1]]);
    const again = line.reload(NOW);
    asked[1]?.answer(at(0));
    await again;
    expect([line.failure, times(line)]).toEqual(["", [0, 1]]);
  });

  it("asks for its window and forgets what leaves it", async () => {
    const { asked, line } = store();
    const loaded = line.select("car", "speed", NOW);
    expect(asked[0]?.request).toMatchObject({ deviceId: "car", key: "speed", startTs: NOW - CHART_WINDOW_MS });
    asked[0]?.answer(at(-10, 0, 10));
    await loaded;
    line.trim(NOW + CHART_WINDOW_MS);
    expect(times(line)).toEqual([0, 10]);
  });
});

it("follows a device clock that runs a little ahead, not one that is far off", () => {
  expect(rightEdge(NOW, undefined)).toBe(NOW);
  expect(rightEdge(NOW, NOW - 5)).toBe(NOW);
  expect(rightEdge(NOW, NOW + 5_000)).toBe(NOW + 5_000);
  expect(rightEdge(NOW, NOW + 3_600_000)).toBe(NOW);
});

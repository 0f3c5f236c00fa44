import { describe, expect, it } from "vitest";
import { StatsWindow, readMetrics, type Reading } from "../src/stats";

/** A server that takes 100 messages per second; `slow` of the acks need more than 1 ms. */
function reading(second: number, slow = 0): Reading {
  const messages = second * 100;
  return {
    atMs: second * 1000,
    messages,
    points: messages * 15,
    connections: 200,
    ackBuckets: [
      { le: 0.001, count: messages - slow },
      { le: 0.002, count: messages },
      { le: Infinity, count: messages },
    ],
  };
}

function windowOf(readings: Reading[]): StatsWindow {
  const window = new StatsWindow();
  readings.forEach((each) => window.push(each));
  return window;
}

describe("StatsWindow", () => {
  it("says nothing from one reading but the gauge", () => {
    const stats = windowOf([reading(1)]).stats();
    expect(stats).toEqual({ messagesPerSecond: null, pointsPerSecond: null, connections: 200, ackP50: null, ackP99: null });
  });

  it("gives rates per second", () => {
    const stats = windowOf([reading(1), reading(2), reading(3)]).stats();
    expect(stats.messagesPerSecond).toBe(100);
    expect(stats.pointsPerSecond).toBe(1500);
  });

  it("divides by the time that really passed", () => {
    const late = { ...reading(6), atMs: 11_000 };
    expect(windowOf([reading(1), late]).stats().messagesPerSecond).toBe(50);
  });

  it("forgets acks older than ten seconds", () => {
    // 30 slow acks happen in second 2 and stay in the cumulative count forever.
    const seconds = (until: number): Reading[] =>
      Array.from({ length: until }, (_, i) => reading(i + 1, i + 1 >= 2 ? 30 : 0));
    expect(windowOf(seconds(5)).stats().ackP99?.value).toBeGreaterThan(0.001);
    expect(windowOf(seconds(13)).stats().ackP99?.value).toBeLessThan(0.001);
  });

  it("starts over when a counter goes back, as after a restart of the server", () => {
    const window = windowOf([reading(50), reading(51), { ...reading(1), atMs: 52_000 }]);
    expect(window.stats().messagesPerSecond).toBeNull();
    window.push({ ...reading(2), atMs: 53_000 });
    expect(window.stats().messagesPerSecond).toBe(100);
  });
});

it("reads the server's metric names", () => {
  const text = `tacho_messages_total{door="mqtt"} 5
tacho_messages_total{door="http"} 7
tacho_points_total 75
tacho_connections{door="mqtt"} 3
tacho_connections{door="http"} 9
tacho_ack_latency_seconds_bucket{le="0.001",door="mqtt"} 5
tacho_ack_latency_seconds_bucket{le="+Inf",door="mqtt"} 5
`;
  expect(readMetrics(text, 1)).toEqual({
    atMs: 1,
    messages: 5,
    points: 75,
    connections: 3,
    ackBuckets: [
      { le: 0.001, count: 5 },
      { le: Infinity, count: 5 },
    ],
  });
});

it("tolerates a server without these metrics", () => {
  const window = windowOf([readMetrics("", 1), readMetrics("other 1\n", 2)]);
  expect(Object.values(window.stats())).toEqual([null, null, null, null, null]);
});

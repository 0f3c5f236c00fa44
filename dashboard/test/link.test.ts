import { deflateRawSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ApiError, type Api, type DeviceList } from "../src/api";
import { RECONNECT_MAX_MS, SILENCE_CHECK_MS, SILENCE_MAX_MS } from "../src/limits";
import { Link, backoffMs, type LinkState } from "../src/link";
import type { View } from "../src/subscriptions";

class FakeSocket {
  sent: string[] = [];
  readyState = 0;
  onopen: (() => void) | null = null;
  onmessage: ((event: { data: string | ArrayBuffer }) => void) | null = null;
  onclose: ((event: { code: number; reason: string }) => void) | null = null;
  open(): void {
    this.readyState = 1;
    this.onopen?.();
  }
  receive(message: unknown): void {
    const isText = typeof message === "string" || message instanceof ArrayBuffer;
    this.onmessage?.({ data: isText ? message : JSON.stringify(message) });
  }
  commands(): { watchCmds: { cmdId: number }[]; tsSubCmds: { cmdId: number }[] } {
    return JSON.parse(this.sent.at(-1) ?? "{}");
  }
  send(text: string): void {
    this.sent.push(text);
  }
  close(): void {
    this.readyState = 3;
  }
}

const VIEW: View = {
  watches: { rows: { deviceIds: ["a", "b"], keys: null, intervalMs: 1_000 } },
  chart: { deviceId: "b", key: "speed" },
};
const LIST: DeviceList = { devices: ["a", "b"].map((id) => ({ id, name: id, type: "" })), total: 2 };

function page(options: { publicLogin?: boolean } = {}) {
  const sockets: FakeSocket[] = [];
  const log: string[] = [];
  const state = { token: false, list: () => Promise.resolve(LIST) };
  const api = {
    get hasToken() {
      return state.token;
    },
    expire: () => void (state.token = false),
    renew: () => Promise.resolve(false),
    latest: (ids: string[], keys: string[] | null) => {
      log.push(`read ${ids.join()} ${keys?.join() ?? "all"}`);
      return Promise.resolve([]);
    },
    loginPublic: () => {
      log.push("public login");
      state.token = options.publicLogin ?? true;
      return Promise.resolve(state.token);
    },
    devices: () => state.list(),
    liveUrl: () => "ws://test",
  };
  const describeState = (each: LinkState): string => ("reason" in each ? `${each.kind}: ${each.reason}` : each.kind);
  const link = new Link(
    api as unknown as Api,
    {
      state: (each) => log.push(describeState(each)),
      devices: (list) => log.push(`devices ${list.devices.length}`),
      update: (id, update) => log.push(`update ${id} ${JSON.stringify([...update])}`),
      subscribed: (id) => log.push(`subscribed ${id}`),
      subscriptionRefused: (reason) => log.push(`subscription refused: ${reason}`),
      login: (reason) => {
        log.push(`form: ${reason}`);
        state.token = true;
        return Promise.resolve();
      },
    },
    () => {
      const socket = new FakeSocket();
      sockets.push(socket);
      return socket as unknown as WebSocket;
    },
  );
  link.look(VIEW);
  void link.run();
  return { sockets, log, state, link, settle: (ms = 0) => vi.advanceTimersByTimeAsync(ms) };
}

describe("Link", () => {
  beforeEach(() => {
    vi.useFakeTimers();
    vi.spyOn(Math, "random").mockReturnValue(0.5); // the jitter of a wait decides no test
    vi.stubGlobal("WebSocket", { OPEN: 1 });
  });
  afterEach(() => {
    vi.restoreAllMocks();
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });

  it("logs in, asks for what is looked at and passes updates on", async () => {
    const { sockets, log, settle } = page();
    await settle();
    sockets[0]?.open();
    expect(sockets[0]?.commands()).toEqual({
      watchCmds: [{ cmdId: 1, entityIds: ["a", "b"], interval: 1_000, deflate: true }],
      tsSubCmds: [{ entityType: "DEVICE", entityId: "b", scope: "LATEST_TELEMETRY", cmdId: 2, keys: "speed" }],
    });
    sockets[0]?.receive({ watchId: 1, rows: [] });
    sockets[0]?.receive({ watchId: 1, rows: [[1, 5, { speed: "42.5", door: "open" }]] });
    const update = { subscriptionId: 2, errorCode: 0, errorMsg: null, data: { speed: [[5, "7"]] } };
    sockets[0]?.receive(update);
    sockets[0]?.receive(update);
    sockets[0]?.receive("no json");
    sockets[0]?.receive({ subscriptionId: 99, data: {} });
    await settle();
    const passed = 'update b [["speed",[{"ts":5,"value":7}]]]';
    expect(log).toEqual([
      "connecting",
      "public login",
      "devices 2",
      "live",
      "read a,b all",
      'update b [["speed",[{"ts":5,"value":42.5}]],["door",[{"ts":5,"value":"open"}]]]',
      passed,
      "subscribed b",
      passed,
    ]);
  });

  it("reads compressed messages, in their order", async () => {
    const { sockets, log, settle } = page();
    await settle();
    sockets[0]?.open();
    const text = JSON.stringify({ watchId: 1, rows: [[0, 5, { n: "1" }]] });
    const bytes = deflateRawSync(text);
    sockets[0]?.receive(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength));
    sockets[0]?.receive({ watchId: 1, rows: [[0, 6, { n: "2" }]] });
    vi.useRealTimers();
    await vi.waitFor(() => expect(log.filter((entry) => entry.startsWith("update"))).toHaveLength(2));
    expect(log.filter((entry) => entry.startsWith("update"))).toEqual([
      'update a [["n",[{"ts":5,"value":1}]]]',
      'update a [["n",[{"ts":6,"value":2}]]]',
    ]);
  });

  it("connects and subscribes again after a break, with the token it has", async () => {
    const { sockets, log, settle } = page();
    await settle();
    sockets[0]?.open();
    sockets[0]?.onclose?.({ code: 1001, reason: "The server is going down" });
    await settle(RECONNECT_MAX_MS / 2);
    sockets[1]?.open();
    expect(sockets[1]?.sent).toEqual(sockets[0]?.sent);
    expect(log.filter((entry) => !entry.startsWith("devices"))).toEqual([
      "connecting",
      "public login",
      "live",
      "reconnecting: The server is going down",
      "live",
    ]);
  });

  it("logs in again at once when the token has expired", async () => {
    const { sockets, log, settle } = page({ publicLogin: false });
    await settle();
    sockets[0]?.open();
    sockets[0]?.onclose?.({ code: 1008, reason: "Token has expired" });
    await settle();
    expect(sockets).toHaveLength(2);
    expect(log.filter((entry) => entry.startsWith("form"))).toEqual(["form: ", "form: Token has expired"]);
  });

  it("does not flood a server that refuses the token it has just given", async () => {
    const { log, state, settle } = page();
    state.list = () => Promise.reject(new ApiError("Unknown key", 401));
    await settle(100);
    expect(log.filter((entry) => entry === "public login").length).toBeLessThanOrEqual(2);
    expect(log.at(-1)).toBe("refused: Unknown key");
  });

  it("waits as long as the server asks for", async () => {
    const { log, sockets, state, settle } = page();
    state.list = () => Promise.reject(new ApiError("Too many requests", 429, 60_000));
    await settle();
    expect(log.at(-1)).toBe("refused: Too many requests");
    state.list = () => Promise.resolve(LIST);
    await settle(59_000);
    expect(sockets).toHaveLength(0);
    await settle(2_000);
    expect(sockets).toHaveLength(1);
  });

  it("notices within seconds that the server is silent", async () => {
    const { sockets, log, settle } = page();
    await settle();
    sockets[0]?.open();
    for (let second = 0; second < 10; second++) {
      await settle(1_000);
      sockets[0]?.receive({ watchId: 1, rows: [] });
    }
    expect(log.some((entry) => entry.startsWith("reconnecting"))).toBe(false);
    await settle(SILENCE_MAX_MS + 2 * SILENCE_CHECK_MS);
    expect(log.at(-1)).toBe("reconnecting: The server is silent.");
    expect(SILENCE_MAX_MS + 2 * SILENCE_CHECK_MS).toBeLessThan(3_000);
    await settle(RECONNECT_MAX_MS / 2);
    expect(sockets).toHaveLength(2);
  });

  it("does not take its own sleep for the server's silence", async () => {
    const { sockets, log, settle } = page();
    await settle();
    sockets[0]?.open();
    await settle(1_000);
    vi.setSystemTime(Date.now() + 60_000);
    const now = performance.now();
    vi.spyOn(performance, "now").mockImplementation(() => now + 60_000);
    await settle(SILENCE_CHECK_MS);
    expect(log.at(-1)).toBe("live");
  });

  it("connects at once with another session when the user wants it", async () => {
    const { sockets, log, link, settle } = page();
    await settle();
    sockets[0]?.open();
    link.restart();
    await settle();
    sockets[1]?.open();
    expect(log.filter((entry) => !entry.startsWith("devices"))).toEqual(["connecting", "public login", "live", "live"]);
  });

  it("tells a refused subscription, and logs in again if it was for the token", async () => {
    const { sockets, log, settle } = page();
    await settle();
    sockets[0]?.open();
    sockets[0]?.receive({ subscriptionId: 1, errorCode: 2, errorMsg: "Too many subscriptions" });
    await settle();
    expect(log).toContain("subscription refused: Too many subscriptions");
    sockets[0]?.receive({ subscriptionId: 1, errorCode: 3, errorMsg: "Unauthorized" });
    await settle();
    expect(log.filter((entry) => entry === "public login")).toHaveLength(2);
  });

  it("reads the list of devices again when it is told that there are others", async () => {
    const { log, sockets, state, link, settle } = page();
    await link.refreshDevices();
    await settle();
    sockets[0]?.open();
    state.list = () => Promise.resolve({ devices: [...LIST.devices, { id: "c", name: "c", type: "" }], total: 3 });
    await link.refreshDevices();
    expect(log.filter((entry) => entry.startsWith("devices"))).toEqual(["devices 2", "devices 3"]);
  });
});

it("waits longer from attempt to attempt, within its bounds", () => {
  expect(backoffMs(0, 0)).toBe(250);
  expect(backoffMs(0, 1)).toBe(500);
  expect(backoffMs(2, 1)).toBe(2000);
  expect(backoffMs(1000, 1)).toBe(RECONNECT_MAX_MS);
});

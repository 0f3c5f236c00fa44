import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ApiError, type Api, type DeviceList } from "../src/api";
import { RECONNECT_MAX_MS, SUBSCRIBE_BATCH } from "../src/limits";
import { Link, backoffMs, parseUpdate, subscribeMessages, type LinkState } from "../src/link";

class FakeSocket {
  sent: string[] = [];
  readyState = 0;
  onopen: (() => void) | null = null;
  onmessage: ((event: { data: string }) => void) | null = null;
  onclose: ((event: { code: number; reason: string }) => void) | null = null;
  open(): void {
    this.readyState = 1;
    this.onopen?.();
  }
  receive(message: unknown): void {
    this.onmessage?.({ data: typeof message === "string" ? message : JSON.stringify(message) });
  }
  send(text: string): void {
    this.sent.push(text);
  }
  close(): void {
    this.readyState = 3;
  }
}

const LIST: DeviceList = { devices: ["a", "b"].map((id) => ({ id, name: id, type: "" })), total: 2 };

function page(options: { publicLogin?: boolean } = {}) {
  const sockets: FakeSocket[] = [];
  const log: string[] = [];
  const state = { token: false, list: () => Promise.resolve(LIST) };
  const api = {
    get hasToken() {
      return state.token;
    },
    forget: () => void (state.token = false),
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
      devices: () => undefined,
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
  void link.run();
  return { sockets, log, state, link, settle: (ms = 0) => vi.advanceTimersByTimeAsync(ms) };
}

describe("Link", () => {
  beforeEach(() => {
    vi.useFakeTimers();
    vi.stubGlobal("WebSocket", { OPEN: 1 });
  });
  afterEach(() => {
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });

  it("logs in, subscribes every device and passes updates on", async () => {
    const { sockets, log, settle } = page();
    await settle();
    sockets[0]?.open();
    const command = JSON.parse(sockets[0]?.sent[0] ?? "") as { tsSubCmds: unknown[] };
    expect(command.tsSubCmds[1]).toEqual({ entityType: "DEVICE", entityId: "b", scope: "LATEST_TELEMETRY", cmdId: 2 });
    const update = { subscriptionId: 2, errorCode: 0, errorMsg: null, data: { speed: [[5, "7"]] } };
    sockets[0]?.receive(update);
    sockets[0]?.receive(update);
    sockets[0]?.receive("no json");
    sockets[0]?.receive({ subscriptionId: 99, data: {} });
    const passed = 'update b [["speed",[{"ts":5,"value":7}]]]';
    expect(log).toEqual(["connecting", "public login", "live", passed, "subscribed b", passed]);
  });

  it("connects and subscribes again after a break, with the token it has", async () => {
    const { sockets, log, settle } = page();
    await settle();
    sockets[0]?.open();
    sockets[0]?.onclose?.({ code: 1001, reason: "The server is going down" });
    await settle(RECONNECT_MAX_MS);
    sockets[1]?.open();
    expect(sockets[1]?.sent).toEqual(sockets[0]?.sent);
    expect(log).toEqual(["connecting", "public login", "live", "reconnecting: The server is going down", "live"]);
  });

  it("logs in anew at once when the token has expired", async () => {
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

  it("gives up a connection declared dead", async () => {
    const { sockets, log, link, settle } = page();
    await settle();
    sockets[0]?.open();
    link.declareDead("The server does not answer.");
    await settle(RECONNECT_MAX_MS);
    expect(sockets).toHaveLength(2);
    expect(log).toContain("reconnecting: The server does not answer.");
  });

  it("tells a refused subscription, and logs in again if it was for the token", async () => {
    const { sockets, log, settle } = page();
    await settle();
    sockets[0]?.open();
    sockets[0]?.receive({ subscriptionId: 1, errorCode: 2, errorMsg: "Too many subscriptions" });
    expect(log.at(-1)).toBe("subscription refused: Too many subscriptions");
    sockets[0]?.receive({ subscriptionId: 1, errorCode: 3, errorMsg: "Unauthorized" });
    await settle();
    expect(log.filter((entry) => entry === "public login")).toHaveLength(2);
  });

  it("subscribes devices that appear later, and only those", async () => {
    const { sockets, state, settle } = page();
    await settle();
    sockets[0]?.open();
    state.list = () => Promise.resolve({ devices: [...LIST.devices, { id: "c", name: "c", type: "" }], total: 3 });
    await settle(20_000);
    expect(sockets[0]?.sent).toHaveLength(2);
    const added = JSON.parse(sockets[0]?.sent[1] ?? "") as { tsSubCmds: { entityId: string; cmdId: number }[] };
    expect(added.tsSubCmds.map(({ entityId, cmdId }) => [entityId, cmdId])).toEqual([["c", 3]]);
  });
});

it("packs subscriptions into batches", () => {
  const ids = new Map(Array.from({ length: 2 * SUBSCRIBE_BATCH + 1 }, (_, i) => [i + 1, `d${i}`]));
  const sizes = subscribeMessages(ids).map((text) => (JSON.parse(text) as { tsSubCmds: unknown[] }).tsSubCmds.length);
  expect(sizes).toEqual([SUBSCRIBE_BATCH, SUBSCRIBE_BATCH, 1]);
});

it("reads updates and leaves out what is malformed", () => {
  const data = { speed: [[1, "7"], ["x", "8"]], codes: [[2, ["P0300"]]], odd: null } as unknown as Parameters<typeof parseUpdate>[0];
  expect([...parseUpdate(data)]).toEqual([
    ["speed", [{ ts: 1, value: 7 }]],
    ["codes", [{ ts: 2, value: ["P0300"] }]],
  ]);
  expect(parseUpdate(null).size).toBe(0);
});

it("waits longer from attempt to attempt, within its bounds", () => {
  expect(backoffMs(0, 0)).toBe(250);
  expect(backoffMs(0, 1)).toBe(500);
  expect(backoffMs(2, 1)).toBe(2000);
  expect(backoffMs(1000, 1)).toBe(RECONNECT_MAX_MS);
});

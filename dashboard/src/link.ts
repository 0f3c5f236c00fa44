// The link to the server: login, device list, live updates, and all of it again after a failure.
// What it is not: it draws nothing and keeps no values; whoever listens does.

import { ApiError, type Api, type DeviceList } from "./api";
import {
  CONNECTION_GOOD_MS,
  DEVICES_INTERVAL_MS,
  RECONNECT_MAX_MS,
  RECONNECT_MIN_MS,
  SUBSCRIBE_BATCH,
} from "./limits";
import { parseValue, type Point } from "./values";

export type LinkState =
  | { kind: "connecting" }
  | { kind: "live" }
  | { kind: "reconnecting"; reason: string }
  | { kind: "refused"; reason: string }
  | { kind: "login"; reason: string };

/** New points of one device by key, in the order the server sent them. */
export type Update = ReadonlyMap<string, Point[]>;

export interface LinkEvents {
  state(state: LinkState): void;
  devices(list: DeviceList): void;
  update(deviceId: string, update: Update): void;
  /** The server has answered the subscription: from here on every point of the device comes live. */
  subscribed(deviceId: string): void;
  /** A subscription the server did not accept. */
  subscriptionRefused(reason: string): void;
  /** Resolves once the API holds a token. */
  login(reason: string): Promise<void>;
}

/** Where one connection ended, and how. */
interface End {
  reason: string;
  /** The token is no longer good: log in again at once. */
  unauthorised?: boolean;
  /** The server answered, and said no. */
  refused?: boolean;
  /** The wait the server asked for. */
  retryAfterMs?: number | null;
}

interface WireUpdate {
  subscriptionId: number;
  errorCode?: number;
  errorMsg?: string | null;
  data?: Record<string, [number, unknown][]> | null;
}

/** ThingsBoard's SubscriptionErrorCode.UNAUTHORIZED. */
const ERROR_UNAUTHORISED = 3;
/** RFC 6455 §7.4.1: policy violation, the code of a refused or expired token. */
const CLOSE_POLICY = 1008;

/** Doubles from attempt to attempt, with jitter so that many pages do not return together. */
export function backoffMs(attempt: number, random: number): number {
  const full = Math.min(RECONNECT_MAX_MS, RECONNECT_MIN_MS * 2 ** Math.min(attempt, 16));
  return full * (0.5 + random / 2);
}

/** The subscribe messages for these devices; `cmdIds` says which id belongs to which device. */
export function subscribeMessages(cmdIds: ReadonlyMap<number, string>): string[] {
  const commands = [...cmdIds].map(([cmdId, entityId]) => ({
    entityType: "DEVICE",
    entityId,
    scope: "LATEST_TELEMETRY",
    cmdId,
  }));
  const messages: string[] = [];
  for (let first = 0; first < commands.length; first += SUBSCRIBE_BATCH) {
    const tsSubCmds = commands.slice(first, first + SUBSCRIBE_BATCH);
    messages.push(JSON.stringify({ tsSubCmds, historyCmds: [], attrSubCmds: [] }));
  }
  return messages;
}

/** The points of one live update. */
export function parseUpdate(data: WireUpdate["data"]): Map<string, Point[]> {
  const update = new Map<string, Point[]>();
  for (const [key, points] of Object.entries(data ?? {})) {
    if (!Array.isArray(points)) continue;
    const parsed = points.map(([ts, value]) => ({ ts: Number(ts), value: parseValue(value) }));
    update.set(key, parsed.filter(({ ts }) => Number.isFinite(ts)));
  }
  return update;
}

export class Link {
  private drop: ((end: End) => void) | null = null;
  /** Why the user is asked to log in again; empty the first time. */
  private loginReason = "";

  constructor(
    private readonly api: Api,
    private readonly events: LinkEvents,
    private readonly openSocket: (url: string) => WebSocket = (url) => new WebSocket(url),
  ) {}

  /** Runs for the life of the page. */
  async run(): Promise<never> {
    let failures = 0;
    let mayRetryLoginAtOnce = true;
    this.events.state({ kind: "connecting" });
    for (;;) {
      const startedAt = performance.now();
      const end = await this.connectOnce();
      if (performance.now() - startedAt > CONNECTION_GOOD_MS) {
        failures = 0;
        mayRetryLoginAtOnce = true;
      }
      if (end.unauthorised) {
        this.api.forget();
        this.loginReason = end.reason;
      }
      if (end.unauthorised && mayRetryLoginAtOnce) {
        mayRetryLoginAtOnce = false; // a server that refuses its own fresh token must not be flooded
        continue;
      }
      this.events.state({ kind: end.refused ? "refused" : "reconnecting", reason: end.reason });
      await sleep(Math.max(backoffMs(failures++, Math.random()), end.retryAfterMs ?? 0));
    }
  }

  /** Ends a connection that is known to be dead although the browser has not noticed. */
  declareDead(reason: string): void {
    this.drop?.({ reason });
  }

  private async connectOnce(): Promise<End> {
    try {
      if (!this.api.hasToken && !(await this.api.loginPublic())) {
        this.events.state({ kind: "login", reason: this.loginReason });
        await this.events.login(this.loginReason);
      }
      const list = await this.api.devices();
      this.events.devices(list);
      return await this.live(list);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      const { message: reason, status, retryAfterMs } = error;
      return { reason, refused: status >= 400 && status < 500, unauthorised: error.needsLogin, retryAfterMs };
    }
  }

  /** One WebSocket, from opening to its end. */
  private live(list: DeviceList): Promise<End> {
    return new Promise((resolve) => {
      const socket = this.openSocket(this.api.liveUrl());
      const subscribed = new Subscriptions();
      let opened = false;
      const refresh = setInterval(() => void this.refreshDevices(socket, subscribed), DEVICES_INTERVAL_MS);
      const finish = (end: End): void => {
        clearInterval(refresh);
        this.drop = null;
        socket.onopen = socket.onmessage = socket.onclose = null;
        socket.close();
        resolve(end);
      };
      this.drop = finish;
      socket.onopen = () => {
        opened = true;
        subscribed.add(socket, list);
        this.events.state({ kind: "live" });
      };
      socket.onmessage = ({ data }) => {
        if (this.receive(String(data), subscribed)) finish({ reason: "Not logged in.", unauthorised: true });
      };
      socket.onclose = ({ code, reason }) => finish(endOf(code, reason, opened));
    });
  }

  /** Hands one message to the listener; true if it says that the token is no longer good. */
  private receive(text: string, subscribed: Subscriptions): boolean {
    const message = parseMessage(text);
    if (message === null) return false;
    if (message.errorCode) {
      if (message.errorCode === ERROR_UNAUTHORISED) return true;
      this.events.subscriptionRefused(message.errorMsg ?? `error ${message.errorCode}`);
      return false;
    }
    const deviceId = subscribed.deviceOf(message.subscriptionId);
    if (deviceId === undefined) return false;
    this.events.update(deviceId, parseUpdate(message.data));
    if (subscribed.confirm(deviceId)) this.events.subscribed(deviceId);
    return false;
  }

  /** Finds devices added since. A failure here is left to the next round or to the socket's end. */
  private async refreshDevices(socket: WebSocket, subscribed: Subscriptions): Promise<void> {
    try {
      const list = await this.api.devices();
      if (socket.readyState !== WebSocket.OPEN) return;
      this.events.devices(list);
      subscribed.add(socket, list);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.needsLogin) this.drop?.({ reason: error.message, unauthorised: true });
    }
  }
}

/** Which command id stands for which device on one connection. */
class Subscriptions {
  private readonly byId = new Map<number, string>();
  private readonly devices = new Set<string>();
  private readonly confirmed = new Set<string>();

  /** Subscribes the devices of the list that are not subscribed yet. */
  add(socket: WebSocket, { devices }: DeviceList): void {
    const fresh = new Map<number, string>();
    for (const { id } of devices) {
      if (this.devices.has(id)) continue;
      const cmdId = this.byId.size + 1;
      this.devices.add(id);
      this.byId.set(cmdId, id);
      fresh.set(cmdId, id);
    }
    for (const message of subscribeMessages(fresh)) socket.send(message);
  }

  deviceOf(cmdId: number): string | undefined {
    return this.byId.get(cmdId);
  }

  /** True the first time the server answers for a device. */
  confirm(deviceId: string): boolean {
    const first = !this.confirmed.has(deviceId);
    this.confirmed.add(deviceId);
    return first;
  }
}

function endOf(code: number, reason: string, opened: boolean): End {
  if (code === CLOSE_POLICY) return { reason: reason || "The session has ended.", unauthorised: true };
  if (reason !== "") return { reason };
  return { reason: opened ? "The server closed the connection." : "The live connection cannot be opened." };
}

function parseMessage(text: string): WireUpdate | null {
  try {
    const message = JSON.parse(text) as WireUpdate | null;
    return typeof message === "object" ? message : null;
  } catch {
    return null;
  }
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

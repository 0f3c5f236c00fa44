// The link to the server: login, device list, live updates, and all of it again after a failure.
// What it is not: it draws nothing and keeps no values; the listener does.

import { ApiError, type Api, type DeviceList } from "./api";
import {
  CONNECTION_GOOD_MS,
  RECONNECT_MAX_MS,
  RECONNECT_MIN_MS,
  REQUEST_TIMEOUT_MS,
  SILENCE_CHECK_MS,
  SILENCE_MAX_MS,
  SLEPT_MS,
} from "./limits";
import { EMPTY_VIEW, Subscriptions, parseMessage, rowUpdates, type Update, type View } from "./subscriptions";
import { parsePoints } from "./values";

export type LinkState =
  | { kind: "connecting" }
  | { kind: "live" }
  | { kind: "reconnecting"; reason: string }
  | { kind: "refused"; reason: string }
  | { kind: "login"; reason: string };

export interface LinkEvents {
  state(state: LinkState): void;
  devices(list: DeviceList): void;
  update(deviceId: string, update: Update): void;
  /** The server has answered the subscription of the chart: from here on every point of it comes live. */
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
  /** The user wants another session: connect again at once. */
  again?: boolean;
  /** The server answered, and said no. */
  refused?: boolean;
  /** The wait the server asked for. */
  retryAfterMs?: number | null;
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

export class Link {
  private drop: ((end: End) => void) | null = null;
  /** Sends what the view needs, while there is a connection. */
  private show: (() => void) | null = null;
  private view: View = EMPTY_VIEW;
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
        this.api.expire();
        this.loginReason = end.reason;
      }
      if (end.again) continue;
      if (end.unauthorised && mayRetryLoginAtOnce) {
        mayRetryLoginAtOnce = false; // a server that refuses its own fresh token must not be flooded
        continue;
      }
      this.events.state({ kind: end.refused ? "refused" : "reconnecting", reason: end.reason });
      await sleep(Math.max(backoffMs(failures++, Math.random()), end.retryAfterMs ?? 0));
    }
  }

  /** What the page looks at from now on. Nothing is sent while it stays the same. */
  look(view: View): void {
    this.view = view;
    this.show?.();
  }

  /** Reads the list of devices again, after something has said that it changed. */
  async refreshDevices(): Promise<void> {
    if (this.show === null) return;
    try {
      this.events.devices(await this.api.devices());
    } catch (error) {
      if (!(error instanceof ApiError)) throw error; // a failure is left to the socket's end
      if (error.needsLogin) this.drop?.({ reason: error.message, unauthorised: true });
    }
  }

  /** Connects again with the session that the API has now. */
  restart(): void {
    this.loginReason = "";
    this.drop?.({ reason: "", again: true });
  }

  private async connectOnce(): Promise<End> {
    try {
      if (!this.api.hasToken && !(await this.api.renew()) && !(await this.api.loginPublic())) {
        this.events.state({ kind: "login", reason: this.loginReason });
        await this.events.login(this.loginReason);
      }
      this.events.devices(await this.api.devices());
      return await this.live();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      const { message: reason, status, retryAfterMs } = error;
      return { reason, refused: status >= 400 && status < 500, unauthorised: error.needsLogin, retryAfterMs };
    }
  }

  /** One WebSocket, from opening to its end. */
  private live(): Promise<End> {
    return new Promise((resolve) => {
      const socket = this.openSocket(this.api.liveUrl());
      socket.binaryType = "arraybuffer";
      const subscriptions = new Subscriptions();
      let opened = false;
      let ended = false;
      let heardMs = performance.now();
      let lookedMs = heardMs;
      const finish = (end: End): void => {
        ended = true;
        clearInterval(listening);
        this.drop = this.show = null;
        socket.onopen = socket.onmessage = socket.onclose = null;
        socket.close();
        resolve(end);
      };
      const listening = setInterval(() => {
        const nowMs = performance.now();
        const slept = nowMs - lookedMs > SLEPT_MS;
        lookedMs = nowMs;
        if (slept) heardMs = nowMs;
        else if (nowMs - heardMs > (opened ? SILENCE_MAX_MS : REQUEST_TIMEOUT_MS)) finish({ reason: "The server is silent." });
      }, SILENCE_CHECK_MS);
      this.drop = finish;
      socket.onopen = () => {
        opened = true;
        heardMs = performance.now();
        this.show = () => {
          const message = subscriptions.show(this.view);
          if (message !== null) socket.send(message);
        };
        this.show();
        this.events.state({ kind: "live" });
      };
      // Inflating takes a moment: messages are worked on in the order in which they came.
      let worked = Promise.resolve();
      socket.onmessage = ({ data }: MessageEvent<string | ArrayBuffer>) => {
        heardMs = performance.now();
        const text = typeof data === "string" ? data : inflate(data);
        worked = worked.then(async () => {
          const unauthorised = !ended && this.receive(await text, subscriptions);
          if (unauthorised && !ended) finish({ reason: "Not logged in.", unauthorised: true });
        });
      };
      socket.onclose = ({ code, reason }) => finish(endOf(code, reason, opened));
    });
  }

  /** Hands one message to the listener; true if it says that the token is no longer good. */
  private receive(text: string, subscriptions: Subscriptions): boolean {
    const message = parseMessage(text);
    if (message === null) return false;
    if (message.errorCode) {
      if (message.errorCode === ERROR_UNAUTHORISED) return true;
      this.events.subscriptionRefused(message.errorMsg ?? `error ${message.errorCode}`);
      void this.refreshDevices(); // a device that is gone, most likely
      return false;
    }
    if (message.watchId !== undefined) {
      const watch = subscriptions.watchOf(message.watchId);
      if (watch === undefined) return false; // the answer to an older question
      for (const [id, update] of rowUpdates(watch.spec.deviceIds, message.rows)) this.events.update(id, update);
      const fresh = subscriptions.confirm(watch);
      if (fresh.length > 0) void this.readLatest(fresh, watch.spec.keys);
      return false;
    }
    const chart = subscriptions.chartOf(message.subscriptionId);
    if (chart === undefined) return false;
    this.events.update(chart.deviceId, parsePoints(message.data));
    if (subscriptions.confirmChart()) this.events.subscribed(chart.deviceId);
    return false;
  }

  /** What was reported before the watch began. */
  private async readLatest(deviceIds: string[], keys: readonly string[] | null): Promise<void> {
    try {
      const found = await this.api.latest(deviceIds, keys);
      for (const [id, update] of found) this.events.update(id, update);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.needsLogin) this.drop?.({ reason: error.message, unauthorised: true });
    }
  }
}

async function inflate(bytes: ArrayBuffer): Promise<string> {
  const text = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Response(text).text();
}

function endOf(code: number, reason: string, opened: boolean): End {
  if (code === CLOSE_POLICY) return { reason: reason || "The session has ended.", unauthorised: true };
  if (reason !== "") return { reason };
  return { reason: opened ? "The server closed the connection." : "The live connection cannot be opened." };
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

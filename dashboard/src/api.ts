// Typed client of the server's REST interface (ThingsBoard shapes). Holds the session and keeps it over a reload.
// What it is not: it does not reconnect and does not know the page; see link.ts and main.ts.

import { DEVICES_MAX, DEVICE_PAGE_SIZE, REQUEST_TIMEOUT_MS } from "./limits";
import type { Update } from "./subscriptions";
import { parseValue, type Point } from "./values";

export interface Device {
  id: string;
  name: string;
  type: string;
}

/** `total` may exceed `devices.length`: at most DEVICES_MAX are loaded. */
export interface DeviceList {
  devices: Device[];
  total: number;
}

/** GET /api/status; a server may leave out any part of it. */
export interface Status {
  version?: string;
  durability?: string;
  uptime_s?: number;
  devices?: number;
  devices_generation?: number;
  store?: { sealed?: string | null };
}

/** What was refused of one device; readers without a login are not told why. */
export interface Refusal {
  id: string;
  name: string;
  messages: number;
  lastTs: number;
  door: string;
  reason: string | null;
}

export interface HistoryRequest {
  deviceId: string;
  key: string;
  startTs: number;
  endTs: number;
  limit: number;
}

/** A refusal by the server (`status` is the HTTP status), or no answer at all (`status` is 0). */
export class ApiError extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly retryAfterMs: number | null = null,
  ) {
    super(message);
    this.name = "ApiError";
  }

  /** The token is missing, wrong or out of date. */
  get needsLogin(): boolean {
    return this.status === 401;
  }
}

interface DevicePage {
  data: { id: { id: string }; name: string; type?: string }[];
  totalElements: number;
  hasNext: boolean;
}

/** A session as it is kept: one of a user. A public one is had again by asking. */
interface Kept {
  token: string;
  refreshToken: string;
  user: string;
}

/** Where a session is kept: `sessionStorage` ends with the tab. */
export type Store = Pick<Storage, "getItem" | "setItem" | "removeItem">;
const KEPT = "tachograph.session";

export class Api {
  private token: string | null = null;
  private kept: Kept | null;

  constructor(
    private readonly origin: string,
    private readonly store: Store | null = null,
    private readonly fetchFn: typeof fetch = (input, init) => fetch(input, init),
  ) {
    this.kept = read(store);
    this.token = this.kept?.token || null;
  }

  get hasToken(): boolean {
    return this.token !== null;
  }

  /** Who is logged in; null in a public session and without one. */
  get user(): string | null {
    return this.token === null ? null : (this.kept?.user ?? null);
  }

  /** The token is no longer good. */
  expire(): void {
    this.token = null;
  }

  /** Ends the session on this side; nothing of it stays in the browser. */
  logout(): void {
    this.token = null;
    this.keep(null);
  }

  /** Renews a user's session that has expired; false if there is none, or the server does not renew it. */
  async renew(): Promise<boolean> {
    if (this.kept === null) return false;
    const { refreshToken, user } = this.kept;
    this.keep(null); // it is good for one attempt: what fails now fails again
    try {
      await this.requestToken("/api/auth/token", { refreshToken }, user);
      return true;
    } catch (error) {
      if (error instanceof ApiError && error.status >= 400 && error.status < 500) return false;
      this.keep({ token: "", refreshToken, user }); // the server was not there to say
      throw error;
    }
  }

  /** Asks for a reader's token without credentials; true if the server gives one. */
  async loginPublic(): Promise<boolean> {
    try {
      await this.requestToken("/api/auth/login/public", {}, null);
      return true;
    } catch (error) {
      if (error instanceof ApiError && [401, 403, 404].includes(error.status)) return false;
      throw error;
    }
  }

  async login(username: string, password: string): Promise<void> {
    await this.requestToken("/api/auth/login", { username, password }, username);
  }

  async devices(): Promise<DeviceList> {
    const devices: Device[] = [];
    for (let page = 0; ; page++) {
      const path = `/api/tenant/devices?pageSize=${DEVICE_PAGE_SIZE}&page=${page}`;
      const answer = await this.json<DevicePage>(path);
      for (const { id, name, type } of answer.data) devices.push({ id: id.id, name, type: type ?? "" });
      const done = !answer.hasNext || answer.data.length === 0 || devices.length >= DEVICES_MAX;
      if (done) return { devices: devices.slice(0, DEVICES_MAX), total: answer.totalElements };
    }
  }

  /** The latest values of devices, of these keys or of all. */
  async latest(deviceIds: readonly string[], keys: readonly string[] | null): Promise<[string, Update][]> {
    // A list of keys cannot name a key with a comma: all keys then.
    const named = keys === null || keys.some((key) => key.includes(",")) ? "" : `keys=${encodeURIComponent(keys.join(","))}&`;
    const init = { method: "POST", headers: JSON_BODY, body: JSON.stringify(deviceIds) };
    type Latest = Record<string, Record<string, { ts: number; value: unknown }[]>>;
    const answer = await this.json<Latest>(`/api/tacho/values?${named}useStrictDataTypes=false`, init);
    return Object.entries(answer).map(([id, values]) => [
      id,
      new Map(
        Object.entries(values).map(([key, points]) => [
          key,
          // A key that was asked for and never reported has the value null.
          points.filter(({ value }) => value !== null).map(({ ts, value }) => ({ ts, value: parseValue(value) })),
        ]),
      ),
    ]);
  }

  /** The newest `limit` points of a range, in ascending time. */
  async history(request: HistoryRequest): Promise<Point[]> {
    const query = new URLSearchParams({
      // Not "keys", a list in which a key with a comma cannot be named.
      key: request.key,
      startTs: String(request.startTs),
      endTs: String(request.endTs),
      limit: String(request.limit),
      // Descending: if there are more points than the limit, the newest are the ones to keep.
      orderBy: "DESC",
      useStrictDataTypes: "true",
    });
    const path = `/api/plugins/telemetry/DEVICE/${request.deviceId}/values/timeseries?${query}`;
    const answer = await this.json<Record<string, { ts: number; value: unknown }[]>>(path);
    const points = Object.hasOwn(answer, request.key) ? (answer[request.key] ?? []) : [];
    return points.map(({ ts, value }) => ({ ts, value: parseValue(value) })).reverse();
  }

  /** Devices of which something was refused since the server started, the last first. */
  async refusals(): Promise<Refusal[]> {
    if (!this.hasToken) return [];
    return (await this.json<{ devices: Refusal[] }>("/api/tacho/refusals")).devices;
  }

  /** The server's own account of itself, or null if it has no such page. */
  async status(): Promise<Status | null> {
    try {
      return await this.json<Status>("/api/status");
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return null;
      throw error;
    }
  }

  async metrics(): Promise<string> {
    return (await this.request("/metrics")).text();
  }

  /** Where the live updates come from. The token travels in the query: browsers cannot set headers here. */
  liveUrl(): string {
    const url = new URL("/api/ws/plugins/telemetry", this.origin);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    url.searchParams.set("token", this.token ?? "");
    return url.href;
  }

  private async requestToken(path: string, body: object, user: string | null): Promise<void> {
    const init = { method: "POST", headers: JSON_BODY, body: JSON.stringify(body) };
    const answer = await this.json<{ token?: string; refreshToken?: string }>(path, init);
    if (typeof answer.token !== "string") throw new ApiError("The server's login answer has no token.", 0);
    this.token = answer.token;
    if (user !== null) this.keep({ token: answer.token, refreshToken: answer.refreshToken ?? "", user });
  }

  private keep(kept: Kept | null): void {
    this.kept = kept;
    try {
      if (kept === null) this.store?.removeItem(KEPT);
      else this.store?.setItem(KEPT, JSON.stringify(kept));
    } catch {
      // A browser that keeps nothing asks again after a reload.
    }
  }

  private async json<T>(path: string, init?: RequestInit): Promise<T> {
    const response = await this.request(path, init);
    try {
      return (await response.json()) as T;
    } catch {
      throw new ApiError(`The server's answer to ${withoutQuery(path)} is not JSON.`, 0);
    }
  }

  private async request(path: string, init: RequestInit = {}): Promise<Response> {
    const headers = new Headers(init.headers);
    if (this.token !== null) headers.set("X-Authorization", `Bearer ${this.token}`);
    const signal = AbortSignal.timeout(REQUEST_TIMEOUT_MS);
    let response: Response;
    try {
      response = await this.fetchFn(new URL(path, this.origin), { ...init, headers, signal, cache: "no-store" });
    } catch {
      throw new ApiError("The server does not answer.", 0);
    }
    if (!response.ok) throw await refusal(response, path);
    return response;
  }
}

const JSON_BODY = { "Content-Type": "application/json" };

function read(store: Store | null): Kept | null {
  try {
    const kept = JSON.parse(store?.getItem(KEPT) ?? "null") as Partial<Kept> | null;
    const { token, refreshToken, user } = kept ?? {};
    const whole = typeof token === "string" && typeof refreshToken === "string" && typeof user === "string";
    return whole ? { token, refreshToken, user } : null;
  } catch {
    return null;
  }
}

async function refusal(response: Response, path: string): Promise<ApiError> {
  const retryAfter = Number(response.headers.get("Retry-After") ?? NaN);
  const message = await messageOf(response);
  return new ApiError(
    message ?? `The server answers ${response.status} to ${withoutQuery(path)}.`,
    response.status,
    Number.isFinite(retryAfter) ? retryAfter * 1000 : null,
  );
}

/** Error bodies are `{"status","message","errorCode"}`; a proxy in between may send anything. */
async function messageOf(response: Response): Promise<string | null> {
  try {
    const { message } = (await response.json()) as { message?: unknown };
    return typeof message === "string" && message !== "" ? message : null;
  } catch {
    return null;
  }
}

function withoutQuery(path: string): string {
  return path.split("?")[0] ?? path;
}

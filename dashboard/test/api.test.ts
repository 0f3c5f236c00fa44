import { describe, expect, it } from "vitest";
import { Api, ApiError, type Store } from "../src/api";
import { DEVICES_MAX, DEVICE_PAGE_SIZE } from "../src/limits";

interface Call {
  url: URL;
  method: string;
  auth: string | null;
  body: string;
}

/** A tab's storage. */
function tab(kept: Record<string, string> = {}): Store & { kept: Record<string, string> } {
  return {
    kept,
    getItem: (key) => kept[key] ?? null,
    setItem: (key, value) => void (kept[key] = value),
    removeItem: (key) => void delete kept[key],
  };
}

function apiWith(answer: (call: Call) => Response, store: Store | null = null): { api: Api; calls: Call[] } {
  const calls: Call[] = [];
  const fetchFn = (input: URL | RequestInfo, init: RequestInit = {}): Promise<Response> => {
    const auth = new Headers(init.headers).get("X-Authorization");
    const call = { url: new URL(String(input)), method: init.method ?? "GET", auth, body: String(init.body ?? "") };
    calls.push(call);
    return Promise.resolve(answer(call));
  };
  return { api: new Api("http://tacho.test:8080", store, fetchFn), calls };
}

const error = (status: number, message: string, headers = {}): Response =>
  Response.json({ status, message, errorCode: 2 }, { status, headers });

describe("Api", () => {
  it("carries the token of a public login from then on", async () => {
    const { api, calls } = apiWith(({ url }) =>
      Response.json(url.pathname.endsWith("/public") ? { token: "t1" } : { data: [], totalElements: 0, hasNext: false }),
    );
    expect(await api.loginPublic()).toBe(true);
    await api.devices();
    expect(calls.map(({ method, auth }) => [method, auth])).toEqual([
      ["POST", null],
      ["GET", "Bearer t1"],
    ]);
    expect(api.liveUrl()).toBe("ws://tacho.test:8080/api/ws/plugins/telemetry?token=t1");
  });

  it.each([401, 403, 404])("takes a %d as: no public reading here", async (status) => {
    expect(await apiWith(() => error(status, "no")).api.loginPublic()).toBe(false);
  });

  it("does not take an overloaded server for a closed one", async () => {
    const { api } = apiWith(() => error(429, "Too many logins", { "Retry-After": "7" }));
    await expect(api.loginPublic()).rejects.toMatchObject({ status: 429, message: "Too many logins", retryAfterMs: 7000 });
  });

  it("passes on the server's reason", async () => {
    const { api } = apiWith(() => error(401, "Invalid username or password."));
    await expect(api.login("admin", "x")).rejects.toMatchObject({ message: "Invalid username or password.", needsLogin: true });
  });

  it("names the request when an error has no readable body", async () => {
    const { api } = apiWith(() => new Response("<html>", { status: 502 }));
    await expect(api.devices()).rejects.toThrow("The server answers 502 to /api/tenant/devices.");
  });

  it("turns a dead network into an ApiError without a status", async () => {
    const api = new Api("http://tacho.test", null, () => Promise.reject(new TypeError("fetch failed")));
    const failure = await api.metrics().catch((reason: unknown) => reason);
    expect(failure).toBeInstanceOf(ApiError);
    expect(failure).toMatchObject({ status: 0 });
  });

  it("reads all pages of the device list, and no more than its limit", async () => {
    const { api, calls } = apiWith(({ url }) => {
      const page = Number(url.searchParams.get("page"));
      const data = Array.from({ length: DEVICE_PAGE_SIZE }, (_, i) => ({
        id: { entityType: "DEVICE", id: `id${page}-${i}` },
        name: `n${i}`,
        type: "default",
      }));
      return Response.json({ data, totalPages: 20, totalElements: 19_900, hasNext: true });
    });
    const list = await api.devices();
    expect(list.devices).toHaveLength(DEVICES_MAX);
    expect(list.total).toBe(19_900);
    expect(calls).toHaveLength(DEVICES_MAX / DEVICE_PAGE_SIZE);
    expect(list.devices[1]).toEqual({ id: "id0-1", name: "n1", type: "default" });
  });

  it("asks for the newest points and returns them in ascending time", async () => {
    const { api, calls } = apiWith(() => Response.json({ "a&b": [{ ts: 2, value: "20" }, { ts: 1, value: 10 }] }));
    const request = { deviceId: "d", key: "a&b", startTs: 0, endTs: 9, limit: 5 };
    expect(await api.history(request)).toEqual([{ ts: 1, value: 10 }, { ts: 2, value: 20 }]);
    const { pathname, searchParams } = calls[0]!.url;
    expect(pathname).toBe("/api/plugins/telemetry/DEVICE/d/values/timeseries");
    expect(Object.fromEntries(searchParams)).toEqual({ key: "a&b", startTs: "0", endTs: "9", limit: "5", orderBy: "DESC", useStrictDataTypes: "true" });
  });

  it("has no history for a key the server does not know", async () => {
    const { api } = apiWith(() => Response.json({}));
    expect(await api.history({ deviceId: "d", key: "constructor", startTs: 0, endTs: 1, limit: 1 })).toEqual([]);
  });

  it("keeps a user's session over a reload, until the user logs out", async () => {
    const store = tab();
    const answer = (): Response => Response.json({ token: "t1", refreshToken: "r1" });
    await apiWith(answer, store).api.login("admin", "secret");
    expect(JSON.stringify(store.kept)).not.toContain("secret");
    const { api } = apiWith(answer, store);
    expect([api.hasToken, api.user]).toEqual([true, "admin"]);
    expect(api.liveUrl()).toContain("token=t1");
    api.logout();
    expect([api.hasToken, api.user, store.kept]).toEqual([false, null, {}]);
    expect(apiWith(answer, store).api.hasToken).toBe(false);
  });

  it("keeps no public session, and survives what is not a session", async () => {
    const store = tab();
    await apiWith(() => Response.json({ token: "t1" }), store).api.loginPublic();
    expect(store.kept).toEqual({});
    for (const text of ["no json", "null", "{}", '{"token":1}']) {
      expect(apiWith(() => error(500, ""), tab({ "tachograph.session": text })).api.hasToken).toBe(false);
    }
  });

  it("renews an expired session once, and forgets it when the server does not", async () => {
    const store = tab();
    const first = apiWith(() => Response.json({ token: "t1", refreshToken: "r1" }), store).api;
    await first.login("admin", "secret");
    const { api, calls } = apiWith(() => Response.json({ token: "t2", refreshToken: "r2" }), store);
    api.expire();
    expect(api.user).toBeNull();
    expect(await api.renew()).toBe(true);
    expect([calls[0]?.auth, JSON.parse(calls[0]?.body ?? ""), api.user]).toEqual([null, { refreshToken: "r1" }, "admin"]);
    const refusing = apiWith(() => error(401, "expired"), store).api;
    expect(await refusing.renew()).toBe(false);
    expect(store.kept).toEqual({});
    expect(await refusing.renew()).toBe(false);
  });

  it("tries a renewal again when the server was not there", async () => {
    const kept = JSON.stringify({ token: "t1", refreshToken: "r1", user: "admin" });
    const store = tab({ "tachograph.session": kept });
    const api = apiWith(() => error(503, "stopping"), store).api;
    await expect(api.renew()).rejects.toMatchObject({ status: 503 });
    const later = apiWith(() => Response.json({ token: "t2", refreshToken: "r2" }), store).api;
    expect([later.hasToken, await later.renew(), later.user]).toEqual([false, true, "admin"]);
  });

  it("reads the latest values of many devices", async () => {
    const { api, calls } = apiWith(() => Response.json({ d1: { n: [{ ts: 5, value: "42.5" }], absent: [{ ts: 9, value: null }] } }));
    const found = await api.latest(["d1"], ["n", "absent"]);
    expect(found.map(([id, update]) => [id, [...update]])).toEqual([["d1", [["n", [{ ts: 5, value: 42.5 }]], ["absent", []]]]]);
    expect(calls[0]?.url.searchParams.get("keys")).toBe("n,absent");
    await api.latest(["d1"], ["a,b"]);
    expect(calls[1]?.url.searchParams.has("keys")).toBe(false);
  });

  it("does without a status page", async () => {
    expect(await apiWith(() => error(404, "no such page")).api.status()).toBeNull();
  });
});

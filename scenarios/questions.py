"""Questions over HTTP that scripts ask servers, one after the other over one connection, and the walks that the questions are about."""

import http.client
import json
import math
import random
import statistics
import sys
import time

import parity

JSON, FORM = "application/json", "application/x-www-form-urlencoded"
STEP_MS = 10_000
ROWS_PER_REQUEST = 1_080
WARM_UP_QUESTIONS = 5
# As in a run of `tacho bench`.
STOLEN_SHARE_MAX = 0.01


class Request:
    """A request with its body as text."""

    def __init__(self, method, path, body=None, content_type=JSON):
        self.method, self.path, self.body, self.content_type = method, path, body, content_type


class Client:
    """One connection."""

    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port)
        self.headers = {}

    def ask(self, request):
        headers = {**self.headers, "Content-Type": request.content_type} if request.body else self.headers
        self.connection.request(request.method, request.path, request.body, headers)
        answer = self.connection.getresponse()
        body = answer.read()
        if answer.status not in (200, 204):
            sys.exit(f"{request.method} {request.path}: {answer.status} {body[:300]!r}")
        return body

    def json(self, method, path, value=None):
        body = self.ask(Request(method, path, None if value is None else json.dumps(value)))
        return json.loads(body) if body else None


def logged_in(port, password):
    client = Client(port)
    login = client.json("POST", "/api/auth/login", {"username": "admin@tachograph.local", "password": password})
    client.headers["X-Authorization"] = f"Bearer {login['token']}"
    return client


def walk(number, begin_ms, end_ms):
    """Times and values of a series: two decimals, a value every 10 s."""
    chance = random.Random(number)
    value, times, values = 20.0, range(begin_ms, end_ms, STEP_MS), []
    for _ in times:
        value += chance.uniform(-0.5, 0.5)
        values.append(round(value, 2))
    return list(times), values


def fill(series, ours, begin_ms, end_ms, also=lambda number, times, values: None):
    """Gives the devices `walk-N` their rows in the order of time, and the same to `also`; the ids of the devices by number."""
    ours.json("POST", "/api/tacho/devices", {"count": series, "prefix": "walk-", "tokenPrefix": "token-"})
    walks = [walk(number, begin_ms, end_ms) for number in range(series)]
    for first in range(0, len(walks[0][0]), ROWS_PER_REQUEST):
        for number, (times, values) in enumerate(walks):
            times, values = times[first:first + ROWS_PER_REQUEST], values[first:first + ROWS_PER_REQUEST]
            rows = [{"ts": ts, "values": {"x": value}} for ts, value in zip(times, values)]
            ours.json("POST", f"/api/v1/token-{number}/telemetry", rows)
            also(number, times, values)
    ids = {}
    while len(ids) < series:
        page = ours.json("GET", f"/api/tenant/devices?pageSize=100&page={len(ids) // 100}&textSearch=walk-")
        ids.update({int(device["name"].removeprefix("walk-")): device["id"]["id"] for device in page["data"]})
    return [ids[number] for number in range(series)]


def require_same(name, one, other):
    """Ends the script when answers, as {number of the series: [values]}, differ or are empty."""
    close = lambda a, b: len(a) == len(b) and all(math.isclose(x, y, rel_tol=1e-9) for x, y in zip(a, b))
    differing = [key for key in one.keys() | other.keys() if not close(one.get(key, []), other.get(key, []))]
    if differing or not one:
        key = min(differing, default=0)
        sys.exit(f"{name}: answers differ in {len(differing)} of {len(one)} series, first in walk-{key}: "
                 f"{one.get(key, [])[:5]} and {other.get(key, [])[:5]}")


def measure(seconds, client, request, pid):
    """What the server used and the times in which answers came."""
    for _ in range(WARM_UP_QUESTIONS):
        client.ask(request)
    times, began, cpu_s = [], time.perf_counter(), parity.cpu_s(pid)
    while time.perf_counter() - began < seconds or len(times) < 2:
        start = time.perf_counter()
        client.ask(request)
        times.append(time.perf_counter() - start)
    cpu_s = parity.cpu_s(pid) - cpu_s
    p99 = sorted(times)[math.ceil(0.99 * len(times)) - 1]
    return {"answers": len(times), "p50_ms": statistics.median(times) * 1e3, "p99_ms": p99 * 1e3, "cpu_us": cpu_s * 1e6 / len(times)}


def stolen_line(stolen, awake):
    """What a summary says of the time of other guests."""
    line = f"{stolen:.1%} of the processors' time went to other guests; {'' if awake else 'not '}kept awake"
    return line + ("\nINVALID: more than 1 % is too much for figures to be quoted" if stolen > STOLEN_SHARE_MAX else "")

"""curl at the HTTP door: writing by token, reading by login."""

import base64
import json
import subprocess

import pytest

START = 1_700_000_000_000


def curl(server, path, *arguments, body=None):
    """Status, content type and body of one request."""
    command = ["curl", "--silent", "--show-error", "--max-time", "60", "--write-out", "\n%{http_code} %{content_type}", *arguments]
    if body is not None:
        command += ["--header", "Content-Type: application/json", "--data-binary", "@-"]
    sent = body.encode() if isinstance(body, str) else body
    done = subprocess.run([*command, server.url + path], input=sent, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr
    text, _, last = done.stdout.decode().rpartition("\n")
    status, _, kind = last.partition(" ")
    return int(status), kind, text


def authorised(server):
    """curl's arguments of a logged-in user."""
    return ["--header", f"X-Authorization: Bearer {server.api.token}"]


def telemetry(server, device, query=""):
    """Path of a device's values."""
    return f"/api/plugins/telemetry/DEVICE/{server.api.device_id(device.name)}/{query}"


def read(server, path):
    """A GET that must work."""
    status, kind, text = curl(server, path, *authorised(server))
    assert (status, kind.split(";")[0]) == (200, "application/json"), text
    return json.loads(text)


def assert_error(reply, status):
    """Every refusal is JSON with a message that names the remedy."""
    assert (reply[0], reply[1].split(";")[0]) == (status, "application/json"), reply
    body = json.loads(reply[2])
    assert body["status"] == status
    assert len(body["message"]) > 15, body
    return body["message"]


def test_a_posted_value_is_read_back_at_once(server, device):
    status, _, _ = curl(server, f"/api/v1/{device.token}/telemetry", body='{"speed": 42.5, "on": true, "name": "a", "n": 7}')
    assert status == 200
    assert read(server, telemetry(server, device, "keys/timeseries")) == ["n", "name", "on", "speed"]
    latest = read(server, telemetry(server, device, "values/timeseries?keys=speed,on"))
    # Values are text unless the request has strict types: ThingsBoard's clients rely on it.
    assert {key: [point["value"] for point in points] for key, points in latest.items()} == {"speed": ["42.5"], "on": ["true"]}
    strict = read(server, telemetry(server, device, "values/timeseries?useStrictDataTypes=true"))
    assert {key: points[0]["value"] for key, points in strict.items()} == {"speed": 42.5, "on": True, "name": "a", "n": 7}


def test_history_in_both_orders_with_a_limit(server, device):
    rows = [{"ts": START + 1_000 * n, "values": {"n": n}} for n in range(10)]
    assert curl(server, f"/api/v1/{device.token}/telemetry", body=json.dumps(rows))[0] == 200
    between = f"values/timeseries?keys=n&startTs={START + 2_000}&endTs={START + 8_000}&useStrictDataTypes=true"
    values = lambda more: [point["value"] for point in read(server, telemetry(server, device, between + more))["n"]]  # noqa: E731
    # The start belongs to the range, the end does not; by default the newest come first.
    assert values("") == [7, 6, 5, 4, 3, 2]
    assert values("&orderBy=ASC") == [2, 3, 4, 5, 6, 7]
    assert values("&orderBy=ASC&limit=2") == [2, 3]
    assert values("&limit=2") == [7, 6]


@pytest.mark.parametrize(
    ("aggregate", "expected"), [("MIN", [0, 5]), ("MAX", [4, 9]), ("SUM", [10, 35]), ("AVG", [2, 7]), ("COUNT", [5, 5])]
)
def test_history_aggregated_by_interval(server, device, aggregate, expected):
    rows = [{"ts": START + 1_000 * n, "values": {"n": n}} for n in range(10)]
    assert curl(server, f"/api/v1/{device.token}/telemetry", body=json.dumps(rows))[0] == 200
    query = f"values/timeseries?keys=n&startTs={START}&endTs={START + 10_000}&interval=5000&agg={aggregate}&useStrictDataTypes=true"
    points = sorted(read(server, telemetry(server, device, query))["n"], key=lambda point: point["ts"])
    assert [point["value"] for point in points] == expected
    # A bucket's time is its middle, as ThingsBoard has it.
    assert [point["ts"] for point in points] == [START + 2_500, START + 7_500]


def test_the_last_write_of_a_row_wins_field_by_field(server, device):
    for values in ({"a": 1, "b": 1}, {"b": 2}):
        server.api.send(device.token, {"ts": START, "values": values})
    assert server.api.history(device.name, "a") == [(START, 1)]
    assert server.api.history(device.name, "b") == [(START, 2)]


def test_a_value_of_another_type_is_kept_as_it_came(server, device):
    server.api.send(device.token, {"ts": START, "values": {"speed": 1.5}})
    server.api.send(device.token, {"ts": START + 1, "values": {"speed": "fast"}})
    # The server converts and refuses nothing; a read of the key returns both types.
    assert server.api.history(device.name, "speed") == [(START, 1.5), (START + 1, "fast")]
    assert server.api.latest(device.name, "speed") == "fast"


def test_devices_in_pages(server, device):
    first = read(server, "/api/tenant/devices?pageSize=10&page=0")
    assert len(first["data"]) == 10 and first["hasNext"]
    assert first["totalElements"] >= 100
    assert first["totalPages"] == -(-first["totalElements"] // 10)
    names = set()
    for page in range(first["totalPages"]):
        names |= {one["name"] for one in read(server, f"/api/tenant/devices?pageSize=10&page={page}")["data"]}
    assert len(names) == first["totalElements"]
    assert device.name in names
    one = read(server, f"/api/tenant/devices?deviceName={device.name}")
    assert (one["name"], one["id"]["entityType"]) == (device.name, "DEVICE")


def test_login_gives_real_jwts(server):
    body = json.dumps({"username": "admin@tachograph.local", "password": server.password})
    status, _, text = curl(server, "/api/auth/login", body=body)
    assert status == 200
    for name in ("token", "refreshToken"):
        middle = json.loads(text)[name].split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(middle + "=" * (-len(middle) % 4)))
        assert claims["exp"] > claims["iat"] > 1_600_000_000


def test_a_wrong_password_and_an_unknown_user_look_the_same(server):
    messages = set()
    for username in ("admin@tachograph.local", "nobody@tachograph.local"):
        reply = curl(server, "/api/auth/login", body=json.dumps({"username": username, "password": "wrong"}))
        messages.add(assert_error(reply, 401))
    assert len(messages) == 1


def test_reading_needs_a_login(server, device):
    path = telemetry(server, device, "values/timeseries")
    assert_error(curl(server, path), 401)
    assert_error(curl(server, path, "--header", "X-Authorization: Bearer nonsense"), 401)
    header, claims, signature = server.api.token.split(".")
    forged = f"{header}.{claims}.{signature[::-1]}"
    assert_error(curl(server, path, "--header", f"X-Authorization: Bearer {forged}"), 401)


def test_an_unknown_device_token_is_refused(server):
    assert_error(curl(server, "/api/v1/no-such-token/telemetry", body='{"a":1}'), 401)


@pytest.mark.parametrize("body", ["no JSON", "7", '{"a":NaN}', '{"":1}', '{"ts":1700000000,"values":{"a":1}}', b'{"a":"\xff"}'])
def test_a_payload_we_cannot_take_is_refused_with_its_reason(server, device, body):
    message = assert_error(curl(server, f"/api/v1/{device.token}/telemetry", body=body), 400)
    assert "dead_letter" in message
    assert server.api.keys(device.name) == []


@pytest.mark.parametrize(
    ("query", "word"),
    [
        ("values/timeseries?keys=a&startTs=5", "endTs"),
        ("values/timeseries?keys=a&startTs=x&endTs=9", "startTs"),
        ("values/timeseries?keys=a&startTs=1&endTs=9&agg=MEDIAN", "agg"),
        ("values/timeseries?keys=a&startTs=1&endTs=9&agg=AVG&interval=-1", "interval"),
        ("values/timeseries?keys=a&startTs=1&endTs=9&orderBy=UP", "orderBy"),
    ],
)
def test_a_question_that_makes_no_sense_is_refused_by_name(server, device, query, word):
    message = assert_error(curl(server, telemetry(server, device, query), *authorised(server)), 400)
    assert word in message


def test_an_unknown_device_and_an_unknown_path(server):
    unknown = "/api/plugins/telemetry/DEVICE/00000000-0000-4000-8000-000000000000/keys/timeseries"
    assert_error(curl(server, unknown, *authorised(server)), 404)
    assert_error(curl(server, "/api/no/such/path", *authorised(server)), 404)
    assert_error(curl(server, "/api/auth/login"), 405)


@pytest.mark.parametrize("expect", [[], ["--header", "Expect:"]], ids=["asks first", "sends at once"])
def test_a_body_over_the_bound_is_refused(server, device, expect):
    body = json.dumps({"a": "x" * 5_000_000})
    message = assert_error(curl(server, f"/api/v1/{device.token}/telemetry", *expect, body=body), 413)
    assert "4194304" in message.replace("_", "").replace(",", "")

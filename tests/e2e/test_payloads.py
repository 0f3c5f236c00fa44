"""Payloads at and beyond the bounds, over MQTT 5 so that the reason is seen."""

import contextlib
import json
import socket
import time

import pytest

from harness import packets
from harness.packets import PUBACK, Wire

REFUSED = 0x99


def publish(wire, payload, packet_id=1):
    """The reason code of one message and the reason text behind it."""
    data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    kind, body = wire.send(packets.publish(data, packet_id, level=5)).receive()
    assert (kind, int.from_bytes(body[:2])) == (PUBACK, packet_id)
    if len(body) == 2 or body[2] == 0:
        return 0, ""
    # Property 0x1F is the reason string: identifier, length, text.
    at = body.index(0x1F, 3)
    size = int.from_bytes(body[at + 1 : at + 3])
    return body[2], body[at + 3 : at + 3 + size].decode()


def now_ms():
    """The wall clock in milliseconds."""
    return int(time.time() * 1_000)


DAY_MS = 86_400_000

BAD = {
    "10,001 keys": (lambda: {f"k{n}": n for n in range(10_001)}, "10000"),
    "10,001 rows": (lambda: [{"a": n} for n in range(10_001)], "10000"),
    "deep value": (lambda: b'{"a":' + b"[" * 50_000 + b"]" * 50_000 + b"}", "32"),
    "deep payload": (lambda: b"[" * 500_000, "JSON|object|nesting"),
    "wide value": (lambda: b'{"a":[' + b"1," * 100_000 + b"1]}", "65535"),
    "text of 1 MB": (lambda: {"a": "x" * 1_000_000}, "65535"),
    "NaN": (lambda: b'{"a":NaN}', "JSON"),
    "Infinity": (lambda: b'{"a":-Infinity}', "JSON"),
    "empty key": (lambda: {"": 1}, "key"),
    "long key": (lambda: {"k" * 256: 1}, "255"),
    "control character in a key": (lambda: {"a\n": 1}, "control"),
    "not UTF-8": (lambda: b'{"a":"\xff"}', "UTF-8"),
    "cut": (lambda: b'{"a":1', "JSON"),
    "nothing": (lambda: b"", "JSON"),
    "seconds for milliseconds": (lambda: {"ts": now_ms() // 1_000, "values": {"a": 1}}, "seconds"),
    "microseconds for milliseconds": (lambda: {"ts": now_ms() * 1_000, "values": {"a": 1}}, "microseconds"),
    "far past": (lambda: {"ts": -1, "values": {"a": 1}}, "oldest"),
    "far future": (lambda: {"ts": now_ms() + 30 * DAY_MS, "values": {"a": 1}}, "ahead"),
    "ts beyond 64 bits": (lambda: b'{"ts":99999999999999999999,"values":{"a":1}}', "too far in the future"),
    "ts of 1.5 ms": (lambda: {"ts": 1.5, "values": {"a": 1}}, "oldest"),
    "ts that is not a number": (lambda: {"ts": "today", "values": {"a": 1}}, "number"),
    "two commas before the end": (lambda: b'{"a":1,,}', "expected a name"),
    "value left out": (lambda: b'{"a":[1,,2]}', "expected a value"),
    "nan of C": (lambda: b'{"a":nan}', "nan is not a JSON number"),
    "byte behind the end": (lambda: b'{"a":1}\0', "trailing"),
    "relaxed, deep": (lambda: b"{a:" + b"[" * 50_000 + b"]" * 50_000 + b"}", "nesting"),
    "relaxed, cut": (lambda: b"{a:'x", "ends too early"),
    "one bad row of three": (lambda: [{"a": 1}, {"": 2}, {"a": 3}], "key"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_payload_is_refused_whole_and_the_session_lives(server, device, case):
    make, words = BAD[case]
    with Wire(server.mqtt).session(device.token, 5) as wire:
        reason, text = publish(wire, make())
        assert reason == REFUSED
        assert any(word in text for word in words.split("|")), text
        assert publish(wire, {"alive": True}, 2) == (0, "")
    assert server.api.keys(device.name) == ["alive"]


GOOD = {
    "10,000 keys": ({f"k{n}": n for n in range(10_000)}, None),
    "largest i64": ({"a": 2**63 - 1}, 2**63 - 1),
    "smallest i64": ({"a": -(2**63)}, -(2**63)),
    "2^63 keeps its digits": ({"a": 2**63}, 2**63),
    "beyond f64 keeps its digits": (b'{"a":1e400}', None),
    "smallest double": ({"a": 5e-324}, 5e-324),
    "text of every script": ({"a": "température 速度 🚗 \u0000"}, "température 速度 🚗 \u0000"),
    "depth at the bound": (b'{"a":' + b"[" * 32 + b"]" * 32 + b"}", None),
    "text at the bound": ({"a": "x" * 65_535}, "x" * 65_535),
}


@pytest.mark.parametrize("case", GOOD)
def test_a_good_payload_at_the_bounds_is_taken(server, device, case):
    payload, expected = GOOD[case]
    with Wire(server.mqtt).session(device.token, 5) as wire:
        assert publish(wire, payload) == (0, "")
    keys = server.api.keys(device.name)
    assert keys
    if expected is not None:
        [(_, points)] = server.api.values(device.name).items()
        assert points[0]["value"] == expected


RELAXED = {
    "no quotes": (b"{temperature:25}", {"temperature": 25}),
    "single quotes": (b"{'temperature':25.5,'state':'ok'}", {"temperature": 25.5, "state": "ok"}),
    "str() of a Python dict": (str({"a": True, "b": "it's", "c": [1, {"d": 2}]}).encode(), {"a": True, "b": "it's", "c": [1, {"d": 2}]}),
    "words": (b"{state:ok,fw:v1.2.3}", {"state": "ok", "fw": "v1.2.3"}),
    "numbers of printf": (b'{"a":05,"b":+5,"c":.5,"d":5.}', {"a": 5, "b": 5, "c": 0.5, "d": 5.0}),
    "comma before the end": (b'{"a":1,"b":[1,2,],}', {"a": 1, "b": [1, 2]}),
    "comma behind the last row": (b'[{"a":1},{"b":2},]', {"a": 1, "b": 2}),
    "comment": (b'{"a":1} // from the PLC', {"a": 1}),
    "a tab in a text": (b'{"a":"x\ty"}', {"a": "x\ty"}),
    "byte order mark": (b'\xef\xbb\xbf{"a":1}', {"a": 1}),
    "byte order mark, relaxed": (b"\xef\xbb\xbf{a=1;b=2}", {"a": 1, "b": 2}),
}


@pytest.mark.parametrize("case", RELAXED)
def test_what_thingsboard_takes_is_taken(server, device, case):
    payload, expected = RELAXED[case]
    with Wire(server.mqtt).session(device.token, 5) as wire:
        assert publish(wire, payload) == (0, "")
    assert {key: points[0]["value"] for key, points in server.api.values(device.name).items()} == expected


def test_times_as_python_and_lua_write_them(server, device):
    now = time.time() * 1_000
    with Wire(server.mqtt).session(device.token, 5) as wire:
        for number, ts in enumerate([f"{now!r}", f"{int(now)}.0", f"{int(now) / 1e12:.12f}E12", f'"{int(now)}"']):
            assert publish(wire, b'{"ts":%b,"values":{"n%d":1}}' % (ts.encode(), number), number + 1) == (0, ""), ts
    values = server.api.values(device.name)
    assert [values[f"n{n}"][0]["ts"] for n in range(4)] == [int(now)] * 4


def test_rows_without_a_time_of_their_own_are_all_kept(server, device):
    """Through both doors at once: no row takes the place of another."""
    with Wire(server.mqtt).session(device.token, 4) as wire:
        for n in range(50):
            wire.send(packets.publish(json.dumps([{"n": 100 * n + i} for i in range(10)]).encode(), n + 1, level=4))
            server.api.send(device.token, [{"m": 100 * n + i} for i in range(10)])
        for n in range(50):
            assert int.from_bytes(wire.receive()[1][:2]) == n + 1
    for key in ["n", "m"]:
        assert [value for _, value in server.api.history(device.name, key)] == [100 * n + i for n in range(50) for i in range(10)]


def test_keys_with_commas_and_blanks_are_read_back(server, device):
    payload = {"temp, outside": 1, " padded ": 2, "plain": 3}
    server.api.send(device.token, payload)
    path = f"/api/plugins/telemetry/DEVICE/{server.api.device_id(device.name)}/values/timeseries"
    one_by_one = server.api.get(path, key=list(payload), useStrictDataTypes="true")
    assert {key: points[0]["value"] for key, points in one_by_one.items()} == payload
    history = server.api.get(path, key="temp, outside", startTs=0, endTs=4_102_444_800_000, useStrictDataTypes="true")
    assert [point["value"] for point in history["temp, outside"]] == [1]
    listed = server.api.get(path, keys=" padded ,plain", useStrictDataTypes="true")
    assert {key: points[0]["value"] for key, points in listed.items()} == {" padded ": 2, "plain": 3}


def test_keys_named_like_tags_and_columns_are_ordinary_keys(server, device):
    payload = {"device": "x", "ts": 5, "table": 1, "key": 2, "series": 3, "a:string": 4, "a": "text"}
    server.api.send(device.token, payload)
    stored = {key: points[0]["value"] for key, points in server.api.values(device.name).items()}
    assert stored == payload


def test_numbers_that_json_cannot_hold_never_appear(server, device):
    """What comes back is JSON again, to the digit."""
    server.api.session.post(f"{server.url}/api/v1/{device.token}/telemetry", data='{"a":1e400,"b":9223372036854775808}', timeout=60)
    reply = server.api.session.get(
        f"{server.url}/api/plugins/telemetry/DEVICE/{server.api.device_id(device.name)}/values/timeseries?useStrictDataTypes=true",
        timeout=60,
    )
    assert "9223372036854775808" in reply.text
    assert "1e400" in reply.text.replace("E", "e")


def test_an_unknown_topic_is_refused_by_name(server, device):
    with Wire(server.mqtt).session(device.token, 5) as wire:
        kind, body = wire.send(packets.publish(b"{}", 1, b"v1/devices/me/nonsense", 5)).receive()
        assert (kind, body[2] >= 0x80) == (PUBACK, True)
        assert publish(wire, {"alive": 1}, 2) == (0, "")


def test_log_lines_about_strangers_are_limited_and_count_the_suppressed_ones(own_server):
    server = own_server(env={"TACHO_LOG": "warn"})
    for _ in range(100):
        with socket.create_connection(("127.0.0.1", server.mqtt), timeout=30) as stranger:
            stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
            with contextlib.suppress(ConnectionError):
                assert stranger.recv(100) == b""
    server.api.send(server.device().token, {"n": 1})
    server.stop()
    lines = [line for line in server.lines if "closed a connection" in line]
    assert 1 <= len(lines) <= 60, server.log()
    assert "lines_left_out=0" in lines[0] and "peer=127.0.0.1:" in lines[0], lines[0]

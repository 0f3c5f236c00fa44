"""What is refused is kept in the table dead_letter, once, whichever door it came through; the rest of a message is stored."""

import csv
import io
import json
from contextlib import contextmanager

import pytest
import requests

from harness import packets
from harness.packets import PUBACK, Wire
from harness.server import Server

DOORS = ["http", "mqtt 3.1.1", "mqtt 5"]
SUCCESS, TOPIC_INVALID, PAYLOAD_INVALID, QUOTA_EXCEEDED = 0x00, 0x90, 0x99, 0x97


@contextmanager
def sender(server, door, device):
    """A function that sends one payload of a device and gives the answer: a status, or an MQTT 5 reason code."""
    if door == "http":
        url = f"{server.url}/api/v1/{device.token}/telemetry"
        yield lambda payload: requests.post(url, data=payload, timeout=60).status_code
        return
    level = 5 if door == "mqtt 5" else 4
    with Wire(server.mqtt).session(device.token, level=level) as wire:

        def send(payload):
            kind, body = wire.send(packets.publish(payload, 1, level=level)).receive()
            assert kind == PUBACK
            return body[2] if len(body) > 2 else SUCCESS

        yield send


def expected(door, refused):
    """What a door answers to a message that is taken, or refused with a reason code of MQTT 5."""
    if door == "http":
        return 400 if refused else 200
    return refused if door == "mqtt 5" and refused else SUCCESS


def rows(server, sql):
    """The rows of an answer, as texts by column."""
    reply = server.api.session.post(f"{server.url}/api/sql?format=csv", data=sql, headers={"X-Authorization": f"Bearer {server.api.token}"}, timeout=60)
    assert reply.ok, reply.text
    return list(csv.DictReader(io.StringIO(reply.text)))


def dead_letters(server, device):
    """Payload and reason of what was refused of a device, oldest first."""
    found = rows(server, f"SELECT door, payload, reason FROM dead_letter WHERE device = '{device.name}' ORDER BY ts")
    return [(row["door"], row["payload"], row["reason"]) for row in found]


def row(**values):
    """One row with a time, as a payload."""
    return json.dumps({"ts": 1_700_000_000_123, "values": values}).encode()


@pytest.fixture(scope="module")
def narrow(tmp_path_factory):
    """A server on which a device may add few columns."""
    bounds = {"TACHO_INGEST_COLUMNS_PER_DEVICE_MAX": "4", "TACHO_INGEST_NEW_COLUMNS_PER_MINUTE_MAX": "3"}
    with Server(tmp_path_factory.mktemp("narrow"), bounds) as server:
        yield server


@pytest.fixture(scope="module")
def full_table(tmp_path_factory):
    """A server whose table has all the columns that it may have."""
    bounds = {"TACHO_INGEST_COLUMNS_PER_DEVICE_MAX": "20000", "TACHO_INGEST_NEW_COLUMNS_PER_MINUTE_MAX": "20000"}
    with Server(tmp_path_factory.mktemp("full"), bounds) as server:
        filler = server.device()
        # The tag `device` is one of the 20,000.
        for start in range(0, 20_000, 5_000):
            server.api.send(filler.token, {f"c{n:05}": n for n in range(start, min(start + 5_000, 19_999))})
        yield server


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(
    ("payload", "code"),
    [
        (b"no JSON", PAYLOAD_INVALID),
        (b'{"":1}', PAYLOAD_INVALID),
        (b'{"ts":1700000000,"values":{"a":1}}', PAYLOAD_INVALID),
    ],
)
def test_a_payload_that_cannot_be_read_is_kept_once(server, door, payload, code):
    device = server.device()
    with sender(server, door, device) as send:
        assert send(payload) == expected(door, code)
    [(by, kept, reason)] = dead_letters(server, device)
    assert (by, kept) == (door.split()[0], payload.decode())
    assert reason


@pytest.mark.parametrize("door", DOORS)
def test_known_keys_are_stored_and_the_others_kept_with_their_values(narrow, door):
    device = narrow.device()
    mark = device.name.replace("-", "_")
    keys = [f"{mark}_{n}" for n in range(6)]
    with sender(narrow, door, device) as send:
        assert send(row(**{keys[0]: 1, keys[1]: 2})) == expected(door, None)
        # One more in this minute; the text of a known key needs a column as well.
        sent = {keys[0]: 5, keys[2]: 2.5, keys[3]: [1, 2], keys[1]: "text", keys[4]: True}
        assert send(row(**sent)) == expected(door, None)
        assert send(row(**{keys[5]: 6, keys[4]: 7})) == expected(door, QUOTA_EXCEEDED)
    latest = narrow.api.values(device.name)
    assert {key: points[0]["value"] for key, points in latest.items()} == {keys[0]: 5, keys[1]: 2, keys[2]: 2.5}
    part, whole = dead_letters(narrow, device)
    assert json.loads(part[1]) == [{"ts": 1_700_000_000_123, "values": {keys[3]: [1, 2], keys[1]: "text", keys[4]: True}}]
    assert json.loads(whole[1]) == json.loads(row(**{keys[5]: 6, keys[4]: 7}))
    for by, _, reason in (part, whole):
        assert by == door.split()[0]
        assert device.name in reason and "limit is 3" in reason and "new_columns_per_minute_max" in reason, reason
    assert all(key in part[2] for key in (keys[1], keys[3], keys[4])) and keys[2] not in part[2]
    shown = narrow.api.get(f"/api/tacho/devices/{narrow.api.device_id(device.name)}")["refused"]
    assert shown["messages"] == 2 and "limit is 3" in shown["reason"]
    label = f'tacho_refusals_total{{door="{door.split()[0]}",reason="store_limit"}}'
    assert label in narrow.api.metrics()


@pytest.mark.parametrize("level", [4, 5])
def test_a_message_that_a_limit_refuses_keeps_its_topic(narrow, level):
    """Between messages that are stored, in one packet of TCP."""
    device, gateway, behind = narrow.device(), narrow.device(), f"behind-{narrow.device().name}"
    with Wire(narrow.mqtt).session(device.token, level=level) as wire:
        full = row(**{f"{device.name}_{n}": n for n in range(3)})
        assert wire.send(packets.publish(full, 1, level=level)).receive()[0] == PUBACK
        topics = [packets.TELEMETRY, b"v2/t", b"v2/t/j"]
        sent = [row(**{f"{device.name} {topic.decode()}": 1}) for topic in topics]
        good = row(**{f"{device.name}_0": 5})
        together = [packets.publish(payload, 2 + n, topic, level) for n, (topic, payload) in enumerate(zip(topics, sent, strict=True))]
        if level == 5:
            # The topic alias 1, first with its topic and then without.
            for n, topic in [(7, b"v2/t"), (8, b"")]:
                sent.append(row(**{f"{device.name} alias {n}": 1}))
                topics.append(b"v2/t")
                body = packets.text(topic) + n.to_bytes(2) + b"\x03\x23\x00\x01" + sent[-1]
                together.append(packets.packet(0x32, body))
        wire.send(b"".join(packet + packets.publish(good, 100, level=level) for packet in together))
        answers = [wire.receive() for _ in range(2 * len(together))]
    codes = [body[2] if len(body) > 2 else SUCCESS for _, body in answers]
    assert codes == [QUOTA_EXCEEDED if level == 5 else SUCCESS, SUCCESS] * len(together)
    assert narrow.api.latest(device.name, f"{device.name}_0") == 5
    found = rows(narrow, f"SELECT topic, payload FROM dead_letter WHERE device = '{device.name}' ORDER BY ts")
    assert [(one["topic"], one["payload"]) for one in found] == [(topic.decode(), payload.decode()) for topic, payload in zip(topics, sent, strict=True)]

    known = narrow.api.get("/api/tenant/devices", deviceName=gateway.name)
    narrow.api.post("/api/device", {**known, "additionalInfo": {"gateway": True}})
    with Wire(narrow.mqtt).session(gateway.token, level=level) as wire:
        topic = b"v1/gateway/telemetry"
        for packet_id, keys in [(1, range(3)), (2, range(3, 4))]:
            parts = {behind: [{f"{behind}_{n}": n for n in keys}]}
            assert wire.send(packets.publish(json.dumps(parts).encode(), packet_id, topic, level)).receive()[0] == PUBACK
    found = rows(narrow, f"SELECT topic, payload FROM dead_letter WHERE device = '{behind}'")
    assert [(one["topic"], json.loads(one["payload"])) for one in found] == [(topic.decode(), parts[behind])]


@pytest.mark.parametrize("door", DOORS)
def test_the_largest_payload_that_an_operator_may_allow_is_kept(own_server, door):
    """As base64 it takes a third more."""
    size = 8 * 1024 * 1024 if door == "http" else 4 * 1024 * 1024
    server = own_server({"TACHO_HTTP_BODY_BYTES_MAX": str(8 * 1024 * 1024), "TACHO_MQTT_PACKET_BYTES_MAX": str(4 * 1024 * 1024)})
    device = server.device()
    payload = b"\xff" * (size - 100)
    with sender(server, door, device) as send:
        assert send(payload) == expected(door, PAYLOAD_INVALID)
    [found] = rows(server, f"SELECT length(payload_base64) AS bytes FROM dead_letter WHERE device = '{device.name}'")
    assert int(found["bytes"]) == (len(payload) + 2) // 3 * 4
    server.stop()


@pytest.mark.parametrize("door", DOORS)
def test_a_full_table_still_takes_the_keys_that_it_has(full_table, door):
    server = full_table
    device = server.device()
    with sender(server, door, device) as send:
        assert send(row(c00000=1, **{f"new {device.name}": 2})) == expected(door, None)
        assert send(row(**{f"new {device.name}": 3})) == expected(door, QUOTA_EXCEEDED)
    assert server.api.latest(device.name, "c00000") == 1
    part, whole = dead_letters(server, device)
    assert json.loads(part[1]) == [{"ts": 1_700_000_000_123, "values": {f"new {device.name}": 2}}]
    assert json.loads(whole[1]) == json.loads(row(**{f"new {device.name}": 3}))
    assert all("table telemetry" in reason and "limit is 20000" in reason for _, _, reason in (part, whole))

"""Payloads of Protobuf over MQTT. The messages are encoded here by the rules of the wire format, not by a library of the server."""

import json
import struct

import pytest

from test_broker import Client

WAIT_S = 60
TELEMETRY = """
syntax = "proto3";
package pump;
message Sensor { optional double bar = 1; }
message Reading {
  optional double flow = 1;
  optional int64 pulses = 2;
  string state = 3;
  repeated Sensor sensors = 4;
  optional bool open = 5;
}
"""
ATTRIBUTES = 'syntax = "proto3"; message About { optional string firmware = 1; optional sint32 offset = 2; }'


def varint(number):
    number &= (1 << 64) - 1
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def number(field, value):
    return varint(field << 3) + varint(value)


def double(field, value):
    return varint(field << 3 | 1) + struct.pack("<d", value)


def data(field, value):
    return varint(field << 3 | 2) + varint(len(value)) + value


READING = double(1, 12.5) + number(2, 2**62 + 1) + data(3, b"on") + data(4, double(1, 3.0)) + number(5, 1)


def profile(server, name, **payload):
    configuration = {
        "transportPayloadType": "PROTOBUF",
        "deviceTelemetryProtoSchema": TELEMETRY,
        "deviceAttributesProtoSchema": ATTRIBUTES,
        "enableCompatibilityWithJsonFormat": False,
        "useJsonPayloadFormatForDefaultDownlinkTopics": True,
    } | payload
    transport = {"type": "MQTT", "transportPayloadTypeConfiguration": configuration}
    body = {"name": name, "type": "DEFAULT", "transportType": "MQTT", "profileData": {"transportConfiguration": transport}}
    return server.api.session.post(f"{server.url}/api/deviceProfile", json=body, timeout=WAIT_S)


@pytest.fixture
def pump(own_server):
    """A server with a device whose profile has schemas."""
    server = own_server()
    made = profile(server, "pump")
    assert made.status_code == 200 and made.json()["transportType"] == "MQTT", made.text
    server.command("device", "add", "pump 1", "--profile", "pump", "--token", "pump-token")
    return server


def attributes(server):
    found = server.api.get(f"/api/plugins/telemetry/DEVICE/{server.api.device_id('pump 1')}/values/attributes/CLIENT_SCOPE")
    return {one["key"]: one["value"] for one in found}


@pytest.mark.parametrize("topic", ["v1/devices/me/telemetry", "v2/t", "v2/t/p"])
def test_telemetry_is_decoded_with_the_schema_of_the_profile(pump, topic):
    with Client(pump, "pump-token") as client:
        assert client.publish(topic, READING) == 0
    values = pump.api.values("pump 1")
    latest = {key: points[0]["value"] for key, points in values.items()}
    sensors = latest.pop("sensors")
    assert latest == {"flow": 12.5, "pulses": 2**62 + 1, "state": "on", "open": True}
    assert (json.loads(sensors) if isinstance(sensors, str) else sensors) == [{"bar": 3.0}]


def test_attributes_and_json_topics(pump):
    with Client(pump, "pump-token") as client:
        assert client.publish("v1/devices/me/attributes", data(1, b"1.2") + number(2, 5)) == 0
        assert attributes(pump) == {"firmware": "1.2", "offset": -3}
        assert client.publish("v2/a/p", data(1, b"1.3")) == 0
        assert client.publish("v2/a/j", '{"axles": 3}') == 0
        assert client.publish("v2/t/j", '{"speed": 4}') == 0
        assert attributes(pump) == {"firmware": "1.3", "offset": -3, "axles": 3}
    assert pump.api.latest("pump 1", "speed") == 4


def test_what_does_not_match_is_a_dead_letter_with_its_reason(pump):
    with Client(pump, "pump-token") as client:
        for payload in (b'{"flow": 1}', number(9, 1), READING[:-1], data(4, number(7, 1))):
            assert client.publish("v1/devices/me/telemetry", payload) == 0x99
    rows = pump.api.post("/api/sql", {"query": "SELECT reason FROM dead_letter WHERE device = 'pump 1' ORDER BY ts"})["rows"]
    reasons = [row[0] for row in rows]
    parts = ("pump.Reading", "the field 9", "pump.Reading", "the field 7")
    assert [part in reason for part, reason in zip(parts, reasons, strict=True)] == [True] * 4, reasons
    assert pump.api.keys("pump 1") == []


def test_json_is_read_too_if_the_profile_says_so(pump):
    assert profile(pump, "both", enableCompatibilityWithJsonFormat=True).status_code == 200
    pump.command("device", "add", "pump 2", "--profile", "both", "--token", "both-token")
    with Client(pump, "both-token") as client:
        assert client.publish("v1/devices/me/telemetry", '{"flow": 1}') == 0
        assert client.publish("v1/devices/me/telemetry", double(1, 2.5)) == 0
        assert client.publish("v2/t/p", '{"flow": 1}') == 0x99
    assert pump.api.latest("pump 2", "flow") == 2.5


def test_a_device_without_schemas_has_no_protobuf(server, device):
    with Client(server, device.token) as client:
        assert client.publish("v2/t/p", READING) == 0x99
        assert client.publish("v2/a/p", b"") == 0x99


@pytest.mark.parametrize(
    ("payload", "part"),
    [
        ({"deviceTelemetryProtoSchema": "message"}, "deviceTelemetryProtoSchema cannot be read"),
        ({"deviceTelemetryProtoSchema": 'syntax = "proto3"; message A { B b = 1; }'}, "deviceTelemetryProtoSchema cannot be compiled"),
        ({"deviceAttributesProtoSchema": 'syntax = "proto3"; import "other.proto"; message A {}'}, "deviceAttributesProtoSchema"),
        ({"useJsonPayloadFormatForDefaultDownlinkTopics": False}, "sends JSON to devices"),
        ({"transportPayloadType": "XML"}, "JSON or PROTOBUF"),
    ],
)
def test_a_wrong_schema_is_refused_with_its_place(pump, payload, part):
    refused = profile(pump, "wrong", **payload)
    assert refused.status_code == 400 and part in refused.json()["message"], refused.text

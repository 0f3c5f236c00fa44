"""Payloads of Protobuf over MQTT. The messages are encoded here by the rules of the wire format, not by a library of the server."""

import json
import queue
import struct
import threading

import pytest

from harness.wait import until
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
CALL = """
syntax = "proto3";
message Call {
  message Valve { int32 number = 1; bool open = 2; }
  optional string method = 1;
  optional int32 requestId = 2;
  optional Valve params = 3;
}
"""
ANSWER = 'syntax = "proto3"; message Answer { optional bool done = 1; optional double bar = 2; }'
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


def fields(payload):
    """The fields of a message: number and value. Texts and messages are bytes, and numbers of 8 bytes are floats."""
    out = []

    def take_varint():
        nonlocal payload
        number = shift = 0
        while True:
            byte, payload = payload[0], payload[1:]
            number, shift = number | (byte & 127) << shift, shift + 7
            if byte < 128:
                return number

    while payload:
        tag = take_varint()
        if tag & 7 == 0:
            value = take_varint()
        elif tag & 7 == 1:
            (value,), payload = struct.unpack("<d", payload[:8]), payload[8:]
        else:
            assert tag & 7 == 2, tag
            length = take_varint()
            assert length <= len(payload)
            value, payload = payload[:length], payload[length:]
        out.append((tag >> 3, value))
    return out


def attribute(message):
    """Key, type and value of a TsKvProto, whose time must be there."""
    (one, ts), (two, value) = fields(message)
    assert (one, two) == (1, 2) and ts > 1_600_000_000_000
    parts = dict(fields(value))
    kind = parts.pop(2, 0)
    return parts.pop(1).decode(), kind, parts.get(3 + kind, 0)


READING = double(1, 12.5) + number(2, 2**62 + 1) + data(3, b"on") + data(4, double(1, 3.0)) + number(5, 1)


def profile(server, name, **payload):
    configuration = {
        "transportPayloadType": "PROTOBUF",
        "deviceTelemetryProtoSchema": TELEMETRY,
        "deviceAttributesProtoSchema": ATTRIBUTES,
        "deviceRpcRequestProtoSchema": CALL,
        "deviceRpcResponseProtoSchema": ANSWER,
        "enableCompatibilityWithJsonPayloadFormat": False,
        "useJsonPayloadFormatForDefaultDownlinkTopics": False,
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
    assert profile(pump, "both", enableCompatibilityWithJsonPayloadFormat=True).status_code == 200
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


def set_shared(server, values, device="pump 1"):
    reply = server.api.session.post(
        f"{server.url}/api/plugins/telemetry/DEVICE/{server.api.device_id(device)}/SHARED_SCOPE", json=values, timeout=WAIT_S
    )
    assert reply.ok, reply.text


@pytest.mark.parametrize("names", ["v1/devices/me/attributes", "v2/a", "v2/a/p"])
def test_a_device_gets_changes_of_shared_attributes_as_protobuf(pump, names):
    with Client(pump, "pump-token") as client:
        client.subscribe(names, 1)
        values = {"b": True, "i": -2, "d": 1.5, "s": "x", "j": {"a": [1]}}
        set_shared(pump, values)
        message = client.message()
        assert message.topic == names
        changed = fields(message.payload)
        assert {number for number, _ in changed} == {1}
        found = sorted(attribute(value) for _, value in changed)
        assert found == [("b", 0, 1), ("d", 2, 1.5), ("i", 1, 2**64 - 2), ("j", 4, b'{"a": [1]}'), ("s", 3, b"x")]
        reply = pump.api.session.delete(
            f"{pump.url}/api/plugins/telemetry/DEVICE/{pump.api.device_id('pump 1')}/SHARED_SCOPE?keys=s,b", timeout=WAIT_S
        )
        assert reply.ok, reply.text
        assert sorted(fields(client.message().payload)) == [(2, b"b"), (2, b"s")]


@pytest.mark.parametrize("names", ["v1/devices/me/attributes/{}/", "v2/a/{:.3}/", "v2/a/{:.3}/p/"])
def test_a_device_asks_for_attributes_as_protobuf(pump, names):
    set_shared(pump, {"rate": 3, "mode": "slow"})
    with Client(pump, "pump-token") as client:
        assert client.publish("v2/a/p", data(1, b"1.2")) == 0
        client.subscribe(names.format("response") + "+", 1)
        for request, expected in [
            (data(1, b"firmware,absent") + data(2, b"rate"), ["firmware", "rate", 1]),
            (data(2, b"mode"), ["mode"]),
            (b"", ["firmware", "mode", "rate"]),
        ]:
            assert client.publish(names.format("request") + "300", request) == 0
            message = client.message()
            assert message.topic == names.format("response") + "300"
            (id_field, id_), *answer = fields(message.payload)
            assert (id_field, id_) == (1, 300)
            scopes = {"firmware": 2, "rate": 3, "mode": 3}
            found = [value if number == 4 else attribute(value)[0] for number, value in answer]
            assert sorted(found, key=str) == sorted(expected, key=str)
            assert all(number == 4 or number == scopes[attribute(value)[0]] for number, value in answer)
        assert client.publish(names.format("request") + "1", data(1, b"\xff")) == 0x99
        assert client.publish(names.format("request") + "1", b'{"clientKeys":"a"}') == 0x99


def call(server, device, body, kind="twoway"):
    url = f"{server.url}/api/rpc/{kind}/{server.api.device_id(device)}"
    return server.api.session.post(url, json={"timeout": 30_000} | body, timeout=WAIT_S)


@pytest.mark.parametrize("names", ["v1/devices/me/rpc/{}/", "v2/r/{:.3}/", "v2/r/{:.3}/p/"])
def test_a_call_and_its_answer_have_the_schemas_of_the_profile(pump, names):
    with Client(pump, "pump-token") as client:
        client.subscribe(names.format("request") + "+", 1)
        replies = queue.Queue()
        body = {"method": "turn", "params": {"number": 7, "open": True}}
        thread = threading.Thread(target=lambda: replies.put(call(pump, "pump 1", body)))
        thread.start()
        message = client.message()
        id_ = message.topic.removeprefix(names.format("request"))
        assert fields(message.payload) == [(1, b"turn"), (2, int(id_)), (3, number(1, 7) + number(2, 1))]
        answers = names.format("response") + id_
        assert client.publish(answers, b'{"done": true}') == 0x99
        assert client.publish(answers, number(7, 1)) == 0x99
        assert client.publish(answers, number(1, 1) + double(2, 3.5)) == 0
        reply = replies.get(timeout=WAIT_S)
        assert (reply.status_code, reply.json()) == (200, {"done": True, "bar": 3.5})
        thread.join()


@pytest.mark.parametrize("params", [{"number": "x"}, {"pressure": 1}, [1], 7])
def test_a_call_that_does_not_fit_the_schema_is_refused_and_not_sent(pump, params):
    with Client(pump, "pump-token") as client:
        client.subscribe("v1/devices/me/rpc/request/+", 1)
        for kind in ("oneway", "twoway"):
            for persistent in (False, True):
                refused = call(pump, "pump 1", {"method": "turn", "params": params, "persistent": persistent}, kind)
                assert refused.status_code == 400 and '"Call"' in refused.json()["message"], refused.text
        assert call(pump, "pump 1", {"method": "close", "params": {}}, "oneway").status_code == 200
        assert fields(client.message().payload)[0] == (1, b"close")


def test_the_topic_says_protobuf_whatever_the_profile_says(server, device):
    """Without a profile for Protobuf, calls have ThingsBoard's schema, whose parameters are text."""
    with Client(server, device.token) as client:
        client.subscribe("v2/r/req/p/+", 1)
        client.subscribe("v2/r/res/p/+", 1)
        client.subscribe("v2/a/p", 1)
        set_shared(server, {"rate": 3}, device.name)
        assert attribute(fields(client.message().payload)[0][1]) == ("rate", 1, 3)
        refused = call(server, device.name, {"method": "m", "params": {"a": 1}})
        assert refused.status_code == 400 and "rpc.RpcRequestMsg" in refused.json()["message"], refused.text
        stored = call(server, device.name, {"method": "m", "params": {"a": 1}, "persistent": True}).json()["rpcId"]
        kept = lambda: server.api.get(f"/api/rpc/persistent/{stored}")
        until(lambda: kept()["status"] == "FAILED", "a stored call that cannot be sent fails")
        assert "rpc.RpcRequestMsg" in kept()["response"]["error"]
        replies = queue.Queue()
        thread = threading.Thread(target=lambda: replies.put(call(server, device.name, {"method": "m", "params": "p"})))
        thread.start()
        message = client.message()
        assert [value for _, value in fields(message.payload)][::2] == [b"m", b"p"]
        assert client.publish(message.topic.replace("req", "res"), data(1, b"done")) == 0
        assert replies.get(timeout=WAIT_S).json() == {"payload": "done"}
        thread.join()
        assert client.publish("v2/r/req/p/3", data(1, b"getSessionLimits") + data(2, b"{}")) == 0
        (_, id_), (_, limits) = fields(client.message().payload)
        assert id_ == 3 and "maxPayloadSize" in json.loads(limits)


def test_the_server_sends_json_under_the_default_topics_if_the_profile_says_so(pump):
    json_too = {"enableCompatibilityWithJsonPayloadFormat": True, "useJsonPayloadFormatForDefaultDownlinkTopics": True}
    assert profile(pump, "json", **json_too).status_code == 200
    pump.command("device", "add", "pump 3", "--profile", "json", "--token", "json-token")
    with Client(pump, "json-token") as default, Client(pump, "json-token") as short:
        default.subscribe("v1/devices/me/attributes", 1)
        short.subscribe("v2/a", 1)
        set_shared(pump, {"rate": 3}, "pump 3")
        assert json.loads(default.message().payload) == {"rate": 3}
        assert attribute(fields(short.message().payload)[0][1]) == ("rate", 1, 3)
        default.subscribe("v1/devices/me/attributes/response/+", 1)
        for request in ('{"sharedKeys": "rate"}', data(2, b"rate")):
            assert default.publish("v1/devices/me/attributes/request/1", request) == 0
            assert json.loads(default.message().payload) == {"shared": {"rate": 3}}


def test_a_claim_is_protobuf_too(pump):
    with Client(pump, "pump-token") as client:
        assert client.publish("v1/devices/me/claim", data(1, b"4711") + number(2, 60_000)) == 0
        assert client.publish("v1/devices/me/claim", b'{"secretKey": "4711"}') == 0x99


def test_a_device_asks_for_credentials_with_protobuf(pump):
    terms = {"type": "ALLOW_CREATE_NEW_DEVICES", "provisionDeviceSecret": "secret"}
    made = pump.api.session.post(
        f"{pump.url}/api/deviceProfile",
        json={"name": "new", "type": "DEFAULT", "transportType": "DEFAULT", "provisionType": "ALLOW_CREATE_NEW_DEVICES",
              "provisionDeviceKey": "key", "profileData": {"provisionConfiguration": terms}},
        timeout=WAIT_S,
    )
    assert made.status_code == 200, made.text
    with Client(pump, "provision") as client:
        client.subscribe("/provision/response")
        key = data(3, data(1, b"key") + data(2, b"secret"))
        client.publish("/provision/request", data(1, b"car 1") + key + data(4, data(1, data(1, b"car-token"))))
        assert fields(client.message().payload) == [(1, 1), (3, b"car-token")]
        basic = data(3, data(1, b"car") + data(2, b"user") + data(3, b"password"))
        client.publish("/provision/request", data(1, b"car 2") + number(2, 2) + key + data(4, basic))
        status, kind, (_, value) = fields(client.message().payload)
        assert (status, kind) == ((1, 1), (2, 2)) and json.loads(value)["userName"] == "user"
        client.publish("/provision/request", data(1, b"car 3") + data(3, data(1, b"absent") + data(2, b"secret")))
        assert fields(client.message().payload) == [(1, 2)]
        client.publish("/provision/request", data(1, b"car 1") + key)
        assert fields(client.message().payload) == [(1, 3)]
        client.publish("/provision/request", '{"deviceName": "car 4", "provisionDeviceKey": "key", "provisionDeviceSecret": "secret"}')
        assert json.loads(client.message().payload)["status"] == "SUCCESS"
    with Client(pump, "car-token") as client:
        assert client.publish("v1/devices/me/telemetry", '{"speed": 1}') == 0
    assert pump.api.latest("car 1", "speed") == 1


@pytest.mark.parametrize(
    ("payload", "part"),
    [
        ({"deviceTelemetryProtoSchema": "message"}, "deviceTelemetryProtoSchema cannot be read"),
        ({"deviceTelemetryProtoSchema": 'syntax = "proto3"; message A { B b = 1; }'}, "deviceTelemetryProtoSchema cannot be compiled"),
        ({"deviceAttributesProtoSchema": 'syntax = "proto3"; import "other.proto"; message A {}'}, "deviceAttributesProtoSchema"),
        ({"deviceRpcRequestProtoSchema": 'syntax = "proto3"; message Call { string method = 1; }'}, "int32 requestId"),
        ({"transportPayloadType": "XML"}, "JSON or PROTOBUF"),
        ({"transportPayloadType": "JSON"}, "deviceTelemetryProtoSchema has no effect on JSON"),
    ],
)
def test_a_wrong_schema_is_refused_with_its_place(pump, payload, part):
    refused = profile(pump, "wrong", **payload)
    assert refused.status_code == 400 and part in refused.json()["message"], refused.text

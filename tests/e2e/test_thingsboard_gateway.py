"""ThingsBoard's gateway API over MQTT: one connection speaks for many devices. ThingsBoard's own client, and paho."""

import json
import queue
import threading
import time

import paho.mqtt.client as mqtt
import pytest

from harness.rest import Api
from test_broker import WAIT_S, Client
from test_thingsboard_mqtt import ThingsBoardDevice, attributes, post, set_shared
from harness.server import Device

TELEMETRY, ATTRIBUTES, RPC = "v1/gateway/telemetry", "v1/gateway/attributes", "v1/gateway/rpc"
CONNECT, DISCONNECT = "v1/gateway/connect", "v1/gateway/disconnect"
VERSIONS = pytest.mark.parametrize("version", [mqtt.MQTTv311, mqtt.MQTTv5], ids=["v311", "v5"])


def add_gateway(api, name):
    """A gateway of the tenant of `api`, as ThingsBoard's REST clients add it."""
    device = api.post("/api/device", {"name": name, "additionalInfo": {"gateway": True}})
    assert device["additionalInfo"] == {"gateway": True}
    return Device(name, api.get(f"/api/device/{device['id']['id']}/credentials")["credentialsId"])


@pytest.fixture
def site(own_server):
    """A server with a gateway."""
    server = own_server()
    server.gateway = add_gateway(server.api, "gateway")
    return server


def info(server, name):
    return server.api.get("/api/tenant/devices", deviceName=name)["additionalInfo"]


def dead_letters(server, device):
    sql = f"SELECT topic, payload, reason FROM dead_letter WHERE device = '{device}' ORDER BY ts"
    return server.api.post("/api/sql", {"query": sql})["rows"]


class Call(threading.Thread):
    """A two-way call of a user, which waits for its answer."""

    def __init__(self, server, device, **more):
        super().__init__()
        self.replies = queue.Queue()
        url = f"/api/rpc/twoway/{server.api.device_id(device)}"
        body = {"method": "open", "params": {"n": 1}, "timeout": 30_000} | more
        self.work = lambda: self.replies.put(post(server, url, body))

    def run(self):
        self.work()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.join(timeout=2 * WAIT_S)
        assert not self.is_alive()


def test_thingsboards_own_gateway_client(own_server):
    server = own_server()
    gateway = add_gateway(server.api, "gateway")
    with ThingsBoardDevice(server, gateway.token, "thingsboard_gateway.py") as client:
        assert client.next("connected") == [0, 0]
        assert client.next("telemetry") == [0, 0]
        assert client.next("sent") == 0
        asked = dict(client.lines.get(timeout=WAIT_S) for _ in range(2))
        assert asked["client"] == {"id": asked["client"]["id"], "device": "pump", "values": {"firmware": "1.2"}}
        assert asked["shared"] == {"id": asked["shared"]["id"], "device": "pump"}
        assert [value for _, value in server.api.history("pump", "flow")] == [1, 2]
        assert server.api.latest("valve", "open") is True
        assert attributes(server, Device("pump", ""), "CLIENT_SCOPE") == {"firmware": "1.2"}
        assert info(server, "pump") == {"lastConnectedGateway": server.api.device_id("gateway")}
        set_shared(server, Device("pump", ""), {"limit": 80})
        assert client.next("attributes") == {"device": "pump", "data": {"limit": 80}}
        with Call(server, "valve") as call:
            got = client.next("call")
            assert got["device"] == "valve" and got["data"]["method"] == "open" and got["data"]["params"] == {"n": 1}
            assert call.replies.get(timeout=WAIT_S).json() == {"done": "open"}
        client.process.stdin.write("valve\n")
        client.process.stdin.flush()
        assert client.next("disconnected") == 0
        reply = post(server, f"/api/rpc/oneway/{server.api.device_id('valve')}", {"method": "m", "params": {}, "timeout": 5_000})
        assert reply.status_code == 504, reply.text


@VERSIONS
def test_acknowledged_telemetry_of_many_devices_survives_a_crash(site, version):
    count = 10_000
    first = {f"d{n}": [{"ts": 1_700_000_000_000, "values": {"n": n}}] for n in range(count)}
    with Client(site, site.gateway.token, version) as client:
        payload = json.dumps(first)
        assert len(payload) < 1024 * 1024
        assert client.publish(TELEMETRY, payload) == 0
        assert client.publish(TELEMETRY, json.dumps({"d7": [{"n": 8}, {"ts": 1_700_000_000_001, "values": {"n": 9}}], "e": {"n": 1}})) == 0
        assert client.publish(ATTRIBUTES, json.dumps({"d1": {"a": 1}, "e": {"a": 2}})) == 0
        site.kill()
    site.start()
    found = site.api.post("/api/sql", {"query": "SELECT count(*), count(DISTINCT device) FROM telemetry"})["rows"]
    assert found == [[count + 3, count + 1]]
    assert len(site.api.history("d7", "n")) == 3
    assert info(site, "e") == {"lastConnectedGateway": site.api.device_id("gateway")}
    assert attributes(site, Device("e", ""), "CLIENT_SCOPE") == {"a": 2}
    with Client(site, site.gateway.token, version) as client:
        assert client.publish(TELEMETRY, json.dumps(first)) == 0
    assert site.api.post("/api/sql", {"query": "SELECT count(*) FROM telemetry"})["rows"] == [[count + 3]]


@VERSIONS
def test_attributes_and_calls_reach_devices_behind_a_gateway(site, version):
    with Client(site, site.gateway.token, version) as client:
        for topic in (ATTRIBUTES, RPC, f"{ATTRIBUTES}/response"):
            assert client.subscribe(topic, 1) == [1]
        assert client.publish(CONNECT, '{"device": "a"}') == 0
        assert client.publish(ATTRIBUTES, '{"a": {"x": 1, "y": {"z": [true]}}, "b": {"x": 2}}') == 0
        set_shared(site, Device("b", ""), {"s": "t"})
        assert json.loads(client.message().payload) == {"device": "b", "data": {"s": "t"}}
        client.publish(f"{ATTRIBUTES}/request", '{"id": 4, "device": "a", "client": true, "keys": ["x", "y"]}')
        answer = client.message()
        assert answer.topic == f"{ATTRIBUTES}/response"
        assert json.loads(answer.payload) == {"id": 4, "device": "a", "values": {"x": 1, "y": {"z": [True]}}}
        client.publish(f"{ATTRIBUTES}/request", '{"id": 5, "device": "b", "client": false, "key": "s"}')
        assert json.loads(client.message().payload) == {"id": 5, "device": "b", "value": "t"}
        url = f"{site.url}/api/plugins/telemetry/DEVICE/{site.api.device_id('b')}/SHARED_SCOPE?keys=s"
        assert site.api.session.delete(url, timeout=WAIT_S).ok
        assert json.loads(client.message().payload) == {"device": "b", "data": {"deleted": ["s"]}}
        with Call(site, "a") as call:
            message = client.message()
            got = json.loads(message.payload)
            assert message.topic == RPC and got["device"] == "a"
            assert got["data"] == {"id": got["data"]["id"], "method": "open", "params": {"n": 1}}
            assert client.publish(RPC, json.dumps({"device": "a", "id": got["data"]["id"], "data": {"ok": 1}})) == 0
            assert call.replies.get(timeout=WAIT_S).json() == {"ok": 1}
        client.subscribe("v1/devices/me/rpc/response/+", 1)
        client.publish("v1/devices/me/rpc/request/3", '{"method": "getSessionLimits", "params": {}}')
        assert "gatewayRateLimits" in json.loads(client.message().payload)


def test_a_stored_call_waits_for_the_gateway(site):
    with Client(site, site.gateway.token) as client:
        assert client.publish(CONNECT, '{"device": "a"}') == 0
    url = f"/api/rpc/twoway/{site.api.device_id('a')}"
    stored = post(site, url, {"method": "open", "params": 1, "persistent": True, "expirationTime": int(time.time() * 1000) + 600_000})
    call = f"/api/rpc/persistent/{stored.json()['rpcId']}"
    site.kill()
    site.start()
    with Client(site, site.gateway.token) as client:
        client.subscribe(RPC, 1)
        assert client.publish(CONNECT, '{"device": "b"}') == 0
        assert client.messages.empty() and site.api.get(call)["status"] == "QUEUED"
        assert client.publish(CONNECT, '{"device": "a"}') == 0
        got = json.loads(client.message().payload)
        assert got["device"] == "a" and got["data"]["method"] == "open"
        deadline = time.monotonic() + WAIT_S
        while site.api.get(call)["status"] != "DELIVERED":
            assert time.monotonic() < deadline
        assert client.publish(RPC, json.dumps({"device": "a", "id": got["data"]["id"], "data": [2]})) == 0
        answered = site.api.get(call)
        assert (answered["status"], answered["response"]) == ("SUCCESSFUL", [2])


def test_a_device_moves_to_the_gateway_that_connects_it_last(site):
    other = add_gateway(site.api, "other")
    with Client(site, site.gateway.token) as old, Client(site, other.token) as new:
        for client in (old, new):
            client.subscribe(ATTRIBUTES, 1)
            assert client.publish(CONNECT, '{"device": "a"}') == 0
        # Its telemetry is stored, and the device stays where it is.
        assert old.publish(TELEMETRY, '{"a": [{"n": 1}]}') == 0
        set_shared(site, Device("a", ""), {"s": 1})
        assert json.loads(new.message().payload) == {"device": "a", "data": {"s": 1}}
        assert new.publish(DISCONNECT, '{"device": "a"}') == 0
        assert old.publish(TELEMETRY, '{"a": [{"n": 2}]}') == 0
        set_shared(site, Device("a", ""), {"s": 2})
        assert json.loads(old.message().payload) == {"device": "a", "data": {"s": 2}}
        assert new.messages.empty() and old.messages.empty()
    assert site.api.latest("a", "n") == 2


def test_a_gateway_reaches_no_device_of_another_tenant(site, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("a long password\n")
    site.command("tenant", "add", "acme", "--admin", "root@acme.example", "--password-file", str(secret))
    acme = Api(site.url).login("root@acme.example", "a long password")
    try:
        theirs = acme.post("/api/device?accessToken=theirs", {"name": "truck"})
        acme.send("theirs", {"speed": 1})
        with Client(site, site.gateway.token) as client:
            client.subscribe(ATTRIBUTES, 1)
            assert client.publish(CONNECT, '{"device": "truck"}') == 0
            assert client.publish(TELEMETRY, '{"truck": [{"speed": 2}]}') == 0
            reply = acme.session.post(
                f"{acme.url}/api/plugins/telemetry/DEVICE/{theirs['id']['id']}/attributes/SHARED_SCOPE", json={"s": 1}, timeout=WAIT_S
            )
            assert reply.ok
            set_shared(site, Device("truck", ""), {"own": 1})
            assert json.loads(client.message().payload) == {"device": "truck", "data": {"own": 1}}
        assert acme.latest("truck", "speed") == 1 and site.api.latest("truck", "speed") == 2
        assert acme.get("/api/tenant/devices", deviceName="truck")["additionalInfo"] is None
        assert site.api.device_id("truck") != theirs["id"]["id"]
    finally:
        acme.session.close()


def test_refused_parts_are_kept_and_the_others_stored(site):
    long = "x" * 300
    with Client(site, site.gateway.token) as client:
        telemetry = {"a": [{"n": 1}], "b": [{"ts": "x", "values": {"n": 2}}], "c": 3, long: [{"n": 4}], "d": [{"n": 5}]}
        assert client.publish(TELEMETRY, json.dumps(telemetry)) == 0x99
        assert client.publish(ATTRIBUTES, json.dumps({"a": {"k": 1}, "b": 2})) == 0x99
        assert client.publish(TELEMETRY, "not json") == 0x99
        assert client.publish(TELEMETRY, "[]") == 0x99
        assert client.publish(CONNECT, '{"type": "x"}') == 0x99
        assert client.publish(CONNECT, json.dumps({"device": long})) == 0x97
        assert client.publish(RPC, '{"device": "nobody", "id": 1, "data": 1}') == 0x99
        assert client.publish(f"{ATTRIBUTES}/request", '{"id": 1, "device": "nobody", "client": true, "key": "a"}') == 0x99
        assert client.publish("v1/gateway/claim", '{"a": {"secretKey": 7}}') == 0x99
        assert client.publish(TELEMETRY, "{}") == 0
        assert client.publish(TELEMETRY, '{"a": []}') == 0
        assert client.subscribe("v1/gateway/nothing", 1) == [0x87]
    for name, value in (("a", 1), ("b", None), ("c", None), ("d", 5)):
        assert site.api.latest(name, "n") == value
    assert attributes(site, Device("a", ""), "CLIENT_SCOPE") == {"k": 1}
    kept = dead_letters(site, "gateway")
    assert len(kept) == 9
    topic, payload, reason = kept[0]
    assert topic == TELEMETRY and json.loads(payload) == {name: telemetry[name] for name in ("b", "c", long)}
    assert reason.startswith('refused for 3 of 5 devices, stored for the others: "b": ts is ')
    assert json.loads(kept[1][1]) == {"b": 2}
    assert [row[1] for row in kept[2:4]] == ["not json", "[]"]


def test_a_device_that_is_not_a_gateway_is_refused(site):
    device = site.device()
    with Client(site, device.token) as client:
        assert client.publish(TELEMETRY, '{"a": [{"n": 1}]}') == 0x87
        assert client.publish(CONNECT, '{"device": "a"}') == 0x87
        assert client.subscribe(RPC, 1) == [0x87]
        assert "not a gateway" in dead_letters(site, device.name)[0][2]
        id_ = site.api.device_id(device.name)
        changed = site.api.post("/api/device", {"id": {"id": id_}, "name": device.name, "additionalInfo": {"gateway": True}})
        assert changed["additionalInfo"] == {"gateway": True}
        # The terms of the session were those of an ordinary device.
        assert client.disconnected.get(timeout=WAIT_S).value == 0x98
    with Client(site, device.token) as client:
        assert client.publish(TELEMETRY, '{"a": [{"n": 1}]}') == 0
    assert site.api.latest("a", "n") == 1


def test_a_gateway_added_at_a_prompt_and_a_device_deleted_behind_it(site):
    site.command("device", "add", "depot", "--gateway", "--token", "depot-token")
    assert info(site, "depot") == {"gateway": True}
    with Client(site, "depot-token") as client:
        assert client.publish(TELEMETRY, '{"a": [{"n": 1}]}') == 0
        first = site.api.device_id("a")
        assert site.api.session.delete(f"{site.url}/api/device/{first}", timeout=WAIT_S).ok
        deadline = time.monotonic() + WAIT_S
        while site.api.get("/api/tenant/devices", pageSize=10, page=0, textSearch="a")["totalElements"] != 2:
            assert client.publish(TELEMETRY, '{"a": [{"n": 2}]}') == 0 and time.monotonic() < deadline
        assert site.api.device_id("a") != first

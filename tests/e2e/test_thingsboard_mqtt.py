"""ThingsBoard's device API over MQTT: attributes and calls in both directions. ThingsBoard's own client, and paho."""

import json
import os
import queue
import subprocess
import sys
import threading
from pathlib import Path

import paho.mqtt.client as mqtt
import pytest

from test_broker import WAIT_S, Client

HERE = Path(__file__).parent
ATTRIBUTES = "v1/devices/me/attributes"


def post(server, path, body):
    return server.api.session.post(server.url + path, json=body, timeout=2 * WAIT_S)


def set_shared(server, device, values):
    reply = post(server, f"/api/plugins/telemetry/DEVICE/{server.api.device_id(device.name)}/attributes/SHARED_SCOPE", values)
    assert reply.ok, reply.text


def attributes(server, device, scope):
    found = server.api.get(f"/api/plugins/telemetry/DEVICE/{server.api.device_id(device.name)}/values/attributes/{scope}")
    return {one["key"]: one["value"] for one in found}


class ThingsBoardDevice:
    """The process of a script with ThingsBoard's client, with its lines as a queue."""

    def __init__(self, server, token, script="thingsboard_device.py"):
        environment = os.environ | {"PYTHONPATH": str(Path(sys.prefix) / "thingsboard")}
        command = [sys.executable, str(HERE / script), str(server.mqtt), token]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
        )
        self.lines = queue.Queue()
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            if line.startswith("["):
                self.lines.put(json.loads(line))

    def next(self, what):
        """The next line, which must be of this kind."""
        got, content = self.lines.get(timeout=WAIT_S)
        assert got == what, (got, content)
        return content

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.write("end\n")
        self.process.stdin.close()
        self.process.wait(timeout=WAIT_S)
        self.reader.join()
        self.process.stdout.close()


def test_thingsboards_own_client(server, device):
    set_shared(server, device, {"limit": 80})
    with ThingsBoardDevice(server, device.token) as client:
        # The answer to the request comes on another thread of the client than the acks.
        first = dict(client.lines.get(timeout=WAIT_S) for _ in range(3))
        requested = {"client": {"firmware": "1.2"}, "shared": {"limit": 80}}
        assert first == {"sent": 0, "telemetry": 0, "requested": requested}
        assert attributes(server, device, "CLIENT_SCOPE") == {"firmware": "1.2", "axles": 3}
        assert server.api.latest(device.name, "speed") == 12.5
        set_shared(server, device, {"limit": 90, "name": "x"})
        assert client.next("attributes") == {"limit": 90, "name": "x"}
        reply = post(server, f"/api/rpc/twoway/{server.api.device_id(device.name)}", {"method": "lock", "params": {"door": 1}})
        assert client.next("call") == {"method": "lock", "params": {"door": 1}}
        assert reply.json() == {"done": "lock"}


@pytest.mark.parametrize("version", [mqtt.MQTTv311, mqtt.MQTTv5], ids=["v311", "v5"])
@pytest.mark.parametrize("names", [("v1/devices/me/attributes", "v1/devices/me/attributes/request/7", "v1/devices/me/attributes/response/+"),
                                   ("v2/a", "v2/a/req/7", "v2/a/res/+")], ids=["long", "short"])
def test_attributes_with_paho(server, device, version, names):
    base, request, response = names
    with Client(server, device.token, version) as client:
        assert client.subscribe(base, 1) == [1] and client.subscribe(response, 1) == [1]
        assert client.publish(base, '{"a": 1, "b": {"c": true}}') == 0
        set_shared(server, device, {"s": "t"})
        pushed = client.message()
        assert (pushed.topic, json.loads(pushed.payload)) == (base, {"s": "t"})
        client.publish(request, '{"clientKeys": "a,b", "sharedKeys": "s"}')
        answer = client.message()
        assert answer.topic == response.replace("+", "7")
        assert json.loads(answer.payload) == {"client": {"a": 1, "b": {"c": True}}, "shared": {"s": "t"}}
        reply = server.api.session.delete(
            f"{server.url}/api/plugins/telemetry/DEVICE/{server.api.device_id(device.name)}/SHARED_SCOPE?keys=s", timeout=WAIT_S
        )
        assert reply.ok, reply.text
        assert json.loads(client.message().payload) == {"deleted": ["s"]}


def test_a_wrong_payload_is_refused_and_kept(server, device):
    with Client(server, device.token) as client:
        assert client.publish(ATTRIBUTES, "not json") == 0x99
        assert client.publish(f"{ATTRIBUTES}/request/1", "[]") == 0x99
        assert client.publish(ATTRIBUTES, json.dumps({"k" * 10_000: 1})) == 0x97
        assert client.subscribe("v1/gateway/rpc", 1) == [0x87]
    rows = server.api.post("/api/sql", {"query": f"SELECT count(*) FROM dead_letter WHERE device = '{device.name}'"})["rows"]
    assert rows == [[3]]


def test_a_call_reaches_the_device_and_its_answer_the_caller(server, device):
    with Client(server, device.token) as client:
        client.subscribe("v1/devices/me/rpc/request/+", 1)
        replies = queue.Queue()
        url = f"/api/rpc/twoway/{server.api.device_id(device.name)}"
        thread = threading.Thread(target=lambda: replies.put(post(server, url, {"method": "m", "params": [1], "timeout": 30_000})))
        thread.start()
        call = client.message()
        assert json.loads(call.payload) == {"method": "m", "params": [1]}
        assert client.publish(call.topic.replace("request", "response"), '{"ok": true}') == 0
        assert replies.get(timeout=WAIT_S).json() == {"ok": True}
        thread.join()
        client.subscribe("v1/devices/me/rpc/response/+", 1)
        client.publish("v1/devices/me/rpc/request/3", '{"method": "getSessionLimits", "params": {}}')
        answer = client.message()
        assert answer.topic == "v1/devices/me/rpc/response/3" and "maxPayloadSize" in json.loads(answer.payload)


def test_attributes_survive_a_crash(own_server):
    server = own_server()
    device = server.device()
    with Client(server, device.token) as client:
        assert client.publish(ATTRIBUTES, '{"kept": 1}') == 0
    set_shared(server, device, {"shared": 2})
    server.kill()
    server.start()
    assert attributes(server, device, "CLIENT_SCOPE") == {"kept": 1}
    assert attributes(server, device, "SHARED_SCOPE") == {"shared": 2}


def test_the_subscription_of_a_session_that_outlives_its_connection_continues(own_server):
    server = own_server()
    device = server.device()
    with Client(server, device.token, client_id="kept", expiry_s=600, clean=False) as client:
        client.subscribe(ATTRIBUTES, 1)
    server.kill()
    server.start()
    with Client(server, device.token, client_id="kept", expiry_s=600, clean=False) as client:
        assert client.session_present
        set_shared(server, device, {"n": 1})
        assert json.loads(client.message().payload) == {"n": 1}

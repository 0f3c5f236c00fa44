"""RPC over HTTP: users call devices, which poll and answer; devices call the server."""

import json
import threading
import time

import pytest
import requests

POLL_S = 60


class DeviceThread(threading.Thread):
    """A device that polls for one call and answers it with `answer(call)`; without an answer when that is `None`."""

    def __init__(self, server, device, answer=lambda call: None):
        super().__init__()
        self.base, self.answer, self.call = f"{server.url}/api/v1/{device.token}/rpc", answer, None

    def run(self):
        reply = requests.get(self.base, params={"timeout": POLL_S * 1000}, timeout=2 * POLL_S)
        assert reply.status_code == 200, reply.text
        self.call = reply.json()
        answer = self.answer(self.call)
        if answer is not None:
            self.reply(answer)

    def reply(self, answer):
        requests.post(f"{self.base}/{self.call['id']}", json=answer, timeout=POLL_S).raise_for_status()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.join(timeout=2 * POLL_S)
        assert not self.is_alive()


def call(server, device, kind, body, version="/api/rpc"):
    """One call of a user."""
    url = f"{server.url}{version}/{kind}/{server.api.device_id(device.name)}"
    return server.api.session.post(url, json=body, timeout=2 * POLL_S)


def in_ms(milliseconds):
    return int(time.time() * 1000) + milliseconds


@pytest.mark.parametrize("version", ["/api/rpc", "/api/plugins/rpc"])
def test_a_two_way_call_brings_the_answer(server, device, version):
    with DeviceThread(server, device, lambda call: {"echo": call["params"]}):
        reply = call(server, device, "twoway", {"method": "echo", "params": [1, {"a": "ä"}], "timeout": 60_000}, version)
    assert (reply.status_code, reply.json()) == (200, {"echo": [1, {"a": "ä"}]})


def test_a_one_way_call_carries_a_megabyte(server, device):
    with DeviceThread(server, device) as thread:
        reply = call(server, device, "oneway", {"method": "show", "params": "x" * 1_000_000, "timeout": 60_000})
        assert (reply.status_code, reply.content) == (200, b"")
    assert thread.call["method"] == "show" and thread.call["params"] == "x" * 1_000_000


def test_an_absent_device_and_an_answer_that_comes_too_late(server, device):
    for version, absent, silent in [("/api/plugins/rpc", 409, 408), ("/api/rpc", 504, 504)]:
        assert call(server, device, "twoway", {"method": "m", "params": {}, "expirationTime": in_ms(50)}, version).status_code == absent
        with DeviceThread(server, device) as thread:
            reply = call(server, device, "twoway", {"method": "m", "params": {}, "expirationTime": in_ms(3_000)}, version)
            assert reply.status_code == silent, reply.text
        thread.reply({"late": True})


def test_the_answers_of_two_devices_are_not_mixed_up(server):
    devices = [server.device(), server.device()]
    replies = {}

    def ask(device):
        replies[device.name] = call(server, device, "twoway", {"method": "name", "params": {}, "timeout": 60_000}).json()

    threads = [DeviceThread(server, device, lambda _, device=device: device.name) for device in devices]
    users = [threading.Thread(target=ask, args=(device,)) for device in devices]
    for thread in threads + users:
        thread.start()
    for thread in threads + users:
        thread.join(timeout=2 * POLL_S)
    assert replies == {device.name: device.name for device in devices}
    stray = requests.post(f"{threads[0].base}/{threads[1].call['id']}", json=1, timeout=POLL_S)
    assert stray.status_code == 200


def test_a_persistent_call_waits_for_its_device(server, device):
    body = {"method": "open", "params": {"door": 2}, "persistent": True, "expirationTime": in_ms(600_000), "retries": 3, "additionalInfo": {"by": "me"}}
    rpc_id = call(server, device, "twoway", body).json()["rpcId"]
    path = f"/api/rpc/persistent/{rpc_id}"
    stored = server.api.get(path)
    assert stored["id"] == {"entityType": "RPC", "id": rpc_id}
    assert (stored["status"], stored["response"], stored["additionalInfo"]) == ("QUEUED", None, {"by": "me"})
    assert (stored["request"]["body"]["method"], json.loads(stored["request"]["body"]["params"])) == ("open", {"door": 2})
    with DeviceThread(server, device) as thread:
        pass
    assert server.api.get(path)["status"] == "DELIVERED"
    thread.reply({"open": True})
    stored = server.api.get(path)
    assert (stored["status"], stored["response"]) == ("SUCCESSFUL", {"open": True})
    device_path = f"/api/rpc/persistent/device/{server.api.device_id(device.name)}"
    page = server.api.get(device_path, pageSize=10, page=0, rpcStatus="SUCCESSFUL")
    assert [found["id"]["id"] for found in page["data"]] == [rpc_id] and page["totalElements"] == 1 and not page["hasNext"]
    assert server.api.get(device_path, pageSize=10, page=0, rpcStatus="QUEUED")["data"] == []
    assert server.api.session.delete(server.url + path, timeout=POLL_S).status_code == 200
    assert server.api.session.get(server.url + path, timeout=POLL_S).status_code == 404


def test_a_device_calls_the_server(server, device):
    url = f"{server.url}/api/v1/{device.token}/rpc"
    limits = requests.post(url, json={"method": "getSessionLimits", "params": {}}, timeout=POLL_S).json()
    assert limits["rateLimits"] == {"messages": "0:0,", "telemetryMessages": "0:0,", "telemetryDataPoints": "0:0,"}
    assert "error" in requests.post(url, json={"method": "getCurrentTime", "params": {}}, timeout=POLL_S).json()
    assert requests.get(url, params={"timeout": 20}, timeout=POLL_S).status_code == 408

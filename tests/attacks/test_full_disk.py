"""A disk that is full for some seconds: nothing that was acknowledged is lost, and everything goes on without a restart."""

import errno
import json
import os
import queue
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import paho.mqtt.client as mqtt
import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from harness import wait

OPEN = {"TACHO_MQTT_PUBLISH_TOPICS": "#", "TACHO_MQTT_SUBSCRIBE_TOPICS": "#"}
# The log alone prepares files of 64 MiB ahead.
DISK_BYTES = 400 << 20
FULL_S = 5
WAIT_S = 120
ATTRIBUTES, TELEMETRY, TOPIC = "v1/devices/me/attributes", "v1/devices/me/telemetry", "plant/orders"


@pytest.fixture
def small_disk(tmp_path):
    """A file system of its own in memory."""
    place = tmp_path / "disk"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tachograph-test", place], check=True)
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)


class Publisher(threading.Thread):
    """Publishes numbered messages to a topic at QoS 1, one after the other; a connection that was closed begins anew."""

    def __init__(self, server, device, topic, payload):
        super().__init__(daemon=True)
        self.server, self.device, self.topic, self.payload = server, device, topic, payload
        self.acked, self.stopped = [], threading.Event()

    def run(self):
        number = 0
        while not self.stopped.is_set():
            try:
                with Client(self.server, self.device.token) as client:
                    while not self.stopped.is_set():
                        client.publish(self.topic, self.payload(number))
                        self.acked.append(number)
                        number += 1
            except (OSError, queue.Empty, RuntimeError):
                # The number is sent again.
                time.sleep(0.2)

    def stop(self):
        self.stopped.set()
        self.join(WAIT_S)
        assert not self.is_alive(), f"{self.topic}: no ack"


class Client:
    """paho with its acknowledgements and messages as queues."""

    def __init__(self, server, token, client_id="", expiry_s=0, clean=True):
        self.acks, self.messages, self.subscribed, connected = queue.Queue(), queue.Queue(), queue.Queue(), queue.Queue()
        self.client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id, protocol=mqtt.MQTTv5, reconnect_on_failure=False)
        self.client.username_pw_set(token)
        self.client.on_connect = lambda _c, _u, _f, reason, _p: connected.put(reason)
        self.client.on_publish = lambda _c, _u, mid, reason, _p: self.acks.put(reason)
        self.client.on_subscribe = lambda _c, _u, _m, reasons, _p: self.subscribed.put(reasons)
        self.client.on_message = lambda _c, _u, message: self.messages.put(message.payload)
        self.client.on_disconnect = lambda _c, _u, _f, reason, _p: self.acks.put(None)
        properties = Properties(PacketTypes.CONNECT)
        properties.SessionExpiryInterval = expiry_s
        self.client.connect("127.0.0.1", server.mqtt, clean_start=clean, properties=properties)
        self.client.loop_start()
        if connected.get(timeout=WAIT_S).is_failure:
            raise RuntimeError("not connected")

    def publish(self, topic, payload):
        self.client.publish(topic, payload, 1)
        reason = self.acks.get(timeout=WAIT_S)
        if reason is None or reason.is_failure:
            raise RuntimeError("no ack")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.client.disconnect()
        self.client.loop_stop()


def fill(place: Path) -> Path:
    """A file that leaves no byte."""
    filler = place / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (1 << 20, 4096):
            try:
                while True:
                    file.write(b"\0" * size)
            except OSError as error:
                assert error.errno == errno.ENOSPC
    return filler


def keep_full(server, filler: Path, until: float) -> str:
    """Takes what the server frees. Returns what it says meanwhile."""
    said = ""
    while time.monotonic() < until:
        try:
            with filler.open("ab", buffering=0) as file:
                while True:
                    file.write(b"\0" * 4096)
        except OSError as error:
            assert error.errno == errno.ENOSPC
        said += readiness(server)[1]
        time.sleep(0.01)
    return said


def readiness(server):
    """Status and text of `/readyz`."""
    try:
        with urllib.request.urlopen(f"{server.url}/readyz", timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_everything_goes_on_after_a_full_disk(own_server, small_disk):
    server = own_server(OPEN, directory=small_disk / "data")
    telemetry, attributes, sender, receiver = (server.device() for _ in range(4))
    with Client(server, receiver.token, client_id="offline", expiry_s=3600) as client:
        client.client.subscribe(TOPIC, 1)
        client.subscribed.get(timeout=WAIT_S)
    start = 1_700_000_000_000
    filling = "x" * 1_500
    publishers = [
        Publisher(server, telemetry, TELEMETRY, lambda n: json.dumps({"ts": start + n, "values": {"n": n}})),
        Publisher(server, attributes, ATTRIBUTES, lambda n: json.dumps({f"a{n % 500}": n, "text": filling})),
        Publisher(server, sender, TOPIC, lambda n: f"{n} {filling}"),
    ]
    for publisher in publishers:
        publisher.start()
    wait.until(lambda: all(len(publisher.acked) > 20 for publisher in publishers), "the first acks")
    filler = fill(small_disk)
    said = keep_full(server, filler, time.monotonic() + FULL_S)
    assert "key-value engine must wait: " in said and "o space left on" in said, said[-2000:]
    full = [len(publisher.acked) for publisher in publishers]
    log = server.log()
    filler.unlink()
    wait.until(lambda: all(len(p.acked) > before + 20 for p, before in zip(publishers, full)), "acks after the disk was full", WAIT_S)
    for publisher in publishers:
        publisher.stop()
    assert server.alive() and "no longer accepts writes" not in log + server.log(), server.log()
    wait.until(lambda: readiness(server)[0] == 200, "a ready server")
    print(f"acks before the room came back and at the end: {full}, {[len(p.acked) for p in publishers]}", file=sys.stderr)

    stored = {n for _, n in server.api.history(telemetry.name, "n")}
    assert set(publishers[0].acked) <= stored
    with Client(server, receiver.token, client_id="offline", expiry_s=3600, clean=False) as client:
        missing = set(publishers[2].acked)
        deadline = time.monotonic() + WAIT_S
        while missing and time.monotonic() < deadline:
            missing.discard(int(client.messages.get(timeout=WAIT_S).split()[0]))
        assert not missing, f"{len(missing)} acknowledged messages of the queue are lost"
    wait.until(lambda: os.statvfs(small_disk).f_bavail > 0, "room")
    server.stop()
    server.start()
    stored = {n for _, n in server.api.history(telemetry.name, "n")}
    assert set(publishers[0].acked) <= stored
    latest = {}
    for n in publishers[1].acked:
        latest[f"a{n % 500}"] = n
    kept = attributes_of(server, attributes, list(latest))
    assert all(kept[name] >= n for name, n in latest.items())
    server.stop()


def attributes_of(server, device, names):
    """The values of attributes of a device, as the device itself reads them."""
    answers = queue.Queue()
    with Client(server, device.token) as client:
        client.client.on_message = lambda _c, _u, message: answers.put(message.payload)
        client.client.subscribe(f"{ATTRIBUTES}/response/+", 1)
        client.subscribed.get(timeout=WAIT_S)
        client.client.publish(f"{ATTRIBUTES}/request/1", json.dumps({"clientKeys": ",".join(names)}), 1)
        return json.loads(answers.get(timeout=WAIT_S))["client"]

"""Clients that ask for much and read nothing, against the real binary: what waits for them is bounded in bytes."""

import json
import re
import socket
import threading

import requests
import websocket

from harness import packets, wait
from harness.packets import PUBACK, Wire
from harness.rest import Api
from honest import HonestDevice

MIB = 1024 * 1024
# crates/model/src/limits.rs: what may wait for one login, and for the store or the thread that delivers.
LIVE_LOGIN_BYTES_MAX = 64 * MIB
PENDING_REDUCE_BYTES = 32 * MIB
DEVICES, KEYS, TEXT_BYTES = 100, 10, 16_000
# What a session holds besides: the values that make a long message (256 KiB) and the latest of one more device, twice as a
# message that waits and twice in the buffer of the one before.
SESSION_BYTES = 4 * (MIB // 4 + KEYS * TEXT_BYTES)
# What an allocator keeps, and caches that fill meanwhile.
SLACK_BYTES = 96 * MIB
# What the server holds is measured, not what glibc keeps of freed memory in an arena for each thread.
ALLOCATOR = {"MALLOC_ARENA_MAX": "2", "MALLOC_TRIM_THRESHOLD_": "131072"}

READER = "reader@example.org"


def rss(server):
    """Resident bytes of the server."""
    with open(f"/proc/{server.process.pid}/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmRSS:"))


def small_store(tmp_path):
    """A configuration whose store takes little memory of its own."""
    config = tmp_path / "small.toml"
    config.write_text("[store]\nmemtable_flush_bytes = 4194304\nmemtable_bytes_max = 16777216\nread_cache_bytes_max = 1048576\n")
    return config


def refused(server, reason):
    """How often the HTTP door refused for a reason."""
    text = requests.get(f"{server.url}/metrics", timeout=60).text
    found = re.search(rf'tacho_refusals_total{{door="http",reason="{reason}"}} (\d+)', text)
    return int(found[1]) if found else 0


def publish_round(server, devices, number):
    """Every key of every device gets a new long text; returns when all are acknowledged."""
    for device in devices:
        with Wire(server.mqtt, timeout_s=120).session(device.token) as wire:
            for first in range(0, KEYS, 10):
                values = {f"k{key}": f"{number} " + "x" * TEXT_BYTES for key in range(first, first + 10)}
                assert wire.send(packets.publish(json.dumps(values).encode(), 1 + first)).receive()[0] == PUBACK


def open_live(server, api, ids, receive_bytes=4096):
    """A WebSocket that subscribes to all keys of the devices."""
    url = f"ws://127.0.0.1:{server.http}/api/ws/plugins/telemetry?token={api.token}"
    connection = websocket.create_connection(url, timeout=120, sockopt=((socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes),))
    commands = [{"entityType": "DEVICE", "entityId": one, "cmdId": number} for number, one in enumerate(ids)]
    connection.send(json.dumps({"tsSubCmds": commands}))
    return connection


def test_subscribers_that_do_not_read_take_bounded_memory_and_nobody_elses_place(own_server, tmp_path):
    server = own_server(ALLOCATOR, config=small_store(tmp_path))
    devices = [server.device() for _ in range(DEVICES)]
    ids = [server.api.device_id(device.name) for device in devices]
    secret = tmp_path / "secret"
    secret.write_text("a long password")
    server.command("user", "add", READER, "--password-file", str(secret))
    # What the store needs for itself under this load is there before.
    for _ in range(6):
        publish_round(server, devices, 0)
    before = rss(server)
    silent = [open_live(server, server.api, ids) for _ in range(50)]
    reader = open_live(server, Api(server.url).login(READER, "a long password"), ids, receive_bytes=MIB)
    newest, done = set(), threading.Event()

    def read():
        while not done.is_set():
            message = json.loads(reader.recv())
            assert message["errorCode"] == 0, message
            newest.update(value[:2] for samples in message["data"].values() for _, value in samples)

    reading = threading.Thread(target=read)
    reading.start()
    peak = 0
    with HonestDevice(server):
        for number in range(1, 7):
            publish_round(server, devices, number)
            peak = max(peak, rss(server))
        wait.until(lambda: refused(server, "live_unread") > 0, "a subscriber that was given up")
        wait.until(lambda: "6 " in newest, "the newest values at who reads")
    growth, bound = peak - before, LIVE_LOGIN_BYTES_MAX + PENDING_REDUCE_BYTES + 50 * SESSION_BYTES + SLACK_BYTES
    print(f"50 silent subscribers: {growth / MIB:.0f} MiB more, the bound is {bound / MIB:.0f} MiB, {refused(server, 'live_unread')} given up")
    assert growth < bound
    # Who reads was left alone.
    done.set()
    publish_round(server, devices[:1], 7)
    reading.join()
    reader.close()
    for one in silent:
        one.close()
    again = open_live(server, server.api, ids[:1])
    assert json.loads(again.recv())["errorCode"] == 0
    again.close()
    server.stop()


"""An ack means durable, through every kind of end."""

import base64
import json
import random
import signal
import struct
import threading
import time

import pyarrow.parquet as parquet
import pytest

from harness import packets, wait
from harness.packets import DISCONNECT, PUBACK, Closed, Wire
from harness.server import run

START = 1_700_000_000_000
IN_FLIGHT = 500
# The smallest that the server takes: parts come soon.
FLUSH_BYTES = "1048576"


def message(n, level=4):
    """The n-th numbered point."""
    payload = json.dumps({"ts": START + n, "values": {"n": n}}).encode()
    return packets.publish(payload, n % 65_535 + 1, level=level)


class Stream(threading.Thread):
    """Publishes numbered points without end; knows which were acknowledged and how the connection ended."""

    def __init__(self, server, device, level=4, first=0):
        super().__init__(daemon=True)
        self.wire = Wire(server.mqtt).session(device.token, level)
        self.level, self.first = level, first
        self.sent = self.acked = 0
        self.last = None

    def run(self):
        try:
            while True:
                while self.sent - self.acked < IN_FLIGHT:
                    count = min(100, IN_FLIGHT - (self.sent - self.acked))
                    ahead = self.first + self.sent
                    self.wire.send(b"".join(message(n, self.level) for n in range(ahead, ahead + count)))
                    self.sent += count
                self._acknowledgement()
        except (Closed, OSError):
            self._rest()

    def _acknowledgement(self):
        kind, body = self.wire.receive()
        if kind != PUBACK:
            self.last = (kind, body)
            return
        # In order: the n-th ack is of the n-th message.
        assert struct.unpack("!H", body[:2])[0] == (self.first + self.acked) % 65_535 + 1
        self.acked += 1

    def _rest(self):
        try:
            while True:
                self._acknowledgement()
        except (Closed, OSError):
            self.wire.close()


def assert_kept(server, device, streams):
    """Every acked point is there once, and nothing that was never sent."""
    points = server.api.history(device.name, "n")
    assert all(ts == START + n for ts, n in points)
    stored = {n for _, n in points}
    assert len(stored) == len(points)
    for stream in streams:
        acked = set(range(stream.first, stream.first + stream.acked))
        assert acked <= stored, f"{len(acked - stored)} of {len(acked)} acked points are lost"
        stored -= set(range(stream.first, stream.first + stream.sent))
    assert stored == set(), "points that nobody sent"


@pytest.mark.parametrize("level", [4, 5], ids=["v311", "v5"])
def test_sigterm_under_load_drains_and_keeps_what_was_acked(own_server, level):
    server = own_server()
    device = server.device()
    stream = Stream(server, device, level)
    stream.start()
    wait.until(lambda: stream.acked > 2_000, "a running stream")
    server.stop()
    stream.join(60)
    assert not stream.is_alive()
    if level == 5:
        assert (stream.last[0], stream.last[1][0]) == (DISCONNECT, 0x8B)
    server.start()
    assert_kept(server, device, [stream])
    server.stop()


def test_sigkill_under_load_keeps_what_was_acked(own_server):
    server, chance = own_server({"TACHO_STORE_MEMTABLE_FLUSH_BYTES": FLUSH_BYTES}), random.Random(1)
    device = server.device()
    streams = []
    for round_ in range(3):
        stream = Stream(server, device, first=round_ * 10_000_000)
        streams.append(stream)
        stream.start()
        wait.until(lambda: stream.acked > 500, "a running stream")  # noqa: B023
        time.sleep(chance.random())
        server.kill()
        stream.join(60)
        assert not stream.is_alive()
        server.start()
        assert_kept(server, device, streams)
    server.stop()


def test_sigint_is_a_clean_end_too(own_server):
    server = own_server()
    server.process.send_signal(signal.SIGINT)
    assert server.process.wait(timeout=60) == 0


def fill(server, device, count, fields=lambda n: {"n": n}):
    """Rows until the server has made its first part of them, and all `count` of them."""
    for first in range(0, count, 10_000):
        server.api.send(device.token, [{"ts": START + n, "values": fields(n)} for n in range(first, first + 10_000)])
    wait.until(lambda: parts(server), "a part")


def parts(server):
    """The finished parts of a server's store."""
    return sorted(server.directory.rglob("*.parquet"))


def rows_of(server, column):
    """The rows of all parts that have the column, read with pyarrow."""
    tables = [parquet.read_table(part) for part in parts(server)]
    return [row for table in tables if column in table.column_names for row in table.to_pylist()]


def test_a_part_is_plain_parquet(own_server):
    """A copy of a part can be read without us."""
    server = own_server({"TACHO_STORE_MEMTABLE_FLUSH_BYTES": FLUSH_BYTES})
    device = server.device()
    fill(server, device, 50_000, lambda n: {"n": n, "speed": n / 2, "on": n % 2 == 0, "name": f"row {n}"})
    server.stop()
    found = rows_of(server, "speed")
    assert len(found) > 1_000
    for row in found:
        n = row["n"]
        assert (row["speed"], row["on"], row["name"]) == (n / 2, n % 2 == 0, f"row {n}")
        assert row["device"] == device.name
    assert len({row["n"] for row in found}) == len(found)


def test_what_lies_in_parts_and_in_memory_reads_as_one(own_server):
    server = own_server({"TACHO_STORE_MEMTABLE_FLUSH_BYTES": FLUSH_BYTES})
    device, count = server.device(), 100_000
    fill(server, device, count)
    # Later writes of rows that are already in a part: the last write wins.
    server.api.send(device.token, [{"ts": START + n, "values": {"n": -n}} for n in range(10)])
    expected = [(START + n, -n if n < 10 else n) for n in range(count)]
    assert server.api.history(device.name, "n") == expected
    server.stop()
    server.start()
    assert server.api.history(device.name, "n") == expected
    assert server.api.latest(device.name, "n") == count - 1
    server.stop()


def test_what_is_refused_is_kept_to_the_byte(own_server):
    server = own_server({"TACHO_STORE_MEMTABLE_FLUSH_BYTES": FLUSH_BYTES})
    device = server.device()
    refused = [b"no JSON", b"\xff\x00\xfe", b'{"a":NaN}', b'{"":1}', b'{"ts":1700000000,"values":{"a":1}}']
    for level in (4, 5):
        with Wire(server.mqtt).session(device.token, level) as wire:
            for number, payload in enumerate(refused, 1):
                kind, body = wire.send(packets.publish(payload, number, level=level)).receive()
                assert kind == PUBACK
                assert level == 4 or body[2] == 0x99
    for payload in refused:
        reply = server.api.session.post(f"{server.url}/api/v1/{device.token}/telemetry", data=payload, timeout=60)
        assert reply.status_code == 400
    fill(server, device, 100_000)
    server.stop()
    dead_letters = [row for row in rows_of(server, "reason") if row["reason"]]
    assert sorted(payload_of(row) for row in dead_letters) == sorted(3 * refused)
    assert {row["door"] for row in dead_letters} == {"mqtt", "http"}
    assert {row["device"] for row in dead_letters} == {device.name}
    assert {row["topic"] for row in dead_letters if row["door"] == "mqtt"} == {packets.TELEMETRY.decode()}


def payload_of(row):
    """What was sent, from a row of the dead-letter table."""
    return row["payload"].encode() if row["payload"] is not None else base64.b64decode(row["payload_base64"])


def test_the_ledger_proves_it_with_kills(tmp_path):
    done = run("bench", "run", "ledger", "--kills", "3", "--seed", "1", "--out", tmp_path / "run", "--quiet")
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    found = {check["what"]: int(check["found"]) for check in result["verification"]}
    assert found.pop("kills (run)") == 3, done.stdout
    # Lost, invented, duplicated, changed; after each kill, at the end, after an orderly stop.
    assert len(found) == 12 and not any(found.values()), done.stdout
    (phase,) = result["phases"]
    assert phase["operations"][0]["name"] == "publish" and phase["total"]["counts"]["completed"] > 0, done.stdout
    assert result["valid"], done.stdout

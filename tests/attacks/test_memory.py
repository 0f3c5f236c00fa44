"""Little memory: long rows at a rate that the disk does not keep up with, readers beside them, and all doors at once."""

import contextlib
import csv
import io
import json
import os
import random
import re
import socket
import threading
import time
from pathlib import Path

import pytest
import requests
from harness import packets, wait
from harness.packets import PUBACK, Wire
from memory_load import Load, status_bytes

MIB = 1024 * 1024
MEMORY = 256 * MIB
QUERY_THREADS = 2
# Address space that the stacks of threads have, used or not. It counts for RLIMIT_DATA, and the server subtracts it:
# QUERY_STACK_BYTES (crates/model/src/limits.rs) and OTHER_STACK_BYTES (crates/tacho/src/limits.rs).
STACKS = 2 * QUERY_THREADS * 64 * MIB + 160 * MIB
POSTGRES = {"TACHO_POSTGRES_LISTEN": "127.0.0.1:0"}
DEVICES, ROWS, ROW_BYTES, UNACKED = 6, 1_500, 20_000, 16
BEGIN_MS = 1_700_000_000_000
CUT_OFF = "cut off"


def texts(device: int):
    """Long texts that hardly compress, the same ones each time."""
    numbers = random.Random(device)
    while True:
        yield numbers.randbytes(ROW_BYTES // 2).hex()


def publish_all(server, token, number, faults):
    """Publishes a device's rows at QoS 1 and waits for every ack."""
    try:
        long_texts = texts(number)
        with Wire(server.mqtt, timeout_s=300).session(token) as wire:
            sent = acknowledged = 0
            while acknowledged < ROWS:
                while sent < ROWS and sent - acknowledged < UNACKED:
                    payload = json.dumps({"ts": BEGIN_MS + sent, "values": {"n": sent, "text": next(long_texts)}})
                    wire.send(packets.publish(payload.encode(), sent + 1))
                    sent += 1
                kind, body = wire.receive()
                assert kind == PUBACK and int.from_bytes(body[:2], "big") == acknowledged + 1
                acknowledged += 1
    except Exception as fault:
        faults.append(fault)


def read_until(server, done, answers, faults):
    """Requests much text again and again. A refusal for its size also counts as an answer, before its first row or after it."""
    statements = [
        "SELECT device, count(*), sum(length(text)) FROM telemetry GROUP BY device",
        "SELECT ts, device, text FROM telemetry ORDER BY ts DESC LIMIT 100",
        "SELECT ts, text FROM telemetry WHERE n < 200",
        "SELECT device, max(text) FROM telemetry GROUP BY device",
    ]
    try:
        session = requests.Session()
        session.headers.update(server.api.session.headers)
        while not done.is_set():
            for sql in statements:
                try:
                    reply = session.post(f"{server.url}/api/sql?format=csv", data=sql, timeout=120)
                except requests.exceptions.ChunkedEncodingError:
                    answers.append(CUT_OFF)
                    continue
                # The first row may still be on its way.
                if reply.status_code == 400 and "does not exist" in reply.text:
                    continue
                answers.append(reply.status_code)
                assert reply.status_code in (200, 404, 422, 429, 503), reply.text
        session.close()
    except Exception as fault:
        faults.append(fault)


def watch_memory(server, done, seen):
    """Samples the memory of the process until the process ends."""
    while not done.wait(0.02):
        with contextlib.suppress(OSError, TypeError):
            seen.append(status_bytes(server, "RssAnon"))


def counted(server) -> list:
    """For each device its rows, the sum of their numbers and the bytes of their texts."""
    sql = "SELECT device, count(*) AS rows, sum(n) AS numbers, sum(length(text)) AS bytes FROM telemetry GROUP BY device"
    reply = server.api.session.post(f"{server.url}/api/sql?format=csv", data=sql, timeout=300)
    assert reply.ok, reply.text
    rows = csv.DictReader(io.StringIO(reply.text))
    return sorted((row["device"], int(row["rows"]), int(float(row["numbers"])), int(row["bytes"])) for row in rows)


def test_long_rows_and_readers_in_little_memory(own_server):
    """Messages wait for memory: the server lives, acknowledges all, and has all rows before and after a restart."""
    server = own_server(env={"TACHO_QUERY_THREADS": str(QUERY_THREADS)}, limits={"data": MEMORY + STACKS})
    told = next(line for line in server.lines if "derived from it" in line)
    found = re.search(r"memory: (\d+) bytes, from RLIMIT_DATA", told)
    # The process had some memory before it read its limit.
    assert found and MEMORY - 16 * MIB < int(found[1]) < MEMORY and "store.memtable_bytes_max" in told, told

    devices = [server.device() for _ in range(DEVICES)]
    done, faults, answers, seen = threading.Event(), [], [], []
    writers = [threading.Thread(target=publish_all, args=(server, it.token, number, faults)) for number, it in enumerate(devices)]
    others = [
        threading.Thread(target=read_until, args=(server, done, answers, faults)),
        threading.Thread(target=watch_memory, args=(server, done, seen)),
    ]
    for thread in writers + others:
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    for thread in others:
        thread.join()
    print(f"at most {max(seen) // MIB} MiB resident; {len(answers)} statements, {answers.count(200)} of them answered in full")
    assert not faults, f"{faults}\n{server.log()[-4000:]}"
    assert server.alive(), server.log()[-4000:]
    assert 200 in answers
    # The server says why it cuts an answer off: the memory of all statements is used up.
    reasons = [line for line in server.log().splitlines() if "cut off an answer" in line]
    assert len(reasons) == answers.count(CUT_OFF) and all("memory" in line for line in reasons), reasons
    assert max(seen) < MEMORY

    expected = sorted((device.name, ROWS, ROWS * (ROWS - 1) // 2, ROWS * ROW_BYTES) for device in devices)
    assert counted(server) == expected
    server.stop()
    server.start()
    assert counted(server) == expected
    server.stop()


@pytest.fixture
def control_group():
    """A control group with little memory, of either version."""
    root, limit, swap = Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes", "memory.memsw.limit_in_bytes"
    if not root.is_dir():
        root, limit, swap = Path("/sys/fs/cgroup"), "memory.max", "memory.swap.max"
    group = root / f"tacho-attack-{os.getpid()}"
    try:
        group.mkdir()
        (group / limit).write_text(str(MEMORY))
    except OSError as error:
        pytest.skip(f"control groups of memory need root and the controller: {error}")
    with contextlib.suppress(OSError):
        (group / swap).write_text(str(MEMORY if "memsw" in swap else 0))
    yield group
    # It is empty a moment after its process has ended.
    wait.until(lambda: not (group / "cgroup.procs").read_text(), "the end of the processes of the control group")
    group.rmdir()


def check_progress(load: Load):
    """The server lives, and every kind of client has achieved something. Statements and long bodies may be refused: there is little memory."""
    server = load.server
    print(f"done {load.done}, busy {load.busy}, peaks in MiB { {name: peak // MIB for name, peak in load.peaks.items()} }")
    assert server.alive(), f"exit code {server.process.poll()}\n{server.log()[-4000:]}"
    assert not load.faults, f"{load.faults}\n{server.log()[-4000:]}"
    idle = [kind for kind, done in load.done.items() if not done and kind not in ("large_lines", "postgres", "sql")]
    assert not idle, f"no progress: {idle}; refused: {load.busy}"


def check_acknowledged(load: Load):
    """All rows that were acknowledged are there."""
    rows = {device: rows for device, rows, _, _ in counted(load.server)}
    lost = {name: (rows.get(name), sent) for name, sent in load.acknowledged.items() if rows.get(name, 0) < sent}
    assert not lost, f"rows that are there, and acknowledged ones: {lost}"


def test_all_doors_at_once_in_a_small_control_group(control_group, own_server):
    """The kernel would kill the process at 256 MiB. It lives, loses nothing that it has acknowledged, and answers most statements."""
    server = own_server(env=POSTGRES, group=control_group)
    with Load(server) as load:
        load.run(30)
        check_progress(load)
    done, refused = (sum(counts[kind] for kind in ("postgres", "sql")) for counts in (load.done, load.busy))
    # Two of the six statements need more than their share; on a slow machine few are tried.
    assert 2 * done >= refused, f"{refused} statements were refused, and {done} were not"
    # On the quiet server this statement always has an answer.
    check_acknowledged(load)
    server.stop()


@pytest.mark.parametrize("limit, mib", [("data", 512), ("data", 1024), ("as", 1024), ("as", 1536)])
def test_a_resource_limit_is_kept_or_refused_at_the_start(own_server, limit, mib):
    """An allocation above a resource limit would end the process. A limit that is too low is refused with what is needed."""
    try:
        server = own_server(env=POSTGRES, limits={limit: mib * MIB})
    except AssertionError as refused:
        needed = re.search(rf"RLIMIT_{limit.upper()} allows {mib * MIB} bytes and the server needs (\d+)", str(refused))
        assert needed, refused
        server = own_server(env=POSTGRES, limits={limit: int(needed[1]) + MIB})
    with Load(server) as load:
        load.run(4)
        check_progress(load)
    check_acknowledged(load)
    server.stop()


def test_memory_goes_back_after_a_peak(own_server):
    """Sixty clients request a long history and do not read it. When they have gone, so has the memory."""
    rows, text, clients = 400, "x" * 10_000, 60
    server = own_server()
    device = server.device()
    for first in range(0, rows, 100):
        server.api.send(device.token, [{"ts": BEGIN_MS + n, "values": {"text": f"{n} {text}"}} for n in range(first, first + 100)])
    path = f"/api/plugins/telemetry/DEVICE/{server.api.device_id(device.name)}/values/timeseries?keys=text&startTs=0&endTs=2000000000000&limit={rows}"
    request = f"GET {path} HTTP/1.1\r\nhost: t\r\nx-authorization: Bearer {server.api.token}\r\n\r\n".encode()
    before, unread = status_bytes(server, "RssAnon"), []
    for _ in range(clients):
        one = socket.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.settimeout(60)
        one.connect(("127.0.0.1", server.http))
        one.sendall(request)
        unread.append(one)
    for one in unread:
        one.recv(64)
    peak = status_bytes(server, "RssAnon")
    for one in unread:
        one.close()
    left_max = before + before // 4 + 64 * MIB
    assert peak > left_max, "the answers were not in memory"
    wait.until(lambda: status_bytes(server, "RssAnon") < left_max, f"less than {left_max // MIB} MiB")
    print(f"{before // MIB} MiB before, {peak // MIB} MiB with {clients} unread answers, then {status_bytes(server, 'RssAnon') // MIB} MiB")
    server.stop()

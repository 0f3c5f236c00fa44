"""Clients that request much and read nothing, against the real binary: the data that waits for them is bounded in bytes."""

import json
import re
import socket
import threading

import psycopg
import requests
import websocket

from harness import packets, wait
from harness.packets import PUBACK, Wire
from harness.rest import Api
from honest import HonestDevice

MIB = 1024 * 1024
# crates/model/src/limits.rs: what may wait for one login, and for the store or the thread that delivers.
LIVE_LOGIN_BYTES_MAX = 64 * MIB
PENDING_REDUCE_BYTES = 64 * MIB
# crates/gateway/src/http/limits.rs and crates/gateway/src/postgres/limits.rs
ANSWERS_LOGIN_BYTES_MAX = 256 * MIB
READS_AT_ONCE = 4
SUBSCRIPTIONS_LOGIN_BYTES_MAX = 128 * MIB
STATEMENTS_LOGIN_BYTES_MAX = 64 * MIB
DEVICES, KEYS, TEXT_BYTES = 100, 10, 16_000
# What a session holds besides: the values that make a long message (256 KiB) and the latest of one more device, twice as a
# message that waits and twice in the buffer of the one before.
SESSION_BYTES = 4 * (MIB // 4 + KEYS * TEXT_BYTES)
# Memory that the allocator keeps, and caches that fill meanwhile.
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


def test_subscribers_that_do_not_read_take_bounded_memory_and_do_not_affect_others(own_server, tmp_path):
    server = own_server(ALLOCATOR, config=small_store(tmp_path))
    devices = [server.device() for _ in range(DEVICES)]
    ids = [server.api.device_id(device.name) for device in devices]
    secret = tmp_path / "secret"
    secret.write_text("a long password")
    server.command("user", "add", READER, "--password-file", str(secret))
    # The store has allocated its own memory for this load before the measurement.
    for _ in range(6):
        publish_round(server, devices, 0)
    before = rss(server)
    silent = [open_live(server, server.api, ids) for _ in range(50)]
    other = Api(server.url).login(READER, "a long password")
    reader = open_live(server, other, ids, receive_bytes=MIB)
    other.session.close()
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
    # The server did not close the client that reads.
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


def test_readers_of_long_answers_that_do_not_read_take_bounded_memory(own_server, tmp_path):
    """Sixty connections request an answer of 20 MB and do not read it."""
    server = own_server(ALLOCATOR, config=small_store(tmp_path))
    device = server.device()
    rows, text = 2_000, "x" * 10_000
    for first in range(0, rows, 100):
        server.api.send(device.token, [{"ts": 1_700_000_000_000 + n, "values": {"text": f"{n} {text}"}} for n in range(first, first + 100)])
    path = f"/api/plugins/telemetry/DEVICE/{server.api.device_id(device.name)}/values/timeseries"
    query = f"keys=text&startTs=0&endTs=2000000000000&limit={rows}"
    assert len(server.api.history(device.name, "text", limit=rows)) == rows
    before, peak, silent = rss(server), 0, []
    request = f"GET {path}?{query} HTTP/1.1\r\nhost: t\r\nx-authorization: Bearer {server.api.token}\r\n\r\n".encode()
    answer_bytes = rows * len(text)
    with HonestDevice(server):
        for _ in range(60):
            one = socket.socket()
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            one.settimeout(60)
            one.connect(("127.0.0.1", server.http))
            one.sendall(request)
            silent.append(one)
        heads = [one.recv(64) for one in silent]
        peak = rss(server)
        assert any(head.startswith(b"HTTP/1.1 200") for head in heads)
        assert any(head.startswith(b"HTTP/1.1 429") for head in heads)
        assert refused(server, "held_bytes") > 0
        # Another login has room.
        secret = tmp_path / "secret"
        secret.write_text("a long password")
        server.command("user", "add", READER, "--password-file", str(secret))
        other = Api(server.url).login(READER, "a long password")
        assert len(other.history(device.name, "text", limit=rows)) == rows
        other.session.close()
        for one in silent:
            one.close()
        wait.until(lambda: api_answers(server, path, query), "room for another answer")
    bound = ANSWERS_LOGIN_BYTES_MAX + READS_AT_ONCE * 3 * answer_bytes + SLACK_BYTES
    print(f"60 silent readers: {(peak - before) / MIB:.0f} MiB more, the bound is {bound / MIB:.0f} MiB")
    assert peak - before < bound
    server.stop()


def api_answers(server, path, query):
    """Whether a long answer is given."""
    headers = {"X-Authorization": f"Bearer {server.api.token}"}
    answer = requests.get(f"{server.url}{path}?{query}", headers=headers, timeout=60)
    assert answer.status_code == 200 or (answer.status_code == 429 and answer.headers["Retry-After"] == "1"), answer.text
    return answer.status_code == 200


def test_subscriptions_of_many_keys_are_bounded_for_a_login_and_released(own_server):
    """Each session names ten thousand long keys, again and again, under new numbers."""
    server = own_server(ALLOCATOR)
    device = server.device()
    one = server.api.device_id(device.name)
    keys = [f"{n:0240}" for n in range(2_000)]
    url = f"ws://127.0.0.1:{server.http}/api/ws/plugins/telemetry?token={server.api.token}"
    before, sessions, reasons = rss(server), [], set()
    with HonestDevice(server):
        for _ in range(4):
            session = websocket.create_connection(url, timeout=120)
            sessions.append(session)
            for number in range(120):
                session.send(json.dumps({"tsSubCmds": [{"entityType": "DEVICE", "entityId": one, "cmdId": number, "keys": keys}]}))
                answer = json.loads(session.recv())
                if answer["errorCode"]:
                    reasons.add(re.search(r"SUBSCRIPTIONS_\w+", answer["errorMsg"])[0])
                    break
        growth = rss(server) - before
        assert reasons == {"SUBSCRIPTIONS_SESSION_BYTES_MAX", "SUBSCRIPTIONS_LOGIN_BYTES_MAX"}, reasons
        print(f"subscriptions of long keys: {growth / MIB:.0f} MiB more")
        assert growth < SUBSCRIPTIONS_LOGIN_BYTES_MAX + SLACK_BYTES
        for session in sessions:
            session.close()

        def has_room():
            session = websocket.create_connection(url, timeout=120)
            session.send(json.dumps({"tsSubCmds": [{"entityType": "DEVICE", "entityId": one, "cmdId": 1, "keys": keys}]}))
            answer = json.loads(session.recv())
            session.close()
            return answer["errorCode"] == 0

        wait.until(has_room, "room for a subscription")
    server.stop()


def test_prepared_statements_are_bounded_in_bytes_and_released(own_server):
    server = own_server(ALLOCATOR | {"TACHO_POSTGRES_LISTEN": "127.0.0.1:0"})
    login = {"host": "127.0.0.1", "port": server.listeners["postgres"], "user": "admin@tachograph.local", "password": server.password}
    text = "SELECT " + ", ".join(f"{n} AS c{n}" for n in range(500))
    states, connections, before = set(), [], rss(server)
    with HonestDevice(server):
        for number in range(12):
            client = psycopg.connect(**login, dbname="tacho", autocommit=True)
            connections.append(client)
            for name in range(1_000):
                result = client.pgconn.prepare(f"s{name}".encode(), f"{text}, {name} AS n".encode())
                if result.status != psycopg.pq.ExecStatus.COMMAND_OK:
                    states.add(result.error_field(psycopg.pq.DiagnosticField.SQLSTATE).decode())
                    assert b"STATEMENTS_" in result.error_message, result.error_message
                    break
            if "53200" in states:
                break
        growth = rss(server) - before
        print(f"prepared statements: {growth / MIB:.0f} MiB more on {len(connections)} connections")
        assert states == {"54000", "53200"}, states
        assert growth < STATEMENTS_LOGIN_BYTES_MAX + SLACK_BYTES
        # Closing some makes room in the same session.
        client = connections[0]
        client.execute("DEALLOCATE ALL")
        assert client.pgconn.prepare(b"again", text.encode()).status == psycopg.pq.ExecStatus.COMMAND_OK
        for client in connections:
            client.close()
        with psycopg.connect(**login, dbname="tacho") as client:
            wait.until(lambda: client.pgconn.prepare(b"", text.encode()).status == psycopg.pq.ExecStatus.COMMAND_OK, "room for a statement")
    server.stop()

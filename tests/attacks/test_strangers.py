"""Hostile peers with and without a login against the real binary: the server still serves the other clients."""

import http.client
import json
import resource
import socket
import struct
import threading
import time

from harness import packets, wait
from harness.packets import CONNACK, PUBACK, Wire
from honest import HonestDevice

# Every address of 127.0.0.0/8 is this machine, so the attacker and other clients have different addresses.
ATTACKER, OTHER = "127.0.0.2", "127.0.0.3"
# Return code of CONNACK.
UNAVAILABLE = 3


def connect(port, source, timeout_s=30):
    """A TCP connection from an address."""
    return socket.create_connection(("127.0.0.1", port), timeout=timeout_s, source_address=(source, 0))


def ask(port, path, source=OTHER, method="GET", body=None, timeout_s=30):
    """One request from an address; its status and body."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout_s, source_address=(source, 0))
    try:
        headers = {"Content-Type": "application/json"} if body else {}
        connection.request(method, path, body=body, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def limit_files(server, files):
    """Sets what the running server may open, as if other processes held the rest; returns the former limit."""
    soft, hard = resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (files, hard))
    return soft


def close_all(sockets):
    for one in sockets:
        one.close()


def test_a_server_without_descriptors_waits_and_seals_nothing(own_server, tmp_path):
    """The store must write parts while the process can open nothing: it is busy, not sealed, and continues afterwards."""
    config = tmp_path / "small.toml"
    config.write_text("[store]\nmemtable_flush_bytes = 1048576\nmemtable_bytes_max = 4194304\n")
    server = own_server(config=config)
    device = server.device()
    count = 400
    messages = [json.dumps({"text": "x" * 20_000, "n": n}).encode() for n in range(count)]
    stream = b"".join(packets.publish(message, n + 1) for n, message in enumerate(messages))
    with Wire(server.mqtt, timeout_s=120).session(device.token) as wire, connect(server.http, OTHER) as observer:
        assert readiness(observer)[0] == 200
        whole = limit_files(server, 3)
        sender = threading.Thread(target=wire.send, args=(stream,))
        sender.start()
        wait.until(lambda: readiness(observer)[0] == 503, "a store that waits for descriptors")
        # The store or the key-value engine, whichever needs a file first.
        assert any(cause in readiness(observer)[1] for cause in ["no file descriptors are left", "Too many open files"])
        limit_files(server, whole)
        assert all(wire.receive()[0] == PUBACK for _ in range(count))
        sender.join()
    wait.until(lambda: ask(server.http, "/readyz")[0] == 200, "a ready server")
    assert "read-only" not in server.log(), server.log()
    assert len(server.api.history(device.name, "n")) == count
    server.stop()


def readiness(observer):
    """Status and body of `/readyz` over a connection that is open already."""
    observer.sendall(b"GET /readyz HTTP/1.1\r\nhost: t\r\n\r\n")
    answer = http.client.HTTPResponse(observer)
    answer.begin()
    return answer.status, answer.read().decode()


def test_clients_that_never_read_do_not_keep_others_out(own_server):
    server = own_server({"TACHO_HTTP_CONNECTIONS_MAX": "64"})
    pipeline = b"GET /metrics HTTP/1.1\r\nhost: t\r\n\r\n" * 200
    attackers = []
    with HonestDevice(server):
        for n in range(120):
            one = connect(server.http, ATTACKER if n % 2 else "127.0.0.4")
            one.setblocking(False)
            try:
                one.send(pipeline)
            except OSError:
                pass
            attackers.append(one)
        # All connections are in use; a health check still gets an answer.
        for path in ("/healthz", "/readyz", "/metrics"):
            assert ask(server.http, path)[0] == 200, path
        status, body = ask(server.http, "/api/status")
        assert status == 503 and "connections" in body
        close_all(attackers)
        wait.until(lambda: ask(server.http, "/api/status")[0] == 200, "a free connection")
    server.stop()


def test_one_address_does_not_take_all_connections(own_server):
    server = own_server({"TACHO_HTTP_CONNECTIONS_MAX": "40", "TACHO_POSTGRES_LISTEN": "127.0.0.1:0", "TACHO_POSTGRES_CONNECTIONS_MAX": "20"})
    attackers = [connect(port, ATTACKER) for port, count in ((server.http, 200), (server.listeners["postgres"], 100)) for _ in range(count)]
    with HonestDevice(server):
        assert ask(server.http, "/api/status")[0] == 200
        status, body = ask(server.http, "/api/status", source=ATTACKER)
        assert status == 503 and "http.connections_per_address_max" in body
        with connect(server.listeners["postgres"], OTHER) as client:
            client.sendall(struct.pack("!II", 8, 80877103))
            assert client.recv(1) == b"N", "the PostgreSQL door answers"
    close_all(attackers)
    server.stop()


def test_silent_connections_make_room_when_the_mqtt_door_is_full(own_server):
    server = own_server({"TACHO_MQTT_CONNECTIONS_MAX": "200", "TACHO_MQTT_CONNECT_TIMEOUT_S": "600"})
    device = server.device()
    with HonestDevice(server):
        silent = [connect(server.mqtt, ATTACKER) for _ in range(400)]

        def session():
            try:
                with Wire(server.mqtt, timeout_s=5) as wire:
                    kind, body = wire.send(packets.connect(device.token)).receive()
                    assert (kind, body[1]) in [(CONNACK, 0), (CONNACK, UNAVAILABLE)], (kind, body)
                    return body[1] == 0 and wire.send(packets.publish(b'{"n":1}', 1)).receive()[0] == PUBACK
            except (OSError, packets.Closed):
                return False

        wait.until(session, "a place for a device")
        close_all(silent)
    server.stop()


def test_incomplete_packets_close_only_their_connection(own_server):
    server = own_server({"TACHO_MQTT_PACKET_BYTES_MAX": "4194304"})
    devices = [server.device() for _ in range(40)]
    half = packets.publish(b"x" * 4_000_000, 1)[:-1]
    with HonestDevice(server):
        attackers = [Wire(server.mqtt, timeout_s=60).session(device.token) for device in devices]
        senders = [threading.Thread(target=lambda wire=wire: send_quietly(wire, half)) for wire in attackers]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join()
        # A device sends a packet in two pieces while the attackers hold all connections.
        message = packets.publish(b'{"n":1}' + b" " * 100_000, 1)
        device = server.device()
        with Wire(server.mqtt, timeout_s=60).session(device.token) as wire:
            wire.send(message[:50_000])
            time.sleep(0.5)
            assert wire.send(message[50_000:]).receive()[0] == PUBACK
        for wire in attackers:
            wire.close()
    assert "the most" in server.log(), "the largest holders were closed"
    server.stop()


def send_quietly(wire, data):
    try:
        wire.send(data)
    except OSError:
        pass


def test_incomplete_logins_do_not_keep_devices_out(own_server):
    server = own_server()
    device = server.device()
    head = b"POST /api/auth/login HTTP/1.1\r\nhost: t\r\ncontent-type: application/json\r\ncontent-length: 524288\r\n\r\n"
    with HonestDevice(server):
        attackers = []
        for _ in range(200):
            one = connect(server.http, ATTACKER)
            one.setblocking(False)
            try:
                one.send(head + b" " * 500_000)
            except OSError:
                pass
            attackers.append(one)
        body = b'{"text":"' + b"x" * 60_000 + b'"}'
        for _ in range(20):
            status, answer = ask(server.http, f"/api/v1/{device.token}/telemetry", method="POST", body=body)
            assert status == 200, answer
        close_all(attackers)
    server.stop()


def test_guessing_passwords_is_slow_and_does_not_lock_the_administrator_out(own_server):
    server = own_server()
    stop, refused = threading.Event(), []

    def guess(source):
        while not stop.is_set():
            body = json.dumps({"username": "admin@tachograph.local", "password": "wrong password"})
            try:
                status, answer = ask(server.http, "/api/auth/login", source=source, method="POST", body=body)
            except OSError:
                continue
            refused.append((status, answer))
            time.sleep(0.01)

    guessers = [threading.Thread(target=guess, args=(ATTACKER,)) for _ in range(64)]
    with HonestDevice(server):
        for guesser in guessers:
            guesser.start()
        wait.until(lambda: len(refused) > 100, "guesses")
        body = json.dumps({"username": "admin@tachograph.local", "password": server.password})
        for _ in range(5):
            began = time.monotonic()
            status, answer = ask(server.http, "/api/auth/login", method="POST", body=body)
            assert status == 200, answer
            print(f"the administrator's login took {time.monotonic() - began:.2f} s")
        stop.set()
        for guesser in guessers:
            guesser.join()
    checked = sum(1 for status, _ in refused if status == 401)
    told = [answer for status, answer in refused if status == 429]
    assert told and any("too many wrong passwords" in answer for answer in told), told[:3]
    assert checked < 60, f"{checked} guesses of {len(refused)} were checked"
    assert "refused a login" in server.log()
    server.stop()


def test_topic_aliases_are_bounded_in_bytes(own_server):
    server = own_server()
    device = server.device()
    with HonestDevice(server), Wire(server.mqtt, timeout_s=30).session(device.token, 5) as wire:
        alias = struct.pack("!BBH", 3, 0x23, 1)
        body = packets.text("x" * 60_000) + struct.pack("!H", 1) + alias + b"{}"
        kind, body = wire.send(packets.packet(0x32, body)).rest()[-1]
        assert (kind, body[0]) == (packets.DISCONNECT, 0x97)
    server.stop()

"""TLS on every door, with the clients of the field."""

import json
import resource
import shutil
import signal
import socket
import ssl
import subprocess
import threading

import paho.mqtt.client as mqtt
import pytest
import websocket

from harness import wait
from harness.certificates import certificates, client_certificate, settings
from harness.server import Server, run

TOPIC = "v1/devices/me/telemetry"
WAIT_S = 60
CLOSE_S = 30


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return certificates(tmp_path_factory.mktemp("tls") / "files")


@pytest.fixture(scope="module")
def secure(tmp_path_factory, files):
    with Server(tmp_path_factory.mktemp("secure"), settings(files)) as server:
        yield server


def s_client(port, *arguments):
    command = ["openssl", "s_client", "-connect", f"127.0.0.1:{port}", *arguments]
    return subprocess.run(command, input="", capture_output=True, text=True, timeout=WAIT_S)


def serial(port):
    """The serial number of the certificate that a new handshake shows."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection(("127.0.0.1", port), timeout=WAIT_S) as plain, context.wrap_socket(plain) as wrapped:
        pem = ssl.DER_cert_to_PEM_cert(wrapped.getpeercert(binary_form=True))
    shown = subprocess.run(["openssl", "x509", "-noout", "-serial"], input=pem, capture_output=True, text=True, check=True)
    return shown.stdout.strip()


def refusals(server, door):
    """Failed handshakes of a door so far."""
    name = f'tacho_refusals_total{{door="{door}",reason="tls_handshake"}} '
    lines = [line for line in server.api.metrics().splitlines() if line.startswith(name)]
    return int(lines[0].rsplit(" ", 1)[1]) if lines else 0


def test_the_key_is_only_for_its_owner_and_no_file_is_replaced(files):
    assert (files / "server-key.pem").stat().st_mode & 0o777 == 0o600
    again = run("tls", "self-signed", "--out", files, check=False)
    assert again.returncode == 1 and "ca.pem" in again.stderr, again.stderr


@pytest.mark.parametrize("door", ["mqtts", "https"])
@pytest.mark.parametrize(("version", "protocol"), [("-tls1_2", "TLSv1.2"), ("-tls1_3", "TLSv1.3")])
def test_tls_1_2_and_1_3_are_spoken(secure, files, door, version, protocol):
    done = s_client(secure.listeners[door], version, "-CAfile", str(files / "ca.pem"), "-verify_return_error")
    assert done.returncode == 0 and protocol in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("door", ["mqtts", "https"])
def test_tls_1_1_is_refused(secure, door):
    done = s_client(secure.listeners[door], "-tls1_1", "-cipher", "ALL:@SECLEVEL=0")
    assert done.returncode != 0 and "alert" in done.stderr, done.stdout + done.stderr


def test_curl_writes_telemetry(secure, files):
    device, port = secure.device(), secure.listeners["https"]
    url = f"https://localhost:{port}/api/v1/{device.token}/telemetry"
    command = ["curl", "-sS", "--fail", "--cacert", str(files / "ca.pem"), "--json", '{"speed": 52.5}', url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S)
    assert (done.returncode, done.stderr) == (0, "")
    assert secure.api.latest(device.name, "speed") == 52.5


def test_mosquitto_pub_writes_telemetry(secure, files):
    device = secure.device()
    command = ["mosquitto_pub", "--cafile", str(files / "ca.pem"), "-h", "localhost", "-p", str(secure.listeners["mqtts"])]
    command += ["-u", device.token, "-t", TOPIC, "-q", "1", "-m", '{"speed": 7.5}']
    done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S)
    assert (done.returncode, done.stderr) == (0, "")
    assert secure.api.latest(device.name, "speed") == 7.5


def test_a_stream_of_large_messages_arrives_whole(secure, files):
    # Records of 16 KiB each, and more plaintext than one read of the server takes.
    device, start = secure.device(), 1_700_000_000_000
    text = "x" * 40_000
    lines = "".join(json.dumps({"ts": start + n, "values": {"n": n, "text": text}}) + "\n" for n in range(200))
    command = ["mosquitto_pub", "--cafile", str(files / "ca.pem"), "-h", "localhost", "-p", str(secure.listeners["mqtts"])]
    command += ["-u", device.token, "-t", TOPIC, "-q", "1", "-l"]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, timeout=WAIT_S)
    assert done.returncode == 0, done.stderr
    assert secure.api.history(device.name, "n") == [(start + n, n) for n in range(200)]


class Publisher:
    """paho over TLS; `publish` returns when the server has acknowledged."""

    def __init__(self, server, files, token, version=mqtt.MQTTv5):
        self.client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, "", protocol=version, reconnect_on_failure=False)
        self.client.tls_set(str(files / "ca.pem"))
        self.client.username_pw_set(token)
        self.connected = threading.Event()
        self.client.on_connect = lambda _c, _u, _f, reason, _p: None if reason.is_failure else self.connected.set()
        self.client.connect("localhost", server.listeners["mqtts"])
        self.client.loop_start()
        assert self.connected.wait(WAIT_S)

    def publish(self, payload):
        self.send(payload).wait_for_publish(WAIT_S)

    def send(self, payload):
        return self.client.publish(TOPIC, json.dumps(payload), 1)

    def close(self):
        self.client.disconnect()
        self.client.loop_stop()


@pytest.mark.parametrize("version", [mqtt.MQTTv311, mqtt.MQTTv5], ids=["v311", "v5"])
def test_paho_writes_telemetry(secure, files, version):
    device = secure.device()
    publisher = Publisher(secure, files, device.token, version)
    publisher.publish({"speed": 1})
    assert secure.api.latest(device.name, "speed") == 1
    publisher.close()


def test_two_hundred_connections_at_once(secure, files):
    devices = [secure.device() for _ in range(200)]
    publishers = [Publisher(secure, files, device.token) for device in devices]
    sent = [publisher.send({"n": n}) for n, publisher in enumerate(publishers)]
    for message in sent:
        message.wait_for_publish(WAIT_S)
        assert message.is_published()
    for publisher in publishers:
        publisher.close()
    assert [secure.api.latest(device.name, "n") for device in devices] == list(range(200))


def connect_packet(name, token):
    """CONNECT of MQTT 3.1.1 with a user name."""
    body = b"\x00\x04MQTT\x04\x82\x00\x3c" + b"".join(len(part).to_bytes(2, "big") + part.encode() for part in (name, token))
    return b"\x10" + length(body) + body


def publish_packet(identifier, payload):
    """PUBLISH of MQTT 3.1.1 with QoS 1."""
    body = len(TOPIC).to_bytes(2, "big") + TOPIC.encode() + identifier.to_bytes(2, "big") + json.dumps(payload).encode()
    return b"\x32" + length(body) + body


def length(body):
    """The length of a packet, seven bits a byte."""
    low, high = len(body) & 0x7F, len(body) >> 7
    assert high < 128
    return bytes([low | 0x80, high]) if high else bytes([low])


def read_exactly(connection, count):
    received = b""
    while len(received) < count:
        part = connection.recv(count - len(received))
        assert part, "the server closed the connection"
        received += part
    return received


def test_a_thousand_connections_stay_open_and_each_gets_its_ack(secure, files):
    count = 1_000
    # Both ends of the connections are files of one machine, but not of one process.
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, count + 200)), hard))
    provisioned = secure.api.post("/api/tacho/devices", {"count": count, "prefix": "many-", "tokenPrefix": "many-token-"})
    assert provisioned["created"] == count
    context = ssl.create_default_context(cafile=files / "ca.pem")
    connections = []
    try:
        for n in range(count):
            plain = socket.create_connection(("127.0.0.1", secure.listeners["mqtts"]), timeout=WAIT_S)
            connections.append(context.wrap_socket(plain, server_hostname="localhost"))
            connections[n].sendall(connect_packet(f"many-{n}", f"many-token-{n}"))
        for connection in connections:
            assert read_exactly(connection, 4) == b"\x20\x02\x00\x00"
        for n, connection in enumerate(connections):
            connection.sendall(publish_packet(7, {"n": n}))
        for connection in connections:
            assert read_exactly(connection, 4) == b"\x40\x02\x00\x07"
    finally:
        for connection in connections:
            connection.close()
    assert [secure.api.latest(f"many-{n}", "n") for n in range(0, count, 50)] == list(range(0, count, 50))


def test_a_full_https_door_answers_503_inside_tls(own_server, files):
    server = own_server(settings(files) | {"TACHO_HTTP_CONNECTIONS_MAX": "2"})
    port = server.listeners["https"]
    context = ssl.create_default_context(cafile=files / "ca.pem")
    held = [context.wrap_socket(socket.create_connection(("127.0.0.1", port), timeout=WAIT_S), server_hostname="localhost") for _ in range(2)]

    def curl(path):
        command = ["curl", "-sS", "--cacert", str(files / "ca.pem"), "-w", "\n%{http_code}", f"https://localhost:{port}{path}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S)
        assert done.returncode == 0, done.stderr
        return done.stdout.rsplit("\n", 1)

    text, status = curl("/api/status")
    assert status == "503" and "all 2 connections" in text, text
    assert curl("/healthz")[1] == "200"
    for connection in held:
        connection.close()
    wait.until(lambda: curl("/api/status")[1] == "200", "room for a connection")


def test_handshakes_above_the_bound_are_closed_and_counted(own_server, files):
    server = own_server(settings(files) | {"TACHO_HTTP_CONNECTIONS_MAX": "1"})
    port, name = server.listeners["https"], 'tacho_refusals_total{door="http",reason="connections_max"} '

    def refused():
        done = subprocess.run(["curl", "-sS", f"{server.url}/metrics"], capture_output=True, text=True, timeout=WAIT_S, check=True)
        lines = [line for line in done.stdout.splitlines() if line.startswith(name)]
        return int(lines[0].rsplit(" ", 1)[1]) if lines else 0

    connect = lambda: socket.create_connection(("127.0.0.1", port), timeout=WAIT_S)  # noqa: E731
    # One connection has the door. Four of its address may begin a handshake, and the fifth is closed at once.
    held = [connect() for _ in range(6)]
    assert held[5].recv(1) == b""
    wait.until(lambda: refused() >= 1, "the count of the refused connection")
    for connection in held:
        connection.close()


def psql(server, mode, *more):
    address = f"host=localhost port={server.listeners['postgres']} user=admin@tachograph.local dbname=tacho sslmode={mode}"
    command = ["psql", " ".join([address, *more]), "-XAtc", "SELECT 40 + 2"]
    return subprocess.run(command, env={"PGPASSWORD": server.password}, capture_output=True, text=True, timeout=WAIT_S)


def test_psql_verifies_the_server(secure, files, tmp_path):
    done = psql(secure, "verify-full", f"sslrootcert={files / 'ca.pem'}")
    assert (done.returncode, done.stdout.strip()) == (0, "42"), done.stderr
    other = certificates(tmp_path / "other")
    done = psql(secure, "verify-full", f"sslrootcert={other / 'ca.pem'}")
    assert done.returncode != 0 and "certificate verify failed" in done.stderr
    done = psql(secure, "disable")
    assert (done.returncode, done.stdout.strip()) == (0, "42"), done.stderr


def test_a_large_answer_comes_whole_through_psql(secure, files):
    address = f"host=localhost port={secure.listeners['postgres']} user=admin@tachograph.local dbname=tacho sslmode=verify-full"
    statement = "SELECT value FROM generate_series(1, 300000)"
    command = ["psql", f"{address} sslrootcert={files / 'ca.pem'}", "-XAtc", statement]
    done = subprocess.run(command, env={"PGPASSWORD": secure.password}, capture_output=True, text=True, timeout=WAIT_S)
    assert done.stdout.split() == [str(n) for n in range(1, 300_001)], done.stderr


def test_a_websocket_over_tls_gets_values(secure, files):
    device, port = secure.device(), secure.listeners["https"]
    secure.api.send(device.token, {"speed": 3})
    url = f"wss://localhost:{port}/api/ws/plugins/telemetry?token={secure.api.token}"
    live = websocket.create_connection(url, timeout=WAIT_S, sslopt={"ca_certs": str(files / "ca.pem")})
    wanted = {"entityType": "DEVICE", "entityId": secure.api.device_id(device.name), "scope": "LATEST_TELEMETRY", "cmdId": 1}
    live.send(json.dumps({"tsSubCmds": [wanted], "historyCmds": [], "attrSubCmds": []}))
    assert json.loads(live.recv())["data"]["speed"][0][1] == "3"
    live.close()


@pytest.mark.parametrize("door", ["mqtts", "https"])
def test_plain_text_on_the_port_of_tls_is_closed_counted_and_logged(secure, door):
    name = {"mqtts": "mqtt", "https": "http"}[door]
    before = refusals(secure, name)
    with socket.create_connection(("127.0.0.1", secure.listeners[door]), timeout=CLOSE_S) as plain:
        plain.sendall(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
        received = b"".join(iter(lambda: plain.recv(4096), b""))
    # At most an alert: record type 21.
    assert received[:1] in (b"", b"\x15"), received
    wait.until(lambda: refusals(secure, name) == before + 1, "the count of the failed handshake")
    assert any("TLS handshake failed" in line for line in secure.lines)


@pytest.mark.parametrize("door", ["mqtts", "https", "postgres"])
def test_half_a_handshake_is_closed_in_time(secure, door):
    with socket.create_connection(("127.0.0.1", secure.listeners[door]), timeout=CLOSE_S) as client:
        if door == "postgres":
            client.sendall(bytes([0, 0, 0, 8, 4, 210, 22, 47]))
            assert client.recv(1) == b"S"
        # The head of a record with a ClientHello of 512 bytes, and none of them.
        client.sendall(bytes([22, 3, 1, 2, 0]))
        received = b"".join(iter(lambda: client.recv(4096), b""))
    # At most an alert, then the end; a server that keeps the connection open lets `recv` time out.
    assert received[:1] in (b"", b"\x15"), received


def test_unencrypted_bytes_behind_the_request_for_tls_are_refused(secure):
    with socket.create_connection(("127.0.0.1", secure.listeners["postgres"]), timeout=CLOSE_S) as client:
        client.sendall(bytes([0, 0, 0, 8, 4, 210, 22, 47]) + b"smuggled")
        answer = b"".join(iter(lambda: client.recv(4096), b""))
    assert answer[:1] == b"E" and b"unencrypted bytes" in answer, answer


def test_postgres_can_require_tls(own_server, files):
    server = own_server(settings(files) | {"TACHO_POSTGRES_TLS_REQUIRED": "true"})
    done = psql(server, "disable")
    assert done.returncode != 0 and "requires TLS" in done.stderr, done.stderr
    assert psql(server, "verify-full", f"sslrootcert={files / 'ca.pem'}").returncode == 0


def replace(files, source):
    """Puts the files of another identity in the place of the served ones."""
    for name in ["server-key.pem", "server.pem"]:
        shutil.copy(source / name, files / name)


def test_a_reload_under_load_loses_no_ack_and_shows_the_new_certificate(own_server, tmp_path):
    files, other = certificates(tmp_path / "files"), certificates(tmp_path / "other")
    server = own_server(settings(files))
    device, start = server.device(), 1_700_000_000_000
    publisher, old = Publisher(server, files, device.token), serial(server.listeners["mqtts"])
    for n in range(600):
        if n == 200:
            replace(files, other)
            server.process.send_signal(signal.SIGHUP)
        publisher.publish({"ts": start + n, "values": {"n": n}})
    publisher.close()
    for door in ["mqtts", "https"]:
        wait.until(lambda door=door: serial(server.listeners[door]) != old, f"the new certificate of {door}")
    assert server.api.history(device.name, "n") == [(start + n, n) for n in range(600)]


def test_new_files_are_found_without_a_signal(own_server, tmp_path):
    files, other = certificates(tmp_path / "files"), certificates(tmp_path / "other")
    server = own_server(settings(files))
    old = serial(server.listeners["https"])
    replace(files, other)
    wait.until(lambda: serial(server.listeners["https"]) != old, "the new certificate")


def test_a_key_that_does_not_match_keeps_the_running_certificate(own_server, tmp_path):
    files, other = certificates(tmp_path / "files"), certificates(tmp_path / "other")
    server = own_server(settings(files))
    old = serial(server.listeners["https"])
    shutil.copy(other / "server-key.pem", files / "server-key.pem")
    server.process.send_signal(signal.SIGHUP)
    wait.until(lambda: any("does not match" in line for line in server.lines), "the log line of the failed reload")
    assert serial(server.listeners["https"]) == old


def test_an_unusable_file_at_the_start_is_named(tmp_path, files):
    damaged = tmp_path / "damaged.pem"
    damaged.write_text("no certificate\n")
    other = certificates(tmp_path / "other")
    for name, path, said in [
        ("TACHO_TLS_CERTIFICATE", tmp_path / "absent.pem", "absent.pem: No such file"),
        ("TACHO_TLS_CERTIFICATE", damaged, "damaged.pem: it has no certificate"),
        ("TACHO_TLS_KEY", damaged, "damaged.pem: it has no private key"),
        ("TACHO_TLS_KEY", other / "server-key.pem", "does not match the certificate"),
    ]:
        env = settings(files) | {name: str(path), "TACHO_MQTT_LISTEN": "127.0.0.1:0", "TACHO_HTTP_LISTEN": "127.0.0.1:0"}
        done = run("serve", "--data", tmp_path / "data", env=env, check=False)
        assert done.returncode == 2 and said in done.stderr, done.stderr


def test_a_client_certificate_is_verified(own_server, files, tmp_path):
    authority, authority_key = client_certificate(tmp_path, "authority")
    issuer = ["-CA", authority, "-CAkey", authority_key, "-addext", "basicConstraints=critical,CA:FALSE"]
    ours = client_certificate(tmp_path, "ours", *issuer, "-addext", "extendedKeyUsage=clientAuth")
    others = client_certificate(tmp_path, "others")
    server = own_server(settings(files) | {"TACHO_TLS_CLIENT_CA": str(authority)})

    def curl(*more):
        url = f"https://localhost:{server.listeners['https']}/healthz"
        command = ["curl", "-sS", "--fail", "--cacert", str(files / "ca.pem"), *more, url]
        return subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S)

    assert curl("--cert", str(ours[0]), "--key", str(ours[1])).returncode == 0
    without = curl()
    assert without.returncode != 0 and "certificate required" in without.stderr, without.stderr
    assert curl("--cert", str(others[0]), "--key", str(others[1])).returncode != 0

    device = server.device()

    def mosquitto_pub(*more):
        command = ["mosquitto_pub", "--cafile", str(files / "ca.pem"), "-h", "localhost", "-p", str(server.listeners["mqtts"])]
        command += ["-u", device.token, "-t", TOPIC, "-q", "1", "-m", '{"speed": 1}', *more]
        return subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S)

    assert mosquitto_pub("--cert", str(ours[0]), "--key", str(ours[1])).returncode == 0
    assert server.api.latest(device.name, "speed") == 1
    assert mosquitto_pub().returncode != 0

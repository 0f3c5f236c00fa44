"""HAProxy in front of the doors: the PROXY protocol, versions 1 and 2, over TCP and before TLS."""

import contextlib
import json
import socket
import subprocess

import pytest

from harness import wait
from harness.server import Server, run

TOPIC = "v1/devices/me/telemetry"
# HAProxy connects to the server from this address, which the server trusts. The tests and commands use 127.0.0.1.
BALANCER = "127.0.0.2"
SETTINGS = {
    "TACHO_MQTT_PROXY_PROTOCOL": f"{BALANCER}/32",
    "TACHO_HTTP_PROXY_PROTOCOL": BALANCER,
    "TACHO_HTTP_CONNECTIONS_PER_ADDRESS_MAX": "4",
    "TACHO_MQTT_CONNECTIONS_PER_ADDRESS_MAX": "4",
}
SENDERS = pytest.mark.parametrize("send", ["send-proxy", "send-proxy-v2"])


@pytest.fixture(scope="module")
def behind(tmp_path_factory):
    files = tmp_path_factory.mktemp("tls") / "files"
    run("tls", "self-signed", "--out", files)
    settings = SETTINGS | {
        "TACHO_TLS_CERTIFICATE": str(files / "server.pem"),
        "TACHO_TLS_KEY": str(files / "server-key.pem"),
        "TACHO_MQTT_TLS_LISTEN": "127.0.0.1:0",
        "TACHO_HTTP_TLS_LISTEN": "127.0.0.1:0",
    }
    with Server(tmp_path_factory.mktemp("behind"), settings) as server:
        server.ca = files / "ca.pem"
        yield server


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def haproxy(directory, port, send):
    """HAProxy in front of a port of the server; gives its own port."""
    front = free_port()
    options = f"source {BALANCER} {send}".strip()
    config = directory / "haproxy.cfg"
    config.write_text(f"""
defaults
    mode tcp
    timeout connect 10s
    timeout client 60s
    timeout server 60s
listen door
    bind 127.0.0.1:{front}
    server tacho 127.0.0.1:{port} {options}
""")
    process = subprocess.Popen(["/usr/sbin/haproxy", "-db", "-f", str(config)])
    try:
        wait.until(lambda: accepts(front), "haproxy")
        yield front
    finally:
        process.terminate()
        process.wait()


def accepts(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False


def publish(port, token, payload, *arguments):
    command = ["mosquitto_pub", "-h", "localhost", "-p", str(port), "-u", token, "-t", TOPIC, "-q", "1", "-m", json.dumps(payload)]
    return subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=60)


def curl(*arguments):
    return subprocess.run(["curl", "-sS", "-m", "30", *arguments], capture_output=True, text=True, timeout=60)


def refusals(server, door, reason):
    name = f'tacho_refusals_total{{door="{door}",reason="{reason}"}} '
    lines = [line for line in server.api.metrics().splitlines() if line.startswith(name)]
    return int(lines[0].rsplit(" ", 1)[1]) if lines else 0


@SENDERS
def test_mqtt_and_mqtts(behind, tmp_path, send):
    device = behind.device()
    with haproxy(tmp_path, behind.mqtt, send) as port:
        done = publish(port, device.token, {"plain": 1})
        assert done.returncode == 0, done.stderr
    with haproxy(tmp_path, behind.listeners["mqtts"], send) as port:
        done = publish(port, device.token, {"encrypted": 2}, "--cafile", str(behind.ca))
        assert done.returncode == 0, done.stderr
    newest = {key: points[0]["value"] for key, points in behind.api.values(device.name).items()}
    assert newest == {"plain": 1, "encrypted": 2}


@SENDERS
def test_http_and_https(behind, tmp_path, send):
    with haproxy(tmp_path, behind.http, send) as port:
        done = curl(f"http://127.0.0.1:{port}/healthz")
        assert json.loads(done.stdout) == {"status": "ok"}, done.stderr
    with haproxy(tmp_path, behind.listeners["https"], send) as port:
        done = curl("--cacert", str(behind.ca), f"https://localhost:{port}/healthz")
        assert json.loads(done.stdout) == {"status": "ok"}, done.stderr


@SENDERS
def test_the_limit_for_one_address_counts_the_clients(behind, tmp_path, send):
    """Four connections of one client are its share; another client behind the same HAProxy has its own."""
    with haproxy(tmp_path, behind.http, send) as port, contextlib.ExitStack() as held:
        for _ in range(4):
            one = held.enter_context(socket.create_connection(("127.0.0.1", port), source_address=("127.0.0.5", 0)))
            one.sendall(b"GET /healthz HTTP/1.1\r\nhost: t\r\n\r\n")
            assert one.recv(15).startswith(b"HTTP/1.1 200")
        refused = curl("--interface", "127.0.0.5", f"http://127.0.0.1:{port}/api/status")
        assert "127.0.0.5 has 4 connections" in refused.stdout, refused
        other = curl("--interface", "127.0.0.6", f"http://127.0.0.1:{port}/healthz")
        assert json.loads(other.stdout) == {"status": "ok"}, other.stderr


def test_without_the_header_the_balancer_is_refused_and_others_are_served(behind, tmp_path):
    before = refusals(behind, "mqtt", "proxy_protocol"), refusals(behind, "http", "proxy_protocol")
    device = behind.device()
    with haproxy(tmp_path, behind.mqtt, "") as port:
        assert publish(port, device.token, {"plain": 1}).returncode != 0
    with haproxy(tmp_path, behind.http, "") as port:
        assert curl(f"http://127.0.0.1:{port}/healthz").returncode != 0
    assert refusals(behind, "mqtt", "proxy_protocol") == before[0] + 1
    assert refusals(behind, "http", "proxy_protocol") == before[1] + 1
    # A direct client is served, and a header that it sends is not believed.
    assert publish(behind.mqtt, device.token, {"direct": 1}).returncode == 0
    assert curl("--haproxy-protocol", f"{behind.url}/healthz").stdout.find("ok") < 0

"""MQTT over WebSocket on the HTTP port, with paho and MQTT.js."""

import contextlib
import json
import queue
import ssl
import subprocess
from pathlib import Path

import paho.mqtt.client as mqtt
import pytest
import websocket

from harness.server import Server, run

TOPIC = "v1/devices/me/telemetry"
NODE = Path(__file__).parent / "node"
WAIT_S = 60
VERSIONS = pytest.mark.parametrize("version", [mqtt.MQTTv311, mqtt.MQTTv5], ids=["v311", "v5"])


@pytest.fixture(scope="module")
def secure(tmp_path_factory):
    files = tmp_path_factory.mktemp("tls") / "files"
    run("tls", "self-signed", "--out", files)
    settings = {
        "TACHO_TLS_CERTIFICATE": str(files / "server.pem"),
        "TACHO_TLS_KEY": str(files / "server-key.pem"),
        "TACHO_HTTP_TLS_LISTEN": "127.0.0.1:0",
    }
    with Server(tmp_path_factory.mktemp("secure"), settings) as server:
        server.ca = files / "ca.pem"
        yield server


def published(port, token, version, payloads, ca=None):
    """Publishes with paho; gives the reason codes of the acks."""
    acked = queue.Queue()
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, protocol=version, transport="websockets", reconnect_on_failure=False)
    client.username_pw_set(token)
    client.on_publish = lambda _c, _u, _mid, reason, _p: acked.put(reason.value)
    client.ws_set_options(path="/mqtt")
    if ca:
        client.tls_set(str(ca), tls_version=ssl.PROTOCOL_TLS_CLIENT)
    client.connect("localhost", port)
    client.loop_start()
    for payload in payloads:
        client.publish(TOPIC, json.dumps(payload), 1)
    codes = [acked.get(timeout=WAIT_S) for _ in payloads]
    client.disconnect()
    client.loop_stop()
    return codes


def rows(count):
    start = 1_700_000_000_000
    return [{"ts": start + n, "values": {"n": n, "text": "x" * (n * 37 % 3000)}} for n in range(count)]


@VERSIONS
def test_paho_publishes_over_ws(server, device, version):
    payloads = rows(200)
    assert published(server.http, device.token, version, payloads) == [0] * 200
    assert server.api.history(device.name, "n") == [(row["ts"], row["values"]["n"]) for row in payloads]


@VERSIONS
def test_paho_publishes_over_wss(secure, version):
    device, payloads = secure.device(), rows(200)
    assert published(secure.listeners["https"], device.token, version, payloads, secure.ca) == [0] * 200
    assert secure.api.history(device.name, "n") == [(row["ts"], row["values"]["n"]) for row in payloads]


@pytest.mark.parametrize("version", [4, 5], ids=["v311", "v5"])
def test_mqttjs_publishes_over_ws(server, device, version):
    payloads = rows(40)  # they are an argument of the command
    job = {
        "url": f"ws://127.0.0.1:{server.http}/mqtt",
        "protocolVersion": version,
        "username": device.token,
        "qos": 1,
        "topic": TOPIC,
        "payloads": [json.dumps(row) for row in payloads],
    }
    done = subprocess.run(["node", "publish.mjs", json.dumps(job)], cwd=NODE, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"connected": True, "acked": 40, "refused": [], "error": None}
    assert server.api.history(device.name, "n") == [(row["ts"], row["values"]["n"]) for row in payloads]


def test_a_text_frame_is_refused_with_1003(server):
    url = f"ws://127.0.0.1:{server.http}/mqtt"
    socket = websocket.create_connection(url, subprotocols=["mqtt"], timeout=WAIT_S)
    # After a close frame the library leaves the socket open.
    with contextlib.closing(socket.sock):
        assert socket.getsubprotocol() == "mqtt"
        socket.ping("are you there?")
        assert socket.recv_data(control_frame=True) == (websocket.ABNF.OPCODE_PONG, b"are you there?")
        socket.send("text")
        opcode, data = socket.recv_data(control_frame=True)
        assert (opcode, data[:2]) == (websocket.ABNF.OPCODE_CLOSE, (1003).to_bytes(2, "big"))


def test_a_missing_subprotocol_is_refused(server):
    with pytest.raises(websocket.WebSocketBadStatusException) as refused:
        websocket.create_connection(f"ws://127.0.0.1:{server.http}/mqtt", timeout=WAIT_S)
    assert refused.value.status_code == 400 and b"subprotocol" in refused.value.resp_body

"""MQTT.js, the `mqtt` package of npm."""

import json
import subprocess
from pathlib import Path

import pytest

NODE = Path(__file__).parent / "node"
VERSIONS = pytest.mark.parametrize("version", [4, 5], ids=["v311", "v5"])


def publish(server, token, version, qos, *payloads):
    """What MQTT.js saw."""
    job = {
        "url": f"mqtt://127.0.0.1:{server.mqtt}",
        "protocolVersion": version,
        "username": token,
        "qos": qos,
        "topic": "v1/devices/me/telemetry",
        "payloads": payloads,
    }
    done = subprocess.run(["node", "publish.mjs", json.dumps(job)], cwd=NODE, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@VERSIONS
@pytest.mark.parametrize("qos", [1, 2])
def test_published_values_are_read_back(server, device, version, qos):
    start = 1_700_000_000_000
    payloads = [json.dumps({"ts": start + n, "values": {"n": n}}) for n in range(100)]
    report = publish(server, device.token, version, qos, *payloads)
    assert report == {"connected": True, "acked": 100, "refused": [], "error": None}
    assert server.api.history(device.name, "n") == [(start + n, n) for n in range(100)]


@VERSIONS
def test_a_wrong_token_is_refused(server, version):
    report = publish(server, "no-such-token", version, 1, "{}")
    assert not report["connected"]
    assert report["error"]["code"] == (5 if version == 4 else 0x87)


def test_version_5_learns_that_a_payload_is_refused(server, device):
    report = publish(server, device.token, 5, 1, "no JSON", '{"afterwards": 1}')
    assert (report["refused"], report["acked"]) == ([0x99], 1)
    assert server.api.latest(device.name, "afterwards") == 1

"""mosquitto_pub of Debian's mosquitto-clients, unchanged."""

import json
import subprocess

import pytest

from harness import wait

VERSIONS = ["mqttv31", "mqttv311", "mqttv5"]


def mosquitto_pub(server, token, *arguments, stdin=None):
    """Runs the client; its exit code is 0 only when the broker took everything."""
    command = ["mosquitto_pub", "-h", "127.0.0.1", "-p", str(server.mqtt), "-u", token, "-t", "v1/devices/me/telemetry"]
    return subprocess.run([*command, *arguments], input=stdin, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_published_value_is_read_back(server, device, version, qos):
    done = mosquitto_pub(server, device.token, "-V", version, "-q", str(qos), "-m", '{"speed": 42.5}')
    assert (done.returncode, done.stderr) == (0, "")
    if qos:
        # Acknowledged means durable and readable: no waiting.
        assert server.api.latest(device.name, "speed") == 42.5
    else:
        wait.until(lambda: server.api.latest(device.name, "speed") == 42.5, "a point of QoS 0")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("qos", [1, 2])
def test_a_stream_of_lines_arrives_whole(server, device, version, qos):
    start = 1_700_000_000_000
    lines = "".join(json.dumps({"ts": start + n, "values": {"n": n}}) + "\n" for n in range(500))
    done = mosquitto_pub(server, device.token, "-V", version, "-q", str(qos), "-l", stdin=lines)
    assert done.returncode == 0, done.stderr
    assert server.api.history(device.name, "n") == [(start + n, n) for n in range(500)]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_wrong_token_is_refused(server, version):
    done = mosquitto_pub(server, "no-such-token", "-V", version, "-q", "1", "-m", "{}")
    assert done.returncode != 0
    assert "not authori" in done.stderr.lower(), done.stderr

"""`tacho bench` measures brokers: small versions of the scenarios on mosquitto, on a server that the run starts, and on one that runs."""

import contextlib
import os
import shutil
import socket
import subprocess

import pytest

from harness import wait
from harness.bench import bench

SECOND = ["phase.run.warmup=0s", "phase.run.duration=1s"]
PAIRS = [*SECOND, "phase.run.mix.publishers.connections=20", "phase.run.mix.subscribers.connections=20", "phase.run.rate=400"]
FANOUT = [*SECOND, "phase.run.mix.publishers.connections=2", "phase.run.mix.subscribers.connections=40", "phase.run.rate=50"]
PAIRS_CLOSED = [f"phase.run.mix.{mix}" for mix in ("publishers.connections=20", "subscribers.connections=20", "publishers.messages=50")]
FANOUT_CLOSED = ["phase.run.mix.subscribers.connections=40", "phase.run.mix.publishers.messages=50"]
OFFLINE = ["phase.queue.messages=50", *(f"phase.{phase}.connections=20" for phase in ("leave", "queue", "return"))]
CONNECTS = [
    *(f"phase.{phase}.{key}" for phase in ("idle", "connect", "subscribe", "storm") for key in ("connections=50", "duration=1s")),
    *(f"phase.{phase}.{key}" for phase in ("connect", "subscribe") for key in ("rate=50", "warmup=0s")),
]
COMMANDS = [
    *SECOND,
    "phase.run.mix.devices.connections=50",
    "phase.run.mix.devices.rate=300",
    "phase.run.mix.users.connections=5",
    "phase.run.mix.users.rate=50",
]


@pytest.fixture
def mosquitto(tmp_path):
    """The address of a broker of Debian."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    user = "user root\n" if os.getuid() == 0 else ""
    conf = tmp_path / "mosquitto.conf"
    conf.write_text(f"{user}listener {port} 127.0.0.1\nallow_anonymous true\nmax_queued_messages 0\nmax_inflight_messages 0\nlog_type none\n")
    program = shutil.which("mosquitto", path=f"{os.environ['PATH']}:/usr/sbin")
    process = subprocess.Popen([program, "-c", conf])

    def accepts():
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return True
        return False

    try:
        wait.until(accepts, "mosquitto")
        yield f"mqtt://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


@pytest.fixture(params=["mosquitto", "tacho"])
def target(request, tmp_path):
    """The options for a broker: mosquitto, or a server of ours that the run starts."""
    if request.param == "mosquitto":
        return ["--target", request.getfixturevalue("mosquitto")]
    return ["--set", f"target.data={tmp_path / 'data'}"]


@pytest.mark.parametrize(("qos", "version"), [(0, "3.1.1"), (1, "5"), (2, "5")])
def test_pairs_get_every_message(target, tmp_path, qos, version):
    sets = [*PAIRS, f"dataset.qos={qos}", f"dataset.version='{version}'"]
    result, completed = bench("broker-pairs", tmp_path / "out", sets, *target)
    assert completed["run"]["publish"] == completed["run"]["deliver"] > 200
    assert {check["found"] for check in result["verification"]} == {"0"}
    assert len(result["verification"]) == (3 if qos == 1 else 4)


def test_every_subscriber_of_a_topic_gets_every_message(target, tmp_path):
    _, completed = bench("broker-fanout", tmp_path / "out", FANOUT, *target)
    assert completed["run"]["deliver"] == 40 * completed["run"]["publish"] > 0


@pytest.mark.parametrize(
    ("scenario", "sets", "sent", "delivered"),
    [("broker-pairs-closed", PAIRS_CLOSED, 1_000, 1_000), ("broker-fanout-closed", FANOUT_CLOSED, 50, 2_000)],
)
def test_a_closed_loop_ends_when_every_message_has_arrived(target, tmp_path, scenario, sets, sent, delivered):
    result, completed = bench(scenario, tmp_path / "out", sets, *target)
    assert completed["run"] == {"publish": sent, "deliver": delivered}
    assert {check["found"] for check in result["verification"]} == {"0"}


@pytest.mark.parametrize("version", ["3.1.1", "5"])
def test_sessions_get_what_was_queued_while_they_were_away(target, tmp_path, version):
    _, completed = bench("broker-offline", tmp_path / "out", [*OFFLINE, f"dataset.version='{version}'"], *target)
    assert completed == {"leave": {}, "queue": {"publish": 1_000}, "return": {"connect": 20, "deliver": 1_000}}


def test_connections_are_counted_and_weighed(target, tmp_path):
    result, completed = bench("broker-connects", tmp_path / "out", CONNECTS, *target)
    assert completed == {"idle": {}, "connect": {"connect": 50}, "subscribe": {"connect": 50}, "storm": {"connect": 50}}
    idle = result["phases"][0]
    assert idle["connections"] == 50 and idle["cost"]["target_rss_bytes_max"] > 0


def test_calls_reach_their_devices_and_come_back(tmp_path):
    _, completed = bench("commands-rpc", tmp_path / "out", [*COMMANDS, f"target.data={tmp_path / 'data'}"])
    assert completed["run"]["call"] > 20 and completed["run"]["publish"] > 150


def test_changes_of_attributes_reach_their_devices(tmp_path):
    _, completed = bench("commands-attributes", tmp_path / "out", [*COMMANDS, f"target.data={tmp_path / 'data'}"])
    assert completed["run"]["set"] == completed["run"]["push"] > 20 and completed["run"]["publish"] > 150


def test_a_running_server_is_measured_with_its_own_settings(server, tmp_path):
    # By default devices may use topics of their own, which those of pairs are.
    known = ["--target", f"mqtt://127.0.0.1:{server.mqtt}", "--set", f"target.http={server.url.rstrip('/')}"]
    env = {"TACHO_PASSWORD": server.password}
    result, completed = bench("broker-pairs", tmp_path / "out", PAIRS, *known, env=env)
    assert completed["run"]["deliver"] > 200
    assert any("device delete" in finding for finding in result["findings"]), result["findings"]
    _, completed = bench("commands-rpc", tmp_path / "rpc", COMMANDS, *known, env=env)
    assert completed["run"]["call"] > 20
    refused = bench("broker-fanout", tmp_path / "refused", FANOUT, *known, env=env, check=False)
    assert refused.returncode != 0
    assert "SUBACK 0x87" in refused.stderr and "mqtt.subscribe_topics" in refused.stderr, refused.stderr
    without = bench("commands-rpc", tmp_path / "without", COMMANDS, *known[:2], check=False)
    assert without.returncode != 0 and "give target.password" in without.stderr, without.stderr

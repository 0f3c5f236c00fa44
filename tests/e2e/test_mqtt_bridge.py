"""A bridge of mosquitto between its own clients and ours, in both directions."""

import getpass
import os
import shutil
import signal
import socket
import subprocess
import time

import paho.mqtt.client as mqtt
import pytest
from harness import wait
from test_broker import OPEN, Client

# mosquitto marks bridges in the protocol level before MQTT 5, and uses No Local and Retain As Published with it.
VERSIONS = ["mqttv311", "mqttv50"]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Mosquitto:
    """mosquitto with a bridge to a server. It has a port and no token, so `Client` takes it for a server."""

    def __init__(self, directory, server, token, version):
        self.directory, self.server, self.token, self.version = directory, server, token, version
        self.mqtt = free_port()
        self.start()

    def start(self):
        """Starts it, also again after the server got another port."""
        # As the user of the tests, so that it can write its database there.
        (self.directory / "mosquitto.conf").write_text(f"""
user {getpass.getuser()}
listener {self.mqtt} 127.0.0.1
allow_anonymous true
persistence true
persistence_location {self.directory}/
autosave_on_changes true
connection fleet
address 127.0.0.1:{self.server.mqtt}
bridge_protocol_version {self.version}
remote_username {self.token}
remote_clientid bridge
cleansession false
notifications false
restart_timeout 1
topic shared/# both 2
""")
        program = shutil.which("mosquitto", path=f"{os.environ['PATH']}:/usr/sbin")
        self.process = subprocess.Popen([program, "-c", self.directory / "mosquitto.conf"], stderr=subprocess.DEVNULL)
        wait.until(self.accepts, "mosquitto")

    def accepts(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.mqtt)) == 0

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)


@pytest.fixture(params=VERSIONS)
def bridge(request, own_server, tmp_path):
    """Our server and a mosquitto that is bridged to it."""
    server = own_server(OPEN)
    mosquitto = Mosquitto(tmp_path, server, server.device().token, request.param)
    yield server, mosquitto
    mosquitto.stop()


def until_bridged(ours, theirs):
    """Returns when a message of one side reaches the other, both ways."""
    for sender, receiver, name in ((ours, theirs, "to"), (theirs, ours, "from")):
        for n in range(100):
            sender.publish("shared/probe", f"{name}{n}", 0)
            time.sleep(0.1)
            if any(message.payload.decode().startswith(name) for message in list(receiver.messages.queue)):
                break
        else:
            raise AssertionError("the bridge carries nothing")
    time.sleep(1)
    for client in (ours, theirs):
        while not client.messages.empty():
            client.messages.get()


def test_each_side_gets_the_messages_of_the_other_once(bridge):
    server, mosquitto = bridge
    with Client(server, server.device().token) as ours, Client(mosquitto, "", mqtt.MQTTv311) as theirs:
        ours.subscribe("shared/#", 2)
        theirs.subscribe("shared/#", 2)
        until_bridged(ours, theirs)
        for n in range(20):
            ours.publish("shared/a", f"ours {n}", n % 3)
            theirs.publish("shared/a", f"theirs {n}", n % 3)
        expected = sorted([f"ours {n}" for n in range(20)] + [f"theirs {n}" for n in range(20)])
        assert sorted(ours.payloads(40)) == expected
        assert sorted(theirs.payloads(40)) == expected
        # A message that the bridge had sent back would come again now.
        time.sleep(1)
        assert ours.messages.empty() and theirs.messages.empty()


def test_retained_messages_stay_retained_behind_the_bridge(bridge):
    server, mosquitto = bridge
    with Client(server, server.device().token) as ours, Client(mosquitto, "", mqtt.MQTTv311) as theirs:
        ours.subscribe("shared/#", 1)
        theirs.subscribe("shared/#", 1)
        until_bridged(ours, theirs)
        ours.publish("shared/state", "on", 1, retain=True)
        theirs.publish("shared/mode", "auto", 1, retain=True)
        ours.payloads(2), theirs.payloads(2)
        with Client(mosquitto, "", mqtt.MQTTv311) as late:
            late.subscribe("shared/state", 1)
            message = late.message()
            assert (message.payload, bool(message.retain)) == (b"on", True)
        with Client(server, server.device().token) as late:
            late.subscribe("shared/mode", 1)
            message = late.message()
            assert (message.payload, bool(message.retain)) == (b"auto", True)


def test_messages_of_qos_2_survive_restarts_of_both_sides(own_server, tmp_path):
    """Only before MQTT 5: there mosquitto 2.0 asks for no session expiry, so its session ends with its connection."""
    server = own_server(OPEN)
    mosquitto = Mosquitto(tmp_path, server, server.device().token, "mqttv311")
    token = server.device().token
    with Client(server, token) as ours, Client(mosquitto, "", mqtt.MQTTv311) as theirs:
        ours.subscribe("shared/#", 2)
        theirs.subscribe("shared/#", 2)
        until_bridged(ours, theirs)
    # mosquitto keeps for it what the bridge gets before it is back.
    with Client(mosquitto, "", mqtt.MQTTv311, client_id="watcher", clean=False) as watcher:
        watcher.subscribe("shared/#", 2)
    mosquitto.stop()
    with Client(server, token) as ours:
        for n in range(10):
            ours.publish("shared/late", f"{n}", 2)
    server.kill()
    server.start()
    mosquitto.start()
    with Client(mosquitto, "", mqtt.MQTTv311, client_id="watcher", clean=False) as watcher:
        with Client(server, token) as ours:
            ours.publish("shared/late", "end", 2)
        assert watcher.payloads(11) == [*(str(n) for n in range(10)), "end"]
    mosquitto.stop()

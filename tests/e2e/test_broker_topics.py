"""Topics of device profiles, the counters under $SYS, and topic aliases from the server. Eclipse paho, mosquitto, MQTT.js."""

import json
import subprocess

import paho.mqtt.client as mqtt
import pytest
import requests

from harness import wait
from test_broker import OPEN, VERSIONS, Client
from test_mqttjs import NODE


def add_profile(server, name, topics):
    """Adds a device profile that lists topics; its body as the server returns it."""
    return server.api.post("/api/deviceProfile", {"name": name, "type": "DEFAULT", "profileData": {"tachoTopics": topics}})


def add_device(server, name, profile):
    """Adds a device of a profile, with its name as the access token."""
    server.api.post(f"/api/device?accessToken={name}", {"name": name, "deviceProfileId": profile["id"]})
    return name


@pytest.fixture
def monitored(own_server):
    """A server that reports each second, with the device `monitor`, which may read the reports."""
    server = own_server(OPEN | {"TACHO_MQTT_SYS_INTERVAL_S": "1"})
    add_device(server, "monitor", add_profile(server, "monitor", {"subscribe": ["$SYS/#"]}))
    return server


@VERSIONS
def test_a_monitor_reads_the_counters(monitored, version):
    with Client(monitored, "monitor", version) as monitor, Client(monitored, monitored.device().token, version) as other:
        assert other.subscribe("#") == [0]
        assert other.subscribe("$SYS/broker/uptime") == [0x87 if version == mqtt.MQTTv5 else 0x80]
        assert monitor.subscribe("$SYS/broker/clients/+") == [0]
        seen = {}
        while seen.get("$SYS/broker/clients/connected") != b"2":
            message = monitor.message()
            seen[message.topic] = message.payload
        assert other.messages.empty()


def test_mosquitto_sub_prints_the_counters(monitored):
    command = ["mosquitto_sub", "-h", "127.0.0.1", "-p", str(monitored.mqtt), "-u", "monitor", "-v", "-C", "38", "-t", "$SYS/#"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    topics = [line[: line.rindex(" ")] for line in lines if not line.endswith("seconds")]
    for name in ("clients/connected", "subscriptions/count", "retained messages/count", "load/messages/received/5min"):
        assert f"$SYS/broker/{name}" in topics, lines
    assert any(line.startswith("$SYS/broker/uptime ") and line.endswith(" seconds") for line in lines), lines


@VERSIONS
def test_a_profile_opens_and_closes_topics(own_server, version):
    server = own_server({})
    profile = add_profile(server, "fleet", {"publish": ["fleet/${device}/#"], "subscribe": ["fleet/#", "by/${clientId}"]})
    assert profile["profileData"]["tachoTopics"]["subscribe"] == ["fleet/#", "by/${clientId}"]
    one, two = (add_device(server, name, profile) for name in ("one", "two"))
    refused = 0x87 if version == mqtt.MQTTv5 else 0x80
    with Client(server, one, version, client_id="reader") as reader, Client(server, two, version) as sender:
        assert reader.subscribe("fleet/+/state", 1) == [1]
        assert reader.subscribe("by/reader", 1) == [1]
        assert reader.subscribe("by/other", 1) == [refused]
        assert reader.subscribe("devices/one/#", 1) == [refused]
        assert sender.publish("fleet/two/state", "on") == 0
        assert reader.message().topic == "fleet/two/state"
        assert sender.publish("fleet/one/state", "forged") == (0x87 if version == mqtt.MQTTv5 else 0)
        profile["profileData"]["tachoTopics"] = {"publish": ["fleet/#"], "subscribe": ["by/#"]}
        server.api.post("/api/deviceProfile", profile)
        ended = 'tacho_refusals_total{door="mqtt",reason="subscription_ended"} 1'
        wait.until(lambda: ended in server.api.metrics(), "the end of the subscription")
        assert sender.publish("fleet/one/state", "late") == 0
        assert reader.subscribe("fleet/one/state", 1) == [refused]
        assert reader.messages.empty()
    rows = server.api.post("/api/sql", {"query": "SELECT payload FROM dead_letter WHERE device = 'two'"})["rows"]
    assert rows == [["forged"]]


def test_wrong_topics_of_a_profile_are_refused_with_their_place(own_server, tmp_path):
    server = own_server({})
    for topics, part in [
        ({"publish": ["a", "b/#/c"]}, 'tachoTopics.publish[1]: "b/#/c" is not a topic filter'),
        ({"subscribe": ["${decive}/#"]}, 'tachoTopics.subscribe[0]: "${decive}" is not one of the levels'),
        ({"subscribe": ["a"] * 65}, "tachoTopics.subscribe has 65 patterns, the limit is 64 (TOPIC_PATTERNS_MAX)"),
        ({"publish": ["$SYS/broker/uptime"]}, "tachoTopics.publish[0]: topics that begin with $"),
        ({"reads": []}, 'tachoTopics has the member "reads"'),
    ]:
        body = {"name": "wrong", "profileData": {"tachoTopics": topics}}
        reply = server.api.session.post(f"{server.url}/api/deviceProfile", json=body, timeout=60)
        assert reply.status_code == 400 and part in reply.json()["message"], reply.text
    # The counters are those of all tenants: another tenant does not open them to its devices.
    secret = tmp_path / "secret"
    secret.write_text("a long password\n")
    server.command("tenant", "add", "acme", "--admin", "root@acme.example", "--password-file", str(secret))
    session = requests.Session()
    login = {"username": "root@acme.example", "password": "a long password"}
    token = session.post(f"{server.url}/api/auth/login", json=login, timeout=60).json()["token"]
    session.headers["X-Authorization"] = f"Bearer {token}"
    body = {"name": "monitor", "profileData": {"tachoTopics": {"subscribe": ["$SYS/#"]}}}
    reply = session.post(f"{server.url}/api/deviceProfile", json=body, timeout=60)
    assert reply.status_code == 400 and "only profiles of the default tenant" in reply.json()["message"], reply.text


def test_paho_resolves_the_aliases_of_the_server(own_server):
    server = own_server(OPEN)
    device = server.device()
    sent = [f"a/rather/long/topic/{n % 3}" for n in range(30)]
    with Client(server, device.token, aliases=2) as client, Client(server, device.token) as sender:
        client.subscribe("a/#", 1)
        known, found, shortened = {}, [], 0
        for topic in sent:
            assert sender.publish(topic, "x") == 0
            message = client.message()
            alias = getattr(message.properties, "TopicAlias", None)
            assert alias in (None, 1, 2)
            if alias and message.topic:
                known[alias] = message.topic
            shortened += not message.topic
            found.append(message.topic or known[alias])
        assert found == sent
    with Client(server, device.token, aliases=3) as client, Client(server, device.token) as sender:
        client.subscribe("a/#", 1)
        for topic in sent:
            sender.publish(topic, "x")
        assert sum(not client.message().topic for _ in sent) == len(sent) - 3


def test_mqttjs_resolves_the_aliases_of_the_server(own_server):
    server = own_server(OPEN)
    device = server.device()
    sent = [f"a/rather/long/topic/{n % 3}" for n in range(30)]
    job = {"url": f"mqtt://127.0.0.1:{server.mqtt}", "username": device.token, "topicAliasMaximum": 3, "topics": sent}
    done = subprocess.run(["node", "aliases.mjs", json.dumps(job)], cwd=NODE, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["topics"] == sent
    assert report["aliased"] == len(sent) - 3

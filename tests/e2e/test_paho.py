"""Eclipse paho for Python, MQTT 3.1, 3.1.1 and 5."""

import json
import queue

import paho.mqtt.client as mqtt
import pytest

TOPIC = "v1/devices/me/telemetry"
WAIT_S = 60
VERSIONS = pytest.mark.parametrize("version", [mqtt.MQTTv31, mqtt.MQTTv311, mqtt.MQTTv5], ids=["v31", "v311", "v5"])


class Client:
    """paho with its callbacks as queues."""

    def __init__(self, server, token, version, client_id="", in_flight=20):
        self.connected, self.disconnected, self.published = queue.Queue(), queue.Queue(), queue.Queue()
        self.client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id, protocol=version, reconnect_on_failure=False)
        self.client.max_inflight_messages_set(in_flight)
        if token is not None:
            self.client.username_pw_set(token)
        self.client.on_connect = lambda _c, _u, _f, reason, properties: self.connected.put((reason, properties))
        self.client.on_disconnect = lambda _c, _u, _f, reason, _p: self.disconnected.put(reason)
        self.client.on_publish = lambda _c, _u, mid, reason, properties: self.published.put((mid, reason, properties))
        self.client.connect("127.0.0.1", server.mqtt)
        self.client.loop_start()
        self.reason, self.properties = self.connected.get(timeout=WAIT_S)

    def publish(self, payload, qos=1):
        """Publishes and waits for the broker's word: the reason code and the reason string."""
        sent = self.client.publish(TOPIC, payload, qos)
        mid, reason, properties = self.published.get(timeout=WAIT_S)
        assert mid == sent.mid
        return reason.value, getattr(properties, "ReasonString", None)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.client.disconnect()
        self.client.loop_stop()


@VERSIONS
@pytest.mark.parametrize("qos", [1, 2])
def test_every_form_of_payload(server, device, version, qos):
    with Client(server, device.token, version) as client:
        assert client.reason.value == 0
        for payload in [
            {"plain": 1},
            [{"listed": True}, {"also": "text"}],
            {"ts": 1_700_000_000_000, "values": {"timed": 1.5}},
            [{"ts": 1_700_000_000_001, "values": {"many": 1}}, {"ts": 1_700_000_000_002, "values": {"many": 2}}],
            {"nested": {"a": [1, 2]}},
        ]:
            assert client.publish(json.dumps(payload), qos)[0] == 0
    read = server.api.values(device.name)
    newest = {key: points[0]["value"] for key, points in read.items()}
    assert newest == {"plain": 1, "listed": True, "also": "text", "timed": 1.5, "many": 2, "nested": {"a": [1, 2]}}
    assert server.api.history(device.name, "many") == [(1_700_000_000_001, 1), (1_700_000_000_002, 2)]


@VERSIONS
@pytest.mark.parametrize("qos", [1, 2])
def test_many_in_flight_are_all_acknowledged_and_stored(server, device, version, qos):
    count, start = 2_000, 1_700_000_000_000
    with Client(server, device.token, version, in_flight=200) as client:
        for n in range(count):
            client.client.publish(TOPIC, json.dumps({"ts": start + n, "values": {"n": n}}), qos)
        reasons = [client.published.get(timeout=WAIT_S)[1].value for _ in range(count)]
    assert set(reasons) == {0}
    assert server.api.history(device.name, "n") == [(start + n, n) for n in range(count)]


@VERSIONS
def test_a_wrong_token_is_not_authorised(server, version):
    # paho shows return code 5 of version 3.1.1 as reason 0x87; the byte itself is looked at in test_packets.py.
    with Client(server, "no-such-token", version) as client:
        assert client.reason.value == 0x87


@VERSIONS
@pytest.mark.parametrize("token", ["", None], ids=["empty", "none"])
def test_no_username_is_bad_credentials(server, version, token):
    with Client(server, token, version) as client:
        assert client.reason.value == 0x86


@VERSIONS
def test_a_second_client_of_the_same_name_takes_over(server, device, version):
    with Client(server, device.token, version, "the-same") as first, Client(server, device.token, version, "the-same") as second:
        reason = first.disconnected.get(timeout=WAIT_S)
        if version == mqtt.MQTTv5:
            assert reason.value == 0x8E
        assert second.publish('{"after": "take-over"}')[0] == 0
    assert server.api.latest(device.name, "after") == "take-over"


@VERSIONS
def test_clients_of_two_devices_may_share_a_name(server, version):
    one, two = server.device(), server.device()
    with Client(server, one.token, version, "shared-name") as first, Client(server, two.token, version, "shared-name") as second:
        assert second.publish('{"of": 2}')[0] == 0
        assert first.publish('{"of": 1}')[0] == 0
    assert [server.api.latest(name, "of") for name in (one.name, two.name)] == [1, 2]


def test_version_5_learns_why_a_payload_is_refused(server, device):
    # QoS 2 is looked at in test_packets.py: paho does not read the reason of a PUBREC.
    with Client(server, device.token, mqtt.MQTTv5) as client:
        reason, text = client.publish("this is not JSON")
        assert reason == 0x99
        assert "JSON" in text
        assert client.publish('{"afterwards": 1}')[0] == 0
        assert client.disconnected.empty()
    assert server.api.latest(device.name, "afterwards") == 1


@pytest.mark.parametrize("qos", [1, 2])
def test_version_3_1_1_is_acknowledged_and_the_session_lives(server, device, qos):
    with Client(server, device.token, mqtt.MQTTv311) as client:
        assert client.publish("this is not JSON", qos)[0] == 0
        assert client.publish('{"afterwards": 1}', qos)[0] == 0
        assert client.disconnected.empty()
    assert server.api.latest(device.name, "afterwards") == 1


def test_version_5_gets_the_limits_in_connack(server, device):
    with Client(server, device.token, mqtt.MQTTv5) as client:
        assert client.properties.ReceiveMaximum == 1_024
        assert client.properties.MaximumPacketSize == 1_048_576
        assert client.properties.AssignedClientIdentifier

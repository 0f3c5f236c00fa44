"""Messages between clients: subscriptions, retained messages, sessions that outlive connections. Eclipse paho, mosquitto."""

import queue
import subprocess
import time

import paho.mqtt.client as mqtt
import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

from harness.rest import Api

WAIT_S = 60
OPEN = {"TACHO_MQTT_PUBLISH_TOPICS": "#", "TACHO_MQTT_SUBSCRIBE_TOPICS": "#"}
VERSIONS = pytest.mark.parametrize("version", [mqtt.MQTTv311, mqtt.MQTTv5], ids=["v311", "v5"])


class Client:
    """paho with its callbacks as queues."""

    def __init__(
        self, server, token, version=mqtt.MQTTv5, client_id="", expiry_s=0, clean=True, will=None, manual=False, aliases=0
    ):
        self.connected, self.disconnected = queue.Queue(), queue.Queue()
        self.published, self.messages = queue.Queue(), queue.Queue()
        self.subscribed, self.unsubscribed = queue.Queue(), queue.Queue()
        options = {} if version == mqtt.MQTTv5 else {"clean_session": clean}
        self.client = mqtt.Client(
            mqtt.CallbackAPIVersion.VERSION2, client_id, protocol=version, reconnect_on_failure=False, manual_ack=manual, **options
        )
        self.client.username_pw_set(token)
        self.client.on_connect = lambda _c, _u, flags, reason, _p: self.connected.put((reason, flags.session_present))
        self.client.on_disconnect = lambda _c, _u, _f, reason, _p: self.disconnected.put(reason)
        self.client.on_publish = lambda _c, _u, mid, reason, _p: self.published.put((mid, reason))
        self.client.on_subscribe = lambda _c, _u, _m, reasons, _p: self.subscribed.put([reason.value for reason in reasons])
        self.client.on_unsubscribe = lambda _c, _u, _m, reasons, _p: self.unsubscribed.put([reason.value for reason in reasons])
        self.client.on_message = lambda _c, _u, message: self.messages.put(message)
        if will:
            self.client.will_set(*will)
        if version == mqtt.MQTTv5:
            properties = Properties(PacketTypes.CONNECT)
            properties.SessionExpiryInterval = expiry_s
            if aliases:
                properties.TopicAliasMaximum = aliases
            self.client.connect("127.0.0.1", server.mqtt, clean_start=clean, properties=properties)
        else:
            self.client.connect("127.0.0.1", server.mqtt)
        self.client.loop_start()
        self.reason, self.session_present = self.connected.get(timeout=WAIT_S)

    def subscribe(self, topic, qos=0, **options):
        if options:
            self.client.subscribe(topic, options=SubscribeOptions(qos=qos, **options))
        else:
            self.client.subscribe(topic, qos)
        return self.subscribed.get(timeout=WAIT_S)

    def publish(self, topic, payload, qos=1, retain=False, properties=None):
        """Publishes and waits for the ack."""
        sent = self.client.publish(topic, payload, qos, retain, properties)
        mid, reason = self.published.get(timeout=WAIT_S)
        assert mid == sent.mid
        return reason.value

    def message(self):
        return self.messages.get(timeout=WAIT_S)

    def payloads(self, count):
        return [self.message().payload.decode() for _ in range(count)]

    def vanish(self):
        """Loses the connection without DISCONNECT."""
        self.client._sock_close()
        self._end()

    def _end(self):
        self.client.loop_stop()
        # paho closes its pair of sockets when it is collected, which may come after the sockets were.
        self.client._reset_sockets()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.client.disconnect()
        self._end()


@pytest.fixture
def broker(own_server):
    """A server whose devices may use all topics of their tenant."""
    return own_server(OPEN)


@VERSIONS
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_message_reaches_every_subscriber_once(broker, version, qos):
    one, two, publisher = (broker.device() for _ in range(3))
    with (
        Client(broker, one.token, version) as plus,
        Client(broker, two.token, version) as hash_,
        Client(broker, publisher.token, version) as sender,
    ):
        assert plus.subscribe("fleet/+/speed", qos) == [qos]
        assert hash_.subscribe("fleet/#", qos) == [qos]
        for n in range(50):
            sender.publish(f"fleet/{n % 3}/speed", f"{n}", qos)
        expected = [str(n) for n in range(50)]
        assert plus.payloads(50) == expected
        assert hash_.payloads(50) == expected
        sender.publish("fleet/1/other", "x", qos)
        assert hash_.message().topic == "fleet/1/other"
        assert plus.messages.empty()


def test_mosquitto_clients_exchange_messages(broker):
    device = broker.device()
    command = ["-h", "127.0.0.1", "-p", str(broker.mqtt), "-u", device.token]
    arguments = ["stdbuf", "-oL", "mosquitto_sub", *command, "-t", "a/#", "-q", "2", "-C", "3", "-v", "-d"]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as subscriber:
        for line in subscriber.stdout:
            if "SUBACK" in line:
                break
        for qos in "012":
            pub = ["mosquitto_pub", *command, "-t", f"a/{qos}", "-q", qos, "-m", f"m{qos}"]
            done = subprocess.run(pub, capture_output=True, text=True, timeout=60)
            assert done.returncode == 0, done.stderr
        lines = [line.strip() for line in subscriber.stdout if line.startswith("a/")]
    assert subscriber.returncode == 0
    assert lines == ["a/0 m0", "a/1 m1", "a/2 m2"]


@pytest.mark.parametrize("receive_maximum", [1, 20])
def test_messages_of_qos_2_beyond_the_receive_maximum_come_without_a_push(broker, receive_maximum):
    """PUBREL waits for the disk while the window is full, and nothing else happens on the connection."""
    device = broker.device()
    command = ["-h", "127.0.0.1", "-p", str(broker.mqtt), "-u", device.token, "-V", "5"]
    wanted = ["-c", "-x", "600", "-i", "late", "-q", "2", "-t", "late", "-D", "CONNECT", "receive-maximum", str(receive_maximum)]
    first = subprocess.run(["mosquitto_sub", *command, *wanted, "-E"], capture_output=True, text=True, timeout=60)
    assert first.returncode == 0, first.stderr
    with Client(broker, device.token) as sender:
        for n in range(60):
            sender.publish("late", f"{n}", 2)
    second = subprocess.run(["mosquitto_sub", *command, *wanted, "-C", "60"], capture_output=True, text=True, timeout=60)
    assert second.stdout.split() == [str(n) for n in range(60)], second.stderr


def test_a_device_sees_only_its_own_topics(server):
    mine, other = server.device(), server.device()
    with Client(server, mine.token) as client, Client(server, other.token) as stranger:
        assert client.subscribe(f"devices/{mine.name}/#", 1) == [1]
        assert client.subscribe(f"devices/{other.name}/#", 1) == [0x87]
        assert client.subscribe("#", 1) == [0x87]
        assert client.subscribe("$SYS/#", 1) == [0x87]
        assert stranger.publish(f"devices/{mine.name}/a", "x") == 0x87
        assert client.publish(f"devices/{mine.name}/a", "own") == 0
        assert client.message().payload == b"own"
    with Client(server, mine.token, mqtt.MQTTv311) as old:
        assert old.subscribe("#", 1) == [0x80]


def test_two_tenants_share_no_topic(broker, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("a long password\n")
    broker.command("tenant", "add", "acme", "--admin", "root@acme.example", "--password-file", str(secret))
    acme = Api(broker.url).login("root@acme.example", "a long password")
    acme.post("/api/tacho/devices", {"count": 1, "startIndex": 7, "prefix": "truck ", "tokenPrefix": "acme-"})
    with Client(broker, broker.device().token) as ours, Client(broker, "acme-7") as theirs:
        assert ours.subscribe("#", 1) == [1] and theirs.subscribe("#", 1) == [1]
        assert theirs.publish("a", "theirs") == 0 and ours.publish("a", "ours") == 0
        assert ours.payloads(1) == ["ours"] and theirs.payloads(1) == ["theirs"]
        assert ours.messages.empty() and theirs.messages.empty()


@VERSIONS
def test_a_retained_message_waits_for_its_subscribers(broker, version):
    device = broker.device()
    with Client(broker, device.token, version) as client:
        for n in range(3):
            assert client.publish(f"state/{n}", f"v{n}", retain=True) == 0
        client.publish("state/1", "", retain=True)
        client.subscribe("state/+", 1)
        found = {message.topic: (message.payload, message.retain) for message in (client.message() for _ in range(2))}
        assert found == {"state/0": (b"v0", 1), "state/2": (b"v2", 1)}
        client.publish("state/0", "new", retain=True)
        live = client.message()
        assert (live.payload, live.retain) == (b"new", 0)
    broker.kill()
    broker.start()
    with Client(broker, device.token, version) as client:
        client.subscribe("state/0", 1)
        assert client.message().payload == b"new"


@VERSIONS
@pytest.mark.parametrize("qos", [1, 2])
def test_what_was_acknowledged_reaches_an_absent_subscriber_after_a_crash(broker, version, qos):
    subscriber, publisher = broker.device(), broker.device()
    with Client(broker, subscriber.token, version, "away", 3600, clean=False) as client:
        assert not client.session_present
        client.subscribe("orders/#", qos)
    with Client(broker, publisher.token, version) as client:
        for n in range(300):
            assert client.publish("orders/a", f"{n}", qos) == 0
    broker.kill()
    broker.start()
    with Client(broker, subscriber.token, version, "away", 3600, clean=False) as client:
        assert client.session_present
        assert client.payloads(300) == [str(n) for n in range(300)]
    with Client(broker, subscriber.token, version, "away", 3600, clean=False) as client:
        time.sleep(0.5)
        assert client.messages.empty(), "acknowledged messages do not come again"
    with Client(broker, subscriber.token, version, "away", 0, clean=True) as client:
        assert not client.session_present


def test_an_unacknowledged_message_is_sent_again(broker):
    device = broker.device()
    first = Client(broker, device.token, client_id="again", expiry_s=600, clean=False, manual=True)
    first.subscribe("x", 1)
    first.publish("x", "1")
    assert not first.message().dup
    first.vanish()
    with Client(broker, device.token, client_id="again", expiry_s=600, clean=False) as second:
        message = second.message()
        assert (message.payload, message.dup) == (b"1", True)


def test_options_of_mqtt_5(broker):
    device = broker.device()
    with Client(broker, device.token) as client:
        client.subscribe("own", 1, noLocal=True)
        client.subscribe("kept", 1, retainAsPublished=True)
        client.publish("own", "no")
        properties = Properties(PacketTypes.PUBLISH)
        properties.ContentType = "text/plain"
        properties.ResponseTopic = "answers"
        properties.CorrelationData = b"7"
        properties.UserProperty = ("a", "b")
        properties.MessageExpiryInterval = 60
        client.publish("kept", "yes", 1, True, properties)
        message = client.message()
        assert (message.topic, message.retain) == ("kept", 1)
        got = message.properties
        assert (got.ContentType, got.ResponseTopic, got.CorrelationData) == ("text/plain", "answers", b"7")
        assert got.UserProperty == [("a", "b")] and 0 < got.MessageExpiryInterval <= 60
        client.client.unsubscribe(["kept", "never"])
        assert client.unsubscribed.get(timeout=WAIT_S) == [0, 0x11]


def test_an_expired_message_is_not_delivered(broker):
    device = broker.device()
    with Client(broker, device.token, client_id="late", expiry_s=600, clean=False) as client:
        client.subscribe("t", 1)
    properties = Properties(PacketTypes.PUBLISH)
    properties.MessageExpiryInterval = 1
    with Client(broker, broker.device().token) as client:
        client.publish("t", "short", 1, False, properties)
        client.publish("t", "long")
    time.sleep(2)
    with Client(broker, device.token, client_id="late", expiry_s=600, clean=False) as client:
        assert client.payloads(1) == ["long"]


def test_a_shared_subscription_divides_messages(broker):
    device = broker.device()
    with Client(broker, device.token) as one, Client(broker, device.token) as two:
        one.subscribe("$share/g/work", 1)
        two.subscribe("$share/g/work", 1)
        with Client(broker, device.token) as sender:
            for n in range(20):
                sender.publish("work", f"{n}")
        first, second = one.payloads(10), two.payloads(10)
        assert sorted(int(n) for n in first + second) == list(range(20))


@pytest.mark.parametrize("expiry_s", [0, 600])
def test_what_a_member_of_a_group_has_not_acknowledged_goes_to_another_one(broker, expiry_s):
    device = broker.device()
    first = Client(broker, device.token, client_id="first", expiry_s=expiry_s, manual=True)
    first.subscribe("$share/g/work", 1)
    with Client(broker, device.token) as sender:
        for n in range(5):
            sender.publish("work", f"{n}")
        got = [first.message() for _ in range(5)]
        first.client.ack(got[0].mid, 1)
        with Client(broker, device.token) as second:
            second.subscribe("$share/g/work", 1)
            first.vanish()
            if expiry_s:
                # A new session ends the old one.
                with Client(broker, device.token, client_id="first"):
                    assert second.payloads(4) == ["1", "2", "3", "4"]
            else:
                assert second.payloads(4) == ["1", "2", "3", "4"]
            sender.publish("work", "next")
            assert second.payloads(1) == ["next"]


def test_without_another_member_they_become_dead_letters(broker):
    receiver = broker.device()
    member = Client(broker, receiver.token, client_id="member", expiry_s=600, manual=True)
    member.subscribe("$share/g/work", 1)
    with Client(broker, broker.device().token) as sender:
        for n in range(3):
            sender.publish("work", f"{n}")
    assert member.message().payload == b"0"
    member.client.disconnect()
    member._end()
    with Client(broker, receiver.token, client_id="member"):
        query = f"SELECT count(*), max(reason) FROM dead_letter WHERE device = '{receiver.name}'"
        deadline = time.monotonic() + WAIT_S
        rows = [[0, None]]
        while rows[0][0] < 3 and time.monotonic() < deadline:
            time.sleep(0.1)
            rows = broker.api.post("/api/sql", {"query": query})["rows"]
    assert rows[0][0] == 3
    assert "$share/g/work" in rows[0][1]


def test_the_will_reaches_subscribers(broker):
    device = broker.device()
    with Client(broker, device.token) as watcher:
        watcher.subscribe("gone", 1)
        dying = Client(broker, device.token, client_id="dying", will=("gone", "bye", 1, True))
        dying.vanish()
        assert watcher.message().payload == b"bye"
        with Client(broker, device.token) as late:
            late.subscribe("gone", 1)
            assert late.message().retain == 1


def test_subscriptions_have_limits(broker):
    device = broker.device()
    with Client(broker, device.token) as client:
        client.client.subscribe([(f"t/{n}", 1) for n in range(1_030)])
        codes = client.subscribed.get(timeout=WAIT_S)
        assert codes[:1_024] == [1] * 1_024 and codes[1_024:] == [0x97] * 6
        assert client.subscribe("/" * 200, 0) == [0x97]
        assert client.publish("/" * 200, "x") == 0x90


def test_a_subscriber_that_never_acknowledges_does_not_stop_others(broker):
    device = broker.device()
    slow = Client(broker, device.token, manual=True)
    slow.subscribe("s", 1)
    with Client(broker, device.token) as fast, Client(broker, device.token) as sender:
        fast.subscribe("s", 1)
        for n in range(3_000):
            sender.client.publish("s", f"{n}", 1)
        assert fast.payloads(3_000) == [str(n) for n in range(3_000)]
    slow.vanish()


def test_what_a_full_queue_does_not_take_becomes_a_dead_letter_of_the_receiver(broker):
    receiver = broker.device()
    with Client(broker, receiver.token, client_id="full", expiry_s=600, clean=False) as client:
        client.subscribe("big", 1)
    payload = "x" * 900_000
    with Client(broker, broker.device().token) as sender:
        for _ in range(80):
            assert sender.publish("big", payload) == 0
    rows = broker.api.post("/api/sql", {"query": f"SELECT count(*), max(reason) FROM dead_letter WHERE device = '{receiver.name}'"})["rows"]
    # 64 MiB of the queue; each message counts with its topic and its place in memory.
    assert 80 - 75 <= rows[0][0] <= 80 - 73, rows
    assert "QUEUE_BYTES_MAX is 67108864" in rows[0][1]
    with Client(broker, receiver.token, client_id="full", expiry_s=600, clean=False) as client:
        assert client.payloads(80 - rows[0][0]) == [payload] * (80 - rows[0][0])

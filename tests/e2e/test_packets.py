"""Bytes that no client library would send, and replies byte by byte."""

import os
import resource
import struct

import pytest

from harness import packets, wait
from harness.packets import CONNACK, DISCONNECT, PUBACK, PUBREC, TELEMETRY, Wire

LEVELS = pytest.mark.parametrize("level", [4, 5], ids=["v311", "v5"])


def reply_to(server, data):
    """All packets the server answers with before it closes."""
    with Wire(server.mqtt) as wire:
        return wire.send(data).rest()


@pytest.mark.parametrize(("token", "code"), [("no-such-token", 5), ("", 4), (None, 4)])
def test_return_codes_of_version_3_1_1(server, token, code):
    assert reply_to(server, packets.connect(token, client_id="x")) == [(CONNACK, bytes([0, code]))]


@pytest.mark.parametrize(("token", "code"), [("no-such-token", 0x87), ("", 0x86), (None, 0x86)])
def test_reason_codes_of_version_5(server, token, code):
    [(kind, body)] = reply_to(server, packets.connect(token, 5))
    assert (kind, body[:2]) == (CONNACK, bytes([0, code]))


@LEVELS
def test_acknowledgements_leave_in_the_order_of_the_messages(server, device, level):
    count = 1_000
    with Wire(server.mqtt).session(device.token, level) as wire:
        stream = b"".join(packets.publish(b'{"n":%d}' % n, n + 1, level=level) for n in range(count))
        wire.send(stream)
        assert [struct.unpack("!H", wire.receive()[1][:2])[0] for _ in range(count)] == list(range(1, count + 1))


@LEVELS
def test_a_message_sent_again_with_qos_2_is_one_message(server, device, level):
    message = packets.publish(b'{"ts":1700000000000,"values":{"n":1}}', 9, level=level, qos=2)
    again = packets.publish(b'{"ts":1700000000000,"values":{"n":1}}', 9, level=level, qos=2, duplicate=True)
    with Wire(server.mqtt).session(device.token, level) as wire:
        for data in (message, again):
            kind, body = wire.send(data).receive()
            assert (kind, body[:2]) == (PUBREC, b"\0\x09")
        kind, body = wire.send(packets.acknowledge(packets.PUBREL, 9)).receive()
        assert (kind, body[:2]) == (packets.PUBCOMP, b"\0\x09")
    assert server.api.history(device.name, "n") == [(1_700_000_000_000, 1)]


def test_a_refused_message_of_qos_2_ends_with_its_reason(server, device):
    with Wire(server.mqtt).session(device.token, 5) as wire:
        kind, body = wire.send(packets.publish(b"no JSON", 9, level=5, qos=2)).receive()
        assert (kind, body[:3]) == (PUBREC, b"\0\x09\x99")
        # The identifier is free again: a new message under it is a new message.
        kind, body = wire.send(packets.publish(b'{"n":1}', 9, level=5, qos=2)).receive()
        assert (kind, body[:2], body[2:3] in (b"", b"\0")) == (PUBREC, b"\0\x09", True)
    assert server.api.latest(device.name, "n") == 1


def test_an_unfinished_exchange_of_one_device_hides_no_message_of_another(server):
    """Client identifiers are not unique in the field: two devices of one firmware may use the same."""
    one, two = server.device(), server.device()
    for device, value in ((one, 1), (two, 2)):
        connect = bytearray(packets.connect(device.token, client_id="firmware-default"))
        connect[9] &= ~0x02  # no clean session
        with Wire(server.mqtt) as wire:
            kind, body = wire.send(bytes(connect)).receive()
            assert (kind, body[1]) == (CONNACK, 0)
            kind, _ = wire.send(packets.publish(b'{"n":%d}' % value, 9, qos=2)).receive()
            assert kind == PUBREC
        assert server.api.latest(device.name, "n") == value


def test_a_packet_may_come_in_single_bytes(server, device):
    with Wire(server.mqtt) as wire:
        for byte in packets.connect(device.token) + packets.publish(b'{"n":1}', 1):
            wire.send(bytes([byte]))
        assert [wire.receive()[0] for _ in range(2)] == [CONNACK, PUBACK]


def test_a_topic_alias_stands_for_its_topic(server, device):
    alias = bytes([3, 0x23, 0, 1])

    def aliased(topic, packet_id, payload):
        return packets.packet(0x32, packets.text(topic) + struct.pack("!H", packet_id) + alias + payload)

    with Wire(server.mqtt).session(device.token, 5) as wire:
        wire.send(aliased(TELEMETRY, 1, b'{"n":1}') + aliased(b"", 2, b'{"n":2}'))
        for packet_id in (1, 2):
            kind, body = wire.receive()
            assert (kind, body[:2], body[2:3] in (b"", b"\0")) == (PUBACK, struct.pack("!H", packet_id), True)
    assert sorted(value for _, value in server.api.history(device.name, "n")) == [1, 2]


@LEVELS
def test_an_oversized_packet_closes_the_connection(server, device, level):
    with Wire(server.mqtt).session(device.token, level) as wire:
        # The length alone is enough: the server does not receive the rest.
        rest = wire.send(bytes([0x32]) + packets.length(2_000_000)).rest()
    assert rest == [] if level == 4 else (rest[0][0], rest[0][1][0]) == (DISCONNECT, 0x95)


@LEVELS
@pytest.mark.parametrize("topic", [b"\xff\xfe", b"a\xc0\x80b", b"\xed\xa0\x80", b"a\0b"], ids=["bytes", "overlong", "surrogate", "nul"])
def test_a_topic_that_is_not_utf8_closes_the_connection(server, device, level, topic):
    with Wire(server.mqtt).session(device.token, level) as wire:
        rest = wire.send(packets.publish(b"{}", 1, topic, level)).rest()
    if level == 5:
        assert (rest[0][0], rest[0][1][0]) in [(DISCONNECT, 0x81), (DISCONNECT, 0x82), (DISCONNECT, 0x90)]
    else:
        assert rest == []


@LEVELS
@pytest.mark.parametrize(
    "data",
    [
        bytes([0x32, 0xFF, 0xFF, 0xFF, 0xFF, 0x01]),
        bytes([0x00, 0x00]),
        bytes([0x36, 0x02, 0, 1]),
        packets.publish(b"{}", 0, b"v1/+/me", 4),
        bytes([0x62, 0x01, 0x00]),
    ],
    ids=["length of five bytes", "packet type 0", "qos 3", "wildcard in a topic", "cut packet id"],
)
def test_malformed_packets_close_the_connection_and_the_log_names_the_peer(server, device, level, data):
    with Wire(server.mqtt).session(device.token, level) as wire:
        peer = "%s:%d" % wire.socket.getsockname()
        rest = wire.send(data).rest()
    if level == 5:
        assert rest[-1][0] == DISCONNECT and rest[-1][1][0] >= 0x80
    else:
        assert rest == []
    wait.until(lambda: peer in server.log(), f"a log line that names {peer}")


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        packets.packet(0x10, packets.text("MQTT") + bytes([9, 2, 0, 60]) + packets.text("")),
        packets.packet(0x10, packets.text("MQIsdp") + bytes([4, 2, 0, 60]) + packets.text("x")),
        packets.publish(b"{}", 1),
        packets.PING,
    ],
    ids=["http", "version 9", "MQIsdp 4", "publish first", "ping first"],
)
def test_what_does_not_begin_with_connect_is_closed(server, data):
    rest = reply_to(server, data)
    assert all(kind == CONNACK and body[1] != 0 for kind, body in rest)


@LEVELS
def test_a_second_connect_closes_the_connection(server, device, level):
    with Wire(server.mqtt).session(device.token, level) as wire:
        rest = wire.send(packets.connect(device.token, level)).rest()
    assert rest == [] if level == 4 else (rest[0][0], rest[0][1][0]) == (DISCONNECT, 0x82)


def test_half_a_connect_then_silence_is_closed_in_time(own_server):
    server = own_server({"TACHO_MQTT_CONNECT_TIMEOUT_S": "1"})
    whole = packets.connect("token")
    with Wire(server.mqtt) as half, Wire(server.mqtt) as nothing:
        half.send(whole[: len(whole) // 2])
        assert (half.rest(), nothing.rest()) == ([], [])
    server.stop()


def test_half_a_publish_then_silence_is_closed_and_leaves_nothing(own_server):
    server = own_server()
    device = server.device()
    message = packets.publish(b'{"n":1}', 1)
    with Wire(server.mqtt, timeout_s=120).session(device.token) as wire:
        assert wire.send(message[: len(message) // 2]).rest() == []
    assert server.api.keys(device.name) == []
    server.stop()


@LEVELS
def test_a_client_that_breaks_its_keep_alive_is_closed(server, device, level):
    with Wire(server.mqtt).session(device.token, level, keep_alive=1) as wire:
        for _ in range(3):
            assert wire.send(packets.PING).receive() == (packets.PINGRESP, b"")
        rest = wire.rest()
    assert rest == [] if level == 4 else (rest[0][0], rest[0][1][0]) == (DISCONNECT, 0x8D)


def test_connections_that_never_send_connect_do_not_lock_others_out(own_server):
    count = int(os.environ.get("TACHO_SILENT_CONNECTIONS", "500"))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = count + 200
    assert hard == resource.RLIM_INFINITY or hard >= needed, f"{count} connections need an open-file limit of {needed}, it is {hard}"
    if soft != resource.RLIM_INFINITY and soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
    server = own_server({"TACHO_MQTT_CONNECT_TIMEOUT_S": "5"})
    device = server.device()
    silent = [Wire(server.mqtt) for _ in range(count)]
    with Wire(server.mqtt).session(device.token) as wire:
        assert wire.send(packets.publish(b'{"n":1}', 1)).receive()[0] == PUBACK
        for one in silent:
            assert one.rest() == []
            one.close()
        assert wire.send(packets.publish(b'{"n":2}', 2)).receive()[0] == PUBACK
    server.stop()

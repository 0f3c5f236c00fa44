"""Clients that misuse the broker: others still get their messages and acks, and memory is bounded."""

import re
from pathlib import Path

from harness import packets, wait
from harness.packets import PUBACK, Wire
from honest import HonestDevice

MIB = 1024 * 1024
RECEIVERS = 1_000
# The largest packet of the default settings is 1 MiB.
MESSAGE_BYTES = 1_000_000
SUBACK = 9


def subscribe(filters, packet_id=1, qos=0):
    body = packet_id.to_bytes(2, "big") + b"".join(packets.text(one) + bytes([qos]) for one in filters)
    return packets.packet(0x82, body)


def resident(server) -> int:
    """Bytes of memory that are the process's own."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(re.search(r"RssAnon:\s+(\d+) kB", status)[1]) * 1024


def topics_server(own_server, tmp_path):
    """A server whose devices may use all topics of their tenant."""
    config = tmp_path / "topics.toml"
    config.write_text('[mqtt]\npublish_topics = ["fleet/#"]\nsubscribe_topics = ["fleet/#"]\n')
    return own_server(config=config)


def test_a_large_message_for_clients_that_do_not_read_takes_the_memory_of_one(own_server, tmp_path):
    server = topics_server(own_server, tmp_path)
    device = server.device()
    silent = []
    for number in range(RECEIVERS):
        one = Wire(server.mqtt).session(device.token, client_id=f"silent-{number}", keep_alive=0)
        assert one.send(subscribe(["fleet/all"])).receive()[0] == SUBACK
        silent.append(one)
    before, peak = resident(server), 0
    with HonestDevice(server), Wire(server.mqtt).session(device.token, client_id="sender") as sender:
        for number in range(1, 11):
            message = packets.publish(bytes([65 + number]) * MESSAGE_BYTES, number, topic=b"fleet/all")
            assert sender.send(message).receive()[0] == PUBACK
            peak = max(peak, resident(server))
    # Ten messages, and what each connection needs for itself.
    bound = 10 * MIB + RECEIVERS * 16 * 1024 + 32 * MIB
    print(f"{RECEIVERS} clients that do not read: {(peak - before) / MIB:.0f} MiB more, the bound is {bound / MIB:.0f} MiB")
    assert peak - before < bound
    # One that reads late gets all that it was sent, whole and in order.
    late = silent[0]
    got = [late.receive() for _ in range(10)]
    assert [body[11:] for _, body in got] == [bytes([65 + number]) * MESSAGE_BYTES for number in range(1, 11)]
    for one in silent:
        one.close()
    wait.until(lambda: resident(server) < before + 48 * MIB, "memory that is free again")
    server.stop()


def test_filters_of_wildcards_do_not_make_every_message_expensive(own_server, tmp_path):
    """A device subscribes to all filters of 12 levels that are `a` or `+`, and publishes to the one topic that they all match in part."""
    server = topics_server(own_server, tmp_path)
    device = server.device()
    levels = 12
    filters = [
        "/".join(["fleet", *("+" if number >> level & 1 else "a" for level in range(levels)), "b"]) for number in range(2**levels)
    ]
    accepted = 0
    sessions = []
    with HonestDevice(server):
        for first in range(0, len(filters), 1_000):
            one = Wire(server.mqtt).session(device.token, client_id=f"filters-{first}")
            for begin in range(first, first + 1_000, 100):
                some = filters[begin : begin + 100]
                if some:
                    kind, body = one.send(subscribe(some)).receive()
                    assert kind == SUBACK
                    accepted += sum(code < 0x80 for code in body[2:])
            sessions.append(one)
        topic = "/".join(["fleet", *["a"] * levels, "c"]).encode()
        with Wire(server.mqtt).session(device.token, client_id="publisher") as sender:
            for number in range(1_000):
                assert sender.send(packets.publish(b"x", number + 1, topic=topic)).receive()[0] == PUBACK
    print(f"{accepted} of {len(filters)} filters were accepted")
    assert accepted < 4_096, "the steps of a match are bounded"
    for one in sessions:
        one.close()
    server.stop()

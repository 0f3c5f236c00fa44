"""Devices that invent names: the server still serves other devices of the same table, also with new keys."""

import csv
import io
import json

from harness import packets
from harness.packets import PUBACK, Wire
from honest import HonestDevice

MESSAGES, KEYS = 60, 1_000


def ask(server, sql):
    """The rows of an answer, as texts by column."""
    reply = server.api.session.post(f"{server.url}/api/sql?format=csv", data=sql, timeout=120)
    assert reply.ok, reply.text
    return list(csv.DictReader(io.StringIO(reply.text)))


def test_a_device_that_invents_names_leaves_the_others_their_columns(own_server):
    server = own_server()
    attacker, late = server.device(), server.device()
    payloads = [json.dumps({"known": n, **{f"invented {n} {k}": k for k in range(KEYS)}}).encode() for n in range(MESSAGES)]
    with HonestDevice(server):
        with Wire(server.mqtt, timeout_s=120).session(attacker.token) as wire:
            wire.send(b"".join(packets.publish(payload, n + 1) for n, payload in enumerate(payloads)))
            # MQTT 3.1.1 has no other answer. The table dead_letter has the refused messages.
            assert all(wire.receive()[0] == PUBACK for _ in payloads)
        # A later device sends keys and types that no device has sent before.
        server.api.send(late.token, {"honest": 1, "known": "text"})
        # Over HTTP the attacker cannot add columns either; the server stores its known key.
        server.api.send(attacker.token, {"known": MESSAGES, "invented over http": 1})
    assert {key: points[0]["value"] for key, points in server.api.values(late.name).items()} == {"honest": 1, "known": "text"}
    assert [value for _, value in server.api.history(attacker.name, "known")] == list(range(MESSAGES + 1))

    columns = int(ask(server, "SELECT count(*) AS n FROM information_schema.columns WHERE table_name = 'telemetry'")[0]["n"])
    assert columns < 400, "a few of the honest ones and at most 300 of the attacker"
    assert len(ask(server, "SELECT * FROM telemetry LIMIT 1")[0]) == columns
    # Every invented value is in a column or in a dead letter.
    dead_letters = ask(server, f"SELECT payload, reason FROM dead_letter WHERE device = '{attacker.name}'")
    refused = [(key, value) for dead_letter in dead_letters for row in json.loads(dead_letter["payload"]) for key, value in row["values"].items()]
    stored = [(key, points[0]["value"]) for key, points in server.api.values(attacker.name).items() if key != "known"]
    sent = [(f"invented {n} {k}", k) for n in range(MESSAGES) for k in range(KEYS)] + [("invented over http", 1)]
    assert sorted(refused + stored) == sorted(sent)
    assert all("new_columns_per_minute_max" in dead_letter["reason"] and attacker.name in dead_letter["reason"] for dead_letter in dead_letters)
    server.stop()


def test_names_with_every_type_and_odd_suffixes_do_not_stop_the_server(own_server):
    """One name has five types; a name that ends as a readers' name does makes the store look at all of them."""
    server = own_server()
    attackers = [server.device() for _ in range(4)]
    kinds = [True, 1, 2.5, "text", [1]]
    with HonestDevice(server):
        for n in range(60):
            for device, value in zip(attackers, kinds[n % 5 :] + kinds):
                server.api.send(device.token, {"known": n, **{f"k{k}{':i64' * (k % 3)}": value for k in range(100)}})
    for device in attackers:
        assert server.api.latest(device.name, "known") == 59
    columns = int(ask(server, "SELECT count(*) AS n FROM information_schema.columns WHERE table_name = 'telemetry'")[0]["n"])
    assert columns < 1_300
    server.stop()

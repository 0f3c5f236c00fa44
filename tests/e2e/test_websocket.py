"""Live values over ThingsBoard's WebSocket for telemetry."""

import json

import pytest
import websocket

START = 1_700_000_000_000


@pytest.fixture
def live(server):
    """An open, authorised WebSocket."""
    url = f"ws://127.0.0.1:{server.http}/api/ws/plugins/telemetry?token={server.api.token}"
    connection = websocket.create_connection(url, timeout=60)
    yield connection
    connection.close()


def subscribe(live, server, device, command, keys=None, **more):
    """Sends one subscription and returns the first reply to it."""
    wanted = {
        "entityType": "DEVICE",
        "entityId": server.api.device_id(device.name),
        "scope": "LATEST_TELEMETRY",
        "cmdId": command,
    } | more
    if keys:
        wanted["keys"] = keys
    live.send(json.dumps({"tsSubCmds": [wanted], "historyCmds": [], "attrSubCmds": []}))
    return update(live, command)


def update(live, command):
    """The next update, which must be of this subscription and no error."""
    message = json.loads(live.recv())
    assert message["subscriptionId"] == command, message
    assert message["errorCode"] == 0, message
    return message


def values(message):
    """{key: [value, ...]} of an update."""
    return {key: [value for _, value in points] for key, points in message["data"].items()}


def test_the_subscription_begins_with_the_latest_values(server, device, live):
    server.api.send(device.token, {"ts": START, "values": {"speed": 1, "other": 2}})
    first = subscribe(live, server, device, 1, keys="speed")
    assert first["data"] == {"speed": [[START, "1"]]}
    assert first["latestValues"] == {"speed": START}


def test_a_late_value_does_not_replace_the_latest(server, device, live):
    server.api.send(device.token, {"ts": START + 10, "values": {"speed": 1}})
    subscribe(live, server, device, 1, keys=["speed"])
    for ts, value in [(START + 5, "late"), (START + 20, "new"), (START + 15, "late"), (START + 20, "corrected")]:
        server.api.send(device.token, {"ts": ts, "values": {"speed": value}})
    told = []
    while "corrected" not in told:
        told += values(update(live, 1))["speed"]
    assert "late" not in told and told[-1] == "corrected"


def test_updates_arrive_in_order_and_only_of_the_wanted_keys(server, device, live):
    subscribe(live, server, device, 7, keys="speed")
    for n in range(5):
        server.api.send(device.token, {"ts": START + n, "values": {"speed": n, "other": n}})
        assert update(live, 7)["data"] == {"speed": [[START + n, str(n)]]}


def test_without_keys_every_key_is_live(server, device, live):
    subscribe(live, server, device, 1)
    server.api.send(device.token, {"ts": START, "values": {"brand-new": True}})
    assert values(update(live, 1)) == {"brand-new": ["true"]}


def test_a_value_is_readable_when_its_update_arrives(server, device, live):
    subscribe(live, server, device, 1)
    server.api.send(device.token, {"ts": START, "values": {"n": 5}})
    update(live, 1)
    assert server.api.latest(device.name, "n") == 5


def test_after_unsubscribe_nothing_more_comes(server, device, live):
    subscribe(live, server, device, 1, keys="n")
    stop = {"cmdId": 1, "unsubscribe": True, "entityType": "DEVICE", "entityId": server.api.device_id(device.name)}
    live.send(json.dumps({"tsSubCmds": [stop]}))
    # The next subscription's messages would be behind any update of the first.
    subscribe(live, server, device, 2, keys="n")
    for n in range(3):
        server.api.send(device.token, {"ts": START + n, "values": {"n": n}})
        update(live, 2)


def test_updates_of_two_devices_on_one_socket_are_distinguished(server, live):
    devices = {1: server.device(), 2: server.device()}
    for command, device in devices.items():
        subscribe(live, server, device, command)
    for command in (2, 1, 2):
        server.api.send(devices[command].token, {"of": command})
        assert values(update(live, command)) == {"of": [str(command)]}


def test_an_unknown_device_is_an_error_of_that_command_only(server, device, live):
    wanted = {"entityType": "DEVICE", "entityId": "00000000-0000-4000-8000-000000000000", "scope": "LATEST_TELEMETRY", "cmdId": 9}
    live.send(json.dumps({"tsSubCmds": [wanted]}))
    reply = json.loads(live.recv())
    assert reply["subscriptionId"] == 9
    assert reply["errorCode"] != 0 and len(reply["errorMsg"]) > 15
    subscribe(live, server, device, 1)


@pytest.mark.parametrize("token", ["", "nonsense"])
def test_a_wrong_token_is_not_let_in(server, token):
    url = f"ws://127.0.0.1:{server.http}/api/ws/plugins/telemetry?token={token}"
    # Browsers cannot read the status of a refused handshake, so the reason comes as a close frame: 1008, policy.
    connection = websocket.create_connection(url, timeout=60)
    try:
        opcode, data = connection.recv_data()
    finally:
        # `close` would leave the socket open after a close frame of the server.
        connection.shutdown()
    assert opcode == websocket.ABNF.OPCODE_CLOSE
    assert int.from_bytes(data[:2]) == 1008
    assert len(data[2:]) > 15


def test_invalid_messages_do_not_stop_the_server(server, device, live):
    live.send("{")
    try:
        reply = json.loads(live.recv() or "{}")
        assert reply.get("errorCode") != 0
    except websocket.WebSocketException:
        pass
    server.api.send(device.token, {"n": 1})
    assert server.api.latest(device.name, "n") == 1

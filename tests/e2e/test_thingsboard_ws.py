"""ThingsBoard's WebSocket `/api/ws` as its dashboards use it, against the real server."""

import json
import threading

import pytest
import requests
import websocket

START = 1_700_000_000_000


class Socket:
    """An open WebSocket that has logged in with its first message."""

    def __init__(self, server, token=None, commands=()):
        self.connection = websocket.create_connection(f"ws://127.0.0.1:{server.http}/api/ws", timeout=60)
        login = {"authCmd": {"cmdId": 0, "token": token or server.api.token}, "cmds": list(commands)}
        self.connection.send(json.dumps(login))

    def send(self, *commands):
        self.connection.send(json.dumps({"cmds": list(commands)}))

    def next(self, command):
        """The next message, which is of this command."""
        message = json.loads(self.connection.recv())
        assert message.get("cmdId", message.get("subscriptionId")) == command, message
        return message

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()
        # After a close frame of the server the library's close() leaves the socket open.
        self.connection.shutdown()


def key(kind, name):
    return {"type": kind, "key": name}


def of_device(device_id, values=()):
    """A query of one device."""
    return {
        "entityFilter": {"type": "singleEntity", "singleEntity": {"entityType": "DEVICE", "id": device_id}},
        "pageLink": {"page": 0, "pageSize": 10},
        "entityFields": [key("ENTITY_FIELD", "name")],
        "latestValues": list(values),
    }


def entity_data(command, query=None, **parts):
    return {"type": "ENTITY_DATA", "cmdId": command, "query": query} | parts


def test_a_dashboards_widget_begins_with_values_and_continues_live(server, device):
    server.api.send(device.token, {"ts": START, "values": {"speed": 1}})
    device_id = server.api.device_id(device.name)
    speed = key("TIME_SERIES", "speed")
    with Socket(server, commands=[entity_data(1, of_device(device_id, [speed]))]) as socket:
        first = socket.next(1)
        assert (first["errorCode"], first["cmdUpdateType"]) == (0, "ENTITY_DATA")
        row = first["data"]["data"][0]
        assert row["entityId"] == {"entityType": "DEVICE", "id": device_id}
        assert row["latest"]["ENTITY_FIELD"]["name"]["value"] == device.name
        assert row["latest"]["TIME_SERIES"]["speed"] == {"ts": START, "value": "1"}
        # As ThingsBoard's page does: the second command extends the first.
        socket.send(entity_data(1, latestCmd={"keys": [speed]}))
        assert socket.next(1)["update"][0]["latest"]["TIME_SERIES"]["speed"]["value"] == "1"
        server.api.send(device.token, {"ts": START + 1, "values": {"speed": 2}})
        assert socket.next(1)["update"][0]["latest"]["TIME_SERIES"]["speed"] == {"ts": START + 1, "value": "2"}


def test_history_and_live_values_have_no_gap_and_no_repetition(server, device):
    """A thread sends numbered points while a time series begins in the middle of them."""
    device_id = server.api.device_id(device.name)
    count, begun = 400, threading.Event()

    def send():
        with requests.Session() as session:
            for n in range(count):
                body = {"ts": START + n, "values": {"n": n}}
                reply = session.post(f"{server.url}/api/v1/{device.token}/telemetry", json=body, timeout=60)
                assert reply.status_code == 200
                if n == count // 4:
                    begun.set()

    sender = threading.Thread(target=send)
    sender.start()
    assert begun.wait(60)
    part = {"keys": ["n"], "startTs": START, "timeWindow": 10**12, "limit": 10_000, "agg": "NONE"}
    with Socket(server, commands=[entity_data(1, of_device(device_id), tsCmd=part)]) as socket:
        message = socket.next(1)
        seen = [int(point["value"]) for point in message["data"]["data"][0]["timeseries"].get("n", [])]
        while len(seen) < count:
            for row in socket.next(1)["update"]:
                seen += [int(point["value"]) for point in row["timeseries"].get("n", [])]
    sender.join()
    assert sorted(seen) == list(range(count))


def test_attributes_are_live(server, device):
    device_id = server.api.device_id(device.name)
    path = f"/api/plugins/telemetry/DEVICE/{device_id}/attributes/SERVER_SCOPE"
    server.api.post(path, {"site": "north"})
    wanted = {"type": "ATTRIBUTES", "cmdId": 4, "entityType": "DEVICE", "entityId": device_id}
    with Socket(server, commands=[wanted | {"keys": "site", "scope": "SERVER_SCOPE"}]) as socket:
        assert socket.next(4)["data"]["site"][0][1] == "north"
        server.api.post(path, {"site": "south", "other": 1})
        assert socket.next(4)["data"]["site"][0][1] == "south"


def test_counts_follow_the_entities(own_server):
    server = own_server()
    query = {"entityFilter": {"type": "entityType", "entityType": "DEVICE"}}
    server.api.post("/api/device", {"name": "one"})
    with Socket(server, commands=[{"type": "ENTITY_COUNT", "cmdId": 2, "query": query}]) as socket:
        assert socket.next(2)["count"] == 1
        server.api.post("/api/device", {"name": "two"})
        assert socket.next(2)["count"] == 2


@pytest.mark.parametrize(
    ("command", "part"),
    [
        (entity_data(9, of_device("00000000-0000-0000-0000-000000000001")), None),
        (entity_data(9, {"entityFilter": {"type": "apiUsageState"}, "pageLink": {"page": 0, "pageSize": 1}}), "apiUsageState"),
        ({"type": "ENTITY_DATA", "cmdId": 9, "query": {"entityFilter": {"type": "deviceType"}}}, "pageLink"),
        ({"type": "NOTIFICATIONS", "cmdId": 9}, "NOTIFICATIONS"),
        (entity_data(9, latestCmd={"keys": []}), "no subscription"),
    ],
)
def test_commands_that_do_not_fit_get_an_error_or_nothing_of_others(server, command, part):
    with Socket(server, commands=[command]) as socket:
        message = json.loads(socket.connection.recv())
        if part is None:
            assert message["data"]["data"] == [] and message["data"]["totalElements"] == 0, message
        else:
            assert message["errorCode"] != 0 and part in message["errorMsg"], message


def test_ten_thousand_commands_in_a_message_are_refused_with_the_limit(server, device):
    one = entity_data(1, of_device(server.api.device_id(device.name)))
    command = json.dumps({"type": "ENTITY_DATA_UNSUBSCRIBE", "cmdId": 1})
    with Socket(server) as socket:
        socket.connection.send('{"cmds":[' + ",".join([command] * 10_001) + "]}")
        message = json.loads(socket.connection.recv())
        assert message["errorCode"] != 0 and "10000" in message["errorMsg"], message
        socket.send(one)
        assert socket.next(1)["errorCode"] == 0


def test_a_customers_user_sees_only_the_customers_devices(own_server):
    server = own_server()
    api = server.api
    customer = api.post("/api/customer", {"title": "Acme"})["id"]["id"]
    devices = {name: api.post(f"/api/device?accessToken={name}", {"name": name})["id"]["id"] for name in ("mine", "theirs")}
    api.post(f"/api/customer/{customer}/device/{devices['mine']}", {})
    user = {"email": "eve@acme.example", "authority": "CUSTOMER_USER", "customerId": {"entityType": "CUSTOMER", "id": customer}}
    eve = api.post("/api/user?sendActivationMail=false", user)["id"]["id"]
    link = requests.get(f"{server.url}/api/user/{eve}/activationLink", headers=api.session.headers, timeout=60).text
    activate = {"activateToken": link.split("activateToken=")[1], "password": "a long password"}
    token = requests.post(f"{server.url}/api/noauth/activate", json=activate, timeout=60).json()["token"]
    for name in devices:
        api.send(name, {"ts": START, "values": {"speed": 1}})
    every = {
        "entityFilter": {"type": "entityType", "entityType": "DEVICE"},
        "pageLink": {"page": 0, "pageSize": 10},
        "latestValues": [key("TIME_SERIES", "speed")],
    }
    commands = [
        entity_data(1, every),
        entity_data(2, of_device(devices["theirs"])),
        {"type": "TIMESERIES", "cmdId": 3, "entityType": "DEVICE", "entityId": devices["theirs"], "keys": "speed"},
    ]
    with Socket(server, token=token, commands=commands) as socket:
        assert [row["entityId"]["id"] for row in socket.next(1)["data"]["data"]] == [devices["mine"]]
        assert socket.next(2)["data"]["data"] == []
        refused = socket.next(3)
        assert refused["errorCode"] != 0 and "no device" in refused["errorMsg"], refused


def test_a_wrong_token_closes_the_socket(server):
    with Socket(server, token="wrong") as socket:
        opcode, data = socket.connection.recv_data(control_frame=True)
        while opcode != websocket.ABNF.OPCODE_CLOSE:
            opcode, data = socket.connection.recv_data(control_frame=True)
        assert int.from_bytes(data[:2], "big") == 1008

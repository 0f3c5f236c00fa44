"""Alarm rules of a device profile: from MQTT to REST, and through a SIGKILL."""

import random

from harness import packets, wait
from harness.packets import PUBACK, Wire


def predicate(operation, value):
    """A filter of the telemetry `temperature`."""
    return {
        "key": {"type": "TIME_SERIES", "key": "temperature"},
        "valueType": "NUMERIC",
        "value": None,
        "predicate": {
            "type": "NUMERIC",
            "operation": operation,
            "value": {"defaultValue": value, "userValue": None, "dynamicValue": None},
        },
    }


def rule(operation, value, spec):
    """A rule with one filter."""
    return {
        "condition": {"condition": [predicate(operation, value)], "spec": spec},
        "schedule": None,
        "alarmDetails": "temperature is ${temperature}",
        "dashboardId": None,
    }


SIMPLE = {"type": "SIMPLE"}


def set_rules(server, spec=SIMPLE):
    """Gives the default profile a rule: above 90 is critical, below 50 the end."""
    api = server.api
    info = api.get("/api/deviceProfileInfo/default")
    profile = api.get(f"/api/deviceProfile/{info['id']['id']}")
    profile["profileData"]["alarms"] = [
        {
            "id": "hot",
            "alarmType": "Too hot",
            "createRules": {"CRITICAL": rule("GREATER", 90, spec)},
            "clearRule": rule("LESS", 50, SIMPLE),
            "propagate": False,
        }
    ]
    api.post("/api/deviceProfile", profile)


class Publisher:
    """A device over MQTT that waits for each ack."""

    def __init__(self, server, device):
        self.wire = Wire(server.mqtt).session(device.token)
        self.number = 0

    def temperature(self, value, ts):
        """Publishes a value; it is durable when this returns."""
        self.number += 1
        payload = b'{"ts":%d,"values":{"temperature":%d}}' % (ts, value)
        self.wire.send(packets.publish(payload, self.number))
        kind, _ = self.wire.receive()
        assert kind == PUBACK

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.wire.close()


def alarms(server, **params):
    """All alarms, the oldest first."""
    params = {"pageSize": 1000, "page": 0, "sortProperty": "createdTime", "sortOrder": "ASC"} | params
    return server.api.get("/api/v2/alarms", **params)["data"]


START = 1_700_000_000_000


def test_a_value_of_a_device_raises_an_alarm_that_a_user_handles(own_server):
    server = own_server()
    set_rules(server)
    device = server.device()
    with Publisher(server, device) as publisher:
        publisher.temperature(80, START)
        publisher.temperature(95, START + 1)
        publisher.temperature(99, START + 2)
        (alarm,) = wait.until(lambda: alarms(server), "the alarm")
        assert (alarm["type"], alarm["severity"], alarm["status"]) == ("Too hot", "CRITICAL", "ACTIVE_UNACK")
        assert alarm["originatorName"] == device.name
        assert alarm["details"]["data"].startswith("temperature is 9")
        path = f"/api/alarm/{alarm['id']['id']}"
        assert server.api.post(f"{path}/ack", None)["status"] == "ACTIVE_ACK"
        publisher.temperature(40, START + 3)
        wait.until(lambda: alarms(server)[0]["status"] == "CLEARED_ACK", "the end of the alarm")
        publisher.temperature(95, START + 4)
        wait.until(lambda: len(alarms(server)) == 2, "the next alarm")
    assert len(alarms(server, statusList="ACTIVE")) == 1


def test_an_alarm_survives_a_kill_and_is_not_raised_again(own_server):
    server = own_server()
    set_rules(server)
    device = server.device()
    with Publisher(server, device) as publisher:
        publisher.temperature(95, START)
        (before,) = wait.until(lambda: alarms(server), "the alarm")
        server.kill()
    server.start()
    with Publisher(server, device) as publisher:
        publisher.temperature(96, START + 1)
    wait.until(lambda: "tacho_alarm_events_total 1" in server.api.metrics(), "the evaluation")
    (after,) = alarms(server)
    assert after["id"] == before["id"]
    assert after["status"] == "ACTIVE_UNACK"


def test_every_condition_is_one_alarm_through_kills(own_server):
    """The device crosses the limit again and again; the server is killed at random moments between two acks."""
    choose = random.Random(7)
    server = own_server()
    set_rules(server)
    device = server.device()
    ts, crossed = START, 0
    for _ in range(4):
        with Publisher(server, device) as publisher:
            for _ in range(choose.randint(1, 40)):
                publisher.temperature(95, ts)
                publisher.temperature(40, ts + 1)
                ts += 2
                crossed += 1
            server.kill()
        server.start()
    wait.until(lambda: len(alarms(server, statusList="CLEARED")) >= crossed, f"{crossed} alarms")
    assert len(alarms(server)) == crossed


def test_repeating_counts_on_after_a_kill(own_server):
    server = own_server()
    set_rules(server, {"type": "REPEATING", "predicate": {"defaultValue": 3, "userValue": None, "dynamicValue": None}})
    device = server.device()
    with Publisher(server, device) as publisher:
        publisher.temperature(95, START)
        publisher.temperature(95, START + 1)
        server.kill()
    server.start()
    assert alarms(server) == []
    with Publisher(server, device) as publisher:
        publisher.temperature(95, START + 2)
    (alarm,) = wait.until(lambda: alarms(server), "the alarm at the third event")
    assert alarm["status"] == "ACTIVE_UNACK"


def test_a_limit_of_the_customer_decides_and_the_alarm_is_found_in_the_depot(own_server):
    """The threshold is an attribute of the device's customer, else of the tenant; the alarm propagates to what contains the device."""
    server = own_server()
    set_rules(server)
    api = server.api
    info = api.get("/api/deviceProfileInfo/default")
    profile = api.get(f"/api/deviceProfile/{info['id']['id']}")
    (alarm_type,) = profile["profileData"]["alarms"]
    alarm_type |= {"propagate": True, "propagateRelationTypes": ["Contains"]}
    value = alarm_type["createRules"]["CRITICAL"]["condition"]["condition"][0]["predicate"]["value"]
    value["dynamicValue"] = {"sourceType": "CURRENT_CUSTOMER", "sourceAttribute": "limit", "inherit": True}
    api.post("/api/deviceProfile", profile)
    device = server.device()
    device_id = {"entityType": "DEVICE", "id": api.device_id(device.name)}
    depot = api.post("/api/asset", {"name": "depot", "type": "building"})["id"]
    api.post("/api/relation", {"from": depot, "to": device_id, "type": "Contains", "typeGroup": "COMMON"})
    customer = api.post("/api/customer", {"title": "acme"})["id"]
    tenant = api.get("/api/auth/user")["tenantId"]

    def limit(entity, value):
        api.post(f"/api/plugins/telemetry/{entity['entityType']}/{entity['id']}/SERVER_SCOPE", {"limit": value})

    def in_depot():
        page = api.get(f"/api/alarm/ASSET/{depot['id']}", pageSize=10, page=0)
        return [alarm["status"] for alarm in page["data"]]

    limit(tenant, 70)
    ts = START
    with Publisher(server, device) as publisher:

        def reports(value, statuses):
            nonlocal ts
            ts += 1
            publisher.temperature(value, ts)
            return in_depot() == statuses

        # A change of such an attribute counts from some row on.
        wait.until(lambda: reports(80, ["ACTIVE_UNACK"]), "an alarm above the limit of the tenant")
        wait.until(lambda: reports(40, ["CLEARED_UNACK"]), "its end")
        limit(customer, 55)
        api.post(f"/api/customer/{customer['id']}/device/{device_id['id']}", None)
        wait.until(lambda: reports(60, ["ACTIVE_UNACK", "CLEARED_UNACK"]), "an alarm above the limit of the customer")

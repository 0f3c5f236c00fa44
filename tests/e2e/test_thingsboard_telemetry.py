"""ThingsBoard's telemetry controller with ThingsBoard's own REST client: values, attributes, deletions, the state of devices."""

import time

import pytest
from tb_rest_client.models.models_ce import DeviceId
from tb_rest_client.rest import ApiException
from tb_rest_client.rest_client_ce import RestClientCE

from test_broker import WAIT_S, Client

BASE_MS = 1_732_540_000_000
ADMIN = "admin@tachograph.local"


@pytest.fixture
def client(server):
    with RestClientCE(base_url=server.url) as client:
        client.login(username=ADMIN, password=server.password)
        yield client


def device_id(server, device):
    return DeviceId(id=server.api.device_id(device.name), entity_type="DEVICE")


def attributes(client, entity, scope, keys=None):
    found = client.get_attributes_by_scope(entity_id=entity, scope=scope, keys=keys)
    return {one["key"]: one["value"] for one in found}


def test_values_are_written_read_and_deleted(server, device, client):
    entity = device_id(server, device)
    rows = [{"ts": BASE_MS + n * 1000, "values": {"speed": n, "note": f"n{n}"}} for n in range(10)]
    client.save_entity_telemetry(entity, "ANY", rows)
    client.save_entity_telemetry_with_ttl(entity, "ANY", 0, {"ts": BASE_MS + 10_000, "values": {"speed": 10.5}})
    assert client.get_timeseries_keys_v1(entity) == ["note", "speed"]
    latest = client.get_latest_timeseries(entity, "speed,note", use_strict_data_types=True)
    assert latest == {"speed": [{"ts": BASE_MS + 10_000, "value": 10.5}], "note": [{"ts": BASE_MS + 9_000, "value": "n9"}]}
    assert client.get_latest_timeseries(entity)["speed"] == [{"ts": BASE_MS + 10_000, "value": "10.5"}]
    history = client.get_timeseries(entity, "speed", BASE_MS, BASE_MS + 3_000, limit=2, order_by="ASC", use_strict_data_types=True)
    assert history == {"speed": [{"ts": BASE_MS, "value": 0}, {"ts": BASE_MS + 1_000, "value": 1}]}
    sums = client.get_timeseries(entity, "speed", BASE_MS, BASE_MS + 10_000, interval=4_000, agg="SUM", order_by="ASC")
    # The last interval ends with the range.
    assert sums == {"speed": [{"ts": BASE_MS + at, "value": value} for at, value in [(2_000, "6"), (6_000, "22"), (9_000, "17")]]}

    client.delete_entity_timeseries(entity, "speed", delete_all_data_for_keys=False, start_ts=BASE_MS, end_ts=BASE_MS + 10_000)
    assert client.get_timeseries(entity, "speed", 0, BASE_MS * 2, use_strict_data_types=True) == {"speed": [{"ts": BASE_MS + 10_000, "value": 10.5}]}
    client.delete_entity_timeseries(entity, "speed,note", delete_all_data_for_keys=True)
    assert client.get_timeseries(entity, "speed,note", 0, BASE_MS * 2) == {}


def test_months_of_a_time_zone(server, device, client):
    entity = device_id(server, device)
    march, april = 1_709_247_600_000, 1_711_922_400_000  # in Berlin; summer time begins between them
    client.save_entity_telemetry(entity, "ANY", [{"ts": ts, "values": {"a": 1}} for ts in (march - 1, march, april - 1, april)])
    found = client.get_timeseries(
        entity, "a", march - 1_000, april + 1_000, interval_type="MONTH", time_zone="Europe/Berlin", agg="COUNT", order_by="ASC"
    )
    middles = [march - 500, march + (april - march) // 2, april + 500]
    assert found == {"a": [{"ts": ts, "value": count} for ts, count in zip(middles, ["1", "2", "1"])]}
    for wrong in [{"interval_type": "MONTH", "time_zone": "Mars/Olympus"}, {"interval": 1}]:
        with pytest.raises(ApiException) as refused:
            client.get_timeseries(entity, "a", march - 31_536_000_000, april, agg="COUNT", **wrong)
        assert refused.value.status == 400


def test_attributes_of_all_scopes(server, device, client):
    entity = device_id(server, device)
    reply = server.api.session.post(f"{server.url}/api/v1/{device.token}/attributes", json={"firmware": "1.2"}, timeout=WAIT_S)
    assert reply.ok, reply.text
    client.save_entity_attributes_v2(entity, "SHARED_SCOPE", {"limit": 80})
    client.save_entity_attributes_v1(entity, "SERVER_SCOPE", {"site": {"x": 1}, "on": True})
    client.save_device_attributes(entity, "SERVER_SCOPE", {"half": 0.5})
    assert attributes(client, entity, "CLIENT_SCOPE") == {"firmware": "1.2"}
    assert attributes(client, entity, "SHARED_SCOPE") == {"limit": 80}
    own = {"site": {"x": 1}, "on": True, "half": 0.5}
    assert attributes(client, entity, "SERVER_SCOPE", "site,on,half") == own
    assert set(client.get_attribute_keys_by_scope(entity, "SHARED_SCOPE")) == {"limit"}
    assert {"firmware", "limit", "site", "on", "half"} <= set(client.get_attribute_keys(entity))
    assert {one["key"] for one in client.get_attributes(entity, "limit,firmware")} == {"limit", "firmware"}
    client.delete_entity_attributes(entity, "SERVER_SCOPE", "site")
    client.delete_device_attributes(entity, "CLIENT_SCOPE", "firmware")
    assert attributes(client, entity, "CLIENT_SCOPE") == {}
    assert "site" not in attributes(client, entity, "SERVER_SCOPE")


def state(server, device):
    found = server.api.get(f"/api/plugins/telemetry/DEVICE/{server.api.device_id(device.name)}/values/attributes/SERVER_SCOPE")
    return {one["key"]: one["value"] for one in found}


def wait_for(server, device, wanted):
    """The state when `wanted` holds."""
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        found = state(server, device)
        if wanted(found):
            return found
        time.sleep(0.05)
    raise AssertionError(found)


def set_timeout(server, device, milliseconds):
    path = f"/api/plugins/telemetry/DEVICE/{server.api.device_id(device.name)}/SERVER_SCOPE"
    reply = server.api.session.post(server.url + path, json={"inactivityTimeout": milliseconds}, timeout=WAIT_S)
    assert reply.ok, reply.text


def test_the_state_of_a_device(own_server):
    server = own_server()
    device, silent = server.device(), server.device()
    before = int(time.time() * 1000)
    client = Client(server, device.token)
    connected = wait_for(server, device, lambda found: found.get("active") and "lastConnectTime" in found)
    assert before <= connected["lastConnectTime"] <= connected["lastActivityTime"] <= time.time() * 1000 + 1_000
    client.publish("v1/devices/me/telemetry", '{"a": 1}')
    heard = wait_for(server, device, lambda found: found["lastActivityTime"] > connected["lastActivityTime"])
    client.client.disconnect()
    gone = wait_for(server, device, lambda found: "lastDisconnectTime" in found)
    assert gone["active"] and gone["lastDisconnectTime"] >= heard["lastActivityTime"]

    set_timeout(server, device, 1_000)
    inactive = wait_for(server, device, lambda found: not found["active"])
    assert inactive["inactivityAlarmTime"] >= inactive["lastActivityTime"] + 1_000
    reply = server.api.session.post(f"{server.url}/api/v1/{device.token}/telemetry", json={"a": 2}, timeout=WAIT_S)
    assert reply.ok, reply.text
    wait_for(server, device, lambda found: found["active"] and found["lastActivityTime"] > inactive["lastActivityTime"])

    # A device that was active before a crash, and stays silent, becomes inactive after it.
    set_timeout(server, device, 3_600_000)
    wait_for(server, device, lambda found: found["active"])
    server.kill()
    server.start()
    assert state(server, device)["active"]
    set_timeout(server, device, 1)
    again = wait_for(server, device, lambda found: not found["active"])
    assert again["lastConnectTime"] == connected["lastConnectTime"]
    assert state(server, silent) == {}, "nothing is kept for a device that never connects"

"""Limits of a tenant: messages, points and connections, with paho, HTTP, the commands and the metrics."""

import re
import time

import pytest
import requests

from harness.rest import Api
from test_broker import Client
from test_tenants import ADMIN, PASSWORD, add_tenant

WAIT_S = 60
TELEMETRY = "v1/devices/me/telemetry"


@pytest.fixture
def acme(own_server, tmp_path):
    """A server with the tenant `acme`, which has two devices, and a device of the default tenant."""
    server = own_server()
    server.secret = tmp_path / "secret"
    add_tenant(server)
    server.acme = Api(server.url).login(ADMIN, PASSWORD)
    server.acme.post("/api/tacho/devices", {"count": 2, "prefix": "truck ", "tokenPrefix": "acme-"})
    server.command("device", "add", "free", "--token", "free-token")
    server.tenant_id = next(one["id"]["id"] for one in server.api.get("/api/tenants", pageSize=10, page=0)["data"] if one["name"] == "acme")
    yield server
    server.acme.session.close()


def limits(server, *arguments):
    """`tacho tenant limits acme`: what it shows."""
    shown = server.command("tenant", "limits", "acme", *arguments).stdout
    return dict(line.split() for line in shown.splitlines()[1:])


def metric(server, name, **labels):
    """The value of a sample; 0 if there is none."""
    wanted = "".join(f'(?=.*{key}="{value}")' for key, value in labels.items())
    found = re.search(rf"^{name}\{{{wanted}[^}}]*\}} (\d+)$", server.api.metrics(), re.M)
    return int(found[1]) if found else 0


def test_the_command_shows_and_changes_limits_also_of_a_stopped_server(acme):
    assert limits(acme) == {"messagesPerSecondMax": "none", "pointsPerSecondMax": "none", "connectionsMax": "none"}
    assert limits(acme, "--connections", "5", "--messages-per-second", "20")["connectionsMax"] == "5"
    assert limits(acme, "--connections", "none") == {"messagesPerSecondMax": "20", "pointsPerSecondMax": "none", "connectionsMax": "none"}
    assert metric(acme, "tacho_tenant_limit", tenant=acme.tenant_id, limit="messages_per_second_max") == 20
    found = [tenant for tenant in acme.api.get("/api/tenants", pageSize=10, page=0)["data"] if tenant["name"] == "acme"][0]
    assert found["tachoLimits"] == {"messagesPerSecondMax": 20, "pointsPerSecondMax": None, "connectionsMax": None}
    # A client of ThingsBoard that does not know the member leaves the limits as they are.
    kept = acme.api.post("/api/tenant", {key: value for key, value in found.items() if key != "tachoLimits"})
    assert kept["tachoLimits"] == found["tachoLimits"]
    changed = acme.api.post("/api/tenant", kept | {"tachoLimits": {"pointsPerSecondMax": 7}})
    assert changed["tachoLimits"]["messagesPerSecondMax"] is None
    acme.stop()
    assert limits(acme, "--connections", "3") == {"messagesPerSecondMax": "none", "pointsPerSecondMax": "7", "connectionsMax": "3"}
    wrong = acme.command("tenant", "limits", "acme", "--connections", "0", check=False)
    assert wrong.returncode == 2 and "from 1 on, or none" in wrong.stderr
    acme.start()
    assert limits(acme)["connectionsMax"] == "3"


def test_metrics_and_stats_do_not_show_names_of_tenants(acme):
    """Everybody reads the metrics, and every user the stats."""
    with Client(acme, "acme-0") as client:
        client.publish(TELEMETRY, '{"n": 1}')
    assert metric(acme, "tacho_tenant_messages_total", tenant=acme.tenant_id) == 1
    for path, login in (("/metrics", None), ("/api/stats", ("admin@tachograph.local", acme.password))):
        text = requests.get(f"{acme.url}{path}", auth=login, timeout=WAIT_S).text
        assert "tenant" in text and "acme" not in text


def test_messages_above_the_limit_wait_and_are_not_lost(acme):
    limits(acme, "--messages-per-second", "5")
    began = time.monotonic()
    with Client(acme, "acme-0") as client, Client(acme, "free-token") as free:
        for number in range(12):
            client.client.publish(TELEMETRY, f'{{"ts": {1_800_000_000_000 + number}, "n": {number}}}', 1)
        # Another tenant does not wait.
        assert free.publish(TELEMETRY, '{"n": 1}') == 0
        assert [client.published.get(timeout=WAIT_S)[1].value for _ in range(12)] == [0] * 12
    # Five at once, and the other seven at the rate.
    assert time.monotonic() - began >= 1.3
    assert len(acme.acme.history("truck 0", "n")) == 12
    assert metric(acme, "tacho_tenant_messages_total", tenant=acme.tenant_id) == 12
    assert metric(acme, "tacho_tenant_limited_total", tenant=acme.tenant_id) > 0


def test_http_gets_429_with_the_limit_in_the_answer(acme):
    limits(acme, "--messages-per-second", "1", "--points-per-second", "10")
    url = f"{acme.url}/api/v1/acme-0/telemetry"
    values = {f"k{n}": n for n in range(40)}
    assert requests.post(url, json=values, timeout=WAIT_S).status_code == 200
    refused = requests.post(url, json={"a": 1}, timeout=WAIT_S)
    assert refused.status_code == 429 and int(refused.headers["Retry-After"]) >= 1
    assert "10 points a second (pointsPerSecondMax)" in refused.json()["message"]
    limits(acme, "--points-per-second", "none")
    answers = [requests.post(url, json={"a": 1}, timeout=WAIT_S) for _ in range(20)]
    refused = [answer for answer in answers if answer.status_code == 429]
    assert refused and "1 messages a second of the devices (messagesPerSecondMax)" in refused[0].json()["message"]
    assert metric(acme, "tacho_tenant_points_total", tenant=acme.tenant_id) >= 40


def test_connections_above_the_limit_are_refused_with_the_limit(acme):
    limits(acme, "--connections", "1")
    with Client(acme, "acme-0") as first:
        assert first.reason.value == 0
        assert metric(acme, "tacho_tenant_connections", tenant=acme.tenant_id) == 1
        with Client(acme, "acme-1") as second:
            assert second.reason.value == 0x97
        with Client(acme, "free-token") as free:
            assert free.reason.value == 0
    deadline = time.monotonic() + WAIT_S
    while metric(acme, "tacho_tenant_connections", tenant=acme.tenant_id) > 0:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    with Client(acme, "acme-1") as second:
        assert second.reason.value == 0


def test_only_administrators_of_the_installation_set_limits(acme):
    refused = acme.acme.session.post(f"{acme.url}/api/tacho/tenants/acme/limits", json={}, timeout=WAIT_S)
    assert refused.status_code == 403
    wrong = acme.api.session.post(f"{acme.url}/api/tacho/tenants/acme/limits", json={"messages": 1}, timeout=WAIT_S)
    assert wrong.status_code == 400 and "messages" in wrong.text
    missing = acme.api.session.post(f"{acme.url}/api/tacho/tenants/nosuch/limits", json={}, timeout=WAIT_S)
    assert missing.status_code == 404

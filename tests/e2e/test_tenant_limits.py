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
NAMES = [
    "messagesPerSecondMax", "pointsPerSecondMax", "connectionsMax", "tablesMax", "seriesMax", "columnsMax", "sessionsMax", "subscriptionsMax",
]


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
    assert limits(acme) == dict.fromkeys(NAMES, "none")
    assert limits(acme, "--connections", "5", "--messages-per-second", "20")["connectionsMax"] == "5"
    assert limits(acme, "--connections", "none") == dict.fromkeys(NAMES, "none") | {"messagesPerSecondMax": "20"}
    assert metric(acme, "tacho_tenant_limit", tenant=acme.tenant_id, limit="messages_per_second_max") == 20
    found = [tenant for tenant in acme.api.get("/api/tenants", pageSize=10, page=0)["data"] if tenant["name"] == "acme"][0]
    assert found["tachoLimits"] == dict.fromkeys(NAMES) | {"messagesPerSecondMax": 20}
    # A client of ThingsBoard that does not know the member leaves the limits as they are.
    kept = acme.api.post("/api/tenant", {key: value for key, value in found.items() if key != "tachoLimits"})
    assert kept["tachoLimits"] == found["tachoLimits"]
    changed = acme.api.post("/api/tenant", kept | {"tachoLimits": {"pointsPerSecondMax": 7}})
    assert changed["tachoLimits"]["messagesPerSecondMax"] is None
    acme.stop()
    assert limits(acme, "--connections", "3") == dict.fromkeys(NAMES, "none") | {"pointsPerSecondMax": "7", "connectionsMax": "3"}
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


def write(server, lines):
    """Writes line protocol as the administrator of acme."""
    return server.acme.session.post(f"{server.url}/write", params={"db": "tacho"}, data="\n".join(lines).encode(), timeout=60)


def test_a_tenant_cannot_take_the_tables_series_and_columns_of_the_others(acme):
    shown = limits(acme, "--tables", "3", "--series", "5", "--columns", "20")
    assert (shown["tablesMax"], shown["seriesMax"], shown["columnsMax"]) == ("3", "5", "20")
    refused = write(acme, [f"m{n} value=1" for n in range(10)])
    assert refused.status_code == 400 and "number of tables of the tenant (tablesMax) is 4, the limit is 3" in refused.text
    used = {name: metric(acme, "tacho_tenant_used", tenant=acme.tenant_id, resource=name) for name in ["tables", "series", "columns"]}
    # The dead letters of the refused lines have a table of their own, which no limit refuses.
    assert used["tables"] == 4 and used["series"] == 4, used
    assert metric(acme, "tacho_tenant_share", tenant=acme.tenant_id, resource="tables") == 3
    limits(acme, "--tables", "none")
    assert metric(acme, "tacho_tenant_share", tenant=acme.tenant_id, resource="tables") in range(49_900, 50_001)
    refused = write(acme, [f"m0,host=h{n} value=1" for n in range(10)])
    assert refused.status_code == 400 and "number of series of the tenant (seriesMax)" in refused.text
    limits(acme, "--series", "none")
    refused = write(acme, [f"m0 c{n}=1" for n in range(30)])
    assert refused.status_code == 400 and "columns of the tenant (columnsMax)" in refused.text
    # Others do not notice.
    acme.api.session.post(f"{acme.url}/write", params={"db": "tacho"}, data=b"other,host=a c0=1,c1=2", timeout=60).raise_for_status()
    # A device whose rows have no room gets a reason, and its messages are dead letters.
    limits(acme, "--series", "1")
    answer = requests.post(f"{acme.url}/api/v1/acme-1/telemetry", json={"speed": 1}, timeout=10)
    assert answer.status_code == 400 and "seriesMax" in answer.text
    letters = acme.acme.post("/api/sql", {"query": "SELECT reason FROM dead_letter"})["rows"]
    assert any("seriesMax" in str(row) for row in letters), letters


def test_a_tenant_has_its_limits_of_subscriptions_and_sessions(acme):
    limits(acme, "--subscriptions", "2", "--sessions", "1")
    clients = [Client(acme, f"acme-{n}", expiry_s=60) for n in range(2)]
    assert [client.reason.value for client in clients] == [0, 0x97]
    granted = [clients[0].subscribe(f"v1/devices/me/rpc/{kind}/+") for kind in ["request", "response"]]
    granted.append(clients[0].subscribe("v1/devices/me/attributes"))
    assert [codes[0] < 0x80 for codes in granted] == [True, True, False], granted
    used = [metric(acme, "tacho_tenant_used", tenant=acme.tenant_id, resource=name) for name in ["sessions", "subscriptions"]]
    assert used == [1, 2]
    for client in clients:
        client.vanish()

"""Tenants: two of them with devices and tables of the same name, through MQTT, REST, SQL, PostgreSQL's protocol and commands."""

import json

import paho.mqtt.client as mqtt
import paho.mqtt.publish as publish
import psycopg
import pytest
import requests
from paho.mqtt import MQTTException

from harness.rest import Api

PASSWORD = "a long password"
ADMIN = "root@acme.example"


@pytest.fixture
def both(own_server, tmp_path):
    """A server whose default tenant and whose tenant `acme` have a device `truck 7` each, with a value by MQTT."""
    server = own_server({"TACHO_POSTGRES_LISTEN": "127.0.0.1:0"})
    server.secret = tmp_path / "secret"
    add_tenant(server)
    server.acme = Api(server.url).login(ADMIN, PASSWORD)
    server.command("device", "add", "truck 7", "--token", "default-7")
    server.acme.post("/api/tacho/devices", {"count": 1, "startIndex": 7, "prefix": "truck ", "tokenPrefix": "acme-"})
    for token, speed in (("default-7", 10), ("acme-7", 20)):
        send(server, token, json.dumps({"speed": speed}))
    yield server
    server.acme.session.close()


def add_tenant(server):
    """`tacho tenant add acme`."""
    server.secret.write_text(PASSWORD + "\n")
    server.command("tenant", "add", "acme", "--admin", ADMIN, "--password-file", str(server.secret))


def send(server, token, payload):
    """One message at QoS 1: the client returns after the PUBACK."""
    publish.single(
        "v1/devices/me/telemetry", payload, 1, hostname="127.0.0.1", port=server.mqtt, auth={"username": token}, protocol=mqtt.MQTTv5
    )


def select(api, sql):
    """The rows of a statement over HTTP."""
    return api.post("/api/sql", {"query": sql})["rows"]


def test_neither_tenant_sees_the_other_through_any_door(both):
    send(both, "acme-7", "not json")
    for api, speed, refused in ((both.api, 10, 0), (both.acme, 20, 1)):
        assert api.latest("truck 7", "speed") == speed
        assert select(api, "SELECT device, speed FROM telemetry") == [["truck 7", speed]]
        assert select(api, "SELECT count(*) FROM dead_letter") == [[refused]]
        assert len(api.get("/api/tacho/refusals")["devices"]) == refused
        names = [table["table"] for table in api.get("/api/tacho/tables")["tables"]]
        assert names.count("telemetry") == 1
    stranger = both.api.device_id("truck 7")
    reply = both.acme.session.get(f"{both.url}/api/plugins/telemetry/DEVICE/{stranger}/values/timeseries", timeout=60)
    assert reply.status_code == 404, reply.text
    with psycopg.connect(host="127.0.0.1", port=both.listeners["postgres"], user=ADMIN, password=PASSWORD, dbname="tacho") as acme:
        assert acme.execute("SELECT speed FROM telemetry").fetchall() == [(20,)]
        assert acme.execute("SELECT count(*) FROM pg_class WHERE relname = 'telemetry'").fetchone() == (1,)


def test_an_administrator_of_a_tenant_does_not_administer_the_installation(both):
    headers = both.acme.session.headers
    for method, path, body in (
        ("GET", "/api/tacho/tenants", None),
        ("POST", "/api/tacho/tenants", {"name": "x", "login": "x@x.example", "password": PASSWORD}),
        ("DELETE", "/api/tacho/tenants/default", None),
        ("POST", "/api/tacho/check", None),
        ("POST", "/api/tacho/backup", {"parts": []}),
        ("POST", "/api/tacho/maintenance/flush", None),
        ("POST", "/api/tacho/maintenance/compact", None),
        ("POST", "/api/tacho/session-key", None),
    ):
        reply = requests.request(method, both.url + path, headers=headers, json=body, timeout=60)
        assert reply.status_code == 403, f"{method} {path}: {reply.status_code} {reply.text}"
    assert [user["login"] for user in both.acme.get("/api/tacho/users")["users"]] == [ADMIN]


def test_a_setting_of_a_table_is_that_of_its_tenant(both):
    both.acme.post("/api/tacho/tables", {"table": "telemetry", "ttlS": 86_400})
    ttls = [[table["ttlS"] for table in api.get("/api/tacho/tables")["tables"] if table["table"] == "telemetry"] for api in (both.api, both.acme)]
    assert ttls == [[None], [86_400]]


def test_a_deleted_tenant_is_gone_and_a_new_one_of_its_name_starts_empty(both):
    deleted = both.command("tenant", "delete", "acme", "--yes").stdout
    assert "acme" in deleted
    assert both.acme.session.get(f"{both.url}/api/auth/user", timeout=60).status_code == 401
    with pytest.raises(MQTTException):
        send(both, "acme-7", '{"speed": 30}')
    listed = json.loads(both.command("tenant", "list", "--json").stdout)
    assert [tenant["name"] for tenant in listed] == ["default"]
    add_tenant(both)
    again = Api(both.url).login(ADMIN, PASSWORD)
    again.post("/api/tacho/devices", {"count": 1, "startIndex": 7, "prefix": "truck ", "tokenPrefix": "acme-"})
    assert again.latest("truck 7", "speed") is None
    assert select(again, "SELECT * FROM telemetry") == []
    assert both.api.latest("truck 7", "speed") == 10
    again.session.close()


def test_tenants_survive_a_kill_and_are_listed_without_a_server(both):
    both.kill()
    listed = json.loads(both.command("tenant", "list", "--json").stdout)
    assert [tenant["name"] for tenant in listed] == ["acme", "default"]
    refused = both.command("tenant", "delete", "default", "--yes", check=False)
    assert refused.returncode == 1 and "owns the installation" in refused.stderr
    without_yes = both.command("tenant", "delete", "acme", check=False)
    assert without_yes.returncode == 2 and "--yes" in without_yes.stderr
    both.start()
    acme = Api(both.url).login(ADMIN, PASSWORD)
    assert acme.latest("truck 7", "speed") == 20
    acme.session.close()


def test_commands_on_a_stopped_directory_take_the_tenant(both, tmp_path):
    running = both.command("device", "list", "--tenant", "acme", check=False)
    assert running.returncode == 1 and "the login decides" in running.stderr
    both.stop()
    both.command("device", "add", "van", "--tenant", "acme", "--token", "acme-van")
    assert "van" not in both.command("device", "list").stdout
    assert {"truck 7", "van"} <= {one["name"] for one in json.loads(both.command("device", "list", "--tenant", "acme", "--json").stdout)}
    for tenant, speed in ((), "10"), (("--tenant", "acme"), "20"):
        out = tmp_path / f"{speed}.csv"
        both.command("export", "--table", "telemetry", *tenant, "--out", str(out))
        assert out.read_text().splitlines()[1].endswith(f",{speed}")
    rows = tmp_path / "van.csv"
    rows.write_text("ts,speed\n2024-05-01T00:00:00Z,30\n")
    both.command("import", "--device", "van", "--tenant", "acme", "--ts-column", "ts", str(rows))
    unknown = both.command("device", "list", "--tenant", "nosuch", check=False)
    assert unknown.returncode == 1 and "nosuch" in unknown.stderr
    both.start()
    both.acme.session.close()
    both.acme = Api(both.url).login(ADMIN, PASSWORD)
    assert both.acme.latest("van", "speed") == 30
    assert both.api.get("/api/tacho/devices/" + both.api.device_id("truck 7"))["name"] == "truck 7"

"""Deletion through REST and commands: what is gone, what stays, and who may do it."""

import csv
import io
import json
import subprocess

import paho.mqtt.client as mqtt
import psycopg
import pytest
import requests

from harness.rest import Api
from harness.wait import until

PASSWORD = "a long password"
T = 1_700_000_000_000
TOPIC = "v1/devices/me/telemetry"
WAIT_S = 60


@pytest.fixture
def two(own_server):
    """A server with the PostgreSQL door and the devices `car` and `van`, each with ten rows of `a` and `b`."""
    server = own_server({"TACHO_POSTGRES_LISTEN": "127.0.0.1:0"})
    for name in ("car", "van"):
        server.command("device", "add", name, "--token", f"token-{name}")
        server.api.send(f"token-{name}", [{"ts": T + n, "values": {"a": n, "b": n}} for n in range(10)])
    return server


def status_of(api, method, path, body=None, **params):
    """The status and the message of an answer."""
    reply = api.session.request(method, api.url + path, params=params, json=body, timeout=WAIT_S)
    return reply.status_code, reply.text


def delete_values(server, name, api=None, **params):
    path = f"/api/plugins/telemetry/DEVICE/{server.api.device_id(name)}/timeseries/delete"
    return status_of(api or server.api, "DELETE", path, **params)


def sql_over_postgres(server, statement):
    with psycopg.connect(host="127.0.0.1", port=server.listeners["postgres"], user="admin@tachograph.local", password=server.password, dbname="tacho") as session:
        return session.execute(statement).fetchall()


def exported(server):
    text = server.command("export", "--table", "telemetry").stdout
    return [(row["device"], row["a"], row["b"]) for row in csv.DictReader(io.StringIO(text))]


def assert_a_of_car_is_gone_from(server, first, last):
    """The values of `a` of `car` with numbers in `first..last` are gone everywhere; all others are there."""
    left = [n for n in range(10) if not first <= n < last]
    assert server.api.history("car", "a") == [(T + n, n) for n in left]
    assert server.api.latest("car", "a") == (left[-1] if left else None)
    for name, key in (("car", "b"), ("van", "a"), ("van", "b")):
        assert server.api.history(name, key) == [(T + n, n) for n in range(10)], (name, key)
    statement = "SELECT device, count(a), count(b) FROM telemetry GROUP BY device ORDER BY device"
    assert server.api.post("/api/sql", {"query": statement})["rows"] == [["car", len(left), 10], ["van", 10, 10]]
    assert sql_over_postgres(server, statement) == [("car", len(left), 10), ("van", 10, 10)]
    rows = exported(server)
    assert sorted(int(a) for device, a, _ in rows if device == "car" and a) == left
    assert len([row for row in rows if row[0] == "van" and row[1]]) == 10


def test_deleted_values_are_gone_everywhere_also_after_a_kill(two):
    # The end is not deleted, as in ThingsBoard.
    assert delete_values(two, "car", keys="a", startTs=T + 5, endTs=T + 10, deleteLatest="true", rewriteLatestIfDeleted="false") == (200, "")
    assert_a_of_car_is_gone_from(two, 5, 10)
    two.kill()
    two.start()
    assert_a_of_car_is_gone_from(two, 5, 10)
    assert delete_values(two, "car", keys="a", deleteAllDataForKeys="true")[0] == 200
    two.kill()
    two.start()
    assert_a_of_car_is_gone_from(two, 0, 10)
    two.api.send("token-car", {"ts": T, "values": {"a": 77}})
    assert two.api.history("car", "a") == [(T, 77)], "a value that comes later stays"
    acts = two.api.post("/api/sql", {"query": "SELECT act, count(*) FROM audit WHERE act LIKE 'delete%' GROUP BY act"})["rows"]
    assert acts == [["delete values", 2]]


def test_bad_requests_change_nothing(two):
    for params, code, part in (
        ({"startTs": T, "endTs": T + 9}, 400, "name the keys"),
        ({"keys": "a"}, 400, "startTs and endTs"),
        ({"keys": "a", "startTs": T + 1, "endTs": T}, 400, "no time lies between"),
        ({"keys": "nothing", "deleteAllDataForKeys": "true"}, 404, "no key"),
        ({"keys": "a", "deleteAllDataForKeys": "true", "deleteLatest": "false"}, 400, "deleteLatest=false"),
    ):
        found = delete_values(two, "car", **params)
        assert found[0] == code and part in found[1], (params, found)
    for body, code, part in (
        ({"table": "nothing"}, 404, "no table"),
        ({"table": "audit"}, 400, "expire"),
        ({"table": "telemetry", "where": ["site=x"]}, 400, "no tag"),
        ({"table": "telemetry", "where": ["device"]}, 400, "not a condition"),
        ({"table": "telemetry", "keys": []}, 400, "keys is empty"),
        ({"table": "telemetry", "fromUs": 2, "toUs": 1}, 400, "no time lies between"),
        ({"table": "telemetry", "series": True, "toUs": 1}, 400, "do not apply"),
    ):
        found = status_of(two.api, "POST", "/api/tacho/delete", body)
        assert found[0] == code and part in found[1], (body, found)
    for table, code in (("nothing", 404), ("audit", 400), ("", 400)):
        assert status_of(two.api, "DELETE", "/api/tacho/tables", table=table)[0] == code, table
    assert_a_of_car_is_gone_from(two, 0, 0)


def test_viewers_and_other_tenants_delete_nothing(two, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text(PASSWORD + "\n")
    two.command("user", "add", "eve@example.org", "--role", "viewer", "--password-file", str(secret))
    two.command("tenant", "add", "acme", "--admin", "root@acme.example", "--password-file", str(secret))
    for login, code in (("eve@example.org", 403), ("root@acme.example", 404)):
        api = Api(two.url).login(login, PASSWORD)
        assert delete_values(two, "car", api, keys="a", deleteAllDataForKeys="true")[0] == code
        assert status_of(api, "POST", "/api/tacho/delete", {"table": "telemetry"})[0] == code
        assert status_of(api, "DELETE", "/api/tacho/tables", table="telemetry")[0] == code
        api.session.close()
    assert requests.delete(f"{two.url}/api/tacho/tables?table=telemetry", timeout=WAIT_S).status_code == 401
    assert_a_of_car_is_gone_from(two, 0, 0)


@pytest.mark.parametrize("running", [True, False], ids=["running", "stopped"])
def test_the_command_deletes_what_it_says(two, running):
    if not running:
        two.stop()
    command = lambda *more: two.command("delete", "telemetry", "--where", "device=car", *more, check=False)
    dry = command("--key", "a", "--to", "2023-11-14T22:13:20.005Z", "--dry-run")
    assert dry.stdout.strip() == "table telemetry: the values of a in 5 rows would be deleted for good", dry
    asked = command("--key", "a")
    assert asked.returncode == 1 and "nothing was changed" in asked.stderr, asked
    assert len([row for row in exported(two) if row[1]]) == 20
    done = command("--key", "a", "--to", "2023-11-14T22:13:20.005Z", "--yes")
    assert done.stdout.strip() == "table telemetry: the values of a in 5 rows deleted", done
    assert len([row for row in exported(two) if row[0] == "car" and row[1]]) == 5
    assert json.loads(command("--from", "2023-11-14T22:13:20.008Z", "--yes", "--json").stdout) == {"table": "telemetry", "rows": 2, "changed": True}
    assert len(exported(two)) == 18
    assert command("--series", "--yes").stdout.strip() == "table telemetry: series with 8 rows deleted"
    assert {row[0] for row in exported(two)} == {"van"}
    for arguments, part in ((("--series", "--key", "a"), "cannot be used"), (("--key", "x", "--yes"), "no key"), (("--from", "2024-01-01T00:00:00Z", "--to", "2023-01-01T00:00:00Z"), "no time lies")):
        refused = command(*arguments)
        assert refused.returncode != 0 and part in refused.stderr, refused
    assert "nothing was changed" in two.command("table", "drop", "telemetry", check=False).stderr
    assert two.command("table", "drop", "telemetry", "--yes").stdout.strip() == "table telemetry: dropped"
    assert "no table" in two.command("table", "drop", "telemetry", "--yes", check=False).stderr
    assert "expire" in two.command("table", "drop", "audit", "--yes", check=False).stderr


@pytest.mark.parametrize("body", [None, {"table": "telemetry", "series": True}], ids=["table", "series"])
def test_connected_clients_continue_after_a_deletion(two, body):
    """Each point that is sent after the answer and acknowledged is there, and the connection stays."""
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, protocol=mqtt.MQTTv5, reconnect_on_failure=False)
    client.username_pw_set("token-car")
    lost, acknowledged = [], []
    client.on_disconnect = lambda _c, _u, _f, reason, _p: lost.append(reason)
    client.on_publish = lambda _c, _u, mid, reason, _p: acknowledged.append((mid, reason.value))
    client.connect("127.0.0.1", two.mqtt)
    client.loop_start()
    publish = lambda n: client.publish(TOPIC, json.dumps({"ts": T + n, "values": {"a": n}}), 1)
    sent = 100
    for deletion in range(3):
        publish(sent).wait_for_publish(WAIT_S)
        if body:
            assert status_of(two.api, "POST", "/api/tacho/delete", body)[0] == 200
        else:
            assert status_of(two.api, "DELETE", "/api/tacho/tables", table="telemetry")[0] == 200
        first = sent + 1
        two.api.send("token-van", {"ts": T, "values": {"a": deletion}})
        for sent in range(first, first + 200):
            publish(sent)
        until(lambda: len(acknowledged) == (deletion + 1) * 201, "all acks")
        assert two.api.history("car", "a") == [(T + n, n) for n in range(first, first + 200)]
        assert two.api.history("van", "a") == [(T, deletion)]
        sent += 1
    assert not lost and {reason for _, reason in acknowledged} == {0}
    two.kill()
    two.start()
    assert [n for _, n in two.api.history("car", "a")] == list(range(first, first + 200))
    client.loop_stop()


def postgres(server, **more):
    return psycopg.connect(host="127.0.0.1", port=server.listeners["postgres"], user="admin@tachograph.local", password=server.password, dbname="tacho", autocommit=True, **more)


def test_sql_deletes_rows_over_http_and_over_postgresql(two):
    """Simple, prepared and HTTP statements; the answer is the number of rows."""
    with postgres(two) as session:
        deleted = session.execute("DELETE FROM telemetry WHERE device = 'car' AND ts < to_timestamp(%s)", [T / 1000 + 0.003])
        assert (deleted.statusmessage, deleted.rowcount) == ("DELETE 3", 3)
        with pytest.raises(psycopg.errors.ActiveSqlTransaction), session.transaction():
            session.execute("DELETE FROM telemetry WHERE true")
        with pytest.raises(psycopg.errors.FeatureNotSupported, match="joined by AND"):
            session.execute("DELETE FROM telemetry WHERE a > 3")
        with pytest.raises(psycopg.errors.FeatureNotSupported, match="WHERE true"):
            session.execute("DELETE FROM telemetry")
    assert two.api.history("car", "a") == [(T + n, n) for n in range(3, 10)]
    assert two.api.history("van", "a") == [(T + n, n) for n in range(10)]
    answer = two.api.post("/api/sql", {"query": "DELETE FROM telemetry WHERE device = $1", "params": ["van"]})
    assert (answer["columns"], answer["rows"]) == ([{"name": "deleted", "type": "i64"}], [[10]])
    assert two.api.history("van", "a") == []
    statement = "DELETE FROM telemetry WHERE ts < '1971-01-01'; SELECT count(*) FROM telemetry; DELETE FROM telemetry WHERE device ~ '^c'"
    done = subprocess.run(
        ["psql", "-X", "-At", "-h", "127.0.0.1", "-p", str(two.listeners["postgres"]), "-U", "admin@tachograph.local", "-d", "tacho", "-c", statement],
        env={"PGPASSWORD": two.password, "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=WAIT_S,
    )
    assert done.stdout.splitlines() == ["DELETE 0", "7", "DELETE 7"], done.stderr


def test_sql_deletes_only_with_post_and_with_the_permission(two, tmp_path):
    delete = "DELETE FROM telemetry WHERE true"
    status, text = status_of(two.api, "GET", "/api/sql", q=delete)
    assert status == 400 and "POST" in text
    secret = tmp_path / "secret"
    secret.write_text(PASSWORD + "\n")
    two.command("user", "add", "eve@example.org", "--role", "viewer", "--password-file", str(secret))
    viewer = Api(two.url).login("eve@example.org", PASSWORD)
    assert status_of(viewer, "POST", "/api/sql", {"query": delete})[0] == 403
    with psycopg.connect(host="127.0.0.1", port=two.listeners["postgres"], user="eve@example.org", password=PASSWORD, dbname="tacho", autocommit=True) as session:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            session.execute(delete)
    assert two.api.history("car", "a") == [(T + n, n) for n in range(10)]


@pytest.mark.parametrize("running", [True, False], ids=["running", "stopped"])
def test_the_sql_command_deletes_rows(two, running):
    if not running:
        two.stop()
    done = two.command("sql", "--format", "csv", "DELETE FROM telemetry WHERE device = 'car'; SELECT count(*) AS rows FROM telemetry")
    assert done.stdout.split() == ["deleted", "10", "rows", "10"]

"""SQL on the databases of the time-series interfaces: over HTTP, with psql and psycopg, and with `tacho sql`."""

import subprocess

import psycopg
import pytest
import requests

WAIT_S = 60
T0 = 1_768_464_000
ADMIN = "admin@tachograph.local"


@pytest.fixture
def metrics(own_server):
    """A server with two rows in the table `cpu` of the database `metrics`, and one in that of the devices' own database."""
    server = own_server({"TACHO_POSTGRES_LISTEN": "127.0.0.1:0"})
    server.api.post("/api/tacho/databases", {"name": "metrics"})
    for database, body in (("metrics", f"cpu,host=a load=1 {T0}\ncpu,host=b load=2 {T0}"), ("tacho", f"cpu,host=own load=7 {T0}")):
        login = {"Authorization": f"Token {server.api.token}"}
        reply = requests.post(f"{server.url}/write?db={database}&precision=s", data=body, headers=login, timeout=WAIT_S)
        assert reply.status_code == 204, reply.text
    return server


def http(server, statement, **more):
    return server.api.post("/api/sql", {"query": statement} | more)["rows"]


def psql(server, database, statement):
    return subprocess.run(
        ["psql", "-X", "-At", "-h", "127.0.0.1", "-p", str(server.listeners["postgres"]), "-U", ADMIN, "-d", database, "-c", statement],
        env={"PGPASSWORD": server.password, "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=WAIT_S,
    )


def test_each_door_reads_the_database_that_is_named(metrics):
    statement = "SELECT host, load FROM cpu ORDER BY host"
    assert http(metrics, statement) == [["own", 7.0]]
    assert http(metrics, statement, database="tacho") == [["own", 7.0]]
    assert http(metrics, statement, database="metrics") == [["a", 1.0], ["b", 2.0]]
    with psycopg.connect(host="127.0.0.1", port=metrics.listeners["postgres"], user=ADMIN, password=metrics.password, dbname="metrics") as session:
        assert session.execute(statement).fetchall() == [("a", 1.0), ("b", 2.0)]
        assert session.execute("SELECT current_database(), count(*) FROM metrics.public.cpu").fetchone() == ("metrics", 2)
        tables = session.execute("SELECT table_catalog, table_name FROM information_schema.tables WHERE table_schema = 'public'").fetchall()
        assert tables == [("metrics", "cpu")], "dead letters, audit and the devices' tables are elsewhere"
    assert psql(metrics, "metrics", "\\d cpu").stdout.count("host") == 1
    text = metrics.command("sql", "--database", "metrics", "--format", "csv", statement).stdout
    assert text.split() == ["host,load", "a,1.0", "b,2.0"]
    metrics.stop()
    assert metrics.command("sql", "--database", "metrics", "--format", "csv", statement).stdout == text


def test_delete_reaches_the_named_database_only(metrics):
    assert http(metrics, "DELETE FROM cpu WHERE host = 'a'", database="metrics") == [[1]]
    assert psql(metrics, "metrics", "DELETE FROM cpu WHERE true").stdout == "DELETE 1\n"
    assert http(metrics, "SELECT count(*) FROM cpu", database="metrics") == [[0]]
    assert http(metrics, "SELECT host FROM cpu") == [["own"]]


def test_unknown_databases_and_those_of_other_tenants_are_refused(metrics, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("a long password\n")
    metrics.command("tenant", "add", "acme", "--admin", "root@acme.example", "--password-file", str(secret))
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        psycopg.connect(host="127.0.0.1", port=metrics.listeners["postgres"], user="root@acme.example", password="a long password", dbname="metrics")
    reply = metrics.api.session.post(f"{metrics.url}/api/sql", json={"query": "SELECT 1", "database": "none"}, timeout=WAIT_S)
    assert reply.status_code == 404 and "none" in reply.text
    refused = metrics.command("sql", "--database", "none", "SELECT 1", check=False)
    assert refused.returncode == 1 and "none" in refused.stderr

"""SQL on a server without any writes: the tables exist and have no rows."""

import subprocess

import psycopg
import pytest

from harness.server import Server
from test_postgres import T0, USER

LETTER = ["device", "ts", "door", "topic", "reason", "payload", "payload_base64"]
AUDIT = ["login", "ts", "role", "act", "subject", "entity_type", "entity_id"]


@pytest.fixture
def fresh(tmp_path):
    with Server(tmp_path / "data", {"TACHO_POSTGRES_LISTEN": "127.0.0.1:0", "TACHO_HTTP_PUBLIC_READ": "true"}) as server:
        yield server
        assert server.alive(), server.log()


def connect(server, user=USER):
    return psycopg.connect(host="127.0.0.1", port=server.listeners["postgres"], user=user, password=server.password, dbname="tacho", autocommit=True)


def sql(server, query):
    """Columns and rows over HTTP."""
    answer = server.api.post("/api/sql", {"query": query})
    return [column["name"] for column in answer["columns"]], answer["rows"]


def test_tables_are_there_before_the_first_row(fresh):
    server = fresh
    with connect(server) as connection:
        for table, columns in [("telemetry", ["device", "ts"]), ("dead_letter", LETTER), ("audit", AUDIT)]:
            tag = columns[0]
            found = connection.execute(f"SELECT * FROM {table}")
            assert ([column.name for column in found.description], found.fetchall()) == (columns, [])
            assert connection.execute(f"SELECT count(*), max(ts) FROM {table} WHERE {tag} = ANY(%s)", (["a"],)).fetchone() == (0, None)
            assert [name for name, *_ in connection.execute(f"DESCRIBE {table}")] == columns
            assert sql(server, f"SELECT * FROM {table} ORDER BY ts DESC LIMIT 5") == (columns, [])
            assert sql(server, f"SELECT {tag}, last(ts, ts) FROM {table} GROUP BY {tag}") == ([tag, "last"], [])
        assert sql(server, "SHOW TABLES")[1] == [["tacho", "public", table, "BASE TABLE"] for table in ("audit", "dead_letter", "telemetry")]
    described = subprocess.run(
        ["psql", "-X", "-h", "127.0.0.1", "-p", str(server.listeners["postgres"]), "-U", USER, "-d", "tacho", "-c", "\\d", "-c", "\\d telemetry"],
        env={"PGPASSWORD": server.password, "PATH": "/usr/bin:/bin", "PAGER": "cat", "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "dead_letter" in described.stdout and "timestamp with time zone" in described.stdout
    with connect(server, "public") as public:
        assert public.execute("SELECT * FROM telemetry").fetchall() == []
        with pytest.raises(psycopg.errors.UndefinedTable):
            public.execute("SELECT * FROM dead_letter")


def test_the_first_row_gives_a_table_its_columns(fresh):
    server = fresh
    with connect(server) as connection:
        assert connection.execute("SELECT * FROM telemetry").fetchall() == []
        truck = server.device()
        server.api.send(truck.token, [{"ts": T0, "values": {"speed": 1.5}}])
        assert connection.execute("SELECT * FROM telemetry WHERE speed > 1").fetchone()[0] == truck.name
        with pytest.raises(psycopg.errors.UndefinedTable):
            connection.execute("SELECT * FROM telemetri")

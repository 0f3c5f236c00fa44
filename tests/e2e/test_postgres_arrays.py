"""Arrays through the PostgreSQL door, as drivers bind and read them, and as postgres_fdw sends them."""

import asyncio
import datetime
import json
import subprocess

import asyncpg
import jpype
import pg8000.native
import psycopg
import pytest

from harness.postgresql import PostgreSql
from harness.server import Server
from test_mqttjs import NODE
from test_postgres import T0, USER
from test_postgres_go import ask, program, rows_of  # noqa: F401
from test_postgres_jdbc import start_java

UTC = datetime.timezone.utc
FIRST = datetime.datetime.fromtimestamp(T0 / 1_000, UTC)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server with three rows of each of three trucks."""
    with Server(tmp_path_factory.mktemp("arrays"), {"TACHO_POSTGRES_LISTEN": "127.0.0.1:0"}) as server:
        server.trucks = [server.device() for _ in range(3)]
        for number, truck in enumerate(server.trucks):
            rows = [{"ts": T0 + n * 1_000, "values": {"speed": n + 0.5, "gear": number * 10 + n, "on": n % 2 == 0, "note": f"n{n}"}} for n in range(3)]
            server.api.send(truck.token, rows)
        server.names = [truck.name for truck in server.trucks]
        server.port = server.listeners["postgres"]
        yield server
        assert server.alive(), server.log()


def connect(server, **more):
    """A psycopg connection as the administrator."""
    return psycopg.connect(host="127.0.0.1", port=server.port, user=USER, password=server.password, dbname="tacho", **more)


COUNTS = [
    # A condition with one array, its value, the rows it leaves, the type of the array.
    ("device = ANY({})", lambda server: server.names[:2], 6, "text"),
    ("device <> ALL({})", lambda server: server.names[:2], 3, "text"),
    ("device = ANY({})", lambda server: [server.names[0], None], 3, "text"),
    ("device = ANY({})", lambda server: [], 0, "text"),
    ("gear = ANY({})", lambda server: [0, 1, 22], 3, "int8"),
    ("gear > ALL({})", lambda server: [0, 10], 5, "int8"),
    ("speed = ANY({})", lambda server: [0.5, 2.5], 6, "float8"),
    ('"on" = ANY({})', lambda server: [False], 3, "bool"),
    ("ts = ANY({})", lambda server: [FIRST, FIRST + datetime.timedelta(seconds=1)], 6, "timestamptz"),
]


@pytest.mark.parametrize("is_binary", [False, True])
def test_psycopg_binds_arrays(server, is_binary):
    place = "%b" if is_binary else "%t"
    with connect(server) as connection:
        for condition, value, rows, kind in COUNTS:
            for typed in (place, f"{place}::{kind}[]"):
                found = connection.execute(f"SELECT count(*) FROM telemetry WHERE {condition.format(typed)}", (value(server),))
                assert found.fetchone() == (rows,), (condition, typed)


def test_texts_are_arrays_where_one_is_wanted(server):
    """As node-postgres and pg8000 bind them, and psycopg2 writes them into the statement."""
    names = "{" + ",".join(f'"{name}"' for name in server.names[:2]) + "}"
    with connect(server) as connection:
        for condition, rows in [("device = ANY(%s)", 6), ("device <> ALL(%s)", 3)]:
            assert connection.execute(f"SELECT count(*) FROM telemetry WHERE {condition}", (names,)).fetchone() == (rows,)
        assert connection.execute("SELECT count(*) FROM telemetry WHERE gear = ANY(%s)", ("{0,NULL,22}",)).fetchone() == (2,)
        with psycopg.ClientCursor(connection) as cursor:
            cursor.execute("SELECT count(*) FROM telemetry WHERE device = ANY(%s) AND gear <> ALL(%s)", (server.names[:2], [0, 1]))
            assert cursor.fetchone() == (4,)
        with pytest.raises(psycopg.errors.InvalidTextRepresentation):
            connection.execute("SELECT count(*) FROM telemetry WHERE gear = ANY(%s)", ("{x}",))


@pytest.mark.parametrize("is_binary", [False, True])
def test_psycopg_reads_arrays(server, is_binary):
    with connect(server) as connection, connection.cursor(binary=is_binary) as cursor:
        cursor.execute(
            "SELECT array_agg(device ORDER BY device), array_agg(gear ORDER BY gear), array_agg(speed ORDER BY speed), array_agg(\"on\" ORDER BY ts), array_agg(ts ORDER BY ts) "
            "FROM telemetry WHERE device = ANY(%s)",
            (server.names[:1],),
        )
        assert [column.type_code for column in cursor.description] == [1009, 1016, 1022, 1000, 1185]
        times = [FIRST + datetime.timedelta(seconds=n) for n in range(3)]
        assert cursor.fetchone() == (server.names[:1] * 3, [0, 1, 2], [0.5, 1.5, 2.5], [True, False, True], times)
        cursor.execute("""SELECT '{"a b",NULL,"c,\\"d","",😀}'::text[], '{}'::int[], %s::text[]""", (["x", None],))
        assert cursor.fetchone() == (["a b", None, 'c,"d', "", "😀"], [], ["x", None])


def questions(server):
    """Statements with one list as parameter, and their rows."""
    return [
        (f"SELECT count(*) FROM telemetry WHERE {condition.format('$1')}", value(server), rows)
        for condition, value, rows, kind in COUNTS
        if kind != "timestamptz"
    ]


def test_pg8000_binds_and_reads_arrays(server):
    connection = pg8000.native.Connection(USER, host="127.0.0.1", port=server.port, password=server.password, database="tacho")
    try:
        for text, value, rows in questions(server):
            assert connection.run(text.replace("$1", ":list"), list=value) == [[rows]], text
        times = [FIRST, FIRST + datetime.timedelta(seconds=1)]
        assert connection.run("SELECT count(*) FROM telemetry WHERE ts = ANY(:list)", list=times) == [[6]]
        found = connection.run("SELECT array_agg(gear ORDER BY gear), array_agg(note ORDER BY gear), array_agg(speed ORDER BY gear) FROM telemetry WHERE gear < 10")
        assert found == [[[0, 1, 2], ["n0", "n1", "n2"], [0.5, 1.5, 2.5]]]
    finally:
        connection.close()


def test_node_postgres_binds_and_reads_arrays(server):
    connection = {"host": "127.0.0.1", "port": server.port, "user": USER, "password": server.password, "database": "tacho"}
    asked = questions(server)
    reading = "SELECT array_agg(gear ORDER BY gear), array_agg(note ORDER BY gear), array_agg(speed ORDER BY gear), array_agg(\"on\" ORDER BY gear) FROM telemetry WHERE gear < 10"
    job = {"connection": connection, "questions": [[text, [value]] for text, value, _ in asked] + [[reading, []], ["SELECT $1::text[]", [['a"b', None, "", "c,d"]]]]}
    done = subprocess.run(["node", "ask.mjs", json.dumps(job)], cwd=NODE, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    *counts, read, echoed = json.loads(done.stdout)
    for (text, _, rows), found in zip(asked, counts, strict=True):
        assert found == [[str(rows)]], text
    # node-postgres gives bigint as text.
    assert read == [[["0", "1", "2"], ["n0", "n1", "n2"], [0.5, 1.5, 2.5], [True, False, True]]]
    assert echoed == [[['a"b', None, "", "c,d"]]]


def test_asyncpg_binds_and_reads_arrays(server):
    async def run():
        connection = await asyncpg.connect(host="127.0.0.1", port=server.port, user=USER, password=server.password, database="tacho", ssl=False)
        try:
            for text, value, rows in questions(server):
                assert await connection.fetchval(text, value) == rows, text
            assert await connection.fetchval("SELECT count(*) FROM telemetry WHERE ts = ANY($1)", [FIRST]) == 3
            found = await connection.fetchrow(
                "SELECT array_agg(device ORDER BY gear), array_agg(gear ORDER BY gear), array_agg(speed ORDER BY gear), array_agg(\"on\" ORDER BY gear), array_agg(ts ORDER BY gear) "
                "FROM telemetry WHERE device = $1",
                server.names[0],
            )
            times = [FIRST + datetime.timedelta(seconds=n) for n in range(3)]
            assert tuple(found) == (server.names[:1] * 3, [0, 1, 2], [0.5, 1.5, 2.5], [True, False, True], times)
            found = await connection.fetchrow("SELECT $1::text[], '{}'::bigint[], array_length('{}'::bigint[], 1)", ["a", None])
            assert tuple(found) == (["a", None], [], None)
        finally:
            await connection.close()

    asyncio.run(run())


def test_go_binds_arrays(ask, server):  # noqa: F811
    names = server.names[:2]
    [texts, numbers] = ask(
        ["SELECT count(*) FROM telemetry WHERE device = ANY($1)", names],
        ["SELECT count(*) FROM telemetry WHERE gear = ANY($1)", [0, 1, 22]],
    )
    assert rows_of(texts) == [[6]]
    assert rows_of(numbers) == [[3]]


@pytest.mark.parametrize("mode", [{"preferQueryMode": "simple"}, {"preferQueryMode": "extended"}, {"prepareThreshold": -1}])
def test_jdbc_binds_and_reads_arrays(server, mode):
    start_java()
    given = jpype.JClass("java.util.Properties")()
    for name, value in {"user": USER, "password": server.password, **mode}.items():
        given.setProperty(name, str(value))
    url = f"jdbc:postgresql://127.0.0.1:{server.port}/tacho"
    connection = jpype.JClass("java.sql.DriverManager").getConnection(url, given)
    try:
        objects = jpype.JArray(jpype.JClass("java.lang.Object"))
        for kind, condition, values, rows in [("text", "device = ANY(?)", server.names[:2], 6), ("int8", "gear = ANY(?)", [jpype.JLong(n) for n in (0, 1, 22)], 3)]:
            statement = connection.prepareStatement(f"SELECT count(*) FROM telemetry WHERE {condition}")
            for _ in range(3):
                statement.setArray(1, connection.createArrayOf(kind, objects(values)))
                found = statement.executeQuery()
                assert found.next() and found.getLong(1) == rows
        found = connection.createStatement().executeQuery("SELECT array_agg(gear ORDER BY gear) FROM telemetry WHERE gear < 10")
        assert found.next() and list(found.getArray(1).getArray()) == [0, 1, 2]
    finally:
        connection.close()


def test_postgres_fdw_reads_tables_with_conditions(server):
    with PostgreSql() as postgresql, postgresql.connect() as connection:
        connection.execute("CREATE EXTENSION postgres_fdw")
        connection.execute(f"CREATE SERVER tacho FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '127.0.0.1', port '{server.port}', dbname 'tacho')")
        connection.execute(f"CREATE USER MAPPING FOR CURRENT_USER SERVER tacho OPTIONS (user '{USER}', password '{server.password}')")
        connection.execute("CREATE SCHEMA far")
        connection.execute("IMPORT FOREIGN SCHEMA public LIMIT TO (telemetry) FROM SERVER tacho INTO far")
        first, second, third = server.names
        for condition, rows in [
            (f"device IN ('{first}', '{second}')", 6),
            (f"device NOT IN ('{first}', '{second}')", 3),
            ("gear IN (0, 1, 22)", 3),
            ("gear = ANY('{0,22}')", 2),
            ("speed IN (0.5, 2.5)", 6),
            (f"ts >= '{FIRST.isoformat()}' AND device = '{third}'", 3),
            ("note LIKE 'n%' AND \"on\"", 6),
        ]:
            query = f"SELECT count(*) FROM far.telemetry WHERE {condition}"
            plan = "\n".join(line for (line,) in connection.execute(f"EXPLAIN (VERBOSE, COSTS OFF) {query}"))
            assert "Remote SQL" in plan and "Filter:" not in plan, plan
            assert connection.execute(query).fetchone() == (rows,), condition
        rows = connection.execute("SELECT device, ts, gear, speed, \"on\", note FROM far.telemetry WHERE device IN (%s, %s) ORDER BY gear LIMIT 1", (first, second))
        assert rows.fetchone() == (first, FIRST, 0, 0.5, True, "n0")

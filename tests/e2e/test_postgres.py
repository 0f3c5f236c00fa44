"""The PostgreSQL door with psql, psycopg and asyncpg."""

import asyncio
import datetime
import re
import socket
import struct
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import asyncpg
import psycopg
import pytest

T0 = 1_768_464_000_000
UTC = datetime.timezone.utc
FIRST = datetime.datetime(2026, 1, 15, 8, 0, 0, tzinfo=UTC)
USER = "admin@tachograph.local"
ENDLESS = "SELECT count(*) FROM generate_series(1, 100000000000) AS t(x)"


@pytest.fixture(scope="module")
def pg(tmp_path_factory):
    """A server with the door open and a hundred rows of one device."""
    from harness.server import Server

    with Server(tmp_path_factory.mktemp("postgres"), {"TACHO_POSTGRES_LISTEN": "127.0.0.1:0", "TACHO_HTTP_PUBLIC_READ": "true"}) as server:
        server.truck = server.device()
        rows = [{"ts": T0 + n * 1_000, "values": {"speed": n + 0.5, "gear": n % 6, "on": n % 2 == 0, "note": f"n'{n}", "at": {"n": n}}} for n in range(100)]
        server.api.send(server.truck.token, rows)
        server.port = server.listeners["postgres"]
        yield server
        assert server.alive(), server.log()


def connect(server, **more):
    """A psycopg connection as the administrator."""
    return psycopg.connect(host="127.0.0.1", port=server.port, user=USER, password=server.password, dbname="tacho", **more)


def psql(server, *arguments, user=USER, check=True):
    """psql's standard output."""
    done = subprocess.run(
        ["psql", "-X", "-h", "127.0.0.1", "-p", str(server.port), "-U", user, "-v", "ON_ERROR_STOP=1", "-d", "tacho", *arguments],
        env={"PGPASSWORD": server.password, "PATH": "/usr/bin:/bin", "PAGER": "cat", "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0 or not check, f"{arguments}: {done.stdout}{done.stderr}"
    return done.stdout if check else done


def test_psql_reads_rows(pg):
    out = psql(pg, "-A", "-t", "-c", "SELECT ts, device, speed, gear, \"on\", note, at FROM telemetry ORDER BY ts LIMIT 2")
    assert out.splitlines() == [
        f'2026-01-15 08:00:00+00|{pg.truck.name}|0.5|0|t|n\'0|{{"n": 0}}',
        f'2026-01-15 08:00:01+00|{pg.truck.name}|1.5|1|f|n\'1|{{"n": 1}}',
    ]


def test_columns_without_a_name_are_called_as_in_postgresql(pg):
    query = "SELECT count(*), avg(speed), max(speed) - 1, 1::bigint, ts::date, min(gear) AS low FROM telemetry GROUP BY ts LIMIT 1"
    expected = ["count", "avg", "?column?", "int8", "ts", "low"]
    assert psql(pg, "-A", "-c", query).splitlines()[0].split("|") == expected
    cursor = f"BEGIN; DECLARE c CURSOR FOR {query}; FETCH 1 FROM c; COMMIT"
    assert psql(pg, "-A", "-c", cursor).splitlines()[2].split("|") == expected
    with connect(pg) as connection:
        for parameters in [None, ("2026-01-01",)]:
            rows = connection.execute(query if parameters is None else query.replace("GROUP", "WHERE ts > %s GROUP"), parameters)
            assert [column.name for column in rows.description] == expected
    assert psql(pg, "-A", "-c", "SELECT * FROM (SELECT 1 AS a) AS s").splitlines()[0] == "a"


def test_text_is_that_of_postgresql(pg):
    values = ["60.0", "1e16", "1e-5", "CAST('inf' AS double)", "CAST('-inf' AS double)", "CAST('NaN' AS double)", "CAST(1.5 AS real)"]
    times = ["TIMESTAMP '2026-01-15 08:00:00.25'", "CAST('0001-02-03' AS date)", "to_timestamp_micros(253402300800000000)"]
    out = psql(pg, "-A", "-t", "-c", f"SELECT {', '.join(values)}", "-c", f"SELECT {', '.join(times)}")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{0,5}[1-9])?\+00", psql(pg, "-A", "-t", "-c", "SELECT now()").strip())
    assert out.splitlines() == [
        "60|1e+16|1e-05|Infinity|-Infinity|NaN|1.5",
        "2026-01-15 08:00:00.25|0001-02-03|10000-01-01 00:00:00+00",
    ]


def test_psql_runs_several_statements_and_stops_at_an_error(pg):
    out = psql(pg, "-A", "-t", "-c", "BEGIN; SELECT 1; SELECT ';'; COMMIT")
    assert out.split() == ["BEGIN", "1", ";", "COMMIT"]
    failed = psql(pg, "-c", "SELECT * FROM telemetri", check=False)
    assert failed.returncode != 0 and "does not exist" in failed.stderr
    refused = psql(pg, "-c", "UPDATE telemetry SET speed = 1", check=False)
    assert "UPDATE is refused" in refused.stderr


def test_wrong_passwords_and_databases(pg):
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(host="127.0.0.1", port=pg.port, user=USER, password="wrong", dbname="tacho")
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        psycopg.connect(host="127.0.0.1", port=pg.port, user=USER, password=pg.password, dbname="postgres")
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(host="127.0.0.1", port=pg.port, user=USER, password=pg.password, dbname="tacho", sslmode="require")


def test_the_public_user_reads_all_but_dead_letters(pg):
    pg.api.session.post(f"{pg.url}/api/v1/{pg.truck.token}/telemetry", data="no JSON", timeout=60)
    with connect(pg) as connection:
        assert connection.execute("SELECT count(*) > 0 FROM dead_letter").fetchone() == (True,)
    with psycopg.connect(host="127.0.0.1", port=pg.port, user="public", dbname="tacho") as connection:
        assert connection.execute("SELECT count(*) FROM telemetry").fetchone() == (100,)
        with pytest.raises(psycopg.errors.UndefinedTable):
            connection.execute("SELECT * FROM dead_letter")


@pytest.mark.parametrize("binary", [False, True])
def test_psycopg_values_both_ways(pg, binary):
    with connect(pg) as connection, connection.cursor(binary=binary) as cursor:
        cursor.execute(
            "SELECT ts, device, speed, gear, \"on\", note, at FROM telemetry WHERE device = %s AND ts >= %s AND gear = %s AND speed > %s AND \"on\" = %s ORDER BY ts LIMIT 1",
            (pg.truck.name, FIRST, 2, 1.5, True),
        )
        assert cursor.fetchone() == (FIRST + datetime.timedelta(seconds=2), pg.truck.name, 2.5, 2, True, "n'2", '{"n": 2}')
        cursor.execute("SELECT NULL::text, %b::float8, %b::bigint, %b::text, %b::timestamptz", (1.5, 2**40, "ä'", FIRST))
        assert cursor.fetchone() == (None, 1.5, 2**40, "ä'", FIRST)
        cursor.execute("SELECT 'NaN'::float8, 'Infinity'::float8, -0.1::float8")
        nan, infinite, small = cursor.fetchone()
        assert nan != nan and infinite == float("inf") and small == -0.1


def test_psycopg_prepares_and_repeats(pg):
    with connect(pg) as connection:
        for n in range(10):
            found = connection.execute("SELECT speed FROM telemetry WHERE ts = %s", (FIRST + datetime.timedelta(seconds=n),), prepare=True)
            assert found.fetchone() == (n + 0.5,)


def test_psycopg_server_side_cursors(pg):
    with connect(pg) as connection:
        with connection.cursor("mine") as cursor:
            cursor.itersize = 7
            cursor.execute("SELECT gear FROM telemetry WHERE device = %s ORDER BY ts", (pg.truck.name,))
            assert [gear for (gear,) in cursor] == [n % 6 for n in range(100)]
        with connection.cursor("again", binary=True) as cursor:
            cursor.execute("SELECT speed FROM telemetry ORDER BY ts")
            assert cursor.fetchmany(3) == [(0.5,), (1.5,), (2.5,)]
            cursor.scroll(2)
            assert cursor.fetchone() == (5.5,)
            assert len(cursor.fetchall()) == 94


def test_transactions_are_followed(pg):
    with connect(pg) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
        assert connection.info.transaction_status.name == "INTRANS"
        with pytest.raises(psycopg.errors.UndefinedTable):
            connection.execute("SELECT * FROM nothing")
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            connection.execute("SELECT 1")
        connection.rollback()
        with connection.transaction():
            assert connection.execute("SELECT 2").fetchone() == (2,)
            with pytest.raises(psycopg.errors.UndefinedColumn), connection.transaction():
                connection.execute("SELECT sped FROM telemetry")
            assert connection.execute("SELECT 3").fetchone() == (3,)


def test_settings(pg):
    with connect(pg, autocommit=True, options="-c statement_timeout=60000") as connection:
        assert connection.execute("SHOW statement_timeout").fetchone() == ("60000",)
        assert connection.info.parameter_status("server_version").startswith("16")
        connection.execute("SET search_path TO public, x")
        assert connection.execute("SHOW search_path").fetchone() == ("public, x",)
        connection.execute("SET statement_timeout = '500ms'")
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute(ENDLESS)
        with pytest.raises(psycopg.errors.InvalidParameterValue):
            connection.execute("SET TimeZone = 'Europe/Berlin'")
        connection.execute("DISCARD ALL")
        assert connection.execute("SHOW search_path").fetchone() == ("public",)


def test_a_running_query_is_cancelled(pg):
    with connect(pg, autocommit=True) as connection:
        timer = threading.Timer(0.5, connection.cancel)
        timer.start()
        with pytest.raises(psycopg.errors.QueryCanceled, match="user request"):
            connection.execute(ENDLESS)
        timer.join()
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_client_that_leaves_ends_its_query(tmp_path):
    from harness.server import Server

    env = {"TACHO_POSTGRES_LISTEN": "127.0.0.1:0", "TACHO_QUERY_CONCURRENT_MAX": "1"}
    with Server(tmp_path / "data", env) as server:
        server.port = server.listeners["postgres"]
        connection = connect(server, autocommit=True)
        connection.pgconn.send_query(ENDLESS.encode())
        connection.pgconn.flush()
        time.sleep(0.5)
        connection.close()
        with connect(server, autocommit=True) as second:
            assert second.execute("SELECT 1").fetchone() == (1,)


def test_asyncpg_binary_and_prepared(pg):
    async def ask():
        connection = await asyncpg.connect(host="127.0.0.1", port=pg.port, user=USER, password=pg.password, database="tacho", ssl=False)
        rows = await connection.fetch("SELECT ts, speed, gear FROM telemetry WHERE device = $1 AND ts >= $2 AND gear = $3 ORDER BY ts LIMIT 2", pg.truck.name, FIRST, 2)
        assert [tuple(row) for row in rows] == [(FIRST + datetime.timedelta(seconds=n), n + 0.5, 2) for n in (2, 8)]
        async with connection.transaction():
            seen = [row["speed"] async for row in connection.cursor("SELECT speed FROM telemetry ORDER BY ts", prefetch=9)]
        assert seen == [n + 0.5 for n in range(100)]
        with pytest.raises(asyncpg.exceptions.UndefinedTableError):
            await connection.fetch("SELECT * FROM nothing")
        assert await connection.fetchval("SELECT 1 + $1::bigint", 41) == 42
        await connection.close()

    asyncio.run(ask())


def test_many_sessions_at_once(pg):
    def ask(n):
        with connect(pg, autocommit=True) as connection:
            return connection.execute("SELECT speed FROM telemetry WHERE ts = %s", (FIRST + datetime.timedelta(seconds=n),)).fetchone()

    with ThreadPoolExecutor(20) as pool:
        assert list(pool.map(ask, range(40))) == [(n + 0.5,) for n in range(40)]


def test_connections_have_a_bound(tmp_path):
    from harness.server import Server

    env = {"TACHO_POSTGRES_LISTEN": "127.0.0.1:0", "TACHO_POSTGRES_CONNECTIONS_MAX": "2", "TACHO_POSTGRES_IDLE_TIMEOUT_S": "1"}
    with Server(tmp_path / "data", env) as server:
        server.port = server.listeners["postgres"]
        first, second = connect(server, autocommit=True), connect(server, autocommit=True)
        with pytest.raises(psycopg.OperationalError, match="all 2 connections"):
            connect(server)
        with pytest.raises(psycopg.OperationalError):
            time.sleep(1.5)
            first.execute("SELECT 1")
        first.close()
        second.close()


def test_garbage_gets_an_error_and_closes_the_connection(pg):
    for bytes_sent in (b"GET / HTTP/1.1\r\n\r\n", struct.pack("!ii", 8, 0x20000), struct.pack("!ii", 2**31 - 1, 0x30000), b"\xff" * 8):
        with socket.create_connection(("127.0.0.1", pg.port), timeout=60) as peer:
            peer.sendall(bytes_sent)
            answer = b""
            while more := peer.recv(4_096):
                answer += more
        assert answer[:1] == b"E" and b"FATAL" in answer, (bytes_sent, answer)


def test_a_taken_port_is_named(own_server, tmp_path, pg):
    from harness.server import Server

    other = Server(tmp_path / "other", {"TACHO_POSTGRES_LISTEN": f"127.0.0.1:{pg.port}"})
    with pytest.raises(AssertionError, match="the PostgreSQL address .* is taken"):
        other.start()


def test_information_schema_and_what_grafana_draws(pg):
    with connect(pg, autocommit=True) as connection:
        tables = connection.execute("SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'").fetchall()
        assert ("telemetry",) in tables
        columns = dict(connection.execute("SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 'telemetry'").fetchall())
        assert "speed" in columns
        drawn = connection.execute(
            "SELECT floor(extract(epoch from ts)/10)*10 AS \"time\", avg(speed) AS \"speed\" FROM telemetry "
            "WHERE ts BETWEEN '2026-01-15T08:00:00Z' AND '2026-01-15T08:00:29Z' GROUP BY 1 ORDER BY 1"
        ).fetchall()
        assert [float(value) for _, value in drawn] == [4.5 + 0.5, 14.5 + 0.5, 24.5 + 0.5]

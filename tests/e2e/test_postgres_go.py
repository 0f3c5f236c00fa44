"""The PostgreSQL door with Go's drivers, lib/pq and pgx, on which Grafana's PostgreSQL source is built; Grafana itself is not run."""

import json
import subprocess
from pathlib import Path

import pytest

from harness.server import Server
from test_postgres import T0, USER
from test_postgres_catalog import SEARCH_PATH, SYSTEM

SOURCE = Path(__file__).parent / "go"
TIME_S = 120


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """The Go program that runs the queries."""
    path = tmp_path_factory.mktemp("go") / "ask"
    subprocess.run(["go", "build", "-o", path, "."], cwd=SOURCE, check=True, timeout=600)
    return path


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server with a minute of one truck."""
    with Server(tmp_path_factory.mktemp("go-server"), {"TACHO_POSTGRES_LISTEN": "127.0.0.1:0"}) as server:
        server.truck = server.device()
        rows = [{"ts": T0 + n * 1_000, "values": {"speed": n + 0.5, "gear": n % 6, "on": n % 2 == 0, "note": f"n'{n}"}} for n in range(60)]
        server.api.send(server.truck.token, rows)
        yield server
        assert server.alive(), server.log()


@pytest.fixture(params=["postgres", "pgx"], ids=["lib-pq", "pgx"])
def ask(request, program, server):
    """Runs one query after the other and returns the answers."""
    user = USER.replace("@", "%40")
    url = f"postgres://{user}:{server.password}@127.0.0.1:{server.listeners['postgres']}/tacho?sslmode=disable"

    def ask(*questions):
        lines = "".join(json.dumps({"sql": sql, "arguments": list(arguments)}) + "\n" for sql, *arguments in questions)
        done = subprocess.run([program, request.param, url], input=lines, capture_output=True, text=True, timeout=TIME_S, check=True)
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        assert len(answers) == len(questions), done.stderr
        return answers

    return ask


def rows_of(answer):
    """The rows of an answer that is not an error."""
    assert "error" not in answer, answer
    return answer.get("rows", [])


def time(n):
    """The time of a row."""
    return f"2026-01-15T08:00:{n:02}Z"


def test_values_have_the_types_of_the_drivers(ask, server):
    every, none, some = ask(
        ("SELECT ts, device, speed, gear, \"on\", note FROM telemetry ORDER BY ts LIMIT 2",),
        ("SELECT NULL::float8 AS f, NULL::text AS t, 'NaN'::float8::text AS nan, count(*), avg(gear) FROM telemetry WHERE speed < 0",),
        ("SELECT speed, ts FROM telemetry WHERE ts >= $1 AND speed > $2 AND device = $3 ORDER BY ts DESC", time(50), 57.5, server.truck.name),
    )
    assert every["columns"] == [["ts", "TIMESTAMPTZ"], ["device", "TEXT"], ["speed", "FLOAT8"], ["gear", "INT8"], ["on", "BOOL"], ["note", "TEXT"]]
    assert rows_of(every) == [[time(n), server.truck.name, n + 0.5, n, n % 2 == 0, f"n'{n}"] for n in range(2)]
    assert rows_of(none) == [[None, None, "NaN", 0, None]]
    assert rows_of(some) == [[59.5, time(59)], [58.5, time(58)]]


def test_grafana_builds_queries_and_draws(ask):
    span = f"ts BETWEEN '{time(0)}' AND '{time(29)}'"
    version, scale, tables, columns, plain, series = ask(
        ("SELECT current_setting('server_version_num')::int/100 as version",),
        ("SELECT 1 FROM pg_extension WHERE extname = 'timescaledb'",),
        (f"SELECT quote_ident(table_name) AS \"table\" FROM information_schema.tables WHERE quote_ident(table_schema) NOT IN {SYSTEM} AND {SEARCH_PATH} ORDER BY 1",),
        (f"SELECT quote_ident(column_name) AS \"column\", data_type AS \"type\" FROM information_schema.columns WHERE quote_ident(table_name) = 'telemetry' AND {SEARCH_PATH}",),
        (f"SELECT ts AS \"time\", speed FROM telemetry WHERE {span} ORDER BY 1",),
        (f"SELECT floor(extract(epoch from ts)/10)*10 AS \"time\", device AS metric, avg(speed) FROM telemetry WHERE {span} GROUP BY 1, 2 ORDER BY 1, 2",),
    )
    assert rows_of(version) == [[1600]]
    assert rows_of(scale) == []
    assert rows_of(tables) == [["audit"], ["dead_letter"], ["telemetry"]]
    assert dict(rows_of(columns))["speed"] == "double precision"
    assert [column for column, _ in plain["columns"]] == ["time", "speed"] and plain["columns"][0][1] == "TIMESTAMPTZ"
    assert rows_of(plain) == [[time(n), n + 0.5] for n in range(30)]
    assert [(float(seconds) - T0 / 1_000, mean) for seconds, _, mean in rows_of(series)] == [(0.0, 5.0), (10.0, 15.0), (20.0, 25.0)]


def test_errors_have_the_state_and_the_connection_continues(ask):
    column, table, syntax, fine = ask(
        ("SELECT velocity FROM telemetry",),
        ("SELECT * FROM nowhere",),
        ("SELEC 1",),
        ("SELECT 1 AS one",),
    )
    assert [answer["state"] for answer in (column, table, syntax)] == ["42703", "42P01", "42601"]
    assert rows_of(fine) == [[1]]


def test_an_answer_of_many_rows_comes_whole(ask):
    (answer,) = ask(("SELECT a.speed, b.ts FROM telemetry a CROSS JOIN telemetry b CROSS JOIN (SELECT DISTINCT gear FROM telemetry) c ORDER BY a.ts, b.ts",))
    rows = rows_of(answer)
    assert len(rows) == 60 * 60 * 6
    assert rows[0] == [0.5, time(0)] and rows[-1] == [59.5, time(59)]

"""A key that comes as 20 and then as 20.5, as JavaScript and Python send it, is one column for every reader."""

import asyncio
import csv
import io

import asyncpg
import psycopg
import pyarrow.parquet
import pytest

T0 = 1_768_464_000_000
LARGE = 9_007_199_254_740_993  # no double holds it


@pytest.fixture(scope="module")
def probe(tmp_path_factory):
    """A server with PostgreSQL's door and a device whose keys come as integers and as floats."""
    from harness.server import Server

    with Server(tmp_path_factory.mktemp("numbers"), {"TACHO_POSTGRES_LISTEN": "127.0.0.1:0"}) as server:
        server.probe = server.device()
        rows = [
            {"speed": 20, "level": 0.5, "serial": LARGE, "odo": 1},
            {"speed": 21, "level": 1.5, "serial": 0.5, "odo": 2},
            {"speed": 20.5, "level": 3, "state": "n/a"},
            {"speed": 21.5, "level": 4, "state": 1, "on": True},
        ]
        server.api.send(server.probe.token, [{"ts": T0 + n * 1_000, "values": values} for n, values in enumerate(rows)])
        yield server
        assert server.alive(), server.log()


def ask(server, query):
    """The rows of a query over HTTP."""
    reply = server.api.session.post(server.url + "/api/sql", json={"query": query}, timeout=60)
    assert reply.ok, reply.text
    return reply.json()


def connect(server):
    return psycopg.connect(host="127.0.0.1", port=server.listeners["postgres"], user="admin@tachograph.local", password=server.password, dbname="tacho")


def test_every_reader_finds_all_numbers(probe):
    mean = "SELECT avg(speed), count(speed), min(speed), max(speed), sum(speed) FROM telemetry"
    assert ask(probe, mean)["rows"] == [[20.75, 4, 20.0, 21.5, 83.0]]
    columns = ask(probe, 'SELECT speed, "speed:i64", level, "level:i64" FROM telemetry ORDER BY ts')
    assert [column["type"] for column in columns["columns"]] == ["f64", "i64", "f64", "i64"]
    assert columns["rows"] == [[20.0, 20, 0.5, None], [21.0, 21, 1.5, None], [20.5, None, 3.0, 3], [21.5, None, 4.0, 4]]
    with connect(probe) as connection:
        assert connection.execute(mean).fetchall() == [(20.75, 4, 20.0, 21.5, 83.0)]
        over = connection.execute("SELECT speed FROM telemetry WHERE speed > %s ORDER BY speed", [20.25]).fetchall()
        assert over == [(20.5,), (21.0,), (21.5,)]
        names = connection.execute("SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 'telemetry' AND column_name LIKE 'speed%'").fetchall()
        assert names == [("speed", "double precision"), ("speed:i64", "bigint")]
    values = [value for _, value in probe.api.history(probe.probe.name, "speed")]
    assert str(values) == "[20, 21, 20.5, 21.5]", "as they were reported"


def test_an_integer_that_no_double_holds_is_not_lost(probe):
    assert ask(probe, 'SELECT serial, "serial:i64" FROM telemetry WHERE serial IS NOT NULL ORDER BY ts')["rows"] == [[float(LARGE - 1), str(LARGE)], [0.5, None]]
    with connect(probe) as connection:
        assert connection.execute('SELECT max("serial:i64") FROM telemetry').fetchone() == (LARGE,)


def test_files_have_one_column_and_come_back(probe, own_server, tmp_path):
    text = probe.command("export", "--table", "telemetry", "--format", "csv").stdout
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["speed"] for row in rows] == ["20", "21", "20.5", "21.5"]
    assert [row["serial"] for row in rows][:2] == [str(LARGE), "0.5"]
    assert set(rows[0]) == {"device", "ts", "speed", "level", "serial", "odo", "state", "state:i64", "on"}
    path = tmp_path / "telemetry.parquet"
    probe.command("export", "--table", "telemetry", "--format", "parquet", "--out", path)
    table = pyarrow.parquet.read_table(path)
    assert table.column("speed").to_pylist() == [20.0, 21.0, 20.5, 21.5]
    assert table.column("serial:i64").to_pylist()[:2] == [LARGE, None]
    other = own_server(directory=tmp_path / "other")
    done = other.command("import", "--table", "telemetry", path)
    # 4 speeds, 4 levels, 2 serials, 2 ways, 2 states, 1 truth value
    assert "4 rows with 15 values" in done.stdout, done.stdout
    assert other.command("export", "--table", "telemetry", "--format", "csv").stdout == text


def test_line_protocol_mixes_kinds_too(own_server, tmp_path):
    server = own_server()
    path = tmp_path / "room.lp"
    path.write_text("room,site=a t=25i 1714550400000000000\nroom,site=a t=24.6 1714550401000000000\nroom,site=a t=24i 1714550402000000000\n")
    server.command("import", "--format", "lines", path)
    assert ask(server, "SELECT count(t), max(t), min(t) FROM room")["rows"] == [[3, 25.0, 24.0]]
    rows = csv.DictReader(io.StringIO(server.command("export", "--table", "room", "--format", "csv").stdout))
    assert [row["t"] for row in rows] == ["25", "24.6", "24"]


def test_the_first_float_ends_what_was_prepared_for_integers(probe):
    with connect(probe) as connection:
        connection.autocommit = True
        for _ in range(3):
            assert connection.execute("SELECT max(odo) FROM telemetry", prepare=True).fetchone() == (2,)
            assert connection.execute("SELECT count(odo) FROM telemetry WHERE odo > %s", [1], prepare=True).fetchone() == (1,)
        probe.api.send(probe.probe.token, [{"ts": T0 + 9_000, "values": {"odo": 2.5}}])
        with pytest.raises(psycopg.errors.FeatureNotSupported, match="cached plan must not change result type"):
            connection.execute("SELECT max(odo) FROM telemetry", prepare=True)
        assert connection.execute("SELECT count(odo) FROM telemetry WHERE odo > %s", [1], prepare=True).fetchone() == (2,)
    with connect(probe) as connection:
        assert connection.execute("SELECT max(odo) FROM telemetry", prepare=True).fetchone() == (2.5,)


def test_a_driver_prepares_again_by_itself(probe):
    async def largest(connection):
        return await connection.fetchval("SELECT max(way) FROM telemetry WHERE device = $1", probe.probe.name)

    async def ask_twice():
        send = lambda ts, way: probe.api.send(probe.probe.token, [{"ts": ts, "values": {"way": way}}])
        port = probe.listeners["postgres"]
        connection = await asyncpg.connect(host="127.0.0.1", port=port, user="admin@tachograph.local", password=probe.password, database="tacho")
        try:
            send(T0 + 20_000, 7)
            before = await largest(connection)
            send(T0 + 21_000, 7.5)
            return before, await largest(connection)
        finally:
            await connection.close()

    assert asyncio.run(ask_twice()) == (7, 7.5)


def test_whole_numbers_beyond_64_bits_are_reduced(probe):
    large = 2**64 + 1
    device = probe.device()
    values = [large, 5, -large, 0.5]
    probe.api.send(device.token, [{"ts": T0 + n, "values": {"n": value}} for n, value in enumerate(values)])
    ask_for = lambda how: probe.api.values(device.name, "n", startTs=T0, endTs=T0 + 1_000, agg=how, interval=1_000)["n"]
    reduced = {how: ask_for(how)[0]["value"] for how in ["COUNT", "MAX", "MIN", "SUM", "AVG"]}
    # Sums are doubles, whose resolution is more than 5 at this size.
    assert reduced == {"COUNT": 4, "MAX": large, "MIN": -large, "SUM": 0.5, "AVG": 0.125}

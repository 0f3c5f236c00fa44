"""The wrapper `jdbc` of virtual sensors: rows of MariaDB and PostgreSQL, through outages and SIGKILLs."""
# ruff: noqa: F811

from datetime import datetime, timezone

from harness import wait
from harness.sensors import shown, write
from harness.server import run
from test_sensor_storage import PASSWORD, database  # noqa: F401
from test_sensor_wrappers import START, connected, output, rows_of, sensor, source, values

ROWS_PER_STATEMENT = 500
# A page has at most 1,000 rows.
PAGE = 1_000


def jdbc(database, password=PASSWORD, **more):
    """The predicates of the wrapper."""
    url = f"jdbc:{database.scheme}://127.0.0.1:{database.port}/gsn"
    return {"jdbc-url": url, "driver": database.driver, "username": "gsn", "password": password, "rate": 20, **more}


def create(database, columns, name="road"):
    database.execute(f"CREATE TABLE {name} ({columns})")
    if database.scheme == "postgresql":
        database.execute(f"GRANT SELECT ON {name} TO gsn")


def insert(database, numbers):
    """Rows as GSN stores them. Three of them have one time."""
    numbers = list(numbers)
    for at in range(0, len(numbers), ROWS_PER_STATEMENT):
        rows = ", ".join(f"({n}, {START + n // 3}, {n})" for n in numbers[at : at + ROWS_PER_STATEMENT])
        database.execute(f"INSERT INTO road (pk, timed, value) VALUES {rows}")


def stored(server):
    """The values of the device of the source, in the order of their times."""
    try:
        return [value for _, value in rows_of(server, "road")]
    except KeyError:
        # The table is not there yet.
        return []


def test_each_row_of_a_table_comes_once_through_kills_and_an_outage(own_server, database):
    create(database, "pk BIGINT PRIMARY KEY, timed BIGINT NOT NULL, value DOUBLE PRECISION")
    insert(database, range(2 * PAGE + 500))
    server = own_server()
    write(server, "road.toml", sensor("road", "jdbc", jdbc(database, **{"table-name": "road"}), "value"))
    wait.until(lambda: len(stored(server)) == 2 * PAGE + 500, "the rows that were there")
    insert(database, range(2 * PAGE + 500, 3 * PAGE))
    wait.until(lambda: len(stored(server)) == 3 * PAGE, "the rows that came meanwhile")
    server.kill()
    insert(database, range(3 * PAGE, 5 * PAGE))
    server.start()
    wait.until(lambda: len(stored(server)) > 3 * PAGE, "some rows after the kill")
    # A kill while rows are read.
    server.kill()
    insert(database, range(5 * PAGE, 6 * PAGE))
    server.start()
    wait.until(lambda: len(stored(server)) >= 6 * PAGE, "all rows")
    assert stored(server) == list(range(6 * PAGE))
    # Three rows of a millisecond are a microsecond apart; the output has one row of each time.
    wait.until(lambda: len(output(server, "road")) == 2 * PAGE, "the output")
    assert [ms for ms, _ in output(server, "road")] == [START + n for n in range(2 * PAGE)]
    database.stop()
    wait.until(lambda: not source(server, "road")["connected"], "the loss of the database")
    state = source(server, "road")
    assert f"127.0.0.1:{database.port}/gsn" in state["lastError"] and PASSWORD not in str(state), state
    listed = server.command("sensor", "list").stdout
    assert f"127.0.0.1:{database.port}/gsn, table road" in listed and PASSWORD not in listed, listed
    database.start()
    insert(database, range(6 * PAGE, 6 * PAGE + 30))
    wait.until(lambda: len(stored(server)) >= 6 * PAGE + 30, "the rows after the outage")
    assert stored(server) == list(range(6 * PAGE + 30))
    connected(server, "road")
    assert PASSWORD not in server.log()
    server.stop()


def test_a_query_with_times_is_read_without_a_key_and_a_row_of_the_future_hides_no_other(own_server, database):
    time_type = "DATETIME(6)" if database.scheme == "mysql" else "TIMESTAMPTZ"
    create(database, f"at {time_type}, n INTEGER, label VARCHAR(40), amount NUMERIC(20, 4)")

    def add(*rows):
        said = ", ".join(f"('{at}', {n}, {label}, {amount})" for at, n, label, amount in rows)
        database.execute(f"INSERT INTO road (at, n, label, amount) VALUES {said}")

    def ms(text):
        return round(datetime.fromisoformat(text).replace(tzinfo=timezone.utc).timestamp() * 1_000)

    first, second, third = "2026-01-02 03:04:05.250", "2026-01-02 03:04:05.251", "2026-01-02 03:04:06.000"
    add(("2999-01-01 00:00:00", 9, "'later'", 9), (second, 2, "NULL", 2.5), (first, 1, "'one'", 1), (first, -1, "'not read'", 0))
    query = "select at, n as value, label as text, amount from road where n > 0"
    server = own_server()
    said = jdbc(database, query=query, **{"time-column": "at"})
    write(server, "road.toml", sensor("road", "jdbc", said, "value, text"))
    wait.until(lambda: output(server, "road") == [(ms(first), 1), (ms(second), 2)], "the rows")
    assert output(server, "road", "text") == [(ms(first), "one")]
    add((third, 3, "'three'", 3))
    wait.until(lambda: output(server, "road")[2:] == [(ms(third), 3)], "the next row")
    reply = server.api.session.post(f"{server.url}/api/sql", json={"query": "SELECT amount FROM road_inputs ORDER BY ts"}, timeout=60)
    assert [amount for (amount,) in reply.json()["rows"]] == [1, 2.5, 3]
    assert source(server, "road")["refused"] == 0
    # A later start: only rows after it.
    write(server, "late.toml", sensor("late", "jdbc", {**said, "start-time": ms(second)}, "value, text"))
    wait.until(lambda: values(server, "late") == [3], "the rows after the start")
    server.stop()


def test_what_cannot_be_read_has_a_reason_and_what_writes_is_refused(own_server, database, tmp_path):
    create(database, "pk BIGINT PRIMARY KEY, timed BIGINT NOT NULL, value DOUBLE PRECISION")
    server = own_server()
    table = {"table-name": "road"}
    wrong = "wrong password"
    write(server, "wrong.toml", sensor("wrong", "jdbc", jdbc(database, wrong, **table)))
    write(server, "absent.toml", sensor("absent", "jdbc", jdbc(database, **{"table-name": "nothing"})))
    write(server, "column.toml", sensor("column", "jdbc", jdbc(database, **table, **{"time-column": "at"})))
    for name, expected in (
        ("wrong", "cannot connect"),
        ("absent", "cannot read the columns"),
        ("column", 'there is no column "at"; the predicate time-column names'),
    ):
        state = wait.until(lambda: (one := source(server, name)).get("lastError") and one, f"the fault of {name}")  # noqa: B023
        assert not state["connected"] and expected in state["lastError"], state
    assert "nothing" in source(server, "absent")["lastError"]
    assert wrong not in str(shown(server, "wrong")) and wrong not in server.log()
    # The right password, and a row.
    write(server, "wrong.toml", sensor("wrong", "jdbc", jdbc(database, **table)))
    insert(database, range(1))
    wait.until(lambda: values(server, "wrong") == [0], "the row")
    file = tmp_path / "writes.toml"
    for query in ("delete from road", "select 1; delete from road", "select * into copy from road"):
        file.write_text(sensor("writes", "jdbc", jdbc(database, query=query)))
        done = run("sensor", "check", file, check=False)
        assert done.returncode != 0 and "line " in done.stdout + done.stderr, done
    write(server, "writes.toml", sensor("writes", "jdbc", jdbc(database, query="delete from road")))
    wait.until(lambda: "DELETE does not read" in server.command("sensor", "list").stdout, "the refusal")
    assert database.execute("SELECT count(*) FROM road") == [("1",)]
    server.stop()

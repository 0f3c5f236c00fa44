"""The PostgreSQL door with PostgreSQL's JDBC driver: a Java virtual machine in this process, called through JPype."""

import datetime
import math
import threading
from pathlib import Path

import jpype
import pytest

from harness.server import Server
from test_postgres import ENDLESS, T0, USER

DRIVER = Path("/usr/share/java/postgresql.jar")
ROWS = 5_000


def start_java():
    """Starts the one Java machine that a process may have, unless it runs."""
    if not jpype.isJVMStarted():
        jpype.startJVM("-Xmx256m", "-Duser.timezone=UTC", classpath=[str(DRIVER)], convertStrings=True)


@pytest.fixture(scope="module")
def jdbc(tmp_path_factory):
    """A server with rows of one device, and a function that connects to it with properties of the driver."""
    start_java()
    with Server(tmp_path_factory.mktemp("jdbc"), {"TACHO_POSTGRES_LISTEN": "127.0.0.1:0"}) as server:
        server.truck = server.device()
        for start in range(0, ROWS, 1_000):
            rows = [{"ts": T0 + n * 1_000, "values": {"speed": n + 0.5, "gear": n % 6, "on": n % 2 == 0, "note": f"n'{n}"}} for n in range(start, start + 1_000)]
            server.api.send(server.truck.token, rows)
        url = f"jdbc:postgresql://127.0.0.1:{server.listeners['postgres']}/tacho"
        opened = []

        def connect(**properties):
            given = jpype.JClass("java.util.Properties")()
            for name, value in {"user": USER, "password": server.password, **properties}.items():
                given.setProperty(name, str(value))
            opened.append(jpype.JClass("java.sql.DriverManager").getConnection(url, given))
            return opened[-1]

        connect.truck = server.truck
        yield connect
        for connection in opened:
            connection.close()
        assert server.alive(), server.log()


def rows_of(result):
    """All rows as the driver's objects."""
    columns = range(1, result.getMetaData().getColumnCount() + 1)
    rows = []
    while result.next():
        rows.append([result.getObject(column) for column in columns])
    return rows


def timestamp(n):
    """The time of a row as java.sql.Timestamp."""
    return jpype.JClass("java.sql.Timestamp")(T0 + n * 1_000)


@pytest.mark.parametrize(
    "mode",
    [
        {"preferQueryMode": "simple"},
        {"preferQueryMode": "extended"},
        {"prepareThreshold": 1},
        # Binary from the first time on.
        {"prepareThreshold": -1, "binaryTransferEnable": "timestamptz"},
    ],
)
def test_values_and_parameters_of_all_types(jdbc, mode):
    connection = jdbc(**mode)
    statement = connection.prepareStatement(
        'SELECT ts, device, speed, gear, "on", note, count(*) OVER () AS rows FROM telemetry '
        'WHERE ts >= ? AND ts < ? AND speed > ? AND gear <> ? AND "on" = ? AND note LIKE ? ORDER BY ts LIMIT ?'
    )
    # The driver changes to a prepared statement and to binary values after some executions.
    for _ in range(7):
        statement.setTimestamp(1, timestamp(0))
        statement.setTimestamp(2, timestamp(100))
        statement.setDouble(3, 3.0)
        statement.setLong(4, 0)
        statement.setBoolean(5, True)
        statement.setString(6, "n'%")
        statement.setInt(7, 2)
        result = statement.executeQuery()
        names = [result.getMetaData().getColumnName(column) for column in range(1, 8)]
        assert names == ["ts", "device", "speed", "gear", "on", "note", "rows"]
        types = [result.getMetaData().getColumnTypeName(column) for column in range(1, 8)]
        assert types == ["timestamptz", "text", "float8", "int8", "bool", "text", "int8"]
        assert result.next()
        assert result.getTimestamp(1).getTime() == T0 + 4_000
        assert result.getObject(1, jpype.JClass("java.time.OffsetDateTime")).toInstant().toEpochMilli() == T0 + 4_000
        assert (result.getString(2), result.getDouble(3), result.getLong(4)) == (jdbc.truck.name, 4.5, 4)
        assert (result.getBoolean(5), result.getString(6)) == (True, "n'4")
        assert result.getLong(7) == sum(1 for n in range(3, 100) if n % 6 != 0 and n % 2 == 0)
        assert result.next() and result.getDouble(3) == 8.5 and not result.next()
    nothing = connection.prepareStatement("SELECT speed FROM telemetry WHERE note = ?")
    nothing.setNull(1, jpype.JClass("java.sql.Types").VARCHAR)
    assert rows_of(nothing.executeQuery()) == []
    gone = connection.createStatement().executeQuery("SELECT CAST(NULL AS double precision)")
    assert gone.next() and gone.getDouble(1) == 0.0 and gone.wasNull()
    unbounded = connection.createStatement().executeQuery("SELECT CAST('inf' AS double), CAST('-inf' AS double)")
    assert unbounded.next() and (unbounded.getDouble(1), unbounded.getDouble(2)) == (math.inf, -math.inf)


def test_large_answers_come_in_pieces_that_the_program_chooses(jdbc):
    connection = jdbc()
    connection.setAutoCommit(False)
    connection.setReadOnly(True)
    statement = connection.prepareStatement("SELECT ts, speed FROM telemetry ORDER BY ts")
    statement.setFetchSize(512)
    result = statement.executeQuery()
    seen = 0
    while result.next():
        assert result.getDouble(2) == seen + 0.5
        seen += 1
    assert seen == ROWS
    # Another question while the first is not read to its end.
    first = statement.executeQuery()
    assert first.next()
    count = connection.createStatement().executeQuery("SELECT count(*) FROM telemetry")
    assert count.next() and count.getLong(1) == ROWS
    assert first.next() and first.getDouble(2) == 1.5
    connection.commit()
    connection.rollback()


def test_what_tools_ask_of_the_catalog(jdbc):
    metadata = jdbc().getMetaData()
    assert metadata.getDatabaseProductName() == "PostgreSQL"
    tables = metadata.getTables(None, "public", "%", ["TABLE", "VIEW"])
    names = []
    while tables.next():
        names.append(tables.getString("TABLE_NAME"))
    assert "telemetry" in names
    columns, found = metadata.getColumns(None, "public", "telemetry", "%"), []
    while columns.next():
        found.append((columns.getString("COLUMN_NAME"), columns.getString("TYPE_NAME"), columns.getString("IS_NULLABLE")))
    assert ("ts", "timestamptz", "NO") in found and ("speed", "float8", "YES") in found and ("device", "text", "YES") in found
    schemas, found = metadata.getSchemas(), []
    while schemas.next():
        found.append(schemas.getString("TABLE_SCHEM"))
    assert "public" in found
    # The answer has no rows and is not an error.
    for nothing in (metadata.getPrimaryKeys(None, "public", "telemetry"), metadata.getIndexInfo(None, "public", "telemetry", False, False)):
        assert not nothing.next()
    assert metadata.getTypeInfo().next()


def test_errors_have_a_state_and_the_connection_continues(jdbc):
    connection = jdbc()
    failures = jpype.JClass("java.sql.SQLException")
    for sql, state in [
        ("SELECT * FROM telemetri", "42P01"),
        ("SELECT nobody FROM telemetry", "42703"),
        ("SELEC 1", "42601"),
        ("UPDATE telemetry SET speed = 1", "25006"),
        ("DELETE FROM telemetry", "0A000"),
    ]:
        with pytest.raises(failures) as failure:
            connection.createStatement().executeQuery(sql)
        assert str(failure.value.getSQLState()) == state, f"{sql}: {failure.value}"
        assert connection.isValid(5)
    with pytest.raises(failures) as failure:
        jdbc(password="wrong")
    assert str(failure.value.getSQLState()) == "28P01"


def test_a_statement_is_cancelled_by_the_program_and_by_its_timeout(jdbc):
    connection = jdbc()
    failures = jpype.JClass("java.sql.SQLException")
    timed = connection.createStatement()
    timed.setQueryTimeout(1)
    with pytest.raises(failures, match="user request") as failure:
        timed.executeQuery(ENDLESS)
    assert str(failure.value.getSQLState()) == "57014"
    cancelled = connection.createStatement()
    ended = threading.Event()

    def cancel():
        # Before the statement runs there is nothing to cancel.
        while not ended.wait(0.3):
            cancelled.cancel()

    canceller = threading.Thread(target=cancel)
    canceller.start()
    try:
        with pytest.raises(failures, match="user request") as failure:
            cancelled.executeQuery(ENDLESS)
    finally:
        ended.set()
        canceller.join()
    assert str(failure.value.getSQLState()) == "57014"
    alive = connection.createStatement().executeQuery("SELECT now()")
    assert alive.next()
    server_ms = alive.getTimestamp(1).getTime()
    assert abs(server_ms - datetime.datetime.now(datetime.timezone.utc).timestamp() * 1_000) < 60_000

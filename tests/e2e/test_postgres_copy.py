"""COPY ... TO STDOUT gives the same bytes as PostgreSQL: in text, CSV and binary form, in both protocols."""

import psycopg
import pytest
from psycopg.pq import ExecStatus

from differential.servers import both

READINGS = "SELECT device, ts, speed, gear, active, note FROM readings ORDER BY device, ts"
COPIES = [
    f"COPY ({READINGS}) TO STDOUT",
    f"COPY ({READINGS}) TO STDOUT (FORMAT csv, HEADER)",
    f"COPY ({READINGS}) TO STDOUT (DELIMITER '|', NULL 'none', HEADER true)",
    f"COPY ({READINGS}) TO STDOUT WITH CSV DELIMITER ';' NULL 'x' QUOTE '''' FORCE QUOTE device, note",
    f"COPY ({READINGS}) TO STDOUT (FORMAT csv, FORCE_QUOTE *)",
    f"COPY ({READINGS}) TO STDOUT (FORMAT binary)",
    "COPY (SELECT ts::date AS day, ts::time AS clock, interval '1 day 02:00' AS span FROM readings ORDER BY ts) TO STDOUT (FORMAT binary)",
    "COPY (SELECT device FROM readings WHERE false) TO STDOUT (FORMAT binary)",
    "COPY (SELECT device FROM readings WHERE false) TO STDOUT (FORMAT csv, HEADER)",
]
REFUSED = {
    "COPY vehicles FROM STDIN": "0A000",
    "COPY vehicles TO '/tmp/vehicles'": "0A000",
    "COPY (SELECT nothing FROM vehicles) TO STDOUT": "42703",
    "COPY (SELECT device FROM vehicles) TO STDOUT (FORMAT csv, FORCE_QUOTE (nothing))": "42703",
    "COPY (SELECT 1 / (built - built) FROM vehicles) TO STDOUT": "22012",
}


@pytest.fixture(scope="module")
def connections(tmp_path_factory):
    """PostgreSQL and the server under test with the same rows."""
    with both(tmp_path_factory.mktemp("copy")) as connections:
        yield connections


def copied(connection, sql: str) -> list:
    """The pieces of a copy, in the simple protocol."""
    with connection.cursor() as cursor, cursor.copy(sql) as copy:
        return [bytes(piece) for piece in copy]


def copied_extended(connection, sql: str) -> list:
    """The pieces of a copy, in the extended protocol."""
    raw = connection.pgconn
    assert raw.exec_params(sql.encode(), []).status == ExecStatus.COPY_OUT
    pieces = []
    while (piece := raw.get_copy_data(0))[0] > 0:
        pieces.append(bytes(piece[1]))
    while raw.get_result():
        pass
    return pieces


@pytest.mark.parametrize("sql", COPIES)
def test_copies_are_those_of_postgresql(connections, sql):
    theirs, ours = connections
    wanted = copied(theirs, sql)
    assert copied(ours, sql) == wanted
    assert copied_extended(ours, sql) == wanted


def test_a_table_is_copied_without_a_query(connections):
    theirs, ours = connections
    sql = "COPY vehicles (device, built) TO STDOUT"
    assert sorted(copied(ours, sql)) == sorted(copied(theirs, sql))


@pytest.mark.parametrize("sql", REFUSED)
def test_what_cannot_be_copied_is_refused(connections, sql):
    _, ours = connections
    with pytest.raises(psycopg.Error) as refused:
        ours.execute(sql) if REFUSED[sql] == "0A000" else copied(ours, sql)
    assert refused.value.sqlstate == REFUSED[sql]
    assert ours.execute("SELECT 1").fetchone() == (1,)

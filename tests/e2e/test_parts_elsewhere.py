"""Parts read by others: a copy of the store's Parquet files in DuckDB, pyarrow and pandas gives what `/api/sql` gives."""

import decimal
import io
import re
from pathlib import Path

import duckdb
import pandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "format" / "part.md"
FIRST_S = 1_768_464_000
ROWS = 5_000


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    """A server with wide and narrow tables, and a copy of its parts."""
    from harness.server import Server

    directory = tmp_path_factory.mktemp("parts")
    with Server(directory / "data") as server:
        lines = []
        for n in range(ROWS):
            at = (FIRST_S + n) * 1_000_000_000
            # Hundredths, thirds that are not decimals, numbers that are large, and some that are missing.
            fields = [f"speed={n / 4}", f"ratio={n / 3!r}", f"odo={10**12 + n}i", f"on={'tf'[n % 2]}"]
            fields += [f'note="n {n}"'] * (n % 3 == 0)
            lines.append(f"drive,device=d{n % 5} {','.join(fields)} {at}")
            lines.append(f"metric_cents,host=h{n % 3} value={n / 100!r} {at}")
            lines.append(f"metric_third,host=h{n % 3},zone=z value={-n / 3!r} {at}")
        path = directory / "lines.lp"
        path.write_text("\n".join(lines))
        server.command("import", "--format", "lines", path)
        server.command("backup", directory / "backup")
        server.copy = directory / "backup" / "store"
        yield server


def asked(server, query):
    """The rows that `/api/sql` gives, as a list of dicts."""
    reply = server.api.session.post(server.url + "/api/sql", json={"query": query, "format": "arrow"}, timeout=120)
    assert reply.ok, reply.text
    return pa.ipc.open_stream(io.BytesIO(reply.content)).read_all().to_pylist()


def examples():
    """The queries of the page's section on copies."""
    section = PAGE.read_text().split("## Reading a copy")[1].split("\n## ")[0]
    return re.findall(r"```sql\n(.*?)```", section, re.S)


def found(server, query, monkeypatch):
    """What DuckDB gives in the copied directory."""
    monkeypatch.chdir(server.copy)
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        return connection.sql(query).to_arrow_table().to_pylist()


def test_duckdb_gives_the_rows_of_a_wide_table(copied, monkeypatch):
    wide, _ = examples()
    rows = found(copied, wide, monkeypatch)
    expected = asked(copied, "SELECT device, ts, speed, ratio, odo, \"on\", note FROM drive ORDER BY device, ts")
    assert len(rows) == ROWS and rows == expected


def test_duckdb_gives_the_rows_of_narrow_tables(copied, monkeypatch):
    _, narrow = examples()
    rows = found(copied, narrow, monkeypatch)
    expected = asked(
        copied,
        "SELECT 'metric_cents' AS \"table\", host, ts, value FROM metric_cents UNION ALL SELECT 'metric_third', host, ts, value FROM metric_third ORDER BY 1, 2, 3",
    )
    assert len(rows) == 2 * ROWS and rows == expected


def test_pandas_and_pyarrow_give_them_as_well(copied):
    wide, narrow = [], []
    for part in sorted((copied.copy / "parts").glob("*.parquet")):
        if "login" in pq.read_schema(part).names:
            continue  # the table audit
        is_narrow = (pq.read_schema(part).metadata or {}).get(b"tachograph.layout") == b"narrow"
        (narrow if is_narrow else wide).append(part)
    assert wide and narrow
    frame = pandas.concat(pandas.read_parquet(part) for part in wide).sort_values(["device", "ts"])
    decimals = [value for value in frame["speed"] if isinstance(value, decimal.Decimal)]
    assert len(decimals) == ROWS, "hundredths are decimals"
    expected = asked(copied, "SELECT device, ts, speed, ratio, odo FROM drive ORDER BY device, ts")
    assert [float(value) for value in frame["speed"]] == [row["speed"] for row in expected]
    assert list(frame["ratio"]) == [row["ratio"] for row in expected]
    assert list(frame["odo"]) == [row["odo"] for row in expected]
    assert [time.to_pydatetime() for time in frame["ts"]] == [row["ts"] for row in expected]
    rows = [row for part in narrow for row in pq.read_table(part).to_pylist()]
    values = {}
    for row in rows:
        held = [row[name] for name in row if name.startswith("value_") and row[name] is not None]
        assert len(held) == 1, row
        values[row["table"], row["ts"]] = float(held[0])
    expected = asked(copied, "SELECT 'metric_cents' AS t, ts, value FROM metric_cents UNION ALL SELECT 'metric_third', ts, value FROM metric_third")
    assert values == {(row["t"], row["ts"]): row["value"] for row in expected}

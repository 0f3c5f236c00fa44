"""Whole tables in and out: line protocol, CSV and Parquet, on running and stopped servers."""

import csv
import io
import json

import pyarrow.parquet
import pytest

LINES = """\
# two sensors and a table of another name
weather,site=north,sensor=s1 temp=21.5,wet=t,n=-3i,note="a \\"b\\", c" 1714550400000000000
weather,site=north,sensor=s1 temp=22,n=4i 1714550401000000000
weather,site=so\\ uth temp=-1.25,big=7u 1714550400000001999
room\\ 1 people=3i 1714550400000000000
weather,site=north temp= 1714550402000000000
weather,site=north temp=1
"""


@pytest.fixture(params=[True, False], ids=["running", "stopped"])
def either(own_server, request):
    server = own_server()
    if not request.param:
        server.stop()
    return server


def exported(server, table):
    text = server.command("export", "--table", table, "--format", "csv").stdout
    return list(csv.DictReader(io.StringIO(text)))


def listed(server):
    lines = server.command("table", "list").stdout.splitlines()
    return {line.split("  ")[0].strip(): line.split() for line in lines[1:]}


def test_line_protocol_becomes_tables(either, tmp_path):
    path = tmp_path / "weather.lp"
    path.write_text(LINES)
    for _ in range(2):  # a row is known by its tags and time: the second time changes nothing
        done = either.command("import", "--format", "lines", path, check=False)
        assert done.returncode == 1 and "2 rows were skipped" in done.stderr, done.stderr
        assert "4 rows with 9 values imported" in done.stdout, done.stdout
        assert "note: 1 times were cut to whole microseconds" in done.stdout, done.stdout
        assert "1 rows are not understood" in done.stdout and "line 5" in done.stdout, done.stdout
        assert "1 rows have no time" in done.stdout, done.stdout
    rows = exported(either, "weather")
    assert len(rows) == 3, rows
    first = next(row for row in rows if row["wet"])
    assert (first["site"], first["sensor"], first["temp"], first["wet"], first["n"]) == ("north", "s1", "21.5", "true", "-3")
    assert first["note"] == 'a "b", c'
    south = next(row for row in rows if row["site"] == "so uth")
    assert (south["sensor"], south["temp"], south["big"]) == ("", "-1.25", "7")
    assert south["ts"].startswith("2024-05-01T08:00:00.000001"), "nanoseconds are cut to microseconds"
    assert [row["people"] for row in exported(either, "room 1")] == ["3"]
    assert {"weather", "room 1"} <= set(listed(either))


def test_columns_are_listed(either, tmp_path):
    path = tmp_path / "weather.lp"
    path.write_text("my\\ table,site=north temp=21.5,n=3i 1714550400000000000\nmy\\ table,site=north temp=\"cold\",n=1.5 1714550401000000000\n")
    either.command("import", "--format", "lines", path)
    lines = either.command("table", "columns", "my table").stdout.splitlines()
    assert lines[0].split() == ["COLUMN", "TYPE", "KEY"]
    expected = [["site", "tag", "site"], ["ts", "ts", "ts"], ["temp", "f64", "temp"]]
    expected += [["temp:string", "string", "temp"], ["n", "f64", "n"], ["n:i64", "i64", "n"]]
    assert sorted(line.split() for line in lines[1:]) == sorted(expected)
    told = json.loads(either.command("table", "columns", "my table", "--json").stdout)
    assert told["table"] == "my table" and {"column": "temp", "type": "f64", "key": "temp"} in told["columns"]
    unknown = either.command("table", "columns", "my", check=False)
    assert unknown.returncode == 1 and 'there is no table "my"' in unknown.stderr and '"my table"' in unknown.stderr


def test_a_column_is_dropped_and_begins_again(either, tmp_path):
    path = tmp_path / "weather.lp"
    path.write_text('weather,site=north temp="21.5",n=3i 1714550400000000000\nweather,site=north temp="cold" 1714550401000000000\n')
    either.command("import", "--format", "lines", path)
    columns = lambda: [line.split() for line in either.command("table", "columns", "weather").stdout.splitlines()[1:]]
    before = columns()
    dry = either.command("table", "drop-column", "weather", "temp", "--dry-run").stdout
    assert dry.strip() == "table weather, key temp: would be dropped for good: temp (string)", dry
    asked = either.command("table", "drop-column", "weather", "temp", check=False)
    assert asked.returncode == 1 and "nothing was changed: there is no terminal" in asked.stderr, asked.stderr
    assert columns() == before
    for key, hint in [("site", "it is a tag"), ("ts", "it is the time"), ("tmp", "lists the keys")]:
        refused = either.command("table", "drop-column", "weather", key, "--yes", check=False)
        assert refused.returncode == 1 and hint in refused.stderr, refused.stderr
    done = json.loads(either.command("table", "drop-column", "weather", "temp", "--yes", "--json").stdout)
    assert done["changed"] and [it["column"] for it in done["columns"]] == ["temp"], done
    assert columns() == [row for row in before if row[0] != "temp"]
    assert [list(row) for row in exported(either, "weather")] == [["site", "ts", "n"]] * 2, "rows stay"
    path.write_text("weather,site=north temp=19.5 1714550402000000000\n")
    either.command("import", "--format", "lines", path)
    assert ["temp", "f64", "temp"] in columns()
    assert [row["temp"] for row in exported(either, "weather")] == ["", "", "19.5"]


def test_what_is_exported_as_parquet_can_be_imported_elsewhere(either, own_server, tmp_path):
    lines = tmp_path / "walk.lp"
    lines.write_text("".join(f"walk,d=d{n % 7} x={n / 4},i={n}i {1_714_550_400 + n}\n" for n in range(5_000)))
    either.command("import", "--format", "lines", "--precision", "s", lines)
    path = tmp_path / "walk.parquet"
    either.command("export", "--table", "walk", "--format", "parquet", "--out", path)
    table = pyarrow.parquet.read_table(path)
    assert table.num_rows == 5_000
    assert sorted(table.column("i").to_pylist()) == list(range(5_000))
    other = own_server(directory=tmp_path / "other")
    done = other.command("import", "--table", "walk", path)
    assert "5,000 rows" in done.stdout, done.stdout
    key = lambda row: (row["d"], row["ts"])
    assert sorted(exported(other, "walk"), key=key) == sorted(exported(either, "walk"), key=key)


def test_a_csv_file_becomes_a_table(either, tmp_path):
    path = tmp_path / "weather.csv"
    path.write_text("time,site,temp,note\n2024-05-01T08:00:00Z,north,1.5,x\n2024-05-01T08:00:01Z,south,,y\nno time,south,2,z\n")
    done = either.command("import", "--table", "w", "--tag", "site", "--ts-column", "time", "--lenient", path)
    assert "2 rows with 3 values imported" in done.stdout and "not a time" in done.stdout, done.stdout
    rows = sorted(exported(either, "w"), key=lambda row: row["site"])
    assert [(row["site"], row["temp"], row["note"]) for row in rows] == [("north", "1.5", "x"), ("south", "", "y")]


def test_lines_and_a_table_contradict_each_other(either, tmp_path):
    path = tmp_path / "a.lp"
    path.write_text("m f=1 1\n")
    done = either.command("import", "--format", "lines", "--table", "t", path, check=False)
    assert done.returncode == 1 and "leave --table out" in done.stderr, done.stderr
    done = either.command("export", "--table", "nothing", "--format", "csv", check=False)
    assert done.returncode == 1 and "no table" in done.stderr and "dead_letter" not in done.stderr, done.stderr

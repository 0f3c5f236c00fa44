"""`tacho import`, `export` and `table set` as a user types them: nothing is changed or dropped without being said."""

import csv
import datetime
import decimal
import io
import json
import os
import pty
import shlex
import subprocess

import pyarrow
import pyarrow.parquet
import pytest

from harness.server import binary, clean_environment, run

MAY_1ST = 1_714_550_400


@pytest.fixture
def data(tmp_path):
    """A data directory that is not there yet."""
    return tmp_path / "data"


def imported(data, path, *arguments, check=True):
    return run("import", "--create", "--data", data, *arguments, path, check=check)


def exported(data, table="t", *arguments):
    text = run("export", "--table", table, "--data", data, *arguments).stdout
    return list(csv.DictReader(io.StringIO(text)))


def write(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding) if isinstance(text, str) else text)
    return path


def times(rows):
    return [row["ts"] for row in rows]


# --- times ---


@pytest.mark.parametrize(
    ("form", "cells"),
    [
        ("s", ["1714550400.000001", "1714550400.000002", "1714550400.5"]),
        ("ms", ["1714550400000.001", "1714550400000.002", "1714550400500.0"]),
        ("us", ["1714550400000001", "1714550400000002", "1714550400500000"]),
        ("ns", ["1714550400000001000", "1714550400000002000", "1714550400500000000"]),
        ("rfc3339", ["2024-05-01T08:00:00.000001Z", "2024-05-01 10:00:00.000002+02:00", "2024-05-01T08:00:00.5Z"]),
        ("%d.%m.%Y %H:%M:%S%.f %z", [f"01.05.2024 08:00:00.{cell} +0000" for cell in ("000001", "000002", "5")]),
    ],
)
@pytest.mark.parametrize("into", ["table", "device"])
def test_times_keep_their_microseconds(data, tmp_path, form, cells, into):
    path = write(tmp_path / "a.csv", "time,n\n" + "".join(f"{cell},{n}\n" for n, cell in enumerate(cells)))
    place = ["--table", "t"] if into == "table" else ["--device", "car"]
    imported(data, path, *place, "--ts-column", "time", "--ts-format", form)
    rows = exported(data, "t" if into == "table" else "telemetry")
    assert times(rows) == ["2024-05-01T08:00:00.000001Z", "2024-05-01T08:00:00.000002Z", "2024-05-01T08:00:00.5Z"]
    assert [row["n"] for row in rows] == ["0", "1", "2"]


def test_local_times_need_a_zone_and_hours_that_are_none_or_two_are_named(data, tmp_path):
    cells = ["2024-05-01T10:00:00", "2024-03-31T02:30:00", "2024-10-27T02:30:00"]
    path = write(tmp_path / "a.csv", "ts,n\n" + "".join(f"{cell},{n}\n" for n, cell in enumerate(cells)))
    done = imported(data, path, "--table", "t", check=False)
    assert done.returncode == 1 and "--timezone" in done.stdout and "3 rows have a time" in done.stdout, done.stdout
    done = imported(data, path, "--table", "t", "--timezone", "Europe/Berlin", "--lenient")
    assert "2 rows have a local time that came twice or never" in done.stdout, done.stdout
    assert "does not exist in Europe/Berlin" in done.stdout and "--clock-change earlier or later" in done.stdout, done.stdout
    assert times(exported(data)) == ["2024-05-01T08:00:00Z"]
    path = write(tmp_path / "b.csv", "ts,n\n2024-10-27T02:30:00,1\n")
    done = imported(data, path, "--table", "t", "--timezone", "Europe/Berlin", check=False)
    assert done.returncode == 1 and "was twice in Europe/Berlin" in done.stdout, done.stdout


@pytest.mark.parametrize(
    ("which", "hours"), [("earlier", ["2024-03-31T00:30:00Z", "2024-10-27T00:30:00Z"]), ("later", ["2024-03-31T01:30:00Z", "2024-10-27T01:30:00Z"])]
)
@pytest.mark.parametrize("into", ["table", "device", "parquet"])
def test_hours_that_are_none_or_two_are_taken_as_asked_for(data, tmp_path, which, hours, into):
    cells = ["2024-03-31T02:30:00", "2024-05-01T10:00:00", "2024-10-27T02:30:00"]
    path = write(tmp_path / "a.csv", "ts,n\n" + "".join(f"{cell},{n}\n" for n, cell in enumerate(cells)))
    if into == "parquet":
        naive = pyarrow.array([datetime.datetime.fromisoformat(cell) for cell in cells], pyarrow.timestamp("ms"))
        path = parquet(tmp_path / "a.parquet", ts=naive, n=pyarrow.array([0, 1, 2]))
    place = ["--device", "car", "--ts-column", "ts"] if into == "device" else ["--table", "t"]
    done = imported(data, path, *place, "--timezone", "Europe/Berlin", "--clock-change", which, "--json")
    report = json.loads(done.stdout)
    assert (report["rows"], report["files"][0]["chosenTimes"], report["files"][0]["clockChanges"]) == (3, 2, 0), report
    assert times(exported(data, "telemetry" if into == "device" else "t")) == [hours[0], "2024-05-01T08:00:00Z", hours[1]]
    done = imported(data, path, *place, "--timezone", "+02:00", "--clock-change", which, check=False)
    assert done.returncode == 1 and "--clock-change does not apply" in done.stderr, done.stderr


def test_the_door_for_files_has_the_same_options_for_local_times(own_server, tmp_path):
    server = own_server()
    cells = [datetime.datetime(2024, 10, 27, 2, 30), datetime.datetime(2024, 5, 1, 10)]
    naive = parquet(tmp_path / "a.parquet", ts=pyarrow.array(cells, pyarrow.timestamp("ms")), n=pyarrow.array([0, 1])).read_bytes()

    def post(query):
        return server.api.session.post(f"{server.api.url}/api/tacho/import?table=t&{query}", data=naive, timeout=60)

    for query, expected in [
        ("", "timezone=UTC"),
        ("timezone=Berlin", "is not a time zone"),
        ("clockChange=later", "there is no timezone"),
        ("timezone=UTC&clockChange=later", "never changes"),
        ("timezone=Europe/Berlin&clockChange=both", "refuse, earlier, later"),
    ]:
        answer = post(query)
        assert answer.status_code == 400 and expected in answer.json()["message"], (query, answer.text)
    answer = post("timezone=Europe/Berlin").json()
    assert (answer["rows"], answer["clockChanges"], answer["withoutTime"]) == (1, 1, 0), answer
    assert "was twice in Europe/Berlin" in answer["clockChangesReason"], answer
    answer = post("timezone=Europe/Berlin&clockChange=later").json()
    assert (answer["rows"], answer["chosenTimes"]) == (2, 1), answer
    exported = csv.DictReader(io.StringIO(server.command("export", "--table", "t").stdout))
    assert times(exported) == ["2024-05-01T08:00:00Z", "2024-10-27T01:30:00Z"]


@pytest.mark.parametrize(
    ("digits", "option"), [("1714550400", "--precision s"), ("1714550400000", "--precision ms"), ("1714550400000000", "--precision us")]
)
def test_lines_of_another_unit_are_refused_with_the_option_that_mends_it(data, tmp_path, digits, option):
    path = write(tmp_path / "a.lp", f"m f=1 {digits}\n")
    done = imported(data, path, check=False)
    assert done.returncode == 1 and "0 rows with 0 values imported" in done.stdout, done.stdout
    assert "outside of 1971-01-01T00:00:00Z" in done.stdout and f"they would be in it with {option}" in done.stdout, done.stdout
    imported(data, path, *option.split())
    assert times(exported(data, "m")) == ["2024-05-01T08:00:00Z"]


def test_times_before_the_plausible_year_are_taken_when_they_are_asked_for(data, tmp_path):
    path = write(tmp_path / "a.csv", "ts,n\n1950-06-01T00:00:00Z,1\n")
    for place in (["--table", "t"], ["--device", "car"]):
        done = imported(data, path, *place, "--ts-column", "ts", check=False)
        assert done.returncode == 1 and "--any-time takes them" in done.stdout, done.stdout
        assert "1 rows have a time outside of" in done.stdout, done.stdout
    imported(data, path, "--table", "t", "--any-time")
    assert times(exported(data)) == ["1950-06-01T00:00:00Z"]


def test_a_running_server_has_the_same_rules(own_server, tmp_path):
    server = own_server()
    path = write(tmp_path / "a.lp", "m f=1 1714550400000\n")
    done = server.command("import", path, check=False)
    assert done.returncode == 1 and "they would be in it with --precision ms" in done.stdout, done.stdout
    server.command("import", "--any-time", path)
    path = write(tmp_path / "a.csv", "t,n\n1714550400.000001,1\n1714550400.000002,2\n")
    server.command("import", "--device", "car", "--create", "--ts-column", "t", "--ts-format", "s", path)
    text = server.command("export", "--table", "telemetry").stdout
    assert "08:00:00.000001Z" in text and "08:00:00.000002Z" in text, text


def test_rows_of_the_same_tags_and_time_are_counted(data, tmp_path):
    path = write(tmp_path / "a.csv", "ts,site,n\n" + "2024-05-01T08:00:00Z,x,1\n2024-05-01T08:00:00Z,y,2\n2024-05-01T08:00:00Z,x,3\n")
    done = imported(data, path, "--table", "t", "--tag", "site")
    assert "note: 1 rows share tags and time with an earlier row" in done.stdout, done.stdout
    assert sorted(row["n"] for row in exported(data)) == ["2", "3"]
    done = imported(data, path, "--table", "u", "--tag", "site", "--strict", check=False)
    assert done.returncode == 1 and "nothing was imported" in done.stderr, done.stderr
    lines = write(tmp_path / "a.lp", f"m a=1 {MAY_1ST}\nm b=2 {MAY_1ST}\n")
    assert "share tags" not in imported(data, lines, "--precision", "s").stdout, "other fields are not a repetition"


# --- cells ---


def test_cells_are_what_they_look_like(data, tmp_path):
    rows = ["ts,id,n,big,mixed,note", "2024-05-01T08:00:00Z,00123,1,18446744073709551615,1,NaN", "2024-05-01T08:00:01Z,00456,NaN,2,2.5,x"]
    path = write(tmp_path / "a.csv", "\n".join(rows) + "\n")
    done = imported(data, path, "--table", "t", check=False)
    assert done.returncode == 1 and "1 cells of columns of numbers that are not a number (NaN, inf)" in done.stdout, done.stdout
    first, second = exported(data)
    assert (first["id"], first["n"], first["big"], first["note"]) == ("00123", "1", "18446744073709551615", "NaN")
    assert (second["id"], second["n"], second["big"], second["note"]) == ("00456", "", "2", "x")
    assert float(first["mixed"]) == 1 and float(second["mixed"]) == 2.5
    assert 'the column "big" is text' not in done.stdout, "as many texts as numbers are not a mistake"


@pytest.mark.parametrize("place", [["--table", "t"], ["--device", "car"]], ids=["table", "device"])
def test_a_german_file_is_asked_about_and_read(data, tmp_path, place):
    text = "Zeit;Drehzahl (U/min);Ort\r\n01.05.2024 10:00:00,5;800,25;Köln\r\n\r\n01.05.2024 10:00:01,0;900,0;Bonn\r\n"
    path = write(tmp_path / "a.csv", b"\xef\xbb\xbf" + text.encode())
    arguments = [*place, "--ts-column", "Zeit", "--ts-format", "%d.%m.%Y %H:%M:%S,%f", "--timezone", "Europe/Berlin"]
    done = imported(data, path, *arguments, check=False)
    assert done.returncode == 1 and '"800,25"' in done.stderr and "--decimal ," in done.stderr, done.stderr
    done = imported(data, path, *arguments, "--decimal", ",")
    assert "';' between cells" in done.stdout or "';' is between cells" in done.stdout, done.stdout
    rows = exported(data, "t" if place[0] == "--table" else "telemetry")
    speed = "Drehzahl (U/min)" if place[0] == "--table" else "Drehzahl"
    assert times(rows) == ["2024-05-01T08:00:00.5Z", "2024-05-01T08:00:01Z"]
    assert [float(row[speed]) for row in rows] == [800.25, 900] and rows[0]["Ort"] == "Köln"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("ts;a, b;c\n", "say with --delimiter"),
        ("ts,a,a\n2024-05-01T08:00:00Z,1,2\n", 'the columns 2 and 3 both become the key "a"'),
        ("time,a\n2024-05-01T08:00:00Z,1\n", "--ts-column"),
        ("ts,a\n".encode("utf-16"), "UTF-16"),
        ("ts,a\n2024-05-01T08:00:00Z,1\n".encode("utf-16-le"), "UTF-16"),
        ("ts,a\n2024-05-01T08:00:00Z,grün\n".encode("latin-1"), "UTF-8"),
        (b"\x1f\x8b\x08\x00", "gzip"),
        (b"PK\x03\x04....", "spreadsheet"),
        ("", "no column has a name"),
    ],
)
def test_files_that_are_not_clear_are_refused_before_anything_is_stored(data, tmp_path, content, expected):
    path = write(tmp_path / "a.csv", content)
    done = imported(data, path, "--table", "t", check=False)
    assert done.returncode == 1 and expected in done.stderr, done.stderr
    assert run("table", "list", "--json", "--data", data).stdout.count('"table"') == 0


def test_tabs_quotes_ragged_rows_and_long_fields(data, tmp_path):
    long = "x" * 60_000
    text = f'ts\ta\tb\t\n2024-05-01T08:00:00Z\t"say ""x""\tnow\n"\t{long}\t\n\n2024-05-01T08:00:01Z\t1\n2024-05-01T08:00:02Z\t2\t3\t4\t5\n'
    path = write(tmp_path / "a.tsv", text)
    done = imported(data, path, "--table", "t", check=False)
    assert done.returncode == 1, done.stdout
    assert "1 cells of columns without a name" in done.stdout and "1 cells beyond the last column" in done.stdout, done.stdout
    rows = exported(data)
    assert (rows[0]["a"], rows[0]["b"]) == ('say "x"\tnow\n', long)
    assert [(row["a"], row["b"]) for row in rows[1:]] == [("1", ""), ("2", "3")]
    path = write(tmp_path / "b.csv", f"ts,a,b\n2024-05-01T08:00:00Z,{'y' * 70_000},1\n")
    done = imported(data, path, "--table", "u", check=False)
    assert done.returncode == 1 and "1 texts that are too long" in done.stdout, done.stdout
    assert [row["b"] for row in exported(data, "u")] == ["1"]


@pytest.mark.parametrize("running", [True, False], ids=["running", "stopped"])
def test_whole_numbers_stay_exact_beside_decimals_and_what_is_rounded_is_counted(own_server, tmp_path, running):
    server = own_server()
    if not running:
        server.stop()
    numbers = ["9007199254740993", "0.5", "7", "0.123456789012345678", ""]
    rows = "".join(f"2024-05-01T08:00:0{n}Z,{number},{n}\n" for n, number in enumerate(numbers))
    done = server.command("import", "--table", "t", write(tmp_path / "a.csv", "ts,big,n\n" + rows))
    assert "note: 1 numbers have more digits" in done.stdout, done.stdout
    kept = [row["big"] for row in csv.DictReader(io.StringIO(server.command("export", "--table", "t").stdout))]
    assert (kept[0], float(kept[1]), kept[2], float(kept[3]), kept[4]) == (numbers[0], 0.5, "7", 0.12345678901234568, "")
    asked = server.command("sql", "--format", "csv", 'SELECT "big:i64" FROM t WHERE big > 1e15').stdout
    assert "9007199254740993" in asked, asked
    done = server.command("import", "--table", "t", "--strict", tmp_path / "a.csv", check=False)
    assert done.returncode == 1 and "because of --strict" in done.stderr, done.stderr
    # Columns of short numbers stay one column.
    server.command("import", "--table", "u", write(tmp_path / "b.csv", "ts,x\n2024-05-01T08:00:00Z,1\n2024-05-01T08:00:01Z,2.5\n"))
    assert ":i64" not in server.command("sql", "SELECT * FROM u").stdout


# --- Parquet ---


def parquet(path, **columns):
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    return path


def utc(*micros):
    return pyarrow.array([MAY_1ST * 1_000_000 + at for at in micros], pyarrow.timestamp("us", "UTC"))


def test_tags_of_any_scalar_type_become_their_exact_text(data, tmp_path):
    path = parquet(
        tmp_path / "a.parquet",
        ts=utc(0, 0, 0, 0),
        unit=pyarrow.array([1, 2, 3, 2**64 - 1], pyarrow.uint64()),
        ratio=pyarrow.array([0.5, 0.5, 0.5, 0.5], pyarrow.float64()),
        ok=pyarrow.array([True, False, True, True]),
        day=pyarrow.array([datetime.date(2024, 5, 1)] * 4),
        since=pyarrow.array([0, 0, 0, 1], pyarrow.timestamp("ns", "UTC")),
        kind=pyarrow.array(["a", "b", "a", "b"]).dictionary_encode(),
        n=pyarrow.array([1, 2, 3, 4]),
    )
    tags = [word for tag in ("unit", "ratio", "ok", "day", "since", "kind") for word in ("--tag", tag)]
    imported(data, path, "--table", "t", *tags)
    rows = sorted(exported(data), key=lambda row: int(row["n"]))
    assert [row["unit"] for row in rows] == ["1", "2", "3", "18446744073709551615"]
    assert [row["kind"] for row in rows] == ["a", "b", "a", "b"] and [row["ok"] for row in rows] == ["true", "false", "true", "true"]
    assert {row["ratio"] for row in rows} == {"0.5"} and {row["day"] for row in rows} == {"2024-05-01"}
    assert rows[3]["since"] == "1970-01-01T00:00:00.000000001Z"
    nested = parquet(tmp_path / "b.parquet", ts=utc(0), where=pyarrow.array([[1, 2]]), n=pyarrow.array([1]))
    done = imported(data, nested, "--table", "t", "--tag", "where", check=False)
    assert done.returncode == 1 and "cannot be a tag" in done.stderr, done.stderr


def test_every_type_is_exact_or_counted_and_named(data, tmp_path):
    path = parquet(
        tmp_path / "a.parquet",
        ts=utc(0, 1),
        price=pyarrow.array([decimal.Decimal("12.30"), decimal.Decimal("1234567890123456.78")], pyarrow.decimal128(20, 2)),
        whole=pyarrow.array([decimal.Decimal(7), decimal.Decimal(8)], pyarrow.decimal128(20, 0)),
        day=pyarrow.array([datetime.date(2024, 5, 1), None]),
        at=pyarrow.array([datetime.time(8, 0, 0, 500_000), None]),
        seen=pyarrow.array([MAY_1ST * 1_000, None], pyarrow.timestamp("ms", "Europe/Berlin")),
        half=pyarrow.array([1.5, None], pyarrow.float16()),
        huge=pyarrow.array([2**64 - 1, 5], pyarrow.uint64()),
        word=pyarrow.array(["x", "y"]).dictionary_encode(),
        nested=pyarrow.array([{"a": 1}, {"a": 2}]),
    )
    done = imported(data, path, "--table", "t", check=False)
    assert done.returncode == 1, done.stdout
    assert 'the column "nested"' in done.stdout and "1 whole numbers beyond 63 bits" in done.stdout, done.stdout
    assert "note: 1 numbers have more digits" in done.stdout, done.stdout
    first, second = exported(data)
    assert (first["price"], first["whole"], first["day"], first["at"]) == ("12.3", "7", "2024-05-01", "08:00:00.5")
    assert (first["seen"], first["half"], first["huge"], first["word"]) == ("2024-05-01T08:00:00Z", "1.5", "", "x")
    assert (second["huge"], second["word"], second["day"]) == ("5", "y", "")


@pytest.mark.parametrize(
    ("column", "options", "expected"),
    [
        (pyarrow.array([MAY_1ST]), ["--ts-format", "s"], None),
        (pyarrow.array([MAY_1ST * 1_000]), ["--ts-format", "ms"], None),
        (pyarrow.array([float(MAY_1ST)]), ["--ts-format", "s"], None),
        (pyarrow.array(["01.05.2024 10:00"]), ["--ts-format", "%d.%m.%Y %H:%M", "--timezone", "Europe/Berlin"], None),
        (pyarrow.array([MAY_1ST * 1_000], pyarrow.timestamp("ms")), ["--timezone", "UTC"], None),
        (pyarrow.array([MAY_1ST * 10**9], pyarrow.timestamp("ns", "UTC")), [], None),
        (pyarrow.array([MAY_1ST]), [], "--ts-format"),
        (pyarrow.array([MAY_1ST], pyarrow.timestamp("s")), [], "--timezone"),
        (pyarrow.array([MAY_1ST], pyarrow.timestamp("s", "UTC")), ["--ts-format", "ms"], "leave --ts-format out"),
        (pyarrow.array([MAY_1ST], pyarrow.timestamp("s", "UTC")), ["--timezone", "UTC"], "leave --timezone out"),
    ],
)
def test_times_of_parquet_are_read_as_the_options_say(data, tmp_path, column, options, expected):
    path = parquet(tmp_path / "a.parquet", when=column, n=pyarrow.array([1]))
    done = imported(data, path, "--table", "t", "--ts-column", "when", *options, check=False)
    if expected:
        assert done.returncode == 1 and expected in done.stderr, done.stderr
    else:
        assert done.returncode == 0, done.stdout + done.stderr
        assert times(exported(data)) == ["2024-05-01T08:00:00Z"]


# --- --create, --strict, --lenient, --json ---


def test_one_command_makes_a_drive_readable_and_says_how(data, tmp_path):
    path = write(tmp_path / "my drive.csv", "speed (km/h),state\n1.5,on\n2.5,off\n")
    done = imported(data, path, "--start", "2024-05-01T08:00:00Z")
    assert 'stored as "my drive" in telemetry, a new device: 2 rows' in done.stdout, done.stdout
    line = next(line for line in done.stdout.splitlines() if line.startswith("read it"))
    command = line.removeprefix("read it").strip()
    shown = subprocess.run(["sh", "-c", command], env=clean_environment(), capture_output=True, text=True, timeout=300, check=True)
    assert "2.5" in shown.stdout and "off" in shown.stdout, shown.stdout
    assert shlex.split(command)[0].endswith("tacho")
    again = imported(data, path, "--start", "2024-05-01T08:00:00Z")
    assert "a new device" not in again.stdout and len(exported(data, "telemetry")) == 2


def test_a_column_names_the_devices(own_server, tmp_path):
    server = own_server()
    path = write(tmp_path / "fleet.csv", "ts,car,n\n2024-05-01T08:00:00Z,red,1\n2024-05-01T08:00:00Z,blue,2\n2024-05-01T08:00:01Z,,3\n")
    arguments = ["import", "--device-column", "car", "--ts-column", "ts"]
    done = server.command(*arguments, path, check=False)
    assert done.returncode == 1 and 'cannot find the device "blue"' in done.stderr and "--create" in done.stderr, done.stderr
    done = server.command(*arguments, "--create", "--json", path, check=False)
    report = json.loads(done.stdout)
    assert done.returncode == 1 and (report["rows"], report["skippedRows"]) == (2, 1), report
    assert [(one["device"], one["created"], one["rows"]) for one in report["devices"]] == [("blue", True, 1), ("red", True, 1)]
    assert server.api.history("red", "n") == [(MAY_1ST * 1_000, 1)]
    server.command(*arguments, "--lenient", path)


def test_strict_imports_nothing_and_lenient_is_a_success(data, tmp_path):
    path = write(tmp_path / "a.csv", "ts,n\n2024-05-01T08:00:00Z,1\nnoon,2\n")
    for place in (["--table", "t"], ["--device", "car", "--ts-column", "ts"]):
        done = imported(data, path, *place, "--strict", check=False)
        assert done.returncode == 1 and "because of --strict nothing was imported" in done.stderr, done.stderr
        assert "1 rows with 1 values can be imported" in done.stdout, done.stdout
        assert "imported  " not in done.stdout, done.stdout
    assert json.loads(run("table", "list", "--json", "--data", data, check=False).stdout or '{"tables":[]}')["tables"] == []
    done = imported(data, path, "--table", "t", check=False)
    assert done.returncode == 1 and "1 rows were skipped" in done.stderr and "--lenient" in done.stderr, done.stderr
    done = imported(data, path, "--table", "t", "--lenient", "--json")
    report = json.loads(done.stdout)
    assert (report["rows"], report["values"], report["skippedRows"]) == (1, 1, 1), report
    assert report["files"][0]["badTimes"] == 1 and "noon" in report["files"][0]["badTimesReason"], report


def test_options_that_do_not_apply_are_refused(data, tmp_path):
    path = write(tmp_path / "a.csv", "ts,n\n2024-05-01T08:00:00Z,1\n")
    for arguments, expected in [
        (["--table", "t", "--precision", "ms"], "--precision does not apply"),
        (["--device", "car", "--tag", "x"], "--tag does not apply"),
        (["--device", "car", "--ts-format", "ms"], "--ts-format does not apply"),
        (["--table", "t", "--interval", "1s"], "--interval does not apply"),
        (["--table", "t", "--start", "2024-05-01T08:00:00Z"], "--start does not apply"),
        (["--table", "t", "--token", "x"], "--token does not apply"),
        (["--format", "lines", "--decimal", ","], "--decimal does not apply"),
    ]:
        done = imported(data, path, *arguments, check=False)
        assert done.returncode != 0 and expected in done.stderr, (arguments, done.stderr)
    assert not data.exists()


# --- export, table set, wrong places ---


@pytest.fixture(params=[True, False], ids=["running", "stopped"])
def filled(own_server, request, tmp_path):
    server = own_server()
    day = 86_400
    lines = "".join(f"w,site=x n={n}i {MAY_1ST - MAY_1ST % day + n * day // 2}\n" for n in range(8))
    server.command("import", "--format", "lines", "--precision", "s", write(tmp_path / "w.txt", lines))
    if not request.param:
        server.stop()
    return server


def test_the_ending_of_an_export_decides(filled, tmp_path):
    done = filled.command("export", "--table", "w", "--out", tmp_path / "e.parquet")
    assert "8 rows" in done.stdout and pyarrow.parquet.read_table(tmp_path / "e.parquet").num_rows == 8
    done = filled.command("export", "--table", "w", "--out", tmp_path / "e.csv", "--json")
    assert json.loads(done.stdout) == {"table": "w", "file": str(tmp_path / "e.csv"), "format": "csv", "rows": 8}
    for arguments, expected in [
        (["--out", tmp_path / "e.txt"], "the ending names no format"),
        (["--out", tmp_path / "f.parquet", "--format", "csv"], "another format"),
        (["--where", "device=x"], 'no tag "device"; it has "site"'),
        (["--from", "2024-05-02T00:00:00Z", "--to", "2024-05-01T00:00:00Z"], "no time lies between"),
    ]:
        done = filled.command("export", "--table", "w", *arguments, check=False)
        assert done.returncode == 1 and expected in done.stderr, (arguments, done.stderr)
    done = filled.command("export", "--table", "v", check=False)
    assert done.returncode == 1 and 'there is no table "v"; there are' in done.stderr and '"w"' in done.stderr, done.stderr
    assert not (tmp_path / "e.txt").exists() and not (tmp_path / "f.parquet").exists()


def test_a_time_to_live_says_what_goes_and_asks(filled):
    done = filled.command("table", "set", "w", "--ttl", "1h", "--dry-run", "--json")
    report = json.loads(done.stdout)
    assert (report["rowsToDrop"], report["changed"], report["ttlS"]) == (8, False, 3_600), report
    assert [day["day"] for day in report["days"]] == ["2024-05-01", "2024-05-02", "2024-05-03", "2024-05-04"]
    done = filled.command("table", "set", "w", "--ttl", "36h", check=False)
    assert done.returncode == 1 and "8 rows of 4 days (2024-05-01 to 2024-05-04)" in done.stderr, done.stderr
    assert "nothing was changed" in done.stderr and "--yes" in done.stderr, done.stderr
    assert json.loads(filled.command("table", "list", "--json").stdout)["tables"][-1]["ttlS"] is None
    done = filled.command("table", "set", "w", "--ttl", "36h", "--yes")
    assert "rows are kept 36h" in done.stdout and "8 rows of 4 days" in done.stdout, done.stdout
    listed = filled.command("table", "list").stdout
    assert next(line for line in listed.splitlines() if line.startswith("w ")).endswith("36h"), listed
    done = filled.command("table", "set", "w", "--ttl", "0")
    assert "rows are kept forever" in done.stdout, done.stdout


def test_a_terminal_is_asked(data, tmp_path):
    imported(data, write(tmp_path / "a.csv", "ts,n\n2024-05-01T08:00:00Z,1\n"), "--table", "t")
    for answer, expected in [(b"n\n", 1), (b"yes\n", 0)]:
        leader, follower = pty.openpty()
        arguments = [binary(), "table", "set", "t", "--ttl", "1h", "--data", str(data)]
        process = subprocess.Popen(arguments, stdin=follower, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=clean_environment())
        os.write(leader, answer)
        _, error = process.communicate(timeout=300)
        os.close(leader)
        os.close(follower)
        assert process.returncode == expected and b"Drop them? [y/N]" in error, error


def test_wrong_directories_say_what_is_wrong(data, tmp_path):
    empty, other = tmp_path / "empty", tmp_path / "other"
    empty.mkdir()
    other.mkdir()
    write(other / "x", "")
    imported(data, write(tmp_path / "a.csv", "ts,n\n2024-05-01T08:00:00Z,1\n"), "--table", "t")
    for directory, expected in [
        (tmp_path / "nothing", "there is no data directory"),
        (empty, "it is empty"),
        (other, "is not a data directory"),
        (data / "store", f"--data {data}"),
        (tmp_path / "a.csv", "is a file"),
    ]:
        for command in (["export", "--table", "t"], ["table", "list"], ["check"], ["table", "set", "t", "--ttl", "0"], ["backup", tmp_path / "b"]):
            done = run(*command, "--data", directory, check=False)
            assert done.returncode == 1 and expected in done.stderr, (command, directory, done.stderr)
    assert list(empty.iterdir()) == [] and len(list(other.iterdir())) == 1


def test_a_check_of_a_backup_counts_what_is_in_it(filled, tmp_path):
    if filled.alive():
        server_check = filled.command("check", "--json")
        assert json.loads(server_check.stdout)["damaged"] is False
    for again in range(2):  # the second has files of other names
        done = filled.command("backup", tmp_path / "backup", "--json")
        report = json.loads(done.stdout)
        checked = json.loads(run("check", "--backup", tmp_path / "backup", "--json").stdout)
        rows = checked["partRows"] + checked["logRows"]
        assert rows >= 8 and checked["bytes"] == report["bytes"], (again, checked, report)
        assert checked["series"] >= 1 and checked["tables"] >= 1 and not checked["damaged"], checked
    done = run("restore", tmp_path / "backup", "--data", tmp_path / "restored", "--json")
    restored = json.loads(done.stdout)
    assert restored["partRows"] + restored["logRows"] == rows, restored

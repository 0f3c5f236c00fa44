"""What an operator types: devices, configuration, import."""

import csv
import os
import re
import signal
import stat
import subprocess
from pathlib import Path

import pytest

from harness import sensors
from harness.server import Server, binary, run

HEADER = ["ENGINE_RUN_TINE ()", "ENGINE_RPM ()", "VEHICLE_SPEED ()", "COOLANT_TEMPERATURE ()", "FUEL_TANK ()"]


def test_device_add_and_list_on_a_running_server(own_server):
    server = own_server()
    server.command("device", "add", "truck 7", "--token", "secret-7")
    added = server.command("device", "add", "truck 8")
    listed = server.command("device", "list").stdout
    assert "truck 7" in listed and "truck 8" in listed
    token = next(word for word in added.stdout.split() if len(word) >= 16)
    for name, credential in (("truck 7", "secret-7"), ("truck 8", token)):
        server.api.send(credential, {"n": 1})
        assert server.api.latest(name, "n") == 1
    server.stop()


def test_device_add_and_list_on_a_stopped_directory(own_server):
    server = own_server()
    server.stop()
    server.command("device", "add", "truck 7", "--token", "secret-7")
    assert "truck 7" in server.command("device", "list").stdout
    server.start()
    server.api.send("secret-7", {"n": 1})
    assert server.api.latest("truck 7", "n") == 1
    server.stop()


def test_device_add_before_the_first_start(tmp_path):
    server = Server(tmp_path / "new")
    server.command("device", "add", "truck 7", "--token", "secret-7")
    with server:
        server.api.send("secret-7", {"n": 1})
        assert server.api.latest("truck 7", "n") == 1


def test_many_devices_at_once_with_their_tokens_in_a_file(own_server, tmp_path):
    server, tokens = own_server(), tmp_path / "tokens"
    server.command("device", "add", "--count", "2000", "--prefix", "dev-", "--tokens", tokens)
    lines = tokens.read_text().splitlines()
    assert len(lines) == 2_000
    assert stat.S_IMODE(tokens.stat().st_mode) == 0o600
    assert server.api.get("/api/tenant/devices", pageSize=1, page=0)["totalElements"] == 2_000
    token = next(part for part in lines[1_999].replace(",", " ").split() if part != "dev-1999")
    server.api.send(token, {"n": 1})
    assert server.api.latest("dev-1999", "n") == 1
    server.stop()


def test_token_prefixes_count_up(own_server):
    server = own_server()
    server.command("device", "add", "--count", "3", "--prefix", "dev-", "--token-prefix", "tok")
    for n in range(3):
        server.api.send(f"tok{n}", {"n": n})
        assert server.api.latest(f"dev-{n}", "n") == n
    server.stop()


@pytest.mark.parametrize(("name", "token"), [("truck 7", "another"), ("another", "secret-7")], ids=["name", "token"])
def test_a_name_or_token_that_is_taken_is_refused(own_server, name, token):
    server = own_server()
    server.command("device", "add", "truck 7", "--token", "secret-7")
    done = server.command("device", "add", name, "--token", token, check=False)
    assert done.returncode != 0
    assert ("truck 7" if name == "truck 7" else "token") in done.stderr, done.stderr
    server.stop()


def test_a_second_server_on_the_same_directory_is_refused_by_name(own_server):
    server = own_server()
    second = run("serve", "--data", server.directory, env=server.env, check=False)
    assert second.returncode != 0
    assert str(server.directory) in second.stderr, second.stderr
    server.stop()


@pytest.mark.parametrize(
    ("text", "suggestion"), [("[mqtt]\nlistn = '127.0.0.1:0'\n", "listen"), ("[mqqt]\nlisten = '127.0.0.1:0'\n", "mqtt")]
)
def test_an_unknown_configuration_key_comes_with_a_suggestion(tmp_path, text, suggestion):
    config = tmp_path / "tacho.toml"
    config.write_text(text)
    done = run("serve", "--config", config, "--data", tmp_path / "data", check=False)
    assert done.returncode != 0
    assert str(config) in done.stderr and f"`{suggestion}`" in done.stderr.replace("'", "`").replace('"', "`"), done.stderr


def test_an_unknown_environment_variable_comes_with_a_suggestion(tmp_path):
    done = run("serve", "--data", tmp_path / "data", env={"TACHO_MQTT_LISTN": "127.0.0.1:0"}, check=False)
    assert done.returncode != 0
    assert "TACHO_MQTT_LISTN" in done.stderr and "TACHO_MQTT_LISTEN" in done.stderr, done.stderr


def test_a_port_that_is_taken_is_named(own_server, tmp_path):
    server = own_server()
    address = f"127.0.0.1:{server.mqtt}"
    done = run("serve", "--data", tmp_path / "other", env={"TACHO_MQTT_LISTEN": address, "TACHO_HTTP_LISTEN": "127.0.0.1:0"}, check=False)
    assert done.returncode != 0
    assert address in done.stderr, done.stderr
    server.stop()


def test_a_read_only_directory_is_named(tmp_path):
    directory = tmp_path / "a-file"
    directory.write_text("not a directory")
    done = run("serve", "--data", directory, check=False)
    assert done.returncode != 0
    assert str(directory) in done.stderr, done.stderr


def vehicle_logs(tmp_path):
    """The logs to import: those given, or one small file of the same shape."""
    given = os.environ.get("TACHO_OBD_DIR")
    if given:
        files = sorted(Path(given).glob("*.csv"))
        assert files, f"no .csv in {given}"
        return files
    path = tmp_path / "drive.csv"
    rows = [["0.000000"] * 5] * 3 + [[f"{n}.000000", f"{800 + n}.250000", f"{n % 90}.000000", "81.000000", "60.392159"] for n in range(200)]
    # The trailing comma and the blanks after commas are the logger's.
    path.write_text(",".join(HEADER) + "\n" + "".join(", ".join(row) + ",\n" for row in rows))
    return [path]


def columns(path):
    """{column: [number, ...]} of a log, read with Python's own reader. Cells without text do not count, and
    the empty unit behind a name is not part of it."""
    with path.open(newline="") as text:
        header, *rows = list(csv.reader(text, skipinitialspace=True))
    assert rows
    return {
        re.sub(r"\s*\(\)$", "", name.strip()): [float(row[at]) for row in rows if at < len(row) and row[at].strip()]
        for at, name in enumerate(header)
        if name.strip()
    }


def test_import_keeps_every_row_and_value(own_server, tmp_path):
    server = own_server()
    for number, path in enumerate(vehicle_logs(tmp_path)):
        device = f"car-{number}"
        server.command("device", "add", device)
        done = server.command("import", "--device", device, "--start", "2024-05-01T08:00:00Z", path)
        expected = columns(path)
        rows, count = len(next(iter(expected.values()))), sum(map(len, expected.values()))
        told = (done.stdout + done.stderr).replace(",", "").replace("_", "")
        assert str(rows) in told and str(count) in told, told
        assert sorted(server.api.keys(device)) == sorted(expected)
        for name, numbers in expected.items():
            points = server.api.history(device, name)
            assert [value for _, value in points] == numbers, name
            assert points[0][0] == 1_714_550_400_000
            assert all(later - earlier == 1_000 for (earlier, _), (later, _) in zip(points, points[1:]))
    server.stop()


def test_importing_twice_changes_nothing(own_server, tmp_path):
    server = own_server()
    path = vehicle_logs(tmp_path)[0]
    server.command("device", "add", "car")
    for _ in range(2):
        server.command("import", "--device", "car", "--start", "2024-05-01T08:00:00Z", path)
    name, numbers = next(iter(columns(path).items()))
    assert len(server.api.history("car", name)) == len(numbers)
    server.stop()


def test_a_start_right_after_sigkill_waits_for_the_old_process(own_server):
    server = own_server()
    for _ in range(3):
        old = server.process
        old.kill()  # nobody waits for its end
        server.start()
        assert old.wait() == -signal.SIGKILL
    server.stop()


def test_localhost_is_an_address_and_needs_no_scheme(own_server):
    server = own_server(env={"TACHO_HTTP_LISTEN": "localhost:0"})
    done = run("status", "--url", f"localhost:{server.http}")
    assert done.stdout.startswith("state        ready\n"), done.stdout
    server.stop()


def test_all_commands_take_the_directory_of_the_variable(own_server):
    server = own_server()
    variable = {"TACHO_DATA": str(server.directory)}
    run("device", "add", "truck 7", env=variable)
    assert "truck 7" in run("device", "list", env=variable).stdout
    assert "1 row" in run("sql", "SELECT 1", env=variable).stdout
    server.stop()


SENSOR = """\
name = "street"
[processing-class]
class-name = "Bridge"
[[processing-class.output-structure.field]]
name = "celsius"
type = "double"
[[stream]]
name = "input"
query = "select celsius from road"
[[stream.source]]
alias = "road"
storage-size = 1
[[stream.source.address]]
wrapper = "tacho"
[stream.source.address.predicate]
device = "road-7"
"""


def test_a_sensor_is_listed_right_after_its_file_is_written(own_server):
    server = own_server()
    for name in ("street", "other"):
        sensors.write(server, f"{name}.toml", SENSOR.replace("street", name))
        assert re.search(rf"^{name} +RUNNING ", server.command("sensor", "list").stdout, re.MULTILINE)
    server.stop()


def test_a_reader_that_has_closed_its_pipe_is_no_error(tmp_path):
    (tmp_path / "street.toml").write_text(SENSOR)
    (tmp_path / "road.csv").write_text("timed,celsius\n" + "".join(f"{1_795_000_000_000 + n},{n}\n" for n in range(20_000)))
    line = f'"{binary()}" sensor run street.toml --csv road.csv | head -n 1; echo "${{PIPESTATUS[0]}}"'
    done = subprocess.run(["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("timed,celsius\n0\n", "")

"""Check, backup and restore with the real binary, on running and stopped servers."""

import json
import re
import stat
import tarfile
import threading
import time
from pathlib import Path

import pyarrow.parquet as parquet
import pytest
import requests

from harness.server import run

ROWS = 300


def fill(server, name="truck 7", rows=range(ROWS)):
    """Rows with one key `n`, each acknowledged."""
    token = f"secret {name}".replace(" ", "-")
    server.command("device", "add", name, "--token", token)
    for start in range(rows.start, rows.stop, 100):
        chunk = range(start, min(start + 100, rows.stop))
        server.api.send(token, [{"ts": 1_714_550_400_000 + n * 1_000, "values": {"n": n, "text": f"row {n}"}} for n in chunk])


def fill_more(server, rows, token="secret-truck-7"):
    server.api.send(token, [{"ts": 1_714_550_400_000 + n * 1_000, "values": {"n": n}} for n in rows])


def numbers(server, name="truck 7"):
    return [value for _, value in server.api.history(name, "n")]


def restored(tmp_path, backup, own_server, name="restored"):
    """A server on what was restored from a backup."""
    directory = tmp_path / name
    run("restore", backup, "--data", directory)
    return own_server(directory=directory)


def parts(directory):
    return sorted((Path(directory) / "store" / "parts").glob("*.parquet"))


def filled_part(directory):
    """The first part that holds the rows of a device: the table audit has parts too."""
    return next(part for part in parts(directory) if parquet.read_metadata(part).num_rows >= ROWS)


def flip(path, position=100):
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)


def test_check_finds_nothing_on_a_healthy_server_running_or_stopped(own_server):
    server = own_server()
    fill(server)
    running = server.command("check")
    assert "no damage" in running.stdout, running.stdout
    server.kill()
    before = {path: path.read_bytes() for path in server.directory.rglob("*") if path.is_file() and path.name != "LOCK"}
    stopped = server.command("check")
    assert "no damage" in stopped.stdout, stopped.stdout
    # The rows of the device, and a few of the table audit.
    assert re.search(r"with 30\d rows", stopped.stdout), stopped.stdout
    after = {path: path.read_bytes() for path in server.directory.rglob("*") if path.is_file() and path.name != "LOCK"}
    changed = [path for path in before if before[path] != after.get(path) and not path.name.endswith("-shm")]
    assert changed == [], changed


@pytest.mark.parametrize("running", [True, False], ids=["running", "stopped"])
def test_check_names_a_damaged_part(own_server, tmp_path, running):
    server = own_server()
    fill(server)
    server.command("backup", tmp_path / "backup")  # brings the rows into a part
    if not running:
        server.stop()
    part = filled_part(server.directory)
    flip(part)
    done = server.command("check", check=False)
    assert done.returncode == 1, done.stdout
    assert f"DAMAGE  {part} at byte 0" in done.stdout, done.stdout
    assert "telemetry" in done.stdout and "acknowledged" in done.stdout and "backup" in done.stdout, done.stdout
    # The remedy that it names works: the part of the backup is the same file.
    if not running:
        part.write_bytes((tmp_path / "backup" / "store" / "parts" / part.name).read_bytes())
        assert "no damage" in server.command("check").stdout


def test_check_names_a_part_that_was_deleted_by_hand(own_server, tmp_path):
    server = own_server()
    fill(server)
    server.command("backup", tmp_path / "backup")
    server.stop()
    part = filled_part(server.directory)
    part.unlink()
    done = server.command("check", check=False)
    assert done.returncode == 1 and str(part) in done.stdout and "missing" in done.stdout, done.stdout


def test_check_names_a_damaged_registry(own_server):
    server = own_server()
    fill(server)
    server.stop()
    registry = server.directory / "registry.sqlite"
    data = bytearray(registry.read_bytes())
    for page in range(4096, len(data), 4096):
        data[page : page + 8] = b"w" * 8
    registry.write_bytes(data)
    done = server.command("check", check=False)
    assert done.returncode == 1 and str(registry) in done.stdout, done.stdout


def test_a_backup_of_a_running_server_has_every_acknowledged_row(own_server, tmp_path):
    server = own_server()
    fill(server)
    stop, acked = threading.Event(), []

    def write():
        n = ROWS
        while not stop.is_set():
            server.api.send("secret-truck-7", {"ts": 1_714_550_400_000 + n * 1_000, "values": {"n": n}})
            acked.append(n)
            n += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for round_ in range(3):
            before = len(acked)
            done = server.command("backup", tmp_path / "backup")
            assert "backed up" in done.stdout, done.stdout
            if round_:
                assert "from an earlier backup" in done.stdout, done.stdout
    finally:
        stop.set()
        writer.join()
    copy = restored(tmp_path, tmp_path / "backup", own_server)
    found = numbers(copy)
    assert found[: ROWS + before] == list(range(ROWS + before))
    assert found == list(range(len(found))) and len(found) <= ROWS + len(acked)
    # The devices came along, and the new server takes rows.
    copy.api.send("secret-truck-7", {"n": -1})
    assert copy.api.latest("truck 7", "n") == -1
    copy.stop()
    assert "no damage" in copy.command("check").stdout
    server.stop()


def test_a_backup_of_a_killed_server_has_its_log(own_server, tmp_path):
    server = own_server()
    fill(server)
    server.kill()
    server.command("backup", tmp_path / "backup")
    assert list((tmp_path / "backup" / "store" / "log").glob("*.log"))
    copy = restored(tmp_path, tmp_path / "backup", own_server)
    assert numbers(copy) == list(range(ROWS))
    copy.stop()
    server.start()  # the source is as it was
    assert numbers(server) == list(range(ROWS))
    server.stop()


@pytest.mark.parametrize("running", [True, False], ids=["running", "stopped"])
def test_a_tar_file_unpacks_to_a_data_directory(own_server, tmp_path, running):
    server = own_server()
    fill(server)
    if not running:
        server.stop()
    file = tmp_path / "tacho.tar"
    server.command("backup", "--to", file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert not file.with_suffix(".tar.unfinished").exists()
    copy = restored(tmp_path, file, own_server)
    assert numbers(copy) == list(range(ROWS))
    copy.stop()
    with tarfile.open(file) as tar:
        tar.extractall(tmp_path / "unpacked", filter="data")
    plain = own_server(directory=tmp_path / "unpacked")
    assert numbers(plain) == list(range(ROWS))
    plain.stop()
    again = server.command("backup", "--to", file, check=False)
    assert again.returncode == 1 and "is there already" in again.stderr, again.stderr


def test_days_of_a_week_share_their_parts(own_server, tmp_path):
    server = own_server()
    fill(server)
    server.command("backup", tmp_path / "monday")
    fill(server, "truck 8")
    server.command("backup", tmp_path / "tuesday", "--base", tmp_path / "monday")
    shared = [part for part in parts(tmp_path / "tuesday") if part.stat().st_nlink > 1]
    assert len(shared) == len(parts(tmp_path / "monday")) > 0
    copy = restored(tmp_path, tmp_path / "tuesday", own_server)
    assert numbers(copy) == numbers(copy, "truck 8") == list(range(ROWS))
    copy.stop()
    server.stop()


def test_an_unfinished_or_damaged_backup_is_refused(own_server, tmp_path):
    server = own_server()
    fill(server)
    backup = tmp_path / "backup"
    server.command("backup", backup)
    server.stop()
    assert "no damage" in run("check", "--backup", backup).stdout
    flip(parts(backup)[0])
    checked = run("check", "--backup", backup, check=False)
    assert checked.returncode == 1 and str(parts(backup)[0]) in checked.stdout, checked.stdout
    refused = run("restore", backup, "--data", tmp_path / "a", check=False)
    assert refused.returncode == 1 and str(parts(backup)[0]) in refused.stderr, refused.stderr
    started = run("serve", "--data", tmp_path / "a", check=False)
    assert started.returncode != 0 and "was not finished" in started.stderr, started.stderr
    (backup / "backup.list").unlink()
    refused = run("restore", backup, "--data", tmp_path / "b", check=False)
    assert refused.returncode == 1 and "backup.list" in refused.stderr, refused.stderr


def test_a_restore_overwrites_nothing(own_server, tmp_path):
    server = own_server()
    fill(server)
    server.command("backup", tmp_path / "backup")
    server.stop()
    refused = run("restore", tmp_path / "backup", "--data", server.directory, check=False)
    assert refused.returncode == 1 and "not empty" in refused.stderr, refused.stderr
    server.start()
    assert numbers(server) == list(range(ROWS))
    server.stop()


@pytest.mark.parametrize("running", [True, False], ids=["running", "stopped"])
def test_a_damaged_part_ends_a_backup_or_is_left_out(own_server, tmp_path, running):
    server = own_server()
    fill(server)
    server.command("backup", tmp_path / "first")
    fill(server, "truck 8")
    server.command("backup", tmp_path / "second")
    if not running:
        server.stop()
    part = filled_part(server.directory)
    flip(part)
    backup = tmp_path / "third"
    refused = server.command("backup", backup, check=False)
    assert refused.returncode == 1 and part.name in refused.stderr, refused.stderr
    assert not (backup / "backup.list").exists()
    saved = server.command("backup", backup, "--leave-out-damaged", check=False)
    assert saved.returncode == 1 and part.name in saved.stdout and "backed up" in saved.stdout, saved.stdout + saved.stderr
    copy = restored(tmp_path, backup, own_server)
    assert [len(numbers(copy)), len(numbers(copy, "truck 8"))] == [0, ROWS]
    copy.stop()


def test_a_full_disk_is_told(own_server, tmp_path):
    server = own_server()
    fill(server)
    done = server.command("backup", "--to", "/dev/full", check=False)
    assert done.returncode == 1, done.stdout
    blocked = tmp_path / "file"
    blocked.write_text("")
    done = server.command("backup", blocked, check=False)
    assert done.returncode == 1 and str(blocked) in done.stderr, done.stderr
    server.stop()


def test_nobody_backs_up_without_a_login(own_server):
    server = own_server()
    for path in ("/api/tacho/backup", "/api/tacho/check", "/api/tacho/maintenance/flush", "/api/tacho/maintenance/compact"):
        assert requests.post(server.url + path, timeout=60).status_code == 401
    wrong = run("backup", server.directory.parent / "x", "--url", server.url, "--password", "wrong", check=False)
    assert wrong.returncode == 1, wrong.stdout
    server.stop()


@pytest.mark.parametrize("running", [True, False], ids=["running", "stopped"])
def test_flush_writes_parts_and_compact_merges_them(own_server, running):
    server = own_server()
    fill(server, rows=range(100))
    for start in range(100, 600, 100):
        fill_more(server, range(start, start + 100))
        done = json.loads(server.command("flush", "--json").stdout)
        assert done["rows"] >= 100 and done["bytes"] > 0, done
        assert done["partsAfter"] > 0 and done["bytesAfter"] > 0, done
    if not running:
        server.stop()
    before = len(parts(server.directory))
    done = json.loads(server.command("compact", "--json").stdout)
    assert done["partsAfter"] <= done["partsBefore"] <= before + 2, done
    again = server.command("compact").stdout
    assert again.startswith("0 rows in 0 B of parts written:"), again
    if not running:
        server.start()
    assert len(numbers(server)) == 600
    server.stop()


DAY_MS = 86_400_000


@pytest.mark.parametrize("running", [True, False], ids=["running", "stopped"])
def test_a_table_keeps_its_rows_as_long_as_it_is_told(own_server, tmp_path, running):
    server = own_server()
    fill(server)
    server.command("backup", tmp_path / "backup")  # brings the rows into a part
    now_ms = int(time.time() * 1_000)
    server.api.send("secret-truck-7", {"ts": now_ms, "values": {"n": 7_000}})
    if not running:
        server.stop()
    wrong = server.command("table", "set", "telemetri", "--ttl", "30d", check=False)
    assert wrong.returncode == 1 and "no table" in wrong.stderr, wrong.stderr
    assert server.command("table", "set", "telemetry", "--ttl", "tomorrow", check=False).returncode == 2
    done = server.command("table", "set", "telemetry", "--ttl", "30d", "--yes")
    assert "telemetry" in done.stdout and "kept 30d" in done.stdout, done.stdout
    listed = [line.split() for line in server.command("table", "list").stdout.splitlines()]
    assert [line[-1] for line in listed if line[0] == "telemetry"] == ["30d"], listed
    lines = tmp_path / "old.lp"
    lines.write_text(f"telemetry,device=truck-7 n=1 {(now_ms - 31 * DAY_MS) * 1_000_000}\n")
    done = server.command("import", "--format", "lines", lines, check=False)
    assert done.returncode == 1, done.stdout
    assert "skipped: 1 rows are older than their table keeps rows" in done.stdout, done.stdout
    if not running:
        server.start()
    refused = requests.post(
        f"{server.url}/api/v1/secret-truck-7/telemetry",
        json={"ts": now_ms - 31 * DAY_MS, "values": {"n": 1}},
        timeout=10,
    )
    assert refused.status_code == 400 and "keeps rows" in refused.text, refused.text
    # The old rows go, within a minute or at the start; the new one stays.
    deadline = time.monotonic() + 90
    while numbers(server) != [7_000] and time.monotonic() < deadline:
        time.sleep(0.5)
    assert numbers(server) == [7_000]

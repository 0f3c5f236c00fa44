"""Hostile files: forged backups, and imports whose content is much larger than the file.

Each test is an attack that worked once, or one of its kind. None may change what a server trusts, and none may take more
memory than is set aside for it.
"""

import hashlib
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy
import pyarrow
import pyarrow.parquet
import pytest
import requests

from backups import LIST, crc32c, entries, entry, line_of, list_of, with_file, write_tar
from harness.server import Server, binary, clean_environment, run

MIB = 1024 * 1024
PUBLIC = b"[http]\npublic_read = true\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A server's backup as a tar file and as a directory, with their digests."""
    place = tmp_path_factory.mktemp("made")
    with Server(place / "data") as server:
        server.command("device", "add", "truck", "--token", "secret")
        server.api.send("secret", [{"ts": 1_714_550_400_000 + n, "values": {"n": n}} for n in range(50)])
        made = {}
        for kind, where in (("tar", ["--to", place / "a.tar"]), ("directory", [place / "directory"])):
            told = server.command("backup", *where).stdout
            made[kind] = (where[-1], re.search(r"^digest +([0-9a-f]{64})$", told, re.MULTILINE)[1])
    return made


def is_refused(data, backup, *arguments, reason):
    """A restore fails for a reason, and no command takes its directory for a whole one."""
    done = run("restore", backup, "--data", data, *arguments, check=False)
    assert done.returncode == 1 and reason in done.stderr, done.stdout + done.stderr
    if data.exists() and any(data.iterdir()):
        for command in (["serve"], ["check"], ["backup", f"{data}-backup"], ["table", "list"], ["device", "list"]):
            used = run(*command, "--data", data, check=False)
            assert used.returncode == 1 and "restore" in used.stderr and "was not finished" in used.stderr, (command, used.stderr)
        again = run("restore", backup, "--data", data, check=False)
        assert again.returncode == 1 and "was not finished" in again.stderr, again.stderr


def restored(data, backup, *arguments):
    run("restore", backup, "--data", data, *arguments)
    return data


def test_a_backup_is_restored_and_has_the_printed_digest(made, tmp_path):
    for kind, (backup, digest) in made.items():
        data = restored(tmp_path / kind, backup, "--digest", digest)
        assert "no damage" in run("check", "--data", data).stdout
        wrong = digest.translate(str.maketrans("0123456789abcdef", "123456789abcdef0"))
        is_refused(tmp_path / f"not {kind}", backup, "--digest", wrong, reason=digest)
    directory, digest = made["directory"]
    assert "no damage" in run("check", "--backup", directory, "--digest", digest).stdout
    assert run("check", "--backup", directory, "--digest", "0" * 64, check=False).returncode == 1
    assert run("restore", directory, "--data", tmp_path / "x", "--digest", "0" * 63, check=False).returncode == 2
    assert run("check", "--data", tmp_path / "tar", "--digest", digest, check=False).returncode == 2


# --- entries of a tar file ---


ENTRIES = {
    "a configuration before the list": (False, entry("tacho.toml", PUBLIC), "tacho.toml is in it, but not in its backup.list"),
    "a configuration behind the list": (True, entry("tacho.toml", PUBLIC), "comes behind backup.list"),
    "a second registry": (False, entry("registry.sqlite", b"another"), '"registry.sqlite" comes twice'),
    "a second registry behind the list": (True, entry("registry.sqlite", b"another"), '"registry.sqlite" comes behind'),
    "a second list": (True, entry(LIST, b""), "comes behind"),
    "a symbolic link": (False, entry("tacho.toml", kind=tarfile.SYMTYPE, link="/etc/passwd"), "a symbolic link"),
    "a hard link": (False, entry("tacho.toml", kind=tarfile.LNKTYPE, link="registry.sqlite"), "a hard link"),
    "a device": (False, entry("tacho.toml", kind=tarfile.CHRTYPE), "a device"),
    "a pipe": (False, entry("tacho.toml", kind=tarfile.FIFOTYPE), "a pipe"),
    "a directory": (False, entry("store", kind=tarfile.DIRTYPE), "a directory"),
    "a way out": (False, entry("../escaped", b"x"), '"../escaped"'),
    "a way out inside": (False, entry("store/../../escaped", b"x"), '"store/../../escaped"'),
    "an absolute path": (False, entry("/tmp/escaped", b"x"), '"/tmp/escaped"'),
    "a name that is too long": (False, entry("x" * 200, b"x"), "plain files"),
    "a log of SQLite's": (False, entry("registry.sqlite-wal", b"x"), "registry.sqlite-wal"),
    "a lock": (False, entry("store/LOCK", b"1"), "store/LOCK"),
    "the mark": (False, entry("restore.unfinished", b""), "restore.unfinished"),
}


@pytest.mark.parametrize("case", ENTRIES)
def test_an_entry_that_the_list_does_not_name_is_refused(made, tmp_path, case):
    behind, stranger, reason = ENTRIES[case]
    members = [entry(name, content) for name, content in entries(made["tar"][0]).items()]
    members.insert(len(members) if behind else len(members) - 1, stranger)
    backup = write_tar(tmp_path / "forged.tar", members)
    is_refused(tmp_path / "data", backup, reason=reason)
    assert not (tmp_path / "escaped").exists() and not os.path.exists("/tmp/escaped")


def test_a_forged_list_is_refused_by_its_path(made, tmp_path):
    files = entries(made["tar"][0])
    for number, name in enumerate(["registry.sqlite-wal", "restore.unfinished", "store/LOCK", "store/x", "bin/sh"]):
        forged = with_file(files, name, b"x")
        backup = write_tar(tmp_path / "forged.tar", [entry(*file) for file in forged.items()])
        is_refused(tmp_path / str(number), backup, reason=name)
    twice = list_of(files[LIST].decode(), lambda lines: [*lines, line_of("registry.sqlite", b"other")])
    backup = write_tar(tmp_path / "forged.tar", [entry(*file) for file in (files | {LIST: twice}).items()])
    is_refused(tmp_path / "twice", backup, reason="twice")
    without = {name: content for name, content in files.items() if name != "registry.sqlite"}
    shorter = list_of(files[LIST].decode(), lambda lines: [line for line in lines if "registry" not in line])
    backup = write_tar(tmp_path / "forged.tar", [entry(*file) for file in (without | {LIST: shorter}).items()])
    is_refused(tmp_path / "without", backup, reason="does not name registry.sqlite")


# --- files of a directory ---


def test_an_unlisted_file_is_not_restored_and_a_link_is_refused(made, tmp_path):
    directory = tmp_path / "backup"
    shutil.copytree(made["directory"][0], directory)
    (directory / "tacho.toml").write_bytes(PUBLIC)
    (directory / "registry.sqlite-wal").write_bytes(b"x")
    data = restored(tmp_path / "beside", directory)
    assert not (data / "tacho.toml").exists() and not (data / "registry.sqlite-wal").exists()
    registry = directory / "registry.sqlite"
    registry.rename(tmp_path / "elsewhere")
    registry.symlink_to(tmp_path / "elsewhere")
    is_refused(tmp_path / "link", directory, reason="a link or a device")
    registry.unlink()
    os.mkfifo(registry)  # a process that opens it blocks forever
    is_refused(tmp_path / "pipe", directory, reason="a link or a device")
    checked = run("check", "--backup", directory, check=False)
    assert checked.returncode == 1 and "a link or a device" in checked.stdout, checked.stdout
    (directory / LIST).unlink()
    os.mkfifo(directory / LIST)
    is_refused(tmp_path / "list", directory, reason="not a plain file")


# --- attacks that only the digest detects ---


def test_a_forged_file_with_a_forged_list_is_what_the_digest_refuses(made, tmp_path):
    tar, digest = made["tar"]
    files = with_file(entries(tar), "tacho.toml", PUBLIC)
    backup = write_tar(tmp_path / "forged.tar", [entry(*file) for file in files.items()])
    is_refused(tmp_path / "tar", backup, "--digest", digest, reason="it is another backup, or somebody has changed it")
    assert (restored(tmp_path / "nobody asked", backup) / "tacho.toml").read_bytes() == PUBLIC
    directory, digest = made["directory"]
    shutil.copytree(directory, tmp_path / "backup")
    registry = tmp_path / "backup" / "registry.sqlite"
    with sqlite3.connect(registry) as changed:
        changed.execute("CREATE TABLE forged (x)")
    text = list_of((tmp_path / "backup" / LIST).read_text(), lambda lines: [
        line_of("registry.sqlite", registry.read_bytes()) if " registry.sqlite\t" in line else line for line in lines
    ])
    (tmp_path / "backup" / LIST).write_bytes(text)
    is_refused(tmp_path / "directory", tmp_path / "backup", "--digest", digest, reason="somebody has changed it")
    checked = run("check", "--backup", tmp_path / "backup", "--digest", digest, check=False)
    assert checked.returncode == 1 and "somebody has changed it" in checked.stderr, checked.stderr


def test_a_file_with_the_same_crc_is_not_the_same_file(made, tmp_path):
    tar, digest = made["tar"]
    files = entries(tar)
    content = bytearray(files["registry.sqlite"])
    wanted = crc32c(bytes(content))
    content[60] ^= 1
    forge(content, wanted)
    assert crc32c(bytes(content)) == wanted and bytes(content) != files["registry.sqlite"]
    files["registry.sqlite"] = bytes(content)
    backup = write_tar(tmp_path / "forged.tar", [entry(*file) for file in files.items()])
    for number, more in enumerate([(), ("--digest", digest)]):
        is_refused(tmp_path / str(number), backup, *more, reason="registry.sqlite is missing or does not have its checksum")


def forge(content: bytearray, wanted: int):
    """Changes four bytes near the beginning so that the whole has a CRC-32C again: it is linear."""
    at = 64
    base = crc32c(bytes(content))
    rows = []
    for bit in range(32):
        content[at + bit // 8] ^= 1 << bit % 8
        rows.append((crc32c(bytes(content)) ^ base, 1 << bit))
        content[at + bit // 8] ^= 1 << bit % 8
    left, flips = wanted ^ base, 0
    for position in range(32):
        pivot = next(row for row in rows if row[0] >> position & 1)
        rows = [(row[0] ^ pivot[0], row[1] ^ pivot[1]) if row[0] >> position & 1 else row for row in rows if row is not pivot]
        if left >> position & 1:
            left, flips = left ^ pivot[0], flips ^ pivot[1]
    for bit in range(32):
        if flips >> bit & 1:
            content[at + bit // 8] ^= 1 << bit % 8


def test_a_backup_of_an_older_version_is_refused_with_the_commit_that_reads_it(made, tmp_path):
    def older(lines):
        lines[0] = "tachograph backup 1\n"
        return [re.sub(r"^(file \d+ [0-9a-f]{8}) [0-9a-f]{64} ", r"\1 ", line) for line in lines]

    files = entries(made["tar"][0])
    files[LIST] = list_of(files[LIST].decode(), older)
    backup = write_tar(tmp_path / "older.tar", [entry(*file) for file in files.items()])
    is_refused(tmp_path / "data", backup, reason="ad6acc8b")
    digest = hashlib.sha256(files[LIST]).hexdigest()
    is_refused(tmp_path / "digest", backup, "--digest", digest, reason="ad6acc8b")


# --- a registry that is damaged ---


def test_a_damaged_registry_leaves_a_directory_that_no_server_starts_on(made, tmp_path):
    files = entries(made["tar"][0])
    registry = bytearray(files["registry.sqlite"])
    for page in range(4096, len(registry), 4096):
        registry[page : page + 8] = b"w" * 8
    for number, content in enumerate([bytes(registry), b"no database at all" * 400]):
        forged = with_file(files, "registry.sqlite", content)
        backup = write_tar(tmp_path / "forged.tar", [entry(*file) for file in forged.items()])
        is_refused(tmp_path / str(number), backup, reason="registry.sqlite")


# --- imports that unfold to more than they are ---


# A small process between: a child's peak is at least that of the process which it was forked from.
MEASURE = """
import json, os, subprocess, sys
done = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
errors = done.stderr.read()
_, status, usage = os.wait4(done.pid, 0)
print(json.dumps([os.waitstatus_to_exitcode(status), errors, usage.ru_maxrss // 1024]))
"""


def peak_of(*arguments):
    """Runs a command; gives its exit code, its errors and the most memory that it had, in MiB."""
    command = [sys.executable, "-c", MEASURE, binary(), *map(str, arguments)]
    done = subprocess.run(command, env=clean_environment(), capture_output=True, text=True, timeout=120, check=True)
    return json.loads(done.stdout)


def peak_of_server(server) -> int:
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) // 1024


def parquet(path, rows, values, **options):
    """A file with one text in each row, out of a dictionary."""
    indices = pyarrow.array(numpy.arange(rows, dtype=numpy.int32) % len(values))
    texts = pyarrow.DictionaryArray.from_arrays(indices, pyarrow.array(values))
    times = pyarrow.array(1_714_550_400_000_000 + numpy.arange(rows), pyarrow.timestamp("us", "UTC"))
    table = pyarrow.table({"ts": times, "n": pyarrow.array(numpy.arange(rows)), "text": texts})
    pyarrow.parquet.write_table(table, path, compression="zstd", dictionary_pagesize_limit=64 * MIB, **options)
    return path


@pytest.mark.parametrize("schema", [True, False], ids=["as a dictionary", "as text"])
def test_a_parquet_file_of_some_kilobytes_does_not_unfold_to_gigabytes(own_server, tmp_path, schema):
    # 2000 rows, each with a text of four mebibytes.
    bomb = parquet(tmp_path / "bomb.parquet", 2_000, ["x" * (4 * MIB)], store_schema=schema)
    assert bomb.stat().st_size < 100_000, bomb.stat().st_size
    code, errors, peak = peak_of("import", "--create", "--data", tmp_path / "data", "--table", "t", bomb)
    assert code == 1 and "2,000 values" in errors, errors  # texts that are too long are left out and counted
    assert peak < 400, f"{peak} MiB"
    server = own_server(directory=tmp_path / "server")
    before = peak_of_server(server)
    reply = post(server, bomb.read_bytes())
    assert reply.status_code == 200 and (reply.json()["rows"], reply.json()["tooLong"]) == (2_000, 2_000), reply.text
    assert peak_of_server(server) < before + 300, f"{peak_of_server(server)} MiB"
    server.stop()


def post(server, body):
    headers = server.api.session.headers
    return requests.post(f"{server.url}/api/tacho/import", params={"table": "t"}, data=body, headers=headers, timeout=60)


def test_a_parquet_file_whose_one_row_is_too_large_is_refused_by_name(own_server, tmp_path):
    bomb = tmp_path / "bomb.parquet"
    text = pyarrow.StringArray.from_buffers(1, pyarrow.py_buffer(numpy.array([0, 300 * MIB], numpy.int32)), pyarrow.py_buffer(bytes(300 * MIB)))
    table = pyarrow.table({"ts": pyarrow.array([0], pyarrow.timestamp("us", "UTC")), "text": text})
    pyarrow.parquet.write_table(table, bomb, compression="zstd", use_dictionary=False, write_statistics=False)
    assert bomb.stat().st_size < 100_000, bomb.stat().st_size
    server = own_server()
    before = peak_of_server(server)
    reply = post(server, bomb.read_bytes())
    assert reply.status_code == 400 and "one row unfolds to more than 268435456 bytes" in reply.text, reply.text
    same = pyarrow.array(numpy.full(17 * MIB, 1_714_550_400_000_000), pyarrow.timestamp("us", "UTC"))
    pyarrow.parquet.write_table(pyarrow.table({"ts": same}), tmp_path / "many.parquet")
    assert (tmp_path / "many.parquet").stat().st_size < 100_000
    reply = post(server, (tmp_path / "many.parquet").read_bytes())
    assert reply.status_code == 400 and "17825792 rows, 16777216 are taken at once" in reply.text, reply.text
    assert peak_of_server(server) < before + 200, f"{peak_of_server(server)} MiB"
    server.stop()


@pytest.mark.parametrize(("name", "reason"), [("a.lp", "a line is longer than 1048576 bytes"), ("a.csv", "")])
def test_a_line_of_two_gigabytes_is_refused_and_not_buffered(tmp_path, name, reason):
    path = tmp_path / name
    with open(path, "wb") as file:
        file.write(b"ts,text\n2024-05-01T08:00:00Z,\"" if name == "a.csv" else b"m f=1")
        if name == "a.csv":
            file.write(b"x" * (64 * MIB))
        file.truncate(2_000 * MIB)  # zeros, which are letters like others here
    table = [] if name == "a.lp" else ["--table", "t"]
    code, errors, peak = peak_of("import", "--create", "--data", tmp_path / "data", *table, path)
    assert code == 1 and (reason or "a row is longer than 16 MiB") in errors, errors
    assert peak < 250, f"{peak} MiB"


@pytest.mark.parametrize("kind", ["parquet", "lines", "csv"])
def test_the_last_time_of_all_is_refused_with_the_range_and_others_are_kept(tmp_path, kind):
    last, first = 2**63 - 1, -(2**63)
    rows = [(last, 1), (last - 1, 2), (0, 3), (first, 4)]
    path, data = tmp_path / {"parquet": "a.parquet", "lines": "a.lp", "csv": "a.csv"}[kind], tmp_path / "data"
    options = ["--table", "t"]
    if kind == "parquet":
        times = pyarrow.array([ts for ts, _ in rows], pyarrow.timestamp("us", "UTC"))
        pyarrow.parquet.write_table(pyarrow.table({"ts": times, "n": [n for _, n in rows]}), path)
    elif kind == "lines":
        path.write_text("".join(f"t n={n}i {ts}\n" for ts, n in rows))
        options = ["--precision", "us"]
    else:
        path.write_text("ts,n\n" + "".join(f"{ts},{n}\n" for ts, n in rows))
        options += ["--ts-format", "us"]
    done = run("import", "--create", "--data", data, "--any-time", *options, path, check=False)
    assert done.returncode == 1 and "3 rows with 3 values imported" in done.stdout, done.stdout
    assert f"1 rows have a time that cannot be kept: the range is {first} to {last - 1} us since 1970" in done.stdout, done.stdout
    kept = run("export", "--data", data, "--table", "t").stdout.split()
    assert [line.split(",")[1] for line in kept] == ["n", "4", "3", "2"], kept


# --- a log whose end was cut ---


def log_of(server):
    """The newest segment, and where its frames begin."""
    path = max((server.directory / "store" / "log").glob("*.log"))
    return path, [match.start() for match in re.finditer(b"TFRM", path.read_bytes())]


@pytest.mark.parametrize("ended", ["stopped", "killed"])
@pytest.mark.parametrize("how", ["shorter", "zeros"])
def test_a_log_whose_end_was_cut_is_damage(own_server, tmp_path, ended, how):
    server = own_server()
    server.command("device", "add", "truck", "--token", "secret")
    sent = 0
    # The server continues to a second segment soon after its start.
    while sent < 20 or len(log_of(server)[1]) < 10:
        server.api.send("secret", {"ts": 1_714_550_400_000 + sent, "values": {"n": sent}})
        sent += 1
        assert sent < 90
    server.stop() if ended == "stopped" else server.kill()
    assert "no damage" in server.command("check").stdout
    path, frames = log_of(server)
    content = path.read_bytes()
    kept = frames[len(frames) // 2]  # where a frame begins, so that nothing looks torn
    path.write_bytes(content[:kept] if how == "shorter" else content[:kept].ljust(len(content), b"\0"))
    done = server.command("check", check=False)
    # The rows of the device and 2 of the table audit.
    acknowledged = f"acknowledged are rows up to {sent + 2}"
    assert done.returncode == 1 and acknowledged in done.stdout, done.stdout
    refused = server.command("backup", tmp_path / "backup", check=False)
    assert refused.returncode == 1 and "the log is damaged" in refused.stderr, refused.stderr
    server.start()
    assert acknowledged in server.log(), server.log()
    kept = [value for _, value in server.api.history("truck", "n")]
    assert kept == list(range(len(kept))) and 0 < len(kept) < sent, kept
    server.api.send("secret", {"ts": 1_714_550_500_000, "values": {"n": 100}})
    server.kill()
    # The server reports the damage once; later rows are readable.
    assert "no damage" in server.command("check").stdout
    server.start()
    assert [value for _, value in server.api.history("truck", "n")] == [*kept, 100]
    server.stop()


def test_a_log_without_a_note_of_its_end_is_not_damage(own_server):
    server = own_server()
    server.command("device", "add", "truck", "--token", "secret")
    server.api.send("secret", {"ts": 1_714_550_400_000, "values": {"n": 1}})
    server.kill()
    note = server.directory / "store" / "log" / "acknowledged"
    whole = note.read_bytes()
    for content in (None, b"", whole[:10], whole[:-1] + b"?"):
        note.unlink() if content is None else note.write_bytes(content)
        assert "no damage" in server.command("check").stdout
    server.start()
    assert server.api.latest("truck", "n") == 1
    server.stop()

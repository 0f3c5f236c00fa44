"""The scripts in `slt/` through the PostgreSQL door, run by sqllogictest's own program."""

import os
import subprocess
from pathlib import Path

import pytest

from harness.server import Server
from test_postgres import USER

HERE = Path(__file__).parent
MINUTES = {
    "bus-1": [(0, "speed=10,odo=100i"), (1, "speed=20,odo=110i"), (2, "speed=30,odo=125i"), (3, "odo=5i"), (4, "speed=50,odo=20i"), (5, "speed=60,odo=40i")],
    "bus-2": [(0, "speed=1.5"), (2, "speed=2.5"), (4, "speed=3.5")],
    "car-1": [(1, 'speed=100,note="hello",on=true')],
}
NEW_YEAR_S = 1_767_225_600


def program() -> str:
    """Where `make setup` has put it."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    path = os.environ.get("SQLLOGICTEST") or str(cache / "tachograph" / "tools" / "bin" / "sqllogictest")
    assert os.access(path, os.X_OK), f"{path} is not there: run `make setup`, or name one with SQLLOGICTEST"
    return path


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A server with a few rows of three vehicles."""
    directory = tmp_path_factory.mktemp("sqllogictest")
    lines = directory / "telemetry.lp"
    rows = [(device, minute, fields) for device, reported in MINUTES.items() for minute, fields in reported]
    lines.write_text("".join(f"telemetry,device={device} {fields} {NEW_YEAR_S + 60 * minute}\n" for device, minute, fields in rows))
    with Server(directory / "data", {"TACHO_POSTGRES_LISTEN": "127.0.0.1:0"}) as server:
        server.command("import", "--format", "lines", "--precision", "s", lines)
        yield server
        assert server.alive(), server.log()


@pytest.mark.parametrize("engine", ["postgres", "postgres-extended"])
@pytest.mark.parametrize("script", sorted((HERE / "slt").glob("*.slt")), ids=lambda path: path.stem)
def test_scripts(filled, engine, script):
    done = subprocess.run(
        [program(), "--engine", engine, "--host", "127.0.0.1", "--port", str(filled.listeners["postgres"]), "--user", USER,
         "--pass", filled.password, "--db", "tacho", "--color", "never", str(script)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_wrong_answer_fails_the_script(filled, tmp_path):
    script = tmp_path / "wrong.slt"
    script.write_text("query I\nSELECT count(*) FROM telemetry\n----\n11\n")
    done = subprocess.run(
        [program(), "--engine", "postgres", "--host", "127.0.0.1", "--port", str(filled.listeners["postgres"]), "--user", USER,
         "--pass", filled.password, "--db", "tacho", str(script)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode != 0 and "query result mismatch" in done.stdout + done.stderr

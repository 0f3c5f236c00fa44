"""`tacho sql`: answers on a pipe, in files and at a prompt; a running server and a stopped one's directory."""

import json
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from fcntl import ioctl

import pyarrow.parquet as pq
import pytest

from harness.server import binary, clean_environment, run

GUARD_S = 60
T0 = 1_768_464_000_000


@pytest.fixture
def truck(server, device):
    server.api.send(device.token, [{"ts": T0 + n * 1_000, "values": {"cmd_speed": n + 0.5}} for n in range(3)])
    return device


def test_a_table_for_people(server, truck):
    done = server.command("sql", f"SELECT ts, cmd_speed FROM telemetry WHERE device = '{truck.name}' ORDER BY ts")
    assert "│ 2026-01-15T08:00:02.000000Z ┆       2.5 │" in done.stdout, done.stdout
    assert "3 rows in " in done.stdout


def test_forms_and_files(server, truck, tmp_path):
    query = f"SELECT cmd_speed FROM telemetry WHERE device = '{truck.name}' ORDER BY ts"
    assert server.command("sql", "--format", "csv", query).stdout == "cmd_speed\n0.5\n1.5\n2.5\n"
    assert '"row_count":3' in server.command("sql", "--format", "json", query).stdout
    out = tmp_path / "speeds.parquet"
    server.command("sql", "--out", str(out), query)
    assert pq.read_table(out).column("cmd_speed").to_pylist() == [0.5, 1.5, 2.5]
    again = server.command("sql", "--out", str(out), query, check=False)
    assert again.returncode == 1 and "not there yet" in again.stderr
    wrong = tmp_path / "wrong.csv"
    failed = server.command("sql", "--out", str(wrong), "SELECT nothing FROM telemetry", check=False)
    assert failed.returncode == 1 and not wrong.exists(), failed.stderr


def test_queries_from_standard_input(server, truck):
    done = subprocess.run(
        [binary(), "sql", "--format", "csv", "--data", str(server.directory)],
        env=clean_environment() | server.env,
        input="SELECT 1 AS a; -- and\nSELECT ';' AS b;",
        capture_output=True,
        text=True,
        timeout=GUARD_S,
    )
    assert (done.returncode, done.stdout) == (0, "a\n1\nb\n;\n"), done


def test_errors_name_what_is_wrong(server):
    done = server.command("sql", "SELECT * FROM telemetri", check=False)
    assert done.returncode == 1 and "does not exist" in done.stderr, done.stderr
    nowhere = run("sql", "--data", "/nowhere", "SELECT 1", check=False)
    assert nowhere.returncode == 1 and "no data directory" in nowhere.stderr, nowhere.stderr


def test_a_stopped_servers_directory_is_read(own_server):
    server = own_server()
    device = server.device()
    server.api.send(device.token, {"ts": T0, "values": {"speed": 7.5}})
    server.stop()
    done = server.command("sql", "--format", "csv", "SELECT device, speed FROM telemetry")
    assert done.stdout == f"device,speed\n{device.name},7.5\n"
    server.start()
    assert server.api.history(device.name, "speed") == [(T0, 7.5)]
    server.stop()


class Terminal:
    """A command at a pseudo terminal."""

    def __init__(self, *arguments, env, columns=80):
        self.master, slave = pty.openpty()
        ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        self.process = subprocess.Popen(
            [binary(), *arguments], env=env | {"TERM": "xterm"}, stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
            preexec_fn=lambda: ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(slave)
        self.seen = ""

    def send(self, text):
        os.write(self.master, text.encode())
        return self

    def until(self, text):
        """Reads until the text has come; what came before it is forgotten."""
        deadline = time.monotonic() + GUARD_S
        while text not in self.seen:
            assert time.monotonic() < deadline, f"{text!r} did not come in {self.seen!r}"
            if select.select([self.master], [], [], 1)[0]:
                try:
                    self.seen += os.read(self.master, 65_536).decode(errors="replace")
                except OSError:
                    raise AssertionError(f"ended without {text!r}: {self.seen!r}") from None
        before, self.seen = self.seen.split(text, 1)
        return before

    def close(self):
        try:
            code = self.process.wait(timeout=GUARD_S)
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
            os.close(self.master)
        return code


@pytest.fixture
def prompt(server, tmp_path):
    """A prompt with its own history file."""
    env = clean_environment() | server.env | {"XDG_STATE_HOME": str(tmp_path / "state"), "PAGER": ""}
    terminal = Terminal("sql", "--data", str(server.directory), env=env)
    terminal.until("tacho> ")
    yield terminal
    if terminal.process.poll() is None:
        os.kill(terminal.process.pid, signal.SIGKILL)
        terminal.close()


def test_the_prompt_asks_answers_and_keeps_its_history(server, truck, prompt, tmp_path):
    prompt.send("SELECT 40 +\r").until("-> ")
    prompt.send("2 AS answer;\r").until("│     42 │")
    prompt.until("1 row in ")
    prompt.until("tacho> ")
    prompt.send("\\d\r").until("telemetry")
    prompt.until("tacho> ")
    prompt.send("\\d telemetry\r").until("cmd_speed")
    prompt.until("tacho> ")
    prompt.send("SELECT nothing;\r").until("error: ")
    prompt.until("tacho> ")
    prompt.send("\\timing\r").until("not shown")
    prompt.until("tacho> ")
    prompt.send("\\q\r")
    assert prompt.close() == 0
    history = tmp_path / "state" / "tachograph" / "sql_history"
    assert "SELECT 40 + 2 AS answer;" in history.read_text()
    assert history.parent.stat().st_mode & 0o777 == 0o700


def test_tab_completes_columns_and_tables(server, truck, prompt):
    # The prompt reads the names at its start, after the device has reported.
    prompt.send("SELECT max(cmd_sp\t) AS m FROM telem\t WHERE device = 'x';\r").until("1 row")
    prompt.until("tacho> ")
    prompt.send("\x04")
    assert prompt.close() == 0


def test_ctrl_c_cancels_the_query_and_the_line(server, prompt):
    prompt.send("SELECT 1 + \x03").until("tacho> ")
    # A long query shows its progress.
    prompt.send("SELECT count(*) FROM generate_series(1, 100000000000) AS t(x);\r").until("waiting for the answer")
    prompt.send("\x03").until("cancelled")
    prompt.until("tacho> ")
    prompt.send("SELECT 7 * 6 AS x;\r").until("42")
    prompt.until("tacho> ")  # a key that comes before the prompt is not the prompt's
    prompt.send("\x04")
    assert prompt.close() == 0


WIDE = "SELECT repeat('x', 500) AS wide, 1 AS one"


def test_tables_wider_than_the_terminal_are_shown_row_by_row(server, tmp_path):
    env = clean_environment() | server.env | {"XDG_STATE_HOME": str(tmp_path)}
    terminal = Terminal("sql", "--data", str(server.directory), WIDE, env=env, columns=50)
    before = terminal.until("1 row in ")
    assert terminal.close() == 0
    assert before.startswith("─[ 1 ]─") and "x" * 500 in before and "one  │ 1" in before, before


def test_tables_can_be_cut_to_fit_the_terminal(server, tmp_path):
    env = clean_environment() | server.env | {"XDG_STATE_HOME": str(tmp_path)}
    terminal = Terminal("sql", "--data", str(server.directory), "--expanded", "off", WIDE, env=env, columns=50)
    before = terminal.until("1 row in ")
    assert terminal.close() == 0
    assert all(len(line) <= 50 for line in before.splitlines()), before
    assert "…" in before


def test_rows_are_expanded_when_the_user_says_so(server, prompt):
    prompt.send("SELECT 1 AS one, 2 AS two;\r").until("│ one ┆ two │")
    prompt.until("tacho> ")
    prompt.send("\\x\r").until("one below the other")
    prompt.until("tacho> ")
    prompt.send("SELECT 1 AS one, 2 AS two;\r").until("one │ 1")
    prompt.until("tacho> ")
    prompt.send("\\x auto\r").until("do not fit")
    prompt.until("tacho> ")
    prompt.send("SELECT 1 AS one, 2 AS two;\r").until("│ one ┆ two │")


def test_long_answers_go_through_the_pager_until_it_is_switched_off(server, tmp_path):
    seen = tmp_path / "seen"
    env = clean_environment() | server.env | {"XDG_STATE_HOME": str(tmp_path), "PAGER": f"cat > {seen}"}
    prompt = Terminal("sql", "--data", str(server.directory), env=env)
    prompt.until("tacho> ")
    long = "SELECT x FROM generate_series(1, 100) AS t(x);\r"
    prompt.send(long).until("tacho> ")
    assert "100 rows in " in seen.read_text() and "│  42 │" in seen.read_text()
    seen.unlink()
    prompt.send("SELECT 1 AS short;\r").until("1 row in ")
    prompt.until("tacho> ")
    prompt.send("\\pset pager off\r").until("do not go")
    prompt.until("tacho> ")
    prompt.send(long).until("100 rows in ")
    prompt.until("tacho> ")
    assert not seen.exists()
    prompt.send("\x04")
    assert prompt.close() == 0


def test_a_pager_that_is_left_early_or_is_not_there_loses_nothing(server, tmp_path):
    for pager, shown in (("head -n 3", "│   x │"), ("no-such-pager", "100 rows in ")):
        env = clean_environment() | server.env | {"XDG_STATE_HOME": str(tmp_path), "PAGER": pager}
        prompt = Terminal("sql", "--data", str(server.directory), env=env)
        prompt.until("tacho> ")
        prompt.send("SELECT x FROM generate_series(1, 100) AS t(x);\r").until(shown)
        prompt.until("tacho> ")
        prompt.send("SELECT 7 * 6 AS x;\r").until("│ 42 │")
        prompt.until("tacho> ")
        prompt.send("\x04")
        assert prompt.close() == 0


def test_input_typed_while_a_query_runs_is_kept(server, prompt):
    # The editor has more than it takes for a line, and the terminal gets more while the query runs.
    prompt.send("SELECT max(x) AS slow FROM generate_series(1, 3000000) AS t(x);\rSELECT 11 + 1 AS first;\r").until("slow FROM")
    prompt.send("SELECT 22 + 1 AS second;\rSELECT 33").until("│ 3000000 │")
    prompt.until("│    12 │")
    prompt.until("│     23 │")
    prompt.until("tacho> ")
    prompt.send(" + 1 AS third;\r").until("│    34 │")


def test_json_is_a_form_of_its_own(server):
    done = server.command("sql", "--json", "SELECT 1 AS a")
    assert json.loads(done.stdout)["rows"] == [[1]]

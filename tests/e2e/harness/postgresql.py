"""A PostgreSQL of Debian's package as a process: a private cluster on a free port, stopped by its process id."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import psycopg

START_S = 60
STOP_S = 30


def programs() -> Path:
    """The directory of the newest installed version's programs."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    assert found, "PostgreSQL is not there: run tests/e2e/install-debian-packages"
    return found[-1].parent


class PostgreSql:
    """An empty cluster in UTF-8, in UTC. It sorts by code points and knows upper and lower case."""

    def __init__(self):
        self.directory = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))
        self.data = self.directory / "data"
        # It refuses to run as root.
        self.user = pwd.getpwnam("postgres") if os.geteuid() == 0 else None
        if self.user:
            os.chown(self.directory, self.user.pw_uid, self.user.pw_gid)
        self.process = None
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]

    def _as_user(self) -> dict:
        if not self.user:
            return {}
        return {"user": self.user.pw_uid, "group": self.user.pw_gid, "extra_groups": [], "cwd": self.directory}

    def __enter__(self) -> "PostgreSql":
        init = [programs() / "initdb", "-D", self.data, "-U", "tester", "--auth=trust", "--no-sync", "-E", "UTF8", "--lc-collate=C", "--lc-ctype=C.UTF-8"]
        subprocess.run(init, check=True, stdout=subprocess.DEVNULL, timeout=START_S, **self._as_user())
        settings = {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": self.directory,
            "fsync": "off",
            "shared_buffers": "16MB",
            "timezone": "UTC",
            "log_timezone": "UTC",
        }
        arguments = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        log = open(self.directory / "log", "wb")
        with log:
            self.process = subprocess.Popen(
                [programs() / "postgres", "-D", self.data, "-p", str(self.port), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                **self._as_user(),
            )
        deadline = time.monotonic() + START_S
        while True:
            try:
                self.connect().close()
                return self
            except psycopg.OperationalError:
                ended = self.process.poll()
                assert ended is None and time.monotonic() < deadline, f"exit code {ended}: {(self.directory / 'log').read_text()}"
                time.sleep(0.05)

    def connect(self, **more):
        """A psycopg connection as the superuser."""
        return psycopg.connect(host="127.0.0.1", port=self.port, user="tester", dbname="postgres", autocommit=True, **more)

    def __exit__(self, *_):
        # A fast shutdown: its children end with it.
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(timeout=STOP_S)
        finally:
            self.process.kill()
            self.process.wait()
            shutil.rmtree(self.directory, ignore_errors=True)

"""The server under test as a process: started on free ports, stopped by its process id."""

import itertools
import os
import queue
import re
import signal
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path

from harness.rest import Api

ROOT = Path(__file__).resolve().parents[3]
START_S = 60
STOP_S = 60
COMMAND_S = 300


def binary() -> str:
    """The binary under test."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    target = Path(os.environ.get("CARGO_TARGET_DIR") or cache / "tachograph" / "target")
    path = os.environ.get("TACHO_BIN") or str(target / "debug" / "tacho")
    assert os.access(path, os.X_OK), f"{path} is not there: run `make binary`, or name one with TACHO_BIN"
    return path


def run(*arguments: str, env: dict | None = None, check: bool = True) -> subprocess.CompletedProcess:
    """Runs one `tacho` command to its end."""
    done = subprocess.run(
        [binary(), *map(str, arguments)],
        env=clean_environment() | (env or {}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=COMMAND_S,
    )
    if check:
        assert done.returncode == 0, f"tacho {' '.join(map(str, arguments))}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
    return done


def clean_environment() -> dict:
    """Our environment without settings that would reach into the server."""
    return {name: value for name, value in os.environ.items() if not name.startswith("TACHO_")}


@dataclass
class Device:
    """A device with its credential."""

    name: str
    token: str


class Server:
    """`tacho serve` on a directory. `env` adds `TACHO_*` settings, `config` is a TOML file."""

    def __init__(self, directory: Path, env: dict | None = None, config: Path | None = None, limits: dict | None = None, group: Path | None = None):
        self.directory = Path(directory)
        self.env = {"TACHO_MQTT_LISTEN": "127.0.0.1:0", "TACHO_HTTP_LISTEN": "127.0.0.1:0"} | (env or {})
        self.config = config
        # Limits of the process from its beginning on, such as RLIMIT_DATA as `data`: what it allocates beyond them fails.
        self.limit = ["prlimit", *(f"--{name}={value}" for name, value in limits.items())] if limits else []
        # The control group of the process from its beginning on.
        if group:
            self.limit = ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh", *self.limit]
        self.process = None
        self.listeners = {}
        self.lines = []
        self._api = None
        self._numbers = itertools.count()
        self._pool = []
        self._readers = []

    def start(self) -> "Server":
        """Starts the process and waits until it is ready."""
        self.process = subprocess.Popen(
            [*self.limit, binary(), *self._arguments()],
            env=clean_environment() | self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )
        self.lines, self.listeners, self._api = [], {}, None  # of this start, not of the one before
        seen = queue.Queue()
        streams = (self.process.stdout, self.process.stderr)
        self._readers = [threading.Thread(target=self._read, args=(stream, seen)) for stream in streams]
        for reader in self._readers:
            reader.start()
        open_streams = 2
        while True:
            try:
                line = seen.get(timeout=START_S)
            except queue.Empty:
                self.kill()
                raise AssertionError(f"not ready after {START_S} s:\n{self.log()}") from None
            if line is None:
                open_streams -= 1
                if open_streams == 0:
                    code = self.process.wait()
                    raise AssertionError(f"exit code {code} before ready:\n{self.log()}")
            elif line == "ready":
                return self
            elif found := re.fullmatch(r"listening (\S+) \S*?:(\d+)", line):
                self.listeners[found[1]] = int(found[2])

    def _arguments(self) -> list:
        return ["serve", "--data", str(self.directory), *(["--config", str(self.config)] if self.config else [])]

    def _read(self, stream, seen):
        with stream:
            for line in stream:
                self.lines.append(line.rstrip("\n"))
                seen.put(line.rstrip("\n"))
        seen.put(None)

    def log(self) -> str:
        """All lines the server printed, for messages of failed tests."""
        return "\n".join(self.lines)

    @property
    def mqtt(self) -> int:
        """Port of the MQTT door."""
        return self.listeners["mqtt"]

    @property
    def http(self) -> int:
        """Port of the HTTP door."""
        return self.listeners["http"]

    @property
    def url(self) -> str:
        """Base address of the HTTP door."""
        return f"http://127.0.0.1:{self.http}"

    @property
    def password(self) -> str:
        """The administrator's password, as the first start left it."""
        return (self.directory / "admin-password").read_text().strip()

    @property
    def api(self) -> Api:
        """A logged-in REST client."""
        if self._api is None:
            self._api = Api(self.url).login("admin@tachograph.local", self.password)
        return self._api

    def command(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess:
        """An operator's command on this server's directory."""
        return run(*arguments, "--data", str(self.directory), env=self.env, check=check)

    def device(self) -> Device:
        """A device that no other test has."""
        if not self._pool:
            first, prefix = next(self._numbers), self.directory.name
            self.command("device", "add", "--count", "100", "--prefix", f"{prefix}-{first}-", "--token-prefix", f"tok-{prefix}-{first}-")
            self._pool = [Device(f"{prefix}-{first}-{n}", f"tok-{prefix}-{first}-{n}") for n in range(100)]
        return self._pool.pop(0)

    def alive(self) -> bool:
        """Whether the process runs."""
        return self.process is not None and self.process.poll() is None

    def stop(self):
        """SIGTERM, and the exit code that promises a clean end."""
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(timeout=STOP_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"still running {STOP_S} s after SIGTERM:\n{self.log()}") from None
        self._ended()
        assert code == 0, f"exit code {code} after SIGTERM:\n{self.log()}"

    def kill(self):
        """SIGKILL: no clean end."""
        self.process.kill()
        self.process.wait()
        self._ended()

    def _ended(self):
        """After the process: its last lines, and nothing of it left open."""
        for reader in self._readers:
            reader.join()
        if self._api:
            self._api.session.close()

    def __enter__(self):
        return self if self.alive() else self.start()

    def __exit__(self, kind, *_):
        if not self.alive():
            return
        if kind is None:
            self.stop()
        else:
            self.kill()


class Demo(Server):
    """`tacho demo` on a directory, with more arguments."""

    def __init__(self, directory: Path, *more: str):
        super().__init__(directory)
        self.more = more

    def _arguments(self) -> list:
        return ["demo", "--data", str(self.directory), *self.more]

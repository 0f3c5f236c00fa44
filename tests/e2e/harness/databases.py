"""Databases that tests start for themselves."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

START_S = 60


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Process:
    """A server with a directory of its own, stopped by its process id."""

    def __init__(self, command, directory, ready, **how):
        self.directory, self.command, self.ready, self.how = directory, command, ready, how
        self.start()

    def start(self):
        with open(self.directory / "log", "ab") as log:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **self.how)
        deadline = time.monotonic() + START_S
        while not self.ready():
            ended = self.process.poll()
            assert ended is None and time.monotonic() < deadline, f"exit code {ended}: {(self.directory / 'log').read_text()}"
            time.sleep(0.05)

    def end(self):
        """Ends the server. One that has ended stays so."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)

    def stop(self):
        self.end()
        shutil.rmtree(self.directory)


def succeeds(*command):
    return lambda: subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=START_S).returncode == 0


def start_redis():
    """A Redis with an append-only file and a configuration file, as CONFIG REWRITE needs it."""
    program = shutil.which("redis-server")
    assert program, "redis-server is missing: run tests/e2e/install-debian-packages"
    directory, port = Path(tempfile.mkdtemp(prefix="redis-")), free_port()
    (directory / "redis.conf").write_text("")
    command = [program, directory / "redis.conf", "--port", str(port), "--bind", "127.0.0.1", "--dir", str(directory), "--save", "", "--appendonly", "yes"]
    server = Process(command, directory, succeeds("redis-cli", "-p", str(port), "PING"))
    server.url, server.port = f"redis://127.0.0.1:{port}", port
    return server


def redis_cli(server, *command):
    done = subprocess.run(["redis-cli", "-p", str(server.port), *command], capture_output=True, text=True, timeout=60, check=True)
    assert not done.stdout.startswith(("ERR", "NO")), done.stdout
    return done.stdout


def start_mariadb():
    """A MariaDB whose user root has no password, on loopback."""
    server, install = (shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/bin") for name in ("mariadbd", "mariadb-install-db"))
    assert server and install, "MariaDB is missing: run tests/e2e/install-debian-packages"
    directory, port, how = Path(tempfile.mkdtemp(prefix="mariadb-", dir="/tmp")), free_port(), {}
    if os.geteuid() == 0:
        user = pwd.getpwnam("mysql")
        os.chown(directory, user.pw_uid, user.pw_gid)
        how = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": [], "cwd": directory}
    data = directory / "data"
    init = [install, "--no-defaults", f"--datadir={data}", "--auth-root-authentication-method=normal", "--skip-test-db"]
    subprocess.run(init, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=START_S, **how)
    command = [server, "--no-defaults", f"--datadir={data}", f"--socket={directory / 's'}", f"--port={port}", "--bind-address=127.0.0.1"]
    ping = succeeds("mariadb-admin", "--no-defaults", "--protocol=tcp", "-h", "127.0.0.1", "-P", str(port), "-u", "root", "ping")
    running = Process([*command, "--innodb-buffer-pool-size=64M"], directory, ping, **how)
    running.url, running.port = f"mysql://root@127.0.0.1:{port}", port
    return running


def start_influxd():
    """An InfluxDB 1 with a configuration file, on loopback."""
    program = shutil.which("influxd")
    assert program, "influxd is missing: run tests/e2e/install-debian-packages"
    directory, port, rpc = Path(tempfile.mkdtemp(prefix="influxd-")), free_port(), free_port()
    (directory / "conf").write_text(f"""
reporting-disabled = true
bind-address = "127.0.0.1:{rpc}"
[meta]
  dir = "{directory}/meta"
[data]
  dir = "{directory}/data"
  wal-dir = "{directory}/wal"
[monitor]
  store-enabled = false
[http]
  bind-address = "127.0.0.1:{port}"
""")
    url = f"http://127.0.0.1:{port}"
    server = Process([program, "-config", directory / "conf"], directory, succeeds("curl", "-sf", f"{url}/ping"))
    server.url, server.port = url, port
    return server

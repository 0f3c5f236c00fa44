"""Servers that the scripts start on a free port of loopback, each with a temporary directory, and stop at the end."""

import contextlib
import os
import pathlib
import pwd
import shlex
import subprocess
import tempfile

import parity

# A server of this program reads its store and its log before it takes connections.
START_S = 300


@contextlib.contextmanager
def running(line, port, **variables):
    """A server of which only the port is used; its process id. It is stopped at the end."""
    process = subprocess.Popen(line, stdout=subprocess.DEVNULL, env={**os.environ, **variables})
    try:
        parity.await_port(port, process)
        yield process.pid
    finally:
        process.terminate()
        process.wait()


@contextlib.contextmanager
def nginx(body_bytes):
    """Its URL and process id."""
    port = parity.free_port()
    with tempfile.TemporaryDirectory() as home:
        (pathlib.Path(home) / "index.html").write_bytes(b"x" * body_bytes)
        temporary = "\n".join(f"{name}_temp_path {home}/{name};" for name in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"])
        user = "user root;" if os.getuid() == 0 else ""
        # A connection is kept for as many requests as wrk likes to make.
        text = f"""{user} daemon off; worker_processes 1; pid {home}/pid; error_log {home}/error.log;
            events {{ worker_connections 4096; }}
            http {{ {temporary} access_log off; keepalive_requests 1000000000; open_file_cache max=10;
            server {{ listen 127.0.0.1:{port} backlog=4096; root {home}; }} }}"""
        conf = pathlib.Path(home) / "nginx.conf"
        conf.write_text(text)
        with running(["nginx", "-c", conf, "-e", f"{home}/first.log"], port) as pid:
            yield f"http://127.0.0.1:{port}/", pid


@contextlib.contextmanager
def redis(*options):
    """Its port and process id."""
    port = parity.free_port()
    with tempfile.TemporaryDirectory() as home:
        line = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--dir", home, "--save", "", "--enable-debug-command", "local", *options]
        with running(line, port) as pid:
            yield port, pid


@contextlib.contextmanager
def mosquitto(*options):
    """Its port and process id; options are lines of its configuration."""
    port = parity.free_port()
    with tempfile.TemporaryDirectory() as home:
        conf = pathlib.Path(home) / "mosquitto.conf"
        user = "user root\n" if os.getuid() == 0 else ""
        conf.write_text(f"{user}listener {port} 127.0.0.1\nallow_anonymous true\nmax_queued_messages 0\nmax_inflight_messages 0\nlog_type none\n"
                        + "".join(f"{option}\n" for option in options))
        with running(["mosquitto", "-c", conf], port) as pid:
            yield port, pid


@contextlib.contextmanager
def mariadb(*options):
    """Its port and process id. It asks nobody for a password."""
    port = parity.free_port()
    with tempfile.TemporaryDirectory() as home:
        common = ["--no-defaults", f"--datadir={home}/data", *(["--user=root"] if os.getuid() == 0 else [])]
        subprocess.run(["mariadb-install-db", *common], stdout=subprocess.DEVNULL, check=True)
        line = ["mariadbd", *common, f"--port={port}", "--bind-address=127.0.0.1", f"--socket={home}/socket", "--skip-grant-tables",
                "--max-connections=200", "--max-prepared-stmt-count=100000", f"--log-error={home}/error.log", *options]
        with running(line, port) as pid:
            client = ["mariadb", "--no-defaults", f"--socket={home}/socket", "-e", "CREATE DATABASE sbtest"]
            subprocess.run(client, check=True)
            yield port, pid


@contextlib.contextmanager
def postgresql():
    """Its port and the command that restarts it. It asks nobody for a password; the user is sbtest."""
    port = parity.free_port()
    programs = max(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    with tempfile.TemporaryDirectory() as home:
        # It refuses to run as root.
        as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.getuid() == 0 else []
        if as_user:
            os.chown(home, *pwd.getpwnam("postgres")[2:4])
        data = pathlib.Path(home) / "data"

        def control(*words):
            return [*as_user, programs / "pg_ctl", "-D", data, "-l", f"{home}/log", "-s", "-w", *words]
        subprocess.run([*as_user, programs / "initdb", "-D", data, "-U", "sbtest", "--auth=trust"], stdout=subprocess.DEVNULL, check=True, cwd=home)
        with (data / "postgresql.conf").open("a") as conf:
            conf.write(f"listen_addresses = '127.0.0.1'\nport = {port}\nunix_socket_directories = '{home}'\n")
        subprocess.run(control("start"), check=True, cwd=home)
        try:
            subprocess.run([programs / "createdb", "-h", "127.0.0.1", "-p", str(port), "-U", "sbtest", "sbtest"], check=True)
            yield port, shlex.join(str(word) for word in control("restart", "-m", "fast"))
        finally:
            subprocess.run(control("stop", "-m", "fast"), check=True, cwd=home)


@contextlib.contextmanager
def victoria_metrics(where):
    """Its port and process id; the data is in a temporary directory there."""
    port = parity.free_port()
    with tempfile.TemporaryDirectory(dir=where) as home:
        line = ["victoria-metrics", f"-storageDataPath={home}", f"-httpListenAddr=127.0.0.1:{port}", "-retentionPeriod=1",
                "-search.latencyOffset=0s", "-memory.allowedPercent=40", "-loggerLevel=ERROR"]
        with running(line, port) as pid:
            yield port, pid


class Tacho:
    """A server of this program on a directory, with ports that stay. It can be killed and started again."""

    def __init__(self, program, home):
        self.program, self.home = program, pathlib.Path(home)
        self.http, self.mqtt = parity.free_port(), parity.free_port()
        self.process = None

    def start(self):
        """Until it takes connections. Its log is in the directory."""
        listen = {"TACHO_HTTP_LISTEN": f"127.0.0.1:{self.http}", "TACHO_MQTT_LISTEN": f"127.0.0.1:{self.mqtt}"}
        line = [self.program, "serve", "--data", self.home]
        with (self.home / "server.log").open("ab") as log:
            self.process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=log, env={**os.environ, "TACHO_LOG_LEVEL": "warn", **listen})
        parity.await_port(self.http, self.process, seconds=START_S)

    @property
    def pid(self):
        return self.process.pid

    @property
    def password(self):
        """That of the administrator."""
        return (self.home / "admin-password").read_text().strip()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            self.process.wait()


@contextlib.contextmanager
def tacho(program, where):
    """A server of this program that runs; its data is in a temporary directory there."""
    with tempfile.TemporaryDirectory(dir=where) as home:
        server = Tacho(program, home)
        try:
            server.start()
            yield server
        finally:
            server.stop()

"""Our own clients over TLS: the commands, the demo and the load generator, against our server and those of others."""

import json
import os
import pwd
import re
import shlex
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from harness.gates import ANY_SPEED
from harness import wait
from harness.certificates import certificates, client_certificate, settings
from harness.databases import START_S, Process, free_port, succeeds
from harness.postgresql import PostgreSql
from harness.server import Demo, Server, clean_environment, run

GUARD_S = 60


@pytest.fixture(scope="module")
def files():
    # PostgreSQL and MariaDB run as users of their own and read the files.
    directory = Path(tempfile.mkdtemp(prefix="tls-", dir="/tmp"))
    directory.chmod(0o755)
    yield certificates(directory / "files")
    shutil.rmtree(directory)


@pytest.fixture(scope="module")
def other_ca(tmp_path_factory):
    """An authority that signed none of the servers."""
    return certificates(tmp_path_factory.mktemp("other") / "files") / "ca.pem"


@pytest.fixture(scope="module")
def secure(tmp_path_factory, files):
    with Server(tmp_path_factory.mktemp("secure"), settings(files)) as server:
        yield server


def command(server, *arguments, door="https", scheme="https", check=True):
    url = f"{scheme}://localhost:{server.listeners[door]}"
    return run(*arguments, "--url", url, env={"TACHO_PASSWORD": server.password}, check=check)


def fails(done, *said):
    assert done.returncode not in (0, None) and all(part in done.stderr for part in said), (done.returncode, done.stdout + done.stderr)


def test_commands_reach_a_server_over_https(secure, files, tmp_path):
    device, trust = secure.device(), ("--cafile", files / "ca.pem")
    secure.api.send(device.token, {"speed": 3})
    assert command(secure, "status", *trust).stdout.startswith("state        ready\n")
    assert device.name in command(secure, "device", "list", *trust).stdout
    answer = command(secure, "sql", f"SELECT speed FROM telemetry WHERE device = '{device.name}'", "--format", "csv", *trust)
    assert answer.stdout.split() == ["speed", "3"]
    command(secure, "backup", tmp_path / "copy", *trust)
    assert list((tmp_path / "copy").iterdir())
    assert device.name in command(secure, "device", "list", "--insecure").stdout


@pytest.mark.parametrize("arguments", [["status"], ["sql", "SELECT 1"], ["user", "list"]], ids=["status", "sql", "user"])
def test_what_is_wrong_with_tls_is_said(secure, other_ca, arguments):
    fails(command(secure, *arguments, "--cafile", other_ca, check=False), "no trusted authority signed", "--cafile FILE")
    fails(command(secure, *arguments, scheme="http", check=False), "speaks TLS on this port", "https://")
    fails(command(secure, *arguments, "--insecure", door="http", check=False), "does not speak TLS on this port")
    fails(command(secure, *arguments, "--cafile", other_ca, door="http", scheme="http", check=False), "--cafile is for https://")
    fails(command(secure, *arguments, "--insecure", door="http", scheme="http", check=False), "--insecure is for https://")


def test_a_certificate_for_another_name_is_refused(own_server, tmp_path):
    files = certificates(tmp_path / "files", "tacho.example.org")
    server = own_server(settings(files))
    fails(command(server, "status", "--cafile", files / "ca.pem", check=False), "is not for `localhost`")
    command(server, "status", "--insecure")


def test_options_of_tls_need_an_address(secure):
    fails(run("status", "--insecure", check=False), "--url")
    fails(command(secure, "status", "--insecure", "--cafile", "x", check=False), "cannot be used with")


# The demo


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    directory = tmp_path_factory.mktemp("the demo's data")
    with Demo(directory, "--tls", "--devices", "3", "--postgres", "127.0.0.1:0") as demo:
        wait.until(lambda: any("ends the demo" in line for line in demo.lines), "the end of the text")
        yield demo


def test_every_command_of_a_demo_with_tls_runs_as_it_is_printed(demo):
    commands = [line.strip() for line in demo.lines if re.match(r"  \S+ .*((--data|-p|--cacert) |sslmode)", line)]
    programs = [shlex.split(line)[0].rsplit("/")[-1] for line in commands]
    assert programs == ["tacho", "mosquitto_pub", "tacho", "psql", "tacho", "curl", "tacho"], commands
    assert all("ca.pem" in line for line, program in zip(commands, programs) if program in ("mosquitto_pub", "psql", "curl")), commands
    for line in commands:
        done = subprocess.run(["bash", "-c", line], env=clean_environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=GUARD_S)
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
    assert demo.api.latest("my-device", "speed") == 42.5


def test_the_vehicles_of_the_demo_connect_over_tls(demo):
    wait.until(lambda: demo.api.latest("vehicle-0", "speed") is not None, "a report")
    port = demo.listeners["mqtts"]
    shown = subprocess.run(["ss", "-Htn", "state", "established", f"( dport = :{port} )"], capture_output=True, text=True, check=True)
    assert len(shown.stdout.splitlines()) == 3, shown.stdout


def test_a_demo_uses_its_certificate_again(tmp_path):
    with Demo(tmp_path, "--tls", "--devices", "1") as demo:
        before = (tmp_path / "tls" / "server.pem").read_bytes()
        assert "https" in demo.listeners
    with Demo(tmp_path, "--tls", "--devices", "1"):
        assert (tmp_path / "tls" / "server.pem").read_bytes() == before


# The load generator


def bench(scenario, target, *sets, check=True):
    sets = [part for one in (*ANY_SPEED, *sets) for part in ("--set", one)]
    with tempfile.TemporaryDirectory() as directory:
        done = run("bench", "run", scenario, "--target", target, "--out", Path(directory) / "result", *sets, check=False)
        if not check:
            return done
        assert done.returncode == 0 and "WRONG" not in done.stdout, done.stdout + done.stderr
        return json.loads((Path(directory) / "result" / "result.json").read_text())


def scenario(directory, driver, text):
    path = directory / f"{driver}.toml"
    path.write_text(f'[scenario]\nname = "tls-{driver}"\nabout = "a load over TLS"\ndriver = "{driver}"\n{text}')
    return path


MQTT = """
[dataset]
payload = "telemetry"
payload_bytes = 100
[[operation]]
name = "publish"
[[phase]]
name = "run"
connections = 50
rate = 500
duration = "2s"
"""


def completed(result):
    """The operations of the phase that is measured last; none failed."""
    total = [phase for phase in result["phases"] if phase["kind"] == "run"][-1]["total"]
    assert not total["counts"]["errors"] and total["counts"]["completed"] > 0, total
    return total["counts"]["completed"]


def test_bench_mqtt_verifies_what_was_stored_over_tls(secure, files, tmp_path):
    ca, run_file = files / "ca.pem", scenario(tmp_path, "mqtt", MQTT)
    http = f"target.http=https://localhost:{secure.listeners['https']}?cafile={ca}"
    result = bench(run_file, f"mqtts://localhost:{secure.listeners['mqtts']}?cafile={ca}", http, f"target.password={secure.password}")
    completed(result)
    assert result["target"]["tls"] == f"verified with {ca}"
    assert result["verification"] and all(check["passed"] for check in result["verification"]), result["verification"]


def test_bench_says_that_a_certificate_was_not_verified(secure, tmp_path):
    run_file = scenario(tmp_path, "mqtt", MQTT)
    secure.api.post("/api/tacho/devices", {"count": 1, "prefix": "unverified-", "tokenPrefix": "unverified-"})
    sets = ["phase.run.connections=1", "phase.run.rate=20", "dataset.token_prefix=unverified-"]
    result = bench(run_file, f"mqtts://localhost:{secure.listeners['mqtts']}?insecure=true", *sets)
    assert result["target"]["tls"] == "NOT VERIFIED"


def test_bench_http(secure, files, tmp_path):
    text = """
[[operation]]
name = "get"
request = "GET /healthz"
[[phase]]
name = "each"
connection = "close"
connections = 5
rate = 50
duration = "2s"
[[phase]]
name = "kept"
connections = 5
rate = 200
duration = "2s"
"""
    run_file, port = scenario(tmp_path, "http", text), secure.listeners["https"]
    result = bench(run_file, f"https://localhost:{port}?cafile={files / 'ca.pem'}")
    completed(result)
    assert not result["phases"][0]["total"]["counts"]["errors"]
    fails(bench(run_file, f"http://localhost:{port}", check=False), "speaks TLS on this port")
    fails(bench(run_file, f"https://localhost:{secure.http}?insecure=true", check=False), "does not speak TLS")
    fails(bench(run_file, f"https://localhost:{port}?insecure=true", "dataset.protocol=h2", check=False), "no HTTP/2 over TLS")


def test_bench_mqtt_says_what_is_wrong_with_tls(secure, other_ca, tmp_path):
    run_file, port = scenario(tmp_path, "mqtt", MQTT), secure.listeners["mqtts"]
    fails(bench(run_file, f"mqtts://localhost:{port}?cafile={other_ca}", check=False), "no trusted authority signed")
    fails(bench(run_file, f"mqtt://localhost:{port}", check=False), "speaks TLS on this port")
    fails(bench(run_file, f"mqtts://localhost:{port}?cafile=/none.pem", check=False), "cannot read /none.pem")
    fails(bench(run_file, f"mqtt://localhost:{port}?cafile={other_ca}", check=False), "`cafile` is for TLS")


def test_bench_shows_its_certificate_to_a_server_that_wants_one(own_server, files, tmp_path):
    authority, authority_key = client_certificate(tmp_path, "authority")
    issuer = ["-CA", authority, "-CAkey", authority_key, "-addext", "basicConstraints=critical,CA:FALSE"]
    certificate, key = client_certificate(tmp_path, "ours", *issuer, "-addext", "extendedKeyUsage=clientAuth")
    server = own_server(settings(files) | {"TACHO_TLS_CLIENT_CA": str(authority)})
    server.api.post("/api/tacho/devices", {"count": 50, "prefix": "dev-", "tokenPrefix": "tok"})
    run_file, url = scenario(tmp_path, "mqtt", MQTT), f"mqtts://localhost:{server.listeners['mqtts']}?cafile={files / 'ca.pem'}"
    completed(bench(run_file, f"{url}&cert={certificate}&key={key}"))
    fails(bench(run_file, url, check=False), "wants a certificate of the client")
    fails(bench(run_file, f"{url}&cert={certificate}&key={authority_key}", check=False), str(authority_key))


REDIS = """
[dataset]
prefix = "k:"
keys = [1, 1000]
size = 32
[[operation]]
name = "set"
command = "SET __key__ __data__"
pattern = "P"
[[operation]]
name = "get"
command = "GET __key__"
[[phase]]
name = "load"
kind = "load"
operations = ["set"]
arrival = "closed"
connections = 4
window = 10
requests = 250
[[phase]]
name = "run"
operations = ["get"]
connections = 10
rate = 500
duration = "2s"
"""


def test_bench_and_tune_redis(files, other_ca, tmp_path):
    directory, port = Path(tempfile.mkdtemp(prefix="redis-")), free_port()
    identity = ["--tls-cert-file", str(files / "server.pem"), "--tls-key-file", str(files / "server-key.pem")]
    identity += ["--tls-ca-cert-file", str(files / "ca.pem"), "--tls-auth-clients", "no"]
    started = ["redis-server", "--port", "0", "--tls-port", str(port), "--bind", "127.0.0.1", "--dir", str(directory), "--save", "", *identity]
    ping = succeeds("redis-cli", "--tls", "--cacert", str(files / "ca.pem"), "-h", "localhost", "-p", str(port), "PING")
    server = Process(started, directory, ping)
    try:
        run_file, url = scenario(tmp_path, "redis", REDIS), f"rediss://localhost:{port}"
        result = bench(run_file, f"{url}?cafile={files / 'ca.pem'}")
        completed(result)
        assert result["target"]["product"].startswith(("redis", "Redis"))
        fails(bench(run_file, f"{url}?cafile={other_ca}", check=False), "no trusted authority signed")
        report = run("tune", f"{url}?cafile={files / 'ca.pem'}", "--json", check=False)
        assert report.returncode in (0, 1) and json.loads(report.stdout)["findings"] is not None, report.stderr
    finally:
        server.stop()


SQL = """
[dataset]
tables = 1
table_size = 100
[[operation]]
name = "point_select"
kind = "point_select"
[[phase]]
name = "load"
kind = "load"
arrival = "closed"
connections = 1
[[phase]]
name = "run"
arrival = "closed"
connections = 3
duration = "2s"
[[phase]]
name = "cleanup"
kind = "load"
action = "cleanup"
arrival = "closed"
connections = 1
"""


def test_bench_postgresql(files, other_ca, tmp_path):
    with PostgreSql() as server:
        run_file, url = scenario(tmp_path, "sql", SQL), f"postgres://tester@localhost:{server.port}/postgres"
        fails(bench(run_file, f"{url}?sslmode=require", check=False), "the server has no TLS")
        for name in ("server.pem", "server-key.pem"):
            shutil.copy(files / name, server.data / name)
            (server.data / name).chmod(0o600)
            if server.user:
                os.chown(server.data / name, server.user.pw_uid, server.user.pw_gid)
        with server.connect() as connection:
            connection.autocommit = True
            for name, value in (("ssl_cert_file", "server.pem"), ("ssl_key_file", "server-key.pem"), ("ssl", "on")):
                connection.execute(f"ALTER SYSTEM SET {name} = '{value}'")
            connection.execute("SELECT pg_reload_conf()")
        wait.until(lambda: bench(run_file, f"{url}?sslmode=require", check=False).returncode == 0, "the reloaded configuration")
        result = bench(run_file, f"{url}?sslmode=verify-full&sslrootcert={files / 'ca.pem'}")
        completed(result)
        assert result["target"]["tls"] == f"verified with {files / 'ca.pem'}"
        assert bench(run_file, f"{url}?sslmode=require")["target"]["tls"] == "NOT VERIFIED"
        fails(bench(run_file, f"{url}?sslmode=verify-ca&sslrootcert={other_ca}", check=False), "no trusted authority signed")


@pytest.fixture
def mariadb(files):
    server, install = (shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/bin") for name in ("mariadbd", "mariadb-install-db"))
    assert server and install, "MariaDB is missing: run tests/e2e/install-debian-packages"
    directory, port = Path(tempfile.mkdtemp(prefix="mariadb-", dir="/tmp")), free_port()
    how, data = {}, directory / "data"
    for name in ("server.pem", "server-key.pem"):
        shutil.copy(files / name, directory / name)
    if os.geteuid() == 0:
        user = pwd.getpwnam("mysql")
        for path in (directory, directory / "server.pem", directory / "server-key.pem"):
            os.chown(path, user.pw_uid, user.pw_gid)
        how = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": [], "cwd": directory}
    init = [install, "--no-defaults", f"--datadir={data}", "--auth-root-authentication-method=normal", "--skip-test-db"]
    subprocess.run(init, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=START_S, **how)
    started = [server, "--no-defaults", f"--datadir={data}", f"--socket={directory / 's'}", f"--port={port}", "--bind-address=127.0.0.1"]
    started += [f"--ssl-cert={directory / 'server.pem'}", f"--ssl-key={directory / 'server-key.pem'}", "--innodb-buffer-pool-size=64M"]
    client = ["--no-defaults", "--protocol=tcp", "-h", "127.0.0.1", "-P", str(port), "-u", "root"]
    running = Process(started, directory, succeeds("mariadb-admin", *client, "ping"), **how)
    sql = "CREATE DATABASE sbtest; CREATE USER 'tester'@'%' IDENTIFIED BY 'secret' REQUIRE SSL; GRANT ALL ON *.* TO 'tester'@'%'"
    subprocess.run(["mariadb", *client, "-e", sql], check=True, timeout=START_S)
    running.url = f"mysql://tester:secret@localhost:{port}/sbtest"
    yield running
    running.stop()


def test_bench_mariadb(mariadb, files, other_ca, tmp_path):
    run_file = scenario(tmp_path, "sql", SQL)
    result = bench(run_file, f"{mariadb.url}?ssl-mode=VERIFY_IDENTITY&ssl-ca={files / 'ca.pem'}")
    completed(result)
    assert result["target"]["tls"] == f"verified with {files / 'ca.pem'}"
    fails(bench(run_file, f"{mariadb.url}?ssl-mode=VERIFY_CA&ssl-ca={other_ca}", check=False), "no trusted authority signed")
    # The user may not come without TLS.
    fails(bench(run_file, mariadb.url, check=False), "1045")

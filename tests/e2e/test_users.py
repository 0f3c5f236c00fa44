"""Users: viewers who only read, other passwords and roles, another session key, and the sessions that end with them."""

import json
import os
import pty
import subprocess

import psycopg
import pytest
import requests
import websocket

from harness.rest import Api
from harness.server import binary, clean_environment

ADMIN = "admin@tachograph.local"
VIEWER = "bi@example.org"


@pytest.fixture
def one(own_server, tmp_path):
    """A server with the PostgreSQL door, a device with a value, and a viewer."""
    server = own_server({"TACHO_POSTGRES_LISTEN": "127.0.0.1:0"})
    server.secret = tmp_path / "secret"
    server.command("device", "add", "truck 7", "--token", "secret-7")
    server.api.send("secret-7", {"speed": 1})
    with_password(server, "viewer's password", "add", VIEWER)
    server.logins = []
    yield server
    for api in server.logins:
        api.session.close()


def log_in(server, login, password):
    """A REST client that is closed at the end of the test."""
    server.logins.append(Api(server.url))
    return server.logins[-1].login(login, password)


def with_password(server, password, *arguments, check=True):
    """`tacho user` with a new password from a file."""
    server.secret.write_text(password + "\n")
    return server.command("user", *arguments, "--password-file", str(server.secret), check=check)


def listed(server):
    """Logins and roles."""
    return {user["login"]: user["role"] for user in json.loads(server.command("user", "list", "--json").stdout)}


def connect(server, password="viewer's password"):
    """psycopg as the viewer."""
    port = server.listeners["postgres"]
    return psycopg.connect(host="127.0.0.1", port=port, user=VIEWER, password=password, dbname="tacho", autocommit=True)


def live(server, api):
    """A WebSocket with a subscription."""
    url = f"ws://127.0.0.1:{server.http}/api/ws/plugins/telemetry?token={api.token}"
    connection = websocket.create_connection(url, timeout=60)
    wanted = {"entityType": "DEVICE", "entityId": api.device_id("truck 7"), "scope": "LATEST_TELEMETRY", "cmdId": 1}
    connection.send(json.dumps({"tsSubCmds": [wanted]}))
    assert json.loads(connection.recv())["errorCode"] == 0
    return connection


def closed(connection):
    """Code and reason of the close frame."""
    while True:
        kind, data = connection.recv_data(control_frame=True)
        if kind == websocket.ABNF.OPCODE_CLOSE:
            connection.shutdown()
            return int.from_bytes(data[:2], "big"), data[2:].decode()


def status(server, api, path="/api/auth/user", method="GET", body=None):
    """The status of a request with a session."""
    answer = requests.request(method, f"{server.url}{path}", headers={"X-Authorization": f"Bearer {api.token}"}, json=body, timeout=60)
    return answer.status_code, answer.text


def test_a_viewer_reads_with_every_client_and_changes_nothing(one):
    assert listed(one) == {ADMIN: "administrator", VIEWER: "viewer"}
    viewer = log_in(one, VIEWER, "viewer's password")
    assert viewer.latest("truck 7", "speed") == 1
    assert status(one, viewer, "/api/sql?q=SELECT+speed+FROM+telemetry")[0] == 200
    with connect(one) as client:
        assert client.execute("SELECT device, speed FROM telemetry").fetchall() == [("truck 7", 1.0)]
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            client.execute("UPDATE telemetry SET speed = 2")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            client.execute("DELETE FROM telemetry WHERE true")
        # Refused payloads may contain secrets.
        requests.post(f"{one.url}/api/v1/secret-7/telemetry", data='{"password":', timeout=60)
        with pytest.raises(psycopg.errors.UndefinedTable):
            client.execute("SELECT * FROM dead_letter")
    psql = subprocess.run(
        ["psql", "-X", "-A", "-t", "-h", "127.0.0.1", "-p", str(one.listeners["postgres"]), "-U", VIEWER, "-d", "tacho", "-c", "SELECT speed FROM telemetry"],
        env={"PGPASSWORD": "viewer's password", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert psql.stdout.split() == ["1"], psql
    device = viewer.device_id("truck 7")
    for method, path, body in [
        ("GET", f"/api/device/{device}/credentials", None),
        ("POST", "/api/device", {"name": "mine"}),
        ("DELETE", f"/api/device/{device}", None),
        ("POST", "/api/tacho/export", {"table": "telemetry", "format": "csv"}),
        ("POST", "/api/tacho/backup", None),
        ("GET", "/api/tacho/users", None),
        ("POST", "/api/tacho/users/bi@example.org/role", {"role": "administrator"}),
    ]:
        code, text = status(one, viewer, path, method, body)
        assert code == 403 and "has the role viewer" in text and "role administrator" in text, (path, code, text)
    one.env |= {"TACHO_PASSWORD": "viewer's password"}
    done = one.command("device", "add", "mine", "--user", VIEWER, check=False)
    assert done.returncode == 1 and "may not change devices" in done.stderr, done.stderr
    one.stop()


def test_a_new_password_a_new_role_and_the_end_of_a_user_end_sessions(one):
    def session(password):
        api = log_in(one, VIEWER, password)
        return api, live(one, api), connect(one, password)

    for change, password in [
        (lambda: with_password(one, "another password", "password", VIEWER), "viewer's password"),
        (lambda: one.command("user", "role", VIEWER, "administrator"), "another password"),
        (lambda: one.command("user", "delete", VIEWER), "another password"),
    ]:
        api, socket, client = session(password)
        change()
        code, reason = closed(socket)
        assert code == 1008 and "log in again" in reason, reason
        assert status(one, api)[0] == 401
        with pytest.raises(psycopg.errors.AdminShutdown):
            client.execute("SELECT 1")
        assert client.closed
    assert listed(one) == {ADMIN: "administrator"}
    with pytest.raises(psycopg.OperationalError):
        connect(one, "another password")
    lines = [line for line in one.lines if "users: " in line]
    assert len(lines) == 4 and all(ADMIN in line and VIEWER in line for line in lines), lines
    assert "another password" not in one.log()
    one.stop()


def test_a_running_query_ends_with_its_user(one):
    with connect(one) as client:
        rows = client.cursor().stream("SELECT x FROM generate_series(1, 100000000000) AS t(x)")
        assert next(rows)
        one.command("user", "delete", VIEWER)
        with pytest.raises(psycopg.errors.AdminShutdown, match="its user was changed"):
            for _ in rows:
                pass
    one.stop()


def test_another_session_key_ends_all_sessions(one):
    admin, viewer = one.api, log_in(one, VIEWER, "viewer's password")
    socket = live(one, viewer)
    done = one.command("user", "rotate-key")
    assert "all sessions have ended" in done.stdout
    assert closed(socket)[0] == 1008
    assert [status(one, api)[0] for api in (admin, viewer)] == [401, 401]
    again = log_in(one, VIEWER, "viewer's password")
    assert status(one, again)[0] == 200
    one.stop()
    one.start()
    assert [status(one, api)[0] for api in (admin, again)] == [401, 200]
    one.stop()


def test_the_administrators_password_changes_on_a_running_server_and_the_file_goes(one):
    first = one.password
    done = with_password(one, "chosen by the operator", "password", ADMIN)
    assert "TACHO_PASSWORD" in done.stdout
    assert not (one.directory / "admin-password").exists()
    refused = one.command("device", "list", check=False)
    assert refused.returncode == 1 and "TACHO_PASSWORD" in refused.stderr, refused.stderr
    with pytest.raises(Exception, match="401"):
        log_in(one, ADMIN, first)
    one.env |= {"TACHO_PASSWORD": "chosen by the operator"}
    assert "truck 7" in one.command("device", "list").stdout
    one.stop()
    one.start()
    assert not (one.directory / "admin-password").exists(), "a restart does not make another password"
    assert "truck 7" in one.command("device", "list").stdout
    one.stop()


def test_the_last_administrator_stays(one):
    for command in [["delete", ADMIN], ["role", ADMIN, "viewer"]]:
        done = one.command("user", *command, check=False)
        assert done.returncode == 1 and "last administrator" in done.stderr, done.stderr
    one.stop()


def test_the_same_commands_on_a_stopped_directory(one):
    first = one.password
    one.stop()
    with_password(one, "of ann, the second", "add", "Ann@example.org", "--role", "administrator")
    assert listed(one) == {ADMIN: "administrator", "ann@example.org": "administrator", VIEWER: "viewer"}
    with_password(one, "forgotten and replaced", "password", ADMIN)
    one.command("user", "role", "ann@example.org", "viewer")
    done = one.command("user", "delete", ADMIN, check=False)
    assert done.returncode == 1 and "last administrator" in done.stderr
    one.command("user", "delete", VIEWER)
    one.command("user", "rotate-key")
    done = with_password(one, "short", "password", ADMIN, check=False)
    assert done.returncode == 1 and "8 characters" in done.stderr
    done = with_password(one, "long enough", "add", ADMIN, check=False)
    assert done.returncode == 1 and "exists already" in done.stderr
    for command in [["delete"], ["role", "viewer"]]:
        done = one.command("user", command[0], "nobody@example.org", *command[1:], check=False)
        assert done.returncode == 1 and "no user" in done.stderr
    one.start()
    assert requests.post(f"{one.url}/api/auth/login", json={"username": ADMIN, "password": first}, timeout=60).status_code == 401
    log_in(one, ADMIN, "forgotten and replaced")
    one.stop()


def test_a_password_is_not_an_argument_and_only_one_line(one):
    done = one.command("user", "add", "a@example.org", "--role", "king", check=False)
    assert done.returncode == 2 and "administrator, viewer" in done.stderr, done.stderr
    done = with_password(one, "two\nlines", "add", "a@example.org", check=False)
    assert done.returncode == 1 and "more than one line" in done.stderr
    done = one.command("user", "add", "a@example.org", check=False)
    assert done.returncode == 1 and "standard input holds no password" in done.stderr, done.stderr
    assert listed(one) == {ADMIN: "administrator", VIEWER: "viewer"}
    one.stop()


def test_at_a_terminal_the_password_is_asked_twice_and_not_shown(one):
    def at_terminal(*answers):
        ours, theirs = pty.openpty()
        command = [binary(), "user", "password", VIEWER, "--data", str(one.directory)]
        process = subprocess.Popen(command, env=clean_environment(), stdin=theirs, stdout=theirs, stderr=theirs, close_fds=True)
        os.close(theirs)
        seen = b""
        for prompt, answer in zip([b"New password of bi@example.org: ", b"The same again: "], answers):
            while not seen.endswith(prompt):
                seen += os.read(ours, 4096)
            os.write(ours, answer + b"\n")
        try:
            while part := os.read(ours, 4096):
                seen += part
        except OSError:
            pass  # The other end has closed the terminal.
        os.close(ours)
        return process.wait(timeout=60), seen.decode()

    code, seen = at_terminal(b"typed password", b"typed passwort")
    assert code == 1 and "differ" in seen and "typed" not in seen, seen
    code, seen = at_terminal(b"typed password", b"typed password")
    assert code == 0 and "changed" in seen and "typed" not in seen, seen
    log_in(one, VIEWER, "typed password")
    one.stop()

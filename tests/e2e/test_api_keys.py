"""API keys: programs read and change with them over HTTP, WebSocket and PostgreSQL's protocol, until they are deleted or expire."""

import json
import time

import psycopg
import pytest
import requests
import websocket

from harness.rest import Api

VIEWER = "bi@example.org"
ADMIN = "admin@tachograph.local"


@pytest.fixture
def one(own_server, tmp_path):
    """A server with the PostgreSQL door, a device with a value, and a viewer."""
    server = own_server({"TACHO_POSTGRES_LISTEN": "127.0.0.1:0"})
    secret = tmp_path / "secret"
    secret.write_text("a long password\n")
    server.command("user", "add", VIEWER, "--password-file", str(secret))
    server.command("device", "add", "truck 7", "--token", "secret-7")
    server.api.send("secret-7", {"speed": 1})
    return server


def add(server, login, name, *options):
    """`tacho key add`; returns the key."""
    lines = server.command("key", "add", login, name, *options).stdout.splitlines()
    key = next(line.split()[1] for line in lines if line.startswith("key "))
    assert key.startswith("tacho_")
    return key


def ask(server, key, method="GET", path="/api/tenant/devices?pageSize=10&page=0", body=None, scheme="ApiKey"):
    """The reply to a request with a key."""
    headers = {"X-Authorization": f"{scheme} {key}"}
    return requests.request(method, server.url + path, headers=headers, json=body, timeout=60)


def listed(server):
    """The keys by name."""
    return {key["name"]: key for key in json.loads(server.command("key", "list", "--json").stdout)}


def select(server, user, key):
    """One value with psycopg."""
    port = server.listeners["postgres"]
    with psycopg.connect(host="127.0.0.1", port=port, user=user, password=key, dbname="tacho") as connection:
        return connection.execute("SELECT speed FROM telemetry").fetchone()[0]


def test_a_key_reads_over_every_door_and_never_has_more_than_its_role(one):
    key = add(one, ADMIN, "grafana")
    for scheme in ("ApiKey", "Bearer"):
        assert ask(one, key, scheme=scheme).json()["totalElements"] == 1
    assert select(one, ADMIN, key) == 1
    socket = websocket.create_connection(f"ws://127.0.0.1:{one.http}/api/ws/plugins/telemetry?token={key}", timeout=60)
    socket.close()
    refused = ask(one, key, "POST", "/api/device", {"name": "truck 8"})
    assert refused.status_code == 403 and "viewer" in refused.text
    strong = add(one, ADMIN, "provisioning", "--role", "administrator")
    assert ask(one, strong, "POST", "/api/device", {"name": "truck 8"}).status_code == 200
    assert key not in one.log() and strong not in one.log()


def test_a_deleted_key_ends_at_once_and_the_others_stay(one):
    key, other = add(one, VIEWER, "old"), add(one, VIEWER, "new")
    socket = websocket.create_connection(f"ws://127.0.0.1:{one.http}/api/ws/plugins/telemetry?token={key}", timeout=60)
    one.command("key", "delete", listed(one)["old"]["id"])
    refused = ask(one, key)
    assert refused.status_code == 401 and "unknown" in refused.text
    kind, data = socket.recv_data(control_frame=True)
    assert kind == websocket.ABNF.OPCODE_CLOSE and int.from_bytes(data[:2], "big") == 1008
    socket.shutdown()
    with pytest.raises(psycopg.OperationalError, match="unknown"):
        select(one, VIEWER, key)
    assert ask(one, other).status_code == 200 and select(one, VIEWER, other) == 1
    one.command("user", "delete", VIEWER)
    assert ask(one, other).status_code == 401
    assert "new" not in listed(one)


def test_connections_end_when_their_key_expires(one):
    """An idle connection, one inside a statement and a WebSocket."""
    body = {"login": VIEWER, "name": "short", "role": "viewer", "expiresTime": int(time.time() * 1000) + 4_000}
    key = one.api.post("/api/tacho/api-keys", body)["key"]
    port = one.listeners["postgres"]
    with (
        psycopg.connect(host="127.0.0.1", port=port, user=VIEWER, password=key, dbname="tacho") as idle,
        psycopg.connect(host="127.0.0.1", port=port, user=VIEWER, password=key, dbname="tacho") as busy,
    ):
        live = websocket.create_connection(f"ws://127.0.0.1:{one.http}/api/ws/plugins/telemetry?token={key}", timeout=60)
        with pytest.raises(psycopg.OperationalError, match="key has expired"):
            while True:
                busy.execute("SELECT count(*) FROM generate_series(1, 100000) a, generate_series(1, 1000) b")
        with pytest.raises(psycopg.OperationalError, match="key has expired|server closed"):
            idle.execute("SELECT 1")
        # An empty text is a close frame.
        while live.recv():
            pass
        live.shutdown()


def test_a_key_expires(one):
    headers = one.api.session.headers
    body = {"login": VIEWER, "name": "short", "role": "viewer", "expiresTime": int(time.time() * 1000) + 2_000}
    added = requests.post(one.url + "/api/tacho/api-keys", json=body, headers=headers, timeout=60).json()
    deadline = time.monotonic() + 60
    while (reply := ask(one, added["key"])).status_code == 200:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert reply.status_code == 401 and "expired" in reply.text


def test_keys_survive_a_restart_and_bad_requests_are_refused(one):
    key = add(one, VIEWER, "kept", "--expires-days", "90")
    one.kill()
    assert listed(one)["kept"]["role"] == "viewer"
    stopped = add(one, VIEWER, "stopped")
    one.start()
    assert ask(one, key).status_code == 200 and ask(one, stopped).status_code == 200
    for arguments, what in (
        ((VIEWER, "kept"), "exists already"),
        ((VIEWER, "strong", "--role", "administrator"), "has at most the role viewer"),
        (("nobody@example.org", "x"), "there is no user"),
    ):
        refused = one.command("key", "add", *arguments, check=False)
        assert refused.returncode == 1 and what in refused.stderr, refused.stderr
    for login in (ADMIN, VIEWER):
        made = ask(one, key, "POST", "/api/tacho/api-keys", {"login": login, "name": "x", "role": "viewer"})
        assert made.status_code == 403, "a key that expires cannot make another key"
    session = Api(one.url).login(VIEWER, "a long password")
    assert session.post("/api/tacho/api-keys", {"login": VIEWER, "name": "own", "role": "viewer"})["key"].startswith("tacho_")
    session.session.close()
    for wrong in ("tacho_00", "abc", "tacho_"):
        assert ask(one, wrong).status_code == 401

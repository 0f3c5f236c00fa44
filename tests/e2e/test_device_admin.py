"""Looking after devices: what was refused of them and why, another name, another token, the end."""

import json
import re

import paho.mqtt.client as mqtt
import psycopg
import pytest
import requests

from harness import wait
from test_paho import Client


def shown(server, name):
    """What `tacho device show --json` prints."""
    return json.loads(server.command("device", "show", name, "--json").stdout)


@pytest.fixture
def one(own_server):
    """A server with the device `truck 7`."""
    server = own_server()
    server.command("device", "add", "truck 7", "--token", "secret-7")
    return server


def test_a_refused_message_of_mqtt_3_1_1_is_seen_by_who_looks_after_the_device(one):
    with Client(one, "secret-7", mqtt.MQTTv311) as client:
        for payload in ['{"a":NaN}', '{"":1}', '{"a":1}']:
            assert client.publish(payload) == (0, None), "3.1.1 has no word for no"
    refused = shown(one, "truck 7")["refused"]
    assert (refused["messages"], refused["door"]) == (2, "mqtt")
    assert "key is empty" in refused["reason"]
    text = one.command("device", "show", "truck 7").stdout
    assert re.search(r"^refused +2 messages since 20", text, re.MULTILINE), text
    assert "the key is empty" in text
    [listed] = one.api.get("/api/tacho/refusals")["devices"]
    assert (listed["name"], listed["messages"]) == ("truck 7", 2)
    # One line a minute for a device, with its peer and the first reason.
    lines = [line for line in one.lines if "refused what a device sent" in line]
    assert len(lines) == 1 and "NaN" in lines[0] and "truck 7" in lines[0] and "127.0.0.1:" in lines[0], lines
    # After a restart the last reason comes from the dead letters.
    one.stop()
    one.start()
    refused = shown(one, "truck 7")["refused"]
    assert refused["messages"] == 0 and "key is empty" in refused["reason"]
    assert "nothing since" in one.command("device", "show", "truck 7").stdout
    one.stop()


def test_a_refused_request_is_counted_with_the_others(one):
    url = f"{one.url}/api/v1/secret-7/telemetry"
    assert requests.post(url, data='{"a":', timeout=60).status_code == 400
    refused = shown(one, "truck 7")["refused"]
    assert (refused["messages"], refused["door"]) == (1, "http")
    one.stop()


def test_wrong_tokens_and_passwords_are_logged_and_never_told(own_server):
    server = own_server({"TACHO_POSTGRES_LISTEN": "127.0.0.1:0"})
    # The token in the wrong place is a secret too.
    with Client(server, "wrong-token-1", mqtt.MQTTv311, client_id="wrong-token-0") as client:
        assert client.reason.value != 0
    assert requests.post(f"{server.url}/api/v1/wrong-token-2/telemetry", data="{}", timeout=60).status_code == 401
    for user in ["admin@tachograph.local", "wrong-user"]:
        login = {"username": user, "password": "wrong-password-3"}
        assert requests.post(f"{server.url}/api/auth/login", json=login, timeout=60).status_code == 401
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(host="127.0.0.1", port=server.listeners["postgres"], user="Admin@tachograph.local", password="wrong-password-4", dbname="tacho")
    admin = "admin@tachograph.local"
    expected = [["mqtt", "no device"], ["http", "no device"], ["http", admin], ["http", "no such user"], ["postgres", admin]]
    found = lambda: [line for line in server.lines if "refused a" in line]  # noqa: E731
    wait.until(lambda: len(found()) >= len(expected), f"{len(expected)} lines in the log")
    lines = found()
    assert len(lines) == len(expected), lines
    for line, words in zip(lines, expected):
        assert all(word in line for word in [*words, "127.0.0.1:"]), line
    assert "wrong-" not in server.log()
    server.stop()


def test_a_renamed_device_continues_under_its_new_name(one):
    with Client(one, "secret-7", mqtt.MQTTv5) as client:
        assert client.publish('{"n":1}')[0] == 0
        done = one.command("device", "rename", "truck 7", "truck 8")
        assert "rows from now on belong to truck 8; those from before stay under truck 7" in done.stdout

        def moved():
            """The open connection follows within a second or two."""
            client.publish('{"n":2}')
            return one.api.latest("truck 8", "n") == 2

        wait.until(moved, "a value under the new name")
    assert one.command("device", "show", "truck 7", check=False).stderr.count('there is no device "truck 7"') == 1
    rows = one.command("sql", "SELECT device, min(n) FROM telemetry GROUP BY device ORDER BY device").stdout
    assert "truck 7" in rows and "truck 8" in rows
    taken = one.command("device", "add", "truck 7").stdout
    assert "added" in taken
    done = one.command("device", "rename", "truck 7", "truck 8", check=False)
    assert done.returncode == 1 and "exists already" in done.stderr
    one.stop()


def test_a_replaced_token_opens_nothing_and_ends_what_it_opened(one):
    assert one.command("device", "token", "truck 7").stdout == "secret-7\n"
    with Client(one, "secret-7", mqtt.MQTTv5) as client:
        new = one.command("device", "token", "truck 7", "--new").stdout.strip()
        assert len(new) == 20
        reason = client.disconnected.get(timeout=60)
        assert reason.value == 0x87, reason
    with Client(one, "secret-7", mqtt.MQTTv5) as client:
        assert client.reason.value == 0x87
    assert one.command("device", "token", "truck 7", "--set", "chosen-7").stdout == "chosen-7\n"
    one.api.send("chosen-7", {"n": 1})
    done = one.command("device", "token", "truck 7", "--set", "two words", check=False)
    assert done.returncode == 1 and "visible ASCII" in done.stderr and "two words" not in done.stderr
    one.stop()


def test_a_deleted_device_leaves_its_rows_and_its_name(one):
    one.api.send("secret-7", {"n": 1})
    done = one.command("device", "delete", "truck 7")
    assert "deleted  truck 7" in done.stdout and "stays in the table telemetry" in done.stdout
    assert requests.post(f"{one.url}/api/v1/secret-7/telemetry", data='{"n":2}', timeout=60).status_code == 401
    assert json.loads(one.command("device", "list", "--json").stdout) == []
    assert "truck 7" in one.command("sql", "SELECT device, n FROM telemetry").stdout
    added = one.command("device", "add", "truck 7").stdout
    assert "rows of an earlier device of this name" in added, "who continues a series is told so"
    assert one.api.latest("truck 7", "n") == 1
    one.stop()


def test_the_same_commands_on_a_stopped_directory(one):
    one.stop()
    details = shown(one, "truck 7")
    assert (details["name"], details["table"], details["refused"]) == ("truck 7", "telemetry", None)
    assert "unknown: the server does not run" in one.command("device", "show", "truck 7").stdout
    one.command("device", "rename", "truck 7", "truck 8")
    one.command("device", "token", "truck 8", "--set", "secret-8")
    assert json.loads(one.command("device", "list", "--json", "--show-tokens").stdout)[0]["token"] == "secret-8"
    for command in [["show"], ["delete"], ["token"], ["rename", "x"]]:
        done = one.command("device", command[0], "truck 7", *command[1:], check=False)
        assert done.returncode == 1 and 'there is no device "truck 7"' in done.stderr, done.stderr
    one.command("device", "delete", "truck 8")
    assert json.loads(one.command("device", "list", "--json").stdout) == []

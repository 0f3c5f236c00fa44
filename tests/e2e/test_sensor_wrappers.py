"""Wrappers of virtual sensors that read something outside: files, HTTP, MQTT, UDP, this machine, and other servers."""

import json
import socket
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import paho.mqtt.client as mqtt
import pytest
import requests

from harness import wait
from harness.sensors import shown, write

START = 1_700_000_000_000
WAIT_S = 60


def sensor(name, wrapper, predicates, fields="value", source=None, more="", processing=""):
    """A descriptor with one source, whose fields are given as they are."""
    names = [field.strip() for field in fields.split(",")]
    output = "".join(
        f'[[processing-class.output-structure.field]]\nname = "{field}"\ntype = "{"string" if field == "text" else "double"}"\n'
        for field in names
    )
    said = "".join(f"{key} = {json.dumps(str(value))}\n" for key, value in predicates.items())
    source = source or f"select {fields} from wrapper"
    return f"""
name = "{name}"
{more}
[processing-class]
{processing}
{output}
[[stream]]
name = "s"
query = "select {fields} from a"
[[stream.source]]
alias = "a"
storage-size = 1
query = "{source}"
[[stream.source.address]]
wrapper = "{wrapper}"
[stream.source.address.predicate]
{said}
"""


def source(server, name):
    """The only source of a sensor from outside."""
    info = shown(server, name)
    return info["sources"][0] if info and info["sources"] else {}


def connected(server, name):
    """Waits until the source of a sensor is read."""
    return wait.until(lambda: source(server, name).get("connected"), f"the source of {name}")


def output(server, name, key="value"):
    """The output of a sensor: times in milliseconds with values."""
    try:
        return server.api.history(name, key)
    except AssertionError:
        return []


def values(server, name, key="value"):
    """The values of a sensor in the order of their times."""
    return [value for _, value in output(server, name, key)]


def test_a_csv_file_is_followed_through_a_sigkill_and_each_line_comes_once(own_server, tmp_path):
    server = own_server()
    timed, counted = tmp_path / "timed.csv", tmp_path / "counted.csv"
    times = {"file": timed, "fields": "timed, value", "formats": "bigint, numeric", "skip-first-lines": 1, "sampling": 20}
    write(server, "timed.toml", sensor("timed", "csv", times))
    numbers = {"file": counted, "fields": "value, text", "formats": "numeric, string", "separator": ";", "sampling": 20}
    write(server, "counted.toml", sensor("counted", "csv", numbers, "value, text", processing="unique-timestamps = false"))
    lines = 30_000
    with open(timed, "a") as first, open(counted, "a") as second:
        first.write("time,value\n")
        for n in range(lines):
            # Two lines of each millisecond.
            first.write(f"{START + n // 2},{n}\n")
            second.write(f'{n};"a;{n}"\n')
            if n in (9_999, 19_999):
                first.flush()
                second.flush()
                wait.until(lambda: len(output(server, "timed")) > 0 and len(output(server, "counted")) > 0, "the first lines")
                server.kill()
                server.start()
    # The first line of a millisecond is its row in "timed".
    for name, last in (("timed", lines - 2), ("counted", lines - 1)):
        wait.until(lambda: source(server, name).get("connected") and last in values(server, name)[-1:], f"the last line of {name}")  # noqa: B023
    assert values(server, "counted") == list(range(lines))
    assert values(server, "counted", "text") == [f"a;{n}" for n in range(lines)]
    # The output of a sensor has one row of a millisecond (unique-timestamps); the device of the source has all lines.
    rows = server.api.session.post(
        f"{server.url}/api/sql", json={"query": "SELECT ts, value FROM timed_inputs ORDER BY ts"}, timeout=WAIT_S
    ).json()["rows"]
    assert [value for _, value in rows] == list(range(lines))
    assert shown(server, "counted")["counters"]["outOfOrder"] == 0
    server.stop()


def test_a_broken_line_is_named_and_the_others_are_read(own_server, tmp_path):
    server = own_server()
    file = tmp_path / "road.csv"
    file.write_text('01/02/2026 12:00:00,1\n01/02/2026 12:00:01,two\n31/02/2026 12:00:02,3\n"01/02/2026 12:00:03,4\n\n01/02/2026 12:00:04,NaN\n01/02/2026 12:00:05,6\n')
    said = {
        "file": file,
        "fields": "timed, value",
        "formats": "timestamp(dd/MM/yyyy HH:mm:ss), numeric",
        "timezone": "+01:00",
        "bad-values": "NaN",
        "sampling": 20,
    }
    write(server, "road.toml", sensor("road", "csv", said))
    wait.until(lambda: values(server, "road") == [1, 6], "the good lines")
    assert output(server, "road")[0][0] == 1_769_943_600_000
    state = wait.until(lambda: (one := source(server, "road")).get("refused") == 4 and one, "the count")
    assert "line 6: no field has a value" in state["lastError"]
    dead_letters = server.api.session.post(
        f"{server.url}/api/sql", json={"query": "SELECT reason, payload FROM dead_letter ORDER BY ts"}, timeout=WAIT_S
    ).json()["rows"]
    assert [payload for _, payload in dead_letters] == [
        "01/02/2026 12:00:01,two",
        "31/02/2026 12:00:02,3",
        '"01/02/2026 12:00:03,4',
        "01/02/2026 12:00:04,NaN",
    ]
    assert 'road.csv, line 2: "two" in the column value is not a number' in dead_letters[0][0]
    text = server.command("sensor", "list").stdout
    assert "road: s/a (csv, CSV file" in text and "4 refused" in text
    metrics = server.api.metrics()
    assert 'tacho_virtual_sensor_source_refused_total{sensor="road",source="s/a"} 4' in metrics
    assert 'tacho_virtual_sensor_source_connected{sensor="road",source="s/a"} 1' in metrics
    # The file is replaced by another one.
    file.rename(tmp_path / "road.csv.1")
    file.write_text("01/02/2026 13:00:00,7\n")
    wait.until(lambda: values(server, "road") == [1, 6, 7], "the line of the new file")
    # A file that is not there is read as soon as it is.
    said["file"] = tmp_path / "late.csv"
    write(server, "late.toml", sensor("late", "csv", said))
    wait.until(lambda: "late.csv: No such file" in (source(server, "late").get("lastError") or ""), "the fault")
    said["file"].write_text("01/02/2026 13:00:00,8\n")
    wait.until(lambda: values(server, "late") == [8], "the line")
    server.stop()


class Weather(BaseHTTPRequestHandler):
    """An address with a new reading at each request. Each third answer is not JSON, each fifth a fault."""

    asked = 0

    def do_GET(self):
        type(self).asked += 1
        asked = self.asked
        body = b"<html>" if asked % 3 == 0 else json.dumps({"value": asked, "place": "roof"}).encode()
        self.send_response(503 if asked % 5 == 0 else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def test_http_answers_are_elements_and_faults_are_visible(own_server):
    server = own_server()
    weather = ThreadingHTTPServer(("127.0.0.1", 0), Weather)
    threading.Thread(target=weather.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{weather.server_port}/now"
    write(server, "roof.toml", sensor("roof", "http-get", {"url": url, "rate": 20}))
    write(server, "text.toml", sensor("text", "http-get", {"url": url, "rate": 20}, "text", "select data as text from wrapper"))
    closed = socket.create_server(("127.0.0.1", 0))
    nobody = closed.getsockname()[1]
    closed.close()
    write(server, "nobody.toml", sensor("nobody", "http-get", {"url": f"http://ann:secret@127.0.0.1:{nobody}/now?key=secret"}))
    wait.until(lambda: len(values(server, "roof")) >= 5 and source(server, "roof")["refused"] >= 2, "readings and refusals")
    wait.until(lambda: source(server, "roof")["failures"] >= 1, "a fault of the address")
    assert all(value % 3 for value in values(server, "roof"))
    wait.until(lambda: any('"place": "roof"' in text for text in values(server, "text", "text")), "the text of an answer")
    state = wait.until(lambda: (one := source(server, "nobody")).get("failures", 0) >= 2 and one, "the failures")
    assert not state["connected"] and f"no answer of http://127.0.0.1:{nobody}/now" in state["lastError"]
    wait.until(lambda: f"no answer of http://127.0.0.1:{nobody}/now" in server.log(), "the first failure in the log")
    assert "secret" not in json.dumps(shown(server, "nobody")) + server.command("sensor", "list", "nobody").stdout + server.log()
    text = server.command("sensor", "list").stdout
    assert "nobody: s/a (http-get" in text and "NOT CONNECTED" in text
    assert shown(server, "nobody")["state"] == "running"
    weather.shutdown()
    weather.server_close()
    server.stop()


@pytest.fixture
def mosquitto(tmp_path):
    """A broker of Debian's mosquitto; gives its port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    config = tmp_path / "mosquitto.conf"
    config.write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\n")
    broker = subprocess.Popen(["mosquitto", "-c", str(config)], stderr=subprocess.DEVNULL)

    def answers():
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    wait.until(answers, "the broker")
    yield port
    broker.terminate()
    broker.wait(WAIT_S)


def publish(port, messages):
    """Publishes messages at QoS 1, and waits for their acks."""
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2)
    client.connect("127.0.0.1", port)
    client.loop_start()
    sent = [client.publish(topic, payload, 1) for topic, payload in messages]
    for one in sent:
        one.wait_for_publish(WAIT_S)
    client.disconnect()
    client.loop_stop()


def test_messages_of_a_broker_are_elements_also_those_that_came_meanwhile(own_server, mosquitto):
    server = own_server()
    said = {"uri": f"tcp://127.0.0.1:{mosquitto}", "client_id": "tacho", "topic": "street/+", "qos": 1}
    write(server, "street.toml", sensor("street", "mqtt", said, "value, text", "select value, topic as text from wrapper"))
    connected(server, "street")
    publish(mosquitto, [(f"street/{n % 3}", json.dumps({"ts": START + n, "values": {"value": n}})) for n in range(500)])
    publish(mosquitto, [("street/0", "no JSON"), ("elsewhere", "1")])
    wait.until(lambda: len(values(server, "street")) == 500, "the messages")
    assert values(server, "street") == list(range(500))
    assert values(server, "street", "text")[:4] == ["street/0", "street/1", "street/2", "street/0"]
    assert wait.until(lambda: source(server, "street")["refused"] == 1, "the refusal")
    server.kill()
    publish(mosquitto, [("street/0", json.dumps({"ts": START + n, "values": {"value": n}})) for n in range(500, 700)])
    server.start()
    wait.until(lambda: len(values(server, "street")) == 700, "the messages that came meanwhile")
    assert values(server, "street") == list(range(700))
    server.stop()


def test_datagrams_are_elements(own_server):
    server = own_server()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    write(server, "packets.toml", sensor("packets", "udp", {"port": port}, "text", "select raw_packet as text from wrapper"))
    connected(server, "packets")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for n in range(50):
            sender.sendto(f"reading {n}".encode(), ("127.0.0.1", port))
            # A datagram may be lost on its way, so the next one waits for it.
            wait.until(lambda: source(server, "packets")["elements"] > n, f"datagram {n}")  # noqa: B023
        sender.sendto(b"\xff", ("127.0.0.1", port))
    wait.until(lambda: source(server, "packets")["refused"] == 1, "the refusal")
    wait.until(lambda: values(server, "packets", "text") == [f"reading {n}" for n in range(50)], "the output")
    # A second sensor cannot have the port, and says so.
    write(server, "second.toml", sensor("second", "udp", {"port": port}, "text", "select raw_packet as text from wrapper"))
    wait.until(lambda: f"cannot read the UDP port {port}" in (source(server, "second").get("lastError") or ""), "the fault")
    # Its port is free when the first sensor is removed.
    (server.directory / "sensors" / "packets.toml").unlink()
    connected(server, "second")
    server.stop()


def test_this_machine_has_readings(own_server):
    server = own_server()
    wrappers = {
        "system-time": ("clock", "clock-period"),
        "memory-usage": ("heap, non_heap", "sampling-rate"),
        "free-disk-space": ("free_space", "sampling-rate"),
        "multiformat": ("packet_type, temperature, light", "rate"),
    }
    for wrapper, (fields, period) in wrappers.items():
        write(server, f"{wrapper}.toml", sensor(wrapper, wrapper, {period: 20}, fields))
    for wrapper, (fields, _) in wrappers.items():
        for field in fields.split(", "):
            found = wait.until(lambda: len(one := values(server, wrapper, field)) > 2 and one, field)  # noqa: B023
            assert all(value > 0 for value in found) or field in ("temperature", "light"), (field, found)
    assert len(set(values(server, "multiformat", "light"))) > 1
    server.stop()


def rows_of(server, name):
    """The rows of the device of a source."""
    reply = server.api.session.post(
        f"{server.url}/api/sql", json={"query": f"SELECT ts, value FROM {name}_inputs ORDER BY ts"}, timeout=WAIT_S
    )
    return [tuple(row) for row in reply.json()["rows"]]


def test_rows_of_another_server_come_once(own_server, tmp_path):
    first = own_server(directory=tmp_path / "first")
    file = tmp_path / "road.csv"
    file.write_text("".join(f"{START + n * 1_000},{n}\n" for n in range(100)))
    said = {"file": file, "fields": "timed, value", "formats": "bigint, numeric", "sampling": 20}
    write(first, "road.toml", sensor("road", "csv", said))
    wait.until(lambda: len(values(first, "road")) == 100, "the rows of the first server")
    second = own_server(directory=tmp_path / "second")
    login = {"client_id": "admin@tachograph.local", "client_secret": first.password}
    rest = {"url": first.url, "vs_name": "road", "starting_time": START, "sampling": 50, **login}
    write(second, "rest.toml", sensor("rest", "remote-api", rest))
    old = {
        "remote-contact-point": f"{first.url}/streaming/",
        "query": "select * from road",
        "username": login["client_id"],
        "password": login["client_secret"],
        "start-time": START,
        "sampling": 50,
    }
    write(second, "old.toml", sensor("old", "remote-rest", old))
    write(second, "wrong.toml", sensor("wrong", "remote-api", {**rest, "client_secret": "wrong"}))
    for name in ("rest", "old"):
        wait.until(lambda: values(second, name) == list(range(100)), f"the rows of {name}")  # noqa: B023
    second.kill()
    with open(file, "a") as more:
        more.write("".join(f"{START + n * 1_000},{n}\n" for n in range(100, 150)))
    second.start()
    expected = [(START + n * 1_000, n) for n in range(150)]
    for name in ("rest", "old"):
        wait.until(lambda: output(second, name) == expected, f"the later rows of {name}")  # noqa: B023
        assert shown(second, name)["counters"]["outOfOrder"] == 0
    state = wait.until(lambda: (one := source(second, "wrong")).get("lastError") and one, "the fault")
    assert "/oauth2/token answers 401" in state["lastError"] or "/oauth2/token answers 400" in state["lastError"]
    # The first server goes away and comes back at its address.
    first.env["TACHO_HTTP_LISTEN"] = f"127.0.0.1:{first.http}"
    first.kill()
    for name in ("rest", "old"):
        wait.until(lambda: not source(second, name)["connected"], f"the loss of {name}")  # noqa: B023
    first.start()
    with open(file, "a") as more:
        more.write(f"{START + 150_000},150\n")
    expected.append((START + 150_000, 150))
    for name in ("rest", "old"):
        connected(second, name)
        wait.until(lambda: output(second, name) == expected, f"the last row of {name}")  # noqa: B023
    second.stop()


def test_the_rows_of_a_device_are_replayed(own_server):
    server = own_server()
    device = server.device()
    for n in range(100):
        body = json.dumps({"ts": START + n * 1_000, "values": {"value": n}})
        assert requests.post(f"{server.url}/api/v1/{device.token}/telemetry", data=body, timeout=WAIT_S).status_code == 200
    write(server, "again.toml", sensor("again", "replay", {"dbname": device.name, "speed": 1_000}))
    expected = [(START + n * 1_000, n) for n in range(100)]
    wait.until(lambda: output(server, "again") == expected, "the replay")
    server.kill()
    server.start()
    connected(server, "again")
    assert output(server, "again") == expected
    assert shown(server, "again")["counters"]["outOfOrder"] == 0
    server.stop()


def test_a_sensor_over_something_outside_is_checked_explained_and_run_without_it(tmp_path, own_server):
    from harness.server import run

    file = tmp_path / "street.toml"
    file.write_text(sensor("street", "mqtt", {"uri": "tcp://broker.example", "client_id": "x", "topic": "t"}))
    assert "ok" in run("sensor", "check", file).stdout
    assert 'topic "t" of the broker broker.example:1883' in run("sensor", "explain", file).stdout
    (tmp_path / "street.csv").write_text("timed,value\n1000,7\n")
    assert run("sensor", "run", file, "--csv", tmp_path / "street.csv").stdout.splitlines()[1] == "1970-01-01T00:00:01Z,7.0"
    file.write_text(sensor("street", "mqtt", {"uri": "broker", "client_id": "x", "topic": "t"}))
    done = run("sensor", "check", file, check=False)
    assert done.returncode != 0 and "uri is not tcp://HOST:PORT" in done.stdout

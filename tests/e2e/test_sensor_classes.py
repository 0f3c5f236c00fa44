"""Processing classes of virtual sensors in the server."""

import contextlib
import http.server
import json
import os
import shutil
import socket
import subprocess
import threading
import xml.etree.ElementTree as ElementTree

import paho.mqtt.client as mqtt
import pytest

from harness import databases, wait
from harness.sensors import loaded, shown, write
from harness.server import run
from test_sensor_storage import PASSWORD, MariaDb, Postgres

START = 1_700_000_000_000
WAIT_S = 60


def sensor(name, class_name, params, fields, query="select celsius, timed from a", source="select * from wrapper"):
    """A descriptor over the device road. Fields are names with types."""
    structure = "".join(f'[[processing-class.output-structure.field]]\nname = "{field}"\ntype = "{kind}"\n' for field, kind in fields)
    values = "".join(f"{key} = {json.dumps(value)}\n" for key, value in params.items())
    return f"""
name = "{name}"
[processing-class]
class-name = "{class_name}"
unique-timestamps = true
[processing-class.init-params]
{values}
{structure}
[[stream]]
name = "s"
query = "{query}"
[[stream.source]]
alias = "a"
storage-size = 1
query = "{source}"
[[stream.source.address]]
wrapper = "tacho"
[stream.source.address.predicate]
device = "road"
"""


def road(server):
    """The device of the tests."""
    server.command("device", "add", "road", "--token", "road")


def report(server, first, values):
    """Readings, one in a second."""
    rows = [{"ts": START + (first + at) * 1_000, "values": {"celsius": value}} for at, value in enumerate(values)]
    reply = server.api.session.post(f"{server.url}/api/v1/road/telemetry", json=rows, timeout=WAIT_S)
    assert reply.status_code == 200, reply.text


def test_a_model_marks_values_and_continues_after_a_kill(own_server):
    server = own_server()
    road(server)
    params = {"model": "linear", "window_size": 5, "error_bound": 5}
    fields = [("stream", "double"), ("processed", "double"), ("dirtiness", "double")]
    write(server, "clean.toml", sensor("clean", "DataClean", params, fields))
    loaded(server, "clean")
    report(server, 0, [1, 2, 13])
    wait.until(lambda: shown(server, "clean")["counters"]["elements"] == 3, "the elements of half a window")
    server.kill()
    server.start()
    loaded(server, "clean")
    report(server, 3, [4, 5])
    marks = lambda: [(ts, mark) for ts, mark in server.api.history("clean", "dirtiness")]
    expected = [(START + at * 1_000, 1.0 if at == 2 else 0.0) for at in range(5)]
    wait.until(lambda: marks() == expected, "the marks of the window")
    assert [round(value, 9) for _, value in server.api.history("clean", "processed")] == [3, 4, 5, 6, 7]


def test_sentences_become_a_position(own_server):
    server = own_server()
    road(server)
    fields = [("latitude", "double"), ("longitude", "double"), ("speed", "double")]
    write(server, "gps.toml", sensor("gps", "gsn.vsensor.GPSNMEAVS", {}, fields, query="select nmea, timed from a"))
    loaded(server, "gps")
    good = "$GPRMC,123519,A,4807.038,N,01131.000,E,022.4,084.4,230394,003.1,W*6A"
    rows = [{"ts": START + at, "values": {"nmea": text}} for at, text in enumerate([good, good[:-1] + "B", "no sentence"])]
    reply = server.api.session.post(f"{server.url}/api/v1/road/telemetry", json=rows, timeout=WAIT_S)
    assert reply.status_code == 200, reply.text
    counters = lambda: shown(server, "gps")["counters"]
    wait.until(lambda: counters()["elements"] == 3, "the sentences")
    wait.until(lambda: server.api.history("gps", "latitude") == [(START, 48.0 + 7.038 / 60.0)], "the position")
    assert (counters()["sentencesRefused"], counters()["rowsWithoutPosition"]) == (2, 2)


SCRIPT = "state.n = (state.n ?? 0) + 1; n = state.n; fahrenheit = celsius * 1.8 + 32.0; celsius < 100"
SCRIPT_FIELDS = [("n", "bigint"), ("fahrenheit", "double")]


def test_a_script_computes_and_keeps_its_state_through_a_kill(own_server):
    server = own_server()
    road(server)
    write(server, "script.toml", sensor("script", "gsn.processor.ScriptletProcessor", {"scriptlet": SCRIPT}, SCRIPT_FIELDS))
    loaded(server, "script")
    report(server, 0, [10, 20, 100, 30])
    counts = lambda: server.api.history("script", "n")
    expected = [(START, 1), (START + 1_000, 2), (START + 3_000, 4)]
    wait.until(lambda: counts() == expected, "the output of the script")
    assert server.api.history("script", "fahrenheit") == [(START, 50.0), (START + 1_000, 68.0), (START + 3_000, 86.0)]
    for n in range(5, 8):
        server.kill()
        server.start()
        loaded(server, "script")
        report(server, n - 1, [40])
        expected.append((START + (n - 1) * 1_000, n))
        wait.until(lambda: counts() == expected, "the output after the kill")


def test_a_script_that_does_not_end_is_stopped_and_does_not_stop_other_sensors(own_server):
    server = own_server()
    road(server)
    script = "if celsius >= 50 { loop {} } n = 1;"
    write(server, "script.toml", sensor("script", "ScriptletProcessor", {"scriptlet": script}, [("n", "bigint")]))
    write(server, "beside.toml", sensor("beside", "Bridge", {}, [("celsius", "double")]))
    loaded(server, "script")
    loaded(server, "beside")
    report(server, 0, [10, 60, 20])
    counters = lambda: shown(server, "script")["counters"]
    wait.until(lambda: counters()["rows"] == 2, "the rows around the one that was stopped")
    assert (counters()["scriptsStopped"], counters()["faults"]) == (1, 1)
    assert "SCRIPT_OPERATIONS_MAX" in counters()["lastFault"]
    report(server, 3, [50] * 300)
    wait.until(lambda: counters()["elements"] == 303, "the elements that are stopped")
    assert counters()["scriptsStopped"] + counters()["scriptRunsLeftOut"] == 301
    assert counters()["scriptsStopped"] < 15
    wait.until(lambda: len(server.api.history("beside", "celsius")) == 303, "the rows of the other sensor")
    for reason in ["scripts_stopped", "script_runs_left_out"]:
        wait.until(lambda: f'reason="{reason}"' in server.api.metrics(), f"the metric {reason}")  # noqa: B023


def test_a_script_is_checked_explained_and_run_without_a_server(tmp_path, own_server):
    file = tmp_path / "script.toml"
    file.write_text(sensor("script", "ScriptletProcessor", {"scriptlet": SCRIPT}, SCRIPT_FIELDS))
    assert "ok" in run("sensor", "check", file).stdout
    assert "class ScriptletProcessor, a script of 1 line for each row" in run("sensor", "explain", file).stdout
    (tmp_path / "script.csv").write_text("timed,celsius\n1000,10\n2000,100\n3000,20\n")
    lines = run("sensor", "run", file, "--csv", tmp_path / "script.csv").stdout.splitlines()
    assert lines[1:] == ["1970-01-01T00:00:01Z,1,50.0", "1970-01-01T00:00:03Z,3,68.0"]
    for script, fault in [("def n = 1", "is `let x = 1;` in Rhai"), ("n = kelvin;", 'there is no variable "kelvin"')]:
        file.write_text(sensor("script", "ScriptletProcessor", {"scriptlet": script}, SCRIPT_FIELDS))
        done = run("sensor", "check", file, check=False)
        assert done.returncode != 0 and "line 7, column " in done.stdout and fault in done.stdout, done.stdout


def test_a_fault_of_a_script_has_its_place_in_the_file(own_server):
    server = own_server()
    road(server)
    write(server, "script.toml", sensor("script", "ScriptletProcessor", {"scriptlet": SCRIPT}, SCRIPT_FIELDS))
    loaded(server, "script")
    write(server, "script.toml", sensor("script", "ScriptletProcessor", {"scriptlet": "n = ;"}, SCRIPT_FIELDS))
    problem = wait.until(lambda: shown(server, "script")["problem"], "the fault of the file")
    assert "line 7, column 18" in problem and "this is not Rhai" in problem, problem


def test_a_chart_is_a_document_of_svg(own_server):
    server = own_server()
    road(server)
    params = {"title": "Road <7>", "vertical-axis": "°C", "history-size": 3}
    write(server, "chart.toml", sensor("chart", "Chart", params, [("data", "binary:image/svg+xml"), ("celsius", "double")]))
    loaded(server, "chart")
    report(server, 0, [1, 2, 3, 4])
    wait.until(lambda: len(server.api.history("chart", "celsius")) == 4, "the rows of the chart")
    url = f"{server.url}/api/tacho/sensors/chart/chart.svg"

    def drawn():
        reply = server.api.session.get(url, timeout=WAIT_S)
        assert (reply.status_code, reply.headers["Content-Type"]) == (200, "image/svg+xml"), reply.text
        root = ElementTree.fromstring(reply.content)
        texts = {(text.text or "").strip() for text in root.iter("{http://www.w3.org/2000/svg}text")}
        return texts if "celsius" in texts else None

    assert {"Road <7>", "°C"} <= wait.until(drawn, "the chart")
    missing = server.api.session.get(f"{server.url}/api/tacho/sensors/road/chart.svg", timeout=WAIT_S)
    assert missing.status_code == 404


class Broker:
    """mosquitto of Debian, which keeps sessions and messages when it stops. Its listener may have more settings."""

    def __init__(self, directory, *more):
        self.directory, self.port = directory, databases.free_port()
        user = "user root\n" if os.getuid() == 0 else ""
        text = f"{user}listener {self.port} 127.0.0.1\nallow_anonymous true\npersistence true\npersistence_location {directory}/\nlog_type none\n"
        text = "\n".join([text, *more, ""])
        (directory / "mosquitto.conf").write_text(text)
        self.start()

    def start(self):
        program = shutil.which("mosquitto", path=f"{os.environ['PATH']}:/usr/sbin")
        assert program, "mosquitto is missing: run tests/e2e/install-debian-packages"
        self.process = subprocess.Popen([program, "-c", self.directory / "mosquitto.conf"])
        wait.until(self.accepts, "mosquitto")

    def accepts(self):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
            return True
        return False

    def stop(self):
        self.process.terminate()
        self.process.wait()


class Subscriber:
    """A client over paho whose session outlives its connection."""

    def __init__(self, broker, topic):
        self.messages, subscribed = [], threading.Event()
        self.client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id="reader", clean_session=False)
        self.client.reconnect_delay_set(1, 1)
        self.client.on_connect = lambda *_: self.client.subscribe(topic, 1)
        self.client.on_subscribe = lambda *_: subscribed.set()
        self.client.on_message = lambda _client, _data, message: self.messages.append(json.loads(message.payload))
        self.client.connect("127.0.0.1", broker.port)
        self.client.loop_start()
        assert subscribed.wait(WAIT_S)

    def readings(self):
        """Times with values; a message that comes again counts once."""
        return sorted({(message["ts"], message["values"]["celsius"]) for message in self.messages})

    def close(self):
        self.client.disconnect()
        self.client.loop_stop()


class Hook:
    """An HTTP address that keeps what it gets."""

    def __init__(self):
        self.port, self.status, self.bodies = databases.free_port(), 200, []
        self.start()

    def start(self):
        hook = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if hook.status == 200:
                    hook.bodies.append((self.headers["X-Key"], self.headers["Content-Type"], json.loads(body)))
                self.send_response(hook.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def readings(self):
        rows = [row for _, _, body in self.bodies for row in body["rows"]]
        return sorted({(row["ts"], row["values"]["celsius"]) for row in rows})


def exporter(server, name):
    """What the exporter of a sensor reports; None before it does."""
    found = [one for one in (shown(server, name) or {}).get("followers", []) if one["name"] == "export"]
    return found[0] if found else None


def connected(server, name):
    """Waits until the exporter delivers."""
    wait.until(lambda: (one := exporter(server, name)) and one["connected"], f"the exporter of {name}")


def expected(count):
    return [(START + at * 1_000, float(at)) for at in range(count)]


FIELDS = [("celsius", "double")]


def test_rows_reach_a_broker_through_its_restart_and_a_kill(own_server, tmp_path):
    server = own_server()
    road(server)
    broker = Broker(tmp_path)
    params = {"uri": f"tcp://127.0.0.1:{broker.port}", "client_id": "tacho", "topic": "city/road"}
    write(server, "out.toml", sensor("out", "ch.epfl.gsn.networking.mqtt.MQTTExporterVS", params, FIELDS))
    loaded(server, "out")
    connected(server, "out")
    subscriber = Subscriber(broker, "city/road")
    try:
        report(server, 0, [float(at) for at in range(20)])
        wait.until(lambda: subscriber.readings() == expected(20), "the rows at the broker")
        broker.stop()
        report(server, 20, [float(at) for at in range(20, 30)])
        wait.until(lambda: exporter(server, "out")["failures"] > 0, "a failure of the exporter")
        assert not exporter(server, "out")["connected"]
        server.kill()
        broker.start()
        server.start()
        report(server, 30, [30.0])
        wait.until(lambda: subscriber.readings() == expected(31), "the rows of the outage")
        wait.until(lambda: exporter(server, "out")["rowsBehind"] == 0, "nothing that waits")
        assert 'tacho_virtual_sensor_follower_connected{sensor="out",follower="export"} 1' in server.api.metrics()
    finally:
        subscriber.close()
        broker.stop()


def test_rows_reach_an_address_through_an_outage_and_a_kill(own_server):
    server = own_server()
    road(server)
    hook = Hook()
    params = {"url": f"http://127.0.0.1:{hook.port}/rows?key=secret", "headers": "X-Key: abc\n"}
    write(server, "out.toml", sensor("out", "Webhook", params, FIELDS))
    loaded(server, "out")
    connected(server, "out")
    try:
        report(server, 0, [float(at) for at in range(20)])
        wait.until(lambda: hook.readings() == expected(20), "the rows at the address")
        key, kind, body = hook.bodies[0]
        assert (key, kind, body["sensor"]) == ("abc", "application/json", "out")
        assert exporter(server, "out")["target"] == f"http://127.0.0.1:{hook.port}/rows"
        hook.status = 503
        report(server, 20, [20.0])
        wait.until(lambda: exporter(server, "out")["failures"] > 0, "a failure of the exporter")
        assert "503" in exporter(server, "out")["lastError"]
        hook.stop()
        report(server, 21, [21.0, 22.0])
        server.kill()
        hook.status = 200
        hook.start()
        server.start()
        wait.until(lambda: hook.readings() == expected(23), "the rows of the outage")
        hook.status = 400
        report(server, 23, [23.0])
        wait.until(lambda: exporter(server, "out")["refused"] == 1, "the row that is given up")
        hook.status = 200
        report(server, 24, [24.0])
        wait.until(lambda: hook.readings() == [*expected(23), expected(25)[24]], "the row after it")
        listed = server.command("sensor", "list").stdout
        assert "secret" not in listed and "secret" not in json.dumps(shown(server, "out"))
    finally:
        hook.stop()


@pytest.fixture(params=[MariaDb, Postgres])
def database(request):
    """A database of each kind."""
    database = request.param()
    try:
        yield database
    finally:
        database.remove()


def test_rows_reach_a_database_through_its_outage_and_a_kill(own_server, database):
    server = own_server()
    road(server)
    url = f"jdbc:{database.scheme}://127.0.0.1:{database.port}/gsn"
    params = {"url": url, "user": "gsn", "password": PASSWORD, "driver": database.driver, "table": "road_7"}
    write(server, "out.toml", sensor("out", "gsn.vsensor.StreamExporterVirtualSensor", params, FIELDS))
    loaded(server, "out")
    rows = lambda: [(int(timed), float(celsius)) for timed, celsius in database.execute("SELECT timed, celsius FROM road_7 ORDER BY timed")]
    connected(server, "out")
    report(server, 0, [float(at) for at in range(20)])
    wait.until(lambda: rows() == expected(20), "the rows in the database")
    database.stop()
    report(server, 20, [float(at) for at in range(20, 40)])
    wait.until(lambda: exporter(server, "out")["failures"] > 0, "a failure of the exporter")
    server.kill()
    database.start()
    server.start()
    report(server, 40, [40.0])
    wait.until(lambda: rows() == expected(41), "the rows of the outage")
    assert PASSWORD not in json.dumps(shown(server, "out"))

"""Virtual sensors in the server: files that are followed, output as a device, and the same output through a SIGKILL."""

import csv
import io
import json
import queue
import threading
from datetime import UTC, datetime

import paho.mqtt.client as mqtt
import pytest
import websocket

from harness import wait
from harness.sensors import loaded, shown, write
from harness.server import run

TOPIC = "v1/devices/me/telemetry"
START = 1_700_000_000_000
WAIT_S = 60

MEAN = "select avg(celsius) as mean, count(*) as readings from a"


def sensor(name, window, address="device = 'road'", query=MEAN, wrapper="tacho", more=""):
    """A descriptor with one source."""
    return f"""
name = "{name}"
{more}
[processing-class]
[[processing-class.output-structure.field]]
name = "mean"
type = "double"
[[processing-class.output-structure.field]]
name = "readings"
type = "bigint"
[[stream]]
name = "s"
query = "{query}"
[[stream.source]]
alias = "a"
{window}
[[stream.source.address]]
wrapper = "{wrapper}"
[stream.source.address.predicate]
{address}
"""


def listed(server):
    """The sensors by their files."""
    answer = json.loads(server.command("sensor", "list", "--json").stdout)
    return {one["file"]: one for one in answer["sensors"]}


def sql(server, statement):
    """Rows of a statement."""
    reply = server.api.session.post(f"{server.url}/api/sql", json={"query": statement}, timeout=WAIT_S)
    assert reply.status_code == 200, reply.text
    return [tuple(row) for row in reply.json()["rows"]]


def output(server, name):
    """The output of a sensor: times in milliseconds with mean and count."""
    # One request: a row may come between two.
    found = server.api.values(name, "mean", "readings", startTs=0, endTs=4_102_444_800_000, limit=1_000_000, agg="NONE", orderBy="ASC")
    means, readings = ({point["ts"]: point["value"] for point in found.get(key, [])} for key in ("mean", "readings"))
    assert means.keys() == readings.keys()
    return [(ts, means[ts], readings[ts]) for ts in sorted(means)]


class Publisher:
    """A device over paho. It knows what was acknowledged, and sends the rest again when it is connected again."""

    def __init__(self, token):
        self.token, self.sent, self.acked = token, [], 0

    def connect(self, server):
        """Connects, and sends again what has no ack."""
        self.acks = queue.Queue()
        connected = threading.Event()
        self.client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, reconnect_on_failure=False)
        self.client.max_inflight_messages_set(200)
        self.client.username_pw_set(self.token)
        self.client.on_connect = lambda *_: connected.set()
        self.client.on_publish = lambda *_: self.acks.put(True)
        self.client.connect("127.0.0.1", server.mqtt)
        self.client.loop_start()
        assert connected.wait(WAIT_S)
        for ts, celsius in self.sent[self.acked :]:
            self._publish(ts, celsius)

    def publish(self, ts, celsius):
        """Publishes a reading."""
        self.sent.append((ts, celsius))
        self._publish(ts, celsius)

    def _publish(self, ts, celsius):
        self.client.publish(TOPIC, json.dumps({"ts": ts, "values": {"celsius": celsius}}), 1)

    def drain(self):
        """Waits for all acks. They come in the order of the messages."""
        while self.acked < len(self.sent):
            self.acks.get(timeout=WAIT_S)
            self.acked += 1

    def lost(self):
        """The connection is gone: counts the acks that have come."""
        self.client.loop_stop()
        while not self.acks.empty():
            self.acks.get()
            self.acked += 1

    def close(self):
        self.client.disconnect()
        self.client.loop_stop()


def road(server):
    """The device of the tests."""
    server.command("device", "add", "road", "--token", "road")
    return Publisher("road")


def test_a_sensor_computes_while_a_device_reports(own_server):
    server = own_server()
    publisher = road(server)
    write(server, "street.toml", sensor("Street", "storage-size = 3"))
    info = loaded(server, "street")
    assert (info["table"], info["device"], info["file"]) == ("street", "street", "street.toml")
    assert "window: 3 elements, on each element" in info["explanation"]
    url = f"ws://127.0.0.1:{server.http}/api/ws/plugins/telemetry?token={server.api.token}"
    live = websocket.create_connection(url, timeout=WAIT_S)
    watch = {"entityType": "DEVICE", "entityId": server.api.device_id("street"), "scope": "LATEST_TELEMETRY", "cmdId": 1}
    live.send(json.dumps({"tsSubCmds": [watch], "historyCmds": [], "attrSubCmds": []}))
    live.recv()
    publisher.connect(server)
    for n, celsius in enumerate([3, 2, 1, -9]):
        publisher.publish(START + n * 1_000, celsius)
    publisher.drain()
    wait.until(lambda: len(output(server, "street")) == 4, "the output")
    expected = [(0, 3, 1), (1_000, 2.5, 2), (2_000, 2, 3), (3_000, -2, 3)]
    assert output(server, "street") == [(START + ts, mean, count) for ts, mean, count in expected]
    rows = sql(server, "SELECT mean, readings FROM street WHERE device = 'street' ORDER BY ts")
    assert rows == [(mean, count) for _, mean, count in expected]
    assert "mean" in json.loads(live.recv())["data"]
    live.close()
    # A message that is sent again is not an element, and what is left out is counted.
    publisher.publish(START + 3_000, -9)
    publisher.drain()
    wait.until(lambda: shown(server, "street")["counters"]["outOfOrder"] == 1, "the count")
    assert len(output(server, "street")) == 4
    metrics = server.api.metrics()
    assert 'tacho_virtual_sensor_elements_total{sensor="street"} 4' in metrics
    assert 'tacho_virtual_sensor_left_out_total{sensor="street",reason="out_of_order"} 1' in metrics
    publisher.close()
    server.stop()


def test_an_alarm_rule_reads_the_output_of_a_sensor_over_a_sensor(own_server):
    server = own_server()
    publisher = road(server)
    write(server, "street.toml", sensor("street", "storage-size = 2"))
    last = "select mean as mean, readings as readings from a"
    write(server, "last.toml", sensor("last", "storage-size = 1", "name = 'street'", last, "local"))
    loaded(server, "last")
    info = next(one for one in server.api.get("/api/deviceProfiles", pageSize=100, page=0)["data"] if one["name"] == "last")
    profile = server.api.get(f"/api/deviceProfile/{info['id']['id']}")
    below = {
        "key": {"type": "TIME_SERIES", "key": "mean"},
        "valueType": "NUMERIC",
        "predicate": {"type": "NUMERIC", "operation": "LESS", "value": {"defaultValue": 0.0}},
    }
    rule = {"condition": {"condition": [below], "spec": {"type": "SIMPLE"}}}
    profile["profileData"] = (profile.get("profileData") or {}) | {
        "alarms": [{"id": "ice", "alarmType": "Ice", "createRules": {"MAJOR": rule}}]
    }
    server.api.post("/api/deviceProfile", profile)
    publisher.connect(server)
    for n, celsius in enumerate([4, -2, -4]):
        publisher.publish(START + n, celsius)
    publisher.drain()
    alarms = wait.until(lambda: server.api.get("/api/v2/alarms", pageSize=10, page=0)["data"], "the alarm")
    assert [(alarm["type"], alarm["originatorName"]) for alarm in alarms] == [("Ice", "last")]
    assert output(server, "last") == output(server, "street")
    publisher.close()
    server.stop()


def test_files_are_followed_and_faults_have_their_places(own_server):
    server = own_server()
    publisher = road(server)
    publisher.connect(server)
    write(server, "street.toml", sensor("street", "storage-size = 2"))
    loaded(server, "street")
    publisher.publish(START, 10)
    publisher.publish(START + 1, 20)
    publisher.drain()
    wait.until(lambda: len(output(server, "street")) == 2, "the output")
    # A broken file: the sensor continues as it was.
    write(server, "street.toml", sensor("street", "storage-size = 2").replace("avg(celsius)", "middle(celsius)"))
    problem = wait.until(lambda: listed(server)["street.toml"]["problem"], "the problem")
    assert problem.startswith("line 13, column ") and "the function middle is not compiled" in problem
    assert any("street.toml" in line and "line 13, column " in line for line in server.lines), server.log()
    publisher.publish(START + 2, 30)
    publisher.drain()
    wait.until(lambda: output(server, "street")[2:] == [(START + 2, 25, 2)], "the output of the old file")
    # A new file continues with full windows.
    write(server, "street.toml", sensor("street", "storage-size = 3"))
    wait.until(lambda: not listed(server)["street.toml"]["problem"], "the new file")
    publisher.publish(START + 3, 70)
    publisher.drain()
    wait.until(lambda: output(server, "street")[3:] == [(START + 3, 40, 3)], "the output of the new file")
    # Files that cannot run together.
    write(server, "same.toml", sensor("STREET", "storage-size = 1"))
    write(server, "one.toml", sensor("one", "storage-size = 1", "name = 'two'", "select mean, readings from a", "local"))
    write(server, "two.toml", sensor("two", "storage-size = 1", "name = 'one'", "select mean, readings from a", "local"))
    (server.directory / "sensors" / "wrong.xml").write_text("<virtual-sensor name='wrong'>")

    def reasons():
        found = {file: one["reason"] or one["problem"] for file, one in listed(server).items()}
        return found if "cycle" in (found.get("two.toml") or "") and "wrong.xml" in found else None

    reasons = wait.until(reasons, "the faults")
    assert reasons["same.toml"] == 'same.toml: same.toml and street.toml have the same sensor "street"; give each its own name'
    assert "two (two.toml) reads one (one.toml) reads two (two.toml)" in reasons["two.toml"]
    assert reasons["wrong.xml"].startswith("wrong.xml: line 1, column ")
    assert reasons["street.toml"] is None
    text = server.command("sensor", "list").stdout
    assert "street.toml" in text and "in a cycle" in text
    # A file that is gone: the sensor stops, and its table stays.
    (server.directory / "sensors" / "street.toml").unlink()
    wait.until(lambda: "street.toml" not in listed(server), "the end of the sensor")
    assert len(output(server, "street")) == 4
    publisher.close()
    server.stop()


def test_a_directory_of_the_configuration_must_exist(own_server, tmp_path):
    with pytest.raises(AssertionError, match="sensors.directory: .*absent is not a directory"):
        own_server({"TACHO_SENSORS_DIRECTORY": str(tmp_path / "absent")})


KILLED = {
    "each": sensor("each", "storage-size = '20s'"),
    "counted": sensor("counted", "storage-size = 50\nslide = 7"),
    "timed": sensor("timed", "storage-size = '10s'\nslide = '4s'", more='lateness = "60s"'),
}


def offline(tmp_path, name, readings):
    """The output of a sensor over the readings, computed without a server."""
    (tmp_path / f"{name}.toml").write_text(KILLED[name])
    with open(tmp_path / "road.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["timed", "celsius"])
        writer.writerows(readings)
    done = run("sensor", "run", tmp_path / f"{name}.toml", "--csv", tmp_path / "road.csv")
    rows = csv.DictReader(io.StringIO(done.stdout))
    return [(milliseconds(row["timed"]), float(row["mean"]), int(row["readings"])) for row in rows]


def milliseconds(text):
    """The time of a line in milliseconds since 1970."""
    seconds = datetime.fromisoformat(text).astimezone(UTC) - datetime.fromtimestamp(0, UTC)
    return round(seconds.total_seconds() * 1_000)


def test_the_output_is_the_same_through_a_sigkill_under_load(own_server, tmp_path):
    server = own_server()
    publisher = road(server)
    for name, text in KILLED.items():
        write(server, f"{name}.toml", text)
    for name in KILLED:
        loaded(server, name)
    publisher.connect(server)
    number = 0
    for killed in (True, True, False):
        for _ in range(3_000):
            publisher.publish(START + number * 100, (number * 37) % 101 - 50)
            number += 1
            # The load is on when the server dies.
            if killed and number % 3_000 == 2_500:
                wait.until(lambda: shown(server, "each")["counters"]["elements"] > 0, "an evaluated element")
                server.kill()
        if killed:
            publisher.lost()
            server.start()
            publisher.connect(server)
        publisher.drain()
    last = START + (number - 1) * 100
    # Elements that wait for late ones continue.
    publisher.publish(last + 120_000, 0)
    publisher.drain()
    readings = server.api.history("road", "celsius")
    assert readings == [(ts, celsius) for ts, celsius in publisher.sent]

    wait.until(lambda: any(ts == last + 120_000 for ts, *_ in output(server, "each")), "the last element")
    for name in KILLED:
        expected = [row for row in offline(tmp_path, name, readings) if row[0] <= last]
        assert len(expected) > 200, name
        wait.until(lambda: expected[-1] in output(server, name), f"the output of {name}")  # noqa: B023
        assert [row for row in output(server, name) if row[0] <= last] == expected, name
    publisher.close()
    server.stop()

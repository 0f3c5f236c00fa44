"""Writes the data directory that a test opens: `python3 write.py TACHO DIRECTORY`. README.md says when and how."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

# Milliseconds since 1970 of the first value: 2026-01-01T00:00:00Z.
START = 1_767_225_600_000
SENSOR = """name = "street"
[processing-class]
class-name = "Bridge"
[[processing-class.output-structure.field]]
name = "celsius"
type = "double"
[[stream]]
name = "input"
query = "select avg(celsius) as celsius from road"
[[stream.source]]
alias = "road"
storage-size = 2
[[stream.source.address]]
wrapper = "tacho"
[stream.source.address.predicate]
device = "road"
"""
ABOVE_90 = {
    "condition": {
        "condition": [
            {
                "key": {"type": "TIME_SERIES", "key": "speed"},
                "valueType": "NUMERIC",
                "predicate": {"type": "NUMERIC", "operation": "GREATER", "value": {"defaultValue": 90}},
            }
        ],
        "spec": {"type": "SIMPLE"},
    }
}
ALARM = {"id": "fast", "alarmType": "Too fast", "createRules": {"CRITICAL": ABOVE_90}, "propagate": False}


class Server:
    """A server on free ports of the loopback."""

    def __init__(self, tacho, data):
        command = [tacho, "serve", "--data", data, "--mqtt", "127.0.0.1:0", "--http", "127.0.0.1:0", "--json"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        ready = json.loads(self.process.stdout.readline())
        self.url, self.mqtt = ready["url"], ready["mqtt"]
        login = {"username": ready["login"], "password": Path(ready["passwordFile"]).read_text().strip()}
        self.token = None
        self.token = self.send("/api/auth/login", login)["token"]

    def send(self, path, body=None):
        """A GET, or a POST of JSON."""
        headers = {"Content-Type": "application/json"}
        if self.token:
            headers["X-Authorization"] = f"Bearer {self.token}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, headers=headers)
        with urllib.request.urlopen(request) as answer:
            return json.loads(answer.read() or "null")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        if self.process.wait() != 0:
            raise SystemExit("the server did not end cleanly")


def retain(address, token, topic, payload):
    """Publishes a retained message over MQTT 3.1.1, and waits for its PUBACK."""

    def text(value):
        return len(value).to_bytes(2, "big") + value

    def packet(kind, body):
        return bytes([kind, len(body)]) + body

    host, port = address.rsplit(":", 1)
    with socket.create_connection((host, int(port))) as stream:
        head = text(b"MQTT") + bytes([4, 0x82]) + (60).to_bytes(2, "big")
        stream.sendall(packet(0x10, head + text(b"fixture") + text(token)))
        stream.sendall(packet(0x33, text(topic) + (1).to_bytes(2, "big") + payload))
        answers = b""
        while len(answers) < 8:
            answers += stream.recv(64) or sys.exit("the server has closed the connection")


def wait_for(wanted, what):
    """Waits at most a minute for a part of the content."""
    for _ in range(600):
        if what():
            return
        time.sleep(0.1)
    raise SystemExit(f"the server has not done in time: {wanted}")


def reports(rounds):
    """One value of each type for each second."""
    return [
        {
            "ts": START + second * 1_000,
            "values": {
                "speed": 50.25 + 10 * second,
                "rpm": 1_500 + second,
                "on": second % 2 == 0,
                "note": f"round {second}",
                "place": {"lat": 50.9, "lon": 6.9},
                "ratio": second / 3,
            },
        }
        for second in rounds
    ]


def fill(server, flush):
    truck = server.send("/api/device?accessToken=truck-token", {"name": "truck"})["id"]["id"]
    server.send("/api/device?accessToken=road-token", {"name": "road"})
    yard = server.send("/api/asset", {"name": "yard", "type": "place"})["id"]["id"]
    places = [{"id": yard, "entityType": "ASSET"}, {"id": truck, "entityType": "DEVICE"}]
    server.send("/api/relation", {"from": places[0], "to": places[1], "type": "Contains"})
    server.send("/api/customer", {"title": "customer"})
    profile = server.send("/api/deviceProfileInfo/default")["id"]["id"]
    profile = server.send(f"/api/deviceProfile/{profile}")
    profile["profileData"]["alarms"] = [ALARM]
    server.send("/api/deviceProfile", profile)
    server.send(f"/api/plugins/telemetry/DEVICE/{truck}/SERVER_SCOPE", {"plate": "K-TA 1", "axles": 3})
    retain(server.mqtt, b"truck-token", b"devices/truck/hello", b"retained")
    wait_for("the sensor", lambda: server.send("/api/tacho/sensors")["sensors"])
    for second, celsius in enumerate((3, 2, -1)):
        sample = {"ts": START + second * 1_000, "values": {"celsius": celsius}}
        server.send("/api/v1/road-token/telemetry", sample)
    server.send("/api/v1/truck-token/telemetry", reports(range(0, 3)))
    alarms = f"/api/alarm/DEVICE/{truck}?pageSize=10&page=0"
    server.send("/api/v1/truck-token/telemetry", reports(range(3, 5)))
    wait_for("the alarm", lambda: server.send(alarms)["data"])
    # Parts have the rows up to here, and the log has the others.
    flush()
    server.send("/api/v1/truck-token/telemetry", reports(range(5, 7)))
    street = "SELECT count(*) AS n FROM street"
    wait_for("rows of the sensor", lambda: "3" in json.dumps(server.send("/api/sql", {"query": street})))


def main():
    tacho, data = sys.argv[1], sys.argv[2]
    os.makedirs(f"{data}/sensors")
    Path(data, "sensors/street.toml").write_text(SENSOR)
    server = Server(tacho, data)
    try:
        fill(server, lambda: subprocess.run([tacho, "flush", "--data", data], check=True))
    finally:
        server.stop()
    os.remove(f"{data}/store/LOCK")
    Path(data, "store/log/spare").unlink(missing_ok=True)
    # Segments and journals are filled with zeros in advance. The last record may end with zeros, so some stay.
    for path in [*Path(data, "store/log").glob("*.log"), *Path(data, "keys").glob("*.jnl")]:
        os.truncate(path, len(path.read_bytes().rstrip(b"\0")) + 256)


if __name__ == "__main__":
    main()

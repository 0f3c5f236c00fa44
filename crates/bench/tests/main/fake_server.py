#!/usr/bin/env python3
"""A small stand-in for `tacho serve`, as far as the load runner sees it: MQTT 3.1.1 publish at QoS 1, login,
provisioning, device list, time series with COUNT and paging; gateways that connect devices and send their telemetry. Points go
to a file before they are acknowledged.

FAKE_LIE makes it break its promises, so that the tests can prove that the runner notices:
  lose       every 20th point is acknowledged and never stored
  invent     after a restart there is one point nobody sent
  duplicate  every 20th point is served twice
  change     every 20th point is stored with another value
  drain      exits with status 7 on SIGTERM
  die        ends by itself after the first messages
"""

import json
import os
import signal
import socketserver
import struct
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlparse

DATA = sys.argv[3]
LIE = os.environ.get("FAKE_LIE", "")
LOCK = threading.Lock()
DEVICES = {}  # token -> name
GATEWAYS = set()  # names
POINTS = {}  # name -> {ts: values}
LOG = None
COUNT = 0


def address(variable):
    host, port = os.environ[variable].rsplit(":", 1)
    return host, int(port)


def load():
    global LOG
    try:
        with open(os.path.join(DATA, "devices")) as file:
            DEVICES.update(json.load(file))
        with open(os.path.join(DATA, "log")) as file:
            for line in file:
                if line.endswith("\n"):
                    name, ts, values = json.loads(line)
                    POINTS.setdefault(name, {})[ts] = values
    except FileNotFoundError:
        pass
    with open(os.path.join(DATA, "admin-password"), "w") as file:
        file.write("secret\n")
    if LIE == "invent" and POINTS:
        name = sorted(POINTS)[0]
        POINTS[name][max(POINTS[name]) + 3_600_000] = {"n": 1}
    repair()
    LOG = open(os.path.join(DATA, "log"), "a")


def repair():
    """Cuts a torn last line, which the next record would otherwise be glued to."""
    path = os.path.join(DATA, "log")
    if os.path.exists(path):
        with open(path, "rb+") as file:
            content = file.read()
            file.truncate(content.rfind(b"\n") + 1)


def store(name, points):
    global COUNT
    with LOCK:
        for ts, values in points:
            COUNT += 1
            if LIE == "lose" and COUNT % 20 == 0:
                continue
            if LIE == "change" and COUNT % 20 == 0:
                values = {key: 0 for key in values}
            LOG.write(json.dumps([name, ts, values]) + "\n")
            POINTS.setdefault(name, {})[ts] = values
        LOG.flush()


class Mqtt(socketserver.BaseRequestHandler):
    def handle(self):
        data, name = b"", None
        while True:
            try:
                more = self.request.recv(65536)
            except OSError:
                return
            if not more:
                return
            data += more
            out, points = b"", {}
            while True:
                packet, data = split(data)
                if packet is None:
                    break
                kind, body = packet
                if kind == 1:
                    length = struct.unpack(">H", body[10:12])[0]
                    token = body[14 + length :].decode()
                    name = DEVICES.get(token)
                    out += b"\x20\x02\0\0" if name else b"\x20\x02\0\x05"
                elif kind == 3:
                    length = struct.unpack(">H", body[:2])[0]
                    topic, message = body[2 : 2 + length].decode(), json.loads(body[4 + length :])
                    for device, rows in parts(name, topic, message).items():
                        points.setdefault(device, []).extend((row["ts"], row["values"]) for row in rows)
                    out += b"\x40\x02" + body[2 + length : 4 + length]
                elif kind == 12:
                    out += b"\xd0\0"
            for device, rows in points.items():
                store(device, rows)
            if LIE == "die" and points:
                os._exit(3)
            try:
                self.request.sendall(out)
            except OSError:
                return


def parts(name, topic, message):
    """The rows of each device in a message. A gateway creates the devices that it names."""
    if topic == "v1/devices/me/telemetry":
        return {name: [message]}
    if name not in GATEWAYS:
        return {}
    rows = {message["device"]: []} if topic == "v1/gateway/connect" else message
    with LOCK:
        DEVICES.update({f"behind {device}": device for device in rows})
    return rows


def split(data):
    length, shift = 0, 0
    for index in range(1, len(data)):
        length |= (data[index] & 127) << shift
        shift += 7
        if data[index] < 128:
            end = index + 1 + length
            if len(data) < end:
                break
            return (data[0] >> 4, data[index + 1 : end]), data[end:]
    return None, data


class Http(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, value, status=200):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/api/auth/login":
            good = body == {"username": "admin@tachograph.local", "password": "secret"}
            return self.answer({"token": "t"}) if good else self.answer({"message": "wrong password"}, 401)
        if self.headers["X-Authorization"] != "Bearer t":
            return self.answer({"message": "log in"}, 401)
        url = urlparse(self.path)
        if url.path == "/api/device":
            DEVICES[parse_qs(url.query)["accessToken"][0]] = body["name"]
            GATEWAYS.update({body["name"]} if body["additionalInfo"]["gateway"] else ())
            return self.answer({"name": body["name"]})
        created = 0
        for n in range(body["count"]):
            token = f"{body['tokenPrefix']}{n}"
            created += token not in DEVICES
            DEVICES[token] = f"{body['prefix']}{n}"
        with open(os.path.join(DATA, "devices"), "w") as file:
            json.dump(DEVICES, file)
        self.answer({"created": created, "existing": body["count"] - created})

    def do_GET(self):
        url = urlparse(self.path)
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        if url.path == "/api/status":
            return self.answer({"durability": "os"})
        if "deviceName" in query:
            return self.answer({}) if query["deviceName"] in DEVICES.values() else self.answer({"message": "no such device"}, 404)
        if url.path == "/api/tenant/devices":
            names = sorted(name for name in DEVICES.values() if name.startswith(query["textSearch"]))
            size, page = int(query["pageSize"]), int(query["page"])
            part = names[size * page : size * (page + 1)]
            entries = [{"id": {"entityType": "DEVICE", "id": f"id-{name}"}, "name": name} for name in part]
            return self.answer({"data": entries, "hasNext": size * (page + 1) < len(names)})
        name, key = url.path.split("/")[5].removeprefix("id-"), query["keys"]
        with LOCK:
            rows = sorted((ts, values[key]) for ts, values in POINTS.get(name, {}).items() if key in values)
        if "startTs" not in query:
            rows = rows[-1:]
        else:
            rows = [row for row in rows if int(query["startTs"]) <= row[0] < int(query["endTs"])]
        if LIE == "duplicate":
            rows += rows[:1]
        if query.get("agg") == "COUNT":
            rows = [(int(query["startTs"]), len(rows))] if rows else []
        rows = rows[: int(query.get("limit", "100"))]
        self.answer({key: [{"ts": ts, "value": value} for ts, value in rows]})


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 128


load()
signal.signal(signal.SIGTERM, lambda *_: os._exit(7 if LIE == "drain" else 0))
http = ThreadingHTTPServer(address("TACHO_HTTP_LISTEN"), Http)
mqtt = Server(address("TACHO_MQTT_LISTEN"), Mqtt)
threading.Thread(target=http.serve_forever, daemon=True).start()
print("ready", flush=True)
mqtt.serve_forever()

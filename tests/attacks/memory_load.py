"""A load of all doors at once, for a server with little memory: what clients send and ask for together is far more than it has."""

import contextlib
import json
import random
import re
import socket
import threading
import time
from pathlib import Path

import psycopg
import requests
import websocket
from harness import packets
from harness.packets import PUBACK, Wire

MIB = 1024 * 1024
BEGIN_MS = 1_700_000_000_000
ROW_BYTES, UNACKED = 20_000, 16
# What a server without room answers; clients try again.
BUSY = (408, 413, 422, 429, 503)
BUSY_STATES = {"53200", "53300", "53400", "54000", "57014"}
STATEMENTS = [
    "SELECT device, count(*), sum(length(text)) FROM telemetry GROUP BY device",
    "SELECT ts, device, text FROM telemetry ORDER BY text DESC LIMIT 200",
    "SELECT text, count(*) FROM telemetry GROUP BY text ORDER BY 2 DESC LIMIT 20",
    "SELECT a.ts, a.text, b.text FROM telemetry a JOIN telemetry b ON a.n = b.n WHERE a.n < 300",
    "SELECT device, max(text), min(text) FROM telemetry GROUP BY device",
    "SELECT ts, text FROM telemetry WHERE n < 400",
]


def status_bytes(server, name: str) -> int:
    """A value of `/proc/<pid>/status`, such as `RssAnon`."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(re.search(rf"{name}:\s+(\d+) kB", status)[1]) * 1024


def long_text(numbers: random.Random) -> str:
    """A text that hardly compresses."""
    return numbers.randbytes(ROW_BYTES // 2).hex()


class Load:
    """Clients of all doors, from `with` to its end. `done` counts what each kind has achieved, `busy` its refusals."""

    def __init__(self, server, writers: int = 4, readers: int = 4, sql_clients: int = 2, sockets: int = 2, unread: int = 6):
        self.server = server
        self.counts = {"mqtt": writers, "http": 2, "large_lines": 2, "small_lines": 1, "reads": readers, "postgres": sql_clients, "sql": sql_clients}
        self.sockets, self.unread = sockets, unread
        self.devices = [server.device() for _ in range(writers + 2)]
        self.acknowledged = {}
        self.done, self.busy, self.faults = dict.fromkeys(self.counts, 0), dict.fromkeys(self.counts, 0), []
        self.token, self.password = server.api.token, server.password
        self.ids = [server.api.device_id(device.name) for device in self.devices]
        self.stop, self.lock = threading.Event(), threading.Lock()
        self.peaks = {"RssAnon": 0, "VmData": 0, "VmSize": 0}
        self.threads = []

    def __enter__(self) -> "Load":
        for kind, count in self.counts.items():
            for number in range(count):
                self.threads.append(threading.Thread(target=self._client, args=(kind, number)))
        for one in (self._watch, *[self._subscribe] * self.sockets, *[self._read_slowly] * self.unread):
            self.threads.append(threading.Thread(target=one))
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        for thread in self.threads:
            thread.join()

    def run(self, seconds: float):
        """Lets the load run, as long as the server lives and no client has a fault."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.server.alive() and not self.faults:
            time.sleep(0.2)

    def _client(self, kind: str, number: int):
        act = getattr(self, f"_{kind}")
        # Before the first row a statement names columns that do not exist.
        while kind in ("postgres", "sql") and not self.acknowledged and not self.stop.is_set():
            time.sleep(0.02)
        while not self.stop.is_set():
            try:
                act(number)
            except Exception as fault:
                # A client that the server has closed comes again; everything else is a fault.
                if not self._is_refusal(fault):
                    self.faults.append((kind, repr(fault)))
                    return
                self._refused(kind)
                time.sleep(0.05)

    @staticmethod
    def _is_refusal(fault) -> bool:
        if isinstance(fault, psycopg.Error):
            return fault.sqlstate in BUSY_STATES
        return isinstance(fault, requests.exceptions.ChunkedEncodingError)

    def _did(self, kind: str, count: int = 1):
        with self.lock:
            self.done[kind] += count

    def _refused(self, kind: str):
        with self.lock:
            self.busy[kind] += 1

    def _watch(self):
        while not self.stop.wait(0.02):
            for name in self.peaks:
                with contextlib.suppress(OSError, TypeError):
                    self.peaks[name] = max(self.peaks[name], status_bytes(self.server, name))

    def _answered(self, kind: str, reply, accepted=(200, 204)):
        if reply.status_code in accepted:
            self._did(kind)
            return
        assert reply.status_code in BUSY, (reply.status_code, reply.text[:300])
        self._refused(kind)
        time.sleep(0.1)

    def _mqtt(self, number: int):
        numbers, device = random.Random(number), self.devices[number]
        with Wire(self.server.mqtt, timeout_s=60).session(device.token) as wire:
            sent = acknowledged = 0
            while not self.stop.is_set() or acknowledged < sent:
                while sent - acknowledged < UNACKED and not self.stop.is_set():
                    payload = json.dumps({"ts": BEGIN_MS + sent, "values": {"n": sent, "text": long_text(numbers)}})
                    wire.send(packets.publish(payload.encode(), sent % 65_535 + 1))
                    sent += 1
                kind, body = wire.receive()
                assert kind == PUBACK and int.from_bytes(body[:2], "big") == acknowledged % 65_535 + 1
                acknowledged += 1
                self.acknowledged[device.name] = acknowledged
                self._did("mqtt")

    def _http(self, number: int):
        device, numbers, sent = self.devices[-1 - number], random.Random(number), 0
        session = requests.Session()
        while not self.stop.is_set():
            rows = [{"ts": BEGIN_MS + sent + n, "values": {"n": sent + n, "text": long_text(numbers)}} for n in range(20)]
            reply = session.post(f"{self.server.url}/api/v1/{device.token}/telemetry", json=rows, timeout=60)
            self._answered("http", reply)
            if reply.ok:
                sent += len(rows)
                self.acknowledged[device.name] = sent

    def _lines(self, kind: str, number: int, lines: int):
        body = "\n".join(f'lines,source={kind}{number} f={n},t="text {n}" {BEGIN_MS + n}' for n in range(lines)).encode()
        login, session = {"Authorization": f"Token {self.token}"}, requests.Session()
        while not self.stop.is_set():
            self._answered(kind, session.post(f"{self.server.url}/write?db=tacho&precision=ms", data=body, headers=login, timeout=60))

    def _large_lines(self, number: int):
        # Every other one has nearly the largest size, 25 MB.
        self._lines("large_lines", number, 40_000 if number % 2 else 370_000)

    def _small_lines(self, number: int):
        self._lines("small_lines", number, 100)

    def _reads(self, number: int):
        session = requests.Session()
        session.headers["X-Authorization"] = f"Bearer {self.token}"
        while not self.stop.is_set():
            for one in self.ids:
                path = f"/api/plugins/telemetry/DEVICE/{one}/values/timeseries"
                reply = session.get(f"{self.server.url}{path}?keys=text,n&startTs=0&endTs=2000000000000&limit=300", timeout=60)
                self._answered("reads", reply, accepted=(200, 400))

    def _postgres(self, number: int):
        login = {"host": "127.0.0.1", "port": self.server.listeners["postgres"], "user": "admin@tachograph.local", "password": self.password}
        with psycopg.connect(**login, dbname="tacho", autocommit=True) as client:
            for sql in STATEMENTS[number:] + STATEMENTS[:number]:
                if self.stop.is_set():
                    return
                try:
                    client.execute(sql).fetchall()
                    self._did("postgres")
                except psycopg.Error as refused:
                    if not self._is_refusal(refused):
                        raise
                    self._refused("postgres")

    def _sql(self, number: int):
        session = requests.Session()
        session.headers["X-Authorization"] = f"Bearer {self.token}"
        for sql in STATEMENTS[number:] + STATEMENTS[:number]:
            if self.stop.is_set():
                return
            self._answered("sql", session.post(f"{self.server.url}/api/sql?format=csv", data=sql, timeout=60), accepted=(200, 404))

    def _subscribe(self):
        """Subscribes to all keys, and reads slowly. The server may close the connection."""
        url = f"ws://127.0.0.1:{self.server.http}/api/ws/plugins/telemetry?token={self.token}"
        while not self.stop.is_set():
            with contextlib.suppress(websocket.WebSocketException, OSError):
                connection = websocket.create_connection(url, timeout=10)
                with contextlib.closing(connection):
                    connection.send(json.dumps({"tsSubCmds": [{"entityType": "DEVICE", "entityId": one, "cmdId": n} for n, one in enumerate(self.ids)]}))
                    while not self.stop.wait(0.05):
                        connection.recv()
            self.stop.wait(0.2)

    def _read_slowly(self):
        """Requests a long history and leaves it unread for a while."""
        path = f"/api/plugins/telemetry/DEVICE/{self.ids[0]}/values/timeseries?keys=text&startTs=0&endTs=2000000000000&limit=1000"
        request = f"GET {path} HTTP/1.1\r\nhost: t\r\nx-authorization: Bearer {self.token}\r\n\r\n".encode()
        while not self.stop.is_set():
            with contextlib.suppress(OSError), socket.socket() as one:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                one.settimeout(10)
                one.connect(("127.0.0.1", self.server.http))
                one.sendall(request)
                self.stop.wait(3)
            self.stop.wait(0.2)

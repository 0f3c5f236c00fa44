"""A server under test: its interfaces, its descriptors, and what it uses."""

import datetime
import json
import os
import pathlib
import re
import subprocess
import threading
import time
import urllib.error
import urllib.request

import parity

ADMIN = "admin@tachograph.local"
WAIT_S = 600
# Without a change of the number of sensors.
STAYS_S = 10
SAMPLE_S = 0.5
ENGINE_THREAD = "virtual-sensors"


class Session:
    """A login at a server (`servers.Tacho`), with commands of the program on its directory."""

    def __init__(self, server):
        self.server = server
        self.token = self._json("POST", "/api/auth/login", {"username": ADMIN, "password": server.password})["token"]

    def _open(self, method, path, body=None):
        headers = {"Content-Type": "application/json"}
        if hasattr(self, "token"):
            headers["X-Authorization"] = f"Bearer {self.token}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.server.http}{path}", data, headers, method=method)
        try:
            return urllib.request.urlopen(request, timeout=WAIT_S)
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{method} {path}: {error.code} {error.read()[:500]}") from None

    def _json(self, method, path, body=None):
        with self._open(method, path, body) as answer:
            return json.load(answer)

    def get(self, path):
        return self._json("GET", path)

    def post(self, path, body):
        self._open("POST", path, body).close()

    def sql(self, statement):
        """The rows of an answer."""
        return self._json("POST", "/api/sql", {"query": statement})["rows"]

    def sensors(self):
        """All sensors, as the server shows them."""
        return self.get("/api/tacho/sensors")["sensors"]

    def counters(self, sensor):
        return self.get(f"/api/tacho/sensors/{sensor}")["counters"]

    def metric(self, name):
        """The sum of a metric over its labels."""
        with self._open("GET", "/metrics") as answer:
            values = re.findall(rf"^{name}(?:\{{[^}}]*\}})? (\S+)$", answer.read().decode(), re.MULTILINE)
        return sum(float(value) for value in values)

    def add_devices(self, count, prefix):
        """Devices PREFIX0, PREFIX1 and so on, with access tokens of the same text."""
        self.command("device", "add", "--count", str(count), "--prefix", prefix, "--token-prefix", prefix)

    def command(self, *words):
        line = [self.server.program, *words, "--data", self.server.home]
        done = subprocess.run(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{' '.join(words)}: {done.stdout}")

    def load_sensors(self, descriptors):
        """Adds descriptors by their names, and waits until they run. Returns the seconds. All files come at once."""
        place = self.server.home / "sensors.new"
        place.mkdir()
        for name, text in descriptors.items():
            (place / name).write_text(text)
        began = time.monotonic()
        place.rename(self.server.home / "sensors")
        self.wait_for_sensors(len(descriptors))
        return time.monotonic() - began

    def wait_for_sensors(self, count):
        """Waits until this number of sensors runs. A sensor runs when its windows are full."""
        deadline, seen, since = time.monotonic() + WAIT_S, None, 0
        while True:
            shown = self.sensors()
            failed = [one["reason"] for one in shown if one["state"] != "running"]
            if failed:
                raise RuntimeError(f"{len(failed)} of {count} sensors do not run: {failed[0]}")
            if len(shown) == count:
                return
            if len(shown) != seen:
                seen, since = len(shown), time.monotonic()
            # The server shows all files that it reads at once.
            stays = shown and time.monotonic() - since > STAYS_S
            if stays or time.monotonic() > deadline:
                raise RuntimeError(f"the server shows {len(shown)} of {count} sensors; it reads SENSOR_FILES_MAX files")
            time.sleep(pause(count))

    def wait_until(self, count, what="elements", seconds=WAIT_S):
        """Until the sensors together have counted that much, or the time is over. Returns the count."""
        deadline = time.monotonic() + seconds
        while True:
            shown = self.sensors()
            found = sum(one[what] for one in shown)
            if found >= count or time.monotonic() > deadline:
                return found
            time.sleep(pause(len(shown)))


def pause(sensors):
    """Between two requests for all sensors, whose state the server writes as text each time."""
    return max(0.1, sensors / 20_000)


class Usage:
    """Samples a process between begin and end: processor time of all threads and of the sensors' thread, and memory."""

    def __init__(self, pid, more=None):
        self.pid, self.rss_bytes_max, self.samples = pid, 0, []
        self.more = more or (lambda: None)
        self._over = threading.Event()

    def __enter__(self):
        self._began = time.monotonic(), parity.cpu_s(self.pid), engine_cpu_s(self.pid)
        self._thread = threading.Thread(target=self._sample)
        self._thread.start()
        return self

    def _sample(self):
        while not self._over.wait(SAMPLE_S):
            self.rss_bytes_max = max(self.rss_bytes_max, rss_bytes(self.pid))
            self.samples.append(self.more())

    def __exit__(self, *_):
        began, cpu_s, of_engine_s = self._began
        self.seconds = time.monotonic() - began
        self._over.set()
        self._thread.join()
        self.cores = (parity.cpu_s(self.pid) - cpu_s) / self.seconds
        self.engine_cores = (engine_cpu_s(self.pid) - of_engine_s) / self.seconds


def engine_cpu_s(pid):
    """Of the thread that evaluates virtual sensors."""
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        if (task / "comm").read_text().strip() == ENGINE_THREAD:
            fields = (task / "stat").read_text().rsplit(")", 1)[1].split()
            return (int(fields[11]) + int(fields[12])) / parity.TICKS
    return 0.0


def rss_bytes(pid):
    return int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def iso(millis):
    """A time of SQL."""
    at = datetime.datetime.fromtimestamp(millis // 1_000, datetime.UTC)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{millis % 1_000:03}Z"


def millis(text):
    """Of a time in an answer of SQL."""
    return round(datetime.datetime.fromisoformat(text).timestamp() * 1_000)

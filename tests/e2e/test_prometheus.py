"""Prometheus remote write: the real server of Debian, and requests that it does not send."""

import math
import struct
import subprocess

import pytest
import requests
from harness import wait

T0_MS = 1_768_464_000_000


@pytest.fixture
def prometheus(server, tmp_path):
    """A Prometheus that scrapes the server under test and writes the samples to it."""
    host = server.url.removeprefix("http://")
    config = tmp_path / "prometheus.yml"
    config.write_text(f"""
global: {{scrape_interval: 1s}}
scrape_configs:
  - job_name: tacho
    static_configs: [{{targets: ["{host}"]}}]
remote_write:
  - url: {server.url}/api/v1/write
    authorization: {{type: Bearer, credentials: "{server.api.token}"}}
    queue_config: {{batch_send_deadline: 1s}}
""")
    arguments = [f"--config.file={config}", f"--storage.tsdb.path={tmp_path}/data", "--web.listen-address=127.0.0.1:0"]
    with open(tmp_path / "log", "wb") as log:
        process = subprocess.Popen(["prometheus", *arguments], stdout=log, stderr=log)
    yield process
    process.terminate()
    process.wait(timeout=60)


def rows(server, query):
    reply = server.api.session.post(server.url + "/api/sql", json={"query": query, "format": "json"}, timeout=120)
    return reply.json()["rows"] if reply.ok else []


def test_a_prometheus_writes_what_it_scrapes(server, prometheus):
    up = "SELECT ts FROM up WHERE job = 'tacho' AND value = 1"
    wait.until(lambda: len(rows(server, up)) >= 3, "three scrapes")
    [[scraped]] = rows(server, "SELECT max(value) FROM scrape_samples_scraped")
    assert scraped > 100, "the server's own metrics"


def varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes(out) + bytes([number])


def field(number, content):
    return varint(number << 3 | 2) + varint(len(content)) + content


def series(labels, value, millis=T0_MS):
    """A time series of a WriteRequest with one sample."""
    pairs = b"".join(field(1, field(1, name.encode()) + field(2, text.encode())) for name, text in labels.items())
    return field(1, pairs + field(2, b"\x09" + struct.pack("<d", value) + b"\x10" + varint(millis)))


def snappy(content):
    """A block of one literal."""
    return varint(len(content)) + bytes([61 << 2]) + struct.pack("<H", len(content) - 1) + content


def snappy_long(content):
    """A block of several literals."""
    pieces = [content[at : at + 60_000] for at in range(0, len(content), 60_000)]
    return varint(len(content)) + b"".join(bytes([61 << 2]) + struct.pack("<H", len(piece) - 1) + piece for piece in pieces)


@pytest.fixture
def write(server):
    def post(content, **headers):
        login = {"Authorization": f"Bearer {server.api.token}", "Content-Encoding": "snappy"} | headers
        return requests.post(server.url + "/api/v1/write", data=content, headers=login, timeout=60)

    return post


def test_samples_without_a_number_are_left_out_and_bad_series_are_named(server, write):
    good = series({"__name__": "prom_good", "host": "a"}, 1.5)
    stale = series({"__name__": "prom_good", "host": "a"}, math.nan, T0_MS + 1_000)
    assert write(snappy(good + stale)).status_code == 204
    assert rows(server, "SELECT host, value FROM prom_good") == [["a", 1.5]]

    infinite = series({"__name__": "prom_good", "host": "b"}, math.inf)
    nameless = series({"host": "c"}, 1)
    reply = write(snappy(infinite + nameless + series({"__name__": "prom_good", "host": "d"}, 2.5)))
    assert reply.status_code == 204, reply.text
    told = reply.headers["x-tacho-refusals"]
    assert "infinite" in told and "__name__" in told
    assert (reply.headers["x-prometheus-remote-write-samples-written"], reply.headers["x-tacho-samples-refused"]) == ("1", "2")
    assert rows(server, "SELECT value FROM prom_good WHERE host = 'd'") == [[2.5]]
    dead_letters = rows(server, "SELECT reason FROM dead_letter WHERE topic = '/api/v1/write'")
    assert len(dead_letters) == 2
    nothing = write(snappy(infinite + nameless))
    assert nothing.status_code == 400 and "infinite" in nothing.text and "__name__" in nothing.text, nothing.text


def test_values_of_labels_may_have_several_lines(server, write):
    text = "first\n\tsecond\r\nthird"
    assert write(snappy(series({"__name__": "prom_lines", "error": text}, 1))).status_code == 204
    assert rows(server, "SELECT error, value FROM prom_lines") == [[text, 1.0]]
    bell = write(snappy(series({"__name__": "prom_lines", "error": "a\x07"}, 1)))
    assert bell.status_code == 400 and "U+0007" in bell.text, bell.text


def test_a_refused_sample_leaves_nothing(server, write):
    """A thousand samples that are too old make neither series nor a table."""
    old = b"".join(series({"__name__": "prom_old", "n": str(n)}, 1, millis=1) for n in range(1_000))
    assert write(snappy_long(old)).status_code == 400
    listed = server.api.session.post(server.url + "/api/sql", json={"query": "SELECT * FROM prom_old", "format": "json"}, timeout=120)
    assert listed.status_code == 400 and "does not exist" in listed.text, listed.text


def test_what_is_not_remote_write_1_is_refused(server, write):
    assert write(b"no snappy").status_code == 400
    assert write(snappy(b"\xff\xff\xff")).status_code == 400
    assert write(b"\xff\xff\xff\xff\x0f\x00").status_code in (400, 413), "four gigabytes by its own account"
    assert write(snappy(series({"__name__": "m"}, 1)), **{"Content-Encoding": "zstd"}).status_code == 415
    version_2 = {"Content-Type": "application/x-protobuf;proto=io.prometheus.write.v2.Request"}
    assert write(b"", **version_2).status_code == 415
    assert requests.post(server.url + "/api/v1/write", data=b"", timeout=60).status_code == 401

"""The requests of Telegraf 1.38, byte for byte as its outputs `influxdb` and `influxdb_v2` send them with their default settings."""

import base64
import gzip
import json
import socket
from urllib.parse import urlparse

import pytest
import requests

USER_AGENT = "Telegraf/1.38.1 Go/1.26.0"
T0 = 1_768_464_000_000_000_000
METRICS = (
    f"cpu,cpu=cpu-total,host=web-1 usage_idle=98.2,usage_system=0.5,usage_user=1.25 {T0}\n"
    f"mem,host=web-1 active=2147483648i,available_percent=71.5 {T0}\n"
    f"disk,device=sda1,fstype=ext4,host=web-1,mode=rw,path=/var/lib/my\\ data free=1000i {T0}\n"
    f'system,host=web-1 uptime_format="1 day,  2:03" {T0}\n'
)
# The body of the database's statement, as Go's url.Values encodes it.
CREATE = b"q=CREATE+DATABASE+%22telegraf%22"


class Connection:
    """A connection that is kept, as Go's transport does."""

    opened = []

    def __init__(self, url, authorization=None):
        at = urlparse(url)
        self.host = at.netloc
        self.socket = socket.create_connection((at.hostname, at.port), timeout=60)
        self.opened.append(self.socket)
        self.authorization = authorization

    def post(self, path, headers, body):
        """The status, the headers and the body of the answer. A body of several pieces is sent in chunks."""
        lines = [f"POST {path} HTTP/1.1", f"Host: {self.host}", f"User-Agent: {USER_AGENT}"]
        pieces = body if isinstance(body, list) else None
        lines.append("Transfer-Encoding: chunked" if pieces else f"Content-Length: {len(body)}")
        if self.authorization:
            lines.append(f"Authorization: {self.authorization}")
        lines += [f"{name}: {value}" for name, value in headers.items()]
        lines.append("Accept-Encoding: gzip")
        head = "\r\n".join(lines).encode() + b"\r\n\r\n"
        if pieces:
            body = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
        self.socket.sendall(head + body)
        return self.answer()

    def answer(self):
        received = b""
        while b"\r\n\r\n" not in received:
            received += self.part()
        head, rest = received.split(b"\r\n\r\n", 1)
        lines = head.decode().split("\r\n")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines[1:])}
        length = int(headers.get("content-length", "0"))
        while len(rest) < length:
            rest += self.part()
        return int(lines[0].split()[1]), headers, rest

    def part(self):
        part = self.socket.recv(65536)
        assert part, "the server closed the connection"
        return part


@pytest.fixture(autouse=True)
def connections():
    yield
    while Connection.opened:
        Connection.opened.pop().close()


def basic(user, password):
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def create(connection):
    """What Telegraf does when it starts, and after it has heard that the database is unknown."""
    return connection.post("/query", {"Content-Type": "application/x-www-form-urlencoded"}, CREATE)


def write(connection, metrics=METRICS, path="/write?consistency=any&db=telegraf"):
    """A write of the output influxdb: packed while it is sent."""
    packed = gzip.compress(metrics.encode())
    headers = {"Content-Encoding": "gzip", "Content-Type": "text/plain; charset=utf-8"}
    return connection.post(path, headers, [packed[:7], packed[7:]])


def write_v2(connection, path, metrics=METRICS):
    """A write of the output influxdb_v2."""
    headers = {"Content-Encoding": "gzip", "Content-Type": "text/plain; charset=utf-8"}
    return connection.post(path, headers, gzip.compress(metrics.encode()))


def rows(server, query, database="telegraf"):
    ask = {"query": query, "format": "json", "database": database}
    reply = server.api.session.post(server.url + "/api/sql", json=ask, timeout=120)
    assert reply.ok, reply.text
    return reply.json()["rows"]


def key_of(server, role):
    """An API key of a new user with a role."""
    login = f"telegraf-{role}@example.org"
    server.api.post("/api/tacho/users", {"login": login, "password": "a long password", "role": role})
    return server.api.post("/api/tacho/api-keys", {"login": login, "name": "telegraf", "role": role})["key"]


def check_metrics(server, database="telegraf"):
    assert rows(server, "SELECT cpu, host, usage_idle, usage_user FROM cpu", database) == [["cpu-total", "web-1", 98.2, 1.25]]
    assert rows(server, "SELECT active FROM mem", database) == [[2147483648]]
    assert rows(server, "SELECT path, free FROM disk", database) == [["/var/lib/my data", 1000]]
    assert rows(server, "SELECT uptime_format FROM system", database) == [["1 day,  2:03"]]


@pytest.fixture
def open_server(own_server):
    """A server with a port of InfluxDB that needs no login; its address."""
    server = own_server(env={"TACHO_TIME_SERIES_INFLUX_LISTEN": "127.0.0.1:0", "TACHO_TIME_SERIES_OPEN": "true"})
    port = next(line for line in server.lines if "listening influx " in line).split()[-1].split(":")[-1]
    return server, f"http://127.0.0.1:{port}"


def test_telegraf_without_a_login_creates_its_database_and_writes(open_server):
    server, url = open_server
    connection = Connection(url)
    status, headers, body = create(connection)
    assert status == 200 and headers["content-type"].startswith("application/json"), body
    assert json.loads(body)["results"][0].get("error") is None
    for _ in range(2):
        status, headers, body = write(connection)
        assert (status, body) == (204, b"") and headers["x-influxdb-version"]
    check_metrics(server)
    refused = requests.post(f"{url}/query", data={"q": 'DROP DATABASE "telegraf"'}, timeout=60)
    assert refused.status_code == 403 and "error authorizing query" in refused.json()["error"]


def test_an_unknown_database_is_named_so_that_telegraf_creates_it(open_server):
    _, url = open_server
    connection = Connection(url)
    status, _, body = write(connection)
    # The output looks for these words.
    assert status == 404 and "database not found" in json.loads(body)["error"]
    assert create(connection)[0] == 200
    assert write(connection)[0] == 204


def test_telegraf_logs_in_with_the_key_of_an_operator(server):
    connection = Connection(server.url, basic("telegraf", key_of(server, "operator")))
    assert create(connection)[0] == 200
    assert write(connection)[0] == 204
    check_metrics(server)
    viewer = Connection(server.url, basic("telegraf", key_of(server, "viewer")))
    status, _, body = create(viewer)
    # Telegraf does not try again after 403.
    assert status == 403 and json.loads(body)["error"].startswith("error authorizing query")


def test_the_output_of_version_2_writes_to_a_bucket(server):
    server.api.post("/api/tacho/databases", {"name": "buckets"})
    connection = Connection(server.url, f"Token {key_of(server, 'administrator')}")
    status, _, body = write_v2(connection, "/api/v2/write?bucket=buckets&org=influxdata")
    assert (status, body) == (204, b"")
    check_metrics(server, "buckets")
    status, _, body = write_v2(connection, "/api/v2/write?bucket=buckets&org=influxdata", METRICS + "bad line\n")
    assert status == 400 and json.loads(body)["code"] == "invalid"
    status, _, body = write_v2(connection, "/api/v2/write?bucket=none&org=influxdata")
    assert status == 404 and json.loads(body)["code"] == "not found"


def test_a_partial_write_says_so(open_server):
    server, url = open_server
    connection = Connection(url)
    create(connection)
    status, _, body = write(connection, f"cpu,host=a usage=1 {T0}\ncpu,host=a usage= {T0}\n")
    assert status == 400 and json.loads(body)["error"].startswith("partial write")
    assert rows(server, "SELECT usage FROM cpu") == [[1.0]]

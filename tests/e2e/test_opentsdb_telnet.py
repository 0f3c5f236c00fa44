"""OpenTSDB's line protocol: potsdb unchanged, and raw sockets for what no client sends. What is stored is read over SQL."""

import re
import socket
import time

import potsdb
import pytest
import requests

T0 = 1_768_464_000
LINE_BYTES_MAX = 34 * 1024
ENV = {"TACHO_TIME_SERIES_OPENTSDB_LISTEN": "127.0.0.1:0", "TACHO_TIME_SERIES_HITSDB_LISTEN": "127.0.0.1:0"}


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    """A server that takes points of anybody."""
    from harness.server import Server

    with Server(tmp_path_factory.mktemp("telnet"), ENV | {"TACHO_TIME_SERIES_OPEN": "true"}) as server:
        yield server


class Lines:
    """A raw connection."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.read = self.socket.makefile("rb")

    def send(self, data):
        self.socket.sendall(data if isinstance(data, bytes) else data.encode())

    def line(self):
        return self.read.readline().decode()

    def ask(self, data):
        """Sends lines, and returns the answers up to that to `help`, which comes when the lines before it are stored."""
        self.send(data if isinstance(data, bytes) else data.encode())
        self.send(b"help\n")
        answers = []
        while not (line := self.line()).startswith("available commands: "):
            assert line, "the server closed the connection"
            answers.append(line)
        return answers

    def end(self):
        """Sends no more, and returns what still comes."""
        self.socket.shutdown(socket.SHUT_WR)
        return self.read.read().decode()


@pytest.fixture
def lines(opened):
    made = []

    def connect(door="opentsdb", server=opened):
        made.append(Lines(server.listeners[door]))
        return made[-1]

    yield connect
    for one in made:
        one.read.close()
        one.socket.close()


def rows(server, query):
    reply = server.api.session.post(server.url + "/api/sql", json={"query": query, "format": "json"}, timeout=120)
    assert reply.ok, reply.text
    return reply.json()["rows"]


def refused(server, reason, door="opentsdb"):
    """How many refusals the metrics count."""
    text = requests.get(server.url + "/metrics", timeout=60).text
    found = re.search(rf'tacho_refusals_total{{door="{door}",reason="{reason}"}} (\d+)', text)
    return int(found[1]) if found else 0


def test_potsdb_writes_unchanged(opened):
    client = potsdb.Client("127.0.0.1", port=opened.listeners["opentsdb"], host_tag="potsdb")
    for n in range(5_000):
        client.log("tel_potsdb", n if n % 2 else n + 0.5, timestamp=T0 + n, part=n % 7)
    client.wait()
    # The client closes its socket without a word; what it has sent is on its way to the disk.
    deadline = time.monotonic() + 60
    while rows(opened, "SELECT count(*) FROM information_schema.tables WHERE table_name = 'tel_potsdb'") == [[0]] or (
        rows(opened, "SELECT count(*) FROM tel_potsdb") != [[5_000]]
    ):
        assert time.monotonic() < deadline, rows(opened, "SELECT count(*) FROM tel_potsdb")
        time.sleep(0.05)
    total = sum(n if n % 2 else n + 0.5 for n in range(5_000))
    assert rows(opened, "SELECT sum(value), count(DISTINCT part), min(host) FROM tel_potsdb") == [[total, 7, "potsdb"]]


def test_an_answer_says_that_the_lines_before_it_are_stored(lines, opened):
    for door in ("opentsdb", "hitsdb"):
        connection = lines(door)
        metric = f"tel_{door}"
        assert connection.ask("".join(f"put {metric} {T0 + n} {n} host=a\n" for n in range(10_000))) == []
        assert rows(opened, f"SELECT count(*), sum(value) FROM {metric}") == [[10_000, 49_995_000]]


def test_the_same_port_speaks_http(opened, lines):
    for door in ("opentsdb", "hitsdb"):
        url = f"http://127.0.0.1:{opened.listeners[door]}"
        point = {"metric": "tel_http", "timestamp": T0, "value": 1, "tags": {"door": door}}
        assert requests.post(url + "/api/put", json=point, timeout=60).status_code == 204
        assert requests.get(url + "/api/version", timeout=60).json()["version"].startswith("2.")
    assert lines().ask(f"put tel_http {T0} 2 door=line\n") == []
    assert rows(opened, "SELECT door, value FROM tel_http ORDER BY door") == [["hitsdb", 1], ["line", 2], ["opentsdb", 1]]
    # An unknown command in capital letters is an HTTP request, as in OpenTSDB.
    connection = lines()
    connection.send("PUT tel_http 1 2 a=b\n\n")
    assert connection.line().startswith("HTTP/1.1 400")


def test_a_series_is_the_same_in_lines_and_in_json(lines, opened):
    url = f"http://127.0.0.1:{opened.listeners['opentsdb']}/api/put"
    point = {"metric": "tel_same", "timestamp": T0, "value": 1, "tags": {"a": "1", "b": "2"}}
    assert requests.post(url, json=point, timeout=60).status_code == 204
    assert lines().ask(f"put tel_same {T0} 2 b=2 a=1\nput tel_same {T0 + 1} 3 a=1  b=2 \r\n") == []
    assert rows(opened, "SELECT value FROM tel_same ORDER BY ts") == [[2], [3]]


def test_commands(lines):
    connection = lines()
    connection.send("version\n")
    assert re.fullmatch(r"net\.opentsdb 2\.\d+\.\d+ .*\n", connection.line())
    assert connection.line().startswith("Tachograph ")
    stats = connection.ask("stats\n")
    assert all(re.fullmatch(r"tsd\.[a-z.]+ \d+ \d+ type=[a-z]+ door=opentsdb\n", line) for line in stats) and len(stats) > 3
    assert connection.ask("\nfoo bar\n") == ["unknown command: .  Try `help'.\n", "unknown command: foo.  Try `help'.\n"]
    answers = connection.ask("diediedie\nrollup 1h-sum m 1 2 a=b\nhistogram 0 m 1 2 a=b\ndropcaches\n")
    assert [answer.split(":")[0] for answer in answers] == ["diediedie", "rollup", "histogram", "dropcaches"]
    connection.send("exit\nversion\n")
    assert connection.line() == "", "nothing is answered after exit"


def test_bad_points_are_named_and_the_good_ones_stored(lines, opened):
    before = refused(opened, "point")
    many = lambda count: " ".join(f"t{n}=x" for n in range(count))
    bad = {
        f"put tel_part {T0} NaN host=a": "put: invalid value: Invalid character 'N' in NaN\n",
        f"put tel_part {T0} 1e400 host=a": "put: illegal argument: value is NaN or Infinite: Infinity\n",
        f"put tel_part {T0} 1": "put: illegal argument: not enough arguments (need least 4, got 3)\n",
        f"put tel_part {T0} 1 ": "put: illegal argument: Missing tags\n",
        "put tel_part now 1 host=a": "put: invalid value: Invalid character 'n' in now\n",
        "put tel_part 0 1 host=a": "put: illegal argument: invalid timestamp: 0\n",
        f"put tel_part {T0} 1 host": "put: illegal argument: invalid tag: host\n",
        f"put tel_part {T0} 1 host=a host=b": "put: illegal argument: duplicate tag: host=b, tags={host=a}\n",
        f"put tel\0part {T0} 1 host=a": 'put: illegal argument: Invalid metric name ("tel\\u{0}part"): illegal character: \\u{0}\n',
    }
    connection = lines()
    sent = f"put tel_part {T0} 1 host=a\n" + "\n".join(bad) + f"\nput tel_part {T0 + 1} 2 host=a\n"
    assert connection.ask(sent) == list(bad.values())
    assert rows(opened, "SELECT value FROM tel_part ORDER BY ts") == [[1], [2]]
    assert refused(opened, "point") == before + len(bad)
    dead_letters = rows(opened, "SELECT count(*) FROM dead_letter WHERE door = 'opentsdb' AND topic = 'put' AND payload LIKE '%tel_part%'")
    assert dead_letters[0][0] >= len(bad) - 1
    assert connection.ask(f"put tel_tags {T0} 1 {many(9)}\nput tel_tags {T0} 2 {many(64)}\n") == []
    answers = connection.ask(f"put tel_tags {T0} 3 {many(65)}\n")
    assert answers[0].startswith("put: illegal argument: Too many tags: 65 maximum allowed: 64")
    assert rows(opened, "SELECT value FROM tel_tags ORDER BY value") == [[1], [2]]
    assert connection.ask(b"put tel_part 1 1 host=\xff\n") == ["put: illegal argument: the line is not UTF-8 at byte 22\n"]


def test_a_line_may_arrive_in_any_pieces(lines, opened):
    connection = lines()
    text = "".join(f"put tel_cut {T0 + n} {n} host=a\r\n" for n in range(200)).encode()
    for cut in (1, 5, 63, 64):
        for start in range(0, len(text), cut if cut > 1 else 997):
            connection.send(text[start : start + (cut if cut > 1 else 997)])
    assert connection.ask(b"") == []
    assert rows(opened, "SELECT count(*), sum(value) FROM tel_cut") == [[200, 19_900]]
    # Far more than one read takes, so that lines lie across its edge.
    wide = "".join(f"put tel_wide {T0 + n} {n} host={'h' * (n % 200 + 1)}\n" for n in range(20_000))
    assert lines().ask(wide) == []
    assert rows(opened, "SELECT count(*), sum(value) FROM tel_wide") == [[20_000, 199_990_000]]


def test_a_line_of_a_megabyte_is_refused_and_the_next_one_stored(lines, opened):
    before = refused(opened, "line")
    connection = lines()
    answers = connection.ask(b"put tel_long 1 1 host=" + b"x" * 1_000_000 + f"\nput tel_long {T0} 1 host=a\n".encode())
    assert answers == [f"put: illegal argument: a line has more than {LINE_BYTES_MAX} bytes; it is not stored\n"]
    assert rows(opened, "SELECT value FROM tel_long") == [[1]]
    assert refused(opened, "line") == before + 1
    connection = lines()
    connection.send(b"\0" * 1_000_000)
    assert connection.end() == f"put: illegal argument: a line has more than {LINE_BYTES_MAX} bytes; it is not stored\n"


def test_half_a_line_at_the_end_is_not_stored(lines, opened):
    connection = lines()
    connection.send(f"put tel_half {T0} 1 host=a\nput tel_half {T0 + 1} 2")
    assert connection.end().startswith("put: illegal argument: the last line does not end with a line feed")
    assert rows(opened, "SELECT value FROM tel_half") == [[1]]


def test_a_client_that_never_reads_is_not_in_the_way_of_its_points(lines, opened):
    connection = lines()
    bad = f"put tel_deaf {T0} {'x' * 200} host=a\n"
    for n in range(200):
        connection.send(bad * 200 + f"put tel_deaf {T0 + n} {n} host=a\n")
    deadline = time.monotonic() + 120
    while rows(opened, "SELECT count(*) FROM information_schema.tables WHERE table_name = 'tel_deaf'") == [[0]] or (
        rows(opened, "SELECT count(*) FROM tel_deaf") != [[200]]
    ):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert refused(opened, "reply_unread") > 0, "what the client did not read is counted"


def test_a_login_comes_first_unless_the_server_is_open(own_server, lines):
    server = own_server(ENV)
    put = f"put tel_login {T0} 1 host=a\n"
    connection = lines(server=server)
    connection.send("version\n" + put * 3)
    assert connection.line().startswith("version: illegal argument: Unauthenticated command; send `auth basic <user> <password>` first")
    assert connection.line().startswith("put: illegal argument: Unauthenticated command")
    connection.send("auth basic admin@tachograph.local wrong\n")
    assert connection.line().startswith("auth: illegal argument: user name or password is wrong")
    assert connection.line() == "AUTH_FAIL\r\n"
    connection.send("auth hmacsha256 a:b:c:d\n")
    assert "hmacsha256" in connection.line() and connection.line() == "AUTH_FAIL\r\n"
    connection.send(f"auth basic admin@tachograph.local {server.password}\n")
    assert connection.line() == "AUTH_SUCCESS\r\n"
    assert connection.ask(put) == []
    added = server.command("key", "add", "admin@tachograph.local", "telnet", "--role", "operator").stdout.splitlines()
    key = next(line.split()[1] for line in added if line.startswith("key "))
    second = lines(server=server)
    second.send(f"auth basic any {key}\n")
    assert second.line() == "AUTH_SUCCESS\r\n"
    assert second.ask(f"put tel_login {T0 + 1} 2 host=a\n") == []
    assert rows(server, "SELECT value FROM tel_login ORDER BY ts") == [[1], [2]]
    stranger = lines(server=server)
    stranger.send("help\n" * 50)
    assert stranger.read.read().count(b"Unauthenticated command") == 10, "the server closes the connection"


def test_lines_survive_a_kill_once_they_are_answered(own_server, tmp_path, lines):
    env = ENV | {"TACHO_TIME_SERIES_OPEN": "true"}
    server = own_server(env)
    connection = lines(server=server)
    assert connection.ask("".join(f"put tel_kill {T0 + n} {n} host=a\n" for n in range(3_000))) == []
    server.kill()
    server = own_server(env)
    assert rows(server, "SELECT count(*), sum(value) FROM tel_kill") == [[3_000, 4_498_500]]

"""InfluxDB's interface for queries: its clients unchanged, and the answers of a real InfluxDB to the same requests."""

import gzip
import json
import subprocess
import uuid
from pathlib import Path

import pytest
import requests
from harness import databases
from harness.server import Server
from influxdb import InfluxDBClient
from influxdb.exceptions import InfluxDBClientError

GOLDEN = Path(__file__).parents[2] / "crates/timeseries/src/influxql/golden"
NODE = Path(__file__).parent / "node"
T0 = 1_768_464_000

# Points beyond those of the golden files: escapes, all types, and times with microseconds.
POINTS = f"""
weather\\ station,site=north\\ sea,tag\\,2=a\\=b temp=1.5,ok=t,count=3i,text="say \\"hi\\"" {T0}000001000
weather\\ station,site=south temp=-0.000001,ok=f,count=-9223372036854775808i {T0 + 60}000000000
weather\\ station,site=south temp=1e300,text="ü, ;" {T0 + 120}000000000
weather\\ station,site=south temp=100000000000000000000000 {T0 + 180}000000000
""".strip()


class Side:
    """One of the two servers, with a database of its own."""

    def __init__(self, url, headers):
        self.url, self.headers = url, headers

    def write(self, lines):
        reply = requests.post(f"{self.url}/write", params={"db": "diff"}, data=lines.encode(), headers=self.headers, timeout=60)
        assert reply.status_code == 204, reply.text

    def ask(self, query, method="POST", database="diff", accept="application/json", **params):
        where = {"data": params | {"q": query}} if method == "POST" else {"params": params | {"q": query}}
        where.setdefault("params", {})["db"] = database
        return requests.request(method, f"{self.url}/query", headers=self.headers | {"Accept": accept}, timeout=60, **where)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server that takes the points of the golden files, which are of the first minute of 1970."""
    with Server(tmp_path_factory.mktemp("influx"), {"TACHO_INGEST_OLDEST": "1970-01-01T00:00:00Z"}) as server:
        yield server


@pytest.fixture(scope="module")
def sides(server):
    """The server under test and InfluxDB, with the same points."""
    influxd = databases.start_influxd()
    try:
        yield filled(server, influxd)
    finally:
        influxd.stop()


def filled(server, influxd):
    sides = Side(server.url, {"Authorization": f"Bearer {server.api.token}"}), Side(influxd.url, {})
    for side in sides:
        side.ask("CREATE DATABASE diff", database="")
        side.write((GOLDEN / "points.txt").read_text() + "\n" + POINTS)
    return sides


def golden_queries():
    files = ("rows", "functions", "buckets", "show", "errors")
    lines = [line for name in files for line in (GOLDEN / f"{name}.txt").read_text().splitlines()]
    return [line.removeprefix("> ") for line in lines if line.startswith("> ")]


# Whose answers differ on purpose (docs/protocol/influx.md says how).
DIFFERENT = {
    "sample": "chooses by chance",
}

HTTP_QUERIES = [
    'SELECT * FROM "weather station"',
    'SELECT * FROM "weather station" GROUP BY *',
    'SELECT temp, "tag,2" FROM "weather station" WHERE site = \'north sea\'',
    f'SELECT count(temp), mean(temp), max(count) FROM "weather station" WHERE time >= {T0}s AND time < {T0 + 240}s GROUP BY time(1m) fill(0)',
    f'SELECT count(temp) FROM "weather station" WHERE time >= {T0}s AND time < {T0 + 240}s GROUP BY time(1m), site fill(none)',
    "SELECT mean(usage) FROM cpu WHERE time >= 0 AND time < 1m GROUP BY time(20s), host fill(previous); SHOW MEASUREMENTS",
    "SELECT usage FROM cpu tz('Europe/Berlin')",
    "SELECT usage FROM diff.autogen.cpu",
    'SELECT usage FROM diff.."cpu"; SELECT free FROM mem WHERE host = \'a\'',
    "SELECT usage FROM week.cpu",
    "SELECT usage FROM nosuch..cpu",
    "SELECT usage FROM nosuch",
    "SELECT nosuch FROM cpu",
    "SELECT usage FROM cpu WHERE nosuch = 'x'",
    # Those of TSBS: single and double groups, the last point, high usage, groups with an order and a limit.
    "SELECT max(usage) from cpu where (host = 'a' or host = 'b') and time >= '1970-01-01T00:00:00Z' and time < '1970-01-01T00:01:00Z' group by time(20s)",
    "SELECT mean(usage), mean(cores) from cpu where time >= '1970-01-01T00:00:00Z' and time < '1970-01-01T00:01:00Z' group by time(30s),host",
    'SELECT * from cpu group by "host" order by time desc limit 1',
    "SELECT * from cpu where usage > 9.0 and time >= '1970-01-01T00:00:00Z' and time < '1970-01-01T00:01:00Z' and (host = 'b')",
    "SELECT max(usage) from cpu WHERE time < '1970-01-01T00:01:00Z' group by time(20s) limit 2",
    "SHOW TAG KEYS",
    "SHOW FIELD KEYS",
    "SHOW SERIES",
    "SHOW TAG VALUES FROM cpu WITH KEY IN (host, zone)",
    "SHOW RETENTION POLICIES",
    "SHOW RETENTION POLICIES ON nosuch",
    "SHOW MEASUREMENTS ON nosuch",
    "SHOW TAG KEYS ON nosuch",
    "SHOW SERIES CARDINALITY",
    "SHOW SERIES EXACT CARDINALITY",
    "SHOW TAG KEY CARDINALITY",
    "SHOW FIELD KEY CARDINALITY FROM cpu",
    "SHOW SUBSCRIPTIONS",
    "SELECT usage FROM cpu LIMIT 1; SELEKT",
    ";",
    "",
    "SELECT usage FROM cpu WHERE host = $host",
    "DROP SERIES FROM cpu WHERE time > 0",
    'CREATE DATABASE ""',
]


def compared(query):
    return pytest.param(query, id=query[:60] or "none")


def same(sides, query, **how):
    ours, theirs = (side.ask(query, **how) for side in sides)
    assert ours.status_code == theirs.status_code, (ours.text, theirs.text)
    assert ours.json() == theirs.json()


@pytest.mark.parametrize("query", [compared(query) for query in golden_queries()])
def test_answers_are_those_of_influxdb(sides, query):
    if not any(word in query for word in DIFFERENT):
        same(sides, query, epoch="ns")


@pytest.mark.parametrize("query", [compared(query) for query in HTTP_QUERIES])
def test_requests_are_answered_as_by_influxdb(sides, query):
    same(sides, query)
    same(sides, query, method="GET", epoch="ms")


@pytest.mark.parametrize("params", [
    {"epoch": "s"}, {"epoch": "u"}, {"epoch": "m"}, {"epoch": "h"}, {"pretty": "true"}, {"rp": "autogen"}, {"rp": "week"},
    {"params": '{"host": "a"}'}, {"params": '{"host": 5}'}, {"params": '{"other": 1}'},
], ids=str)
def test_parameters_mean_what_they_mean_to_influxdb(sides, params):
    same(sides, "SELECT usage FROM cpu WHERE host = $host" if "params" in params else "SELECT usage FROM cpu", **params)


# Requests as clients send them: method, path, parameters, headers, body.
ODD_REQUESTS = {
    "params of the Go client": ("GET", "/query", {"q": "SELECT usage FROM cpu", "params": "null"}, {}, None),
    "empty params": ("GET", "/query", {"q": "SELECT usage FROM cpu", "params": ""}, {}, None),
    "params that are a list": ("GET", "/query", {"q": "SELECT usage FROM cpu", "params": "[]"}, {}, None),
    **{f"pretty={text}": ("GET", "/query", {"q": "SELECT usage FROM cpu", "pretty": text}, {}, None) for text in ("1", "true", "True", "yes", "")},
    **{f"chunked={text}": ("GET", "/query", {"q": "SELECT usage FROM cpu", "chunked": text, "chunk_size": "2"}, {}, None) for text in ("1", "true", "True", "x", "")},
    **{f"chunk_size={text}": ("GET", "/query", {"q": "SELECT usage FROM cpu", "chunked": "true", "chunk_size": text}, {}, None) for text in ("0", "-1", "x", "1")},
    **{f"Accept: {text}": ("GET", "/query", {"q": "SELECT usage FROM cpu"}, {"Accept": text}, None) for text in ("text/csv", "application/csv", "text/plain", "*/*")},
    "an empty body said to be gzip": ("POST", "/query", {"q": "SELECT usage FROM cpu"}, {"Content-Encoding": "gzip"}, b""),
    "a write of nothing": ("POST", "/write", {}, {}, b""),
    "a write of nothing in gzip": ("POST", "/write", {}, {"Content-Encoding": "gzip"}, gzip.compress(b"")),
    "a write in gzip": ("POST", "/write", {}, {"Content-Encoding": "gzip"}, gzip.compress(b"odd v=1 1768464000000000000")),
    "a field with the name of times": ("POST", "/write", {}, {}, b"odd time=5,v=2 1768464001000000000"),
    "only a field with the name of times": ("POST", "/write", {}, {}, b"odd time=5 1768464002000000000"),
    "a tag with the name of times": ("POST", "/write", {}, {}, b"odd,time=x v=3 1768464003000000000"),
    "a field twice, with two types": ("POST", "/write", {}, {}, b"conflict a=1,a=2i 1768464004000000000"),
    "a field twice": ("POST", "/write", {}, {}, b"odd b=1,b=2 1768464005000000000"),
    "a tag twice": ("POST", "/write", {}, {}, b"odd,t=1,t=2 v=3 1768464006000000000"),
    "what they left": ("GET", "/query", {"q": "SELECT * FROM odd; SHOW SERIES FROM odd"}, {}, None),
    "the methods of /query": ("OPTIONS", "/query", {}, {}, None),
    "the methods of /write": ("OPTIONS", "/write", {}, {}, None),
}
# The words of faults that differ; their status does not.
OWN_WORDS = {"params that are a list", "only a field with the name of times", "a tag with the name of times", "a field twice, with two types", "a tag twice"}


def test_odd_requests_are_answered_as_by_influxdb(sides):
    told = []
    for name, (method, path, params, headers, body) in ODD_REQUESTS.items():
        asked = [requests.request(method, side.url + path, params=params | {"db": "diff"}, headers=side.headers | headers, data=body, timeout=60) for side in sides]
        ours, theirs = [(it.status_code, it.text, it.headers.get("Content-Type") if it.text else None) for it in asked]
        same_words = name in OWN_WORDS or ours[1] == theirs[1]
        if ours[0] != theirs[0] or ours[2] != theirs[2] or not same_words:
            told.append(f"{name}\n  InfluxDB  {theirs}\n  tacho     {ours}")
    for side in sides:
        side.ask("DROP MEASUREMENT odd; DROP MEASUREMENT conflict")
    assert not told, "\n".join(told)


def test_the_text_of_an_answer_is_that_of_influxdb(sides):
    for pretty in ("false", "true"):
        texts = [side.ask('SELECT * FROM "weather station"; SHOW TAG KEYS; SELECT x FROM y', method="GET", pretty=pretty).text for side in sides]
        assert texts[0] == texts[1]


@pytest.mark.parametrize("size", ["1", "3", "100"])
def test_chunks_are_those_of_influxdb(sides, size):
    for query in ("SELECT usage FROM cpu; SELECT used FROM disk", "SELECT usage FROM cpu GROUP BY host", "SHOW SERIES", "SELECT x FROM y"):
        texts = [side.ask(query, chunked="true", chunk_size=size).text for side in sides]
        assert texts[0] == texts[1], query


def test_csv_is_that_of_influxdb(sides):
    for query in ("SELECT * FROM cpu GROUP BY host; SHOW TAG KEYS", 'SELECT * FROM "weather station" GROUP BY *', "SELECT x FROM y", "SHOW FIELD KEYS"):
        ours, theirs = (side.ask(query, accept="application/csv") for side in sides)
        assert ours.content == theirs.content, query
        assert ours.headers["Content-Type"] == theirs.headers["Content-Type"] == "text/csv"


def test_deletions_leave_what_influxdb_leaves(sides):
    lines = "\n".join(f"gone,host={host},n={n} v={n} {T0 + n}000000000" for host in "abc" for n in range(4))
    for side in sides:
        side.write(lines)
    # A series that has lost all its rows by DELETE is still listed here.
    for change in (
        f"DELETE FROM gone WHERE time < {T0 + 1}s",
        "DELETE FROM gone WHERE host = 'a' AND n = '2'",
        "DROP SERIES FROM gone WHERE host =~ /b/",
        f"DELETE WHERE host = 'c' AND time >= {T0 + 3}s AND time <= {T0 + 3}s",
        "DELETE FROM nosuch",
        "DROP MEASUREMENT nosuch",
        "DROP MEASUREMENT gone",
    ):
        same(sides, change)
        same(sides, "SELECT * FROM gone")
        if change.startswith("DROP"):
            same(sides, "SHOW SERIES FROM gone WHERE host = 'b'")
    same(sides, "DROP MEASUREMENT nosuch; DROP SERIES FROM nosuch WHERE host = 'a'; DELETE FROM nosuch", method="GET")


@pytest.fixture
def client(server):
    host, port = server.url.removeprefix("http://").split(":")
    lines = server.command("key", "add", "admin@tachograph.local", f"influx-{uuid.uuid4()}", "--role", "administrator").stdout.splitlines()
    key = next(line.split()[1] for line in lines if line.startswith("key "))
    client = InfluxDBClient(host, int(port), username="any", password=key, timeout=60)
    client.create_database("py")
    client.switch_database("py")
    yield client
    client.drop_database("py")


def test_the_python_client_writes_and_reads(client):
    assert client.ping()
    assert {"name": "py"} in client.get_list_database()
    points = [{"measurement": "cpu", "tags": {"host": f"h{n % 2}"}, "time": T0 + n, "fields": {"usage": float(n), "n": n}} for n in range(10)]
    assert client.write_points(points, time_precision="s")
    result = client.query("SELECT mean(usage) FROM cpu WHERE time >= 1768464000s AND time < 1768464010s GROUP BY time(5s), host", epoch="s")
    assert list(result.get_points(tags={"host": "h1"})) == [{"time": T0, "mean": 2.0}, {"time": T0 + 5, "mean": 7.0}]
    assert client.get_list_measurements() == [{"name": "cpu"}]
    assert client.get_list_series() == ["cpu,host=h0", "cpu,host=h1"]
    assert client.get_list_retention_policies()[0]["name"] == "autogen"
    chunks = client.query("SELECT usage FROM cpu", chunked=True, chunk_size=3)
    assert sum(len(list(chunk.get_points())) for chunk in chunks) == 10
    bound = client.query("SELECT usage FROM cpu WHERE host = $host", bind_params={"host": "h0' OR host = 'h1"})
    assert list(bound.get_points()) == []
    first, second = client.query("SELECT first(n) FROM cpu; SELECT last(n) FROM cpu", epoch="s")
    assert (list(first.get_points()), list(second.get_points())) == ([{"time": T0, "first": 0}], [{"time": T0 + 9, "last": 9}])
    client.delete_series(measurement="cpu", tags={"host": "h0"})
    assert client.get_list_series() == ["cpu,host=h1"]
    client.drop_measurement("cpu")
    assert client.get_list_measurements() == []
    with pytest.raises(InfluxDBClientError, match="error parsing query"):
        client.query("SELEKT")
    with pytest.raises(InfluxDBClientError, match="database not found"):
        client.query("SELECT a FROM b", database="nosuch")


def test_the_influx_command_reads(server, client):
    client.write_points([{"measurement": "cpu", "tags": {"host": "a"}, "time": T0, "fields": {"usage": 1.5}}], time_precision="s")

    def influx(query, form="csv"):
        arguments = ["-host", client._host, "-port", str(client._port), "-username", "any", "-password", client._password]
        command = ["influx", *arguments, "-database", "py", "-format", form, "-execute", query]
        return subprocess.run(command, capture_output=True, text=True, timeout=60)

    done = influx("SELECT * FROM cpu")
    assert done.stdout == "name,time,host,usage\ncpu,1768464000000000000,a,1.5\n", done
    assert "autogen" in influx("SHOW RETENTION POLICIES", "column").stdout
    assert "cpu,host=a" in influx("SHOW SERIES", "column").stdout
    values = json.loads(influx("SHOW TAG VALUES WITH KEY = host", "json").stdout)
    assert values["results"][0]["series"][0]["values"] == [["host", "a"]]
    failed = influx("SELECT f(usage) FROM cpu")
    assert failed.returncode != 0 and "undefined function f()" in failed.stdout + failed.stderr


def test_the_javascript_clients_write_and_read(client):
    job = {"host": client._host, "port": client._port, "password": client._password, "database": "js", "time": T0}
    done = subprocess.run(["node", "influx.mjs", json.dumps(job)], cwd=NODE, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert {"tacho", "js"} <= set(report["databases"])
    assert report["series"] == ["js,client=1", "js,client=2"]
    assert report["mean"] == [[T0 * 1000, 1.5], [T0 * 1000 + 10_000, 2.5]]
    assert report["error"].startswith("A 400 Bad Request error occurred") and "error parsing query" in report["error"]


def test_grafana_asks_its_data_source(server, client):
    """The requests of Grafana's data source for InfluxQL: of its health check, its editor, a variable and a panel."""
    client.write_points([{"measurement": "cpu", "tags": {"host": h}, "time": T0 + n * 10, "fields": {"usage": float(n)}} for h in "ab" for n in range(6)], time_precision="s")
    login = {"Authorization": requests.auth._basic_auth_str("any", client._password)}

    def ask(query, method):
        params = {"db": "py", "epoch": "ms", "q": query}
        where = {"params": params} if method == "GET" else {"params": {"db": "py", "epoch": "ms"}, "data": {"q": query}}
        reply = requests.request(method, f"{server.url}/query", headers=login, timeout=60, **where)
        assert reply.status_code == 200 and reply.headers["X-Influxdb-Version"], reply.text
        return reply.json()["results"][0].get("series", [])

    for method in ("GET", "POST"):
        assert ask("SHOW DATABASES", method)
        assert ask("SHOW MEASUREMENTS WITH MEASUREMENT =~ /(?i)cp/ LIMIT 100", method)[0]["values"] == [["cpu"]]
        assert ask('SHOW FIELD KEYS FROM "cpu"', method)[0]["values"] == [["usage", "float"]]
        assert ask('SHOW TAG KEYS FROM "cpu" WHERE "host" = \'a\'', method)[0]["values"] == [["host"]]
        assert ask('SHOW TAG VALUES FROM "cpu" WITH KEY = "host"', method)[0]["values"] == [["host", "a"], ["host", "b"]]
        assert ask('SHOW RETENTION POLICIES on "py"', method)[0]["values"][0][0] == "autogen"
        panel = 'SELECT mean("usage") FROM "cpu" WHERE ("host" =~ /^(a|b)$/) AND time >= 1768464000000ms and time <= 1768464059000ms GROUP BY time(20s), "host" fill(null)'
        series = ask(panel, method)
        assert [one["tags"] for one in series] == [{"host": "a"}, {"host": "b"}]
        assert series[0]["values"] == [[T0 * 1000, 0.5], [T0 * 1000 + 20_000, 2.5], [T0 * 1000 + 40_000, 4.5]]


def test_a_query_without_a_login_is_refused_and_an_open_server_answers(server, own_server):
    assert requests.get(f"{server.url}/query?q=SHOW+DATABASES", timeout=60).status_code == 401
    opened = own_server(env={"TACHO_TIME_SERIES_OPEN": "true"})
    reply = requests.get(f"{opened.url}/query?q=SHOW+DATABASES", timeout=60)
    assert reply.json()["results"][0]["series"][0]["values"] == [["tacho"]]
    # Nobody is asked there: a wrong login does not matter.
    for login in ({"u": "root", "p": "root"}, {"u": "admin@tachograph.local", "p": "wrong"}):
        assert requests.get(f"{opened.url}/query?q=SHOW+DATABASES", params=login, timeout=60).status_code == 200
    wrong = requests.get(f"{opened.url}/query?q=SHOW+DATABASES", headers={"Authorization": "Token tacho_wrong"}, timeout=60)
    assert wrong.status_code == 200
    assert "error authorizing" in requests.post(f"{opened.url}/query", data={"q": "DROP DATABASE none"}, timeout=60).json()["error"]


def test_the_administrator_chooses_the_role_on_an_open_server(own_server):
    opened = own_server(env={"TACHO_TIME_SERIES_OPEN": "true", "TACHO_TIME_SERIES_OPEN_ROLE": "administrator"})

    def ask(query):
        return requests.post(f"{opened.url}/query", data={"q": query}, timeout=60).json()["results"][0]

    assert "error" not in ask("CREATE DATABASE bench") and "error" not in ask("DROP DATABASE bench")
    assert ask("SHOW DATABASES")["series"][0]["values"] == [["tacho"]]


def test_flux_is_refused_in_its_shape(server):
    reply = requests.post(f"{server.url}/api/v2/query?org=o", json={"query": 'from(bucket: "b")'}, timeout=60)
    assert reply.status_code == 501 and reply.json()["code"] == "not implemented"

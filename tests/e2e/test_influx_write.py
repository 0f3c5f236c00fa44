"""InfluxDB's and Prometheus's interfaces for writers; what is stored is read over SQL."""

import gzip

import pytest
import requests

T0 = 1_768_464_000


@pytest.fixture
def write(server):
    """Writes a body to the tenant's own database."""

    def post(body, path="/write?db=tacho&precision=s", **headers):
        login = {"Authorization": f"Token {server.api.token}"} | headers
        return requests.post(server.url + path, data=body, headers=login, timeout=120)

    return post


def rows(server, query):
    reply = server.api.session.post(server.url + "/api/sql", json={"query": query, "format": "json"}, timeout=120)
    assert reply.ok, reply.text
    return reply.json()["rows"]


def test_every_type_is_stored_and_read_back(server, write):
    line = f'inf_types,place=a\\ b f=1.5,i=-3i,u=7u,b=t,s="x \\"y\\"" {T0}\r\n'
    assert write(line.encode()).status_code == 204
    assert rows(server, "SELECT place, f, i, u, b, s FROM inf_types") == [["a b", 1.5, -3, 7, True, 'x "y"']]


def test_good_lines_are_stored_among_bad_ones(server, write):
    reply = write(f'inf_part f=1 {T0}\ninf_part f="open {T0}\ninf_part f=NaN {T0}\ninf_part f=1e400 {T0}\ninf_part f= {T0}\ninf_part f=2 {T0 + 1}\ninf_part f'.encode())
    assert reply.status_code == 400
    error = reply.json()["error"]
    assert error.startswith("partial write: unable to parse") and error.endswith("dropped=5"), error
    assert "x-influxdb-error" in reply.headers
    assert rows(server, "SELECT f FROM inf_part ORDER BY ts") == [[1.0], [2.0]]


def test_another_type_goes_to_the_sibling_column(server, write):
    assert write(f"inf_mix f=1 {T0}".encode()).status_code == 204
    assert write(f'inf_mix f="text" {T0 + 1}'.encode()).status_code == 204
    assert rows(server, 'SELECT f, "f:string" FROM inf_mix ORDER BY ts') == [[1.0, None], [None, "text"]]


def test_version_2_and_gzip(server, write):
    body = gzip.compress(f"inf_two f=1 {T0}000".encode())
    path = "/api/v2/write?bucket=tacho/autogen&org=any&precision=ms"
    assert write(body, path, **{"Content-Encoding": "gzip"}).status_code == 204
    assert rows(server, "SELECT f FROM inf_two") == [[1.0]]
    reply = write(b"inf_two f", path)
    assert reply.status_code == 400 and reply.json()["code"] == "invalid"
    assert write(b"inf_two f=1", "/api/v2/write?bucket=none").json()["code"] == "not found"


def test_unknown_databases_units_and_logins_are_refused(server, write):
    reply = write(b"m f=1", "/write?db=none")
    assert reply.status_code == 404 and reply.json() == {"error": 'database not found: "none"'}
    assert write(b"m f=1", "/write").json() == {"error": "database is required"}
    assert write(b"m f=1", "/write?db=tacho&precision=x").status_code == 400
    assert requests.post(server.url + "/write?db=tacho", data=b"m f=1", timeout=60).status_code == 401


def test_large_bodies(server, write):
    body = "".join(f"inf_many,n=n{n % 500} f={n} {T0 + n}\n" for n in range(50_000))
    assert write(body.encode()).status_code == 204
    assert rows(server, "SELECT count(*) FROM inf_many") == [[50_000]]
    bomb = gzip.compress(b"m" * 100_000_000)
    assert write(bomb, **{"Content-Encoding": "gzip"}).status_code == 413


def test_ping_and_health(server):
    reply = requests.get(server.url + "/ping", timeout=60)
    assert reply.status_code == 204 and reply.headers["x-influxdb-version"]
    assert requests.get(server.url + "/health", timeout=60).json()["status"] == "pass"


def test_a_database_is_created_before_it_is_written_to(server, write):
    session, url = server.api.session, server.url + "/api/tacho/databases"
    assert write(b"m f=1", "/write?db=inf_metrics").status_code == 404
    for _ in range(2):
        assert session.post(url, json={"name": "inf_metrics"}, timeout=60).json() == {"name": "inf_metrics"}
    names = [one["name"] for one in session.get(url, timeout=60).json()["databases"]]
    assert names[0] == "tacho" and "inf_metrics" in names
    assert write(b"inf_apart f=1", "/write?db=inf_metrics").status_code == 204
    missing = session.post(server.url + "/api/sql", json={"query": "SELECT * FROM inf_apart"}, timeout=60)
    assert missing.status_code == 400 and "inf_apart" in missing.text, "the tables of the tenant are other ones"
    assert session.delete(url + "/inf_metrics", timeout=60).ok
    assert session.delete(url + "/inf_metrics", timeout=60).status_code == 404
    assert write(b"m f=1", "/write?db=inf_metrics").status_code == 404
    assert session.delete(url + "/tacho", timeout=60).status_code == 400


def test_the_ports_of_time_series_databases_are_open_when_they_are_set(own_server):
    settings = ("OPENTSDB", "HITSDB", "INFLUX")
    env = {f"TACHO_TIME_SERIES_{name}_LISTEN": "127.0.0.1:0" for name in settings}
    server = own_server(env=env | {"TACHO_TIME_SERIES_OPEN": "true"})
    ports = [next(line for line in server.lines if f"listening {name.lower()} " in line).split()[-1] for name in settings]
    for number, port in enumerate(ports):
        reply = requests.post(f"http://{port}/write?db=tacho", data=f"inf_port,n=n{number} f=1".encode(), timeout=60)
        assert reply.status_code == 204, reply.text
    assert rows(server, "SELECT count(*) FROM inf_port") == [[3]]
    connections = requests.get(f"http://{ports[0]}/metrics", timeout=60).text
    assert 'door="influx"' in connections

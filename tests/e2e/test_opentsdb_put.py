"""OpenTSDB's interface for writers, with curl and requests; what is stored is read over SQL."""

import gzip
import json
import subprocess

import pytest
import requests

T0 = 1_768_464_000


def point(metric, value, timestamp=T0, tags=None):
    return {"metric": metric, "timestamp": timestamp, "value": value, "tags": {"host": "a"} if tags is None else tags}


@pytest.fixture
def put(server):
    """Writes a body, JSON or bytes, to the tenant's own database."""

    def post(body, path="/api/put", **headers):
        login = {"Authorization": f"Token {server.api.token}"} | headers
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return requests.post(server.url + path, data=data, headers=login, timeout=120)

    return post


def rows(server, query):
    reply = server.api.session.post(server.url + "/api/sql", json={"query": query, "format": "json"}, timeout=120)
    assert reply.ok, reply.text
    return reply.json()["rows"]


def curl(server, body, *options, path="/api/put"):
    """The status of a request of curl."""
    login = f"Authorization: Token {server.api.token}"
    command = ["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "-H", login, *options]
    done = subprocess.run([*command, "--data-binary", "@-", server.url + path], input=body, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def test_curl_writes_plain_packed_and_chunked_bodies(server):
    body = lambda host: json.dumps([point("tsdb_curl", 1, tags={"host": host})]).encode()
    assert curl(server, body("plain")) == 204
    assert curl(server, gzip.compress(body("gzip")), "-H", "Content-Encoding: gzip") == 204
    assert curl(server, body("chunked"), "-H", "Transfer-Encoding: chunked") == 204
    assert curl(server, body("put"), "-X", "PUT") == 204
    assert rows(server, "SELECT host FROM tsdb_curl ORDER BY host") == [["chunked"], ["gzip"], ["plain"], ["put"]]


def test_integers_are_exact_and_share_a_column_with_floats(server, put):
    assert put(point("tsdb_numbers", 9007199254740993)).status_code == 204
    assert put([point("tsdb_numbers", "42", T0 + 1), point("tsdb_numbers", 1.5, (T0 + 2) * 1000 + 250)]).status_code == 204
    stored = rows(server, 'SELECT * FROM tsdb_numbers ORDER BY ts')
    assert len(stored) == 3
    assert rows(server, "SELECT count(value) FROM tsdb_numbers") == [[3]]


def test_large_integers_are_exact(server, put):
    assert put(point("tsdb_large", 9007199254740993)).status_code == 204
    assert rows(server, "SELECT CAST(value AS BIGINT)::TEXT FROM tsdb_large") == [["9007199254740993"]]


def test_bad_points_are_named_and_the_good_ones_stored(server, put):
    bad = [
        point("tsdb_part", "NaN"),
        point("tsdb_part", 1, tags={}),
        point("tsdb_part", 1, T0 * 1_000_000),
        point("tsdb part", 1),
        point("tsdb_part", 1, tags={"host": "a:b"}),
        point("", 1),
    ]
    body = [point("tsdb_part", 1), *bad, point("tsdb_part", 2, T0 + 1)]
    reply = put(body, "/api/put?details")
    assert reply.status_code == 400
    answer = reply.json()
    assert (answer["failed"], answer["success"]) == (6, 2)
    assert [error["datapoint"] for error in answer["errors"]] == bad
    reasons = [error["error"] for error in answer["errors"]]
    assert reasons[:2] == ["Unable to parse value to a number", "Missing tags"]
    assert reasons[2].startswith("bad timestamp=") and "illegal character" in reasons[3] and "illegal character" in reasons[4]
    assert rows(server, "SELECT value FROM tsdb_part ORDER BY ts") == [[1], [2]]
    assert put(body, "/api/put?summary%20").json() == {"failed": 6, "success": 2}
    assert put(body).json()["error"]["code"] == 400


def test_parameters_count_by_their_presence(put):
    body = point("tsdb_flags", 1)
    assert put(body, "/api/put?summary").json() == {"failed": 0, "success": 1}
    assert put(body, "/api/put?sync&details=").json() == {"failed": 0, "success": 1, "errors": []}
    assert put(body, "/api/put?sync").status_code == 204


def test_a_series_has_up_to_64_tags(server, put):
    tags = lambda count: {f"t{n}": "x" for n in range(count)}
    assert put([point("tsdb_tags", 1, tags=tags(9)), point("tsdb_tags", 2, tags=tags(64))]).status_code == 204
    assert rows(server, "SELECT value FROM tsdb_tags ORDER BY value") == [[1], [2]]
    reply = put(point("tsdb_tags", 3, tags=tags(65)), "/api/put?details")
    assert reply.json()["errors"][0]["error"].startswith("Too many tags: 65 maximum allowed: 64")


def test_the_order_of_tags_does_not_matter(server, put):
    body = b'[{"tags":{"a":"1","b":"2"},"value":1,"metric":"tsdb_order","timestamp":%d},' % T0
    body += b'{"metric":"tsdb_order","timestamp":%d,"value":2,"tags":{"b":"2","a":"1"}}]' % T0
    assert put(body).status_code == 204
    assert rows(server, "SELECT value FROM tsdb_order") == [[2]]


def test_points_with_fields(server, put):
    body = {"metric": "tsdb_fields", "timestamp": T0, "fields": {"speed": 1.5, "gear": 3, "note": "x", "on": True}, "tags": {"car": "a b"}}
    assert put(body, "/api/mput").status_code == 204
    assert rows(server, "SELECT car, speed, gear, note, \"on\" FROM tsdb_fields") == [["a b", 1.5, 3, "x", True]]
    reply = put(body | {"fields": {}}, "/api/mput?details")
    assert reply.status_code == 400 and reply.json()["errors"][0]["error"] == "Missing fields"


def test_malformed_bodies_store_nothing(server, put):
    good = json.dumps(point("tsdb_broken", 1)).encode()
    for body in [b"", b"7", b"[" + good, b"[" + good + b",]", good + good, b"\xff"]:
        reply = put(body)
        assert reply.status_code == 400 and reply.json()["error"]["code"] == 400, body
    assert put(good, **{"Content-Encoding": "gzip"}).status_code == 400
    assert put(good, **{"Content-Encoding": "br"}).status_code == 415
    tables = rows(server, "SELECT table_name FROM information_schema.tables WHERE table_name = 'tsdb_broken'")
    assert tables == [] or rows(server, "SELECT count(*) FROM tsdb_broken") == [[0]]


def test_bodies_are_bounded(put):
    assert put(b" " * 25_000_001).status_code == 413
    bomb = gzip.compress(b" " * 100_000_000)
    reply = put(bomb, **{"Content-Encoding": "gzip"})
    assert reply.status_code == 413 and reply.json()["error"]["code"] == 413


def test_a_large_body_is_stored(server, put):
    body = [point("tsdb_many", n, T0 + n, {"host": f"h{n % 500}"}) for n in range(50_000)]
    assert put(body, "/api/put?summary").json() == {"failed": 0, "success": 50_000}
    assert rows(server, "SELECT count(*), sum(value) FROM tsdb_many") == [[50_000, 50_000 * 49_999 // 2]]


def test_without_a_login_nothing_is_written(server):
    reply = requests.post(server.url + "/api/put", json=point("tsdb_nobody", 1), timeout=60)
    assert reply.status_code == 401 and reply.json()["error"]["code"] == 401
    assert requests.get(server.url + "/api/tscount", timeout=60).status_code == 401
    assert requests.get(server.url + "/api/version", timeout=60).json()["version"].startswith("2.")


def test_an_open_server_takes_points_of_anybody_and_counts_series(own_server):
    server = own_server({"TACHO_TIME_SERIES_OPEN": "true"})
    count = lambda: requests.get(server.url + "/api/tscount", timeout=60).json()["tscount"]
    before = count()
    body = [point("tsdb_open", n, T0 + n, {"host": f"h{n % 3}"}) for n in range(9)]
    assert requests.post(server.url + "/api/put", json=body, timeout=60).status_code == 204
    assert count() == before + 3
    assert rows(server, "SELECT count(*) FROM tsdb_open") == [[9]]


def test_a_time_limit_of_a_write_is_read(server, put):
    assert put(point("tsdb_limit", 1), "/api/put?sync&sync_timeout=60000").status_code == 204
    assert put(point("tsdb_limit", 1), "/api/put?sync&sync_timeout=0&details").json()["success"] == 1
    refused = put(point("tsdb_limit", 1), "/api/put?sync_timeout=soon")
    assert refused.status_code == 400 and "sync_timeout" in refused.json()["error"]["message"]


def test_a_long_answer_is_packed_for_a_client_that_accepts_it(server, put):
    assert put([point("tsdb_packed", n, T0 + n) for n in range(1000)]).status_code == 204
    login = {"Authorization": f"Token {server.api.token}"}
    path = f"{server.url}/api/query?start={T0}&end={T0 + 1000}&m=sum:tsdb_packed"
    packed = requests.get(path, headers=login | {"Accept-Encoding": "gzip"}, timeout=60)
    plain = requests.get(path, headers=login | {"Accept-Encoding": "identity"}, timeout=60)
    assert packed.headers["Content-Encoding"] == "gzip" and "Content-Encoding" not in plain.headers
    assert packed.json() == plain.json() and len(plain.json()[0]["dps"]) == 1000
    curl_login = f"Authorization: Token {server.api.token}"
    done = subprocess.run(["curl", "-sS", "--compressed", "-g", "-H", curl_login, path], capture_output=True, timeout=60)
    assert json.loads(done.stdout) == plain.json()

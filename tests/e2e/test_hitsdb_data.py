"""HiTSDB's requests that look after data: time to live, deletions, and writes that ignore errors."""

import pytest
import requests

T0 = 1_768_464_000


@pytest.fixture
def hitsdb(server):
    """Sends a request with the administrator's login."""

    def send(method, path, body=None):
        login = {"Authorization": f"Token {server.api.token}"}
        return requests.request(method, server.url + path, json=body, headers=login, timeout=60)

    return send


@pytest.fixture
def write(hitsdb):
    """Writes points of a metric: of the hosts a and b, and of a with another tag, one a second."""

    def put(metric, seconds=3):
        tags = [{"host": "a"}, {"host": "b"}, {"host": "a", "disk": "sda"}]
        points = [
            {"metric": metric, "timestamp": T0 + n, "fields": {"used": n, "free": 9.5}, "tags": each} for n in range(seconds) for each in tags
        ]
        assert hitsdb("POST", "/api/mput", points).status_code == 204

    return put


def rows(server, query):
    reply = server.api.session.post(server.url + "/api/sql", json={"query": query, "format": "json"}, timeout=120)
    assert reply.ok, reply.text
    return reply.json()["rows"]


def test_each_metric_has_a_time_to_live(hitsdb, write):
    write("hit_ttl", 1)
    forever = {"val": 2_147_483_647}
    assert hitsdb("GET", "/api/ttl").json() == forever
    assert hitsdb("POST", "/api/ttl", {"metric": "hit_ttl", "val": 94_608_000}).json() == {"val": 94_608_000}
    assert hitsdb("GET", "/api/ttl?metric=hit_ttl").json() == {"val": 94_608_000}
    assert hitsdb("GET", "/api/ttl?metric=hit_other").json() == forever
    assert hitsdb("POST", "/api/ttl", {"metric": "hit_ttl", "val": 3_000_000_000}).json() == forever
    assert hitsdb("GET", "/api/ttl?metric=hit_ttl").json() == forever
    for body in [{"val": 5}, {"metric": "hit_ttl", "val": 0}, {"metric": "hit_ttl"}, {"metric": "hit_ttl", "val": 5, "x": 1}]:
        assert hitsdb("POST", "/api/ttl", body).status_code == 400, body
    assert "store.ttl_default" in hitsdb("POST", "/api/ttl", {"val": 5}).text
    assert hitsdb("POST", "/api/ttl", {"metric": "hit_nothing", "val": 5}).status_code == 404


def test_data_is_deleted_by_time_tags_and_fields(server, hitsdb, write):
    write("hit_data")
    count = lambda: rows(server, "SELECT count(*), count(used), count(free) FROM hit_data")[0]
    assert count() == [9, 9, 9]
    delete = lambda **body: hitsdb("POST", "/api/delete_data", {"metric": "hit_data", **body})
    assert delete(start=T0, end=T0, tags={"host": "b"}).json() == {"rows": 1}
    assert count() == [8, 8, 8]
    assert delete(start=T0 * 1000, end=(T0 + 1) * 1000, fields=["used"], tags={"host": "a"}).json() == {"rows": 4}
    assert count() == [8, 4, 8], "a series may have other tags"
    assert delete(start=T0).json() == {"rows": 8}
    assert count() == [0, 0, 0]
    for wrong in [{}, {"start": 2, "end": 1}, {"start": T0, "tags": {"rack": "x"}}, {"start": T0, "fields": ["x"]}, {"start": T0, "where": 1}]:
        reply = delete(**wrong)
        assert reply.status_code in (400, 404) and reply.json()["error"]["message"], wrong
    assert hitsdb("POST", "/api/delete_data", {"metric": "hit_nothing", "start": 1}).status_code == 404


def test_series_are_deleted_with_their_rows(server, hitsdb, write):
    write("hit_meta", 1)
    delete = lambda **body: hitsdb("POST", "/api/delete_meta", {"metric": "hit_meta", **body})
    left = lambda: rows(server, "SELECT host, disk FROM hit_meta ORDER BY host, disk")
    assert delete(tags={"host": "a"}).json() == {"rows": 1}
    assert left() == [["a", "sda"], ["b", None]], "only the series with exactly these tags"
    assert delete(tags={"host": "a"}, recursive=True, deleteData=True).json() == {"rows": 1}
    assert left() == [["b", None]]
    for refused in [{"deleteData": False}, {"fields": ["used"]}, {"x": 1}]:
        reply = delete(**refused)
        assert reply.status_code == 400 and next(iter(refused)) in reply.text, reply.text
    assert left() == [["b", None]]
    assert delete().json() == {"rows": 1}
    assert left() == []
    write("hit_meta", 1)
    assert len(left()) == 3, "series that report again are new ones"


def test_errors_can_be_ignored(server, hitsdb):
    points = [{"metric": "hit_ignore", "timestamp": T0, "value": value, "tags": {"host": "a"}} for value in (1, "x")]
    reply = hitsdb("POST", "/api/put?ignoreErrors", points)
    assert reply.status_code == 200
    answer = reply.json()
    assert (answer["failed"], answer["success"]) == (1, 1)
    assert answer["ignoredErrors"] == [{"datapoint": points[1], "error": "Unable to parse value to a number"}]
    fields = [{"metric": "hit_ignore_many", "timestamp": T0, "fields": {"a": 1}, "tags": {"host": "a"}}, {"metric": "hit_ignore_many"}]
    answer = hitsdb("POST", "/api/mput?ignoreErrors=false&details", fields).json()
    assert (answer["failed"], answer["success"], len(answer["ignoredErrors"])) == (1, 1, 1)
    assert rows(server, "SELECT value FROM hit_ignore") == [[1]]


def test_only_administrators_look_after_data(own_server):
    server = own_server({"TACHO_TIME_SERIES_OPEN": "true"})
    point = {"metric": "hit_open", "timestamp": T0, "value": 1, "tags": {"host": "a"}}
    assert requests.post(server.url + "/api/put", json=point, timeout=60).status_code == 204
    for path, body in [
        ("/api/ttl", {"metric": "hit_open", "val": 5}),
        ("/api/delete_data", {"metric": "hit_open", "start": 1}),
        ("/api/delete_meta", {"metric": "hit_open"}),
    ]:
        reply = requests.post(server.url + path, json=body, timeout=60)
        assert reply.status_code == 403 and reply.json()["error"]["code"] == 403, reply.text
    assert rows(server, "SELECT value FROM hit_open") == [[1]]

"""Annotations of OpenTSDB over HTTP."""

import pytest
import requests

T0 = 1_768_464_000


def tsuid(metric, **tags):
    """The text that names a series."""
    parts = [metric, *(part for name in sorted(tags) for part in (name, tags[name]))]
    return "".join(f"{len(part):04X}{part.encode().hex().upper()}" for part in parts)


@pytest.fixture
def notes(server):
    """Sends a request about annotations, with the administrator's login."""

    def send(method, path="/api/annotation", body=None, **params):
        login = {"Authorization": f"Token {server.api.token}"}
        return requests.request(method, server.url + path, json=body, params=params, headers=login, timeout=60)

    return send


def test_an_annotation_is_added_changed_replaced_and_deleted(notes):
    series = tsuid("ann_cpu", host="a")
    first = {"tsuid": series, "startTime": T0, "description": "d", "notes": "n", "custom": {"by": "ann", "level": 3}}
    stored = first | {"endTime": 0, "custom": {"by": "ann", "level": "3"}}
    reply = notes("POST", body=first)
    assert reply.status_code == 200 and reply.json() == stored, reply.text
    assert notes("GET", tsuid=series.lower(), start_time=T0 * 1000).json() == stored
    changed = notes("POST", body={"tsuid": series, "startTime": str(T0), "endTime": T0 + 60})
    assert changed.json() == stored | {"endTime": T0 + 60}
    assert notes("POST", body={"tsuid": series, "startTime": T0}).status_code == 304
    replaced = notes("PUT", tsuid=series, start_time=T0, description="e")
    assert replaced.json() == {"tsuid": series, "startTime": T0, "endTime": 0, "description": "e", "notes": ""}
    assert notes("GET", start_time=T0).status_code == 404, "that would be one of all series"
    for _ in range(2):
        assert notes("DELETE", tsuid=series, start_time=T0).status_code == 204
    missing = notes("GET", tsuid=series, start_time=T0)
    assert missing.status_code == 404 and missing.json()["error"]["message"] == "Unable to locate annotation in storage"


def test_global_annotations_are_listed_by_time(notes):
    bodies = [{"startTime": T0 + n, "description": f"g{n}"} for n in range(5)]
    reply = notes("POST", "/api/annotation/bulk", [*bodies, {"startTime": T0 + 9}])
    assert [one["description"] for one in reply.json()] == ["g0", "g1", "g2", "g3", "g4"]
    found = notes("GET", "/api/annotations", start_time=T0 + 1, end_time="2026/01/15-08:00:03")
    assert [one["description"] for one in found.json()] == ["g1", "g2", "g3"]
    assert all(one["tsuid"] == "" for one in found.json())
    assert notes("GET", "/api/annotations").status_code == 400
    replaced = notes("PUT", "/api/annotation/bulk", [{"startTime": T0, "notes": "n"}])
    assert replaced.json()[0]["description"] == ""


def test_a_deletion_of_many_counts_them(notes):
    one, other = tsuid("ann_many", host="1"), tsuid("ann_many", host="2")
    bodies = [{"tsuid": series, "startTime": T0 + n, "description": "d"} for series in (one, other, "") for n in range(300, 303)]
    assert len(notes("POST", "/api/annotation/bulk", bodies).json()) == 9
    asked = {"tsuids": [one, other], "global": False, "startTime": str(T0 + 301), "endTime": str(T0 + 302)}
    assert notes("DELETE", "/api/annotation/bulk", asked).json() == asked | {"totalDeleted": 4}
    gone = notes("DELETE", "/api/annotation/bulk", start_time=T0 + 300, end_time=T0 + 302, tsuids=f"{one},{other}", **{"global": "true"})
    assert gone.json()["totalDeleted"] == 5
    for wrong in [{"global": True}, {"startTime": "1"}, {"startTime": "2", "endTime": "1", "global": True}]:
        assert notes("DELETE", "/api/annotation/bulk", wrong).status_code == 400


def test_what_is_wrong_is_refused_with_the_reason(notes, server):
    cases = [
        ({"description": "d"}, "The start timestamp has not been set"),
        ({"startTime": T0, "tsuid": "0001", "description": "d"}, "TSUID"),
        ({"startTime": T0, "description": "x" * 20_000}, "bytes of an annotation"),
        ({"startTime": "soon", "description": "d"}, "Unable to parse the given JSON"),
    ]
    for body, reason in cases:
        reply = notes("POST", body=body)
        assert reply.status_code == 400 and reason in reply.json()["error"]["message"], reply.text
    many = notes("POST", "/api/annotation/bulk", [{"startTime": T0 + 400, "description": "d"}, {"startTime": T0 + 401, "tsuid": "zz", "notes": "n"}])
    assert many.status_code == 400 and notes("GET", start_time=T0 + 400).status_code == 404, "all or none"
    override = notes("GET", start_time=T0, method_override="delete")
    assert override.status_code == 400 and "method_override" in override.text
    assert requests.get(server.url + "/api/annotation", params={"start_time": T0}, timeout=60).status_code == 401


def test_annotations_survive_a_kill(own_server):
    server = own_server({"TACHO_TIME_SERIES_OPEN": "true"})
    body = {"startTime": T0, "description": "kept"}
    assert requests.post(server.url + "/api/annotation", json=body, timeout=60).status_code == 200
    server.kill()
    server = own_server({"TACHO_TIME_SERIES_OPEN": "true"})
    found = requests.get(server.url + "/api/annotations", params={"start_time": T0}, timeout=60)
    assert [one["description"] for one in found.json()] == ["kept"]


def test_queries_show_the_annotations_of_their_series_and_time(notes, server):
    login = {"Authorization": f"Token {server.api.token}"}
    points = [{"metric": "ann_shown", "timestamp": T0 + 500 + n, "value": n, "tags": {"host": host}} for n in range(3) for host in "ab"]
    assert requests.post(server.url + "/api/put", json=points, headers=login, timeout=60).status_code == 204
    series = {host: tsuid("ann_shown", host=host) for host in "ab"}
    wanted = [(series["a"], 502), (series["b"], 501), ("", 501)]
    outside = [(series["a"], 499), (series["b"], 503), ("", 499), (tsuid("ann_hidden", host="a"), 501)]
    bodies = [{"tsuid": of, "startTime": T0 + at, "description": f"{at}"} for of, at in wanted + outside]
    assert notes("POST", "/api/annotation/bulk", bodies).status_code == 200

    def query(**more):
        body = {"start": T0 + 500, "end": T0 + 502, "queries": [{"metric": "ann_shown", "aggregator": "sum"}], **more}
        reply = requests.post(server.url + "/api/query", json=body, headers=login, timeout=60)
        assert reply.status_code == 200, reply.text
        return reply.json()[0]

    shown = lambda answer, name: [(one["tsuid"], one["startTime"] - T0) for one in answer[name]]
    plain = query()
    assert shown(plain, "annotations") == [(series["b"], 501), (series["a"], 502)] and "globalAnnotations" not in plain
    every = query(globalAnnotations=True)
    assert shown(every, "globalAnnotations") == [("", 501)] and every["dps"] == plain["dps"]
    none = query(noAnnotations=True, globalAnnotations=True)
    assert "annotations" not in none and shown(none, "globalAnnotations") == [("", 501)]
    address = f"{server.url}/api/query?start={T0 + 500}&end={T0 + 502}&m=sum:ann_shown{{host=a}}&global_annotations"
    by_url = requests.get(address, headers=login, timeout=60).json()[0]
    assert shown(by_url, "annotations") == [(series["a"], 502)] and len(by_url["globalAnnotations"]) == 1


def test_an_acknowledged_annotation_survives_a_kill(own_server):
    server = own_server()
    login = lambda: {"Authorization": f"Bearer {server.api.token}"}
    sent = {"startTime": 1_369_141_261, "description": "stop", "notes": "before the kill"}
    reply = requests.post(f"{server.url}/api/annotation", json=sent, headers=login(), timeout=60)
    assert reply.status_code == 200, reply.text
    server.kill()
    server.start()
    found = requests.get(f"{server.url}/api/annotation?start_time=1369141261", headers=login(), timeout=60)
    assert found.status_code == 200 and found.json()["notes"] == sent["notes"], found.text

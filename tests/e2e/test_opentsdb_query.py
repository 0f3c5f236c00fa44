"""OpenTSDB's and HiTSDB's interface for readers: the calls of Grafana, every aggregator and option against a naive model, and the limits."""

import math
import random
import re
import socket
import time
from collections import Counter
from itertools import product

import pytest
import requests
from harness.opentsdb_model import Downsample, Rate, query
from harness.wait import until

T0 = 1_356_998_400  # 2013-01-01T00:00:00Z, a whole hour
AGGREGATORS = [
    "avg", "count", "dev", "diff", "ep50r3", "ep50r7", "ep75r3", "ep75r7", "ep90r3", "ep90r7", "ep95r3", "ep95r7", "ep999r3",
    "ep999r7", "ep99r3", "ep99r7", "first", "last", "max", "median", "mimmax", "mimmin", "min", "mult", "none", "p50", "p75", "p90",
    "p95", "p99", "p999", "pfsum", "squareSum", "sum", "zimsum",
]  # fmt: skip
HOSTS = ["a", "b", "c", "d"]


class Tsdb:
    """Requests with the administrator's session, or with the headers that are given."""

    def __init__(self, server, headers=None):
        self.url = server.url
        self.headers = {"Authorization": f"Bearer {server.api.token}"} if headers is None else headers

    def ask(self, method, path, status=200, **options):
        reply = requests.request(method, self.url + path, headers=self.headers, timeout=120, **options)
        assert reply.status_code == status, f"{method} {path}: {reply.status_code} {reply.text[:1000]}"
        return reply.json() if reply.content else None

    def get(self, path, params=None, status=200):
        return self.ask("GET", path, status, params=params)

    def post(self, path, body, status=200, params=None):
        return self.ask("POST", path, status, json=body, params=params)

    def put(self, metric, points, path="/api/put"):
        """Points: (host, milliseconds, value), or tags in place of a host."""
        tags = lambda host: {"host": host} if isinstance(host, str) else host
        body = [{"metric": metric, "timestamp": at, "value": value, "tags": tags(host)} for host, at, value in points]
        self.post(path, body, 204)

    def points(self, m, start, end, **params):
        """The points of each answer to a query, as lists."""
        params = {"start": f"{start}ms", "end": f"{end}ms", "m": m, "ms": "", "arrays": ""} | params
        return [[(at, number(value)) for at, value in answer["dps"]] for answer in self.get("/api/query", params)]


def number(value):
    """A value of an answer; NaN and infinity are texts."""
    return math.nan if value is None else float(value) if isinstance(value, str) else value


@pytest.fixture
def tsdb(server):
    return Tsdb(server)


def random_lines(seed, whole):
    """Lines of four hosts over three hours. They share some times, one begins late, one ends early, and all have gaps."""
    rnd = random.Random(seed)
    lines = []
    for number_of_host, _ in enumerate(HOSTS):
        first, last = (T0 + 5000 if number_of_host == 1 else T0), (T0 + 4000 if number_of_host == 2 else T0 + 10_800)
        times = sorted({rnd.randrange(first, last, 10) for _ in range(60)} | set(range(first, last, 1200)))
        times = [at for at in times if not T0 + 6000 <= at < T0 + 6600]
        value = lambda: rnd.randrange(-50, 1000) if whole else rnd.uniform(-50, 1000)
        lines.append([(at * 1000 + (rnd.randrange(1000) if not whole else 0), value()) for at in times])
    return lines


@pytest.fixture(scope="module")
def data(server):
    """The metrics `model.whole` and `model.float` with their lines."""
    found = {}
    for name, whole in [("model.whole", True), ("model.float", False)]:
        found[name] = random_lines(7, whole)
        points = [(host, at, value) for host, line in zip(HOSTS, found[name]) for at, value in line]
        Tsdb(server).put(name, points)
    return found


def check(tsdb, data, metric, aggregator, start, end, downsample=None, rate=None, zone="UTC"):
    """Compares an answer with the model's."""
    rate_text = None
    if rate:
        kind = "dropcounter" if rate.drop else "counter" if rate.counter else ""
        rate_text = f"rate{{{kind},{rate.maximum},{rate.reset}}}"
    text = ":".join(part for part in [aggregator, downsample, rate_text, metric] if part)
    spec = downsample and Downsample.parse(downsample, zone)
    groups = [[line] for line in data[metric]] if aggregator == "none" else [data[metric]]
    expected = [query(group, start, end, aggregator, spec, rate) for group in groups]
    got = tsdb.points(text, start, end, tz=zone)
    # A series without points is not an answer of its own.
    assert len(got) == len(expected), text
    for ours, theirs in zip(got, expected):
        assert [at for at, _ in ours] == [at for at, _ in theirs], text
        for (at, mine), (_, wanted) in zip(ours, theirs):
            same = math.isnan(wanted) if math.isnan(mine) else math.isclose(mine, wanted, rel_tol=1e-9, abs_tol=1e-9)
            assert same and isinstance(mine, float) == isinstance(wanted, float), f"{text} at {at}: {mine}, not {wanted}"


WINDOWS = [(T0 * 1000, (T0 + 10_800) * 1000), ((T0 + 1234) * 1000 + 567, (T0 + 7890) * 1000 + 123)]


@pytest.mark.parametrize("aggregator", AGGREGATORS)
def test_every_aggregator_over_series(tsdb, data, aggregator):
    for metric, (start, end) in product(data, WINDOWS):
        check(tsdb, data, metric, aggregator, start, end)
        check(tsdb, data, metric, aggregator, start, end, downsample="5m-avg")
        check(tsdb, data, metric, aggregator, start, end, downsample="10m-sum-nan")
        check(tsdb, data, metric, aggregator, start, end, rate=Rate())


@pytest.mark.parametrize("aggregator", [name for name in AGGREGATORS if name != "none"])
def test_every_aggregator_over_intervals(tsdb, data, aggregator):
    for metric, (start, end), fill in product(data, WINDOWS, ["", "-none", "-nan", "-null", "-zero", "-scalar#2.5"]):
        check(tsdb, data, metric, "sum", start, end, downsample=f"7m-{aggregator}{fill}")
    check(tsdb, data, "model.whole", "none", *WINDOWS[1], downsample=f"0all-{aggregator}")


@pytest.mark.parametrize("interval", ["90000ms", "45s", "1m", "20m", "1h", "2h", "1d", "1w", "1n", "1y", "0all"])
def test_every_unit_of_an_interval(tsdb, data, interval):
    for metric, (start, end) in product(data, WINDOWS):
        check(tsdb, data, metric, "sum", start, end, downsample=f"{interval}-avg")
        check(tsdb, data, metric, "max", start, end, downsample=f"{interval}-count-zero" if interval != "0all" else "0all-count")


@pytest.mark.parametrize("rate", [Rate(), Rate(counter=True), Rate(counter=True, maximum=1000), Rate(counter=True, maximum=1000, reset=3), Rate(counter=True, drop=True)], ids=str)
def test_every_option_of_a_rate(tsdb, data, rate):
    for metric, (start, end), aggregator in product(data, WINDOWS, ["sum", "none", "zimsum", "max"]):
        check(tsdb, data, metric, aggregator, start, end, rate=rate)
        check(tsdb, data, metric, aggregator, start, end, rate=rate, downsample="10m-max")


@pytest.fixture(scope="module")
def year(server):
    """One line of a point every five hours, over fourteen months."""
    line = [((T0 + n * 18_000) * 1000, n % 97) for n in range(2100)]
    Tsdb(server).put("model.year", [("a", at, value) for at, value in line])
    return {"model.year": [line]}


@pytest.mark.parametrize("zone", ["UTC", "Asia/Shanghai", "America/New_York", "Europe/Berlin"])
@pytest.mark.parametrize("unit", ["d", "w", "n", "y"])
def test_intervals_of_a_calendar(tsdb, year, unit, zone):
    # The window begins long after the first point, where an interval begins, so the read has only whole intervals.
    spec = Downsample.parse(f"1{unit}c-sum", zone)
    first = {"d": 40, "w": 10, "n": 2, "y": 0}[unit]
    start = query(year["model.year"], 0, 2_000_000_000_000, "sum", spec)[first][0]
    end = (T0 + 380 * 86_400) * 1000
    expected = [point for point in query(year["model.year"], 0, 2_000_000_000_000, "sum", spec) if start <= point[0] <= end]
    got = tsdb.points(f"sum:1{unit}c-sum:model.year", start, end, tz=zone)[0]
    # At the end the answer may have only a part of an interval: the read ends earlier.
    assert got[:-1] == expected[: len(got) - 1] and len(expected) - len(got) in (0, 1)
    assert len(got) > {"d": 300, "w": 40, "n": 8, "y": 0}[unit]


def test_use_calendar_holds_for_all_sub_queries(tsdb, year):
    body = {
        "start": "2013/03/01-00:00:00", "end": "2013/05/01-00:00:00", "timezone": "Asia/Shanghai", "useCalendar": True, "msResolution": True,
        "queries": [{"aggregator": "sum", "metric": "model.year", "downsample": "1n-count"}],
    }  # fmt: skip
    by_flag = tsdb.post("/api/query", body)
    body["queries"][0]["downsample"] = "1nc-count"
    del body["useCalendar"]
    assert by_flag == tsdb.post("/api/query", body)
    assert list(by_flag[0]["dps"])[0] == "1362067200000", "midnight of March 1 in Shanghai"


# What Grafana asks


@pytest.fixture(scope="module")
def grafana(server):
    """Points of Grafana's panel: `cpu.load` of three hosts in two zones."""
    tags = [{"host": "web01", "zone": "x"}, {"host": "web02", "zone": "y"}, {"host": "db01", "zone": "x"}]
    points = [(own, (T0 + second) * 1000, number + second) for number, own in enumerate(tags) for second in range(0, 300, 30)]
    Tsdb(server).put("cpu.load", points)
    return Tsdb(server)


def test_grafana_tests_its_data_source(grafana):
    assert "cpu.load" in grafana.get("/api/suggest", {"type": "metrics", "q": "cpu", "max": 1000})


def test_grafana_draws_a_panel(grafana):
    target = {"metric": "cpu.load", "aggregator": "sum", "downsample": "1m-avg", "tags": {"host": "web01|db01"}}
    body = {"start": T0 * 1000, "end": (T0 + 119) * 1000, "queries": [target], "msResolution": False, "globalAnnotations": True}
    assert grafana.post("/api/query", body) == [
        {"metric": "cpu.load", "tags": {"host": "db01", "zone": "x"}, "aggregateTags": [], "dps": {str(T0): 17.0, str(T0 + 60): 77.0}},
        {"metric": "cpu.load", "tags": {"host": "web01", "zone": "x"}, "aggregateTags": [], "dps": {str(T0): 15.0, str(T0 + 60): 75.0}},
    ]


def test_grafana_draws_a_panel_of_version_2_3_with_filters(grafana):
    filters = [{"type": "wildcard", "tagk": "host", "filter": "web*", "groupBy": False}]
    options = {"counter": True, "dropResets": True}
    target = {"metric": "cpu.load", "aggregator": "avg", "rate": True, "rateOptions": options, "filters": filters, "explicitTags": False}
    other = {"metric": "cpu.load", "aggregator": "max", "downsample": "5m-max-zero", "filters": [filters[0] | {"groupBy": True}]}
    body = {"start": f"{T0}", "end": (T0 + 299) * 1000, "queries": [target, other], "msResolution": True, "globalAnnotations": True, "showQuery": True}
    rate, *maxima = grafana.post("/api/query", body)
    assert (rate["tags"], rate["aggregateTags"], rate["query"]["index"]) == ({}, ["host", "zone"], 0)
    assert rate["dps"] == {str((T0 + second) * 1000): 1.0 for second in range(30, 300, 30)}
    assert [(one["tags"]["host"], one["query"]["index"], one["dps"][str(T0 * 1000)]) for one in maxima] == [("web01", 1, 270.0), ("web02", 1, 271.0)]
    shown = maxima[0]["query"]
    assert (shown["metric"], shown["aggregator"], shown["downsample"]) == ("cpu.load", "max", "5m-max-zero")
    assert shown["filters"] == [{"tagk": "host", "filter": "web*", "group_by": True, "type": "wildcard"}]


def test_grafanas_server_asks_for_alerts(grafana):
    target = {"metric": "cpu.load", "aggregator": "sum", "downsample": "1m-avg", "rate": True, "rateOptions": {"counter": True, "counterMax": 1e6, "resetValue": 0}}
    answer = grafana.post("/api/query", {"start": T0 * 1000, "end": (T0 + 299) * 1000, "queries": [target]})
    assert list(answer[0]["dps"].values()) == [3.0] * 4


def test_grafana_fills_its_editor_and_its_variables(grafana):
    assert grafana.get("/api/aggregators") == AGGREGATORS
    filters = grafana.get("/api/config/filters")
    assert sorted(filters) == ["iliteral_or", "iwildcard", "literal_or", "not_iliteral_or", "not_key", "not_literal_or", "regexp", "wildcard"]
    assert all(set(entry) == {"description", "examples"} for entry in filters.values())
    found = grafana.get("/api/search/lookup", {"m": "cpu.load", "limit": 1000})["results"]
    assert sorted({tag for series in found for tag in series["tags"]}) == ["host", "zone"]
    found = grafana.get("/api/search/lookup", {"m": "cpu.load{host=*,zone=x}", "limit": 1000})
    assert sorted(series["tags"]["host"] for series in found["results"]) == ["db01", "web01"]
    assert (found["type"], found["metric"], found["totalResults"], found["startIndex"]) == ("LOOKUP", "cpu.load", 2, 0)
    assert "host" in grafana.get("/api/suggest", {"type": "tagk", "q": "ho", "max": 1000})
    assert "web01" in grafana.get("/api/suggest", {"type": "tagv", "q": "web0", "max": 1000})


# The other requests


def test_a_query_says_more_when_asked(grafana):
    m = "sum:cpu.load{zone=x}"
    params = {"start": T0, "end": T0 + 299, "m": m, "show_tsuids": "", "show_stats": "", "show_summary": "", "show_query": ""}
    answer, summary = grafana.get("/api/query", params)
    assert len(answer["tsuids"]) == 2 and answer["stats"] == {"emittedDPs": 10, "aggregatedSeries": 2}
    assert summary["statsSummary"]["emittedDPs"] == 10 and summary["statsSummary"]["totalTime"] > 0
    by_tsuid = grafana.get("/api/query", {"start": T0, "end": T0 + 299, "tsuid": "sum:" + ",".join(answer["tsuids"])})
    assert by_tsuid[0]["dps"] == answer["dps"]
    body = {"start": T0, "end": T0 + 299, "showTSUIDs": True, "queries": [{"aggregator": "sum", "tsuids": answer["tsuids"]}]}
    assert grafana.post("/api/query", body, params={"arrays": ""})[0]["dps"] == [[int(at), value] for at, value in answer["dps"].items()]


@pytest.mark.parametrize(
    "filters, hosts",
    [
        ("{host=web01}", ["web01"]),
        ("{host=literal_or(web01|db01)}", ["db01", "web01"]),
        ("{}{host=iliteral_or(WEB01)}", ["web01"]),
        ("{}{host=not_literal_or(web01)}", ["db01", "web02"]),
        ("{}{host=not_iliteral_or(WEB01|DB01)}", ["web02"]),
        ("{host=wildcard(*b01)}", ["db01", "web01"]),
        ("{host=iwildcard(WEB*)}", ["web01", "web02"]),
        ("{host=regexp(^(web|db)01$)}", ["db01", "web01"]),
        ("{}{rack=not_key()}", ["db01", "web01", "web02"]),
        ("{zone=*}{host=w*}", ["web01", "web02"]),
    ],
)
def test_every_type_of_filter(grafana, filters, hosts):
    found = grafana.get("/api/query", {"start": T0, "end": T0 + 299, "m": "none:cpu.load" + filters})
    assert sorted(answer["tags"]["host"] for answer in found) == hosts


def test_explicit_tags_and_duplicate_sub_queries(grafana):
    ask = lambda *m: grafana.get("/api/query", {"start": T0, "end": T0 + 299, "m": list(m)})
    assert ask("sum:explicit_tags:cpu.load{host=*}") == []
    assert len(ask("sum:explicit_tags:cpu.load{host=*,zone=*}")) == 3
    assert len(ask("sum:cpu.load", "sum:cpu.load", "max:cpu.load")) == 2


def test_values_missing_and_not_finite(tsdb):
    tsdb.put("tsdb.gap", [("a", T0 * 1000, 1), ("a", (T0 + 120) * 1000, 3)])
    dps = lambda fill: tsdb.get("/api/query", {"start": T0, "end": T0 + 179, "m": f"sum:1m-sum-{fill}:tsdb.gap"})[0]["dps"]
    assert dps("null")[str(T0 + 60)] is None
    assert dps("nan")[str(T0 + 60)] == "NaN"
    tsdb.put("tsdb.large", [("a", T0 * 1000, 1e200)])
    answer = tsdb.get("/api/query", {"start": T0, "end": T0 + 9, "m": "squareSum:tsdb.large"})
    assert answer[0]["dps"] == {str(T0): "Infinity"}


def test_several_points_of_a_second(tsdb):
    tsdb.put("tsdb.second", [("a", T0 * 1000 + millis, millis) for millis in (0, 400, 900)])
    seconds = tsdb.get("/api/query", {"start": T0, "end": T0 + 1, "m": "sum:tsdb.second"})[0]["dps"]
    assert seconds == {str(T0): 900}
    assert tsdb.points("sum:tsdb.second", T0 * 1000, T0 * 1000 + 500) == [[(T0 * 1000, 0), (T0 * 1000 + 400, 400)]]


def test_hitsdbs_page_and_condition(tsdb):
    tsdb.put("tsdb.page", [("a", (T0 + n) * 1000, n) for n in range(10)])
    sub = {"aggregator": "sum", "metric": "tsdb.page", "dpValue": ">=3", "offset": 2, "limit": 4}
    answer = tsdb.post("/api/query", {"start": T0, "end": T0 + 20, "queries": [sub]})
    assert list(answer[0]["dps"].values()) == [5, 6, 7, 8]
    refused = tsdb.post("/api/query", {"start": T0, "end": T0 + 20, "queries": [sub | {"dpValue": "3"}]}, 400)
    assert "not a condition" in refused["error"]["message"]


def test_errors_have_opentsdbs_shape(tsdb):
    unknown = tsdb.get("/api/query", {"start": T0, "m": "sum:tsdb.unknown"}, 400)["error"]
    assert (unknown["code"], unknown["message"]) == (400, "No such name for 'metrics': 'tsdb.unknown'")
    assert "/api/suggest" in unknown["details"]
    body = {"start": T0, "queries": [{"aggregator": "sum", "metric": "tsdb.unknown"}]}
    assert tsdb.post("/api/query", body, 400)["error"] == unknown
    for params, part in [
        ({"m": "sum:m"}, "Missing start time"),
        ({"start": T0}, "Missing sub queries"),
        ({"start": T0, "m": "fast:m"}, "No such aggregation function: fast"),
        ({"start": T0, "end": T0 - 1, "m": "sum:m"}, "End time"),
        ({"start": "yesterday", "m": "sum:m"}, "yesterday"),
        ({"start": T0, "m": "sum:1x-avg:m"}, "1x"),
        ({"start": T0, "m": "sum:m", "exp": "x"}, "'exp' is not supported"),
    ]:
        assert part in tsdb.get("/api/query", params, 400)["error"]["message"], params
    broken = tsdb.ask("POST", "/api/query", 400, data=b"{")["error"]
    assert broken["message"] == "Unable to parse the given JSON" and broken["details"]
    assert tsdb.get("/api/search/lookup", {"m": "tsdb.unknown"}, 404)["error"]["code"] == 404
    assert tsdb.ask("POST", "/api/query", 413, data=b" " * 2_000_000)["error"]["code"] == 413


def test_an_empty_range_is_not_an_error(grafana):
    assert grafana.get("/api/query", {"start": 1000, "end": 2000, "m": "sum:cpu.load"}) == []
    assert grafana.get("/api/query", {"start": T0, "m": "sum:cpu.load{host=nobody}"}) == []
    assert grafana.get("/api/query", {"start": T0, "m": "sum:cpu.load{nothing=*}"}) == []


def test_last_points(grafana, server):
    last = grafana.get("/api/query/last", {"timeseries": "cpu.load{zone=x}", "resolve": "", "back_scan": 0})
    assert [(point["tags"]["host"], point["timestamp"], point["value"]) for point in last] == [
        ("db01", (T0 + 270) * 1000, "272"), ("web01", (T0 + 270) * 1000, "270"),
    ]  # fmt: skip
    body = {"queries": [{"tsuids": [last[0]["tsuid"]]}, {"metric": "cpu.load", "tags": {"host": "web02"}}], "resolveNames": True, "backScan": 0}
    assert [point["tags"]["host"] for point in grafana.post("/api/query/last", body)] == ["db01", "web02"]
    assert grafana.post("/api/query/last", body | {"backScan": 24}) == [], "the points are older than a day"
    assert "tsdb.unknown" in grafana.get("/api/query/last", {"timeseries": "tsdb.unknown"}, 400)["error"]["message"]
    assert "mlast" in grafana.post("/api/query/last", {"queries": [{"metric": "cpu.load", "fields": ["x"]}]}, 400)["error"]["message"]
    assert grafana.post("/api/query/last", {}, 400)["error"]["message"] == "Missing sub queries"


def test_lists_of_names(grafana):
    assert grafana.post("/api/suggest", {"type": "metrics", "q": "cpu.lo", "max": "1"}) == ["cpu.load"]
    assert grafana.post("/api/suggest", {"type": "tagk", "metric": "cpu.load"}) == ["host", "zone"]
    assert grafana.post("/api/suggest", {"type": "tagv", "metric": "cpu.load", "q": "web"}) == ["web01", "web02"]
    assert grafana.post("/api/suggest", {"type": "field", "metric": "cpu.load"}) == ["value"]
    assert "tree" in grafana.get("/api/suggest", {"type": "tree"}, 400)["error"]["message"]
    body = {"metric": "cpu.load", "tags": [{"key": "zone", "value": "x"}, {"key": "*", "value": "db01"}], "limit": 5}
    found = grafana.post("/api/search/lookup", body)
    assert [series["tags"] for series in found["results"]] == [{"host": "db01", "zone": "x"}]
    assert found["results"][0]["metric"] == "cpu.load" and found["results"][0]["tsuid"]
    assert len(grafana.get("/api/search/lookup", {"m": "cpu.load", "limit": 2})["results"]) == 2
    assert grafana.get("/api/search/lookup", {"m": "{host=web02}"})["results"][0]["tags"]["host"] == "web02"
    assert grafana.post("/api/dump_meta", {"metric": "cpu.load", "tagkey": "host", "tagvalueprefix": "web", "max": 9}) == [{"host": "web01"}, {"host": "web02"}]
    assert grafana.post("/api/dump_meta", {"tagkey": "host", "tagvalueprefix": "db01", "max": 9, "dump_metric": True}) == ["cpu.load"]


def test_what_the_server_says_about_itself(tsdb):
    assert tsdb.post("/api/version", None) == tsdb.get("/api/version"), "HiTSDB's client sends POST"
    settings = tsdb.get("/api/config")
    assert settings["tsd.mode"] == "rw" and all(isinstance(value, str) for value in settings.values())
    stats = tsdb.get("/api/stats")
    assert stats and all(set(point) == {"metric", "timestamp", "value", "tags"} for point in stats)
    assert any(point["tags"].get("door") == "http" for point in stats), "labels are tags"
    assert tsdb.get("/api/dropcaches") == {"status": "200", "message": "Caches dropped"}
    assert tsdb.post("/api/uid/assign", {"metric": ["x"]}, 400)["error"]["message"] == "This server has no UIDs"


# Deletion


def test_a_query_deletes_what_it_reads(tsdb):
    points = [(host, (T0 + n) * 1000, n) for host in "ab" for n in range(10)]
    tsdb.put("tsdb.delete", points)
    left = lambda: Counter({answer["tags"]["host"]: len(answer["dps"]) for answer in tsdb.get("/api/query", {"start": T0, "m": "none:tsdb.delete"})})
    body = {"start": T0 + 2, "end": T0 + 4, "delete": True, "queries": [{"aggregator": "sum", "metric": "tsdb.delete", "tags": {"host": "a"}}]}
    assert list(tsdb.post("/api/query", body)[0]["dps"].values()) == [2, 3, 4], "the answer has what is deleted"
    assert left() == {"a": 7, "b": 10}
    # As in OpenTSDB, a series with points in the rest of the hour is an answer without points.
    assert tsdb.post("/api/query", body)[0]["dps"] == {}
    params = {"start": T0 + 8, "end": T0 + 100, "m": "sum:tsdb.delete"}
    assert tsdb.ask("DELETE", "/api/query", params=params)[0]["dps"] == {str(T0 + 8): 16, str(T0 + 9): 18}
    assert left() == {"a": 5, "b": 8}
    tsdb.ask("DELETE", "/api/query", params={"start": T0, "m": "sum:tsdb.delete{nothing=*}"})
    tsdb.ask("DELETE", "/api/query", 400, params={"start": T0, "m": "sum:tsdb.unknown"})
    assert left() == {"a": 5, "b": 8}
    tsuid = tsdb.get("/api/search/lookup", {"m": "tsdb.delete{host=b}"})["results"][0]["tsuid"]
    tsdb.ask("DELETE", "/api/query", params={"start": T0, "tsuid": f"sum:{tsuid}"})
    assert left() == {"a": 5}


def test_a_deletion_of_one_field_leaves_the_others(tsdb):
    point = {"metric": "tsdb.fields", "timestamp": T0, "fields": {"speed": 1.5, "gear": 3}, "tags": {"host": "a"}}
    tsdb.post("/api/mput", point, 204)
    assert tsdb.ask("DELETE", "/api/query", params={"start": T0, "m": "sum:tsdb.fields.speed"})[0]["dps"] == {str(T0): 1.5}
    assert tsdb.get("/api/query", {"start": T0, "m": "sum:tsdb.fields.speed"}) == []
    assert tsdb.get("/api/query", {"start": T0, "m": "sum:tsdb.fields.gear"})[0]["dps"] == {str(T0): 3}


# HiTSDB's fields


def test_queries_of_several_fields(tsdb):
    points = [("a", 0, {"speed": 1.5, "gear": 1, "note": "go", "on": True}), ("a", 60, {"speed": 2.5}), ("b", 0, {"speed": 10.0, "gear": 5})]
    body = [{"metric": "wind", "timestamp": T0 + second, "fields": fields, "tags": {"car": car}} for car, second, fields in points]
    tsdb.post("/api/mput", body, 204)
    ask = lambda sub, status=200: tsdb.post("/api/mquery", {"start": T0, "end": T0 + 99, "queries": [{"metric": "wind"} | sub]}, status)
    raw = sorted(ask({"fields": [{"field": "*", "aggregator": "none"}]}), key=lambda answer: answer["tags"]["car"])
    assert raw == [
        {"metric": "wind", "tags": {"car": "a"}, "aggregatedTags": [], "columns": ["timestamp", "gear", "note", "on", "speed"],
         "values": [[T0, 1, "go", True, 1.5], [T0 + 60, None, None, None, 2.5]]},
        {"metric": "wind", "tags": {"car": "b"}, "aggregatedTags": [], "columns": ["timestamp", "gear", "note", "on", "speed"],
         "values": [[T0, 5, None, None, 10.0]]},
    ]  # fmt: skip
    fields = [{"field": "speed", "aggregator": "sum", "downsample": "1m-avg", "alias": "v"}, {"field": "gear", "aggregator": "max", "downsample": "1m-max"}]
    assert ask({"fields": fields}) == [
        {"metric": "wind", "tags": {}, "aggregatedTags": ["car"], "columns": ["timestamp", "v", "gear"], "values": [[T0, 11.5, 5.0], [T0 + 60, 2.5, None]]}
    ]
    assert [answer["tags"] for answer in ask({"fields": fields, "tags": {"car": "*"}})] == [{"car": "a"}, {"car": "b"}]
    assert ask({"fields": fields, "offset": 1})[0]["values"] == [[T0 + 60, 2.5, None]]
    assert "no field 'colour'" in ask({"fields": [{"field": "colour", "aggregator": "sum"}]}, 400)["error"]["message"]
    assert "Missing fields" in ask({}, 400)["error"]["message"]
    assert "'delta' is not supported" in ask({"fields": [{"field": "speed", "delta": True}]}, 400)["error"]["message"]
    last = tsdb.post("/api/query/mlast", {"msResolution": True, "tupleFormat": True, "queries": [{"metric": "wind", "fields": ["speed", "note"], "tags": {"car": "a"}}]})
    at = T0 * 1000
    assert last == [{"metric": "wind", "tags": {"car": "a"}, "aggregatedTags": [], "columns": ["timestamp", "speed", "note"],
                     "values": [[at + 60_000, 2.5, None], [at, None, "go"]]}]  # fmt: skip


# Permissions and limits


READS = [
    ("GET", f"/api/query?start={T0}&m=sum:secret"),
    ("POST", "/api/query"),
    ("DELETE", f"/api/query?start={T0}&m=sum:secret"),
    ("GET", "/api/query/last?timeseries=secret"),
    ("POST", "/api/query/last"),
    ("GET", "/api/suggest?type=metrics"),
    ("POST", "/api/suggest"),
    ("GET", "/api/search/lookup?m=secret"),
    ("POST", "/api/search/lookup"),
    ("POST", "/api/mquery"),
    ("POST", "/api/query/mlast"),
    ("POST", "/api/dump_meta"),
    ("GET", "/api/config"),
    ("GET", "/api/stats"),
    ("GET", "/api/dropcaches"),
]


def test_without_a_login_nothing_is_read(server):
    for method, path in READS:
        reply = requests.request(method, server.url + path, json={} if method == "POST" else None, timeout=60)
        assert reply.status_code == 401 and reply.json()["error"]["code"] == 401, f"{method} {path}"
    for path in ["/api/aggregators", "/api/config/filters"]:
        assert requests.get(server.url + path, timeout=60).ok


def key_of(server, role):
    body = {"login": "admin@tachograph.local", "name": f"tsdb {role}", "role": role}
    return {"Authorization": f"Token {server.api.post('/api/tacho/api-keys', body)['key']}"}


def test_only_who_may_delete_data_deletes(server, tsdb):
    tsdb.put("tsdb.kept", [("a", T0 * 1000, 1)])
    for role in ["viewer", "operator"]:
        other = Tsdb(server, key_of(server, role))
        assert other.get("/api/query", {"start": T0, "m": "sum:tsdb.kept"})[0]["dps"] == {str(T0): 1}
        assert other.ask("DELETE", "/api/query", 403, params={"start": T0, "m": "sum:tsdb.kept"})["error"]["code"] == 403
        body = {"start": T0, "delete": True, "queries": [{"aggregator": "sum", "metric": "tsdb.kept"}]}
        assert other.post("/api/query", body, 403)["error"]["code"] == 403
    assert tsdb.get("/api/query", {"start": T0, "m": "sum:tsdb.kept"})[0]["dps"] == {str(T0): 1}


def test_a_customers_user_sees_only_the_series_of_the_customers_devices(server):
    api = server.api
    customer = api.post("/api/customer", {"title": "Tsdb Ltd"})["id"]["id"]
    devices = {name: api.post("/api/device", {"name": name})["id"]["id"] for name in ("tsdb-mine", "tsdb-other")}
    api.post(f"/api/customer/{customer}/device/{devices['tsdb-mine']}", {})
    user = {"email": "eve@tsdb.example", "authority": "CUSTOMER_USER", "customerId": {"entityType": "CUSTOMER", "id": customer}}
    made = api.session.post(f"{server.url}/api/user?sendActivationMail=false", json=user, timeout=60).json()
    link = api.session.get(f"{server.url}/api/user/{made['id']['id']}/activationLink", timeout=60).text
    body = {"activateToken": link.split("activateToken=")[1].strip('"'), "password": "a long password"}
    assert requests.post(f"{server.url}/api/noauth/activate", json=body, timeout=60).ok
    points = [({"device": name}, T0 * 1000, value) for value, name in enumerate(devices)]
    Tsdb(server).put("tsdb.devices", [*points, ({"host": "a"}, T0 * 1000, 5)])
    eve = {"u": "eve@tsdb.example", "p": "a long password"}
    nobody = Tsdb(server, {})
    found = nobody.get("/api/query", {"start": T0, "m": "none:tsdb.devices"} | eve)
    assert [answer["tags"] for answer in found] == [{"device": "tsdb-mine"}]
    assert nobody.get("/api/query", {"start": T0, "m": "none:tsdb.devices{device=tsdb-other}"} | eve) == []
    tsuid = Tsdb(server).get("/api/search/lookup", {"m": "tsdb.devices{host=a}"})["results"][0]["tsuid"]
    assert nobody.get("/api/query", {"start": T0, "tsuid": f"sum:{tsuid}"} | eve) == []
    assert [series["tags"] for series in nobody.get("/api/search/lookup", {"m": "tsdb.devices"} | eve)["results"]] == [{"device": "tsdb-mine"}]
    assert [point["value"] for point in nobody.get("/api/query/last", {"timeseries": "tsdb.devices"} | eve)] == ["0"]
    assert nobody.get("/api/suggest", {"type": "tagv", "q": "tsdb-"} | eve) == ["tsdb-mine"]
    nobody.ask("DELETE", "/api/query", 403, params={"start": T0, "m": "none:tsdb.devices"} | eve)


def test_tenants_do_not_see_each_other(server, tsdb):
    tsdb.put("tsdb.tenant", [("a", T0 * 1000, 1)])
    made = server.api.post("/api/tacho/tenants", {"name": "Tsdb tenant", "login": "boss@tsdb.example", "password": "a long password"})
    assert made is None or isinstance(made, dict)
    boss = {"u": "boss@tsdb.example", "p": "a long password"}
    other = Tsdb(server, {})
    assert "tsdb.tenant" in other.get("/api/query", {"start": T0, "m": "sum:tsdb.tenant"} | boss, 400)["error"]["message"]
    assert other.get("/api/suggest", {"type": "metrics", "q": "tsdb"} | boss) == []


def test_an_exploding_regular_expression_is_harmless(tsdb):
    tsdb.put("tsdb.regexp", [("a" * 200, T0 * 1000, 1)])
    began = time.monotonic()
    for pattern in ["(a*)*b", "(a|aa)+$", "^(([a-z])+.)+[A-Z]([a-z])+$"]:
        assert isinstance(tsdb.get("/api/query", {"start": T0, "m": f"sum:tsdb.regexp{{}}{{host=regexp({pattern})}}"}), list)
    assert time.monotonic() - began < 30, "a pattern that explodes takes years"
    large = "regexp(((a{1,1000}){1,1000}){1,1000})"
    assert "regular expression" in tsdb.get("/api/query", {"start": T0, "m": f"sum:tsdb.regexp{{}}{{host={large}}}"}, 400)["error"]["message"]


def test_a_query_of_everything_is_bounded(own_server):
    # A statement may allocate twice this, and the read cache.
    server = own_server({"TACHO_QUERY_MEMORY_BYTES_MAX": str(8 * 1024 * 1024), "TACHO_STORE_READ_CACHE_BYTES_MAX": str(1024 * 1024)})
    tsdb = Tsdb(server)
    for host in range(20):
        tsdb.put("tsdb.much", [(f"h{host}", (T0 + second * 10) * 1000, second) for second in range(50_000)])
    refused = tsdb.get("/api/query", {"start": T0, "m": "sum:tsdb.much"}, 413)["error"]
    assert refused["code"] == 413 and "Ask for less time" in refused["details"], refused
    filled = tsdb.get("/api/query", {"start": 0, "m": "sum:1ms-sum-zero:tsdb.much{host=h0}"}, 413)["error"]
    assert filled["code"] == 413, filled
    few = tsdb.get("/api/query", {"start": T0, "m": "sum:1d-count:tsdb.much"})
    assert sum(few[0]["dps"].values()) == 1_000_000, "the server continues"


LONG = {"start": T0, "end": T0 + 475_200, "m": [f"{name}:1s-{name}-zero:tsdb.long" for name in AGGREGATORS if name != "none"]}


@pytest.fixture
def long_query(own_server):
    """A server with few points, and a query that fills millions of seconds between them for each of its sub queries."""

    def start(env):
        server = own_server(env)
        Tsdb(server).put("tsdb.long", [(f"h{host}", (T0 + second) * 1000, 1) for host in range(20) for second in (0, 475_000)])
        return server

    return start


def test_a_query_ends_when_its_time_is_over(long_query):
    server = long_query({"TACHO_QUERY_TIMEOUT_S": "1"})
    headers = {"Authorization": f"Bearer {server.api.token}"}
    try:
        reply = requests.get(server.url + "/api/query", params=LONG, headers=headers, timeout=120)
        assert reply.status_code == 413 and "1 s" in reply.json()["error"]["message"], reply.text[:1000]
    except requests.exceptions.ChunkedEncodingError:
        pass  # the first sub queries were done: the answer is cut off
    assert Tsdb(server).get("/api/query", {"start": T0, "m": "sum:1d-count:tsdb.long"})[0]["dps"]


def test_a_query_ends_when_its_client_leaves(long_query):
    server = long_query({"TACHO_QUERY_TIMEOUT_S": "600"})
    running = lambda: int(re.search(r"^\S*sql_running (\d+)", server.api.metrics(), re.MULTILINE)[1])
    with socket.create_connection(("127.0.0.1", server.http)) as client:
        path = requests.Request("GET", server.url + "/api/query", params=LONG).prepare().path_url
        client.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.api.token}\r\n\r\n".encode())
        until(lambda: running() == 1, "the query to run")
    until(lambda: running() == 0, "the query to end", seconds=30)


def test_an_open_server_answers_anybody_but_deletes_nothing(own_server):
    server = own_server({"TACHO_TIME_SERIES_OPEN": "true"})
    anybody = Tsdb(server, {})
    anybody.put("tsdb.open", [("a", T0 * 1000, 1)])
    assert anybody.get("/api/query", {"start": T0, "m": "sum:tsdb.open"})[0]["dps"] == {str(T0): 1}
    anybody.ask("DELETE", "/api/query", 403, params={"start": T0, "m": "sum:tsdb.open"})


def test_integers_stay_exact_beside_a_fraction_in_another_series(tsdb):
    """A key with integers and fractions is one column of fractions; the integers are kept as they came."""
    large = 2**53 + 1
    values = [("a", 0, large), ("b", 0, 1.5), ("a", 10, large), ("c", 20, 2), ("d", 20, 7), ("d", 30, 7.5)]
    tsdb.put("exact.m", [(host, (T0 + at) * 1000, value) for host, at, value in values])
    answers = tsdb.get("/api/query", {"start": T0, "end": T0 + 60, "m": "sum:exact.m{host=*}"})
    dps = {answer["tags"]["host"]: list(answer["dps"].values()) for answer in answers}
    assert repr(dps) == repr({"a": [large, large], "b": [1.5], "c": [2], "d": [7.0, 7.5]})
    [last] = tsdb.get("/api/query/last", {"timeseries": "exact.m{host=a}", "resolve": "true"})
    assert last["value"] == str(large)

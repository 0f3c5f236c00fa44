"""Queries beside the released OpenTSDB 2.4.0: the server and OpenTSDB's classes compute the same from the same points."""

import math
from itertools import product

import pytest
from harness.opentsdb_model import Downsample, Rate
from harness.opentsdb_released import Released
from test_opentsdb_query import AGGREGATORS, HOSTS, T0, WINDOWS, Tsdb, random_lines

RATES = [Rate(), Rate(counter=True), Rate(counter=True, maximum=1000), Rate(counter=True, maximum=1000, reset=3), Rate(counter=True, drop=True)]
INTERVALS = ["90000ms", "45s", "1m", "20m", "1h", "2h", "1d", "1w", "1n", "1y"]
ZONES = ["UTC", "Asia/Shanghai", "America/New_York", "Europe/Berlin"]
CALENDAR = ["15mc", "1hc", "6hc", "1dc", "3dc", "1wc", "1nc", "2nc", "1yc"]


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """OpenTSDB's classes."""
    return Released(tmp_path_factory.mktemp("opentsdb"))


@pytest.fixture(scope="module")
def data(server):
    """The metrics with their lines."""
    tsdb = Tsdb(server)
    found = {"released.whole": random_lines(11, True), "released.float": random_lines(12, False)}
    for metric, lines in found.items():
        tsdb.put(metric, [(host, at, value) for host, line in zip(HOSTS, lines) for at, value in line])
    # A point every seven hours, over fifteen months: changes of the clock and a February are among them.
    found["released.year"] = [[((T0 + n * 25_200) * 1000, n % 89) for n in range(1600)]]
    tsdb.put("released.year", [("a", at, value) for at, value in found["released.year"][0]])
    return found


def compare(server, released, data, cases):
    """Cases: (metric, start, end, aggregator, downsample, rate, zone)."""
    queries, texts = [], []
    for metric, start, end, aggregator, downsample, rate, zone in cases:
        kind = "dropcounter" if rate and rate.drop else "counter" if rate and rate.counter else ""
        rate_text = f"rate{{{kind},{rate.maximum},{rate.reset}}}" if rate else None
        texts.append(":".join(part for part in [aggregator, downsample, rate_text, metric] if part))
        interval = Downsample.parse(downsample).interval or 0 if downsample else 0
        queries.append((data[metric], start, end, aggregator, downsample, interval, rate, zone))
    tsdb = Tsdb(server)
    for text, query, expected in zip(texts, queries, released.answers(queries)):
        [got] = tsdb.points(text, query[1], query[2], tz=query[-1])
        assert [at for at, _ in got] == [at for at, _ in expected], (text, query[1:])
        for (at, mine), (_, theirs) in zip(got, expected):
            same = math.isnan(theirs) if math.isnan(mine) else math.isclose(mine, theirs, rel_tol=1e-9, abs_tol=1e-9)
            assert same and isinstance(mine, float) == isinstance(theirs, float), f"{text} {query[1:]} at {at}: {mine}, not {theirs}"


def test_aggregators_over_series(server, released, data):
    # With `none` each series is an answer of its own; there is nothing to combine. 2.4.0 takes the smallest positive float for the smallest
    # one in `mimmax`; a later version does not.
    combined = [name for name in AGGREGATORS if name != "none"]
    shapes = [(None, None), ("5m-avg", None), ("10m-sum-nan", None), (None, Rate()), ("10m-max", Rate())]
    metrics = ["released.whole", "released.float"]
    every = product(metrics, WINDOWS, combined, shapes)
    compare(server, released, data, [
        (metric, *window, aggregator, *shape, "UTC") for metric, window, aggregator, shape in every
        if not (metric == "released.float" and aggregator == "mimmax" and shape == (None, None))
    ])  # fmt: skip


def test_aggregators_over_intervals(server, released, data):
    functions = [name for name in AGGREGATORS if name != "none"]
    every = product(["released.whole", "released.float"], WINDOWS, functions, ["", "-none", "-nan", "-null", "-zero"])
    compare(server, released, data, [(metric, *window, "sum", f"7m-{name}{fill}", None, "UTC") for metric, window, name, fill in every])


def test_units_and_rates(server, released, data):
    metrics = ["released.whole", "released.float"]
    intervals = [f"{interval}-{rest}" for interval, rest in product(INTERVALS, ["avg", "count-zero"])] + ["0all-sum"]
    compare(server, released, data, [(metric, *window, "sum", text, None, "UTC") for metric, window, text in product(metrics, WINDOWS, intervals)])
    every = product(metrics, WINDOWS, ["sum", "zimsum", "max"], [None, "10m-max"], RATES)
    compare(server, released, data, [(metric, *window, aggregator, text, rate, "UTC") for metric, window, aggregator, text, rate in every])


def test_intervals_of_calendars(server, released, data):
    start = (T0 + 33 * 86_400) * 1000
    windows = [(start, start + days * 86_400_000) for days in (3, 100, 400)]
    every = [case for case in product(windows, CALENDAR, ["sum", "count-zero", "max-nan"], ZONES) if case[0] != windows[2] or case[1] != "15mc"]
    compare(server, released, data, [("released.year", *window, "sum", f"{interval}-{rest}", None, zone) for window, interval, rest, zone in every])

"""`tacho bench run tsbs-iot`: a small version on a server that the run starts, and on an InfluxDB that runs."""

import pytest
from harness import databases
from harness.bench import bench

SMALL = [
    "dataset.trucks=12",
    "dataset.hours=26",
    "dataset.interval_ms=60000",
    "dataset.lines_per_request=1000",
    "phase.ask.warmup=0s",
    "phase.ask.duration=300ms",
]
QUERIES = 13


@pytest.fixture(scope="module")
def influxd():
    server = databases.start_influxd()
    yield server
    server.stop()


def check(result, completed):
    """Everything that was written is there, and every query was answered."""
    values = [one for one in result["verification"] if "values of" in one["what"]]
    means = [one for one in result["verification"] if "mean fuel consumption" in one["what"]]
    assert len(values) == 7 + 3 + 2 * 3 and len(means) >= 4
    assert all(one["passed"] for one in result["verification"]), result["verification"]
    # A tenth of the reports is missing, and some more of those that are late.
    all_lines = 12 * 26 * 60 * 2
    assert all_lines * 0.8 / 1000 <= completed["load"]["load"] <= all_lines / 1000
    asked = {phase: operations for phase, operations in completed.items() if phase.startswith("ask-")}
    assert len(asked) == QUERIES
    assert all(sum(operations.values()) > 0 for operations in asked.values()), asked


@pytest.mark.parametrize("clients", [1, 3])
def test_a_server_of_the_run_stores_everything_and_answers_every_query(tmp_path, clients):
    result, completed = bench("tsbs-iot", tmp_path / "out", [*SMALL, f"phase.load.connections={clients}"])
    check(result, completed)


def test_the_statements_of_tsbs_run_here(tmp_path):
    sets = [*SMALL, "dataset.compat=true", "phase.ask.operations=['avg-daily-driving-session', 'last-loc']"]
    result, completed = bench("tsbs-iot", tmp_path / "out", sets)
    assert all(one["passed"] for one in result["verification"])
    assert {phase for phase in completed if phase.startswith("ask-")} == {"ask-avg-daily-driving-session", "ask-last-loc"}


def test_the_same_load_measures_influxdb(tmp_path, influxd):
    result, completed = bench("tsbs-iot", tmp_path / "out", SMALL, "--target", influxd.url)
    check(result, completed)
    assert result["target"]["product"].startswith("InfluxDB 1.")
    assert any("DROP DATABASE" in finding for finding in result["findings"])

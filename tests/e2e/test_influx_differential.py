"""Random statements of InfluxQL over random points: the answers are those of InfluxDB."""

import os

import pytest
from differential.influxdb import both, problem
from differential.influxql import Generator
from harness.seed import commit_seed

# `make test-long` sets more.
STATEMENTS = int(os.environ.get("TACHO_TEST_STATEMENTS", "300"))


@pytest.fixture(scope="module")
def sides(tmp_path_factory):
    with both(commit_seed(), tmp_path_factory.mktemp("influxql")) as sides:
        yield sides


def test_random_statements_have_the_answers_of_influxdb(sides):
    generator = Generator(commit_seed())
    told = [found for found in (problem(*sides, generator.statement()) for _ in range(STATEMENTS)) if found]
    assert not told, "\n".join(told)

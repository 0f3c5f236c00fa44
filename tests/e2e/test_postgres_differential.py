"""The same statements over the same rows on PostgreSQL and here: names, types, values, order and errors."""

import os

import pytest

from differential import statements
from differential.compare import ask, difference, is_ordered
from differential.generate import Generator, problem
from differential.servers import both
from harness.seed import commit_seed

FILES = sorted(statements.DIRECTORY.glob("*.sql"))
# `make test-long` sets more.
GENERATED = int(os.environ.get("TACHO_TEST_STATEMENTS", "300"))


@pytest.fixture(scope="module")
def connections(tmp_path_factory):
    """PostgreSQL and the server under test with the same rows."""
    with both(tmp_path_factory.mktemp("differential")) as connections:
        yield connections


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_statements_have_the_same_answers(connections, path):
    theirs, ours = connections
    told = []
    for sql, reason in statements.read(path):
        found = difference(ask(theirs, sql), ask(ours, sql), is_ordered(sql))
        if found and not reason:
            told.append(f"{sql}\n    {found}")
        elif reason and not found:
            told.append(f"{sql}\n    is the same; take the mark away: {reason}")
    assert not told, "\n".join(told)


def test_there_are_hundreds_of_statements():
    assert sum(len(statements.read(path)) for path in FILES) >= 400


def test_generated_statements_have_the_same_answers(connections):
    theirs, ours = connections
    generator = Generator(commit_seed())
    told = [f"{sql}\n    {found}" for sql in (generator.statement() for _ in range(GENERATED)) if (found := problem(theirs, ours, sql))]
    assert not told, "\n".join(told)

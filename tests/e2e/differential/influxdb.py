"""InfluxDB and the server under test with the same random points, and their answers to random statements.

By hand: python -m differential.influxdb STATEMENTS SEED
"""

import contextlib
import math
import random
import sys
import tempfile
from pathlib import Path

import requests

from differential.influxql import Generator, points
from harness import databases
from harness.server import Server

DATABASE = "diff"
TOLERANCE = 1e-9


class Side:
    """One of the two servers, with a database of its own."""

    def __init__(self, url: str, headers: dict):
        self.url, self.session = url, requests.Session()
        self.session.headers.update(headers)

    def write(self, lines: str):
        reply = self.session.post(f"{self.url}/write", params={"db": DATABASE}, data=lines.encode(), timeout=60)
        assert reply.status_code == 204, reply.text

    def ask(self, query: str) -> dict:
        try:
            reply = self.session.post(f"{self.url}/query", params={"db": DATABASE, "epoch": "s"}, data={"q": query}, timeout=20)
        except requests.RequestException as fault:
            return {"fault": repr(fault)}
        return reply.json() | {"status": reply.status_code}


@contextlib.contextmanager
def both(seed: int, directory: Path | None = None):
    """InfluxDB and the server under test."""
    with contextlib.ExitStack() as open_things:
        directory = directory or Path(open_things.enter_context(tempfile.TemporaryDirectory(prefix="differential-")))
        influxd = databases.start_influxd()
        open_things.callback(influxd.stop)
        server = open_things.enter_context(Server(directory / "data"))
        ours = Side(server.url, {"Authorization": f"Bearer {server.api.token}"})
        theirs = Side(influxd.url, {})
        lines = points(random.Random(seed))
        for side in (theirs, ours):
            side.ask(f"CREATE DATABASE {DATABASE}")
            side.write(lines)
        yield theirs, ours
        assert server.alive(), server.log()


def same(theirs, ours) -> bool:
    """Whether two answers are equal, but for the last digits of fractions."""
    match theirs, ours:
        case (bool(), _) | (_, bool()):
            return theirs is ours
        case (int() | float()), (int() | float()):
            return math.isclose(theirs, ours, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
        case dict(), dict():
            return theirs.keys() == ours.keys() and all(same(theirs[key], ours[key]) for key in theirs)
        case list(), list():
            return len(theirs) == len(ours) and all(same(one, other) for one, other in zip(theirs, ours, strict=True))
    return theirs == ours


def problem(theirs: Side, ours: Side, query: str) -> str | None:
    """How the answers to a statement differ."""
    wanted, given = theirs.ask(query), ours.ask(query)
    return None if same(wanted, given) else f"{query}\n  InfluxDB  {short(wanted)}\n  tacho     {short(given)}"


def short(answer) -> str:
    text = str(answer)
    return text if len(text) < 1500 else f"{text[:1500]}..."


def main() -> None:
    """Prints what differs."""
    count, seed = int(sys.argv[1]), int(sys.argv[2], 0)
    generator = Generator(seed)
    with both(seed) as (theirs, ours):
        found = [told for told in (problem(theirs, ours, generator.statement()) for _ in range(count)) if told]
    print("\n".join(found))
    print(f"{len(found)} of {count} differ")


if __name__ == "__main__":
    main()

"""Statements that exceed limits, against the real binary in two gigabytes: each is refused with the limit's name, or ends in
time, and a device's messages are acknowledged meanwhile."""

import itertools
import os
import random
import resource
import threading
import time

import pytest
import requests
import statements
from harness import wait
from honest import HonestDevice

MEMORY_BYTES = 2 * 1024**3
TIMEOUT_S = 5
# The same statements each time, unless somebody looks for new faults: then TACHO_ATTACK_STATEMENTS_S says for how long, with
# statements of a random seed.
SEED, STATEMENTS = 1, 80
RANDOM_S = os.environ.get("TACHO_ATTACK_STATEMENTS_S")


@pytest.fixture
def bounded_server(own_server, tmp_path):
    """A server with a short limit of time that may not have more private memory than this."""
    config = tmp_path / "short.toml"
    config.write_text(f"[query]\ntimeout_s = {TIMEOUT_S}\n")
    server = own_server(config=config)
    resource.prlimit(server.process.pid, resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
    return server


def unended(server) -> int:
    """Statements that still compute after their end."""
    text = requests.get(f"{server.url}/metrics", timeout=60).text
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("tacho_sql_unended "))


def attack(server, lists, until):
    """Sends each list of statements over a connection of its own, at the same time; the faults of all."""
    faults = []

    def send(each):
        faults.extend(statements.run(server.url, server.api.token, each, until, TIMEOUT_S)[1])

    senders = [threading.Thread(target=send, args=(each,)) for each in lists]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    return faults


def test_statements_that_once_ended_the_server_are_answered(bounded_server):
    server = bounded_server
    halves = [statements.KNOWN[0::2], statements.KNOWN[1::2]]
    with HonestDevice(server):
        faults = attack(server, halves, time.monotonic() + 600)
    assert not faults, "\n".join(faults)
    wait.until(lambda: unended(server) == 0, "no statement computes on")


def test_random_statements_are_answered(bounded_server):
    server = bounded_server
    server.api.send(server.device().token, {"label": "a", "n": 1})
    seed = random.randrange(1 << 32) if RANDOM_S else SEED
    count, seconds = (None, float(RANDOM_S)) if RANDOM_S else (STATEMENTS, 600)
    print(f"seed {seed}")
    names = statements.functions(statements.Client(server.url, server.api.token).ask)
    streams = [iter(statements.Generator(names, seed + sender).statement, None) for sender in range(3)]
    streams = [itertools.islice(stream, count) for stream in streams]
    with HonestDevice(server):
        faults = attack(server, streams, time.monotonic() + seconds)
    assert not faults, f"seed {seed}\n" + "\n".join(faults)
    wait.until(lambda: unended(server) == 0, "no statement computes on")


def test_statements_end_when_their_clients_disconnect(bounded_server):
    """Runs four statements that could compute for minutes, and closes their connections."""
    server = bounded_server
    sql = "SELECT sum(levenshtein(repeat('x', 9000) || n, repeat('y', 9000))) FROM generate_series(1, 1000000) AS s(n)"
    headers = {"X-Authorization": f"Bearer {server.api.token}"}
    with HonestDevice(server):
        for _ in range(4):
            with pytest.raises(requests.Timeout):
                requests.post(f"{server.url}/api/sql", json={"query": sql}, headers=headers, timeout=0.5)
        wait.until(lambda: "\ntacho_sql_running 0\n" in requests.get(f"{server.url}/metrics", timeout=60).text, "no statement runs")
        assert unended(server) == 0

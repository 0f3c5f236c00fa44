"""Rows for 178 sensors with ten fields: into this server, and from there into MariaDB or PostgreSQL over pools of some sizes."""

import contextlib
import subprocess
import threading
import time

import servers

from . import descriptors, generator
from .report import Report
from .session import Session, Usage

PREFIX = "insertion_"
GOAL = 250_000
DRAIN_S = 600
OURS, MARIADB, POSTGRESQL = "ours", "mariadb", "postgresql"
SCHEMES = {MARIADB: "mysql", POSTGRESQL: "postgresql"}


def add_arguments(parser):
    parser.add_argument("--storages", default=f"{OURS},{MARIADB},{POSTGRESQL}")
    parser.add_argument("--pools", default="8,16", help="max-db-connections of each database")
    parser.add_argument("--sensors", type=int, default=178)
    parser.add_argument("--fields", type=int, default=10)
    parser.add_argument("--rows-per-request", type=int, default=100)
    parser.add_argument("--connections", type=int, default=8, help="clients that upload")
    parser.add_argument("--seconds", type=int, default=10, help="duration of the load without a database, with one row in a request and with more")
    parser.add_argument("--rows", type=int, default=1_000, help="rows of each sensor in a cell with a database")


QUICK = {"sensors": 12, "seconds": 2, "rows": 100, "pools": "4"}


def run(args):
    report = Report("insertion", args)
    for storage in args.storages.split(","):
        if storage == OURS:
            insert(args, report)
        elif storage in SCHEMES:
            for pool in args.pools.split(","):
                copy(args, report, storage, int(pool))
        else:
            raise SystemExit(f"--storages {storage}: use {OURS}, {MARIADB} and {POSTGRESQL}")
    return report.finish()


def load(args, session, name, storage=""):
    """Adds the sensors."""
    names = [f"{PREFIX}{number}" for number in range(args.sensors)]
    session.load_sensors({f"{name}.xml": descriptors.uploaded(name, args.fields, storage) for name in names})


def keys(args):
    return {"dataset.streams": args.sensors, "dataset.fields": args.fields, "phase.batch.rows_per_request": args.rows_per_request,
            "phase.batch.connections": args.connections}


def insert(args, report):
    """The rows into this server alone, acknowledged after fsync."""
    with servers.tacho(args.binary, args.out) as server:
        session = Session(server)
        load(args, session, OURS)
        phases = ["single", "batch"]
        durations = {f"phase.{phase}.{key}": value for phase in phases for key, value in [("duration", f"{args.seconds}s"), ("warmup", "1s")]}
        with Usage(server.pid) as usage:
            result = generator.gsn(args, session, "gsn-insertion", OURS, {**keys(args), **durations}, phases)
        for phase in filter(lambda phase: phase["measured"], result["phases"]):
            rows = args.rows_per_request if phase["name"] == "batch" else 1
            rate = sum(one["completed_per_s"] for one in phase["operations"]) * rows
            report.figure(f"{OURS}, {rows} rows in a request", rate, "elements/s", at_least=GOAL if phase["name"] == "batch" else None)
            report.figure(f"{OURS}, {rows} rows in a request: server's CPU time of a row", phase["cost"]["target_cpu_us_per_operation"] / rows, "us")
        report.figure(f"{OURS}: memory of the server at most, reading back included", usage.rss_bytes_max / 2**20, "MiB")
        report.take(OURS, result)


def copy(args, report, storage, pool):
    """The rows into this server, which copies them to a database."""
    cell = f"{storage}, pool {pool}"
    with database(storage) as (port, count):
        words = f'url="jdbc:{SCHEMES[storage]}://127.0.0.1:{port}/sbtest" user="sbtest" password="sbtest" max-db-connections="{pool}"'
        with servers.tacho(args.binary, args.out) as server:
            session = Session(server)
            load(args, session, cell, f"<storage {words}/>")
            total = args.sensors * args.rows
            rows = {"phase.batch.rows": args.rows, "phase.batch.warmup": "0s", "phase.batch.duration": "300s"}
            with Copied(session, total) as copied:
                result = generator.gsn(args, session, "gsn-insertion", f"{storage}-{pool}", {**keys(args), **rows}, ["batch"])
                seconds = copied.wait()
            phase = next(phase for phase in result["phases"] if phase["name"] == "batch")
            rate = sum(one["completed_per_s"] for one in phase["operations"]) * args.rows_per_request
            report.figure(f"{cell}: acknowledged by this server", rate, "elements/s")
            report.figure(f"{cell}: arrived in the database", total / seconds, "elements/s")
            report.take(cell, result)
            report.check(f"{cell}: rows in the database", total, count(args.sensors))


class Copied:
    """Follows how many rows the database has taken."""

    def __init__(self, session, total):
        self.session, self.total = session, total
        self.began, self.ended, self.is_over = None, None, False

    def __enter__(self):
        self._thread = threading.Thread(target=self._follow)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.is_over = True
        self._thread.join()

    def _follow(self):
        last = time.monotonic()
        while not self.is_over:
            now = time.monotonic()
            rows = sum(follower["rows"] for one in self.session.sensors() for follower in one["followers"])
            if rows and self.began is None:
                # The first rows came after the look before.
                self.began = last
            if rows >= self.total:
                self.ended = now
                return
            last = now
            time.sleep(0.1)

    def wait(self):
        """Seconds from the first row to the last one."""
        self._thread.join(DRAIN_S)
        if self.ended is None:
            followers = [follower for one in self.session.sensors() for follower in one["followers"]]
            problems = [follower for follower in followers if follower["rowsBehind"] or follower["lastError"]]
            raise RuntimeError(f"the database has not got all rows after {DRAIN_S} s: {problems[:1]}")
        return self.ended - self.began


@contextlib.contextmanager
def database(storage):
    """Its port, and a function that counts the rows of the tables of all sensors."""
    if storage == MARIADB:
        with servers.mariadb() as (port, _):
            line = ["mariadb", "--no-defaults", "--protocol=tcp", "-h", "127.0.0.1", "-P", str(port), "-u", "sbtest", "-N", "-B", "sbtest", "-e"]
            yield port, lambda sensors: counted(line, sensors)
    else:
        with servers.postgresql() as (port, _):
            line = ["psql", "-h", "127.0.0.1", "-p", str(port), "-U", "sbtest", "-A", "-t", "sbtest", "-c"]
            yield port, lambda sensors: counted(line, sensors)


def counted(line, sensors):
    counts = "+".join(f"(SELECT count(*) FROM {PREFIX}{number})" for number in range(sensors))
    done = subprocess.run([*line, f"SELECT {counts}"], stdout=subprocess.PIPE, text=True, check=True)
    return int(done.stdout)

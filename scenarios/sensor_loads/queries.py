"""The newest rows of sensors as CSV (`/multidata`): tuples a second by clients and by rows of an answer."""

import re

import servers

from . import descriptors, generator
from .report import Report
from .session import Session

CLIENTS = [1, 2, 4]
SIZES = [3_125, 6_250, 12_500, 25_000, 50_000, 100_000, 200_000]
PREFIX = "insertion_"
RATE = re.compile(r"^(\d+)-of-(\d+): .* ([\d]+) tuples/s,")
GOAL = 3_000_000


def add_arguments(parser):
    parser.add_argument("--sensors", type=int, default=4)
    parser.add_argument("--fields", type=int, default=10)
    parser.add_argument("--rows", type=int, default=200_000, help="rows of each sensor, and the largest answer")
    parser.add_argument("--seconds", type=int, default=4, help="duration of each cell of the table")


QUICK = {"rows": 12_500, "seconds": 1}


def run(args):
    report = Report("queries", args)
    with servers.tacho(args.binary, args.out) as server:
        session = Session(server)
        names = [f"{PREFIX}{number}" for number in range(args.sensors)]
        session.load_sensors({f"{name}.xml": descriptors.uploaded(name, args.fields) for name in names})
        uploads = {"dataset.streams": args.sensors, "dataset.fields": args.fields, "phase.batch.connections": args.sensors,
                   "phase.batch.rows": args.rows, "phase.batch.rows_per_request": 1_000, "phase.batch.warmup": "0s", "phase.batch.duration": "300s"}
        filled = generator.gsn(args, session, "gsn-insertion", "fill", uploads, ["batch"])
        report.take("fill", filled)
        # The rows are in parts then, as those of a sensor that has run for long.
        session.command("flush")
        cells = [f"{clients}-of-{size}" for clients in CLIENTS for size in SIZES if size <= args.rows]
        seconds = {f"phase.{cell}.duration": f"{args.seconds}s" for cell in cells}
        result = generator.gsn(args, session, "gsn-queries", "table", seconds, ["warmup", *cells])
    rates = {(int(found[1]), int(found[2])): int(found[3]) for found in map(RATE.match, result["findings"]) if found}
    report.take("table", result)
    report.check("cells of the table", len(cells), len(rates))
    for (clients, size), rate in rates.items():
        report.figure(f"{clients} clients, answers of {size:,} rows", rate, "tuples/s")
    report.figure("best cell", max(rates.values(), default=0), "tuples/s", at_least=GOAL)
    return report.finish()

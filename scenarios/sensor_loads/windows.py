"""One input of many elements a second goes through sensors with windows in time: does the evaluation keep up, and what does it need?"""

import time

import servers

from . import descriptors, generator
from .report import Report
from .session import Session, Usage, iso, millis

PREFIX = "input-"
DRAIN_S = 120
TOLERANCE = 0.001
# Slides of each sensor whose mean is computed from the stored input.
COMPARED = 5
SHARES = 10
SLIDE_MS = 1_000


def add_arguments(parser):
    parser.add_argument("--rate", type=int, default=100_000, help="elements a second of all devices")
    parser.add_argument("--devices", type=int, default=1_000)
    parser.add_argument("--sensors", type=int, default=10)
    parser.add_argument("--window", type=int, default=60, help="seconds of a window; it slides each second")
    parser.add_argument("--seconds", type=int, default=90, help="duration of the load; it must be longer than a window")
    parser.add_argument("--share", action="store_true", help="each sensor reads its share of the devices [default: each reads all]")
    parser.add_argument("--lateness", help="event time with this lateness, such as 1s")


QUICK = {"rate": 2_000, "devices": 50, "sensors": 3, "window": 3, "seconds": 10}


def run(args):
    if args.share and args.sensors != SHARES:
        raise SystemExit(f"--share needs --sensors {SHARES}: devices are shared by the last digit of their number")
    report = Report("windows", args)
    with servers.tacho(args.binary, args.out) as server:
        session = Session(server)
        session.add_devices(args.devices, PREFIX)
        patterns = [f"{PREFIX}*{number if args.share else ''}" for number in range(args.sensors)]
        more = f'lateness = "{args.lateness}"' if args.lateness else ""
        files = {f"window_{number}.toml": descriptors.mean(f"window_{number}", pattern, f"{args.window}s", "1s", more)
                 for number, pattern in enumerate(patterns)}
        session.load_sensors(files)
        measure(args, session, report)
        verify(args, session, report)
    return report.finish()


def measure(args, session, report):
    queued = lambda: session.metric("tacho_virtual_sensors_queued_bytes")
    with Usage(session.server.pid, queued) as usage:
        result = generator.telemetry(args, session, "load", args.devices, PREFIX, args.rate, args.seconds)
        ended = time.monotonic()
        behind = published(session) * readers(args) - sum(one["elements"] for one in session.sensors())
    expected = published(session) * readers(args)
    found = session.wait_until(expected, seconds=DRAIN_S)
    report.take("load", result)
    rate = sum(one["completed_per_s"] for one in result["phases"][-1]["operations"])
    report.figure("elements acknowledged a second", rate, "/s", at_least=args.rate * 0.99)
    report.figure("elements not evaluated at the end of the load (counters are 0.2 s old)", behind, "")
    report.figure("time until they had evaluated all", time.monotonic() - ended, "s", at_most=2)
    report.figure("processors that the server used", usage.cores, "cores")
    report.figure("processors that the evaluation used, of these", usage.engine_cores, "cores")
    report.figure("memory of the server at most", usage.rss_bytes_max / 2**20, "MiB")
    report.figure("bytes that waited for the evaluation at most", max(usage.samples, default=0), "B")
    report.figure("series that were read again from the store", session.metric("tacho_virtual_sensor_rereads_total"), "")
    report.check("elements that the sensors have evaluated", expected, found)


def readers(args):
    """Sensors that read an element."""
    return 1 if args.share else args.sensors


def published(session):
    return session.sql("SELECT count(*) FROM telemetry")[0][0]


def verify(args, session, report):
    """The output has a row for each slide, with the mean and the number of what is stored."""
    for number in range(args.sensors):
        sensor = f"window_{number}"
        counters = session.counters(sensor)
        limits = "WINDOW_ELEMENTS_MAX, WINDOW_BYTES_MAX"
        report.check(f"{sensor}: elements that left early because of a limit ({limits})", 0, counters["overflowed"])
        report.check(f"{sensor}: elements left out", 0, counters["outOfOrder"] + counters["late"])
        if number == 0:
            report.figure("bytes of a window for each element", counters["bytesHeld"] / max(1, counters["elementsHeld"]), "B")
        where = f"device LIKE '{PREFIX}%{number if args.share else ''}'"
        first, last = (millis(text) for text in session.sql(f"SELECT min(ts), max(ts) FROM telemetry WHERE {where}")[0])
        slides = max(0, (last - first) // SLIDE_MS - args.window + 1)
        rows = session.sql(f"SELECT ts, mean, readings FROM {sensor} WHERE ts <= '{iso(last)}' ORDER BY ts")
        # Devices report at once, so the first element that came need not be the earliest one.
        report.check(f"{sensor}: rows of the output", slides, len(rows), abs(slides - len(rows)) <= 1)
        compared = rows[:: max(1, len(rows) // COMPARED)]
        worst = max((deviation(args, session, where, row) for row in compared), default=1)
        what = f"{sensor}: largest deviation of mean and number from the stored input in {len(compared)} rows"
        report.check(what, f"at most {TOLERANCE}", worst, worst <= TOLERANCE)


def deviation(args, session, where, row):
    """Of a row of the output from what SQL computes, as a share of it."""
    at, mean, readings = row
    begin = iso(millis(at) - args.window * 1_000)
    within = f"{where} AND ts >= '{begin}' AND ts <= '{at}'"
    stored_mean, stored = session.sql(f"SELECT avg(speed_kmh), count(*) FROM telemetry WHERE {within}")[0]
    return max(abs(mean - stored_mean) / stored_mean, abs(readings - stored) / stored)

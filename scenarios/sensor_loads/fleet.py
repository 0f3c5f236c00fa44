"""A sensor for each device of a fleet, with a window of an hour that is full: processor time, memory, outputs, and a start after SIGKILL."""

import random
import time

import parity
import servers

from . import descriptors, generator
from .report import Report
from .session import Session, Usage, iso, millis

PREFIX = "fleet-"
TOLERANCE = 1e-9
MIB = 2**20


def add_arguments(parser):
    parser.add_argument("--devices", type=int, default=10_000, help="devices, each with a sensor")
    parser.add_argument("--seconds", type=int, default=30, help="duration of the load: each device reports once a second")
    parser.add_argument("--history", type=int, default=3_600, help="seconds of a window, and of what is stored before")
    parser.add_argument("--step", type=int, default=10, help="seconds between two stored elements of a device")
    parser.add_argument("--compared", type=int, default=100, help="sensors whose rows and windows are compared with the stored input")


QUICK = {"devices": 200, "seconds": 5, "history": 600, "step": 10, "compared": 20}


def run(args):
    report = Report("fleet", args)
    with servers.tacho(args.binary, args.out) as server:
        session = Session(server)
        session.add_devices(args.devices, PREFIX)
        fill(args, session, report)
        window = f"{args.history}s"
        files = {f"mean_{number}.toml": descriptors.mean(f"mean_{number}", f"{PREFIX}{number}", window) for number in range(args.devices)}
        report.figure("from the files to sensors that run with full windows", session.load_sensors(files), "s")
        acknowledged = measure(args, session, report)
        verify(args, session, report, acknowledged)
        # A checkpoint with all windows is later than the load.
        time.sleep(6)
        restart(args, session, report)
    return report.finish()


def fill(args, session, report):
    """Stores the history of all devices, until now."""
    end = int(time.time()) - args.step
    times = [(end - seconds) * 1_000 for seconds in range(args.history - args.step, -1, -args.step)]
    path = args.out / "history.csv"
    chance = random.Random(1)
    with path.open("w") as file:
        file.write("device,time,speed_kmh\n")
        for at in times:
            file.writelines(f"{PREFIX}{number},{at},{chance.randrange(1_000, 2_000) / 10}\n" for number in range(args.devices))
    began = time.monotonic()
    session.command("import", str(path), "--device-column", "device", "--ts-column", "time", "--ts-format", "ms")
    report.figure(f"import of {len(times) * args.devices:,} rows of history", time.monotonic() - began, "s")
    path.unlink()


def measure(args, session, report):
    """The load. Returns the number of acknowledged elements."""
    stored = lambda: session.sql("SELECT count(*) FROM telemetry")[0][0]
    before = stored()
    idle = Usage(session.server.pid)
    with idle:
        time.sleep(5)
    with Usage(session.server.pid) as usage:
        result = generator.telemetry(args, session, "load", args.devices, PREFIX, args.devices, args.seconds)
        ended = time.monotonic()
    report.take("load", result)
    acknowledged = stored() - before
    found = session.wait_until(acknowledged)
    report.figure("processors that the server uses without a load", idle.cores, "cores")
    report.figure("elements stored a second", acknowledged / args.seconds, "/s", at_least=args.devices * 0.99)
    report.figure("processors that the server used", usage.cores, "cores", at_most=1)
    report.figure("processors that the evaluation used, of these", usage.engine_cores, "cores")
    report.figure("memory of the server at most", usage.rss_bytes_max / MIB, "MiB", at_most=1024)
    report.figure("from the end of the load until all is evaluated", time.monotonic() - ended, "s")
    report.check("elements that the sensors have evaluated", acknowledged, found)
    report.check("rows that the sensors have made", acknowledged, sum(one["rows"] for one in session.sensors()))
    return acknowledged


def sample(args):
    return random.Random(2).sample(range(args.devices), min(args.devices, args.compared))


def verify(args, session, report, acknowledged):
    """Compares the tables of some sensors with what their devices have stored."""
    wrong, rows = [], 0
    for number in sample(args):
        of_device = f"FROM telemetry WHERE device = '{PREFIX}{number}'"
        output = session.sql(f"SELECT ts, mean, readings FROM mean_{number} ORDER BY ts")
        # The history was imported before the sensors were added: it is in windows alone.
        inputs = [row[0] for row in session.sql(f"SELECT ts {of_device} AND seq IS NOT NULL ORDER BY ts")]
        rows += len(output)
        if [row[0] for row in output] != inputs or not inputs:
            wrong.append(f"mean_{number}: {len(output)} rows for {len(inputs)} elements")
            continue
        at, mean, readings = output[-1]
        within = f"{of_device} AND ts >= '{iso(millis(at) - args.history * 1_000)}' AND ts <= '{at}'"
        stored_mean, stored = session.sql(f"SELECT avg(speed_kmh), count(*) {within}")[0]
        if readings != stored or abs(mean - stored_mean) > TOLERANCE * stored_mean:
            wrong.append(f"mean_{number}: {mean} of {readings}, stored {stored_mean} of {stored}")
    report.check(f"compared sensors whose rows or mean are wrong ({rows} rows)", [], wrong)
    compared = min(args.devices, args.compared)
    report.note(f"{acknowledged} elements; of {compared} sensors every row was compared with its element, and the last mean with SQL")


def restart(args, session, report):
    """SIGKILL, and the time until all windows are full again."""
    session.server.kill()
    began = time.monotonic()
    session.server.start()
    report.figure("from the start of the process until it takes connections", time.monotonic() - began, "s")
    after = Session(session.server)
    after.wait_for_sensors(args.devices)
    report.figure("from the start of the process until all sensors run with full windows", time.monotonic() - began, "s", at_most=10)
    report.figure("processor time of the start", parity.cpu_s(session.server.pid), "s")
    held, expected = 0, 0
    for number in sample(args):
        of_device = f"FROM telemetry WHERE device = '{PREFIX}{number}'"
        newest = after.sql(f"SELECT max(ts) {of_device}")[0][0]
        begin = iso(millis(newest) - args.history * 1_000)
        expected += after.sql(f"SELECT count(*) {of_device} AND ts >= '{begin}'")[0][0]
        held += after.counters(f"mean_{number}")["elementsHeld"]
    report.check("elements in the windows of the compared sensors after the start", expected, held)

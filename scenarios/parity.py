"""What the scripts have in common that run another tool and `tacho bench` in turns on one server."""

import contextlib
import json
import os
import pathlib
import random
import shlex
import socket
import statistics
import subprocess
import sys
import time

TICKS = os.sysconf("SC_CLK_TCK")
# Until the script that started it is gone, however it ended.
LOOP = """
import os
script = os.getppid()
while os.getppid() == script:
    for _ in range(100_000):
        pass
"""


def add_arguments(parser, seconds):
    """Those of every such script; `seconds` is how long a run is measured unless it is said."""
    parser.add_argument("--tacho", default="target/release/tacho bench", help="the command line up to `run`")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--seconds", type=int, default=seconds)
    parser.add_argument("--out", type=pathlib.Path, required=True, help="directory of our bundles")
    parser.add_argument("--apart", action="store_true", help="the server on the first processor, generators on the others")
    add_awake(parser)


def add_awake(parser):
    parser.add_argument("--awake", action="store_true",
                        help="keep processors from halting with loops of the idle class; see docs/bench/method.md")


@contextlib.contextmanager
def awake(wanted):
    """Keeps all processors from halting, if that is wanted. A virtual processor that halted may wait for another guest's turn to end when
    it is to continue; the loops get only time that nobody else on this machine wants."""
    loops = []
    try:
        for processor in sorted(os.sched_getaffinity(0)) if wanted else []:
            loop = subprocess.Popen([sys.executable, "-c", LOOP])
            loops.append(loop)
            os.sched_setaffinity(loop.pid, {processor})
            os.sched_setscheduler(loop.pid, os.SCHED_IDLE, os.sched_param(0))
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def children_of(pid):
    return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def keep_apart(*server_pids):
    """Gives the servers the first processor, and this script and its generators the others."""
    first, *others = sorted(os.sched_getaffinity(0))
    if not others:
        sys.exit("--apart needs two processors")
    for pid in [pid for server_pid in server_pids for pid in (server_pid, *children_of(server_pid))]:
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            os.sched_setaffinity(int(task.name), {first})
    os.sched_setaffinity(0, others)


def cpu_s(pid):
    """Of a process and those it has started."""
    total = 0
    for one in [pid, *children_of(pid)]:
        fields = pathlib.Path(f"/proc/{one}/stat").read_text().rsplit(")", 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total / TICKS


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def await_port(port, process, seconds=20):
    """Until a server that was started takes connections."""
    deadline = time.monotonic() + seconds
    while socket.socket().connect_ex(("127.0.0.1", port)) != 0:
        if time.monotonic() > deadline or process.poll() is not None:
            sys.exit(f"{process.args[0]} does not start")
        time.sleep(0.05)


def command(args, words, sets):
    """A run of ours."""
    line = [*shlex.split(args.tacho), "run", *words]
    for key, value in sets.items():
        line += ["--set", f"{key}={value}"]
    return line


def result(line, out):
    """What a run of ours left, valid or not; without a result its own words say why."""
    path = pathlib.Path(out) / "result.json"
    if not path.exists():
        done = subprocess.run(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        sys.exit(f"no result of: {shlex.join(line)}\n{done.stdout}")
    return json.loads(path.read_text())


def order(number, other):
    """Who runs first changes from round to round."""
    return ["tacho", other] if number % 2 == 0 else [other, "tacho"]


def median_interval(values):
    """The median between the ends of its interval by bootstrap (10,000 resamples, 95 %)."""
    chance = random.Random(1)
    medians = sorted(statistics.median(chance.choices(values, k=len(values))) for _ in range(10_000))
    return medians[250], statistics.median(values), medians[9_749]


def print_ratios(what, names, ratios):
    """The median of the rounds and its interval."""
    for name, values in zip(names, zip(*ratios)):
        low, middle, high = median_interval(values)
        print(f"{what}, {name}: {middle:.3f} ({low:.3f} to {high:.3f})")


def processor():
    """What the processor calls itself."""
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")


def stolen_share():
    """Begins to count; the result is the share of the processors' time since that the hypervisor gave to other guests."""
    def ticks():
        fields = [int(field) for field in pathlib.Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
        return fields[7], sum(fields)
    stolen, all_ticks = ticks()

    def share():
        stolen_now, all_now = ticks()
        return (stolen_now - stolen) / max(1, all_now - all_ticks)
    return share

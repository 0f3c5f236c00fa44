"""Loads of `tacho bench`, in processes of their own."""

import subprocess
import urllib.parse

import parity

from .session import ADMIN


def run(args, session, scenario, name, words, sets=None):
    """A run against the server. Returns its result, also if a gate of the generator did not pass. An operation that failed ends the script."""
    with started(args, session, scenario, name, words, sets) as process:
        process.wait()
    result = parity.result(process.args, args.out / name)
    errors = [error for phase in result["phases"] for one in phase["operations"] for error in one["counts"]["errors"]]
    if errors:
        raise RuntimeError(f"{scenario}, {args.out / name}: {errors[0]}")
    return result


def started(args, session, scenario, name, words, sets=None):
    """The same as a process that runs."""
    line = [args.binary, "bench", "run", scenario, "--quiet", "--out", str(args.out / name), "--server-pid", str(session.server.pid), *words]
    line += [word for key, value in (sets or {}).items() for word in ("--set", f"{key}={value}")]
    return subprocess.Popen(line, stdout=subprocess.DEVNULL)


def telemetry(args, session, name, devices, prefix, rate, seconds):
    """A run in which devices publish at a fixed rate over MQTT."""
    return run(args, session, "thingsboard", name, telemetry_words(session, devices, prefix, rate, seconds))


def telemetry_words(session, devices, prefix, rate, seconds):
    target = f"mqtt://127.0.0.1:{session.server.mqtt}"
    return ["--target", target, "--no-provision", "--no-verify", "--devices", str(devices), "--rate", str(rate), "--fixed",
            "--duration", f"{seconds}s", "--warmup", "0s", "--token-prefix", prefix, "--device-prefix", prefix]


def gsn(args, session, scenario, name, sets, phases):
    """A run of these phases of a scenario of the driver `gsn`."""
    login = f"{urllib.parse.quote(ADMIN, safe='')}:{urllib.parse.quote(session.server.password, safe='')}"
    target = ["--target", f"http://{login}@127.0.0.1:{session.server.http}", *(word for phase in phases for word in ("--phase", phase))]
    return run(args, session, scenario, name, target, sets)

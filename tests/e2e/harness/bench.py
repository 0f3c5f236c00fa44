"""Runs scenarios of `tacho bench` whose speed does not matter to the test."""

import json

from harness.gates import ANY_SPEED
from harness.server import run


def bench(scenario, out, sets, *options, env=None, check=True):
    """Runs a scenario. The result and, by phase, the number of completed operations by name."""
    settings = [part for one in [*ANY_SPEED, *sets] for part in ("--set", one)]
    done = run("bench", "run", scenario, "--quiet", "--out", out, *settings, *options, env=env, check=check)
    if not check:
        return done
    result = json.loads((out / "result.json").read_text())
    assert result["valid"], done.stdout
    completed = {
        phase["name"]: {one["name"]: one["counts"]["completed"] for one in phase["operations"] if one["counts"]["completed"]}
        for phase in result["phases"]
    }
    return result, completed

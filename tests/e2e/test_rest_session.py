"""`tacho bench run rest-session` against a server: set-up steps, variables and expectations on JSON over the real REST API."""

import json

from harness.gates import ANY_SPEED
from harness.server import run

SHORT = ["phase.session.connections=3", "phase.session.warmup=0s", "phase.session.duration=300s", "phase.session.requests=20"]


def bench(server, out, *sets, check=True):
    settings = [part for one in [*SHORT, *ANY_SPEED, *sets] for part in ("--set", one)]
    url = server.url.rstrip("/").replace("http://", "http://admin%40tachograph.local@") + "/"
    env = {"TACHO_TARGET_PASSWORD": server.password}
    return run("bench", "run", "rest-session", "--target", url, "--scale", "1", "--quiet", "--out", out, *settings, env=env, check=check)


def test_a_session_posts_and_reads_back_what_it_posted(server, tmp_path):
    done = bench(server, tmp_path / "run")
    result = (tmp_path / "run" / "result.json").read_text()
    assert server.password not in result
    (phase,) = json.loads(result)["phases"]
    completed = {one["name"]: one["counts"]["completed"] for one in phase["operations"] if one["counts"]["completed"]}
    assert completed == {"post": 30, "latest": 30}, done.stdout


def test_another_value_than_expected_is_a_named_failure(server, tmp_path):
    done = bench(server, tmp_path / "run", "operation.latest.expect_json={ '/n/0/value' = 'x' }", check=False)
    assert done.returncode != 0
    assert "JSON: the value at `/n/0/value` is not the expected one" in done.stdout + done.stderr

"""The load runner's driver `gsn` on a server that runs: eval-queries, the scaling table, and the insertion test with a server of its own."""

import json

import pytest
import requests

from harness import wait
from harness.bench import bench
from harness.gates import ANY_SPEED
from harness.server import Server, run

ROWS = 300
SENSORS = ["meadow", "street", "river"]
FIELDS = ["a", "b"]
T0 = 1_768_464_000_000


def descriptor(name):
    fields = "".join(f'<field name="{field}" type="double"/>' for field in FIELDS)
    names = ", ".join(FIELDS)
    return f"""<virtual-sensor name="{name}">
  <processing-class><class-name>Bridge</class-name><output-structure>{fields}</output-structure></processing-class>
  <streams><stream name="input"><source alias="rows" storage-size="1" sampling-rate="1">
    <address wrapper="tacho"><predicate key="device">{name}-feed</predicate></address>
    <query>select {names}, timed from wrapper</query></source>
    <query>select {names}, timed from rows</query></stream></streams>
</virtual-sensor>
"""


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    """The address of a server whose sensors have ROWS rows each, and a token."""
    root = tmp_path_factory.mktemp("bench-gsn")
    sensors = root / "sensors"
    sensors.mkdir()
    for name in SENSORS:
        (sensors / f"{name}.xml").write_text(descriptor(name))
    env = {"TACHO_TIME_SERIES_GSN_LISTEN": "127.0.0.1:0", "TACHO_SENSORS_DIRECTORY": str(sensors)}
    with Server(root / "data", env) as server:
        login = {"Authorization": f"Bearer {server.api.token}"}
        listed = lambda: server.api.session.get(f"{server.url}/api/sensors", headers=login, timeout=60).text
        wait.until(lambda: all(f'"{name}"' in listed() for name in SENSORS), "the sensors")
        fields = [{"name": "timestamp"}, *({"name": field} for field in FIELDS)]
        values = [[T0 + 1000 * n, n / 4, n] for n in range(ROWS)]
        for name in SENSORS:
            body = {"properties": {"fields": fields, "values": values}}
            answer = requests.post(f"{server.url}/api/sensors/{name}/data", json=body, headers=login, timeout=60)
            assert answer.status_code == 200, answer.text
        yield f"http://127.0.0.1:{server.listeners['gsn']}", server.api.token


def test_eval_queries_checks_every_answer(tmp_path, target):
    url, token = target
    options = ["--target", url, "--queries", "6", "--threads", "3", "--max-query-size", "200", "--gsn-compat"]
    settings = [part for one in ANY_SPEED for part in ("--set", one)]
    done = run("bench", "run", "eval-queries", "--quiet", "--out", tmp_path / "out", *settings, *options, env={"TACHO_TARGET_TOKEN": token})
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert result["valid"], done.stdout
    assert result["phases"][0]["total"]["counts"]["completed"] == 6
    assert any("6 answers with 1200 tuples" in finding for finding in result["findings"]), result["findings"]
    block = done.stdout[done.stdout.index("------ GSN Queries Result --------") :].splitlines()
    assert block[1] == f"| URL: {url}"
    assert block[3:6] == [
        "| Nb Queries   : 6",
        "| Tuples       : sum:1200.000, min:200.000, max:200.000, mean:200.000, var:.000 [no unit]",
        "| Fields       : sum:18.000, min:3.000, max:3.000, mean:3.000, var:.000 [no unit]",
    ]
    assert block[11] == "-----------------------------------"
    assert token not in done.stdout


def test_the_scaling_table_has_a_result_for_each_cell(tmp_path, target):
    url, token = target
    cells = ["1-of-3125", "4-of-3125"]
    sets = [part for cell in cells for part in (f"phase.{cell}.duration=300ms", f"phase.{cell}.size=250")]
    phases = [part for cell in cells for part in ("--phase", cell)]
    result, completed = bench("gsn-queries", tmp_path / "out", [*sets, f"target.token='{token}'"], "--target", url, *phases)
    assert sorted(completed) == sorted(cells)
    checks = [one for one in result["verification"] if "right number of rows" in one["what"]]
    assert len(checks) == 2 and all(one["passed"] for one in checks)


def test_rows_for_many_sensors_are_stored_and_read_back(tmp_path):
    sets = ["dataset.streams=7", "phase.single.warmup=0s", "phase.single.duration=300ms", "phase.batch.warmup=0s", "phase.batch.duration=300ms"]
    result, completed = bench("gsn-insertion", tmp_path / "out", sets)
    assert completed["single"]["upload"] > 0 and completed["batch"]["upload"] > 0
    checks = {one["what"]: one for one in result["verification"]}
    rows = checks["batch: rows with the values that were written"]
    assert rows["passed"] and int(rows["found"]) >= completed["single"]["upload"] + 100 * completed["batch"]["upload"]
    assert any("elements/s" in finding for finding in result["findings"])

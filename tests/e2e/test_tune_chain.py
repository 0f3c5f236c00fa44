"""`tacho tune chain`: two layers on loopback, one that does not answer, and finished searches."""

import json
import shutil
import socket
import subprocess

import pytest

from harness import wait
from harness.gates import ANY_SPEED
from harness.server import Server, run

# A search of a few seconds. The objective holds at every rate, so that the search ends at the largest one.
QUICK = {"slo": "p50<=30s", "start": 100, "rate_max": 200, "step": "1s", "steps_max": 4}


def layer(name, ratio=1.0, **keys):
    """A `[[layer]]`; values of JSON are values of TOML."""
    keys = {"name": name, "operations_per_message": ratio, **keys}
    return "[[layer]]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())


def http(url, name="gateway", **keys):
    """The phase is a closed loop without a rate; the search turns it into an open one."""
    phase = "phase.closed."
    sets = [*ANY_SPEED, f"{phase}connections=4", f"{phase}warmup=0s", "operation.get.request=GET /healthz"]
    return layer(name, scenario="http-qps", phase="closed", target=url, set=sets, **QUICK, **keys)


def redis(port):
    sets = [*ANY_SPEED, "gates.hit_share_min=0", "phase.load.connections=10", "phase.run.connections=4", "phase.run.warmup=0s"]
    return layer("store", 2.0, scenario="gemini-str32", target=f"redis://127.0.0.1:{port}", scale=0.00002, set=sets, **QUICK)


def chain(tmp_path, *layers, out="out"):
    """Runs the command. Returns it with its JSON."""
    file = tmp_path / "chain.toml"
    file.write_text("\n".join(layers))
    done = run("tune", "chain", str(file), "--json", "--out", str(tmp_path / out), check=False)
    return done, json.loads(done.stdout) if done.stdout else None


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@pytest.fixture
def redis_port(tmp_path):
    program = shutil.which("redis-server")
    assert program, "redis-server is missing: run tests/e2e/install-debian-packages"
    port = free_port()
    command = [program, "--port", str(port), "--bind", "127.0.0.1", "--dir", str(tmp_path), "--save", "", "--appendonly", "no"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        wait.until(lambda: answers(port), "redis-server listens")
        yield port
    finally:
        process.terminate()
        process.wait(timeout=60)


def answers(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except OSError:
        return False
    return True


def test_layers_are_measured_in_order_and_a_failed_one_stops_no_other(tmp_path, redis_port):
    dead = f"http://127.0.0.1:{free_port()}/"
    with Server(tmp_path / "data") as server:
        done, report = chain(tmp_path, http(f"{server.url}/"), http(dead, "balancer"), redis(redis_port))
    # With a layer of unknown capacity the narrowest is not certain.
    assert done.returncode == 1, done.stderr
    assert [one["name"] for one in report["layers"]] == ["gateway", "balancer", "store"]
    gateway, balancer, store = report["layers"]
    assert str(dead.split("/")[2]) in balancer["because"] and "answer" not in balancer
    assert report["narrowest"]["kind"] == "one_of" and 1 in report["narrowest"]["layers"]
    for one, ratio, directory in ((gateway, 1, "layer-01"), (store, 2, "layer-03")):
        search = json.loads((tmp_path / "out" / directory / "capacity.json").read_text())
        assert one["answer"] == search["answer"], one
        if one["answer"]["kind"] == "at_least":
            assert one["messages_per_s"] == {"low": one["answer"]["rate_per_s"] / ratio, "high": None}
    assert json.loads((tmp_path / "out" / "chain.json").read_text()) == report

    # The searches are read again, with another ratio: the text has the table and the sentence.
    again = [layer("a", 1.0, bundle=str(tmp_path / "out/layer-01")), layer("b", 4.0, bundle=str(tmp_path / "out/layer-03"))]
    done, report = chain(tmp_path, *again, out="again")
    assert done.returncode == (0 if report["narrowest"]["kind"] == "certain" else 1), done.stderr
    assert [one["answer"] for one in report["layers"]] == [gateway["answer"], store["answer"]]


def finished(directory, low, high):
    """A finished search."""
    directory.mkdir()
    interval = {"low": low, "high": high}
    answer = {"kind": "found", "rate_per_s": low, "interval": interval, "safe_per_s": low, "trials": 12, "precise": True}
    (directory / "capacity.json").write_text(json.dumps({"answer": answer}))
    return str(directory)


def test_the_narrowest_of_finished_searches_is_named(tmp_path):
    file = tmp_path / "chain.toml"
    wide, rows = finished(tmp_path / "wide", 41_000, 43_000), finished(tmp_path / "rows", 123, 131)
    file.write_text(layer("gateway", bundle=wide) + layer("database", 0.01, bundle=rows))
    done = run("tune", "chain", str(file), "--out", str(tmp_path / "out"), check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "narrowest: database, 12,300 to 13,100 messages/s"

    file.write_text(layer("gateway", bundle=wide) + layer("database", 0.003, bundle=rows))
    done = run("tune", "chain", str(file), "--out", str(tmp_path / "overlap"), check=False)
    assert done.returncode == 1 and "cannot tell, one of gateway, database" in done.stdout, done.stdout + done.stderr


def test_a_wrong_file_ends_before_anything_runs(tmp_path):
    good = layer("good", bundle=str(tmp_path))
    for wrong, expected in [
        (layer("bad", scenario="no-such", target="http://127.0.0.1:1/", slo="p99<=1s"), "no-such"),
        (layer("bad", 0, bundle=str(tmp_path)), "`operations_per_message` is 0"),
        (layer("bad", -1.0, bundle=str(tmp_path)), "`operations_per_message` is -1"),
        (good, "two layers have the name `good`"),
        ("", "it has 1 [[layer]]"),
    ]:
        done, _ = chain(tmp_path, good, wrong)
        assert done.returncode == 2 and expected in done.stderr, done.stderr
        assert not (tmp_path / "out").exists()
    done = run("tune", "chain", str(tmp_path / "absent.toml"), check=False)
    assert done.returncode == 2 and "absent.toml" in done.stderr, done.stderr

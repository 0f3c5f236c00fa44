"""`tacho tune --apply`, `--undo` and `--prove` on a Redis: what is refused, what is restored, and what the proof writes."""

import json
import signal
import subprocess

import pytest

from harness import wait
from harness.databases import redis_cli, start_redis
from harness.gates import ANY_SPEED
from harness.server import binary, clean_environment, run

# A load of a second, of three blocks of A against A and a few of A against B.
SHORT = ["phase.load.requests=2000", "phase.load.connections=4", "phase.run.connections=4", "phase.run.rate=500",
         *ANY_SPEED,
         "gates.hit_share_min=0", "phase.run.warmup=200ms", "phase.run.duration=1s", "dataset.keys=[1,2000]", "phase.run.keys=[1,2000]"]


@pytest.fixture
def redis():
    server = start_redis()
    yield server
    server.stop()


def setting(server, name):
    return redis_cli(server, "CONFIG", "GET", name).split("\n")[1]


def refused(*arguments, part):
    done = run("tune", *arguments, check=False)
    assert done.returncode == 2 and part in done.stderr, done.stdout + done.stderr


def proof_command(server, directory, *more, rule="redis-appendfsync", value="no"):
    sets = [word for each in SHORT for word in ("--set", each)]
    load = ["--scenario", "gemini-str32", *sets, "--scale", "1", "--out", str(directory)]
    return [binary(), "tune", server.url, "--prove", rule, "--value", value, *load, *more]


def prove(*arguments, **how):
    done = subprocess.run(proof_command(*arguments, **how), env=clean_environment(), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def proof_of(directory):
    return json.loads((directory / "prove.json").read_text())


def test_without_a_terminal_nothing_is_changed_unless_yes_is_given(redis, tmp_path):
    file = tmp_path / "undo.json"
    refused(redis.url, "--apply", "redis-maxmemory", "--value", "64mb", "--undo-file", file, part="--yes")
    assert setting(redis, "maxmemory") == "0" and not file.exists()


def test_an_undo_file_is_not_overwritten(redis, tmp_path):
    file = tmp_path / "undo.json"
    file.write_text("mine")
    refused(redis.url, "--apply", "redis-maxmemory", "--value", "64mb", "--undo-file", file, "--yes", part="exists already")
    assert setting(redis, "maxmemory") == "0" and file.read_text() == "mine"


def test_a_value_that_somebody_has_changed_since_is_named_and_restored(redis, tmp_path):
    file = tmp_path / "undo.json"
    run("tune", redis.url, "--apply", "redis-maxmemory", "--value", "64mb", "--undo-file", file, "--yes")
    assert setting(redis, "maxmemory") == str(64 << 20)
    assert f"maxmemory {64 << 20}" in (redis.directory / "redis.conf").read_text() or "maxmemory 64mb" in (redis.directory / "redis.conf").read_text()
    redis_cli(redis, "CONFIG", "SET", "maxmemory", "32mb")
    done = run("tune", redis.url, "--undo", file, "--yes")
    assert "somebody has changed it" in done.stdout and setting(redis, "maxmemory") == "0", done.stdout


def test_a_rule_that_cannot_be_applied_says_why(redis):
    refused(redis.url, "--apply", "redis-io-threads", "--value", "2", "--yes", part="from its file")
    refused(redis.url, "--apply", "redis-lazyfree-user-del", "--yes", part="--value")
    refused(redis.url, "--apply", "redis-nothing", "--yes", part="there is no rule")
    refused(redis.url, "--yes", part="--apply")
    refused(redis.url, "--set", "seed=1", part="--prove")


def test_a_user_without_the_privilege_is_told_the_grant(redis, tmp_path):
    redis_cli(redis, "ACL", "SETUSER", "watcher", "on", ">secret", "~*", "+@all", "-config|set")
    url, file = f"redis://watcher:secret@127.0.0.1:{redis.port}", tmp_path / "undo.json"
    done = run("tune", url, "--apply", "redis-maxmemory", "--value", "64mb", "--undo-file", file, "--yes", check=False)
    assert done.returncode == 2 and "+config|set" in done.stdout and "changed: nothing" in done.stdout, done.stdout
    assert "secret" not in file.read_text()
    refused(url.replace("secret", "wrong"), "--apply", "all", "--yes", part="password")


def test_a_proof_restores_the_target_and_writes_what_it_has_found(redis, tmp_path):
    before = setting(redis, "appendfsync")
    directory = tmp_path / "proof"
    output = prove(redis, directory, "--blocks-max", "6")
    proof = proof_of(directory)
    assert (proof["rule"], proof["end"], proof["target_restarted"]) == ("redis-appendfsync", "rolled_back", False)
    assert proof["verdict"] in ("better", "worse", "equivalent", "cannot_tell") and proof["risks"]
    assert {run["arm"] for run in proof["runs"]} == {"A", "B"}, output
    assert json.loads((directory / "ab.json").read_text())["b"] == ["appendfsync = no"]
    assert (directory / "run-001-A" / "result.json").exists() and (directory / "undo.json").exists()
    assert setting(redis, "appendfsync") == before and "rolled back" in output


def start_until_changed(server, directory):
    """A proof that has made its change."""
    process = subprocess.Popen(proof_command(server, directory), env=clean_environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    wait.until(lambda: process.poll() is not None or setting(server, "appendfsync") == "no", "the change is made", 240)
    assert process.poll() is None, process.stdout.read()
    return process


def test_a_signal_ends_a_proof_and_the_target_is_restored(redis, tmp_path):
    before = setting(redis, "appendfsync")
    process = start_until_changed(redis, tmp_path / "proof")
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 2 and "rolled back" in output, output
    assert setting(redis, "appendfsync") == before
    proof = proof_of(tmp_path / "proof")
    assert proof["end"] == "rolled_back" and proof["answer"] is None and proof["stopped"]


def test_a_target_that_starts_again_ends_a_proof(redis, tmp_path):
    process = start_until_changed(redis, tmp_path / "proof")
    redis.end()
    redis.start()
    output, _ = process.communicate(timeout=240)
    assert process.returncode == 2, output
    proof = proof_of(tmp_path / "proof")
    assert proof["end"] == "rolled_back" and proof["answer"] is None, output
    assert proof["target_restarted"] or "does not answer" in proof["stopped"], output
    assert proof["runs"][-1]["invalid"], proof["runs"]
    assert setting(redis, "appendfsync") == "everysec"


def test_a_setting_of_a_file_needs_the_commands_of_the_user(redis):
    file = [redis.url, "--prove", "redis-io-threads", "--value", "2", "--scenario", "gemini-str32"]
    refused(*file, part="--change-command and --undo-command and --restart-command")
    refused(redis.url, "--prove", "redis-appendfsync", "--scenario", "gemini-str32", part="--value")
    refused(redis.url, "--prove", "redis-appendfsync", "--value", "no", part="--scenario")


def test_a_setting_of_a_file_is_proved_with_the_commands_of_the_user(redis, tmp_path):
    configuration, pid = redis.directory / "redis.conf", redis.directory / "pid"
    redis.end()
    # The data of the load must survive the restarts.
    start = f"redis-server {configuration}"
    configuration.write_text(f"port {redis.port}\nbind 127.0.0.1\ndir {redis.directory}\nsave ''\nappendonly yes\ndaemonize yes\npidfile {pid}\nio-threads 1\n")
    subprocess.run(start.split(), check=True)
    try:
        wait.until(lambda: subprocess.run(["redis-cli", "-p", str(redis.port), "PING"], capture_output=True).returncode == 0, "it answers")
        change = ["--change-command", f"sed -i 's/^io-threads .*/io-threads 2/' {configuration}"]
        undo = ["--undo-command", f"sed -i 's/^io-threads .*/io-threads 1/' {configuration}"]
        restart = ["--restart-command", f"kill $(cat {pid}); while [ -e {pid} ]; do sleep 0.1; done; {start}"]
        commands = [*change, *undo, *restart]
        output = prove(redis, tmp_path / "proof", *commands, "--blocks-max", "6", rule="redis-io-threads", value="2")
        proof = proof_of(tmp_path / "proof")
        assert (proof["end"], proof["target_restarted"], proof["arms"]) == ("rolled_back", False, ["io-threads = 1", "io-threads = 2"]), output
        assert {run["arm"] for run in proof["runs"]} == {"A", "B"} and setting(redis, "io-threads") == "1"
    finally:
        redis_cli(redis, "SHUTDOWN", "NOSAVE")

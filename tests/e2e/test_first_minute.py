"""What a newcomer types: the commands that are printed, as they are printed; status, completions, manual pages, errors."""

import json
import os
import re
import shlex
import signal
import subprocess
import time

import pytest

from harness.server import Demo, Server, binary, clean_environment, run

GUARD_S = 60


def shell(line, **more):
    """Types a line into a shell that does not find `tacho`."""
    done = subprocess.run(
        ["bash", "-c", line], env=clean_environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=GUARD_S, **more
    )
    assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """A demo in a directory whose name needs quotes."""
    directory = tmp_path_factory.mktemp("the demo's data")
    with Demo(directory, "--devices", "3", "--postgres", "127.0.0.1:0") as demo:
        deadline = time.monotonic() + GUARD_S
        while not any("ends the demo" in line for line in demo.lines):
            assert time.monotonic() < deadline, demo.log()
            time.sleep(0.05)
        yield demo


def printed(demo):
    """The commands that the demo prints."""
    return [line.strip() for line in demo.lines if re.match(r"  \S+ .*(--data|-p) ", line)]


def test_every_command_that_the_demo_prints_runs_as_it_is_printed(demo):
    commands = printed(demo)
    outputs = [shell(command) for command in commands]
    programs = [shlex.split(command)[0].rsplit("/")[-1] for command in commands]
    assert programs == ["tacho", "mosquitto_pub", "tacho", "psql", "tacho", "tacho"], commands
    assert demo.api.latest("my-device", "speed") == 42.5
    assert "my-device" in outputs[2], outputs[2]
    assert "mean-speed-minute" in outputs[4], outputs[4]
    assert outputs[-1].startswith("state        ready\n"), outputs[-1]


def test_the_demo_says_how_to_log_in(demo):
    user = next(line.split()[1] for line in demo.lines if line.startswith("  user "))
    where = next(line for line in demo.lines if line.startswith("  password "))
    assert user == "admin@tachograph.local" and str(demo.directory / "admin-password") in where


def test_a_demo_without_a_directory_prints_its_password(tmp_path):
    class Temporary(Demo):
        def _arguments(self):
            return ["demo", *self.more]

    with Temporary(tmp_path, "--devices", "1", "--mqtt", "127.0.0.1:0", "--http", "127.0.0.1:0", "--postgres", "127.0.0.1:0") as demo:
        deadline = time.monotonic() + GUARD_S
        while not (found := [line.split()[1] for line in demo.lines if line.startswith("  password ")]):
            assert time.monotonic() < deadline, demo.log()
            time.sleep(0.05)
        from harness.rest import Api

        assert Api(demo.url).login("admin@tachograph.local", found[0]).token


def test_the_name_alone_is_printed_where_the_shell_finds_this_program(tmp_path):
    (tmp_path / "tacho").symlink_to(binary())
    path = f"{tmp_path}:{os.environ['PATH']}"
    assert "  tacho demo " in run("--help", env={"PATH": path}).stdout
    other = tmp_path / "other"
    other.mkdir()
    (other / "tacho").write_text("#!/bin/sh\n")
    (other / "tacho").chmod(0o755)
    found = run("--help", env={"PATH": f"{other}:{path}"}).stdout
    assert f"  {shlex.quote(os.path.realpath(binary()))} demo " in found or f"  {binary()} demo " in found, found


def test_the_examples_of_help_run_as_they_are_printed(own_server):
    server = own_server()
    for command in ("status", "sql", "config"):
        text = run(command, "--help").stdout
        for line in re.findall(rf"^  (\S*tacho {command}\b.*)$", text, re.M):
            if any(word in line for word in ("--url", "/var/lib", "/etc", "dead_letter", "-7", "INTERVAL", "FROM telemetry")) or line.endswith("tacho sql"):
                continue  # names what is not there, or is a prompt
            shell(f"{line} --data {shlex.quote(str(server.directory))} </dev/null" if "|" not in line else line)
    server.stop()


def test_a_hint_starts_the_server_that_is_missing(tmp_path):
    data = tmp_path / "no server's directory"
    data.mkdir()
    (tmp_path / "rows.csv").write_text("ts,speed\n1768464000000,1\n")
    done = run("import", "--data", data, "--device", "car", tmp_path / "rows.csv", env={"PATH": "/usr/bin:/bin"}, check=False)
    assert done.returncode == 1, done
    hint = re.search(r"`(.* serve .*?)`", done.stderr)
    assert hint, done.stderr
    served = subprocess.Popen(
        ["bash", "-c", f"exec {hint[1]} --mqtt 127.0.0.1:0 --http 127.0.0.1:0"], env=clean_environment(), stdout=subprocess.PIPE, text=True
    )
    try:
        for line in served.stdout:
            if line == "ready\n":
                break
        else:
            raise AssertionError(f"{hint[1]} did not start a server")
    finally:
        served.send_signal(signal.SIGTERM)
        served.stdout.close()
        assert served.wait(timeout=GUARD_S) == 0


def status(server, *more):
    done = run("status", "--json", "--data", server.directory, *more, check=False)
    return done.returncode, json.loads(done.stdout)


def test_status_tells_how_a_server_is(own_server):
    server = own_server()
    device = server.device()
    server.api.send(device.token, {"speed": 1})
    code, told = status(server)
    assert (code, told["state"], told["url"], told["process"]) == (0, "ready", server.url, server.process.pid)
    assert told["durability"] == "fsync" and told["disk"]["used_bytes"] > 0 and told["connections"]["mqtt"] == 0
    assert [(table["table"], table["rows"]) for table in told["tables"]] == [("audit", 1), ("telemetry", 1)]
    assert told["points_per_s"] >= 0 and told["version"] in run("--version").stdout
    lines = run("status", "--data", server.directory).stdout
    assert lines.startswith("state        ready\n") and "telemetry: 1 rows" in lines, lines
    by_url = run("status", "--json", "--url", server.url, "--data", "/nowhere")
    assert json.loads(by_url.stdout)["state"] == "ready"

    server.process.send_signal(signal.SIGSTOP)
    code, told = status(server)
    server.process.send_signal(signal.SIGCONT)
    assert (code, told["state"]) == (1, "silent") and told["reasons"], told
    server.stop()
    code, told = status(server)
    assert (code, told["state"], told["url"]) == (1, "stopped", None)


def test_status_is_not_fooled_by_the_file_of_a_killed_server(own_server):
    server = own_server()
    server.kill()
    assert status(server)[1]["state"] == "stopped"


def test_status_of_nothing_is_an_error():
    done = run("status", "--data", "/nowhere", check=False)
    assert done.returncode == 1 and "no data directory /nowhere" in done.stderr, done.stderr


def test_config_is_printed_as_json_too(tmp_path):
    told = json.loads(run("config", "--json", "--data", tmp_path / "d").stdout)
    assert told["data"] == str(tmp_path / "d") and ":" in told["mqtt"]["listen"]


@pytest.mark.parametrize(("name", "checker"), [("bash", ["bash", "-n"]), ("zsh", None), ("fish", None)])
def test_completions(name, checker, tmp_path):
    text = run("completions", name).stdout
    assert "status" in text and "expanded" in text
    if checker:
        script = tmp_path / "completion"
        script.write_text(text)
        subprocess.run([*checker, script], check=True, timeout=GUARD_S)
        asked = f"source {script}; COMP_WORDS=(tacho sta); COMP_CWORD=1; _tacho tacho sta tacho; echo ${{COMPREPLY[@]}}"
        assert shell(asked).strip() == "status"


def test_manual_pages(tmp_path):
    assert ".TH tacho 1" in run("man").stdout
    page = run("man", "device", "add").stdout
    assert "tacho\\-device\\-add" in page or "tacho device add" in page, page[:500]
    run("man", "--out", tmp_path / "man1")
    pages = {path.name for path in (tmp_path / "man1").iterdir()}
    assert {"tacho.1", "tacho-sql.1", "tacho-device-add.1", "tacho-status.1"} <= pages, pages


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ([], 2, ["Usage:", "demo"]),
        (["stauts"], 2, ["stauts", "status"]),
        (["demo", "--devises", "3"], 2, ["--devices"]),
        (["sql", "--url", "http://127.0.0.1:1", "SELECT 1"], 1, ["no answer from http://127.0.0.1:1", "server runs"]),
        (["sql", "--url", "127.0.0.1:8080", "SELECT 1"], 1, ["http://127.0.0.1:8080"]),
        (["sql", "--data", "", "SELECT 1"], 2, ["--data"]),
        (["serve", "--config", "/nowhere.toml"], 2, ["/nowhere.toml"]),
    ],
    ids=["nothing", "command", "option", "port", "url", "empty", "config"],
)
def test_errors_say_what_is_wrong_and_what_to_do(arguments, code, words, tmp_path):
    done = run(*arguments, env={"TACHO_PASSWORD": "x"}, check=False)
    assert done.returncode == code, done
    assert all(word in done.stderr for word in words), done.stderr


def test_the_address_of_another_door_is_not_an_answer(own_server):
    server = own_server()
    done = run("sql", "--url", f"http://127.0.0.1:{server.mqtt}", "SELECT 1", env={"TACHO_PASSWORD": "x"}, check=False)
    assert done.returncode == 1 and "HTTP door" in done.stderr, done.stderr
    server.stop()


def test_a_directory_that_is_not_a_data_directory_is_named(tmp_path):
    (tmp_path / "photos").mkdir()
    for command in (["sql", "SELECT 1"], ["status"]):
        done = run(*command, "--data", tmp_path / "photos", check=False)
        assert done.returncode == 1 and "is not a data directory" in done.stderr, done.stderr
    assert list((tmp_path / "photos").iterdir()) == []


@pytest.mark.parametrize("command", [["serve"], ["sql", "SELECT 1"], ["status"], ["check"]], ids=lambda command: command[0])
def test_a_file_is_not_a_data_directory(command, tmp_path):
    (tmp_path / "file").write_text("")
    done = run(*command, "--data", tmp_path / "file", check=False)
    assert done.returncode == 1 and "is a file, not a data directory" in done.stderr, done.stderr


def test_an_empty_name_of_the_data_directory_is_refused(tmp_path):
    done = run("serve", env={"TACHO_DATA": ""}, check=False)
    assert done.returncode == 2 and "setting data is empty" in done.stderr, done.stderr


@pytest.mark.parametrize("command", [["serve"], ["sql", "SELECT 1"], ["status"], ["check"], ["table", "list"]], ids=lambda command: command[0])
def test_a_directory_of_another_user_is_named_with_its_owner(command, tmp_path):
    data = tmp_path / "data"
    Server(data).command("device", "add", "car")
    if os.geteuid() == 0:
        os.chmod(tmp_path, 0o755)
        for above in tmp_path.parents:
            # Each of the processes that run tests has a directory of its own below that of pytest.
            if above.name.startswith(("pytest-", "popen-")):
                above.chmod(0o755)
        # The program may lie where only root gets to: it is opened before the user changes.
        program = os.open(binary(), os.O_RDONLY)
        done = subprocess.run(
            [f"/proc/self/fd/{program}", *command, "--data", str(data)], pass_fds=[program], user=65534, extra_groups=[],
            env=clean_environment(), cwd="/", capture_output=True, text=True, timeout=GUARD_S,
        )
        os.close(program)
        words = ["root", "nobody", "sudo -u root"]
    else:
        data.chmod(0o000)
        done = run(*command, "--data", data, check=False)
        data.chmod(0o700)
        words = ["chmod"]
    assert done.returncode == 1 and str(data) in done.stderr, done
    assert all(word in done.stderr for word in words), done.stderr

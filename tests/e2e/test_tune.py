"""`tacho tune host:`: the findings agree with /proc and /sys."""

import contextlib
import json
import os
import re
import resource
import socket
import subprocess
from pathlib import Path

import pytest
import requests

from harness import wait
from harness.server import Server, binary, clean_environment, run

SIZES = ["prevents_failure", "large", "moderate", "small"]


def tune(*arguments):
    """Runs `tacho tune` with --json; the exit code shows whether there are findings."""
    done = run("tune", *arguments, "--json", check=False)
    report = json.loads(done.stdout)
    assert done.returncode == (1 if report["findings"] else 0), done.stdout + done.stderr
    return report


def of(report, rule):
    """The findings of a rule."""
    return [finding for finding in report["findings"] if finding["rule"] == rule]


def sysctl(name):
    """A number of sysctl, or None if the kernel does not have it."""
    path = Path("/proc/sys") / name.replace(".", "/")
    try:
        return int(path.read_text().split()[0])
    except OSError:
        return None


def test_current_values_are_those_of_proc():
    report = tune("host:")
    assert (report["variant"], report["role"], report["version"]) == ("linux", "server", os.uname().release)
    for finding in report["findings"]:
        if re.match(r"(net|vm|fs|kernel)\.", finding["parameter"]) and finding["unit"] != "text":
            assert finding["current"] == sysctl(finding["parameter"]), finding
        assert finding["suggested"] != finding["current"]
        assert all(finding[text] for text in ("why", "change", "undo", "source")), finding


# Rules whose condition needs one number: the finding is there if, and only if, the number is wrong.
@pytest.mark.parametrize(
    ("rule", "parameter", "is_wrong"),
    [
        ("linux-somaxconn", "net.core.somaxconn", lambda value: value < 4_096),
        ("linux-file-max", "fs.file-max", lambda value: value < 262_144),
        ("linux-nr-open", "fs.nr_open", lambda value: value < 1_048_576),
        ("linux-zone-reclaim", "vm.zone_reclaim_mode", lambda value: value != 0),
    ],
)
def test_a_finding_is_there_if_the_value_is_wrong(rule, parameter, is_wrong):
    value = sysctl(parameter)
    if value is None:
        pytest.skip(f"this kernel has no {parameter}")
    assert bool(of(tune("host:"), rule)) == is_wrong(value)


def test_transparent_hugepages_agree_with_sys():
    path = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    if not path.exists():
        pytest.skip("this kernel has no transparent huge pages")
    mode = re.search(r"\[(\w+)\]", path.read_text()).group(1)
    assert [finding["current"] for finding in of(tune("host:"), "linux-transparent-hugepages")] == ["always"] * (mode == "always")


def test_dirty_pages_agree_with_the_memory():
    total = int(re.search(r"MemTotal:\s+(\d+) kB", Path("/proc/meminfo").read_text()).group(1)) * 1_024
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
    except OSError:
        limit = "max"
    memory = total if limit == "max" else min(total, int(limit))
    is_wrong = sysctl("vm.dirty_bytes") == 0 and sysctl("vm.dirty_ratio") / 100 * memory > 2 * 2**30
    assert bool(of(tune("host:"), "linux-dirty-bytes")) == is_wrong


def test_limits_of_open_files_are_those_of_the_process():
    hard = min(4_096, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    command = ["prlimit", f"--nofile=1024:{hard}", binary(), "tune", "host:", "--json"]
    done = subprocess.run(command, env=clean_environment(), capture_output=True, text=True, timeout=60)
    assert done.returncode == 1, done.stderr
    report = json.loads(done.stdout)
    (finding,) = of(report, "linux-nofile-hard")
    assert (finding["current"], finding["suggested"]) == (hard, 1_048_576)
    assert not of(report, "linux-nofile-soft"), "the soft limit cannot be raised above the hard one"


def test_a_generator_has_rules_of_its_own():
    generator, server = tune("host:generator"), tune("host:")
    assert generator["role"] == "generator"
    first, last = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    found = of(generator, "linux-local-ports")
    assert bool(found) == (last - first + 1 < 60_000)
    assert all(finding["current"] == f"{first} {last}" for finding in found)
    assert not of(server, "linux-local-ports") and not of(generator, "linux-somaxconn")


def test_findings_are_in_the_order_of_their_effect():
    sizes = [SIZES.index(finding["effect"]["level"]) for finding in tune("host:")["findings"]]
    assert sizes == sorted(sizes)


def test_counters_of_a_window_are_counted_in_the_window():
    evidence = [each for finding in tune("host:", "--window", "1")["findings"] for each in finding["evidence"]]
    windows = [each["window_s"] for each in evidence if "window_s" in each]
    assert all(0.5 <= window <= 30 for window in windows), windows


def test_the_text_has_the_same_findings_and_no_colours():
    done = run("tune", "host:", check=False)
    findings = tune("host:")["findings"]
    assert "\x1b" not in done.stdout
    assert len(re.findall(r"^\d+\. ", done.stdout, re.MULTILINE)) == len(findings)
    assert len(re.findall(r"^   undo  ", done.stdout, re.MULTILINE)) == len(findings)
    for finding in findings:
        assert f"(rule {finding['rule']})" in " ".join(done.stdout.split()), finding["rule"]


@pytest.mark.parametrize("target", ["oracle://127.0.0.1", "host", "host:database", ""])
def test_another_target_is_refused_with_the_list_of_targets(target):
    done = run("tune", target, check=False)
    assert done.returncode == 2
    assert "host:generator" in done.stderr and f"`{target}`" in done.stderr, done.stderr
    assert not done.stdout


def test_a_window_that_is_not_a_time_is_refused():
    assert run("tune", "host:", "--window", "0", check=False).returncode == 2


def test_a_server_of_this_program_is_looked_at(server):
    report = tune(server.url.replace("http://", "tacho://"))
    assert (report["variant"], report["role"]) == ("tachograph", None) and report["version"] in run("--version").stdout
    undecided = {name for rule in report["undecided"] for name in rule["missing"]}
    assert undecided == {"free_disk_share"}, report["undecided"]


@pytest.mark.parametrize(("files", "found"), [(1_024, True), (4_096, False)])
def test_too_few_open_files_for_the_connections_are_found(tmp_path, files, found):
    server = Server(tmp_path / "data")
    server.limit = ["prlimit", f"--nofile={files}:{files}"]
    with server, contextlib.ExitStack() as stack:
        # The server keeps 640 of 1,024 files for other things.
        for _ in range(500):
            stack.enter_context(socket.create_connection(("127.0.0.1", server.listeners["mqtt"])))
        wait.until(lambda: connections(server) == 500, "all connections are open or refused")
        report = tune(server.url.replace("http://", "tacho://"))
        assert bool(of(report, "tachograph-nofile")) == found, report


def connections(server):
    """The connections of the MQTT door that are open or were refused."""
    metrics = requests.get(f"{server.url}/metrics", timeout=60).text
    names = ['tacho_connections{door="mqtt"}', 'tacho_refusals_total{door="mqtt",reason="connections_max"}']
    return sum(int(line.rsplit(" ", 1)[1]) for line in metrics.splitlines() if line.startswith(tuple(names)))

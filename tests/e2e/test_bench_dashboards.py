"""`tacho bench` measures applications: small versions of the scenarios, on a server that the run starts and on one that runs."""

import csv
import re

import pytest

from harness.bench import bench

SECOND = ["warmup=0s", "duration=1s"]
FANOUT = [
    *(f"phase.{phase}.{key}" for phase in ("alone", "followed") for key in SECOND),
    *(f"phase.{phase}.mix.devices.{key}" for phase in ("alone", "followed") for key in ("connections=20", "rate=200")),
    "phase.followed.mix.sockets.connections=10",
    "dataset.devices_each=6",
]
PAGE = ["phase.write.duration=1s", "phase.write.mix.devices.connections=30", "phase.write.mix.devices.rate=100"] + [
    f"phase.ask.{key}" for key in SECOND
]
CREATE = [f"phase.{phase}.{key}" for phase in ("one", "four", "sixteen") for key in SECOND]
ALARMS = [
    "phase.run.warmup=0s",
    "phase.run.duration=2s",
    "phase.run.mix.devices.connections=30",
    "phase.run.mix.devices.rate=300",
    "dataset.profiles=3",
    "dataset.raise_every=5",
]


def own(tmp_path):
    """The option that puts the data of a server of the run where the test is."""
    return ["--set", f"target.data={tmp_path / 'data'}"]


def found(result):
    """What the checks found, by name."""
    return {check["what"]: check["found"] for check in result["verification"]}


def said(result, text):
    """The finding with a text."""
    (finding,) = [finding for finding in result["findings"] if text in finding]
    return finding


@pytest.mark.parametrize("subscription", ["entity-data", "timeseries"])
def test_every_socket_gets_the_values_of_its_devices(tmp_path, subscription):
    sets = [*FANOUT, f"dataset.subscription={subscription}"]
    result, completed = bench("dashboards-fanout", tmp_path / "out", sets, *own(tmp_path))
    publishes = completed["followed"]["publish"]
    # Ten sockets with six of twenty devices each: three copies of a message, without those that a newer value replaced.
    coalesced = int(said(result, "coalesced").split(" more were coalesced")[0].split()[-1])
    assert completed["followed"]["deliver"] + coalesced == 3 * publishes > 300
    assert set(found(result).values()) == {"0"} and len(found(result)) == 4
    assert "without sockets (alone)" in said(result, "Ingest: ")
    with (tmp_path / "out" / "seconds.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert sum(int(row["completed"]) for row in rows if row["operation"] == "deliver") == completed["followed"]["deliver"]


def test_sockets_that_never_read_do_not_disturb_the_others(tmp_path):
    sets = [*FANOUT, "dataset.unread_sockets=3"]
    result, completed = bench("dashboards-fanout", tmp_path / "out", sets, *own(tmp_path))
    assert completed["followed"]["deliver"] > 300
    assert "3 more sockets subscribed and never read" in said(result, "never read")


def test_pages_have_what_was_written(tmp_path):
    result, completed = bench("dashboards-page", tmp_path / "out", PAGE, *own(tmp_path))
    pages = completed["ask"]["page"]
    assert pages > 5 and completed["write"]["publish"] >= 90
    compared = int(said(result, "were compared").split(": ")[1].split()[0])
    # The last page came after the measured part.
    assert compared in (pages * 30 * 3, (pages + 1) * 30 * 3)
    assert set(found(result).values()) == {"0"}


def test_pages_without_values_are_refused(tmp_path):
    refused = bench("dashboards-page", tmp_path / "out", PAGE, *own(tmp_path), "--phase", "ask", check=False)
    assert refused.returncode != 0 and "30 of 30 devices have sent nothing" in refused.stderr, refused.stderr


def test_devices_that_clients_create_are_counted(tmp_path):
    result, completed = bench("devices-create", tmp_path / "out", CREATE, *own(tmp_path))
    for phase in ("one", "four", "sixteen"):
        (created,) = re.findall(rf"{phase}: (\d+) devices were created", " ".join(result["findings"]))
        assert found(result)[f"devices that the server lists ({phase})"] == created
        # The last ones were created after the measured part.
        assert 5 < completed[phase]["create"] <= int(created)


def test_every_message_above_the_limit_has_one_alarm(tmp_path):
    result, completed = bench("alarm-rules", tmp_path / "out", ALARMS, *own(tmp_path))
    words = said(result, "above the limit").split()
    raised, timed = int(words[1]), int(words[words.index("timed.") - 3])
    assert raised == timed >= completed["run"]["alarm"] > 50
    assert completed["run"]["publish"] >= 590
    assert set(found(result).values()) == {"0"} and len(found(result)) == 3


def test_a_running_server_is_measured_and_told_what_stays(own_server, tmp_path):
    # The devices stay: thousands of them would disturb the tests that share a server.
    server = own_server()
    known = ["--target", f"mqtt://127.0.0.1:{server.mqtt}", "--set", f"target.http={server.url.rstrip('/')}"]
    env = {"TACHO_PASSWORD": server.password}
    for scenario, sets, stays in [
        ("dashboards-fanout", [*FANOUT, "dataset.device_prefix=live-", "dataset.token_prefix=live-tok-"], "device delete"),
        ("devices-create", CREATE, "names begin with `bench-"),
        ("alarm-rules", ALARMS, "`alarm-profile-0`"),
    ]:
        result, _ = bench(scenario, tmp_path / scenario, sets, *known, env=env)
        assert any(stays in finding for finding in result["findings"]), result["findings"]
    # Its devices and profiles are there already, and the alarms of that run are not those of this one.
    result, _ = bench("alarm-rules", tmp_path / "again", ALARMS, *known, env=env)
    other = [*ALARMS, "dataset.profiles=2"]
    refused = bench("alarm-rules", tmp_path / "other", other, *known, env=env, check=False)
    assert refused.returncode != 0 and "put into other profiles" in refused.stderr, refused.stderr
    without = bench("alarm-rules", tmp_path / "without", ALARMS, *known[:2], check=False)
    assert without.returncode != 0 and "give target.password" in without.stderr, without.stderr

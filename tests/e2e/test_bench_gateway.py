"""`tacho bench run gateway`, small: on a server that the run starts, and on one that runs."""

import re

from harness.bench import bench

SMALL = [
    "dataset.gateway_devices=30",
    "dataset.devices_per_message=20",
    "phase.run.rate=50",
    *(f"phase.{phase}.{key}" for phase in ("run", "most") for key in ("warmup=0s", "duration=1s")),
]


def check(result, completed):
    """Each device was connected once, and each acknowledged point is there."""
    assert completed["connect"] == {"connect": 30}
    assert {check["found"] for check in result["verification"]} == {"0"}
    for phase in ("run", "most"):
        points = 20 * completed[phase]["publish"]
        assert points > 0
        # An answer after the end of the phase belongs to a point that is stored, and to no completed operation of the phase.
        said = re.compile(rf"{phase}: 30 devices sent (\d+) points, \1 were acknowledged, \1 points are stored")
        found = [match for match in map(said.match, result["findings"]) if match]
        assert len(found) == 1 and int(found[0][1]) >= points, result["findings"]


def test_every_point_of_a_gateway_is_stored(tmp_path):
    check(*bench("gateway", tmp_path / "out", [*SMALL, f"target.data={tmp_path / 'data'}"]))


def test_a_running_server_gets_the_gateway_and_creates_the_devices(own_server, tmp_path):
    server = own_server()
    known = ["--target", f"mqtt://127.0.0.1:{server.mqtt}", "--set", f"target.http={server.url.rstrip('/')}"]
    env = {"TACHO_PASSWORD": server.password}
    # The second run finds them there.
    for out in ("first", "second"):
        result, completed = bench("gateway", tmp_path / out, SMALL, *known, env=env)
        check(result, completed)
        assert any("device delete" in finding and "`dev-29`" in finding for finding in result["findings"]), result["findings"]
    assert server.api.get("/api/tenant/devices", deviceName="gateway-0")["additionalInfo"] == {"gateway": True}
    assert server.api.get("/api/tenant/devices", deviceName="dev-7")["additionalInfo"]["lastConnectedGateway"]


def test_a_device_that_is_not_a_gateway_is_refused(own_server, tmp_path):
    server = own_server()
    server.api.post("/api/device?accessToken=gateway-0", {"name": "gateway-0"})
    known = ["--target", f"mqtt://127.0.0.1:{server.mqtt}", "--set", f"target.http={server.url.rstrip('/')}"]
    sets = [*SMALL, "phase.connect.duration=1s"]
    refused = bench("gateway", tmp_path / "out", sets, *known, "--phase", "connect", env={"TACHO_PASSWORD": server.password}, check=False)
    assert refused.returncode != 0
    assert "PUBACK 0x87" in refused.stdout + refused.stderr, refused.stdout + refused.stderr

"""Firmware and software over the air: ThingsBoard's own clients for devices and REST, paho, and plain HTTP."""

import hashlib
import json
import zlib

import pytest
import requests
from tb_rest_client.models.models_ce import Device, DeviceProfile, SaveOtaPackageInfoRequest
from tb_rest_client.rest_client_ce import RestClientCE

from harness.server import run
from test_broker import Client
from test_thingsboard_mqtt import ThingsBoardDevice

WAIT_S = 60
BYTES = bytes(n * n % 251 for n in range(70_001))


class Site:
    """A server with a device, and ThingsBoard's client as its administrator."""

    def __init__(self, server):
        self.server = server
        self.client = RestClientCE(base_url=server.url)
        self.client.login(username="admin@tachograph.local", password=server.password)
        self.profile = self.client.get_default_device_profile_info().id
        self.device = self.client.save_device(body=Device(name="pump 1", device_profile_id=self.profile), access_token="pump-token")

    def add(self, title, version, kind="FIRMWARE", **more):
        body = SaveOtaPackageInfoRequest(title=title, version=version, type=kind, device_profile_id=self.profile, **more)
        return self.client.save_ota_package_info(body=body)

    def upload(self, package, content=BYTES, name="pump.bin", **params):
        params = {"checksumAlgorithm": "SHA256"} | params
        files = {"file": (name, content, "application/x-firmware")}
        api = self.server.api
        return api.session.post(f"{self.server.url}/api/otaPackage/{package.id.id}", params=params, files=files, timeout=WAIT_S)

    def package(self, version="2", content=BYTES, **more):
        package = self.add("pump", version, **more)
        reply = self.upload(package, content)
        assert reply.status_code == 200, reply.text
        return package

    def give(self, package, member="firmware_id"):
        device = self.client.get_device_by_id(self.device.id)
        setattr(device, member, package and package.id)
        return self.client.save_device(body=device)

    def shared(self):
        path = f"/api/plugins/telemetry/DEVICE/{self.device.id.id}/values/attributes/SHARED_SCOPE"
        return {one["key"]: one["value"] for one in self.server.api.get(path)}


@pytest.fixture
def site(own_server):
    return Site(own_server())


def test_thingsboards_device_client_updates_its_firmware(site):
    package = site.package()
    site.give(package)
    with ThingsBoardDevice(site.server, "pump-token", "thingsboard_firmware.py") as device:
        assert device.next("firmware") == {"sha256": hashlib.sha256(BYTES).hexdigest(), "version": "2"}
    assert site.server.api.latest("pump 1", "fw_state") == "UPDATED"
    assert site.server.api.latest("pump 1", "target_fw_version") == "2"


def test_packages_over_rest(site, tmp_path):
    package = site.add("pump", "2", additional_info={"note": "n"})
    assert (package.has_data, package.tag, package.checksum) == (False, "pump 2", None)
    file = tmp_path / "pump 2.bin"
    file.write_bytes(BYTES)
    stored = site.client.save_ota_package_data(package.id, checksum="", checksum_algorithm="MD5", file=str(file))
    assert (stored.has_data, stored.data_size, stored.checksum) == (True, len(BYTES), hashlib.md5(BYTES).hexdigest())
    found = site.client.get_ota_package_info_by_id(package.id)
    assert (found.title, found.checksum_algorithm, found.additional_info) == ("pump", "MD5", {"note": "n"})
    api = site.server.api
    download = api.session.get(f"{site.server.url}/api/otaPackage/{package.id.id}/download", timeout=WAIT_S)
    assert download.content == BYTES and download.headers["x-filename"] == "pump_2.bin"
    assert int(download.headers["Content-Length"]) == len(BYTES)
    for version in ("10", "3"):
        site.add("pump", version)
    listed = site.client.get_ota_packages(page_size=2, page=0, sort_property="version", sort_order="ASC")
    assert ([one.version for one in listed.data], listed.total_elements) == (["10", "2"], 3)
    assert [one.version for one in site.client.get_ota_packages_v1(site.profile, "FIRMWARE", 10, 0).data] == ["2"]
    assert site.client.count_by_device_profile_and_empty_ota_package("FIRMWARE", site.profile) == 1
    site.give(package)
    assert site.client.count_by_device_profile_and_empty_ota_package("FIRMWARE", site.profile) == 0
    used = api.session.delete(f"{site.server.url}/api/otaPackage/{package.id.id}", timeout=WAIT_S)
    assert used.status_code == 400 and "devices and device profiles" in used.text
    site.give(None)
    site.client.delete_ota_package(package.id)
    gone = api.session.get(f"{site.server.url}/api/otaPackage/info/{package.id.id}", timeout=WAIT_S)
    assert gone.status_code == 404


def test_a_wrong_upload_is_refused_and_can_be_made_again(site):
    package = site.add("pump", "1")
    wrong = site.upload(package, checksum="00")
    assert wrong.status_code == 400 and "Wrong otaPackage file" in wrong.json()["message"]
    for params, part in (({"checksumAlgorithm": "MURMUR3_32"}, "MD5, SHA256"), ({"checksumAlgorithm": ""}, "checksumAlgorithm is missing")):
        refused = site.upload(package, **params)
        assert refused.status_code == 400 and part in refused.json()["message"], refused.text
    assert site.upload(package, b"").status_code == 400
    plain = site.server.api.session.post(f"{site.server.url}/api/otaPackage/{package.id.id}", data=b"x", timeout=WAIT_S)
    assert plain.status_code == 400 and "multipart/form-data" in plain.json()["message"]
    checksum = zlib.crc32(BYTES).to_bytes(4, "little").hex()
    done = site.upload(package, checksum=checksum.upper(), checksumAlgorithm="crc32")
    assert done.status_code == 200 and done.json()["checksum"] == checksum
    again = site.upload(package)
    assert again.status_code == 400 and "never change" in again.json()["message"]
    assert requests.post(f"{site.server.url}/api/otaPackage/{package.id.id}", files={"file": b"x"}, timeout=WAIT_S).status_code == 401


def test_shared_attributes_follow_profile_and_device(site):
    with Client(site.server, "pump-token") as client:
        assert client.subscribe("v1/devices/me/attributes", 1) == [1]
        profile = site.client.get_device_profile_by_id(site.profile)
        profile.software_id = site.package(kind="SOFTWARE", version="7").id
        profile = site.client.save_device_profile(body=profile)
        assert profile.software_id.id is not None
        told = json.loads(client.message().payload)
        assert (told["sw_title"], told["sw_version"], told["sw_size"]) == ("pump", "7", len(BYTES))
        assert told["sw_checksum"] == hashlib.sha256(BYTES).hexdigest() and told["sw_checksum_algorithm"] == "SHA256"
        site.give(site.add("elsewhere", "1", url="https://example.org/fw", uses_url=True))
        assert json.loads(client.message().payload)["fw_url"] == "https://example.org/fw"
        site.give(None)
        assert set(json.loads(client.message().payload)["deleted"]) == {"fw_title", "fw_version", "fw_tag", "fw_url"}
        reply = requests.get(f"{site.server.url}/api/v1/pump-token/software", params={"title": "pump", "version": "7"}, timeout=WAIT_S)
        assert reply.content == BYTES and reply.headers["Content-Type"] == "application/x-firmware"
        chunk = requests.get(f"{site.server.url}/api/v1/pump-token/software", params={"title": "pump", "version": "7", "size": 1000, "chunk": 70}, timeout=WAIT_S)
        assert chunk.content == BYTES[70_000:]
    for path, params, code in (
        ("software", {"title": "pump", "version": "8"}, 400),
        ("software", {"version": "7"}, 400),
        ("software", {"title": "pump", "version": "7", "size": 1000, "chunk": 71}, 404),
        ("firmware", {"title": "pump", "version": "7"}, 404),
    ):
        refused = requests.get(f"{site.server.url}/api/v1/pump-token/{path}", params=params, timeout=WAIT_S)
        assert refused.status_code == code, (path, params, refused.text)
    assert requests.get(f"{site.server.url}/api/v1/nosuch/firmware", timeout=WAIT_S).status_code == 401


def test_chunks_over_mqtt_and_what_is_wrong(site):
    site.give(site.package())
    with Client(site.server, "pump-token") as client:
        assert client.subscribe("v2/fw/response/+/chunk/+", 1) == [1] and client.subscribe("v2/fw/error", 1) == [1]
        assert client.subscribe("v2/fw/#", 1) == [0x87]
        received = b""
        for number in range(3):
            # Later requests may leave the length out.
            assert client.publish(f"v2/fw/request/5/chunk/{number}", "30000" if number == 0 else "") == 0
            message = client.message()
            assert (message.topic, message.qos) == (f"v2/fw/response/5/chunk/{number}", 1)
            received += message.payload
        assert received == BYTES
        assert client.publish("v2/fw/request/6/chunk/0", "") == 0
        assert client.message().payload == BYTES
        for topic, payload, code, part in (
            ("v2/fw/request/5/chunk/3", "", 0x83, b"no chunk 3"),
            ("v2/fw/request/7/chunk/0", "2000000", 0x97, b"PACKAGE_CHUNK_BYTES_MAX"),
            ("v2/fw/request/7/chunk/0", "many", 0x99, b"not the length"),
        ):
            assert client.publish(topic, payload) == code
            fault = client.message()
            assert fault.topic == "v2/fw/error" and part in fault.payload
        assert client.publish("v2/sw/request/1/chunk/0", "10") == 0x83


def test_packages_survive_a_kill_and_are_in_a_backup(own_server, site, tmp_path):
    package = site.package()
    site.give(package)
    unfinished = site.add("pump", "3")
    site.server.kill()
    server = own_server(directory=site.server.directory)
    expected = {"title": "pump", "version": "2"}
    reply = requests.get(f"{server.url}/api/v1/pump-token/firmware", params=expected, timeout=WAIT_S)
    assert reply.content == BYTES
    assert server.api.get(f"/api/otaPackage/info/{unfinished.id.id}")["hasData"] is False
    server.command("backup", tmp_path / "backup")
    server.command("check")
    server.stop()
    run("restore", tmp_path / "backup", "--data", tmp_path / "restored")
    copy = own_server(directory=tmp_path / "restored")
    reply = requests.get(f"{copy.url}/api/v1/pump-token/firmware", params=expected, timeout=WAIT_S)
    assert reply.content == BYTES

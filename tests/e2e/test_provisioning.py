"""Provisioning with unchanged clients: ThingsBoard's device client and REST client, mosquitto, curl."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tb_rest_client.models.models_ce import (
    AllowCreateNewDevicesDeviceProfileProvisionConfiguration,
    CheckPreProvisionedDevicesDeviceProfileProvisionConfiguration,
    Device,
    DeviceProfile,
    DeviceProfileData,
)
from tb_rest_client.rest_client_ce import RestClientCE

from harness.certificates import client_certificate
from test_credentials import mosquitto_pub

WAIT_S = 60
HERE = Path(__file__).parent
CONFIGURATIONS = {
    "ALLOW_CREATE_NEW_DEVICES": AllowCreateNewDevicesDeviceProfileProvisionConfiguration,
    "CHECK_PRE_PROVISIONED_DEVICES": CheckPreProvisionedDevicesDeviceProfileProvisionConfiguration,
}


@pytest.fixture
def site(own_server):
    """A server with ThingsBoard's REST client as its administrator."""
    server = own_server()
    server.client = RestClientCE(base_url=server.url)
    server.client.login(username="admin@tachograph.local", password=server.password)
    return server


def profile(site, name, strategy, key="key", secret="secret"):
    configuration = CONFIGURATIONS[strategy](type=strategy, provision_device_secret=secret)
    body = DeviceProfile(name=name, type="DEFAULT", transport_type="DEFAULT", provision_type=strategy, provision_device_key=key,
                         profile_data=DeviceProfileData(provision_configuration=configuration))
    return site.client.save_device_profile(body=body)


def allow_gateways(site, name):
    """Lets devices of a profile become gateways; ThingsBoard's client has no member for it."""
    found = next(one for one in site.api.get("/api/deviceProfiles?page=0&pageSize=100")["data"] if one["name"] == name)
    found["profileData"]["tachoProvisionGateways"] = True
    site.api.post("/api/deviceProfile", found)


def provision(site, **options):
    """What ThingsBoard's device client gets; `None` if it is refused."""
    options = {"port": site.mqtt, "provision_device_key": "key", "provision_device_secret": "secret"} | options
    environment = os.environ | {"PYTHONPATH": str(Path(sys.prefix) / "thingsboard")}
    command = [sys.executable, str(HERE / "thingsboard_provision.py"), json.dumps(options)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=WAIT_S, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_thingsboards_client_gets_credentials_of_each_kind_and_logs_in(site, tmp_path):
    profile(site, "pump", "ALLOW_CREATE_NEW_DEVICES")
    certificate, _ = client_certificate(tmp_path, "car")
    body = "".join(line for line in certificate.read_text().splitlines() if not line.startswith("-----"))
    given = provision(site, device_name="a")
    assert given["credentialsType"] == "ACCESS_TOKEN"
    assert mosquitto_pub(site, "-u", given["credentialsValue"], value=1).returncode == 0
    assert provision(site, device_name="b", access_token="T9", gateway=True) is None
    allow_gateways(site, "pump")
    given = provision(site, device_name="b", access_token="T9", gateway=True)
    assert given["credentialsValue"] == "T9"
    given = provision(site, device_name="c", username="u", password="p", client_id="c")
    assert given["credentialsValue"] == {"clientId": "c", "userName": "u", "password": "p"}
    assert mosquitto_pub(site, "-i", "c", "-u", "u", "-P", "p", value=3).returncode == 0
    given = provision(site, device_name="d", hash=body)
    assert given == {"credentialsType": "X509_CERTIFICATE", "credentialsValue": body, "status": "SUCCESS"}
    assert (site.api.latest("a", "speed"), site.api.latest("c", "speed")) == (1, 3)
    found = site.client.get_tenant_device(device_name="b")
    assert (found.type, found.additional_info["gateway"]) == ("pump", True)
    states = site.api.get(f"/api/plugins/telemetry/DEVICE/{found.id.id}/values/attributes/SERVER_SCOPE?keys=provisionState")
    assert states[0]["value"] == "provisioned"


def test_refusals_reach_thingsboards_client(site):
    made = profile(site, "pump", "ALLOW_CREATE_NEW_DEVICES")
    site.client.save_device(body=Device(name="there", device_profile_id=made.id))
    assert provision(site, device_name="there") is None
    assert provision(site, device_name="new", provision_device_key="absent") is None
    assert provision(site, device_name="new", provision_device_secret="wrong") is None
    assert provision(site, device_name="new", username="", password="p") is None
    assert site.client.get_tenant_devices(page_size=10, page=0).total_elements == 1


def test_devices_that_are_there_get_what_they_have(site):
    made = profile(site, "pump", "CHECK_PRE_PROVISIONED_DEVICES")
    site.client.save_device(body=Device(name="there", device_profile_id=made.id), access_token="T1")
    site.client.save_device(body=Device(name="other", device_profile_id=site.client.get_default_device_profile_info().id))
    assert provision(site, device_name="there", access_token="ignored")["credentialsValue"] == "T1"
    assert provision(site, device_name="other") is None, "it has another profile"
    assert provision(site, device_name="absent") is None


def test_curl_and_a_disabled_profile(site):
    made = profile(site, "pump", "ALLOW_CREATE_NEW_DEVICES")

    def curl(device):
        body = json.dumps({"deviceName": device, "provisionDeviceKey": "key", "provisionDeviceSecret": "secret"})
        done = subprocess.run(["curl", "-sS", "--fail", "--json", body, f"{site.url}/api/v1/provision"], capture_output=True, text=True, timeout=WAIT_S)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    given = curl("a")
    assert given["status"] == "SUCCESS"
    site.api.send(given["credentialsValue"], {"speed": 7})
    assert site.api.latest("a", "speed") == 7
    made.provision_type, made.profile_data, made.provision_device_key = "DISABLED", None, None
    site.client.save_device_profile(body=made)
    assert curl("b") == {"errorMsg": "Provision data was not found!", "status": "NOT_FOUND"}


def test_many_devices_ask_at_once_and_survive_a_kill(site):
    profile(site, "pump", "ALLOW_CREATE_NEW_DEVICES")
    url = f"{site.url}/api/v1/provision"

    def ask(number):
        body = {"deviceName": f"p {number % 50}", "provisionDeviceKey": "key", "provisionDeviceSecret": "secret"}
        return site.api.session.post(url, json=body, timeout=WAIT_S).json()

    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(ask, range(100)))
    tokens = [answer["credentialsValue"] for answer in answers if answer["status"] == "SUCCESS"]
    assert len(tokens) == 50 and [answer["status"] for answer in answers].count("FAILURE") == 50
    site.kill()
    site.start()
    for token in tokens:
        site.api.send(token, {"a": 1})

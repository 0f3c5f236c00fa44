"""Claiming of devices: ThingsBoard's own clients of devices, gateways and REST, paho and curl's way of HTTP."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import requests
from tb_rest_client.models.models_ce import ClaimRequest, Customer, Device, User
from tb_rest_client.rest import ApiException
from tb_rest_client.rest_client_ce import RestClientCE

from harness.rest import Api
from test_broker import Client

WAIT_S = 60
HERE = Path(__file__).parent
NULL_ID = "13814000-1dd2-11b2-8080-808080808080"
PASSWORD = "a long password"
CLAIM = "v1/devices/me/claim"


class Site:
    """A server with a device, and users of two customers."""

    def __init__(self, server):
        self.server = server
        self.client = RestClientCE(base_url=server.url)
        self.client.login(username="admin@tachograph.local", password=server.password)
        self.device = self.client.save_device(body=Device(name="pump 1", device_profile_id=self.client.get_default_device_profile_info().id), access_token="pump-token")
        self.ann, self.bob = self.user("acme", "ann@example.org"), self.user("other", "bob@example.org")

    def user(self, title, login):
        customer = self.client.save_customer(body=Customer(title=title))
        user = self.client.save_user(body=User(email=login, authority="CUSTOMER_USER", customer_id=customer.id), send_activation_mail=False)
        link = self.server.api.session.get(f"{self.server.url}/api/user/{user.id.id}/activationLink", timeout=WAIT_S).text
        token = link.rsplit("=", 1)[1]
        self.server.api.post("/api/noauth/activate", {"activateToken": token, "password": PASSWORD})
        logged_in = Api(self.server.url).login(login, PASSWORD)
        logged_in.customer = customer.id.id
        return logged_in

    def claim(self, user, secret=None, name="pump 1"):
        body = {} if secret is None else {"secretKey": secret}
        return user.session.post(f"{self.server.url}/api/customer/device/{name}/claim", json=body, timeout=WAIT_S)

    def reclaim(self, user, name="pump 1"):
        return user.session.delete(f"{self.server.url}/api/customer/device/{name}/claim", timeout=WAIT_S)

    def owner(self, name="pump 1"):
        return self.server.api.get("/api/tenant/devices", deviceName=name)["customerId"]["id"]


@pytest.fixture
def site(own_server):
    site = Site(own_server())
    yield site
    for user in (site.ann, site.bob):
        user.session.close()


def run_client(script, *arguments):
    """A script with ThingsBoard's clients for devices, which bring a paho of their own."""
    environment = os.environ | {"PYTHONPATH": str(Path(sys.prefix) / "thingsboard")}
    command = [sys.executable, str(HERE / script), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, env=environment)
    assert done.returncode == 0, done.stderr


def test_thingsboards_clients_offer_and_claim_a_device(site):
    run_client("thingsboard_claim.py", site.server.mqtt, "pump-token", "s3cret", 60_000)
    wrong = site.claim(site.bob, "guess")
    assert (wrong.status_code, wrong.json()) == (400, "FAILURE")
    # The guess has ended the offer.
    run_client("thingsboard_claim.py", site.server.mqtt, "pump-token", "s3cret", 60_000)
    customer = RestClientCE(base_url=site.server.url)
    customer.login(username="ann@example.org", password=PASSWORD)
    customer.device_controller.claim_device_using_post1("pump 1", body=ClaimRequest(secret_key="s3cret"))
    assert site.owner() == site.ann.customer
    taken = site.claim(site.bob, "s3cret")
    assert (taken.status_code, taken.json()) == (400, "CLAIMED")
    with pytest.raises(ApiException) as refused:
        customer.re_claim_device(device_name="nosuch")
    assert refused.value.status == 404
    customer.re_claim_device(device_name="pump 1")
    assert site.owner() == NULL_ID


def test_a_device_offers_itself_over_http_and_a_gateway_for_others(site):
    server = site.server
    offered = requests.post(f"{server.url}/api/v1/pump-token/claim", json={"secretKey": "http"}, timeout=WAIT_S)
    assert offered.status_code == 200 and not offered.content
    done = site.claim(site.ann, "http")
    assert done.status_code == 200, done.text
    assert (done.json()["response"], done.json()["device"]["customerId"]["id"]) == ("SUCCESS", site.ann.customer)
    again = requests.post(f"{server.url}/api/v1/pump-token/claim", timeout=WAIT_S)
    assert again.status_code == 400 and "assigned to a customer" in again.json()["message"]
    server.command("device", "add", "depot", "--gateway", "--token", "depot-token")
    with Client(server, "depot-token") as gateway:
        both = {"valve 1": {"secretKey": "v", "durationMs": 60_000}, "valve 2": {"secretKey": 7}}
        assert gateway.publish("v1/gateway/claim", json.dumps(both)) == 0x99
    assert site.claim(site.bob, "v", name="valve 1").json()["response"] == "SUCCESS"
    assert site.claim(site.bob, "7", name="valve 2").json() == "FAILURE"


def test_an_offer_has_its_time_and_survives_a_kill(own_server, site):
    with Client(site.server, "pump-token") as client:
        assert client.publish(CLAIM, "") == 0
    site.server.kill()
    site.server = own_server(directory=site.server.directory)
    site.ann.session.close()
    site.ann = Api(site.server.url).login("ann@example.org", PASSWORD)
    assert site.claim(site.ann).json()["response"] == "SUCCESS"
    assert site.reclaim(site.server.api).status_code == 200
    with Client(site.server, "pump-token") as client:
        assert client.publish(CLAIM, '{"durationMs": 1}') == 0
        # Its time is over when the server has handled the next message.
        assert client.publish("v1/devices/me/telemetry", '{"a": 1}') == 0
    assert site.claim(site.ann).json() == "FAILURE"


def test_what_is_neither_an_offer_nor_a_claim_is_refused(site):
    server = site.server
    with Client(server, "pump-token") as client:
        assert client.publish(CLAIM, "no json") == 0x99
        assert client.publish(CLAIM, json.dumps({"secretKey": "s" * 300})) == 0x97
        shared = {"claimingAllowed": False}
        server.api.post(f"/api/plugins/telemetry/DEVICE/{site.device.id.id}/attributes/SERVER_SCOPE", shared)
        assert client.publish(CLAIM, "{}") == 0x83
    rows = server.api.post("/api/sql", {"query": "SELECT reason FROM dead_letter WHERE topic = 'v1/devices/me/claim' ORDER BY ts"})["rows"]
    assert [part in row[0] for part, row in zip(("not a JSON object", "CLAIM_SECRET_BYTES_MAX", "claimingAllowed"), rows, strict=True)] == [True] * 3
    assert site.claim(server.api, "s").status_code == 403
    assert site.claim(site.ann, "s", name="nosuch").status_code == 404
    assert requests.post(f"{server.url}/api/customer/device/pump%201/claim", json={}, timeout=WAIT_S).status_code == 401
    assert requests.post(f"{server.url}/api/v1/nosuch/claim", json={}, timeout=WAIT_S).status_code == 401
    assert site.reclaim(site.ann).status_code == 404

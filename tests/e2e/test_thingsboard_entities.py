"""ThingsBoard's entities over REST with ThingsBoard's own client, unchanged: `tb-rest-client`."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests
from tb_rest_client.models.models_ce import (
    Asset,
    Customer,
    CustomerId,
    Device,
    DeviceProfile,
    EntityId,
    EntityRelation,
    EntityView,
    User,
)
from tb_rest_client.rest import ApiException
from tb_rest_client.rest_client_ce import RestClientCE

ADMIN = "admin@tachograph.local"
NULL_ID = "13814000-1dd2-11b2-8080-808080808080"


@pytest.fixture
def site(own_server):
    """A server, and ThingsBoard's client as its administrator."""
    server = own_server()
    server.client = RestClientCE(base_url=server.url)
    server.client.login(username=ADMIN, password=password_of(server))
    return server


def password_of(server):
    return (server.directory / "admin-password").read_text().strip()



def default_profile(client):
    return client.get_default_device_profile_info().id


def refused(status, call, *arguments, **named):
    with pytest.raises(ApiException) as caught:
        call(*arguments, **named)
    assert caught.value.status == status, caught.value.body
    return str(caught.value.body)


def test_a_device_is_added_changed_found_and_deleted(site):
    client = site.client
    new = Device(name="truck 7", label="Blue", device_profile_id=default_profile(client), additional_info={"site": 5})
    device = client.save_device(body=new, access_token="token-of-truck-7")
    assert (device.name, device.type, device.label) == ("truck 7", "default", "Blue")
    assert device.customer_id.id == NULL_ID
    device.label = "Green"
    changed = client.save_device(body=device)
    assert (changed.label, changed.version) == ("Green", device.version + 1)
    refused(409, client.save_device, body=device)
    assert client.get_device_by_id(device.id).label == "Green"
    assert client.get_tenant_device("truck 7").id.id == device.id.id
    page = client.get_tenant_device_infos(page_size=10, page=0, text_search="TRUCK")
    assert [one.name for one in page.data] == ["truck 7"]
    credentials = client.get_device_credentials_by_device_id(device.id)
    assert (credentials.credentials_type, credentials.credentials_id) == ("ACCESS_TOKEN", "token-of-truck-7")
    credentials.credentials_id = "another"
    client.update_device_credentials(body=credentials)
    sent = requests.post(f"{site.url}/api/v1/another/telemetry", json={"speed": 1}, timeout=30)
    assert sent.status_code == 200
    client.delete_device(device.id)
    refused(404, client.get_device_by_id, device.id)


def test_profiles_have_tables_of_their_own(site):
    client = site.client
    profile = client.save_device_profile(body=DeviceProfile(name="Pump v2", type="DEFAULT", transport_type="DEFAULT"))
    client.save_device(body=Device(name="p1", device_profile_id=profile.id), access_token="p1")
    assert requests.post(f"{site.url}/api/v1/p1/telemetry", json={"flow": 3}, timeout=30).status_code == 200
    rows = site.api.get("/api/sql", q="SELECT device, flow FROM pump_v2", format="json")
    assert "p1" in str(rows)
    assert "is that of 1 devices" in refused(400, client.delete_device_profile, profile.id)
    names = [one.name for one in client.get_device_profiles(page_size=10, page=0).data]
    assert names == ["Pump v2", "default"]


def test_a_user_of_a_customer_sees_what_is_assigned_to_it(site):
    client = site.client
    customer = client.save_customer(body=Customer(title="Acme", email="info@acme.example"))
    assert client.get_tenant_customer("Acme").id.id == customer.id.id
    mine = client.save_device(body=Device(name="mine", device_profile_id=default_profile(client)))
    other = client.save_device(body=Device(name="other", device_profile_id=default_profile(client)))
    client.assign_device_to_customer(customer.id, mine.id)
    user = client.save_user(
        body=User(email="ann@acme.example", authority="CUSTOMER_USER", customer_id=CustomerId(id=customer.id.id, entity_type="CUSTOMER"), first_name="Ann"),
        send_activation_mail=False,
    )
    link = client.get_activation_link(user.id)
    # The client gives text that is not JSON as the text of Python's bytes.
    token = link.split("activateToken=")[1].rstrip("'")
    activated = requests.post(
        f"{site.url}/api/noauth/activate", json={"activateToken": token, "password": "a long password"}, timeout=30
    )
    assert activated.status_code == 200, activated.text
    ann = RestClientCE(base_url=site.url)
    ann.login(username="ann@acme.example", password="a long password")
    assert ann.get_user().first_name == "Ann"
    assert ann.get_device_by_id(mine.id).name == "mine"
    refused(404, ann.get_device_by_id, other.id)
    page = ann.get_customer_device_infos(customer.id, page_size=10, page=0)
    assert [(one.name, one.customer_title) for one in page.data] == [("mine", "Acme")]
    client.unassign_device_from_customer(mine.id)
    refused(404, ann.get_device_by_id, mine.id)
    client.delete_customer(customer.id)
    refused(401, ann.get_user)


def test_assets_contain_devices(site):
    client = site.client
    depot = client.save_asset(body=Asset(name="Depot", type="building"))
    device = client.save_device(body=Device(name="gate", device_profile_id=default_profile(client)))
    relation = EntityRelation(
        _from=EntityId(id=depot.id.id, entity_type="ASSET"),
        to=EntityId(id=device.id.id, entity_type="DEVICE"),
        type="Contains",
        type_group="COMMON",
    )
    client.save_relation(body=relation)
    found = requests.get(
        f"{site.url}/api/relations/info",
        params={"fromId": depot.id.id, "fromType": "ASSET"},
        headers={"X-Authorization": f"Bearer {client.token_info['token']}"},
        timeout=30,
    ).json()
    assert [(one["fromName"], one["toName"], one["type"]) for one in found] == [("Depot", "gate", "Contains")]
    assert [one.type for one in client.get_asset_types()] == ["building"]
    view = client.save_entity_view(
        body=EntityView(entity_id=EntityId(id=device.id.id, entity_type="DEVICE"), name="public gate", type="default")
    )
    assert client.get_entity_view_by_id(view.id).name == "public gate"
    client.delete_asset(depot.id)
    refused(404, client.get_asset_by_id, depot.id)


def test_many_clients_add_devices_at_once(site):
    """Not a measurement: every device is there once, no matter who added it."""
    token = site.client.token_info["token"]

    def add(worker):
        with requests.Session() as session:
            session.headers["X-Authorization"] = f"Bearer {token}"
            for number in range(20):
                answer = session.post(f"{site.url}/api/device", json={"name": f"d-{worker}-{number}"}, timeout=60)
                assert answer.status_code == 200, answer.text

    began = time.monotonic()
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(add, range(16)))
    print(f"{16 * 20 / (time.monotonic() - began):.0f} devices a second")
    assert site.client.get_tenant_devices(page_size=1, page=0).total_elements == 16 * 20

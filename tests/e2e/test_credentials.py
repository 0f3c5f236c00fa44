"""Credentials of devices with unchanged clients: mosquitto, paho, ThingsBoard's device client and its REST client."""

import hashlib
import json
import os
import queue
import ssl
import subprocess
import sys
from pathlib import Path

import paho.mqtt.client as mqtt
import pytest
from tb_rest_client.models.models_ce import (
    Device,
    DeviceCredentials,
    DeviceProfile,
    DeviceProfileData,
    SaveDeviceWithCredentialsRequest,
    X509CertificateChainProvisionConfiguration,
)
from tb_rest_client.rest import ApiException
from tb_rest_client.rest_client_ce import RestClientCE

from harness.certificates import certificates, client_certificate, expired_certificate, settings
from harness.rest import Api

TOPIC = "v1/devices/me/telemetry"
WAIT_S = 60
HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return certificates(tmp_path_factory.mktemp("tls") / "files")


@pytest.fixture
def site(own_server, files):
    """A server that takes certificates of clients, with ThingsBoard's REST client as its administrator."""
    server = own_server(settings(files) | {"TACHO_TLS_CLIENT_CERTIFICATES": "optional"})
    server.client = RestClientCE(base_url=server.url)
    server.client.login(username="admin@tachograph.local", password=server.password)
    return server


def basic(**parts):
    return {"credentials_type": "MQTT_BASIC", "credentials_value": json.dumps(parts)}


def x509(certificate):
    return {"credentials_type": "X509_CERTIFICATE", "credentials_value": certificate.read_text()}


def new(site, name):
    return Device(name=name, device_profile_id=site.client.get_default_device_profile_info().id)


def add(site, name, **credentials):
    """Adds a device with these credentials, and returns what the server says about them."""
    body = SaveDeviceWithCredentialsRequest(device=new(site, name), credentials=DeviceCredentials(credentials_id="", **credentials))
    device = site.client.save_device_with_credentials(body=body)
    return site.client.get_device_credentials_by_device_id(device.id)


def give(site, device_id, **credentials):
    """Gives a device other credentials, as ThingsBoard's page does it: it reads them and writes them back."""
    found = site.client.get_device_credentials_by_device_id(device_id)
    found.credentials_id, found.credentials_value = "", None
    for member, value in credentials.items():
        setattr(found, member, value)
    return site.client.update_device_credentials(body=found)


def mosquitto_pub(site, *login, value=1, tls=None):
    where = ["-h", "localhost", "-p", str(site.mqtt)]
    if tls:
        where = ["-h", "localhost", "-p", str(site.listeners["mqtts"]), "--cafile", str(tls)]
    command = ["mosquitto_pub", *where, *map(str, login), "-t", TOPIC, "-q", "1", "-m", json.dumps({"speed": value})]
    return subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S)


def thingsboard(site, login, values, tls=None):
    """What ThingsBoard's device client says about a login and a message."""
    options = {"host": "localhost", "port": site.listeners["mqtts"] if tls else site.mqtt, "login": login, "values": values}
    if tls:
        options["tls"] = {"tls": True} | tls
    environment = os.environ | {"PYTHONPATH": str(Path(sys.prefix) / "thingsboard")}
    command = [sys.executable, str(HERE / "thingsboard_login.py"), json.dumps(options)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=WAIT_S, env=environment)
    return json.loads(done.stdout.splitlines()[-1])


def connack(site, client_id="", user=None, password=None, version=mqtt.MQTTv5):
    """The code of the CONNACK."""
    reasons = queue.Queue()
    options = {} if version == mqtt.MQTTv5 else {"clean_session": True}
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id, protocol=version, reconnect_on_failure=False, **options)
    client.on_connect = lambda _c, _u, _f, reason, _p: reasons.put(reason.value)
    client.username_pw_set(user, password)
    client.connect("127.0.0.1", site.mqtt)
    client.loop_start()
    try:
        return reasons.get(timeout=WAIT_S)
    finally:
        client.disconnect()
        client.loop_stop()
        client._reset_sockets()


def refused(call, *arguments, **named):
    with pytest.raises(ApiException) as caught:
        call(*arguments, **named)
    assert caught.value.status == 400, caught.value.body
    return str(caught.value.body)


@pytest.mark.parametrize(("parts", "login"), [
    ({"clientId": "c1", "userName": "u1", "password": "p1"}, ["-i", "c1", "-u", "u1", "-P", "p1"]),
    ({"clientId": "c2", "userName": "u2"}, ["-i", "c2", "-u", "u2"]),
    ({"userName": "u3", "password": "p3"}, ["-i", "any", "-u", "u3", "-P", "p3"]),
    ({"userName": "u4"}, ["-u", "u4"]),
    ({"clientId": "c5"}, ["-i", "c5"]),
])
def test_mosquitto_logs_in_with_each_combination(site, parts, login):
    made = add(site, "car", **basic(**parts))
    assert made.credentials_type == "MQTT_BASIC"
    assert {k: v for k, v in json.loads(made.credentials_value).items() if v} == parts
    for version in ["mqttv31", "mqttv311", "mqttv5"]:
        done = mosquitto_pub(site, *login, "-V", version)
        assert done.returncode == 0, done.stderr
    assert site.api.latest("car", "speed") == 1


def test_ids_are_those_of_thingsboard(site, tmp_path):
    certificate, _ = client_certificate(tmp_path, "car")
    sha3 = lambda text: hashlib.sha3_256(text.encode()).hexdigest()  # noqa: E731
    body = "".join(line for line in certificate.read_text().splitlines() if not line.startswith("-----"))
    assert add(site, "a", **basic(clientId="c", userName="u", password="p")).credentials_id == sha3("c|u")
    assert add(site, "b", **basic(clientId="c")).credentials_id == sha3("c")
    assert add(site, "c", **basic(userName="u")).credentials_id == "u"
    made = add(site, "d", **x509(certificate))
    assert (made.credentials_id, made.credentials_value) == (sha3(body), body)


def test_thingsboards_own_client_logs_in_with_a_password_and_with_a_certificate(site, files, tmp_path):
    add(site, "car", **basic(clientId="c", userName="u", password="p"))
    login = {"username": "u", "password": "p", "client_id": "c"}
    assert thingsboard(site, login, {"speed": 3}) == {"connected": True, "sent": 0}
    certificate, key = client_certificate(tmp_path, "van")
    add(site, "van", **x509(certificate))
    tls = {"ca_certs": str(files / "ca.pem"), "cert_file": str(certificate), "key_file": str(key)}
    assert thingsboard(site, {}, {"speed": 4}, tls) == {"connected": True, "sent": 0}
    assert (site.api.latest("car", "speed"), site.api.latest("van", "speed")) == (3, 4)


def test_codes_of_refused_logins_and_the_wait_after_wrong_passwords(site):
    add(site, "car", **basic(userName="u", password="p"))
    add(site, "van", credentials_type="ACCESS_TOKEN")
    assert connack(site, user="u") == 0x87 and connack(site, user="nobody") == 0x87
    assert connack(site) == 0x86
    assert connack(site, user="u", version=mqtt.MQTTv311) == 0x87, "5, in the words of MQTT 5"
    for _ in range(5):
        assert connack(site, user="u", password="guess") == 0x86
    assert connack(site, user="u", password="p") == 0x9F, "also the right password must wait"
    assert connack(site, user="other", password="x") == 0x86, "others do not"


def test_another_password_ends_the_session(site):
    made = add(site, "car", **basic(userName="u", password="p"))
    ended = queue.Queue()
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, protocol=mqtt.MQTTv5, reconnect_on_failure=False)
    client.on_disconnect = lambda _c, _u, _f, reason, _p: ended.put(reason.value)
    client.username_pw_set("u", "p")
    client.connect("127.0.0.1", site.mqtt)
    client.loop_start()
    client.publish(TOPIC, '{"speed": 5}', 1).wait_for_publish(WAIT_S)
    give(site, made.device_id, **basic(userName="u", password="q"))
    assert ended.get(timeout=WAIT_S) == 0x87
    client.loop_stop()
    client._reset_sockets()
    assert mosquitto_pub(site, "-u", "u", "-P", "p").returncode != 0
    assert mosquitto_pub(site, "-u", "u", "-P", "q").returncode == 0


def test_a_device_changes_from_token_to_certificate_and_back(site, files, tmp_path):
    device = site.client.save_device(body=new(site, "car"), access_token="t-car")
    certificate, key = client_certificate(tmp_path, "car")
    give(site, device.id, **x509(certificate))
    assert mosquitto_pub(site, "-u", "t-car").returncode != 0
    identity = ["--cert", certificate, "--key", key]
    assert mosquitto_pub(site, *identity, value=7, tls=files / "ca.pem").returncode == 0
    assert site.api.latest("car", "speed") == 7
    assert site.api.session.post(f"{site.url}/api/v1/t-car/telemetry", json={"a": 1}, timeout=WAIT_S).status_code == 401
    give(site, device.id, credentials_type="ACCESS_TOKEN", credentials_id="t-new")
    assert mosquitto_pub(site, *identity, tls=files / "ca.pem").returncode != 0
    assert mosquitto_pub(site, "-u", "t-new", value=8).returncode == 0
    assert site.api.latest("car", "speed") == 8


def test_the_certificate_decides_and_an_unknown_one_leaves_it_to_the_token(site, files, tmp_path):
    certificate, key = client_certificate(tmp_path, "car")
    other, other_key = client_certificate(tmp_path, "stranger")
    add(site, "car", **x509(certificate))
    site.client.save_device(body=new(site, "van"), access_token="t-van")
    ca = files / "ca.pem"
    assert mosquitto_pub(site, "--cert", certificate, "--key", key, "-u", "t-van", value=1, tls=ca).returncode == 0
    assert (site.api.latest("car", "speed"), site.api.latest("van", "speed")) == (1, None)
    assert mosquitto_pub(site, "--cert", other, "--key", other_key, tls=ca).returncode != 0
    assert mosquitto_pub(site, "--cert", other, "--key", other_key, "-u", "t-van", value=2, tls=ca).returncode == 0
    assert site.api.latest("van", "speed") == 2
    assert 'reason="certificate_unknown"} 1' in site.api.metrics()


def test_an_expired_certificate_does_not_log_in(site, files, tmp_path):
    certificate, key = expired_certificate(tmp_path, "old")
    add(site, "car", **x509(certificate))
    done = mosquitto_pub(site, "--cert", certificate, "--key", key, tls=files / "ca.pem")
    assert done.returncode != 0
    assert site.api.latest("car", "speed") is None


def test_certificates_of_an_authority_and_none_are_taken_if_they_are_optional(own_server, files, tmp_path):
    authority, authority_key = client_certificate(tmp_path, "authority")
    issuer = ["-CA", authority, "-CAkey", authority_key, "-addext", "basicConstraints=critical,CA:FALSE"]
    ours, ours_key = client_certificate(tmp_path, "ours", *issuer)
    others, others_key = client_certificate(tmp_path, "others")
    server = own_server(settings(files) | {"TACHO_TLS_CLIENT_CERTIFICATES": "optional", "TACHO_TLS_CLIENT_CA": str(authority)})
    device, ca = server.device(), files / "ca.pem"
    body = {"deviceId": {"entityType": "DEVICE", "id": server.api.device_id(device.name)}, "credentialsType": "X509_CERTIFICATE"}
    server.api.post("/api/device/credentials", body | {"credentialsValue": ours.read_text()})
    assert mosquitto_pub(server, "--cert", ours, "--key", ours_key, value=3, tls=ca).returncode == 0
    assert server.api.latest(device.name, "speed") == 3
    token = server.device().token
    assert mosquitto_pub(server, "-u", token, tls=ca).returncode == 0
    assert mosquitto_pub(server, "--cert", others, "--key", others_key, "-u", token, tls=ca).returncode != 0


def of_authority(directory, name, authority, authority_key, *options):
    """A certificate that an authority has signed, with the certificates behind it in one file, and its key."""
    issuer = ["-CA", authority, "-CAkey", authority_key]
    return client_certificate(directory, name, *issuer, *(options or ("-addext", "basicConstraints=critical,CA:FALSE")))


def profile_of_authority(site, name, authority, **configuration):
    terms = X509CertificateChainProvisionConfiguration(type="X509_CERTIFICATE_CHAIN", provision_device_secret=authority.read_text(), **configuration)
    body = DeviceProfile(name=name, type="DEFAULT", transport_type="DEFAULT", provision_type="X509_CERTIFICATE_CHAIN",
                         profile_data=DeviceProfileData(provision_configuration=terms))
    return site.client.save_device_profile(body=body)


def test_devices_with_certificates_of_a_profiles_authority_are_added_and_renewed(site, files, tmp_path):
    authority, authority_key = client_certificate(tmp_path, "authority")
    made = profile_of_authority(site, "pump", authority, certificate_reg_ex_pattern="(.*)[.]pumps[.]example",
                                allow_create_new_devices_by_x509_certificate=True)
    shown = made.profile_data.provision_configuration
    assert (shown["certificateRegExPattern"], shown["allowCreateNewDevicesByX509Certificate"]) == ("(.*)[.]pumps[.]example", True)
    ca, common_name = files / "ca.pem", "seven.pumps.example"
    own, key = of_authority(tmp_path, common_name, authority, authority_key)
    assert mosquitto_pub(site, "--cert", own, "--key", key, value=1, tls=ca).returncode == 0
    assert site.api.latest("seven", "speed") == 1
    device = site.client.get_tenant_device(device_name="seven")
    assert device.type == "pump"
    assert site.client.get_device_credentials_by_device_id(device.id).credentials_type == "X509_CERTIFICATE"
    (tmp_path / "renewed").mkdir()
    renewed, renewed_key = of_authority(tmp_path / "renewed", common_name, authority, authority_key)
    assert mosquitto_pub(site, "--cert", renewed, "--key", renewed_key, value=2, tls=ca).returncode == 0
    assert site.api.latest("seven", "speed") == 2
    assert site.client.get_tenant_device(device_name="seven").id.id == device.id.id
    # Through an authority between, whose certificate the client sends.
    (tmp_path / "between").mkdir()
    between, between_key = of_authority(tmp_path / "between", "between", authority, authority_key, "-addext", "basicConstraints=critical,CA:TRUE")
    deep, deep_key = of_authority(tmp_path / "between", "eight.pumps.example", between, between_key)
    assert mosquitto_pub(site, "--cert", deep, "--key", deep_key, value=3, tls=ca).returncode != 0
    deep.write_text(deep.read_text() + between.read_text())
    assert mosquitto_pub(site, "--cert", deep, "--key", deep_key, value=3, tls=ca).returncode == 0
    assert site.api.latest("eight", "speed") == 3


def test_certificates_that_a_profiles_authority_did_not_sign_or_that_name_no_device_are_refused(site, files, tmp_path):
    authority, authority_key = client_certificate(tmp_path, "authority")
    profile_of_authority(site, "pump", authority)
    ca = files / "ca.pem"
    strange, strange_key = of_authority(tmp_path, "nine", authority, authority_key)
    refused = mosquitto_pub(site, "--cert", strange, "--key", strange_key, "-V", "5", tls=ca)
    assert refused.returncode != 0, "the profile allows no new devices"
    assert 'reason="certificate_chain"} 1' in site.api.metrics()
    add(site, "nine", **basic(userName="u", password="p"))
    # It has the default profile, so the authority does not speak for it.
    assert mosquitto_pub(site, "--cert", strange, "--key", strange_key, tls=ca).returncode != 0
    (tmp_path / "forged").mkdir()
    forger, forger_key = client_certificate(tmp_path / "forged", "authority")
    forged, forged_key = of_authority(tmp_path / "forged", "nine", forger, forger_key)
    assert mosquitto_pub(site, "--cert", forged, "--key", forged_key, tls=ca).returncode != 0
    assert 'reason="certificate_unknown"} 1' in site.api.metrics()


def test_credentials_of_another_device_are_refused(site, tmp_path):
    certificate, _ = client_certificate(tmp_path, "car")
    taken = [("basic", basic(userName="u", password="p")), ("x509", x509(certificate))]
    for name, credentials in taken:
        add(site, name, **credentials)
    for name, credentials in taken:
        said = refused(add, site, "second", **credentials)
        assert "Device credentials are already assigned to another device!" in said and name in said
    damaged = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    assert "not an X.509 certificate" in refused(add, site, "second", credentials_type="X509_CERTIFICATE", credentials_value=damaged)


def test_credentials_of_another_tenant_reach_only_that_tenant(site, files, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("a long password\n")
    site.command("tenant", "add", "acme", "--admin", "root@acme.example", "--password-file", str(secret))
    acme = Api(site.url).login("root@acme.example", "a long password")
    certificate, key = client_certificate(tmp_path, "car")
    add(site, "car", **x509(certificate))
    add(site, "van", **basic(userName="u", password="p"))
    for name, kind, value in [("car", "X509_CERTIFICATE", certificate.read_text()), ("van", "MQTT_BASIC", '{"userName": "u", "password": "q"}')]:
        body = {"device": {"name": "theirs"}, "credentials": {"credentialsType": kind, "credentialsValue": value}}
        reply = acme.session.post(f"{site.url}/api/device-with-credentials", json=body, timeout=WAIT_S)
        assert reply.status_code == 400 and "already assigned to another device! The" in reply.text and name not in reply.text, reply.text
        acme.post("/api/device", {"name": name})
    assert mosquitto_pub(site, "--cert", certificate, "--key", key, value=1, tls=files / "ca.pem").returncode == 0
    assert mosquitto_pub(site, "-u", "u", "-P", "p", value=2).returncode == 0
    assert (site.api.latest("car", "speed"), site.api.latest("van", "speed")) == (1, 2)
    assert (acme.latest("car", "speed"), acme.latest("van", "speed")) == (None, None)
    acme.session.close()


def test_credentials_survive_a_kill(site, files, tmp_path):
    certificate, key = client_certificate(tmp_path, "van")
    add(site, "car", **basic(userName="u", password="p"))
    add(site, "van", **x509(certificate))
    site.kill()
    site.start()
    assert mosquitto_pub(site, "-u", "u", "-P", "p", value=5).returncode == 0
    assert mosquitto_pub(site, "--cert", certificate, "--key", key, value=6, tls=files / "ca.pem").returncode == 0
    api = Api(site.url).login("admin@tachograph.local", site.password)
    assert (api.latest("car", "speed"), api.latest("van", "speed")) == (5, 6)
    api.session.close()


def test_websocket_with_a_certificate(site, files, tmp_path):
    certificate, key = client_certificate(tmp_path, "car")
    add(site, "car", **x509(certificate))
    published = queue.Queue()
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, transport="websockets", reconnect_on_failure=False)
    client.tls_set(str(files / "ca.pem"), str(certificate), str(key), tls_version=ssl.PROTOCOL_TLS_CLIENT)
    client.ws_set_options(path="/mqtt")
    client.on_publish = lambda _c, _u, mid, _r, _p: published.put(mid)
    client.connect("localhost", site.listeners["https"])
    client.loop_start()
    client.publish(TOPIC, '{"speed": 9}', 1)
    published.get(timeout=WAIT_S)
    client.disconnect()
    client.loop_stop()
    client._reset_sockets()
    assert site.api.latest("car", "speed") == 9


def test_the_command_shows_tokens_only_and_gives_one(site):
    add(site, "car", **basic(userName="u", password="p"))
    shown = site.command("device", "token", "car", check=False)
    assert shown.returncode == 1 and "MQTT_BASIC and no access token" in shown.stderr, shown.stderr
    listed = site.command("device", "list", "--show-tokens", "--json")
    assert "token" not in json.loads(listed.stdout)[0]
    token = site.command("device", "token", "car", "--new").stdout.strip()
    assert mosquitto_pub(site, "-u", token).returncode == 0
    assert mosquitto_pub(site, "-u", "u", "-P", "p").returncode != 0

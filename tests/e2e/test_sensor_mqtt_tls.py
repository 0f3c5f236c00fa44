"""Encrypted connections to brokers: the wrapper mqtt and the class MQTTExporter of virtual sensors, with mosquitto."""

import pytest

from harness import wait
from harness.certificates import certificates, client_certificate
from harness.sensors import loaded, write
from test_sensor_classes import FIELDS, Broker, expected, exporter, report, road
from test_sensor_classes import connected as exporter_connected
from test_sensor_classes import sensor as class_sensor
from test_sensor_wrappers import connected, output, source
from test_sensor_wrappers import sensor as wrapper_sensor


def broker_of(directory, files, *more):
    """An encrypted broker with a certificate of these files."""
    directory.mkdir()
    return Broker(directory, f"certfile {files / 'server.pem'}", f"keyfile {files / 'server-key.pem'}", *more)


def write_both(server, broker, **files):
    """A sensor whose rows go to a topic of the broker, and one that reads the topic."""
    address = {"uri": f"mqtts://localhost:{broker.port}", "topic": "city/road"} | {key: str(file) for key, file in files.items()}
    write(server, "out.toml", class_sensor("out", "MQTTExporter", address | {"client_id": "out"}, FIELDS))
    write(server, "back.toml", wrapper_sensor("back", "mqtt", address | {"client_id": "back", "qos": 1}, "celsius"))


def reasons(server):
    """Why the exporter and the wrapper are not connected."""
    return [(one or {}).get("lastError") or "" for one in (exporter(server, "out"), source(server, "back"))]


@pytest.fixture
def files(tmp_path):
    return certificates(tmp_path / "files")


def test_rows_go_to_an_encrypted_broker_and_come_back(own_server, tmp_path, files):
    authority, authority_key = client_certificate(tmp_path, "authority")
    issuer = ["-CA", authority, "-CAkey", authority_key, "-addext", "basicConstraints=critical,CA:FALSE"]
    certificate, key = client_certificate(tmp_path, "tacho", *issuer, "-addext", "extendedKeyUsage=clientAuth")
    broker = broker_of(tmp_path / "broker", files, f"cafile {authority}", "require_certificate true")
    try:
        server = own_server()
        road(server)
        write_both(server, broker, cafile=files / "ca.pem")
        wait.until(lambda: all(reasons(server)), "the broker that wants a certificate")
        write_both(server, broker, cafile=files / "ca.pem", certfile=certificate, keyfile=key)
        connected(server, "back")
        exporter_connected(server, "out")
        assert exporter(server, "out")["target"] == f"mqtts://localhost:{broker.port}, topic city/road"
        report(server, 0, [float(at) for at in range(20)])
        wait.until(lambda: output(server, "back", "celsius") == expected(20), "the rows that come back")
        broker.stop()
        failures = exporter(server, "out")["failures"]
        report(server, 20, [20.0])
        wait.until(lambda: exporter(server, "out")["failures"] > failures, "a failure of the exporter")
        broker.start()
        wait.until(lambda: output(server, "back", "celsius") == expected(21), "the row of the outage")
    finally:
        broker.stop()


def test_a_broker_without_the_right_certificate_is_refused(own_server, tmp_path, files):
    others, named = certificates(tmp_path / "others"), certificates(tmp_path / "named", "broker.example.org")
    brokers = []
    try:
        server = own_server()
        road(server)
        brokers.append(broker_of(tmp_path / "local", files))
        brokers.append(broker_of(tmp_path / "elsewhere", named))
        local, elsewhere = brokers
        for broker, authority, reason in (
            (local, others / "ca.pem", "no trusted authority signed the certificate"),
            (elsewhere, named / "ca.pem", "the certificate of the server is not for"),
            (local, tmp_path / "missing.pem", "missing.pem"),
        ):
            write_both(server, broker, cafile=authority)
            wait.until(lambda: all(reason in one for one in reasons(server)), reason)  # noqa: B023
            listed = server.command("sensor", "list").stdout
            assert listed.count(reason) == 2 and "NOT CONNECTED" in listed and "not connected" in listed, listed
        write_both(server, local, cafile=files / "ca.pem")
        loaded(server, "out")
        connected(server, "back")
        exporter_connected(server, "out")
    finally:
        for broker in brokers:
            broker.stop()

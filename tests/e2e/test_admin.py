"""Health, readiness and metrics."""

import re
import stat
import subprocess

from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as plain

from harness import packets
from harness.packets import Wire


def samples(server):
    """{(sample name, sorted labels): value}, through the parser of the format that the server announces."""
    reply = server.api.session.get(server.url + "/metrics", timeout=60)
    assert reply.status_code == 200
    parse = openmetrics if "openmetrics" in reply.headers["Content-Type"] else plain
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value for family in parse(reply.text) for sample in family.samples
    }


def total(found, name, **labels):
    """The sum of a counter over the samples that carry the labels."""
    wanted = set(labels.items())
    return sum(value for (sample, has), value in found.items() if sample == name and wanted <= set(has))


def test_health_and_readiness(server):
    for path in ("/healthz", "/readyz"):
        assert server.api.session.get(server.url + path, timeout=60).status_code == 200


def test_every_promised_metric_is_there(server, device):
    server.api.send(device.token, {"a": 1})
    names = {name for name, _ in samples(server)}
    for name in (
        "tacho_messages_total",
        "tacho_ingest_bytes_total",
        "tacho_points_total",
        "tacho_ack_latency_seconds_bucket",
        "tacho_sync_latency_seconds_bucket",
        "tacho_log_bytes",
        "tacho_log_pending_bytes",
        "tacho_memtable_bytes",
        "tacho_connections",
        "tacho_connections_opened_total",
    ):
        assert name in names, sorted(names)


def test_counters_count_what_happened(server, device):
    before = samples(server)
    payload = b'{"a":1,"b":2}'
    with Wire(server.mqtt).session(device.token) as wire:
        for packet_id in range(1, 11):
            wire.send(packets.publish(payload, packet_id)).receive()
        during = samples(server)
        wire.send(packets.publish(b"no JSON", 11)).receive()
    after = samples(server)

    def grew(name, to, **labels):
        return total(to, name, **labels) - total(before, name, **labels)

    assert grew("tacho_messages_total", during, door="mqtt") == 10
    assert grew("tacho_points_total", during) == 20
    assert grew("tacho_ingest_bytes_total", during, door="mqtt") == 10 * len(payload)
    assert grew("tacho_ack_latency_seconds_count", during, door="mqtt") == 10
    assert grew("tacho_sync_latency_seconds_count", during) >= 1
    assert total(during, "tacho_connections", door="mqtt") >= 1
    assert grew("tacho_refusals_total", after, door="mqtt") == 1


def test_the_first_start_prints_the_password_once_and_keeps_it_private(own_server):
    server = own_server()
    password = server.password
    assert sum(password in line for line in server.lines) == 1, server.log()
    assert stat.S_IMODE((server.directory / "admin-password").stat().st_mode) == 0o600
    assert len(password) >= 12
    server.stop()
    server.start()
    assert password not in server.log()
    assert server.api.token
    server.stop()


def test_one_line_per_listener_then_ready(own_server):
    server = own_server()
    told = [line for line in server.lines if re.match(r"listening |ready$", line)]
    assert told == [f"listening mqtt 127.0.0.1:{server.mqtt}", f"listening http 127.0.0.1:{server.http}", "ready"]
    server.stop()


def test_metrics_are_what_prometheus_expects(server, device):
    """Prometheus' own check finds nothing in the older format; its parser of OpenMetrics reads the newer one."""
    server.api.session.post(f"{server.url}/api/v1/{device.token}/telemetry", json={"a": 1}, timeout=60)
    reply = server.api.session.get(server.url + "/metrics", timeout=60)
    checked = subprocess.run(["promtool", "check", "metrics"], input=reply.text, capture_output=True, text=True, timeout=60)
    assert checked.returncode == 0 and not checked.stdout + checked.stderr, checked
    newer = server.api.session.get(server.url + "/metrics", headers={"Accept": "application/openmetrics-text"}, timeout=60)
    assert "openmetrics" in newer.headers["Content-Type"]
    families = {family.name: family for family in openmetrics(newer.text)}
    assert families["process_resident_memory_bytes"].samples[0].value > 1_000_000
    assert families["tacho_build"].samples[0].labels["version"]

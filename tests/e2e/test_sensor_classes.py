"""Processing classes of virtual sensors in the server."""

import json
import xml.etree.ElementTree as ElementTree

from harness import wait

START = 1_700_000_000_000
WAIT_S = 60


def sensor(name, class_name, params, fields, query="select celsius, timed from a", source="select * from wrapper"):
    """A descriptor over the device road. Fields are names with types."""
    structure = "".join(f'[[processing-class.output-structure.field]]\nname = "{field}"\ntype = "{kind}"\n' for field, kind in fields)
    values = "".join(f"{key} = {json.dumps(value)}\n" for key, value in params.items())
    return f"""
name = "{name}"
[processing-class]
class-name = "{class_name}"
unique-timestamps = true
[processing-class.init-params]
{values}
{structure}
[[stream]]
name = "s"
query = "{query}"
[[stream.source]]
alias = "a"
storage-size = 1
query = "{source}"
[[stream.source.address]]
wrapper = "tacho"
[stream.source.address.predicate]
device = "road"
"""


def write(server, name, text):
    """A file in the directory of the sensors."""
    directory = server.directory / "sensors"
    directory.mkdir(exist_ok=True)
    (directory / f"{name}.toml").write_text(text)


def shown(server, name):
    """One sensor; None if there is none."""
    reply = server.api.session.get(f"{server.url}/api/tacho/sensors/{name}", timeout=WAIT_S)
    return reply.json() if reply.status_code == 200 else None


def loaded(server, name):
    """Waits until a sensor runs."""
    return wait.until(lambda: (one := shown(server, name)) and one["state"] == "running" and one, f"the sensor {name}")


def road(server):
    """The device of the tests."""
    server.command("device", "add", "road", "--token", "road")


def report(server, first, values):
    """Readings, one in a second."""
    rows = [{"ts": START + (first + at) * 1_000, "values": {"celsius": value}} for at, value in enumerate(values)]
    reply = server.api.session.post(f"{server.url}/api/v1/road/telemetry", json=rows, timeout=WAIT_S)
    assert reply.status_code == 200, reply.text


def test_a_model_marks_values_and_goes_on_after_a_kill(own_server):
    server = own_server()
    road(server)
    params = {"model": "linear", "window_size": 5, "error_bound": 5}
    fields = [("stream", "double"), ("processed", "double"), ("dirtiness", "double")]
    write(server, "clean", sensor("clean", "DataClean", params, fields))
    loaded(server, "clean")
    report(server, 0, [1, 2, 13])
    wait.until(lambda: shown(server, "clean")["counters"]["elements"] == 3, "the elements of half a window")
    server.kill()
    server.start()
    loaded(server, "clean")
    report(server, 3, [4, 5])
    marks = lambda: [(ts, mark) for ts, mark in server.api.history("clean", "dirtiness")]
    expected = [(START + at * 1_000, 1.0 if at == 2 else 0.0) for at in range(5)]
    wait.until(lambda: marks() == expected, "the marks of the window")
    assert [round(value, 9) for _, value in server.api.history("clean", "processed")] == [3, 4, 5, 6, 7]


def test_sentences_become_a_position(own_server):
    server = own_server()
    road(server)
    fields = [("latitude", "double"), ("longitude", "double"), ("speed", "double")]
    write(server, "gps", sensor("gps", "gsn.vsensor.GPSNMEAVS", {}, fields, query="select nmea, timed from a"))
    loaded(server, "gps")
    good = "$GPRMC,123519,A,4807.038,N,01131.000,E,022.4,084.4,230394,003.1,W*6A"
    rows = [{"ts": START + at, "values": {"nmea": text}} for at, text in enumerate([good, good[:-1] + "B", "no sentence"])]
    reply = server.api.session.post(f"{server.url}/api/v1/road/telemetry", json=rows, timeout=WAIT_S)
    assert reply.status_code == 200, reply.text
    counters = lambda: shown(server, "gps")["counters"]
    wait.until(lambda: counters()["elements"] == 3, "the sentences")
    wait.until(lambda: server.api.history("gps", "latitude") == [(START, 48.0 + 7.038 / 60.0)], "the position")
    assert (counters()["sentencesRefused"], counters()["rowsWithoutPosition"]) == (2, 2)


def test_a_chart_is_a_document_of_svg(own_server):
    server = own_server()
    road(server)
    params = {"title": "Road <7>", "vertical-axis": "°C", "history-size": 3}
    write(server, "chart", sensor("chart", "Chart", params, [("data", "binary:image/svg+xml"), ("celsius", "double")]))
    loaded(server, "chart")
    report(server, 0, [1, 2, 3, 4])
    wait.until(lambda: len(server.api.history("chart", "celsius")) == 4, "the rows of the chart")
    url = f"{server.url}/api/tacho/sensors/chart/chart.svg"

    def drawn():
        reply = server.api.session.get(url, timeout=WAIT_S)
        assert (reply.status_code, reply.headers["Content-Type"]) == (200, "image/svg+xml"), reply.text
        root = ElementTree.fromstring(reply.content)
        texts = {(text.text or "").strip() for text in root.iter("{http://www.w3.org/2000/svg}text")}
        return texts if "celsius" in texts else None

    assert {"Road <7>", "°C"} <= wait.until(drawn, "the chart")
    missing = server.api.session.get(f"{server.url}/api/tacho/sensors/road/chart.svg", timeout=WAIT_S)
    assert missing.status_code == 404

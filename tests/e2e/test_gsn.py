"""GSN's interfaces with the clients that read them: curl, requests, an XML parser. A device reports, a sensor computes."""

import http.server
import json
import queue
import socket
import subprocess
import threading
import urllib.parse
import xml.etree.ElementTree as xml

import pytest
import requests
import websocket

from harness import wait
from harness.server import Server

T0 = 1_768_464_000_000
ROWS = 50
DESCRIPTOR = """<virtual-sensor name="Meadow" priority="10">
  <processing-class>
    <class-name>Bridge</class-name>
    <output-structure>
      <field name="temperature" type="double" unit="C">of the air</field>
      <field name="readings" type="integer"/>
      <field name="state" type="varchar(20)"/>
    </output-structure>
  </processing-class>
  <description>Air over the meadow</description>
  <addressing>
    <predicate key="latitude">46.5</predicate>
    <predicate key="longitude">7.25</predicate>
  </addressing>
  <streams>
    <stream name="input">
      <source alias="air" storage-size="1" sampling-rate="1">
        <address wrapper="tacho">
          <predicate key="device">air</predicate>
        </address>
        <query>select temperature, readings, state, timed from wrapper</query>
      </source>
      <query>select temperature, readings, state, timed from air</query>
    </stream>
  </streams>
</virtual-sensor>
"""


def row(number):
    return {"ts": T0 + 1000 * number, "values": {"temperature": 20 + number / 4, "readings": number, "state": f"s{number}"}}


@pytest.fixture(scope="module")
def gsn(tmp_path_factory):
    """A server with the sensor `meadow`, whose output has all rows; its GSN port."""
    root = tmp_path_factory.mktemp("gsn")
    sensors = root / "sensors"
    sensors.mkdir()
    (sensors / "meadow.xml").write_text(DESCRIPTOR)
    # The clients of the tests are on this machine, which the server sends to only if it is listed.
    env = {
        "TACHO_TIME_SERIES_GSN_LISTEN": "127.0.0.1:0",
        "TACHO_TIME_SERIES_GSN_PUSH_TARGETS": "127.0.0.1",
        "TACHO_SENSORS_DIRECTORY": str(sensors),
    }
    with Server(root / "data", env) as server:
        address = f"{server.url}/api/tacho/sensors/meadow"
        state = lambda: server.api.session.get(address, timeout=60).json().get("state")
        wait.until(lambda: state() == "running", "the sensor meadow")
        server.command("device", "add", "air", "--token", "token-air")
        server.api.send("token-air", [row(n) for n in range(ROWS)])
        client = Client(server)
        wait.until(lambda: len(client.rows("nb=ALL")) == ROWS, "all rows of the sensor")
        yield client


class Client:
    def __init__(self, server):
        self.server = server
        self.url = f"http://127.0.0.1:{server.listeners['gsn']}"
        self.login = {"Authorization": f"Bearer {server.api.token}"}

    def get(self, path, **options):
        options.setdefault("headers", self.login)
        return requests.get(self.url + path, timeout=60, **options)

    def csv(self, query):
        path = f"/multidata?vs[0]=meadow&field[0]=All&download_mode=inline&download_format=csv&{query}"
        answer = self.get(path)
        return answer.text if answer.ok else ""

    def rows(self, query):
        return [line for line in self.csv(query).splitlines() if not line.startswith("#")]


def test_curl_reads_the_queries_of_the_evaluation(gsn):
    """The two requests of GSN's eval-queries: the list of sensors, and the newest rows of one."""
    login = f"Authorization: {gsn.login['Authorization']}"
    curl = ["curl", "-sS", "-g", "--fail", "-H", login]
    listed = subprocess.run([*curl, f"{gsn.url}/gsn"], capture_output=True, timeout=60, check=True).stdout
    sensor = xml.fromstring(listed).find("virtual-sensor")
    assert sensor.get("name").lower() == "meadow"
    fields = {field.get("name"): field for field in sensor.iter("field")}
    assert {name: field.get("type") for name, field in fields.items() if field.get("type")} == {
        "time": "string",
        "temperature": "double",
        "readings": "integer",
        "state": "varchar(20)",
    }
    assert (fields["temperature"].text, fields["readings"].text) == (str(20 + (ROWS - 1) / 4), str(ROWS - 1))
    assert fields["latitude"].get("category") == "predicate"
    query = "vs[0]=meadow&field[0]=All&download_mode=inline&download_format=csv&nb=SPECIFIED&nb_value=10"
    text = subprocess.run([*curl, f"{gsn.url}/multidata?{query}"], capture_output=True, timeout=60, check=True).stdout.decode()
    lines = text.splitlines()
    assert lines[0].lower() == "# vsname:meadow"
    assert lines[1].lower() == (
        "# query:select temperature, readings, state, pk, timed from meadow order by timed desc (size: 10 offset: 0)"
    )
    assert lines[2:7] == [
        "# latitude:46.5",
        "# longitude:7.25",
        "# description:Air over the meadow",
        "# time,temperature,readings,state",
        "# ,C,,",
    ]
    assert lines[7:] == [f"15/01/2026 08:00:{n} +0000,{20 + n / 4},{n},s{n}" for n in range(40, 50)]


def test_ranges_conditions_and_intervals(gsn):
    assert len(gsn.rows("from=15/01/2026+08:00:10&to=15/01/2026+08:00:20")) == 10
    assert len(gsn.rows("c_vs[0]=meadow&c_field[0]=readings&c_min[0]=9&c_max[0]=19&c_join[0]=and")) == 10
    either = "c_vs[0]=meadow&c_field[0]=readings&c_max[0]=4&c_join[0]=or&c_vs[1]=meadow&c_field[1]=readings&c_min[1]=44"
    assert len(gsn.rows(either)) == 10
    minutes = gsn.rows("agg_function=avg&agg_period=10&agg_unit=1000&time_format=unix")
    assert len(minutes) == 5
    assert minutes[0].split(",") == [str(T0 + 9000), "21.125", "4.5", "null", str(T0 // 10_000)]
    newest = gsn.rows("agg_function=max&agg_period=10&agg_unit=1000&time_format=unix&nb=SPECIFIED&nb_value=2")
    assert [line.split(",")[2] for line in newest] == ["39", "49"]


def test_xml_and_a_form(gsn):
    form = {"vs[0]": "All", "field[0]": "readings", "download_format": "xml", "time_format": "iso", "nb": "SPECIFIED", "nb_value": "2"}
    answer = requests.post(f"{gsn.url}/multidata", data=form, headers=gsn.login, timeout=60)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-disposition"].startswith("attachment; filename=")
    data = xml.fromstring(answer.text).find("data")
    assert [field.text for field in data.find("header")] == ["time", "readings"]
    rows = [[field.text for field in row] for row in data.iter("tuple")]
    assert rows == [["2026-01-15T08:00:48.000+0000", "48"], ["2026-01-15T08:00:49.000+0000", "49"]]


def test_one_shot_queries(gsn):
    answer = gsn.get("/gsn?REQUEST=116&name=meadow&fields=state&condition=readings<3&window=2")
    elements = xml.fromstring(answer.content).findall("stream-element")
    texts = [{field.get("name"): field.text for field in element} for element in elements]
    assert [text["state"] for text in texts] == ["s2", "s1"]
    assert texts[0]["latitude"] == "46.5"
    structure = xml.fromstring(gsn.get("/gsn?REQUEST=113&name=meadow").content)
    assert [field.get("name") for field in structure] == ["time", "temperature", "readings", "state"]


def test_rest_of_version_1(gsn):
    span = "from=2026-01-15T08:00:00&to=2026-01-15T08:00:09"
    rows = gsn.get(f"/rest/sensors/meadow?{span}&format=json").json()[0]
    assert len(rows["values"]) == 10
    assert rows["values"][-1] == ["2026-01-15 08:00:00", T0, 20.0, 0, "s0"]
    assert [row[1] for row in rows["values"]] == sorted((row[1] for row in rows["values"]), reverse=True)
    extremes = gsn.get("/rest/sensors/meadow/temperature/minmax").json()["features"][0]
    assert extremes["properties"]["values"][0][2:] == [20 + (ROWS - 1) / 4, 20.0]
    assert extremes["geometry"] == {"type": "Point", "coordinates": [7.25, 46.5]}
    listed = gsn.get("/rest/sensors?latest_values=true&format=csv").text
    assert listed.splitlines()[-1] == f",{20 + (ROWS - 1) / 4},{ROWS - 1},s{ROWS - 1}"
    assert gsn.get("/rest/sensors/nosuch?format=json").json()["error"]


def test_rest_of_version_2_with_a_token_of_oauth(gsn):
    grant = {"grant_type": "client_credentials"}
    client = ("admin@tachograph.local", gsn.server.password)
    granted = requests.post(f"{gsn.url}/oauth2/token", data=grant, auth=client, timeout=60).json()
    assert (granted["token_type"], granted["expires_in"]) == ("Bearer", 9000)
    renewed = {"grant_type": "refresh_token", "refresh_token": granted["refresh_token"]}
    token = requests.post(f"{gsn.url}/oauth2/token", data=renewed, timeout=60).json()["access_token"]
    refused = requests.post(f"{gsn.url}/oauth2/token", data={"grant_type": "authorization_code"}, timeout=60)
    assert (refused.status_code, refused.json()["error"]) == (400, "unsupported_grant_type")
    login = {"Authorization": f"Bearer {token}"}
    data = gsn.get("/api/sensors/meadow/data?size=2&fields=readings", headers=login).json()
    assert data["properties"]["values"] == [[T0 + 49_000, 49], [T0 + 48_000, 48]]
    assert (data["total_size"], data["geometry"]["coordinates"]) == (2, [7.25, 46.5, 0.0])
    assert gsn.get("/api/user", headers=login).json()["username"] == "admin@tachograph.local"
    listed = gsn.get("/api/sensors", headers=login).json()
    assert listed["features"][0]["properties"]["stats"] == {"start-datetime": T0, "end-datetime": T0 + 49_000}
    assert gsn.get("/api/sensors/meadow/field/state", headers=login).text == "s49"


def test_uploaded_rows_are_read_at_once(gsn):
    fields = [{"name": "timestamp", "type": "time"}, {"name": "temperature", "type": "double"}]
    body = {"type": "Feature", "properties": {"fields": fields, "values": [[T0 - 60_000, 1.5]]}}
    sent = requests.post(f"{gsn.url}/api/sensors/meadow/data", json=body, headers=gsn.login, timeout=60)
    assert (sent.status_code, sent.json()) == (200, {"status": "success"}), sent.text
    assert gsn.rows("to=15/01/2026+07:59:30") == ["15/01/2026 07:59:00 +0000,1.5,null,null"]


def test_a_websocket_gets_rows_as_they_are_made(gsn):
    address = gsn.url.replace("http", "ws") + "/api/sensors/meadow/stream"
    socket = websocket.create_connection(address, header=[f"Authorization: {gsn.login['Authorization']}"], timeout=60)
    try:
        gsn.server.api.send("token-air", [row(60), row(61)])
        got = [json.loads(socket.recv()) for _ in range(2)]
    finally:
        socket.close()
    assert got == [
        {"timestamp": f"Thu Jan 15 08:01:0{n} UTC 2026", "temperature": str(35 + n / 4), "readings": str(60 + n), "state": f"s{60 + n}"}
        for n in range(2)
    ]
    with pytest.raises(websocket.WebSocketBadStatusException):
        websocket.create_connection(address, timeout=60)


def test_a_stream_gives_the_past_and_what_comes(gsn):
    # GSN's wrapper encodes the statement like a form.
    query = "select+readings+from+meadow+where+readings+%3E%3D+%2B48"
    address = f"{gsn.url}/streaming/{query}/2026-01-15T08:00:00.000Z"
    with requests.get(address, headers=gsn.login, stream=True, timeout=60) as answer:
        assert answer.status_code == 200
        parser, values, sent = xml.XMLPullParser(["end"]), [], False
        for piece in answer.iter_content(None):
            parser.feed(piece)
            values += [event.text for _, event in parser.read_events() if event.tag == "field" and event.get("name") == "readings"]
            if len(values) >= 2 and not sent:
                gsn.server.api.send("token-air", row(70))
                sent = True
            if values and values[-1] == "70.0":
                break
    assert values[:2] == ["48.0", "49.0"]


class Receiver:
    """A client that takes pushed elements, one after the other, with the statuses that the test gives."""

    def __init__(self, port=0):
        self.forms, self.statuses = queue.Queue(), queue.Queue()
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_PUT(self):
                form = urllib.parse.parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
                receiver.forms.put((self.path, form))
                self.send_response(receiver.statuses.get(timeout=60))
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/streaming/"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def take(self, status):
        """Answers the next element. Returns its id and the texts of its fields."""
        self.statuses.put(status)
        path, form = self.forms.get(timeout=60)
        assert path == "/streaming/"
        element = xml.fromstring(form["data"][0])
        assert element.tag == "stream-element"
        return form["notification-id"][0], {field.get("name"): field.text for field in element.iter("field")}

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def push(gsn, contact, number, query="select readings from meadow where readings >= 48 and readings < 60", start="1768464000000", **options):
    options.setdefault("headers", gsn.login)
    address = f"{gsn.url}/streaming/{requests.utils.quote(query, safe='')}/{start}"
    return requests.post(address, data={"notification-id": number, "local-contact-point": contact}, timeout=60, **options)


def test_elements_are_pushed_until_the_client_ends_it(gsn):
    receiver = Receiver()
    try:
        registered = push(gsn, receiver.url, "0.25")
        assert registered.status_code == 200, registered.text
        assert [one.text for one in xml.fromstring(registered.text).iter("name")] == ["readings"]
        assert receiver.take(200) == ("0.25", {"readings": "48.0"})
        # The sign of life registers nothing again: element 49 comes once.
        again = push(gsn, receiver.url, "0.25")
        assert (again.status_code, again.text) == (200, "")
        assert receiver.take(300) == ("0.25", {"readings": "49.0"})
        # The subscription is over, so the same request begins a new one.
        wait.until(lambda: push(gsn, receiver.url, "0.25").text != "", "a new subscription")
        assert receiver.take(300) == ("0.25", {"readings": "48.0"})
    finally:
        receiver.close()


def test_a_client_that_comes_back_gets_the_element_that_it_missed(gsn):
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port = reserved.getsockname()[1]
    contact = f"http://127.0.0.1:{port}/streaming/"
    assert push(gsn, contact, "7", start="2026-01-15T08:00:00.000Z").status_code == 200
    receiver = Receiver(port)
    try:
        assert receiver.take(200) == ("7", {"readings": "48.0"})
        assert receiver.take(300)[1] == {"readings": "49.0"}
    finally:
        receiver.close()


def test_elements_go_to_the_client_itself_only(gsn):
    for contact, status in [
        ("http://192.0.2.1/", 400),
        ("https://127.0.0.1/", 501),
        ("ftp://127.0.0.1/", 400),
        ("http://me:secret@127.0.0.1/", 400),
    ]:
        answer = push(gsn, contact, "1")
        assert answer.status_code == status, (contact, answer.text)
    assert "gsn_push_targets" in push(gsn, "http://192.0.2.1/", "1").text
    assert push(gsn, "http://127.0.0.1:1/", "one").status_code == 400
    assert push(gsn, "http://127.0.0.1:1/", "1", query="select * from nosuch").status_code == 402
    assert push(gsn, "http://127.0.0.1:1/", "1", headers={}).status_code == 401


def test_a_value_of_a_row(gsn):
    value = lambda query: gsn.get(f"/field?vs=Meadow&{query}")
    answer = value(f"field=state&pk={T0 + 3000}")
    assert (answer.status_code, answer.text) == (200, "s3")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert value(f"field=temperature&pk={T0 + 4000}").text == "21.0"
    assert value("field=state").text.startswith("s")
    assert value(f"field=state&pk={T0 + 1}").status_code == 404
    assert value("field=nosuch").status_code == 403
    assert value("pk=1").status_code == 400


def test_a_form_becomes_a_row(gsn):
    form = {"vsname": (None, "meadow"), "cmd": (None, "report"), "report;state": (None, "by form"), "report;readings": (None, "1000")}
    send = lambda files: requests.post(f"{gsn.url}/upload", files=files, headers=gsn.login, timeout=60)
    answer = send(form)
    assert answer.status_code == 200, answer.text
    assert gsn.get("/field?vs=meadow&field=state").text == "by form"
    urlencoded = {name: text for name, (_, text) in form.items()} | {"report;state": "urlencoded"}
    answer = requests.post(f"{gsn.url}/upload", data=urlencoded, headers=gsn.login, timeout=60)
    assert answer.status_code == 200, answer.text
    assert gsn.get("/field?vs=meadow&field=state").text == "urlencoded"
    assert send(form | {"report;valve": (None, "1")}).status_code == 501
    assert send(form | {"report;readings": (None, "many")}).status_code == 400
    assert send(form | {"report;state": ("a.png", b"x")}).status_code == 501


def test_gml_has_the_sensors_with_a_place(gsn):
    root = xml.fromstring(gsn.get("/gsn?REQUEST=901&name=meadow,other").content)
    space = {"gsn": "http://gsn.ch/", "gml": "http://www.opengis.net/gml"}
    assert root.find(".//gml:coordinates", space).text == "7.25,46.5"
    assert root.find(".//gsn:sensors", space).get("fid").lower() == "meadow"
    assert root.find(".//gsn:latitude", space).text == "46.5"
    assert len(xml.fromstring(gsn.get("/gsn?REQUEST=901&group=imis").content)) == 0


def test_strangers_and_wrong_names_are_refused(gsn):
    for path in ("/gsn", "/multidata?vs[0]=meadow&field[0]=All", "/rest/sensors", "/api/sensors"):
        answer = gsn.get(path, headers={})
        assert answer.status_code == 401, path
        assert answer.headers["www-authenticate"].startswith("Basic"), path
    assert gsn.get("/multidata?vs[0]=nosuch&field[0]=All").status_code == 402
    assert gsn.get("/multidata?vs[0]=meadow&field[0]=nosuch").status_code == 403
    assert gsn.get("/multidata?vs[0]=meadow&field[0]=All&download_format=pdf").status_code == 501

"""Virtual sensors that compute for seconds, and targets that nobody has named: the other sensors and the server's neighbours are not affected."""

import http.server
import socket
import threading
import time

import requests

from harness import wait
from harness.sensors import loaded, shown, write

WAIT_S = 180
# Rows of each window of the join: a quarter of a million combinations.
WINDOW = 500
T0 = 1_764_272_400_000


def descriptor(name, query, sources, fields="n bigint", processing=""):
    """A sensor with a stream over sources: their aliases, devices and sizes of windows."""
    fields = "".join(
        f'[[processing-class.output-structure.field]]\nname = "{field.split()[0]}"\ntype = "{field.split()[1]}"\n' for field in fields.split(",")
    )
    sources = "".join(
        f'[[stream.source]]\nalias = "{alias}"\nstorage-size = "{size}"\nquery = "select x from wrapper"\n'
        f'[[stream.source.address]]\nwrapper = "tacho"\n[stream.source.address.predicate]\ndevice = "{device}"\n'
        for alias, device, size in sources
    )
    return f'name = "{name}"\n[processing-class]\n{processing}{fields}[[stream]]\nname = "s"\nquery = "{query}"\n{sources}'


def expression(parts):
    """A condition of about seven steps for each part."""
    return " or ".join(f"a.x * {part} > b.x + {part}000000" for part in range(1, parts + 1))


def join(name, parts=2):
    sources = [("a", "slow", WINDOW), ("b", "fixed", WINDOW)]
    return descriptor(name, f"select count(*) as n from a, b where {expression(parts)}", sources)


def plain(name, device="fast"):
    return descriptor(name, "select count(*) as n from c", [("c", device, 10)])


def send(server, device, first, count):
    """Rows of a device, a second apart."""
    server.api.send(f"token-{device}", [{"ts": T0 + 1000 * n, "values": {"x": n}} for n in range(first, first + count)])


def counters(server, name):
    return shown(server, name)["counters"]


def with_windows(server):
    """The devices of the sensors; those of the join have as many rows as its windows."""
    for device in ("slow", "fixed", "fast"):
        server.command("device", "add", device, "--token", f"token-{device}")
    send(server, "slow", 0, WINDOW)
    send(server, "fixed", 0, WINDOW)


def test_a_join_of_seconds_holds_no_other_sensor(own_server):
    server = own_server()
    with_windows(server)
    # Two are evaluated at once, and further ones must not take the thread of the others either.
    for number in range(3):
        write(server, f"join{number}.toml", join(f"join{number}"))
        loaded(server, f"join{number}")
    write(server, "plain.toml", plain("plain"))
    loaded(server, "plain")
    rows = 10
    send(server, "slow", WINDOW, rows)
    for number in range(100):
        send(server, "fast", number, 1)
    wait.until(lambda: counters(server, "plain")["rows"] == 100, "the rows of the plain sensor", WAIT_S)
    done = [counters(server, f"join{number}")["rows"] for number in range(3)]
    assert all(count < rows for count in done), done
    # A sensor that is added meanwhile runs, and so does one that reads another.
    write(server, "later.toml", plain("later"))
    loaded(server, "later")
    send(server, "fast", 100, 1)
    wait.until(lambda: counters(server, "later")["rows"] == 1, "a row of the new sensor", WAIT_S)
    began = time.monotonic()
    server.stop()
    assert time.monotonic() - began < 30, "the stop does not wait for the join"
    server.start()
    for number in range(3):
        wait.until(lambda: len(server.api.history(f"join{number}", "n")) == rows, "all rows of the join", WAIT_S)
    assert max(counters(server, f"join{number}")["turnsOverBudget"] for number in range(3)) > 0
    metrics = requests.get(f"{server.url}/metrics", timeout=WAIT_S).text
    assert 'tacho_virtual_sensor_turns_over_budget_total{sensor="join0"}' in metrics
    server.stop()


def test_an_execution_without_an_end_is_ended(own_server):
    server = own_server()
    with_windows(server)
    write(server, "join.toml", join("join", parts=40))
    script = 'class-name = "ScriptletProcessor"\ninit-params = { scriptlet = "let i = 0; while i < 3000 { i += 1; } n = i;" }\n'
    burning = descriptor("script", "select x from a", [("a", "slow", WINDOW)], processing=script)
    write(server, "script.toml", burning)
    write(server, "plain.toml", plain("plain"))
    for name in ("join", "script", "plain"):
        loaded(server, name)
    send(server, "slow", WINDOW, 1)
    send(server, "fast", 0, 3)
    wait.until(lambda: counters(server, "plain")["rows"] == 3, "the plain sensor", WAIT_S)
    for name in ("join", "script"):
        fault = wait.until(lambda: counters(server, name)["lastFault"], f"the fault of {name}", WAIT_S)
        assert "EXECUTION_STEPS_MAX" in fault, fault
    server.stop()


class Redirecting(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(302)
        self.send_header("Location", "http://169.254.169.254/latest/meta-data/")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def http_get(name, url):
    return (
        f'name = "{name}"\n[processing-class]\n[[processing-class.output-structure.field]]\nname = "data"\ntype = "string"\n[[stream]]\nname = "s"\n'
        f'query = "select data from a"\n[[stream.source]]\nalias = "a"\n[[stream.source.address]]\nwrapper = "http-get"\n'
        f'[stream.source.address.predicate]\nurl = "{url}"\nrate = 100\n'
    )


def last_error(server, name):
    return wait.until(lambda: (one := shown(server, name)) and one["sources"] and one["sources"][0].get("lastError"), f"the fault of {name}")


def test_addresses_of_the_link_and_the_cloud_are_not_asked(own_server):
    server = own_server()
    redirecting = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Redirecting)
    threading.Thread(target=redirecting.serve_forever).start()
    try:
        # The resolver reads the last three as addresses, as it reads a name that somebody lets lead there.
        for name, host in [
            ("literal", "169.254.169.254"),
            ("mapped", "[::ffff:169.254.169.254]"),
            ("unspecified", "0.0.0.0"),
            ("name", "169.254.43518"),
            ("number", "2852039166"),
            ("loopback", "127.1"),
        ]:
            write(server, f"{name}.toml", http_get(name, f"http://{host}:{server.http}/healthz"))
            assert "sensors.allowed_targets" in last_error(server, name), name
        write(server, "redirected.toml", http_get("redirected", f"http://127.0.0.1:{redirecting.server_port}/"))
        assert "another server" in last_error(server, "redirected")
        write(server, "own.toml", http_get("own", f"http://localhost:{server.http}/healthz"))
        loaded(server, "own")
        wait.until(lambda: counters(server, "own")["rows"] > 0, "a host that the file names as this machine")
    finally:
        redirecting.shutdown()
        redirecting.server_close()
    server.stop()


def test_listed_targets_are_asked_and_other_forms_are_refused_at_the_start(own_server, tmp_path):
    server = own_server({"TACHO_SENSORS_ALLOWED_TARGETS": "127.0.0.0/8"})
    write(server, "loopback.toml", http_get("loopback", f"http://127.1:{server.http}/healthz"))
    loaded(server, "loopback")
    wait.until(lambda: counters(server, "loopback")["rows"] > 0, "a listed target")
    server.stop()
    for name in ("TACHO_SENSORS_ALLOWED_TARGETS", "TACHO_TIME_SERIES_GSN_PUSH_TARGETS"):
        try:
            own_server({name: "10.0.0.0/8, http://broker"}, tmp_path / name)
            raise RuntimeError("the server has started")
        except AssertionError as refused:
            assert "a host, an address or a network is expected" in str(refused)


def register(server, contact):
    """Registers for pushes of a sensor."""
    address = f"{server.url}/streaming/select%20*%20from%20plain/0"
    form = {"notification-id": "1", "local-contact-point": contact}
    return requests.post(address, data=form, headers={"Authorization": f"Bearer {server.api.token}"}, timeout=WAIT_S)


def test_pushes_reach_no_service_beside_the_server(own_server, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as service:
        service.settimeout(1)
        port = service.getsockname()[1]
        for number, listed in enumerate((None, "*", f"127.0.0.1:{port + 1}")):
            env = {"TACHO_POSTGRES_LISTEN": "127.0.0.1:0"} | ({"TACHO_TIME_SERIES_GSN_PUSH_TARGETS": listed} if listed else {})
            server = own_server(env, tmp_path / f"server{number}")
            server.command("device", "add", "fast", "--token", "token-fast")
            write(server, "plain.toml", plain("plain"))
            loaded(server, "plain")
            send(server, "fast", 0, 3)
            own = [server.http, server.listeners["postgres"], port, 22, 22001]
            hosts = ["127.0.0.1", "localhost", "127.0.0.2", "[::ffff:127.0.0.1]", "0.0.0.0", "169.254.169.254", "2130706433"]
            for contact in [f"http://{host}:{one}/" for host in hosts for one in own]:
                answer = register(server, contact)
                assert answer.status_code == 400 and "gsn_push_targets" in answer.text, (listed, contact, answer.text)
            server.stop()
        try:
            service.accept()
            raise RuntimeError("the server has connected to a service beside it")
        except TimeoutError:
            pass

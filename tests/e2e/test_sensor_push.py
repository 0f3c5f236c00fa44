"""Virtual sensors whose rows another server pushes (GSN's `/streaming` with a contact point), through SIGKILLs of both servers."""

import requests

from harness import wait
from harness.sensors import loaded, shown, write
from test_sensor_wrappers import START, WAIT_S, connected, output, sensor, source, values

ROWS = 200
# Both servers are on this machine, which a server sends to only if it is listed.
ENV = {"TACHO_TIME_SERIES_GSN_PUSH_TARGETS": "127.0.0.1"}


def pinned(server):
    """The server listens on its port again after a restart."""
    server.env["TACHO_HTTP_LISTEN"] = f"127.0.0.1:{server.http}"
    return server


def test_pushed_rows_come_once_through_kills_of_both_servers(own_server, tmp_path):
    first = pinned(own_server(ENV, tmp_path / "first"))
    file = tmp_path / "road.csv"

    def add(numbers):
        with open(file, "a") as more:
            more.write("".join(f"{START + n * 1_000},{n}\n" for n in numbers))

    add(range(ROWS))
    said = {"file": file, "fields": "timed, value", "formats": "bigint, numeric", "sampling": 20}
    write(first, "road.toml", sensor("road", "csv", said))
    wait.until(lambda: len(values(first, "road")) == ROWS, "the rows of the first server")
    second = pinned(own_server(ENV, tmp_path / "second"))
    push = {
        "remote-contact-point": f"{first.url}/streaming/",
        "local-contact-point": f"{second.url}/streaming/",
        "name": "road",
        "username": "admin@tachograph.local",
        "password": first.password,
        "start-time": START - 1,
    }
    write(second, "road.toml", sensor("road", "remote-push", push))
    write(second, "wrong.toml", sensor("wrong", "remote-push", {**push, "password": "wrong"}))
    wait.until(lambda: values(second, "road") == list(range(ROWS)), "the rows that were there")
    add(range(ROWS, 2 * ROWS))
    # The server that takes rows is killed while they come.
    wait.until(lambda: len(values(second, "road")) > ROWS, "some rows")
    second.kill()
    add(range(2 * ROWS, 3 * ROWS))
    second.start()
    wait.until(lambda: len(values(second, "road")) == 3 * ROWS, "the rows after the kill of the second server")
    # The server that pushes is killed. It forgets who wants rows.
    first.kill()
    add(range(3 * ROWS, 4 * ROWS))
    first.start()
    wait.until(lambda: len(values(second, "road")) == 4 * ROWS, "the rows after the kill of the first server")
    connected(second, "road")
    assert output(second, "road") == [(START + n * 1_000, n) for n in range(4 * ROWS)]
    state = wait.until(lambda: (one := source(second, "wrong")).get("lastError") and one, "the fault")
    assert "answers 401" in state["lastError"] and not state["connected"], state
    assert first.password not in str(shown(second, "road"))
    first.stop()
    second.stop()


def test_a_push_without_the_number_of_a_source_is_refused(own_server, tmp_path):
    server = own_server(ENV)
    element = '<stream-element timestamp="2026-11-27 20:15:30.125 UTC"/>'

    def put(**form):
        return requests.put(f"{server.url}/streaming/", data=form, timeout=WAIT_S).status_code

    # Nothing of a stranger is read before a source takes pushes.
    for form in ({"notification-id": "7", "data": element}, {"data": element}):
        assert put(**form) == 300
    (tmp_path / "road.csv").write_text("")
    write(server, "road.toml", sensor("road", "csv", {"file": tmp_path / "road.csv", "fields": "timed, value", "formats": "bigint, numeric"}))
    loaded(server, "road")
    own = {"remote-contact-point": f"{server.url}/streaming/", "local-contact-point": f"{server.url}/streaming/", "name": "road"}
    write(server, "copy.toml", sensor("copy", "remote-push", {**own, "username": "admin@tachograph.local", "password": server.password}))
    wait.until(lambda: source(server, "copy").get("connected"), "the registration")
    assert put(**{"notification-id": "7", "data": element}) == 300
    assert put(data=element) == 400
    assert put(**{"notification-id": "7"}) == 400
    assert put(**{"notification-id": "seven", "data": element}) == 400
    server.stop()

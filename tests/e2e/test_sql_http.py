"""SQL over HTTP: curl in every form, pyarrow, many at once, limits, and the table of refused payloads."""

import io
import json
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness import packets
from harness.packets import Wire

T0 = 1_768_464_000_000


@pytest.fixture
def truck(server, device):
    """A device with ten rows, one a second."""
    server.api.send(device.token, [{"ts": T0 + n * 1_000, "values": {"sql_speed": n + 0.5, "sql_gear": n, "sql_note": f"n{n}"}} for n in range(10)])
    return device


def sql(server, query, format="json", params=None, check=True):
    """The reply to a query."""
    body = {"query": query, "format": format} | ({"params": params} if params else {})
    reply = server.api.session.post(server.url + "/api/sql", json=body, timeout=120)
    assert reply.ok or not check, reply.text
    return reply


def rows(server, query, params=None):
    """The rows of a query."""
    answer = sql(server, query, params=params).json()
    assert answer["row_count"] == len(answer["rows"]), answer
    return answer["rows"]


def curl(server, *arguments):
    """curl's standard output; it must call the answer a whole one."""
    header = ["-H", f"X-Authorization: Bearer {server.api.token}"]
    done = subprocess.run(["curl", "-sS", *header, *arguments], capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def of(device, what="*"):
    return f"SELECT {what} FROM telemetry WHERE device = '{device.name}' ORDER BY ts"


def test_curl_in_every_form(server, truck):
    query = of(truck, "ts, sql_gear, sql_speed, sql_note") + " LIMIT 2"
    url = server.url + "/api/sql"
    text = ["-H", "Content-Type: text/plain", "--data-binary", query]
    answer = json.loads(curl(server, url, *text))
    assert answer["columns"][1:] == [{"name": "sql_gear", "type": "i64"}, {"name": "sql_speed", "type": "f64"}, {"name": "sql_note", "type": "string"}]
    assert answer["rows"] == [["2026-01-15T08:00:00.000000Z", 0, 0.5, "n0"], ["2026-01-15T08:00:01.000000Z", 1, 1.5, "n1"]]
    csv = curl(server, url, "-H", "Accept: text/csv", *text)
    assert csv.decode() == "ts,sql_gear,sql_speed,sql_note\r\n2026-01-15T08:00:00.000000Z,0,0.5,n0\r\n2026-01-15T08:00:01.000000Z,1,1.5,n1\r\n"
    assert curl(server, "-G", url, "--data-urlencode", f"q={query}", "-d", "format=csv") == csv
    table = pa.ipc.open_stream(io.BytesIO(curl(server, url + "?format=arrow", *text))).read_all()
    assert table.column("sql_speed").to_pylist() == [0.5, 1.5]
    assert str(table.schema.field("ts").type) == "timestamp[us, tz=UTC]"
    parquet = pq.read_table(io.BytesIO(curl(server, url + "?format=parquet", *text)))
    assert parquet.equals(table)


def test_parameters(server, truck):
    query = "SELECT sql_gear FROM telemetry WHERE device = $1 AND sql_gear >= $2 AND ts < $3 ORDER BY ts"
    assert rows(server, query, [truck.name, 3, "2026-01-15T08:00:05Z"]) == [[3], [4]]
    refused = sql(server, query, params=[truck.name], check=False)
    assert refused.status_code == 400, refused.text


def test_lists_are_arrays(server, truck):
    query = "SELECT sql_gear FROM telemetry WHERE device = ANY($1) AND {} ORDER BY ts"
    for condition, values, found in [
        ("sql_gear = ANY($2)", [1, 3, None], [1, 3]),
        ("sql_gear <> ALL($2)", [0, 1, 2, 3, 4, 5, 6, 7], [8, 9]),
        ("sql_speed = ANY($2)", [0, 2.5], [2]),
        ("sql_note = ANY($2)", ["n4", 'n"5', ""], [4]),
        ("sql_note = ANY($2)", [], []),
        ("ts = ANY($2)", ["2026-01-15T08:00:05Z"], [5]),
        ("sql_gear = ($2::bigint[])[1]", [7, 8], [7]),
    ]:
        assert rows(server, query.format(condition), [[truck.name], values]) == [[gear] for gear in found], condition
    assert rows(server, "SELECT $1::text[], array_length($1::text[], 1)", [["a", None]]) == [[["a", None], 2]]
    for wrong in ([[1]], [1, "a"], [{"a": 1}]):
        refused = sql(server, "SELECT $1::text[]", params=[wrong], check=False)
        assert refused.status_code == 400 and "parameter $1" in refused.text, refused.text


def test_a_refused_payload_is_found_with_sql(server, device):
    payload = '{"speed": NaN}'
    with Wire(server.mqtt).session(device.token) as wire:
        wire.send(packets.publish(payload.encode(), 1)).receive()
    found = rows(server, f"SELECT door, topic, reason, payload FROM dead_letter WHERE device = '{device.name}'")
    assert [(door, topic, kept) for door, topic, _, kept in found] == [("mqtt", "v1/devices/me/telemetry", payload)]
    assert "JSON" in found[0][2] or "expected" in found[0][2], found


def test_what_is_acked_is_seen_by_the_next_query(server, device):
    for n in range(5):
        server.api.send(device.token, {"ts": T0 + n, "values": {"sql_seen": n}})
        assert rows(server, f"SELECT count(sql_seen), max(sql_seen) FROM telemetry WHERE device = '{device.name}'") == [[n + 1, n]]


def test_two_hundred_queries_at_once(server, truck):
    query = of(truck, "sql_gear")
    with ThreadPoolExecutor(200) as pool:
        answers = list(pool.map(lambda _: rows(server, query), range(200)))
    assert answers == [[[n] for n in range(10)]] * 200


def test_over_the_memory_limit_the_query_ends_and_the_server_continues(own_server):
    server = own_server({"TACHO_QUERY_MEMORY_BYTES_MAX": "2097152"})
    big = "SELECT x, count(*) FROM generate_series(1, 2000000) AS t(x) GROUP BY x ORDER BY 2, 1"
    refused = sql(server, big, check=False)
    assert refused.status_code == 422, refused.text
    assert "2 MiB" in refused.json()["message"]
    assert rows(server, "SELECT 1") == [[1]]
    server.stop()


def test_a_query_that_would_need_a_hundred_gigabytes_ends(server):
    # 12.5 billion numbers of 8 bytes, to be sorted; limits are the usual ones.
    refused = sql(server, "SELECT x FROM generate_series(1, 12500000000) AS t(x) ORDER BY x DESC OFFSET 1", check=False)
    assert refused.status_code == 422, refused.text
    assert "256 MiB" in refused.json()["message"], refused.text
    assert rows(server, "SELECT 1") == [[1]]


def test_over_its_time_the_query_ends(own_server):
    server = own_server({"TACHO_QUERY_TIMEOUT_S": "1"})
    refused = sql(server, "SELECT count(*) FROM generate_series(1, 100000000000) AS t(x)", check=False)
    assert refused.status_code == 422, refused.text
    assert "1 s" in refused.json()["message"]
    server.stop()


def test_a_late_error_is_in_json_and_truncates_csv(server):
    late = "SELECT 10 / (x - 20000) FROM generate_series(1, 30000) AS t(x)"
    answer = sql(server, late).json()
    assert "division by zero" in answer["error"]["message"] and "row_count" not in answer
    done = subprocess.run(
        ["curl", "-sS", "-H", f"X-Authorization: Bearer {server.api.token}", server.url + "/api/sql?format=csv", "--data-binary", late],
        capture_output=True,
        timeout=120,
    )
    assert done.returncode == 18, (done.returncode, done.stderr)


def test_without_a_session_nothing_is_read(server):
    done = subprocess.run(["curl", "-s", "-G", server.url + "/api/sql", "--data-urlencode", "q=SELECT 1"], capture_output=True, timeout=60)
    assert json.loads(done.stdout)["status"] == 401


def test_public_sessions_read_all_but_dead_letters(own_server):
    server = own_server({"TACHO_HTTP_PUBLIC_READ": "true"})
    device = server.device()
    server.api.send(device.token, {"speed": 1})
    server.api.session.post(f"{server.url}/api/v1/{device.token}/telemetry", data="no JSON", timeout=60)
    assert rows(server, "SELECT count(*) FROM dead_letter") == [[1]]
    token = server.api.session.post(server.url + "/api/auth/login/public", timeout=60).json()["token"]
    server.api.session.headers["X-Authorization"] = f"Bearer {token}"
    assert rows(server, "SELECT count(*) FROM telemetry") == [[1]]
    assert sql(server, "SELECT * FROM dead_letter", check=False).status_code == 400
    server.stop()


@pytest.mark.parametrize("form", ["json", "csv", "arrow", "parquet"])
def test_a_large_answer_is_not_held_in_memory(own_server, form):
    """An answer of some hundred megabytes to a client that pauses."""
    server = own_server({"TACHO_QUERY_TIMEOUT_S": "600"})
    pid = server.process.pid
    columns = "x, repeat(CAST(x AS text), 20) AS text"
    if form == "parquet":  # which keeps the text of a number in a few bytes
        columns = ", ".join(f"random() AS x{number}" for number in range(12))
    query = f"SELECT {columns} FROM generate_series(1, 2500000) AS t(x)"
    sql(server, query + " LIMIT 100000", form)  # threads and caches are there now
    with open(f"/proc/{pid}/clear_refs", "w") as clear:
        clear.write("5")  # the peak begins again
    before = memory_bytes(pid, "VmHWM")
    with server.api.session.post(server.url + "/api/sql", json={"query": query, "format": form}, stream=True, timeout=120) as reply:
        pieces = reply.iter_content(1 << 20)
        received = len(next(pieces))
        time.sleep(1)  # the server must not buffer the rows that it finds meanwhile
        received += sum(len(piece) for piece in pieces)
    assert received > 200_000_000, received
    grown = memory_bytes(pid, "VmHWM") - before
    assert grown < 100_000_000, f"{grown} bytes for an answer of {received}"


def memory_bytes(pid, line):
    """A line of /proc/PID/status."""
    with open(f"/proc/{pid}/status") as status:
        return next(int(text.split()[1]) * 1024 for text in status if text.startswith(line + ":"))

"""Requests that the server refuses before it has read their bodies: the client sends the whole body and still reads the answer."""

import contextlib
import http.client

import pytest

BODY = b"x" * 25_000_000
TIMES = 5


def admin(server) -> dict:
    return {"X-Authorization": f"Bearer {server.api.token}"}


@pytest.mark.parametrize(
    "method, path, has_login, status",
    [
        ("POST", "/write?db=tacho&u=a&p=b", False, 401),
        ("POST", "/write?db=absent", True, 404),
        ("POST", "/api/v2/query", False, 501),
        ("POST", "/api/v1/write", False, 401),
        ("POST", "/api/v1/absent/telemetry", False, 401),
        ("POST", "/api/put", False, 401),
        ("POST", "/api/sql", True, 413),
        ("POST", "/api/auth/login", False, 413),
        ("POST", "/api/nothing", False, 404),
        ("POST", "/healthz", False, 405),
        ("POST", "/api/device?nonsense=1", True, 400),
        ("POST", "/api/device", False, 401),
    ],
)
def test_the_client_of_a_refused_body_reads_the_answer(server, method, path, has_login, status):
    """One connection serves all requests: the server reads what a refused request has left."""
    headers = admin(server) if has_login else {}
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", server.http, timeout=60)) as connection:
        for _ in range(TIMES):
            connection.request(method, path, body=BODY, headers={"Content-Type": "application/json", **headers})
            answer = connection.getresponse()
            told = answer.read()
            assert answer.status == status, told[:500]


def test_a_body_without_end_ends_the_connection(server):
    """The server discards only so much of a refused body."""
    sent = 0
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", server.http, timeout=60)) as connection:
        connection.putrequest("POST", "/api/nothing")
        connection.putheader("Content-Length", str(10 * 1024**3))
        connection.endheaders()
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            while sent < 1024**3:
                connection.send(b"x" * 1024**2)
                sent += 1024**2
    assert 60 * 1024**2 < sent < 200 * 1024**2

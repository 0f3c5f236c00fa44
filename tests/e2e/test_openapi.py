"""The description of the HTTP interface, read by a validator that we did not write."""

import re

import requests
from openapi_spec_validator import validate


def document(server):
    answer = requests.get(f"{server.url}/api/openapi.json", timeout=10)
    assert answer.status_code == 200
    return answer.json()


def test_the_document_is_valid(server):
    validate(document(server))


def test_every_path_is_served_and_refuses_strangers(server):
    """A path that needs a login answers 401 to a client without one, with any ids. What is refused to everybody may say so."""
    for path, methods in document(server)["paths"].items():
        if path in ("/mqtt", "/api/ws", "/api/ws/plugins/telemetry"):
            continue
        filled = re.sub(r"\{[^}]*\}", "00000000-0000-0000-0000-000000000001", path)
        for method, operation in methods.items():
            needs_login = operation.get("security") is None
            if not needs_login:
                continue
            answer = requests.request(method, server.url + filled, json={}, timeout=10)
            expected = (400, 401) if operation["summary"].startswith("Refused:") else (401,)
            assert answer.status_code in expected, f"{method} {path}: {answer.status_code} {answer.text[:200]}"

"""Fixtures: the shared server, a new device, servers of a single test."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from harness.server import Server  # noqa: E402


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """One server for the tests that need nothing special of it; its end is a clean one."""
    with Server(tmp_path_factory.mktemp("shared")) as server:
        yield server


@pytest.fixture
def device(server):
    """A device that no other test uses."""
    return server.device()


@pytest.fixture
def own_server(tmp_path):
    """Makes servers that belong to one test; the fixture kills those that still run at its end."""
    made = []

    def make(env: dict | None = None, directory: Path | None = None, **options) -> Server:
        made.append(Server(directory or tmp_path / "data", env, **options))
        return made[-1].start()

    yield make
    for server in made:
        if server.alive():
            server.kill()


@pytest.fixture(autouse=True)
def shared_server_lives(request):
    """Whatever a test sends, the shared server must survive it."""
    yield
    if "server" in request.fixturenames:
        server = request.getfixturevalue("server")
        assert server.alive(), f"the server died:\n{server.log()}"

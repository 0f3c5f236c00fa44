"""Virtual sensors of a server: their files, and what the server shows of them."""

from . import wait

WAIT_S = 60


def write(server, file, text):
    """A file in the directory of the sensors."""
    directory = server.directory / "sensors"
    directory.mkdir(exist_ok=True)
    (directory / file).write_text(text)


def shown(server, name):
    """One sensor; None if there is none."""
    reply = server.api.session.get(f"{server.url}/api/tacho/sensors/{name}", timeout=WAIT_S)
    return reply.json() if reply.status_code == 200 else None


def loaded(server, name):
    """Waits until a sensor runs."""
    return wait.until(lambda: (one := shown(server, name)) and one["state"] == "running" and one, f"the sensor {name}")

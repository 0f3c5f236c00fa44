"""The REST surface as a ThingsBoard client uses it."""

import requests

TIMEOUT_S = 60


class Api:
    """Requests with the session's token; a reply that is not 2xx is an assertion with its body."""

    def __init__(self, url: str):
        self.url = url
        self.token = None
        self.session = requests.Session()

    def login(self, username: str, password: str) -> "Api":
        """Logs in and sends the token from now on."""
        reply = self.post("/api/auth/login", {"username": username, "password": password})
        self.token = reply["token"]
        self.session.headers["X-Authorization"] = f"Bearer {self.token}"
        return self

    def get(self, path: str, **params):
        """A GET, decoded."""
        return self._checked(self.session.get(self.url + path, params=params, timeout=TIMEOUT_S))

    def post(self, path: str, body):
        """A POST, decoded; `None` for an empty reply."""
        return self._checked(self.session.post(self.url + path, json=body, timeout=TIMEOUT_S))

    @staticmethod
    def _checked(reply):
        assert reply.ok, f"{reply.request.method} {reply.url}: {reply.status_code} {reply.text}"
        return reply.json() if reply.content else None

    def send(self, token: str, payload) -> None:
        """Telemetry through the device's HTTP door."""
        self.post(f"/api/v1/{token}/telemetry", payload)

    def device_id(self, name: str) -> str:
        """The id of a device by its name."""
        found = self.get("/api/tenant/devices", deviceName=name)
        assert found["name"] == name
        return found["id"]["id"]

    def keys(self, name: str) -> list:
        """The keys a device has reported."""
        return self.get(f"/api/plugins/telemetry/DEVICE/{self.device_id(name)}/keys/timeseries")

    def values(self, name: str, *keys: str, **params) -> dict:
        """Latest values, or history when a range is given; strict types by default."""
        params = {"useStrictDataTypes": "true"} | params
        if keys:
            params["keys"] = ",".join(keys)
        return self.get(f"/api/plugins/telemetry/DEVICE/{self.device_id(name)}/values/timeseries", **params)

    def latest(self, name: str, key: str):
        """The newest value of a key, `None` when there is none."""
        points = self.values(name, key).get(key) or []
        return points[0]["value"] if points else None

    def history(self, name: str, key: str, start: int = 0, end: int = 4_102_444_800_000, limit: int = 1_000_000) -> list:
        """All (ts, value) of a key in a range, oldest first; the default range is the years 1970 to 2100."""
        found = self.values(name, key, startTs=start, endTs=end, limit=limit, agg="NONE", orderBy="ASC")
        return [(point["ts"], point["value"]) for point in found.get(key, [])]

    def metrics(self) -> str:
        """The text of `/metrics`."""
        reply = self.session.get(self.url + "/metrics", timeout=TIMEOUT_S)
        assert reply.status_code == 200, reply.text
        return reply.text

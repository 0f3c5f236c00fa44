"""The queries of TSBS's use case iot, and SELECT ... INTO: the answers of a real InfluxDB to the same requests."""

import random

import pytest
import requests
from harness import databases
from harness.server import Server

# A whole day, because buckets of a day begin at midnight.
T0 = 1_451_606_400
HOURS = 26
STEP_S = 120
FLEETS = ("East", "North", "South", "West")
MODELS = (("F-150", 2000, 200, 15), ("G-2000", 5000, 300, 19), ("H-2", 1500, 150, 12))


def trucks():
    """Lines of twelve trucks: some stand still, run out of fuel or break down; reports, fields and tags are missing."""
    rng = random.Random(7)
    lines = []
    for truck in range(12):
        model, load_capacity, fuel_capacity, nominal = MODELS[truck % 3]
        tags = f"name=truck_{truck},fleet={FLEETS[truck % 4]},driver={rng.choice(('Derek', 'Trish', 'Andy'))},model={model},device_version=v{1 + truck % 2}.0"
        velocity, fuel, status, load = 0.0, rng.random(), 0.0, rng.random() * load_capacity
        for step in range(HOURS * 3600 // STEP_S):
            time = T0 + step * STEP_S
            # A truck drives and rests in turns of its own.
            driving = (time // 1800 + truck) % (2 + truck) > 0
            velocity = min(100.0, max(0.0, velocity + rng.uniform(-10, 14))) if driving else 0.0
            fuel = fuel - 0.003 if fuel > 0.003 else 1.0
            status = min(5.0, max(0.0, status + rng.gauss(0, 1.5)))
            load = rng.random() * load_capacity if rng.random() < 0.02 else load
            if rng.random() < 0.1:
                continue
            own = tags if rng.random() > 0.01 else tags.replace(f"name=truck_{truck},", "")
            fixed = f"load_capacity={load_capacity},fuel_capacity={fuel_capacity},nominal_fuel_consumption={nominal}"
            place = f"latitude={50 + step / 1000:.5f},longitude={8 + truck / 10:.5f}"
            readings = [place, f"velocity={velocity:.0f}", f"fuel_consumption={10 + rng.random() * 5:.1f}", f"grade={rng.randrange(100)}"]
            if rng.random() < 0.1:
                readings.pop(rng.randrange(4))
            lines.append(f"readings,{own} {fixed},{','.join(readings)} {time}")
            lines.append(f"diagnostics,{own} {fixed},fuel_state={fuel:.1f},current_load={load:.0f},status={int(status)}i {time}")
    return lines


END = T0 + HOURS * 3600
START_TEXT, END_TEXT = "2016-01-01T00:00:00Z", "2016-01-02T02:00:00Z"
DAY_TEXT = "2016-01-02T00:00:00Z"


def sessions(fleet, start, end, most):
    return f"""SELECT "name","driver"
        FROM(SELECT count(*) AS ten_min
         FROM(SELECT mean("velocity") AS mean_velocity
          FROM readings
          WHERE "fleet" = '{fleet}' AND time > '{start}' AND time <= '{end}'
          GROUP BY time(10m),"name","driver")
         WHERE "mean_velocity" > 1
         GROUP BY "name","driver")
        WHERE ten_min_mean_velocity > {most}"""


# The nested part of avg-daily-driving-session: where whether a truck drives changes.
CHANGES = f"""(SELECT difference("difka"), elapsed("difka", 1m)
     FROM (SELECT "difka"
      FROM (SELECT difference("mv") AS difka
       FROM (SELECT floor(mean("velocity")/10)/floor(mean("velocity")/10) AS "mv"
        FROM "readings"
        WHERE "name"!='' AND time > '{START_TEXT}' AND time < '{END_TEXT}'
        GROUP BY time(10m), "name" fill(0))
       GROUP BY "name")
      WHERE "difka"!=0
      GROUP BY "name")
     GROUP BY "name")"""
ALL = f"time > '{START_TEXT}' AND time < '{END_TEXT}'"
FROM_START = f"time >= '{START_TEXT}' AND time < '{END_TEXT}'"

QUERIES = {
    "last-loc": 'SELECT "latitude", "longitude" FROM "readings" WHERE "fleet"=\'South\' GROUP BY "name","driver" ORDER BY "time" LIMIT 1',
    "last-loc-descending": 'SELECT "latitude", "longitude" FROM "readings" WHERE "fleet"=\'South\' GROUP BY "name","driver" ORDER BY "time" DESC LIMIT 1',
    "single-last-loc": 'SELECT "latitude", "longitude" FROM "readings" WHERE "name"=\'truck_3\' GROUP BY "name","driver" ORDER BY "time" DESC LIMIT 1',
    "low-fuel": 'SELECT "name", "driver", "fuel_state" FROM "diagnostics" WHERE "fuel_state" <= 0.1 AND "fleet" = \'West\' GROUP BY "name" ORDER BY "time" DESC LIMIT 1',
    "high-load": """SELECT "name", "driver", "current_load", "load_capacity"
        FROM (SELECT  "current_load", "load_capacity" FROM "diagnostics" WHERE fleet = 'East'
         GROUP BY "name","driver" ORDER BY "time" DESC LIMIT 1)
        WHERE "current_load" >= 0.2 * "load_capacity" GROUP BY "name" ORDER BY "time" DESC""",
    "stationary-trucks": f"""SELECT "name", "driver"
        FROM(SELECT mean("velocity") as mean_velocity FROM "readings"
         WHERE time > '{END_TEXT}' - 10m AND time <= '{END_TEXT}' GROUP BY time(10m),"name","driver","fleet" LIMIT 1)
        WHERE "fleet" = 'North' AND "mean_velocity" < 60 GROUP BY "name\"""",
    "long-driving-sessions": sessions("South", "2016-01-01T10:03:07Z", "2016-01-01T14:03:07Z", 15),
    "long-daily-sessions": sessions("West", "2016-01-01T01:20:00Z", "2016-01-02T01:20:00Z", 60),
    "avg-vs-projected-fuel-consumption": 'SELECT mean("fuel_consumption") AS "mean_fuel_consumption", mean("nominal_fuel_consumption") AS "nominal_fuel_consumption" FROM "readings" WHERE "velocity" > 1 GROUP BY "fleet"',
    "avg-daily-driving-duration": f"""SELECT count("mv")/6 as "hours driven"
        FROM (SELECT mean("velocity") as "mv" FROM "readings" WHERE {ALL} GROUP BY time(10m),"fleet", "name", "driver")
        WHERE {ALL} GROUP BY time(1d),"fleet", "name", "driver\"""",
    "driving-changes": f"SELECT * FROM {CHANGES} GROUP BY \"name\"",
    "avg-daily-driving-session": f'SELECT mean("elapsed") FROM (SELECT "elapsed" FROM {CHANGES} WHERE "difference" = -2 GROUP BY "name") WHERE {ALL} GROUP BY time(1d),"name"',
    "avg-load": """SELECT mean("ml") AS mean_load_percentage
        FROM (SELECT "current_load"/"load_capacity" AS "ml" FROM "diagnostics" GROUP BY "name", "fleet", "model") GROUP BY "fleet", "model\"""",
    "daily-activity": f"""SELECT count("ms")/144
        FROM (SELECT mean("status") AS ms FROM "diagnostics" WHERE {FROM_START} GROUP BY time(10m), "model", "fleet")
        WHERE {FROM_START} AND "ms"<1 GROUP BY time(1d), "model", "fleet\"""",
    "breakdown-frequency": f"""SELECT count("state_changed")
        FROM (SELECT difference("broken_down") AS "state_changed"
         FROM (SELECT floor(2*(sum("nzs")/count("nzs")))/floor(2*(sum("nzs")/count("nzs"))) AS "broken_down"
          FROM (SELECT "model", "status"/"status" AS nzs FROM "diagnostics" WHERE {FROM_START})
          WHERE {FROM_START} GROUP BY time(10m),"model")
         GROUP BY "model")
        WHERE "state_changed" = 1 GROUP BY "model\"""",
}


class Side:
    """One of the two servers."""

    def __init__(self, url, headers):
        self.url, self.headers = url, headers

    def write(self, lines):
        params = {"db": "tsbs", "precision": "s"}
        for begin in range(0, len(lines), 5_000):
            body = "\n".join(lines[begin : begin + 5_000]).encode()
            reply = requests.post(f"{self.url}/write", params=params, data=body, headers=self.headers, timeout=120)
            assert reply.status_code == 204, reply.text

    def ask(self, query):
        reply = requests.post(f"{self.url}/query", params={"db": "tsbs", "epoch": "ns"}, data={"q": query}, headers=self.headers, timeout=120)
        assert reply.status_code == 200, reply.text
        return reply.json()


@pytest.fixture(scope="module")
def sides(tmp_path_factory):
    """The server under test and InfluxDB, with the same points."""
    with Server(tmp_path_factory.mktemp("tsbs")) as server:
        influxd = databases.start_influxd()
        try:
            both = Side(server.url, {"Authorization": f"Bearer {server.api.token}"}), Side(influxd.url, {})
            lines = trucks()
            for side in both:
                side.ask("CREATE DATABASE tsbs")
                side.write(lines)
            yield both
        finally:
            influxd.stop()


def rounded(value):
    """Sums of floats have no fixed order, so the last digits may differ."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, list):
        return [rounded(one) for one in value]
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    return value


def same(sides, query):
    ours, theirs = (side.ask(query) for side in sides)
    assert rounded(ours) == rounded(theirs)
    return ours["results"]


@pytest.mark.parametrize("name", QUERIES)
def test_the_queries_of_tsbs_are_answered_as_by_influxdb(sides, name):
    results = same(sides, QUERIES[name])
    assert results[0].get("series"), f"{name} has no answer in this data, so it compares nothing"


INTO = [
    f'SELECT mean(velocity) AS v INTO means FROM readings WHERE {ALL} GROUP BY time(1h), "name"',
    f'SELECT velocity, driver, device_version INTO copied FROM readings WHERE "name" = \'truck_5\' AND {ALL} GROUP BY fleet',
    'SELECT status INTO tsbs.autogen.statuses FROM "diagnostics" WHERE status > 4',
    f'SELECT max(velocity) INTO other..:MEASUREMENT FROM readings, "diagnostics" WHERE {FROM_START} GROUP BY time(6h), *',
    f'SELECT "elapsed" INTO "driving_sessions" FROM {CHANGES} WHERE "difference" = -2 GROUP BY "name"',
    'SELECT nosuch INTO nothing FROM readings',
    'SELECT velocity INTO nosuch..x FROM readings',
    'SELECT velocity INTO "week"."x" FROM readings',
]


def test_into_writes_what_influxdb_writes(sides):
    for side in sides:
        side.ask("CREATE DATABASE other")
    for statement in INTO[:6]:
        same(sides, statement)
    for measurement in ("means", "copied", "statuses", "driving_sessions", "nothing", "other..readings"):
        found = same(sides, f"SELECT * FROM {measurement} GROUP BY *")
        assert bool(found[0].get("series")) == (measurement != "nothing"), measurement
    same(sides, f'SELECT mean("elapsed") FROM "driving_sessions" WHERE {ALL} GROUP BY time(1d),"name"')
    for statement in INTO[6:]:
        ours, theirs = (side.ask(statement)["results"][0] for side in sides)
        assert "error" in ours and "error" in theirs, (ours, theirs)


def test_into_needs_the_permission_to_write(sides):
    ours = sides[0]
    login = {"login": "tsbs-viewer@example.org", "password": "a long password", "role": "viewer"}
    made = requests.post(f"{ours.url}/api/tacho/users", json=login, headers={"X-Authorization": ours.headers["Authorization"]}, timeout=60)
    assert made.ok, made.text
    query = {"q": "SELECT velocity INTO x FROM readings"}
    refused = requests.post(f"{ours.url}/query?db=tsbs", data=query, auth=(login["login"], login["password"]), timeout=60)
    assert refused.status_code == 403 and "error authorizing query" in refused.json()["error"]

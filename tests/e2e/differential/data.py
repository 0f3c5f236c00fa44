"""The rows that both servers hold: made up, the same every time."""

import random

BEGIN_US = 1_768_464_000_000_000  # 2026-01-15 08:00:00 UTC
NOTES = ["ok", "", "Tür auf", "ÖL", "grün", "100%", "a_b", "back\\slash", "it's", "😀 smile", "NULL", "Z", "a", "B", "7", "ok "]
TABLES = {
    "readings": {
        "device": "text",
        "ts": "timestamptz",
        "speed": "double precision",
        "gear": "bigint",
        "active": "boolean",
        "note": "text",
        "doc": "text",
    },
    "vehicles": {"device": "text", "depot": "text", "ts": "timestamptz", "built": "bigint", "weight": "double precision", "label": "text"},
}


def rows() -> dict:
    """Rows of both tables as dictionaries; what is missing is NULL."""
    random_numbers = random.Random(29)
    readings = []
    for number, device in enumerate(["bus-1", "bus-2", "car-1", "tram", "Über", "van"]):
        for step in range(20):
            row = {"device": device, "ts": BEGIN_US + step * 60_000_000 + number * 250_000}
            if random_numbers.random() < 0.85:
                row["speed"] = random_numbers.choice([0.0, 0.5, 12.25, 33.3, 50.0, 99.9, -1.5, 1e10, 0.1])
            if random_numbers.random() < 0.85:
                row["gear"] = random_numbers.choice([-1, 0, 1, 2, 3, 4, 5, 10, 1_000_000_007])
            if random_numbers.random() < 0.8:
                row["active"] = random_numbers.random() < 0.5
            if random_numbers.random() < 0.85:
                row["note"] = random_numbers.choice(NOTES)
            if random_numbers.random() < 0.3:
                row["doc"] = random_numbers.choice(['{"a": 1, "b": [1, 2, {"c": "ä"}]}', '{"a": null}', "[]", '{"a": "x"}'])
            if len(row) == 2:
                row["gear"] = 0
            readings.append(row)
    vehicles = []
    for number, (device, depot) in enumerate([("bus-1", "north"), ("bus-2", "north"), ("car-1", "south"), ("tram", None), ("Über", "süd"), ("ship", "south")]):
        row = {"device": device, "ts": BEGIN_US, "built": 2010 + number * 3, "weight": 1.5 * number}
        row |= {"depot": depot} if depot else {}
        row |= {"label": f"No. {number}"} if number % 2 else {}
        vehicles.append(row)
    return {"readings": readings, "vehicles": vehicles}


def lines() -> str:
    """All rows in line protocol."""
    return "".join(_line(table, row) for table, table_rows in rows().items() for row in table_rows)


def _line(table: str, row: dict) -> str:
    types = TABLES[table]
    tags = "".join(f",{tag}={row[tag]}" for tag in ("device", "depot") if tag in row)
    fields = ",".join(f"{key}={_field(value)}" for key, value in row.items() if key not in ("device", "depot", "ts"))
    assert set(row) <= set(types)
    return f"{table}{tags} {fields} {row['ts']}000\n"


def _field(value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"{value}i"
    if isinstance(value, float):
        return repr(value)
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def fill_postgresql(connection, columns: dict) -> None:
    """Makes the tables in PostgreSQL; `columns` gives their columns in order."""
    for table, names in columns.items():
        types = TABLES[table]
        assert set(names) == set(types), (names, types)
        connection.execute(f"CREATE TABLE {table} ({', '.join(f'{name} {types[name]}' for name in names)})")
        for row in rows()[table]:
            places = ", ".join("to_timestamp(0) + %s * interval '1 microsecond'" if name == "ts" else "%s" for name in names)
            connection.execute(f"INSERT INTO {table} VALUES ({places})", [row.get(name) for name in names])
        connection.execute(f"ANALYZE {table}")

"""Random statements over the tables, compared on both servers: python -m differential.generate --seconds 600 --seed 7

A seed gives the same statements again. An error of both is not a difference, whatever its SQLSTATE, nor is a refusal of ours that says so.
"""

import argparse
import random
import sys
import time

from differential.compare import ask, difference, is_ordered
from differential.servers import both

# Columns by kind, and constants.
COLUMNS = {
    "readings": {"text": ["device", "note"], "int": ["gear"], "float": ["speed"], "bool": ["active"], "time": ["ts"]},
    "vehicles": {"text": ["device", "depot", "label"], "int": ["built"], "float": ["weight"], "bool": [], "time": ["ts"]},
}
CONSTANTS = {
    "text": ["'bus-1'", "'ok'", "''", "'Über'", "'a_b'", "'7'", "'Tür auf'", "NULL::text"],
    "int": ["0", "1", "-1", "3", "10", "2016", "NULL::bigint"],
    "float": ["0.5::float8", "12.25::float8", "-1.5::float8", "50::float8", "NULL::float8"],
    "bool": ["true", "false", "NULL::bool"],
    "time": ["timestamptz '2026-01-15 08:05:00+00'", "timestamptz '2026-01-15 08:10:00.25+00'", "timestamptz '2026-01-15 00:00:00+00'"],
}
# What a time is cast to, and how the answer shows it.
CASTS = ["date", "time", "timestamp", "text"]
LIKES = ["'%a%'", "'bus%'", "'_'", "'%\\_%'", "'Ü%'", "''", "'%'"]
KINDS = list(CONSTANTS)
# Refusals that name an unknown object.
REFUSED = {"0A000", "42883"}


class Generator:
    """Makes statements; two generators with one seed make the same ones."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)

    def one(self, *choices):
        """One of these."""
        return self.random.choice(choices)

    def often(self, probability: float) -> bool:
        """True with this probability."""
        return self.random.random() < probability

    # Values.

    def value(self, kind: str, source: dict, depth: int = 2) -> str:
        """An expression of a kind over the columns of `source`."""
        columns = source.get(kind, [])
        if depth == 0 or self.often(0.4):
            return self.one(*columns) if columns and self.often(0.8) else self.one(*CONSTANTS[kind])
        inner = lambda kind: self.value(kind, source, depth - 1)
        common = [
            lambda: f"CASE WHEN {self.condition(source, depth - 1)} THEN {inner(kind)} ELSE {inner(kind)} END",
            lambda: f"coalesce({inner(kind)}, {inner(kind)})",
            lambda: f"nullif({inner(kind)}, {inner(kind)})",
        ]
        own = {
            "text": [
                lambda: f"({inner('text')} || {inner('text')})",
                lambda: f"substr({inner('text')}, {self.one(1, 2, 3)}, {self.one(0, 1, 4)})",
                lambda: f"replace({inner('text')}, 'a', 'bb')",
                lambda: f"{self.one('left', 'right')}({inner('text')}, {self.one(0, 1, 3, -1)})",
                lambda: f"greatest({inner('text')}, {inner('text')})",
            ],
            "int": [
                lambda: f"({inner('int')} {self.one('+', '-')} {self.one(0, 1, 7)})",
                lambda: f"length({inner('text')})",
                lambda: f"({inner('int')} % {self.one(2, 3, -7)})",
                lambda: f"least({inner('int')}, {inner('int')})",
                lambda: f"({inner('int')} / {self.one(2, 3, -7)})",
            ],
            "float": [
                lambda: f"({inner('float')} {self.one('+', '-', '*')} {self.one('0.5', '2', '-1.25')}::float8)",
                lambda: f"abs({inner('float')})",
                lambda: f"greatest({inner('float')}, {inner('float')})",
                lambda: f"({inner('int')} + {inner('float')})",
            ],
            "bool": [lambda: f"({self.condition(source, depth - 1)})"],
            "time": [
                lambda: f"({inner('time')} {self.one('+', '-')} interval '{self.one('1 minute', '90 seconds', '1 day')}')",
                lambda: f"date_trunc('{self.one('minute', 'hour', 'day')}', {inner('time')})",
            ],
        }
        return self.one(*common, *own[kind])()

    def condition(self, source: dict, depth: int = 2) -> str:
        """A condition over the columns of `source`."""
        inner = lambda kind: self.value(kind, source, max(depth - 1, 0))
        kind = self.one(*KINDS)
        simple = [
            lambda: f"{inner(kind)} {self.one('=', '<>', '<', '<=', '>', '>=')} {inner(kind)}",
            lambda: f"{inner(kind)} IS {self.one('', 'NOT ')}NULL",
            lambda: f"{inner(kind)} IS {self.one('', 'NOT ')}DISTINCT FROM {inner(kind)}",
            lambda: f"{inner(kind)} {self.one('', 'NOT ')}IN ({', '.join(self.one(*CONSTANTS[kind]) for _ in range(self.one(1, 2, 4)))})",
            lambda: f"{inner(kind)} {self.one('', 'NOT ')}BETWEEN {inner(kind)} AND {inner(kind)}",
            lambda: f"{inner('text')} {self.one('', 'NOT ')}{self.one('LIKE', 'ILIKE')} {self.one(*LIKES)}",
            lambda: f"{inner('bool')} IS {self.one('', 'NOT ')}{self.one('TRUE', 'FALSE', 'UNKNOWN')}",
            lambda: f"{inner(kind)} {self.one('=', '<>', '<', '>=')} {self.one('ANY', 'ALL')} ({self.array(kind)})",
            lambda: inner("bool"),
        ]
        if depth > 0 and self.often(0.4):
            return f"({self.condition(source, depth - 1)}) {self.one('AND', 'OR')} ({self.condition(source, depth - 1)})"
        if depth > 0 and self.often(0.15):
            return f"NOT ({self.condition(source, depth - 1)})"
        return self.one(*simple)()

    def array(self, kind: str) -> str:
        """An array of constants."""
        texts = {
            "text": "'{bus-1,tram,NULL}'::text[]",
            "int": "'{0,1,2}'::bigint[]",
            "float": "'{0.5,50}'::float8[]",
            "bool": "'{t,NULL}'::bool[]",
            "time": "'{2026-01-15 08:05:00+00}'::timestamptz[]",
        }
        return self.one(texts[kind], f"ARRAY[{', '.join(self.one(*CONSTANTS[kind]) for _ in range(2))}]")

    def aggregate(self, source: dict) -> str:
        """An aggregate."""
        kind = self.one("text", "int", "float", "time")
        value = self.value(kind, source, 1)
        call = self.one(
            "count(*)",
            f"count({value})",
            f"count(DISTINCT {value})",
            f"min({value})",
            f"max({value})",
            f"bool_or({self.condition(source, 1)})",
            f"bool_and({self.condition(source, 1)})",
            f"sum({self.value('float', source, 1)})",
            f"avg({self.value('float', source, 1)})",
        )
        return f"{call} FILTER (WHERE {self.condition(source, 1)})" if self.often(0.2) else call

    def window(self, source: dict, key: str) -> str:
        """A window function; rows have the order of `key`, which is unique."""
        value = self.value(self.one("text", "int", "float"), source, 1)
        call = self.one("row_number()", "count(*)", f"count({value})", f"max({value})", f"min({value})", f"lag({value})", f"lead({value})", f"first_value({value})", f"last_value({value})")
        partition = f"PARTITION BY {self.value(self.one('text', 'bool', 'int'), source, 0)} " if self.often(0.6) else ""
        framed = not call.startswith(("row_number", "lag", "lead"))
        frame = self.one("", " ROWS BETWEEN 2 PRECEDING AND CURRENT ROW", " ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING", " ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING")
        return f"{call} OVER ({partition}ORDER BY {key}{frame if framed else ''})"

    # Statements.

    def statement(self) -> str:
        """A whole statement."""
        kinds = [self.rows, self.rows, self.groups, self.groups, self.joined, self.windows, self.combined, self.nested]
        return self.one(*kinds, self.joined_using, self.ordered_aggregates, self.aliased, self.cast_times)()

    def table(self):
        """A table and its columns."""
        name = self.one(*COLUMNS)
        return name, COLUMNS[name]

    def where(self, source: dict) -> str:
        """Perhaps a condition."""
        return f" WHERE {self.condition(source)}" if self.often(0.8) else ""

    def rows(self) -> str:
        """Rows of a table in an order of all columns."""
        name, source = self.table()
        kinds = [self.one(*KINDS) for _ in range(self.one(1, 2, 3))]
        items = [self.value(kind, source) for kind in kinds]
        places = ", ".join(f"{place + 1}{self.one('', ' DESC', ' NULLS FIRST', ' DESC NULLS LAST')}" for place in range(len(items)))
        # 0 and -0 are two values there for DISTINCT.
        distinct = self.one("", "", "DISTINCT ") if "float" not in kinds else ""
        limit = f" LIMIT {self.one(1, 5, 50)}{self.one('', ' OFFSET 2')}" if self.often(0.3) else ""
        return f"SELECT {distinct}{', '.join(items)} FROM {name}{self.where(source)} ORDER BY {places}{limit}"

    def groups(self) -> str:
        """Groups of a table."""
        name, source = self.table()
        keys = [self.value(self.one(*KINDS), source, 1) for _ in range(self.one(0, 1, 1, 2))]
        items = keys + [self.aggregate(source) for _ in range(self.one(1, 2))]
        group = f" GROUP BY {', '.join(str(place + 1) for place in range(len(keys)))}" if keys else ""
        # CASE whose condition is constant is refused there.
        if keys and not any("CASE" in key for key in keys) and self.often(0.15):
            group = f" GROUP BY {self.one('ROLLUP', 'CUBE')} ({', '.join(keys)})"
        having = f" HAVING {self.aggregate(source)} IS NOT NULL" if keys and self.often(0.2) else ""
        return f"SELECT {', '.join(items)} FROM {name}{self.where(source)}{group}{having}"

    def joined(self) -> str:
        """A join of both tables."""
        kind = self.one("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
        source = {kind: [f"r.{column}" for column in COLUMNS["readings"][kind]] + [f"v.{column}" for column in COLUMNS["vehicles"][kind]] for kind in KINDS}
        on = "r.device = v.device"
        if kind in ("JOIN", "LEFT JOIN", "RIGHT JOIN") and self.often(0.4):
            on += f" AND {self.condition(source, 1)}"
        items = [self.aggregate(source) for _ in range(2)] if self.often(0.5) else [self.value(self.one(*KINDS), source) for _ in range(2)]
        return f"SELECT {', '.join(items)} FROM readings r {kind} vehicles v ON {on}{self.where(source)}"

    def joined_using(self) -> str:
        """A join with common columns."""
        kind = self.one("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
        keys = self.one(["device"], ["device"], ["device", "ts"])
        left, right = self.one(("readings r", "vehicles v"), ("vehicles v", "readings r"), ("vehicles r", "readings v"), ("readings r", "readings v"))
        left_columns, right_columns = (COLUMNS[name.split()[0]] for name in (left, right))
        source = {
            kind: [f"{left[-1]}.{column}" for column in left_columns[kind]] + [f"{right[-1]}.{column}" for column in right_columns[kind]]
            for kind in KINDS
        }
        source["text"] = ["device"] + source["text"]
        if "ts" in keys:
            source["time"] = ["ts"] + source["time"]
        on = self.one(f"{kind} {right} USING ({', '.join(keys)})", f"{kind} {right} USING ({', '.join(keys)})")
        if "ts" in keys and left.split()[0] != right.split()[0] and self.often(0.3):
            on = f"NATURAL {kind} {right}"
        third = self.one("", "", f" {self.one('LEFT JOIN', 'FULL JOIN')} (SELECT device, max(built) AS top FROM vehicles WHERE built > 2012 GROUP BY device) x USING (device)")
        where = self.where(source) if self.often(0.5) else ""
        if self.often(0.2):
            return f"SELECT * FROM {left} {on}{third}{where}"
        if self.often(0.3):
            return f"SELECT device, {self.aggregate(source)} FROM {left} {on}{third}{where} GROUP BY device ORDER BY device, 2"
        items = [*keys, *(self.value(self.one(*KINDS), source, 1) for _ in range(2))]
        return f"SELECT {', '.join(items)} FROM {left} {on}{third}{where}"

    def ordered_aggregates(self) -> str:
        """Aggregates whose results depend on an order, perhaps several orders."""
        name, source = self.table()
        key = self.one("device, ts", "ts, device", "device DESC, ts", "ts DESC, device DESC")
        def ordered():
            text = self.value("text", source, 1)
            value = self.value(self.one("text", "int", "bool"), source, 1)
            call = self.one(f"string_agg({text}, ',' ORDER BY {key})", f"array_agg({value} ORDER BY {self.one(key, 'ts DESC, device')})", f"string_agg({text}, '-' ORDER BY device DESC, ts)")
            return f"{call} FILTER (WHERE {self.condition(source, 1)})" if self.often(0.2) else call
        items = [ordered() for _ in range(self.one(1, 2, 2))] + ([self.aggregate(source)] if self.often(0.5) else [])
        where = self.one(self.where(source), " WHERE false", "")
        if self.often(0.5):
            return f"SELECT {', '.join(items)} FROM {name}{where}"
        group = self.value(self.one("text", "int"), source, 0)
        return f"SELECT {group}, {', '.join(items)} FROM {name}{where} GROUP BY {group} ORDER BY 1"

    def aliased(self) -> str:
        """Names of the SELECT list that are those of columns, in expressions of ORDER BY."""
        name, source = self.table()
        column = source["int"][0]
        item = self.value("int", source, 1)
        order = self.one(f"{column}", f"{column} + 0", f"-{column}", f"{column} % 3, {column}", f"abs({column})", f"coalesce({column}, 7) DESC", f"length(device) + {column}")
        limit = f" LIMIT {self.one(3, 10)}" if self.often(0.4) else ""
        return f"SELECT {item} AS {column}, device, ts FROM {name}{self.where(source)} ORDER BY {order}, device, ts{limit}"

    def cast_times(self) -> str:
        """Casts of times in conditions, keys, orders and windows."""
        name, source = self.table()
        value = f"{self.value('time', source, 1)}::{self.one(*CASTS)}"
        cast = self.one("ts", "ts::date", "ts::time", "ts::timestamp", "ts::text")
        constant = {"ts": "'2026-01-15 08:05'", "ts::date": "'2026-01-15'", "ts::time": "'08:05'", "ts::timestamp": "'2026-01-15 08:05'", "ts::text": "'2026-01-15 08:05:00+00'"}[cast]
        condition = f"{cast} {self.one('=', '<', '<=', '>', '>=', '<>')} {constant}"
        kind = self.one("rows", "groups", "windows")
        if kind == "rows":
            return f"SELECT device, ts, {value} FROM {name} WHERE {condition} ORDER BY {cast}{self.one('', ' DESC')}, device, ts{self.one('', ' LIMIT 7')}"
        if kind == "groups":
            return f"SELECT {cast}, count(*), {self.aggregate(source)} FROM {name} WHERE {condition} GROUP BY {cast} ORDER BY 1"
        call = self.one("rank()", "dense_rank()", "count(*)", f"sum({source['int'][0]})", f"max({value})")
        return f"SELECT device, ts, {call} OVER ({self.one('', 'PARTITION BY device ')}ORDER BY {cast}{self.one('', ' DESC')}) FROM {name} ORDER BY device, ts"

    def windows(self) -> str:
        """Window functions over the rows of a table."""
        name, source = self.table()
        key = "device, ts"
        items = ["device", "ts"] + [self.window(source, key) for _ in range(self.one(1, 2))]
        return f"SELECT {', '.join(items)} FROM {name}{self.where(source)} ORDER BY {key}"

    def combined(self) -> str:
        """Two queries with a set operation between them."""
        kinds = [self.one(*KINDS) for _ in range(self.one(1, 2))]
        sides = []
        for _ in range(2):
            name, source = self.table()
            sides.append(f"SELECT {', '.join(self.value(kind, source, 1) for kind in kinds)} FROM {name}{self.where(source)}")
        return f"{sides[0]} {self.one('UNION', 'UNION ALL', 'INTERSECT', 'EXCEPT')} {sides[1]}"

    def nested(self) -> str:
        """Subqueries."""
        name, source = self.table()
        other, columns = self.table()
        kind = self.one("text", "int", "float")
        inner = f"SELECT {self.value(kind, columns, 1)} FROM {other}{self.where(columns)}"
        condition = self.one(
            lambda: f"{self.value(kind, source, 1)} {self.one('', 'NOT ')}IN ({inner})",
            lambda: f"{self.one('', 'NOT ')}EXISTS (SELECT 1 FROM {other} o WHERE o.device = {name}.device AND {self.condition({kind: [f'o.{column}' for column in found] for kind, found in columns.items()}, 1)})",
            lambda: f"{self.value(kind, source, 1)} {self.one('<', '>=', '=', '<>')} {self.one('ANY', 'ALL')} ({inner})",
            lambda: f"{self.value('int', source, 1)} > (SELECT count(*) FROM {other}{self.where(columns)})",
        )()
        if self.often(0.4):
            other = self.condition(source, 1)
            condition = self.one(f"NOT ({condition})", f"({condition}) OR ({other})", f"({condition}) IS {self.one('', 'NOT ')}NULL", f"NOT (({condition}) AND ({other}))", f"({condition}) = ({other})")
        if self.often(0.2):
            return f"SELECT device, ts, {condition} FROM {name}{self.where(source)} ORDER BY device, ts"
        if self.often(0.3):
            return f"WITH c AS (SELECT * FROM {name} WHERE {self.condition(source, 1)}) SELECT count(*), {self.aggregate(source)} FROM c"
        return f"SELECT device, {self.value(self.one(*KINDS), source, 1)} FROM {name} WHERE {condition}"


def problem(theirs, ours, sql: str) -> str | None:
    """How the answers to a generated statement differ."""
    wanted, given = ask(theirs, sql), ask(ours, sql)
    # A statement that PostgreSQL refuses has no right answer.
    is_no_question = wanted.error and wanted.error.startswith("42")
    if given.error and "The engine says" in given.message:
        return f"no clear refusal: {given.message}"
    if is_no_question or (wanted.error and given.error) or given.error in REFUSED:
        return None
    return difference(wanted, given, is_ordered(sql))


def main() -> None:
    """Runs for some time and prints what differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    generator, asked, failed, errors = Generator(options.seed), 0, 0, 0
    with both() as (theirs, ours):
        end = time.monotonic() + options.seconds
        while time.monotonic() < end:
            sql = generator.statement()
            asked += 1
            errors += ask(theirs, sql).error is not None
            if found := problem(theirs, ours, sql):
                failed += 1
                print(f"{sql}\n    {found}", flush=True)
    print(f"{asked} statements of seed {options.seed}, {errors} errors of PostgreSQL, {failed} differences")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()

"""Random statements of InfluxQL over random points, for InfluxDB and the server under test."""

import random

BEGIN_S = 1_768_464_000
SECONDS = 420
ROWS = 90
# Sums of such values are exact in any order.
QUARTER = 0.25

MEASUREMENTS = {
    "cpu": {"tags": {"host": ["a", "b", "c d", ""], "zone": ["x", "y", ""]}, "fields": {"usage": float, "cores": int, "up": bool, "note": str}},
    "mem": {"tags": {"host": ["a", "b"]}, "fields": {"free": int, "used": float}},
    "odd one": {"tags": {"the tag": ["p=q", "r,s"]}, "fields": {"a field": float, "usage": int}},
}
NUMERIC = ("count", "sum", "mean", "median", "mode", "spread", "stddev", "min", "max", "first", "last", "distinct", "integral")
ANY = ("count", "first", "last", "mode", "distinct")
ROUNDS = ("1m", "30s", "20s", "7s", "1h", "90s")
FILLS = ("null", "none", "0", "1.5", "-3", "previous", "linear")
SUCCESSIVE = ("derivative", "non_negative_derivative", "difference", "non_negative_difference", "cumulative_sum", "moving_average", "elapsed")


def value(numbers: random.Random, kind: type) -> str:
    if kind is float:
        return repr(numbers.randint(-400, 400) * QUARTER)
    if kind is int:
        return f"{numbers.randint(-50, 50)}i"
    if kind is bool:
        return numbers.choice(["true", "false"])
    return '"' + numbers.choice(["on", "off", "it's", 'a \\"b\\"', ""]) + '"'


def escaped(text: str) -> str:
    return text.replace(",", "\\,").replace("=", "\\=").replace(" ", "\\ ")


def points(numbers: random.Random) -> str:
    """Lines with gaps: some series begin late, and some fields are rare. No two rows of a measurement have one time, because InfluxDB gives such rows in no fixed order."""
    lines = []
    for name, shape in MEASUREMENTS.items():
        for second in sorted(numbers.sample(range(SECONDS), ROWS)):
            tags = {tag: numbers.choice(values) for tag, values in shape["tags"].items()}
            fields = [field for field in shape["fields"] if numbers.random() < 0.6] or [next(iter(shape["fields"]))]
            head = "".join(f",{escaped(tag)}={escaped(text)}" for tag, text in tags.items() if text)
            body = ",".join(f"{escaped(field)}={value(numbers, shape['fields'][field])}" for field in fields)
            lines.append(f"{escaped(name)}{head} {body} {(BEGIN_S + second) * 10**9}")
    return "\n".join(lines)


class Generator:
    """Makes statements. It leaves out what InfluxDB 1.6 answers in no fixed order or wrongly; docs/protocol/influx.md names these cases.

    - integral() of integers in buckets takes the interpolated value of a border for the next one.
    - top() and bottom() ignore a descending order, and give too few points with LIMIT.
    - A bucket without a percentile ends the answer.
    - OFFSET without LIMIT gives one row.
    - An aggregate over a subquery is empty if the first bucket begins before the range.
    - Rows of a subquery that has groups are not in the order of time, and a group without the tag is counted twice there.
    - The groups of integral() are in no fixed order.
    - mode() of values that are equally frequent depends on the order of a sort.
    """

    def __init__(self, seed):
        self.numbers = random.Random(seed)

    def chance(self, share: float) -> bool:
        return self.numbers.random() < share

    def of(self, choices):
        return self.numbers.choice(list(choices))

    def statement(self) -> str:
        return self.select() if self.chance(0.93) else self.show()

    def show(self) -> str:
        name = self.of(MEASUREMENTS)
        tag = self.of(MEASUREMENTS[name]["tags"])
        where = f" WHERE {self.tag_condition(name)}" if self.chance(0.5) else ""
        limits = self.of(["", " LIMIT 1", " LIMIT 2 OFFSET 1", " OFFSET 1"])
        return self.of([
            f'SHOW SERIES FROM "{name}"{where}{limits}',
            f'SHOW TAG VALUES FROM "{name}" WITH KEY = "{tag}"{where}{limits}',
            f'SHOW TAG VALUES WITH KEY =~ /{tag[:2]}/{limits}',
            f'SHOW TAG KEYS FROM "{name}"{limits}',
            f'SHOW FIELD KEYS FROM "{name}"{limits}',
            f"SHOW MEASUREMENTS{where}{limits}",
            "SHOW FIELD KEYS",
            "SHOW TAG KEYS",
        ])

    def select(self) -> str:
        name = self.of(MEASUREMENTS)
        raw = self.chance(0.25)
        if not raw and self.chance(0.12):
            return self.over_subquery(self.of(["mem", "odd one"]))
        fields = self.raw_fields(name) if raw else self.call_fields(name)
        group = self.group(name, buckets=not raw, tags="integral" not in fields)
        is_ranked = fields.startswith(("top", "bottom"))
        tail = "" if is_ranked else self.tail()
        return f"SELECT {fields} FROM {self.source(name)}{self.where(name, 'time(' in group)}{group}{tail}"

    def source(self, name: str) -> str:
        choice = self.numbers.random()
        if choice < 0.06:
            return f"/{name[:2]}.*/"
        if choice < 0.1:
            return f'"{name}", "{self.of(other for other in MEASUREMENTS if other != name)}"'
        return f'"{name}"'

    def raw_fields(self, name: str) -> str:
        fields, tags = MEASUREMENTS[name]["fields"], MEASUREMENTS[name]["tags"]
        if self.chance(0.15):
            return "*"
        chosen = [f'"{self.of(fields)}"' for _ in range(self.numbers.randint(1, 3))]
        if self.chance(0.3):
            chosen.append(f'"{self.of(tags)}"')
        if self.chance(0.3):
            chosen.append(self.arithmetic(f'"{self.number_field(name)}"', name))
        if self.chance(0.15):
            chosen = [f"{one} AS n{number}" for number, one in enumerate(chosen)]
        return ", ".join(chosen)

    def number_field(self, name: str) -> str:
        return self.of(field for field, kind in MEASUREMENTS[name]["fields"].items() if kind in (int, float))

    def arithmetic(self, operand: str, name: str) -> str:
        other = self.of([f'"{self.number_field(name)}"', "2", "0.5", "3", "-1"]) if operand.startswith('"') else self.of(["2", "0.5", "3", operand])
        return f"{operand} {self.of('+-*/')} {other}"

    def call(self, name: str) -> str:
        fields = MEASUREMENTS[name]["fields"]
        field = self.of(fields)
        function = self.of(NUMERIC if fields[field] in (int, float) else ANY)
        if function == "integral" and fields[field] is int or function == "mode" and fields[field] is not bool:
            function = "first"
        if function == "count" and self.chance(0.1):
            return f'count(distinct("{field}"))'
        if self.chance(0.06):
            return f"{self.of(['count', 'first', 'last'])}(*)"
        if fields[field] in (int, float) and self.chance(0.12):
            return f'percentile("{field}", {self.of([50, 90, 99.5, 100])})'
        return f'{function}("{field}")'

    def call_fields(self, name: str) -> str:
        choice = self.numbers.random()
        if choice < 0.1:
            field = self.number_field(name)
            tag = f', "{self.of(MEASUREMENTS[name]["tags"])}"' if self.chance(0.3) else ""
            return f'{self.of(["top", "bottom"])}("{field}"{tag}, {self.numbers.randint(1, 4)})'
        if choice < 0.3:
            return self.successive(name)
        if choice < 0.4:
            selector = self.of(["first", "last", "min", "max"])
            other = self.of([*MEASUREMENTS[name]["fields"], *MEASUREMENTS[name]["tags"]])
            return f'{selector}("{self.number_field(name)}"), "{other}"'
        calls = [self.call(name) for _ in range(self.of([1, 1, 1, 2, 3]))]
        calls = [one for one in calls if not one.startswith("distinct")] or calls[:1]
        # Which of several equal points percentile() selects depends on the order of a sort; beside another call it has no time.
        if calls[0].startswith("percentile") and len(calls) == 1:
            calls.append(f'count("{self.number_field(name)}")')
        if self.chance(0.15):
            number = f'{self.of(["mean", "sum", "count", "min", "max"])}("{self.number_field(name)}")'
            calls.append(self.arithmetic(number, name))
        if self.chance(0.2):
            calls = [f"{one} AS n{number}" if "*" not in one else one for number, one in enumerate(calls)]
        return ", ".join(calls)

    def successive(self, name: str) -> str:
        function = self.of(SUCCESSIVE)
        field = f'"{self.number_field(name)}"'
        inner = f"{self.of(['mean', 'sum', 'max', 'last', 'count'])}({field})" if self.chance(0.5) else field
        if function == "moving_average":
            return f"moving_average({inner}, {self.numbers.randint(2, 4)})"
        if function in ("derivative", "non_negative_derivative", "elapsed") and self.chance(0.6):
            return f"{function}({inner}, {self.of(['1s', '10s', '1m'])})"
        return f"{function}({inner})"

    def over_subquery(self, name: str) -> str:
        field = self.number_field(name)
        inner = self.of(["mean", "max", "sum", "count", "first"])
        where = self.where(name, True)
        tag = f'"{self.of(MEASUREMENTS[name]["tags"])}"'
        raw = self.chance(0.25)
        grouping = self.of([f" GROUP BY time({self.of(ROUNDS)})", f" GROUP BY time({self.of(ROUNDS)}), {tag}", "", f" GROUP BY {tag}"][: 1 if raw else 4])
        fill = f" fill({self.of(FILLS)})" if "time" in grouping and tag not in grouping and self.chance(0.4) else ""
        outer = self.of(["mean", "max", "sum", "count", "last"])
        outer_group = self.of(["", f" GROUP BY {tag}", f" GROUP BY time({self.of(['1m', '2m', '1h'])})"])
        select = "v, v * 2" if raw else f"{outer}(v)"
        outer_group = "" if raw and "time" in outer_group else outer_group
        return f'SELECT {select} FROM (SELECT {inner}("{field}") AS v FROM "{name}"{where}{grouping}{fill}){self.where_time()}{outer_group}'

    def where_time(self) -> str:
        begin = BEGIN_S - 3600
        return f" WHERE time >= {begin}s AND time < {BEGIN_S + self.numbers.randint(10, 400)}s"

    def where(self, name: str, bounded: bool) -> str:
        """A condition. Buckets need a range: without one they go on until now."""
        parts = []
        if bounded or self.chance(0.8):
            begin = BEGIN_S + self.numbers.randint(-60, 300)
            end = begin + self.numbers.randint(5, 400)
            low, high = self.of(["time >=", "time >"]), self.of(["time <", "time <="])
            parts.append(f"{low} {begin}s AND {high} {end}s")
        if self.chance(0.35):
            parts.append(self.tag_condition(name))
        if self.chance(0.25):
            parts.append(self.field_condition(name))
        return f" WHERE {' AND '.join(parts)}" if parts else ""

    def tag_condition(self, name: str) -> str:
        tags = MEASUREMENTS[name]["tags"]
        tag = self.of(tags)
        text = self.of([*tags[tag], "z"])
        one = self.of([f"\"{tag}\" = '{text}'", f"\"{tag}\" != '{text}'", f'"{tag}" =~ /{(text or "a")[0]}/', f'"{tag}" !~ /{(text or "a")[0]}/'])
        if self.chance(0.25):
            other = self.of(tags)
            return f"({one} OR \"{other}\" = '{self.of(tags[other])}')"
        return one

    def field_condition(self, name: str) -> str:
        fields = MEASUREMENTS[name]["fields"]
        field = self.of(fields)
        kind = fields[field]
        if kind is bool:
            return f'"{field}" = {self.of(["true", "false"])}'
        if kind is str:
            return self.of([f"\"{field}\" = 'on'", f"\"{field}\" != 'off'", f'"{field}" =~ /o/'])
        return f'"{field}" {self.of(["<", ">", "<=", ">=", "=", "!="])} {self.numbers.randint(-40, 40)}{self.of(["", ".5"])}'

    def group(self, name: str, buckets: bool, tags: bool) -> str:
        names = MEASUREMENTS[name]["tags"]
        parts = []
        if buckets and self.chance(0.6):
            offset = f", {self.of(['5s', '-3s', '10s'])}" if self.chance(0.15) else ""
            parts.append(f"time({self.of(ROUNDS)}{offset})")
        if tags and self.chance(0.4):
            parts.append(self.of([f'"{self.of(names)}"', "*", ", ".join(f'"{tag}"' for tag in names), f"/{self.of(names)[:2]}/"]))
        if not parts:
            return ""
        fill = f" fill({self.of(FILLS)})" if "time(" in parts[0] and self.chance(0.6) else ""
        return f" GROUP BY {', '.join(parts)}{fill}"

    def tail(self) -> str:
        order = " ORDER BY time DESC" if self.chance(0.25) else ""
        limit = f" LIMIT {self.numbers.randint(1, 5)}" if self.chance(0.2) else ""
        offset = f" OFFSET {self.numbers.randint(1, 4)}" if limit and self.chance(0.4) else ""
        groups = f" SLIMIT {self.numbers.randint(1, 2)}" if self.chance(0.06) else ""
        skipped = f" SOFFSET {self.numbers.randint(1, 2)}" if groups and self.chance(0.4) else ""
        return order + limit + offset + groups + skipped

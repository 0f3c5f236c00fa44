"""Random statements that exceed limits: every function of the catalog with huge arguments, joins, WITH, windows, patterns.

The seed says which. By hand, for an hour: `python statements.py URL USER SECONDS [SEED]`; it prints what the server could not
answer as it should."""

import collections
import json
import random
import sys
import time

import requests

TEXTS = [
    "repeat('x', 60000000)",
    "repeat('ab', 1000000)",
    "repeat('x', 3000000)",
    "repeat('a,', 500000)",
    "repeat('(x?){50}', 2000)",
    "repeat('é', 30000)",
    "lpad('x', 20000000, 'yz')",
    "n::text",
    "'x'",
    "''",
    "NULL",
    "device",
    "'(((a{40}){40}){40}'",
    "'((x?){50}){50}'",
    "'%_%_%_%a'",
    "'(a'",
    "'YYYY-MM-DD HH24:MI:SS'",
    "repeat('Month', 100000)",
]
NUMBERS = ["9223372036854775807", "1000000000", "60000000", "1000000", "n", "-1", "0", "1e308", "0.5", "NULL", "-9223372036854775808"]
LISTS = [
    "string_to_array(repeat('a,', 1000000), ',')",
    "(SELECT array_agg(g) FROM generate_series(1, 1000000) AS s(g))",
    "(SELECT array_agg(repeat('y', 1000)) FROM generate_series(1, 20000))",
    "ARRAY[1, 2, 3]",
    "ARRAY[n, n]",
    "ARRAY['a', NULL]",
    "ARRAY[ARRAY[1], ARRAY[2]]",
    "ARRAY[repeat('x', 1000000), repeat('x', 1000000)]",
]
OTHERS = ["now()", "INTERVAL '1000000 years'", "INTERVAL '1 microsecond'", "true", "'2026-01-01'::date", "'{\"a\": [1, 2]}'"]
POOLS = [TEXTS, TEXTS, NUMBERS, NUMBERS, LISTS, OTHERS]
SOURCES = [
    "",
    " FROM generate_series(1, 3) AS s(n)",
    " FROM generate_series(1, 20000) AS s(n)",
    " FROM generate_series(1, 1000000000) AS s(n)",
]
AGGREGATES = ["array_agg({})", "string_agg({}, {})", "max({})", "min({})", "count(DISTINCT {})", "sum({})", "median({})", "first({}, n)", "stddev({})"]
WINDOWS = [
    "first_value({}) OVER ()",
    "last_value({}) OVER (ORDER BY n ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
    "lag({}, 1000000, {}) OVER (ORDER BY n)",
    "lead({}, 1, {}) OVER ()",
    "nth_value({}, 2) OVER (ORDER BY n)",
    "array_agg({}) OVER (ORDER BY n)",
    "sum({}) OVER (ORDER BY n ROWS BETWEEN 1000000 PRECEDING AND 1000000 FOLLOWING)",
    "string_agg({}, {}) OVER ()",
]
OPERATORS = ["{} || {}", "{} ~ {}", "{} ~* {}", "{} !~ {}", "{} LIKE {}", "{} ILIKE {}", "{} SIMILAR TO {}", "{} + {}", "{} * {}", "{} ^ {}", "{} = {}", "{} IN ({}, {})", "{} IS DISTINCT FROM {}"]
# Each of these once ended the server or kept its processors busy. Every run begins with them.
KNOWN = [
    "SELECT length(replace(repeat('x',60000000),'x',repeat('y',1000)))",
    "SELECT length(concat(" + ",".join(["repeat('x',60000000)"] * 40) + "))",
    "SELECT length(" + "||".join(["repeat('x',60000000)"] * 40) + ")",
    "SELECT cardinality(ARRAY[" + ",".join(["repeat('x',60000000)"] * 40) + "])",
    "SELECT length(array_to_string((SELECT array_agg(g) FROM generate_series(1,1000000) AS s(g)), repeat('x', 100000)))",
    "SELECT length(regexp_replace(repeat('x',3000000),'x',repeat('y',1000),'g'))",
    "SELECT length(regexp_replace(repeat('x',300000),'(x*)','" + "\\1" * 2000 + "'))",
    "WITH RECURSIVE t AS (SELECT 'x' AS a UNION ALL SELECT a || a FROM t) SELECT max(length(a)) FROM t",
    "WITH RECURSIVE t AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM t) SELECT max(a) FROM t",
    "SELECT count(*) FROM (SELECT unnest((SELECT array_agg(g) FROM generate_series(1,1000000) AS s(g))), repeat('x', 40000) AS b) q, generate_series(1,1000)",
    "SELECT unnest(a), b FROM (SELECT (SELECT array_agg(g) FROM generate_series(1,1000000) AS s(g)) AS a, repeat('x', 40000) || n AS b FROM generate_series(1,3) AS s(n)) q",
    "SELECT 'x' ~ '" + "(x?){50}" * 6000 + "'",
    "SELECT n::text ~ repeat('(x?){50}', 1000 + n) FROM generate_series(1,8000) AS s(n)",
    "SELECT repeat('x',3000000) ~ '((x?){50}){20}y'",
    "SELECT levenshtein(repeat('x',3000000),repeat('y',3000000))",
    "SELECT levenshtein(repeat('x',3000) || n, repeat('y',3000)) FROM generate_series(1,100000) AS s(n)",
    "SELECT strpos(repeat('x',60000000) || n, repeat('x',300000) || 'y') FROM generate_series(1,100) AS s(n)",
    "SELECT regexp_count(repeat('x',3000000), '(x+x+)+y')",
    "SELECT " + ",".join(["repeat('x',60000000)"] * 1000),
    "SELECT repeat('x',60000000), n FROM generate_series(1,100000) AS s(n)",
    "SELECT a.t, b.n FROM (SELECT repeat('x',1000000) || n AS t FROM generate_series(1,3) AS s(n)) a, generate_series(1,100000) AS b(n)",
    "SELECT count(*) FROM generate_series(1,100000) a(n), generate_series(1,100000) b(n), generate_series(1,100000) c(n)",
    "SELECT string_agg(n::text, repeat('x', 100000)) FROM generate_series(1,1000000) AS s(n)",
    "SELECT 1 FROM " + ", ".join(f"(SELECT 1) t{n}" for n in range(500)),
    "WITH t0 AS (SELECT 1 AS a)," + ",".join(f"t{n} AS (SELECT x.a FROM t{n - 1} x, t{n - 1} y)" for n in range(1, 60)) + " SELECT * FROM t59",
    "SELECT " + ",".join(f"n + {k} AS c{k}" for k in range(12000)) + " FROM generate_series(1,10) AS s(n)",
    "SELECT 1 FROM generate_series(1,2) AS s(n) GROUP BY CUBE(" + ",".join(f"(n+{k})" for k in range(30)) + ")",
    "SELECT to_char(now(), repeat('Month', 1000000))",
    "SELECT 'a' ~ '(a'",
    "SELECT array_element((SELECT array_agg(g) FROM generate_series(1,100000) AS s(g)), n) FROM generate_series(1,20000) AS s(n)",
    "SELECT ((SELECT array_agg(g) FROM generate_series(1,100000) AS s(g)))[n] FROM generate_series(1,20000) AS s(n)",
    "SELECT array_length((SELECT array_agg(g) FROM generate_series(1,100000) AS s(g)), n) FROM generate_series(1,20000) AS s(n)",
    "SELECT (SELECT array_agg(g) FROM generate_series(1,1000000) AS s(g))::text[], n FROM generate_series(1,20000) AS s(n)",
    "SELECT regexp_count(repeat('A',3000000), '.*[^A-Z]|[A-Z]')",
    "SELECT length(regexp_replace(repeat('A',3000000), '.*[^A-Z]|[A-Z]', 'b', 'g'))",
    "SELECT repeat('x',3000000) LIKE '%' || repeat('_', 5000) || '%y' FROM generate_series(1,100) AS s(n)",
    "SELECT count(*) FROM generate_series(1,20000) AS s(n) WHERE (n::text || 'x') LIKE repeat('%a_', 2000) || n",
    "SELECT count(*) FROM generate_series(1,30000) a(n), generate_series(1,30000) b(n) WHERE (a.n::text || repeat('x',200)) LIKE '%' || b.n || '_y'",
    "SELECT count(*) FROM generate_series(1,20) AS s(n) WHERE (SELECT repeat('x',60000000)) LIKE '%' || repeat('x%',10000) || n || 'y'",
    "SELECT regexp_match('a', '(a')",
    "SELECT lag(n::text, 1000000, repeat('x', 100000)) OVER () FROM generate_series(1,1000000) AS s(n)",
    "SELECT sum(nullif(n, n)) OVER (PARTITION BY nullif(n, n)) FROM generate_series(1,10) AS s(n)",
]


# Functions that the catalog does not list.
UNLISTED = """regexp_replace regexp_like regexp_count regexp_substr regexp_instr regexp_match to_char to_number to_date to_timestamp age
date_bin time_bucket make_interval json_get div mod width_bucket array_contains_all array_overlaps array_lower array_upper split_part
string_to_array array_to_string array_agg generate_series unnest cardinality array_length array_position array_positions array_remove
array_replace array_cat array_append array_concat array_distinct array_sort array_slice array_repeat array_resize arrays_zip flatten
array_intersect array_union array_except array_has_all array_has_any make_array named_struct map struct levenshtein translate overlay
concat concat_ws lpad rpad repeat replace reverse initcap upper lower btrim ltrim rtrim encode decode strpos substr substr_index
find_in_set left right chr ascii power factorial lcm gcd quote_ident quote_literal format md5 sha256 pg_sleep""".split()


# Bytes of an answer that the checks examine.
ANSWER_KEPT = 1_000_000


class Generator:
    """Statements of a seed."""

    def __init__(self, functions: list, seed: int):
        self.functions = functions
        self.random = random.Random(seed)

    def expression(self, depth: int = 0) -> str:
        kind = self.random.random()
        if depth >= 3 or kind < 0.3:
            return self.random.choice(self.random.choice(POOLS))
        if kind < 0.75:
            arguments = [self.expression(depth + 1) for _ in range(self.random.choice([0, 1, 1, 2, 2, 2, 3, 3, 4]))]
            return f"{self.random.choice(self.functions)}({', '.join(arguments)})"
        if kind < 0.9:
            return "(" + self.filled(self.random.choice(OPERATORS), depth + 1) + ")"
        return f"CASE WHEN {self.expression(depth + 1)} IS NULL THEN {self.expression(depth + 1)} ELSE {self.expression(depth + 1)} END"

    def filled(self, template: str, depth: int) -> str:
        parts = template.split("{}")
        return parts[0] + "".join(self.expression(depth) + part for part in parts[1:])

    def statement(self) -> str:
        source = self.random.choice(SOURCES)
        kind = self.random.random()
        if kind < 0.45:
            return f"SELECT {self.expression()}{source}"
        if kind < 0.6:
            return f"SELECT {self.filled(self.random.choice(AGGREGATES), 1)}{source}"
        if kind < 0.7:
            return f"SELECT {self.filled(self.random.choice(WINDOWS), 1)}{source}"
        if kind < 0.78:
            return f"SELECT unnest({self.expression(1)}), {self.expression(1)}{source}"
        if kind < 0.86:
            on = self.random.choice(["true", "a.t = b.t", "a.n < b.n", "a.t LIKE b.t"])
            side = lambda name: f"(SELECT n, {self.expression(1)} AS t FROM generate_series(1, {self.random.choice([3, 20000])}) AS s(n)) {name}"
            return f"SELECT a.t, b.t FROM {side('a')} {self.random.choice(['JOIN', 'LEFT JOIN', 'FULL JOIN'])} {side('b')} ON {on}"
        if kind < 0.92:
            return f"WITH RECURSIVE t AS (SELECT {self.expression(2)} AS n UNION ALL SELECT {self.expression(2)} FROM t) SELECT count(*) FROM t"
        if kind < 0.96:
            return f"SELECT {self.expression(1)} AS k, count(*){source} GROUP BY 1 ORDER BY {self.expression(2)}"
        return f"SELECT {self.expression(1)} FROM telemetry WHERE {self.expression(1)} IS NOT NULL"


def functions(ask) -> list:
    """The names of all functions that can be called by their names."""
    status, text = ask("SHOW FUNCTIONS")
    assert status == 200, text
    names = {row[0] for row in json.loads(text)["rows"]}
    return sorted({name for name in names if name.isidentifier()} | set(UNLISTED))


def fault(status: int, text: str, seconds: float, timeout_s: float) -> str | None:
    """The fault of an answer, or None."""
    if status >= 500 and status != 503:
        return f"status {status}"
    if "a bug" in text[:2000]:
        return "a bug"
    # The duration of a long answer depends on its reader.
    if seconds > timeout_s + 3 and len(text) < ANSWER_KEPT:
        return f"took {seconds:.1f} s"
    return None


class Client:
    """Sends statements over HTTP."""

    def __init__(self, url: str, token: str):
        self.url = url
        self.session = requests.Session()
        self.session.headers["X-Authorization"] = f"Bearer {token}"

    def ask(self, sql: str) -> tuple:
        """Status and the beginning of the body; a body is not kept."""
        with self.session.post(f"{self.url}/api/sql", json={"query": sql}, timeout=120, stream=True) as reply:
            begin = b""
            for piece in reply.iter_content(65536):
                if len(begin) < ANSWER_KEPT:
                    begin += piece
            return reply.status_code, begin.decode(errors="replace")


def run(url: str, token: str, statements, until: float, timeout_s: float) -> tuple:
    """Sends statements until a time. Returns the count of each status, and the faults."""
    client = Client(url, token)
    statuses, faults = collections.Counter(), []
    for sql in statements:
        if time.monotonic() > until:
            break
        began = time.monotonic()
        try:
            status, text = client.ask(sql)
        except requests.RequestException as error:
            # After its first bytes the server can only truncate an answer.
            status, text = (0, "") if "IncompleteRead" in repr(error) or "ChunkedEncoding" in repr(error) else (599, repr(error))
        statuses[status] += 1
        found = fault(status, text, time.monotonic() - began, timeout_s)
        if found:
            faults.append(f"{found}: {sql[:600]}\n    {text[:400]}")
    return statuses, faults


def main() -> None:
    url, user, seconds = sys.argv[1], sys.argv[2].split(":"), float(sys.argv[3])
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else random.randrange(1 << 32)
    login = requests.post(f"{url}/api/auth/login", json={"username": user[0], "password": user[1]}, timeout=60)
    token = login.json()["token"]
    generator = Generator(functions(Client(url, token).ask), seed)
    print(f"seed {seed}, {len(generator.functions)} functions")
    statements = iter(generator.statement, None)
    statuses, faults = run(url, token, KNOWN, time.monotonic() + 3600, 30)
    print(dict(statuses), *faults, sep="\n")
    statuses, faults = run(url, token, statements, time.monotonic() + seconds, 30)
    print(dict(statuses), *faults, sep="\n")


if __name__ == "__main__":
    main()

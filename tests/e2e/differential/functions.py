"""PostgreSQL's functions and operators, by its own list, called with sample values on both servers.

By hand: python -m differential.functions [name ...] prints how each name that both have differs, and with --all every call that does.
"""

import itertools
import sys
from collections import defaultdict

from differential.compare import ask, difference
from differential.servers import both

# Values of the types that a client's statement can have.
SAMPLES = {
    "integer": ["7", "-3", "0", "NULL::int"],
    "bigint": ["7::bigint", "-3::bigint", "NULL::bigint"],
    "double precision": ["2.5::float8", "-1.5::float8", "0::float8", "NULL::float8"],
    "numeric": ["2.5", "NULL::numeric"],
    "text": ["'abc'", "'Tür b'", "''", "'a'", "NULL::text"],
    "boolean": ["true", "false", "NULL::bool"],
    "date": ["date '2026-01-15'", "date '2024-02-29'"],
    "timestamp with time zone": ["timestamptz '2026-01-15 08:12:34.567+00'", "timestamptz '2024-02-29 23:59:59+00'"],
    "timestamp without time zone": ["timestamp '2026-01-15 08:12:34.567'"],
    "interval": ["interval '1 day 02:03:04.5'", "interval '1 month'"],
    "text[]": ["'{a,b,NULL}'::text[]", "'{}'::text[]"],
    "integer[]": ["'{1,2,3}'::int[]"],
}
POLYMORPHIC = {
    "anyelement": ["integer", "text"],
    "anycompatible": ["integer", "text"],
    "anyarray": ["integer[]", "text[]"],
    "anycompatiblearray": ["integer[]", "text[]"],
    '"any"': ["integer", "text"],
}
ARGUMENTS_MAX = 3
CALLS_MAX = 10
# Functions that no client calls, and functions whose results always differ.
LEFT_OUT = {
    *("random", "setseed", "now", "clock_timestamp", "statement_timestamp", "transaction_timestamp", "timeofday", "gen_random_uuid", "version", "set_config"),
    *("pg_sleep", "pg_sleep_for", "pg_sleep_until", "pg_terminate_backend"),
}

FUNCTIONS = """
    SELECT proname, kind, array_agg(arguments ORDER BY arguments) FROM (
        SELECT proname::text, prokind::text AS kind, oidvectortypes(proargtypes) AS arguments
        FROM pg_proc JOIN pg_language l ON l.oid = prolang
        WHERE pronamespace = 'pg_catalog'::regnamespace AND prokind IN ('f', 'a', 'w') AND pronargs <= %s AND prorettype <> 'trigger'::regtype
          AND oidvectortypes(proargtypes) NOT LIKE '%%internal%%'
    ) f GROUP BY proname, kind ORDER BY proname
"""
OPERATORS = """
    SELECT oprname::text, array_agg(format_type(oprleft, NULL) || ',' || format_type(oprright, NULL) ORDER BY oprleft, oprright) FROM pg_operator
    WHERE oprnamespace = 'pg_catalog'::regnamespace AND oprkind = 'b' GROUP BY oprname ORDER BY oprname
"""


def calls(name: str, kind: str, signatures: list) -> list:
    """Calls of a function with sample values."""
    found = []
    for signature in signatures:
        types = [part.strip() for part in signature.split(",")] if signature else []
        choices = [POLYMORPHIC.get(type_name, [type_name]) for type_name in types]
        for concrete in itertools.product(*choices):
            if not all(type_name in SAMPLES for type_name in concrete):
                continue
            combinations = list(itertools.product(*(SAMPLES[type_name] for type_name in concrete)))
            step = max(1, len(combinations) // CALLS_MAX)
            for values in combinations[::step]:
                call = f"{name}({', '.join(values)})"
                if kind == "w":
                    call += " OVER (ORDER BY built)"
                    found.append(f"SELECT {call} FROM vehicles ORDER BY built")
                else:
                    found.append(f"SELECT {call}")
    return found


def operator_calls(name: str, signatures: list) -> list:
    """Uses of an operator with sample values."""
    found = []
    for signature in signatures:
        types = signature.split(",")
        for concrete in itertools.product(*(POLYMORPHIC.get(type_name, [type_name]) for type_name in types)):
            if all(type_name in SAMPLES for type_name in concrete):
                pairs = list(itertools.product(*(SAMPLES[type_name] for type_name in concrete)))
                found += [f"SELECT ({left} {name} {right})" for left, right in pairs[:: max(1, len(pairs) // 6)]]
    return found


def audit(theirs, ours, names=()):
    """The result for each name of PostgreSQL: absent, or for each call whether it is the same, refused, or how it differs."""
    listed = [(name, calls(name, kind, signatures)) for name, kind, signatures in theirs.execute(FUNCTIONS, (ARGUMENTS_MAX,))]
    listed += [(f"operator {name}", operator_calls(name, signatures)) for name, signatures in theirs.execute(OPERATORS)]
    for name, asked in listed:
        if (names and name not in names) or name in LEFT_OUT:
            continue
        outcomes = defaultdict(list)
        for sql in asked:
            wanted, given = ask(theirs, sql), ask(ours, sql)
            if wanted.error:
                outcomes["wrong call"].append((sql, wanted.message))
            elif given.message.startswith(("Invalid function", f"function {name} does not exist")):
                outcomes = {"absent": [(sql, "")]}
                break
            elif given.error in ("0A000", "42883", "42000"):
                outcomes["refused"].append((sql, given.message))
            elif given.error:
                outcomes["error"].append((sql, f"{given.error} {given.message}"))
            elif found := difference(wanted, given, False):
                outcomes["differs"].append((sql, found))
            else:
                outcomes["same"].append((sql, ""))
        yield name, outcomes


def main() -> None:
    """Prints a line for each name."""
    names = [argument for argument in sys.argv[1:] if argument != "--all"]
    with both() as (theirs, ours):
        for name, outcomes in audit(theirs, ours, names):
            counts = ", ".join(f"{len(found)} {outcome}" for outcome, found in sorted(outcomes.items()))
            if "differs" in outcomes or "error" in outcomes or "--all" in sys.argv:
                print(f"{name}: {counts}", flush=True)
                shown = outcomes.get("differs", []) + outcomes.get("error", [])
                for sql, found in shown if "--all" in sys.argv else shown[:2]:
                    print(f"    {sql}: {found}"[:260])
            elif not outcomes.get("same"):
                print(f"{name}: {'absent' if 'absent' in outcomes else 'refused or not callable'}")


if __name__ == "__main__":
    main()

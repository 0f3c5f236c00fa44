"""Runs a statement on PostgreSQL and on the server under test, and reports how the answers differ."""

import math
from dataclasses import dataclass

import psycopg

# Types that are documented as one: all whole numbers are bigint here, all fractions double precision, all texts text.
CLASSES = {
    "whole": {20, 21, 23},
    "fraction": {700, 701, 1700},
    "text": {18, 19, 25, 705, 1042, 1043},
    "whole[]": {1005, 1007, 1016},
    "fraction[]": {1021, 1022, 1231},
    "text[]": {1009, 1014, 1015},
}
CLASS_OF = {number: name for name, numbers in CLASSES.items() for number in numbers}
TOLERANCE = 1e-9


@dataclass
class Answer:
    """The answer of a server to a statement."""

    names: list
    types: list
    rows: list
    error: str | None = None
    message: str = ""


def ask(connection, sql: str) -> Answer:
    """The answer as text; an error with its SQLSTATE."""
    try:
        result = connection.execute(sql).pgresult
    except psycopg.Error as error:
        assert error.sqlstate, error
        return Answer([], [], [], error.sqlstate, str(error).splitlines()[0])
    columns = range(result.nfields)
    decode = lambda value: None if value is None else value.decode()
    rows = [[decode(result.get_value(row, column)) for column in columns] for row in range(result.ntuples)]
    names = [result.fname(column).decode() for column in columns]
    return Answer(names, [result.ftype(column) for column in columns], rows)


def difference(wanted: Answer, given: Answer, is_ordered: bool) -> str | None:
    """How an answer differs from PostgreSQL's; nothing if it does not."""
    if wanted.error or given.error:
        if wanted.error and given.error:
            same = wanted.error[:2] == given.error[:2]
            return None if same else f"SQLSTATE {wanted.error} and {given.error} ({wanted.message}; {given.message})"
        return f"error of one: {wanted.error or given.error}: {wanted.message or given.message}"
    if wanted.names != given.names:
        return f"names {wanted.names} and {given.names}"
    types = [CLASS_OF.get(number, number) for number in wanted.types]
    given_types = [CLASS_OF.get(number, number) for number in given.types]
    if types != given_types:
        return f"types {types} and {given_types}"
    if len(wanted.rows) != len(given.rows):
        return f"{len(wanted.rows)} and {len(given.rows)} rows"
    are_fractions = ["fraction" in str(kind) for kind in types]
    one, other = wanted.rows, given.rows
    if not is_ordered:
        one, other = (sorted(rows, key=lambda row: sort_key(row, are_fractions)) for rows in (one, other))
    for number, (left, right) in enumerate(zip(one, other)):
        if not all(map(same_value, left, right, are_fractions)):
            return f"row {number}: {left} and {right}"
    return None


def sort_key(row: list, are_fractions: list) -> list:
    """Fractions that are the same up to their last digits come together, and both zeros."""
    shown = lambda value: f"{float(value) + 0.0:.11e}" if not value.startswith("{") else value
    return [(value is None, shown(value) if value and is_fraction else value or "") for value, is_fraction in zip(row, are_fractions)]


def same_value(left, right, is_fraction: bool) -> bool:
    """Whether two texts have the same meaning."""
    if left == right:
        return True
    if not is_fraction or left is None or right is None:
        return False
    if left.startswith("{"):
        lists = [text.strip("{}").split(",") for text in (left, right)]
        return len(lists[0]) == len(lists[1]) and all(one == other or same_value(one, other, True) for one, other in zip(*lists))
    try:
        one, other = float(left), float(right)
    except ValueError:
        return False
    return math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=TOLERANCE) or (math.isnan(one) and math.isnan(other))


def is_ordered(sql: str) -> bool:
    """Whether the rows of a statement have an order: ORDER BY is outside of parentheses."""
    depth, words = 0, []
    for character in sql:
        depth += (character == "(") - (character == ")")
        words.append(character if depth == 0 else " ")
    return "ORDER BY" in "".join(words).upper()

"""Compares the statements of files by hand: python -m differential.run statements/arrays.sql ... (or one statement)."""

import sys
from pathlib import Path

from differential.compare import ask, difference, is_ordered
from differential.servers import both
from differential.statements import read


def main() -> None:
    """Prints what differs."""
    asked = [item for name in sys.argv[1:] for item in (read(Path(name)) if name.endswith(".sql") else [(name, None)])]
    with both() as (theirs, ours):
        for sql, reason in asked:
            wanted, given = ask(theirs, sql), ask(ours, sql)
            found = difference(wanted, given, is_ordered(sql))
            if found and not reason:
                print(f"{sql}\n    {found}")
            if reason and not found:
                print(f"{sql}\n    is the same, though: {reason}")


if __name__ == "__main__":
    main()

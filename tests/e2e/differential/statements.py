"""Files of statements: one per line. A line `-- differs: reason` marks that the answers to the next statement differ."""

from pathlib import Path

DIRECTORY = Path(__file__).parent / "sql"
MARK = "-- differs:"


def read(path: Path) -> list:
    """Pairs of a statement and the reason why its answers differ, if they do."""
    found, reason = [], None
    for line in path.read_text().splitlines():
        if line.startswith(MARK):
            reason = line.removeprefix(MARK).strip()
        elif line and not line.startswith("--"):
            found.append((line, reason))
            reason = None
    return found

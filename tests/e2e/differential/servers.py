"""Both servers with the same rows."""

import contextlib
import tempfile
from pathlib import Path

import psycopg

from differential import data
from harness.postgresql import PostgreSql
from harness.server import Server

USER = "admin@tachograph.local"


@contextlib.contextmanager
def both(directory: Path | None = None):
    """Connections to PostgreSQL and to the server under test."""
    with contextlib.ExitStack() as open_things:
        directory = directory or Path(open_things.enter_context(tempfile.TemporaryDirectory(prefix="differential-")))
        postgresql = open_things.enter_context(PostgreSql())
        server = open_things.enter_context(Server(directory / "data", {"TACHO_POSTGRES_LISTEN": "127.0.0.1:0"}))
        lines = directory / "rows.lp"
        lines.write_text(data.lines())
        server.command("import", "--format", "lines", lines)
        ours = open_things.enter_context(
            psycopg.connect(
                host="127.0.0.1",
                port=server.listeners["postgres"],
                user=USER,
                password=server.password,
                dbname="tacho",
                autocommit=True,
            )
        )
        theirs = open_things.enter_context(postgresql.connect())
        columns = {table: [name for name, *_ in ours.execute(f"DESCRIBE {table}")] for table in data.TABLES}
        data.fill_postgresql(theirs, columns)
        yield theirs, ours
        assert server.alive(), server.log()

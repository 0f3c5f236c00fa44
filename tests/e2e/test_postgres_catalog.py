"""PostgreSQL's catalog through the door: psql's descriptions, SQLAlchemy's reflection, the queries of Grafana and JDBC."""

import psycopg
import pytest
import sqlalchemy

from test_postgres import USER, connect, pg, psql  # noqa: F401

PUBLIC = "public"
COLUMNS = {
    "device": ("text", sqlalchemy.TEXT, True),
    "ts": ("timestamp with time zone", sqlalchemy.TIMESTAMP, False),
    "at": ("text", sqlalchemy.TEXT, True),
    "gear": ("bigint", sqlalchemy.BIGINT, True),
    "note": ("text", sqlalchemy.TEXT, True),
    "on": ("boolean", sqlalchemy.BOOLEAN, True),
    "speed": ("double precision", sqlalchemy.types.Float, True),
}


@pytest.fixture(scope="module")
def dead_letters(pg):  # noqa: F811
    """Makes sure that there is a table which the public user must not see."""
    pg.api.session.post(f"{pg.url}/api/v1/{pg.truck.token}/telemetry", data="no JSON", timeout=60)
    return pg


def told(server, command, user=USER):
    """The rows of a psql command, each as a list of its cells."""
    out = psql(server, "-A", "-t", "-q", "-c", command, user=user)
    return [line.split("|") for line in out.splitlines()]


def test_psql_lists_tables(dead_letters):
    for command in ("\\d", "\\dt"):
        rows = told(dead_letters, command)
        assert ["public", "dead_letter", "table", "tacho"] in rows and ["public", "telemetry", "table", "tacho"] in rows, rows
        assert all(row[0] == "public" for row in rows), rows
        assert [row[1] for row in told(dead_letters, command, PUBLIC)] == ["telemetry"]
    verbose = {row[1]: row for row in told(dead_letters, "\\dt+")}
    assert verbose["telemetry"][:6] == ["public", "telemetry", "table", "tacho", "permanent", "heap"], verbose
    assert verbose["telemetry"][6].split()[1] in ("bytes", "kB"), verbose
    assert [row[1] for row in told(dead_letters, "\\dt *.tele*")] == ["telemetry"]


def test_psql_describes_a_table(dead_letters):
    rows = told(dead_letters, "\\d telemetry")
    found = {row[0]: (row[1], row[3]) for row in rows}
    assert found == {name: (sql_type, "" if nullable else "not null") for name, (sql_type, _, nullable) in COLUMNS.items()}
    drawn = psql(dead_letters, "-c", "\\d telemetry")
    assert 'Table "public.telemetry"' in drawn, drawn
    assert "Access method: heap" in psql(dead_letters, "-c", "\\d+ telemetry")
    for user in (USER, PUBLIC):
        hidden = psql(dead_letters, "-c", "\\d dead_letter", user=user, check=user == USER)
        assert ("reason" in hidden) if user == USER else "Did not find any relation" in hidden.stderr + hidden.stdout
    assert "relname" in psql(dead_letters, "-c", "\\d pg_catalog.pg_class")


def test_psql_lists_the_rest(dead_letters):
    assert told(dead_letters, "\\dn") == [["public", "tacho"]]
    assert told(dead_letters, "\\l")[0][:3] == ["tacho", "tacho", "UTF8"]
    assert sorted(row[0] for row in told(dead_letters, "\\du")) == [USER, "tacho"]
    assert told(dead_letters, "\\df") == []
    assert ["telemetry"] == [row[1] for row in told(dead_letters, "\\dp", PUBLIC)]
    for command in ("\\di", "\\dv", "\\ds", "\\dm", "\\dT", "\\dx", "\\db", "\\dD", "\\det", "\\dy", "\\dC", "\\do", "\\da", "\\dRp", "\\dX", "\\ddp", "\\drds", "\\dO", "\\dL", "\\l+", "\\dn+", "\\du+"):
        psql(dead_letters, "-c", command)


@pytest.fixture
def engine(dead_letters):
    url = sqlalchemy.URL.create("postgresql+psycopg", USER, dead_letters.password, "127.0.0.1", dead_letters.port, "tacho")
    engine = sqlalchemy.create_engine(url)
    yield engine
    engine.dispose()


def test_sqlalchemy_inspects(engine):
    inspector = sqlalchemy.inspect(engine)
    assert inspector.get_schema_names() == ["information_schema", "public"]
    assert inspector.default_schema_name == "public"
    assert sorted(inspector.get_table_names()) == ["audit", "dead_letter", "telemetry"]
    assert inspector.has_table("telemetry") and not inspector.has_table("nothing")
    columns = {column["name"]: column for column in inspector.get_columns("telemetry")}
    assert list(columns)[:2] == ["device", "ts"]
    for name, (_, sql_type, nullable) in COLUMNS.items():
        column = columns.pop(name)
        assert isinstance(column["type"], sql_type) and column["nullable"] == nullable and column["default"] is None, column
    assert not columns
    assert inspector.get_columns("telemetry", schema="public")[1]["type"].timezone
    assert inspector.get_pk_constraint("telemetry")["constrained_columns"] == []
    assert inspector.get_indexes("telemetry") == []
    assert inspector.get_foreign_keys("telemetry") == []
    assert inspector.get_unique_constraints("telemetry") == []
    assert inspector.get_check_constraints("telemetry") == []
    assert inspector.get_table_comment("telemetry")["text"] is None
    assert inspector.get_view_names() == [] and inspector.get_sequence_names() == [] and inspector.get_enums() == []
    with pytest.raises(sqlalchemy.exc.NoSuchTableError):
        inspector.get_columns("nothing")


def test_sqlalchemy_reflects_and_reads(engine, dead_letters):
    metadata = sqlalchemy.MetaData()
    metadata.reflect(engine)
    assert sorted(metadata.tables) == ["audit", "dead_letter", "telemetry"]
    table = metadata.tables["telemetry"]
    with engine.connect() as connection:
        newest = sqlalchemy.select(sqlalchemy.func.max(table.c.speed)).where(table.c.device == dead_letters.truck.name)
        assert connection.execute(newest).scalar() == 99.5
        rows = connection.execute(sqlalchemy.select(table.c.gear, table.c.on).where(table.c.speed < 3).order_by(table.c.ts)).all()
        assert rows == [(0, True), (1, False), (2, True)]


def test_sqlalchemy_sees_a_new_table_at_once(own_server, tmp_path):
    server = own_server({"TACHO_POSTGRES_LISTEN": "127.0.0.1:0"})
    url = sqlalchemy.URL.create("postgresql+psycopg", USER, server.password, "127.0.0.1", server.listeners["postgres"], "tacho")
    engine = sqlalchemy.create_engine(url, connect_args={"prepare_threshold": 1})
    lines = tmp_path / "lines.lp"
    for n in range(4):
        lines.write_text(f"table_{n},site=a value=1.5 {1_768_464_000_000_000_000 + n}\n")
        server.command("import", "--format", "lines", lines)
        assert f"table_{n}" in sqlalchemy.inspect(engine).get_table_names()
    engine.dispose()


# What Grafana's PostgreSQL source sends.
SEARCH_PATH = """quote_ident(table_schema) IN (
          SELECT
            CASE WHEN trim(s[i]) = '"$user"' THEN user ELSE trim(s[i]) END
          FROM
            generate_series(
              array_lower(string_to_array(current_setting('search_path'),','),1),
              array_upper(string_to_array(current_setting('search_path'),','),1)
            ) as i,
            string_to_array(current_setting('search_path'),',') s
          )"""
SYSTEM = "('information_schema', 'pg_catalog', '_timescaledb_cache', '_timescaledb_catalog', '_timescaledb_internal', '_timescaledb_config', 'timescaledb_information', 'timescaledb_experimental')"


def test_grafana_builds_queries(dead_letters):
    with connect(dead_letters, autocommit=True) as connection:

        def ask(query):
            return connection.execute(query).fetchall()

        assert ask("SELECT current_setting('server_version_num')::int/100 as version") == [(1600,)]
        assert ask("SELECT 1 FROM pg_extension WHERE extname = 'timescaledb'") == []
        assert ask("SELECT extversion FROM pg_extension WHERE extname = 'timescaledb'") == []
        assert ask(f'SELECT schema_name AS "name" FROM information_schema.schemata WHERE schema_name NOT IN {SYSTEM} ORDER BY schema_name') == [("public",)]
        tables = ask(
            f"""SELECT CASE WHEN {SEARCH_PATH} THEN quote_ident(table_name)
            ELSE quote_ident(table_schema) || '.' || quote_ident(table_name) END AS "table"
            FROM information_schema.tables WHERE quote_ident(table_schema) NOT IN {SYSTEM}
            ORDER BY CASE WHEN {SEARCH_PATH} THEN 0 ELSE 1 END, 1"""
        )
        assert tables == [("audit",), ("dead_letter",), ("telemetry",)]
        columns = ask(
            f"""SELECT quote_ident(column_name) AS "column", data_type AS "type" FROM information_schema.columns
            WHERE CASE WHEN array_length(parse_ident('telemetry'),1) = 2
              THEN quote_ident(table_schema) = (parse_ident('telemetry'))[1] AND quote_ident(table_name) = (parse_ident('telemetry'))[2]
              ELSE quote_ident(table_name) = 'telemetry' AND {SEARCH_PATH} END"""
        )
        assert dict(columns) == {name: sql_type for name, (sql_type, _, _) in COLUMNS.items()}


def test_grafana_draws(dead_letters):
    span = "ts BETWEEN '2026-01-15T08:00:00Z' AND '2026-01-15T08:00:29Z'"
    bucket = "floor(extract(epoch from ts)/10)*10"
    with connect(dead_letters, autocommit=True) as connection:
        grouped = connection.execute(f'SELECT {bucket} AS "time", avg(speed) AS "speed" FROM telemetry WHERE {span} GROUP BY 1 ORDER BY 1').fetchall()
        assert [(float(time) - 1_768_464_000, speed) for time, speed in grouped] == [(0.0, 5.0), (10.0, 15.0), (20.0, 25.0)]
        named = connection.execute(f'SELECT {bucket} AS "time", device AS metric, max(gear) FROM telemetry WHERE {span} GROUP BY {bucket}, metric ORDER BY "time"').fetchall()
        assert [row[1:] for row in named] == [(dead_letters.truck.name, 5)] * 3
        bucketed = connection.execute(f"SELECT time_bucket('10s', ts) AS \"time\", count(*) FROM telemetry WHERE {span} GROUP BY 1 ORDER BY 1").fetchall()
        assert [count for _, count in bucketed] == [10, 10, 10]


def test_the_public_user_finds_no_dead_letters(dead_letters):
    with psycopg.connect(host="127.0.0.1", port=dead_letters.port, user=PUBLIC, dbname="tacho", autocommit=True) as connection:
        for query in (
            "SELECT relname FROM pg_class WHERE relname LIKE 'dead%'",
            "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass('dead_letter')",
            "SELECT table_name FROM information_schema.tables WHERE table_name LIKE 'dead%'",
            "SELECT column_name FROM information_schema.columns WHERE table_name LIKE 'dead%'",
        ):
            assert connection.execute(query).fetchall() == [], query
        assert connection.execute("SELECT current_user, session_user").fetchone() == (PUBLIC, PUBLIC)
        with pytest.raises(psycopg.errors.UndefinedTable):
            connection.execute("SELECT 'dead_letter'::regclass")

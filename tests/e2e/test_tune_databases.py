"""`tacho tune` on real databases: a finding appears when the setting is wrong, disappears when it is applied, and comes back when
it is undone."""

import json
import subprocess
import time
import tomllib
from pathlib import Path

import pytest

from harness.databases import START_S, free_port, redis_cli, start_mariadb, start_redis
from harness.postgresql import PostgreSql
from harness.server import run

RULES = Path(__file__).resolve().parents[2] / "crates" / "tune" / "rules"


def tune(url, *arguments):
    """The report of `tacho tune`; the exit code shows whether it has findings."""
    done = run("tune", url, *arguments, "--json", check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert done.returncode == (1 if report["findings"] else 0), done.stdout
    return report


def found(url):
    """The current value of each parameter with a finding, by rule."""
    return {finding["rule"]: finding["current"] for finding in tune(url)["findings"]}


def check_finding(url, rule, directory):
    """Applies a finding: it is gone. Undoes it: it is there again, with the same value."""
    before, file = found(url)[rule], directory / "undo.json"
    done = run("tune", url, "--apply", rule, "--undo-file", file, "--yes")
    assert f"--undo {file}" in done.stdout and rule not in found(url), done.stdout
    done = run("tune", url, "--undo", file, "--yes")
    assert found(url)[rule] == before, done.stdout
    return json.loads(file.read_text())


def refused(url, part, **environment):
    done = run("tune", url, check=False, **environment)
    assert done.returncode == 2 and part in done.stderr and not done.stdout, done.stdout + done.stderr


def parameters_of_all_versions(product):
    """The parameters that each version of the product has and that belong to the whole server."""
    rules = tomllib.loads((RULES / f"{product}.toml").read_text())
    return {name for name, about in rules["parameters"].items() if "versions" not in about and "." not in name}


@pytest.fixture(scope="module")
def postgres():
    with PostgreSql() as server:
        server.url = f"postgres://tester@127.0.0.1:{server.port}/postgres"
        yield server


def set_postgres(server, name, value):
    with server.connect() as connection:
        connection.execute(f"ALTER SYSTEM SET {name} = '{value}'")
        connection.execute("SELECT pg_reload_conf()")
    # The server reads its file a moment later.
    deadline = time.monotonic() + START_S
    while True:
        with server.connect() as connection:
            if connection.execute("SELECT current_setting(%s)", (name,)).fetchone() == (value,):
                return
        assert time.monotonic() < deadline, (name, value)
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("rule", "parameter", "wrong"),
    [
        ("postgresql-full-page-writes", "full_page_writes", "off"),
        ("postgresql-synchronous-commit-off", "synchronous_commit", "off"),
        ("postgresql-autovacuum", "autovacuum", "off"),
        ("postgresql-work-mem-danger", "work_mem", "1GB"),
        ("postgresql-checkpoint-completion-target", "checkpoint_completion_target", "0.5"),
        ("postgresql-effective-cache-size", "effective_cache_size", "8MB"),
        ("postgresql-maintenance-work-mem", "maintenance_work_mem", "16MB"),
        ("postgresql-track-io-timing", "track_io_timing", "off"),
    ],
)
def test_postgresql(postgres, tmp_path, rule, parameter, wrong):
    set_postgres(postgres, parameter, wrong)
    check_finding(postgres.url, rule, tmp_path)


def test_the_durability_of_postgresql_comes_first(postgres):
    findings = tune(postgres.url)["findings"]
    assert findings[0]["effect"]["level"] == "prevents_failure"
    assert "postgresql-fsync" in {finding["rule"] for finding in findings}, "the cluster of the tests does without"


def test_postgresql_has_the_parameters_of_the_rules(postgres):
    with postgres.connect() as connection:
        known = {name for (name,) in connection.execute("SELECT name FROM pg_settings")}
    assert parameters_of_all_versions("postgresql") <= known


def test_a_user_that_postgresql_does_not_know(postgres):
    refused(f"postgres://nobody@127.0.0.1:{postgres.port}/postgres", "nobody")


@pytest.fixture(scope="module")
def redis():
    server = start_redis()
    yield server
    server.stop()


@pytest.mark.parametrize(
    ("rule", "parameter", "wrong"),
    [
        ("redis-maxmemory", "maxmemory", "0"),
        ("redis-appendfsync", "appendfsync", "no"),
    ],
)
def test_redis(redis, tmp_path, rule, parameter, wrong):
    redis_cli(redis, "CONFIG", "SET", parameter, wrong)
    check_finding(redis.url, rule, tmp_path)


def test_fields_of_hashes_are_sampled(redis):
    redis_cli(redis, "CONFIG", "SET", "hash-max-listpack-entries", "16")
    for key in range(20):
        redis_cli(redis, "HSET", f"truck:{key}", *(f"{field} value".split(" ")[part] for field in range(100) for part in (0, 1)))
    assert found(redis.url)["redis-hash-listpack-entries"] == 16
    redis_cli(redis, "CONFIG", "SET", "hash-max-listpack-entries", "512")
    assert "redis-hash-listpack-entries" not in found(redis.url)


def test_a_login_of_redis_that_may_not_read_the_settings(redis):
    redis_cli(redis, "ACL", "SETUSER", "watcher", "on", ">secret", "~*", "+@all", "-config")
    report = tune(f"redis://watcher:secret@127.0.0.1:{redis.port}")
    assert any("CONFIG" in hidden["reason"] or "config" in hidden["reason"] for hidden in report["hidden"]), report["hidden"]
    refused(f"redis://watcher:wrong@127.0.0.1:{redis.port}", "password")


@pytest.fixture(scope="module")
def mariadb():
    running = start_mariadb()
    yield running
    running.stop()


def mariadb_sql(server, sql):
    command = ["mariadb", "--no-defaults", "--protocol=tcp", "-h", "127.0.0.1", "-P", str(server.port), "-u", "root", "-N", "-e", sql]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


@pytest.mark.parametrize(
    ("rule", "parameter", "wrong"),
    [
        ("mysql-flush-log-never", "innodb_flush_log_at_trx_commit", "0"),
        # Writes throw the cached answers away.
        ("mysql-query-cache-size", "query_cache_size", "1048576"),
    ],
)
def test_mariadb(mariadb, tmp_path, rule, parameter, wrong):
    mariadb_sql(mariadb, "CREATE DATABASE IF NOT EXISTS cars; CREATE TABLE IF NOT EXISTS cars.t (a INT)")
    mariadb_sql(mariadb, "INSERT INTO cars.t VALUES (1);" * 200)
    mariadb_sql(mariadb, f"SET GLOBAL {parameter} = {wrong}")
    check_finding(mariadb.url, rule, tmp_path)


def test_a_user_of_mariadb_without_the_privilege_is_told_the_grant(mariadb, tmp_path):
    mariadb_sql(mariadb, "CREATE USER IF NOT EXISTS 'guest'@'%' IDENTIFIED BY 'secret'; SET GLOBAL innodb_flush_log_at_trx_commit = 0")
    url, file = f"mysql://guest:secret@127.0.0.1:{mariadb.port}", tmp_path / "undo.json"
    done = run("tune", url, "--apply", "mysql-flush-log-never", "--undo-file", file, "--yes", check=False)
    assert done.returncode == 2 and "GRANT SUPER" in done.stdout and "changed: nothing" in done.stdout, done.stdout + done.stderr
    assert "secret" not in file.read_text() + done.stdout


def test_mariadb_has_the_parameters_of_the_rules(mariadb):
    known = set(mariadb_sql(mariadb, "SELECT LOWER(variable_name) FROM information_schema.global_variables").split())
    assert parameters_of_all_versions("mysql") <= known


def test_a_user_of_mariadb_without_grants_gets_what_it_may_see(mariadb):
    mariadb_sql(mariadb, "CREATE USER IF NOT EXISTS 'guest'@'%' IDENTIFIED BY 'secret'")
    report = tune(f"mysql://guest:secret@127.0.0.1:{mariadb.port}")
    assert any("PROCESS" in hidden["reason"] for hidden in report["hidden"]), report["hidden"]
    refused(f"mysql://guest:wrong@127.0.0.1:{mariadb.port}", "password")


def test_nobody_listens():
    refused(f"redis://127.0.0.1:{free_port()}", "connect")

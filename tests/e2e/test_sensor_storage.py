"""Storages of virtual sensors: the output in tables of MariaDB and PostgreSQL, through outages and a SIGKILL; and gsn.xml."""

import shutil
import signal
import subprocess

import psycopg
import pytest

from harness import wait
from harness.databases import start_mariadb
from harness.postgresql import PostgreSql, programs
from harness.sensors import loaded, shown, write
from test_virtual_sensors import START, Publisher, sql

PASSWORD = "s3cret word"
ROWS = 300


class MariaDb:
    """A MariaDB with a database `gsn` and a user `gsn`, which can be stopped and started again."""

    scheme, driver = "mysql", "com.mysql.jdbc.Driver"

    def __init__(self):
        self.process = start_mariadb()
        self.port = self.process.port
        self.execute(f"CREATE DATABASE gsn; CREATE USER gsn@'%' IDENTIFIED BY '{PASSWORD}'; GRANT ALL ON gsn.* TO gsn@'%'", "")

    def execute(self, statement, database="gsn"):
        """The lines of an answer, each with its values as text."""
        command = ["mariadb", "--no-defaults", "--protocol=tcp", "-h", "127.0.0.1", "-P", str(self.port), "-u", "root", "-N", "-e", statement, database]
        done = subprocess.run([part for part in command if part], capture_output=True, text=True, timeout=60, check=True)
        return [tuple(line.split("\t")) for line in done.stdout.splitlines()]

    def stop(self):
        self.process.end()

    def start(self):
        self.process.start()

    def remove(self):
        if self.process.process.poll() is None:
            self.process.end()
        shutil.rmtree(self.process.directory)


class Postgres:
    """The same of PostgreSQL."""

    scheme, driver = "postgresql", "org.postgresql.Driver"

    def __init__(self):
        self.server = PostgreSql().__enter__()
        self.port = self.server.port
        hba = self.server.data / "pg_hba.conf"
        hba.write_text("host all tester 127.0.0.1/32 trust\nhost all gsn 127.0.0.1/32 scram-sha-256\n")
        self.execute(f"CREATE USER gsn PASSWORD '{PASSWORD}'", "postgres")
        self.execute("CREATE DATABASE gsn OWNER gsn", "postgres")
        self.execute("SELECT pg_reload_conf()", "postgres")

    def execute(self, statement, database="gsn"):
        """The rows of an answer, each with its values as text."""
        with psycopg.connect(host="127.0.0.1", port=self.port, user="tester", dbname=database, autocommit=True) as connection:
            answer = connection.execute(statement)
            return [tuple(str(value) for value in row) for row in answer.fetchall()] if answer.description else []

    def stop(self):
        self.server.process.send_signal(signal.SIGINT)
        self.server.process.wait(60)

    def start(self):
        server = self.server
        command = [programs() / "postgres", "-D", server.data, "-p", str(self.port), "-c", "listen_addresses=127.0.0.1", "-c", f"unix_socket_directories={server.directory}"]
        with open(server.directory / "log", "ab") as log:
            server.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **server._as_user())
        wait.until(self.answers, "PostgreSQL")

    def answers(self):
        try:
            return self.execute("SELECT 1") == [("1",)]
        except psycopg.OperationalError:
            return False

    def remove(self):
        if self.server.process.poll() is None:
            self.stop()
        shutil.rmtree(self.server.directory)


@pytest.fixture(params=[MariaDb, Postgres])
def database(request):
    running = request.param()
    yield running
    running.remove()


def storage(database, password=PASSWORD, history=""):
    """The attributes of a storage."""
    url = f"jdbc:{database.scheme}://127.0.0.1:{database.port}/gsn"
    return f'{history} driver="{database.driver}" url="{url}" user="gsn" password="{password}" max-db-connections="2"'


def street(attributes):
    """A sensor over the device `road`: each reading with its number."""
    return f"""<virtual-sensor name="street">
  <processing-class>
    <output-structure><field name="celsius" type="double"/><field name="label" type="varchar(40)"/></output-structure>
  </processing-class>
  <storage {attributes}/>
  <streams><stream name="s">
    <source alias="a" storage-size="1"><address wrapper="tacho"><predicate key="device">road</predicate></address>
      <query>select celsius, concat('reading ', celsius) as label from wrapper</query></source>
    <query>select celsius, label from a</query>
  </stream></streams>
</virtual-sensor>"""


def publisher_of(server):
    server.command("device", "add", "road", "--token", "road")
    publisher = Publisher("road")
    publisher.connect(server)
    return publisher


def publish(publisher, numbers):
    for number in numbers:
        publisher.publish(START + number * 1_000, number)
    publisher.drain()


def numbers_in(database):
    """The readings of the table in the order of their times, checked to have the right times and labels."""
    rows = database.execute("SELECT timed, celsius, label FROM street ORDER BY timed, pk")
    numbers = [round(float(celsius)) for _, celsius, _ in rows]
    assert [int(timed) for timed, _, _ in rows] == [START + number * 1_000 for number in numbers]
    assert all(label.startswith("reading ") for _, _, label in rows)
    return numbers


def rows_here(server):
    """The rows of the output in the server itself."""
    return sql(server, "SELECT count(*) FROM street")[0][0]


def follower(server):
    """What is shown of the storage of the sensor."""
    followers = (shown(server, "street") or {}).get("followers") or [None]
    return followers[0]


def test_each_row_is_in_the_database_once_through_outages_and_a_kill(own_server, database):
    server = own_server()
    publisher = publisher_of(server)
    write(server, "street.xml", street(storage(database)))
    loaded(server, "street")
    publish(publisher, range(ROWS))
    wait.until(lambda: (follower(server) or {}).get("rows", 0) >= ROWS, "the rows")
    assert numbers_in(database) == list(range(ROWS))
    state = follower(server)
    assert state["connected"] and state["rowsBehind"] == 0, state
    assert 'tacho_virtual_sensor_follower_connected{sensor="street",follower="storage"} 1' in server.api.metrics()
    # The database goes away. The sensor continues.
    database.stop()
    publish(publisher, range(ROWS, 2 * ROWS))
    wait.until(lambda: rows_here(server) == 2 * ROWS, "the output")
    state = wait.until(lambda: (one := follower(server)) and not one["connected"] and one, "the outage")
    assert state["rowsBehind"] >= ROWS, state
    assert f"127.0.0.1:{database.port}/gsn" in state["lastError"] and PASSWORD not in state["lastError"], state
    listed = server.command("sensor", "list").stdout
    assert "street: storage to" in listed and "not connected" in listed, listed
    # The server is killed, and starts without the database.
    server.kill()
    publisher.lost()
    server.start()
    publisher.connect(server)
    publish(publisher, range(2 * ROWS, 3 * ROWS))
    database.start()
    wait.until(lambda: len(numbers_in(database)) == 3 * ROWS, "all rows")
    assert numbers_in(database) == list(range(3 * ROWS))
    # A kill while rows are written.
    for number in range(3 * ROWS, 4 * ROWS):
        publisher.publish(START + number * 1_000, number)
    wait.until(lambda: len(numbers_in(database)) > 3 * ROWS, "some rows")
    server.kill()
    publisher.lost()
    server.start()
    publisher.connect(server)
    publisher.drain()
    wait.until(lambda: len(numbers_in(database)) == 4 * ROWS, "all rows")
    assert numbers_in(database) == list(range(4 * ROWS))
    assert [celsius for (celsius,) in sql(server, "SELECT celsius FROM street ORDER BY ts")] == list(range(4 * ROWS))
    publisher.close()
    server.stop()


def test_a_storage_follows_the_sensor_to_another_file_and_ends_with_it(own_server, database):
    server = own_server()
    publisher = publisher_of(server)
    write(server, "street.xml", street(storage(database)))
    loaded(server, "street")
    publish(publisher, range(10))
    wait.until(lambda: (one := follower(server)) and one["connected"] and one["rows"] >= 10, "the rows")
    directory = server.directory / "sensors"
    (directory / "street.xml").rename(directory / "road.xml")
    wait.until(lambda: (shown(server, "street") or {}).get("file") == "road.xml", "the other file")
    loaded(server, "street")
    publish(publisher, range(10, 20))
    wait.until(lambda: numbers_in(database) == list(range(20)), "the rows of the other file")
    # The sensor has no storage any more.
    write(server, "road.xml", street('history-size="1000"'))
    wait.until(lambda: shown(server, "street")["followers"] == [], "the end of the storage")
    assert 'follower="storage"' not in server.api.metrics()
    publish(publisher, range(20, 30))
    wait.until(lambda: rows_here(server) == 30, "the output")
    # It has one again, which gets what is absent.
    write(server, "road.xml", street(storage(database)))
    wait.until(lambda: numbers_in(database) == list(range(30)), "all rows")
    publisher.close()
    server.stop()


def test_a_wrong_password_is_shown_and_does_not_stop_the_sensor(own_server, database):
    server = own_server()
    publisher = publisher_of(server)
    write(server, "street.xml", street(storage(database, password="wrong password")))
    loaded(server, "street")
    publish(publisher, range(10))
    wait.until(lambda: rows_here(server) == 10, "the output")
    state = wait.until(lambda: (one := follower(server)) and one["lastError"] and one, "the refusal")
    assert not state["connected"] and "cannot connect" in state["lastError"] and "gsn" in state["lastError"], state
    assert "wrong password" not in str(shown(server, "street")) and "wrong password" not in server.log()
    # The right one: all rows are written.
    write(server, "street.xml", street(storage(database)) + "\n")
    wait.until(lambda: (one := follower(server)) and one["connected"], "the connection")
    wait.until(lambda: numbers_in(database) == list(range(10)), "the rows")
    publisher.close()
    server.stop()


def test_rows_that_the_database_refuses_are_counted_and_the_others_are_there(own_server, database):
    database.execute("CREATE TABLE street (timed BIGINT NOT NULL UNIQUE, celsius DOUBLE PRECISION CHECK (celsius <> 5), label VARCHAR(40))")
    database.execute("GRANT ALL ON street TO gsn")
    server = own_server()
    publisher = publisher_of(server)
    write(server, "street.xml", street(storage(database)))
    loaded(server, "street")
    publish(publisher, range(10))
    wait.until(lambda: (one := follower(server)) and one["rows"] >= 10 and one["connected"], "the rows")
    # A row that is appended while rows are written comes again with those around it, and is refused again.
    wait.until(lambda: follower(server)["refused"] >= 1, "the row that is refused")
    assert 'tacho_virtual_sensor_follower_refused{sensor="street",follower="storage"}' in server.api.metrics()
    found = [round(float(celsius)) for (celsius,) in database.execute("SELECT celsius FROM street ORDER BY timed")]
    assert found == [number for number in range(10) if number != 5]
    assert rows_here(server) == 10
    assert "a database refuses rows" in server.log()
    publisher.close()
    server.stop()


def test_a_history_size_counts_rows_here_and_there(own_server, database):
    server = own_server()
    publisher = publisher_of(server)
    write(server, "street.xml", street(storage(database, history='history-size="20"')))
    loaded(server, "street")
    publish(publisher, range(1_000))
    wait.until(lambda: (one := follower(server)) and one["rows"] >= 1_000, "the rows")
    last = 999

    def few():
        # Each deletion needs a hundred rows more than the twenty.
        nonlocal last
        last += 1
        publish(publisher, [last])
        numbers = [round(one) for (one,) in sql(server, "SELECT celsius FROM street ORDER BY ts")]
        return len(numbers) <= 500 and numbers

    numbers = wait.until(few, "the deletion of older rows")
    assert numbers[-20:] == list(range(numbers[-1] - 19, numbers[-1] + 1))
    wait.until(lambda: (numbers := numbers_in(database)) and numbers[-1] == last and numbers, "the newest row")
    kept = numbers_in(database)
    assert 20 <= len(kept) < 1_000 and kept == list(range(kept[0], last + 1))
    publisher.close()
    server.stop()


def test_the_container_gives_the_default_storage_and_its_name(own_server, database):
    server = own_server()
    publisher = publisher_of(server)
    container = f"<sensor-server><name>Roof &amp; road</name><author>A. Uthor</author><email>a@example.org</email><port>22001</port><storage {storage(database)}/></sensor-server>"
    write(server, "gsn.xml", container)
    write(server, "street.xml", street('history-size="1000"'))
    loaded(server, "street")
    listed = server.api.get("/api/tacho/sensors")
    assert [one["name"] for one in listed["sensors"]] == ["street"], listed
    assert listed["container"]["problem"] is None and any("time_series.gsn_listen" in note for note in listed["container"]["notes"])
    assert PASSWORD not in str(listed)
    publish(publisher, range(10))
    wait.until(lambda: (one := follower(server)) and one["rows"] >= 10, "the rows")
    text = server.api.session.get(f"{server.url}/gsn?REQUEST=0", timeout=60).text
    assert '<gsn name="Roof &amp; road" author="A. Uthor" email="a@example.org"' in text, text[:300]
    # A broken file leaves the container as it was.
    write(server, "gsn.xml", "<sensor-server><port>no</port></sensor-server>")
    wait.until(lambda: "port is" in (server.api.get("/api/tacho/sensors")["container"]["problem"] or ""), "the problem")
    assert server.api.get("/api/tacho/sensors")["container"]["name"] == "Roof & road"
    assert rows_here(server) == 10
    publisher.close()
    server.stop()

"""A million rows through PostgreSQL's protocol: builds of tacho and PostgreSQL, in turns, one client on the same machine.

  rows.py before=PATH,now=PATH ROUNDS     # as root, because PostgreSQL is started as its own user; needs psycopg 3

Each has the same table (ts, device, x): 1,000 series with 1,000 values of two decimals, in memory (/dev/shm). Text is psql -A -t into a
file, binary is a cursor of psycopg that takes all. CPU is the server's. The text of all is compared, sorted.
"""

import hashlib
import os
import pathlib
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import psycopg

BUILDS = dict(word.split("=", 1) for word in sys.argv[1].split(","))
ROUNDS = int(sys.argv[2])
TICKS = os.sysconf("SC_CLK_TCK")
SQL = "SELECT ts, device, x FROM walk"
USER = "admin@tachograph.local"
work = pathlib.Path(tempfile.mkdtemp(dir="/dev/shm"))
work.chmod(0o777)


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def cpu_s(pid):
    """Of a process and those it has started, also of those that have ended."""
    total = 0
    for one in [pid, *map(int, pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]:
        fields = pathlib.Path(f"/proc/{one}/stat").read_text().rsplit(")", 1)[1].split()
        total += sum(map(int, fields[11:15]))
    return total / TICKS


def as_postgres(line):
    subprocess.run(["su", "postgres", "-c", line], check=True, stdout=subprocess.DEVNULL)


chance = random.Random(7)
values = [chance.randint(0, 10_000) for _ in range(1_000)]
with open(work / "walk.lp", "w") as lines, open(work / "walk.csv", "w") as csv:
    for step in range(1_000):
        ts = 1_767_225_600 + 10 * step
        text = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(ts))
        for device in range(1_000):
            values[device] += chance.randint(-50, 50)
            lines.write(f"walk,device=d{device} x={values[device] / 100:.2f} {ts}\n")
            csv.write(f"{text}+00,d{device},{values[device] / 100:.2f}\n")

servers, processes = {}, []
for name, program in BUILDS.items():
    (work / name).mkdir()
    line = [program, "import", "--data", work / name, "--format", "lines", "--precision", "s", work / "walk.lp"]
    subprocess.run(line, check=True, stdout=subprocess.DEVNULL)
    port = free_port()
    doors = {"POSTGRES": port, "HTTP": free_port(), "MQTT": free_port()}
    environment = {f"TACHO_{door}_LISTEN": f"127.0.0.1:{of}" for door, of in doors.items()}
    process = subprocess.Popen([program, "serve", "--data", work / name], env={**os.environ, **environment},
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    processes.append(process)
    servers[name] = port, process.pid, USER, "tacho"
programs = max(pathlib.Path("/usr/lib/postgresql").iterdir()) / "bin"
port = free_port()
as_postgres(f"{programs}/initdb -D {work}/pg -A trust")
options = f"-p {port} -k {work} -c listen_addresses=127.0.0.1 -c timezone=UTC"
as_postgres(f"{programs}/pg_ctl -D {work}/pg -o '{options}' -w start")
client = ["psql", "-X", "-q", "-h", "127.0.0.1", "-p", str(port), "-U", "postgres"]
subprocess.run([*client, "-c", "CREATE TABLE walk(ts timestamptz, device text, x float8)", "-c", f"\\copy walk from {work}/walk.csv csv",
                "-c", "VACUUM ANALYZE walk"], check=True)
servers["postgresql"] = port, int((work / "pg/postmaster.pid").read_text().split()[0]), "postgres", "postgres"
time.sleep(3)
password = {name: (work / name / "admin-password").read_text().strip() for name in BUILDS}


def text(name):
    port, pid, user, database = servers[name]
    before, began = cpu_s(pid), time.monotonic()
    line = ["psql", "-X", "-A", "-t", "-h", "127.0.0.1", "-p", str(port), "-U", user, "-d", database, "-c", SQL, "-o", work / "out"]
    subprocess.run(line, env={**os.environ, "PGPASSWORD": password.get(name, "")}, check=True)
    took_s = time.monotonic() - began
    time.sleep(0.2)
    digest = hashlib.sha256(b"\n".join(sorted((work / "out").read_bytes().splitlines()))).hexdigest()[:12]
    return took_s, cpu_s(pid) - before, digest


def binary(name):
    port, pid, user, database = servers[name]
    with psycopg.connect(host="127.0.0.1", port=port, user=user, dbname=database, password=password.get(name)) as connection:
        cursor = connection.cursor(binary=True)
        before, began = cpu_s(pid), time.monotonic()
        cursor.execute(SQL)
        took_s = time.monotonic() - began
        return took_s, cpu_s(pid) - before, cursor.rowcount


results = {}
for number in range(ROUNDS):
    for name in list(servers)[:: 1 if number % 2 == 0 else -1]:
        for form in (text, binary):
            result = form(name)
            results.setdefault((form.__name__, name), []).append(result)
            print(f"{number + 1}  {form.__name__:<6}  {name:<10}  {result[0]:.2f} s  server CPU {result[1]:.2f} s  {result[2]}", flush=True)
for (form, name), some in sorted(results.items()):
    took_s, cpu = (statistics.median(one[index] for one in some) for index in (0, 1))
    print(f"{form:<6}  {name:<10}  median {took_s:.2f} s, server CPU {cpu:.2f} s for 1,000,000 rows")
for process in processes:
    process.send_signal(signal.SIGTERM)
    process.wait()
as_postgres(f"{programs}/pg_ctl -D {work}/pg -m immediate stop")
subprocess.run(["rm", "-rf", work], check=True)

"""The released OpenTSDB as an oracle: its classes from Maven, run by `java/net/opentsdb/core/Oracle.java` on points that a test gives."""

import subprocess
from pathlib import Path

from harness.opentsdb_model import hours

JAVA = Path(__file__).parents[1] / "java"
TIMEOUT_S = 300


class Released:
    """Compiles the oracle into a directory. Maven fetches OpenTSDB once."""

    def __init__(self, directory: Path):
        self.path = directory / "classpath"
        run("mvn", "-q", "-B", "-f", JAVA / "pom.xml", "dependency:build-classpath", f"-Dmdep.outputFile={self.path}")
        self.classes = f"{directory}:{self.path.read_text()}"
        run("javac", "-nowarn", "-d", directory, "-cp", self.classes, JAVA / "net/opentsdb/core/Oracle.java")

    def answers(self, queries: list) -> list:
        """The points of each query: (series, start, end, aggregator, downsample as text, its interval in ms, rate, zone)."""
        text = "".join(map(request, queries))
        output = run("java", "-cp", self.classes, "net.opentsdb.core.Oracle", input=text)
        answers = []
        # OpenTSDB also logs there.
        for line in output.splitlines():
            match line.split(" "):
                case ["A", _]:
                    answers.append([])
                case ["P", at, "i", value]:
                    answers[-1].append((int(at), int(value)))
                case ["P", at, "d", value]:
                    answers[-1].append((int(at), float(value)))
        assert len(answers) == len(queries)
        return answers


def run(*command, **options) -> str:
    """The output of a command that must succeed."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=TIMEOUT_S, **options)
    assert done.returncode == 0, f"{command[0]}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout


def request(query) -> str:
    """A query as the oracle reads it."""
    series, start, end, aggregator, downsample, interval, rate, zone = query
    read_start, read_end = hours(start, end, interval)
    lines = [[point for point in line if read_start <= point[0] < read_end] for line in series]
    lines = [line for line in lines if line]
    options = f"{str(rate.counter).lower()},{rate.maximum},{rate.reset},{str(rate.drop).lower()}" if rate else "-"
    head = f"Q {aggregator} {downsample or '-'} {zone} {options} {start} {end} {read_start} {read_end} {len(lines)}\n"
    point = lambda at, value: f"{at} {'i' if isinstance(value, int) else 'd'} {value!r}\n"
    return head + "".join(f"{len(line)}\n" + "".join(point(*own) for own in line) for line in lines)

"""A naive model of OpenTSDB's documented semantics: what a query of points answers.

It is written from the documentation of OpenTSDB 2.4, without the code of the server: one loop for each sentence, no care for speed. Two
rules are not documented, but what OpenTSDB does: it reads whole hours, so rates and interpolated values at the borders see the rest of the
hour; and the first rate of a series is the change since 0 in 1970, which is not shown but stands for the series at all times before its second point.
"""

import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

HOUR_MS = 3_600_000
UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": HOUR_MS, "d": 24 * HOUR_MS, "w": 7 * 24 * HOUR_MS, "n": 30 * 24 * HOUR_MS, "y": 365 * 24 * HOUR_MS}
LONG_MAX = 2**63 - 1
NAN = math.nan


@dataclass
class Rate:
    """The options of a rate."""

    counter: bool = False
    maximum: int = LONG_MAX
    reset: int = 0
    drop: bool = False


@dataclass
class Downsample:
    """An interval in milliseconds (`None` is the whole query), an aggregator, a fill policy, and the zone of calendar intervals."""

    interval: int | None
    aggregator: str
    fill: float | None = None
    calendar: tuple | None = None

    @classmethod
    def parse(cls, text: str, zone: str = "UTC") -> "Downsample":
        interval, aggregator, *fill = text.split("-")
        policies = {"none": None, "nan": NAN, "null": NAN, "zero": 0.0}
        value = None
        if fill:
            value = float(fill[0].split("#")[1]) if "#" in fill[0] else policies[fill[0]]
        if interval == "0all":
            return cls(None, aggregator, value)
        calendar = None
        if interval.endswith("c"):
            interval = interval[:-1]
            calendar = (interval[-1], ZoneInfo(zone))
        digits = interval.rstrip("msdhwny")
        return cls(int(digits) * UNITS_MS[interval[len(digits):]], aggregator, value, calendar)


def query(series, start, end, aggregator, downsample=None, rate=None):
    """The points of one group: `series` are lists of (milliseconds, value), in the order of their tags; all times are milliseconds."""
    read_start, read_end = hours(start, end, downsample.interval or 0 if downsample else 0)
    lines = [[(at, value) for at, value in line if read_start <= at < read_end] for line in series]
    lines = [line for line in lines if line]
    if downsample:
        lines = [reduced(line, downsample, start, end, read_start, read_end) for line in lines]
    if rate:
        lines = [rates(line, rate) for line in lines]
    whole = not downsample and not rate and all(isinstance(value, int) for line in lines for _, value in line)
    if not whole:
        lines = [[(at, float(value)) for at, value in line] for line in lines]
    # The first rate is not shown, and a line of one rate shows nothing.
    shown = [line[1:] if rate else line for line in lines]
    answer = []
    for now in sorted({at for line in shown for at, _ in line}):
        if start <= now <= end:
            values = [value_at(line, own, now, aggregator, whole, rate) for line, own in zip(lines, shown)]
            answer.append((now, combine(aggregator, [value for value in values if value is not None], whole)))
    return answer


def hours(start, end, interval):
    """What OpenTSDB reads: whole intervals, and of these whole hours."""
    first, last = start // 1000, end // 1000 + 1
    if interval:
        first -= first * 1000 % interval // 1000
        last += (interval - last * 1000 % interval) // 1000
    first -= first % 3600
    if not interval or last % 3600:
        last += 3600 - last % 3600
    return max(first, 0) * 1000, last * 1000


def reduced(line, downsample, start, end, read_start, read_end):
    """One value for each interval, at its start."""
    if downsample.interval is None:
        inside = [float(value) for at, value in line if start <= at < end]
        return [(start, combine(downsample.aggregator, inside, False))] if inside else []
    buckets = {}
    for at, value in line:
        begin = bucket(at, downsample)
        # An interval that began before the read is not whole.
        if begin >= read_start:
            buckets.setdefault(begin, []).append(float(value))
    found = {begin: combine(downsample.aggregator, values, False) for begin, values in buckets.items()}
    if downsample.fill is None:
        return sorted(found.items())
    begin, last = bucket(read_start, downsample), bucket(read_end, downsample)
    filled = []
    while begin < last:
        filled.append((begin, found.get(begin, downsample.fill)))
        begin = after(begin, downsample)
    return filled


def bucket(at, downsample):
    """The start of the interval of a time."""
    if not downsample.calendar:
        return at - at % downsample.interval
    unit, zone = downsample.calendar
    local = datetime.fromtimestamp(at / 1000, zone)
    if unit == "h":
        local = local.replace(minute=0, second=0, microsecond=0)
    else:
        local = local.replace(hour=0, minute=0, second=0, microsecond=0)
    if unit == "w":
        local -= timedelta(days=(local.weekday() + 1) % 7)
    if unit in "ny":
        local = local.replace(day=1)
    if unit == "y":
        local = local.replace(month=1)
    return int(local.timestamp() * 1000)


def after(begin, downsample):
    """The start of the next interval."""
    if not downsample.calendar:
        return begin + downsample.interval
    probe = begin + 1
    while bucket(probe, downsample) == begin:
        probe += HOUR_MS
    return bucket(probe, downsample)


def rates(line, options):
    """The change per second of each point since the one before; since 0 in 1970 for the first one."""
    answer, before_at, before = [], 0, 0
    for at, value in line:
        seconds = (at - before_at) / 1000
        change = value - before
        if options.counter and change < 0:
            if not options.drop:
                rate = (options.maximum - before + value) / seconds
                answer.append((at, 0.0 if 0 < options.reset < rate else rate))
        else:
            answer.append((at, change / seconds))
        before_at, before = at, value
    return answer


def value_at(line, shown, now, aggregator, whole, rate):
    """What a series gives for a time; `None` before its first and after its last point."""
    for at, value in shown:
        if at == now:
            return value
    if not shown or now > shown[-1][0]:
        return None
    later = next(n for n, (at, _) in enumerate(line) if at > now)
    if rate:
        return line[max(later - 1, 0)][1]
    if later == 0:
        return None
    (x0, y0), (x1, y1) = line[later - 1], line[later]
    if aggregator in ("zimsum", "count", "squareSum", "first", "last", "none"):
        return 0 if whole else 0.0
    if aggregator == "mimmin":
        return LONG_MAX if whole else float("1.7976931348623157e308")
    if aggregator == "mimmax":
        return -(2**63) if whole else -float("1.7976931348623157e308")
    if aggregator == "pfsum":
        return y0
    if whole:
        return y0 + truncated((now - x0) * (y1 - y0), x1 - x0)
    return y0 + (now - x0) * (y1 - y0) / (x1 - x0)


def truncated(a, b):
    """Java's division of integers."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def combine(aggregator, values, whole):
    """One value of several. NaN, which stands for a missing value, does not count."""
    first, last = values[0], values[-1]
    if aggregator in ("first", "none"):
        return first
    if aggregator == "last":
        return last
    numbers = [value for value in values if not math.isnan(value)]
    if aggregator == "count":
        return len(numbers) if whole else float(len(numbers))
    if aggregator == "diff":
        known = [n for n, value in enumerate(values) if not math.isnan(value)]
        if not known:
            return NAN
        return last - values[known[0]] if known[0] + 1 < len(values) else first * 0
    if aggregator == "mult" and len(numbers) < len(values):
        return NAN
    if not numbers:
        return NAN
    of = {
        "sum": sum,
        "zimsum": sum,
        "pfsum": sum,
        "min": min,
        "mimmin": min,
        "max": max,
        "mimmax": max,
        "mult": math.prod,
        "squareSum": lambda numbers: sum(value * value for value in numbers),
        "median": lambda numbers: sorted(numbers)[len(numbers) // 2],
        "avg": lambda numbers: truncated(sum(numbers), len(numbers)) if whole else sum(numbers) / len(numbers),
        "dev": lambda numbers: deviation(numbers, whole),
    }
    if aggregator in of:
        return of[aggregator](numbers)
    estimate = percentile(numbers, aggregator, whole)
    return int(estimate) if whole else estimate


def deviation(numbers, whole):
    """The standard deviation of a population."""
    mean = sum(numbers) / len(numbers)
    value = math.sqrt(sum((number - mean) ** 2 for number in numbers) / len(numbers))
    return int(value) if whole else value


def percentile(numbers, name, whole):
    """`p75` and the like, `ep75r3` and `ep75r7`. OpenTSDB estimates those of floats in one way, whatever the name says."""
    kind = "r3" if name.endswith("r3") else "r7" if name.endswith("r7") else ""
    digits = name.removeprefix("e").removeprefix("p").removesuffix(kind)
    share = {"999": 0.999}.get(digits) or int(digits) / 100
    numbers, count = sorted(numbers), len(numbers)
    if not whole:
        kind = ""
    if kind == "r3":
        position = 0 if share <= 0.5 / count else round(count * share)
    elif kind == "r7":
        position = 1 + (count - 1) * share
    else:
        position = share * (count + 1)
    if position < 1:
        return numbers[0]
    if position >= count:
        return numbers[-1]
    below = numbers[math.floor(position) - 1]
    return below + (position - math.floor(position)) * (numbers[math.floor(position)] - below)

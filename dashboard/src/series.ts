// The points of one chart line: history and live values become one sequence without gap or double.

/** Points in ascending time, no time twice; `xs` in milliseconds. */
export interface Line {
  xs: number[];
  ys: number[];
}

export function emptyLine(): Line {
  return { xs: [], ys: [] };
}

/** Union of two ascending lines. At the same time the newer line wins: the store keeps the last write. */
export function merge(older: Line, newer: Line): Line {
  const merged = emptyLine();
  let i = 0;
  let j = 0;
  while (i < older.xs.length || j < newer.xs.length) {
    const a = older.xs[i] ?? Infinity;
    const b = newer.xs[j] ?? Infinity;
    const fromNewer = b <= a;
    push(merged, fromNewer ? b : a, fromNewer ? newer.ys[j] : older.ys[i]);
    if (a <= b) i++;
    if (fromNewer) j++;
  }
  return merged;
}

/** Builds a line from points in any order; of equal times the last given wins. */
export function lineOf(points: ReadonlyArray<readonly [ts: number, value: number]>): Line {
  const line = emptyLine();
  const sorted = points.map((point, index) => ({ point, index }));
  sorted.sort((a, b) => a.point[0] - b.point[0] || a.index - b.index);
  for (const { point } of sorted) {
    if (line.xs.at(-1) === point[0]) line.ys[line.ys.length - 1] = point[1];
    else push(line, point[0], point[1]);
  }
  return line;
}

/** Keeps what is not older than `fromMs`, and of that the newest `pointsMax`. */
export function trim(line: Line, fromMs: number, pointsMax: number): Line {
  let first = Math.max(0, line.xs.length - pointsMax);
  while (first < line.xs.length && (line.xs[first] ?? 0) < fromMs) first++;
  return first === 0 ? line : { xs: line.xs.slice(first), ys: line.ys.slice(first) };
}

/**
 * Marks silence: where two points lie further apart than `gapMs`, a null between them breaks the
 * line, so that the chart does not draw values nobody reported.
 */
export function withBreaks(line: Line, gapMs: number): { xs: number[]; ys: (number | null)[] } {
  const xs: number[] = [];
  const ys: (number | null)[] = [];
  line.xs.forEach((x, index) => {
    const previous = line.xs[index - 1];
    if (previous !== undefined && x - previous > gapMs) {
      xs.push((previous + x) / 2);
      ys.push(null);
    }
    xs.push(x);
    ys.push(line.ys[index] ?? null);
  });
  return { xs, ys };
}

/** How long a pause must be to count as silence: five usual intervals, at least ten seconds. */
export function silenceMs(line: Line): number {
  const intervals = line.xs.slice(1).map((x, index) => x - (line.xs[index] ?? x));
  intervals.sort((a, b) => a - b);
  return Math.max(10_000, 5 * (intervals[Math.floor(intervals.length / 2)] ?? 0));
}

function push(line: Line, x: number, y: number | undefined): void {
  line.xs.push(x);
  line.ys.push(y ?? NaN);
}

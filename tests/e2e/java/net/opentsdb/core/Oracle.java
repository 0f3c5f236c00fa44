// In the package of the classes that it calls: their constructors are visible only there.
package net.opentsdb.core;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.NoSuchElementException;
import java.util.TimeZone;

/**
 * Answers queries with the released classes of OpenTSDB, from points of its input. A query is a line
 * `Q aggregator downsample zone rate start end readStart readEnd lines`, where `-` is nothing and a rate is `counter,max,reset,drop`; then for each
 * line of points its number of points and, for each, `milliseconds i|d value`. The answer is `A number` and a line `P milliseconds i|d value` for each
 * point.
 */
public final class Oracle {
  private Oracle() {}

  public static void main(String[] arguments) throws Exception {
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
    StringBuilder out = new StringBuilder();
    for (String query = in.readLine(); query != null; query = in.readLine()) {
      answer(query.split(" "), in, out);
    }
    PrintStream stream = new PrintStream(System.out, true, "UTF-8");
    stream.print(out);
    stream.flush();
  }

  private static void answer(String[] query, BufferedReader in, StringBuilder out) throws Exception {
    Aggregator aggregator = Aggregators.get(query[1]);
    long start = Long.parseLong(query[5]);
    long end = Long.parseLong(query[6]);
    long readStart = Long.parseLong(query[7]);
    long readEnd = Long.parseLong(query[8]);
    SeekableView[] views = new SeekableView[Integer.parseInt(query[9])];
    for (int i = 0; i < views.length; i++) {
      SeekableView view = new Points(in);
      if (!query[2].equals("-")) {
        DownsamplingSpecification spec = new DownsamplingSpecification(query[2]);
        spec.setTimezone(TimeZone.getTimeZone(query[3]));
        view = spec.getFillPolicy() == FillPolicy.NONE
            ? new Downsampler(view, spec, start, end)
            : new FillingDownsampler(view, readStart, readEnd, spec, start, end);
      }
      if (!query[4].equals("-")) {
        String[] rate = query[4].split(",");
        view = new RateSpan(view, new RateOptions(
            Boolean.parseBoolean(rate[0]), Long.parseLong(rate[1]), Long.parseLong(rate[2]), Boolean.parseBoolean(rate[3])));
      }
      views[i] = view;
    }
    AggregationIterator answer = AggregationIterator.createForTesting(
        views, readStart, readEnd, aggregator, aggregator.interpolationMethod(), !query[4].equals("-"));
    StringBuilder points = new StringBuilder();
    int count = 0;
    while (answer.hasNext()) {
      DataPoint point = answer.next();
      if (point.timestamp() < start || point.timestamp() > end) {
        continue;
      }
      String value = point.isInteger() ? "i " + point.longValue() : "d " + point.doubleValue();
      points.append("P ").append(point.timestamp()).append(' ').append(value).append('\n');
      count++;
    }
    out.append("A ").append(count).append('\n').append(points);
  }

  /** A line of points. */
  private static final class Points implements SeekableView {
    private final MutableDataPoint[] points;
    private int next;

    Points(BufferedReader in) throws Exception {
      points = new MutableDataPoint[Integer.parseInt(in.readLine())];
      for (int i = 0; i < points.length; i++) {
        String[] point = in.readLine().split(" ");
        long at = Long.parseLong(point[0]);
        points[i] = point[1].equals("i")
            ? MutableDataPoint.ofLongValue(at, Long.parseLong(point[2]))
            : MutableDataPoint.ofDoubleValue(at, Double.parseDouble(point[2]));
      }
    }

    @Override
    public boolean hasNext() {
      return next < points.length;
    }

    @Override
    public DataPoint next() {
      if (!hasNext()) {
        throw new NoSuchElementException();
      }
      return points[next++];
    }

    @Override
    public void remove() {
      throw new UnsupportedOperationException();
    }

    @Override
    public void seek(long at) {
      next = 0;
      while (hasNext() && points[next].timestamp() < at) {
        next++;
      }
    }
  }
}

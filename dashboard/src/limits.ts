// Every bound of the page in one place: nothing it keeps grows without one of these.

/** Devices loaded and listed. A larger fleet is cut here and the page says so. */
export const DEVICES_MAX = 5_000;
/** Devices per page of the device list request. */
export const DEVICE_PAGE_SIZE = 1_000;
/** Keys remembered per device; further ones are ignored. */
export const KEYS_PER_DEVICE_MAX = 200;

/** Table rows drawn at first, and added by each "show more". */
export const ROWS_STEP = 300;
/** Columns drawn at most, "more columns" included. */
export const COLUMNS_MAX = 40;

/** Time span of the chart. */
export const CHART_WINDOW_MS = 10 * 60_000;
/** Points of the chart; the oldest go first. */
export const CHART_POINTS_MAX = 20_000;

/** The history is read again this often: a slow live connection skips values, the store has them all. */
export const HISTORY_REFRESH_MS = 60_000;
/** How far ahead of this browser a device's clock may run and still move the chart's right edge. */
export const CLOCK_AHEAD_MAX_MS = 60_000;

/** How long one HTTP request may take. */
export const REQUEST_TIMEOUT_MS = 10_000;
/** Between two readings of /metrics. */
export const METRICS_INTERVAL_MS = 1_000;
/** Between two readings of /api/status. */
export const STATUS_INTERVAL_MS = 5_000;
/** Between two readings of the refused messages. */
export const REFUSALS_INTERVAL_MS = 10_000;
/** Devices with refused messages that are shown. */
export const REFUSALS_SHOWN_MAX = 100;
/** Rates are means over this span. */
export const RATE_WINDOW_MS = 3_000;
/** Latency quantiles cover the messages of this span. */
export const QUANTILE_WINDOW_MS = 10_000;

/** First and longest wait before connecting again. */
export const RECONNECT_MIN_MS = 500;
export const RECONNECT_MAX_MS = 10_000;
/** A connection that lived this long counts as good: the next wait starts at the minimum again. */
export const CONNECTION_GOOD_MS = 5_000;
/** Between two messages of a watch: of the rows in sight, of what the whole fleet is sorted by, and of every key of it. */
export const ROWS_INTERVAL_MS = 1_000;
export const FLEET_INTERVAL_MS = 2_000;
export const FLEET_ALL_KEYS_INTERVAL_MS = 5_000;
/** Watched rows come every second, also when there is nothing new: silence for longer means a dead connection. */
export const SILENCE_MAX_MS = 2_300;
/** How often the page looks whether it is silent. */
export const SILENCE_CHECK_MS = 250;
/** A look that comes later than this says nothing: the browser has slept, and so may the messages have. */
export const SLEPT_MS = 1_000;

/** Between two redraws of the table and the chart while values arrive. */
export const TABLE_INTERVAL_MS = 250;
export const CHART_INTERVAL_MS = 500;
/** A device silent for longer is marked as such. */
export const STALE_MS = 30_000;

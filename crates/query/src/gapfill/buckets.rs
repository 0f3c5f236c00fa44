//! The buckets of a range of time. Their months are those of `date_bin`: they begin at an origin and have no time zone, unlike the
//! calendars of histories and of OpenTSDB.

use chrono::{DateTime, Datelike, Months, Utc};
use datafusion::arrow::datatypes::IntervalMonthDayNano;
use datafusion::common::{DataFusionError, Result};
use model::limits::QUERY_GAPFILL_BUCKETS_MAX;
use model::{TimeRange, Timestamp};

use crate::QueryError;

const DAY_NS: i128 = 24 * 3_600 * 1_000_000_000;

/// The length of a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Hash)]
enum Width {
    Microseconds(i64),
    Months(i64),
}

/// Buckets of one width. Bucket 0 begins at the origin. They are the buckets of `date_bin`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Hash)]
struct Steps {
    width: Width,
    origin_us: i64,
}

/// A number of consecutive buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Hash)]
pub(crate) struct Buckets {
    steps: Steps,
    /// The number of the first bucket.
    first: i64,
    count: usize,
}

impl Buckets {
    /// Returns all buckets that overlap the range. `function` is the name that errors show.
    ///
    /// # Errors
    /// When the width is invalid, when there are more buckets than a query may make, or when they go beyond the calendar.
    pub(crate) fn over(
        range: TimeRange,
        width: IntervalMonthDayNano,
        origin_us: i64,
        function: &str,
    ) -> Result<Self> {
        let steps = Steps { width: width_of(width, function)?, origin_us };
        if range.is_empty() {
            return Ok(Self { steps, first: 0, count: 0 });
        }
        let beyond =
            || DataFusionError::Plan(format!("the range of {function} goes beyond the years that there are"));
        let first = steps.number(range.start.micros()).ok_or_else(beyond)?;
        let last = steps.number(range.end.micros() - 1).ok_or_else(beyond)?;
        let count = usize::try_from(i128::from(last) - i128::from(first) + 1).unwrap_or(usize::MAX);
        if count > QUERY_GAPFILL_BUCKETS_MAX {
            return Err(QueryError::OverLimit {
                what: "the number of buckets that gap filling would make for each group",
                limit: format!("{QUERY_GAPFILL_BUCKETS_MAX} buckets"),
                remedy: "take wider buckets or a shorter range",
            }
            .into());
        }
        // The last bucket begins within the range, so only the first one can begin before the calendar.
        steps.start(first).ok_or_else(beyond)?;
        Ok(Self { steps, first, count })
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Returns the start of a bucket in microseconds. `index` counts from zero and is less than the count.
    pub(crate) fn start_us(&self, index: usize) -> i64 {
        // An index is at most a million.
        self.steps.start(self.first + index as i64).unwrap_or(i64::MAX)
    }

    /// The start of the first bucket; `None` if there is none.
    pub(crate) fn first_start(&self) -> Option<Timestamp> {
        (self.count > 0).then(|| Timestamp::from_micros(self.start_us(0)))
    }
}

fn width_of(width: IntervalMonthDayNano, function: &str) -> Result<Width> {
    let refuse = |why: &str| Err(DataFusionError::Plan(format!("the interval of {function} {why}")));
    let nanoseconds = i128::from(width.days) * DAY_NS + i128::from(width.nanoseconds);
    match (width.months, nanoseconds) {
        (1.., 0) => Ok(Width::Months(i64::from(width.months))),
        (1.., _) => refuse("must be either months or a constant time, not both"),
        (0, 1..) if nanoseconds % 1_000 != 0 => refuse("must be whole microseconds"),
        (0, 1..) => match i64::try_from(nanoseconds / 1_000) {
            Ok(microseconds) => Ok(Width::Microseconds(microseconds)),
            Err(_) => refuse("is too long"),
        },
        _ => refuse("must be longer than nothing"),
    }
}

impl Steps {
    /// Returns the start of a bucket; `None` beyond the calendar.
    fn start(self, number: i64) -> Option<i64> {
        match self.width {
            Width::Microseconds(width) => number.checked_mul(width)?.checked_add(self.origin_us),
            Width::Months(width) => {
                let months = number.checked_mul(width)?;
                let distance = Months::new(u32::try_from(months.unsigned_abs()).ok()?);
                let origin = date(self.origin_us)?;
                let start = if months < 0 {
                    origin.checked_sub_months(distance)
                } else {
                    origin.checked_add_months(distance)
                };
                Some(start?.timestamp_micros())
            }
        }
    }

    /// Returns the bucket that contains a time.
    fn number(self, ts: i64) -> Option<i64> {
        match self.width {
            Width::Microseconds(width) => {
                let distance = i128::from(ts) - i128::from(self.origin_us);
                i64::try_from(distance.div_euclid(i128::from(width))).ok()
            }
            Width::Months(width) => {
                let months = |date: DateTime<Utc>| i64::from(date.year()) * 12 + i64::from(date.month0());
                let number = (months(date(ts)?) - months(date(self.origin_us)?)).div_euclid(width);
                // The bucket of that month may begin after the time.
                Some(if self.start(number)? > ts { number - 1 } else { number })
            }
        }
    }
}

fn date(us: i64) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp_micros(us)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_US: i64 = 86_400_000_000;

    fn width(months: i32, days: i32, nanoseconds: i64) -> IntervalMonthDayNano {
        IntervalMonthDayNano { months, days, nanoseconds }
    }

    fn range(start: i64, end: i64) -> TimeRange {
        TimeRange::new(Timestamp::from_micros(start), Timestamp::from_micros(end))
    }

    fn starts(from: i64, to: i64, width: IntervalMonthDayNano, origin: i64) -> Vec<i64> {
        let buckets = Buckets::over(range(from, to), width, origin, "f").unwrap();
        (0..buckets.count()).map(|index| buckets.start_us(index)).collect()
    }

    #[test]
    fn a_bucket_belongs_to_the_range_if_any_of_its_times_does() {
        let ten = width(0, 0, 10_000);
        assert_eq!(starts(0, 30, ten, 0), [0, 10, 20]);
        assert_eq!(starts(9, 31, ten, 0), [0, 10, 20, 30]);
        assert_eq!(starts(-1, 1, ten, 0), [-10, 0]);
        assert_eq!(starts(-1, 1, ten, 7), [-3]);
        assert!(starts(5, 5, ten, 0).is_empty());
        assert!(starts(9, 5, ten, 0).is_empty());
    }

    #[test]
    fn months_begin_at_the_origin() {
        let at = |text: &str| text.parse::<DateTime<Utc>>().unwrap().timestamp_micros();
        let shown = |starts: Vec<i64>| -> Vec<String> {
            starts.into_iter().map(|us| date(us).unwrap().format("%Y-%m-%d").to_string()).collect()
        };
        let (from, to) = (at("2026-01-30T00:00:00Z"), at("2026-04-01T00:00:00Z"));
        let first = at("2000-01-01T00:00:00Z");
        assert_eq!(
            shown(starts(from, to, width(1, 0, 0), first)),
            ["2026-01-01", "2026-02-01", "2026-03-01"]
        );
        assert_eq!(shown(starts(from, to, width(3, 0, 0), first)), ["2026-01-01"]);
        let last = at("2026-05-31T00:00:00Z");
        let found = shown(starts(from, to, width(1, 0, 0), last));
        assert_eq!(found, ["2025-12-31", "2026-01-31", "2026-02-28", "2026-03-31"]);
    }

    #[test]
    fn too_many_and_no_buckets_are_refused() {
        let refusal = |range, width| Buckets::over(range, width, 0, "f").unwrap_err().to_string();
        let year = range(0, 365 * DAY_US);
        assert!(refusal(year, width(0, 0, 1_000_000)).contains("1000000 buckets"));
        assert!(refusal(TimeRange::ALL, width(0, 0, 1_000)).contains("1000000 buckets"));
        assert!(refusal(TimeRange::ALL, width(1, 0, 0)).contains("beyond the years"));
        assert!(refusal(year, width(0, 0, 1)).contains("whole microseconds"));
        assert!(refusal(year, width(0, 0, 0)).contains("longer than nothing"));
        assert!(refusal(year, width(0, -1, 0)).contains("longer than nothing"));
        assert!(refusal(year, width(-1, 0, 0)).contains("longer than nothing"));
        assert!(refusal(year, width(1, 1, 0)).contains("not both"));
        let million = Buckets::over(range(0, 1_000_000), width(0, 0, 1_000), 0, "f").unwrap();
        assert_eq!(million.count(), QUERY_GAPFILL_BUCKETS_MAX);
    }
}

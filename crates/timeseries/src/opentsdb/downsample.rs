//! Downsampling: the values of an interval of a series become one value.

use super::calendar::Calendar;
use super::interval::Interval;
use super::window::Window;
use super::{Aggregator, QueryError, Tz, limits};

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Downsample {
    intervals: Intervals,
    aggregator: Aggregator,
    fill: Fill,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Intervals {
    /// The whole time of the query.
    All,
    /// Intervals of one length, counted from 1970.
    Fixed(Interval),
    Calendar(Calendar),
}

/// What stands for an interval without values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fill {
    /// Nothing.
    None,
    /// NaN.
    Nan,
    /// NaN, shown as null.
    Null,
    Zero,
    /// This number.
    Scalar(f64),
}

impl Downsample {
    /// Reads a downsampling such as `1m-avg`, `1dc-sum-zero` or `0all-max`. `zone` is the time zone of calendar intervals;
    /// `calendar` makes all intervals calendar intervals.
    ///
    /// # Errors
    /// [`QueryError::Invalid`]: the text is not a downsampling.
    pub fn parse(text: &str, zone: Tz, calendar: bool) -> Result<Self, QueryError> {
        let parts: Vec<&str> = text.split('-').collect();
        let (interval, function, fill) = match *parts.as_slice() {
            [interval, function] => (interval, function, None),
            [interval, function, fill] => (interval, function, Some(fill)),
            [] | [_] => {
                return Err(wrong(text, "must provide at least interval and function"));
            }
            _ => return Err(wrong(text, "must consist of interval, function, and optional fill policy")),
        };
        let intervals = match interval.strip_suffix('c') {
            _ if interval.ends_with("all") => Intervals::All,
            Some(interval) => Intervals::Calendar(Calendar { interval: Interval::parse(interval)?, zone }),
            None => match Interval::parse(interval)? {
                interval if calendar => Intervals::Calendar(Calendar { interval, zone }),
                interval => Intervals::Fixed(interval),
            },
        };
        let aggregator = Aggregator::parse(function)
            .map_err(|_| QueryError::invalid(format!("No such downsampling function: {function}")))?;
        if aggregator.is_none() {
            return Err(QueryError::invalid("cannot use the NONE aggregator for downsampling"));
        }
        Ok(Self { intervals, aggregator, fill: fill.map_or(Ok(Fill::None), Fill::parse)? })
    }

    /// What stands for an interval without values.
    pub fn fill(&self) -> Fill {
        self.fill
    }

    /// The nominal length of an interval, in milliseconds; 0 for the whole time.
    pub(super) fn millis(&self) -> i64 {
        match self.intervals {
            Intervals::All => 0,
            Intervals::Fixed(interval) => interval.millis(),
            Intervals::Calendar(calendar) => calendar.interval.millis(),
        }
    }
}

fn wrong(text: &str, problem: &str) -> QueryError {
    QueryError::Invalid(format!("Invalid downsampling specifier '{text}': {problem}"))
}

impl Fill {
    fn parse(text: &str) -> Result<Self, QueryError> {
        let lower = text.to_ascii_lowercase();
        match lower.as_str() {
            "none" => Ok(Self::None),
            "nan" => Ok(Self::Nan),
            "null" => Ok(Self::Null),
            "zero" => Ok(Self::Zero),
            _ => {
                let number = lower.strip_prefix("scalar#").and_then(|number| number.parse().ok());
                number.map(Self::Scalar).ok_or_else(|| {
                    QueryError::Invalid(format!(
                        "Unrecognized fill policy: {text}; it is none, nan, null, zero or scalar# and a number"
                    ))
                })
            }
        }
    }

    fn value(self) -> Option<f64> {
        match self {
            Self::None => None,
            Self::Nan | Self::Null => Some(f64::NAN),
            Self::Zero => Some(0.0),
            Self::Scalar(number) => Some(number),
        }
    }
}

/// Downsamples one series whose points come by ascending time.
#[derive(Debug)]
pub(super) struct Downsampler {
    spec: Downsample,
    window: Window,
    /// The first time that counts: intervals of which the read has only a part are left out.
    first: i64,
    /// The current interval, half-open.
    current: Option<(i64, i64)>,
    bucket: Vec<f64>,
    times: Vec<i64>,
    values: Vec<f64>,
}

impl Downsampler {
    pub(super) fn new(spec: Downsample, window: Window) -> Self {
        let start = window.read_start;
        let first = match spec.intervals {
            Intervals::All => window.start,
            Intervals::Fixed(interval) => {
                let length = interval.millis();
                let rounded = start.saturating_add(length - 1);
                rounded - rounded.rem_euclid(length)
            }
            Intervals::Calendar(calendar) => match calendar.start_of(start) {
                aligned if aligned < start => calendar.step(aligned, true),
                aligned => aligned,
            },
        };
        Self { spec, window, first, current: None, bucket: Vec::new(), times: Vec::new(), values: Vec::new() }
    }

    /// The number of results and of values that wait.
    pub(super) fn held(&self) -> usize {
        self.bucket.len() + self.times.len()
    }

    /// Takes the next point.
    pub(super) fn push(&mut self, millis: i64, value: f64) {
        let last = matches!(self.spec.intervals, Intervals::All).then_some(self.window.end);
        if millis < self.first || last.is_some_and(|end| millis >= end) {
            return;
        }
        match self.current {
            Some((_, end)) if millis < end => {}
            current => {
                self.finish_bucket();
                self.current = Some(self.interval_of(millis, current));
            }
        }
        self.bucket.push(value);
    }

    /// The times and values of all intervals.
    ///
    /// # Errors
    /// [`QueryError::OverLimit`]: the fill policy adds too many intervals.
    pub(super) fn finish(mut self) -> Result<(Vec<i64>, Vec<f64>), QueryError> {
        self.finish_bucket();
        match self.spec.fill.value() {
            Some(value) if self.spec.intervals != Intervals::All => self.filled(value),
            _ => Ok((self.times, self.values)),
        }
    }

    fn interval_of(&self, millis: i64, before: Option<(i64, i64)>) -> (i64, i64) {
        match self.spec.intervals {
            Intervals::All => (self.window.start, self.window.end),
            Intervals::Fixed(interval) => {
                let start = millis - millis.rem_euclid(interval.millis());
                (start, start.saturating_add(interval.millis()))
            }
            Intervals::Calendar(calendar) => {
                let (mut start, mut end) = before.unwrap_or_else(|| {
                    let start = calendar.start_of(millis);
                    (start, calendar.step(start, true))
                });
                while millis >= end {
                    (start, end) = (calendar.step(start, true), calendar.step(end, true));
                }
                (start, end)
            }
        }
    }

    fn finish_bucket(&mut self) {
        if let Some((start, _)) = self.current
            && !self.bucket.is_empty()
        {
            self.times.push(start);
            self.values.push(self.spec.aggregator.floats(&mut self.bucket));
            self.bucket.clear();
        }
    }

    /// All intervals of the read; `value` stands for those without values.
    fn filled(self, value: f64) -> Result<(Vec<i64>, Vec<f64>), QueryError> {
        let (mut at, end) = self.fill_range();
        let (mut times, mut values) = (Vec::new(), Vec::new());
        let mut found = self.times.iter().copied().zip(self.values.iter().copied()).peekable();
        while at < end {
            if times.len() == limits::POINTS_MAX {
                return Err(QueryError::OverLimit { what: "points", limit: limits::POINTS_MAX as u64 });
            }
            while found.next_if(|(start, _)| *start < at).is_some() {}
            times.push(at);
            values.push(found.next_if(|(start, _)| *start == at).map_or(value, |(_, value)| value));
            at = match self.spec.intervals {
                Intervals::Calendar(calendar) => calendar.step(at, true),
                _ => at.saturating_add(self.spec.millis()),
            };
        }
        Ok((times, values))
    }

    fn fill_range(&self) -> (i64, i64) {
        let (start, end) = (self.window.read_start, self.window.read_end);
        if let Intervals::Calendar(calendar) = self.spec.intervals {
            let (start, end) = (calendar.start_of(start), calendar.start_of(end));
            return (start, if start == end { calendar.step(end, true) } else { end });
        }
        let length = self.spec.millis();
        (start - start.rem_euclid(length), end - end.rem_euclid(length))
    }
}

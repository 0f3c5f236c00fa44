//! The time of a row: from a column, or from the number of the row.
//!
//! A time is read to the microsecond. Finer digits are cut off and counted. A time without an offset from UTC needs a zone;
//! there is no default.

use std::str::FromStr;
use std::time::Duration;

use arrow_schema::{DataType, TimeUnit};
use chrono::NaiveDateTime;
use hub::bulk::{LocalTimeError, Zone};
use model::calendar::{Moment, PatternTime, parse_duration, parse_local, parse_pattern};

/// Nanoseconds of a microsecond.
const MICRO_NS: i128 = 1_000;
/// Largest power of ten that an epoch's number may be written with.
const EXPONENT_MAX: i32 = 30;

/// The type of the times in an Arrow batch: microseconds since 1970, UTC.
pub(super) fn ts_type() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

/// A time that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Time {
    /// Microseconds since 1970, rounded towards the past.
    pub micros: i64,
    /// Whether the text has finer digits.
    pub cut: bool,
    /// Whether the local time came twice or never, and `--clock-change` chose its meaning.
    pub is_chosen: bool,
}

/// The reason why a text is not a time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum TimeError {
    /// The text is not understood.
    #[error("{0}")]
    Unknown(String),
    /// The text is a local time that came twice or never.
    #[error("{0}")]
    ClockChange(String),
}

impl From<String> for TimeError {
    fn from(reason: String) -> Self {
        Self::Unknown(reason)
    }
}

impl From<LocalTimeError> for TimeError {
    fn from(error: LocalTimeError) -> Self {
        let reason = error.to_string();
        match error {
            LocalTimeError::ClockChange(_) => Self::ClockChange(reason),
            LocalTimeError::OutOfRange => Self::Unknown(reason),
        }
    }
}

/// Counts about the times of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TimeCounts {
    /// Times that are not understood.
    pub bad: u64,
    /// The place of the first of them, and the reason.
    pub first_bad: Option<String>,
    /// Local times that came twice or never.
    pub clock_changes: u64,
    /// The place of the first of them, and the reason.
    pub first_clock_change: Option<String>,
    /// Local times that came twice or never and whose meaning `--clock-change` chose.
    pub chosen: u64,
    /// Times with digits finer than microseconds.
    pub cut: u64,
}

impl TimeCounts {
    /// Counts the result of reading a time, and returns the time. `place` names the line or row.
    pub(crate) fn count(
        &mut self,
        read: Result<Time, TimeError>,
        place: impl FnOnce() -> String,
    ) -> Option<Time> {
        match read {
            Ok(time) => {
                self.chosen += u64::from(time.is_chosen);
                self.cut += u64::from(time.cut);
                return Some(time);
            }
            Err(TimeError::Unknown(reason)) => {
                self.bad += 1;
                self.first_bad.get_or_insert_with(|| format!("{}: {reason}", place()));
            }
            Err(TimeError::ClockChange(reason)) => {
                self.clock_changes += 1;
                self.first_clock_change.get_or_insert_with(|| format!("{}: {reason}", place()));
            }
        }
        None
    }

    /// Rows that are left out for these reasons.
    pub(super) fn left_out(&self) -> u64 {
        self.bad + self.clock_changes
    }
}

impl Time {
    fn of_nanos(nanos: i128) -> Result<Self, String> {
        let micros = i64::try_from(nanos.div_euclid(MICRO_NS));
        let micros = micros.map_err(|_| "the time cannot be represented".to_owned())?;
        Ok(Self { micros, cut: nanos.rem_euclid(MICRO_NS) != 0, is_chosen: false })
    }
}

/// The format of the times in a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TimeFormat {
    /// RFC 3339, such as 2024-05-01T08:00:00Z.
    Rfc3339,
    /// A number since the beginning of 1970, UTC.
    Epoch(Unit),
    /// A pattern in the manner of strftime, such as `%d.%m.%Y %H:%M:%S`.
    Pattern(String),
}

/// The unit of times that are numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Milliseconds,
    /// Microseconds.
    Microseconds,
    /// Nanoseconds.
    Nanoseconds,
}

impl Unit {
    /// All units with their names in options.
    pub(super) const ALL: [(Self, &str); 4] = [
        (Self::Seconds, "s"),
        (Self::Milliseconds, "ms"),
        (Self::Microseconds, "us"),
        (Self::Nanoseconds, "ns"),
    ];

    /// Decimal places of a second that the unit has.
    fn decimal_places(self) -> i32 {
        match self {
            Self::Seconds => 0,
            Self::Milliseconds => 3,
            Self::Microseconds => 6,
            Self::Nanoseconds => 9,
        }
    }

    /// The time of a whole number of this unit.
    pub(super) fn time(self, number: i64) -> Result<Time, String> {
        Time::of_nanos(i128::from(number) * 10_i128.pow(self.decimal_places().abs_diff(9)))
    }

    /// The number of this unit for a time, rounded.
    pub(super) fn number(self, micros: i64) -> i128 {
        i128::from(micros) * MICRO_NS / 10_i128.pow(self.decimal_places().abs_diff(9))
    }
}

impl FromStr for TimeFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some((unit, _)) = Unit::ALL.into_iter().find(|(_, name)| *name == text) {
            return Ok(Self::Epoch(unit));
        }
        match text {
            "rfc3339" => Ok(Self::Rfc3339),
            pattern if pattern.contains('%') => Ok(Self::Pattern(pattern.into())),
            other => Err(format!(
                "\"{other}\" is not a format; use rfc3339, s, ms, us, ns or a pattern such as \"%d.%m.%Y %H:%M:%S\""
            )),
        }
    }
}

/// Reads the times of a column.
#[derive(Debug, Clone)]
pub struct TimeReader {
    /// Their format.
    pub format: TimeFormat,
    /// The zone of times without an offset.
    pub zone: Option<Zone>,
}

impl TimeReader {
    /// Reads a text.
    pub(super) fn parse(&self, text: &str) -> Result<Time, TimeError> {
        let text = text.trim();
        match &self.format {
            TimeFormat::Rfc3339 => self.rfc3339(text),
            TimeFormat::Epoch(unit) => Ok(epoch(text, *unit)?),
            TimeFormat::Pattern(pattern) => self.with_pattern(text, pattern),
        }
    }

    fn rfc3339(&self, text: &str) -> Result<Time, TimeError> {
        if let Ok(time) = text.parse::<Moment>() {
            return Ok(Time::of_nanos(time.nanos())?);
        }
        let shown = parse_local(text).ok_or_else(|| {
            format!("\"{text}\" is not a time such as 2024-05-01T08:00:00Z; say with --ts-format how it is written (s, ms, us, ns or a pattern)")
        })?;
        self.civil(shown)
    }

    fn with_pattern(&self, text: &str, pattern: &str) -> Result<Time, TimeError> {
        match parse_pattern(pattern, text) {
            Ok(PatternTime::Moment(moment)) => Ok(Time::of_nanos(moment.nanos())?),
            Ok(PatternTime::Local(shown)) => self.civil(shown),
            Err(reason) => Err(format!("\"{text}\" does not fit \"{pattern}\": {reason}").into()),
        }
    }

    /// The moment of a local time in the zone of `--timezone`.
    pub(super) fn civil(&self, shown: NaiveDateTime) -> Result<Time, TimeError> {
        let zone = self.zone.as_ref().ok_or_else(|| {
            format!(
                "{} has no offset from UTC; say with --timezone where it was written (UTC, Europe/Berlin, +02:00)",
                shown.format("%Y-%m-%dT%H:%M:%S%.f")
            )
        })?;
        let as_utc = Moment::of_local(shown, 0).ok_or(LocalTimeError::OutOfRange)?;
        let local = Time::of_nanos(as_utc.nanos())?;
        let moment = zone.moment(local.micros)?;
        Ok(Time { micros: moment.micros, cut: local.cut, is_chosen: moment.is_chosen })
    }
}

/// Reads a number of a unit exactly, with or without decimal places.
fn epoch(text: &str, unit: Unit) -> Result<Time, String> {
    let wrong = || format!("\"{text}\" is not a number that can be a time");
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().map_err(|_| wrong())?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_number = whole.strip_prefix(['-', '+']).unwrap_or(whole).bytes().all(|byte| byte.is_ascii_digit())
        && fraction.bytes().all(|byte| byte.is_ascii_digit())
        && mantissa.bytes().any(|byte| byte.is_ascii_digit());
    if !is_number {
        return Err(wrong());
    }
    let digits: i128 = format!("{whole}{fraction}").parse().map_err(|_| wrong())?;
    let places = i32::try_from(fraction.len()).map_err(|_| wrong())?;
    // To nanoseconds: nine decimal places of a second.
    let power = exponent.saturating_sub(places).saturating_add(9 - unit.decimal_places());
    if power.abs() > EXPONENT_MAX {
        return Err(wrong());
    }
    let ten = 10_i128.pow(power.unsigned_abs());
    if power >= 0 {
        return Time::of_nanos(digits.checked_mul(ten).ok_or_else(wrong)?).map_err(|_| wrong());
    }
    let time = Time::of_nanos(digits.div_euclid(ten)).map_err(|_| wrong())?;
    Ok(Time { cut: time.cut || digits.rem_euclid(ten) != 0, ..time })
}

/// The times of rows without a time: one interval after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Clock {
    /// Time of the first row, in microseconds since 1970.
    pub start_us: i64,
    pub interval_us: i64,
}

impl Clock {
    /// The time of row `index`.
    pub(super) fn at(&self, index: u64) -> i64 {
        let index = i64::try_from(index).expect("BUG: fewer rows than microseconds");
        self.start_us.saturating_add(self.interval_us.saturating_mul(index))
    }
}

/// Reads an interval such as `1s`, `100ms` or `1m30s`, in whole milliseconds.
pub fn parse_interval(text: &str) -> Result<Duration, String> {
    let wrong = || format!("\"{text}\" is not an interval; write 1s, 100ms or 1m30s (at least 1ms)");
    let duration = parse_duration(text).ok_or_else(wrong)?;
    let is_whole = duration.subsec_nanos().is_multiple_of(1_000_000);
    if duration.is_zero() || !is_whole || duration > Duration::from_secs(366 * 86_400) {
        Err(wrong())
    } else {
        Ok(duration)
    }
}

/// Reads the time of an option, which must have an offset. Returns microseconds since 1970.
pub fn parse_start(text: &str) -> Result<i64, String> {
    let reader = TimeReader { format: TimeFormat::Rfc3339, zone: None };
    let time = reader.parse(text).ok().filter(|time| !time.cut);
    time.map(|time| time.micros).ok_or_else(|| {
        format!("\"{text}\" is not a time; write it as 2024-05-01T08:00:00Z, with Z or an offset")
    })
}

#[cfg(test)]
mod tests {
    use hub::bulk::ClockChange;

    use super::*;

    const MAY_1ST: i64 = 1_714_550_400_000_000;

    fn reader(format: &str, zone: &str) -> TimeReader {
        TimeReader {
            format: format.parse().unwrap(),
            zone: (!zone.is_empty()).then(|| zone.parse().unwrap()),
        }
    }

    fn us(format: &str, zone: &str, text: &str) -> Result<i64, String> {
        reader(format, zone).parse(text).map(|time| time.micros).map_err(|error| error.to_string())
    }

    #[test]
    fn times_are_read_in_all_forms() {
        for (format, zone, text) in [
            ("rfc3339", "", "2024-05-01T08:00:00Z"),
            ("rfc3339", "", "2024-05-01 10:00:00+02:00"),
            ("rfc3339", "UTC", "2024-05-01T08:00:00"),
            ("rfc3339", "Europe/Berlin", "2024-05-01 10:00:00"),
            ("rfc3339", "+02:00", "2024-05-01 10:00:00"),
            ("rfc3339", "Asia/Kolkata", "2024-05-01T08:00:00Z"),
            ("s", "", "1714550400"),
            ("s", "", " 1714550400.000"),
            ("s", "", "1.7145504E9"),
            ("ms", "", "1714550400000"),
            ("ms", "", "1714550400000.0"),
            ("us", "", "1714550400000000"),
            ("ns", "", "1714550400000000000"),
            ("%d.%m.%Y %H:%M:%S", "Europe/Berlin", "01.05.2024 10:00:00"),
            ("%Y-%m-%d %H:%M %z", "", "2024-05-01 10:00 +0200"),
            ("%s", "", "1714550400"),
        ] {
            assert_eq!(us(format, zone, text), Ok(MAY_1ST), "{format}: {text}");
        }
    }

    #[test]
    fn microseconds_are_kept_and_finer_times_are_reported() {
        for (format, text, micros, cut) in [
            ("s", "1714550400.25", 250_000, false),
            ("s", "1714550400.123456", 123_456, false),
            ("s", "1714550400.1234567", 123_456, true),
            ("s", "1.714550400123456e9", 123_456, false),
            ("ms", "1714550400000.5", 500, false),
            ("ms", "1714550400000.0001", 0, true),
            ("us", "1714550400000000.9", 0, true),
            ("ns", "1714550400000001999", 1, true),
            ("rfc3339", "2024-05-01T08:00:00.000001Z", 1, false),
            ("rfc3339", "2024-05-01T08:00:00.000001999Z", 1, true),
            ("%Y-%m-%d %H:%M:%S%.f %z", "2024-05-01 08:00:00.123456 +0000", 123_456, false),
        ] {
            let time = reader(format, "").parse(text).unwrap();
            assert_eq!((time.micros, time.cut), (MAY_1ST + micros, cut), "{format}: {text}");
        }
        assert_eq!(us("s", "", "-0.000001"), Ok(-1));
        assert_eq!(us("s", "", "-0.0000015"), Ok(-2), "towards the past");
    }

    #[test]
    fn a_time_without_an_offset_needs_a_zone() {
        for (format, text) in [
            ("rfc3339", "2024-05-01T08:00:00"),
            ("rfc3339", "2024-05-01"),
            ("%d.%m.%Y %H:%M:%S%.f", "01.05.2024 08:00:00.5"),
        ] {
            assert!(us(format, "", text).unwrap_err().contains("--timezone"), "{text}");
        }
    }

    #[test]
    fn times_are_counted_by_result() {
        let texts =
            ["2024-05-01T10:00:00.0000001", "noon", "2024-10-27T02:30:00", "2024-03-31T02:30:00", "midnight"];
        let count = |reader: &TimeReader| {
            let mut counts = TimeCounts::default();
            for (line, text) in texts.iter().enumerate() {
                counts.count(reader.parse(text), || format!("line {line}"));
            }
            counts
        };
        let refused = count(&reader("rfc3339", "Europe/Berlin"));
        assert_eq!((refused.bad, refused.clock_changes, refused.chosen, refused.cut), (2, 2, 0, 1));
        assert!(refused.first_bad.unwrap().starts_with("line 1: \"noon\" is not a time"));
        let first = refused.first_clock_change.unwrap();
        assert!(first.starts_with("line 2: 2024-10-27T02:30:00 was twice in Europe/Berlin"), "{first}");
        let zone = "Europe/Berlin".parse::<Zone>().unwrap().with_clock_change(ClockChange::Later);
        let taken = count(&TimeReader { format: TimeFormat::Rfc3339, zone: Some(zone) });
        assert_eq!((taken.bad, taken.clock_changes, taken.chosen, taken.cut), (2, 0, 2, 1));
    }

    #[test]
    fn an_invalid_time_is_an_error_that_quotes_it() {
        for (format, text) in [
            ("rfc3339", "1714550400"),
            ("s", "noon"),
            ("s", "nan"),
            ("s", "1e"),
            ("s", "."),
            ("s", "1,5"),
            ("s", "--1"),
            ("ms", "1e30"),
            ("ms", "1e99"),
            ("%Y", "x"),
        ] {
            assert!(us(format, "UTC", text).unwrap_err().contains(text), "{format}: {text}");
        }
        assert!("iso".parse::<TimeFormat>().unwrap_err().contains("rfc3339, s, ms, us, ns"));
    }

    #[test]
    fn rows_without_a_time_follow_each_other() {
        let clock = Clock { start_us: MAY_1ST, interval_us: 100 };
        assert_eq!([clock.at(0), clock.at(1), clock.at(600)], [MAY_1ST, MAY_1ST + 100, MAY_1ST + 60_000]);
        assert_eq!(parse_start("2024-05-01T08:00:00Z"), Ok(MAY_1ST));
        assert!(parse_start("2024-05-01T08:00:00").unwrap_err().contains("with Z or an offset"));
    }

    #[test]
    fn intervals_are_whole_milliseconds() {
        assert_eq!(parse_interval("1s"), Ok(Duration::from_secs(1)));
        assert_eq!(parse_interval("100ms"), Ok(Duration::from_millis(100)));
        assert_eq!(parse_interval("1m30s"), Ok(Duration::from_secs(90)));
        for text in ["0s", "-1s", "1us", "1500us", "soon", "500h 400000h"] {
            assert!(parse_interval(text).unwrap_err().contains(text), "{text}");
        }
    }
}

//! Writes times, dates and intervals as text.

use std::fmt::Write as _;

use chrono::{Datelike, NaiveDate};
use model::Timestamp;

use super::{Case, DAYS, Field, MONTHS, Node, ROMAN_MONTHS, ordinal, parse};
use crate::QueryError;
use crate::error::INVALID_TIME;
use model::Interval;
use model::interval::DAY_US;

/// The fields of templates for times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Era(Case, bool),
    HalfDay(Case, bool),
    Century,
    DayName(Case),
    DayShort(Case),
    MonthName(Case),
    MonthShort(Case),
    DayOfYear,
    DayOfMonth,
    DayOfWeek,
    /// The digits of a fraction of a second.
    Fraction(u32),
    Exact,
    Hour24,
    Hour12,
    IsoDayOfYear,
    IsoDayOfWeek,
    IsoWeek,
    /// The digits of the year.
    IsoYear(u32),
    Julian,
    Minute,
    Month,
    Milliseconds,
    Offset,
    Quarter,
    RomanMonth(Case),
    SecondsOfDay,
    Second,
    ZoneHour,
    ZoneMinute,
    Zone(Case),
    Microseconds,
    WeekOfYear,
    WeekOfMonth,
    YearWithComma,
    Year(u32),
}

impl Key {
    /// Whether the field is read as any number of digits, so that the field before it must have all of its digits.
    pub(super) fn is_digits(self) -> bool {
        !matches!(
            self,
            Self::Era(..)
                | Self::HalfDay(..)
                | Self::DayName(_)
                | Self::DayShort(_)
                | Self::MonthName(_)
                | Self::MonthShort(_)
                | Self::Exact
                | Self::Offset
                | Self::RomanMonth(_)
                | Self::ZoneHour
                | Self::Zone(_)
        )
    }
}

const KEYS: &[(&str, Key)] = &[
    ("A.D.", Key::Era(Case::Upper, true)),
    ("A.M.", Key::HalfDay(Case::Upper, true)),
    ("AD", Key::Era(Case::Upper, false)),
    ("AM", Key::HalfDay(Case::Upper, false)),
    ("B.C.", Key::Era(Case::Upper, true)),
    ("BC", Key::Era(Case::Upper, false)),
    ("CC", Key::Century),
    ("DAY", Key::DayName(Case::Upper)),
    ("DDD", Key::DayOfYear),
    ("DD", Key::DayOfMonth),
    ("DY", Key::DayShort(Case::Upper)),
    ("Day", Key::DayName(Case::Capital)),
    ("Dy", Key::DayShort(Case::Capital)),
    ("D", Key::DayOfWeek),
    ("FF1", Key::Fraction(1)),
    ("FF2", Key::Fraction(2)),
    ("FF3", Key::Fraction(3)),
    ("FF4", Key::Fraction(4)),
    ("FF5", Key::Fraction(5)),
    ("FF6", Key::Fraction(6)),
    ("FX", Key::Exact),
    ("HH24", Key::Hour24),
    ("HH12", Key::Hour12),
    ("HH", Key::Hour12),
    ("IDDD", Key::IsoDayOfYear),
    ("ID", Key::IsoDayOfWeek),
    ("IW", Key::IsoWeek),
    ("IYYY", Key::IsoYear(4)),
    ("IYY", Key::IsoYear(3)),
    ("IY", Key::IsoYear(2)),
    ("I", Key::IsoYear(1)),
    ("J", Key::Julian),
    ("MI", Key::Minute),
    ("MM", Key::Month),
    ("MONTH", Key::MonthName(Case::Upper)),
    ("MON", Key::MonthShort(Case::Upper)),
    ("MS", Key::Milliseconds),
    ("Month", Key::MonthName(Case::Capital)),
    ("Mon", Key::MonthShort(Case::Capital)),
    ("OF", Key::Offset),
    ("P.M.", Key::HalfDay(Case::Upper, true)),
    ("PM", Key::HalfDay(Case::Upper, false)),
    ("Q", Key::Quarter),
    ("RM", Key::RomanMonth(Case::Upper)),
    ("SSSSS", Key::SecondsOfDay),
    ("SSSS", Key::SecondsOfDay),
    ("SS", Key::Second),
    ("TZH", Key::ZoneHour),
    ("TZM", Key::ZoneMinute),
    ("TZ", Key::Zone(Case::Upper)),
    ("US", Key::Microseconds),
    ("WW", Key::WeekOfYear),
    ("W", Key::WeekOfMonth),
    ("Y,YYY", Key::YearWithComma),
    ("YYYY", Key::Year(4)),
    ("YYY", Key::Year(3)),
    ("YY", Key::Year(2)),
    ("Y", Key::Year(1)),
    ("a.d.", Key::Era(Case::Lower, true)),
    ("a.m.", Key::HalfDay(Case::Lower, true)),
    ("ad", Key::Era(Case::Lower, false)),
    ("am", Key::HalfDay(Case::Lower, false)),
    ("b.c.", Key::Era(Case::Lower, true)),
    ("bc", Key::Era(Case::Lower, false)),
    ("cc", Key::Century),
    ("day", Key::DayName(Case::Lower)),
    ("ddd", Key::DayOfYear),
    ("dd", Key::DayOfMonth),
    ("dy", Key::DayShort(Case::Lower)),
    ("d", Key::DayOfWeek),
    ("ff1", Key::Fraction(1)),
    ("ff2", Key::Fraction(2)),
    ("ff3", Key::Fraction(3)),
    ("ff4", Key::Fraction(4)),
    ("ff5", Key::Fraction(5)),
    ("ff6", Key::Fraction(6)),
    ("fx", Key::Exact),
    ("hh24", Key::Hour24),
    ("hh12", Key::Hour12),
    ("hh", Key::Hour12),
    ("iddd", Key::IsoDayOfYear),
    ("id", Key::IsoDayOfWeek),
    ("iw", Key::IsoWeek),
    ("iyyy", Key::IsoYear(4)),
    ("iyy", Key::IsoYear(3)),
    ("iy", Key::IsoYear(2)),
    ("i", Key::IsoYear(1)),
    ("j", Key::Julian),
    ("mi", Key::Minute),
    ("mm", Key::Month),
    ("month", Key::MonthName(Case::Lower)),
    ("mon", Key::MonthShort(Case::Lower)),
    ("ms", Key::Milliseconds),
    ("of", Key::Offset),
    ("p.m.", Key::HalfDay(Case::Lower, true)),
    ("pm", Key::HalfDay(Case::Lower, false)),
    ("q", Key::Quarter),
    ("rm", Key::RomanMonth(Case::Lower)),
    ("sssss", Key::SecondsOfDay),
    ("ssss", Key::SecondsOfDay),
    ("ss", Key::Second),
    ("tzh", Key::ZoneHour),
    ("tzm", Key::ZoneMinute),
    ("tz", Key::Zone(Case::Lower)),
    ("us", Key::Microseconds),
    ("ww", Key::WeekOfYear),
    ("w", Key::WeekOfMonth),
    ("y,yyy", Key::YearWithComma),
    ("yyyy", Key::Year(4)),
    ("yyy", Key::Year(3)),
    ("yy", Key::Year(2)),
    ("y", Key::Year(1)),
];

pub(super) fn nodes(template: &str) -> Vec<Node<Key>> {
    parse(template, KEYS, true)
}

/// The value to write.
#[derive(Debug, Clone, Copy)]
pub(in crate::functions) enum Moment {
    /// Microseconds since 1970, in UTC.
    WithZone(i64),
    /// Microseconds since 1970 in local time.
    Local(i64),
    Interval(Interval),
}

/// The parts of a moment.
struct Parts {
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
    micros: i64,
    /// `None` for an interval.
    date: Option<NaiveDate>,
    zone: &'static str,
}

impl Parts {
    fn of(moment: Moment) -> Result<Self, QueryError> {
        let (micros, zone) = match moment {
            Moment::WithZone(micros) => (micros, "UTC"),
            Moment::Local(micros) => (micros, ""),
            Moment::Interval(interval) => {
                let seconds = interval.micros / 1_000_000;
                return Ok(Self {
                    year: i64::from(interval.months / 12),
                    month: i64::from(interval.months % 12),
                    day: interval.days.into(),
                    hour: seconds / 3_600,
                    minute: seconds / 60 % 60,
                    second: seconds % 60,
                    micros: interval.micros % 1_000_000,
                    date: None,
                    zone: "",
                });
            }
        };
        let date = Timestamp::from_micros(micros).date();
        let (year, month, day) = (i64::from(date.year), i64::from(date.month), i64::from(date.day));
        let known = NaiveDate::from_ymd_opt(date.year, date.month.into(), date.day.into());
        let Some(date) = known else {
            return Err(QueryError::value(crate::error::TIME_OUT_OF_RANGE, "timestamp out of range"));
        };
        let of_day = micros.rem_euclid(DAY_US);
        let seconds = of_day / 1_000_000;
        Ok(Self {
            year,
            month,
            day,
            hour: seconds / 3_600,
            minute: seconds / 60 % 60,
            second: seconds % 60,
            micros: of_day % 1_000_000,
            date: Some(date),
            zone,
        })
    }

    fn date(&self) -> Result<NaiveDate, QueryError> {
        self.date.ok_or_else(|| {
            let message = "invalid format specification for an interval value: \
                           intervals are not tied to calendar dates";
            QueryError::value(INVALID_TIME, message)
        })
    }

    /// Returns a year as PostgreSQL writes it: there is no year 0.
    fn counted(&self, year: i64) -> i64 {
        if self.date.is_some() && year <= 0 { 1 - year } else { year }
    }

    fn day_of_year(&self) -> i64 {
        self.date.map_or_else(|| (self.year * 12 + self.month) * 30 + self.day, |date| date.ordinal().into())
    }
}

/// Writes a moment with a template.
pub(in crate::functions) fn moment_text(moment: Moment, template: &str) -> Result<String, QueryError> {
    let parts = Parts::of(moment)?;
    let mut out = String::new();
    for node in nodes(template) {
        match node {
            Node::Text(c) | Node::Separator(c) => out.push(c),
            Node::Field(field) => write_field(&field, &parts, &mut out)?,
        }
    }
    Ok(out)
}

fn write_field(field: &Field<Key>, parts: &Parts, out: &mut String) -> Result<(), QueryError> {
    let name = |text: &str, case: Case, width: usize, out: &mut String| {
        let text = case.of(text);
        let width = if field.fills || field.localized { 0 } else { width };
        write!(out, "{text:<width$}").expect("BUG: memory takes text");
    };
    let (number, width) = match field.key {
        Key::Exact => return Ok(()),
        Key::Era(case, dotted) => {
            let era = match (parts.year <= 0, dotted) {
                (true, true) => "B.C.",
                (true, false) => "BC",
                (false, true) => "A.D.",
                (false, false) => "AD",
            };
            parts.date()?;
            out.push_str(&case.of(era));
            return Ok(());
        }
        Key::HalfDay(case, dotted) => {
            let half = match (parts.hour % 24 >= 12, dotted) {
                (true, true) => "P.M.",
                (true, false) => "PM",
                (false, true) => "A.M.",
                (false, false) => "AM",
            };
            out.push_str(&case.of(half));
            return Ok(());
        }
        Key::DayName(case) | Key::DayShort(case) => {
            let day = DAYS[parts.date()?.weekday().num_days_from_sunday() as usize];
            match field.key {
                Key::DayName(_) => name(day, case, 9, out),
                _ => out.push_str(&case.of(&day[..3])),
            }
            return Ok(());
        }
        Key::MonthName(case) | Key::MonthShort(case) => {
            parts.date()?;
            let month = MONTHS[(parts.month - 1) as usize];
            match field.key {
                Key::MonthName(_) => name(month, case, 9, out),
                _ => out.push_str(&case.of(&month[..3])),
            }
            return Ok(());
        }
        Key::RomanMonth(case) => {
            if parts.month == 0 && parts.year == 0 {
                return Ok(());
            }
            let index = if parts.month == 0 {
                if parts.year >= 0 { 11 } else { 0 }
            } else if parts.month < 0 {
                (parts.month + 12) as usize
            } else {
                (parts.month - 1) as usize
            };
            name(ROMAN_MONTHS[index], case, 4, out);
            return Ok(());
        }
        Key::Zone(case) => {
            parts.date()?;
            out.push_str(&case.of(parts.zone));
            return Ok(());
        }
        Key::Offset | Key::ZoneHour => {
            parts.date()?;
            out.push_str(if field.fills && field.key == Key::Offset { "+0" } else { "+00" });
            return Ok(());
        }
        Key::ZoneMinute => {
            parts.date()?;
            out.push_str("00");
            return Ok(());
        }
        Key::YearWithComma => {
            let year = parts.counted(parts.year);
            write!(out, "{},{:03}", year / 1_000, year % 1_000).expect("BUG: memory takes text");
            if let Some(case) = field.ordinal {
                out.push_str(ordinal(out, case));
            }
            return Ok(());
        }
        Key::Century => {
            let century = match parts.date {
                None => parts.year / 100,
                Some(_) if parts.year > 0 => (parts.year - 1) / 100 + 1,
                Some(_) => parts.year / 100 - 1,
            };
            (century, if century.abs() <= 99 { 2 } else { 0 })
        }
        Key::Hour24 => (parts.hour, 2),
        Key::Hour12 => (if parts.hour % 12 == 0 { 12 } else { parts.hour % 12 }, 2),
        Key::Minute => (parts.minute, 2),
        Key::Second => (parts.second, 2),
        Key::Fraction(digits) => return fraction(parts.micros, digits, field, out),
        Key::Milliseconds => return fraction(parts.micros, 3, field, out),
        Key::Microseconds => return fraction(parts.micros, 6, field, out),
        Key::SecondsOfDay => (parts.hour * 3_600 + parts.minute * 60 + parts.second, 0),
        Key::Month => (parts.month, 2),
        Key::DayOfYear => (parts.day_of_year(), 3),
        Key::IsoDayOfYear => {
            let iso = parts.date()?.iso_week();
            (i64::from(parts.date()?.weekday().num_days_from_monday()) + i64::from(iso.week() - 1) * 7 + 1, 3)
        }
        Key::DayOfMonth => (parts.day, 2),
        Key::DayOfWeek => (i64::from(parts.date()?.weekday().number_from_sunday()), 0),
        Key::IsoDayOfWeek => (i64::from(parts.date()?.weekday().number_from_monday()), 0),
        Key::WeekOfYear => ((parts.day_of_year() - 1) / 7 + 1, 2),
        Key::IsoWeek => (i64::from(parts.date()?.iso_week().week()), 2),
        Key::WeekOfMonth => ((parts.day - 1) / 7 + 1, 0),
        Key::Quarter => {
            if parts.month == 0 {
                return Ok(());
            }
            ((parts.month - 1) / 3 + 1, 0)
        }
        Key::Julian => {
            // The Julian day before 1970 began is 2440587.
            (i64::from(parts.date()?.num_days_from_ce()) + 1_721_425, 0)
        }
        Key::Year(digits) => (year_digits(parts.counted(parts.year), digits), digits as usize),
        Key::IsoYear(digits) => {
            let year = i64::from(parts.date()?.iso_week().year());
            (year_digits(parts.counted(year), digits), digits as usize)
        }
    };
    // The sign of a day counts as one of its characters. The signs of other fields do not.
    let is_day = matches!(field.key, Key::DayOfMonth | Key::DayOfYear | Key::WeekOfYear);
    let sign = usize::from(number < 0 && width > 0 && !is_day);
    let width = if field.fills { 0 } else { width + sign };
    let digits = format!("{number:0width$}");
    out.push_str(&digits);
    if let Some(case) = field.ordinal {
        out.push_str(ordinal(&digits, case));
    }
    Ok(())
}

fn year_digits(year: i64, digits: u32) -> i64 {
    if digits == 4 { year } else { year % 10_i64.pow(digits) }
}

fn fraction(micros: i64, digits: u32, field: &Field<Key>, out: &mut String) -> Result<(), QueryError> {
    let text = format!("{:0width$}", micros / 10_i64.pow(6 - digits), width = digits as usize);
    out.push_str(&text);
    if let Some(case) = field.ordinal {
        out.push_str(ordinal(&text, case));
    }
    Ok(())
}

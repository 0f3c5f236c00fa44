//! Parts of times and intervals, as PostgreSQL's `extract`, `date_trunc` and `age` compute them.

use chrono::{Datelike, Months, NaiveDate};
use model::Timestamp;

use super::by_value::{interval_out_of_range, time_out_of_range};
use crate::QueryError;
use crate::error::INVALID_PARAMETER;
use model::Interval;
use model::interval::{DAY_US, HOUR_US};

/// Days from the year 1 to 1970.
const DAYS_TO_1970: i32 = 719_163;
/// The Julian day on which 1970 began.
const JULIAN_DAY_OF_1970: f64 = 2_440_588.0;
const DAY_S: f64 = 86_400.0;
const YEAR_DAYS: f64 = 365.25;

/// A unit of `extract` and `date_trunc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Unit {
    Microsecond,
    Millisecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
    Decade,
    Century,
    Millennium,
    IsoYear,
    DayOfWeek,
    IsoDayOfWeek,
    DayOfYear,
    Epoch,
    Julian,
    Zone,
}

impl Unit {
    pub(super) fn of_name(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_str() {
            "microsecond" | "microseconds" | "us" | "usec" | "usecs" | "usecond" | "useconds"
            | "microsecon" => Self::Microsecond,
            "millisecond" | "milliseconds" | "ms" | "msec" | "msecs" | "msecond" | "mseconds" => {
                Self::Millisecond
            }
            "second" | "seconds" | "s" | "sec" | "secs" => Self::Second,
            "minute" | "minutes" | "m" | "min" | "mins" => Self::Minute,
            "hour" | "hours" | "h" | "hr" | "hrs" => Self::Hour,
            "day" | "days" | "d" => Self::Day,
            "week" | "weeks" | "w" => Self::Week,
            "month" | "months" | "mon" | "mons" => Self::Month,
            "quarter" | "qtr" => Self::Quarter,
            "year" | "years" | "y" | "yr" | "yrs" => Self::Year,
            "decade" | "decades" | "dec" | "decs" => Self::Decade,
            "century" | "centuries" | "c" | "cent" => Self::Century,
            "millennium" | "millennia" | "mil" | "mils" => Self::Millennium,
            "isoyear" => Self::IsoYear,
            "dow" => Self::DayOfWeek,
            "isodow" => Self::IsoDayOfWeek,
            "doy" => Self::DayOfYear,
            "epoch" => Self::Epoch,
            "julian" | "jd" | "j" => Self::Julian,
            "timezone" | "timezone_h" | "timezone_hour" | "timezone_m" | "timezone_minute" => Self::Zone,
            _ => return None,
        })
    }
}

pub(super) fn unit(name: &str, of: &str) -> Result<Unit, QueryError> {
    Unit::of_name(name).ok_or_else(|| {
        QueryError::value(INVALID_PARAMETER, format!("unit \"{name}\" not recognized for type {of}"))
    })
}

fn unsupported(name: &str, of: &str) -> QueryError {
    QueryError::unsupported(format!("unit \"{name}\" not supported for type {of}"))
}

/// Returns the date of a time.
pub(super) fn date(micros: i64) -> Result<NaiveDate, QueryError> {
    let date = Timestamp::from_micros(micros).date();
    NaiveDate::from_ymd_opt(date.year, date.month.into(), date.day.into()).ok_or_else(time_out_of_range)
}

/// Returns the start of a day in microseconds since 1970.
pub(super) fn midnight(date: NaiveDate) -> Result<i64, QueryError> {
    let days = i64::from(date.num_days_from_ce() - DAYS_TO_1970);
    days.checked_mul(DAY_US).ok_or_else(time_out_of_range)
}

/// Computes `extract(unit from time)`. `has_zone` indicates whether the type of the time has a zone.
pub(super) fn part_of_time(name: &str, micros: i64, has_zone: bool) -> Result<f64, QueryError> {
    let of = if has_zone { "timestamp with time zone" } else { "timestamp without time zone" };
    let unit = unit(name, of)?;
    let of_day = micros.rem_euclid(DAY_US);
    let day = date(micros)?;
    let year = day.year();
    Ok(match unit {
        Unit::Zone if has_zone => 0.0,
        Unit::Zone => return Err(unsupported(name, of)),
        Unit::Epoch => micros as f64 / 1e6,
        Unit::Julian => micros.div_euclid(DAY_US) as f64 + JULIAN_DAY_OF_1970 + of_day as f64 / (DAY_S * 1e6),
        Unit::Day => day.day().into(),
        Unit::Week => day.iso_week().week().into(),
        Unit::Month => day.month().into(),
        Unit::Quarter => ((day.month() - 1) / 3 + 1).into(),
        Unit::Year => counted(year).into(),
        Unit::Decade => year.div_euclid(10).into(),
        Unit::Century => hundreds(year, 100).into(),
        Unit::Millennium => hundreds(year, 1_000).into(),
        Unit::IsoYear => counted(day.iso_week().year()).into(),
        Unit::DayOfWeek => day.weekday().num_days_from_sunday().into(),
        Unit::IsoDayOfWeek => day.weekday().number_from_monday().into(),
        Unit::DayOfYear => day.ordinal().into(),
        _ => part_of_day(unit, of_day),
    })
}

/// Returns a year as PostgreSQL writes it: there is no year 0.
fn counted(year: i32) -> i32 {
    if year > 0 { year } else { year - 1 }
}

/// Returns the century or the millennium of a year. The first one begins with the year 1.
fn hundreds(year: i32, years: i32) -> i32 {
    if year > 0 { (year + years - 1) / years } else { -((years - year) / years) }
}

fn part_of_day(unit: Unit, micros: i64) -> f64 {
    let of_minute = micros % 60_000_000;
    match unit {
        Unit::Microsecond => of_minute as f64,
        Unit::Millisecond => of_minute as f64 / 1e3,
        Unit::Second => of_minute as f64 / 1e6,
        Unit::Minute => (micros / 60_000_000 % 60) as f64,
        _ => (micros / HOUR_US) as f64,
    }
}

/// `extract(unit from time of day)`
pub(super) fn part_of_time_of_day(name: &str, micros: i64) -> Result<f64, QueryError> {
    let of = "time without time zone";
    match unit(name, of)? {
        Unit::Epoch => Ok(micros as f64 / 1e6),
        unit if unit <= Unit::Hour => Ok(part_of_day(unit, micros)),
        _ => Err(unsupported(name, of)),
    }
}

/// `extract(unit from interval)`
pub(super) fn part_of_interval(name: &str, interval: Interval) -> Result<f64, QueryError> {
    let (years, months) = (interval.months / 12, interval.months % 12);
    Ok(match unit(name, "interval")? {
        Unit::Epoch => {
            let days = f64::from(years) * YEAR_DAYS + f64::from(months) * 30.0 + f64::from(interval.days);
            days * DAY_S + interval.micros as f64 / 1e6
        }
        Unit::Day => interval.days.into(),
        Unit::Month => months.into(),
        Unit::Quarter => (months / 3 + 1).into(),
        Unit::Year => years.into(),
        Unit::Decade => (years / 10).into(),
        Unit::Century => (years / 100).into(),
        Unit::Millennium => (years / 1_000).into(),
        unit if unit <= Unit::Hour => part_of_day(unit, interval.micros),
        _ => return Err(unsupported(name, "interval")),
    })
}

/// `date_trunc(unit, local time)`
pub(super) fn truncated(name: &str, micros: i64) -> Result<i64, QueryError> {
    let of = "timestamp";
    let unit = unit(name, of)?;
    let step = match unit {
        Unit::Microsecond => 1,
        Unit::Millisecond => 1_000,
        Unit::Second => 1_000_000,
        Unit::Minute => 60_000_000,
        Unit::Hour => HOUR_US,
        Unit::Day => DAY_US,
        _ => return midnight(first_day(name, unit, date(micros)?)?),
    };
    micros.checked_sub(micros.rem_euclid(step)).ok_or_else(time_out_of_range)
}

/// Returns the first day of the week, month or other unit that contains a day.
fn first_day(name: &str, unit: Unit, day: NaiveDate) -> Result<NaiveDate, QueryError> {
    let year = day.year();
    let (year, month) = match unit {
        Unit::Week => {
            let days = chrono::Days::new(day.weekday().num_days_from_monday().into());
            return day.checked_sub_days(days).ok_or_else(time_out_of_range);
        }
        Unit::Month => (year, day.month()),
        Unit::Quarter => (year, (day.month() - 1) / 3 * 3 + 1),
        Unit::Year => (year, 1),
        Unit::Decade => (year.div_euclid(10) * 10, 1),
        Unit::Century => ((year - 1).div_euclid(100) * 100 + 1, 1),
        Unit::Millennium => ((year - 1).div_euclid(1_000) * 1_000 + 1, 1),
        _ => return Err(unsupported(name, "timestamp")),
    };
    NaiveDate::from_ymd_opt(year, month, 1).ok_or_else(time_out_of_range)
}

/// `date_trunc(unit, interval)`
pub(super) fn truncated_interval(name: &str, interval: Interval) -> Result<Interval, QueryError> {
    let Interval { months, days, micros } = interval;
    let of_months = |step: i32| Interval { months: months / step * step, days: 0, micros: 0 };
    let of_micros = |step: i64| Interval { months, days, micros: micros / step * step };
    Ok(match unit(name, "interval")? {
        Unit::Microsecond => interval,
        Unit::Millisecond => of_micros(1_000),
        Unit::Second => of_micros(1_000_000),
        Unit::Minute => of_micros(60_000_000),
        Unit::Hour => of_micros(HOUR_US),
        Unit::Day => Interval { months, days, micros: 0 },
        Unit::Month => of_months(1),
        Unit::Quarter => of_months(3),
        Unit::Year => of_months(12),
        Unit::Decade => of_months(120),
        Unit::Century => of_months(1_200),
        Unit::Millennium => of_months(12_000),
        _ => return Err(unsupported(name, "interval")),
    })
}

/// Computes `age(later, earlier)` in calendar years, months and days.
pub(super) fn age(later: i64, earlier: i64) -> Result<Interval, QueryError> {
    if later < earlier {
        let age = difference(earlier, later)?;
        return Ok(Interval { months: -age.months, days: -age.days, micros: -age.micros });
    }
    difference(later, earlier)
}

/// Missing days are borrowed from the month of the earlier time.
fn difference(later: i64, earlier: i64) -> Result<Interval, QueryError> {
    let (last, first) = (date(later)?, date(earlier)?);
    let mut micros = later.rem_euclid(DAY_US) - earlier.rem_euclid(DAY_US);
    let mut days = last.day() as i32 - first.day() as i32;
    let mut months = (last.year() - first.year()) * 12 + last.month() as i32 - first.month() as i32;
    if micros < 0 {
        micros += DAY_US;
        days -= 1;
    }
    let borrowed = days_in_month(first);
    while days < 0 {
        days += borrowed;
        months -= 1;
    }
    Ok(Interval { months, days, micros })
}

fn days_in_month(date: NaiveDate) -> i32 {
    let (year, month) =
        if date.month() == 12 { (date.year() + 1, 1) } else { (date.year(), date.month() + 1) };
    let next = NaiveDate::from_ymd_opt(year, month, 1);
    next.and_then(|next| next.pred_opt()).map_or(31, |last| last.day() as i32)
}

/// Returns the time an interval later. Months keep the day as far as the month has it.
pub(super) fn later(micros: i64, interval: Interval) -> Result<i64, QueryError> {
    let day = date(micros)?;
    let months = Months::new(interval.months.unsigned_abs());
    let day =
        if interval.months < 0 { day.checked_sub_months(months) } else { day.checked_add_months(months) };
    let start = midnight(day.ok_or_else(time_out_of_range)?)?;
    let added =
        i64::from(interval.days).checked_mul(DAY_US).and_then(|days| days.checked_add(interval.micros));
    let rest = added.and_then(|added| added.checked_add(micros.rem_euclid(DAY_US)));
    rest.and_then(|rest| start.checked_add(rest)).ok_or_else(time_out_of_range)
}

/// Computes `interval * factor`. The fraction of months becomes days, the fraction of days becomes a time.
pub(super) fn multiplied(interval: Interval, factor: f64) -> Result<Interval, QueryError> {
    scaled(interval, |part| part * factor)
}

/// `interval / divisor`
pub(super) fn divided(interval: Interval, divisor: f64) -> Result<Interval, QueryError> {
    scaled(interval, |part| part / divisor)
}

/// As PostgreSQL's `interval_mul` and `interval_div` in `timestamp.c`.
fn scaled(interval: Interval, scale: impl Fn(f64) -> f64) -> Result<Interval, QueryError> {
    // Removes floating-point noise below a microsecond.
    let rounded = |seconds: f64| (seconds * 1e6).round_ties_even() / 1e6;
    let whole = |number: f64| {
        let fits = number.trunc() >= f64::from(i32::MIN) && number.trunc() <= f64::from(i32::MAX);
        fits.then(|| number.trunc() as i32).ok_or_else(interval_out_of_range)
    };
    let (months, days) = (scale(interval.months.into()), scale(interval.days.into()));
    let (whole_months, whole_days) = (whole(months)?, whole(days)?);
    let days_of_months = rounded((months - f64::from(whole_months)) * 30.0);
    let rest = days - f64::from(whole_days) + days_of_months - days_of_months.trunc();
    let mut seconds = rounded(rest * DAY_S);
    let mut days = i64::from(whole_days);
    if seconds.abs() >= DAY_S {
        days += (seconds / DAY_S) as i64;
        seconds -= (seconds / DAY_S).trunc() * DAY_S;
    }
    days += days_of_months as i64;
    let micros = (scale(interval.micros as f64) + seconds * 1e6).round_ties_even();
    if micros.is_nan() || micros.abs() >= 9.2e18 {
        return Err(interval_out_of_range());
    }
    let days = i32::try_from(days).map_err(|_| interval_out_of_range())?;
    Ok(Interval { months: whole_months, days, micros: micros as i64 })
}

/// `make_interval`
pub(super) fn interval(parts: &[i64; 6], seconds: f64) -> Result<Interval, QueryError> {
    let [years, months, weeks, days, hours, minutes] = *parts;
    let made = || {
        let months = years.checked_mul(12)?.checked_add(months)?;
        let days = weeks.checked_mul(7)?.checked_add(days)?;
        let micros = hours.checked_mul(HOUR_US)?.checked_add(minutes.checked_mul(60_000_000)?)?;
        let seconds = (seconds * 1e6).round_ties_even();
        let seconds = (seconds.abs() < 9e18).then_some(seconds as i64)?;
        Some(Interval {
            months: months.try_into().ok()?,
            days: days.try_into().ok()?,
            micros: micros.checked_add(seconds)?,
        })
    };
    made().ok_or_else(interval_out_of_range)
}

/// Returns the microseconds since 1970 of a date and a time of day, for `make_timestamp`.
pub(super) fn timestamp(date: [i64; 3], hour: i64, minute: i64, second: f64) -> Result<i64, QueryError> {
    let [year, month, day] = date;
    let wrong = |what: &str, text: String| {
        QueryError::value(crate::error::TIME_OUT_OF_RANGE, format!("{what} field value out of range: {text}"))
    };
    // There is no year 0, and years before 1 count backwards.
    let counted = if year < 0 { year + 1 } else { year };
    let date = (year != 0)
        .then(|| {
            NaiveDate::from_ymd_opt(counted.try_into().ok()?, month.try_into().ok()?, day.try_into().ok()?)
        })
        .flatten()
        .ok_or_else(|| wrong("date", format!("{year}-{month:02}-{day:02}")))?;
    let of_day = time_of_day(hour, minute, second)
        .ok_or_else(|| wrong("time", format!("{hour}:{minute:02}:{second:02}")))?;
    midnight(date)?.checked_add(of_day).ok_or_else(time_out_of_range)
}

/// Returns the microseconds since midnight; `None` if the time does not exist.
pub(super) fn time_of_day(hour: i64, minute: i64, second: f64) -> Option<i64> {
    let fits = (0..=24).contains(&hour) && (0..60).contains(&minute) && (0.0..=60.0).contains(&second);
    let micros = hour * HOUR_US + minute * 60_000_000 + (second * 1e6).round_ties_even() as i64;
    (fits && micros <= DAY_US).then_some(micros)
}

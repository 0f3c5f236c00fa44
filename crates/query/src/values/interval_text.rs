//! Reads the text of an interval as PostgreSQL does: `1 day 02:03`, `1-2`, `P1DT2H`, `3 hours ago`.

use model::Interval;
use model::interval::{DAY_US, HOUR_US};

const MINUTE_US: i64 = 60_000_000;
const SECOND_US: i64 = 1_000_000;

/// Returns the interval; `None` if the text is not one.
pub(crate) fn read(text: &str) -> Option<Interval> {
    let text = text.trim();
    let lower = text.to_ascii_lowercase();
    let read = if text.starts_with('P') { iso_8601(&lower[1..]) } else { words(&lower) };
    read?.interval()
}

/// The sums of the parts read so far.
#[derive(Default, Clone, Copy)]
struct Sums {
    months: i64,
    days: i64,
    micros: i128,
}

impl Sums {
    fn interval(self) -> Option<Interval> {
        let Self { months, days, micros } = self;
        Some(Interval {
            months: months.try_into().ok()?,
            days: days.try_into().ok()?,
            micros: micros.try_into().ok()?,
        })
    }

    fn negated(self) -> Self {
        Self { months: -self.months, days: -self.days, micros: -self.micros }
    }

    /// Adds a number of a unit. The fraction of a unit becomes smaller units: half a month is 15 days.
    fn add(&mut self, number: Number, unit: &str) -> Option<()> {
        let months = match unit {
            "mon" | "mons" | "month" | "months" => 1,
            "y" | "yr" | "yrs" | "year" | "years" => 12,
            "dec" | "decs" | "decade" | "decades" => 120,
            "c" | "cent" | "century" | "centuries" => 1_200,
            "mil" | "mils" | "millennium" | "millennia" => 12_000,
            _ => 0,
        };
        if months > 0 {
            self.months = self.months.checked_add(number.whole.checked_mul(months)?)?;
            if months > 1 {
                self.months += (number.fraction * months as f64).round_ties_even() as i64;
                return Some(());
            }
            return self.add_days(number.fraction * 30.0);
        }
        let days = match unit {
            "d" | "day" | "days" => 1,
            "w" | "week" | "weeks" => 7,
            _ => 0,
        };
        if days > 0 {
            self.days = self.days.checked_add(number.whole.checked_mul(days)?)?;
            return self.add_days(number.fraction * days as f64);
        }
        let micros = match unit {
            "h" | "hr" | "hrs" | "hour" | "hours" => HOUR_US,
            "m" | "min" | "mins" | "minute" | "minutes" => MINUTE_US,
            "s" | "sec" | "secs" | "second" | "seconds" => SECOND_US,
            "ms" | "msec" | "msecs" | "msecond" | "mseconds" | "millisecond" | "milliseconds" => 1_000,
            "us" | "usec" | "usecs" | "usecond" | "useconds" | "microsecond" | "microseconds" => 1,
            _ => return None,
        };
        self.add_micros(number, micros)
    }

    fn add_micros(&mut self, number: Number, micros: i64) -> Option<()> {
        let fraction = (number.fraction * micros as f64).round_ties_even() as i128;
        self.micros += i128::from(number.whole) * i128::from(micros) + fraction;
        Some(())
    }

    /// Adds days with a fraction, which becomes a time.
    fn add_days(&mut self, days: f64) -> Option<()> {
        self.days = self.days.checked_add(days.trunc() as i64)?;
        self.micros += (days.fract() * DAY_US as f64).round_ties_even() as i128;
        Some(())
    }
}

/// A number with a sign.
#[derive(Clone, Copy)]
struct Number {
    whole: i64,
    fraction: f64,
}

impl Number {
    /// Reads `-1.5`, `.5` or `2.`.
    fn read(text: &str) -> Option<Self> {
        let (sign, digits) = sign_of(text);
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let are_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if (whole.is_empty() && fraction.is_empty()) || !are_digits(whole) || !are_digits(fraction) {
            return None;
        }
        let whole: i64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        let fraction: f64 = if fraction.is_empty() { 0.0 } else { format!("0.{fraction}").parse().ok()? };
        Some(Self { whole: whole * sign, fraction: fraction * sign as f64 })
    }
}

fn sign_of(text: &str) -> (i64, &str) {
    match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    }
}

/// Numbers with units, a time of day, and years with months.
fn words(text: &str) -> Option<Sums> {
    let mut words = split(text.strip_prefix('@').unwrap_or(text));
    if words.is_empty() {
        return None;
    }
    let is_ago = words.pop_if(|word| word == "ago").is_some();
    let mut sums = Sums::default();
    let mut index = 0;
    while let Some(word) = words.get(index) {
        index += 1;
        if word.contains(':') {
            sums.micros += time_of_day(word)?;
        } else if let Some(months) = years_and_months(word) {
            sums.months += months;
        } else {
            let number = Number::read(word)?;
            match words.get(index).map(String::as_str) {
                // A number before a time of day counts days, the last one seconds.
                Some(next) if next.contains(':') => sums.add(number, "day")?,
                None => sums.add(number, "second")?,
                Some(unit) => {
                    index += 1;
                    sums.add(number, unit)?;
                }
            }
        }
    }
    Some(if is_ago { sums.negated() } else { sums })
}

/// Splits at blanks, and between a number and its unit.
fn split(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split([' ', '\t', '\n', ',']) {
        let mut rest = word;
        while !rest.is_empty() {
            let is_name = rest.starts_with(|c: char| c.is_ascii_alphabetic());
            let end = rest.find(|c: char| c.is_ascii_alphabetic() != is_name).unwrap_or(rest.len());
            let (first, behind) = rest.split_at(end);
            words.push(first.to_owned());
            rest = behind;
        }
    }
    words
}

/// `[-]HH:MM[:SS[.f]]` in microseconds.
fn time_of_day(word: &str) -> Option<i128> {
    let (sign, clock) = sign_of(word);
    let parts: Vec<&str> = clock.split(':').collect();
    let whole =
        |part: &str| Number::read(part).filter(|number| number.whole >= 0 && !part.starts_with(['+', '-']));
    let (first, second) = (whole(parts.first()?)?, whole(parts.get(1)?)?);
    let third = match parts.as_slice() {
        [_, _] => Number { whole: 0, fraction: 0.0 },
        [_, _, third] => whole(third)?,
        _ => return None,
    };
    if first.fraction != 0.0 || second.whole > 59 || third.whole > 60 {
        return None;
    }
    let mut sums = Sums::default();
    // `12:30.5` has minutes and seconds.
    let units =
        if second.fraction != 0.0 { [MINUTE_US, SECOND_US, 0] } else { [HOUR_US, MINUTE_US, SECOND_US] };
    for (number, micros) in [first, second, third].into_iter().zip(units) {
        sums.add_micros(number, micros)?;
    }
    Some(sums.micros * i128::from(sign))
}

/// `[-]Y-M` in months.
fn years_and_months(word: &str) -> Option<i64> {
    let (sign, rest) = sign_of(word);
    let (years, months) = rest.split_once('-')?;
    let number =
        |part: &str| part.parse::<i64>().ok().filter(|_| part.bytes().all(|byte| byte.is_ascii_digit()));
    let months = number(months).filter(|months| *months < 12)?;
    Some(sign * number(years)?.checked_mul(12)?.checked_add(months)?)
}

/// `1Y2M3DT4H5M6S` after the P, or `0001-02-03T04:05:06`.
fn iso_8601(text: &str) -> Option<Sums> {
    let (date, time) = match text.split_once('t') {
        Some((date, time)) => (date, Some(time).filter(|time| !time.is_empty())),
        None => (text, None),
    };
    let mut sums = Sums::default();
    if let [years, months, days] = date.split('-').collect::<Vec<_>>().as_slice()
        && !years.is_empty()
    {
        for (part, unit) in [(years, "years"), (months, "months"), (days, "days")] {
            sums.add(Number::read(part)?, unit)?;
        }
    } else {
        for pair in split(date).chunks(2) {
            let [number, unit] = pair else { return None };
            let unit = match unit.as_str() {
                "y" => "years",
                "m" => "months",
                "w" => "weeks",
                "d" => "days",
                _ => return None,
            };
            sums.add(Number::read(number)?, unit)?;
        }
    }
    match time {
        Some(clock) if clock.contains(':') => sums.micros += time_of_day(clock)?,
        Some(parts) => {
            for pair in split(parts).chunks(2) {
                let [number, unit] = pair else { return None };
                if !["h", "m", "s"].contains(&unit.as_str()) {
                    return None;
                }
                sums.add(Number::read(number)?, unit)?;
            }
        }
        None if date.is_empty() => return None,
        None => {}
    }
    Some(sums)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The results are those of PostgreSQL 15.
    #[test]
    fn intervals_are_those_of_postgresql() {
        for (text, expected) in [
            ("1 day 2:03:04.5", "1 day 02:03:04.5"),
            ("1 2:03", "1 day 02:03:00"),
            ("-1 day +02:03", "-1 days +02:03:00"),
            ("1-2", "1 year 2 mons"),
            ("-1-2 3 -4:05:06", "-1 years -2 mons +3 days -04:05:06"),
            ("P1Y2M3DT4H5M6.5S", "1 year 2 mons 3 days 04:05:06.5"),
            ("P0001-02-03T04:05:06", "1 year 2 mons 3 days 04:05:06"),
            ("PT36H", "36:00:00"),
            ("P2W", "14 days"),
            ("@ 1 hour ago", "-01:00:00"),
            ("1.5 years", "1 year 6 mons"),
            ("1.5 months", "1 mon 15 days"),
            ("1.01 months", "1 mon 07:12:00"),
            ("1.5 weeks", "10 days 12:00:00"),
            ("1.5 days", "1 day 12:00:00"),
            ("3h20m", "03:20:00"),
            ("5", "00:00:05"),
            ("100 milliseconds", "00:00:00.1"),
            ("2 centuries", "200 years"),
            ("1 day, 2 hours", "1 day 02:00:00"),
        ] {
            let read = read(text).map(|interval| interval.to_string());
            assert_eq!(read.as_deref(), Some(expected), "{text}");
        }
        for text in ["", "x", "1 dog", "1:x", "1:99", "P", "p1d", "1-13"] {
            assert!(read(text).is_none(), "{text}");
        }
    }
}

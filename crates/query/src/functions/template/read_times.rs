//! Reads text as times, as `DCH_from_char` and `do_to_timestamp` of PostgreSQL's `formatting.c` do.

use chrono::{Datelike, NaiveDate, Weekday};

use super::times::{Key, nodes};
use super::{DAYS, Field, MONTHS, Node, ROMAN_MONTHS};
use crate::QueryError;
use crate::error::{INVALID_TIME, TIME_OUT_OF_RANGE};
use model::interval::DAY_US;

/// The largest offset of a time zone in hours.
const ZONE_HOURS_MAX: i64 = 15;

/// The time that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::functions) struct Read {
    /// Days since 1970.
    pub(in crate::functions) days: i64,
    /// Microseconds of the day.
    pub(in crate::functions) micros: i64,
    /// Seconds east of UTC, if the text had them.
    pub(in crate::functions) offset_s: Option<i64>,
}

impl Read {
    /// Microseconds since 1970, in UTC if no offset was given; `None` if they overflow.
    pub(in crate::functions) fn micros_utc(self) -> Option<i64> {
        let offset = self.offset_s.unwrap_or(0) * 1_000_000;
        self.days.checked_mul(DAY_US)?.checked_add(self.micros)?.checked_sub(offset)
    }
}

/// The fields as numbers. Zero means that the field is missing.
#[derive(Default)]
struct Fields {
    uses_iso: Option<bool>,
    hour: i64,
    is_12_hours: bool,
    is_afternoon: Option<bool>,
    minute: i64,
    second: i64,
    seconds_of_day: i64,
    weekday: i64,
    day: i64,
    day_of_year: i64,
    month: i64,
    millis: i64,
    micros: i64,
    year: i64,
    year_digits: u32,
    is_before_christ: Option<bool>,
    week: i64,
    week_of_month: i64,
    century: i64,
    julian: i64,
    zone_sign: i64,
    zone_hour: i64,
    zone_minute: i64,
}

/// The text, and how much of it has been read.
struct Source<'a> {
    rest: &'a str,
    whole: &'a str,
}

/// Reads a text with a template.
pub(in crate::functions) fn read_time(text: &str, template: &str) -> Result<Read, QueryError> {
    let nodes = nodes(template);
    let mut fields = Fields::default();
    let mut source = Source { rest: text, whole: text };
    let (mut is_exact, mut skipped) = (false, 0_i64);
    for (index, node) in nodes.iter().enumerate() {
        if source.rest.is_empty() {
            break;
        }
        if !is_exact && (matches!(node, Node::Field(_)) || index == 0) {
            skipped += source.skip_blanks();
        }
        match node {
            Node::Separator(_) if is_exact => source.skip(),
            Node::Separator(_) => {
                skipped -= 1;
                if source.rest.starts_with(|c: char| c.is_ascii_whitespace() || super::is_separator(c)) {
                    source.skip();
                    skipped += 1;
                }
            }
            Node::Text(_) if !is_exact && skipped > 0 => skipped -= 1,
            Node::Text(_) => source.skip(),
            Node::Field(field) if field.key == Key::Exact => is_exact = true,
            Node::Field(field) => {
                let is_delimited = is_delimited(field, nodes.get(index + 1));
                fields.read(field, is_delimited, &mut source, skipped)?;
                if field.ordinal.is_some() && !field_is_name(field.key) {
                    source.skip();
                    source.skip();
                }
                if !is_exact {
                    skipped = source.skip_blanks();
                }
            }
        }
    }
    fields.finish(text)
}

fn field_is_name(key: Key) -> bool {
    !key.is_digits()
}

/// Whether the digits of a field end before the next field.
fn is_delimited(field: &Field<Key>, next: Option<&Node<Key>>) -> bool {
    field.ordinal.is_some()
        || match next {
            None => true,
            Some(Node::Field(next)) => !next.key.is_digits(),
            Some(Node::Text(c) | Node::Separator(c)) => !c.is_ascii_digit(),
        }
}

impl Source<'_> {
    fn skip_blanks(&mut self) -> i64 {
        let before = self.rest.len();
        self.rest = self.rest.trim_ascii_start();
        (before - self.rest.len()) as i64
    }

    fn skip(&mut self) {
        if let Some(c) = self.rest.chars().next() {
            self.rest = &self.rest[c.len_utf8()..];
        }
    }

    /// Whether the last character that was read is a minus sign.
    fn was_minus(&self) -> bool {
        self.whole[..self.whole.len() - self.rest.len()].ends_with('-')
    }

    /// Reads a number and returns it with its length in characters.
    fn number(
        &mut self,
        field: &Field<Key>,
        digits: usize,
        is_delimited: bool,
    ) -> Result<(i64, usize), QueryError> {
        self.skip_blanks();
        let room = self.rest.chars().take(digits).map(char::len_utf8).sum::<usize>();
        let within = if field.fills || is_delimited { self.rest } else { &self.rest[..room] };
        let sign = usize::from(within.starts_with(['+', '-']));
        let length = within[sign..].bytes().take_while(u8::is_ascii_digit).count();
        let used = if length == 0 { 0 } else { sign + length };
        if !(field.fills || is_delimited) {
            if within.len() < digits {
                let message = format!(
                    "source string too short for \"{}\" formatting field: it requires {digits} characters, but only {} remain",
                    field.name,
                    within.len()
                );
                return Err(wrong(message));
            }
            if used > 0 && used < digits {
                let message = format!(
                    "invalid value \"{within}\" for \"{}\": it requires {digits} characters, but only {used} could be parsed",
                    field.name
                );
                return Err(wrong(message));
            }
        }
        if used == 0 {
            let shown: String = self.rest.chars().take(digits).collect();
            let message = format!("invalid value \"{shown}\" for \"{}\": it must be an integer", field.name);
            return Err(wrong(message));
        }
        let number = within[..used].trim_start_matches('+').parse::<i32>().map_err(|_| {
            let message = format!("value for \"{}\" in source string is out of range", field.name);
            QueryError::value(TIME_OUT_OF_RANGE, message)
        })?;
        self.rest = &self.rest[used..];
        Ok((number.into(), used))
    }

    /// Returns which of the names comes next.
    fn name(&mut self, field: &Field<Key>, names: &[&str]) -> Result<usize, QueryError> {
        let found = names.iter().position(|name| {
            self.rest.get(..name.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(name))
        });
        let Some(index) = found else {
            let shown: String = self.rest.split_ascii_whitespace().next().unwrap_or_default().into();
            let message = format!(
                "invalid value \"{shown}\" for \"{}\": it did not match any of the allowed values for this field",
                field.name
            );
            return Err(wrong(message));
        };
        self.rest = &self.rest[names[index].len()..];
        Ok(index)
    }
}

fn wrong(message: impl Into<String>) -> QueryError {
    QueryError::value(INVALID_TIME, message)
}

/// Sets a field, unless it has another value already.
fn set(target: &mut i64, value: i64, field: &Field<Key>) -> Result<(), QueryError> {
    if *target != 0 && *target != value {
        return Err(wrong(format!("conflicting values for \"{}\" field in formatting string", field.name)));
    }
    *target = value;
    Ok(())
}

/// Returns the year that a year of fewer than four digits means: the one nearest to 2020.
fn near_2020(year: i64) -> i64 {
    match year {
        ..70 => year + 2_000,
        70..100 => year + 1_900,
        100..520 => year + 2_000,
        520..1_000 => year + 1_000,
        _ => year,
    }
}

impl Fields {
    fn read(
        &mut self,
        field: &Field<Key>,
        is_delimited: bool,
        source: &mut Source<'_>,
        skipped: i64,
    ) -> Result<(), QueryError> {
        self.set_calendar(field.key)?;
        let mut number = |digits: usize| source.number(field, digits, is_delimited);
        match field.key {
            Key::Exact => {}
            Key::HalfDay(_, dotted) => {
                let names = if dotted { ["a.m.", "p.m."] } else { ["am", "pm"] };
                let is_afternoon = source.name(field, &names)? == 1;
                set_flag(&mut self.is_afternoon, is_afternoon, field)?;
                self.is_12_hours = true;
            }
            Key::Era(_, dotted) => {
                let names = if dotted { ["a.d.", "b.c."] } else { ["ad", "bc"] };
                let is_before_christ = source.name(field, &names)? == 1;
                set_flag(&mut self.is_before_christ, is_before_christ, field)?;
            }
            Key::Hour12 => {
                set(&mut self.hour, number(2)?.0, field)?;
                self.is_12_hours = true;
            }
            Key::Hour24 => set(&mut self.hour, number(2)?.0, field)?,
            Key::Minute => set(&mut self.minute, number(2)?.0, field)?,
            Key::Second => set(&mut self.second, number(2)?.0, field)?,
            Key::Milliseconds => {
                let (value, used) = number(3)?;
                set(&mut self.millis, value, field)?;
                self.millis *= 10_i64.pow(3_u32.saturating_sub(used as u32));
            }
            Key::Microseconds | Key::Fraction(_) => {
                let digits = if let Key::Fraction(digits) = field.key { digits as usize } else { 6 };
                let (value, used) = number(digits)?;
                set(&mut self.micros, value, field)?;
                self.micros *= 10_i64.pow(6_u32.saturating_sub(used as u32));
            }
            Key::SecondsOfDay => set(&mut self.seconds_of_day, number(field.name.len())?.0, field)?,
            Key::Zone(_) | Key::Offset => {
                let message = format!("formatting field \"{}\" is only supported in to_char", field.name);
                return Err(QueryError::unsupported(message));
            }
            Key::ZoneHour => {
                if source.rest.starts_with(['+', '-', ' ']) {
                    self.zone_sign = if source.rest.starts_with('-') { -1 } else { 1 };
                    source.skip();
                } else {
                    self.zone_sign = if skipped > 0 && source.was_minus() { -1 } else { 1 };
                }
                set(&mut self.zone_hour, source.number(field, 2, is_delimited)?.0, field)?;
            }
            Key::ZoneMinute => {
                if self.zone_sign == 0 {
                    self.zone_sign = 1;
                }
                set(&mut self.zone_minute, number(2)?.0, field)?;
            }
            Key::MonthName(_) => {
                let month = source.name(field, &MONTHS)? as i64 + 1;
                set(&mut self.month, month, field)?;
            }
            Key::MonthShort(_) => {
                let month = source.name(field, &MONTHS.map(|name| &name[..3]))? as i64 + 1;
                set(&mut self.month, month, field)?;
            }
            Key::RomanMonth(_) => {
                // Longer numerals come first: `V` begins `VIII`.
                let mut names = ROMAN_MONTHS;
                names.reverse();
                let mut order: Vec<usize> = (0..12).collect();
                order.sort_by_key(|index| std::cmp::Reverse(names[*index].len()));
                let sorted: Vec<&str> = order.iter().map(|index| names[*index]).collect();
                let month = 12 - order[source.name(field, &sorted)?] as i64;
                set(&mut self.month, month, field)?;
            }
            Key::Month => set(&mut self.month, number(2)?.0, field)?,
            Key::DayName(_) => {
                let day = source.name(field, &DAYS)? as i64 + 1;
                set(&mut self.weekday, day, field)?;
            }
            Key::DayShort(_) => {
                let day = source.name(field, &DAYS.map(|name| &name[..3]))? as i64 + 1;
                set(&mut self.weekday, day, field)?;
            }
            Key::DayOfYear | Key::IsoDayOfYear => set(&mut self.day_of_year, number(3)?.0, field)?,
            Key::DayOfMonth => set(&mut self.day, number(2)?.0, field)?,
            Key::DayOfWeek => set(&mut self.weekday, number(1)?.0, field)?,
            Key::IsoDayOfWeek => {
                // The week begins with Sunday here.
                let day = number(1)?.0 + 1;
                set(&mut self.weekday, if day > 7 { 1 } else { day }, field)?;
            }
            Key::WeekOfYear | Key::IsoWeek => set(&mut self.week, number(2)?.0, field)?,
            // A quarter alone does not determine a date, so it may contradict the month.
            Key::Quarter => {
                number(1)?;
            }
            Key::Century => set(&mut self.century, number(2)?.0, field)?,
            Key::YearWithComma => {
                let (thousands, _) = source.number(field, 5, true)?;
                let Some(rest) = source.rest.strip_prefix(',') else {
                    return Err(wrong("invalid input string for \"Y,YYY\""));
                };
                let length = rest.bytes().take(3).take_while(u8::is_ascii_digit).count();
                let Ok(years) = rest[..length].parse::<i64>() else {
                    return Err(wrong("invalid input string for \"Y,YYY\""));
                };
                source.rest = &rest[length..];
                set(&mut self.year, thousands * 1_000 + years, field)?;
                self.year_digits = 4;
            }
            Key::Year(digits) | Key::IsoYear(digits) => {
                let (year, used) = number(digits as usize)?;
                let year = if digits < 4 && used < 4 { near_2020(year) } else { year };
                set(&mut self.year, year, field)?;
                self.year_digits = digits;
            }
            Key::WeekOfMonth => set(&mut self.week_of_month, number(1)?.0, field)?,
            Key::Julian => set(&mut self.julian, number(1)?.0, field)?,
        }
        Ok(())
    }

    /// Refuses to mix ISO weeks with calendar months.
    fn set_calendar(&mut self, key: Key) -> Result<(), QueryError> {
        let uses_iso = match key {
            Key::IsoYear(_) | Key::IsoWeek | Key::IsoDayOfWeek | Key::IsoDayOfYear => true,
            Key::Century
            | Key::DayOfYear
            | Key::DayOfMonth
            | Key::DayOfWeek
            | Key::Julian
            | Key::Month
            | Key::MonthName(_)
            | Key::MonthShort(_)
            | Key::RomanMonth(_)
            | Key::WeekOfYear
            | Key::WeekOfMonth
            | Key::YearWithComma
            | Key::Year(_) => false,
            _ => return Ok(()),
        };
        if *self.uses_iso.get_or_insert(uses_iso) != uses_iso {
            return Err(wrong(
                "invalid combination of date conventions: \
                 do not mix Gregorian and ISO week date conventions in a formatting template",
            ));
        }
        Ok(())
    }

    fn finish(mut self, text: &str) -> Result<Read, QueryError> {
        let out_of_range = || {
            QueryError::value(TIME_OUT_OF_RANGE, format!("date/time field value out of range: \"{text}\""))
        };
        let of_day = self.time_of_day()?.ok_or_else(out_of_range)?;
        let (year, has_year) = self.year();
        let mut date = (year, 1, 1);
        if self.julian != 0 {
            let of = NaiveDate::from_num_days_from_ce_opt((self.julian - 1_721_425) as i32);
            date = parts(of.ok_or_else(out_of_range)?);
        }
        let uses_iso = self.uses_iso == Some(true);
        if self.week != 0 {
            if uses_iso {
                let weekday = if self.weekday != 0 { (self.weekday + 5) % 7 } else { 0 };
                let monday = iso_monday(date.0, self.week).ok_or_else(out_of_range)?;
                let day = monday.checked_add_signed(chrono::Duration::days(weekday));
                date = parts(day.ok_or_else(out_of_range)?);
            } else {
                self.day_of_year = (self.week - 1) * 7 + 1;
            }
        }
        if self.week_of_month != 0 {
            self.day = (self.week_of_month - 1) * 7 + 1;
        }
        if self.day != 0 {
            date.2 = self.day;
        }
        if self.month != 0 {
            date.1 = self.month;
        }
        if self.day_of_year != 0 && (date.1 <= 1 || date.2 <= 1) {
            if !has_year && self.is_before_christ.is_none() && self.julian == 0 {
                return Err(wrong("cannot calculate day of year without year information"));
            }
            let first =
                if uses_iso { iso_monday(date.0, 1) } else { NaiveDate::from_ymd_opt(date.0 as i32, 1, 1) };
            let day = first
                .and_then(|first| first.checked_add_signed(chrono::Duration::days(self.day_of_year - 1)))
                .filter(|day| uses_iso || i64::from(day.year()) == date.0)
                .ok_or_else(out_of_range)?;
            let of_year = parts(day);
            if uses_iso {
                date = of_year;
            } else {
                date.1 = if date.1 <= 1 { of_year.1 } else { date.1 };
                date.2 = if date.2 <= 1 { of_year.2 } else { date.2 };
            }
        }
        let day = u32::try_from(date.1)
            .ok()
            .zip(u32::try_from(date.2).ok())
            .and_then(|(month, day)| NaiveDate::from_ymd_opt(i32::try_from(date.0).ok()?, month, day))
            .ok_or_else(out_of_range)?;
        let offset_s = match self.zone_sign {
            0 => None,
            _ if !(0..=ZONE_HOURS_MAX).contains(&self.zone_hour) || !(0..60).contains(&self.zone_minute) => {
                return Err(out_of_range());
            }
            sign => Some(sign * (self.zone_hour * 60 + self.zone_minute) * 60),
        };
        let days = i64::from(day.num_days_from_ce()) - 719_163;
        Ok(Read { days, micros: of_day, offset_s })
    }

    /// Returns `None` if a part is too large.
    fn time_of_day(&mut self) -> Result<Option<i64>, QueryError> {
        let (mut hour, mut minute, mut second) = (0, 0, 0);
        if self.seconds_of_day != 0 {
            let seconds = self.seconds_of_day;
            (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
        }
        if self.second != 0 {
            second = self.second;
        }
        if self.minute != 0 {
            minute = self.minute;
        }
        if self.hour != 0 {
            hour = self.hour;
        }
        if self.is_12_hours {
            if !(1..=12).contains(&hour) {
                let message = format!(
                    "hour \"{hour}\" is invalid for the 12-hour clock: \
                     use the 24-hour clock, or give an hour between 1 and 12"
                );
                return Err(wrong(message));
            }
            let is_afternoon = self.is_afternoon == Some(true);
            if is_afternoon && hour < 12 {
                hour += 12;
            } else if !is_afternoon && hour == 12 {
                hour = 0;
            }
        }
        let fraction = self.millis * 1_000 + self.micros;
        let fits = (0..24).contains(&hour)
            && (0..60).contains(&minute)
            && (0..60).contains(&second)
            && (0..=1_000_000).contains(&fraction);
        Ok(fits.then_some(((hour * 60 + minute) * 60 + second) * 1_000_000 + fraction))
    }

    /// Returns the year, and whether one was given.
    fn year(&self) -> (i64, bool) {
        let is_before_christ = self.is_before_christ == Some(true);
        let century = if is_before_christ { -self.century } else { self.century };
        if self.year == 0 {
            return match century {
                0 => (0, false),
                1.. => ((century - 1) * 100 + 1, true),
                _ => (century * 100 + 1, true),
            };
        }
        if self.century != 0 && self.year_digits <= 2 {
            let of_century = self.year % 100;
            let year = match (of_century, century >= 0) {
                (0, true) => century * 100,
                (0, false) => century * 100 + 1,
                (_, true) => of_century + (century - 1) * 100,
                (_, false) => (century + 1) * 100 - of_century + 1,
            };
            return (year, true);
        }
        let year = if is_before_christ { -self.year } else { self.year };
        (if year < 0 { year + 1 } else { year }, true)
    }
}

fn set_flag(target: &mut Option<bool>, value: bool, field: &Field<Key>) -> Result<(), QueryError> {
    let mut known = target.map_or(0, i64::from);
    set(&mut known, i64::from(value), field)?;
    *target = Some(value);
    Ok(())
}

fn parts(date: NaiveDate) -> (i64, i64, i64) {
    (date.year().into(), date.month().into(), date.day().into())
}

/// Returns the Monday of a week, which may be the one after the last week of the year.
fn iso_monday(year: i64, week: i64) -> Option<NaiveDate> {
    let first = NaiveDate::from_isoywd_opt(i32::try_from(year).ok()?, 1, Weekday::Mon)?;
    first.checked_add_signed(chrono::Duration::try_days((week - 1) * 7)?)
}

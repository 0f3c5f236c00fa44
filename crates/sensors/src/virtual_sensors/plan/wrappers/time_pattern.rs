//! Patterns of times, such as `dd/MM/yyyy HH:mm:ss`, with the letters of Joda-Time that GSN uses.

use chrono::{NaiveDate, NaiveDateTime};

use super::time_zone::{TimeZone, offset};

/// A pattern that has been read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimePattern {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Number { field: Field, letters: usize, is_adjacent: bool },
    MonthName,
    DayName,
    HalfDay,
    Offset,
    Text(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Year,
    Month,
    Day,
    DayOfYear,
    Hour,
    /// 1 to 24.
    HourFromOne,
    /// 0 to 11.
    HalfHour,
    /// 1 to 12.
    HalfHourFromOne,
    Minute,
    Second,
    Fraction,
}

/// Two digits of a year are in 1970 to 2069.
const FIRST_SHORT_YEAR: i64 = 70;
/// Most digits of a number that is not next to another one.
const DIGITS_MAX: usize = 9;
const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const FULL_MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

impl TimePattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// Names the letter that has no meaning here.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts: Vec<Part> = Vec::new();
        let mut left = text.chars().peekable();
        while let Some(letter) = left.next() {
            if letter == '\'' {
                let mut quoted: String = left.by_ref().take_while(|c| *c != '\'').collect();
                if quoted.is_empty() {
                    quoted.push('\'');
                }
                push_text(&mut parts, &quoted);
            } else if letter.is_ascii_alphabetic() {
                let mut letters = 1;
                while left.next_if_eq(&letter).is_some() {
                    letters += 1;
                }
                let part = part(letter, letters).ok_or_else(|| {
                    format!("{letter:?} has no meaning in the pattern {text:?}; letters are y M d D H k K h m s S a E Z")
                })?;
                if let (Part::Number { .. }, Some(Part::Number { is_adjacent, .. })) =
                    (&part, parts.last_mut())
                {
                    *is_adjacent = true;
                }
                parts.push(part);
            } else {
                push_text(&mut parts, letter.encode_utf8(&mut [0; 4]));
            }
        }
        // The last of several numbers without a sign between them has as many digits as letters, too.
        for at in 1..parts.len() {
            let follows = matches!(parts[at - 1], Part::Number { is_adjacent: true, .. });
            if let (true, Part::Number { is_adjacent, .. }) = (follows, &mut parts[at]) {
                *is_adjacent = true;
            }
        }
        Ok(Self { parts })
    }

    /// The milliseconds since 1970 of a text, in a zone unless the text says another one. `None` if it does not fit the pattern.
    pub fn millis(&self, text: &str, zone: TimeZone) -> Option<i64> {
        let mut read = Read { left: text.trim(), ..Read::default() };
        self.parts.iter().try_for_each(|part| read.part(part))?;
        if !read.left.is_empty() {
            return None;
        }
        let local = read.local()?;
        match read.offset {
            Some(offset) => TimeZone::Fixed(offset).millis(local),
            None => zone.millis(local),
        }
    }
}

fn push_text(parts: &mut Vec<Part>, more: &str) {
    match parts.last_mut() {
        Some(Part::Text(text)) => text.push_str(more),
        _ => parts.push(Part::Text(more.to_owned())),
    }
}

fn part(letter: char, letters: usize) -> Option<Part> {
    let field = match letter {
        'y' | 'Y' | 'x' => Field::Year,
        'M' if letters > 2 => return Some(Part::MonthName),
        'M' => Field::Month,
        'd' => Field::Day,
        'D' => Field::DayOfYear,
        'H' => Field::Hour,
        'k' => Field::HourFromOne,
        'K' => Field::HalfHour,
        'h' => Field::HalfHourFromOne,
        'm' => Field::Minute,
        's' => Field::Second,
        'S' => Field::Fraction,
        'a' => return Some(Part::HalfDay),
        'E' => return Some(Part::DayName),
        'Z' => return Some(Part::Offset),
        _ => return None,
    };
    Some(Part::Number { field, letters, is_adjacent: false })
}

/// What has been read of a text.
#[derive(Default)]
struct Read<'t> {
    left: &'t str,
    year: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
    hour: i64,
    half_hour: Option<i64>,
    is_afternoon: bool,
    minute: i64,
    second: i64,
    millis: i64,
    offset: Option<chrono::FixedOffset>,
}

impl<'t> Read<'t> {
    fn part(&mut self, part: &Part) -> Option<()> {
        match part {
            Part::Text(text) => self.left = self.left.strip_prefix(text.as_str())?,
            Part::Number { field, letters, is_adjacent } => {
                let digits_max = if *is_adjacent { *letters } else { DIGITS_MAX };
                let digits = self.digits(digits_max)?;
                self.number(*field, *letters, digits)?;
            }
            Part::MonthName => {
                let word = self.word()?.to_lowercase();
                let at = MONTHS
                    .iter()
                    .zip(FULL_MONTHS)
                    .position(|(short, full)| word == *short || word == full)?;
                self.month = i64::try_from(at + 1).ok();
            }
            // The date says the day already.
            Part::DayName => {
                self.word()?;
            }
            Part::HalfDay => match self.word()?.to_lowercase().as_str() {
                "am" => self.is_afternoon = false,
                "pm" => self.is_afternoon = true,
                _ => return None,
            },
            Part::Offset => {
                let sign = |c: char| c == '+' || c == '-';
                let end = self.left.find(|c: char| !(sign(c) || c == ':' || c == 'Z' || c.is_ascii_digit()));
                let (text, left) = self.left.split_at(end.unwrap_or(self.left.len()));
                self.offset = Some(offset(text)?);
                self.left = left;
            }
        }
        Some(())
    }

    fn number(&mut self, field: Field, letters: usize, digits: &str) -> Option<()> {
        let number: i64 = digits.parse().ok()?;
        match field {
            Field::Year if letters == 2 && digits.len() == 2 => {
                self.year = Some(if number < FIRST_SHORT_YEAR { 2000 + number } else { 1900 + number });
            }
            Field::Year => self.year = Some(number),
            Field::Month => self.month = Some(number),
            Field::Day => self.day = Some(number),
            Field::DayOfYear => self.day_of_year = Some(number),
            Field::Hour => self.hour = number,
            Field::HourFromOne => self.hour = if number == 24 { 0 } else { number },
            Field::HalfHour => self.half_hour = Some((number < 12).then_some(number)?),
            Field::HalfHourFromOne => {
                self.half_hour = Some((1..=12).contains(&number).then_some(number % 12)?)
            }
            Field::Minute => self.minute = number,
            Field::Second => self.second = number,
            Field::Fraction => {
                let millis: String = digits.chars().chain("000".chars()).take(3).collect();
                self.millis = millis.parse().ok()?;
            }
        }
        Some(())
    }

    fn digits(&mut self, most: usize) -> Option<&'t str> {
        let length = self.left.bytes().take(most).take_while(u8::is_ascii_digit).count();
        let (digits, left) = self.left.split_at(length);
        self.left = left;
        (length > 0).then_some(digits)
    }

    fn word(&mut self) -> Option<&'t str> {
        let end = self.left.find(|c: char| !c.is_alphabetic()).unwrap_or(self.left.len());
        let (word, left) = self.left.split_at(end);
        self.left = left;
        (end > 0).then_some(word)
    }

    fn local(&self) -> Option<NaiveDateTime> {
        let small = |number: i64| u32::try_from(number).ok();
        let year = i32::try_from(self.year.unwrap_or(1970)).ok()?;
        let date = match self.day_of_year {
            Some(day) => NaiveDate::from_yo_opt(year, small(day)?)?,
            None => {
                NaiveDate::from_ymd_opt(year, small(self.month.unwrap_or(1))?, small(self.day.unwrap_or(1))?)?
            }
        };
        let hour = self.half_hour.map_or(self.hour, |hour| hour + if self.is_afternoon { 12 } else { 0 });
        date.and_hms_milli_opt(small(hour)?, small(self.minute)?, small(self.second)?, small(self.millis)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn iso(pattern: &str, text: &str) -> Option<String> {
        let millis = TimePattern::parse(pattern).expect("a pattern").millis(text, TimeZone::UTC)?;
        Some(chrono::DateTime::from_timestamp_millis(millis)?.to_rfc3339())
    }

    #[test]
    fn patterns_of_gsn_are_read() {
        let read = [
            ("d.M.y k:m", "7.3.2009 24:05", "2009-03-07T00:05:00+00:00"),
            ("dd/MM/yyyy HH:mm:ss", "27/11/2026 20:15:30", "2026-11-27T20:15:30+00:00"),
            ("yyyyMMddHHmmss", "20261127201530", "2026-11-27T20:15:30+00:00"),
            ("yyyy-MM-dd'T'HH:mm:ss.SSSZ", "2026-11-27T20:15:30.250+01:00", "2026-11-27T19:15:30.250+00:00"),
            ("dd-MMM-yy hh:mm a", "05-Feb-98 12:30 PM", "1998-02-05T12:30:00+00:00"),
            ("E, d MMMM yyyy K:m a", "Fri, 27 November 2026 8:05 pm", "2026-11-27T20:05:00+00:00"),
            ("yyyy D HHmm", "2008 60 0930", "2008-02-29T09:30:00+00:00"),
            ("yy", "69", "2069-01-01T00:00:00+00:00"),
            ("y ''Z''", "2000 '+0000'", "2000-01-01T00:00:00+00:00"),
        ];
        for (pattern, text, expected) in read {
            assert_eq!(iso(pattern, text).as_deref(), Some(expected), "{pattern} {text}");
        }
    }

    #[test]
    fn a_text_that_does_not_fit_has_no_time() {
        let bad = [
            ("d.M.y", "31.2.2009"),
            ("d.M.y", "1.2.2009 x"),
            ("HH:mm", "25:00"),
            ("d.M.y", "1/2/2009"),
            ("d.M.y", "1.2"),
            ("MMM", "Foo"),
            ("h a", "13 am"),
            ("", "1"),
        ];
        for (pattern, text) in bad {
            assert_eq!(iso(pattern, text), None, "{pattern} {text}");
        }
        assert!(TimePattern::parse("Q").unwrap_err().contains("letters are"));
    }
}

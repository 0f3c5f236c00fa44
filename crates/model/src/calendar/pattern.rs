//! Times in the form of a pattern, in the manner of `strptime`.
//!
//! A directive is `%`, then perhaps a flag (`_`, `0`, `-`, `^` or `#`), a width, colons, and a letter. Blanks of the pattern, and blanks
//! before a number, accept any number of blanks.

use chrono::Weekday;

use super::iso::{YEAR_MAX, zone_name};
use super::moment::Moment;
use super::offset::{Colons, OffsetForm, Part};
use super::parts::{Parts, PatternTime};
use super::scanner::Scanner;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const WEEKDAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
/// The days of `%w` from 0 on; for `%u` Sunday is 7.
const WEEK: [Weekday; 7] =
    [Weekday::Sun, Weekday::Mon, Weekday::Tue, Weekday::Wed, Weekday::Thu, Weekday::Fri, Weekday::Sat];
/// The letters of an abbreviated name.
const ABBREVIATION: usize = 3;
/// Years of two digits up to this one are of this century.
const LAST_YEAR_OF_2000: i32 = 68;

/// Between `%` and the letter.
#[derive(Debug, Clone, Copy, Default)]
struct Extension {
    /// Whether the flag rules out leading zeros, so that the width has no effect.
    is_unpadded: Option<bool>,
    width: Option<u8>,
    colons: usize,
}

/// Reads a time in the form of a pattern.
///
/// # Errors
/// The pattern is wrong, the text does not fit it, or its parts make no time.
pub fn parse_pattern(pattern: &str, text: &str) -> Result<PatternTime, String> {
    let mut reader = Reader { text: Scanner(text.as_bytes()), parts: Parts::default() };
    reader.read(pattern.as_bytes())?;
    if !reader.text.is_empty() {
        return Err(format!("{:?} remains", String::from_utf8_lossy(reader.text.0)));
    }
    reader.parts.time()
}

struct Reader<'a> {
    text: Scanner<'a>,
    parts: Parts,
}

impl Reader<'_> {
    fn read(&mut self, pattern: &[u8]) -> Result<(), String> {
        let mut pattern = Scanner(pattern);
        while let Some(byte) = pattern.eat_if(|_| true) {
            match byte {
                b'%' => self.directive(&mut pattern)?,
                blank if blank.is_ascii_whitespace() => self.blanks(),
                literal if self.text.eat(literal) => {}
                literal => return Err(format!("{:?} is missing", char::from(literal))),
            }
        }
        Ok(())
    }

    fn directive(&mut self, pattern: &mut Scanner<'_>) -> Result<(), String> {
        let unfinished = || "the pattern ends within a directive".to_owned();
        let is_dot = pattern.peek().ok_or_else(unfinished)? == b'.';
        if self.text.is_empty() && !is_dot {
            return Err("the text ends before the pattern".to_owned());
        }
        let extension = Extension::read(pattern).ok_or_else(unfinished)?;
        let letter = pattern.eat_if(|_| true).ok_or_else(unfinished)?;
        if letter == b'.' {
            Extension::width(pattern).ok_or_else(unfinished)?;
            return match pattern.eat_if(|_| true).ok_or_else(unfinished)? {
                b'f' if !self.text.eat(b'.') => Ok(()),
                b'f' => self.fraction().ok_or_else(|| "digits after the point are missing".to_owned()),
                other => Err(format!("%.{} is not a directive", char::from(other))),
            };
        }
        let shortcut: &[u8] = match letter {
            b'D' => b"%m/%d/%y",
            b'F' => b"%Y-%m-%d",
            b'R' => b"%H:%M",
            b'T' => b"%H:%M:%S",
            _ => b"",
        };
        if !shortcut.is_empty() {
            return self.read(shortcut);
        }
        let name = char::from(letter);
        let read = match letter {
            b'A' | b'a' | b'B' | b'b' | b'h' | b'P' | b'p' => self.name(letter),
            b'C' | b'G' | b'g' | b'Y' | b'y' => self.year(letter, extension),
            b'z' | b'Q' => self.offset(letter, extension.colons),
            b'f' | b'N' => self.fraction(),
            b's' => self.timestamp(extension),
            b'%' => self.text.eat(b'%').then_some(()),
            b'n' | b't' => {
                self.blanks();
                Some(())
            }
            b'H' | b'I' | b'k' | b'l' | b'M' | b'S' => self.clock(letter, extension),
            b'd' | b'e' | b'j' | b'm' | b'U' | b'u' | b'V' | b'W' | b'w' => self.day(letter, extension),
            b'c' | b'r' | b'X' | b'x' | b'Z' => return Err(format!("%{name} cannot be read")),
            _ => return Err(format!("%{name} is not a directive")),
        };
        read.ok_or_else(|| format!("%{name} does not fit"))
    }

    fn blanks(&mut self) {
        self.text.skip(|byte| byte.is_ascii_whitespace());
    }

    /// Reads a number. The usual number of digits is its largest one, unless the extension has a larger width.
    fn number(&mut self, extension: Extension, digits: u8, is_unpadded: bool) -> Option<i64> {
        self.blanks();
        let is_unpadded = extension.is_unpadded.unwrap_or(is_unpadded);
        let width = extension.width.filter(|_| !is_unpadded).unwrap_or(0);
        i64::try_from(self.text.number(digits.max(width).into())?).ok()
    }

    /// Reads a number of two digits, usually, between the bounds.
    fn within(&mut self, extension: Extension, digits: u8, min: i64, max: i64) -> Option<u32> {
        let number = self.number(extension, digits, digits == 1)?;
        u32::try_from(number).ok().filter(|_| (min..=max).contains(&number))
    }

    fn day(&mut self, letter: u8, extension: Extension) -> Option<()> {
        let (digits, min, max) = match letter {
            b'd' | b'e' => (2, 1, 31),
            b'j' => (3, 1, 366),
            b'm' => (2, 1, 12),
            b'u' => (1, 1, 7),
            b'V' => (2, 1, 53),
            b'w' => (1, 0, 6),
            _ => (2, 0, 53),
        };
        let number = self.within(extension, digits, min, max)?;
        let parts = &mut self.parts;
        match letter {
            b'd' | b'e' => parts.day = Some(number),
            b'j' => parts.day_of_year = Some(number),
            b'm' => parts.month = Some(number),
            b'u' | b'w' => parts.weekday = Some(WEEK[number as usize % 7]),
            b'U' => parts.week_from_sunday = Some(number),
            b'V' => parts.week = Some(number),
            _ => parts.week_from_monday = Some(number),
        }
        Some(())
    }

    fn clock(&mut self, letter: u8, extension: Extension) -> Option<()> {
        let (min, max) = match letter {
            b'H' | b'k' => (0, 23),
            b'I' | b'l' => (1, 12),
            b'M' => (0, 59),
            _ => (0, 60),
        };
        let number = self.within(extension, 2, min, max)?;
        match letter {
            b'M' => self.parts.minute = Some(number),
            // The second 60 is a leap second.
            b'S' => self.parts.second = Some(number.min(59)),
            _ => self.parts.set_hour(number),
        }
        Some(())
    }

    fn year(&mut self, letter: u8, extension: Extension) -> Option<()> {
        let has_sign = matches!(letter, b'C' | b'G' | b'Y');
        let is_negative = if has_sign { self.text.sign().unwrap_or(false) } else { false };
        let (digits, max) = if matches!(letter, b'G' | b'Y') { (4, YEAR_MAX as i64) } else { (2, 99) };
        let number = self.number(extension, digits, letter == b'C')?;
        let number = i32::try_from(number).ok().filter(|_| number <= max)?;
        let year = match letter {
            b'C' => number * 100,
            b'y' | b'g' if number <= LAST_YEAR_OF_2000 => 2_000 + number,
            b'y' | b'g' => 1_900 + number,
            _ => number,
        };
        let year = Some(if is_negative { -year } else { year });
        match letter {
            b'G' | b'g' => self.parts.week_year = year,
            _ => self.parts.year = year,
        }
        Some(())
    }

    fn timestamp(&mut self, extension: Extension) -> Option<()> {
        let is_negative = self.text.sign().unwrap_or(false);
        // The digits of `i64::MAX`.
        let seconds = self.number(extension, 19, true)?;
        self.parts.moment = Some(Moment::from_seconds(if is_negative { -seconds } else { seconds })?);
        Some(())
    }

    fn fraction(&mut self) -> Option<()> {
        self.parts.billionths = Some(self.text.billionths()?);
        Some(())
    }

    /// Reads an offset. `%Q` also accepts the name of a zone, which has no effect.
    fn offset(&mut self, letter: u8, colons: usize) -> Option<()> {
        if letter == b'Q' && colons <= 1 && !matches!(self.text.peek(), Some(b'+' | b'-')) {
            return zone_name(&mut self.text);
        }
        let (required, colons) = match (colons, letter) {
            (0, _) => (Part::Minutes, Colons::Absent),
            (1, _) => (Part::Minutes, Colons::Required),
            (2, b'z') => (Part::Seconds, Colons::Required),
            (_, b'z') => (Part::Hours, Colons::Required),
            _ => return None,
        };
        let form = OffsetForm { colons, required, last: Part::Seconds, has_fraction: false };
        self.parts.offset_s = Some(form.read(&mut self.text)?);
        Some(())
    }

    fn name(&mut self, letter: u8) -> Option<()> {
        let parts = &mut self.parts;
        match letter {
            b'A' => parts.weekday = Weekday::try_from(self.text.name(&WEEKDAYS, usize::MAX)? as u8).ok(),
            b'a' => parts.weekday = Weekday::try_from(self.text.name(&WEEKDAYS, ABBREVIATION)? as u8).ok(),
            b'B' => parts.month = Some(self.text.name(&MONTHS, usize::MAX)? as u32 + 1),
            b'b' | b'h' => parts.month = Some(self.text.name(&MONTHS, ABBREVIATION)? as u32 + 1),
            _ => parts.set_afternoon(self.text.name(&["am", "pm"], usize::MAX)? == 1),
        }
        Some(())
    }
}

impl Extension {
    /// Reads what is between `%` and the letter. `None` if the pattern ends there.
    fn read(pattern: &mut Scanner<'_>) -> Option<Self> {
        let is_unpadded = pattern
            .eat_if(|byte| matches!(byte, b'_' | b'0' | b'-' | b'^' | b'#'))
            .map(|flag| matches!(flag, b'_' | b'-'));
        let width = Self::width(pattern)?;
        let mut colons = 0;
        while colons < 3 && pattern.eat(b':') {
            colons += 1;
        }
        Some(Self { is_unpadded, width, colons })
    }

    /// Reads a width. The outer `None` is one that is too large.
    fn width(pattern: &mut Scanner<'_>) -> Option<Option<u8>> {
        if !pattern.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            return Some(None);
        }
        let width = pattern.number(usize::MAX)?;
        u8::try_from(width).ok().map(Some)
    }
}

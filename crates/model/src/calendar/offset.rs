//! Offsets from UTC.

use super::scanner::Scanner;

/// Whether colons separate the parts of an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Colons {
    /// As the text has it after the hours.
    Optional,
    Required,
    Absent,
}

/// The last part that an offset must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    Hours,
    Minutes,
    Seconds,
}

/// The form of an offset.
#[derive(Debug, Clone, Copy)]
pub(super) struct OffsetForm {
    pub(super) colons: Colons,
    pub(super) required: Part,
    /// The last part that an offset may have.
    pub(super) last: Part,
    /// Whether seconds may have a fraction.
    pub(super) has_fraction: bool,
}

/// The offsets of ISO 8601.
pub(super) const ISO: OffsetForm =
    OffsetForm { colons: Colons::Optional, required: Part::Hours, last: Part::Seconds, has_fraction: true };

impl OffsetForm {
    /// Reads `+02:00` and the like, in seconds east of UTC. Half a second and more is a second.
    pub(super) fn read(self, text: &mut Scanner<'_>) -> Option<i32> {
        let is_negative = text.sign()?;
        let seconds = self.read_parts(text)? as i32;
        Some(if is_negative { -seconds } else { seconds })
    }

    fn read_parts(self, text: &mut Scanner<'_>) -> Option<u32> {
        let mut seconds = text.two(0, 25)? * 3_600;
        let has_colons = match self.colons {
            Colons::Optional => text.peek() == Some(b':'),
            Colons::Required if text.peek().is_none_or(|byte| byte == b':') => true,
            Colons::Absent if text.peek() != Some(b':') => false,
            _ => return None,
        };
        for (part, unit) in [(Part::Minutes, 60), (Part::Seconds, 1)] {
            if self.last < part {
                return Some(seconds);
            }
            let has_part = if has_colons { text.eat(b':') } else { text.has_two_digits() };
            if !has_part {
                return (self.required < part).then_some(seconds);
            }
            seconds += text.two(0, 59)? * unit;
        }
        match text.fraction()? {
            Some(_) if !self.has_fraction => None,
            Some(billionths) => Some(seconds + u32::from(billionths >= 500_000_000)),
            None => Some(seconds),
        }
    }
}

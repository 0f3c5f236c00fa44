//! The offsets of local times in a time zone.

use chrono::{MappedLocalTime, NaiveDateTime, Offset as _, TimeDelta, TimeZone};

/// The offsets from UTC at a local time, in seconds east of UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LocalOffsets {
    /// The local time occurs once.
    Once(i32),
    /// Clocks are put back over it: the offset when it occurs first, and the one when it occurs again.
    Twice(i32, i32),
    /// Clocks are put forward over it: the offset before the change, and the one after it.
    Never(i32, i32),
}

impl LocalOffsets {
    /// The offset when the local time occurs first. A skipped time is read as if clocks had not been put forward.
    pub fn first(self) -> i32 {
        match self {
            Self::Once(offset) | Self::Twice(offset, _) | Self::Never(offset, _) => offset,
        }
    }

    /// The offset when the local time occurs last. A skipped time is read as if clocks had not been put forward.
    pub fn last(self) -> i32 {
        match self {
            Self::Once(offset) | Self::Twice(_, offset) | Self::Never(offset, _) => offset,
        }
    }
}

/// The offsets of a zone at a local time; `None` at the ends of chrono's calendar.
pub fn local_offsets<Z: TimeZone>(zone: &Z, local: NaiveDateTime) -> Option<LocalOffsets> {
    let seconds = |offset: &Z::Offset| offset.fix().local_minus_utc();
    // Clocks do not change twice in two days.
    let near = |days| {
        let near = local.checked_add_signed(TimeDelta::days(days))?;
        Some(seconds(&zone.offset_from_utc_datetime(&near)))
    };
    Some(match zone.offset_from_local_datetime(&local) {
        MappedLocalTime::Single(only) => LocalOffsets::Once(seconds(&only)),
        MappedLocalTime::Ambiguous(first, second) => LocalOffsets::Twice(seconds(&first), seconds(&second)),
        MappedLocalTime::None => LocalOffsets::Never(near(-1)?, near(1)?),
    })
}

//! Times of the calendar as text, and local times of a time zone.
//!
//! [`Moment`] is a time between the years -9999 and 9999. Its text is RFC 3339, and it reads the larger grammar of ISO 8601 and
//! RFC 9557. [`parse_pattern`] reads times in the form of a pattern such as `%d.%m.%Y %H:%M:%S`. [`parse_local`] reads a local time,
//! which has no offset from UTC; [`local_offsets`] has the offsets that a zone has at a local time.
//!
//! No other module uses jiff, which reads and writes the texts (`docs/adr/0027-times.md`). Local times are of chrono, as the zones are.

mod moment;
mod read;
mod zone;

pub use moment::{Moment, NotATime, exact_of_micros, seconds_of_micros, seconds_of_millis};
pub use read::{PatternTime, parse_duration, parse_local, parse_pattern};
pub use zone::{LocalOffsets, local_offsets};

#[cfg(test)]
mod tests;

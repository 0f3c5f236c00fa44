//! Text writers for numbers and times in long answers.

mod millis;
mod number;
mod utc_time;

pub(crate) use millis::TimeText;
pub(crate) use number::{F64_BYTES_MAX, pair, write_f64, write_few_digits};
pub(crate) use utc_time::UtcText;

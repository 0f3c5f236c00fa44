//! Text writers for numbers and times in long answers.

mod millis;
mod number;
mod utc_time;

pub(crate) use millis::TimeText;
pub(crate) use number::{F64_BYTES_MAX, I64_BYTES_MAX, pair, write_f64, write_few_digits, write_i64};
pub(crate) use utc_time::{UtcText, date_digits};

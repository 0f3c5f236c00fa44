//! Times and phrases in findings.

use model::Timestamp;

use crate::part::PartInfo;

/// The remedy for a damaged part.
pub(super) const REPLACE_PART: &str = "Stop the server and put this file there from a backup that has it: parts never change, so the copy is good if \
     its name, length and checksum are (`tacho check` says so). Without a backup the rows of the damaged places are lost.";

/// The remedy for a damaged file without which the store does not open.
pub(super) const RESTORE: &str = "Restore the newest backup into a new directory (`tacho restore`), and keep this directory: its parts are still \
     readable one by one as Parquet.";

/// A time in UTC, to the second.
pub(super) fn time(micros: i64) -> String {
    let second = micros.div_euclid(1_000_000).rem_euclid(86_400);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{}T{hour:02}:{minute:02}:{second:02}Z", day(micros))
}

/// The day of a time, UTC.
pub(super) fn day(micros: i64) -> String {
    Timestamp::from_micros(micros).date().to_string()
}

/// A text about the tables of a part. `first` is the name of the first one.
pub(super) fn tables_of(info: &PartInfo, first: &str) -> String {
    match info.members().count() {
        0 | 1 => format!("table {first:?}"),
        count => format!("{count} tables from {first:?} on"),
    }
}

/// A text about the rows of a part.
pub(super) fn rows_of(info: &PartInfo, table: &str) -> String {
    format!(
        "{} rows of {} from {} to {}, series {} to {}",
        info.rows,
        match info.members().count() {
            0 | 1 => format!("the {}", tables_of(info, table)),
            _ => tables_of(info, table),
        },
        time(info.ts.0),
        time(info.ts.1),
        info.series.0,
        info.series.1
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        assert_eq!(time(0), "1970-01-01T00:00:00Z");
        assert_eq!(time(-1), "1969-12-31T23:59:59Z");
        assert_eq!(time(951_782_400_000_000 + 3_661_000_000), "2000-02-29T01:01:01Z");
        assert_eq!(time(1_735_689_599_999_999), "2024-12-31T23:59:59Z");
        assert_eq!(day(4_107_542_400_000_000), "2100-03-01");
        assert!(time(i64::MIN).starts_with('-') && time(i64::MAX).len() > 20);
    }
}

//! Writes times as RFC 3339 text, for answers with a million of them.

use model::{Date, Timestamp};

use super::number::pair;

const DAY_US: i64 = 86_400_000_000;
/// `YYYY-MM-DDTHH:MM:SS.ffffffZ`
const BYTES: usize = 27;
const DATE: usize = 10;

/// Writes times as RFC 3339 with microseconds in UTC. It keeps the text of the last time, because most times are of the
/// same day.
pub(crate) struct UtcText {
    text: [u8; BYTES],
    day: i64,
}

impl UtcText {
    pub(crate) fn new() -> Self {
        Self { text: *b"1970-01-01T00:00:00.000000Z", day: 0 }
    }

    /// Appends a time. For years before 0001 or after 9999 it appends nothing and returns `false`.
    pub(crate) fn write(&mut self, micros: i64, out: &mut Vec<u8>) -> bool {
        let (day, of_day) = (micros.div_euclid(DAY_US), micros.rem_euclid(DAY_US) as u64);
        if day != self.day {
            let Some([y, z, m, d]) = date_digits(Timestamp::from_micros(micros)) else { return false };
            self.day = day;
            self.text[..DATE].copy_from_slice(&[y[0], y[1], z[0], z[1], b'-', m[0], m[1], b'-', d[0], d[1]]);
        }
        let (seconds, micros) = ((of_day / 1_000_000) as u32, (of_day % 1_000_000) as u32);
        let pairs = [
            (11, seconds / 3_600),
            (14, seconds / 60 % 60),
            (17, seconds % 60),
            (20, micros / 10_000),
            (22, micros / 100 % 100),
            (24, micros % 100),
        ];
        for (at, number) in pairs {
            self.text[at..at + 2].copy_from_slice(&pair(number));
        }
        out.extend_from_slice(&self.text);
        true
    }
}

/// The digits of the date of a time: the century, the year in it, the month and the day. `None` if the year has not four digits.
pub(crate) fn date_digits(time: Timestamp) -> Option<[[u8; 2]; 4]> {
    let Date { year, month, day } = time.date();
    let year = u32::try_from(year).ok().filter(|year| (1..=9_999).contains(year))?;
    Some([year / 100, year % 100, month.into(), day.into()].map(pair))
}

#[cfg(test)]
mod tests {
    use model::calendar::Moment;
    use proptest::prelude::*;

    use super::*;

    /// The text of the library.
    fn expected(micros: i64) -> Option<String> {
        let text = Moment::from_micros(micros)?.to_micros_text();
        (text.len() == BYTES && !text.starts_with("0000")).then_some(text)
    }

    fn check(writer: &mut UtcText, micros: i64) {
        let mut out = b"x".to_vec();
        let written = writer.write(micros, &mut out);
        let text = String::from_utf8(out).unwrap();
        assert_eq!(written.then(|| text[1..].to_owned()), expected(micros), "{micros}");
        assert!(written || text == "x");
    }

    #[test]
    fn times_at_the_ends_of_days_years_and_the_calendar_are_right() {
        let mut writer = UtcText::new();
        for day in
            [0, -1, 1, 59, 789, 11_016, 11_017, 20_513, 2_932_894, -719_162, -719_163, -719_528, 2_932_897]
        {
            for micros in [0, 1, 999_999, DAY_US - 1, DAY_US / 2 + 7] {
                check(&mut writer, day * DAY_US + micros);
            }
        }
        check(&mut writer, i64::MIN);
        check(&mut writer, i64::MAX);
        // The library's calendar ends a day earlier.
        let mut out = Vec::new();
        assert!(writer.write(2_932_897 * DAY_US - 1, &mut out));
        assert_eq!(out, b"9999-12-31T23:59:59.999999Z");
        assert!(!writer.write(2_932_897 * DAY_US, &mut out));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

        #[test]
        fn every_time_equals_that_of_the_library(
            times in prop::collection::vec(-62_135_596_800_000_000..253_402_100_000_000_000_i64, 1..4)
        ) {
            let mut writer = UtcText::new();
            for micros in times {
                check(&mut writer, micros);
                check(&mut writer, micros + 1_000_000);
            }
        }
    }
}

//! Times as text, many of them.

use crate::number::pair;

const DAY_US: i64 = 86_400_000_000;
/// `YYYY-MM-DDTHH:MM:SS.ffffffZ`
const BYTES: usize = 27;
const DATE: usize = 10;

/// Writes times as RFC 3339 with microseconds in UTC. Keeps the text of the last one: most are of the same day.
pub(super) struct UtcText {
    text: [u8; BYTES],
    day: i64,
}

impl UtcText {
    pub(super) fn new() -> Self {
        Self { text: *b"1970-01-01T00:00:00.000000Z", day: 0 }
    }

    /// Appends a time; `false`, and nothing, for years before 0001 or after 9999.
    pub(super) fn write(&mut self, micros: i64, out: &mut Vec<u8>) -> bool {
        let (day, of_day) = (micros.div_euclid(DAY_US), micros.rem_euclid(DAY_US) as u64);
        if day != self.day {
            let Some(date) = date_of(day) else { return false };
            self.day = day;
            self.text[..DATE].copy_from_slice(&date);
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

/// The date of a day counted from 1970-01-01 in the proleptic Gregorian calendar, for years of four digits.
///
/// H. Hinnant, "chrono-Compatible Low-Level Date Algorithms", `civil_from_days`: eras of 400 years that begin in March.
fn date_of(day: i64) -> Option<[u8; DATE]> {
    const ERA_DAYS: i64 = 146_097;
    let shifted = day.checked_add(719_468)?;
    let (era, of_era) = (shifted.div_euclid(ERA_DAYS), shifted.rem_euclid(ERA_DAYS));
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day_of_month = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    if !(1..=9_999).contains(&year) {
        return None;
    }
    let [[y0, y1], [y2, y3], [m0, m1], [d0, d1]] =
        [year / 100, year % 100, month, day_of_month].map(|number| pair(number as u32));
    Some([y0, y1, y2, y3, b'-', m0, m1, b'-', d0, d1])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// By the library.
    fn expected(micros: i64) -> Option<String> {
        let time = jiff::Timestamp::from_microsecond(micros).ok()?;
        let text = time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string();
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
    fn edges_of_days_years_and_the_calendar() {
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
        fn every_time_is_what_the_library_writes(
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

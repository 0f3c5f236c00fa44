//! Periods of ISO 8601 with a fixed length, such as `PT1H` and `P1DT12H`.

/// The milliseconds of a period above 0. Months and years have no fixed length.
pub(super) fn parse_millis(text: &str) -> Option<i64> {
    let text = text.trim().strip_prefix(['P', 'p'])?.to_ascii_uppercase();
    let (days, time) = text.split_once('T').unwrap_or((&text, ""));
    if text.ends_with('T') {
        return None;
    }
    let days = sum(days, &[('W', 604_800_000), ('D', 86_400_000)])?;
    let time = sum(time, &[('H', 3_600_000), ('M', 60_000), ('S', 1_000)])?;
    days.checked_add(time).filter(|millis| *millis > 0)
}

/// The sum of parts such as `12H30M`, whose units are in their order.
fn sum(mut text: &str, units: &[(char, i64)]) -> Option<i64> {
    let mut total = 0_i64;
    for (unit, millis) in units {
        if let Some((number, rest)) = text.split_once(*unit) {
            total = total.checked_add(number.parse::<u32>().ok().map(i64::from)?.checked_mul(*millis)?)?;
            text = rest;
        }
    }
    text.is_empty().then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_have_their_length() {
        for (text, millis) in [
            ("PT1H", Some(3_600_000)),
            ("pt90s", Some(90_000)),
            ("P1DT12H30M", Some(131_400_000)),
            ("P2W", Some(1_209_600_000)),
            ("PT0S", None),
            ("P1M", None),
            ("P1Y", None),
            ("1H", None),
            ("PT", None),
            ("PT1M1H", None),
            ("P", None),
            ("PT-1H", None),
        ] {
            assert_eq!(parse_millis(text), millis, "{text}");
        }
    }
}

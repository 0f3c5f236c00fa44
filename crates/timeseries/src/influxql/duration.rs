//! Durations such as `1h30m`.

/// Reads a duration, in nanoseconds.
///
/// # Errors
/// In the words of InfluxDB.
pub(super) fn parse(text: &str) -> Result<i64, String> {
    let invalid = || "invalid duration".to_owned();
    let mut total: i64 = 0;
    let mut rest = text;
    let mut last = (0, "");
    if text.chars().count() < 2 {
        return Err(invalid());
    }
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|next: char| next.is_ascii_digit()).len();
        let count: i64 = rest[..digits].parse().map_err(|_| invalid())?;
        rest = &rest[digits..];
        let units = [
            ("ns", 1),
            ("ms", 1_000_000),
            ("u", 1_000),
            ("µ", 1_000),
            ("m", 60_000_000_000),
            ("s", 1_000_000_000),
            ("h", 3_600_000_000_000),
            ("d", 86_400_000_000_000),
            ("w", 604_800_000_000_000_i64),
        ];
        let unit = units.into_iter().find(|(unit, _)| rest.starts_with(unit)).ok_or_else(invalid)?;
        last = (count, unit.0);
        total = total.wrapping_add(count.wrapping_mul(unit.1));
        if count.checked_mul(unit.1).is_none() {
            total = -1;
        }
        rest = &rest[unit.0.len()..];
        if total < 0 {
            break;
        }
    }
    match total < 0 {
        true => Err(format!("overflowed duration {}{}: choose a smaller duration or INF", last.0, last.1)),
        false => Ok(total),
    }
}

/// A duration as a whole number of the largest unit that fits.
pub(super) fn shown(nanos: i64) -> String {
    const UNITS: [(i64, &str); 8] = [
        (604_800_000_000_000, "w"),
        (86_400_000_000_000, "d"),
        (3_600_000_000_000, "h"),
        (60_000_000_000, "m"),
        (1_000_000_000, "s"),
        (1_000_000, "ms"),
        (1_000, "u"),
        (1, "ns"),
    ];
    if nanos == 0 {
        return "0s".to_owned();
    }
    let unit = UNITS.into_iter().find(|(unit, _)| nanos % unit == 0).unwrap_or((1, "ns"));
    format!("{}{}", nanos / unit.0, unit.1)
}

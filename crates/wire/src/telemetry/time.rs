//! Parses the time of a row: milliseconds since 1970, with every digit down to a microsecond.
//!
//! Clients without integers write `1732540000000.0` or `1.73254E12` (Python's `time.time() * 1000`, Lua, JavaScript libraries).
//! The digits are parsed as decimals, never through a double, so they stay exact. Digits beyond a microsecond are truncated.

use model::Timestamp;
use model::limits::IngestLimits;

use super::error::PayloadError;

/// Significant digits that are parsed. A time has at most 19.
const DIGITS_MAX: u32 = 30;
/// Larger powers of ten count as infinite.
const POWER_MAX: i32 = 100;
/// Powers of ten that an `i128` holds beside [`DIGITS_MAX`] digits.
const POWER_KEPT_MAX: i32 = 8;

/// Parses the time of a row in JSON: a number or a string with a number, in milliseconds. It must be in the accepted window
/// around `now`.
pub(super) fn timestamp(raw: &str, now: Timestamp, limits: &IngestLimits) -> Result<Timestamp, PayloadError> {
    let digits = raw.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(raw);
    let micros = micros(digits).ok_or_else(|| PayloadError::TimestampForm(shorten(raw)))?;
    let end = limits.plausible(now).end;
    let oldest = limits.oldest_at(now);
    let refused = |side, hint| Err(PayloadError::TimestampRange { ts: shorten(digits), side, hint });
    match i64::try_from(micros).map(Timestamp::from_micros) {
        Ok(ts) if oldest <= ts && ts < end => Ok(ts),
        Ok(ts) if ts < oldest => refused("too old", too_old_hint(micros, oldest, limits)),
        Err(_) if micros < 0 => refused("too old", too_old_hint(micros, oldest, limits)),
        _ => refused("too far in the future", too_new_hint(micros, now, limits)),
    }
}

/// Microseconds of a decimal number of milliseconds, rounded towards the past; `None` if it is not a JSON number (RFC 8259, 6).
/// Numbers beyond an `i128` are clamped.
fn micros(text: &str) -> Option<i128> {
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent_of(exponent)?),
        None => (text, 0),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((_, "")) => return None,
        Some(parts) => parts,
        None => (mantissa, ""),
    };
    let digits = whole.bytes().chain(fraction.bytes());
    if whole.is_empty() || !digits.clone().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let (mut value, mut taken) = (0_i128, 0);
    for digit in digits.clone().skip_while(|digit| *digit == b'0').take(DIGITS_MAX as usize) {
        value = value * 10 + i128::from(digit - b'0');
        taken += 1;
    }
    let zeros = digits.clone().take_while(|digit| *digit == b'0').count();
    let left_out = digits.count() - zeros - taken;
    let length = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
    // From milliseconds to microseconds are three more decimals.
    let power =
        exponent.saturating_add(3).saturating_add(length(left_out)).saturating_sub(length(fraction.len()));
    let value = if negative { -value } else { value };
    Some(scaled(value, power))
}

fn exponent_of(text: &str) -> Option<i32> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let magnitude = digits.parse().unwrap_or(i32::MAX);
    Some(if text.starts_with('-') { -magnitude } else { magnitude })
}

/// `value` times ten to the `power`.
fn scaled(value: i128, power: i32) -> i128 {
    match power.clamp(-POWER_MAX, POWER_MAX) {
        _ if value == 0 => 0,
        up @ 0..=POWER_KEPT_MAX => value * 10_i128.pow(up.unsigned_abs()),
        0.. => 10_i128
            .checked_pow(power.unsigned_abs())
            .map_or(value.signum() * i128::MAX, |factor| value.saturating_mul(factor)),
        down => match 10_i128.checked_pow(down.unsigned_abs()) {
            Some(divisor) => value.div_euclid(divisor),
            None if value < 0 => -1,
            None => 0,
        },
    }
}

fn too_old_hint(micros: i128, oldest: Timestamp, limits: &IngestLimits) -> String {
    if (1_000_000_000_000..10_000_000_000_000).contains(&micros) {
        return "it looks like seconds; send milliseconds".into();
    }
    let oldest_ms = oldest.millis();
    match limits.ttl.filter(|_| oldest > limits.oldest) {
        Some(ttl) => format!(
            "its table keeps rows for {}, so the oldest accepted time is {oldest_ms} ms",
            model::time::shown_duration(ttl)
        ),
        None => format!("the oldest accepted time is {oldest_ms} ms"),
    }
}

fn too_new_hint(micros: i128, now: Timestamp, limits: &IngestLimits) -> String {
    match micros / i128::from(now.micros().max(1)) {
        500..2_000 => "it looks like microseconds; send milliseconds".into(),
        500_000..2_000_000 => "it looks like nanoseconds; send milliseconds".into(),
        _ => {
            let ahead = std::time::Duration::from_secs(limits.future_max_s.unsigned_abs());
            let ahead = model::time::shown_duration(ahead);
            format!("times up to {ahead} ahead of the server's clock are accepted")
        }
    }
}

fn shorten(raw: &str) -> String {
    if raw.chars().count() > 40 { raw.chars().take(37).collect::<String>() + "..." } else { raw.to_owned() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_way_to_write_a_time_is_the_same_time() {
        for text in [
            "1732540000000",
            "1732540000000.0",
            "1.73254E12",
            "1.73254e+12",
            "173254e7",
            "17325400000000000000000e-10",
            "0.00173254E15",
        ] {
            assert_eq!(micros(text), Some(1_732_540_000_000_000), "{text}");
        }
    }

    #[test]
    fn fractions_are_kept_down_to_a_microsecond_and_cut_below() {
        assert_eq!(micros("1732540000123.4568"), Some(1_732_540_000_123_456));
        assert_eq!(micros("1732540000123.001"), Some(1_732_540_000_123_001));
        assert_eq!(micros("0.0009"), Some(0));
        assert_eq!(micros("-0.0001"), Some(-1));
        assert_eq!(micros("-1.5"), Some(-1_500));
    }

    #[test]
    fn texts_without_a_number_are_no_times() {
        for text in ["", "-", ".5", "5.", "1e", "1e+", "1e5.5", "0x10", "1 ", "+1", "١", "NaN", "1_000"] {
            assert_eq!(micros(text), None, "{text}");
        }
    }

    #[test]
    fn huge_numbers_saturate() {
        assert_eq!(micros("1e999999999999"), Some(i128::MAX));
        assert_eq!(micros("-1e40"), Some(-i128::MAX));
        assert_eq!(micros("1e-999999999999"), Some(0));
        assert_eq!(micros("0e999999999999"), Some(0));
        assert_eq!(micros(&"9".repeat(1_000)), Some(i128::MAX));
        assert_eq!(micros(&format!("0.{}1", "0".repeat(1_000))), Some(0));
        assert_eq!(micros(&format!("{}1", "0".repeat(1_000))), Some(1_000));
    }

    proptest! {
        #[test]
        fn whole_numbers_read_as_integers_do(millis in any::<i64>()) {
            prop_assert_eq!(micros(&millis.to_string()), Some(i128::from(millis) * 1_000));
        }

        #[test]
        fn moving_the_point_changes_nothing(millis in 0..10_000_000_000_000_i64, places in 0..12_usize) {
            let digits = format!("{millis:0width$}", width = places + 1);
            let (whole, fraction) = digits.split_at(digits.len() - places);
            let moved = if fraction.is_empty() { whole.to_owned() } else { format!("{whole}.{fraction}") };
            prop_assert_eq!(micros(&format!("{moved}e{places}")), Some(i128::from(millis) * 1_000));
        }
    }
}

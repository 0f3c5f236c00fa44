//! Timestamps: seconds or milliseconds since 1970, told apart by their size.

use super::number::Number;
use super::refusal::Refusal;

/// The latest millisecond: OpenTSDB refuses more digits, so microseconds too.
const MILLIS_MAX: i64 = 9_999_999_999_999;
/// The largest timestamp in seconds for OpenTSDB: what needs more than 32 bits is in milliseconds.
const OPENTSDB_SECONDS_MAX: i64 = u32::MAX as i64;
/// The smallest timestamp for HiTSDB.
const HITSDB_MIN: i64 = 4_284_768;
/// The largest timestamp in seconds for HiTSDB.
const HITSDB_SECONDS_MAX: i64 = 9_999_999_999;

/// Which sizes are seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Epoch {
    /// 1 to 4,294,967,295 are seconds, larger ones up to 9,999,999,999,999 milliseconds.
    OpenTsdb,
    /// 4,284,768 to 9,999,999,999 are seconds, larger ones up to 9,999,999,999,999 milliseconds.
    HiTsdb,
}

impl Epoch {
    /// Microseconds since 1970.
    pub(super) fn micros(self, given: i64) -> Result<i64, Refusal> {
        let (min, seconds_max) = match self {
            Self::OpenTsdb => (1, OPENTSDB_SECONDS_MAX),
            Self::HiTsdb => (HITSDB_MIN, HITSDB_SECONDS_MAX),
        };
        match given {
            given if given < min => Err(Refusal::timestamp()),
            given if given <= seconds_max => Ok(given * 1_000_000),
            given if given <= MILLIS_MAX => Ok(given * 1000),
            given => Err(Refusal::timestamp_range(given)),
        }
    }
}

/// Microseconds since 1970 of a timestamp in text: a whole number, or seconds with a fraction, which is cut to milliseconds.
pub(in crate::opentsdb) fn parse_timestamp(text: &str, epoch: Epoch) -> Result<i64, Refusal> {
    let Some((seconds, fraction)) = text.split_once('.') else {
        return match super::number::parse_number(text) {
            Ok(Number::I64(given)) => epoch.micros(given),
            Ok(Number::F64(_)) | Err(_) => Err(Refusal::timestamp()),
        };
    };
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let seconds = Some(seconds).filter(|text| is_digits(text)).and_then(|text| text.parse::<i64>().ok());
    let seconds = seconds.filter(|seconds| (1..=HITSDB_SECONDS_MAX).contains(seconds));
    let (Some(seconds), true) = (seconds, is_digits(fraction)) else { return Err(Refusal::timestamp()) };
    let digits = fraction.bytes().chain(*b"000").take(3);
    let millis = digits.fold(0, |millis, digit| millis * 10 + i64::from(digit - b'0'));
    Ok(seconds * 1_000_000 + millis * 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000;

    #[test]
    fn the_size_of_a_timestamp_determines_its_unit() {
        let at = |given| Epoch::OpenTsdb.micros(given);
        assert_eq!(at(1_700_000_000), Ok(1_700_000_000 * SECOND));
        assert_eq!(at(1_700_000_000_123), Ok(1_700_000_000_123_000));
        assert_eq!(at(4_294_967_295), Ok(4_294_967_295 * SECOND));
        assert_eq!(at(4_294_967_296), Ok(4_294_967_296_000));
        assert_eq!(at(9_999_999_999_999), Ok(9_999_999_999_999_000));
        for refused in [0, -1, i64::MIN, 10_000_000_000_000, 1_700_000_000_000_000, i64::MAX] {
            assert!(at(refused).is_err(), "{refused}");
        }
        assert_eq!(Epoch::HiTsdb.micros(4_294_967_296), Ok(4_294_967_296 * SECOND));
        assert_eq!(Epoch::HiTsdb.micros(10_000_000_000), Ok(10_000_000_000_000));
        assert!(Epoch::HiTsdb.micros(4_284_767).is_err());
    }

    #[test]
    fn a_fraction_of_a_second_is_cut_to_milliseconds() {
        let at = |text| parse_timestamp(text, Epoch::OpenTsdb);
        assert_eq!(at("1364410924.250"), Ok(1_364_410_924_250_000));
        assert_eq!(at("1364410924.2"), Ok(1_364_410_924_200_000));
        assert_eq!(at("1364410924.123456"), Ok(1_364_410_924_123_000));
        assert_eq!(at("1364410924"), Ok(1_364_410_924 * SECOND));
        for refused in
            ["", ".", "1.", ".5", "1e9", "-1.5", "+1.5", "1364410924.2x", "99999999999999999999.5", "now"]
        {
            assert!(at(refused).is_err(), "{refused}");
        }
    }
}

//! A token bucket: how many times in a second something may happen.

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

/// One token in units of the bucket. In a nanosecond `per_second` units come in.
const TOKEN: i64 = 1_000_000_000;
/// The longest debt, in seconds of the rate.
const DEBT_SECONDS_MAX: i64 = 60;
/// The time after which every bucket is full.
const LONGEST: Duration = Duration::from_secs(DEBT_SECONDS_MAX as u64 + 1);

/// A bucket that holds the tokens of one second and is full at the beginning. Its arithmetic is exact, except for the bound of a debt.
#[derive(Debug, Clone)]
pub struct TokenBucket {
    per_second: i64,
    /// At most the tokens of one second, which fit: `u32::MAX * TOKEN` is less than `i64::MAX`. Less than 0 is a debt.
    units: i64,
    filled_at: Instant,
}

impl TokenBucket {
    /// A full bucket.
    pub fn new(per_second: NonZeroU32, now: Instant) -> Self {
        let per_second = i64::from(per_second.get());
        Self { per_second, units: per_second * TOKEN, filled_at: now }
    }

    /// Takes one token.
    ///
    /// # Errors
    /// The bucket is empty: the time until it has a token.
    pub fn take(&mut self, now: Instant) -> Result<(), Duration> {
        self.check(now)?;
        self.units -= TOKEN;
        Ok(())
    }

    /// Looks whether the bucket has a token, and takes none.
    ///
    /// # Errors
    /// The bucket is empty: the time until it has a token.
    pub fn check(&mut self, now: Instant) -> Result<(), Duration> {
        self.fill(now);
        match u64::try_from(TOKEN.saturating_sub(self.units)) {
            Ok(missing) if missing > 0 => {
                Err(Duration::from_nanos(missing.div_ceil(self.per_second.unsigned_abs())))
            }
            _ => Ok(()),
        }
    }

    /// Takes any number of tokens for what has happened already. The bucket may have a debt then: it has no token until the debt is paid,
    /// at most a minute later.
    pub fn charge(&mut self, tokens: u64, now: Instant) {
        self.fill(now);
        let units = i64::try_from(tokens).unwrap_or(i64::MAX).saturating_mul(TOKEN);
        let least = self.per_second.saturating_mul(TOKEN).saturating_mul(-DEBT_SECONDS_MAX);
        self.units = self.units.saturating_sub(units).max(least);
    }

    /// Puts a token back that was taken for nothing.
    pub fn give_back(&mut self) {
        self.units = (self.units + TOKEN).min(self.per_second * TOKEN);
    }

    fn fill(&mut self, now: Instant) {
        // After a second the bucket is full, and after the longest debt and a second too. A clock that stands still or steps back adds
        // nothing.
        let passed = now.saturating_duration_since(self.filled_at).min(LONGEST);
        let passed_ns = i64::try_from(passed.as_nanos()).unwrap_or(i64::MAX);
        self.units =
            self.units.saturating_add(passed_ns.saturating_mul(self.per_second)).min(self.per_second * TOKEN);
        self.filled_at = self.filled_at.max(now);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bucket(per_second: u32) -> (TokenBucket, Instant) {
        let start = Instant::now();
        (TokenBucket::new(per_second.try_into().unwrap(), start), start)
    }

    #[test]
    fn a_second_of_tokens_can_be_taken_at_once_and_the_rest_at_the_rate() {
        let (mut bucket, start) = bucket(4);
        for _ in 0..4 {
            bucket.take(start).unwrap();
        }
        assert_eq!(bucket.take(start), Err(Duration::from_millis(250)));
        assert_eq!(bucket.take(start + Duration::from_millis(100)), Err(Duration::from_millis(150)));
        bucket.take(start + Duration::from_millis(250)).unwrap();
        assert_eq!(bucket.take(start + Duration::from_millis(250)), Err(Duration::from_millis(250)));
    }

    #[test]
    fn it_holds_no_more_than_a_second() {
        let (mut bucket, start) = bucket(2);
        let later = start + Duration::from_secs(3_600);
        assert_eq!([(); 3].map(|()| bucket.take(later).is_ok()), [true, true, false]);
        bucket.give_back();
        bucket.give_back();
        bucket.give_back();
        assert_eq!([(); 3].map(|()| bucket.take(later).is_ok()), [true, true, false]);
    }

    #[test]
    fn a_debt_is_paid_at_the_rate_and_lasts_a_minute_at_most() {
        let (mut bucket, start) = bucket(10);
        bucket.check(start).unwrap();
        bucket.charge(30, start);
        assert_eq!(bucket.check(start), Err(Duration::from_millis(2_100)));
        assert_eq!(bucket.check(start + Duration::from_secs(2)), Err(Duration::from_millis(100)));
        bucket.check(start + Duration::from_millis(2_100)).unwrap();
        bucket.charge(u64::MAX, start + Duration::from_secs(3));
        assert_eq!(bucket.check(start + Duration::from_secs(3)), Err(Duration::from_millis(60_100)));
        bucket.take(start + Duration::from_millis(63_100)).unwrap();
    }

    #[test]
    fn the_largest_rate_does_not_overflow() {
        let (mut bucket, start) = bucket(u32::MAX);
        bucket.take(start + Duration::from_secs(u64::from(u32::MAX))).unwrap();
    }

    #[test]
    fn a_clock_that_steps_back_adds_nothing() {
        let (mut bucket, start) = bucket(1);
        let later = start + Duration::from_secs(5);
        bucket.take(later).unwrap();
        bucket.take(start).unwrap_err();
        assert_eq!(bucket.take(later), Err(Duration::from_secs(1)));
    }

    proptest! {
        #[test]
        fn in_any_span_no_more_pass_than_the_rate_and_the_burst(
            per_second in 1_u32..1_000,
            pauses_us in prop::collection::vec(0_u64..5_000, 1..500),
        ) {
            let (mut bucket, start) = bucket(per_second);
            let mut now = start;
            let mut taken = 0_u64;
            for pause_us in pauses_us {
                now += Duration::from_micros(pause_us);
                taken += u64::from(bucket.take(now).is_ok());
                let most = u64::from(per_second) + (now - start).as_micros() as u64 * u64::from(per_second) / 1_000_000;
                prop_assert!(taken <= most, "{taken} of {most}");
            }
        }

        #[test]
        fn after_the_time_that_it_names_it_has_a_token(per_second in 1_u32..u32::MAX, offset_us in 0_u64..10_000_000) {
            let (mut bucket, start) = bucket(per_second);
            let now = start + Duration::from_micros(offset_us);
            bucket.units = 0;
            bucket.filled_at = now;
            let wait = bucket.take(now).unwrap_err();
            bucket.take(now + wait).unwrap();
        }
    }
}

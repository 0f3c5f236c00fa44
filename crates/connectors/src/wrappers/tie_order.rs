//! Times of elements that share a millisecond.

use model::Timestamp;

use crate::limits::ELEMENTS_OF_ONE_TIME_MAX;

/// Gives elements of one millisecond times that are a microsecond apart, so that each is a row. An element that is read again has the
/// time that it had, if reading begins before the first element of its millisecond or continues after the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ElementTimes {
    last: Option<(i64, i64)>,
}

impl ElementTimes {
    /// Continues after an element.
    pub(super) fn after(ms: i64, place: i64) -> Self {
        Self { last: Some((ms, place)) }
    }

    /// The millisecond of the last element, and how many elements before it had the same one.
    pub(super) fn last(&self) -> Option<(i64, i64)> {
        self.last
    }

    /// The time of the next element.
    ///
    /// # Errors
    /// Too many elements have this time, or it is out of range.
    pub(super) fn next(&mut self, ms: i64) -> Result<Timestamp, String> {
        let place = match self.last {
            Some((last, place)) if last == ms => place + 1,
            _ => 0,
        };
        if place >= ELEMENTS_OF_ONE_TIME_MAX {
            return Err(format!(
                "more than {ELEMENTS_OF_ONE_TIME_MAX} elements have the time {ms} (ELEMENTS_OF_ONE_TIME_MAX)"
            ));
        }
        let time = Timestamp::from_millis(ms).ok_or_else(|| format!("the time {ms} is out of range"))?;
        self.last = Some((ms, place));
        Ok(time.saturating_add_micros(place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_of_one_time_are_a_microsecond_apart() {
        let mut places = ElementTimes::default();
        let times: Vec<_> = [7, 7, 8, 7].map(|ms| places.next(ms).map(Timestamp::micros)).into();
        assert_eq!(times, [Ok(7_000), Ok(7_001), Ok(8_000), Ok(7_000)]);
        let mut places = ElementTimes::after(9, ELEMENTS_OF_ONE_TIME_MAX - 2);
        assert!(places.next(9).is_ok());
        assert!(places.next(9).unwrap_err().contains("ELEMENTS_OF_ONE_TIME_MAX"));
        assert_eq!(places.last(), Some((9, ELEMENTS_OF_ONE_TIME_MAX - 1)));
        assert!(places.next(i64::MAX).is_err());
    }
}

//! Which pushed elements are new.

use std::collections::HashSet;

use model::Timestamp;
use xxhash_rust::xxh3::xxh3_64;

use crate::wrappers::tie_order::ElementTimes;

/// The newest elements. The other server pushes an element again if it does not get the answer, and all elements of a millisecond again
/// when this server registers again. So elements of one millisecond are told apart by their texts.
#[derive(Debug)]
pub(super) struct NewestElements {
    newest_ms: i64,
    /// XXH3 (64 bits) of the elements with this time.
    texts: HashSet<u64>,
    places: ElementTimes,
}

impl NewestElements {
    /// Elements later than a time are new.
    pub(super) fn after(ms: i64) -> Self {
        Self { newest_ms: ms.saturating_add(1), texts: HashSet::new(), places: ElementTimes::default() }
    }

    /// The time after which elements must be pushed.
    pub(super) fn after_ms(&self) -> i64 {
        self.newest_ms.saturating_sub(1)
    }

    /// The time of the row of an element; `None` if it has come before.
    pub(super) fn time(&mut self, ms: i64, text: &str) -> Option<Result<Timestamp, String>> {
        if ms < self.newest_ms {
            return None;
        }
        if ms > self.newest_ms {
            (self.newest_ms, self.places) = (ms, ElementTimes::default());
            self.texts.clear();
        }
        let hash = xxh3_64(text.as_bytes());
        if self.texts.contains(&hash) {
            return None;
        }
        let time = self.places.next(ms);
        if time.is_ok() {
            self.texts.insert(hash);
        }
        Some(time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_element_that_comes_again_is_not_new() {
        let mut received = NewestElements::after(4);
        assert_eq!(received.after_ms(), 4);
        let mut time = |ms, text| received.time(ms, text).map(|time| time.unwrap().micros());
        assert_eq!(time(4, "old"), None);
        assert_eq!((time(5, "a"), time(5, "a"), time(5, "b")), (Some(5_000), None, Some(5_001)));
        assert_eq!((time(7, "a"), time(5, "b"), time(7, "c")), (Some(7_000), None, Some(7_001)));
        assert_eq!(received.after_ms(), 6);
        // After a restart the elements of the newest millisecond come again, and have the times that they had.
        let mut again = NewestElements::after(6);
        assert_eq!(again.time(7, "a").unwrap().unwrap().micros(), 7_000);
        assert_eq!(again.time(7, "c").unwrap().unwrap().micros(), 7_001);
    }
}

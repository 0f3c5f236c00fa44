//! The seconds of all workers, merged.

use std::collections::BTreeMap;

use crate::recorder::Second;

/// The seconds of several workers, merged and in order. A worker that is done counts as if it had ended every second.
pub(super) struct Seconds {
    classes: usize,
    open: BTreeMap<u64, Second>,
    /// The number of seconds that each worker has ended.
    ended: Vec<u64>,
    next: u64,
}

impl Seconds {
    pub(super) fn new(workers: usize, classes: usize) -> Self {
        Self { classes, open: BTreeMap::new(), ended: vec![0; workers], next: 0 }
    }

    pub(super) fn add(&mut self, worker: usize, second: Second) {
        self.ended[worker] = second.index + 1;
        match self.open.get_mut(&second.index) {
            Some(open) => open.merge(&second),
            None => _ = self.open.insert(second.index, second),
        }
    }

    pub(super) fn end(&mut self, worker: usize) {
        self.ended[worker] = u64::MAX;
    }

    pub(super) fn next_complete(&mut self) -> Option<Second> {
        let (&last, _) = self.open.last_key_value()?;
        let complete = self.ended.iter().copied().min().unwrap_or(0);
        if self.next >= complete || self.next > last {
            return None;
        }
        let index = self.next;
        self.next += 1;
        Some(self.open.remove(&index).unwrap_or_else(|| Second::new(index, self.classes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_come_in_order_and_a_worker_that_is_done_holds_none_back() {
        let mut seconds = Seconds::new(2, 1);
        seconds.add(0, Second::new(0, 1));
        seconds.add(0, Second::new(1, 1));
        assert!(seconds.next_complete().is_none(), "the other worker has not ended second 0");
        seconds.add(1, Second::new(0, 1));
        assert_eq!(seconds.next_complete().map(|s| s.index), Some(0));
        assert!(seconds.next_complete().is_none());
        seconds.end(1);
        assert_eq!(seconds.next_complete().map(|s| s.index), Some(1));
        assert!(seconds.next_complete().is_none());
    }
}

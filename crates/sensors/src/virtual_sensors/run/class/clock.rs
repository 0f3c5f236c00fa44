//! The clock of a class: turns at a rate.

const DAY: i64 = 24 * 3_600_000;

#[derive(Debug)]
pub(in crate::virtual_sensors::run) struct Clock {
    rate: i64,
    start: Option<i64>,
    next: Option<i64>,
}

impl Clock {
    pub(super) fn new(rate: i64, start: Option<i64>) -> Self {
        Self { rate, start, next: None }
    }

    /// The clock continues from the first row.
    pub(super) fn begin(&mut self, now: i64) {
        let (rate, start) = (self.rate, self.start);
        self.next.get_or_insert_with(|| match start {
            Some(start) if start > now => start,
            // Turns are at whole multiples of the rate since midnight.
            _ => {
                let midnight = now - now.rem_euclid(DAY);
                midnight + ((now - midnight) / rate + 1) * rate
            }
        });
    }

    pub(super) fn next(&self) -> Option<i64> {
        self.next
    }

    pub(super) fn restore(&mut self, next: Option<i64>) {
        self.next = next;
    }

    /// The time of the turn that is made now.
    pub(super) fn turn(&mut self) -> Option<i64> {
        let at = self.next?;
        self.next = Some(at.saturating_add(self.rate));
        Some(at)
    }

    pub(super) fn skip_to(&mut self, time: i64) -> u64 {
        let Some(next) = &mut self.next else { return 0 };
        let missed = (time.saturating_sub(*next) / self.rate).max(0);
        *next = next.saturating_add(missed.saturating_mul(self.rate));
        missed as u64
    }
}

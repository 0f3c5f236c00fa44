//! The ledger: which points were sent and acknowledged, and which must therefore be readable. It uses neither sockets
//! nor a clock.

use crate::devices::{Point, number};

/// The values of device d start at d times this, so that a point of another device is recognised.
const VALUES_PER_DEVICE: u64 = 1_000_000_000;
/// The largest number of differences to describe.
const EXAMPLES_MAX: usize = 10;

/// The numbered points of one device. Point n has the timestamp `base + n` milliseconds and a value that contains
/// device and number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PointLedger {
    device: u32,
    base_ts_ms: u64,
    /// Whether each point was acknowledged. The length is the number of sent points.
    acked: Vec<bool>,
}

impl PointLedger {
    /// A ledger without points.
    pub fn new(device: u32, base_ts_ms: u64) -> Self {
        Self { device, base_ts_ms, acked: Vec::new() }
    }

    /// Adds a point that is about to be sent for the first time, and returns its number.
    pub fn send(&mut self) -> u64 {
        self.acked.push(false);
        self.acked.len() as u64 - 1
    }

    /// Records an acknowledgement.
    pub fn ack(&mut self, number: u64) {
        self.acked[number as usize] = true;
    }

    /// The number of points sent so far.
    pub fn sent(&self) -> u64 {
        self.acked.len() as u64
    }

    /// The number of points acknowledged so far.
    pub fn acked(&self) -> u64 {
        self.acked.iter().filter(|acked| **acked).count() as u64
    }

    /// Timestamp of a point.
    pub fn ts_ms(&self, number: u64) -> u64 {
        self.base_ts_ms + number
    }

    /// Value of a point.
    pub fn value(&self, number: u64) -> u64 {
        u64::from(self.device) * VALUES_PER_DEVICE + number
    }

    /// Compares the readable points from `from` on with those that must and may be readable.
    pub fn check(&self, from: u64, readable: &[Point]) -> LedgerCheck {
        let mut check = LedgerCheck { stored: readable.len() as u64, ..LedgerCheck::default() };
        let mut seen = vec![false; self.acked.len()];
        for point in readable {
            self.check_point(point, from, &mut seen, &mut check);
        }
        for (n, acked) in self.acked.iter().enumerate().skip(from as usize) {
            check.acked += u64::from(*acked);
            check.maybe += u64::from(!acked);
            if *acked && !seen[n] {
                check.lost += 1;
                check.example(|| {
                    format!("device {}: point {n} was acknowledged and is not readable", self.device)
                });
            }
        }
        check
    }

    fn check_point(&self, point: &Point, from: u64, seen: &mut [bool], check: &mut LedgerCheck) {
        let n = point.ts.checked_sub(self.base_ts_ms).filter(|n| (from..self.sent()).contains(n));
        let Some(n) = n else {
            check.invented += 1;
            return check.example(|| {
                format!("device {}: {} at {} was never sent", self.device, point.value, point.ts)
            });
        };
        if number(&point.value) != Some(self.value(n) as f64) {
            check.wrong += 1;
            let expected = self.value(n);
            check.example(|| {
                format!("device {}: point {n} reads {} instead of {expected}", self.device, point.value)
            });
        }
        if std::mem::replace(&mut seen[n as usize], true) {
            check.duplicated += 1;
            check.example(|| format!("device {}: point {n} is readable more than once", self.device));
        }
    }
}

/// The result of a comparison.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LedgerCheck {
    /// Points that must be readable.
    pub acked: u64,
    /// Points that were sent and not acknowledged: they may be readable.
    pub maybe: u64,
    /// Readable points.
    pub stored: u64,
    /// Points that were acknowledged and are not readable.
    pub lost: u64,
    /// Points that are readable and were never sent.
    pub invented: u64,
    /// Points that are readable more than once.
    pub duplicated: u64,
    /// Points that are readable with another value.
    pub wrong: u64,
    /// Descriptions of the first differences.
    pub examples: Vec<String>,
}

impl LedgerCheck {
    /// Whether the server kept its promise.
    pub fn kept(&self) -> bool {
        self.lost + self.invented + self.duplicated + self.wrong == 0
    }

    /// Adds the result of another device or check.
    pub fn add(&mut self, other: Self) {
        self.acked += other.acked;
        self.maybe += other.maybe;
        self.stored += other.stored;
        self.lost += other.lost;
        self.invented += other.invented;
        self.duplicated += other.duplicated;
        self.wrong += other.wrong;
        self.examples.extend(other.examples);
        self.examples.truncate(EXAMPLES_MAX);
    }

    fn example(&mut self, text: impl FnOnce() -> String) {
        if self.examples.len() < EXAMPLES_MAX {
            self.examples.push(text());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const BASE: u64 = 1_790_000_000_000;

    /// Ten points sent, all but 3 and 9 acknowledged.
    fn ledger() -> PointLedger {
        let mut ledger = PointLedger::new(2, BASE);
        for _ in 0..10 {
            let n = ledger.send();
            if n != 3 && n != 9 {
                ledger.ack(n);
            }
        }
        ledger
    }

    fn point(n: u64) -> Point {
        Point { ts: BASE + n, value: json!(2_000_000_000 + n) }
    }

    fn points(numbers: impl IntoIterator<Item = u64>) -> Vec<Point> {
        numbers.into_iter().map(point).collect()
    }

    fn outcome(readable: &[Point]) -> (u64, u64, u64, u64) {
        let check = ledger().check(0, readable);
        assert_eq!((check.acked, check.maybe), (8, 2));
        assert_eq!(check.kept(), check.examples.is_empty());
        (check.lost, check.invented, check.duplicated, check.wrong)
    }

    #[test]
    fn what_was_not_acknowledged_may_be_there_or_not() {
        assert_eq!(outcome(&points(0..10)), (0, 0, 0, 0));
        assert_eq!(outcome(&points([0, 1, 2, 4, 5, 6, 7, 8])), (0, 0, 0, 0));
        assert_eq!(outcome(&points(0..9)), (0, 0, 0, 0));
    }

    #[test]
    fn an_acknowledged_point_that_is_missing_is_lost() {
        assert_eq!(outcome(&points([0, 1, 2, 4, 5, 6, 7, 9])), (1, 0, 0, 0));
        assert_eq!(outcome(&[]), (8, 0, 0, 0));
        let check = ledger().check(0, &points(0..8));
        assert_eq!(check.examples, ["device 2: point 8 was acknowledged and is not readable"]);
    }

    #[test]
    fn a_point_that_was_never_sent_is_invented() {
        let later = points(0..11);
        assert_eq!(outcome(&later), (0, 1, 0, 0));
        let mut earlier = points(0..10);
        earlier.push(Point { ts: BASE - 1, value: json!(0) });
        assert_eq!(outcome(&earlier), (0, 1, 0, 0));
    }

    #[test]
    fn a_point_that_is_there_twice_is_a_duplicate() {
        let mut twice = points(0..10);
        twice.push(point(4));
        assert_eq!(outcome(&twice), (0, 0, 1, 0));
    }

    #[test]
    fn a_right_point_with_a_wrong_value_is_wrong() {
        let mut wrong = points(0..10);
        wrong[5].value = json!(1_000_000_005);
        assert_eq!(outcome(&wrong), (0, 0, 0, 1));
        wrong[5].value = json!("2000000005");
        assert_eq!(outcome(&wrong), (0, 0, 0, 0), "a number as text is the same number");
        wrong[5].value = json!(null);
        assert_eq!(outcome(&wrong), (0, 0, 0, 1));
    }

    #[test]
    fn a_check_of_the_newest_points_asks_for_no_older_ones() {
        let check = ledger().check(5, &points(5..10));
        assert!(check.kept());
        assert_eq!((check.acked, check.maybe, check.stored), (4, 1, 5));
        assert_eq!(ledger().check(5, &points(5..8)).lost, 1);
    }

    #[test]
    fn judgements_add_up_and_keep_few_examples() {
        let mut total = LedgerCheck::default();
        for _ in 0..5 {
            total.add(ledger().check(0, &[]));
        }
        assert_eq!((total.lost, total.examples.len()), (40, EXAMPLES_MAX));
        assert!(!total.kept());
    }
}

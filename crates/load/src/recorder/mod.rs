//! The measurements of a run: HDR histograms in microseconds (3 digits, 1 us to 1 h), counters, and one line per
//! second. Histograms are merged; quantiles are never averaged.

mod counts;
mod latency;
mod sends;

pub use counts::Counts;
pub use latency::{Latency, Quantiles};
pub use sends::{Sends, Sent};

/// The three clocks of an operation.
#[derive(Debug, Clone, Default)]
pub struct Clocks {
    /// Completed minus intended time.
    pub response: Latency,
    /// Completed minus actual send time.
    pub service: Latency,
    /// Actual minus intended send time: the lateness of the generator.
    pub lag: Latency,
}

impl Clocks {
    /// Adds all samples of another.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in [
            (&mut self.response, &other.response),
            (&mut self.service, &other.service),
            (&mut self.lag, &other.lag),
        ] {
            if !theirs.is_empty() {
                mine.merge(theirs);
            }
        }
    }
}

/// One second of one class.
#[derive(Debug, Clone, Default)]
pub struct ClassSecond {
    /// Operations sent in this second.
    pub sent: u64,
    /// Operations completed in this second.
    pub completed: u64,
    /// Operations that failed in this second.
    pub failed: u64,
    /// Requested items that existed.
    pub hits: u64,
    /// Requested items that did not exist.
    pub misses: u64,
    /// Response and service times of operations completed in this second, and lag of those sent in it.
    pub clocks: Clocks,
}

impl ClassSecond {
    fn merge(&mut self, other: &Self) {
        self.sent += other.sent;
        self.completed += other.completed;
        self.failed += other.failed;
        self.hits += other.hits;
        self.misses += other.misses;
        self.clocks.merge(&other.clocks);
    }
}

/// One second of one worker, for the progress line and the time series. It includes the warm-up.
#[derive(Debug, Clone, Default)]
pub struct Second {
    /// Seconds since the start of the load, from zero.
    pub index: u64,
    /// Failures in this second.
    pub errors: u64,
    /// The classes, by number.
    pub classes: Vec<ClassSecond>,
}

impl Second {
    /// An empty second with this number of classes.
    pub fn new(index: u64, classes: usize) -> Self {
        Self { index, errors: 0, classes: vec![ClassSecond::default(); classes] }
    }

    /// Adds the same second of another worker.
    pub fn merge(&mut self, other: &Self) {
        self.errors += other.errors;
        self.classes.iter_mut().zip(&other.classes).for_each(|(mine, theirs)| mine.merge(theirs));
    }

    /// The sum of all classes.
    pub fn total(&self) -> ClassSecond {
        let mut total = ClassSecond::default();
        self.classes.iter().for_each(|class| total.merge(class));
        total
    }
}

/// One operation in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    pub class: u16,
    /// The intended send time, nanoseconds after the start of the load.
    pub intended_ns: u64,
    /// The actual send time.
    pub sent_ns: u64,
}

/// The measurements of one class.
#[derive(Debug, Clone, Default)]
pub struct Class {
    pub counts: Counts,
    /// Histograms of the measured window.
    pub clocks: Clocks,
}

/// The measurements of one worker, by class of operation. Each sample is recorded once, in the current second; seconds
/// are added up.
#[derive(Debug, Clone, Default)]
pub struct Recorder {
    window: Window,
    total: Counts,
    classes: Vec<Class>,
    /// The current second of operations with an intended time in the measured window.
    second: Vec<ClassSecond>,
    /// The clocks of the current second for operations outside of the measured window.
    unmeasured: Vec<Clocks>,
    has_unmeasured: bool,
    errors_before: u64,
    sends: Sends,
    /// The sum of the busy times of connections that always had an operation, from the start to their last answer.
    busy: u64,
    busy_ns: u64,
}

/// The measured part of a run, nanoseconds after the start of the load.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Window {
    /// End of the warm-up.
    pub from_ns: u64,
    /// End of the load.
    pub until_ns: u64,
}

impl Window {
    /// Whether a time lies in the window.
    pub fn contains(&self, at_ns: u64) -> bool {
        (self.from_ns..self.until_ns).contains(&at_ns)
    }
}

impl Recorder {
    /// An empty recorder with this number of classes and this measured window.
    pub fn new(window: Window, classes: usize) -> Self {
        Self {
            window,
            classes: vec![Class::default(); classes],
            second: vec![ClassSecond::default(); classes],
            unmeasured: vec![Clocks::default(); classes],
            ..Self::default()
        }
    }

    /// Records an operation that came due.
    pub fn planned(&mut self, intended_ns: u64) {
        self.total.planned += 1;
        self.total.measured_planned += u64::from(self.window.contains(intended_ns));
    }

    /// Removes an operation that came due from the plan.
    pub fn withdrawn(&mut self, intended_ns: u64) {
        self.total.planned -= 1;
        self.total.measured_planned -= u64::from(self.window.contains(intended_ns));
    }

    /// Records an operation that was sent.
    #[inline]
    pub fn sent(&mut self, operation: &Operation, bytes: u64) {
        self.sent_when_able(operation, operation.intended_ns, bytes);
    }

    /// The same for an operation that may have waited for a free connection. The generator's lag counts from `able_ns`,
    /// when the operation was due and a connection was free. The wait before is caused by the server and part of the
    /// response time.
    #[inline]
    pub fn sent_when_able(&mut self, operation: &Operation, able_ns: u64, bytes: u64) {
        let class = usize::from(operation.class);
        let lag_ns = operation.sent_ns.saturating_sub(able_ns);
        let counts = &mut self.classes[class].counts;
        counts.sent += 1;
        self.second[class].sent += 1;
        if self.window.contains(operation.intended_ns) {
            counts.measured_sent += 1;
            counts.bytes_out += bytes;
            self.second[class].clocks.lag.record_ns(lag_ns);
            self.sends.add(Sent { intended_ns: operation.intended_ns, sent_ns: operation.sent_ns });
        } else {
            self.has_unmeasured = true;
            self.unmeasured[class].lag.record_ns(lag_ns);
        }
    }

    /// Records an operation with a right answer.
    #[inline]
    pub fn completed(&mut self, operation: &Operation, now_ns: u64, bytes: u64) {
        let class = usize::from(operation.class);
        let response_ns = now_ns.saturating_sub(operation.intended_ns);
        let service_ns = now_ns.saturating_sub(operation.sent_ns);
        let counts = &mut self.classes[class].counts;
        counts.completed += 1;
        counts.completed_within_window += u64::from(self.window.contains(now_ns));
        self.second[class].completed += 1;
        let clocks = if self.window.contains(operation.intended_ns) {
            counts.measured_completed += 1;
            counts.bytes_in += bytes;
            &mut self.second[class].clocks
        } else {
            self.has_unmeasured = true;
            &mut self.unmeasured[class]
        };
        clocks.response.record_ns(response_ns);
        clocks.service.record_ns(service_ns);
    }

    /// Records how many of the requested items existed.
    #[inline]
    pub fn found(&mut self, operation: &Operation, hits: u32, misses: u32) {
        let class = usize::from(operation.class);
        if self.window.contains(operation.intended_ns) {
            self.classes[class].counts.hits += u64::from(hits);
            self.classes[class].counts.misses += u64::from(misses);
        }
        self.second[class].hits += u64::from(hits);
        self.second[class].misses += u64::from(misses);
    }

    /// Records an operation that was refused or answered wrongly.
    pub fn failed(&mut self, class: u16, what: &str) {
        let counts = &mut self.classes[usize::from(class)].counts;
        counts.failed += 1;
        counts.error(what, 1);
        self.second[usize::from(class)].failed += 1;
    }

    /// Counts an event that is not a failure.
    pub fn extra(&mut self, class: u16, what: &str, count: u64) {
        self.classes[usize::from(class)].counts.extra(what, count);
    }

    /// Records failures of `count` operations or connections without a class.
    pub fn error(&mut self, what: &str, count: u64) {
        self.total.error(what, count);
    }

    /// Records a connection that had operations from one moment until another, when the last of them was answered.
    pub fn was_busy(&mut self, from_ns: u64, until_ns: u64) {
        self.busy += 1;
        self.busy_ns += until_ns.saturating_sub(from_ns);
    }

    /// Answers per second of all connections that were always busy, warm-up included. Each counts from the start to its
    /// own last answer, as whole operations in their time (Wald's identity), so the number that fits into the segment
    /// does not matter. `None` for other loads.
    pub fn busy_rate_per_s(&self) -> Option<f64> {
        let completed: u64 = self.classes.iter().map(|class| class.counts.completed).sum();
        (self.busy_ns > 0).then(|| completed as f64 * self.busy as f64 / (self.busy_ns as f64 / 1e9))
    }

    /// Ends the current second and returns it.
    pub fn take_second(&mut self, index: u64) -> Second {
        let of_classes: u64 = self.classes.iter().map(|class| class.counts.errors_total()).sum();
        let errors = self.total.errors_total() + of_classes;
        let classes = self.classes.len();
        let mut second = std::mem::replace(&mut self.second, vec![ClassSecond::default(); classes]);
        for (class, second) in self.classes.iter_mut().zip(&second) {
            class.clocks.merge(&second.clocks);
        }
        if std::mem::take(&mut self.has_unmeasured) {
            let unmeasured = std::mem::replace(&mut self.unmeasured, vec![Clocks::default(); classes]);
            second.iter_mut().zip(&unmeasured).for_each(|(mine, theirs)| mine.clocks.merge(theirs));
        }
        let second = Second { index, errors: errors - self.errors_before, classes: second };
        self.errors_before = errors;
        second
    }

    /// Adds the records of another worker for the same window. The current second of both must have been taken.
    pub fn merge(&mut self, other: &Self) {
        self.total.merge(&other.total);
        self.sends.merge(&other.sends);
        self.busy += other.busy;
        self.busy_ns += other.busy_ns;
        for (mine, theirs) in self.classes.iter_mut().zip(&other.classes) {
            mine.counts.merge(&theirs.counts);
            mine.clocks.merge(&theirs.clocks);
        }
    }

    /// The records of each class, without the current second.
    pub fn classes(&self) -> &[Class] {
        &self.classes
    }

    /// The records without a class: operations planned, connections lost, operations due and never sent.
    pub fn unclassed(&self) -> &Counts {
        &self.total
    }

    /// A sample of the sends of the measured window.
    pub fn sends(&self) -> &Sends {
        &self.sends
    }

    /// The sum of all classes, without the current second.
    pub fn total(&self) -> Class {
        let mut total = Class { counts: self.total.clone(), clocks: Clocks::default() };
        for class in &self.classes {
            total.counts.merge(&class.counts);
            total.clocks.merge(&class.clocks);
        }
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn operation(class: u16, intended_ns: u64, sent_ns: u64) -> Operation {
        Operation { class, intended_ns, sent_ns }
    }

    #[test]
    fn warm_up_is_counted_but_not_measured() {
        let mut recorder = Recorder::new(Window { from_ns: 100 * MS, until_ns: 200 * MS }, 2);
        for (class, at) in [(0, 50 * MS), (1, 99 * MS), (1, 100 * MS), (0, 150 * MS)] {
            let operation = operation(class, at, at + MS);
            recorder.planned(at);
            recorder.sent(&operation, 10);
            recorder.completed(&operation, at + 3 * MS, 5);
        }
        let second = recorder.take_second(0).total();
        assert_eq!(second.clocks.response.len(), 4, "the series shows the warm-up");
        let total = recorder.total();
        assert_eq!((total.counts.completed, total.counts.measured_completed), (4, 2));
        assert_eq!((total.counts.planned, total.counts.measured_planned), (4, 2));
        assert_eq!((total.counts.bytes_out, total.counts.bytes_in), (20, 10));
        assert_eq!(
            total.counts.completed_within_window, 3,
            "one message of the warm-up ends inside the window"
        );
        let clocks = &total.clocks;
        assert_eq!(clocks.response.len(), 2);
        let near = |us: u64, expected: u64| us.abs_diff(expected) <= 2;
        assert!(near(clocks.response.quantile_us(1.0), 3_000), "response counts from the intended time");
        assert!(near(clocks.service.quantile_us(1.0), 2_000), "service time counts from the actual one");
        assert!(near(clocks.lag.quantile_us(1.0), 1_000));
        let of_class: Vec<u64> = recorder.classes().iter().map(|c| c.counts.completed).collect();
        assert_eq!(of_class, [2, 2]);
    }

    #[test]
    fn seconds_carry_only_what_happened_in_them_and_add_up() {
        let mut recorder = Recorder::new(Window { from_ns: 0, until_ns: MS }, 1);
        recorder.sent(&operation(0, 0, 0), 0);
        recorder.error("timeout", 3);
        let first = recorder.take_second(0);
        recorder.completed(&operation(0, 0, 0), 2 * MS, 0);
        let second = recorder.take_second(1);
        assert_eq!((first.total().sent, first.errors), (1, 3));
        assert_eq!((second.total().sent, second.errors, second.total().completed), (0, 0, 1));
        let total = recorder.total();
        assert_eq!((total.clocks.lag.len(), total.clocks.response.len()), (1, 1));
    }

    #[test]
    fn a_busy_connection_has_whole_operations_in_the_time_they_took() {
        let rate = |took_ms: u64, window_ms: u64| {
            let window = Window { from_ns: 0, until_ns: window_ms * MS };
            let mut sum = Recorder::new(window, 1);
            for _ in 0..2 {
                let mut one = Recorder::new(window, 1);
                let starts: Vec<u64> = (0..window_ms * MS).step_by((took_ms * MS) as usize).collect();
                for at in &starts {
                    one.completed(&operation(0, *at, *at), at + took_ms * MS, 1);
                }
                one.was_busy(0, starts.len() as u64 * took_ms * MS);
                one.take_second(0);
                sum.merge(&one);
            }
            sum.busy_rate_per_s().unwrap()
        };
        for window_ms in [6, 50, 52, 57, 60] {
            assert!((rate(7, window_ms) - 2_000.0 / 7.0).abs() < 1e-9, "7 ms each, in {window_ms} ms");
        }
        assert_eq!(Recorder::new(Window::default(), 1).busy_rate_per_s(), None);
    }

    #[test]
    fn merged_recorders_equal_one_that_saw_everything() {
        let window = Window { from_ns: 0, until_ns: u64::MAX };
        let (mut left, mut right, mut all) =
            (Recorder::new(window, 2), Recorder::new(window, 2), Recorder::new(window, 2));
        for i in 0..1_000 {
            let operation = operation((i % 2) as u16, i * MS, i * MS + i);
            for recorder in [if i % 3 == 0 { &mut left } else { &mut right }, &mut all] {
                recorder.sent(&operation, i);
                recorder.completed(&operation, operation.sent_ns + i * 7_000, 1);
                recorder.found(&operation, 1, 2);
            }
        }
        for recorder in [&mut left, &mut right, &mut all] {
            recorder.take_second(0);
        }
        left.merge(&right);
        assert_eq!(left.total().counts, all.total().counts);
        for (mine, theirs) in left.classes().iter().zip(all.classes()) {
            assert_eq!(mine.clocks.response.summary(), theirs.clocks.response.summary());
            assert_eq!(mine.counts, theirs.counts);
        }
        assert_eq!(all.total().counts.hit_rate(), Some(1.0 / 3.0));
    }
}

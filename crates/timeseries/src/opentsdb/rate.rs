//! Rates: the change of a value per second.

use super::{Line, Values};

/// How rates are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateOptions {
    /// The value only grows, until it wraps around or starts again.
    pub counter: bool,
    /// The value at which a counter wraps around.
    pub counter_max: i64,
    /// A rate above this, after a counter wrapped around, becomes 0; 0 switches this off.
    pub reset_value: i64,
    /// A counter that became smaller has no rate for that time.
    pub drop_resets: bool,
}

impl Default for RateOptions {
    fn default() -> Self {
        Self { counter: false, counter_max: i64::MAX, reset_value: 0, drop_resets: false }
    }
}

/// The rates of a line. The first one is the change since a value of 0 in 1970: [`merge`](super::merge::merge) does not show it.
pub(super) fn rates(line: &Line, options: &RateOptions) -> Line {
    let (mut times, mut rates) = (Vec::with_capacity(line.len()), Vec::with_capacity(line.len()));
    let mut before = 0;
    for (at, time) in line.times.iter().enumerate() {
        let seconds = (time - before) as f64 / 1000.0;
        before = *time;
        if let Some(change) = change(line, at, options) {
            let rate = change.by / seconds;
            let reset = change.wrapped && options.reset_value > 0 && rate > options.reset_value as f64;
            times.push(*time);
            rates.push(if reset { 0.0 } else { rate });
        }
    }
    Line::floats(times, rates)
}

struct Change {
    by: f64,
    wrapped: bool,
}

fn change(line: &Line, at: usize, options: &RateOptions) -> Option<Change> {
    let (by, over_the_top) = match &line.values {
        Values::Integers(values) => {
            let (before, now) = (at.checked_sub(1).map_or(0, |before| values[before]), values[at]);
            let over = options.counter_max.wrapping_sub(before).wrapping_add(now);
            (now.wrapping_sub(before) as f64, over as f64)
        }
        Values::Floats(values) => {
            // Before the first point there is the integer 0, which makes no difference here.
            let (before, now) = (at.checked_sub(1).map_or(0.0, |before| values[before]), values[at]);
            (now - before, options.counter_max as f64 - before + now)
        }
    };
    match options.counter && by < 0.0 {
        true if options.drop_resets => None,
        true => Some(Change { by: over_the_top, wrapped: true }),
        false => Some(Change { by, wrapped: false }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[i64], options: RateOptions) -> Vec<f64> {
        let times = (1..=values.len() as i64).map(|second| second * 1000).collect();
        let line = Line { times, values: Values::Integers(values.to_vec()) };
        let Values::Floats(rates) = rates(&line, &options).values else { panic!("rates are floats") };
        rates[1..].to_vec()
    }

    #[test]
    fn a_counter_wraps_around_resets_or_leaves_a_gap() {
        let counter = RateOptions { counter: true, counter_max: 100, ..RateOptions::default() };
        assert_eq!(of(&[10, 30, 20], RateOptions::default()), [20.0, -10.0]);
        assert_eq!(of(&[10, 90, 5], counter), [80.0, 15.0]);
        assert_eq!(of(&[10, 90, 5], RateOptions { reset_value: 10, ..counter }), [80.0, 0.0]);
        assert_eq!(of(&[10, 90, 5, 6], RateOptions { drop_resets: true, ..counter }), [80.0, 1.0]);
    }
}

//! The decision which layer is the narrowest.

use bench::capacity::Answer;
use serde::Serialize;

/// The capacity of a layer, in messages of the whole chain per second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Range {
    /// The capacity is not below this rate.
    pub low: f64,
    /// The capacity is not above this rate; `None` if the search has found no upper bound.
    pub high: Option<f64>,
}

impl Range {
    /// The range of an answer. One message causes `operations_per_message` operations.
    pub fn of(answer: &Answer, operations_per_message: f64) -> Self {
        let messages = |rate_per_s: f64| rate_per_s / operations_per_message;
        match answer {
            Answer::Found { interval, .. } => {
                Self { low: messages(interval.low), high: Some(messages(interval.high)) }
            }
            Answer::AtLeast { rate_per_s, .. } => Self { low: messages(*rate_per_s), high: None },
            Answer::Below { rate_per_s, .. } => Self { low: 0.0, high: Some(messages(*rate_per_s)) },
        }
    }
}

/// The narrowest layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Bottleneck {
    /// The range of this layer is below the ranges of all others.
    Certain {
        /// The index of the layer.
        layer: usize,
    },
    /// Each of these layers may be the narrowest: their ranges overlap, or a layer has no range.
    OneOf {
        /// The indexes of the layers, in the order of the chain.
        layers: Vec<usize>,
    },
}

/// Names the narrowest layer. `None` stands for a layer whose capacity is unknown: any rate.
pub fn narrowest(ranges: &[Option<Range>]) -> Bottleneck {
    let upper_bounds = ranges.iter().flatten().filter_map(|range| range.high);
    let lowest = upper_bounds.fold(f64::INFINITY, f64::min);
    // A layer whose lower bound is above the upper bound of another one is not the narrowest.
    let is_candidate = |range: &Option<Range>| range.is_none_or(|range| range.low <= lowest);
    let layers: Vec<usize> = (0..ranges.len()).filter(|index| is_candidate(&ranges[*index])).collect();
    match layers.as_slice() {
        [layer] => Bottleneck::Certain { layer: *layer },
        _ => Bottleneck::OneOf { layers },
    }
}

#[cfg(test)]
mod tests {
    use load::statistics::Interval;

    use super::*;

    fn range(low: f64, high: f64) -> Option<Range> {
        Some(Range { low, high: Some(high) })
    }

    fn at_least(low: f64) -> Option<Range> {
        Some(Range { low, high: None })
    }

    fn found(low: f64, high: f64) -> Answer {
        Answer::Found {
            rate_per_s: f64::midpoint(low, high),
            interval: Interval { low, high },
            safe_per_s: low,
            trials: 12,
            precise: true,
        }
    }

    fn one_of(layers: &[usize]) -> Bottleneck {
        Bottleneck::OneOf { layers: layers.to_vec() }
    }

    #[test]
    fn the_layer_whose_interval_is_below_all_others_is_named() {
        let layers = [range(40_000.0, 50_000.0), range(12_300.0, 13_100.0), range(13_200.0, 20_000.0)];
        assert_eq!(narrowest(&layers), Bottleneck::Certain { layer: 1 });
        assert_eq!(narrowest(&[at_least(900.0), range(100.0, 200.0)]), Bottleneck::Certain { layer: 1 });
    }

    #[test]
    fn layers_that_overlap_with_the_lowest_cannot_be_told_apart() {
        assert_eq!(narrowest(&[range(10.0, 20.0), range(19.0, 30.0), range(21.0, 40.0)]), one_of(&[0, 1]));
        // The bounds belong to the interval.
        assert_eq!(narrowest(&[range(10.0, 20.0), range(20.0, 30.0)]), one_of(&[0, 1]));
        // The first overlaps with the second and the second with the third, but the third is above the first.
        assert_eq!(narrowest(&[range(10.0, 20.0), range(15.0, 30.0), range(25.0, 40.0)]), one_of(&[0, 1]));
        assert_eq!(narrowest(&[range(10.0, 20.0), at_least(15.0)]), one_of(&[0, 1]));
        assert_eq!(narrowest(&[at_least(10.0), at_least(90.0)]), one_of(&[0, 1]));
    }

    #[test]
    fn with_a_layer_of_unknown_capacity_nothing_is_certain() {
        assert_eq!(narrowest(&[range(10.0, 20.0), None, range(30.0, 40.0)]), one_of(&[0, 1]));
        assert_eq!(narrowest(&[None, None]), one_of(&[0, 1]));
    }

    #[test]
    fn the_ratio_converts_operations_into_messages() {
        // A batch of 100 rows, and two operations for each message.
        let batches = Range::of(&found(200.0, 250.0), 0.01);
        assert_eq!((batches.low.round(), batches.high.map(f64::round)), (20_000.0, Some(25_000.0)));
        assert_eq!(Some(Range::of(&found(200.0, 250.0), 2.0)), range(100.0, 125.0));
        let because = String::new();
        let least = Answer::AtLeast { rate_per_s: 500.0, because: because.clone() };
        assert_eq!(Some(Range::of(&least, 0.5)), at_least(1_000.0));
        let below = Answer::Below { rate_per_s: 500.0, because };
        assert_eq!(Some(Range::of(&below, 5.0)), range(0.0, 100.0));
        // 200 batches a second are wider than 10,000 single operations.
        let layers = [Some(batches), Some(Range::of(&found(9_000.0, 10_000.0), 1.0))];
        assert_eq!(narrowest(&layers), Bottleneck::Certain { layer: 1 });
    }
}

//! The data of the HiTSDB test: which timelines there are, and which point comes at which place. It is computed from
//! its number, so it needs no memory and can be computed again for the comparison with what was stored.
//!
//! Point `p` belongs to timeline `p % count`, in cycle `p / count`; time advances by one interval in each cycle.

use load::dataset::Random;

/// Each name is such a text of ten bytes with a number behind it.
pub(crate) const METRIC: &str = "metricname";
/// The same for the keys of tags.
pub(crate) const TAG_KEY: &str = "tagkeyname";
/// The bytes of the text before the number of a tag's value.
const TAG_VALUE_BYTES: usize = 10;
/// The domain of the random numbers of values.
const DOMAIN: u64 = 0x6869_7473_6462;
/// Values are thousandths below a hundred.
const THOUSANDTHS: u64 = 100_000;

/// The timelines of one cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Timelines {
    /// Their number.
    pub(crate) count: u64,
    /// The number of metrics. Timeline i belongs to metric `i % metrics`.
    pub(crate) metrics: u64,
    /// The number of tags of each timeline. The first tag distinguishes the timelines.
    pub(crate) tags: u32,
    /// The text before the number of a tag's value. With another text, all timelines are new to the server.
    pub(crate) tag_value: String,
    /// The time of the first cycle, milliseconds since the epoch.
    pub(crate) start_ms: i64,
    /// The time between two cycles.
    pub(crate) interval_ms: i64,
    /// The source of the values.
    pub(crate) seed: u64,
}

/// The place of a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PointPosition {
    pub(crate) timeline: u64,
    pub(crate) cycle: u64,
}

impl Timelines {
    /// The place of point number `point`.
    pub(crate) fn place(&self, point: u64) -> PointPosition {
        PointPosition { timeline: point % self.count, cycle: point / self.count }
    }

    /// The number of a point.
    pub(crate) fn point(&self, place: PointPosition) -> u64 {
        place.cycle * self.count + place.timeline
    }

    /// The number of the metric of a timeline.
    pub(crate) fn metric(&self, timeline: u64) -> u64 {
        timeline % self.metrics
    }

    /// The number behind the value of tag `tag` of a timeline. The first is that of the timeline; each further tag has ten
    /// times as many values as the one before, beginning with ten.
    pub(crate) fn tag_value(&self, timeline: u64, tag: u32) -> u64 {
        if tag == 0 { timeline } else { timeline % 10_u64.pow(tag) }
    }

    /// The time of a cycle, milliseconds since the epoch.
    pub(crate) fn time_ms(&self, cycle: u64) -> i64 {
        self.start_ms + self.interval_ms * cycle.cast_signed()
    }

    /// The cycle of a time; `None` if it is none.
    pub(crate) fn cycle_at(&self, time_ms: i64) -> Option<u64> {
        let after = time_ms - self.start_ms;
        (after >= 0 && after % self.interval_ms == 0).then(|| (after / self.interval_ms).cast_unsigned())
    }

    /// The value at a place in thousandths: the text of a request is made of it.
    pub(crate) fn thousandths(&self, place: PointPosition) -> u64 {
        Random::keyed(self.seed, DOMAIN, self.point(place)).below(THOUSANDTHS)
    }

    /// The value at a place: the number nearest to the text of a request.
    pub(crate) fn value(&self, place: PointPosition) -> f64 {
        self.thousandths(place) as f64 / 1_000.0
    }

    /// The name of a metric.
    pub(crate) fn metric_name(&self, metric: u64) -> String {
        format!("{METRIC}{metric}")
    }

    /// The key and the value of the tag that distinguishes the timelines.
    pub(crate) fn first_tag(&self, timeline: u64) -> (String, String) {
        (format!("{TAG_KEY}0"), format!("{}{timeline}", self.tag_value))
    }
}

/// A text of ten bytes for the values of tags, another for each number.
pub(crate) fn tag_value_text(number: u64) -> String {
    let mut digits = Vec::new();
    let mut rest = number;
    while digits.len() < TAG_VALUE_BYTES - 1 {
        digits.push(b"0123456789abcdefghijklmnopqrstuvwxyz"[(rest % 36) as usize]);
        rest /= 36;
    }
    // No digit is before the number, which would otherwise be ambiguous.
    digits.iter().rev().map(|digit| char::from(*digit)).chain(['v']).collect()
}

#[cfg(test)]
pub(crate) fn example() -> Timelines {
    Timelines {
        count: 10,
        metrics: 3,
        tags: 2,
        tag_value: tag_value_text(0),
        start_ms: 1_700_000_000_000,
        interval_ms: 1_000,
        seed: 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_go_round_the_timelines_and_time_advances_with_each_cycle() {
        let timelines = example();
        let place = timelines.place(23);
        assert_eq!(place, PointPosition { timeline: 3, cycle: 2 });
        assert_eq!((timelines.point(place), timelines.time_ms(2)), (23, 1_700_000_002_000));
        assert_eq!(timelines.cycle_at(1_700_000_002_000), Some(2));
        assert_eq!((timelines.cycle_at(1_700_000_002_001), timelines.cycle_at(0)), (None, None));
    }

    #[test]
    fn every_timeline_belongs_to_one_metric() {
        let timelines = example();
        let mut counts = [0; 3];
        (0..10).for_each(|timeline| counts[timelines.metric(timeline) as usize] += 1);
        assert_eq!(counts, [4, 3, 3]);
    }

    #[test]
    fn a_value_is_the_number_that_its_text_means() {
        let timelines = Timelines { count: 1_000, ..example() };
        for timeline in 0..1_000 {
            let place = PointPosition { timeline, cycle: 7 };
            let thousandths = timelines.thousandths(place);
            let text = format!("{}.{:03}", thousandths / 1_000, thousandths % 1_000);
            assert_eq!(text.parse::<f64>().unwrap().to_bits(), timelines.value(place).to_bits(), "{text}");
        }
    }

    #[test]
    fn texts_of_tags_have_ten_bytes_and_differ() {
        let texts: std::collections::BTreeSet<String> = (0..5_000).map(tag_value_text).collect();
        assert_eq!(texts.len(), 5_000);
        assert!(texts.iter().all(|text| text.len() == TAG_VALUE_BYTES && text.ends_with('v')));
        assert_eq!((METRIC.len(), TAG_KEY.len()), (10, 10));
    }
}

//! Counters of virtual sensors. Their number is bounded by the number of sensors.

mod followers;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use self::followers::FollowerMetrics;
use crate::info::SourceState;

/// What a sensor leaves out, by the names of the metrics.
pub(crate) const LEFT_OUT: [&str; 14] = [
    "out_of_order",
    "late",
    "released_early",
    "overflowed",
    "slides_skipped",
    "executions_refused",
    "rows_over_rate",
    "rows_of_known_time",
    "rows_with_nulls",
    "sentences_refused",
    "rows_without_position",
    "scripts_stopped",
    "script_runs_left_out",
    "rows_refused",
];

/// What a sensor has counted since it was loaded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SensorCounts {
    pub(crate) elements: u64,
    pub(crate) rows: u64,
    pub(crate) faults: u64,
    pub(crate) turns_over_budget: u64,
    /// In the order of [`LEFT_OUT`].
    pub(crate) left_out: [u64; LEFT_OUT.len()],
}

/// What the connector of a source has counted since it began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SourceCounts {
    pub(crate) is_connected: bool,
    pub(crate) elements: u64,
    pub(crate) refused: u64,
    pub(crate) dropped: u64,
    pub(crate) failures: u64,
}

impl SourceCounts {
    /// The counts of what a connector has reported.
    pub(crate) fn of(state: &SourceState) -> Self {
        let SourceState { is_connected, elements, refused, dropped, failures, .. } = *state;
        Self { is_connected, elements, refused, dropped, failures }
    }
}

/// The sources of virtual sensors whose elements come from outside.
#[derive(Debug, Default)]
struct SourceMetrics {
    connected: Family<SourceLabel, Gauge>,
    elements: Family<SourceLabel, Counter>,
    refused: Family<SourceLabel, Counter>,
    dropped: Family<SourceLabel, Counter>,
    failures: Family<SourceLabel, Counter>,
}

/// Counters of virtual sensors.
#[derive(Debug, Default)]
pub(crate) struct VirtualSensorMetrics {
    sensors: Family<StateLabel, Gauge>,
    elements: Family<SensorLabel, Counter>,
    rows: Family<SensorLabel, Counter>,
    faults: Family<SensorLabel, Counter>,
    turns_over_budget: Family<SensorLabel, Counter>,
    left_out: Family<LeftOutLabel, Counter>,
    sources: SourceMetrics,
    /// Series that were read again from the store because the queue was full.
    pub rereads: Counter,
    /// Bytes of rows that wait for the evaluation.
    pub queued_bytes: Gauge,
    pub(crate) followers: FollowerMetrics,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabel {
    state: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SensorLabel {
    sensor: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SourceLabel {
    sensor: String,
    source: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LeftOutLabel {
    sensor: String,
    reason: &'static str,
}

impl VirtualSensorMetrics {
    /// The numbers of sensors that run and that do not.
    pub(crate) fn sensors(&self, running: usize, failed: usize) {
        for (state, count) in [("running", running), ("failed", failed)] {
            self.sensors.get_or_create(&StateLabel { state }).set(i64::try_from(count).unwrap_or(i64::MAX));
        }
    }

    /// Counts what a sensor has done since it was counted before.
    pub(crate) fn count(&self, sensor: &str, before: &SensorCounts, now: &SensorCounts) {
        let label = SensorLabel { sensor: sensor.to_owned() };
        self.elements.get_or_create(&label).inc_by(now.elements.saturating_sub(before.elements));
        self.rows.get_or_create(&label).inc_by(now.rows.saturating_sub(before.rows));
        self.faults.get_or_create(&label).inc_by(now.faults.saturating_sub(before.faults));
        let over = now.turns_over_budget.saturating_sub(before.turns_over_budget);
        self.turns_over_budget.get_or_create(&label).inc_by(over);
        for (at, reason) in LEFT_OUT.into_iter().enumerate() {
            let more = now.left_out[at].saturating_sub(before.left_out[at]);
            if more > 0 {
                let label = LeftOutLabel { sensor: sensor.to_owned(), reason };
                self.left_out.get_or_create(&label).inc_by(more);
            }
        }
    }

    /// Counts what the connector of a source has reported since it reported before.
    pub(crate) fn count_source(
        &self,
        (sensor, source): (&str, &str),
        before: &SourceCounts,
        now: &SourceCounts,
    ) {
        let label = SourceLabel { sensor: sensor.to_owned(), source: source.to_owned() };
        self.sources.connected.get_or_create(&label).set(i64::from(now.is_connected));
        for (family, before, now) in [
            (&self.sources.elements, before.elements, now.elements),
            (&self.sources.refused, before.refused, now.refused),
            (&self.sources.dropped, before.dropped, now.dropped),
            (&self.sources.failures, before.failures, now.failures),
        ] {
            // A connector that was started again counts from zero.
            family.get_or_create(&label).inc_by(now.checked_sub(before).unwrap_or(now));
        }
    }

    /// Forgets a source that is gone.
    pub(crate) fn forget_source(&self, sensor: &str, source: &str) {
        let label = SourceLabel { sensor: sensor.to_owned(), source: source.to_owned() };
        self.sources.connected.remove(&label);
        let SourceMetrics { elements, refused, dropped, failures, .. } = &self.sources;
        for family in [elements, refused, dropped, failures] {
            family.remove(&label);
        }
    }

    /// Forgets a sensor that is gone.
    pub(crate) fn forget(&self, sensor: &str) {
        let label = SensorLabel { sensor: sensor.to_owned() };
        for family in [&self.elements, &self.rows, &self.faults, &self.turns_over_budget] {
            family.remove(&label);
        }
        for reason in LEFT_OUT {
            self.left_out.remove(&LeftOutLabel { sensor: sensor.to_owned(), reason });
        }
    }

    /// Gives the metrics their names.
    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register("virtual_sensors", "Virtual sensors by state", self.sensors.clone());
        for (name, help, family) in [
            ("virtual_sensor_elements", "Elements that a virtual sensor has evaluated", &self.elements),
            ("virtual_sensor_rows", "Rows that a virtual sensor has made", &self.rows),
            (
                "virtual_sensor_faults",
                "Elements, executions and rows that could not be computed",
                &self.faults,
            ),
            (
                "virtual_sensor_turns_over_budget",
                "Turns of a virtual sensor in which one evaluation took longer than the turn may take",
                &self.turns_over_budget,
            ),
        ] {
            registry.register(name, help, family.clone());
        }
        let help = "What a virtual sensor has left out, by reason";
        registry.register("virtual_sensor_left_out", help, self.left_out.clone());
        let help = "Whether the connector of a source of a virtual sensor reads";
        registry.register("virtual_sensor_source_connected", help, self.sources.connected.clone());
        for (name, help, family) in [
            (
                "virtual_sensor_source_elements",
                "Elements from outside that were stored",
                &self.sources.elements,
            ),
            (
                "virtual_sensor_source_refused",
                "Elements from outside that were refused",
                &self.sources.refused,
            ),
            (
                "virtual_sensor_source_dropped",
                "Elements that came while the server was busy, from a source that cannot wait",
                &self.sources.dropped,
            ),
            (
                "virtual_sensor_source_failures",
                "Lost or refused connections of a source",
                &self.sources.failures,
            ),
        ] {
            registry.register(name, help, family.clone());
        }
        let help = "Series read again because the queue of the virtual sensors was full";
        registry.register("virtual_sensor_rereads", help, self.rereads.clone());
        let help = "Bytes of rows that wait for virtual sensors";
        registry.register("virtual_sensor_queued_bytes", help, self.queued_bytes.clone());
        self.followers.register(registry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sensor_is_counted_on_and_forgotten() {
        let metrics = VirtualSensorMetrics::default();
        let first = SensorCounts { elements: 3, rows: 2, ..SensorCounts::default() };
        let second = SensorCounts { elements: 5, rows: 2, left_out: [1; LEFT_OUT.len()], ..first };
        metrics.count("v", &SensorCounts::default(), &first);
        metrics.count("v", &first, &second);
        // A sensor that was loaded again counts from zero.
        metrics.count("v", &SensorCounts::default(), &first);
        let label = SensorLabel { sensor: "v".to_owned() };
        assert_eq!(metrics.elements.get_or_create(&label).get(), 8);
        let late = LeftOutLabel { sensor: "v".to_owned(), reason: "late" };
        assert_eq!(metrics.left_out.get_or_create(&late).get(), 1);
        let read = SourceCounts { is_connected: true, elements: 7, ..SourceCounts::default() };
        metrics.count_source(("v", "s/a"), &SourceCounts::default(), &read);
        metrics.count_source(("v", "s/a"), &read, &SourceCounts { elements: 2, ..read });
        let source = SourceLabel { sensor: "v".to_owned(), source: "s/a".to_owned() };
        assert_eq!(metrics.sources.elements.get_or_create(&source).get(), 9);
        metrics.forget_source("v", "s/a");
        assert_eq!(metrics.sources.elements.get_or_create(&source).get(), 0);
        metrics.forget("v");
        assert_eq!(metrics.elements.get_or_create(&label).get(), 0);
    }
}

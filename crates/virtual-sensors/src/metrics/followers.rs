//! Gauges of the followers of virtual sensors. Their number is bounded by the number of sensors.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::info::FollowerInfo;

/// Gauges of the followers of virtual sensors.
#[derive(Debug, Default)]
pub(crate) struct FollowerMetrics {
    connected: Family<FollowerLabel, Gauge>,
    rows_behind: Family<FollowerLabel, Gauge>,
    rows: Family<FollowerLabel, Gauge>,
    failures: Family<FollowerLabel, Gauge>,
    refused: Family<FollowerLabel, Gauge>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FollowerLabel {
    sensor: String,
    follower: String,
}

impl FollowerMetrics {
    /// Shows what a follower does.
    pub(crate) fn set(&self, sensor: &str, info: &FollowerInfo) {
        let label = FollowerLabel { sensor: sensor.to_owned(), follower: info.name.clone() };
        let set = |family: &Family<FollowerLabel, Gauge>, value: u64| {
            family.get_or_create(&label).set(i64::try_from(value).unwrap_or(i64::MAX));
        };
        set(&self.connected, u64::from(info.report.is_connected));
        set(&self.rows_behind, info.rows_behind);
        set(&self.rows, info.rows);
        set(&self.failures, info.report.failures);
        set(&self.refused, info.report.refused);
    }

    /// Forgets a follower of a sensor that is gone.
    pub(crate) fn forget(&self, sensor: &str, follower: &str) {
        let label = FollowerLabel { sensor: sensor.to_owned(), follower: follower.to_owned() };
        for family in [&self.connected, &self.rows_behind, &self.rows, &self.failures, &self.refused] {
            family.remove(&label);
        }
    }

    pub(crate) fn register(&self, registry: &mut Registry) {
        for (name, help, family) in [
            (
                "virtual_sensor_follower_connected",
                "Whether the target takes the rows of a virtual sensor",
                &self.connected,
            ),
            (
                "virtual_sensor_follower_rows_behind",
                "Rows of a virtual sensor that the target does not have yet",
                &self.rows_behind,
            ),
            (
                "virtual_sensor_follower_rows",
                "Rows of a virtual sensor that the target has taken since the start",
                &self.rows,
            ),
            (
                "virtual_sensor_follower_refused",
                "Rows of a virtual sensor that the target has refused for good",
                &self.refused,
            ),
            (
                "virtual_sensor_follower_failures",
                "Attempts to deliver rows of a virtual sensor that failed",
                &self.failures,
            ),
        ] {
            registry.register(name, help, family.clone());
        }
    }
}

//! Counters of alarms and their rules.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use sensors::alarm_rules::Severity;

/// Counters of alarms and their rules.
#[derive(Debug, Default)]
pub struct AlarmMetrics {
    active: Family<SeverityLabel, Gauge>,
    /// Rows and changes of attributes that rules were evaluated for.
    pub events: Counter,
    /// Alarms that rules created, changed or cleared.
    pub transitions: Counter,
    /// Series that were read again from the store because the queue of the rules was full.
    pub rereads: Counter,
    /// Values that are not numbers and were compared with numbers.
    pub mismatches: Counter,
    /// Cleared alarms that made room for new ones.
    pub evicted: Counter,
    /// Alarms that rules could not create because all alarms of the tenant are active.
    pub refused: Counter,
    /// Bytes of rows that wait for the evaluation.
    pub queued_bytes: Gauge,
    /// Devices whose rules have a state.
    pub devices: Gauge,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SeverityLabel {
    severity: &'static str,
}

impl AlarmMetrics {
    /// The number of active alarms of a severity.
    pub(crate) fn active(&self, severity: Severity) -> Gauge {
        self.active.get_or_create(&SeverityLabel { severity: severity.name() }).clone()
    }

    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register("alarm_active", "Active alarms by severity", self.active.clone());
        for (name, help, counter) in [
            ("alarm_events", "Rows and changes of attributes that rules were evaluated for", &self.events),
            ("alarm_transitions", "Alarms that rules created, changed or cleared", &self.transitions),
            ("alarm_rereads", "Series read again because the queue of the rules was full", &self.rereads),
            ("alarm_type_mismatches", "Values that are not numbers, compared with numbers", &self.mismatches),
            ("alarm_evicted", "Cleared alarms that made room for new ones", &self.evicted),
            ("alarm_refused", "Alarms without room because all of the tenant are active", &self.refused),
        ] {
            registry.register(name, help, counter.clone());
        }
        let bytes = "Bytes of rows that wait for the evaluation of rules";
        registry.register("alarm_queued_bytes", bytes, self.queued_bytes.clone());
        registry.register("alarm_rule_devices", "Devices whose rules have a state", self.devices.clone());
    }
}

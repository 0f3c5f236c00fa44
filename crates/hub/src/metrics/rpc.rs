//! Counters of RPC.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// Counters of RPC.
#[derive(Debug, Default)]
pub struct RpcMetrics {
    /// Calls of devices that have not ended.
    pub pending: Gauge,
    /// Calls of devices.
    pub calls: Counter,
    /// Calls that a device did not take or answer in time.
    pub timeouts: Counter,
    /// Answers of devices that no call waited for.
    pub late_answers: Counter,
    /// Calls of the server by devices.
    pub from_devices: Counter,
}

impl RpcMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register("rpc_pending", "Calls of devices that have not ended", self.pending.clone());
        for (name, help, counter) in [
            ("rpc_calls", "Calls of devices", &self.calls),
            ("rpc_timeouts", "Calls that a device did not take or answer in time", &self.timeouts),
            ("rpc_late_answers", "Answers of devices that no call waited for", &self.late_answers),
            ("rpc_from_devices", "Calls of the server by devices", &self.from_devices),
        ] {
            registry.register(name, help, counter.clone());
        }
    }
}

//! The memory of the process.

use model::MemoryPressure;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// The present use of memory.
#[derive(Debug, Default)]
pub(super) struct MemoryGauges {
    allocated_bytes: Gauge,
    used_bytes: Gauge,
    limit_bytes: Gauge,
    pressure: Gauge,
}

impl MemoryGauges {
    pub(super) fn register(&self, registry: &mut Registry) {
        let used = "Bytes that count against the limit of the memory of which the largest part is used";
        let pressure = "0 normal, 1 high: large work waits or is refused, 2 critical: messages wait too";
        for (name, help, gauge) in [
            ("memory_allocated_bytes", "Bytes that the program has allocated", &self.allocated_bytes),
            ("memory_used_bytes", used, &self.used_bytes),
            ("memory_limit_bytes", "This limit", &self.limit_bytes),
            ("memory_pressure", pressure, &self.pressure),
        ] {
            registry.register(name, help, gauge.clone());
        }
    }

    pub(super) fn set(&self, pressure: &MemoryPressure, allocated: u64) {
        let put = |gauge: &Gauge, value: u64| {
            gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
        };
        put(&self.allocated_bytes, allocated);
        put(&self.used_bytes, pressure.used());
        put(&self.limit_bytes, pressure.available());
        put(&self.pressure, pressure.level() as u64);
    }
}

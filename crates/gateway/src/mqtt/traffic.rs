//! Counts of the packets of connections.

use hub::broker::BrokerMetrics;

/// Packets that one side has sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Traffic {
    pub(super) packets: u64,
    pub(super) publishes: u64,
    pub(super) bytes: u64,
}

impl Traffic {
    pub(super) fn add_packet(&mut self, is_publish: bool, bytes: usize) {
        self.add(Self { packets: 1, publishes: u64::from(is_publish), bytes: bytes as u64 });
    }

    pub(super) fn add(&mut self, more: Self) {
        self.packets += more.packets;
        self.publishes += more.publishes;
        self.bytes += more.bytes;
    }

    /// Counts it as sent to clients.
    pub(super) fn count_sent(self, metrics: &BrokerMetrics) {
        metrics.packets_sent.inc_by(self.packets);
        metrics.publishes_sent.inc_by(self.publishes);
        metrics.bytes_sent.inc_by(self.bytes);
    }

    /// Counts it as received from clients.
    pub(super) fn count_received(self, metrics: &BrokerMetrics) {
        metrics.packets_received.inc_by(self.packets);
        metrics.publishes_received.inc_by(self.publishes);
        metrics.bytes_received.inc_by(self.bytes);
    }
}

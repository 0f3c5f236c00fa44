//! Options of the MQTT door for operators. Fixed bounds are in [`limits`].

use std::io;

use super::limits;
use crate::door::{DoorLimits, Networks};
use model::limits::Portion;

/// The topics that belong to a device.
pub const OWN_TOPICS: &str = "devices/${device}/#";

/// Options of the MQTT door.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MqttOptions {
    /// Threads with an event loop.
    pub workers: usize,
    /// Most bytes of one packet.
    pub packet_bytes_max: usize,
    /// Most messages of one session that may wait for their ack. CONNACK has it for MQTT 5 clients. The worker stops
    /// reading from a 3.1.1 client that sends more.
    pub receive_maximum: u16,
    /// Seconds after which the worker closes a connection without CONNECT.
    pub connect_timeout_s: u32,
    /// Seconds of silence after which the worker closes a connection with an unfinished packet.
    pub packet_timeout_s: u32,
    /// Longest keep-alive of MQTT 5 clients, in seconds; 0 for no bound.
    pub keep_alive_max_s: u16,
    /// Seconds between two reports of the broker's counters under `$SYS`; 0 for none.
    pub sys_interval_s: u16,
    /// Patterns of the topics that a device may publish to, besides those of the device API ([`hub::registry::fill`]). A device
    /// profile may have lists of its own.
    pub publish_topics: Vec<String>,
    /// Patterns of the topic filters that a device may subscribe to.
    pub subscribe_topics: Vec<String>,
    /// Limits of connections and messages. Above the limit of messages the door reads later.
    pub limits: DoorLimits,
    /// The load balancers that send a header of the PROXY protocol.
    pub proxies: Networks,
    /// Scales the fixed bounds in bytes to the memory of this machine.
    pub memory: Portion,
}

impl Default for MqttOptions {
    fn default() -> Self {
        Self {
            workers: 2,
            packet_bytes_max: 1024 * 1024,
            receive_maximum: 1_024,
            connect_timeout_s: 10,
            packet_timeout_s: 30,
            keep_alive_max_s: 600,
            sys_interval_s: 10,
            publish_topics: vec![OWN_TOPICS.into()],
            subscribe_topics: vec![OWN_TOPICS.into()],
            limits: DoorLimits::of_connections(usize::MAX),
            proxies: Networks::default(),
            memory: Portion::ALL,
        }
    }
}

impl MqttOptions {
    /// Bytes of unfinished packets, over all connections of a worker. Two packets of the largest size fit.
    pub(crate) fn partial_bytes_max(&self) -> usize {
        self.memory.of(limits::PARTIAL_BYTES_MAX).max(2 * self.packet_bytes_max)
    }

    /// Bytes of waiting wills, per worker.
    pub(crate) fn late_wills_bytes_max(&self) -> usize {
        self.memory.of(limits::LATE_WILLS_BYTES_MAX)
    }

    pub(super) fn check(&self) -> io::Result<()> {
        let packet = self.packet_bytes_max;
        let (least, most) = (limits::PACKET_BYTES_MIN, limits::PACKET_BYTES_MAX);
        let fault = if !(least..=most).contains(&packet) {
            format!("packet_bytes_max is {packet}, it must be from {least} to {most}")
        } else if self.receive_maximum == 0 {
            "receive_maximum is 0, it must be at least 1".into()
        } else if self.sys_interval_s > limits::SYS_INTERVAL_MAX_S {
            format!(
                "sys_interval_s is {}, it must be at most {}",
                self.sys_interval_s,
                limits::SYS_INTERVAL_MAX_S
            )
        } else if self.workers > usize::from(u16::MAX) {
            format!("workers is {}, it must be at most {}", self.workers, u16::MAX)
        } else {
            return Ok(());
        };
        Err(io::Error::new(io::ErrorKind::InvalidInput, fault))
    }
}

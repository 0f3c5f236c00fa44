//! Once a second: silent peers, peers that take nothing, and devices that were deleted or changed.

use wire::mqtt::ReasonCode;

use super::super::acks::ConnectionKey;
use super::super::connection::Connection;
use super::super::session::{Close, Session};
use super::super::{MqttOptions, limits};
use super::Worker;

impl Worker {
    pub(super) fn tick(&mut self) {
        let now_s = self.door.now_s();
        if now_s == self.ticked_at_s {
            return;
        }
        self.ticked_at_s = now_s;
        let registry_generation = self.door.hub.registry().generation();
        let registry_changed =
            std::mem::replace(&mut self.registry_generation, registry_generation) != registry_generation;
        let mut overdue = Vec::new();
        for (slot, connection) in &mut self.connections {
            if connection.held || connection.readable {
                // We are the silent side: the peer may have sent what we do not read.
                connection.heard_at_s = now_s;
            }
            let key = ConnectionKey { slot: slot as u32, generation: connection.generation };
            if let Some(close) = overdue_close(connection, now_s, &self.door.options) {
                overdue.push((key, close));
            } else if registry_changed && let Session::Connected(connected) = &mut connection.session {
                overdue.extend(connected.follow(self.door.hub.registry()).err().map(|close| (key, close)));
            }
        }
        for (key, close) in overdue {
            self.close(key, close);
        }
        self.close_silent();
    }
}

fn overdue_close(connection: &Connection, now_s: u32, options: &MqttOptions) -> Option<Close> {
    let silent_s = now_s.saturating_sub(connection.heard_at_s);
    let unsent_s = connection.unsent_since_s.map_or(0, |since_s| now_s.saturating_sub(since_s));
    match &connection.session {
        // Counted from the beginning, or a byte now and then would keep the place for ever.
        Session::New if now_s.saturating_sub(connection.opened_at_s) > options.connect_timeout_s => {
            let cause = format!("no CONNECT within {} s", options.connect_timeout_s);
            Some(Close::refused(ReasonCode::MAXIMUM_CONNECT_TIME, "connect_timeout", cause))
        }
        Session::New => None,
        Session::Connected(_) if unsent_s > limits::UNSENT_TIMEOUT_S => {
            let cause = format!("the peer has taken none of its acks for {unsent_s} s");
            Some(Close::refused(ReasonCode::QUOTA_EXCEEDED, "unread_acks", cause))
        }
        Session::Connected(connected)
            if connected.silence_max_s > 0 && silent_s > connected.silence_max_s =>
        {
            let cause =
                format!("nothing heard for {silent_s} s, more than 1.5 times the keep-alive [MQTT-3.1.2-22]");
            Some(Close::refused(ReasonCode::KEEP_ALIVE_TIMEOUT, "keep_alive", cause))
        }
        Session::Connected(_) if connection.partial_bytes() > 0 && silent_s > options.packet_timeout_s => {
            let cause = format!("the rest of a packet did not arrive within {} s", options.packet_timeout_s);
            Some(Close::refused(ReasonCode::KEEP_ALIVE_TIMEOUT, "partial_packet", cause))
        }
        Session::Connected(_) => None,
    }
}

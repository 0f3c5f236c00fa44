//! Checks once a second: silent peers, peers that accept no output, and devices that were deleted or changed.

use wire::mqtt::ReasonCode;

use super::super::acks::ConnectionKey;
use super::super::connection::Connection;
use super::super::limits;
use super::super::options::MqttOptions;
use super::super::session::{Session, SessionEnd, is_open_to};
use super::event_loop::Worker;

impl Worker {
    /// Closes overdue connections, at most once a second.
    pub(super) fn tick(&mut self) {
        let now_s = self.state.now_s();
        if now_s == self.ticked_at_s {
            return;
        }
        self.ticked_at_s = now_s;
        self.take_due_wills();
        if self.index == 0 && now_s.is_multiple_of(limits::SWEEP_INTERVAL_S) {
            self.state.hub.sweep_broker();
            self.end_forbidden_subscriptions();
        }
        self.publish_system(now_s);
        let registry_generation = self.state.hub.registry().generation();
        let registry_changed =
            std::mem::replace(&mut self.registry_generation, registry_generation) != registry_generation;
        let mut overdue = Vec::new();
        for (slot, connection) in &mut self.connections {
            if connection.paused || connection.readable {
                // The worker does not read, so the peer is not silent.
                connection.heard_at_s = now_s;
            }
            let key = ConnectionKey { slot: slot as u32, generation: connection.generation };
            let (hub, options) = (&self.state.hub, &self.state.options);
            if let Some(end) = overdue_end(connection, now_s, options) {
                overdue.push((key, end));
            } else if let Session::Connected(connected) = &mut connection.session {
                if registry_changed {
                    overdue.extend(connected.follow(hub, options).err().map(|end| (key, end)));
                }
                connected.end_forbidden_subscriptions(hub, options);
            }
        }
        for (key, end) in overdue {
            self.close(key, end);
        }
        self.close_silent();
    }

    /// Ends subscriptions of absent sessions that their devices may not have any more: after the start, because the settings may
    /// be others, and after a change of the topics of profiles.
    fn end_forbidden_subscriptions(&mut self) {
        let (hub, options) = (&self.state.hub, &self.state.options);
        let generation = hub.registry().topics_generation();
        if self.topics_generation == Some(generation) {
            return;
        }
        let is_permitted =
            |device, client: &str, filter: &str| is_open_to(device, client, filter, hub, options);
        match hub.broker().end_forbidden(&is_permitted) {
            Ok(ended) => {
                self.topics_generation = Some(generation);
                if ended > 0 {
                    tracing::info!(
                        ended,
                        "subscriptions of absent sessions ended: their devices may not have them any more"
                    );
                }
            }
            Err(error) => {
                tracing::warn!(%error, "subscriptions of absent sessions are not compared with the topics of profiles; the next sweep tries again")
            }
        }
    }

    /// Publishes the counters of the broker when they are due.
    fn publish_system(&mut self, now_s: u32) {
        let interval_s = u32::from(self.state.options.sys_interval_s);
        if self.index == 0 && interval_s > 0 && now_s >= self.system_due_s {
            self.system_due_s = now_s + interval_s;
            self.state.hub.publish_system(self.state.opened.elapsed());
        }
    }
}

fn overdue_end(connection: &Connection, now_s: u32, options: &MqttOptions) -> Option<SessionEnd> {
    let silent_s = now_s.saturating_sub(connection.heard_at_s);
    let unsent_s = connection.unsent_since_s.map_or(0, |since_s| now_s.saturating_sub(since_s));
    match &connection.session {
        Session::New | Session::Joining(_)
            if connection.entry.exceeded.is_some()
                && now_s.saturating_sub(connection.opened_at_s) > limits::REFUSING_TIMEOUT_S =>
        {
            Some(SessionEnd::normal("a refused connection sent no CONNECT"))
        }
        // Counted from the opening: otherwise a byte now and then would keep the connection open forever.
        Session::New | Session::Joining(_)
            if now_s.saturating_sub(connection.opened_at_s) > options.connect_timeout_s =>
        {
            let cause = format!("no CONNECT within {} s", options.connect_timeout_s);
            Some(SessionEnd::refused(ReasonCode::MAXIMUM_CONNECT_TIME, "connect_timeout", cause))
        }
        Session::New | Session::Joining(_) => None,
        Session::Provisioning(_)
            if now_s.saturating_sub(connection.opened_at_s) > limits::PROVISION_SESSION_S =>
        {
            let cause = format!("a client may ask for credentials for {} s", limits::PROVISION_SESSION_S);
            Some(SessionEnd::refused(ReasonCode::MAXIMUM_CONNECT_TIME, "provision_timeout", cause))
        }
        Session::Provisioning(asking) if asking.silence_max_s > 0 && silent_s > asking.silence_max_s => {
            Some(silent(silent_s))
        }
        Session::Provisioning(_) => None,
        Session::Connected(_) if unsent_s > limits::UNSENT_TIMEOUT_S => {
            let cause = format!("the peer has taken none of its acks for {unsent_s} s");
            Some(SessionEnd::refused(ReasonCode::QUOTA_EXCEEDED, "unread_acks", cause))
        }
        Session::Connected(connected)
            if connected.silence_max_s > 0 && silent_s > connected.silence_max_s =>
        {
            Some(silent(silent_s))
        }
        Session::Connected(_) if connection.partial_bytes() > 0 && silent_s > options.packet_timeout_s => {
            let cause = format!("the rest of a packet did not arrive within {} s", options.packet_timeout_s);
            Some(SessionEnd::refused(ReasonCode::KEEP_ALIVE_TIMEOUT, "partial_packet", cause))
        }
        Session::Connected(_) => None,
    }
}

fn silent(silent_s: u32) -> SessionEnd {
    let cause = format!("nothing heard for {silent_s} s, more than 1.5 times the keep-alive [MQTT-3.1.2-22]");
    SessionEnd::refused(ReasonCode::KEEP_ALIVE_TIMEOUT, "keep_alive", cause)
}

//! Registers connections under their client identifiers, over all workers: take-over and unfinished QoS 2 exchanges.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use parking_lot::Mutex;

use super::acks::ConnectionKey;
use super::limits;
use super::qos2::SharedQos2;

/// A client identifier of a device. Manufacturers give many devices the same identifier, so it is unique only within a
/// device. Otherwise one device could take over the session of another one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ClientKey {
    pub(crate) device: u128,
    pub(crate) client_id: Box<str>,
}

impl ClientKey {
    /// Bytes of the identifier.
    pub(crate) fn bytes(&self) -> usize {
        self.client_id.len()
    }
}

/// Identifies a connection of the door.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ConnectionRef {
    /// Index of its worker.
    pub(crate) worker: usize,
    /// Its key within the worker.
    pub(crate) key: ConnectionKey,
}

#[derive(Debug)]
enum Client {
    /// `outlives` indicates whether the session outlives its connection.
    Present {
        connection: ConnectionRef,
        qos2: SharedQos2,
        clean_start: bool,
        outlives: bool,
    },
    Absent {
        qos2: SharedQos2,
        ids: usize,
        forget_at_s: u32,
    },
}

/// The outcome of a will that waits for its delay.
#[derive(Debug, Default)]
pub(crate) struct WillOutcome(AtomicU8);

impl WillOutcome {
    const CONTINUED: u8 = 1;
    const ENDED: u8 = 2;

    /// The client has connected again before the delay was over.
    fn decide(&self, clean_start: bool) {
        let outcome = if clean_start { Self::ENDED } else { Self::CONTINUED };
        self.0.store(outcome, Ordering::Relaxed);
    }

    /// The client continues its session: the will is not published [MQTT-3.1.3-9].
    pub(crate) fn is_continued(&self) -> bool {
        self.0.load(Ordering::Relaxed) == Self::CONTINUED
    }

    /// The client has begun a new session, so the one of the will has ended: the will is published at once [MQTT-3.1.2-8].
    pub(crate) fn has_ended(&self) -> bool {
        self.0.load(Ordering::Relaxed) == Self::ENDED
    }
}

/// The result of a registration.
#[derive(Debug)]
pub(crate) struct Registered {
    /// The connection that used this identifier until now and must be closed [MQTT-3.1.4-3].
    pub(crate) taken_over: Option<ConnectionRef>,
    /// Whether the client continues a former session.
    pub(crate) session_present: bool,
    /// The session's unreleased QoS 2 identifiers.
    pub(crate) qos2: SharedQos2,
}

/// All clients of the door.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    registrations: Mutex<Registrations>,
}

#[derive(Debug, Default)]
struct Registrations {
    clients: HashMap<ClientKey, Client>,
    /// Wills that wait for their delay.
    wills: HashMap<ClientKey, Arc<WillOutcome>>,
    /// Packet identifiers that absent clients have not released.
    absent_ids: usize,
    expired_at_s: u32,
}

impl Clients {
    /// Registers a connection. `clean_start` drops the former session of the client; `outlives` indicates whether its new one outlives
    /// the connection.
    pub(crate) fn register(
        &self,
        key: ClientKey,
        connection: ConnectionRef,
        (clean_start, outlives): (bool, bool),
        now_s: u32,
    ) -> Registered {
        let mut registrations = self.registrations.lock();
        if let Some(outcome) = registrations.wills.remove(&key) {
            outcome.decide(clean_start);
        }
        let former = registrations.clients.remove(&key);
        let (taken_over, qos2) = match former {
            None => (None, None),
            // A session that does not outlive its connection ends with it.
            Some(Client::Present { connection, qos2, outlives, .. }) => {
                (Some(connection), Some(qos2).filter(|_| outlives))
            }
            Some(Client::Absent { qos2, ids, forget_at_s }) => {
                registrations.absent_ids -= ids;
                (None, Some(qos2).filter(|_| now_s < forget_at_s))
            }
        };
        let qos2 = qos2.filter(|_| !clean_start);
        let session_present = qos2.is_some();
        let qos2 = qos2.unwrap_or_default();
        let present = Client::Present { connection, qos2: Arc::clone(&qos2), clean_start, outlives };
        registrations.clients.insert(key, present);
        Registered { taken_over, session_present, qos2 }
    }

    /// The outcome of the will of a connection that has ended, which waits for its delay. The next connection of the client decides.
    pub(crate) fn await_will(&self, key: &ClientKey, ended: ConnectionRef) -> Arc<WillOutcome> {
        let outcome = Arc::<WillOutcome>::default();
        let mut registrations = self.registrations.lock();
        match registrations.clients.get(key) {
            Some(Client::Present { connection, clean_start, .. }) if *connection != ended => {
                outcome.decide(*clean_start);
            }
            _ => drop(registrations.wills.insert(key.clone(), Arc::clone(&outcome))),
        }
        outcome
    }

    /// A will does not wait any more.
    pub(crate) fn forget_will(&self, key: &ClientKey, outcome: &Arc<WillOutcome>) {
        let mut registrations = self.registrations.lock();
        if registrations.wills.get(key).is_some_and(|waiting| Arc::ptr_eq(waiting, outcome)) {
            registrations.wills.remove(key);
        }
    }

    /// Unregisters a connection, unless another one has taken its identifier over. Keeps unfinished QoS 2 exchanges for
    /// `keep_s` seconds.
    pub(crate) fn unregister(&self, key: &ClientKey, connection: ConnectionRef, keep_s: u32, now_s: u32) {
        let mut registrations = self.registrations.lock();
        let qos2 = match registrations.clients.get(key) {
            Some(Client::Present { connection: present, qos2, .. }) if *present == connection => {
                Arc::clone(qos2)
            }
            _ => return,
        };
        let keep_s = keep_s.min(limits::ABSENT_SESSION_S);
        let ids = qos2.lock().len();
        registrations.forget_expired(ids, now_s);
        if keep_s == 0 || ids == 0 || registrations.absent_ids + ids > limits::ABSENT_IDS_MAX {
            registrations.clients.remove(key);
            return;
        }
        registrations.absent_ids += ids;
        let forget_at_s = now_s.saturating_add(keep_s);
        registrations.clients.insert(key.clone(), Client::Absent { qos2, ids, forget_at_s });
    }
}

impl Registrations {
    /// Removes expired absent clients. Scans only if the bound would be exceeded, and at most once a second.
    fn forget_expired(&mut self, ids_to_come: usize, now_s: u32) {
        if self.absent_ids + ids_to_come <= limits::ABSENT_IDS_MAX || self.expired_at_s == now_s {
            return;
        }
        self.expired_at_s = now_s;
        let absent_ids = &mut self.absent_ids;
        self.clients.retain(|_, client| match client {
            Client::Absent { ids, forget_at_s, .. } if now_s >= *forget_at_s => {
                *absent_ids -= *ids;
                false
            }
            Client::Absent { .. } | Client::Present { .. } => true,
        });
    }
}

#[cfg(test)]
mod tests {
    use hub::Durability;

    use super::super::qos2::BatchRef;
    use super::*;

    fn key(id: &str) -> ClientKey {
        ClientKey { device: 1, client_id: id.into() }
    }

    fn connection(slot: u32) -> ConnectionRef {
        ConnectionRef { worker: 0, key: ConnectionKey { slot, generation: 1 } }
    }

    fn note(qos2: &SharedQos2, packet_id: u16) {
        qos2.lock().submit(packet_id, BatchRef { worker: 0, class: Durability::Fsync });
    }

    #[test]
    fn the_second_connection_takes_over_the_first_ones_identifier() {
        let clients = Clients::default();
        assert_eq!(clients.register(key("a"), connection(1), (true, false), 0).taken_over, None);
        assert_eq!(
            clients.register(key("a"), connection(2), (true, false), 0).taken_over,
            Some(connection(1))
        );
        // The late end of the first connection must not unregister the second.
        clients.unregister(&key("a"), connection(1), 0, 0);
        assert_eq!(
            clients.register(key("a"), connection(3), (true, false), 0).taken_over,
            Some(connection(2))
        );
        let other_device = ClientKey { device: 2, ..key("a") };
        assert_eq!(clients.register(other_device, connection(4), (true, false), 0).taken_over, None);
    }

    #[test]
    fn unreleased_identifiers_outlive_the_connection_for_a_while() {
        let clients = Clients::default();
        note(&clients.register(key("a"), connection(1), (false, true), 0).qos2, 7);
        clients.unregister(&key("a"), connection(1), 60, 100);
        let back = clients.register(key("a"), connection(2), (false, true), 159);
        assert!(back.session_present && back.qos2.lock().phase(7).is_some());
        clients.unregister(&key("a"), connection(2), 60, 200);
        let late = clients.register(key("a"), connection(3), (false, true), 260);
        assert!(!late.session_present && late.qos2.lock().len() == 0);
    }

    #[test]
    fn a_clean_start_discards_the_session() {
        let clients = Clients::default();
        note(&clients.register(key("a"), connection(1), (false, true), 0).qos2, 7);
        let fresh = clients.register(key("a"), connection(2), (true, false), 0);
        assert!(!fresh.session_present && fresh.qos2.lock().len() == 0);
        assert_eq!(fresh.taken_over, Some(connection(1)));
    }

    #[test]
    fn sessions_of_absent_clients_are_bounded_and_expire() {
        let clients = Clients::default();
        let leave_full = |id: &str, now_s| {
            let registered = clients.register(key(id), connection(1), (false, true), now_s);
            (0..=u16::MAX).for_each(|packet_id| note(&registered.qos2, packet_id));
            clients.unregister(&key(id), connection(1), 60, now_s);
        };
        let fit = limits::ABSENT_IDS_MAX / (usize::from(u16::MAX) + 1);
        (0..=fit).for_each(|n| leave_full(&n.to_string(), 1));
        let is_kept = |id: usize, now_s| {
            let back = clients.register(key(&id.to_string()), connection(2), (false, true), now_s);
            clients.unregister(&key(&id.to_string()), connection(2), 60, now_s);
            back.session_present
        };
        assert!(is_kept(0, 2) && is_kept(fit - 1, 2) && !is_kept(fit, 2));
        leave_full("later", 100);
        assert!(clients.register(key("later"), connection(3), (false, true), 101).session_present);
        assert_eq!(clients.registrations.lock().clients.len(), 1, "the others have expired");
    }

    #[test]
    fn the_next_connection_decides_about_a_will_that_waits() {
        for (clean_start, continued) in [(false, true), (true, false)] {
            let clients = Clients::default();
            clients.register(key("a"), connection(1), (true, true), 0);
            clients.unregister(&key("a"), connection(1), 60, 0);
            let outcome = clients.await_will(&key("a"), connection(1));
            assert!(!outcome.is_continued() && !outcome.has_ended());
            clients.register(key("a"), connection(2), (clean_start, true), 0);
            clients.unregister(&key("a"), connection(2), 60, 0);
            assert_eq!(
                (outcome.is_continued(), outcome.has_ended()),
                (continued, !continued),
                "also when it is gone"
            );
            // The new connection came before the end of the old one was seen.
            clients.register(key("a"), connection(3), (clean_start, true), 0);
            assert_eq!(clients.await_will(&key("a"), connection(2)).is_continued(), continued);
        }
        let clients = Clients::default();
        let outcome = clients.await_will(&key("a"), connection(1));
        clients.forget_will(&key("a"), &outcome);
        assert!(clients.registrations.lock().wills.is_empty());
    }

    #[test]
    fn a_session_that_ends_with_its_connection_is_not_continued_by_the_next_one() {
        for outlives in [false, true] {
            let clients = Clients::default();
            note(&clients.register(key("a"), connection(1), (false, outlives), 0).qos2, 7);
            let next = clients.register(key("a"), connection(2), (false, true), 0);
            assert_eq!((next.session_present, next.qos2.lock().len()), (outlives, usize::from(outlives)));
        }
    }
}

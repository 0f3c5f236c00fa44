//! Who is connected under which client identifier, over all workers: take-over and unfinished QoS 2 exchanges.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::acks::ConnectionKey;
use super::limits;
use super::received::ReceivedIds;

/// A client identifier of a device. Devices are told apart by their tokens, and their makers give many of them the same
/// identifier: shared, it would let one device hide another's messages.
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

/// Where a connection lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) worker: usize,
    pub(crate) connection: ConnectionKey,
}

#[derive(Debug)]
enum Client {
    Present { place: Place, received: ReceivedIds },
    Absent { received: ReceivedIds, ids: usize, forget_at_s: u32 },
}

/// What a connecting client finds.
#[derive(Debug)]
pub(crate) struct Entered {
    /// The connection that used this identifier until now and has to go [MQTT-3.1.4-3].
    pub(crate) taken_over: Option<Place>,
    /// Whether a former session is continued.
    pub(crate) session_present: bool,
    /// The session's unreleased QoS 2 identifiers.
    pub(crate) received: ReceivedIds,
}

/// All clients of a door.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    clients: HashMap<ClientKey, Client>,
    /// Identifiers that absent clients have left.
    absent_ids: usize,
    forgot_at_s: u32,
}

impl Clients {
    /// Registers a connection; `clean_start` forgets what the client left behind.
    pub(crate) fn enter(&self, key: ClientKey, place: Place, clean_start: bool, now_s: u32) -> Entered {
        let mut table = self.table.lock();
        let former = table.clients.remove(&key);
        let (taken_over, received) = match former {
            None => (None, None),
            Some(Client::Present { place, received }) => (Some(place), Some(received)),
            Some(Client::Absent { received, ids, forget_at_s }) => {
                table.absent_ids -= ids;
                (None, Some(received).filter(|_| now_s < forget_at_s))
            }
        };
        let received = received.filter(|_| !clean_start);
        let session_present = received.is_some();
        let received = received.unwrap_or_default();
        table.clients.insert(key, Client::Present { place, received: Arc::clone(&received) });
        Entered { taken_over, session_present, received }
    }

    /// Removes a connection, unless another one has taken the identifier over since. Keeps an unfinished QoS 2
    /// exchange for `keep_s` seconds.
    pub(crate) fn leave(&self, key: &ClientKey, place: Place, keep_s: u32, now_s: u32) {
        let mut table = self.table.lock();
        let received = match table.clients.get(key) {
            Some(Client::Present { place: present, received }) if *present == place => Arc::clone(received),
            _ => return,
        };
        let keep_s = keep_s.min(limits::ABSENT_SESSION_S);
        let ids = received.lock().len();
        table.forget_expired(ids, now_s);
        if keep_s == 0 || ids == 0 || table.absent_ids + ids > limits::ABSENT_IDS_MAX {
            table.clients.remove(key);
            return;
        }
        table.absent_ids += ids;
        let forget_at_s = now_s.saturating_add(keep_s);
        table.clients.insert(key.clone(), Client::Absent { received, ids, forget_at_s });
    }
}

impl Table {
    /// Looks through the absent only when they are many, and at most once a second.
    fn forget_expired(&mut self, ids_to_come: usize, now_s: u32) {
        if self.absent_ids + ids_to_come <= limits::ABSENT_IDS_MAX || self.forgot_at_s == now_s {
            return;
        }
        self.forgot_at_s = now_s;
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

    use super::super::received::Turn;
    use super::*;

    fn key(id: &str) -> ClientKey {
        ClientKey { device: 1, client_id: id.into() }
    }

    fn place(slot: u32) -> Place {
        Place { worker: 0, connection: ConnectionKey { slot, generation: 1 } }
    }

    fn note(received: &ReceivedIds, packet_id: u16) {
        received.lock().submit(packet_id, Turn { worker: 0, class: Durability::Fsync });
    }

    #[test]
    fn the_second_connection_takes_the_first_ones_place() {
        let clients = Clients::default();
        assert_eq!(clients.enter(key("a"), place(1), true, 0).taken_over, None);
        assert_eq!(clients.enter(key("a"), place(2), true, 0).taken_over, Some(place(1)));
        // The first one's late farewell must not remove the second.
        clients.leave(&key("a"), place(1), 0, 0);
        assert_eq!(clients.enter(key("a"), place(3), true, 0).taken_over, Some(place(2)));
        let other_device = ClientKey { device: 2, ..key("a") };
        assert_eq!(clients.enter(other_device, place(4), true, 0).taken_over, None);
    }

    #[test]
    fn unreleased_identifiers_outlive_the_connection_for_a_while() {
        let clients = Clients::default();
        note(&clients.enter(key("a"), place(1), false, 0).received, 7);
        clients.leave(&key("a"), place(1), 60, 100);
        let back = clients.enter(key("a"), place(2), false, 159);
        assert!(back.session_present && back.received.lock().phase(7).is_some());
        clients.leave(&key("a"), place(2), 60, 200);
        let late = clients.enter(key("a"), place(3), false, 260);
        assert!(!late.session_present && late.received.lock().len() == 0);
    }

    #[test]
    fn a_clean_start_forgets() {
        let clients = Clients::default();
        note(&clients.enter(key("a"), place(1), false, 0).received, 7);
        let fresh = clients.enter(key("a"), place(2), true, 0);
        assert!(!fresh.session_present && fresh.received.lock().len() == 0);
        assert_eq!(fresh.taken_over, Some(place(1)));
    }

    #[test]
    fn what_absent_clients_leave_has_a_bound_and_room_comes_back() {
        let clients = Clients::default();
        let leave_full = |id: &str, now_s| {
            let entered = clients.enter(key(id), place(1), false, now_s);
            (0..=u16::MAX).for_each(|packet_id| note(&entered.received, packet_id));
            clients.leave(&key(id), place(1), 60, now_s);
        };
        let fit = limits::ABSENT_IDS_MAX / (usize::from(u16::MAX) + 1);
        (0..=fit).for_each(|n| leave_full(&n.to_string(), 1));
        let is_kept = |id: usize, now_s| {
            let back = clients.enter(key(&id.to_string()), place(2), false, now_s);
            clients.leave(&key(&id.to_string()), place(2), 60, now_s);
            back.session_present
        };
        assert!(is_kept(0, 2) && is_kept(fit - 1, 2) && !is_kept(fit, 2));
        leave_full("later", 100);
        assert!(clients.enter(key("later"), place(3), false, 101).session_present);
        assert_eq!(clients.table.lock().clients.len(), 1, "the others have expired");
    }
}

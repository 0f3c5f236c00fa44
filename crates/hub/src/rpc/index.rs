//! The heads of all stored calls in memory.

use std::collections::{BTreeSet, HashMap};

use model::Timestamp;
use uuid::Uuid;

use super::error::RpcError;
use super::limits::{RPC_STORED_BYTES_PER_TENANT_MAX, RPC_STORED_PER_DEVICE_MAX, RPC_STORED_PER_TENANT_MAX};
use super::record::Head;

/// The heads, with orders of them.
#[derive(Debug, Default)]
pub(super) struct Index {
    held: HashMap<Uuid, IndexedCall>,
    /// Device, time, number, call.
    of_device: BTreeSet<(Uuid, i64, i32, Uuid)>,
    /// Tenant, time, call: those that have ended.
    ended: BTreeSet<(Uuid, i64, Uuid)>,
    /// The open calls by device and number.
    numbers: HashMap<(Uuid, i32), Uuid>,
    tenants: HashMap<Uuid, Usage>,
}

#[derive(Debug)]
struct IndexedCall {
    head: Head,
    offer: Offer,
}

/// Whether connections have got an open call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Offer {
    /// It is being stored. Its caller sends it.
    Storing,
    /// The outboxes of the device had no room.
    NoRoom,
    /// The connections at that time have it. Later ones get it when they subscribe.
    Sent,
}

#[derive(Debug, Default, Clone, Copy)]
struct Usage {
    calls: usize,
    bytes: u64,
}

impl Index {
    pub(super) fn head(&self, id: Uuid) -> Option<&Head> {
        self.held.get(&id).map(|held| &held.head)
    }

    /// The open call of a device with a number.
    pub(super) fn numbered(&self, device: Uuid, number: i32) -> Option<Uuid> {
        self.numbers.get(&(device, number)).copied()
    }

    /// All calls of a device, oldest first.
    pub(super) fn of_device(&self, device: Uuid) -> impl DoubleEndedIterator<Item = (Uuid, &Head, Offer)> {
        let range = (device, i64::MIN, 0, Uuid::nil())..=(device, i64::MAX, i32::MAX, Uuid::max());
        self.of_device.range(range).filter_map(|(_, _, _, id)| {
            let held = self.held.get(id)?;
            Some((*id, &held.head, held.offer))
        })
    }

    /// All calls.
    pub(super) fn all(&self) -> impl Iterator<Item = (Uuid, &Head)> {
        self.held.iter().map(|(id, held)| (*id, &held.head))
    }

    /// The calls to delete so that a new one finds room: those that ended, oldest first.
    ///
    /// # Errors
    /// Even without them there is no room.
    pub(super) fn victims(&self, tenant: Uuid, device: Uuid, bytes: u64) -> Result<Vec<Uuid>, RpcError> {
        let mut victims = Vec::new();
        let own = self.of_device(device).count();
        if own >= RPC_STORED_PER_DEVICE_MAX {
            let oldest = self.of_device(device).find(|(_, head, _)| !head.is_open()).map(|(id, ..)| id);
            let what = "calls of this device are stored and have not ended";
            victims.push(oldest.ok_or(RpcError::Busy {
                what,
                actual: own,
                limit: RPC_STORED_PER_DEVICE_MAX,
            })?);
        }
        let mut usage = self.tenants.get(&tenant).copied().unwrap_or_default();
        victims.iter().for_each(|id| usage.remove(&self.held[id].head));
        let range = (tenant, i64::MIN, Uuid::nil())..=(tenant, i64::MAX, Uuid::max());
        let mut ended = self.ended.range(range).filter(|(_, _, id)| !victims.contains(id));
        let mut more = Vec::new();
        while usage.calls >= RPC_STORED_PER_TENANT_MAX
            || usage.bytes + bytes > RPC_STORED_BYTES_PER_TENANT_MAX
        {
            let Some((_, _, id)) = ended.next() else {
                return Err(usage.refusal());
            };
            usage.remove(&self.held[id].head);
            more.push(*id);
        }
        drop(ended);
        victims.append(&mut more);
        Ok(victims)
    }

    /// Adds a call or replaces its head.
    pub(super) fn put(&mut self, id: Uuid, head: Head, offer: Offer) {
        self.remove(id);
        let usage = self.tenants.entry(head.tenant).or_default();
        usage.calls += 1;
        usage.bytes += head.bytes;
        self.of_device.insert((head.device, head.created_ms, head.number, id));
        match head.is_open() {
            true => drop(self.numbers.insert((head.device, head.number), id)),
            false => drop(self.ended.insert((head.tenant, head.created_ms, id))),
        }
        self.held.insert(id, IndexedCall { head, offer });
    }

    /// Replaces the head of a call.
    pub(super) fn set_head(&mut self, id: Uuid, head: Head) {
        if let Some(offer) = self.held.get(&id).map(|held| held.offer) {
            self.put(id, head, offer);
        }
    }

    pub(super) fn set_offer(&mut self, id: Uuid, offer: Offer) {
        if let Some(held) = self.held.get_mut(&id) {
            held.offer = offer;
        }
    }

    pub(super) fn remove(&mut self, id: Uuid) {
        let Some(IndexedCall { head, .. }) = self.held.remove(&id) else { return };
        self.of_device.remove(&(head.device, head.created_ms, head.number, id));
        self.ended.remove(&(head.tenant, head.created_ms, id));
        if self.numbers.get(&(head.device, head.number)) == Some(&id) {
            self.numbers.remove(&(head.device, head.number));
        }
        if let Some(usage) = self.tenants.get_mut(&head.tenant) {
            usage.remove(&head);
            if usage.calls == 0 {
                self.tenants.remove(&head.tenant);
            }
        }
    }

    /// The open calls of a device that a connection which subscribes gets, oldest first.
    pub(super) fn for_connection(&self, device: Uuid, now: Timestamp) -> Vec<(Uuid, Head)> {
        let open = self
            .of_device(device)
            .filter(|(_, head, offer)| *offer != Offer::Storing && head.is_open_at(now));
        open.map(|(id, head, _)| (id, head.clone())).collect()
    }

    /// The open calls of a device for which its outboxes had no room, oldest first.
    pub(super) fn without_room(&self, device: Uuid, now: Timestamp) -> Vec<(Uuid, Head)> {
        let open =
            self.of_device(device).filter(|(_, head, offer)| *offer == Offer::NoRoom && head.is_open_at(now));
        open.map(|(id, head, _)| (id, head.clone())).collect()
    }
}

impl Usage {
    fn remove(&mut self, head: &Head) {
        self.calls -= 1;
        self.bytes -= head.bytes;
    }

    fn refusal(self) -> RpcError {
        match self.calls >= RPC_STORED_PER_TENANT_MAX {
            true => RpcError::Busy {
                what: "calls of this tenant are stored and have not ended",
                actual: self.calls,
                limit: RPC_STORED_PER_TENANT_MAX,
            },
            false => RpcError::Busy {
                what: "bytes of calls of this tenant are stored",
                actual: self.bytes as usize,
                limit: RPC_STORED_BYTES_PER_TENANT_MAX as usize,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::status::RpcStatus;
    use super::*;

    const TENANT: Uuid = Uuid::from_u128(1);

    fn head(device: u128, created_ms: i64, status: RpcStatus, bytes: u64) -> Head {
        Head {
            tenant: TENANT,
            device: Uuid::from_u128(device),
            created_ms,
            expires_ms: i64::MAX,
            status,
            one_way: false,
            number: created_ms as i32,
            retries_left: 0,
            bytes,
        }
    }

    #[test]
    fn a_new_call_takes_the_place_of_the_oldest_that_ended() {
        let mut index = Index::default();
        let device = Uuid::from_u128(7);
        for n in 0..RPC_STORED_PER_DEVICE_MAX {
            index.put(Uuid::from_u128(n as u128), head(7, n as i64, RpcStatus::Queued, 1), Offer::Sent);
        }
        let refused = index.victims(TENANT, device, 1).unwrap_err().to_string();
        assert!(refused.starts_with("100 calls of this device are stored"), "{refused}");
        for n in [5, 3] {
            let id = Uuid::from_u128(n);
            let ended = index.head(id).unwrap().with(RpcStatus::Successful);
            index.set_head(id, ended);
        }
        assert_eq!(index.victims(TENANT, device, 1).unwrap(), [Uuid::from_u128(3)]);
        assert!(index.victims(TENANT, Uuid::from_u128(8), 1).unwrap().is_empty());
        assert_eq!(index.numbered(device, 3), None);
        assert_eq!(index.numbered(device, 4), Some(Uuid::from_u128(4)));
    }

    #[test]
    fn the_calls_of_a_tenant_are_bounded_in_bytes() {
        let mut index = Index::default();
        let third = RPC_STORED_BYTES_PER_TENANT_MAX / 3;
        for (n, status) in [(1, RpcStatus::Failed), (2, RpcStatus::Queued), (3, RpcStatus::Expired)] {
            index.put(Uuid::from_u128(n), head(n, n as i64, status, third), Offer::Sent);
        }
        let victims = |index: &Index, bytes| index.victims(TENANT, Uuid::from_u128(9), bytes);
        assert_eq!(victims(&index, third).unwrap(), [Uuid::from_u128(1)]);
        assert_eq!(victims(&index, 2 * third).unwrap(), [1, 3].map(Uuid::from_u128));
        assert!(victims(&index, 3 * third).is_err());
        for n in 1..=3 {
            index.remove(Uuid::from_u128(n));
        }
        assert!(index.tenants.is_empty() && index.ended.is_empty() && index.numbers.is_empty());
        assert!(victims(&index, 3 * third).unwrap().is_empty());
    }
}

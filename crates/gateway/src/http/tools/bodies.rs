//! Bounds request bodies in memory: in total, for each tenant and sender, and for all anonymous senders.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use hub::caller::Caller;
use hub::registry::Device;
use model::limits::BODY_MEMORY_FACTOR;
use model::{MemoryPressure, MemoryReservation, MemoryShortage, share_of};
use parking_lot::Mutex;
use uuid::Uuid;

use crate::error::ApiError;

/// The sender of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Sender {
    /// A sender without a session or token, such as one that logs in. All of them share one bound.
    Anonymous,
    /// A device, by its token.
    Device { id: Uuid, tenant: Uuid },
    /// A user, by the session.
    User { id: Uuid, tenant: Uuid },
}

impl Sender {
    pub(crate) fn device(device: &Device) -> Self {
        Self::Device { id: device.id, tenant: device.tenant }
    }

    pub(crate) fn caller(caller: &Caller) -> Self {
        Self::User { id: caller.user_id().unwrap_or_default(), tenant: caller.tenant() }
    }

    fn tenant(self) -> Option<Uuid> {
        match self {
            Self::Anonymous => None,
            Self::Device { tenant, .. } | Self::User { tenant, .. } => Some(tenant),
        }
    }
}

/// Bounds of bytes in memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BodyLimits {
    /// All senders together, without the anonymous ones. A tenant may have half of what the others leave; the only one all of it
    /// ([`share_of`]).
    pub(crate) total: usize,
    pub(crate) device: usize,
    pub(crate) user: usize,
    /// All anonymous senders.
    pub(crate) anonymous: usize,
}

/// The bodies in memory of a door.
#[derive(Debug)]
pub(crate) struct Bodies {
    limits: BodyLimits,
    pressure: Arc<MemoryPressure>,
    held: Mutex<ReservedBytes>,
}

#[derive(Debug, Default)]
struct ReservedBytes {
    total: usize,
    tenants: HashMap<Uuid, usize>,
    senders: HashMap<Sender, usize>,
}

/// The server has no room for a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoRoomForBody {
    /// An exceeded bound: its scope and its value.
    #[error("the bodies that {whose} may have in the server's memory are {limit} bytes at most; try again")]
    Limit { whose: &'static str, limit: usize },
    #[error(transparent)]
    Memory(MemoryShortage),
}

impl From<NoRoomForBody> for ApiError {
    fn from(refused: NoRoomForBody) -> Self {
        match refused {
            NoRoomForBody::Limit { .. } => Self::busy(refused.to_string()),
            NoRoomForBody::Memory(shortage) => shortage.into(),
        }
    }
}

impl Bodies {
    pub(crate) fn new(limits: BodyLimits, pressure: Arc<MemoryPressure>) -> Arc<Self> {
        Arc::new(Self { limits, pressure, held: Mutex::default() })
    }

    /// Opens the account of one body, without bytes. `tenants` is the number of tenants of the installation.
    pub(crate) fn begin(self: &Arc<Self>, sender: Sender, tenants: usize) -> HeldBytes {
        HeldBytes { bodies: Arc::clone(self), sender, tenants, bytes: 0, memory: None }
    }

    fn charge(&self, sender: Sender, tenants: usize, bytes: usize) -> Result<(), NoRoomForBody> {
        let (whose, limit) = match sender {
            Sender::Anonymous => ("senders without a login", self.limits.anonymous),
            Sender::Device { .. } => ("this device", self.limits.device),
            Sender::User { .. } => ("this user", self.limits.user),
        };
        let mut held = self.held.lock();
        let own = held.senders.get(&sender).copied().unwrap_or_default() + bytes;
        if own > limit {
            return Err(NoRoomForBody::Limit { whose, limit });
        }
        // Anonymous senders do not use up the bytes of the others.
        if let Some(tenant) = sender.tenant() {
            held.charge_tenant(tenant, tenants, self.limits.total, bytes)?;
        }
        held.senders.insert(sender, own);
        Ok(())
    }

    fn release(&self, sender: Sender, bytes: usize) {
        let mut held = self.held.lock();
        if let Some(tenant) = sender.tenant() {
            held.total -= bytes;
            subtract(&mut held.tenants, tenant, bytes);
        }
        subtract(&mut held.senders, sender, bytes);
    }
}

impl ReservedBytes {
    fn charge_tenant(
        &mut self,
        tenant: Uuid,
        tenants: usize,
        limit: usize,
        bytes: usize,
    ) -> Result<(), NoRoomForBody> {
        let before = self.tenants.get(&tenant).copied().unwrap_or_default();
        if self.total + bytes > limit {
            return Err(NoRoomForBody::Limit { whose: "all senders together", limit });
        }
        let share = share_of(limit as u64, (self.total - before) as u64, tenants) as usize;
        if before + bytes > share {
            return Err(NoRoomForBody::Limit { whose: "the devices and users of this tenant", limit: share });
        }
        self.total += bytes;
        self.tenants.insert(tenant, before + bytes);
        Ok(())
    }
}

fn subtract<K: Hash + Eq>(held: &mut HashMap<K, usize>, key: K, bytes: usize) {
    if let Some(own) = held.get_mut(&key) {
        *own -= bytes;
        if *own == 0 {
            held.remove(&key);
        }
    }
}

/// Bytes of one body on the account of its sender, until this is dropped.
#[derive(Debug)]
pub(crate) struct HeldBytes {
    bodies: Arc<Bodies>,
    sender: Sender,
    tenants: usize,
    bytes: usize,
    memory: Option<MemoryReservation>,
}

impl HeldBytes {
    /// Adds bytes that arrived. The rows that are made of them take memory too.
    pub(crate) fn add(&mut self, bytes: usize) -> Result<(), NoRoomForBody> {
        let more = bytes as u64 * BODY_MEMORY_FACTOR;
        match &mut self.memory {
            Some(memory) => memory.grow(more).map_err(NoRoomForBody::Memory)?,
            none => *none = Some(self.bodies.pressure.reserve(more).map_err(NoRoomForBody::Memory)?),
        }
        self.bodies.charge(self.sender, self.tenants, bytes)?;
        self.bytes += bytes;
        Ok(())
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.bodies.release(self.sender, self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: BodyLimits = BodyLimits { total: 10, device: 6, user: 8, anonymous: 4 };

    #[test]
    fn each_sender_has_a_share_and_anonymous_senders_use_none_of_it() {
        let bodies = Bodies::new(LIMITS, Arc::default());
        let [device, other] =
            [1, 2].map(|id| Sender::Device { id: Uuid::from_u128(id), tenant: Uuid::nil() });
        let mut first = bodies.begin(device, 1);
        first.add(5).unwrap();
        assert_eq!(first.add(2), Err(NoRoomForBody::Limit { whose: "this device", limit: 6 }));
        let again = bodies.begin(device, 1).add(2);
        assert_eq!(
            again,
            Err(NoRoomForBody::Limit { whose: "this device", limit: 6 }),
            "in another request too"
        );
        let mut second = bodies.begin(other, 1);
        second.add(5).unwrap();
        assert_eq!(second.add(1), Err(NoRoomForBody::Limit { whose: "all senders together", limit: 10 }));
        let mut stranger = bodies.begin(Sender::Anonymous, 1);
        stranger.add(4).unwrap();
        let other = bodies.begin(Sender::Anonymous, 1).add(1);
        assert_eq!(other, Err(NoRoomForBody::Limit { whose: "senders without a login", limit: 4 }));
        drop((first, second, stranger));
        let held = bodies.held.lock();
        assert_eq!((held.total, held.tenants.len(), held.senders.len()), (0, 0, 0));
    }

    #[test]
    fn a_tenant_leaves_room_for_the_others() {
        let bodies = Bodies::new(BodyLimits { total: 12, ..LIMITS }, Arc::default());
        let begin = |id, tenant| {
            let sender = Sender::Device { id: Uuid::from_u128(id), tenant: Uuid::from_u128(tenant) };
            bodies.begin(sender, 2)
        };
        let (mut first, mut second) = (begin(1, 8), begin(2, 8));
        first.add(4).unwrap();
        second.add(2).unwrap();
        let refused = second.add(1);
        let whose = "the devices and users of this tenant";
        assert_eq!(refused, Err(NoRoomForBody::Limit { whose, limit: 6 }));
        begin(3, 9).add(3).unwrap();
        drop((first, second));
        let held = bodies.held.lock();
        assert_eq!((held.total, held.tenants.len(), held.senders.len()), (0, 0, 0));
    }

    #[test]
    fn a_body_waits_for_the_memory_of_the_process() {
        const MIB: usize = 1024 * 1024;
        let pressure = Arc::new(MemoryPressure::default());
        let limits = BodyLimits { total: MIB, device: MIB, user: MIB, anonymous: MIB };
        let bodies = Bodies::new(limits, Arc::clone(&pressure));
        pressure.report(85, 100);
        assert!(matches!(bodies.begin(Sender::Anonymous, 1).add(MIB), Err(NoRoomForBody::Memory(_))));
        assert_eq!(bodies.held.lock().senders.len(), 0);
        pressure.report(0, 100 * MIB as u64);
        let mut body = bodies.begin(Sender::Anonymous, 1);
        assert_eq!(body.add(MIB), Ok(()));
        assert_eq!(pressure.reserved(), BODY_MEMORY_FACTOR * MIB as u64);
        drop(body);
        assert_eq!(pressure.reserved(), 0);
    }
}

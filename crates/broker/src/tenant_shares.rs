//! How the tenants share what the broker has once.

use uuid::Uuid;

/// What the tenants share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shared {
    /// Sessions that outlive their connections, of [`SESSIONS_MAX`](crate::limits::SESSIONS_MAX).
    Sessions,
    /// Subscriptions of all sessions, of [`SUBSCRIPTIONS_MAX`](crate::limits::SUBSCRIPTIONS_MAX).
    Subscriptions,
    /// Bytes of messages in memory, of [`MEMORY_BYTES_MAX`](crate::limits::MEMORY_BYTES_MAX).
    MemoryBytes,
}

/// Gives each tenant its share.
pub trait TenantShares: std::fmt::Debug + Send + Sync + 'static {
    /// The most that a tenant may have of `max` while the others have `others` of it.
    fn most(&self, tenant: Uuid, of: Shared, max: u64, others: u64) -> u64;
}

/// One tenant has all that the others leave.
impl TenantShares for () {
    fn most(&self, _tenant: Uuid, _of: Shared, max: u64, others: u64) -> u64 {
        max.saturating_sub(others)
    }
}

/// What a tenant has of something that the tenants share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TenantUse {
    /// Sessions that outlive their connections.
    pub sessions: u64,
    /// Subscriptions of all sessions.
    pub subscriptions: u64,
    /// Bytes of messages in memory, and of their places in queues.
    pub memory_bytes: u64,
    /// Retained topics.
    pub retained_topics: u64,
    /// Bytes of retained messages.
    pub retained_bytes: u64,
}

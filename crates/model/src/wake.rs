//! Wakes the event loop or task that serves a connection.

/// Wakes the thread or task that sends what waits for one connection.
///
/// An MQTT worker implements it with its poll, a tokio task with a notification. The caller may hold locks, so the
/// implementation must not call the hub.
pub trait Wake: Send + Sync {
    /// Something waits for the connection. The call does not block.
    fn wake(&self);
}

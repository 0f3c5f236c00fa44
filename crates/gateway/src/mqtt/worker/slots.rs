//! Connections of a worker by key. The generation distinguishes a reused slot from its former connection.

use std::collections::VecDeque;

use slab::Slab;

use super::super::acks::ConnectionKey;
use super::super::connection::Connection;

/// Adds a connection to the list of ready connections, once.
pub(super) fn enqueue(ready: &mut VecDeque<ConnectionKey>, connection: &mut Connection, key: ConnectionKey) {
    if !connection.queued {
        connection.queued = true;
        ready.push_back(key);
    }
}

/// The connection with a key, if it is still open.
pub(super) fn find(connections: &mut Slab<Connection>, key: ConnectionKey) -> Option<&mut Connection> {
    connections.get_mut(key.slot as usize).filter(|connection| connection.generation == key.generation)
}

/// Removes the connection with a key.
pub(super) fn take(connections: &mut Slab<Connection>, key: ConnectionKey) -> Option<Connection> {
    find(connections, key)?;
    Some(connections.remove(key.slot as usize))
}

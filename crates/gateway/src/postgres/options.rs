//! Options of the PostgreSQL door for operators. Fixed bounds are in [`limits`].

use std::time::Duration;

use model::limits::Portion;

use super::limits;

/// Options of the PostgreSQL door.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostgresOptions {
    /// Whether the user `public` may read values without a password.
    pub public_read: bool,
    /// Most connections at once.
    pub connections_max: usize,
    /// Most connections at once from one address.
    pub connections_per_address_max: usize,
    /// The door closes a session that is idle for this long; `None` for never.
    pub idle_timeout: Option<Duration>,
    /// Scales the fixed bounds in bytes to the memory of this machine.
    pub memory: Portion,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self {
            public_read: false,
            connections_max: limits::CONNECTIONS_MAX,
            connections_per_address_max: limits::CONNECTIONS_MAX,
            idle_timeout: None,
            memory: Portion::ALL,
        }
    }
}

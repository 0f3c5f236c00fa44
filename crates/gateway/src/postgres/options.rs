//! Options of the PostgreSQL door for operators. Fixed bounds are in [`limits`].

use std::sync::Arc;
use std::time::Duration;

use model::limits::Portion;

use super::limits;
use crate::door::{DoorLimits, Networks};
use crate::tls::Tls;

/// Options of the PostgreSQL door.
#[derive(Debug, Clone)]
pub struct PostgresOptions {
    /// Whether the user `public` may read values without a password.
    pub public_read: bool,
    /// Limits of connections and statements.
    pub limits: DoorLimits,
    /// The load balancers that send a header of the PROXY protocol.
    pub proxies: Networks,
    /// The door closes a session that is idle for this long; `None` for never.
    pub idle_timeout: Option<Duration>,
    /// Answers requests for TLS; `None` declines them.
    pub tls: Option<Arc<Tls>>,
    /// Whether the door refuses logins without TLS.
    pub tls_required: bool,
    /// Scales the fixed bounds in bytes to the memory of this machine.
    pub memory: Portion,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self {
            public_read: false,
            limits: DoorLimits::of_connections(limits::CONNECTIONS_MAX),
            proxies: Networks::default(),
            idle_timeout: None,
            tls: None,
            tls_required: false,
            memory: Portion::ALL,
        }
    }
}

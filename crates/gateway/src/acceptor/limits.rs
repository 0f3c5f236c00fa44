//! Fixed bounds of the acceptor.

use std::time::Duration;

/// How long a load balancer may take to send the header of the PROXY protocol. Its specification asks for at least 3 s, so
/// that one lost packet is sent again. MQTT's `connect_timeout_s` covers header and CONNECT together.
pub(crate) const PROXY_HEADER_TIMEOUT: Duration = Duration::from_secs(5);

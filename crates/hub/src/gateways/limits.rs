//! Bounds of gateways.

/// Devices behind one connection of a gateway.
pub const GATEWAY_DEVICES_MAX: usize = 16_384;
/// Devices that one request adds, in one transaction of the registry. A message with more new devices waits for several requests.
pub const GATEWAY_CREATED_AT_ONCE_MAX: usize = 1_024;
/// Requests for new devices that wait, over all gateways. A connection has at most one.
pub const GATEWAY_REQUESTS_MAX: usize = 256;
/// Devices that a tenant may have while gateways add more of them. Users can add devices above it.
pub const GATEWAY_TENANT_DEVICES_MAX: usize = 1_000_000;
/// Devices whose new gateway waits to be recorded in the registry. Above it the record is left out until the next connect; only
/// `lastConnectedGateway` depends on it.
pub(super) const GATEWAY_RECORDS_MAX: usize = 65_536;

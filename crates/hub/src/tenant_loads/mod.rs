//! What the tenants do, and the limits that an administrator of the installation sets for each.
//!
//! A door asks [`TenantLoad`] before it takes a connection or a message of a device. It holds or refuses what is above a limit, as
//! above its own limits: nothing is dropped. Points are known only when a message was decoded, so they are charged afterwards.

mod load;
mod loads;

/// Tenants that the metrics name, the first by name. The others are one sum.
pub const TENANTS_IN_METRICS_MAX: usize = 100;

pub use load::{TenantConnection, TenantLimitExceeded, TenantLoad};
pub(crate) use loads::TenantLoads;

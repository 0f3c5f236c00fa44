//! Names that every installation has.

/// Name of the tenant and of the profile that every installation has.
pub const DEFAULT_NAME: &str = "default";

/// The table that devices of the default profile write to.
pub const DEFAULT_TABLE: &str = "telemetry";

/// Login of the administrator that the first start creates.
pub const ADMIN_LOGIN: &str = "admin@tachograph.local";

/// The user name of clients that ask for credentials; their client identifier if they have no user name. No device has it.
pub const PROVISION_USER_NAME: &str = "provision";

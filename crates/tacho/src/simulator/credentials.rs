//! How a vehicle identifies itself.

/// The name and the access token of a device.
#[derive(Debug, Clone)]
pub(crate) struct Credentials {
    pub name: String,
    pub token: String,
}

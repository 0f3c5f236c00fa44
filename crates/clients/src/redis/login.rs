//! The login of a client.

/// The credentials and the protocol of clients.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Login {
    /// The ACL user; `None` for the default user.
    pub user: Option<String>,
    /// The password; `None` for a server without one.
    pub password: Option<String>,
    /// Database number.
    pub database: u32,
    /// Uses RESP3.
    pub resp3: bool,
}

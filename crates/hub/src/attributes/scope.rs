//! Scopes of attributes.

use std::fmt;
use std::str::FromStr;

/// The scope of an attribute, in ThingsBoard's terms. A key may occur in each scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Scope {
    /// The device writes them.
    Client = 1,
    /// Users write them. The device does not see them.
    Server = 2,
    /// Users write them. The device reads them and learns their changes.
    Shared = 3,
}

impl Scope {
    /// All scopes, in ThingsBoard's order.
    pub const ALL: [Self; 3] = [Self::Client, Self::Server, Self::Shared];

    /// ThingsBoard's name, used in paths.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Client => "CLIENT_SCOPE",
            Self::Server => "SERVER_SCOPE",
            Self::Shared => "SHARED_SCOPE",
        }
    }

    /// The code in files.
    pub(super) const fn code(self) -> u8 {
        self as u8
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Scope {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|scope| scope.name() == name);
        found.ok_or_else(|| {
            let [client, server, shared] = Self::ALL;
            format!("the scope is {name:?}; it must be {client}, {server} or {shared}")
        })
    }
}

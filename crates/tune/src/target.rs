//! The target of `tacho tune`.

use std::str::FromStr;

/// A target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// This machine.
    Host(HostRole),
}

/// The role of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostRole {
    /// The machine runs a server.
    Server,
    /// The machine generates load.
    Generator,
}

impl HostRole {
    /// The name of the role in rules.
    pub fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Generator => "generator",
        }
    }
}

/// A text that is no target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a target of tacho tune: the targets are host: (this machine as the host of a server) and host:generator \
     (as the host of a load generator). Databases and other servers are no targets yet"
)]
pub struct TargetError(String);

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        match text {
            "host:" | "host:server" => Ok(Self::Host(HostRole::Server)),
            "host:generator" => Ok(Self::Host(HostRole::Generator)),
            _ => Err(TargetError(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_targets_are_refused_with_the_list() {
        assert_eq!("host:".parse(), Ok(Target::Host(HostRole::Server)));
        assert_eq!("host:generator".parse(), Ok(Target::Host(HostRole::Generator)));
        for text in ["", "host", "host:db", "mysql://root@localhost"] {
            let error = text.parse::<Target>().unwrap_err().to_string();
            assert!(error.contains("host:generator") && error.contains(&format!("`{text}`")), "{error}");
        }
    }
}

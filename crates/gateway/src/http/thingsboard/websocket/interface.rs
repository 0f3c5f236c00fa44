//! The two interfaces of the WebSockets.

use super::commands::{Command, parse};
use super::general_commands::{self, General, check_count};
use crate::error::ApiError;

/// The interface that a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interface {
    /// `/api/ws/plugins/telemetry`: lists of commands by kind.
    Telemetry,
    /// `/api/ws`: one list of commands with types.
    General,
}

impl Interface {
    /// The commands of a message.
    pub(crate) fn parse(self, text: &str) -> Result<Vec<Command>, ApiError> {
        match self {
            Self::Telemetry => {
                let commands = parse(text)?;
                check_count(commands.len())?;
                Ok(commands)
            }
            Self::General => {
                let General { token, commands } = general_commands::parse(text)?;
                match token {
                    None => Ok(commands),
                    Some(_) => Err(ApiError::bad_request(
                        "this session is authenticated; open another one for another token",
                    )),
                }
            }
        }
    }
}

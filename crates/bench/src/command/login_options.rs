//! The login at a server that a load reads or writes.

use clap::Args;

use super::sets::Sets;

/// User and password, or a token.
#[derive(Debug, Args)]
pub(super) struct LoginOptions {
    /// User of the server
    #[arg(long, requires = "target")]
    user: Option<String>,
    /// Their password
    #[arg(long, requires = "user", env = "TACHO_TARGET_PASSWORD", hide_env_values = true)]
    password: Option<String>,
    /// Token, in place of user and password
    #[arg(
        long,
        requires = "target",
        conflicts_with = "user",
        env = "TACHO_TARGET_TOKEN",
        hide_env_values = true
    )]
    token: Option<String>,
}

impl LoginOptions {
    /// Adds the settings of these options.
    pub(super) fn add_to(&self, sets: &mut Sets) {
        sets.text("target.user", self.user.as_deref());
        // The variable is also that of an address with a user.
        sets.text("target.password", self.user.as_ref().and(self.password.as_deref()));
        sets.text("target.token", self.token.as_deref());
    }
}

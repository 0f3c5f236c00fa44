//! Connects to a target.

use super::contract::Probe;
use super::error::ProbeError;
use super::host::{HostProbe, HostRoot};
use crate::target::Target;

/// What a probe knows beside its target.
#[derive(Debug, Clone, Default)]
pub struct Context {
    /// The password of the target, if its URL has none.
    pub password: Option<String>,
    /// Whether counters are taken in a window, so that a load runs now.
    pub has_window: bool,
}

/// Connects to a target.
pub fn connect(target: &Target, _context: &Context) -> Result<Box<dyn Probe>, ProbeError> {
    match target {
        Target::Host(role) => Ok(Box::new(HostProbe::new(HostRoot::new("/"), *role)?)),
    }
}

//! The data that a proof needs.

use super::method::ChangeMethod;
use crate::probe;
use crate::rules::{Product, Rule};
use crate::target::Target;

/// The data that a proof needs.
#[derive(Debug)]
pub struct Order<'a> {
    pub target: &'a Target,
    /// The target for people, without its password.
    pub shown_target: &'a str,
    /// The circumstances of the probe.
    pub probe: &'a probe::Context,
    /// The product of the target.
    pub product: &'static Product,
    pub rule: &'a Rule,
    /// How the change is made.
    pub way: ChangeMethod,
    /// Whether a change that is better stays.
    pub keep: bool,
    /// Name or file of the scenario.
    pub scenario: &'a str,
    /// The address of the server under load, if it is not that of the scenario.
    pub load_target: Option<&'a str>,
}

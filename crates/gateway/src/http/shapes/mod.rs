//! Forms of ThingsBoard's JSON that more than one of the folders beside this one reads or writes.

pub(crate) mod claims;
pub(crate) mod devices;
pub(crate) mod entities;
pub(crate) mod packages;
pub(crate) mod tenant_limits;

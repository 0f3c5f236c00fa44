//! Targets of a load, one folder each.

pub(crate) mod es;

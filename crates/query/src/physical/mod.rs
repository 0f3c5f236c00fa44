//! Our operators of the physical plan and the optimizer rules that place them.
//!
//! Everything here depends on how DataFusion's operators behave. `docs/query.md` lists the properties that each operator relies on, and
//! `datafusion_properties.rs` fails when DataFusion changes one of them.

mod cached_operators;
#[cfg(test)]
mod datafusion_properties;
mod filter_casts;
mod gap_fill;
mod last_row;
mod memory_accounting;
mod optimizer_rules;
mod replace_input;
mod run_aggregate;
mod scan;
mod subtotals;
mod time_slices;
mod unary;

pub(crate) use cached_operators::CachedOperators;
pub(crate) use gap_fill::PlanGapFill;
pub(crate) use optimizer_rules::optimizer_rules;
pub(crate) use scan::{ScanSpec, StoreScan};

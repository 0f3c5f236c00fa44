//! SQL over the tables of a store.
//!
//! An [`Engine`] parses, plans and runs statements that read. It knows tables through the contract of the store; it
//! knows no concrete store, no socket and no protocol. Planning and operators are DataFusion's; what is here is the way
//! from a condition to what a store can decide, the limits, the functions that time series need, and errors that say
//! whose fault they are. The dialect is described in `docs/sql.md`.

mod admission;
mod allocation;
mod answer;
mod batch_rows;
mod binding;
mod catalog;
mod context;
mod empty_table;
mod engine;
mod error;
mod functions;
mod gapfill;
mod kept_operators;
mod memory;
mod parsed;
mod pieces;
mod plan_cache;
mod planner;
mod planning_session;
mod postgres;
mod prepared;
mod provider;
mod pushdown;
mod reading;
mod rewriting;
mod run_aggregate;
mod scan;
mod scope;
mod semantics;
mod series_ends;
mod session;
mod statement;
mod subtotals;
mod tables;
mod threads;
mod time_slices;
mod value_sizes;
mod walk;
mod watched_rows;
mod wildcard;

#[cfg(test)]
#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

pub use allocation::CountingAllocator;
pub use answer::{Answer, Batches};
pub use arrow_array::RecordBatch;
pub use arrow_schema::{DataType, SchemaRef};
pub use datafusion::common::ScalarValue;
pub use engine::{Engine, EngineStatus};
pub use error::QueryError;
pub use prepared::Prepared;
pub use session::{Access, Session};

//! SQL over the tables of a store.
//!
//! An [`Engine`] parses, plans and runs statements that read. It sees tables through the contract of the store and knows no concrete
//! store, no socket and no protocol. DataFusion plans and runs the statements. This crate adds pushdown to the store, operators and
//! functions for time series, limits, PostgreSQL's catalog and semantics, and errors that name their cause.
//!
//! `docs/sql.md` describes the dialect, `docs/query.md` how a statement is answered.

mod admission;
mod allocation;
mod answer;
mod batch_rows;
mod binding;
mod catalog;
mod column_kind;
mod deletion;
mod dialect;
mod empty_table;
mod engine;
mod error;
mod functions;
mod gapfill;
mod joins;
mod memory;
mod name_lookup;
mod order_names;
mod parameter_types;
mod parsed;
mod physical;
mod plan_cache;
mod planner;
mod planning_environment;
mod planning_session;
mod postgres;
mod prepared;
mod provider;
mod pushdown;
mod resolved_statement;
mod schema_names;
mod scope;
mod semantics;
mod session;
mod split_batch;
mod statement;
mod tables;
mod task;
mod threads;
mod value_sizes;
mod values;
mod walk;
mod wildcard;

#[cfg(test)]
#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

pub use allocation::{CountingAllocator, allocated_bytes};
pub use answer::{Answer, Batches};
pub use arrow_array::RecordBatch;
pub use arrow_schema::{DataType, SchemaRef};
pub use datafusion::common::ScalarValue;
pub use deletion::{NamedRows, PreparedDeletion};
pub use engine::{Engine, EngineStatus};
pub use error::QueryError;
pub use prepared::Prepared;
pub use session::{Access, Session};
pub use task::{ChunkSender, Chunks, Counted, TaskError, TaskScope};

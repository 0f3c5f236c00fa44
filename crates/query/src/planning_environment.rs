//! The functions, options and rules that all queries share.
//!
//! They are made once: to register a few hundred functions for each query would cost more than planning does.

use std::sync::Arc;

use datafusion::execution::config::SessionConfig;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use model::limits::QueryLimits;

use crate::dialect;
use crate::functions::Functions;
use crate::physical::optimizer_rules;
use crate::schema_names::{CATALOG, SCHEMA};

/// What planning needs beyond the query.
#[derive(Debug)]
pub(crate) struct PlanningEnvironment {
    pub(crate) functions: Functions,
    pub(crate) config: SessionConfig,
    pub(crate) physical_rules: Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>>,
}

impl PlanningEnvironment {
    /// Makes plans for the given number of threads.
    pub(crate) fn new(limits: &QueryLimits, threads: usize) -> Self {
        let config = config(limits, threads);
        Self { functions: dialect::functions(config.options()), config, physical_rules: optimizer_rules() }
    }
}

fn config(limits: &QueryLimits, threads: usize) -> SessionConfig {
    let mut config = SessionConfig::new()
        .with_target_partitions(threads)
        .with_batch_size(limits.batch_rows.max(1))
        .with_default_catalog_and_schema(CATALOG, SCHEMA)
        .with_information_schema(true);
    let options = config.options_mut();
    options.execution.time_zone = Some("+00:00".into());
    // For UNION the logical and the physical plan disagree on whether a column can be NULL. That is harmless.
    options.execution.skip_physical_aggregate_schema_check = true;
    // How much is read ahead of a merge. The default of 1 GiB is four times the memory of a query.
    options.execution.sort_pushdown_buffer_capacity = 16 * 1024 * 1024;
    // Scans only estimate their rows. Without this option DataFusion starts several tasks for a few rows.
    options.execution.use_row_number_estimates_to_optimize_partitioning = true;
    config
}

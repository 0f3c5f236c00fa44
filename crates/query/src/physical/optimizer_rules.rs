//! The optimizer rules of the physical plan: DataFusion's, and ours around them.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::physical_plan::ExecutionPlan;

use super::filter_casts::hide_filter_casts;
use super::last_row::read_last_rows;
use super::memory_accounting::account_memory;
use super::run_aggregate::aggregate_runs;
use super::subtotals::keep_subtotals_apart;
use super::time_slices::read_in_slices;

type Rewrite = fn(Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>>;

/// All rules, in the order in which they run.
pub(crate) fn optimizer_rules() -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    let mut rules = PhysicalOptimizer::new().rules;
    // DataFusion's rule confuses two columns of the same name on both sides of an outer join. The rule of the logical plan has
    // already pushed the filters down.
    rules.retain(|rule| rule.name() != "FilterPushdown");
    rules.insert(0, rule("keep_subtotals_apart", keep_subtotals_apart));
    rules.insert(0, rule("hide_filter_casts", hide_filter_casts));
    rules.push(rule("read_last_rows", read_last_rows));
    rules.push(rule("read_in_slices", read_in_slices));
    rules.push(rule("aggregate_runs", aggregate_runs));
    rules.push(rule("account_memory", account_memory));
    rules
}

fn rule(name: &'static str, rewrite: Rewrite) -> Arc<dyn PhysicalOptimizerRule + Send + Sync> {
    Arc::new(Rule { name, rewrite })
}

/// A rule that looks at nothing but the plan and keeps its schema.
#[derive(Debug)]
struct Rule {
    name: &'static str,
    rewrite: Rewrite,
}

impl PhysicalOptimizerRule for Rule {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        (self.rewrite)(plan)
    }

    fn name(&self) -> &str {
        self.name
    }

    fn schema_check(&self) -> bool {
        true
    }
}

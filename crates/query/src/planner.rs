//! From a statement to a plan that can run.
//!
//! What does not depend on the query is made once and shared: registering a few hundred functions anew would cost
//! more than planning does.

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef};
use chrono::{DateTime, Utc};
use datafusion::common::alias::AliasGenerator;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::FunctionRegistry;
use datafusion::execution::config::SessionConfig;
use datafusion::logical_expr::{Explain, LogicalPlan, PlanType, ToStringifiedPlan};
use datafusion::optimizer::{Analyzer, Optimizer, OptimizerConfig};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner};
use datafusion::sql::parser::Statement;
use datafusion::sql::planner::{NullOrdering, ParserOptions, PlannerContext, SqlToRel};
use model::limits::QueryLimits;

use crate::binding::{When, bind};
use crate::catalog::{CATALOG, SCHEMA};
use crate::context::Lookup;
use crate::functions::Functions;
use crate::functions::bounded::optimizing;
use crate::planning_session::PlanningSession;
use crate::run_aggregate::AggregateRuns;
use crate::series_ends::SeriesEnds;
use crate::subtotals::KeepSubtotalsApart;
use crate::time_slices::ReadInSlices;
use crate::watched_rows::WatchRows;
use crate::{QueryError, gapfill, postgres, semantics, wildcard};

/// What all queries plan with.
#[derive(Debug)]
pub(crate) struct Planner {
    pub(crate) functions: Functions,
    pub(crate) config: SessionConfig,
    pub(crate) physical_rules: Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>>,
    analyzer: Analyzer,
    optimizer: Optimizer,
}

impl Planner {
    pub(crate) fn new(limits: &QueryLimits, threads: usize) -> Self {
        let mut physical_rules = PhysicalOptimizer::new().rules;
        // It takes columns of one name on both sides of an outer join for each other. The logical plan's has done the work.
        physical_rules.retain(|rule| rule.name() != "FilterPushdown");
        physical_rules.insert(0, Arc::new(KeepSubtotalsApart));
        physical_rules.push(Arc::new(SeriesEnds));
        physical_rules.push(Arc::new(ReadInSlices));
        physical_rules.push(Arc::new(AggregateRuns));
        physical_rules.push(Arc::new(WatchRows));
        let config = config(limits, threads);
        Self {
            functions: Functions::new(config.options()),
            config,
            physical_rules,
            analyzer: semantics::analyzer(),
            optimizer: Optimizer::new(),
        }
    }

    /// Resolves names and types. Parameters without a type get the one their place suggests.
    pub(crate) fn resolve(
        &self,
        mut statement: Statement,
        parameters: &[Option<DataType>],
        session: &PlanningSession,
    ) -> Result<LogicalPlan, QueryError> {
        postgres::name_columns(&mut statement);
        semantics::syntax::rewrite(&mut statement)?;
        postgres::rewrite(&mut statement, &self.functions);
        postgres::name_comparisons(&mut statement);
        postgres::normalize_forms(&mut statement);
        gapfill::name_fills(&mut statement);
        // Where that is refused, so is the statement as it stands, for a reason that names its own words.
        let all_columns = wildcard::narrowed(&statement)
            .and_then(|narrow| self.to_plan(narrow, parameters, session).ok())
            .and_then(wildcard::widened);
        let plan = match all_columns {
            Some(plan) => plan,
            None => self.to_plan(statement, parameters, session)?,
        };
        refuse_writes(&plan)?;
        Ok(plan)
    }

    fn to_plan(
        &self,
        statement: Statement,
        parameters: &[Option<DataType>],
        session: &PlanningSession,
    ) -> Result<LogicalPlan, QueryError> {
        let lookup = Lookup::new(self, session);
        let resolver = SqlToRel::new_with_options(&lookup, parser_options());
        let fields = parameters.iter().map(|data_type| data_type.clone().map(parameter_field)).collect();
        let mut context = PlannerContext::new().with_prepare_param_data_types(fields);
        Ok(match statement {
            Statement::Statement(statement) => {
                resolver.sql_statement_to_plan_with_context(*statement, &mut context)?
            }
            other => resolver.statement_to_plan(other)?,
        })
    }

    /// Checks types and simplifies. `now()` becomes `started_at`.
    pub(crate) fn optimize(
        &self,
        plan: LogicalPlan,
        started_at: DateTime<Utc>,
    ) -> Result<LogicalPlan, QueryError> {
        if let LogicalPlan::Explain(explain) = plan {
            let inner = self.optimize(Arc::unwrap_or_clone(explain.plan), started_at)?;
            let text = inner.to_stringified(PlanType::FinalLogicalPlan);
            return Ok(LogicalPlan::Explain(Explain {
                plan: Arc::new(inner),
                stringified_plans: vec![text],
                logical_optimization_succeeded: true,
                ..explain
            }));
        }
        let plan = postgres::settle_memberships(plan, &self.functions)?;
        let analyzed = self.analyzer.execute_and_check(plan, self.config.options(), |_, _| {})?;
        let analyzed = postgres::settle_arrays(analyzed)?;
        let analyzed = semantics::keep_lists_apart(analyzed)?;
        let analyzed = gapfill::rewrite(analyzed, started_at, self.config.options())?;
        let analyzed = bind(analyzed, &self.functions, When::BeforeOptimizer)?;
        let config = Optimizing { planner: self, started_at, aliases: Arc::new(AliasGenerator::new()) };
        let optimized = optimizing(|| self.optimizer.optimize(analyzed, &config, |_, _| {}))?;
        Ok(bind(optimized, &self.functions, When::AfterOptimizer)?)
    }

    /// Chooses operators for an optimised plan.
    pub(crate) async fn choose(
        &self,
        plan: &LogicalPlan,
        session: &PlanningSession,
    ) -> Result<Arc<dyn ExecutionPlan>, QueryError> {
        Ok(physical_planner().create_physical_plan(plan, session).await?)
    }
}

pub(crate) fn physical_planner() -> DefaultPhysicalPlanner {
    DefaultPhysicalPlanner::with_extension_planners(vec![Arc::new(gapfill::PlanGapFill)])
}

fn config(limits: &QueryLimits, threads: usize) -> SessionConfig {
    let mut config = SessionConfig::new()
        .with_target_partitions(threads)
        .with_batch_size(limits.batch_rows.max(1))
        .with_default_catalog_and_schema(CATALOG, SCHEMA)
        .with_information_schema(true);
    let options = config.options_mut();
    options.execution.time_zone = Some("+00:00".into());
    // Whether a column can be NULL is found with other results for UNION and for the operators of it, which harms nothing.
    options.execution.skip_physical_aggregate_schema_check = true;
    // A whole window of rows read ahead of a merge; the default of 1 GiB is four times what a query may hold.
    options.execution.sort_pushdown_buffer_capacity = 16 * 1024 * 1024;
    // What we know of a scan is an estimate; few rows are not worth several tasks.
    options.execution.use_row_number_estimates_to_optimize_partitioning = true;
    config
}

fn parser_options() -> ParserOptions {
    ParserOptions::new().with_default_null_ordering(NullOrdering::NullsMax)
}

fn parameter_field(data_type: DataType) -> FieldRef {
    Arc::new(Field::new("parameter", data_type, true))
}

/// The parser has refused them already; a plan is the last place where one could be seen.
fn refuse_writes(plan: &LogicalPlan) -> Result<(), QueryError> {
    let mut writes = None;
    plan.apply_with_subqueries(|node| {
        let write = matches!(
            node,
            LogicalPlan::Dml(_) | LogicalPlan::Ddl(_) | LogicalPlan::Copy(_) | LogicalPlan::Statement(_)
        );
        if write {
            writes = Some(node.display().to_string());
        }
        Ok(if write { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    match writes {
        Some(statement) => {
            Err(QueryError::ReadOnly { statement, remedy: "Write through one of the doors for devices" })
        }
        None => Ok(()),
    }
}

/// What the optimiser asks about the query.
struct Optimizing<'a> {
    planner: &'a Planner,
    started_at: DateTime<Utc>,
    aliases: Arc<AliasGenerator>,
}

impl OptimizerConfig for Optimizing<'_> {
    fn query_execution_start_time(&self) -> Option<DateTime<Utc>> {
        Some(self.started_at)
    }

    fn alias_generator(&self) -> &Arc<AliasGenerator> {
        &self.aliases
    }

    fn options(&self) -> Arc<ConfigOptions> {
        Arc::clone(self.planner.config.options())
    }

    fn function_registry(&self) -> Option<&dyn FunctionRegistry> {
        Some(&self.planner.functions)
    }
}

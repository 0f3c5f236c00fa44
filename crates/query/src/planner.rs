//! Makes a plan that can run of a statement.

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef};
use chrono::{DateTime, Utc};
use datafusion::catalog::Session as _;
use datafusion::common::alias::AliasGenerator;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::FunctionRegistry;
use datafusion::logical_expr::{Explain, LogicalPlan, PlanType, ToStringifiedPlan};
use datafusion::optimizer::{Analyzer, Optimizer, OptimizerConfig};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::sql::parser::Statement;
use datafusion::sql::planner::{NullOrdering, ParserOptions, PlannerContext, SqlToRel};

use crate::binding::{When, bind};
use crate::functions::bounded::optimizing;
use crate::joins::JoinPlanner;
use crate::name_lookup::NameLookup;
use crate::planning_environment::PlanningEnvironment;
use crate::planning_session::PlanningSession;
use crate::{QueryError, gapfill, joins, order_names, postgres, semantics, wildcard};

/// Makes plans of statements. One planner serves all queries.
#[derive(Debug)]
pub(crate) struct Planner {
    environment: Arc<PlanningEnvironment>,
    analyzer: Analyzer,
    optimizer: Optimizer,
}

impl Planner {
    pub(crate) fn new(environment: Arc<PlanningEnvironment>) -> Self {
        Self { environment, analyzer: semantics::analyzer(), optimizer: Optimizer::new() }
    }

    /// Resolves names and types. A parameter without a type gets the type that its context suggests.
    pub(crate) fn resolve(
        &self,
        mut statement: Statement,
        parameters: &[Option<DataType>],
        session: &PlanningSession,
    ) -> Result<LogicalPlan, QueryError> {
        postgres::name_columns(&mut statement);
        semantics::syntax::rewrite(&mut statement)?;
        postgres::rewrite(&mut statement, &self.environment.functions);
        postgres::name_comparisons(&mut statement);
        postgres::normalize_forms(&mut statement);
        order_names::by_position(&mut statement, &self.environment.functions);
        postgres::keep_casts(&mut statement, &self.environment.functions);
        gapfill::name_fills(&mut statement);
        // If the planner refuses the narrowed statement, it also refuses the original one, with an error in the words of the user.
        let all_columns = wildcard::narrowed(&statement)
            .and_then(|narrow| self.to_plan(narrow, parameters, session, None).ok())
            .and_then(wildcard::widened);
        let plan = match all_columns {
            Some(plan) => plan,
            None => self.with_joins(statement, parameters, session)?,
        };
        refuse_writes(&plan)?;
        Ok(plan)
    }

    /// Plans a statement whose joins may have common columns.
    fn with_joins(
        &self,
        mut statement: Statement,
        parameters: &[Option<DataType>],
        session: &PlanningSession,
    ) -> Result<LogicalPlan, QueryError> {
        if !joins::enclose(&mut statement) {
            return order_names::settle(self.to_plan(statement, parameters, session, None)?);
        }
        let planner = Arc::new(JoinPlanner::default());
        loop {
            let mut qualified = statement.clone();
            joins::qualify(&mut qualified);
            let plan = self.to_plan(qualified, parameters, session, Some(Arc::clone(&planner)));
            // Names can be qualified when the keys of the NATURAL joins are known.
            if !joins::name_keys(&mut statement, &planner) {
                return Ok(joins::without_marks(order_names::settle(plan?)?)?);
            }
        }
    }

    fn to_plan(
        &self,
        statement: Statement,
        parameters: &[Option<DataType>],
        session: &PlanningSession,
        joins: Option<Arc<JoinPlanner>>,
    ) -> Result<LogicalPlan, QueryError> {
        let lookup = NameLookup::new(&self.environment, session, joins);
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
        let plan = postgres::settle_memberships(plan, &self.environment.functions)?;
        let analyzed = self.analyzer.execute_and_check(plan, self.environment.config.options(), |_, _| {})?;
        let analyzed = postgres::settle_arrays(analyzed)?;
        let analyzed = semantics::keep_lists_apart(analyzed)?;
        let analyzed = gapfill::rewrite(analyzed, started_at, self.environment.config.options())?;
        let analyzed = bind(analyzed, &self.environment.functions, When::BeforeOptimizer)?;
        let config = Optimizing {
            environment: &self.environment,
            started_at,
            aliases: Arc::new(AliasGenerator::new()),
        };
        let optimized = optimizing(|| self.optimizer.optimize(analyzed, &config, |_, _| {}))?;
        Ok(bind(optimized, &self.environment.functions, When::AfterOptimizer)?)
    }

    /// Chooses operators for an optimised plan.
    pub(crate) async fn choose_operators(
        &self,
        plan: &LogicalPlan,
        session: &PlanningSession,
    ) -> Result<Arc<dyn ExecutionPlan>, QueryError> {
        Ok(session.create_physical_plan(plan).await?)
    }
}

fn parser_options() -> ParserOptions {
    ParserOptions::new().with_default_null_ordering(NullOrdering::NullsMax)
}

fn parameter_field(data_type: DataType) -> FieldRef {
    Arc::new(Field::new("parameter", data_type, true))
}

/// Refuses plans that write. The parser refuses such statements already; this is the second check.
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

/// Gives the optimiser the properties of the query.
struct Optimizing<'a> {
    environment: &'a PlanningEnvironment,
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
        Arc::clone(self.environment.config.options())
    }

    fn function_registry(&self) -> Option<&dyn FunctionRegistry> {
        Some(&self.environment.functions)
    }
}

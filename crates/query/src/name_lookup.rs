//! Finds tables and functions by name for DataFusion's SQL planner.

use std::sync::Arc;

use arrow_schema::{DataType, SchemaRef};
use datafusion::catalog::TableFunctionArgs;
use datafusion::catalog::cte_worktable::CteWorkTable;
use datafusion::common::config::ConfigOptions;
use datafusion::common::{DFSchema, DataFusionError, Result, TableReference};
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::planner::{ContextProvider, ExprPlanner, RelationPlanner};
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{AggregateUDF, Expr, HigherOrderUDF, ScalarUDF, TableSource, WindowUDF};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;

use crate::catalog::Catalog;
use crate::joins::JoinPlanner;
use crate::planning_environment::PlanningEnvironment;
use crate::planning_session::PlanningSession;
use crate::{gapfill, postgres};

/// The tables of one query and the functions of all queries.
pub(crate) struct NameLookup<'a> {
    environment: &'a PlanningEnvironment,
    session: &'a PlanningSession,
    catalog: Catalog,
    /// Plans joins with common columns, if the statement has some.
    joins: Vec<Arc<dyn RelationPlanner>>,
}

impl<'a> NameLookup<'a> {
    pub(crate) fn new(
        environment: &'a PlanningEnvironment,
        session: &'a PlanningSession,
        joins: Option<Arc<JoinPlanner>>,
    ) -> Self {
        let joins = joins.into_iter().map(|planner| planner as _).collect();
        Self { environment, session, catalog: session.catalog(), joins }
    }
}

impl ContextProvider for NameLookup<'_> {
    fn get_table_source(&self, name: TableReference) -> Result<Arc<dyn TableSource>> {
        self.catalog.source(name)
    }

    /// `generate_series` and `range`.
    fn get_table_function_source(&self, name: &str, args: Vec<Expr>) -> Result<Arc<dyn TableSource>> {
        let Some(function) = self.environment.functions.table.get(name) else {
            return Err(DataFusionError::Plan(format!("table function {name:?} does not exist")));
        };
        let context =
            SimplifyContext::builder().with_config_options(Arc::clone(self.environment.config.options()));
        let simplifier = ExprSimplifier::new(context.build());
        let schema = DFSchema::empty();
        let simplify = |arg| simplifier.coerce(arg, &schema).and_then(|arg| simplifier.simplify(arg));
        let args: Vec<_> = args.into_iter().map(simplify).collect::<Result<_>>()?;
        let args = TableFunctionArgs::new(&args, self.session);
        Ok(provider_as_source(function.create_table_provider_with_args(args)?))
    }

    fn create_cte_work_table(&self, name: &str, schema: SchemaRef) -> Result<Arc<dyn TableSource>> {
        Ok(provider_as_source(Arc::new(CteWorkTable::new(name, schema))))
    }

    fn get_expr_planners(&self) -> &[Arc<dyn ExprPlanner>] {
        &self.environment.functions.expression_planners
    }

    fn get_relation_planners(&self) -> &[Arc<dyn RelationPlanner>] {
        &self.joins
    }

    fn get_function_meta(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        postgres::function(name, self.catalog.tables())
            .or_else(|| self.environment.functions.scalar.get(name).cloned())
            .or_else(|| gapfill::fill_function(name))
            .or_else(|| postgres::array_comparison(name))
    }

    fn get_higher_order_meta(&self, name: &str) -> Option<Arc<HigherOrderUDF>> {
        self.environment.functions.higher_order.get(name).cloned()
    }

    fn get_aggregate_meta(&self, name: &str) -> Option<Arc<AggregateUDF>> {
        self.environment.functions.aggregate.get(name).cloned()
    }

    fn get_window_meta(&self, name: &str) -> Option<Arc<WindowUDF>> {
        self.environment.functions.window.get(name).cloned()
    }

    fn get_variable_type(&self, _variable_names: &[String]) -> Option<DataType> {
        None
    }

    fn options(&self) -> &ConfigOptions {
        self.environment.config.options()
    }

    fn udf_names(&self) -> Vec<String> {
        self.environment.functions.scalar.keys().cloned().collect()
    }

    fn higher_order_function_names(&self) -> Vec<String> {
        self.environment.functions.higher_order.keys().cloned().collect()
    }

    fn udaf_names(&self) -> Vec<String> {
        self.environment.functions.aggregate.keys().cloned().collect()
    }

    fn udwf_names(&self) -> Vec<String> {
        self.environment.functions.window.keys().cloned().collect()
    }
}

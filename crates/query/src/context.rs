//! How the resolver finds tables and functions by name.

use std::sync::Arc;

use arrow_schema::{DataType, SchemaRef};
use datafusion::catalog::TableFunctionArgs;
use datafusion::catalog::cte_worktable::CteWorkTable;
use datafusion::common::config::ConfigOptions;
use datafusion::common::{DFSchema, DataFusionError, Result, TableReference};
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::planner::{ContextProvider, ExprPlanner};
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{AggregateUDF, Expr, HigherOrderUDF, ScalarUDF, TableSource, WindowUDF};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;

use crate::catalog::Names;
use crate::gapfill;
use crate::planner::Planner;
use crate::planning_session::PlanningSession;
use crate::postgres;

/// Names of one query, functions of all.
pub(crate) struct Lookup<'a> {
    planner: &'a Planner,
    session: &'a PlanningSession,
    names: Names,
}

impl<'a> Lookup<'a> {
    pub(crate) fn new(planner: &'a Planner, session: &'a PlanningSession) -> Self {
        Self { planner, session, names: session.names() }
    }
}

impl ContextProvider for Lookup<'_> {
    fn get_table_source(&self, name: TableReference) -> Result<Arc<dyn TableSource>> {
        self.names.source(name)
    }

    /// `generate_series` and `range`.
    fn get_table_function_source(&self, name: &str, args: Vec<Expr>) -> Result<Arc<dyn TableSource>> {
        let Some(function) = self.planner.functions.table.get(name) else {
            return Err(DataFusionError::Plan(format!("table function {name:?} does not exist")));
        };
        let context =
            SimplifyContext::builder().with_config_options(Arc::clone(self.planner.config.options()));
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
        &self.planner.functions.expression_planners
    }

    fn get_function_meta(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        postgres::function(name, &self.names)
            .or_else(|| self.planner.functions.scalar.get(name).cloned())
            .or_else(|| gapfill::fill_function(name))
            .or_else(|| postgres::array_comparison(name))
    }

    fn get_higher_order_meta(&self, name: &str) -> Option<Arc<HigherOrderUDF>> {
        self.planner.functions.higher_order.get(name).cloned()
    }

    fn get_aggregate_meta(&self, name: &str) -> Option<Arc<AggregateUDF>> {
        self.planner.functions.aggregate.get(name).cloned()
    }

    fn get_window_meta(&self, name: &str) -> Option<Arc<WindowUDF>> {
        self.planner.functions.window.get(name).cloned()
    }

    fn get_variable_type(&self, _variable_names: &[String]) -> Option<DataType> {
        None
    }

    fn options(&self) -> &ConfigOptions {
        self.planner.config.options()
    }

    fn udf_names(&self) -> Vec<String> {
        self.planner.functions.scalar.keys().cloned().collect()
    }

    fn higher_order_function_names(&self) -> Vec<String> {
        self.planner.functions.higher_order.keys().cloned().collect()
    }

    fn udaf_names(&self) -> Vec<String> {
        self.planner.functions.aggregate.keys().cloned().collect()
    }

    fn udwf_names(&self) -> Vec<String> {
        self.planner.functions.window.keys().cloned().collect()
    }
}

//! Gives the physical planner the properties of one query.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use datafusion::catalog::{CatalogProviderList, Session};
use datafusion::common::alias::AliasGenerator;
use datafusion::common::config::TableOptions;
use datafusion::common::{DFSchema, Result};
use datafusion::execution::TaskContext;
use datafusion::execution::config::SessionConfig;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::logical_expr::execution_props::ExecutionProps;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::registry::{ExtensionTypeRegistryRef, MemoryExtensionTypeRegistry};
use datafusion::logical_expr::{AggregateUDF, Expr, HigherOrderUDF, LogicalPlan, ScalarUDF, WindowUDF};
use datafusion::physical_expr::{PhysicalExpr, create_physical_expr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner};

use crate::catalog::Catalog;
use crate::physical::PlanGapFill;
use crate::planning_environment::PlanningEnvironment;
use crate::tables::OpenTables;

/// The tables, the memory and the time of one query.
#[derive(Debug, Clone)]
pub(crate) struct QueryContext {
    pub(crate) tables: Arc<OpenTables>,
    pub(crate) runtime: Arc<RuntimeEnv>,
    pub(crate) started_at: DateTime<Utc>,
}

/// One query as the physical planner sees it.
pub(crate) struct PlanningSession {
    environment: Arc<PlanningEnvironment>,
    query: QueryContext,
    config: SessionConfig,
    properties: ExecutionProps,
    table_options: TableOptions,
    extension_types: ExtensionTypeRegistryRef,
}

impl PlanningSession {
    pub(crate) fn new(environment: Arc<PlanningEnvironment>, query: QueryContext) -> Self {
        let properties = ExecutionProps {
            query_execution_start_time: Some(query.started_at),
            alias_generator: Arc::new(AliasGenerator::new()),
            config_options: Some(Arc::clone(environment.config.options())),
            var_providers: None,
        };
        // A scan finds the snapshots of its query here.
        let config = environment.config.clone().with_extension(Arc::clone(&query.tables));
        Self {
            environment,
            query,
            config,
            properties,
            table_options: TableOptions::default(),
            extension_types: Arc::new(MemoryExtensionTypeRegistry::new_empty()),
        }
    }

    /// Limits the rows of a batch. Copies the options only if the limit is below the usual one.
    pub(crate) fn limit_batch_rows(&mut self, rows: usize) {
        if rows < self.config.batch_size() {
            self.config = self.config.clone().with_batch_size(rows);
            self.properties.config_options = Some(Arc::clone(self.config.options()));
        }
    }

    /// Returns what operators need while they run. Their functions are already bound, so functions are copied only if the query lists them.
    pub(crate) fn task_context(&self, lists_functions: bool) -> Arc<TaskContext> {
        let functions = &self.environment.functions;
        let (scalar, aggregate, window, higher_order) = if lists_functions {
            (
                functions.scalar.clone(),
                functions.aggregate.clone(),
                functions.window.clone(),
                functions.higher_order.clone(),
            )
        } else {
            Default::default()
        };
        let config = self.config.clone();
        let runtime = Arc::clone(&self.query.runtime);
        Arc::new(TaskContext::new(
            None,
            String::new(),
            config,
            scalar,
            higher_order,
            aggregate,
            window,
            runtime,
        ))
    }

    /// The names that the query can see.
    pub(crate) fn catalog(&self) -> Catalog {
        Catalog::new(Arc::clone(&self.query.tables))
    }
}

#[async_trait]
impl Session for PlanningSession {
    fn session_id(&self) -> &str {
        ""
    }

    fn config(&self) -> &SessionConfig {
        &self.config
    }

    fn catalog_list(&self) -> Arc<dyn CatalogProviderList> {
        Arc::new(self.catalog())
    }

    fn physical_optimizers(&self) -> &[Arc<dyn PhysicalOptimizerRule + Send + Sync>] {
        &self.environment.physical_rules
    }

    async fn create_physical_plan(&self, plan: &LogicalPlan) -> Result<Arc<dyn ExecutionPlan>> {
        let planner = DefaultPhysicalPlanner::with_extension_planners(vec![Arc::new(PlanGapFill)]);
        planner.create_physical_plan(plan, self).await
    }

    fn create_physical_expr(&self, expr: Expr, schema: &DFSchema) -> Result<Arc<dyn PhysicalExpr>> {
        create_physical_expr(&expr, schema, &self.properties, &PhysicalPlanningContext::default())
    }

    fn scalar_functions(&self) -> &HashMap<String, Arc<ScalarUDF>> {
        &self.environment.functions.scalar
    }

    fn higher_order_functions(&self) -> &HashMap<String, Arc<HigherOrderUDF>> {
        &self.environment.functions.higher_order
    }

    fn aggregate_functions(&self) -> &HashMap<String, Arc<AggregateUDF>> {
        &self.environment.functions.aggregate
    }

    fn window_functions(&self) -> &HashMap<String, Arc<WindowUDF>> {
        &self.environment.functions.window
    }

    fn extension_type_registry(&self) -> &ExtensionTypeRegistryRef {
        &self.extension_types
    }

    fn runtime_env(&self) -> &Arc<RuntimeEnv> {
        &self.query.runtime
    }

    fn execution_props(&self) -> &ExecutionProps {
        &self.properties
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn table_options(&self) -> &TableOptions {
        &self.table_options
    }

    fn table_options_mut(&mut self) -> &mut TableOptions {
        &mut self.table_options
    }

    fn task_ctx(&self) -> Arc<TaskContext> {
        self.task_context(false)
    }
}

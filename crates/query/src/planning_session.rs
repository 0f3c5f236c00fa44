//! What the physical planner asks about one query.

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
use datafusion::physical_planner::PhysicalPlanner;

use crate::catalog::Names;
use crate::planner::{Planner, physical_planner};
use crate::tables::OpenTables;

/// What belongs to one query.
#[derive(Debug, Clone)]
pub(crate) struct QueryParts {
    pub(crate) tables: Arc<OpenTables>,
    pub(crate) runtime: Arc<RuntimeEnv>,
    pub(crate) started_at: DateTime<Utc>,
}

/// One query as the physical planner sees it.
pub(crate) struct PlanningSession {
    planner: Arc<Planner>,
    parts: QueryParts,
    config: SessionConfig,
    properties: ExecutionProps,
    table_options: TableOptions,
    extension_types: ExtensionTypeRegistryRef,
}

impl PlanningSession {
    pub(crate) fn new(planner: Arc<Planner>, parts: QueryParts) -> Self {
        let properties = ExecutionProps {
            query_execution_start_time: Some(parts.started_at),
            alias_generator: Arc::new(AliasGenerator::new()),
            config_options: Some(Arc::clone(planner.config.options())),
            var_providers: None,
        };
        // A scan finds the snapshots of its query here.
        let config = planner.config.clone().with_extension(Arc::clone(&parts.tables));
        Self {
            planner,
            parts,
            config,
            properties,
            table_options: TableOptions::default(),
            extension_types: Arc::new(MemoryExtensionTypeRegistry::new_empty()),
        }
    }

    /// Lets batches have so many rows at most. Options are copied only where that is fewer than usual.
    pub(crate) fn limit_batch_rows(&mut self, rows: usize) {
        if rows < self.config.batch_size() {
            self.config = self.config.clone().with_batch_size(rows);
            self.properties.config_options = Some(Arc::clone(self.config.options()));
        }
    }

    /// What operators ask while they run. Functions are bound by then, so none are copied, unless the query lists them.
    pub(crate) fn task_context(&self, lists_functions: bool) -> Arc<TaskContext> {
        let functions = &self.planner.functions;
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
        let runtime = Arc::clone(&self.parts.runtime);
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
    pub(crate) fn names(&self) -> Names {
        Names(Arc::clone(&self.parts.tables))
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
        Arc::new(self.names())
    }

    fn physical_optimizers(&self) -> &[Arc<dyn PhysicalOptimizerRule + Send + Sync>] {
        &self.planner.physical_rules
    }

    async fn create_physical_plan(&self, plan: &LogicalPlan) -> Result<Arc<dyn ExecutionPlan>> {
        physical_planner().create_physical_plan(plan, self).await
    }

    fn create_physical_expr(&self, expr: Expr, schema: &DFSchema) -> Result<Arc<dyn PhysicalExpr>> {
        create_physical_expr(&expr, schema, &self.properties, &PhysicalPlanningContext::default())
    }

    fn scalar_functions(&self) -> &HashMap<String, Arc<ScalarUDF>> {
        &self.planner.functions.scalar
    }

    fn higher_order_functions(&self) -> &HashMap<String, Arc<HigherOrderUDF>> {
        &self.planner.functions.higher_order
    }

    fn aggregate_functions(&self) -> &HashMap<String, Arc<AggregateUDF>> {
        &self.planner.functions.aggregate
    }

    fn window_functions(&self) -> &HashMap<String, Arc<WindowUDF>> {
        &self.planner.functions.window
    }

    fn extension_type_registry(&self) -> &ExtensionTypeRegistryRef {
        &self.extension_types
    }

    fn runtime_env(&self) -> &Arc<RuntimeEnv> {
        &self.parts.runtime
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

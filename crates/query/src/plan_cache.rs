//! Caches the plans of statements, for dashboards that run the same statement again and again.
//!
//! A cached plan names tables and columns. It holds neither a snapshot nor a user, so every user of the namespace who may read
//! the tables can use it. It is valid as long as its tables have the same columns. From the second run on, the operators are cached as well.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::{Expr, LogicalPlan, Volatility};
use datafusion::physical_plan::ExecutionPlan;
use model::{Namespace, limits};
use parking_lot::Mutex;

use crate::physical::CachedOperators;
use crate::provider::StoreTable;
use crate::tables::OpenTables;
use crate::{QueryError, postgres};

/// A plan and the inputs for which it is valid.
#[derive(Debug, Clone)]
pub(crate) struct CachedPlan {
    pub(crate) plan: Arc<LogicalPlan>,
    /// Whether the plan is optimised. A plan with the current time is optimised for each run.
    pub(crate) optimized: bool,
    /// Whether the plan reads the system tables or the name of the user. Such a plan is valid for one query.
    pub(crate) reads_names: bool,
    /// See [`postgres::headings`].
    pub(crate) headings: Arc<[String]>,
    tables: Arc<[(Arc<str>, SchemaRef)]>,
    operators: Arc<Mutex<Option<Arc<CachedOperators>>>>,
}

/// The inputs of a plan: tables, names and the time.
pub(crate) struct PlanInputs {
    tables: Vec<(Arc<str>, SchemaRef)>,
    reads_names: bool,
    /// Whether a function in it depends on the time of the run.
    asks_time: bool,
}

impl PlanInputs {
    pub(crate) fn of(plan: &LogicalPlan) -> Result<Self> {
        let mut inputs = Self { tables: Vec::new(), reads_names: false, asks_time: false };
        plan.apply_with_subqueries(|node| {
            if let LogicalPlan::TableScan(scan) = node {
                match source_as_provider(&scan.source) {
                    Ok(provider) => match provider.downcast_ref::<StoreTable>() {
                        Some(table) => inputs.tables.push((table.name().into(), scan.source.schema())),
                        None => inputs.reads_names = true,
                    },
                    Err(_) => inputs.reads_names = true,
                }
            }
            node.apply_expressions(|expr| {
                expr.apply(|expr| {
                    inputs.reads_names |=
                        matches!(expr, Expr::ScalarFunction(call) if postgres::is_of_catalog(&call.func));
                    inputs.asks_time |= matches!(expr, Expr::ScalarFunction(call)
                        if call.func.signature().volatility == Volatility::Stable);
                    Ok(TreeNodeRecursion::Continue)
                })
            })
        })?;
        Ok(inputs)
    }

    pub(crate) fn asks_time(&self) -> bool {
        self.asks_time
    }

    /// Makes a cached plan of the plan with these inputs.
    pub(crate) fn cached(
        self,
        plan: Arc<LogicalPlan>,
        headings: Arc<[String]>,
        optimized: bool,
    ) -> CachedPlan {
        CachedPlan {
            plan,
            optimized,
            reads_names: self.reads_names,
            headings,
            tables: self.tables.into(),
            operators: Arc::default(),
        }
    }
}

impl CachedPlan {
    /// Whether the plan is valid for the tables as they are now and for this user.
    pub(crate) fn is_valid(&self, tables: &OpenTables) -> Result<bool, QueryError> {
        for (name, schema) in self.tables.iter() {
            match tables.find(name)? {
                Some(table) if table.schema == *schema => {}
                _ => return Ok(false),
            }
        }
        Ok(!self.reads_names)
    }

    /// Returns the operators that were chosen before, if they suit the tables as they are now.
    pub(crate) fn operators(&self, tables: &OpenTables) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let cached = self.operators.lock().clone();
        cached.map_or(Ok(None), |cached| cached.over(tables))
    }

    /// Caches the operators that were chosen for this plan.
    pub(crate) fn cache_operators(&self, chosen: &Arc<dyn ExecutionPlan>) -> Result<()> {
        let cached = CachedOperators::of(chosen, self.tables.len())?;
        *self.operators.lock() = cached.map(Arc::new);
        Ok(())
    }

    /// The cached operators as text.
    #[cfg(test)]
    pub(crate) fn shown_operators(&self) -> Option<String> {
        self.operators.lock().as_ref().map(|cached| format!("{cached:?}"))
    }
}

/// The plans that were used last.
#[derive(Debug, Default)]
pub(crate) struct PlanCache(Mutex<Plans>);

#[derive(Debug, Default)]
struct Plans {
    uses: u64,
    /// By namespace and statement: the plan, and the value of `uses` when it was used last.
    by_text: HashMap<(Namespace, String), (CachedPlan, u64)>,
}

impl PlanCache {
    pub(crate) fn find(&self, namespace: &Namespace, sql: &str) -> Option<CachedPlan> {
        let mut plans = self.0.lock();
        plans.uses += 1;
        let now = plans.uses;
        let (plan, used) = plans.by_text.get_mut(&(namespace.clone(), sql.to_owned()))?;
        *used = now;
        Some(plan.clone())
    }

    pub(crate) fn insert(&self, namespace: &Namespace, sql: &str, plan: CachedPlan) {
        if plan.reads_names || sql.len() > limits::SQL_CACHED_BYTES_MAX {
            return;
        }
        let key = (namespace.clone(), sql.to_owned());
        let mut plans = self.0.lock();
        if plans.by_text.len() >= limits::SQL_PLANS_CACHED_MAX && !plans.by_text.contains_key(&key) {
            let oldest = plans.by_text.iter().min_by_key(|(_, (_, used))| *used).map(|(key, _)| key.clone());
            oldest.and_then(|key| plans.by_text.remove(&key));
        }
        let now = plans.uses;
        plans.by_text.insert(key, (plan, now));
    }
}

//! Plans of statements that come again and again, as those of dashboards do.
//!
//! A kept plan names tables and columns, no snapshot and no user, so whoever may read the tables may use it. It is used
//! as long as its tables have the columns that they had. From the second time on the operators that were chosen for it are
//! kept as well.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::{Expr, LogicalPlan, Volatility};
use datafusion::physical_plan::ExecutionPlan;
use model::limits;
use parking_lot::Mutex;

use crate::kept_operators::KeptOperators;
use crate::provider::StoreTable;
use crate::tables::OpenTables;
use crate::{QueryError, postgres};

/// A plan and what it relies on.
#[derive(Debug, Clone)]
pub(crate) struct KnownPlan {
    pub(crate) plan: Arc<LogicalPlan>,
    /// Whether the plan went through the optimiser; one that asks for the time has to, each time.
    pub(crate) optimized: bool,
    /// Whether tables other than the store's are read, or who asks: such a plan is good for one query.
    pub(crate) reads_names: bool,
    /// See [`postgres::headings`].
    pub(crate) headings: Arc<[String]>,
    tables: Arc<[(Arc<str>, SchemaRef)]>,
    operators: Arc<Mutex<Option<Arc<KeptOperators>>>>,
}

/// What a plan asks of its surroundings.
pub(crate) struct Needs {
    tables: Vec<(Arc<str>, SchemaRef)>,
    reads_names: bool,
    /// Whether something in it depends on when it runs.
    asks_time: bool,
}

impl Needs {
    pub(crate) fn of(plan: &LogicalPlan) -> Result<Self> {
        let mut needs = Self { tables: Vec::new(), reads_names: false, asks_time: false };
        plan.apply_with_subqueries(|node| {
            if let LogicalPlan::TableScan(scan) = node {
                match source_as_provider(&scan.source) {
                    Ok(provider) => match provider.downcast_ref::<StoreTable>() {
                        Some(table) => needs.tables.push((table.name().into(), scan.source.schema())),
                        None => needs.reads_names = true,
                    },
                    Err(_) => needs.reads_names = true,
                }
            }
            node.apply_expressions(|expr| {
                expr.apply(|expr| {
                    needs.reads_names |=
                        matches!(expr, Expr::ScalarFunction(call) if postgres::is_of_catalog(&call.func));
                    needs.asks_time |= matches!(expr, Expr::ScalarFunction(call)
                        if call.func.signature().volatility == Volatility::Stable);
                    Ok(TreeNodeRecursion::Continue)
                })
            })
        })?;
        Ok(needs)
    }

    pub(crate) fn asks_time(&self) -> bool {
        self.asks_time
    }

    pub(crate) fn known(self, plan: Arc<LogicalPlan>, headings: Arc<[String]>, optimized: bool) -> KnownPlan {
        KnownPlan {
            plan,
            optimized,
            reads_names: self.reads_names,
            headings,
            tables: self.tables.into(),
            operators: Arc::default(),
        }
    }
}

impl KnownPlan {
    /// Whether the plan is right for the tables as they are now and for this user.
    pub(crate) fn fits(&self, tables: &OpenTables) -> Result<bool, QueryError> {
        for (name, schema) in self.tables.iter() {
            match tables.find(name)? {
                Some(table) if table.schema == *schema => {}
                _ => return Ok(false),
            }
        }
        Ok(!self.reads_names)
    }

    /// The operators that were chosen before, if they suit the tables as they are now.
    pub(crate) fn operators(&self, tables: &OpenTables) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let kept = self.operators.lock().clone();
        kept.map_or(Ok(None), |kept| kept.over(tables))
    }

    /// Keeps the operators that were chosen for this very plan.
    pub(crate) fn keep_operators(&self, chosen: &Arc<dyn ExecutionPlan>) -> Result<()> {
        let kept = KeptOperators::of(chosen, self.tables.len())?;
        *self.operators.lock() = kept.map(Arc::new);
        Ok(())
    }

    /// What is kept, as it shows itself.
    #[cfg(test)]
    pub(crate) fn shown_operators(&self) -> Option<String> {
        self.operators.lock().as_ref().map(|kept| format!("{kept:?}"))
    }
}

/// The plans used last.
#[derive(Debug, Default)]
pub(crate) struct PlanCache(Mutex<Plans>);

#[derive(Debug, Default)]
struct Plans {
    uses: u64,
    /// Plans and when they were used last.
    by_text: HashMap<String, (KnownPlan, u64)>,
}

impl PlanCache {
    pub(crate) fn find(&self, sql: &str) -> Option<KnownPlan> {
        let mut plans = self.0.lock();
        plans.uses += 1;
        let now = plans.uses;
        let (plan, used) = plans.by_text.get_mut(sql)?;
        *used = now;
        Some(plan.clone())
    }

    pub(crate) fn keep(&self, sql: &str, plan: KnownPlan) {
        if plan.reads_names || sql.len() > limits::SQL_CACHED_BYTES_MAX {
            return;
        }
        let mut plans = self.0.lock();
        if plans.by_text.len() >= limits::SQL_PLANS_CACHED_MAX && !plans.by_text.contains_key(sql) {
            let oldest =
                plans.by_text.iter().min_by_key(|(_, (_, used))| *used).map(|(text, _)| text.clone());
            oldest.and_then(|text| plans.by_text.remove(&text));
        }
        let now = plans.uses;
        plans.by_text.insert(sql.to_owned(), (plan, now));
    }
}

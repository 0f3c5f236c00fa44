//! The functions of the dialect: those of DataFusion, and those that time series and PostgreSQL's clients need beyond them.

mod avg;
pub(crate) mod bounded;
mod by_value;
mod calendar;
mod counter;
pub(crate) mod date_bin;
pub(crate) mod fill;
mod first_last;
mod json;
pub(crate) mod kept_cast;
pub(crate) mod maths;
pub(crate) mod once;
pub(crate) mod pattern_match;
mod percentile;
mod spans;
pub(crate) mod sum;
mod template;
pub(crate) mod text_concat;
mod texts;
pub(crate) mod time_bucket;
pub(crate) mod times;
mod zones;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::FunctionRegistry;
use datafusion::execution::SessionStateDefaults;
use datafusion::logical_expr::planner::ExprPlanner;
use datafusion::logical_expr::{AggregateUDF, HigherOrderUDF, ScalarUDF, WindowUDF};

/// Functions by all their names. They are made once.
#[derive(Debug)]
pub(crate) struct Functions {
    pub(crate) scalar: HashMap<String, Arc<ScalarUDF>>,
    pub(crate) aggregate: HashMap<String, Arc<AggregateUDF>>,
    pub(crate) window: HashMap<String, Arc<WindowUDF>>,
    pub(crate) higher_order: HashMap<String, Arc<HigherOrderUDF>>,
    pub(crate) table: HashMap<String, Arc<datafusion::catalog::TableFunction>>,
    pub(crate) expression_planners: Vec<Arc<dyn ExprPlanner>>,
    /// The names of all scalar functions, including those that are left out because they have no bound.
    #[cfg(test)]
    pub(crate) offered: HashSet<String>,
}

impl Functions {
    /// Makes DataFusion's functions and those of this folder with these options: functions that make times take the time zone
    /// from them. `dialect.rs` adds the others.
    pub(crate) fn new(options: &ConfigOptions) -> Self {
        let mut functions = Self {
            scalar: HashMap::new(),
            aggregate: HashMap::new(),
            window: HashMap::new(),
            higher_order: HashMap::new(),
            table: HashMap::new(),
            expression_planners: SessionStateDefaults::default_expr_planners(),
            #[cfg(test)]
            offered: HashSet::new(),
        };
        for function in SessionStateDefaults::default_scalar_functions() {
            let configured = function.inner().with_updated_config(options).map(Arc::new);
            functions.add_scalar(configured.unwrap_or(function));
        }
        SessionStateDefaults::default_aggregate_functions()
            .into_iter()
            .for_each(|f| functions.add_aggregate(f));
        SessionStateDefaults::default_window_functions().into_iter().for_each(|f| functions.add_window(f));
        for function in SessionStateDefaults::default_higher_order_functions() {
            functions.higher_order.insert(function.name().to_owned(), function);
        }
        for function in SessionStateDefaults::default_table_functions() {
            functions.table.insert(function.name().to_owned(), function);
        }
        functions.add_ours();
        functions
    }

    fn add_ours(&mut self) {
        first_last::functions().into_iter().for_each(|function| self.add_aggregate(function));
        counter::functions().into_iter().for_each(|function| self.add_aggregate(function));
        self.add_aggregate(sum::function());
        self.add_aggregate(avg::function());
        self.add_aggregate(percentile::function());
        fill::functions().into_iter().for_each(|function| self.add_window(function));
        self.add_scalar(date_bin::function());
        self.add_scalar(time_bucket::function());
        self.add_scalar(kept_cast::function());
        maths::functions().into_iter().for_each(|function| self.add_scalar(function));
        texts::functions().into_iter().for_each(|function| self.add_scalar(function));
        times::functions().into_iter().for_each(|function| self.add_scalar(function));
        self.add_planner(Arc::new(times::Extract::new()));
        let json_get = json::function();
        self.add_planner(Arc::new(json::Arrows(Arc::clone(&json_get))));
        self.add_scalar(json_get);
    }

    /// Adds a function, with its bound, under its name and aliases. It replaces a function of the same name.
    pub(crate) fn add_scalar(&mut self, function: Arc<ScalarUDF>) {
        #[cfg(test)]
        self.offered.insert(function.name().to_owned());
        let Some(function) = bounded::bound(function) else { return };
        for name in function.aliases().iter().map(String::as_str).chain([function.name()]) {
            self.scalar.insert(name.to_owned(), Arc::clone(&function));
        }
    }

    /// Adds a planner of operators. It is asked before all that were added earlier.
    pub(crate) fn add_planner(&mut self, planner: Arc<dyn ExprPlanner>) {
        self.expression_planners.insert(0, planner);
    }

    fn add_aggregate(&mut self, function: Arc<AggregateUDF>) {
        for name in function.aliases().iter().map(String::as_str).chain([function.name()]) {
            self.aggregate.insert(name.to_owned(), Arc::clone(&function));
        }
    }

    fn add_window(&mut self, function: Arc<WindowUDF>) {
        for name in function.aliases().iter().map(String::as_str).chain([function.name()]) {
            self.window.insert(name.to_owned(), Arc::clone(&function));
        }
    }
}

fn unknown(name: &str) -> DataFusionError {
    DataFusionError::Plan(format!("function {name:?} does not exist"))
}

/// Optimizer rules find functions here.
impl FunctionRegistry for Functions {
    fn udfs(&self) -> HashSet<String> {
        self.scalar.keys().cloned().collect()
    }

    fn higher_order_function_names(&self) -> HashSet<String> {
        self.higher_order.keys().cloned().collect()
    }

    fn udafs(&self) -> HashSet<String> {
        self.aggregate.keys().cloned().collect()
    }

    fn udwfs(&self) -> HashSet<String> {
        self.window.keys().cloned().collect()
    }

    fn udf(&self, name: &str) -> Result<Arc<ScalarUDF>> {
        self.scalar.get(name).cloned().ok_or_else(|| unknown(name))
    }

    fn higher_order_function(&self, name: &str) -> Result<Arc<HigherOrderUDF>> {
        self.higher_order.get(name).cloned().ok_or_else(|| unknown(name))
    }

    fn udaf(&self, name: &str) -> Result<Arc<AggregateUDF>> {
        self.aggregate.get(name).cloned().ok_or_else(|| unknown(name))
    }

    fn udwf(&self, name: &str) -> Result<Arc<WindowUDF>> {
        self.window.get(name).cloned().ok_or_else(|| unknown(name))
    }

    fn expr_planners(&self) -> Vec<Arc<dyn ExprPlanner>> {
        self.expression_planners.clone()
    }
}

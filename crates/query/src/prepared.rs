//! Statements with parameters.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use arrow_schema::{DataType, SchemaRef};
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::expr::{Cast, Placeholder};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, Limit, LogicalPlan};
use model::limits;
use parking_lot::Mutex;

use crate::plan_cache::KnownPlan;
use crate::{Answer, Engine, QueryError, Session, gapfill, postgres};

/// A checked statement that can be run many times. It holds no snapshot: each run sees the tables as they are then.
#[derive(Clone)]
pub struct Prepared {
    engine: Engine,
    resolved: Arc<Resolved>,
}

/// A statement whose names and types are known.
pub(crate) struct Resolved {
    /// What the client has sent, for plans that are good for one query.
    pub(crate) sql: Arc<str>,
    pub(crate) given_types: Vec<Option<DataType>>,
    /// The plan for the tables as they were when it was made.
    pub(crate) known: Mutex<KnownPlan>,
    /// See [`Prepared::headings`].
    pub(crate) headings: Arc<[String]>,
    pub(crate) parameter_types: Vec<DataType>,
    pub(crate) schema: SchemaRef,
}

impl Prepared {
    pub(crate) fn new(engine: Engine, resolved: Resolved) -> Self {
        Self { engine, resolved: Arc::new(resolved) }
    }

    /// The columns of the answer.
    pub fn schema(&self) -> &SchemaRef {
        &self.resolved.schema
    }

    /// As [`Answer::headings`].
    pub fn headings(&self) -> &[String] {
        &self.resolved.headings
    }

    /// The types of `$1`, `$2`...
    pub fn parameter_types(&self) -> &[DataType] {
        &self.resolved.parameter_types
    }

    /// Runs the statement with a value for each parameter. Values of other types are converted where that loses nothing.
    ///
    /// # Errors
    /// As [`Engine::run`]; when there are too few or too many values; and [`QueryError::ResultChanged`] when a table has changed so
    /// that the answer would have other columns than [`schema`](Self::schema) says.
    pub async fn run(&self, parameters: Vec<ScalarValue>, session: &Session) -> Result<Answer, QueryError> {
        let types = self.parameter_types();
        if parameters.len() != types.len() {
            let (given, wanted) = (parameters.len(), types.len());
            let message = format!("{given} parameters were given, the statement has {wanted}");
            return Err(QueryError::Invalid { message });
        }
        let converted = parameters.iter().zip(types).map(|(value, data_type)| converted(value, data_type));
        let parameters = converted.collect::<Result<_, _>>()?;
        self.engine.run_prepared(Arc::clone(&self.resolved), parameters, session).await
    }
}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Resolved { parameter_types, schema, .. } = &*self.resolved;
        f.debug_struct("Prepared")
            .field("parameters", parameter_types)
            .field("schema", schema)
            .finish_non_exhaustive()
    }
}

/// A value as one of another type. The text of an array stands for the array.
fn converted(value: &ScalarValue, data_type: &DataType) -> datafusion::common::Result<ScalarValue> {
    match (value.try_as_str(), data_type) {
        (Some(Some(text)), DataType::List(element)) => postgres::read_array(text, element),
        _ => value.cast_to(data_type),
    }
}

/// The types of all parameters from `$1` to the highest number, given or found. `named` are those of the statement.
pub(crate) fn parameter_types(
    plan: &LogicalPlan,
    given: &[Option<DataType>],
    named: &BTreeSet<String>,
) -> Result<Vec<DataType>, QueryError> {
    let found: HashMap<String, Option<DataType>> = plan.get_parameter_types()?;
    let mut highest = 0;
    for name in named {
        let number = name.strip_prefix('$').and_then(|number| number.parse::<usize>().ok());
        let Some(number) = number.filter(|number| (1..=limits::SQL_PARAMETERS_MAX).contains(number)) else {
            let message = format!("{name} is no parameter; write $1, $2...");
            return Err(QueryError::Invalid { message });
        };
        highest = highest.max(number);
    }
    let placed = types_of_places(plan)?;
    let type_of = |number: usize| {
        let name = format!("${number}");
        // Questions to empty tables of the catalog have left the plan, and their parameters with them.
        let is_unused = named.contains(&name) && !found.contains_key(&name);
        let found = found.get(&name).cloned().flatten().or_else(|| placed.get(&name).cloned());
        let found = found.or(if is_unused { Some(DataType::Utf8) } else { None });
        found.or_else(|| given.get(number - 1).cloned().flatten()).ok_or_else(|| QueryError::Invalid {
            message: format!("the type of ${number} is not known; write ${number}::type"),
        })
    };
    (1..=highest.max(given.len())).map(type_of).collect()
}

/// The types that follow from places that the resolver leaves open: below a cast, as an argument of gap filling, and as a
/// LIMIT or an OFFSET.
fn types_of_places(plan: &LogicalPlan) -> Result<HashMap<String, DataType>, QueryError> {
    let mut types = HashMap::new();
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::Limit(Limit { skip, fetch, .. }) = node {
            for count in [skip, fetch].into_iter().flatten() {
                count.apply(|expr| {
                    if let Expr::Placeholder(Placeholder { id, .. }) = expr {
                        types.entry(id.clone()).or_insert(DataType::Int64);
                    }
                    Ok(TreeNodeRecursion::Continue)
                })?;
            }
        }
        let schema = merge_schema(&node.inputs());
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                for (argument, data_type) in postgres::parameter_places(expr, &schema) {
                    if let Expr::Placeholder(Placeholder { id, .. }) = argument {
                        types.entry(id.clone()).or_insert(data_type);
                    }
                }
                if let Expr::ScalarFunction(call) = expr
                    && postgres::is_of_catalog(&call.func)
                {
                    // They take names; a number comes with its type.
                    for argument in &call.args {
                        if let Expr::Placeholder(Placeholder { id, .. }) = argument {
                            types.entry(id.clone()).or_insert(DataType::Utf8);
                        }
                    }
                }
                for (argument, data_type) in gapfill::argument_types(expr) {
                    if let Expr::Placeholder(Placeholder { id, .. }) = argument {
                        types.entry(id.clone()).or_insert(data_type);
                    }
                }
                if let Expr::Cast(Cast { expr, field }) = expr
                    && let Expr::Placeholder(Placeholder { id, .. }) = &**expr
                {
                    types.insert(id.clone(), field.data_type().clone());
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(types)
}

//! The analyzer rules that put our functions in place of DataFusion's.

use std::sync::Arc;

use arrow_schema::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{AggregateFunction, BinaryExpr, Cast, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Case, Expr, ExprSchemable, LogicalPlan, Operator, lit};
use datafusion::optimizer::{Analyzer, AnalyzerRule};

use crate::QueryError;
use crate::functions::maths;

use super::call::call;
use super::{arithmetic, casts, guards, numeric, sort_keys, spans, window_keys};

/// Returns DataFusion's analyzer with our rules around it.
pub(crate) fn analyzer() -> Analyzer {
    let mut rules: Vec<Arc<dyn AnalyzerRule + Send + Sync>> =
        vec![Arc::new(Rule { name: "postgresql_operands", rewrite: before, guards: false })];
    rules.append(&mut Analyzer::new().rules);
    rules.push(Arc::new(Rule { name: "postgresql_results", rewrite: after, guards: true }));
    Analyzer::with_rules(rules)
}

/// A rewrite of every expression of a plan.
#[derive(Debug)]
struct Rule {
    name: &'static str,
    /// Rewrites an expression whose inputs are rewritten already.
    rewrite: fn(Expr, &DFSchema) -> Result<Transformed<Expr>>,
    /// Whether the rule also guards conditions ([`guards`]) and sorts intervals.
    guards: bool,
}

impl AnalyzerRule for Rule {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let rewritten = plan.transform_up_with_subqueries(|node| {
            let mut schema = merge_schema(&node.inputs());
            if let LogicalPlan::TableScan(scan) = &node {
                schema.merge(&DFSchema::try_from_qualified_schema(
                    scan.table_name.clone(),
                    &scan.source.schema(),
                )?);
            }
            let node = sort_keys::once_each(node);
            let node = if self.guards { spans::in_order(node, &schema)? } else { node };
            let names = NamePreserver::new(&node);
            let rewrite_one = |expr: Expr| {
                let name = names.save(&expr);
                let mut rewritten = expr.transform_up(|expr| (self.rewrite)(expr, &schema))?;
                if self.guards {
                    rewritten = rewritten.transform_data(guards::guarded)?;
                }
                Ok(if rewritten.transformed {
                    rewritten.update_data(|expr| name.restore(expr))
                } else {
                    rewritten
                })
            };
            let node = node.map_expressions(|expr| match expr {
                // Each key of a grouping set is a column.
                set @ Expr::GroupingSet(_) => set.map_children(rewrite_one),
                expr => rewrite_one(expr),
            })?;
            // Columns above get new types.
            node.map_data(LogicalPlan::recompute_schema)
        })?;
        Ok(rewritten.data)
    }

    fn name(&self) -> &str {
        self.name
    }
}

/// Rewrites expressions whose operands would get another common type in DataFusion than in PostgreSQL.
fn before(mut expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    sort_keys::once_in(&mut expr);
    match expr {
        Expr::BinaryExpr(binary) if spans::computes(&binary, schema) => {
            spans::computed(binary, schema).map(Transformed::yes)
        }
        Expr::Cast(cast) => Ok(casts::of_constant(cast)),
        Expr::WindowFunction(mut window) => {
            let is_changed = window_keys::replace(&mut window, schema)?;
            Ok(Transformed::new_transformed(Expr::WindowFunction(window), is_changed))
        }
        Expr::ScalarFunction(call) if ["concat", "concat_ws"].contains(&call.func.name()) => {
            Ok(with_letters(call, schema))
        }
        other => numeric::with_floats(other, schema),
    }
}

/// Writes truth values as `t` and `f` where text is concatenated. A cast would write `true` and `false`.
fn with_letters(mut call: ScalarFunction, schema: &DFSchema) -> Transformed<Expr> {
    let mut is_changed = false;
    for arg in &mut call.args {
        if matches!(arg.get_type(schema), Ok(DataType::Boolean)) {
            let truth = std::mem::replace(arg, lit(false));
            *arg = Expr::Case(Case {
                expr: Some(Box::new(truth)),
                when_then_expr: [(true, "t"), (false, "f")]
                    .map(|(truth, letter)| (Box::new(lit(truth)), Box::new(lit(letter))))
                    .to_vec(),
                else_expr: None,
            });
            is_changed = true;
        }
    }
    Transformed::new_transformed(Expr::ScalarFunction(call), is_changed)
}

fn after(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match expr {
        Expr::BinaryExpr(binary) => of_operator(binary, schema),
        Expr::Negative(inner) => {
            let function = inner.get_type(schema).ok().and_then(|data_type| arithmetic::negation(&data_type));
            Ok(match function {
                Some(function) => Transformed::yes(call(&function, vec![*inner])),
                None => Transformed::no(Expr::Negative(inner)),
            })
        }
        Expr::Cast(cast) => of_cast(cast, schema),
        Expr::ScalarFunction(call) => of_function(call, schema),
        Expr::AggregateFunction(AggregateFunction { func, params })
            if ["min", "max"].contains(&func.name())
                && params.args.iter().any(|arg| spans::is_interval(arg, schema)) =>
        {
            Err(QueryError::unsupported(format!(
                "{} of intervals; compare extract(epoch FROM ...)",
                func.name()
            ))
            .into())
        }
        other => Ok(Transformed::no(other)),
    }
}

fn of_operator(binary: BinaryExpr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    if let Some(compared) = spans::compared(&binary, schema) {
        return Ok(Transformed::yes(compared));
    }
    // A reference to an outer query has no type here.
    let is_arithmetic = matches!(
        binary.op,
        Operator::Plus | Operator::Minus | Operator::Multiply | Operator::Divide | Operator::Modulo
    );
    let function = match is_arithmetic.then(|| arithmetic::type_of(&binary.right, schema)) {
        Some(Ok(right)) => arithmetic::function(binary.op, &right)
            .filter(|_| arithmetic::type_of(&binary.left, schema).is_ok_and(|left| left == right)),
        _ => None,
    };
    Ok(match function {
        Some(function) => Transformed::yes(call(&function, vec![*binary.left, *binary.right])),
        None => Transformed::no(Expr::BinaryExpr(binary)),
    })
}

fn of_function(mut function: ScalarFunction, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let name = function.func.name();
    if ["greatest", "least"].contains(&name)
        && function.args.iter().any(|arg| spans::is_interval(arg, schema))
    {
        let message = format!("{name} of intervals; compare extract(epoch FROM ...)");
        return Err(QueryError::unsupported(message).into());
    }
    if name == "round"
        && let [number] = function.args.as_slice()
        // In PostgreSQL a constant with a decimal point is numeric, whose halves round away from zero. DataFusion does the same.
        && !matches!(number, Expr::Literal(..))
        && number.get_type(schema).is_ok_and(|data_type| data_type == DataType::Float64)
    {
        function.func = maths::round_half_even();
        return Ok(Transformed::yes(Expr::ScalarFunction(function)));
    }
    Ok(Transformed::no(Expr::ScalarFunction(function)))
}

fn of_cast(mut cast: Cast, schema: &DFSchema) -> Result<Transformed<Expr>> {
    if let Expr::Literal(ScalarValue::Float64(Some(number)), _) = &*cast.expr
        && cast.field.data_type().is_integer()
    {
        // Rounds a constant as numeric.
        cast.expr = Box::new(lit(number.round()));
    }
    // DataFusion has casted texts that are compared with times.
    let is_text = |value: &ScalarValue| value.try_as_str().is_some();
    if matches!(&*cast.expr, Expr::Literal(value, _) if is_text(value))
        && cast.field.data_type().is_temporal()
    {
        return Ok(casts::of_constant(cast));
    }
    let function =
        cast.expr.get_type(schema).ok().and_then(|from| casts::function(&from, cast.field.data_type()));
    Ok(match function {
        Some(function) => Transformed::yes(call(&function, vec![*cast.expr])),
        None => Transformed::no(Expr::Cast(cast)),
    })
}

//! Computes with numeric and double precision values together.

use arrow_schema::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::{Between, BinaryExpr, InList, ScalarFunction};
use datafusion::logical_expr::{Case, Expr, ExprSchemable, Operator, cast};

/// Functions whose arguments have one common type.
const OF_ONE_TYPE: [&str; 5] = ["coalesce", "nvl", "greatest", "least", "nullif"];

/// Converts a numeric value beside a double precision one to double precision, as PostgreSQL does, and also the quotient of numeric
/// values. DataFusion would convert both to numeric with few digits.
pub(super) fn with_floats(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let of = |expr: &Expr| expr.get_type(schema).unwrap_or(DataType::Null);
    let mixes = |values: &[&Expr]| {
        let types: Vec<_> = values.iter().map(|value| of(value)).collect();
        types.iter().any(DataType::is_decimal) && types.iter().any(DataType::is_floating)
    };
    let float = |expr: Expr| if of(&expr).is_decimal() { cast(expr, DataType::Float64) } else { expr };
    Ok(match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if mixes(&[&left, &right])
                || (op == Operator::Divide
                    && (of(&left).is_decimal() && of(&right).is_numeric()
                        || of(&right).is_decimal() && of(&left).is_numeric())) =>
        {
            let (left, right) = (Box::new(float(*left)), Box::new(float(*right)));
            Transformed::yes(Expr::BinaryExpr(BinaryExpr { left, op, right }))
        }
        Expr::Between(Between { expr, negated, low, high }) if mixes(&[&expr, &low, &high]) => {
            let [expr, low, high] = [expr, low, high].map(|value| Box::new(float(*value)));
            Transformed::yes(Expr::Between(Between { expr, negated, low, high }))
        }
        Expr::InList(InList { expr, list, negated })
            if mixes(&list.iter().chain([&*expr]).collect::<Vec<_>>()) =>
        {
            let list = list.into_iter().map(float).collect();
            Transformed::yes(Expr::InList(InList { expr: Box::new(float(*expr)), list, negated }))
        }
        Expr::ScalarFunction(ScalarFunction { func, args })
            if OF_ONE_TYPE.contains(&func.name()) && mixes(&args.iter().collect::<Vec<_>>()) =>
        {
            let args = args.into_iter().map(float).collect();
            Transformed::yes(Expr::ScalarFunction(ScalarFunction { func, args }))
        }
        Expr::Case(Case { expr, when_then_expr, else_expr })
            if mixes(
                &when_then_expr
                    .iter()
                    .map(|(_, then)| &**then)
                    .chain(else_expr.as_deref())
                    .collect::<Vec<_>>(),
            ) =>
        {
            let when_then_expr =
                when_then_expr.into_iter().map(|(when, then)| (when, Box::new(float(*then)))).collect();
            let else_expr = else_expr.map(|value| Box::new(float(*value)));
            Transformed::yes(Expr::Case(Case { expr, when_then_expr, else_expr }))
        }
        other => Transformed::no(other),
    })
}

//! Rewrites syntax of PostgreSQL that DataFusion reads differently or not at all to calls of our functions.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CharacterLength, DataType, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentList, FunctionArguments, Query, TableFactor, UnaryOperator, Value, ValueWithSpan,
    VisitorMut,
};

use super::literals;
use crate::QueryError;
use crate::error::INVALID_PARAMETER;
use crate::parsed::{call, cast, named, number, take, text_of, unnamed};
use crate::values::patterns;
use crate::walk::walk_mut;

/// The arguments of `make_interval`, in order.
const INTERVAL_PARTS: [&str; 7] = ["years", "months", "weeks", "days", "hours", "mins", "secs"];

/// Rewrites a statement.
///
/// # Errors
/// When a pattern uses a feature of PostgreSQL that is not supported.
pub(crate) fn rewrite(statement: &mut Statement) -> Result<(), QueryError> {
    match statement {
        Statement::Statement(statement) => {
            let mut rewrite = Rewrite { refused: None };
            // The walk stops at a refused pattern.
            let _ = walk_mut(&mut **statement, &mut rewrite);
            rewrite.refused.map_or(Ok(()), Err)
        }
        Statement::Explain(explain) => rewrite(&mut explain.statement),
        _ => Ok(()),
    }
}

struct Rewrite {
    refused: Option<QueryError>,
}

impl Rewrite {
    fn refuse(&mut self, error: QueryError) -> ControlFlow<()> {
        self.refused = Some(error);
        ControlFlow::Break(())
    }
}

impl VisitorMut for Rewrite {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        match factor {
            TableFactor::Table { sample: Some(_), .. } | TableFactor::Derived { sample: Some(_), .. } => {
                self.refuse(QueryError::unsupported("TABLESAMPLE"))
            }
            TableFactor::Table { with_ordinality: true, .. }
            | TableFactor::Function { with_ordinality: true, .. } => {
                let message =
                    "WITH ORDINALITY of anything but unnest(list); write row_number() OVER (ORDER BY ...)";
                self.refuse(QueryError::unsupported(message))
            }
            TableFactor::UNNEST { with_ordinality: true, array_exprs, .. } if array_exprs.len() != 1 => {
                self.refuse(QueryError::unsupported("WITH ORDINALITY of several lists"))
            }
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        if query.fetch.as_ref().is_some_and(|fetch| fetch.with_ties) {
            let message = "FETCH ... WITH TIES; select rank() OVER (ORDER BY ...) in a subquery, and keep the first ranks";
            return self.refuse(QueryError::unsupported(message));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        order_powers(expr);
        match order_complements(expr) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => self.refuse(error),
        }
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match rewritten(expr) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => self.refuse(error),
        }
    }
}

/// Binds a sign more strongly than `^` and applies powers from left to right: `-2 ^ 2` is 4. The parser does the opposite.
fn order_powers(expr: &mut Expr) {
    let is_led_by_sign =
        |expr: &Expr| matches!(expr, Expr::UnaryOp { op: UnaryOperator::Minus, expr } if is_power(expr));
    let is_other = match &*expr {
        Expr::BinaryOp { op: BinaryOperator::PGExp, right, .. } => is_led_by_sign(right),
        other => is_led_by_sign(other),
    };
    if !is_other {
        return;
    }
    let mut operands = Vec::new();
    split_powers(take(expr), &mut operands);
    let power = |left: Expr, right: Expr| Expr::BinaryOp {
        left: Box::new(left),
        op: BinaryOperator::PGExp,
        right: Box::new(right),
    };
    if let Some(powers) = operands.into_iter().reduce(power) {
        *expr = powers;
    }
}

/// Whether the expression is a power without parentheses, perhaps with signs before it.
fn is_power(expr: &Expr) -> bool {
    match expr {
        Expr::BinaryOp { op: BinaryOperator::PGExp, .. } => true,
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => is_power(expr),
        _ => false,
    }
}

fn split_powers(expr: Expr, operands: &mut Vec<Expr>) {
    match expr {
        Expr::BinaryOp { left, op: BinaryOperator::PGExp, right } => {
            split_powers(*left, operands);
            split_powers(*right, operands);
        }
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } if is_power(&expr) => {
            let first = operands.len();
            split_powers(*expr, operands);
            let base = Box::new(take(&mut operands[first]));
            operands[first] = Expr::UnaryOp { op: UnaryOperator::Minus, expr: base };
        }
        other => operands.push(other),
    }
}

/// Binds `~` less strongly than arithmetic: `~1 + 1` is -3. The parser does the opposite.
fn order_complements(expr: &mut Expr) -> Result<(), QueryError> {
    let is_complement = |expr: &Expr| matches!(expr, Expr::UnaryOp { op: UnaryOperator::BitwiseNot, .. });
    if matches!(&*expr, Expr::BinaryOp { op, right, .. } if is_arithmetic(op) && is_complement(right)) {
        return Err(QueryError::unsupported("~ behind an operator without parentheses; write (~ x)"));
    }
    if matches!(&*expr, Expr::BinaryOp { .. }) && take_complement(expr) {
        let whole = Box::new(take(expr));
        *expr = Expr::UnaryOp { op: UnaryOperator::BitwiseNot, expr: whole };
    }
    Ok(())
}

/// Removes `~` from the first operand of a chain of arithmetic. Returns whether it was there.
fn take_complement(expr: &mut Expr) -> bool {
    match expr {
        Expr::BinaryOp { left, op, .. } if is_arithmetic(op) => take_complement(left),
        Expr::UnaryOp { op: UnaryOperator::BitwiseNot, expr: bits } => {
            *expr = take(bits);
            true
        }
        _ => false,
    }
}

fn is_arithmetic(op: &BinaryOperator) -> bool {
    matches!(
        op,
        BinaryOperator::Plus
            | BinaryOperator::Minus
            | BinaryOperator::Multiply
            | BinaryOperator::Divide
            | BinaryOperator::Modulo
            | BinaryOperator::PGExp
    )
}

fn rewritten(expr: &mut Expr) -> Result<(), QueryError> {
    match expr {
        Expr::AtTimeZone { timestamp, time_zone } => {
            *expr = call("timezone", vec![take(time_zone), take(timestamp)]);
        }
        Expr::SimilarTo { negated, expr: text, pattern, escape_char } => {
            let op = if *negated { BinaryOperator::PGRegexNotMatch } else { BinaryOperator::PGRegexMatch };
            let escape = escape_char.take();
            let pattern = match (constant(pattern), escape.as_ref().map(|escape| &escape.value)) {
                (Some(pattern), None) => text_of(patterns::similar_to(&pattern, Some('\\'))?),
                (Some(pattern), Some(Value::SingleQuotedString(escape))) => {
                    text_of(patterns::similar_to(&pattern, patterns::escape_of(escape)?)?)
                }
                (_, None) => call("similar_to_regex", vec![take(pattern)]),
                (_, Some(_)) => {
                    let escape = Expr::Value(escape.expect("BUG: there is an escape"));
                    call("similar_to_regex", vec![take(pattern), escape])
                }
            };
            *expr = Expr::BinaryOp { left: Box::new(take(text)), op, right: Box::new(pattern) };
        }
        Expr::BinaryOp { op, right, .. } if matches_regex(op) => {
            let pattern = match constant(right) {
                Some(pattern) => text_of(patterns::regex(&pattern)?),
                None => call("posix_regex", vec![take(right)]),
            };
            **right = pattern;
        }
        Expr::Like { pattern, escape_char, .. } | Expr::ILike { pattern, escape_char, .. } => {
            if let Some(escape) = escape_char.take() {
                **pattern = call("like_pattern", vec![take(pattern), Expr::Value(escape)]);
            }
        }
        Expr::Substring { expr: text, substring_from: Some(pattern), substring_for: None, .. }
            if constant(pattern).is_some() =>
        {
            *expr = call("substring_of_regex", vec![take(text), take(pattern)]);
        }
        Expr::BinaryOp { left, op: BinaryOperator::PGExp, right } => {
            *expr = call("power", vec![take(left), take(right)]);
        }
        // A plain number would name a column of the SELECT list, and a constant would not be NULL in a subtotal.
        Expr::Rollup(keys) | Expr::Cube(keys) | Expr::GroupingSets(keys)
            if keys.iter().flatten().any(|key| matches!(key, Expr::Value(_))) =>
        {
            let message = "a constant as a key of ROLLUP, CUBE or GROUPING SETS; write the expression";
            return Err(QueryError::unsupported(message));
        }
        Expr::Rollup(keys) | Expr::Cube(keys) if has_repeats(keys) => {
            return Err(QueryError::unsupported("a key twice in ROLLUP or CUBE; write it once"));
        }
        // All bits of -1 are set.
        Expr::UnaryOp { op: UnaryOperator::BitwiseNot, expr: bits } => {
            let ones = Expr::UnaryOp { op: UnaryOperator::Minus, expr: Box::new(number(1)) };
            let (left, op, right) = (Box::new(take(bits)), BinaryOperator::PGBitwiseXor, Box::new(ones));
            *expr = Expr::BinaryOp { left, op, right };
        }
        Expr::BinaryOp { left, op: BinaryOperator::PGStartsWith, right } => {
            *expr = call("starts_with", vec![take(left), take(right)]);
        }
        Expr::BinaryOp { left, op: BinaryOperator::Overlaps, right } => {
            let ends = |side: &mut Expr| match side {
                Expr::Tuple(ends) if ends.len() == 2 => Ok(std::mem::take(ends)),
                _ => Err(QueryError::unsupported(
                    "OVERLAPS of anything but pairs: (start, end) OVERLAPS (start, end)",
                )),
            };
            *expr = call("times_overlap", [ends(left)?, ends(right)?].concat());
        }
        Expr::Interval(interval) if interval.leading_field.is_none() => {
            if let Some(text) = constant(&interval.value).and_then(|text| literals::interval(&text)) {
                *interval.value = text_of(text);
            }
        }
        // DataFusion would put the sign before the text, where it applies to the first unit only.
        Expr::UnaryOp { op: UnaryOperator::Minus, expr: interval }
            if matches!(**interval, Expr::Interval(_)) =>
        {
            let factor = Expr::UnaryOp { op: UnaryOperator::Minus, expr: Box::new(number(1)) };
            *expr = Expr::BinaryOp {
                left: Box::new(take(interval)),
                op: BinaryOperator::Multiply,
                right: Box::new(factor),
            };
        }
        Expr::Function(function)
            if matches!(function.args, FunctionArguments::None)
                && function.name.to_string().eq_ignore_ascii_case("localtimestamp") =>
        {
            *expr = call("timezone", vec![text_of("UTC".into()), call("now", Vec::new())]);
        }
        Expr::Cast { expr: inner, data_type, .. } => {
            if let Some(converted) = with_length(inner, data_type)? {
                *expr = converted;
            }
        }
        Expr::Function(function) => of_function(function)?,
        _ => {}
    }
    Ok(())
}

fn has_repeats(keys: &[Vec<Expr>]) -> bool {
    let keys: Vec<&Expr> = keys.iter().flatten().collect();
    keys.iter().enumerate().any(|(index, key)| keys[..index].contains(key))
}

/// Applies the length or the precision of types, which DataFusion ignores: text is cut and times are rounded.
fn with_length(inner: &mut Box<Expr>, data_type: &mut DataType) -> Result<Option<Expr>, QueryError> {
    Ok(match data_type {
        DataType::Varchar(Some(CharacterLength::IntegerLength { length, .. }))
        | DataType::CharacterVarying(Some(CharacterLength::IntegerLength { length, .. }))
        | DataType::CharVarying(Some(CharacterLength::IntegerLength { length, .. })) => {
            let length = *length;
            Some(call("left", vec![cast(take(inner), DataType::Text), number(length)]))
        }
        DataType::Char(_) | DataType::Character(_) => {
            return Err(QueryError::unsupported("the type character(n); write text or varchar(n)"));
        }
        // Documents are text here.
        DataType::JSON | DataType::JSONB => Some(cast(take(inner), DataType::Text)),
        DataType::Timestamp(precision @ Some(_), _) => {
            let places = precision.take().unwrap_or_default();
            let data_type = data_type.clone();
            Some(call("round_time", vec![cast(take(inner), data_type), number(places)]))
        }
        _ => None,
    })
}

fn matches_regex(op: &BinaryOperator) -> bool {
    matches!(
        op,
        BinaryOperator::PGRegexMatch
            | BinaryOperator::PGRegexIMatch
            | BinaryOperator::PGRegexNotMatch
            | BinaryOperator::PGRegexNotIMatch
    )
}

fn of_function(function: &mut Function) -> Result<(), QueryError> {
    let FunctionArguments::List(list) = &mut function.args else { return Ok(()) };
    let name = function.name.to_string().to_ascii_lowercase();
    match (name.as_str(), list.args.len()) {
        ("date_trunc", 3) => function.name = named("date_trunc_in_zone"),
        ("date_trunc", 2) if !list.args.first().is_some_and(truncates_quickly) => {
            function.name = named("date_trunc_of_any");
        }
        ("age", 1) => {
            let today = call("current_date", Vec::new());
            list.args.insert(0, unnamed(today));
        }
        ("make_interval", _) => in_order(list),
        ("clock_timestamp" | "statement_timestamp" | "transaction_timestamp", 0) => {
            function.name = named("now")
        }
        ("every", 1) => function.name = named("bool_and"),
        ("regexp_match", count @ (2 | 3)) => {
            let is_optional = count == 3;
            if let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(pattern))) = list.args.get_mut(1) {
                *pattern = match constant(pattern) {
                    Some(text) => text_of(patterns::regex(&text)?),
                    None => call("posix_regex", vec![take(pattern)]),
                };
            }
            if let Some(options) = list.args.pop_if(|_| is_optional) {
                let options = options_of(&options)?;
                list.args.extend(options.map(|options| unnamed(text_of(options.into()))));
            }
        }
        _ => {}
    }
    Ok(())
}

/// Returns the options of a regular expression as DataFusion's functions take them.
fn options_of(argument: &FunctionArg) -> Result<Option<&'static str>, QueryError> {
    let FunctionArg::Unnamed(FunctionArgExpr::Expr(options)) = argument else { return Ok(None) };
    let options = constant(options)
        .ok_or_else(|| QueryError::unsupported("regexp_match with options that are not constant text"))?;
    if options.contains('g') {
        let message = "regexp_match does not support the option \"g\" of a regular expression";
        return Err(QueryError::value(INVALID_PARAMETER, message));
    }
    Ok(patterns::is_insensitive(&options)?.then_some("i"))
}

/// Whether DataFusion's function knows a unit.
fn truncates_quickly(unit: &FunctionArg) -> bool {
    let FunctionArg::Unnamed(FunctionArgExpr::Expr(unit)) = unit else { return false };
    let known =
        ["microsecond", "millisecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year"];
    constant(unit).is_none_or(|unit| known.contains(&unit.to_ascii_lowercase().as_str()))
}

/// Returns the arguments of `make_interval(days => 3)` in order, with zeros for those that are missing.
fn in_order(list: &mut FunctionArgumentList) {
    let name_of = |arg: &FunctionArg| match arg {
        FunctionArg::Named { name, .. } => Some(name.value.to_ascii_lowercase()),
        FunctionArg::ExprNamed { name: Expr::Identifier(name), .. } => Some(name.value.to_ascii_lowercase()),
        _ => None,
    };
    if !list.args.is_empty() && list.args.iter().all(|arg| name_of(arg).is_none()) {
        return;
    }
    let zero = FunctionArgExpr::Expr(number(0));
    let mut parts: Vec<FunctionArg> =
        INTERVAL_PARTS.iter().map(|_| FunctionArg::Unnamed(zero.clone())).collect();
    for (index, arg) in list.args.iter().enumerate() {
        let part = match name_of(arg) {
            None => Some(index),
            Some(name) => INTERVAL_PARTS.iter().position(|part| *part == name),
        };
        // DataFusion reports the unknown argument.
        let (Some(part), Some(value)) = (part, value_of(arg)) else { return };
        parts[part] = FunctionArg::Unnamed(value.clone());
    }
    list.args = parts;
}

fn value_of(arg: &FunctionArg) -> Option<&FunctionArgExpr> {
    match arg {
        FunctionArg::Named { arg, .. } | FunctionArg::ExprNamed { arg, .. } | FunctionArg::Unnamed(arg) => {
            Some(arg)
        }
        #[allow(unreachable_patterns, reason = "kinds of arguments that later versions may have")]
        _ => None,
    }
}

/// Returns the text of a constant.
fn constant(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Value(ValueWithSpan {
            value:
                Value::SingleQuotedString(text)
                | Value::EscapedStringLiteral(text)
                | Value::DollarQuotedString(datafusion::sql::sqlparser::ast::DollarQuotedString {
                    value: text, ..
                }),
            ..
        }) => Some(text.clone()),
        Expr::Nested(inner) => constant(inner),
        _ => None,
    }
}

//! The functions of gap filling as a statement calls them. The rewriting of the plan replaces them, so none of them can be
//! computed.

use std::ops::ControlFlow;
use std::sync::Arc;

use arrow_schema::{DataType, IntervalUnit, TimeUnit};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{self, Ident, ObjectName, ObjectNamePart, VisitorMut};

use super::shape::Fill;
use crate::walk::walk_mut;

/// `time_bucket_gapfill` and `date_bin_gapfill`.
pub(crate) fn functions() -> Vec<Arc<ScalarUDF>> {
    [Key::TimeBucket, Key::DateBin]
        .into_iter()
        .map(|key| {
            let signature = Signature::user_defined(Volatility::Immutable);
            let names = key.parameters().to_vec();
            // A user-defined signature takes any names.
            let signature = signature.clone().with_parameter_names(names).unwrap_or(signature);
            Arc::new(ScalarUDF::from(KeyCall { key, signature }))
        })
        .collect()
}

/// The function that makes the buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    /// `time_bucket_gapfill(interval, ts[, start, finish])`.
    TimeBucket,
    /// `date_bin_gapfill(interval, ts[, origin])`.
    DateBin,
}

impl Key {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::TimeBucket => "time_bucket_gapfill",
            Self::DateBin => "date_bin_gapfill",
        }
    }

    fn parameters(self) -> &'static [&'static str] {
        match self {
            Self::TimeBucket => &["bucket_width", "ts", "start", "finish"],
            Self::DateBin => &["bucket_width", "ts", "origin"],
        }
    }

    /// Returns the function of a call and its arguments.
    pub(crate) fn of(expr: &Expr) -> Option<(Self, &[Expr])> {
        let Expr::ScalarFunction(call) = expr else { return None };
        let key = call.func.inner().downcast_ref::<KeyCall>()?.key;
        Some((key, &call.args))
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct KeyCall {
    key: Key,
    signature: Signature,
}

impl ScalarUDFImpl for KeyCall {
    fn name(&self) -> &str {
        self.key.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        if !(2..=self.key.parameters().len()).contains(&types.len()) {
            let more = match self.key {
                Key::TimeBucket => "a start and a finish",
                Key::DateBin => "an origin",
            };
            let name = self.name();
            return Err(DataFusionError::Plan(format!(
                "{name} takes an interval, a time and perhaps {more}"
            )));
        }
        let zone = match &types[1] {
            DataType::Timestamp(_, zone) => zone.clone(),
            _ => Some("UTC".into()),
        };
        let mut wanted = vec![DataType::Timestamp(TimeUnit::Microsecond, zone); types.len()];
        wanted[0] = DataType::Interval(IntervalUnit::MonthDayNano);
        Ok(wanted)
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[1].clone())
    }

    fn invoke_with_args(&self, _args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Err(misplaced_key(self.key))
    }
}

/// Returns the arguments of a call of [`functions`] with the types that parameters among them have.
pub(crate) fn argument_types(expr: &Expr) -> Vec<(&Expr, DataType)> {
    let Some((_, args)) = Key::of(expr) else { return Vec::new() };
    let time = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    let data_type =
        |index| if index == 0 { DataType::Interval(IntervalUnit::MonthDayNano) } else { time.clone() };
    args.iter().enumerate().map(|(index, arg)| (arg, data_type(index))).collect()
}

pub(crate) fn misplaced_key(key: Key) -> DataFusionError {
    let name = key.name();
    DataFusionError::Plan(format!(
        "{name} must be an element of GROUP BY, alone and only once, such as \
         SELECT device, {name}('1 minute', ts) AS t, avg(speed) FROM telemetry WHERE ... GROUP BY device, t"
    ))
}

impl Fill {
    const ALL: [Self; 2] = [Self::Carry, Self::Line];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Carry => "locf",
            Self::Line => "interpolate",
        }
    }

    /// The name of the function without OVER. It differs because a scalar function hides a window function of the same name.
    fn name_without_over(self) -> &'static str {
        match self {
            Self::Carry => "locf without over",
            Self::Line => "interpolate without over",
        }
    }

    /// Returns how a call fills, and the value that it fills.
    pub(crate) fn of(expr: &Expr) -> Option<(Self, &Expr)> {
        let Expr::ScalarFunction(call) = expr else { return None };
        let fill = call.func.inner().downcast_ref::<FillCall>()?.fill;
        Some((fill, call.args.first()?))
    }
}

/// Renames calls of `locf` and `interpolate` without OVER, so that [`fill_function`] finds them.
pub(crate) fn name_fills(statement: &mut Statement) {
    match statement {
        Statement::Statement(statement) => {
            // The visitor never stops early.
            let _ = walk_mut(&mut **statement, &mut NameFills);
        }
        Statement::Explain(explain) => name_fills(&mut explain.statement),
        _ => {}
    }
}

struct NameFills;

impl VisitorMut for NameFills {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut ast::Expr) -> ControlFlow<()> {
        if let ast::Expr::Function(call) = expr
            && call.over.is_none()
            && let [ObjectNamePart::Identifier(name)] = &*call.name.0
            && let Some(fill) =
                Fill::ALL.into_iter().find(|fill| name.value.eq_ignore_ascii_case(fill.name()))
        {
            call.name = ObjectName::from(vec![Ident::with_quote('"', fill.name_without_over())]);
        }
        ControlFlow::Continue(())
    }
}

/// Returns the function of a name that [`name_fills`] has given.
pub(crate) fn fill_function(name: &str) -> Option<Arc<ScalarUDF>> {
    let fill = Fill::ALL.into_iter().find(|fill| name == fill.name_without_over())?;
    let signature = Signature::user_defined(Volatility::Immutable);
    Some(Arc::new(ScalarUDF::from(FillCall { fill, signature })))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct FillCall {
    fill: Fill,
    signature: Signature,
}

impl ScalarUDFImpl for FillCall {
    fn name(&self) -> &str {
        self.fill.name_without_over()
    }

    /// The name of the column.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let args: Vec<_> = args.iter().map(|arg| arg.schema_name().to_string()).collect();
        Ok(format!("{}({})", self.fill.name(), args.join(",")))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match (self.fill, types) {
            (Fill::Carry, [value]) => Ok(vec![value.clone()]),
            (Fill::Line, [value]) if value.is_numeric() || value.is_null() => Ok(vec![DataType::Float64]),
            (Fill::Carry, _) => Err(misplaced_fill(self.fill)),
            (Fill::Line, _) => Err(DataFusionError::Plan(
                "interpolate takes one number, such as interpolate(avg(speed)), in a query with \
                 time_bucket_gapfill, and a number and a time before OVER"
                    .into(),
            )),
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[0].clone())
    }

    fn invoke_with_args(&self, _args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Err(misplaced_fill(self.fill))
    }
}

pub(crate) fn misplaced_fill(fill: Fill) -> DataFusionError {
    let name = fill.name();
    let with_over = match fill {
        Fill::Carry => "locf(x) OVER (ORDER BY ts)",
        Fill::Line => "interpolate(x, ts) OVER (ORDER BY ts)",
    };
    DataFusionError::Plan(format!(
        "{name} without OVER takes an aggregate, such as {name}(avg(speed)), and must be a column of a \
         SELECT that groups by time_bucket_gapfill; elsewhere write {with_over}"
    ))
}

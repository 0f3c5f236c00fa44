//! Orders windows by keys of types for which DataFusion computes no ranges.
//!
//! Each such key gets a number with the same order in its place: a time of day its microseconds, an interval its length.

use arrow_schema::DataType;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::{
    Expr, ExprSchemable, SortExpr, WindowFrame, WindowFrameBound, WindowFrameUnits, cast,
};

use super::spans;
use crate::QueryError;

/// Replaces the keys of a window. Returns whether there was one to replace.
pub(super) fn replace(window: &mut WindowFunction, schema: &DFSchema) -> Result<bool> {
    let params = &mut window.params;
    let mut is_changed = false;
    for key in &mut params.order_by {
        is_changed |= replace_key(key, &params.window_frame, schema)?;
    }
    Ok(is_changed)
}

fn replace_key(key: &mut SortExpr, frame: &WindowFrame, schema: &DFSchema) -> Result<bool> {
    // A reference to an outer query has no type here.
    let Ok(data_type) = key.expr.get_type(schema) else { return Ok(false) };
    let number: fn(Expr) -> Expr = match &data_type {
        DataType::Time32(_) => |time: Expr| cast(cast(time, DataType::Int32), DataType::Int64),
        DataType::Time64(_) | DataType::Duration(_) => |time: Expr| cast(time, DataType::Int64),
        _ if spans::is_interval(&key.expr, schema) => spans::length,
        other if frame.units == WindowFrameUnits::Range && !has_ranges(other) => {
            let message = "OVER (ORDER BY ...) of a value of this type; order by its parts, or write ROWS";
            return Err(QueryError::unsupported(message).into());
        }
        _ => return Ok(false),
    };
    if frame.units == WindowFrameUnits::Range
        && (has_distance(&frame.start_bound) || has_distance(&frame.end_bound))
    {
        let message = "RANGE with a distance between times of day or intervals; order by extract(epoch FROM ...), and write the distance in seconds";
        return Err(QueryError::unsupported(message).into());
    }
    key.expr = number(std::mem::take(&mut key.expr));
    Ok(true)
}

/// Whether DataFusion computes ranges of values of a type.
fn has_ranges(data_type: &DataType) -> bool {
    data_type.is_numeric()
        || data_type.is_string()
        || data_type.is_null()
        || matches!(
            data_type,
            DataType::List(_)
                | DataType::LargeList(_)
                | DataType::FixedSizeList(..)
                | DataType::Boolean
                | DataType::Date32
                | DataType::Date64
                | DataType::Timestamp(..)
                | DataType::Dictionary(..)
        )
}

/// Whether a bound is some distance away, and not at the end of the partition or at the row itself.
fn has_distance(bound: &WindowFrameBound) -> bool {
    match bound {
        WindowFrameBound::CurrentRow => false,
        WindowFrameBound::Preceding(distance) | WindowFrameBound::Following(distance) => !distance.is_null(),
    }
}

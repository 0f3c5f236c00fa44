//! `first(x, ts)` and `last(x, ts)`: the oldest and the newest value that is not NULL.

use std::sync::Arc;

use arrow_schema::DataType;
use datafusion::common::{DataFusionError, Result};
use datafusion::functions_aggregate::first_last::{first_value_udaf, last_value_udaf};
use datafusion::logical_expr::expr::{AggregateFunction, AggregateFunctionParams, NullTreatment, Sort};
use datafusion::logical_expr::function::{AccumulatorArgs, AggregateFunctionSimplification};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Expr, Signature, Volatility};

pub(super) fn functions() -> [Arc<AggregateUDF>; 2] {
    [Edge::First, Edge::Last].map(|edge| {
        let signature = Signature::any(2, Volatility::Immutable);
        Arc::new(AggregateUDF::from(FirstLast { edge, signature }))
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Edge {
    First,
    Last,
}

/// Is planned as `first_value` or `last_value`, which need no sorted input and have an accumulator for many groups.
#[derive(Debug, PartialEq, Eq, Hash)]
struct FirstLast {
    edge: Edge,
    signature: Signature,
}

impl AggregateUDFImpl for FirstLast {
    fn name(&self) -> &str {
        match self.edge {
            Edge::First => "first",
            Edge::Last => "last",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[0].clone())
    }

    fn accumulator(&self, _args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Err(DataFusionError::Internal(format!("{} was not replaced", self.name())))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn simplify(&self) -> Option<AggregateFunctionSimplification> {
        let function = match self.edge {
            Edge::First => first_value_udaf(),
            Edge::Last => last_value_udaf(),
        };
        Some(Box::new(move |call, _context| {
            let AggregateFunctionParams { mut args, distinct, filter, .. } = call.params;
            let Some(ts) = args.pop() else {
                return Err(DataFusionError::Internal("a call without a time".into()));
            };
            let order = vec![Sort::new(ts, true, false)];
            let nulls = Some(NullTreatment::IgnoreNulls);
            let function = Arc::clone(&function);
            Ok(Expr::AggregateFunction(AggregateFunction::new_udf(
                function, args, distinct, filter, order, nulls,
            )))
        }))
    }
}

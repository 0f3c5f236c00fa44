//! `avg(x)`, also of intervals. DataFusion's function computes the averages of numbers.

use std::sync::Arc;

use arrow_schema::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::functions_aggregate::average::avg_udaf;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, ReversedUDAF, Signature, Volatility,
};

use super::spans::{self, Outcome};
use super::sum::coerced;

pub(super) fn function() -> Arc<AggregateUDF> {
    Arc::new(AggregateUDF::from(Avg {
        signature: Signature::user_defined(Volatility::Immutable),
        aliases: avg_udaf().aliases().to_vec(),
    }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Avg {
    signature: Signature,
    aliases: Vec<String>,
}

impl AggregateUDFImpl for Avg {
    fn name(&self) -> &str {
        "avg"
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [span] if spans::is_span(span) => Ok(types.to_vec()),
            _ => coerced(types, &avg_udaf()),
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        if spans::is_span(&types[0]) { Ok(spans::INTERVAL) } else { avg_udaf().return_type(types) }
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if spans::are_spans(&args) {
            return spans::accumulator(&args, Outcome::Mean);
        }
        avg_udaf().accumulator(args)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        if spans::is_span(args.input_fields[0].data_type()) {
            return Ok(spans::state_fields(&args));
        }
        avg_udaf().state_fields(args)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        !spans::are_spans(&args) && avg_udaf().groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        avg_udaf().create_groups_accumulator(args)
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if spans::are_spans(&args) {
            return spans::accumulator(&args, Outcome::Mean);
        }
        avg_udaf().create_sliding_accumulator(args)
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

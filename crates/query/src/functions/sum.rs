//! `sum(x)` of 64-bit integers, which is numeric: it neither overflows nor loses a digit.
//!
//! In PostgreSQL the sum of bigint is numeric, and the sum of smaller integers is bigint. DataFusion's function computes all sums,
//! here over wider numbers. The sum of intervals is computed by [`spans`].

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray};
use arrow_schema::{DataType, Field, FieldRef};
use datafusion::arrow::compute::cast;
use datafusion::common::{Result, ScalarValue};
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, ReversedUDAF, Signature,
    Volatility,
};

use super::spans::{self, Outcome};

/// The type of sums of 64-bit integers. 2^63 has 19 digits, so the sum of 10^19 rows still fits.
pub(crate) const SUM_OF_BIGINT: DataType = DataType::Decimal128(38, 0);

pub(super) fn function() -> Arc<AggregateUDF> {
    Arc::new(AggregateUDF::from(Sum { signature: Signature::user_defined(Volatility::Immutable) }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Sum {
    signature: Signature,
}

impl AggregateUDFImpl for Sum {
    fn name(&self) -> &str {
        "sum"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        if let [DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 | DataType::UInt64] =
            types
        {
            return Ok(types.to_vec());
        }
        match types {
            [span] if spans::is_span(span) => Ok(types.to_vec()),
            _ => coerced(types, &sum_udaf()),
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match &types[0] {
            DataType::Int8 | DataType::Int16 | DataType::Int32 => Ok(DataType::Int64),
            DataType::Int64 | DataType::UInt64 => Ok(SUM_OF_BIGINT),
            span if spans::is_span(span) => Ok(spans::INTERVAL),
            _ => sum_udaf().return_type(types),
        }
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if spans::are_spans(&args) {
            return spans::accumulator(&args, Outcome::Sum);
        }
        let sum = args.return_field.data_type().clone();
        Ok(Box::new(Widened { inner: sum_udaf().accumulator(args)?, sum }))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        if spans::is_span(args.input_fields[0].data_type()) {
            return Ok(spans::state_fields(&args));
        }
        sum_udaf().state_fields(args)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        !spans::are_spans(&args) && sum_udaf().groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        let sum = args.return_field.data_type().clone();
        Ok(Box::new(WidenedGroups { inner: sum_udaf().create_groups_accumulator(args)?, sum }))
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if spans::are_spans(&args) {
            return spans::accumulator(&args, Outcome::Sum);
        }
        let sum = args.return_field.data_type().clone();
        Ok(Box::new(Widened { inner: sum_udaf().create_sliding_accumulator(args)?, sum }))
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

/// Returns the types that a function of DataFusion takes for these.
pub(super) fn coerced(types: &[DataType], function: &AggregateUDF) -> Result<Vec<DataType>> {
    let field = |data_type: &DataType| Arc::new(Field::new("value", data_type.clone(), true));
    let fields: Vec<FieldRef> = types.iter().map(|data_type| field(data_type) as _).collect();
    let coerced = fields_with_udf(&fields, function)?;
    Ok(coerced.iter().map(|field| field.data_type().clone()).collect())
}

/// Converts values to the type of their sum.
fn widened(values: &[ArrayRef], sum: &DataType) -> Result<Vec<ArrayRef>> {
    let widen = |values: &ArrayRef| {
        if values.data_type().is_integer() { Ok(cast(values, sum)?) } else { Ok(Arc::clone(values)) }
    };
    values.iter().map(widen).collect()
}

#[derive(Debug)]
struct Widened {
    inner: Box<dyn Accumulator>,
    sum: DataType,
}

impl Accumulator for Widened {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.inner.update_batch(&widened(values, &self.sum)?)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.inner.evaluate()
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.inner.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.inner.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.inner.merge_batch(states)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.inner.retract_batch(&widened(values, &self.sum)?)
    }

    fn supports_retract_batch(&self) -> bool {
        self.inner.supports_retract_batch()
    }
}

struct WidenedGroups {
    inner: Box<dyn GroupsAccumulator>,
    sum: DataType,
}

impl GroupsAccumulator for WidenedGroups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        self.inner.update_batch(&widened(values, &self.sum)?, group_indices, filter, total)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        self.inner.evaluate(emit_to)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        self.inner.state(emit_to)
    }

    fn merge_batch(&mut self, states: &[ArrayRef], group_indices: &[usize], total: usize) -> Result<()> {
        self.inner.merge_batch(states, group_indices, total)
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        self.inner.convert_to_state(&widened(values, &self.sum)?, filter)
    }

    fn size(&self) -> usize {
        self.inner.size()
    }
}

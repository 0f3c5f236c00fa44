//! `percentile_cont(p) WITHIN GROUP (ORDER BY x)` with all digits of `p`.
//!
//! DataFusion's function cuts the weight of the two values between which the result lies to six digits. It collects the values here, and the
//! result is computed from its state.

use std::sync::Arc;

use arrow_array::builder::PrimitiveBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, ListArray, RecordBatch};
use arrow_schema::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::functions_aggregate::percentile_cont::percentile_cont_udaf;
use datafusion::logical_expr::function::{AccumulatorArgs, AggregateFunctionSimplification, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, ColumnarValue, EmitTo, GroupsAccumulator, Signature,
};

pub(super) fn function() -> Arc<AggregateUDF> {
    let inner = percentile_cont_udaf();
    Arc::new(AggregateUDF::from(PercentileCont { inner }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct PercentileCont {
    inner: Arc<AggregateUDF>,
}

impl AggregateUDFImpl for PercentileCont {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(types)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        self.inner.state_fields(args)
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let place = Place::of(&args);
        let inner = self.inner.accumulator(args)?;
        Ok(match place? {
            Some(place) => Box::new(Exact { inner, place }),
            None => inner,
        })
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        self.inner.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        let place = Place::of(&args);
        let inner = self.inner.create_groups_accumulator(args)?;
        Ok(match place? {
            Some(place) => Box::new(ExactGroups { inner, place }),
            None => inner,
        })
    }

    fn simplify(&self) -> Option<AggregateFunctionSimplification> {
        self.inner.simplify()
    }

    fn supports_within_group_clause(&self) -> bool {
        true
    }
}

/// Where the result lies among the values in their order.
#[derive(Debug, Clone, Copy)]
struct Place {
    /// From 0 to 1.
    fraction: f64,
    is_descending: bool,
}

impl Place {
    /// Returns `None` where DataFusion's function gives the result: for distinct values, and for none.
    fn of(args: &AccumulatorArgs<'_>) -> Result<Option<Self>> {
        let is_number = matches!(args.expr_fields[0].data_type(), DataType::Float32 | DataType::Float64);
        if args.is_distinct || !is_number {
            return Ok(None);
        }
        let empty = RecordBatch::new_empty(Arc::new(args.schema.clone()));
        let fraction = match args.exprs.get(1).map(|expr| expr.evaluate(&empty)).transpose()? {
            Some(ColumnarValue::Scalar(ScalarValue::Float64(Some(fraction)))) => fraction,
            // DataFusion's function refuses it.
            _ => return Ok(None),
        };
        let is_descending = args.order_bys.first().is_some_and(|key| key.options.descending);
        Ok(Some(Self { fraction, is_descending }))
    }

    /// Computes as `percentile_cont_final` in PostgreSQL's `orderedsetaggs.c`.
    fn result(self, mut values: Vec<f64>) -> Option<f64> {
        let last = values.len().checked_sub(1)?;
        let place = self.fraction * last as f64;
        let lower = (place.floor() as usize).min(last);
        let upper = (place.ceil() as usize).min(last);
        if self.is_descending {
            values.sort_unstable_by(|left, right| right.total_cmp(left));
        } else {
            values.sort_unstable_by(f64::total_cmp);
        }
        let (low, high) = (values[lower], values[upper]);
        Some(if lower == upper { low } else { low + (place - lower as f64) * (high - low) })
    }

    /// The result for a list of values.
    fn of_list(self, lists: &ListArray, row: usize) -> Option<f64> {
        if lists.is_null(row) {
            return None;
        }
        let values = lists.value(row);
        match values.data_type() {
            DataType::Float32 => {
                self.result(values.as_primitive::<Float32Type>().iter().flatten().map(f64::from).collect())
            }
            _ => self.result(values.as_primitive::<Float64Type>().iter().flatten().collect()),
        }
    }
}

#[derive(Debug)]
struct Exact {
    inner: Box<dyn Accumulator>,
    place: Place,
}

impl Accumulator for Exact {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.inner.update_batch(values)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let state = self.inner.state()?;
        let [ScalarValue::List(lists)] = state.as_slice() else { return self.inner.evaluate() };
        // A window goes on with the values.
        let values = lists.value(0);
        self.inner.update_batch(&[Arc::clone(&values)])?;
        let result = self.place.of_list(lists, 0);
        Ok(match values.data_type() {
            DataType::Float32 => ScalarValue::Float32(result.map(|number| number as f32)),
            _ => ScalarValue::Float64(result),
        })
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
        self.inner.retract_batch(values)
    }

    fn supports_retract_batch(&self) -> bool {
        self.inner.supports_retract_batch()
    }
}

struct ExactGroups {
    inner: Box<dyn GroupsAccumulator>,
    place: Place,
}

impl ExactGroups {
    fn results<T: ArrowPrimitiveType>(&self, lists: &ListArray, of: fn(f64) -> T::Native) -> ArrayRef {
        let mut results = PrimitiveBuilder::<T>::with_capacity(lists.len());
        (0..lists.len()).for_each(|row| results.append_option(self.place.of_list(lists, row).map(of)));
        Arc::new(results.finish())
    }
}

impl GroupsAccumulator for ExactGroups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        self.inner.update_batch(values, group_indices, filter, total)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let state = self.inner.state(emit_to)?;
        let lists = state[0].as_list::<i32>();
        Ok(match lists.value_type() {
            DataType::Float32 => self.results::<Float32Type>(lists, |number| number as f32),
            _ => self.results::<Float64Type>(lists, |number| number),
        })
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        self.inner.state(emit_to)
    }

    fn merge_batch(&mut self, states: &[ArrayRef], group_indices: &[usize], total: usize) -> Result<()> {
        self.inner.merge_batch(states, group_indices, total)
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        self.inner.convert_to_state(values, filter)
    }

    fn size(&self) -> usize {
        self.inner.size()
    }
}

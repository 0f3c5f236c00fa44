//! The states of each run, which the last stage merges.
//!
//! DataFusion's accumulators take one row after the other and look at the group of each. The rows of a run are neighbours, so one loop per
//! run adds, counts and compares their numbers. The states are those of DataFusion's accumulators, which merge them in the last stage.
//! An aggregate that has no loop here uses DataFusion's accumulator for its rows as well.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, Decimal128Array, Int64Array, PrimitiveArray, UInt64Array};
use arrow_buffer::{NullBuffer, NullBufferBuilder};
use arrow_schema::{DataType, Schema};
use datafusion::common::Result;
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::Literal;

use super::boundaries::BatchRuns;
use super::first_last::FirstLast;
use super::run_states::RunStates;
use crate::functions::sum::SUM_OF_BIGINT;

/// Returns the states for an aggregate over rows of a schema, and whether its arguments must be computed.
pub(super) fn states_of(
    aggregate: &AggregateFunctionExpr,
    filtered: bool,
    schema: &Schema,
) -> Result<(Box<dyn RunStates>, bool)> {
    if !filtered && !aggregate.is_distinct() {
        let fields = aggregate.state_fields()?;
        let states: Vec<&DataType> = fields.iter().map(|field| field.data_type()).collect();
        if let Some(first_last) = FirstLast::of(aggregate, schema, &states) {
            return Ok((Box::new(first_last), true));
        }
        if let ([argument], []) = (aggregate.expressions().as_slice(), aggregate.order_bys()) {
            let is_rows =
                argument.downcast_ref::<Literal>().is_some_and(|literal| !literal.value().is_null());
            if aggregate.fun().name() == "count" && states == [&DataType::Int64] {
                return Ok((Box::new(Counts::default()), !is_rows));
            }
            let argument = argument.data_type(schema)?;
            if let Some(numbers) = of_numbers(aggregate.fun().name(), &argument, &states) {
                return Ok((numbers, true));
            }
        }
    }
    Ok((Box::new(ByRow(aggregate.create_groups_accumulator()?)), true))
}

/// Returns the states of a function of numbers, if it has a loop here for these types.
fn of_numbers(name: &str, argument: &DataType, states: &[&DataType]) -> Option<Box<dyn RunStates>> {
    match (argument, states) {
        (DataType::Float64, [DataType::UInt64, DataType::Float64]) if name == "avg" => {
            Some(Box::new(Means { counts: Vec::new(), sums: Folds::new(sum) }))
        }
        (DataType::Int64, [sum]) if name == "sum" && **sum == SUM_OF_BIGINT => {
            Some(Box::new(IntegerSums { values: Vec::new(), nulls: NullBufferBuilder::new(0) }))
        }
        (DataType::Float64, [DataType::Float64]) => of_type::<Float64Type>(
            name,
            Some(sum),
            |numbers| least(numbers, f64::MAX),
            |numbers| most(numbers, f64::MIN),
        ),
        (DataType::Int64, [DataType::Int64]) => of_type::<Int64Type>(
            name,
            None,
            |numbers| least(numbers, i64::MAX),
            |numbers| most(numbers, i64::MIN),
        ),
        _ => None,
    }
}

type Fold<T> = fn(&[<T as ArrowPrimitiveType>::Native]) -> <T as ArrowPrimitiveType>::Native;

fn of_type<T: ArrowPrimitiveType>(
    name: &str,
    sum: Option<Fold<T>>,
    least: Fold<T>,
    most: Fold<T>,
) -> Option<Box<dyn RunStates>> {
    let fold = match name {
        "sum" => sum?,
        "min" => least,
        "max" => most,
        _ => return None,
    };
    Some(Box::new(Folds::<T>::new(fold)))
}

/// The smallest number. The initial value and the treatment of NaN are those of DataFusion.
fn least<T: Copy + PartialOrd>(numbers: &[T], largest: T) -> T {
    numbers.iter().fold(largest, |least, number| if *number >= least { least } else { *number })
}

/// The largest number, as [`least`].
fn most<T: Copy + PartialOrd>(numbers: &[T], smallest: T) -> T {
    numbers.iter().fold(smallest, |most, number| if *number <= most { most } else { *number })
}

/// The number of rows, or of values, of each run.
#[derive(Default)]
struct Counts(Vec<i64>);

impl RunStates for Counts {
    fn add(
        &mut self,
        arguments: &[ArrayRef],
        _filter: Option<&BooleanArray>,
        runs: &BatchRuns,
    ) -> Result<()> {
        let nulls = arguments.first().and_then(|argument| argument.logical_nulls());
        self.0.extend(runs.ranges().map(|rows| valid_count(nulls.as_ref(), &rows) as i64));
        Ok(())
    }

    fn take(&mut self) -> Result<Vec<ArrayRef>> {
        Ok(vec![Arc::new(Int64Array::from(std::mem::take(&mut self.0)))])
    }

    fn size(&self) -> usize {
        self.0.capacity() * size_of::<i64>()
    }
}

/// Returns how many of these rows have a value.
fn valid_count(nulls: Option<&NullBuffer>, rows: &Range<usize>) -> usize {
    nulls.map_or(rows.len(), |nulls| rows.len() - nulls.slice(rows.start, rows.len()).null_count())
}

/// One value for each run, computed from its numbers.
struct Folds<T: ArrowPrimitiveType> {
    /// Computes the value from all numbers of a run.
    fold: fn(&[T::Native]) -> T::Native,
    values: Vec<T::Native>,
    /// NULL for runs without numbers.
    nulls: NullBufferBuilder,
}

impl<T: ArrowPrimitiveType> Folds<T> {
    fn new(fold: fn(&[T::Native]) -> T::Native) -> Self {
        Self { fold, values: Vec::new(), nulls: NullBufferBuilder::new(0) }
    }

    fn add(&mut self, argument: &ArrayRef, runs: &BatchRuns) {
        let numbers = argument.as_primitive::<T>();
        for rows in runs.ranges() {
            let count = valid_count(numbers.nulls(), &rows);
            let of_run = &numbers.values()[rows.clone()];
            self.values.push(match numbers.nulls() {
                Some(nulls) if count < rows.len() => {
                    let valid = nulls.inner().slice(rows.start, rows.len());
                    let valid: Vec<_> = valid.set_indices().map(|row| of_run[row]).collect();
                    (self.fold)(&valid)
                }
                _ => (self.fold)(of_run),
            });
            self.nulls.append(count > 0);
        }
    }

    fn take(&mut self) -> PrimitiveArray<T> {
        PrimitiveArray::new(std::mem::take(&mut self.values).into(), self.nulls.finish())
    }

    fn size(&self) -> usize {
        self.values.capacity() * size_of::<T::Native>() + self.nulls.allocated_size()
    }
}

impl<T: ArrowPrimitiveType> RunStates for Folds<T> {
    fn add(
        &mut self,
        arguments: &[ArrayRef],
        _filter: Option<&BooleanArray>,
        runs: &BatchRuns,
    ) -> Result<()> {
        self.add(&arguments[0], runs);
        Ok(())
    }

    fn take(&mut self) -> Result<Vec<ArrayRef>> {
        Ok(vec![Arc::new(self.take())])
    }

    fn size(&self) -> usize {
        self.size()
    }
}

/// Sums of 64-bit integers. A run has too few rows to overflow an i128.
struct IntegerSums {
    values: Vec<i128>,
    /// As [`Folds::nulls`].
    nulls: NullBufferBuilder,
}

impl RunStates for IntegerSums {
    fn add(
        &mut self,
        arguments: &[ArrayRef],
        _filter: Option<&BooleanArray>,
        runs: &BatchRuns,
    ) -> Result<()> {
        let numbers = arguments[0].as_primitive::<Int64Type>();
        for rows in runs.ranges() {
            let count = valid_count(numbers.nulls(), &rows);
            let of_run = &numbers.values()[rows.clone()];
            self.values.push(match numbers.nulls() {
                Some(nulls) if count < rows.len() => {
                    let valid = nulls.inner().slice(rows.start, rows.len());
                    valid.set_indices().map(|row| i128::from(of_run[row])).sum()
                }
                _ => of_run.iter().map(|number| i128::from(*number)).sum(),
            });
            self.nulls.append(count > 0);
        }
        Ok(())
    }

    fn take(&mut self) -> Result<Vec<ArrayRef>> {
        let sums = Decimal128Array::new(std::mem::take(&mut self.values).into(), self.nulls.finish());
        Ok(vec![Arc::new(sums.with_data_type(SUM_OF_BIGINT))])
    }

    fn size(&self) -> usize {
        self.values.capacity() * size_of::<i128>() + self.nulls.allocated_size()
    }
}

/// Adds four numbers at a time. In a plain loop each addition would wait for the one before.
fn sum(numbers: &[f64]) -> f64 {
    let (fours, rest) = numbers.as_chunks::<4>();
    let sums = fours.iter().fold([0.0; 4], |sums, four| std::array::from_fn(|lane| sums[lane] + four[lane]));
    let rest: f64 = rest.iter().fold(0.0, |sum, number| sum + number);
    (sums[0] + sums[1]) + (sums[2] + sums[3]) + rest
}

/// Counts and sums, from which the last stage computes means.
struct Means {
    counts: Vec<u64>,
    sums: Folds<Float64Type>,
}

impl RunStates for Means {
    fn add(
        &mut self,
        arguments: &[ArrayRef],
        _filter: Option<&BooleanArray>,
        runs: &BatchRuns,
    ) -> Result<()> {
        let nulls = arguments[0].nulls();
        self.counts.extend(runs.ranges().map(|rows| valid_count(nulls, &rows) as u64));
        self.sums.add(&arguments[0], runs);
        Ok(())
    }

    fn take(&mut self) -> Result<Vec<ArrayRef>> {
        let sums = self.sums.take();
        // DataFusion takes a count of zero for a value, so it must be NULL.
        let counts = UInt64Array::new(std::mem::take(&mut self.counts).into(), sums.nulls().cloned());
        Ok(vec![Arc::new(counts), Arc::new(sums)])
    }

    fn size(&self) -> usize {
        self.counts.capacity() * size_of::<u64>() + self.sums.size()
    }
}

/// DataFusion's accumulator.
struct ByRow(Box<dyn GroupsAccumulator>);

impl RunStates for ByRow {
    fn add(&mut self, arguments: &[ArrayRef], filter: Option<&BooleanArray>, runs: &BatchRuns) -> Result<()> {
        self.0.update_batch(arguments, runs.run_of_row(), filter, runs.total())
    }

    fn take(&mut self) -> Result<Vec<ArrayRef>> {
        self.0.state(EmitTo::All)
    }

    fn size(&self) -> usize {
        self.0.size()
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::Float64Array;

    use super::*;

    /// Two runs, the second without a value, and then one with a single value, in two batches.
    fn states(states: &mut dyn RunStates) -> Vec<ArrayRef> {
        let groups: ArrayRef = Arc::new(Int64Array::from(vec![1, 1, 1, 2]));
        let values: ArrayRef = Arc::new(Float64Array::from(vec![Some(2.5), None, Some(-1.0), None]));
        states.add(&[values], None, &BatchRuns::of_rows(&[groups], 0)).unwrap();
        let groups: ArrayRef = Arc::new(Int64Array::from(vec![3]));
        let values: ArrayRef = Arc::new(Float64Array::from(vec![f64::NAN]));
        states.add(&[values], None, &BatchRuns::of_rows(&[groups], 2)).unwrap();
        assert!(states.size() > 0);
        let taken = states.take().unwrap();
        assert!(states.take().unwrap().iter().all(|array| array.is_empty()));
        taken
    }

    fn numbers(array: &ArrayRef) -> Vec<Option<f64>> {
        array.as_primitive::<Float64Type>().iter().collect()
    }

    #[test]
    fn runs_are_counted() {
        let counts = states(&mut Counts::default());
        assert_eq!(counts[0].as_primitive::<Int64Type>().values(), &[2, 0, 1]);
    }

    #[test]
    fn a_mean_of_nothing_has_neither_count_nor_sum() {
        let means = states(&mut Means { counts: Vec::new(), sums: Folds::new(sum) });
        let counts: Vec<_> = means[0].as_primitive::<arrow_array::types::UInt64Type>().iter().collect();
        assert_eq!(counts, [Some(2), None, Some(1)]);
        assert_eq!(numbers(&means[1])[..2], [Some(1.5), None]);
    }

    #[test]
    fn sums_have_each_number_once() {
        for length in 0..20 {
            let numbers: Vec<f64> = (0..length).map(|number| f64::from(1 << number)).collect();
            assert_eq!(sum(&numbers), f64::from((1 << length) - 1));
        }
    }

    #[test]
    fn least_and_most_and_sums_are_of_values_only() {
        let of = |name| {
            let mut made = of_numbers(name, &DataType::Float64, &[&DataType::Float64]).unwrap();
            numbers(&states(&mut *made)[0])
        };
        assert_eq!(of("min")[..2], [Some(-1.0), None]);
        assert_eq!(of("max")[..2], [Some(2.5), None]);
        assert_eq!(of("sum")[..2], [Some(1.5), None]);
        assert!(["min", "max", "sum"].iter().all(|name| of(name)[2].is_some_and(f64::is_nan)));
    }
}

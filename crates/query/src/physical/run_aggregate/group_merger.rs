//! Merges the runs of a group where they are neighbours, and returns the results of its aggregates.
//!
//! The runs of a group are neighbours if the group names the series of its rows: the rows of a series follow each other by time, so a group
//! is complete when the next one begins. No hash table of groups is needed, and each complete group is returned at once.

use std::sync::Arc;

use arrow_array::{ArrayRef, UInt32Array};
use datafusion::arrow::compute::{concat, partition, take};
use datafusion::common::Result;
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;

/// Merges neighbouring runs of a group.
pub(super) struct GroupMerger {
    groups: usize,
    /// The accumulators of the open group, each with the number of its state columns.
    accumulators: Vec<(Box<dyn GroupsAccumulator>, usize)>,
    /// The keys of the group that is not complete yet; one row.
    open: Option<Vec<ArrayRef>>,
}

impl GroupMerger {
    /// Creates a merger for groups of the given number of columns.
    pub(super) fn of(groups: usize, aggregates: &[Arc<AggregateFunctionExpr>]) -> Result<Self> {
        let accumulator = |aggregate: &Arc<AggregateFunctionExpr>| {
            Ok((aggregate.create_groups_accumulator()?, aggregate.state_fields()?.len()))
        };
        let accumulators = aggregates.iter().map(accumulator).collect::<Result<_>>()?;
        Ok(Self { groups, accumulators, open: None })
    }

    /// Adds runs: the columns of their groups, then those of their states. Returns the complete groups: their columns, then a column for
    /// each aggregate; `None` if no group is complete. All groups are complete with the last runs.
    pub(super) fn add(&mut self, runs: &[ArrayRef], are_last: bool) -> Result<Option<Vec<ArrayRef>>> {
        let (groups, mut states) = runs.split_at(self.groups);
        let open = self.open.take();
        let groups = match &open {
            Some(open) => open.iter().zip(groups).map(after).collect::<Result<_>>()?,
            None => groups.to_vec(),
        };
        let ranges = partition(&groups)?.ranges();
        let mut group_of = Vec::with_capacity(groups[0].len());
        ranges.iter().enumerate().for_each(|(group, rows)| group_of.resize(rows.end, group));
        // The first row is the open group, whose states are in the accumulators.
        let group_of_runs = &group_of[usize::from(open.is_some())..];
        for (accumulator, count) in &mut self.accumulators {
            let (of_aggregate, others) = states.split_at(*count);
            accumulator.merge_batch(of_aggregate, group_of_runs, ranges.len())?;
            states = others;
        }
        let complete = if are_last { ranges.len() } else { ranges.len() - 1 };
        // There are less than 2^32 runs.
        let first_rows: UInt32Array = ranges.iter().map(|rows| rows.start as u32).collect();
        let of_groups = |first_rows: &UInt32Array| -> Result<Vec<ArrayRef>> {
            groups.iter().map(|group| Ok(take(group, first_rows, None)?)).collect()
        };
        if !are_last {
            self.open = Some(of_groups(&first_rows.slice(complete, 1))?);
        }
        if complete == 0 {
            return Ok(None);
        }
        let emitted = if are_last { EmitTo::All } else { EmitTo::First(complete) };
        self.evaluate(of_groups(&first_rows.slice(0, complete))?, emitted)
    }

    /// Returns the open group when no more runs come.
    pub(super) fn finish(&mut self) -> Result<Option<Vec<ArrayRef>>> {
        self.open.take().map_or(Ok(None), |open| self.evaluate(open, EmitTo::All))
    }

    /// Returns the columns of groups together with the results of their aggregates.
    fn evaluate(&mut self, mut columns: Vec<ArrayRef>, emitted: EmitTo) -> Result<Option<Vec<ArrayRef>>> {
        for (accumulator, _) in &mut self.accumulators {
            columns.push(accumulator.evaluate(emitted)?);
        }
        Ok(Some(columns))
    }

    /// The memory of the accumulators in bytes.
    pub(super) fn size(&self) -> usize {
        self.accumulators.iter().map(|(accumulator, _)| accumulator.size()).sum()
    }
}

fn after((first, others): (&ArrayRef, &ArrayRef)) -> Result<ArrayRef> {
    Ok(concat(&[first, others])?)
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;
    use arrow_array::{Array, Int64Array, StringViewArray};
    use arrow_schema::{DataType, Field, Schema};
    use datafusion::functions_aggregate::{count::count_udaf, sum::sum_udaf};
    use datafusion::physical_expr::PhysicalExpr;
    use datafusion::physical_expr::aggregate::AggregateExprBuilder;
    use datafusion::physical_expr::expressions::Column;

    use super::*;

    /// Text, number, sum and count.
    type Row = (Option<String>, i64, i64, i64);

    fn merger() -> GroupMerger {
        let schema = Arc::new(Schema::new(vec![Field::new("x", DataType::Int64, true)]));
        let aggregate = |function| {
            let x: Arc<dyn PhysicalExpr> = Arc::new(Column::new("x", 0));
            let built =
                AggregateExprBuilder::new(function, vec![x]).schema(schema.clone()).alias("y").build();
            Arc::new(built.unwrap())
        };
        GroupMerger::of(2, &[aggregate(sum_udaf()), aggregate(count_udaf())]).unwrap()
    }

    fn columns(rows: &[Row]) -> Vec<ArrayRef> {
        let numbers = |of: fn(&Row) -> i64| Arc::new(rows.iter().map(of).collect::<Int64Array>()) as ArrayRef;
        let texts: StringViewArray = rows.iter().map(|row| row.0.as_deref()).collect();
        vec![Arc::new(texts), numbers(|row| row.1), numbers(|row| row.2), numbers(|row| row.3)]
    }

    fn rows(columns: &[ArrayRef]) -> Vec<Row> {
        let texts = columns[0].as_string_view();
        let number = |column: usize, row: usize| columns[column].as_primitive::<Int64Type>().value(row);
        let text = |row: usize| texts.is_valid(row).then(|| texts.value(row).to_owned());
        (0..texts.len()).map(|row| (text(row), number(1, row), number(2, row), number(3, row))).collect()
    }

    /// Runs of groups of one to four runs each, and the groups.
    fn runs_and_groups() -> (Vec<Row>, Vec<Row>) {
        let (mut runs, mut groups) = (Vec::new(), Vec::<Row>::new());
        for group in 0..9_i64 {
            let text =
                (group != 4).then(|| format!("a text that is longer than a view holds, {}", group / 3));
            let of_group = (0..=group % 4).map(|run| (text.clone(), group, 10 * group + run, run));
            let (sum, count) =
                of_group.clone().fold((0, 0), |(sum, count), run| (sum + run.2, count + run.3));
            groups.push((text.clone(), group, sum, count));
            runs.extend(of_group);
        }
        (runs, groups)
    }

    #[test]
    fn groups_are_whole_wherever_their_runs_are_divided() {
        let (runs, groups) = runs_and_groups();
        for first in 1..runs.len() {
            for second in first..runs.len() {
                let mut merger = merger();
                let mut found = Vec::new();
                for (piece, is_last) in
                    [(&runs[..first], false), (&runs[first..second], false), (&runs[second..], true)]
                {
                    if !piece.is_empty() {
                        found.extend(
                            merger.add(&columns(piece), is_last).unwrap().iter().flat_map(|over| rows(over)),
                        );
                    }
                }
                assert_eq!(found, groups, "{first} {second}");
                assert!(merger.finish().unwrap().is_none());
            }
        }
    }

    #[test]
    fn the_last_group_is_over_when_there_are_no_more_runs() {
        let (runs, groups) = runs_and_groups();
        let mut merger = merger();
        assert!(merger.finish().unwrap().is_none());
        let mut found = rows(&merger.add(&columns(&runs), false).unwrap().unwrap());
        assert_eq!(found, groups[..groups.len() - 1]);
        found.extend(rows(&merger.finish().unwrap().unwrap()));
        assert_eq!(found, groups);
        // One group that is still open.
        assert!(merger.add(&columns(&runs[1..3]), false).unwrap().is_none());
    }
}

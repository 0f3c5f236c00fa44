//! The expressions that rows are grouped by, and the fastest way to find runs of their values.

use std::ops::{BitOr, BitXor};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, ArrayRef, PrimitiveArray, RecordBatch, UInt32Array};
use arrow_buffer::BooleanBuffer;
use arrow_schema::{DataType, Schema, SchemaRef};
use datafusion::arrow::compute::{cast, partition, take};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DataFusionError, Result};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::utils::collect_columns;

use crate::column_kind::is_tag;
use crate::functions::date_bin::Steps;

/// An expression that rows are grouped by.
pub(super) struct Group {
    expression: Arc<dyn PhysicalExpr>,
    shortcut: Option<Shortcut>,
}

/// A way to find values without computing the expression for every row.
enum Shortcut {
    /// The expression rounds a column of times down to steps.
    Steps { column: usize, steps: Steps },
    /// The expression depends on one tag: `of_values` is the expression over a column with the values of that tag.
    OfTag { column: usize, of_values: Arc<dyn PhysicalExpr>, schema: SchemaRef },
}

/// The values of a group expression for the rows of a batch.
pub(super) enum GroupValues {
    /// One value for each row.
    Rows(ArrayRef),
    /// One value for each run, and the row after each run.
    Runs { ends: Vec<u32>, values: ArrayRef },
}

impl Group {
    /// `schema` is that of the rows.
    pub(super) fn new(expression: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Result<Self> {
        let shortcut = match Steps::of_column(expression) {
            Some((column, steps)) => Some(Shortcut::Steps { column: column.index(), steps }),
            None => tag_of(expression, schema)
                .map(|column| {
                    let field = schema.field(column).clone();
                    let of_values = over_one_column(expression)?;
                    let schema = Arc::new(Schema::new(vec![field]));
                    Ok::<_, DataFusionError>(Shortcut::OfTag { column, of_values, schema })
                })
                .transpose()?,
        };
        Ok(Self { expression: Arc::clone(expression), shortcut })
    }

    pub(super) fn values(&self, batch: &RecordBatch) -> Result<GroupValues> {
        let found = match &self.shortcut {
            Some(Shortcut::Steps { column, steps }) => {
                let data_type = self.expression.data_type(&batch.schema())?;
                values_of_steps(batch.column(*column), *steps, &data_type)?
            }
            Some(Shortcut::OfTag { column, of_values, schema }) => {
                values_of_tag(batch.column(*column), of_values, schema)?
            }
            None => None,
        };
        if let Some(found) = found {
            return Ok(found);
        }
        Ok(GroupValues::Rows(self.expression.evaluate(batch)?.into_array(batch.num_rows())?))
    }
}

/// Returns the index of the only column that an expression uses, if that is a tag. Groups of runs are never volatile, so the tag decides
/// the value.
pub(super) fn tag_of(expression: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Option<usize> {
    let columns = collect_columns(expression);
    let only = columns.iter().next().filter(|_| columns.len() == 1)?;
    is_tag(schema.field(only.index())).then(|| only.index())
}

/// Returns an expression of one column as an expression over batches that have no other column.
fn over_one_column(expression: &Arc<dyn PhysicalExpr>) -> Result<Arc<dyn PhysicalExpr>> {
    let first = |expression: Arc<dyn PhysicalExpr>| match expression.downcast_ref::<Column>() {
        Some(column) => Ok(Transformed::yes(Arc::new(Column::new(column.name(), 0)) as _)),
        None => Ok(Transformed::no(expression)),
    };
    Ok(Arc::clone(expression).transform_up(first)?.data)
}

/// Returns `None` if a time is missing, or outside of the range of the steps.
fn values_of_steps(times: &ArrayRef, steps: Steps, data_type: &DataType) -> Result<Option<GroupValues>> {
    let times = times.as_primitive_opt::<TimestampMicrosecondType>().filter(|times| times.null_count() == 0);
    let Some(times) = times else { return Ok(None) };
    let (mut ends, mut starts) = (Vec::new(), Vec::new());
    // A batch has less than 2^32 rows.
    let are_near = steps.runs(times.values(), |end, start| {
        ends.push(end as u32);
        starts.push(start);
    });
    if !are_near {
        return Ok(None);
    }
    let starts = PrimitiveArray::<TimestampMicrosecondType>::new(starts.into(), None);
    let starts = starts.with_data_type(times.data_type().clone());
    Ok(Some(GroupValues::Runs { ends, values: cast(&starts, data_type)? }))
}

/// Returns `None` if the tag is not run-end encoded.
fn values_of_tag(
    tag: &ArrayRef,
    of_values: &Arc<dyn PhysicalExpr>,
    schema: &SchemaRef,
) -> Result<Option<GroupValues>> {
    let Some(runs) = tag.as_run_opt::<Int32Type>() else { return Ok(None) };
    let ends: Vec<u32> = runs.run_ends().sliced_values().map(|end| end as u32).collect();
    let values = runs.values_slice();
    let count = values.len();
    let values = of_values.evaluate(&RecordBatch::try_new(Arc::clone(schema), vec![values])?)?;
    Ok(Some(GroupValues::Runs { ends, values: values.into_array(count)? }))
}

impl GroupValues {
    /// For each row but the last: whether the next one differs, or may differ.
    ///
    /// Texts are compared by their views, so a long text that is stored twice begins a new run. The last stage merges such runs, like
    /// those of different batches.
    pub(super) fn changes(&self, rows: usize) -> Result<BooleanBuffer> {
        match self {
            Self::Rows(values) => changes_of(values),
            Self::Runs { ends, .. } => Ok(changes_at(ends.iter().map(|end| *end as usize), rows)),
        }
    }

    /// Returns the values of runs that begin in these rows, which are in ascending order.
    pub(super) fn of_runs(&self, first_rows: &UInt32Array) -> Result<ArrayRef> {
        match self {
            Self::Rows(values) => Ok(take(values, first_rows, None)?),
            Self::Runs { ends, values } => {
                let runs_of_rows: UInt32Array =
                    run_of_each(first_rows.values(), ends.iter().copied()).collect();
                Ok(take(values, &runs_of_rows, None)?)
            }
        }
    }
}

/// Returns the changes between runs that end before these rows.
fn changes_at(ends: impl Iterator<Item = usize>, rows: usize) -> BooleanBuffer {
    let mut bytes = vec![0_u8; (rows - 1).div_ceil(8)];
    // The last run ends behind the last row, where no row follows.
    for last in ends.map(|end| end - 1).filter(|last| *last < rows - 1) {
        bytes[last / 8] |= 1 << (last % 8);
    }
    BooleanBuffer::new(bytes.into(), 0, rows - 1)
}

/// Returns, for each of some ascending rows, the run that contains it. `ends` are the ends of the runs.
fn run_of_each(rows: &[u32], ends: impl Iterator<Item = u32>) -> impl Iterator<Item = u32> {
    let mut ends = ends.enumerate().peekable();
    rows.iter().map(move |row| {
        while ends.next_if(|(_, end)| end <= row).is_some() {}
        ends.peek().map_or(0, |(run, _)| *run as u32)
    })
}

fn changes_of(group: &ArrayRef) -> Result<BooleanBuffer> {
    if group.null_count() == 0 {
        if let Some(texts) = group.as_string_view_opt() {
            return Ok(changes_between(texts.views()));
        }
        if let Some(times) = group.as_primitive_opt::<TimestampMicrosecondType>() {
            return Ok(changes_between(times.values()));
        }
        if let Some(numbers) = group.as_primitive_opt::<Int64Type>() {
            return Ok(changes_between(numbers.values()));
        }
    }
    let mut ends =
        partition(std::slice::from_ref(group))?.ranges().into_iter().map(|rows| rows.end - 1).peekable();
    Ok(BooleanBuffer::collect_bool(group.len() - 1, |row| ends.next_if_eq(&row).is_some()))
}

/// Most rows equal the row before, so eight rows are compared at once.
fn changes_between<T>(values: &[T]) -> BooleanBuffer
where
    T: Copy + Default + PartialEq + BitXor<Output = T> + BitOr<Output = T>,
{
    let count = values.len() - 1;
    let mut bytes = vec![0_u8; count.div_ceil(8)];
    for (byte, first) in bytes.iter_mut().zip((0..count).step_by(8)) {
        let pairs = values[first..values.len().min(first + 9)].array_windows();
        let any = pairs.clone().fold(T::default(), |any, [one, next]| any | (*one ^ *next));
        if any != T::default() {
            *byte = pairs.enumerate().fold(0, |byte, (bit, [one, next])| byte | u8::from(one != next) << bit);
        }
    }
    BooleanBuffer::new(bytes.into(), 0, count)
}

#[cfg(test)]
mod tests {
    use arrow_array::{Int32Array, Int64Array, RunArray, StringViewArray};
    use arrow_schema::Field;
    use datafusion::logical_expr::Operator;
    use datafusion::physical_expr::expressions::{BinaryExpr, IsNullExpr, lit};
    use store::table::COLUMN_KIND;

    use super::*;

    /// The rows after which another group begins, and the values of runs that begin in these rows.
    fn found(values: &GroupValues, rows: usize, first_rows: &[u32]) -> (Vec<usize>, ArrayRef) {
        let changes = values.changes(rows).unwrap();
        assert_eq!(changes.len(), rows - 1);
        (changes.set_indices().collect(), values.of_runs(&first_rows.to_vec().into()).unwrap())
    }

    /// The groups of one tag `device` and a time.
    fn schema() -> Schema {
        let kind = [(COLUMN_KIND.to_owned(), "tag".to_owned())].into();
        let tag = Field::new("device", DataType::Utf8View, true).with_metadata(kind);
        Schema::new(vec![Field::new("ts", DataType::Int64, false), tag])
    }

    fn of_tag(expression: &Arc<dyn PhysicalExpr>, tag: ArrayRef) -> GroupValues {
        let Some(Shortcut::OfTag { column, of_values, schema }) =
            Group::new(expression, &schema()).unwrap().shortcut
        else {
            panic!("no expression of a tag");
        };
        assert_eq!(column, 1);
        values_of_tag(&tag, &of_values, &schema).unwrap().unwrap()
    }

    #[test]
    fn tags_change_where_their_runs_end_even_when_cut() {
        let texts = StringViewArray::from(vec![Some("a"), None, Some("b")]);
        let runs = RunArray::<Int32Type>::try_new(&Int32Array::from(vec![2, 3, 9]), &texts).unwrap();
        let device: Arc<dyn PhysicalExpr> = Arc::new(Column::new("device", 1));
        let of = |runs: RunArray<Int32Type>| of_tag(&device, Arc::new(runs));
        let (changes, values) = found(&of(runs.clone()), 9, &[0, 1, 2, 3, 8]);
        assert_eq!(changes, [1, 2]);
        let expected = [Some("a"), Some("a"), None, Some("b"), Some("b")];
        assert_eq!(values.as_string_view().iter().collect::<Vec<_>>(), expected);
        let (changes, values) = found(&of(runs.slice(2, 4)), 4, &[0, 1]);
        assert_eq!(changes, [0]);
        assert_eq!(values.as_string_view().iter().collect::<Vec<_>>(), [None, Some("b")]);
        let (changes, values) = found(&of(runs.slice(5, 1)), 1, &[0]);
        assert_eq!((changes.len(), values.as_string_view().value(0)), (0, "b"));
        let absent: Arc<dyn PhysicalExpr> = Arc::new(IsNullExpr::new(Arc::clone(&device)));
        let (_, values) = found(&of_tag(&absent, Arc::new(runs)), 9, &[0, 2, 5]);
        assert_eq!(values.as_boolean().iter().flatten().collect::<Vec<_>>(), [false, true, false]);
    }

    #[test]
    fn expressions_of_more_than_one_tag_have_no_shortcut() {
        let column = |name: &str, index| Arc::new(Column::new(name, index)) as Arc<dyn PhysicalExpr>;
        let both: Arc<dyn PhysicalExpr> = Arc::new(BinaryExpr::new(
            Arc::new(IsNullExpr::new(column("device", 1))),
            Operator::Or,
            Arc::new(IsNullExpr::new(column("ts", 0))),
        ));
        assert_eq!(tag_of(&both, &schema()), None);
        assert_eq!(tag_of(&column("ts", 0), &schema()), None);
        assert_eq!(tag_of(&column("device", 1), &schema()), Some(1));
        assert_eq!(tag_of(&lit(1), &schema()), None);
    }

    #[test]
    fn steps_change_where_the_next_one_begins() {
        let ends = vec![3, 4, 20];
        let values: ArrayRef = Arc::new(Int64Array::from(vec![10, 20, 0]));
        let (changes, values) = found(&GroupValues::Runs { ends, values }, 20, &[0, 2, 3, 4, 19]);
        assert_eq!(changes, [2, 3]);
        assert_eq!(values.as_primitive::<Int64Type>().values(), &[10, 10, 20, 0, 0]);
    }
}

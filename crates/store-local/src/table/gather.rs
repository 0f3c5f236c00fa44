//! Makes arrays of the rows that a merge has chosen.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::builder::StringViewBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Float64Type, Int32Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{
    Array, ArrayRef, Float64Array, Int64Array, PrimitiveArray, RunArray, UInt32Array, make_array,
    new_null_array,
};
use arrow_buffer::{Buffer, NullBuffer, NullBufferBuilder};
use arrow_data::transform::MutableArrayData;
use arrow_schema::DataType;
use model::limits::{READ_LONG_TEXT_BYTES, READ_SPARSE_BYTES_MIN};
use store::StoreError;
use store::table::{TS_TYPE, arrow_type};

use super::merge::{MergeSlice, Piece};
use super::plan::{Output, ReadPlan};

/// The columns of a batch, in the order of the plan's outputs.
pub(crate) fn arrays(
    plan: &ReadPlan,
    slice: &MergeSlice,
    backward: bool,
) -> Result<Vec<ArrayRef>, StoreError> {
    let mut reversed = slice.pieces.clone();
    if backward {
        reversed.reverse();
    }
    let mut tags = Tags::default();
    let array = |output: &Output| match output {
        Output::Ts => ts(slice, &newest(slice, &reversed)),
        Output::Tag(tag) => Ok(tags.array(plan, slice, &reversed, *tag)),
        Output::Field(slot) => field(plan, slice, &reversed, *slot),
        Output::Numbers { integers, floats } => numbers(plan, slice, &reversed, *integers, *floats),
    };
    let arrays = plan.outputs.iter().map(array).collect::<Result<Vec<_>, _>>()?;
    if !backward || slice.rows < 2 {
        return Ok(arrays);
    }
    let indices: UInt32Array = (0..slice.rows as u32).rev().collect();
    let take = |array: &ArrayRef| arrow_select::take::take(array, &indices, None);
    Ok(arrays.iter().map(|array| take(array).expect("BUG: indices lie within the batch")).collect())
}

/// The pieces. For a row that several blocks have, the piece is its newest write.
fn newest<'a>(slice: &MergeSlice, pieces: &'a [Piece]) -> Cow<'a, [Piece]> {
    choose(slice, pieces, |writes| writes[0])
}

fn choose<'a>(
    slice: &MergeSlice,
    pieces: &'a [Piece],
    choice: impl Fn(&[(u32, u32)]) -> (u32, u32),
) -> Cow<'a, [Piece]> {
    if slice.writes.is_empty() {
        return Cow::Borrowed(pieces);
    }
    let single = |piece: &Piece| match *piece {
        Piece::Same { start, end } => {
            let (block, row) = choice(&slice.writes[start as usize..end as usize]);
            Piece::Rows { block, start: row, end: row + 1 }
        }
        rows => rows,
    };
    Cow::Owned(pieces.iter().map(single).collect())
}

fn ts(slice: &MergeSlice, pieces: &[Piece]) -> Result<ArrayRef, StoreError> {
    let arrays: Vec<_> =
        slice.blocks.iter().map(|block| block.ts().map(|ts| Some(ts.clone()))).collect::<Result<_, _>>()?;
    Ok(gather(&arrays, pieces, &TS_TYPE, slice.rows))
}

/// The column of a slot in each block.
type OfBlocks = Vec<Option<ArrayRef>>;

fn column(plan: &ReadPlan, slice: &MergeSlice, slot: usize) -> Result<OfBlocks, StoreError> {
    let of = |block: &Arc<super::block::Block>| {
        block.column(&plan.core, &plan.slots, slot).map(Option::<&ArrayRef>::cloned)
    };
    slice.blocks.iter().map(of).collect()
}

fn field(plan: &ReadPlan, slice: &MergeSlice, pieces: &[Piece], slot: usize) -> Result<ArrayRef, StoreError> {
    let arrays = column(plan, slice, slot)?;
    let pieces = deciding(plan, slice, pieces, slot)?;
    Ok(gather(&arrays, &pieces, &arrow_type(plan.slots[slot].field_type), slice.rows))
}

/// The integers and the floats of a key, as floats.
fn numbers(
    plan: &ReadPlan,
    slice: &MergeSlice,
    pieces: &[Piece],
    integers: usize,
    floats: usize,
) -> Result<ArrayRef, StoreError> {
    let of_integers = column(plan, slice, integers)?;
    if of_integers.iter().all(Option::is_none) {
        return field(plan, slice, pieces, floats);
    }
    let of_floats = column(plan, slice, floats)?;
    let pieces = deciding(plan, slice, pieces, floats)?;
    let integers = gather(&of_integers, &pieces, &DataType::Int64, slice.rows);
    let floats = gather(&of_floats, &pieces, &DataType::Float64, slice.rows);
    Ok(joined(integers.as_primitive(), floats))
}

/// The floats, and the nearest floats of the integers. No row has both.
fn joined(integers: &Int64Array, floats: ArrayRef) -> ArrayRef {
    if integers.null_count() == integers.len() {
        return floats;
    }
    if integers.null_count() == 0 {
        return Arc::new(integers.unary::<_, Float64Type>(|integer| integer as f64));
    }
    let floats = floats.as_primitive::<Float64Type>();
    let of_kind = |nulls: Option<&NullBuffer>| nulls.map(|nulls| nulls.inner().clone());
    let (Some(are_integers), are_floats) = (of_kind(integers.nulls()), of_kind(floats.nulls())) else {
        return Arc::new(floats.clone());
    };
    let mut values = floats.values().to_vec();
    are_integers.set_indices().for_each(|row| values[row] = integers.value(row) as f64);
    let nulls = are_floats.map(|are_floats| NullBuffer::new(&are_integers | &are_floats));
    Arc::new(Float64Array::new(values.into(), nulls.filter(|nulls| nulls.null_count() > 0)))
}

/// The pieces. For a row that several blocks have, the piece is the newest write with the key of a slot, whatever the type
/// of the value.
fn deciding<'a>(
    plan: &ReadPlan,
    slice: &MergeSlice,
    pieces: &'a [Piece],
    slot: usize,
) -> Result<Cow<'a, [Piece]>, StoreError> {
    if slice.writes.is_empty() {
        return Ok(Cow::Borrowed(pieces));
    }
    let of_key: Vec<OfBlocks> =
        plan.siblings(slot).map(|slot| column(plan, slice, slot)).collect::<Result<_, _>>()?;
    let has = |(block, row): &(u32, u32)| {
        of_key
            .iter()
            .any(|arrays| arrays[*block as usize].as_ref().is_some_and(|array| array.is_valid(*row as usize)))
    };
    let newest = |writes: &[(u32, u32)]| *writes.iter().find(|write| has(write)).unwrap_or(&writes[0]);
    Ok(choose(slice, pieces, newest))
}

/// Concatenates pieces of the arrays of blocks.
fn gather(arrays: &[Option<ArrayRef>], pieces: &[Piece], data_type: &DataType, rows: usize) -> ArrayRef {
    if let [Piece::Rows { block, start, end }] = pieces
        && let Some(array) = &arrays[*block as usize]
    {
        return compact(array.slice(*start as usize, (end - start) as usize));
    }
    if arrays.iter().all(Option::is_none) {
        return new_null_array(data_type, rows);
    }
    match data_type {
        DataType::Float64 => gather_numbers::<Float64Type>(arrays, pieces, data_type, rows),
        DataType::Int64 => gather_numbers::<Int64Type>(arrays, pieces, data_type, rows),
        DataType::Timestamp(..) => {
            gather_numbers::<TimestampMicrosecondType>(arrays, pieces, data_type, rows)
        }
        _ => compact(gather_any(arrays, pieces, rows)),
    }
}

/// Copies texts if the array would keep many more bytes in memory than it has: views refer to whole pages. Each long text gets a
/// buffer of its own, so that an operator that holds a few of the rows holds only their texts.
fn compact(array: ArrayRef) -> ArrayRef {
    let Some(views) = array.as_string_view_opt() else { return array };
    let (used, rows) = (views.total_buffer_bytes_used(), views.len().max(1));
    if used / rows >= READ_LONG_TEXT_BYTES {
        let mut copy = StringViewBuilder::with_capacity(rows).with_fixed_block_size(1);
        views.iter().for_each(|text| copy.append_option(text));
        return Arc::new(copy.finish());
    }
    let kept: usize = views.data_buffers().iter().map(Buffer::len).sum();
    if kept < READ_SPARSE_BYTES_MIN || used > kept / 2 { array } else { Arc::new(views.gc()) }
}

fn gather_numbers<T: ArrowPrimitiveType>(
    arrays: &[Option<ArrayRef>],
    pieces: &[Piece],
    data_type: &DataType,
    rows: usize,
) -> ArrayRef {
    let arrays: Vec<Option<&PrimitiveArray<T>>> =
        arrays.iter().map(|array| array.as_ref().map(|array| array.as_primitive())).collect();
    let mut values: Vec<T::Native> = Vec::with_capacity(rows);
    let mut nulls = NullBufferBuilder::new(rows);
    for piece in pieces {
        let Piece::Rows { block, start, end } = *piece else { continue };
        let (start, length) = (start as usize, (end - start) as usize);
        let Some(array) = arrays[block as usize] else {
            values.resize(values.len() + length, T::Native::default());
            nulls.append_n_nulls(length);
            continue;
        };
        values.extend_from_slice(&array.values()[start..start + length]);
        match array.nulls() {
            None => nulls.append_n_non_nulls(length),
            Some(_) if length == 1 => nulls.append(array.is_valid(start)),
            Some(of_array) => nulls.append_buffer(&of_array.slice(start, length)),
        }
    }
    let array = PrimitiveArray::<T>::new(values.into(), nulls.finish());
    Arc::new(array.with_data_type(data_type.clone()))
}

fn gather_any(arrays: &[Option<ArrayRef>], pieces: &[Piece], rows: usize) -> ArrayRef {
    let mut numbers = vec![None; arrays.len()];
    let mut data = Vec::new();
    for (number, array) in numbers.iter_mut().zip(arrays) {
        if let Some(array) = array {
            *number = Some(data.len());
            data.push(array.to_data());
        }
    }
    let missing = data.len() < arrays.len();
    let mut out = MutableArrayData::new(data.iter().collect(), missing, rows);
    for piece in pieces {
        let Piece::Rows { block, start, end } = *piece else { continue };
        let added = match numbers[block as usize] {
            Some(number) => out.try_extend(number, start as usize, end as usize),
            None => out.try_extend_nulls((end - start) as usize),
        };
        added.expect("BUG: booleans and views have no offsets that overflow");
    }
    make_array(out.freeze())
}

/// The series of the rows of a batch: the number, and the range of its rows. A series may occur more than once.
pub(super) fn series(slice: &MergeSlice) -> impl Iterator<Item = (u32, Range<usize>)> {
    let mut tags = Tags::default();
    tags.find_runs(slice, &slice.pieces);
    let mut start = 0;
    tags.series.into_iter().zip(tags.ends).map(move |(series, end)| {
        let rows = start..end as usize;
        start = rows.end;
        (series, rows)
    })
}

/// The tag columns of a batch: one text for each run of rows of a series.
#[derive(Default)]
struct Tags {
    /// By run.
    series: Vec<u32>,
    /// By run: the row after its last one. A batch has less than 2^31 rows.
    ends: Vec<i32>,
}

/// The number of series that are looked up under one lock of the index, so that new series need not wait for long.
const SERIES_LOOKED_UP: usize = 1024;

impl Tags {
    fn array(&mut self, plan: &ReadPlan, slice: &MergeSlice, pieces: &[Piece], tag: usize) -> ArrayRef {
        if self.ends.is_empty() {
            self.find_runs(slice, pieces);
        }
        let mut values = StringViewBuilder::with_capacity(self.series.len());
        for series in self.series.chunks(SERIES_LOOKED_UP) {
            let index = plan.core.series.read();
            series.iter().for_each(|id| values.append_option(index.tag_value(*id, tag as u32)));
        }
        let values = values.finish();
        if plan.tag_runs {
            let runs = RunArray::<Int32Type>::try_new(&self.ends.clone().into(), &values);
            return Arc::new(runs.expect("BUG: runs have rows"));
        }
        if values.len() == slice.rows {
            return Arc::new(values);
        }
        let run_of_row = UInt32Array::from(self.run_of_row());
        arrow_select::take::take(&values, &run_of_row, None).expect("BUG: each row has a run")
    }

    fn run_of_row(&self) -> Vec<u32> {
        let mut runs = Vec::new();
        for (run, end) in self.ends.iter().enumerate() {
            runs.resize(*end as usize, run as u32);
        }
        runs
    }

    fn find_runs(&mut self, slice: &MergeSlice, pieces: &[Piece]) {
        let mut row = 0;
        for piece in newest(slice, pieces).iter() {
            let Piece::Rows { block, mut start, end } = *piece else { continue };
            let runs = &slice.blocks[block as usize].runs;
            let mut run = runs.partition_point(|run| run.end <= start);
            while start < end {
                let stop = runs[run].end.min(end);
                row += (stop - start) as i32;
                match self.ends.last_mut() {
                    Some(last) if self.series.last() == Some(&runs[run].series) => *last = row,
                    _ => {
                        self.series.push(runs[run].series);
                        self.ends.push(row);
                    }
                }
                (start, run) = (stop, run + 1);
            }
        }
    }
}

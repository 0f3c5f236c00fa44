//! The compactor: the one thread that merges parts, one plan after the other (compaction/mod.rs decides which).
//!
//! A merge reads its inputs window by window and writes through the part writer, so that memory follows the number of
//! inputs and not their size. Until the edit that names the outputs and drops the inputs nothing has happened: a merge
//! that ends early leaves nothing, or orphans that the next open removes.
//!
//! A part that cannot be read is left alone from then on and readers go on being told of the damage; merged, it would
//! look whole.

use std::sync::Arc;
use std::time::Duration;

use model::panics::contain_panic;
use model::{FieldType, limits};
use store::StoreError;

use crate::change::Change;
use crate::compaction::{Merge, Plan, choose};
use crate::core::{Abort, Core};
use crate::manifest::PartInfo;
use crate::options::Compacted;
use crate::part::Part;
use crate::part::encode::decimal::ScaleFinder;
use crate::part::make::{PartPlan, make_part};
use crate::part::read::PartReader;
use crate::part::schema::{Layout, PartSchema};
use crate::part::stream::PartStream;
use crate::part::write::PartWriter;
use crate::version::Version;

/// How long files that somebody still reads wait for the next look.
const DROPPED_LOOK: Duration = Duration::from_secs(1);
/// How often the pause after a failure that passes by itself doubles: up to a minute with the pause that a flush makes.
const FULL_DOUBLINGS_MAX: u32 = 8;

/// The compactor as seen from outside.
#[derive(Default)]
pub(crate) struct Compactor {
    /// Compactions asked for and completed, counted.
    pub(crate) asked: u64,
    pub(crate) done: u64,
    /// Parts found to be damaged, which the version does not tell.
    pub(crate) damaged: u64,
    /// What merging waits for that passes by itself, such as disk space.
    pub(crate) stalled: Option<StoreError>,
}

/// Why a plan was not carried out.
enum Failure {
    Abort(Abort),
    /// An input cannot be read.
    Input(Arc<Part>, StoreError),
    /// A merge panicked; one of its inputs, and what is to be told.
    Panic(Arc<Part>, String),
}

impl From<Abort> for Failure {
    fn from(abort: Abort) -> Self {
        Self::Abort(abort)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Abort(Abort::Failed(error))
    }
}

/// What there is to do.
enum Wake {
    /// A version that may have something to merge, and the compactions asked for so far.
    Merge(Arc<Version>, u64),
    /// Dropped parts may have become free.
    Look,
}

/// Runs until the store is closed, sealed or dropped.
pub(crate) fn run(core: &Core) {
    let mut compaction = Compaction { core, settled: None, stalls_in_a_row: 0 };
    while let Some(wake) = compaction.wait() {
        let done = match wake {
            Wake::Merge(version, asked) => compaction.step(version, asked),
            Wake::Look => core.remove_dropped().map_err(Abort::Failed),
        };
        match done {
            Ok(()) => {}
            Err(Abort::Stopped) => return,
            Err(Abort::Failed(error)) => return core.seal(error),
        }
    }
}

struct Compaction<'a> {
    core: &'a Core,
    /// The version for which there is nothing to do.
    settled: Option<u64>,
    /// Plans given up one after the other for want of space, descriptors or memory.
    stalls_in_a_row: u32,
}

impl Compaction<'_> {
    fn wait(&self) -> Option<Wake> {
        let core = self.core;
        let mut state = core.state.lock();
        loop {
            if !state.is_open() {
                return None;
            }
            let asked = state.compactor.asked;
            let changed = core.options.compact && self.settled != Some(state.version.number());
            if changed || asked > state.compactor.done {
                return Some(Wake::Merge(state.version.clone(), asked));
            }
            if core.dropped_parts.lock().is_empty() {
                core.compact_work.wait(&mut state);
            } else if core.compact_work.wait_for(&mut state, DROPPED_LOOK).timed_out() {
                return Some(Wake::Look);
            }
        }
    }

    /// Carries out one plan.
    fn step(&mut self, version: Arc<Version>, asked: u64) -> Result<(), Abort> {
        let core = self.core;
        let plan = choose(&version, &core.options.compaction);
        let number = version.number();
        drop(version); // it holds the parts that are about to be dropped
        if plan.merges.is_empty() {
            core.remove_dropped()?;
            self.settled = Some(number);
            let mut state = core.state.lock();
            state.compactor.done = asked;
            state.compactor.stalled = None;
            drop(state);
            core.flush_work.notify_all();
            return Ok(());
        }
        match carry_out(core, &plan) {
            Ok(()) => {
                self.stalls_in_a_row = 0;
                core.state.lock().compactor.stalled = None;
                drop(plan);
                Ok(core.remove_dropped()?)
            }
            Err(Failure::Input(_, error)) if error.is_transient() => {
                self.pause(&error);
                Ok(())
            }
            Err(Failure::Input(part, error)) => {
                self.leave_alone(&part);
                if let Some(observer) = &core.options.observer {
                    observer.damaged(&error);
                }
                Ok(())
            }
            Err(Failure::Panic(part, what)) => {
                self.leave_alone(&part);
                if let Some(observer) = &core.options.observer {
                    observer.merge_failed(&what);
                }
                Ok(())
            }
            Err(Failure::Abort(Abort::Failed(error))) if error.is_transient() => {
                self.pause(&error);
                Ok(())
            }
            Err(Failure::Abort(abort)) => Err(abort),
        }
    }

    /// Leaves a part out of merges until the next start.
    fn leave_alone(&self, part: &Part) {
        part.set_damaged();
        self.core.state.lock().compactor.damaged += 1;
        self.core.flush_work.notify_all();
    }

    /// Leaves what there is to log and flush, longer each time.
    fn pause(&mut self, error: &StoreError) {
        let pause_us = self.core.options.stalled_retry_us << self.stalls_in_a_row;
        self.stalls_in_a_row = (self.stalls_in_a_row + 1).min(FULL_DOUBLINGS_MAX);
        let mut state = self.core.state.lock();
        state.compactor.stalled = Some(error.clone());
        if state.is_open() {
            self.core.compact_work.wait_for(&mut state, Duration::from_micros(pause_us));
        }
    }
}

/// Makes all merges of a plan effective at once.
fn carry_out(core: &Core, plan: &Plan) -> Result<(), Failure> {
    let begun_us = core.options.clock.now_us();
    let mut change = Change::default();
    let made = plan.merges.iter().try_for_each(|merge| {
        change.added.push(merge_or_panic(core, merge)?);
        change.dropped.extend(merge.inputs.iter().cloned());
        Ok(())
    });
    let committed = made.and_then(|()| {
        let parts = &core.layout.parts;
        core.disk.sync_dir(parts).map_err(|error| StoreError::io("sync", parts, error))?;
        Ok(core.change(&change, |_| {})?)
    });
    match committed {
        Ok(true) => {}
        // Retention was faster; the outputs hold what it dropped.
        Ok(false) => {
            remove(core, &change.added);
            return Ok(());
        }
        Err(failure) => {
            // After a failed sync the edit may be on the disk or not; the next open knows.
            if !matches!(&failure, Failure::Abort(Abort::Failed(error)) if error.is_sync()) {
                remove(core, &change.added);
            }
            return Err(failure);
        }
    }
    retry_rewrite(core)?;
    if let Some(observer) = &core.options.observer {
        let spent = core.options.clock.now_us().saturating_sub(begun_us);
        observer.compacted(&Compacted {
            duration: Duration::from_micros(spent),
            inputs: change.dropped.len() as u64,
            outputs: change.added.len() as u64,
            rows: change.added.iter().map(|part| part.rows).sum(),
            bytes_read: change.dropped.iter().map(|part| part.info.bytes).sum(),
            bytes_written: change.added.iter().map(|part| part.bytes).sum(),
        });
    }
    Ok(())
}

/// A manifest that is large waits; the next change tries again.
fn retry_rewrite(core: &Core) -> Result<(), Failure> {
    match core.rewrite_manifest() {
        Err(error) if error.is_transient() => Ok(()),
        other => Ok(other?),
    }
}

/// Gives back the space of outputs that no edit names. What stays is removed by the next open.
fn remove(core: &Core, outputs: &[PartInfo]) {
    for output in outputs {
        let _ = core.disk.remove(&core.layout.part(output.id));
    }
}

/// As [`merge_parts`]. A bug that the rows of some parts bring out is not to end the server at each start: a part is left
/// out of merges then, as one that cannot be read. Which of the inputs it was is not known; the first goes, until the
/// culprit has gone or too few are left.
fn merge_or_panic(core: &Core, merge: &Merge) -> Result<PartInfo, Failure> {
    contain_panic(|| merge_parts(core, merge)).unwrap_or_else(|panic| {
        let part = &merge.inputs[0];
        let (path, others) = (core.layout.part(part.info.id), merge.inputs.len() - 1);
        let what = format!("merging {} and {others} other parts panicked: {panic}", path.display());
        Err(Failure::Panic(Arc::clone(part), what))
    })
}

/// Writes the rows of the inputs as one part.
fn merge_parts(core: &Core, merge: &Merge) -> Result<PartInfo, Failure> {
    let open = |part: &Arc<Part>| {
        let reader = PartReader::of(core.disk.as_ref(), part);
        reader.map(Arc::new).map_err(|error| Failure::Input(Arc::clone(part), error))
    };
    let readers: Vec<Arc<PartReader>> = merge.inputs.iter().map(open).collect::<Result<_, _>>()?;
    let schema = merged_schema(core, merge, &readers)?;
    let infos = || merge.inputs.iter().map(|part| &part.info);
    let plan = PartPlan {
        id: core.next_part(),
        partition: hull(infos().map(|info| info.partition)),
        // Those of all inputs, overwritten rows included: what lies between them must not come out of order.
        sequence: hull(infos().map(|info| info.sequence)),
    };
    let mut broken = None;
    let made = make_part(core, plan, &schema, |writer| {
        copy_rows(core, merge, readers, &schema, writer, &mut broken)
    });
    match broken {
        Some((part, error)) => Err(Failure::Input(part, error)),
        None => Ok(made?),
    }
}

/// The smallest range around some ranges.
fn hull<T: Ord + Copy>(ranges: impl Iterator<Item = (T, T)>) -> (T, T) {
    let joined = ranges.reduce(|all, one| (all.0.min(one.0), all.1.max(one.1)));
    joined.expect("BUG: a merge has inputs")
}

/// All columns that any of the inputs has.
fn merged_schema(core: &Core, merge: &Merge, readers: &[Arc<PartReader>]) -> Result<PartSchema, Failure> {
    let info = &merge.inputs[0].info;
    if info.layout == Layout::Narrow {
        return Ok(PartSchema::narrow());
    }
    let mut schema = {
        let state = core.state.lock();
        let definitions = &state.catalog.tables[info.tables.0 as usize];
        let has = |physical: &str| readers.iter().any(|reader| reader.column(physical).is_some());
        PartSchema::wide(info.tables.0, definitions, |_, _, physical| has(physical))
    };
    for field in schema.fields.iter_mut().filter(|field| field.field_type == FieldType::F64) {
        let mut finder = ScaleFinder::default();
        for (reader, part) in readers.iter().zip(&merge.inputs) {
            let column = reader.column(&field.physical);
            let found = column.map_or(Ok(()), |column| reader.find_scale(column, &mut finder));
            found.map_err(|error| Failure::Input(Arc::clone(part), error))?;
        }
        field.scale = finder.scale();
    }
    Ok(schema)
}

/// The table of each series, if the parts do not all have the same.
fn tables_of_series(core: &Core, schema: &PartSchema) -> Arc<[u32]> {
    match schema.layout {
        Layout::Wide => Arc::default(),
        Layout::Narrow => core.state.lock().series.iter().map(|series| series.table).collect(),
    }
}

/// Brings the inputs' rows into one order. At one (series, ts) older inputs come first, so that the writer keeps the
/// newest value of each key.
fn copy_rows(
    core: &Core,
    merge: &Merge,
    readers: Vec<Arc<PartReader>>,
    schema: &PartSchema,
    writer: &mut PartWriter<'_>,
    broken: &mut Option<(Arc<Part>, StoreError)>,
) -> Result<(), Abort> {
    let mut blame = |input: usize, error: StoreError| {
        *broken = Some((merge.inputs[input].clone(), error));
        Abort::Stopped
    };
    let mut streams = Vec::with_capacity(readers.len());
    let tables = tables_of_series(core, schema);
    for (input, reader) in readers.into_iter().enumerate() {
        let stream = PartStream::new(reader, schema, tables.clone(), core.options.merge_window_bytes);
        streams.push(stream.map_err(|error| blame(input, error))?);
    }
    let mut places: Vec<Place> =
        streams.iter().enumerate().map(|(input, stream)| place(stream.row(), input)).collect();
    while let Some((input, until)) = next_input(&places) {
        let stream = &mut streams[input];
        while places[input] < until
            && let Some((table, series, ts)) = stream.row()
        {
            if schema.layout == Layout::Narrow {
                writer.table(table);
            }
            writer.row(series, ts)?;
            stream.fields(|key, value| writer.field(key, value));
            let read_window = stream.advance().map_err(|error| blame(input, error))?;
            places[input] = place(stream.row(), input);
            if read_window {
                check_go_on(core)?;
            }
        }
    }
    Ok(())
}

/// A row's place in the order of all inputs' rows, in one number, because comparing parts of it one after the other costs more
/// than all else of choosing: from the highest bit on its table, its series, its ts and its input.
type Place = u128;

/// Bits of a place below its ts.
const INPUT_BITS: u32 = 6;
const _: () = assert!(limits::COMPACTION_INPUTS_MAX < 1 << INPUT_BITS);
const SERIES_BITS: u32 = 31;
const _: () = assert!(limits::SERIES_MAX <= 1 << SERIES_BITS);
const _: () = assert!(limits::TABLES_MAX < 1 << (u128::BITS - SERIES_BITS - i64::BITS - INPUT_BITS));

/// Where the row at hand of an input stands; after all others when it has none left.
fn place(row: Option<(u32, u32, i64)>, input: usize) -> Place {
    let Some((table, series, ts)) = row else { return Place::MAX };
    // As they come, negative numbers would be the larger ones.
    let ts = ts.cast_unsigned() ^ (1 << (i64::BITS - 1));
    let series = Place::from(table) << SERIES_BITS | Place::from(series);
    (series << i64::BITS | Place::from(ts)) << INPUT_BITS | input as Place
}

/// The input whose row is next, and the place of another input's row before which it stays the next.
fn next_input(places: &[Place]) -> Option<(usize, Place)> {
    let (mut first, mut second) = (Place::MAX, Place::MAX);
    for place in places {
        // Without branches: nobody could predict them.
        second = second.min(first.max(*place));
        first = first.min(*place);
    }
    (first != Place::MAX).then_some(((first & ((1 << INPUT_BITS) - 1)) as usize, second))
}

/// Ends a merge when the store ends, or when log or flush need what it takes.
fn check_go_on(core: &Core) -> Result<(), Abort> {
    let state = core.state.lock();
    if !state.is_open() {
        return Err(Abort::Stopped);
    }
    match state.stalled.iter().flatten().next() {
        Some(error) => Err(error.clone().into()),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_ordered_as_rows_are_and_by_input_where_these_are_equal() {
        let tables = [0, 1, limits::TABLES_MAX as u32];
        let series = [0, 1, (limits::SERIES_MAX - 1) as u32];
        let times = [i64::MIN, -1, 0, 1, i64::MAX];
        let rows = tables.iter().flat_map(|table| series.iter().map(move |series| (*table, *series)));
        let rows = rows.flat_map(|(table, series)| times.iter().map(move |ts| (table, series, *ts)));
        let all: Vec<_> = rows
            .flat_map(|row| [0, 1, limits::COMPACTION_INPUTS_MAX - 1].map(|input| (row, input)))
            .collect();
        let places: Vec<Place> = all.iter().map(|(row, input)| place(Some(*row), *input)).collect();
        assert!(all.is_sorted() && places.is_sorted_by(|a, b| a < b));
        assert!(places.last() < Some(&place(None, 0)));
    }

    #[test]
    fn the_next_row_is_the_smallest_and_comes_before_the_second() {
        assert_eq!(next_input(&[place(None, 0), place(None, 1)]), None);
        let places = [Some((0, 2, 5)), None, Some((0, 2, 4)), Some((0, 2, 5))];
        let places: Vec<Place> = places.iter().enumerate().map(|(input, row)| place(*row, input)).collect();
        assert_eq!(next_input(&places), Some((2, places[0])), "of two equal rows the older input's");
        assert_eq!(next_input(&places[..2]), Some((0, Place::MAX)), "until it has no more");
    }
}

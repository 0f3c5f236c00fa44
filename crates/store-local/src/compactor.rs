//! The compactor: the one thread that merges parts. It executes one plan after the other (compaction/mod.rs).
//!
//! A merge reads its inputs window by window and writes through the part writer, so its memory depends on the number of
//! inputs and not on their size. A merge takes effect with the edit that names the outputs and drops the inputs. A merge
//! that ends earlier leaves nothing, or orphans that the next open removes.
//!
//! The compactor does not merge a part that it cannot read, and readers still get the error. The output of such a merge
//! would look whole.

use std::sync::Arc;
use std::time::Duration;

use model::panics::contain_panic;
use model::{FieldType, limits};
use store::{Sequence, StoreError};

use crate::abort::Abort;
use crate::change::Change;
use crate::compaction::{Merge, MergePlan, choose, choose_rewrites};
use crate::core::Core;
use crate::make_part::{PartPlan, make_part};
use crate::options::Compacted;
use crate::part::encode::decimal::ScaleFinder;
use crate::part::read::PartReader;
use crate::part::schema::PartSchema;
use crate::part::stream::PartStream;
use crate::part::write::PartWriter;
use crate::part::{Part, PartInfo, PartLayout};
use crate::tombstone::{Hidden, Tombstone, hidden_in, is_hidden, is_value_hidden};
use crate::version::Version;

/// The interval at which the compactor checks whether readers have released dropped parts.
const DROPPED_LOOK: Duration = Duration::from_secs(1);
/// How often the pause after a transient failure doubles: up to a minute with the default pause.
const FULL_DOUBLINGS_MAX: u32 = 8;

/// Why a plan was not executed.
enum Failure {
    Abort(Abort),
    /// The compactor cannot read an input.
    Input(Arc<Part>, StoreError),
    /// A merge panicked: one of its inputs, and the text for the observer.
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

/// The work that the compactor wakes up for.
enum Wake {
    /// A version that may have something to merge, and the number of compactions requested so far.
    Merge(Arc<Version>, u64),
    /// Readers may have released dropped parts.
    Look,
}

/// Runs until the store is closed, sealed or dropped.
pub(crate) fn run(core: &Core) {
    let mut compaction = Compaction { core, settled: None, stalls_in_a_row: 0 };
    while let Some(wake) = compaction.wait() {
        let done = match wake {
            Wake::Merge(version, requested) => compaction.step(version, requested),
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
    /// The number of the version that has nothing to merge, and the number of tables whose deletions were pressing.
    settled: Option<(u64, usize)>,
    /// The number of successive plans that failed for lack of space, descriptors or memory.
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
            let requested = state.compactor.requested;
            let now = (state.version.number(), state.tombstones.pressing());
            let changed = core.options.compact && self.settled != Some(now);
            if changed || requested > state.compactor.completed {
                return Some(Wake::Merge(state.version.clone(), requested));
            }
            if core.dropped_parts.lock().is_empty() {
                core.compact_work.wait(&mut state);
            } else if core.compact_work.wait_for(&mut state, DROPPED_LOOK).timed_out() {
                return Some(Wake::Look);
            }
        }
    }

    /// Executes one plan.
    fn step(&mut self, version: Arc<Version>, requested: u64) -> Result<(), Abort> {
        let core = self.core;
        let mut plan = choose(&version, &core.options.compaction);
        if plan.merges.is_empty() {
            let state = core.state.lock();
            let by_command = requested > state.compactor.completed;
            let is_dropped = |table: u32| state.catalog.is_dropped(table);
            let (tombstones, limits) = (&state.tombstones, &core.options.compaction);
            plan = choose_rewrites(&version, tombstones, &is_dropped, limits, by_command);
        }
        let number = version.number();
        drop(version); // it has the parts that the plan drops
        if plan.merges.is_empty() {
            core.remove_dropped()?;
            let mut state = core.state.lock();
            self.settled = Some((number, state.tombstones.pressing()));
            state.compactor.completed = requested;
            state.compactor.stalled = None;
            drop(state);
            core.flush_work.notify_all();
            return Ok(());
        }
        match execute(core, &plan) {
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

    /// Excludes a part from merges until the next start.
    fn leave_alone(&self, part: &Part) {
        part.set_damaged();
        self.core.state.lock().compactor.damaged += 1;
        self.core.flush_work.notify_all();
    }

    /// Leaves the scarce resource to log and flush. Each successive pause is longer.
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

/// Executes all merges of a plan. They take effect at once.
fn execute(core: &Core, plan: &MergePlan) -> Result<(), Failure> {
    let begun_us = core.options.clock.now_us();
    let mut change = Change::default();
    let made = plan.merges.iter().try_for_each(|merge| {
        change.added.extend(merge_or_panic(core, merge)?);
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
        // Retention was faster: the outputs contain rows that it has dropped.
        Ok(false) => {
            remove(core, &change.added);
            return Ok(());
        }
        Err(failure) => {
            // After a failed sync the edit may or may not be on the disk. The next open finds out.
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

/// Rewrites the manifest. After a transient failure the next change tries again.
fn retry_rewrite(core: &Core) -> Result<(), Failure> {
    match core.rewrite_manifest() {
        Err(error) if error.is_transient() => Ok(()),
        other => Ok(other?),
    }
}

/// Removes outputs that no edit names. If a file stays, the next open removes it.
fn remove(core: &Core, outputs: &[PartInfo]) {
    for output in outputs {
        let _ = core.disk.remove(&core.layout.part(output.id));
    }
}

/// Like [`merge_parts`], but contains a panic. A bug that some rows trigger must not end the server at each start. So after
/// a panic the compactor excludes one input from merges, like a part that it cannot read. It does not know which input is
/// at fault and excludes the first one, until the faulty part is out or too few inputs are left.
fn merge_or_panic(core: &Core, merge: &Merge) -> Result<Option<PartInfo>, Failure> {
    contain_panic(|| merge_parts(core, merge)).unwrap_or_else(|panic| {
        let part = &merge.inputs[0];
        let (path, others) = (core.layout.part(part.info.id), merge.inputs.len() - 1);
        let what = format!("merging {} and {others} other parts panicked: {panic}", path.display());
        Err(Failure::Panic(Arc::clone(part), what))
    })
}

/// Writes the rows of the inputs as one part, without those that deletions hide; `None` when no row is left.
fn merge_parts(core: &Core, merge: &Merge) -> Result<Option<PartInfo>, Failure> {
    let open = |part: &Arc<Part>| {
        let reader = PartReader::of(core.disk.as_ref(), part);
        reader.map(Arc::new).map_err(|error| Failure::Input(Arc::clone(part), error))
    };
    let readers: Vec<Arc<PartReader>> = merge.inputs.iter().map(open).collect::<Result<_, _>>()?;
    let schema = merged_schema(core, merge, &readers)?;
    let infos = || merge.inputs.iter().map(|part| &part.info);
    let deletions = Deletions::of(core, merge);
    let plan = PartPlan {
        id: core.next_part(),
        partition: hull(infos().map(|info| info.partition)),
        // The range of all inputs, overwritten rows included, so that the order of parts stays right.
        sequence: hull(infos().map(|info| info.sequence)),
        applied: deletions.applied,
    };
    let mut broken = None;
    let made = make_part(core, plan, &schema, |writer| {
        copy_rows(core, merge, readers, &deletions, writer, &mut broken)
    });
    match broken {
        Some((part, error)) => Err(Failure::Input(part, error)),
        None => Ok(made?),
    }
}

/// The deletions that a merge applies: those that the manifest has when it begins (tombstone/mod.rs, rule 3).
struct Deletions {
    /// By input.
    hidden: Vec<Hidden>,
    applied: Sequence,
    /// By table number: whether it was dropped. Narrow parts may have rows of such tables.
    dropped_tables: Vec<bool>,
}

impl Deletions {
    fn of(core: &Core, merge: &Merge) -> Self {
        let state = core.state.lock();
        let all: Vec<Arc<Tombstone>> = state.tombstones.covered().cloned().collect();
        let of_part = |part: &Arc<Part>| hidden_in(&all, part.info.applied, &part.info.extent());
        let hidden = merge.inputs.iter().map(of_part).collect();
        let dropped_tables = state.catalog.tables.iter().map(|table| table.dropped).collect();
        Self { hidden, applied: state.tombstones.covered_sequence(), dropped_tables }
    }
}

/// The smallest range around some ranges.
fn hull<T: Ord + Copy>(ranges: impl Iterator<Item = (T, T)>) -> (T, T) {
    let joined = ranges.reduce(|all, one| (all.0.min(one.0), all.1.max(one.1)));
    joined.expect("BUG: a merge has inputs")
}

/// The schema of the output: all columns that any of the inputs has.
fn merged_schema(core: &Core, merge: &Merge, readers: &[Arc<PartReader>]) -> Result<PartSchema, Failure> {
    let info = &merge.inputs[0].info;
    if info.layout == PartLayout::Narrow {
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

/// The table of each series for narrow parts; empty for wide parts, which have one table.
fn tables_of_series(core: &Core, schema: &PartSchema) -> Arc<[u32]> {
    match schema.layout {
        PartLayout::Wide => Arc::default(),
        PartLayout::Narrow => {
            let index = core.series.read();
            (0..index.len() as u32).map(|id| index.table(id).expect("BUG: a known series")).collect()
        }
    }
}

/// Writes the rows of all inputs in one order. At one (series, ts) older inputs come first, so that the writer keeps the
/// newest value of each key.
fn copy_rows(
    core: &Core,
    merge: &Merge,
    readers: Vec<Arc<PartReader>>,
    deletions: &Deletions,
    writer: &mut PartWriter<'_>,
    broken: &mut Option<(Arc<Part>, StoreError)>,
) -> Result<(), Abort> {
    let mut blame = |input: usize, error: StoreError| {
        *broken = Some((merge.inputs[input].clone(), error));
        Abort::Stopped
    };
    let mut streams = Vec::with_capacity(readers.len());
    let schema = writer.schema();
    let tables = tables_of_series(core, schema);
    for (input, reader) in readers.into_iter().enumerate() {
        let stream = PartStream::new(reader, schema, tables.clone(), core.options.merge_window_bytes);
        streams.push(stream.map_err(|error| blame(input, error))?);
    }
    let mut keys: Vec<SortKey> =
        streams.iter().enumerate().map(|(input, stream)| sort_key(stream.row(), input)).collect();
    while let Some((input, until)) = next_input(&keys) {
        let stream = &mut streams[input];
        while keys[input] < until
            && let Some((table, series, ts)) = stream.row()
        {
            if schema.layout == PartLayout::Narrow {
                writer.table(table);
            }
            let hidden = &deletions.hidden[input];
            let is_dropped = schema.layout == PartLayout::Narrow && deletions.dropped_tables[table as usize];
            if !is_dropped && !is_hidden(hidden, series, ts) {
                writer.row(series, ts)?;
                stream.fields(|key, value| {
                    if !is_value_hidden(hidden, series, ts, key) {
                        writer.field(key, value);
                    }
                });
            }
            let read_window = stream.advance().map_err(|error| blame(input, error))?;
            keys[input] = sort_key(stream.row(), input);
            if read_window {
                check_still_wanted(core)?;
            }
        }
    }
    Ok(())
}

/// The sort key of a row among the rows of all inputs: from the highest bit on table, series, ts and input. It is one
/// number, because comparisons of the components one by one would take most of the time of the choice.
type SortKey = u128;

/// Bits of a sort key below its ts.
const INPUT_BITS: u32 = 6;
const _: () = assert!(limits::COMPACTION_INPUTS_MAX < 1 << INPUT_BITS);
const SERIES_BITS: u32 = 31;
const _: () = assert!(limits::SERIES_MAX <= 1 << SERIES_BITS);
const _: () = assert!(limits::TABLES_MAX < 1 << (u128::BITS - SERIES_BITS - i64::BITS - INPUT_BITS));

/// The sort key of the current row of an input; the largest key when the input has no rows left.
fn sort_key(row: Option<(u32, u32, i64)>, input: usize) -> SortKey {
    let Some((table, series, ts)) = row else { return SortKey::MAX };
    // Without this negative times would be larger than positive ones.
    let ts = ts.cast_unsigned() ^ (1 << (i64::BITS - 1));
    let series = SortKey::from(table) << SERIES_BITS | SortKey::from(series);
    (series << i64::BITS | SortKey::from(ts)) << INPUT_BITS | input as SortKey
}

/// The input with the next row, and the key of the next row of the other inputs. The input stays next up to that key.
fn next_input(keys: &[SortKey]) -> Option<(usize, SortKey)> {
    let (mut first, mut second) = (SortKey::MAX, SortKey::MAX);
    for key in keys {
        // Without branches, because they would be unpredictable.
        second = second.min(first.max(*key));
        first = first.min(*key);
    }
    (first != SortKey::MAX).then_some(((first & ((1 << INPUT_BITS) - 1)) as usize, second))
}

/// Ends a merge when the store closes, or when log or flush lack a resource that the merge uses.
fn check_still_wanted(core: &Core) -> Result<(), Abort> {
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
    fn sort_keys_are_ordered_as_rows_are_and_by_input_where_these_are_equal() {
        let tables = [0, 1, limits::TABLES_MAX as u32];
        let series = [0, 1, (limits::SERIES_MAX - 1) as u32];
        let times = [i64::MIN, -1, 0, 1, i64::MAX];
        let rows = tables.iter().flat_map(|table| series.iter().map(move |series| (*table, *series)));
        let rows = rows.flat_map(|(table, series)| times.iter().map(move |ts| (table, series, *ts)));
        let all: Vec<_> = rows
            .flat_map(|row| [0, 1, limits::COMPACTION_INPUTS_MAX - 1].map(|input| (row, input)))
            .collect();
        let keys: Vec<SortKey> = all.iter().map(|(row, input)| sort_key(Some(*row), *input)).collect();
        assert!(all.is_sorted() && keys.is_sorted_by(|a, b| a < b));
        assert!(keys.last() < Some(&sort_key(None, 0)));
    }

    #[test]
    fn the_next_row_is_the_smallest_and_comes_before_the_second() {
        assert_eq!(next_input(&[sort_key(None, 0), sort_key(None, 1)]), None);
        let keys = [Some((0, 2, 5)), None, Some((0, 2, 4)), Some((0, 2, 5))];
        let keys: Vec<SortKey> = keys.iter().enumerate().map(|(input, row)| sort_key(*row, input)).collect();
        assert_eq!(next_input(&keys), Some((2, keys[0])), "of two equal rows the older input's");
        assert_eq!(next_input(&keys[..2]), Some((0, SortKey::MAX)), "until it has no more");
    }
}

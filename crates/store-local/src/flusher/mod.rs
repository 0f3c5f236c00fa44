//! The flusher: the one thread that writes the memtable into parts, so that log segments can be recycled.
//!
//! It writes part files, their names, the series file, the manifest edit and the mark, in this order; then it frees memory
//! and log segments. The invariants in manifest.rs and part/mod.rs require the order.

mod backpressure;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use model::ValueRef;
use model::panics::contain_panic;
use store::{Sequence, StoreError};

use crate::abort::Abort;
use crate::change::Change;
use crate::chunk::Chunk;
use crate::core::{Core, STALLED_FLUSH, Stop, TableMemory};
use crate::log::recover::Covered;
use crate::make_part::{PartPlan, make_part};
use crate::part::PartInfo;
use crate::part::column_stats::ColumnStats;
use crate::part::rows::{Partition, Sorted, partitions, sort_partition};
use crate::part::schema::PartSchema;
use crate::part::write::PartWriter;
use crate::series_file::SeriesFile;
use crate::tombstone::{Hidden, Tombstones, hidden_in, is_value_hidden};

/// The memtable at one moment.
struct Generation {
    tables: Vec<TableRows>,
    /// The sequence of the last row in `tables`.
    sequence: Sequence,
    /// This flush makes all rows of the frames below this number durable.
    frame: u64,
    series_count: u32,
    requested: u64,
}

/// The rows of one table.
struct TableRows {
    table: u32,
    /// Whether the rows go to a part that tables share.
    narrow: bool,
    chunks: Vec<Arc<Chunk>>,
    /// By chunk, the tombstones that hide rows of it; empty when the table has no tombstones.
    hidden: Vec<Hidden>,
}

/// Runs until the store is closed, sealed or dropped.
pub(crate) fn run(core: &Core, mut series: SeriesFile) {
    while let Some(generation) = next_generation(core) {
        match flush(core, &mut series, generation) {
            Ok(()) => core.notify_watchers(),
            Err(Abort::Stopped) => return,
            Err(Abort::Failed(error)) => return core.seal(error),
        }
    }
}

/// Waits until a flush may begin, and takes the memtable.
fn next_generation(core: &Core) -> Option<Generation> {
    let mut guard = backpressure::wait_for_work(core)?;
    let state = &mut *guard;
    for table in 0..state.tables.len() as u32 {
        state.freeze(table);
        let memory = &mut state.tables[table as usize];
        memory.flushing = std::mem::take(&mut memory.frozen);
    }
    state.memory.flushing = std::mem::take(&mut state.memory.active);
    let tables = state.tables.iter().enumerate().filter(|(_, memory)| !memory.flushing.is_empty());
    let catalog = &state.catalog;
    let tables = tables.filter(|(table, _)| !catalog.tables[*table].dropped);
    let rows_of = |(table, memory): (usize, &TableMemory)| TableRows {
        table: table as u32,
        // A table with wide parts stays wide, because wide parts are newer than narrow ones (manifest.rs, invariant 4). A
        // table with a time to live of its own stays wide, because a narrow part goes only with the last of its tables.
        narrow: core.options.narrow_parts
            && catalog.tables[table].is_narrow()
            && catalog.tables[table].ttl_us.is_none()
            && state.version.wide(table as u32).is_empty(),
        chunks: memory.flushing.clone(),
        hidden: hidden(&state.tombstones, table as u32, &memory.flushing),
    };
    let generation = Generation {
        tables: tables.map(rows_of).collect(),
        sequence: core.progress().appended,
        frame: state.pending.frame,
        series_count: state.catalog.series.read().len() as u32,
        requested: state.flusher.requested,
    };
    // Parts must not be ahead of the log, so the committer syncs while this flush writes parts.
    state.committer.sync_wanted = core.progress().durable < generation.sequence;
    core.commit_work.notify_all();
    Some(generation)
}

fn flush(core: &Core, series: &mut SeriesFile, generation: Generation) -> Result<(), Abort> {
    let begun_us = core.options.clock.now_us();
    // The log keeps the rows, so a bug that they trigger would come back at each start. Sealed, the store can still be
    // read.
    let added = contain_panic(|| make_parts(core, &generation)).unwrap_or_else(|panic| {
        let bug = io::Error::other(format!("BUG: a panic: {panic}"));
        Err(Abort::Failed(StoreError::io("write the rows in memory to", &core.layout.parts, bug)))
    })?;
    if !added.is_empty() {
        let parts = &core.layout.parts;
        retry(core, || {
            Ok(core.disk.sync_dir(parts).map_err(|error| StoreError::io("sync", parts, error))?)
        })?;
    }
    wait_until_durable(core, generation.sequence)?;
    let series_bytes = retry(core, || Ok(series.append(&core.series, generation.series_count)?))?;
    retry(core, || Ok(commit(core, &generation, &added, series_bytes)?))?;
    series.bytes = series_bytes;
    series.count = generation.series_count;
    // Without a mark the segments wait for the next flush.
    if core.manifest.lock().mark()? {
        core.segments.recycle(core.disk.as_ref(), &core.layout, generation.frame)?;
    }
    retry(core, || Ok(core.rewrite_manifest()?))?;
    if let Some(observer) = &core.options.observer {
        let spent = core.options.clock.now_us().saturating_sub(begun_us);
        let rows = added.iter().map(|part| part.rows).sum();
        let bytes = added.iter().map(|part| part.bytes).sum();
        observer.flushed(Duration::from_micros(spent), added.len() as u64, rows, bytes);
    }
    Ok(())
}

/// By chunk of a table, the tombstones that hide rows of it; nothing when the table has no tombstones.
fn hidden(tombstones: &Tombstones, table: u32, chunks: &[Arc<Chunk>]) -> Vec<Hidden> {
    let Some(all) = tombstones.of(table) else { return Vec::new() };
    chunks.iter().map(|chunk| hidden_in(all, chunk.sequences().1, &chunk.extent()?)).collect()
}

/// Writes all rows of a generation.
fn make_parts(core: &Core, generation: &Generation) -> Result<Vec<PartInfo>, Abort> {
    let mut added = Vec::new();
    let parts_max = core.options.flush_parts_per_table_max;
    for rows in generation.tables.iter().filter(|rows| !rows.narrow) {
        for range in partitions(&rows.chunks, parts_max) {
            let partition = sort_partition(&rows.chunks, &rows.hidden, range);
            if !partition.is_empty() {
                let plan = PartPlan {
                    id: core.next_part(),
                    partition: range,
                    sequence: partition.sequence,
                    applied: generation.sequence,
                };
                added.extend(retry(core, || flush_wide(core, plan, rows, &partition))?);
            }
        }
    }
    let narrow: Vec<&TableRows> = generation.tables.iter().filter(|rows| rows.narrow).collect();
    let chunks: Vec<Arc<Chunk>> = narrow.iter().flat_map(|rows| &rows.chunks).cloned().collect();
    for range in partitions(&chunks, parts_max) {
        let sorted = narrow.iter().map(|rows| (*rows, sort_partition(&rows.chunks, &rows.hidden, range)));
        let sorted: Vec<_> = sorted.filter(|(_, partition)| !partition.is_empty()).collect();
        let sequences = sorted.iter().map(|(_, partition)| partition.sequence);
        if let Some(sequence) = sequences.reduce(|all, one| (all.0.min(one.0), all.1.max(one.1))) {
            let applied = generation.sequence;
            let plan = PartPlan { id: core.next_part(), partition: range, sequence, applied };
            added.extend(retry(core, || flush_narrow(core, plan, &sorted))?);
        }
    }
    Ok(added)
}

/// Repeats a step that fails for lack of space, descriptors or memory, until it succeeds.
fn retry<T>(core: &Core, mut step: impl FnMut() -> Result<T, Abort>) -> Result<T, Abort> {
    loop {
        match step() {
            Err(Abort::Failed(error)) if error.is_transient() => {
                core.set_stalled(STALLED_FLUSH, Some(&error));
                let mut state = core.state.lock();
                if !state.is_open() {
                    return Err(Abort::Stopped);
                }
                core.flush_work.wait_for(&mut state, Duration::from_micros(core.options.stalled_retry_us));
            }
            done => {
                core.set_stalled(STALLED_FLUSH, None);
                return done;
            }
        }
    }
}

/// Writes a part with the rows of one table and one range of days.
fn flush_wide(
    core: &Core,
    plan: PartPlan,
    rows: &TableRows,
    partition: &Partition,
) -> Result<Option<PartInfo>, Abort> {
    let stats = ColumnStats::of(&rows.chunks, &partition.rows);
    let schema = {
        let state = core.state.lock();
        PartSchema::with_stats(rows.table, &state.catalog.tables[rows.table as usize], &stats)
    };
    make_part(core, plan, &schema, |writer| push_rows(writer, rows, &partition.rows))
}

/// Writes a part with the rows of many tables and one range of days.
fn flush_narrow(
    core: &Core,
    plan: PartPlan,
    tables: &[(&TableRows, Partition)],
) -> Result<Option<PartInfo>, Abort> {
    make_part(core, plan, &PartSchema::narrow(), |writer| {
        tables.iter().try_for_each(|(rows, partition)| {
            writer.table(rows.table);
            push_rows(writer, rows, &partition.rows)
        })
    })
}

/// Writes the sorted rows of one table, without hidden values.
fn push_rows(writer: &mut PartWriter<'_>, of: &TableRows, rows: &Sorted) -> Result<(), Abort> {
    match rows {
        Sorted::Numbers(key, rows) => {
            for row in rows {
                writer.row(row.series, row.ts)?;
                writer.field(*key, ValueRef::F64(row.value));
            }
        }
        Sorted::ChunkRows(rows) => {
            for row in rows {
                writer.row(row.series, row.ts)?;
                let hidden = of.hidden.get(row.chunk()).unwrap_or(&None);
                for (field, value) in of.chunks[row.chunk()].fields(row.row()) {
                    if !is_value_hidden(hidden, row.series, row.ts, field) {
                        writer.field(field, value);
                    }
                }
            }
        }
    }
    Ok(())
}

/// Waits until the log has all rows of the generation (manifest.rs, invariant 1).
fn wait_until_durable(core: &Core, sequence: Sequence) -> Result<(), Abort> {
    let mut state = core.state.lock();
    while core.progress().durable < sequence {
        if state.sealed.is_some() || state.stop == Stop::Now || state.committer.ended {
            return Err(Abort::Stopped);
        }
        state.flusher.waiting = true;
        core.flush_work.wait(&mut state);
    }
    state.flusher.waiting = false;
    Ok(())
}

/// Makes the edit durable, and shows readers the parts instead of the chunks.
fn commit(
    core: &Core,
    generation: &Generation,
    added: &[PartInfo],
    series_bytes: u64,
) -> Result<(), StoreError> {
    let segment = core.segments.newest().unwrap_or_else(|| core.manifest.lock().state.covered.segment);
    let covered = Covered { frame: generation.frame, sequence: generation.sequence, segment };
    let change =
        Change { covered: Some((covered, series_bytes)), added: added.to_vec(), ..Change::default() };
    core.change(&change, |state| {
        for memory in &mut state.tables {
            memory.flushing.clear();
        }
        state.memory.flushing = 0;
        state.flusher.completed = generation.requested;
        core.flush_work.notify_all();
    })?;
    Ok(())
}

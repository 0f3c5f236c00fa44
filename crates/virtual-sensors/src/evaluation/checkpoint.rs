//! Checkpoints: how far sensors have evaluated, in few commits.
//!
//! Invariants:
//! 1. The record of a sensor enters a batch only after the rows of its output are durable (invariant 1 of `record`).
//! 2. A sensor counts as stored only after the commit of the batch that has its record. Before it evaluates the next row, its record
//!    is committed or the thread stops.

use hub::ThreadEnd;
use kv::WriteBatch;

use super::durable;
use super::record::SENSORS;
use super::running::Running;
use crate::host::Host;
use crate::limits::CHECKPOINT_BATCH_BYTES;

/// Stores how far sensors have evaluated, those that have evaluated something since their last checkpoint.
pub(super) fn checkpoint<'r>(
    host: &Host,
    running: impl IntoIterator<Item = &'r mut Running>,
) -> Result<(), ThreadEnd> {
    let mut changed: Vec<_> = running.into_iter().collect();
    // All appends are on their way before the thread waits for the first one.
    for running in &mut changed {
        running.output.flush(host, &mut running.destination)?;
    }
    let put = |running: &mut Running, batch: &mut WriteBatch| -> Result<(), ThreadEnd> {
        running.output.wait_until_durable(host)?;
        host.sensors.followers.put_changed(running.name(), batch);
        batch.put(SENSORS, running.name().as_bytes().to_vec(), running.record().encode());
        Ok(())
    };
    changed.retain(|running| running.is_changed);
    let stored = |running: &mut Running| running.is_changed = false;
    commit_all(changed, CHECKPOINT_BATCH_BYTES, put, |batch| durable::commit(host, batch), stored)
}

/// Puts items into batches, and commits a batch when it has a number of bytes. An item is `stored` after the commit of its batch. What
/// comes before an item that cannot be put is committed.
fn commit_all<T, E>(
    items: Vec<&mut T>,
    batch_bytes: usize,
    put: impl Fn(&mut T, &mut WriteBatch) -> Result<(), E>,
    mut commit: impl FnMut(&WriteBatch) -> Result<(), E>,
    stored: impl Fn(&mut T),
) -> Result<(), E> {
    let mut batch = WriteBatch::new();
    let mut waiting = Vec::new();
    let mut done = Ok(());
    for item in items {
        done = put(&mut *item, &mut batch);
        if done.is_err() {
            break;
        }
        waiting.push(item);
        if batch.bytes() >= batch_bytes {
            commit(&batch)?;
            batch.clear();
            waiting.drain(..).for_each(&stored);
        }
    }
    if !batch.is_empty() {
        commit(&batch)?;
    }
    waiting.into_iter().for_each(stored);
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A key, and whether it is to be stored.
    type Item = (u32, bool);

    fn items() -> Vec<Item> {
        (0..10_000).map(|key| (key, true)).collect()
    }

    fn run(items: &mut [Item], batch_bytes: usize, fails_at: Option<usize>) -> (Vec<usize>, Result<(), ()>) {
        let mut commits = Vec::new();
        let put = |item: &mut Item, batch: &mut WriteBatch| -> Result<(), ()> {
            batch.put(SENSORS, item.0.to_be_bytes().to_vec(), vec![0_u8; 100]);
            Ok(())
        };
        let commit = |batch: &WriteBatch| {
            if fails_at == Some(commits.len()) {
                return Err(());
            }
            commits.push(batch.operations().len());
            Ok(())
        };
        let changed: Vec<_> = items.iter_mut().filter(|item| item.1).collect();
        let done = commit_all(changed, batch_bytes, put, commit, |item: &mut Item| item.1 = false);
        (commits, done)
    }

    #[test]
    fn many_sensors_are_one_commit_and_unchanged_ones_are_none() {
        let mut items = items();
        items[0].1 = false;
        assert_eq!(run(&mut items, CHECKPOINT_BATCH_BYTES, None), (vec![9_999], Ok(())));
        assert!(items.iter().all(|item| !item.1));
        assert_eq!(run(&mut items, CHECKPOINT_BATCH_BYTES, None), (vec![], Ok(())));
    }

    #[test]
    fn a_batch_is_bounded() {
        let (commits, done) = run(&mut items(), 100_000, None);
        assert_eq!(done, Ok(()));
        assert!(commits.len() > 1 && commits.iter().all(|count| *count <= 1_000), "{commits:?}");
        assert_eq!(commits.iter().sum::<usize>(), 10_000);
    }

    #[test]
    fn a_failed_commit_stores_nothing_of_its_batch() {
        let mut all = items();
        assert_eq!(run(&mut all, CHECKPOINT_BATCH_BYTES, Some(0)), (vec![], Err(())));
        assert!(all.iter().all(|item| item.1));
        let (commits, done) = run(&mut all, 100_000, Some(1));
        assert_eq!((commits.len(), done), (1, Err(())));
        assert_eq!(all.iter().filter(|item| !item.1).count(), commits[0]);
    }
}

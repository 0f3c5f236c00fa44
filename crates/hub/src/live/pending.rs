//! Updates of watched series that are not durable yet.

use std::collections::VecDeque;
use std::sync::Arc;

use store::{ByClass, Durability, Progress, Ticket};

use super::update::{PENDING_REDUCE_BYTES, PENDING_UPDATES_MAX, Update, coalesce};

/// One queue for each durability class, in the order of the sequences.
#[derive(Debug, Default)]
pub(super) struct Pending {
    queues: ByClass<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    entries: VecDeque<Entry>,
    updates: usize,
    bytes: usize,
    /// Above this many updates or bytes the queue is reduced; see [`Queue::reduce`].
    reduce_above: (usize, usize),
}

#[derive(Debug)]
struct Entry {
    ticket: Ticket,
    updates: Vec<Arc<Update>>,
}

impl Pending {
    /// Number of updates in all queues.
    pub(super) fn len(&self) -> usize {
        self.queues.iter().map(|queue| queue.updates).sum()
    }

    /// Adds the updates of a batch. Returns how many older updates were dropped.
    pub(super) fn push(
        &mut self,
        ticket: Ticket,
        durability: Durability,
        updates: Vec<Arc<Update>>,
    ) -> usize {
        let queue = &mut self.queues[durability];
        queue.updates += updates.len();
        queue.bytes += weight(&updates);
        // Two threads may queue in another order than they appended, so the place is near the end.
        let after = queue.entries.iter().rev().take_while(|entry| entry.ticket.last > ticket.last).count();
        let index = queue.entries.len() - after;
        queue.entries.insert(index, Entry { ticket, updates });
        let (count, bytes) = queue.reduce_above;
        let is_over =
            queue.updates > count.max(PENDING_UPDATES_MAX) || queue.bytes > bytes.max(PENDING_REDUCE_BYTES);
        if is_over { queue.reduce() } else { 0 }
    }

    /// Takes the updates that `progress` has reached. Drops those of a write that the store lost, and all others if the store is
    /// sealed: their senders get an error.
    pub(super) fn take_ready(
        &mut self,
        progress: Progress,
        is_lost: &dyn Fn(Ticket) -> bool,
    ) -> Vec<Arc<Update>> {
        let mut ready = Vec::new();
        for durability in Durability::ALL {
            let queue = &mut self.queues[durability];
            let reached = progress.reached(durability);
            while let Some(entry) = queue.entries.pop_front_if(|entry| entry.ticket.last <= reached) {
                queue.updates -= entry.updates.len();
                queue.bytes -= weight(&entry.updates);
                if !is_lost(entry.ticket) {
                    ready.extend(entry.updates);
                }
            }
            if progress.sealed {
                *queue = Queue::default();
            }
        }
        ready
    }
}

impl Queue {
    /// Keeps the newest value of each key under the tickets of the whole queue: it becomes visible later than necessary, never
    /// earlier, and not at all if the store loses one of these writes. The queue may then double before the next reduction, so the cost of a value does not depend on the
    /// number of keys.
    fn reduce(&mut self) -> usize {
        let tickets = self.entries.iter().map(|entry| entry.ticket);
        let Some(ticket) = tickets.reduce(Ticket::up_to) else { return 0 };
        let mut updates: Vec<Arc<Update>> = self.entries.drain(..).flat_map(|entry| entry.updates).collect();
        let lost = coalesce(&mut updates);
        self.updates = updates.len();
        self.bytes = weight(&updates);
        self.reduce_above = (2 * self.updates, 2 * self.bytes);
        self.entries.push_back(Entry { ticket, updates });
        lost
    }
}

fn weight(updates: &[Arc<Update>]) -> usize {
    updates.iter().map(|update| update.weight()).sum()
}

//! Rows of a tap that are not durable yet, and marks of series without room.

use std::collections::{HashMap, VecDeque};

use model::SeriesId;
use store::{ByClass, Durability, Progress, Sequence, Ticket};

use super::rows::{Rows, TapRow};

/// One queue for each durability class, in the order of the sequences.
#[derive(Debug)]
pub(super) struct Pending {
    queues: ByClass<VecDeque<(Ticket, Rows)>>,
    /// Series whose rows found no room, with the sequences that make the rows durable.
    lost: HashMap<SeriesId, ByClass<Option<Sequence>>>,
    bytes: usize,
    bytes_max: usize,
}

/// What a reader of a tap takes at once.
#[derive(Debug, Default)]
pub struct TakenRows {
    rows: Vec<Rows>,
    /// Series to read again from the store, after the rows.
    pub lost: Vec<SeriesId>,
}

impl TakenRows {
    /// The rows, in the order in which they were appended.
    pub fn rows(&self) -> impl Iterator<Item = TapRow<'_>> {
        self.rows.iter().flat_map(Rows::iter)
    }
}

impl Pending {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { queues: Default::default(), lost: HashMap::new(), bytes: 0, bytes_max }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lost.is_empty() && self.queues.iter().all(VecDeque::is_empty)
    }

    /// Whether rows or a mark of a series wait.
    pub(super) fn has(&self, series: SeriesId) -> bool {
        let mut rows = self.queues.iter().flatten().flat_map(|(_, rows)| rows.series());
        self.lost.contains_key(&series) || rows.any(|other| other == series)
    }

    /// Adds the rows of a batch, or marks their series if there is no room.
    pub(super) fn push(&mut self, ticket: Ticket, durability: Durability, mut rows: Rows) {
        let sequence = ticket.last;
        let weight = rows.weight();
        let has_room = self.bytes + weight <= self.bytes_max;
        if !has_room || !self.lost.is_empty() {
            for series in rows.series() {
                if has_room && !self.lost.contains_key(&series) {
                    continue;
                }
                // A marked series stays marked until it is read again, or rows would be taken out of their order.
                let marks = self.lost.entry(series).or_default();
                let mark = &mut marks[durability];
                *mark = Some(mark.map_or(sequence, |before| before.max(sequence)));
            }
            if !has_room {
                return;
            }
            rows.leave_out(|series| self.lost.contains_key(&series));
            if rows.is_empty() {
                return;
            }
        }
        self.bytes += weight;
        rows.sequence = sequence;
        let queue = &mut self.queues[durability];
        // Two threads may queue in another order than they appended, so the place is near the end.
        let after = queue.iter().rev().take_while(|(other, _)| other.last > sequence).count();
        queue.insert(queue.len() - after, (ticket, rows));
    }

    /// Takes what `progress` has reached. Drops all else if the store is sealed. If the store lost a write, or a part of it, the reader
    /// gets its series instead, and reads what the store kept.
    pub(super) fn take_ready(&mut self, progress: Progress, is_lost: &dyn Fn(Ticket) -> bool) -> TakenRows {
        let mut taken = TakenRows::default();
        for durability in Durability::ALL {
            let queue = &mut self.queues[durability];
            let reached = progress.reached(durability);
            while let Some((ticket, rows)) = queue.pop_front_if(|(ticket, _)| ticket.last <= reached) {
                self.bytes -= rows.weight();
                if is_lost(ticket) {
                    taken.lost.extend(rows.series());
                } else {
                    taken.rows.push(rows);
                }
            }
        }
        if !taken.lost.is_empty() {
            // Later rows of such a series would be taken before what the reader finds in the store.
            taken.rows.iter_mut().for_each(|rows| rows.leave_out(|series| taken.lost.contains(&series)));
        }
        let is_reached = |marks: &ByClass<Option<Sequence>>| {
            let mut classes = Durability::ALL.into_iter().zip(marks);
            classes.all(|(class, mark)| mark.is_none_or(|sequence| sequence <= progress.reached(class)))
        };
        taken.lost.extend(self.lost.extract_if(|_, marks| is_reached(marks)).map(|(series, _)| series));
        taken.lost.sort_unstable();
        taken.lost.dedup();
        if progress.sealed {
            *self = Self::new(self.bytes_max);
        }
        taken
    }
}

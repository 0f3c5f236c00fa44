//! What gets lost and what comes late, as TSBS has it: reports are sent in batches of ten; batches and single reports are missing, or
//! come in a later batch, and some lack a field or a tag.

use std::collections::VecDeque;

use load::dataset::Random;

use super::trucks::{Entry, Table, Tags, Trucks};

const BATCH: usize = 10;
const BATCH_MISSING: f64 = 0.01;
const BATCH_LATE: f64 = 0.05;
/// The chance that a batch, or a report, which is late is sent now.
const SENT_NOW: f64 = 0.5;
const ENTRY_MISSING: f64 = 0.1;
const ENTRY_LATE: f64 = 0.3;
const NO_FIELD: f64 = 0.1;
const NO_TAG: f64 = 0.01;
/// Tags of a truck: five texts and three numbers.
pub(super) const TAGS: usize = 8;
/// Separates these random numbers from those of the trucks.
const FAULTS: u64 = 2;

/// The reports in the order in which they are sent.
#[derive(Debug)]
pub(super) struct Faulty {
    trucks: Trucks,
    random: Random,
    batch: VecDeque<Entry>,
    late_batches: VecDeque<VecDeque<Entry>>,
    late: VecDeque<Entry>,
}

impl Faulty {
    /// The reports of trucks, with the faults of a seed.
    pub(super) fn new(trucks: Trucks, seed: u64) -> Self {
        Self {
            trucks,
            random: Random::keyed(seed, FAULTS, 0),
            batch: VecDeque::new(),
            late_batches: VecDeque::new(),
            late: VecDeque::new(),
        }
    }

    /// The tags of a truck.
    pub(super) fn tags(&self, truck: usize) -> &Tags {
        self.trucks.tags(truck)
    }

    /// The next batch; an empty one if it is missing or late; `None` at the end.
    fn next_batch(&mut self) -> Option<VecDeque<Entry>> {
        if self.trucks.is_over() {
            let rest = self.late.len().min(BATCH);
            let late = self.late_batches.pop_front().unwrap_or_else(|| self.late.drain(..rest).collect());
            return Some(late).filter(|late| !late.is_empty());
        }
        if self.happens(BATCH_MISSING) {
            self.trucks.by_ref().take(BATCH).for_each(drop);
            return Some(VecDeque::new());
        }
        let is_late = self.happens(BATCH_LATE);
        if !self.late_batches.is_empty() && self.happens(SENT_NOW) {
            return self.late_batches.pop_front();
        }
        let batch = self.entries();
        if !is_late {
            return Some(batch);
        }
        if !batch.is_empty() {
            self.late_batches.push_back(batch);
        }
        Some(VecDeque::new())
    }

    fn entries(&mut self) -> VecDeque<Entry> {
        let mut entries = VecDeque::with_capacity(BATCH);
        while entries.len() < BATCH {
            let is_old = !self.late.is_empty() && self.happens(SENT_NOW);
            let next = if is_old { self.late.pop_front() } else { self.trucks.next() };
            let Some(mut entry) = next else { break };
            if self.happens(ENTRY_MISSING) {
                continue;
            }
            if self.happens(ENTRY_LATE) {
                self.late.push_back(entry);
                continue;
            }
            entry.no_field = self.one_of(NO_FIELD, Table::fields(entry.table).len());
            entry.no_tag = self.one_of(NO_TAG, TAGS);
            entries.push_back(entry);
        }
        entries
    }

    fn happens(&mut self, chance: f64) -> bool {
        self.random.unit() < chance
    }

    fn one_of(&mut self, chance: f64, count: usize) -> Option<usize> {
        self.happens(chance).then(|| self.random.below(count as u64) as usize)
    }
}

impl Iterator for Faulty {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        while self.batch.is_empty() {
            self.batch = self.next_batch()?;
        }
        self.batch.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn the_shares_are_those_of_tsbs_and_nothing_is_sent_twice() {
        let (trucks, steps) = (50, 400);
        let sent: Vec<Entry> = Faulty::new(Trucks::new(trucks, steps, 3), 3).collect();
        let keys: HashSet<_> = sent.iter().map(|entry| (entry.table, entry.truck, entry.step)).collect();
        assert_eq!(keys.len(), sent.len());
        let all = (trucks as u64 * steps * 2) as f64;
        let share = |count: usize| count as f64 / sent.len() as f64;
        // A report that was late may be lost, or be late again.
        let stored = sent.len() as f64 / all;
        assert!((0.80..0.90).contains(&stored), "{stored}");
        let no_field = share(sent.iter().filter(|entry| entry.no_field.is_some()).count());
        let no_tag = share(sent.iter().filter(|entry| entry.no_tag.is_some()).count());
        assert!((0.09..0.11).contains(&no_field) && (0.008..0.012).contains(&no_tag), "{no_field} {no_tag}");
        let place = |entry: &Entry| (entry.step, entry.table, entry.truck);
        let late = share(sent.windows(2).filter(|pair| place(&pair[1]) < place(&pair[0])).count());
        assert!((0.1..0.4).contains(&late), "{late}");
    }
}

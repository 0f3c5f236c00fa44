//! Simulates flushes and merges without files: tests that the rules keep their bounds for every load, and what they cost.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;

use super::group::groups;
use super::*;
use crate::part::{Part, PartInfo, PartLayout};
use crate::version::Version;

const DAY: i64 = 86_400_000_000;

/// Small sizes, so that a few dozen flushes meet every bound.
pub(super) const LIMITS: Limits = Limits {
    fan_in: 4,
    inputs_max: 16,
    class_bytes: 50,
    part_bytes_max: 2_000,
    part_rows_max: 1_000,
    quiet_rows: 50,
    quiet_ratio: 4,
    overlap_max: 24,
    merges_max: 8,
    plan_bytes: 400,
};

pub(super) fn part(id: u64, table: u32, partition: (i64, i64), bytes: u64, sequence: u64) -> Part {
    sized(id, table, partition, (1, bytes), (sequence, sequence))
}

fn sized(id: u64, table: u32, partition: (i64, i64), size: (u64, u64), sequence: (u64, u64)) -> Part {
    let info = PartInfo {
        id,
        layout: PartLayout::Wide,
        tables: (table, table),
        partition,
        rows: size.0,
        bytes: size.1,
        series: (0, 0),
        ts: partition,
        sequence,
        applied: 0,
        points: 0,
        raw_bytes: 0,
        shares: Vec::new(),
        block_crcs: Vec::new(),
    };
    Part::new(Arc::new(info), std::path::PathBuf::new())
}

/// A store without rows. Of each part it knows the newest write in each slot of time that the part has.
struct World {
    limits: Limits,
    version: Version,
    writes: BTreeMap<u64, BTreeMap<i64, u64>>,
    next_part: u64,
    sequence: u64,
    flushed: u64,
    rewritten: u64,
}

impl World {
    fn new(limits: Limits) -> Self {
        let (version, writes) = Default::default();
        Self { limits, version, writes, next_part: 1, sequence: 0, flushed: 0, rewritten: 0 }
    }

    /// Adds the parts of one flush: table, partition in days, rows and bytes of each, all rows interleaved.
    fn flush(&mut self, parts: &[(u32, (i64, i64), u64, u64)]) {
        let mut added = Vec::new();
        let first = self.sequence + 1;
        for (number, (table, (start, end), rows, bytes)) in parts.iter().enumerate() {
            let last = self.sequence + rows;
            // Parts of one flush have sequences that mix; their largest ones differ.
            let sequence = (first + number as u64, last);
            let size = (*rows, *bytes);
            added.push(sized(self.next_part, *table, (start * DAY, end * DAY), size, sequence));
            self.writes.insert(self.next_part, (*start..*end).map(|slot| (slot, last)).collect());
            self.next_part += 1;
            self.sequence = last;
            self.flushed += bytes;
        }
        self.version = self.version.with(added, &[]);
    }

    /// Merges until there is nothing to merge.
    fn settle(&mut self, check: bool) {
        while self.step(check) {}
    }

    /// Executes one plan; `false` when there is nothing to merge.
    fn step(&mut self, check: bool) -> bool {
        let plan = choose(&self.version, &self.limits);
        if plan.merges.is_empty() {
            return false;
        }
        let before = self.version.size().0;
        let mut outputs = Vec::new();
        for merge in &plan.merges {
            if check {
                self.check_merge(merge);
            }
            outputs.push(self.merge(merge));
        }
        let inputs: Vec<_> = plan.merges.into_iter().flat_map(|merge| merge.inputs).collect();
        self.version = self.version.with(outputs, &inputs);
        assert!(self.version.size().0 < before, "a plan that leaves as many parts comes again");
        true
    }

    /// Merges until no flush needs to wait. Returns whether one waited.
    fn merge_until_no_pressure(&mut self) -> bool {
        let mut waited = false;
        while let Some(found) = overlap_pressure(&self.version, &self.limits) {
            assert!(self.step(true), "a flush waits for nothing: {found:?}");
            waited = true;
        }
        waited
    }

    fn merge(&mut self, merge: &Merge) -> Part {
        let infos = || merge.inputs.iter().map(|part| &part.info);
        let hull = |of: &dyn Fn(&PartInfo) -> (i64, i64)| {
            infos()
                .map(|info| of(info))
                .fold((i64::MAX, i64::MIN), |(min, max), at| (min.min(at.0), max.max(at.1)))
        };
        let sequence = infos()
            .map(|info| info.sequence)
            .fold((u64::MAX, 0), |(min, max), at| (min.min(at.0), max.max(at.1)));
        let size = (infos().map(|info| info.rows).sum(), merge.bytes());
        let output = sized(
            self.next_part,
            infos().next().unwrap().tables.0,
            hull(&|info| info.partition),
            size,
            sequence,
        );
        let mut writes = BTreeMap::new();
        for part in &merge.inputs {
            writes.extend(self.writes.remove(&part.info.id).unwrap()); // newer ones replace older ones
        }
        self.writes.insert(self.next_part, writes);
        self.next_part += 1;
        self.rewritten += merge.bytes();
        output
    }

    fn check_merge(&self, merge: &Merge) {
        assert!(merge.inputs.len() >= 2 && merge.inputs.len() <= self.limits.inputs_max);
        assert!(merge.bytes() <= self.limits.part_bytes_max);
        assert!(merge.inputs.iter().map(|part| part.info.rows).sum::<u64>() <= self.limits.part_rows_max);
        assert!(merge.inputs.iter().all(|part| !self.limits.is_full(part) && !part.is_damaged()));
    }

    /// At each time the part with the newest sequences has the newest write, and groups are not larger than they may.
    fn check(&self) {
        for parts in self.version.families() {
            let mut newest: BTreeMap<i64, (u64, u64)> = BTreeMap::new();
            for part in parts {
                for (slot, write) in &self.writes[&part.info.id] {
                    let known = newest.entry(*slot).or_default();
                    assert!(
                        known.0 < part.info.sequence.1 && known.1 < *write,
                        "{slot}: {known:?} is older than {write} of {:?}",
                        part.info
                    );
                    *known = (part.info.sequence.1, *write);
                }
            }
            for group in groups(parts) {
                let full = group.iter().filter(|part| self.limits.is_full(part)).count();
                let damaged = group.iter().filter(|part| part.is_damaged()).count();
                // Each damaged part may hold up one more run.
                let bound = self.limits.resting_max(full) * (1 + damaged) + damaged;
                assert!(group.len() <= bound, "{} parts overlap, {full} of them full", group.len());
            }
        }
    }

    fn amplification(&self) -> f64 {
        (self.flushed + self.rewritten) as f64 / self.flushed as f64
    }

    /// Largest number of parts of a group.
    fn overlap(&self) -> usize {
        self.version.families().flat_map(groups).map(|group| group.len()).max().unwrap_or(0)
    }
}

#[derive(Debug, Clone)]
enum Step {
    /// Table, then first day, days, rows and bytes of each part.
    Flush(u32, Vec<(i64, i64, u64, u64)>),
    /// A part is found to be damaged.
    Damage(prop::sample::Index),
}

fn step() -> impl Strategy<Value = Step> {
    let rows_and_bytes = || (1..60_u64, prop_oneof![4 => 1..60_u64, 1 => 1..1_500_u64]);
    // Mostly today, sometimes an older day, rarely a part of several days.
    let day = prop_oneof![5 => Just(9_i64), 2 => 0..9_i64];
    let days = prop_oneof![12 => Just(1_i64), 1 => 2..5_i64];
    let one = (day, days, rows_and_bytes()).prop_map(|(day, days, (rows, bytes))| (day, days, rows, bytes));
    prop_oneof![
        40 => (0..3_u32, prop::collection::vec(one, 1..4)).prop_map(|(table, parts)| Step::Flush(table, parts)),
        1 => any::<prop::sample::Index>().prop_map(Step::Damage),
    ]
}

fn run(steps: &[Step], between: impl Fn(&mut World)) -> World {
    let mut world = World::new(LIMITS);
    for step in steps {
        match step {
            Step::Flush(table, parts) => {
                // A flush's parts have disjoint ranges of time.
                let mut end = i64::MIN;
                let mut sorted = parts.clone();
                sorted.sort_unstable();
                sorted.retain(|(day, days, ..)| {
                    let fits = *day >= end;
                    end = end.max(day + days);
                    fits
                });
                let parts: Vec<_> = sorted
                    .into_iter()
                    .map(|(day, days, rows, bytes)| (*table, (day, day + days), rows, bytes))
                    .collect();
                world.flush(&parts);
            }
            Step::Damage(index) => {
                let parts: Vec<_> = world.version.families().flatten().collect();
                if !parts.is_empty() {
                    index.get(&parts).set_damaged();
                }
            }
        }
        between(&mut world);
    }
    world
}

/// Flushes until a flush must wait, and then as soon as it need not wait.
fn fall_behind(world: &mut World) {
    for group in world.version.families().flat_map(groups) {
        let count =
            |which: fn(&Limits, &Part) -> bool| group.iter().filter(|part| which(&LIMITS, part)).count();
        let (full, damaged) = (count(Limits::is_full), count(|_, part| part.is_damaged()));
        let resting = LIMITS.resting_max(full) * (1 + damaged);
        let waiting = crate::version::overlap(group.iter().copied().filter(|part| !LIMITS.stays(part)));
        assert!(
            waiting <= LIMITS.overlap_max.max(resting + 1),
            "{waiting} parts, {full} full, {damaged} damaged"
        );
    }
    world.merge_until_no_pressure();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_flushed_order_and_bounds_are_kept(steps in prop::collection::vec(step(), 1..150)) {
        let world = run(&steps, |world| {
            world.settle(true);
            world.check();
        });
        // Each class rewrites a row at most `fan_in` times, quiet groups each class once more.
        let bound = (LIMITS.classes() * 2 * LIMITS.fan_in) as u64 * world.flushed;
        let written = world.flushed + world.rewritten;
        prop_assert!(written <= bound, "{written} bytes written for {} flushed", world.flushed);
    }

    #[test]
    fn however_slow_merges_are_parts_stay_bounded_and_every_flush_comes(
        steps in prop::collection::vec(step(), 1..300)
    ) {
        let mut world = run(&steps, fall_behind);
        world.settle(true);
        world.check();
    }
}

/// A load under which merges fall behind: parts of one day that are merged only when a flush waits.
#[test]
fn a_flush_that_waits_is_rare_because_each_merge_makes_room_for_several() {
    let mut world = World::new(Limits::default());
    let (mut waits, mut overlap) = (0, 0);
    for _ in 0..1_000 {
        world.flush(&[(0, (0, 1), 1_000_000, 6_000_000)]);
        overlap = overlap.max(world.overlap() - full(&world));
        waits += usize::from(world.merge_until_no_pressure());
    }
    eprintln!("behind: {waits} of 1000 flushes wait, {overlap} parts that are not full at most");
    assert_eq!(overlap, Limits::default().overlap_max);
    assert!(waits <= 1_000 / 7, "{waits}");
}

/// One table and one day, flush after flush of a million rows: the load of a benchmark.
#[test]
fn steady_load_is_rewritten_twice_at_most() {
    let mut world = World::new(Limits::default());
    let mut overlap = 0;
    for _ in 0..1_000 {
        world.flush(&[(0, (0, 1), 1_000_000, 6_000_000)]);
        world.settle(false);
        overlap = overlap.max(world.overlap() - full(&world));
    }
    world.check();
    eprintln!(
        "steady: amplification {:.2}, {overlap} parts that are not full at most",
        world.amplification()
    );
    assert!(world.amplification() <= 3.2, "{}", world.amplification());
}

fn full(world: &World) -> usize {
    world.version.families().flatten().filter(|part| world.limits.is_full(part)).count()
}

/// One day after the other; one row in fifty is late by up to thirty days.
#[test]
fn late_rows_cost_little_and_old_days_come_to_rest() {
    let mut world = World::new(Limits::default());
    let mut overlap = 0;
    for flush in 0..2_000_i64 {
        let today = 100 + flush / 50;
        let late = today - 1 - flush % 30;
        world.flush(&[(0, (late, late + 1), 20_000, 150_000), (0, (today, today + 1), 980_000, 6_000_000)]);
        world.settle(false);
        overlap = overlap.max(world.overlap());
    }
    world.check();
    let resting =
        world.version.families().flat_map(groups).filter(|group| group[0].info.partition.0 < 115 * DAY);
    let resting = resting.map(|group| group.len()).max().unwrap();
    let amplification = world.amplification();
    eprintln!("late: amplification {amplification:.2}, at most {overlap} parts of a day, {resting} at rest");
    assert!(amplification <= 4.0 && resting <= 8, "{amplification} {resting}");
}

/// Many tables, each with a small part from every flush.
#[test]
fn many_tables_have_a_bounded_number_of_parts() {
    const TABLES: u32 = 1_000;
    let mut world = World::new(Limits::default());
    for _ in 0..10 {
        let parts: Vec<_> = (0..TABLES).map(|table| (table, (0, 1), 50, 5_000)).collect();
        world.flush(&parts);
        world.settle(false);
    }
    let (amplification, parts) = (world.amplification(), world.version.size().0);
    eprintln!("{TABLES} tables: amplification {amplification:.2}, {parts} parts");
    assert!(amplification <= 3.0 && parts <= 7 * u64::from(TABLES), "{amplification} {parts}");
}

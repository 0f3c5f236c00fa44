//! The window of one source: which elements its query sees.
//!
//! Elements that come between two slides wait in `pending` and enter together, so that a stream which another source sets off
//! sees the window as it was when it last moved, as in GSN.

mod refill;

use std::collections::VecDeque;

use super::super::plan::{Extent, Slide, SourcePlan, Window as Kind};
use super::super::sql::aggregates::Order;
use super::super::sql::datum::{Row, row_bytes};
use super::super::sql::expr::Scope;
use super::super::sql::grouping::{GroupBy, Grouping};
use super::super::sql::meter::Meter;
use crate::virtual_sensors::limits::{WINDOW_BYTES_MAX, WINDOW_ELEMENTS_MAX};

/// An element in the window.
#[derive(Debug, Clone)]
struct Entry {
    timed: i64,
    /// The place in the window: by the time, or as the element came.
    order: Order,
    /// Absent if the filter of the source leaves it out; it counts as an element of the window even so.
    row: Option<Row>,
}

impl Entry {
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.row.as_deref().map_or(0, row_bytes)
    }
}

/// The elements of a window.
#[derive(Debug)]
pub(super) struct Window {
    kind: Kind,
    sampling: Option<f64>,
    /// Whether rows are kept as the query of the source makes them.
    maps: bool,
    entries: VecDeque<Entry>,
    pending: VecDeque<Entry>,
    /// How many entries have a row.
    visible: usize,
    number: i64,
    /// Elements until the next slide, if it counts them.
    until_slide: usize,
    /// Elements since the last slide.
    since_slide: usize,
    /// The time of the last slide: that of the clock, or of the newest element.
    slid_at: Option<i64>,
    /// The time of the next slide, if it is a time.
    deadline: Option<i64>,
    newest: i64,
    bytes: usize,
    grouping: Option<Grouping>,
    /// Counts the work of one row.
    meter: Meter,
    /// Elements that left early.
    overflowed: u64,
}

impl Window {
    /// An empty window. `grouped` indicates whether rows join groups when they enter.
    pub(super) fn new(plan: &SourcePlan, grouped: bool) -> Self {
        let until_slide = match (plan.window.size, plan.window.slide) {
            // The first slide comes when the window is full.
            (Extent::Count(size), Slide::Count(_)) => size.max(1),
            (Extent::Millis(_), Slide::Count(slide)) => slide,
            _ => 0,
        };
        Self {
            kind: plan.window,
            sampling: plan.sampling,
            maps: plan.query.is_row_wise(),
            entries: VecDeque::new(),
            pending: VecDeque::new(),
            visible: 0,
            number: 0,
            until_slide,
            since_slide: 0,
            slid_at: None,
            deadline: None,
            newest: i64::MIN,
            bytes: 0,
            grouping: grouped.then(Grouping::new),
            meter: Meter::default(),
            overflowed: 0,
        }
    }

    /// An element comes. Returns whether the window has moved.
    ///
    /// # Errors
    /// The row of the element cannot be computed; it is in the window as one that the filter leaves out.
    pub(super) fn push(
        &mut self,
        plan: &SourcePlan,
        by: Option<&GroupBy>,
        timed: i64,
        row: &Row,
        now: i64,
    ) -> Result<bool, String> {
        if self.is_always_empty() {
            return Ok(false);
        }
        let fault = self.take(plan, timed, row).err();
        self.since_slide += 1;
        if self.deadline.is_none()
            && let Slide::Millis(slide) = self.kind.slide
        {
            let first = if let Extent::Millis(size) = self.kind.size { size } else { slide };
            self.deadline = Some(now.saturating_add(first));
        }
        let moves = match self.kind.slide {
            Slide::Each => true,
            Slide::Millis(_) => false,
            Slide::Count(slide) => {
                self.until_slide -= 1;
                let moves = self.until_slide == 0;
                if moves {
                    self.until_slide = slide;
                }
                moves
            }
        };
        if moves {
            self.slide(by, self.newest);
        }
        self.trim(by);
        fault.map_or(Ok(moves), Err)
    }

    /// When the window next moves by itself.
    pub(super) fn deadline(&self) -> Option<i64> {
        self.deadline
    }

    /// The window moves at its deadline.
    pub(super) fn turn(&mut self, by: Option<&GroupBy>) {
        let (Some(at), Slide::Millis(slide)) = (self.deadline, self.kind.slide) else { return };
        self.slide(by, at);
        self.deadline = Some(at.saturating_add(slide));
    }

    /// Leaves out the slides before a time. Returns how many.
    pub(super) fn skip_to(&mut self, time: i64) -> u64 {
        let (Some(at), Slide::Millis(slide)) = (self.deadline, self.kind.slide) else { return 0 };
        let missed = (time.saturating_sub(at) / slide).max(0);
        self.deadline = Some(at.saturating_add(missed.saturating_mul(slide)));
        missed as u64
    }

    /// The rows, newest first.
    pub(super) fn rows(&self) -> Vec<Row> {
        self.entries.iter().rev().filter_map(|entry| entry.row.clone()).collect()
    }

    /// Whether there is no row.
    pub(super) fn is_empty(&self) -> bool {
        self.visible == 0
    }

    /// The groups that the rows have joined.
    pub(super) fn groups(&mut self, by: &GroupBy) -> Option<&Grouping> {
        let grouping = self.grouping.as_mut()?;
        if grouping.needs_rows() {
            grouping.clear();
            for entry in &self.entries {
                join(grouping, by, entry, &self.meter);
            }
        }
        Some(grouping)
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len() + self.pending.len()
    }

    /// Bytes of the elements and the groups.
    pub(super) fn bytes(&self) -> usize {
        self.bytes + self.grouping.as_ref().map_or(0, Grouping::bytes)
    }

    pub(super) fn overflowed(&self) -> u64 {
        self.overflowed
    }

    /// Lets an element wait.
    fn take(&mut self, plan: &SourcePlan, timed: i64, row: &Row) -> Result<(), String> {
        let (row, fault) = match self.visible_row(plan, timed, row) {
            Ok(row) => (row, None),
            Err(fault) => (None, Some(fault)),
        };
        self.newest = self.newest.max(timed);
        self.number += 1;
        let order = (if self.by_time() { timed } else { 0 }, self.number);
        let entry = Entry { timed, order, row };
        self.bytes += entry.bytes();
        self.wait(entry);
        fault.map_or(Ok(()), Err)
    }

    fn is_always_empty(&self) -> bool {
        matches!(self.kind.size, Extent::Count(0) | Extent::Millis(0)) || self.sampling == Some(0.0)
    }

    fn visible_row(&self, plan: &SourcePlan, timed: i64, row: &Row) -> Result<Option<Row>, String> {
        if self.sampling.is_some_and(|below| timed.rem_euclid(100) as f64 >= below) {
            return Ok(None);
        }
        self.meter.begin();
        if self.maps { plan.query.map(row, &self.meter) } else { Ok(Some(row.clone())) }
    }

    /// Windows over counts have the order in which elements come, unless time moves them; the others that of their times.
    fn by_time(&self) -> bool {
        matches!((self.kind.size, self.kind.slide), (Extent::Millis(_), _) | (_, Slide::Millis(_)))
    }

    fn wait(&mut self, entry: Entry) {
        let at = self.pending.partition_point(|other| other.order <= entry.order);
        self.pending.insert(at, entry);
    }

    /// Takes in what waits up to a time, and lets go what is too old or too much.
    fn slide(&mut self, by: Option<&GroupBy>, at: i64) {
        self.since_slide = 0;
        self.slid_at = Some(at);
        while self.pending.front().is_some_and(|entry| !self.by_time() || entry.timed <= at) {
            if let Some(entry) = self.pending.pop_front() {
                self.enter(by, entry);
            }
        }
        match self.kind.size {
            Extent::Count(size) => {
                while self.entries.len() > size {
                    self.leave(by);
                }
            }
            Extent::Millis(size) => {
                let oldest = at.saturating_sub(size);
                while self.entries.front().is_some_and(|entry| entry.timed < oldest) {
                    self.leave(by);
                }
            }
        }
    }

    fn enter(&mut self, by: Option<&GroupBy>, entry: Entry) {
        if entry.row.is_some() {
            self.visible += 1;
            if let (Some(grouping), Some(by)) = (&mut self.grouping, by) {
                join(grouping, by, &entry, &self.meter);
            }
        }
        // A late element enters before newer ones; most enter last.
        let at = self.entries.partition_point(|other| other.order <= entry.order);
        self.entries.insert(at, entry);
    }

    fn leave(&mut self, by: Option<&GroupBy>) {
        let Some(entry) = self.entries.pop_front() else { return };
        self.bytes -= entry.bytes();
        let Some(row) = &entry.row else { return };
        self.visible -= 1;
        if let (Some(grouping), Some(by)) = (&mut self.grouping, by) {
            self.meter.begin();
            grouping.remove(by, scope(&[row], &self.meter), entry.order);
        }
    }

    /// Lets go what no slide can show any more, and the oldest elements over the limits.
    fn trim(&mut self, by: Option<&GroupBy>) {
        self.drop_pending_that_never_shows();
        while self.len() > WINDOW_ELEMENTS_MAX || self.bytes > WINDOW_BYTES_MAX {
            self.overflowed += 1;
            if self.entries.is_empty() {
                self.drop_pending();
            } else {
                self.leave(by);
            }
        }
    }

    fn drop_pending_that_never_shows(&mut self) {
        match (self.kind.size, self.deadline) {
            // Of those that enter at the next slide, only the newest stay.
            (Extent::Count(size), None) => {
                while self.pending.len() > size {
                    self.drop_pending();
                }
            }
            (Extent::Count(size), Some(deadline)) => {
                while self.pending.get(size).is_some_and(|entry| entry.timed <= deadline) {
                    self.drop_pending();
                }
            }
            (Extent::Millis(size), Some(deadline)) => {
                let oldest = deadline.saturating_sub(size);
                while self.pending.front().is_some_and(|entry| entry.timed < oldest) {
                    self.drop_pending();
                }
            }
            (Extent::Millis(size), None) => {
                let oldest = self.newest.saturating_sub(size);
                while self.pending.front().is_some_and(|entry| entry.timed < oldest) {
                    self.drop_pending();
                }
            }
        }
    }

    fn drop_pending(&mut self) {
        if let Some(entry) = self.pending.pop_front() {
            self.bytes -= entry.bytes();
        }
    }
}

fn join(grouping: &mut Grouping, by: &GroupBy, entry: &Entry, meter: &Meter) {
    if let Some(row) = &entry.row {
        // A row that joins takes as many steps as when it leaves.
        meter.begin();
        grouping.add(by, scope(&[row], meter), entry.order);
    }
}

/// Groups that rows join when they come do not read the clock.
fn scope<'a>(rows: &'a [&'a [super::super::sql::Datum]], meter: &'a Meter) -> Scope<'a> {
    Scope { rows, groups: &[], aggregates: &[], now: 0, meter }
}

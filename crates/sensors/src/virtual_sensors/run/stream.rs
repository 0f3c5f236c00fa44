//! One stream: its windows, and the execution of its query when one of them moves.

use super::super::plan::{SourcePlan, StreamPlan};
use super::super::sql::datum::Row;
use super::super::sql::grouping::GroupBy;
use super::super::sql::meter::Meter;
use super::super::sql::query::Query;
use super::checkpoint::{NeededElements, StreamPoint};
use super::counters::Counters;
use super::window::Window;

/// What the window of a source is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Its rows are those of the source.
    Rows,
    /// Its rows join the groups of the source.
    SourceGroups,
    /// Its rows are those of the source, and join the groups of the stream.
    StreamGroups,
    /// The query of the source is computed over its rows.
    Query,
}

#[derive(Debug)]
pub(super) struct Stream {
    windows: Vec<(Role, Window)>,
    executions_with_rows: u64,
    last_execution: Option<i64>,
}

impl Stream {
    pub(super) fn new(plan: &StreamPlan) -> Self {
        let window = |(at, source): (usize, &SourcePlan)| {
            let role = role(plan, at, source);
            let grouped = matches!(role, Role::SourceGroups | Role::StreamGroups);
            (role, Window::new(source, grouped))
        };
        let windows = plan.sources.iter().enumerate().map(window).collect();
        Self { windows, executions_with_rows: 0, last_execution: None }
    }

    /// An element comes to a source. Returns whether its window has moved.
    pub(super) fn push(
        &mut self,
        plan: &StreamPlan,
        source: usize,
        timed: i64,
        row: &Row,
        now: i64,
    ) -> Result<bool, String> {
        let by = self.groups_of(plan, source);
        self.windows[source].1.push(&plan.sources[source], by, timed, row, now)
    }

    /// What the stream remembers.
    pub(super) fn point(&self) -> StreamPoint {
        StreamPoint {
            executions_with_rows: self.executions_with_rows,
            last_execution: self.last_execution,
            windows: self.windows.iter().map(|(_, window)| window.point()).collect(),
        }
    }

    /// Takes what it remembered.
    pub(super) fn restore(&mut self, point: &StreamPoint) {
        self.executions_with_rows = point.executions_with_rows;
        self.last_execution = point.last_execution;
        for ((_, window), point) in self.windows.iter_mut().zip(&point.windows) {
            window.restore(point);
        }
    }

    /// Which elements the window of a source needs to be as it was.
    pub(super) fn reach(&self, source: usize, is_restored: bool) -> NeededElements {
        self.windows[source].1.reach(is_restored)
    }

    /// An element of a source from before comes back.
    pub(super) fn fill(&mut self, plan: &StreamPlan, source: usize, timed: i64, row: &Row) {
        self.windows[source].1.fill(&plan.sources[source], timed, row);
    }

    /// Ends the filling.
    pub(super) fn settle(&mut self, plan: &StreamPlan, is_restored: bool) {
        for source in 0..self.windows.len() {
            let by = self.groups_of(plan, source);
            self.windows[source].1.settle(by, is_restored);
        }
    }

    /// The source whose window moves next by itself, and when.
    pub(super) fn next_deadline(&self) -> Option<(i64, usize)> {
        let deadlines = self.windows.iter().enumerate();
        deadlines.filter_map(|(at, (_, window))| Some((window.deadline()?, at))).min()
    }

    /// A window moves by itself.
    pub(super) fn turn(&mut self, plan: &StreamPlan, source: usize) {
        let by = self.groups_of(plan, source);
        self.windows[source].1.turn(by);
    }

    pub(super) fn skip_to(&mut self, time: i64) -> u64 {
        self.windows.iter_mut().map(|(_, window)| window.skip_to(time)).sum()
    }

    /// The rows of the stream after the window of a source has moved. There are none if the source has no row, or the stream has
    /// had its count or rate.
    pub(super) fn execute(
        &mut self,
        plan: &StreamPlan,
        moved: usize,
        now: i64,
        meter: &Meter,
        counters: &mut Counters,
    ) -> Result<Vec<Row>, String> {
        // What the query of the source gives is needed again for that of the stream.
        let view = match self.windows[moved].0 {
            Role::Rows | Role::StreamGroups if self.windows[moved].1.is_empty() => return Ok(Vec::new()),
            Role::Rows | Role::StreamGroups => None,
            Role::SourceGroups | Role::Query => match self.view(plan, moved, now, meter)? {
                rows if rows.is_empty() => return Ok(rows),
                rows => Some(rows),
            },
        };
        let spent = plan.count.is_some_and(|count| self.executions_with_rows >= count);
        let soon =
            plan.rate > 0 && self.last_execution.is_some_and(|last| now.saturating_sub(last) < plan.rate);
        if spent || soon {
            counters.executions_refused += 1;
            return Ok(Vec::new());
        }
        self.last_execution = Some(now);
        counters.executions += 1;
        let rows = match joined(plan) {
            Some((source, by)) => match self.windows[source].1.groups(by) {
                Some(groups) => plan.query.execute_grouped(by, groups, now, meter)?,
                None => Vec::new(),
            },
            None => {
                let mut views = Vec::new();
                for source in &plan.query.tables {
                    views.push(match &view {
                        Some(rows) if *source == moved => rows.clone(),
                        _ => self.view(plan, *source, now, meter)?,
                    });
                }
                let views: Vec<&[Row]> = views.iter().map(Vec::as_slice).collect();
                plan.query.execute(&views, now, meter)?
            }
        };
        self.executions_with_rows += u64::from(!rows.is_empty());
        Ok(rows)
    }

    pub(super) fn elements(&self) -> usize {
        self.windows.iter().map(|(_, window)| window.len()).sum()
    }

    pub(super) fn bytes(&self) -> usize {
        self.windows.iter().map(|(_, window)| window.bytes()).sum()
    }

    pub(super) fn overflowed(&self) -> u64 {
        self.windows.iter().map(|(_, window)| window.overflowed()).sum()
    }

    /// The rows that the query of a source gives.
    fn view(
        &mut self,
        plan: &StreamPlan,
        source: usize,
        now: i64,
        meter: &Meter,
    ) -> Result<Vec<Row>, String> {
        let (role, window) = &mut self.windows[source];
        let query: &Query = &plan.sources[source].query;
        match (role, &query.groups) {
            (Role::SourceGroups, Some(by)) => match window.groups(by) {
                Some(groups) => query.execute_grouped(by, groups, now, meter),
                None => Ok(Vec::new()),
            },
            (Role::Query, _) => query.execute(&[&window.rows()], now, meter),
            _ => Ok(window.rows()),
        }
    }

    /// The groups that the rows of a window join.
    fn groups_of<'p>(&self, plan: &'p StreamPlan, source: usize) -> Option<&'p GroupBy> {
        match self.windows[source].0 {
            Role::SourceGroups => plan.sources[source].query.incremental(),
            Role::StreamGroups => plan.query.incremental(),
            Role::Rows | Role::Query => None,
        }
    }
}

fn role(plan: &StreamPlan, at: usize, source: &SourcePlan) -> Role {
    if source.query.is_row_wise() {
        let joins = joined(plan).is_some_and(|(joined, _)| joined == at);
        return if joins { Role::StreamGroups } else { Role::Rows };
    }
    if source.query.incremental().is_some() { Role::SourceGroups } else { Role::Query }
}

/// The source whose rows join the groups of the stream as they come.
fn joined(plan: &StreamPlan) -> Option<(usize, &GroupBy)> {
    let by = plan.query.incremental()?;
    let source = *plan.query.tables.first()?;
    plan.sources[source].query.is_row_wise().then_some((source, by))
}

//! Runs a SELECT statement.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use store::ReadOrder;

use super::aggregate::{Function, Point, State};
use super::answer::{Error, Limits};
use super::ast::{DataType, Expr, Fill};
use super::calls::{Builder, Call, GroupState, Leaf};
use super::cells::{Cells, set};
use super::fill::over_limit;
use super::frame::Frame;
use super::plan::{Input, Plan, type_of};
use super::reduce::{TIME_MAX, TIME_MIN};
use super::scan::{InnerRow, Run, Scan, Wanted, scan_rows, scan_table};
use super::value::{Value, is_math};
use super::wanted_groups::wanted_groups;

/// The name of a measurement and the values of the tags of GROUP BY.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct GroupKey {
    pub name: String,
    pub tags: Vec<String>,
}

/// A row of an answer: its time and the values of the columns.
#[derive(Debug)]
pub(super) struct Row<'a> {
    pub group: &'a GroupKey,
    pub time: i64,
    pub values: Vec<Value>,
}

/// Takes the rows of an answer, group by group.
pub(super) type Rows<'v> = dyn FnMut(Row<'_>) -> ControlFlow<()> + 'v;

/// The data that a statement reads and how it groups, while it runs.
struct Execution<'p, 'a> {
    plan: &'p Plan<'a>,
    limits: &'p Limits,
    /// The tags that rows are grouped by: those of the statement and, in a subquery, those of the statements around it.
    tags: &'p [String],
    start: i64,
    end: i64,
    points: u64,
}

/// Rows of an answer between two questions whether the statement may continue.
const ROWS_PER_CHECK: usize = 1024;

/// Runs a statement.
///
/// # Errors
/// A table cannot be read, a limit is reached, or a function does not take the type of a field.
pub(super) fn run(plan: &Plan<'_>, limits: &Limits, visit: &mut Rows<'_>) -> Result<(), Error> {
    let checked = &plan.checked;
    run_within(plan, limits, &plan.tags, checked.start, checked.end, visit)
}

fn run_within(
    plan: &Plan<'_>,
    limits: &Limits,
    tags: &[String],
    start: i64,
    end: i64,
    visit: &mut Rows<'_>,
) -> Result<(), Error> {
    let mut execution = Execution { plan, limits, tags, start, end, points: 0 };
    let mut outputs: Vec<Expr> = plan.outputs().into_iter().map(|field| field.expr).collect();
    let mut calls = Vec::new();
    let mut refs: Vec<Wanted> = Vec::new();
    for output in &mut outputs {
        symbols(output, &mut calls, &mut refs);
    }
    refs.sort();
    match calls.is_empty() {
        true => execution.raw(&outputs, refs, visit),
        false => execution.aggregate(&outputs, &calls, refs, visit),
    }
}

/// Names the calls of an expression `call` and their number, and collects the references outside of them.
fn symbols(expr: &mut Expr, calls: &mut Vec<Expr>, refs: &mut Vec<Wanted>) {
    match expr {
        Expr::Call(name, args) if is_math(name) => args.iter_mut().for_each(|arg| symbols(arg, calls, refs)),
        Expr::Call(..) => {
            let index = calls.iter().position(|call| call == expr).unwrap_or_else(|| {
                calls.push(expr.clone());
                calls.len() - 1
            });
            // No field has this type, so that no name of a field is mistaken for a call.
            *expr = Expr::Ref(index.to_string(), DataType::Time);
        }
        Expr::Ref(name, kind) => {
            let wanted = (name.clone(), *kind);
            if !refs.contains(&wanted) {
                refs.push(wanted);
            }
        }
        Expr::Binary(_, left, right) => {
            symbols(left, calls, refs);
            symbols(right, calls, refs);
        }
        Expr::Paren(inner) => symbols(inner, calls, refs),
        _ => {}
    }
}

impl Execution<'_, '_> {
    fn count_points(&mut self, points: u64) -> ControlFlow<()> {
        self.points += points;
        match self.points > self.limits.points {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    fn point_limit(&self) -> Result<(), Error> {
        match self.points > self.limits.points {
            true => Err(Error::Statement(format!(
                "max-select-point limit exceeded: ({}/{})",
                self.points, self.limits.points
            ))),
            false => Ok(()),
        }
    }

    /// The references of the condition join those that are read.
    fn with_condition(&self, wanted: &mut Vec<Wanted>) {
        if let Some(condition) = &self.plan.checked.condition {
            condition.walk(&mut |expr| {
                if let Expr::Ref(name, kind) = expr {
                    Builder::want(wanted, name, *kind);
                }
            });
        }
    }

    fn key(&self, run: &Run<'_>) -> GroupKey {
        let tags = self.tags.iter().map(|tag| (run.tag)(tag).unwrap_or_default().to_owned());
        GroupKey { name: run.name.to_owned(), tags: tags.collect() }
    }

    /// Reads all inputs.
    fn scan(
        &self,
        wanted: &[Wanted],
        range: (i64, i64),
        order: ReadOrder,
        visit: &mut dyn FnMut(&Run<'_>) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let checked = &self.plan.checked;
        let (start, end) = range;
        let scan = Scan { wanted, condition: checked.condition.as_ref(), start, end, order };
        let mut flow = ControlFlow::Continue(());
        for input in &self.plan.inputs {
            match input {
                Input::Table { name, table } => {
                    let allowed = wanted_groups(self.plan, self.limits, self.tags, name, &**table)?;
                    scan_table(name, &**table, scan, &mut |run| {
                        if allowed.as_ref().is_none_or(|allowed| allowed.contains(&self.key(run).tags)) {
                            flow = visit(run);
                        }
                        flow
                    })?;
                }
                Input::Query(inner) => {
                    let (rows, tags) = self.inner_rows(inner, range)?;
                    flow = scan_rows(self.plan.source, &inner.columns, &tags, &rows, scan, visit)?;
                }
            }
            if flow.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// The rows of a subquery in the order in which this statement reads them, and the names of their tags.
    fn inner_rows(&self, inner: &Plan<'_>, range: (i64, i64)) -> Result<(Vec<InnerRow>, Vec<String>), Error> {
        let tags: BTreeSet<String> = self.tags.iter().chain(&inner.tags).cloned().collect();
        let tags: Vec<String> = tags.into_iter().collect();
        let (start, end) = (inner.checked.start.max(range.0), inner.checked.end.min(range.1));
        let mut rows = Vec::new();
        run_within(inner, self.limits, &tags, start, end, &mut |row| {
            rows.push(InnerRow {
                time: row.time,
                name: row.group.name.clone(),
                tags: row.group.tags.clone(),
                values: row.values,
            });
            match rows.len() as u64 > self.limits.points {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        })?;
        if rows.len() as u64 > self.limits.points {
            let (found, limit) = (rows.len(), self.limits.points);
            return Err(Error::Statement(format!("max-select-point limit exceeded: ({found}/{limit})")));
        }
        let places: Vec<usize> = tags
            .iter()
            .enumerate()
            .filter(|(_, tag)| self.tags.contains(tag))
            .map(|(place, _)| place)
            .collect();
        let outer = |row: &InnerRow| places.iter().map(|place| row.tags[*place].clone()).collect::<Vec<_>>();
        self.plan.source.check()?;
        rows.sort_by_cached_key(|row| (row.name.clone(), outer(row)));
        let ascending = self.plan.checked.ascending;
        for group in rows.chunk_by_mut(|a, b| a.name == b.name && outer(a) == outer(b)) {
            match ascending {
                true => group.sort_by_key(|row| row.time),
                false => group.sort_by_key(|row| std::cmp::Reverse(row.time)),
            }
        }
        if !ascending {
            let groups: Vec<Vec<InnerRow>> =
                rows.chunk_by(|a, b| a.name == b.name && outer(a) == outer(b)).map(<[_]>::to_vec).collect();
            rows = groups.into_iter().rev().flatten().collect();
        }
        Ok((rows, tags))
    }

    /// A statement without functions.
    fn raw(&mut self, outputs: &[Expr], refs: Vec<Wanted>, visit: &mut Rows<'_>) -> Result<(), Error> {
        if refs.iter().all(|(_, kind)| *kind == DataType::Unknown) {
            return Ok(());
        }
        let mut wanted = refs.clone();
        self.with_condition(&mut wanted);
        let fields: Vec<usize> = (0..refs.len())
            .filter(|index| !matches!(refs[*index].1, DataType::Tag | DataType::Unknown))
            .collect();
        let queries = self.plan.inputs.iter().any(|input| matches!(input, Input::Query(_)));
        if fields.is_empty() && !queries {
            return Ok(());
        }
        let one_table = matches!(self.plan.inputs[..], [Input::Table { .. }]);
        match one_table && self.tags.is_empty() {
            true => self.raw_stream(outputs, refs, &wanted, &fields, visit),
            false => self.raw_groups(outputs, refs, &wanted, &fields, visit),
        }
    }

    fn order(&self) -> store::Order {
        if self.plan.checked.ascending { store::Order::Ascending } else { store::Order::Descending }
    }

    /// Rows of one table in the order of time, as the store gives them.
    fn raw_stream(
        &mut self,
        outputs: &[Expr],
        refs: Vec<Wanted>,
        wanted: &[Wanted],
        fields: &[usize],
        visit: &mut Rows<'_>,
    ) -> Result<(), Error> {
        let fill = self.plan.checked.select.fill;
        let (offset, limit) = self.row_limits();
        let mut cells = Cells::new(refs, 0);
        let (mut seen, mut points) = (0_usize, 0_u64);
        let most = self.limits.points;
        let order = ReadOrder::Time(self.order());
        let group = |run: &Run<'_>| GroupKey { name: run.name.to_owned(), tags: Vec::new() };
        self.scan(wanted, (self.start, self.end), order, &mut |run| {
            let group = group(run);
            run.each(&mut |row, time| {
                if !fields.iter().any(|field| run.has(*field, row)) {
                    return ControlFlow::Continue(());
                }
                points += 1;
                seen += 1;
                if points > most {
                    return ControlFlow::Break(());
                }
                if seen <= offset {
                    return ControlFlow::Continue(());
                }
                for index in 0..cells.refs.len() {
                    let kind = cells.refs[index].1;
                    set(&mut cells.values[index], run.value(index, row), fill, kind);
                }
                visit(Row { group: &group, time, values: cells.outputs(outputs) })?;
                if seen - offset >= limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })
        })?;
        self.points = points;
        self.point_limit()
    }

    /// OFFSET and LIMIT.
    fn row_limits(&self) -> (usize, usize) {
        let select = &self.plan.checked.select;
        (select.offset, if select.limit == 0 { usize::MAX } else { select.limit })
    }

    /// Rows of several inputs or groups, which are held until they are sorted.
    fn raw_groups(
        &mut self,
        outputs: &[Expr],
        refs: Vec<Wanted>,
        wanted: &[Wanted],
        fields: &[usize],
        visit: &mut Rows<'_>,
    ) -> Result<(), Error> {
        let mut groups: BTreeMap<GroupKey, Vec<(i64, Vec<Value>)>> = BTreeMap::new();
        let queries = self.plan.inputs.iter().any(|input| matches!(input, Input::Query(_)));
        let (mut points, most) = (0_u64, self.limits.points);
        let count = refs.len();
        let ascending = self.plan.checked.ascending;
        let (offset, limit) = self.row_limits();
        let reached = offset.saturating_add(limit);
        // Twice as many are held at most, so that sorting them costs little for each row.
        let held_max = reached.saturating_mul(2).max(ROWS_PER_CHECK);
        self.scan(wanted, (self.start, self.end), ReadOrder::SeriesThenTime, &mut |run| {
            let rows = groups.entry(self.key(run)).or_default();
            run.each(&mut |row, time| {
                if queries || fields.iter().any(|field| run.has(*field, row)) {
                    rows.push((time, (0..count).map(|index| run.value(index, row)).collect()));
                    points += 1;
                }
                if rows.len() >= held_max {
                    sort_rows(rows, ascending);
                    points -= (rows.len() - reached) as u64;
                    rows.truncate(reached);
                }
                if points > most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })
        })?;
        self.points = points;
        self.point_limit()?;
        let fill = self.plan.checked.select.fill;
        let mut cells = Cells::new(refs, 0);
        for (key, mut rows) in in_order(groups, ascending) {
            cells.clear();
            sort_rows(&mut rows, ascending);
            for (number, (time, values)) in rows.into_iter().skip(offset).take(limit).enumerate() {
                if number.is_multiple_of(ROWS_PER_CHECK) {
                    self.plan.source.check()?;
                }
                for (index, value) in values.into_iter().enumerate() {
                    let kind = cells.refs[index].1;
                    set(&mut cells.values[index], value, fill, kind);
                }
                if visit(Row { group: &key, time, values: cells.outputs(outputs) }).is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// A statement with functions.
    fn aggregate(
        &mut self,
        outputs: &[Expr],
        exprs: &[Expr],
        refs: Vec<Wanted>,
        visit: &mut Rows<'_>,
    ) -> Result<(), Error> {
        let selector = match exprs {
            [Expr::Call(name, args)] => {
                Function::of(name, args, &|_| 0).is_some_and(|function| function.selects())
            }
            _ => false,
        };
        let checked = &self.plan.checked;
        let (offset, limit) = self.row_limits();
        let frame = Frame {
            start: self.start,
            end: self.end,
            buckets: checked.buckets,
            ascending: checked.ascending,
            fill: checked.select.fill,
            selector,
            buckets_max: self.limits.buckets,
            reached: offset.saturating_add(limit),
            others: refs.len(),
        };
        self.bucket_limit(&frame)?;
        let mut wanted = refs.clone();
        let others: Vec<usize> = (0..refs.len()).collect();
        let mut builder = Builder { frame: &frame, wanted: &mut wanted, others: &others, leaves: Vec::new() };
        let mut calls: Vec<(usize, Call)> = Vec::new();
        for (index, expr) in exprs.iter().enumerate() {
            if let Expr::Call(name, args) = expr {
                let call = builder.call(name, args).map_err(Error::Statement)?;
                calls.extend(call.map(|call| (index, call)));
            }
        }
        let leaves = builder.leaves;
        if calls.is_empty() {
            return Ok(());
        }
        self.with_condition(&mut wanted);
        let groups = self.accumulate(&frame, &leaves, &wanted)?;
        let kinds: Vec<DataType> = exprs.iter().map(|expr| type_of(expr).unwrap_or_default()).collect();
        let mut cells = Cells::new(refs, exprs.len());
        for (key, mut state) in in_order(groups, frame.ascending) {
            cells.clear();
            let mut columns: Vec<(usize, Vec<Point>)> = Vec::with_capacity(calls.len());
            for (index, call) in &calls {
                let points = call.points(&frame, &leaves, &mut state).map_err(Error::Statement)?;
                columns.push((*index, self.limited(points)));
            }
            if self.emit(&key, columns, &kinds, outputs, &mut cells, visit)?.is_break() {
                return Ok(());
            }
        }
        Ok(())
    }

    fn limited(&self, points: Vec<Point>) -> Vec<Point> {
        let (offset, limit) = self.row_limits();
        match offset == 0 && limit == usize::MAX {
            true => points,
            false => points.into_iter().skip(offset).take(limit).collect(),
        }
    }

    fn bucket_limit(&self, frame: &Frame) -> Result<(), Error> {
        if frame.buckets.is_none() || frame.start == TIME_MIN || frame.fill == Fill::None {
            return Ok(());
        }
        let end = if frame.end == TIME_MAX { frame.end } else { frame.end.saturating_sub(1) };
        let first = frame.buckets.start(frame.start, frame.start, frame.end);
        let last = frame.buckets.start(end, frame.start, frame.end);
        let buckets = (i128::from(last) - i128::from(first)) / i128::from(frame.buckets.every) + 1;
        match buckets > i128::from(self.limits.buckets) {
            true => Err(Error::Statement(over_limit(buckets, self.limits.buckets))),
            false => Ok(()),
        }
    }

    /// Reads the rows and gives each to the functions, per group and bucket.
    fn accumulate(
        &mut self,
        frame: &Frame,
        leaves: &[Leaf],
        wanted: &[Wanted],
    ) -> Result<BTreeMap<GroupKey, GroupState>, Error> {
        let mut groups: BTreeMap<GroupKey, GroupState> = BTreeMap::new();
        let start = leaves.iter().map(|leaf| leaf.start).min().unwrap_or(frame.start);
        let end = leaves.iter().map(|leaf| leaf.end).max().unwrap_or(frame.end);
        let (mut held, most) = (0_u64, self.limits.points);
        let order = ReadOrder::SeriesThenTime;
        self.scan(wanted, (start, end), order, &mut |run| {
            let group = groups
                .entry(self.key(run))
                .or_insert_with(|| leaves.iter().map(|_| BTreeMap::new()).collect());
            let mut bucket = (1, 0);
            run.each(&mut |row, time| {
                if time < bucket.0 || time >= bucket.1 {
                    bucket = match frame.buckets.is_none() {
                        true => (TIME_MIN, TIME_MAX),
                        false => frame.buckets.around(time, frame.start, frame.end),
                    };
                }
                for (leaf, states) in leaves.iter().zip(group.iter_mut()) {
                    // The scan keeps to `start` and `end`. A bucket of a subquery may begin before `start`, and counts.
                    let is_outside =
                        leaf.start > start && time < leaf.start || leaf.end < end && time > leaf.end;
                    if is_outside || !run.has(leaf.field, row) {
                        continue;
                    }
                    let others = || (0..frame.others).map(|index| run.value(index, row)).collect();
                    let value = match leaf.function {
                        Function::Count => Value::Null,
                        _ => run.value(leaf.field, row),
                    };
                    match states.get_mut(&bucket.0) {
                        Some(state) => {
                            held += u64::from(leaf.function.holds_points());
                            state.add(&leaf.function, time, value, others);
                        }
                        None => {
                            held += 1;
                            states.insert(bucket.0, State::first(&leaf.function, time, value, others));
                        }
                    }
                }
                if held > most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })
        })?;
        let _ = self.count_points(held);
        self.point_limit()?;
        self.sort_points(&mut groups)?;
        Ok(groups)
    }

    /// Points of several series are in the order of time for the functions that look at their order.
    fn sort_points(&self, groups: &mut BTreeMap<GroupKey, GroupState>) -> Result<(), Error> {
        for state in groups.values_mut().flatten().flat_map(|states| states.values_mut()) {
            if let State::Points(points) = state {
                self.plan.source.check()?;
                points.sort_by_key(|point| point.time);
            }
        }
        Ok(())
    }

    /// Joins the points of the calls by their times.
    fn emit(
        &self,
        key: &GroupKey,
        columns: Vec<(usize, Vec<Point>)>,
        kinds: &[DataType],
        outputs: &[Expr],
        cells: &mut Cells,
        visit: &mut Rows<'_>,
    ) -> Result<ControlFlow<()>, Error> {
        let (ascending, fill) = (self.plan.checked.ascending, self.plan.checked.select.fill);
        let mut columns: Vec<_> =
            columns.into_iter().map(|(call, points)| (call, points.into_iter().peekable())).collect();
        for number in 0_usize.. {
            if number.is_multiple_of(ROWS_PER_CHECK) {
                self.plan.source.check()?;
            }
            let times = columns.iter_mut().filter_map(|(_, points)| points.peek().map(|point| point.time));
            let next = if ascending { times.min() } else { times.max() };
            let Some(time) = next else { break };
            for (call, points) in &mut columns {
                let point = points.next_if(|point| point.time == time);
                let (value, others) = match point {
                    Some(point) => (point.value, point.others),
                    None => (Value::Null, Vec::new()),
                };
                set(&mut cells.calls[*call], value, fill, kinds[*call]);
                for (index, other) in others.into_iter().enumerate() {
                    let kind = cells.refs[index].1;
                    set(&mut cells.values[index], other, fill, kind);
                }
            }
            if visit(Row { group: key, time, values: cells.outputs(outputs) }).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// Sorts rows by time. Rows of one time keep their order.
fn sort_rows(rows: &mut [(i64, Vec<Value>)], ascending: bool) {
    match ascending {
        true => rows.sort_by_key(|(time, _)| *time),
        false => rows.sort_by_key(|(time, _)| std::cmp::Reverse(*time)),
    }
}

/// The groups from the first to the last, or the other way round.
fn in_order<'t, T: 't>(
    groups: BTreeMap<GroupKey, T>,
    ascending: bool,
) -> Box<dyn Iterator<Item = (GroupKey, T)> + 't> {
    match ascending {
        true => Box::new(groups.into_iter()),
        false => Box::new(groups.into_iter().rev()),
    }
}

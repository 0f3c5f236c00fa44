//! A compiled query and its execution.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use super::datum::{Datum, Key, Row};
use super::expr::{Expr, Scope};
use super::grouping::{GroupBy, Grouping};
use super::meter::Meter;
use crate::virtual_sensors::limits::JOIN_COMBINATIONS_MAX;

/// A compiled query over the rows of some tables.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Query {
    /// The tables of `FROM`, as numbers of what the caller has; a table can be there twice.
    pub(crate) tables: Vec<usize>,
    /// The condition of a query without groups. That of one with groups is in them.
    pub(crate) filter: Option<Expr>,
    pub(crate) groups: Option<GroupBy>,
    pub(crate) having: Option<Expr>,
    pub(crate) output: Vec<Output>,
    pub(crate) distinct: bool,
    pub(crate) order: Vec<OrderKey>,
    pub(crate) offset: usize,
    pub(crate) limit: Option<usize>,
}

/// A column of the result.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Output {
    pub(crate) name: String,
    pub(crate) expr: Expr,
}

/// An expression of `ORDER BY`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OrderKey {
    pub(crate) expr: Expr,
    pub(crate) descending: bool,
    pub(crate) nulls_first: bool,
}

impl Query {
    /// Whether each row of the result comes from one row of one table, and does not depend on the clock: then it can be made
    /// when the row comes.
    pub(crate) fn is_row_wise(&self) -> bool {
        let plain = self.groups.is_none() && !self.distinct && self.order.is_empty();
        let unbounded = self.offset == 0 && self.limit.is_none();
        let clock =
            self.filter.iter().chain(self.output.iter().map(|output| &output.expr)).any(Expr::reads_clock);
        self.tables.len() == 1 && plain && unbounded && !clock
    }

    /// The groups, if rows of the one table can join them when they come.
    pub(crate) fn incremental(&self) -> Option<&GroupBy> {
        self.groups.as_ref().filter(|by| self.tables.len() == 1 && !by.reads_clock())
    }

    /// The row of a row-wise query; `None` if the filter leaves it out.
    pub(crate) fn map(&self, row: &[Datum], meter: &Meter) -> Result<Option<Row>, String> {
        let scope = Scope { rows: &[row], groups: &[], aggregates: &[], now: 0, meter };
        if let Some(filter) = &self.filter
            && filter.truth(scope)? != Some(true)
        {
            return Ok(None);
        }
        self.output.iter().map(|output| output.expr.value(scope)).collect::<Result<_, _>>().map(Some)
    }

    /// The result for all rows of the tables of `FROM`.
    pub(crate) fn execute(&self, tables: &[&[Row]], now: i64, meter: &Meter) -> Result<Vec<Row>, String> {
        let Some(by) = &self.groups else {
            let mut rows = Vec::new();
            self.combine(tables, &mut |combination| {
                let scope = Scope { rows: combination, groups: &[], aggregates: &[], now, meter };
                meter.spend(1)?;
                if self.filter.as_ref().map_or(Ok(Some(true)), |filter| filter.truth(scope))? == Some(true) {
                    rows.push(self.line(scope)?);
                }
                Ok(())
            })?;
            return self.finish(rows, meter);
        };
        let mut grouping = Grouping::new();
        let mut number = 0;
        self.combine(tables, &mut |combination| {
            let scope = Scope { rows: combination, groups: &[], aggregates: &[], now, meter };
            meter.spend(1)?;
            // Tables begin with their newest rows.
            number -= 1;
            grouping.add(by, scope, (0, number));
            Ok(())
        })?;
        self.execute_grouped(by, &grouping, now, meter)
    }

    /// The result for rows that have joined groups already.
    pub(crate) fn execute_grouped(
        &self,
        by: &GroupBy,
        grouping: &Grouping,
        now: i64,
        meter: &Meter,
    ) -> Result<Vec<Row>, String> {
        let mut rows = Vec::new();
        for (groups, aggregates) in grouping.results(by)? {
            let scope = Scope { rows: &[], groups: &groups, aggregates: &aggregates, now, meter };
            if self.having.as_ref().map_or(Ok(Some(true)), |having| having.truth(scope))? == Some(true) {
                rows.push(self.line(scope)?);
            }
        }
        self.finish(rows, meter)
    }

    fn line(&self, scope: Scope<'_>) -> Result<Line, String> {
        let row = self.output.iter().map(|output| output.expr.value(scope)).collect::<Result<_, _>>()?;
        let keys = self.order.iter().map(|key| key.expr.value(scope)).collect::<Result<_, _>>()?;
        Ok(Line { row, keys })
    }

    /// Calls for each combination of rows of the tables.
    fn combine(&self, tables: &[&[Row]], each: &mut ForEach<'_>) -> Result<(), String> {
        let counts = tables.iter().map(|rows| rows.len());
        let combinations = counts.fold(1_usize, usize::saturating_mul);
        if tables.len() > 1 && combinations > JOIN_COMBINATIONS_MAX {
            return Err(format!(
                "the join has {combinations} combinations of rows; at most {JOIN_COMBINATIONS_MAX} \
                 (JOIN_COMBINATIONS_MAX)"
            ));
        }
        if combinations == 0 {
            return Ok(());
        }
        let mut at = vec![0; tables.len()];
        loop {
            let rows: Vec<&[Datum]> = tables.iter().zip(&at).map(|(rows, at)| &*rows[*at]).collect();
            each(&rows)?;
            // The last table turns first, as nested loops do.
            let Some(turned) = (0..at.len()).rev().find(|table| at[*table] + 1 < tables[*table].len()) else {
                return Ok(());
            };
            at[turned] += 1;
            at[turned + 1..].fill(0);
        }
    }

    /// `DISTINCT`, `ORDER BY`, `OFFSET` and `LIMIT`.
    fn finish(&self, mut lines: Vec<Line>, meter: &Meter) -> Result<Vec<Row>, String> {
        if self.distinct || !self.order.is_empty() {
            // Each line is compared with some others.
            meter.spend(lines.len() as u64 * u64::from(usize::BITS - lines.len().leading_zeros()))?;
        }
        if self.distinct {
            let mut seen = BTreeSet::new();
            lines.retain(|line| seen.insert(line.row.iter().cloned().map(Key).collect::<Vec<_>>()));
        }
        if !self.order.is_empty() {
            lines.sort_by(|left, right| self.compare(&left.keys, &right.keys));
        }
        let rows = lines.into_iter().map(|line| line.row).skip(self.offset);
        Ok(rows.take(self.limit.unwrap_or(usize::MAX)).collect())
    }

    fn compare(&self, left: &[Datum], right: &[Datum]) -> Ordering {
        for (key, (left, right)) in self.order.iter().zip(left.iter().zip(right)) {
            let order = match (left.is_null(), right.is_null()) {
                (true, true) => Ordering::Equal,
                (true, false) if key.nulls_first => Ordering::Less,
                (true, false) => Ordering::Greater,
                (false, true) if key.nulls_first => Ordering::Greater,
                (false, true) => Ordering::Less,
                (false, false) if key.descending => right.total_cmp(left),
                (false, false) => left.total_cmp(right),
            };
            if order != Ordering::Equal {
                return order;
            }
        }
        Ordering::Equal
    }
}

/// What is done with each combination of rows.
type ForEach<'a> = dyn FnMut(&[&[Datum]]) -> Result<(), String> + 'a;

/// A row of the result with its keys of `ORDER BY`.
struct Line {
    row: Row,
    keys: Vec<Datum>,
}

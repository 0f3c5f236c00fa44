//! The groups of a query, which rows join and leave.

use std::collections::BTreeMap;

use super::aggregates::{Accumulator, AggregateKind, Operand, Order};
use super::datum::{Datum, Key};
use super::expr::{Expr, Scope};
use crate::virtual_sensors::limits::GROUPS_MAX;

/// What makes the groups.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct GroupBy {
    pub(crate) filter: Option<Expr>,
    /// The expressions of `GROUP BY`. Without any, all rows are one group, which is there without rows too.
    pub(crate) keys: Vec<Expr>,
    pub(crate) aggregates: Vec<Aggregate>,
}

/// An aggregate and its argument; rows are counted without one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Aggregate {
    pub(crate) kind: AggregateKind,
    pub(crate) argument: Option<Expr>,
}

impl GroupBy {
    /// Whether a row can join before the query is executed.
    pub(crate) fn reads_clock(&self) -> bool {
        let arguments = self.aggregates.iter().filter_map(|aggregate| aggregate.argument.as_ref());
        self.filter.iter().chain(&self.keys).chain(arguments).any(Expr::reads_clock)
    }

    /// What a row brings to its group; `None` if the filter leaves it out.
    fn share(&self, scope: Scope<'_>) -> Result<Option<Share>, String> {
        if let Some(filter) = &self.filter
            && filter.truth(scope)? != Some(true)
        {
            return Ok(None);
        }
        let keys = self.keys.iter().map(|key| key.value(scope).map(Key)).collect::<Result<_, _>>()?;
        let operand = |aggregate: &Aggregate| {
            let datum = match &aggregate.argument {
                Some(argument) => argument.value(scope)?,
                None => Datum::Bool(true),
            };
            Operand::new(aggregate.kind, datum)
        };
        let operands = self.aggregates.iter().map(operand).collect::<Result<_, _>>()?;
        Ok(Some((keys, operands)))
    }
}

/// The key of the group of a row, and what each aggregate takes of it.
type Share = (Vec<Key>, Vec<Operand>);

/// The key of a group, and the values of its aggregates.
pub(crate) type GroupResult = (Vec<Datum>, Vec<Datum>);

/// The groups of the rows that have joined.
#[derive(Debug, Clone)]
pub(crate) struct Grouping {
    groups: BTreeMap<Vec<Key>, Group>,
    /// Rows that cannot be computed. While one is there, the query has no result, as it has none in a database.
    faulty: usize,
    fault: String,
    /// Whether there were too many groups, so that they must be made again.
    overflowed: bool,
}

#[derive(Debug, Clone)]
struct Group {
    rows: u64,
    accumulators: Vec<Accumulator>,
}

impl Grouping {
    pub(crate) fn new() -> Self {
        Self { groups: BTreeMap::new(), faulty: 0, fault: String::new(), overflowed: false }
    }

    /// Whether the caller must clear the groups and add all rows again before it asks for a result.
    pub(crate) fn needs_rows(&self) -> bool {
        self.overflowed
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::new();
    }

    /// A row joins.
    pub(crate) fn add(&mut self, by: &GroupBy, scope: Scope<'_>, order: Order) {
        if self.overflowed {
            return;
        }
        let (key, operands) = match by.share(scope) {
            Ok(Some(share)) => share,
            Ok(None) => return,
            Err(fault) => {
                self.faulty += 1;
                self.fault = fault;
                return;
            }
        };
        if self.groups.len() >= GROUPS_MAX && !self.groups.contains_key(&key) {
            self.overflowed = true;
            self.groups.clear();
            return;
        }
        let group = self.groups.entry(key).or_insert_with(|| Group::new(by));
        group.rows += 1;
        for (accumulator, operand) in group.accumulators.iter_mut().zip(&operands) {
            accumulator.add(operand, order);
        }
    }

    /// A row that has joined leaves.
    pub(crate) fn remove(&mut self, by: &GroupBy, scope: Scope<'_>, order: Order) {
        if self.overflowed {
            return;
        }
        let (key, operands) = match by.share(scope) {
            Ok(Some(share)) => share,
            Ok(None) => return,
            Err(_) => {
                self.faulty -= 1;
                return;
            }
        };
        let Some(group) = self.groups.get_mut(&key) else { return };
        group.rows -= 1;
        if group.rows == 0 {
            self.groups.remove(&key);
            return;
        }
        for (accumulator, operand) in group.accumulators.iter_mut().zip(&operands) {
            accumulator.remove(operand, order);
        }
    }

    /// The keys and the values of the aggregates of each group, in the order of the keys.
    ///
    /// # Errors
    /// A row or an aggregate cannot be computed, or there are too many groups.
    pub(crate) fn results(&self, by: &GroupBy) -> Result<Vec<GroupResult>, String> {
        if self.faulty > 0 {
            return Err(self.fault.clone());
        }
        if self.overflowed {
            return Err(format!("GROUP BY gives more than {GROUPS_MAX} groups (GROUPS_MAX)"));
        }
        let values = |group: &Group| -> Result<Vec<Datum>, String> {
            let pairs = group.accumulators.iter().zip(&by.aggregates);
            pairs.map(|(accumulator, aggregate)| accumulator.value(aggregate.kind)).collect()
        };
        if by.keys.is_empty() && self.groups.is_empty() {
            return Ok(vec![(Vec::new(), values(&Group::new(by))?)]);
        }
        let keys = |key: &[Key]| key.iter().map(|key| key.0.clone()).collect();
        self.groups.iter().map(|(key, group)| Ok((keys(key), values(group)?))).collect()
    }

    /// Bytes of the groups.
    pub(crate) fn bytes(&self) -> usize {
        let group = |(key, group): (&Vec<Key>, &Group)| {
            let keys: usize = key.iter().map(|key| key.0.bytes()).sum();
            keys + group.accumulators.iter().map(Accumulator::bytes).sum::<usize>()
        };
        self.groups.iter().map(group).sum()
    }
}

impl Group {
    fn new(by: &GroupBy) -> Self {
        let accumulators = by.aggregates.iter().map(|aggregate| aggregate.kind.accumulator()).collect();
        Self { rows: 0, accumulators }
    }
}

//! Encloses joins with common columns in parentheses with an alias.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Join, JoinConstraint, JoinOperator, Select, SetExpr, TableAlias, TableFactor, TableWithJoins, VisitorMut,
};

use super::alias;
use crate::parsed::parsed_query;

#[derive(Default)]
pub(super) struct Wrap {
    /// The number of joins so far.
    pub(super) count: usize,
}

impl VisitorMut for Wrap {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        select.from.iter_mut().for_each(|from| self.enclose(from));
        ControlFlow::Continue(())
    }
}

impl Wrap {
    /// `a JOIN b USING (k) JOIN c ON ...` becomes `(a JOIN b USING (k)) AS alias JOIN c ON ...`.
    fn enclose(&mut self, from: &mut TableWithJoins) {
        self.enclose_within(&mut from.relation);
        for mut join in std::mem::take(&mut from.joins) {
            self.enclose_within(&mut join.relation);
            let has_common_columns = has_common_columns(&join);
            from.joins.push(join);
            if has_common_columns {
                let alias = Some(alias::of(self.count));
                self.count += 1;
                let inner = Box::new(taken(from));
                from.relation = TableFactor::NestedJoin { table_with_joins: inner, alias };
            }
        }
    }

    fn enclose_within(&mut self, factor: &mut TableFactor) {
        let TableFactor::NestedJoin { table_with_joins, alias } = factor else { return };
        if alias.as_ref().is_some_and(alias::is_ours) {
            return;
        }
        let before = self.count;
        self.enclose(table_with_joins);
        // Under a name of the user the join has only the columns that `*` lists.
        if let Some(alias) = alias.take_if(|_| self.count > before) {
            *factor = all_of(taken(table_with_joins), alias);
        }
    }
}

/// `(SELECT * FROM joins) AS alias`
fn all_of(joins: TableWithJoins, alias: TableAlias) -> TableFactor {
    let mut query = parsed_query("SELECT * FROM nothing");
    if let SetExpr::Select(select) = &mut *query.body {
        select.from = vec![joins];
    }
    TableFactor::Derived { lateral: false, subquery: Box::new(query), alias: Some(alias), sample: None }
}

/// Takes joins and leaves nothing in their place.
fn taken(from: &mut TableWithJoins) -> TableWithJoins {
    let nothing = TableFactor::UNNEST {
        alias: None,
        array_exprs: Vec::new(),
        with_offset: false,
        with_offset_alias: None,
        with_ordinality: false,
    };
    std::mem::replace(from, TableWithJoins { relation: nothing, joins: Vec::new() })
}

/// Whether a join has common columns. DataFusion plans LATERAL joins, and those that PostgreSQL does not have.
fn has_common_columns(join: &Join) -> bool {
    let is_lateral = matches!(
        join.relation,
        TableFactor::Derived { lateral: true, .. }
            | TableFactor::Function { .. }
            | TableFactor::UNNEST { .. }
    );
    !is_lateral
        && constraint_of(&join.join_operator).is_some_and(|constraint| {
            matches!(constraint, JoinConstraint::Using(_) | JoinConstraint::Natural)
        })
}

/// The constraint of a join of PostgreSQL.
pub(super) fn constraint_of(operator: &JoinOperator) -> Option<&JoinConstraint> {
    match operator {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint)
        | JoinOperator::Right(constraint)
        | JoinOperator::RightOuter(constraint)
        | JoinOperator::FullOuter(constraint) => Some(constraint),
        _ => None,
    }
}

/// As [`constraint_of`], to change it.
pub(super) fn constraint_of_mut(operator: &mut JoinOperator) -> Option<&mut JoinConstraint> {
    match operator {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint)
        | JoinOperator::Right(constraint)
        | JoinOperator::RightOuter(constraint)
        | JoinOperator::FullOuter(constraint) => Some(constraint),
        _ => None,
    }
}

//! Walks over a parsed statement with a visitor behind a pointer.
//!
//! The parser's `visit` is generic. For each visitor type the compiler makes a copy of the code that walks over every kind of node,
//! hundreds of functions. With one visitor type for all visitors there is one copy.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, ObjectName, Query, Select, Statement, TableFactor, ValueWithSpan, Visit, VisitMut, Visitor,
    VisitorMut,
};

/// Walks over a node and all nodes below it. Returns whether the visitor has stopped the walk.
pub(crate) fn walk(node: &impl Visit, visitor: &mut dyn Visitor<Break = ()>) -> ControlFlow<()> {
    node.visit(&mut Shared(visitor))
}

/// As [`walk`], for a visitor that changes nodes.
pub(crate) fn walk_mut(
    node: &mut impl VisitMut,
    visitor: &mut dyn VisitorMut<Break = ()>,
) -> ControlFlow<()> {
    node.visit(&mut Exclusive(visitor))
}

struct Shared<'a>(&'a mut dyn Visitor<Break = ()>);

struct Exclusive<'a>(&'a mut dyn VisitorMut<Break = ()>);

/// Methods that pass a node to the visitor.
macro_rules! forward {
    ($($method:ident($node:ty);)*) => {
        type Break = ();
        $(
            fn $method(&mut self, node: $node) -> ControlFlow<()> {
                self.0.$method(node)
            }
        )*
    };
}

impl Visitor for Shared<'_> {
    forward! {
        pre_visit_query(&Query);
        post_visit_query(&Query);
        pre_visit_select(&Select);
        post_visit_select(&Select);
        pre_visit_relation(&ObjectName);
        post_visit_relation(&ObjectName);
        pre_visit_table_factor(&TableFactor);
        post_visit_table_factor(&TableFactor);
        pre_visit_expr(&Expr);
        post_visit_expr(&Expr);
        pre_visit_statement(&Statement);
        post_visit_statement(&Statement);
        pre_visit_value(&ValueWithSpan);
        post_visit_value(&ValueWithSpan);
    }
}

impl VisitorMut for Exclusive<'_> {
    forward! {
        pre_visit_query(&mut Query);
        post_visit_query(&mut Query);
        pre_visit_select(&mut Select);
        post_visit_select(&mut Select);
        pre_visit_relation(&mut ObjectName);
        post_visit_relation(&mut ObjectName);
        pre_visit_table_factor(&mut TableFactor);
        post_visit_table_factor(&mut TableFactor);
        pre_visit_expr(&mut Expr);
        post_visit_expr(&mut Expr);
        pre_visit_statement(&mut Statement);
        post_visit_statement(&mut Statement);
        pre_visit_value(&mut ValueWithSpan);
        post_visit_value(&mut ValueWithSpan);
    }
}

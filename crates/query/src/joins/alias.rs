//! The aliases under which the common columns of joins are planned.

use datafusion::sql::sqlparser::ast::{Ident, TableAlias};

/// No name in a statement can begin with it. It sorts before all others, so that DataFusion keeps this column of those that `*` shows once.
const PREFIX: &str = "\u{1}using";

/// The alias of the join with this number.
pub(super) fn of(number: usize) -> TableAlias {
    let name = Ident::with_quote('"', format!("{PREFIX}{number}"));
    TableAlias { explicit: true, name, columns: Vec::new(), at: None }
}

/// Whether an alias is one of ours.
pub(super) fn is_ours(alias: &TableAlias) -> bool {
    is_name(&alias.name.value)
}

/// Whether a name is an alias of ours.
pub(super) fn is_name(name: &str) -> bool {
    name.starts_with(PREFIX)
}

//! DELETE as the query that selects its rows. The query is planned like every other one, so names, types and parameters have the same
//! meaning in both.

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{self, Delete, FromTable, TableFactor};

use super::parse_one;
use crate::QueryError;

/// The text of the query that selects the times of the rows that a `DELETE FROM table WHERE condition` names.
pub(crate) fn selecting_query(sql: &str) -> Result<String, QueryError> {
    match parse_one(sql)? {
        Statement::Statement(statement) => match *statement {
            ast::Statement::Delete(delete) => query_of(&delete),
            other => Err(not_a_delete(&other.to_string())),
        },
        other => Err(not_a_delete(&other.to_string())),
    }
}

fn not_a_delete(statement: &str) -> QueryError {
    QueryError::Invalid { message: format!("{statement} is not a DELETE") }
}

fn query_of(delete: &Delete) -> Result<String, QueryError> {
    check_clauses(delete)?;
    let (FromTable::WithFromKeyword(tables) | FromTable::WithoutKeyword(tables)) = &delete.from;
    let table = match tables.as_slice() {
        [table] if table.joins.is_empty() && matches!(table.relation, TableFactor::Table { .. }) => table,
        _ => return Err(unsupported("DELETE from something other than one table")),
    };
    let Some(condition) = &delete.selection else {
        let message = "DELETE without WHERE, which names every row; write WHERE true if you mean that";
        return Err(unsupported(message));
    };
    Ok(format!("SELECT ts FROM {table} WHERE {condition}"))
}

/// Refuses the clauses that change the number or the answer of a DELETE.
fn check_clauses(delete: &Delete) -> Result<(), QueryError> {
    let present = [
        ("USING", delete.using.is_some()),
        ("RETURNING", delete.returning.is_some()),
        ("OUTPUT", delete.output.is_some()),
        ("ORDER BY", !delete.order_by.is_empty()),
        ("LIMIT", delete.limit.is_some()),
        ("a list of tables", !delete.tables.is_empty()),
    ];
    match present.iter().find(|(_, is_present)| *is_present) {
        Some((clause, _)) => Err(unsupported(&format!("DELETE with {clause}"))),
        None => Ok(()),
    }
}

fn unsupported(message: &str) -> QueryError {
    QueryError::Unsupported { message: message.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delete_selects_the_times_of_its_rows() {
        for (delete, query) in [
            ("DELETE FROM t WHERE device = 'a'", "SELECT ts FROM t WHERE device = 'a'"),
            (
                "delete from \"T 1\" as x where x.ts < $1 and x.device in ('a', 'b');",
                "SELECT ts FROM \"T 1\" AS x WHERE x.ts < $1 AND x.device IN ('a', 'b')",
            ),
        ] {
            assert_eq!(selecting_query(delete).unwrap(), query);
        }
    }

    #[test]
    fn other_statements_and_clauses_are_refused_by_name() {
        for (sql, told) in [
            ("DELETE FROM t", "WHERE true"),
            ("DELETE FROM t USING u WHERE t.a = u.a", "USING"),
            ("DELETE FROM t WHERE ts < now() RETURNING ts", "RETURNING"),
            ("DELETE FROM t, u WHERE true", "one table"),
            ("DELETE FROM t JOIN u ON true WHERE true", "one table"),
            ("DELETE FROM (SELECT 1) t WHERE true", "one table"),
            ("SELECT 1", "not a DELETE"),
            ("DELETE FROM t WHERE true; DELETE FROM u WHERE true", "one by one"),
            ("DELETE FROM t WHERE (", "syntax error"),
        ] {
            let refused = selecting_query(sql).unwrap_err().to_string();
            assert!(refused.contains(told), "{sql}: {refused}");
        }
        let deep = format!("DELETE FROM t WHERE {}true{}", "(".repeat(5_000), ")".repeat(5_000));
        assert!(selecting_query(&deep).unwrap_err().to_string().contains("64 levels"));
    }
}

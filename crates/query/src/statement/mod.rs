//! Parses the text of a statement and refuses all statements that do more than read. A DELETE becomes the query that selects its rows.

mod check_count;
mod deletion;
mod nesting;
mod size;
mod trim;

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use datafusion::common::DataFusionError;
use datafusion::sql::parser::{DFParserBuilder, Statement};
use datafusion::sql::sqlparser::ast::{
    self, SetExpr, SetOperator, SetQuantifier, Value, ValueWithSpan, Visitor,
};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::ParserError;
use model::limits;

pub(crate) use deletion::selecting_query;

use crate::QueryError;
use crate::walk::walk;

/// Deepest nesting of expressions and subqueries. Each level costs stack in the parser.
const NESTING_MAX: usize = 64;

/// Parses one statement. Refuses statements that do more than read.
pub(crate) fn parse(sql: &str) -> Result<Statement, QueryError> {
    let statement = parse_one(sql)?;
    check(&statement)?;
    Ok(statement)
}

/// Parses one statement within the limits of its text.
fn parse_one(sql: &str) -> Result<Statement, QueryError> {
    if sql.len() > limits::SQL_BYTES_MAX {
        return Err(QueryError::OverLimit {
            what: "the length of the statement",
            limit: format!("{} bytes", limits::SQL_BYTES_MAX),
            remedy: "shorten it",
        });
    }
    nesting::check(sql)?;
    let sql = trim::with_blanks(sql);
    let mut statements = DFParserBuilder::new(&*sql)
        .with_dialect(&PostgreSqlDialect {})
        .with_recursion_limit(NESTING_MAX)
        .build()
        .and_then(|mut parser| parser.parse_statements())
        .map_err(too_deep)?;
    let Some(statement) = statements.pop_front() else {
        return Err(QueryError::Syntax { message: "there is no statement".into() });
    };
    if !statements.is_empty() {
        return Err(QueryError::Unsupported {
            message: "several statements at once; send them one by one".into(),
        });
    }
    Ok(statement)
}

/// Returns the names of the parameters, such as `$1`.
pub(crate) fn parameters(statement: &Statement) -> BTreeSet<String> {
    #[derive(Default)]
    struct Names(BTreeSet<String>);
    impl Visitor for Names {
        type Break = ();

        fn pre_visit_value(&mut self, value: &ValueWithSpan) -> ControlFlow<()> {
            if let Value::Placeholder(name) = &value.value {
                self.0.insert(name.clone());
            }
            ControlFlow::Continue(())
        }
    }
    match statement {
        Statement::Statement(statement) => {
            let mut names = Names::default();
            // The visitor never stops early.
            let _ = walk(&**statement, &mut names);
            names.0
        }
        Statement::Explain(explain) => parameters(&explain.statement),
        _ => BTreeSet::new(),
    }
}

fn too_deep(error: DataFusionError) -> QueryError {
    match error.find_root() {
        DataFusionError::SQL(inner, _) if matches!(**inner, ParserError::RecursionLimitExceeded) => {
            QueryError::OverLimit {
                what: "the nesting of the statement",
                limit: format!("{NESTING_MAX} levels"),
                remedy: "take it apart",
            }
        }
        _ => error.into(),
    }
}

fn check(statement: &Statement) -> Result<(), QueryError> {
    match statement {
        Statement::Statement(statement) => check_ast(statement),
        Statement::Explain(explain) => check(&explain.statement),
        Statement::CreateExternalTable(_) => Err(read_only("CREATE")),
        Statement::CopyTo(_) => Err(read_only("COPY")),
        Statement::Reset(_) => Err(read_only("RESET")),
    }
}

fn check_ast(statement: &ast::Statement) -> Result<(), QueryError> {
    use ast::Statement as S;
    match statement {
        S::Query(query) => {
            size::check(statement)?;
            check_query(query)
        }
        S::Explain { statement, .. } => check_ast(statement),
        S::ExplainTable { .. } | S::ShowTables { .. } | S::ShowColumns { .. } | S::ShowFunctions { .. } => {
            Ok(())
        }
        other => Err(read_only(&first_words(&other.to_string()))),
    }
}

/// Checks a query, which may contain subqueries that modify data and `SELECT ... INTO`.
fn check_query(query: &ast::Query) -> Result<(), QueryError> {
    let ctes = query.with.iter().flat_map(|with| &with.cte_tables);
    ctes.map(|cte| &*cte.query).try_for_each(check_query)?;
    check_body(&query.body)
}

fn check_body(body: &SetExpr) -> Result<(), QueryError> {
    match body {
        SetExpr::Select(select) if select.into.is_some() => Err(read_only("SELECT INTO")),
        SetExpr::Select(_) | SetExpr::Values(_) | SetExpr::Table(_) => Ok(()),
        SetExpr::Query(query) => check_query(query),
        SetExpr::SetOperation {
            op: SetOperator::Except | SetOperator::Intersect,
            set_quantifier: SetQuantifier::All,
            ..
        } => Err(QueryError::Unsupported {
            message: "EXCEPT ALL and INTERSECT ALL; without ALL they give each row once".into(),
        }),
        SetExpr::SetOperation { left, right, .. } => check_body(left).and_then(|()| check_body(right)),
        SetExpr::Insert(_) => Err(read_only("INSERT")),
        SetExpr::Update(_) => Err(read_only("UPDATE")),
        SetExpr::Delete(_) => Err(read_only("DELETE")),
        SetExpr::Merge(_) => Err(read_only("MERGE")),
    }
}

fn first_words(statement: &str) -> String {
    let words = statement.split_whitespace().take_while(|word| word.chars().all(|c| c.is_ascii_uppercase()));
    let words: Vec<_> = words.take(2).collect();
    if words.is_empty() { "this statement".into() } else { words.join(" ") }
}

fn read_only(statement: &str) -> QueryError {
    let first = statement.split(' ').next().unwrap_or_default();
    let remedy = match first {
        "INSERT" | "UPDATE" | "MERGE" | "COPY" | "SELECT" => "Write through one of the doors for devices",
        "CREATE" | "ALTER" => "Tables and columns come into being when they are written to",
        "DELETE" => "Send it as a statement of its own",
        "SET" | "RESET" => "Times are UTC and limits are set in the configuration",
        _ => "Only SELECT, EXPLAIN, SHOW TABLES, SHOW COLUMNS and DESCRIBE are answered",
    };
    QueryError::ReadOnly { statement: statement.to_owned(), remedy }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(sql: &str) -> String {
        parse(sql).map(|statement| statement.to_string()).unwrap_err().to_string()
    }

    #[test]
    fn statements_that_read_are_accepted() {
        for sql in [
            "SELECT 1",
            "select 1;",
            "WITH a AS (SELECT 1) SELECT * FROM a UNION ALL VALUES (2)",
            "EXPLAIN SELECT 1",
            "EXPLAIN ANALYZE SELECT 1",
            "SHOW TABLES",
            "SHOW COLUMNS FROM t",
            "DESCRIBE t",
            "SELECT $1 FROM t WHERE device ~ 'a.*' AND ts > now() - INTERVAL '5 minutes'",
        ] {
            parse(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        }
    }

    #[test]
    fn statements_that_write_are_refused_by_name() {
        for (sql, name) in [
            ("INSERT INTO t VALUES (1)", "INSERT INTO"),
            ("UPDATE t SET a = 1", "UPDATE"),
            ("DELETE FROM t", "DELETE FROM"),
            ("CREATE TABLE t (a INT)", "CREATE TABLE"),
            ("CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '/etc/passwd'", "CREATE"),
            ("COPY t TO '/tmp/x'", "COPY"),
            ("DROP TABLE t", "DROP TABLE"),
            ("SET datafusion.execution.batch_size = 1", "SET"),
            ("RESET datafusion.execution.batch_size", "RESET"),
            ("EXPLAIN INSERT INTO t VALUES (1)", "INSERT INTO"),
            ("SELECT * INTO u FROM t", "SELECT INTO"),
            ("WITH a AS (INSERT INTO t VALUES (1) RETURNING *) SELECT * FROM a", "INSERT"),
            ("PREPARE p AS SELECT 1", "PREPARE"),
            ("BEGIN", "BEGIN"),
        ] {
            let refusal = refusal(sql);
            assert!(refusal.starts_with(name) && refusal.contains("refused"), "{sql}: {refusal}");
        }
    }

    #[test]
    fn syntax_errors_have_their_position() {
        assert_eq!(refusal("  "), "syntax error: there is no statement");
        assert!(refusal("SELECT 1; SELECT 2").contains("one by one"));
        let error = refusal("SELECT )");
        assert!(error.starts_with("syntax error: ") && error.contains("Line: 1"), "{error}");
    }

    #[test]
    fn long_and_deep_statements_meet_their_limits() {
        let long = format!("SELECT '{}'", "x".repeat(limits::SQL_BYTES_MAX));
        assert!(refusal(&long).contains("262144 bytes"));
        let deep = format!("SELECT {}1{}", "(".repeat(5_000), ")".repeat(5_000));
        assert!(refusal(&deep).contains("64 levels"), "{}", refusal(&deep));
    }

    /// A statement that costs the parser twice as much for each level is refused before it is parsed.
    #[test]
    fn nested_calls_and_types_have_their_limits() {
        let most = nesting::CALL_LEVELS_MAX;
        for (open, value, close) in [
            ("abs(", "1", ")"),
            ("struct(", "1", ")"),
            ("ARRAY[", "1", "]"),
            ("(SELECT ", "1", ")"),
            ("a[", "1", "]"),
        ] {
            let nested =
                |levels: usize| format!("SELECT {}{value}{}", open.repeat(levels), close.repeat(levels));
            let taken = parse(&nested(most)).err().map(|error| error.to_string());
            assert!(taken.is_none_or(|error| !error.contains("nesting")), "{open}");
            let error = refusal(&nested(most + 1));
            assert!(
                error.contains("the nesting of calls, lists and subqueries") && error.contains("16 levels"),
                "{error}"
            );
            assert!(refusal(&nested(20_000)).contains("16 levels"));
        }
        parse(&format!("SELECT {}1{}", "(".repeat(20), ")".repeat(20))).unwrap();
        parse(&format!("SELECT 1 WHERE {}true{}", "NOT (".repeat(20), ")".repeat(20))).unwrap();
        parse(&format!("SELECT {}", "abs(1), ".repeat(1_000) + "1")).unwrap();
        parse("SELECT a < b, 'ARRAY<', \"array\" < 1, ')))' FROM t").unwrap();
        for (sql, told) in [
            ("EXPLAIN ".repeat(30_000) + "SELECT 1", "EXPLAIN"),
            ("SELECT 1::int".to_owned() + &"[]".repeat(100_000), "number of []"),
            ("SELECT 1::".to_owned() + &"ARRAY<".repeat(40_000) + "int", "nesting of types"),
            ("SELECT 1::".to_owned() + &"STRUCT<".repeat(30_000) + "int", "nesting of types"),
        ] {
            assert!(refusal(&sql).contains(told), "{}", refusal(&sql));
        }
        assert!(refusal("SELECT )))").starts_with("syntax error: "));
    }

    /// Each query names the one before twice: a thousand joins in ten lines.
    #[test]
    fn queries_in_with_count_wherever_they_are_named() {
        let doubled = |count: usize, body: &str| {
            let next = |n: usize| format!("t{n} AS ({})", body.replace("?", &format!("T{}", n - 1)));
            let ctes: Vec<_> = (1..count).map(next).collect();
            format!("WITH t0 AS (SELECT 1 AS a), {} SELECT * FROM t{}", ctes.join(", "), count - 1)
        };
        parse(&doubled(6, "SELECT x.a FROM ? x, ? y")).unwrap();
        assert!(refusal(&doubled(8, "SELECT x.a FROM ? x, ? y")).contains("the number of joins"));
        assert!(refusal(&doubled(90, "SELECT x.a FROM ? x, ? y")).contains("the number of joins"));
        assert!(refusal(&doubled(12, "SELECT a FROM ? UNION ALL SELECT a FROM ?")).contains("UNION"));
        let nested = "SELECT a FROM ? WHERE a IN (SELECT a FROM ?)";
        assert!(refusal(&doubled(40, nested)).contains("the number of queries and tables"));
        let recursive =
            "WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t WHERE n < 5) SELECT * FROM t";
        parse(recursive).unwrap();
        let cube = |keys: usize| {
            let keys: Vec<_> = (0..keys).map(|key| format!("k{key}")).collect();
            format!("SELECT 1 FROM t GROUP BY CUBE ({})", keys.join(", "))
        };
        parse(&cube(12)).unwrap();
        assert!(refusal(&cube(30)).contains("12 keys"));
    }

    #[test]
    fn sequences_have_limits() {
        let ctes = |count: usize| {
            let ctes: Vec<_> = (0..count).map(|n| format!("t{n} AS (SELECT 1)")).collect();
            format!("WITH {} SELECT 1", ctes.join(", "))
        };
        // The beginning, one link, and a number of links that is too large.
        let chains = [
            ("SELECT 1", " + 1", size::EXPRESSION_LEVELS_MAX, "levels"),
            ("SELECT 1 WHERE a", " OR a", size::EXPRESSION_LEVELS_MAX, "levels"),
            ("SELECT 1", "::bigint", size::EXPRESSION_LEVELS_MAX, "levels"),
            ("SELECT 1", " UNION ALL SELECT 1", size::SET_OPERATIONS_MAX + 1, "of them"),
            ("SELECT 1 FROM t", ", t", size::JOINS_MAX + 1, "joins"),
            ("SELECT 1 FROM t", " CROSS JOIN t", size::JOINS_MAX + 1, "joins"),
        ];
        let chains = chains.iter().flat_map(|(begin, link, links, told)| {
            let of = |links: usize| format!("{begin}{}", link.repeat(links));
            [(of(links - 1), None), (of(*links), Some(*told))]
        });
        let nested = |joins: usize| format!("SELECT 1 FROM (t{})", " CROSS JOIN t".repeat(joins));
        let list: Vec<_> = (0..20_000).map(|n| n.to_string()).collect();
        let others = [
            (nested(size::JOINS_MAX), None),
            (nested(size::JOINS_MAX + 1), Some("joins")),
            (ctes(size::CTES_MAX), None),
            (ctes(size::CTES_MAX + 1), Some("queries")),
            // A list is as deep as one of its values.
            (format!("SELECT 1 WHERE a IN ({})", list.join(",")), None),
        ];
        let statements: Vec<_> = chains.chain(others).collect();
        let check = move || {
            for (sql, told) in statements {
                let refused = parse(&sql).err().map(|error| error.to_string());
                let is_right = match (&refused, told) {
                    (Some(refused), Some(told)) => refused.contains(told),
                    (refused, told) => refused.is_none() && told.is_none(),
                };
                assert!(is_right, "{}: {refused:?}", &sql[..40]);
            }
        };
        // The stack of the engine's threads.
        let thread = std::thread::Builder::new().stack_size(model::limits::QUERY_STACK_BYTES);
        thread.spawn(check).unwrap().join().unwrap();
    }
}

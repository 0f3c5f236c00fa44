//! Statements that the door answers itself: transactions, settings, cursors. Everything else is a DELETE or a query.
//!
//! A DELETE takes effect at once, so a transaction refuses it and changes only the reported transaction state. Every query sees the
//! rows that are stored when it begins.

use super::copy_statement::{self, CopyOptions};
use super::statement_error::{StatementError, syntax};
use super::words::Words;
use crate::statements::{tokens, unquoted};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Statement {
    /// Only blanks and comments.
    Empty,
    /// BEGIN, START TRANSACTION
    Begin,
    /// COMMIT, END
    Commit,
    /// ROLLBACK, ABORT
    Rollback,
    /// SAVEPOINT, RELEASE, ROLLBACK TO: accepted, with their tag.
    Savepoint(&'static str),
    /// SET name = value; no value is its default. Also RESET (name).
    Set {
        tag: &'static str,
        name: String,
        value: Option<String>,
    },
    /// RESET ALL, DISCARD ALL
    ResetAll {
        tag: &'static str,
    },
    Show {
        name: String,
    },
    /// DEALLOCATE name; none stands for all.
    Deallocate {
        name: Option<String>,
    },
    /// DECLARE name CURSOR FOR query
    Declare {
        cursor: String,
        query: String,
        binary: bool,
        hold: bool,
    },
    /// FETCH rows FROM name
    Fetch {
        cursor: String,
        rows: usize,
    },
    /// MOVE rows IN name
    Move {
        cursor: String,
        rows: usize,
    },
    /// CLOSE name; none stands for all.
    Close {
        cursor: Option<String>,
    },
    /// LISTEN, UNLISTEN, and others that change nothing here; the tag.
    Ignored(&'static str),
    Delete(String),
    /// COPY (query) TO STDOUT
    Copy {
        query: String,
        options: CopyOptions,
    },
    /// A query for the engine.
    Query(String),
}

impl Statement {
    /// The query for the engine, which runs now or when rows are fetched.
    pub(super) fn query(&self) -> Option<&str> {
        match self {
            Self::Query(query) | Self::Declare { query, .. } | Self::Copy { query, .. } => Some(query),
            _ => None,
        }
    }
}

/// Reads one statement.
pub(super) fn parse(text: &str) -> Result<Statement, StatementError> {
    let tokens = tokens(text);
    let mut words = Words { text, tokens: &tokens };
    let Some(first) = words.word() else {
        let empty = tokens.is_empty();
        return Ok(if empty { Statement::Empty } else { Statement::Query(text.into()) });
    };
    Ok(match first.as_str() {
        "begin" | "start" => Statement::Begin,
        "commit" | "end" => Statement::Commit,
        "rollback" | "abort" => {
            let to = std::iter::from_fn(|| words.word()).any(|word| word == "to");
            if to { Statement::Savepoint("ROLLBACK") } else { Statement::Rollback }
        }
        "savepoint" => Statement::Savepoint("SAVEPOINT"),
        "release" => Statement::Savepoint("RELEASE"),
        "set" => set(&mut words)?,
        "reset" => match words.name().as_deref() {
            None => return Err(syntax("RESET needs a name or ALL")),
            Some("all") => Statement::ResetAll { tag: "RESET" },
            Some(name) => Statement::Set { tag: "RESET", name: name.into(), value: None },
        },
        "discard" => Statement::ResetAll { tag: "DISCARD ALL" },
        "show" => show(text, &mut words),
        "deallocate" => {
            words.skip(&["prepare"]);
            Statement::Deallocate { name: all_or_name(&mut words, "DEALLOCATE")? }
        }
        "declare" => declare(&mut words)?,
        "fetch" => {
            let (cursor, rows) = fetch(&mut words)?;
            Statement::Fetch { cursor, rows }
        }
        "move" => {
            let (cursor, rows) = fetch(&mut words)?;
            Statement::Move { cursor, rows }
        }
        "delete" => Statement::Delete(text.into()),
        "copy" => {
            let (query, options) = copy_statement::parse(&mut words)?;
            Statement::Copy { query, options }
        }
        "close" => Statement::Close { cursor: all_or_name(&mut words, "CLOSE")? },
        "listen" => Statement::Ignored("LISTEN"),
        "unlisten" => Statement::Ignored("UNLISTEN"),
        "checkpoint" | "vacuum" | "analyze" | "prepare" | "execute" | "lock" | "do" | "call" => {
            let message =
                format!("{} is not there; SQL here reads, and deletes rows", first.to_ascii_uppercase());
            return Err(StatementError::Unsupported(message));
        }
        _ => Statement::Query(text.into()),
    })
}

/// `SET [SESSION | LOCAL] name {= | TO} value`, `SET TIME ZONE value`, `SET [SESSION CHARACTERISTICS AS] TRANSACTION ...`
fn set(words: &mut Words<'_>) -> Result<Statement, StatementError> {
    words.skip(&["session", "local"]);
    let name = words.name().ok_or_else(|| syntax("SET needs a name"))?;
    match name.as_str() {
        "transaction" | "characteristics" | "authorization" | "constraints" => {
            return Ok(Statement::Ignored("SET"));
        }
        "time" if words.skip(&["zone"]) => {
            return Ok(Statement::Set { tag: "SET", name: "timezone".into(), value: value(words.rest()) });
        }
        "names" => {
            return Ok(Statement::Set {
                tag: "SET",
                name: "client_encoding".into(),
                value: value(words.rest()),
            });
        }
        _ => {}
    }
    if !(words.symbol("=") || words.skip(&["to"])) {
        return Err(syntax("SET needs = or TO after the name"));
    }
    Ok(Statement::Set { tag: "SET", name, value: value(words.rest()) })
}

/// A single quoted value without its quotes; a list as it is written; nothing for DEFAULT.
fn value(written: &str) -> Option<String> {
    let single = tokens(written).len() == 1;
    match written {
        _ if written.eq_ignore_ascii_case("default") => None,
        quoted if single && quoted.starts_with(['\'', '"']) => Some(unquoted(quoted)),
        other => Some(other.to_owned()),
    }
}

/// `SHOW name`, `SHOW TIME ZONE`, `SHOW TRANSACTION ISOLATION LEVEL`; `SHOW TABLES` and the like are queries.
fn show(text: &str, words: &mut Words<'_>) -> Statement {
    match words.name().as_deref() {
        Some("tables" | "columns" | "functions" | "databases" | "schemas") | None => {
            Statement::Query(text.into())
        }
        Some("time") => Statement::Show { name: "timezone".into() },
        Some("transaction") => Statement::Show { name: "transaction_isolation".into() },
        Some("session") => Statement::Show { name: "session_authorization".into() },
        Some(name) => Statement::Show { name: name.into() },
    }
}

/// `DECLARE name [BINARY] [ASENSITIVE | INSENSITIVE] [[NO] SCROLL] CURSOR [{WITH | WITHOUT} HOLD] FOR query`
fn declare(words: &mut Words<'_>) -> Result<Statement, StatementError> {
    let cursor = words.name().ok_or_else(|| syntax("DECLARE needs the name of a cursor"))?;
    let (mut binary, mut hold, mut no) = (false, false, false);
    loop {
        let word = words.word().ok_or_else(|| syntax("DECLARE needs CURSOR FOR and a query"))?;
        match word.as_str() {
            "binary" => binary = true,
            "asensitive" | "insensitive" | "cursor" | "without" => {}
            "no" => no = true,
            "scroll" if no => {}
            "scroll" => {
                let message = "cursors go forward only; leave SCROLL out".to_owned();
                return Err(StatementError::Unsupported(message));
            }
            "with" => hold = true,
            "hold" => {}
            "for" => break,
            other => return Err(StatementError::Syntax(format!("{other:?} in DECLARE"))),
        }
    }
    Ok(Statement::Declare { cursor, query: words.rest().into(), binary, hold })
}

/// `FETCH [NEXT | FORWARD] [count | ALL] [FROM | IN] name`
fn fetch(words: &mut Words<'_>) -> Result<(String, usize), StatementError> {
    if words.skip(&["prior", "first", "last", "absolute", "relative", "backward"]) {
        return Err(StatementError::Unsupported("cursors go forward only: FETCH FORWARD count".into()));
    }
    words.skip(&["next", "forward"]);
    let rows = if words.skip(&["all"]) {
        usize::MAX
    } else {
        match words.number() {
            Some(digits) => digits.parse().map_err(|_| syntax("FETCH needs a number of rows"))?,
            None => 1,
        }
    };
    words.skip(&["from", "in"]);
    let cursor = words.name().ok_or_else(|| syntax("FETCH needs the name of a cursor"))?;
    Ok((cursor, rows))
}

fn all_or_name(words: &mut Words<'_>, what: &str) -> Result<Option<String>, StatementError> {
    if words.skip(&["all"]) {
        return Ok(None);
    }
    words.name().map(Some).ok_or_else(|| syntax(&format!("{what} needs a name or ALL")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(name: &str, value: Option<&str>) -> Statement {
        Statement::Set { tag: "SET", name: name.into(), value: value.map(str::to_owned) }
    }

    #[test]
    fn transactions_and_settings_are_parsed() {
        for (text, expected) in [
            ("", Statement::Empty),
            ("-- hello", Statement::Empty),
            ("BEGIN READ ONLY", Statement::Begin),
            ("start transaction isolation level serializable", Statement::Begin),
            ("COMMIT", Statement::Commit),
            ("ROLLBACK", Statement::Rollback),
            ("ROLLBACK TO SAVEPOINT \"a\"", Statement::Savepoint("ROLLBACK")),
            ("SET search_path = public, pg_catalog", set("search_path", Some("public, pg_catalog"))),
            ("SET DateStyle TO 'ISO'", set("datestyle", Some("ISO"))),
            ("SET SESSION statement_timeout TO 1000", set("statement_timeout", Some("1000"))),
            ("SET extra_float_digits = DEFAULT", set("extra_float_digits", None)),
            ("SET TIME ZONE 'UTC'", set("timezone", Some("UTC"))),
            ("SET NAMES 'utf8'", set("client_encoding", Some("utf8"))),
            ("SET my.setting = 1", set("my.setting", Some("1"))),
            ("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY", Statement::Ignored("SET")),
            ("RESET ALL", Statement::ResetAll { tag: "RESET" }),
            ("DISCARD ALL", Statement::ResetAll { tag: "DISCARD ALL" }),
            ("SHOW server_version", Statement::Show { name: "server_version".into() }),
            ("SHOW TRANSACTION ISOLATION LEVEL", Statement::Show { name: "transaction_isolation".into() }),
            ("SHOW TABLES", Statement::Query("SHOW TABLES".into())),
            ("DEALLOCATE PREPARE \"_pg3_0\"", Statement::Deallocate { name: Some("_pg3_0".into()) }),
            ("DEALLOCATE ALL", Statement::Deallocate { name: None }),
            ("CLOSE ALL", Statement::Close { cursor: None }),
            ("UNLISTEN *", Statement::Ignored("UNLISTEN")),
            ("SELECT 1", Statement::Query("SELECT 1".into())),
            ("delete from t where true", Statement::Delete("delete from t where true".into())),
            ("(SELECT 1)", Statement::Query("(SELECT 1)".into())),
            (
                "WITH a AS (SELECT 1) SELECT * FROM a",
                Statement::Query("WITH a AS (SELECT 1) SELECT * FROM a".into()),
            ),
        ] {
            assert_eq!(parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn cursors_are_parsed() {
        let declared = |binary, hold| Statement::Declare {
            cursor: "c 1".into(),
            query: "SELECT ';' -- x\n, 2".into(),
            binary,
            hold,
        };
        let query = "SELECT ';' -- x\n, 2";
        assert_eq!(parse(&format!("DECLARE \"c 1\" CURSOR FOR {query}")), Ok(declared(false, false)));
        let text = format!("declare \"c 1\" binary no scroll cursor with hold for {query}");
        assert_eq!(parse(&text), Ok(declared(true, true)));
        let fetch = |rows| Ok(Statement::Fetch { cursor: "c".into(), rows });
        assert_eq!(parse("FETCH FORWARD 100 FROM \"c\""), fetch(100));
        assert_eq!(parse("fetch all in c"), fetch(usize::MAX));
        assert_eq!(parse("FETCH NEXT c"), fetch(1));
        assert_eq!(parse("FETCH c"), fetch(1));
        assert_eq!(parse("MOVE 5 IN c"), Ok(Statement::Move { cursor: "c".into(), rows: 5 }));
        assert!(matches!(parse("FETCH BACKWARD 1 FROM c"), Err(StatementError::Unsupported(_))));
        assert!(matches!(parse("DECLARE c SCROLL CURSOR FOR x"), Err(StatementError::Unsupported(_))));
        assert!(matches!(parse("DECLARE c CURSOR"), Err(StatementError::Syntax(_))));
    }

    #[test]
    fn unsupported_statements_are_refused_by_name() {
        let Err(StatementError::Unsupported(message)) = parse("VACUUM t") else { panic!("taken") };
        assert_eq!(message, "VACUUM is not there; SQL here reads, and deletes rows");
        assert!(matches!(parse("SET x"), Err(StatementError::Syntax(_))));
    }
}

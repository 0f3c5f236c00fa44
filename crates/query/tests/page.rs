//! The examples of `docs/sql.md`.

use crate::support::{engine, fleet, run, text};

/// The blocks of one language, each with the block right after it if that shows rows.
fn examples(page: &str) -> Vec<(String, Option<String>)> {
    let mut examples: Vec<(String, Option<String>)> = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(language) = line.strip_prefix("```").filter(|language| !language.is_empty()) else {
            continue;
        };
        let block: Vec<_> = lines.by_ref().take_while(|line| *line != "```").collect();
        match language {
            "sql" => examples.push((block.join("\n"), None)),
            "text" => examples.last_mut().unwrap().1 = Some(block.join("\n")),
            // Commands, which another test types: tests/e2e/test_documented_commands.py.
            "sh" => {}
            other => panic!("a block of {other}"),
        }
    }
    examples
}

#[tokio::test]
async fn the_examples_give_the_rows_of_the_page() {
    let page = include_str!("../../../docs/sql.md");
    let engine = engine(fleet());
    let examples = examples(page);
    assert!(examples.len() >= 7, "{}", examples.len());
    for (sql, shown) in examples {
        let batches = run(&engine, &sql).await.unwrap_or_else(|error| panic!("{sql}\n{error}"));
        let rows: Vec<_> = text(&batches).into_iter().map(|row| row.join(" | ")).collect();
        assert_eq!(rows.join("\n"), shown.unwrap_or_default(), "{sql}");
    }
}

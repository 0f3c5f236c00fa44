//! The table of conformance of a protocol: each clause names the tests that hold it, or states why it has none.
//!
//! The check reads texts only: a test that was renamed or deleted, a clause that appears twice and one without an answer are findings.
//! It does not know whether a test holds its clause.

use std::collections::BTreeSet;

use crate::finding::Finding;

/// The page with the table.
pub(crate) const PAGE: &str = "docs/protocol/mqtt-conformance.md";
/// How a row begins that needs no test.
const WITHOUT_TEST: [&str; 3] = ["client: ", "absent: ", "none: "];

/// A row of the table: a clause and what holds it.
struct Row<'a> {
    line: usize,
    clause: &'a str,
    held_by: &'a str,
}

/// Checks the page. `read` returns the text of a file of the repository.
pub(crate) fn check(page: &str, read: impl Fn(&str) -> Option<String>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut seen = BTreeSet::new();
    let mut section = "";
    for (number, line) in (1..).zip(page.lines()) {
        if let Some(title) = line.strip_prefix("## ") {
            section = title;
        }
        let Some(row) = row(number, line) else { continue };
        if !seen.insert((section, row.clause)) {
            findings.push(finding(&row, "appears twice in its section", "unite the two rows"));
        }
        findings.extend(check_row(&row, &read));
    }
    if seen.is_empty() {
        let remedy = "write rows of the form `| clause | says | held by |`; a clause begins with a digit";
        findings.push(Finding::new(PAGE, 0, "the page has no row of a clause", remedy));
    }
    findings
}

fn row(line_number: usize, line: &str) -> Option<Row<'_>> {
    let cells: Vec<&str> = line.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ").collect();
    let [clause, _, held_by] = cells.as_slice() else { return None };
    let is_clause = clause.chars().next().is_some_and(|first| first.is_ascii_digit());
    is_clause.then_some(Row { line: line_number, clause, held_by })
}

fn check_row(row: &Row<'_>, read: &impl Fn(&str) -> Option<String>) -> Vec<Finding> {
    if WITHOUT_TEST.iter().any(|begin| row.held_by.starts_with(begin)) {
        return Vec::new();
    }
    let tests: Vec<&str> = row.held_by.split('`').skip(1).step_by(2).collect();
    if tests.is_empty() {
        let begins = WITHOUT_TEST.map(str::trim_end).join(", ");
        let remedy = format!("name a test, or begin the reason why there is none with one of {begins}");
        return vec![finding(row, "names no test in backticks", remedy)];
    }
    let missing = tests.iter().filter(|test| !exists(test, read));
    let remedy = "name the test as FILE::FUNCTION as it is now, or write one that holds the clause";
    let named =
        |test: &&str| finding(row, &format!("names {test}, which is not a test of the repository"), remedy);
    missing.map(named).collect()
}

/// Whether `FILE::NAME` is a test: the file has a function of that name.
fn exists(test: &str, read: &impl Fn(&str) -> Option<String>) -> bool {
    let Some((file, name)) = test.split_once("::") else { return false };
    let keyword = if file.ends_with(".py") { "def" } else { "fn" };
    read(file).is_some_and(|text| text.contains(&format!("{keyword} {name}(")))
}

fn finding(row: &Row<'_>, what: &str, remedy: impl Into<String>) -> Finding {
    Finding::new(PAGE, row.line, format!("clause {} {what}", row.clause), remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(page: &str) -> Vec<String> {
        let read = |file: &str| match file {
            "crates/a/tests/b.rs" => Some("#[test]\nfn holds() {}\n".to_owned()),
            "tests/e2e/c.py" => Some("def test_it(server):\n".to_owned()),
            _ => None,
        };
        check(page, read).iter().map(|finding| format!("{} {}", finding.line, finding.problem)).collect()
    }

    #[test]
    fn a_row_names_tests_that_exist_or_says_why_there_is_none() {
        let good = "# Title\n| clause | says | held by |\n|---|---|---|\n\
                    | 1.1-1 | x | `crates/a/tests/b.rs::holds`, `tests/e2e/c.py::test_it` |\n\
                    | 1.1-2 | x | client: it is the client that sends |\n";
        assert_eq!(findings(good), [] as [String; 0]);
        // The same clause of another version.
        assert_eq!(
            findings(&format!("{good}## Other\n| 1.1-1 | x | none: nothing to test |\n")),
            [] as [String; 0]
        );
        for (row, part) in [
            ("| 1.1-1 | x | `crates/a/tests/b.rs::gone` |", "1 clause 1.1-1 names crates/a/tests/b.rs::gone"),
            ("| 1.1-1 | x | `crates/a/tests/z.rs::holds` |", "not a test of the repository"),
            ("| 1.1-1 | x | `holds` |", "not a test of the repository"),
            ("| 1.1-1 | x | later |", "names no test in backticks"),
            ("| 1.1-1 | x | none: a |\n| 1.1-1 | x | none: a |", "2 clause 1.1-1 appears twice"),
            ("no table", "the page has no row"),
        ] {
            let found = findings(row);
            assert!(found.len() == 1 && found[0].contains(part), "{row}: {found:?}");
        }
    }
}

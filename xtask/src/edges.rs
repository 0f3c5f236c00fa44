//! Checks the dependencies between crates: compares the table of ARCHITECTURE.md with the manifests.

use std::collections::{BTreeMap, BTreeSet};

use crate::finding::Finding;
use crate::repository::{Dependency, Package};

const PAGE: &str = "ARCHITECTURE.md";
const HEADING: &str = "## Allowed edges";
/// Crates that tests may use in addition to their crate's row: the stores behind the code under test.
const TEST_ONLY: [&str; 4] = ["testkit", "store", "store-local", "kv"];

/// One row of the table.
#[derive(Debug, Default, PartialEq, Eq)]
struct Row {
    line: usize,
    may: BTreeSet<String>,
    never: BTreeSet<String>,
}

type Table = BTreeMap<String, Row>;

/// Compares the table in the text of ARCHITECTURE.md with the packages of the workspace.
pub(crate) fn check(page: &str, packages: &[Package]) -> Vec<Finding> {
    let (table, mut findings) = parse(page);
    let ours: BTreeSet<&str> = packages.iter().map(|package| package.name.as_str()).collect();
    findings.extend(check_names(&table, &ours));
    for package in packages {
        findings.extend(check_package(package, &table, &ours));
    }
    findings
}

/// The rows below the heading, and findings about rows that cannot be read.
fn parse(page: &str) -> (Table, Vec<Finding>) {
    let mut table = Table::new();
    let mut findings = Vec::new();
    let section = page
        .lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line.trim()))
        .skip_while(|(_, line)| *line != HEADING)
        .skip(1)
        .take_while(|(_, line)| !line.starts_with("## "));
    // The first two table lines are the column names and the ruler.
    for (line, text) in section.filter(|(_, text)| text.starts_with('|')).skip(2) {
        let cells: Vec<&str> = text.trim_matches('|').split('|').map(str::trim).collect();
        let [name, may, never] = cells.as_slice() else {
            let problem = format!("the row has {} columns, it must have 3", cells.len());
            findings.push(Finding::new(PAGE, line, problem, "write crate, may depend on, must never see"));
            continue;
        };
        let row = Row { line, may: names(may), never: in_backticks(never) };
        if table.insert((*name).to_owned(), row).is_some() {
            findings.push(Finding::new(
                PAGE,
                line,
                format!("a second row for `{name}`"),
                "merge the two rows",
            ));
        }
    }
    if table.is_empty() {
        let problem = format!("no table below `{HEADING}`");
        findings.push(Finding::new(PAGE, 0, problem, "restore the table of allowed edges"));
    }
    (table, findings)
}

fn names(cell: &str) -> BTreeSet<String> {
    cell.split(',').map(str::trim).filter(|name| *name != "-" && !name.is_empty()).map(Into::into).collect()
}

fn in_backticks(cell: &str) -> BTreeSet<String> {
    cell.split('`').skip(1).step_by(2).map(Into::into).collect()
}

/// Checks that every crate has a row, and that every name in the table is a crate.
fn check_names(table: &Table, ours: &BTreeSet<&str>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for name in ours.iter().filter(|name| !table.contains_key(**name)) {
        let problem = format!("crate `{name}` has no row in the table of allowed edges");
        findings.push(Finding::new(PAGE, 0, problem, "add its row, with the edges it must not have"));
    }
    for (name, row) in table {
        for unknown in std::iter::once(name).chain(&row.may).filter(|name| !ours.contains(name.as_str())) {
            let problem = format!("`{unknown}` is not a crate of this workspace");
            findings.push(Finding::new(PAGE, row.line, problem, "correct the name or remove it"));
        }
    }
    findings
}

fn check_package(package: &Package, table: &Table, ours: &BTreeSet<&str>) -> Vec<Finding> {
    let Some(row) = table.get(&package.name) else { return Vec::new() };
    let manifest = manifest_of(&package.name);
    let mut findings = Vec::new();
    for dependency in &package.dependencies {
        let Some(problem) = forbidden(dependency, row, ours) else { continue };
        let problem = format!("`{}` {problem} ({PAGE}:{})", package.name, row.line);
        findings.push(Finding::new(&manifest, 0, problem, REMEDY));
    }
    findings
}

const REMEDY: &str = "move the code to a crate that may, or pass it in as a value or trait; \
     if the edge itself is right, change the table and say why in an ADR";

/// The reason why a dependency is not allowed; `None` if it is allowed.
fn forbidden(dependency: &Dependency, row: &Row, ours: &BTreeSet<&str>) -> Option<String> {
    let name = dependency.name.as_str();
    let in_tests = dependency.kind.as_deref() == Some("dev");
    if in_tests && TEST_ONLY.contains(&name) {
        return None;
    }
    if !in_tests && name == "testkit" {
        return Some("has `testkit` as a normal dependency; it is for tests only".to_owned());
    }
    if row.never.contains(name) {
        return Some(format!("must never see `{name}`"));
    }
    if ours.contains(name) && !row.may.contains(name) {
        return Some(format!("may not depend on `{name}`"));
    }
    None
}

fn manifest_of(name: &str) -> String {
    if name == "xtask" { "xtask/Cargo.toml".to_owned() } else { format!("crates/{name}/Cargo.toml") }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
# Page
| not | this | table |

## Allowed edges

| crate | may depend on | must never see |
|---|---|---|
| model | - | `tokio`, files |
| hub | model | `wire` |
| wire | model | - |
| testkit | model | - |
| store-local | model | - |

## Next
| not | this | either |
";

    fn package(name: &str, edges: &[(&str, Option<&str>)]) -> Package {
        let dependencies = edges
            .iter()
            .map(|(name, kind)| Dependency { name: (*name).to_owned(), kind: kind.map(Into::into) })
            .collect();
        Package { name: name.to_owned(), dependencies }
    }

    fn problems(changed: Package) -> Vec<String> {
        let mut packages = vec![changed];
        for name in ["model", "hub", "wire", "testkit", "store-local"] {
            if packages[0].name != name {
                packages.push(package(name, &[]));
            }
        }
        check(TABLE, &packages).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn reads_only_the_rows_of_its_section() {
        let (table, findings) = parse(TABLE);
        assert_eq!(findings, []);
        assert_eq!(table.len(), 5);
        let hub = Row { line: 9, may: names("model"), never: names("wire") };
        assert_eq!(table["hub"], hub);
        assert!(table["model"].may.is_empty());
        assert_eq!(table["model"].never, names("tokio"));
    }

    #[test]
    fn accepts_the_edges_of_the_table() {
        let hub = package("hub", &[("model", None), ("serde", None), ("testkit", Some("dev"))]);
        assert_eq!(problems(hub), Vec::<String>::new());
        assert_eq!(problems(package("wire", &[("store-local", Some("dev"))])), Vec::<String>::new());
    }

    #[test]
    fn refuses_an_edge_that_is_not_in_the_table() {
        let found = problems(package("wire", &[("hub", None)]));
        assert_eq!(found.len(), 1);
        assert!(
            found[0]
                .starts_with("crates/wire/Cargo.toml: `wire` may not depend on `hub` (ARCHITECTURE.md:10)")
        );
        assert!(found[0].contains("remedy: "));
    }

    #[test]
    fn a_build_dependency_is_an_edge_too() {
        assert_eq!(problems(package("wire", &[("hub", Some("build"))])).len(), 1);
    }

    #[test]
    fn refuses_forbidden_crates_also_from_outside_the_workspace() {
        let found = problems(package("model", &[("tokio", None)]));
        assert!(found[0].contains("`model` must never see `tokio`"), "{found:?}");
        let found = problems(package("hub", &[("wire", Some("dev"))]));
        assert!(found[0].contains("`hub` must never see `wire`"), "{found:?}");
    }

    #[test]
    fn refuses_testkit_outside_tests() {
        let found = problems(package("hub", &[("testkit", None)]));
        assert!(found[0].contains("for tests only"), "{found:?}");
    }

    #[test]
    fn names_a_crate_without_a_row_and_a_row_without_a_crate() {
        let packages = [package("model", &[]), package("brand-new", &[])];
        let found: Vec<String> =
            check(TABLE, &packages).iter().map(|finding| finding.problem.clone()).collect();
        assert!(found.contains(&"crate `brand-new` has no row in the table of allowed edges".to_owned()));
        assert!(found.contains(&"`hub` is not a crate of this workspace".to_owned()));
    }

    #[test]
    fn names_a_row_of_another_shape_and_a_missing_table() {
        let page = TABLE.replace("| wire | model | - |", "| wire | model |");
        let (_, findings) = parse(&page);
        assert_eq!((findings[0].line, findings.len()), (10, 1));
        let (_, findings) = parse("# Page\n");
        assert!(findings[0].problem.contains("no table"));
    }
}

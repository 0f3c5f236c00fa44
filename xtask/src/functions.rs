//! Checks the tables that lead through the code: a function that a row names is defined in a file or folder of that row.
//!
//! The tables are those with the columns "function" and "where". A name is a function (`take`), a function of a type or trait
//! (`Hub::ingest`), a function of a module (`flusher::run`), or a type.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};

use crate::finding::Finding;

/// The page with the tables.
pub(crate) const PAGE: &str = "ARCHITECTURE.md";

const REMEDY: &str = "name the file or folder that defines it, or correct the name";

/// Checks the tables of a page. `sources` are the paths and texts of the crates' files.
pub(crate) fn check(page: &str, sources: &[(String, String)]) -> Vec<Finding> {
    let mut defined: BTreeMap<&str, Definitions> = BTreeMap::new();
    let mut findings = Vec::new();
    for row in rows(page) {
        let in_row = |path: &str| row.places.iter().any(|place| is_within(path, place));
        let files: Vec<&(String, String)> = sources.iter().filter(|(path, _)| in_row(path)).collect();
        for (path, text) in &files {
            defined.entry(path).or_insert_with(|| Definitions::of(text));
        }
        let is_defined = |name: &str| files.iter().any(|(path, _)| defined[path.as_str()].has(name));
        for name in row.names.iter().filter(|name| !is_defined(name)) {
            let problem = format!("`{name}` is not defined in {}", row.places.join(", "));
            findings.push(Finding::new(PAGE, row.line, problem, REMEDY));
        }
    }
    findings
}

/// A row: the names of its column "function" and the paths of its column "where".
struct Row<'a> {
    line: usize,
    names: Vec<&'a str>,
    places: Vec<&'a str>,
}

fn rows(page: &str) -> Vec<Row<'_>> {
    let mut rows = Vec::new();
    let mut columns = None;
    for (index, line) in page.lines().enumerate() {
        if !line.starts_with('|') {
            columns = None;
            continue;
        }
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let column = |title: &str| cells.iter().position(|cell| *cell == title);
        match columns {
            None => columns = Some(column("function").zip(column("where"))),
            Some(Some((function, place))) => {
                let spans = |column: usize| {
                    cells
                        .get(column)
                        .into_iter()
                        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
                        .collect()
                };
                rows.push(Row { line: index + 1, names: spans(function), places: spans(place) });
            }
            Some(None) => {}
        }
    }
    rows
}

/// Whether a path is a place, or lies below it.
fn is_within(path: &str, place: &str) -> bool {
    let place = place.trim_end_matches('/');
    path.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The names that a file defines.
#[derive(Default)]
struct Definitions {
    /// Functions that belong to no type, and types.
    free: BTreeSet<String>,
    /// Functions of types and traits: `Type::function`.
    of_types: BTreeSet<String>,
    /// The type and the trait whose functions are being visited.
    of: Vec<String>,
}

impl Definitions {
    /// The definitions of a source; none of a text that is not Rust, which another check names.
    fn of(text: &str) -> Self {
        let mut definitions = Self::default();
        if let Ok(file) = syn::parse_file(text) {
            definitions.visit_file(&file);
        }
        definitions
    }

    fn has(&self, name: &str) -> bool {
        let mut segments = name.rsplit("::");
        let (last, before) = (segments.next().unwrap_or(name), segments.next());
        match before.filter(|before| before.starts_with(|c: char| c.is_ascii_uppercase())) {
            Some(of) => self.of_types.contains(&format!("{of}::{last}")),
            None => self.free.contains(last),
        }
    }

    fn add(&mut self, name: &syn::Ident) {
        self.free.insert(name.to_string());
    }

    fn add_function(&mut self, name: &syn::Ident) {
        self.of_types.extend(self.of.iter().map(|of| format!("{of}::{name}")));
    }
}

impl<'a> Visit<'a> for Definitions {
    fn visit_item_fn(&mut self, item: &'a syn::ItemFn) {
        self.add(&item.sig.ident);
    }

    fn visit_item_struct(&mut self, item: &'a syn::ItemStruct) {
        self.add(&item.ident);
    }

    fn visit_item_enum(&mut self, item: &'a syn::ItemEnum) {
        self.add(&item.ident);
    }

    fn visit_item_impl(&mut self, item: &'a syn::ItemImpl) {
        let of_type = match &*item.self_ty {
            syn::Type::Path(path) => Some(&path.path),
            _ => None,
        };
        let of_trait = item.trait_.as_ref().map(|(path, _)| path);
        let last = |path: &syn::Path| path.segments.last().map(|segment| segment.ident.to_string());
        self.of = of_type.into_iter().chain(of_trait).filter_map(last).collect();
        visit::visit_item_impl(self, item);
        self.of.clear();
    }

    fn visit_impl_item_fn(&mut self, item: &'a syn::ImplItemFn) {
        self.add_function(&item.sig.ident);
    }

    fn visit_item_trait(&mut self, item: &'a syn::ItemTrait) {
        self.add(&item.ident);
        self.of = vec![item.ident.to_string()];
        visit::visit_item_trait(self, item);
        self.of.clear();
    }

    fn visit_trait_item_fn(&mut self, item: &'a syn::TraitItemFn) {
        self.add_function(&item.sig.ident);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(rows: &str) -> Vec<(usize, String)> {
        let sources = [
            (
                "crates/a/src/lib.rs",
                "pub fn open() {}\npub struct Hub<T>(T);\nimpl<T> Hub<T> { fn take(&self) {} }",
            ),
            (
                "crates/a/src/in/mod.rs",
                "impl Iterator for super::Rows<'_> { fn next(&mut self) {} }\nenum Wake {}",
            ),
            ("crates/a/src/in/run.rs", "trait Watch { fn progress(&self); }\nmod inner { fn run() {} }"),
            ("crates/a/src/inside.rs", "fn other() {}"),
        ];
        let sources = sources.map(|(path, text)| (path.to_owned(), text.to_owned()));
        let page = format!("# Page\n\n| step | function | where |\n|---|---|---|\n{rows}");
        check(&page, &sources).into_iter().map(|finding| (finding.line, finding.problem)).collect()
    }

    #[test]
    fn functions_and_types_are_found_in_the_places_of_their_row() {
        let rows = "\
            | 1. Opens. | `open`, `Hub::take`, `Hub` | `crates/a/src/lib.rs` |\n\
            | 2. Runs. | `Rows::next`, `Iterator::next`, `Watch::progress`, `run::run`, `Wake` | `crates/a/src/in/` |\n\
            | 3. Both. | `a::open`, `Watch` | `crates/a/src/lib.rs`, `crates/a/src/in/run.rs` |\n";
        assert_eq!(found(rows), []);
    }

    #[test]
    fn a_function_elsewhere_or_of_another_type_is_named() {
        let rows = "\
            | 1. Opens. | `Hub::open` | `crates/a/src/lib.rs` |\n\
            | 2. Takes. | `take` | `crates/a/src/lib.rs` |\n\
            | 3. Other. | `other`, `Wake` | `crates/a/src/in` |\n";
        let expected = [
            (5, "`Hub::open` is not defined in crates/a/src/lib.rs"),
            (6, "`take` is not defined in crates/a/src/lib.rs"),
            (7, "`other` is not defined in crates/a/src/in"),
        ];
        assert_eq!(found(rows), expected.map(|(line, problem)| (line, problem.to_owned())));
    }

    #[test]
    fn other_tables_are_not_read() {
        assert_eq!(found("\n| crate | function |\n|---|---|\n| x | `gone` |\n"), []);
    }
}

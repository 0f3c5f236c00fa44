//! Checks that each result bundle is cited by a page, and that each cited bundle exists. A page changes its citation in the
//! commit that replaces a bundle.

use std::collections::BTreeSet;

use crate::finding::Finding;

/// The directory of the bundles.
const DIRECTORY: &str = "docs/bench/runs/";

/// Compares the bundles among `files` with the citations of `pages` (path and text).
pub(crate) fn check(files: &[String], pages: &[(String, String)]) -> Vec<Finding> {
    let bundles: BTreeSet<&str> = files
        .iter()
        .filter_map(|file| file.strip_prefix(DIRECTORY)?.split_once('/'))
        .map(|(bundle, _)| bundle)
        .collect();
    let mut cited = BTreeSet::new();
    let mut findings = Vec::new();
    for (page, text) in pages {
        for (index, line) in text.lines().enumerate() {
            for citation in citations(line) {
                let named: Vec<&str> =
                    bundles.iter().copied().filter(|bundle| names(citation, bundle)).collect();
                if named.is_empty() {
                    let problem = format!("cites the bundle `{citation}`, which does not exist");
                    findings.push(Finding::new(page, index + 1, problem, "cite the bundle that replaces it"));
                }
                cited.extend(named);
            }
        }
    }
    for bundle in bundles.difference(&cited) {
        let remedy = "cite it in the page that shows its figures, or remove it";
        findings.push(Finding::new(&format!("{DIRECTORY}{bundle}"), 0, "no page cites this bundle", remedy));
    }
    findings
}

/// The bundles that a line cites: what follows the directory, up to the end of the name. `*` at the end stands for any rest.
fn citations(line: &str) -> impl Iterator<Item = &str> {
    line.split(DIRECTORY).skip(1).filter_map(|rest| {
        let end =
            rest.find(|c: char| !(c.is_ascii_alphanumeric() || "-_.*".contains(c))).unwrap_or(rest.len());
        let name = rest[..end].trim_end_matches('.');
        (!name.is_empty()).then_some(name)
    })
}

fn names(citation: &str, bundle: &str) -> bool {
    match citation.strip_suffix('*') {
        Some(start) => bundle.starts_with(start),
        None => citation == bundle,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(bundles: &[&str], page: &str) -> Vec<String> {
        let files: Vec<String> =
            bundles.iter().map(|bundle| format!("docs/bench/runs/{bundle}/result.json")).collect();
        let pages = [("docs/bench/figures.md".to_owned(), page.to_owned())];
        check(&files, &pages).iter().map(|finding| format!("{}: {}", finding.file, finding.problem)).collect()
    }

    #[test]
    fn a_cited_bundle_that_exists_is_right_also_by_a_pattern_and_in_a_sentence() {
        let page = "see `docs/bench/runs/1-a/result.json` and docs/bench/runs/2-b.\n`docs/bench/runs/3-*`";
        assert_eq!(found(&["1-a", "2-b", "3-c", "3-d"], page), Vec::<String>::new());
    }

    #[test]
    fn both_directions_are_checked() {
        let expected = [
            "docs/bench/figures.md: cites the bundle `2-b`, which does not exist",
            "docs/bench/runs/1-a: no page cites this bundle",
        ];
        assert_eq!(found(&["1-a"], "`docs/bench/runs/2-b`"), expected);
    }

    #[test]
    fn the_directory_alone_cites_nothing() {
        let problem = "docs/bench/runs/1-a: no page cites this bundle";
        assert_eq!(found(&["1-a"], "`docs/bench/runs/` has them"), [problem]);
    }
}

//! Checks that the paths exist which pages name.

use std::collections::BTreeSet;

use crate::finding::Finding;

/// File extensions that make any name with a slash a path.
const FILE_ENDINGS: [&str; 8] = [".md", ".rs", ".toml", ".ts", ".py", ".json", ".lock", ".csv"];

/// Whether a file is a page whose paths are checked.
pub(crate) fn is_checked(file: &str) -> bool {
    matches!(file, "README.md" | "ARCHITECTURE.md" | "CONTRIBUTING.md")
        || (file.starts_with("docs/") && file.ends_with(".md"))
}

/// Checks one page. `top_level` are the first components of the repository's paths; `missing` indicates whether a path of the
/// repository does not exist.
pub(crate) fn check(
    file: &str,
    text: &str,
    top_level: &BTreeSet<String>,
    missing: impl Fn(&str) -> bool,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut in_fence = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_fence = !in_fence;
        }
        if in_fence {
            continue;
        }
        let named = code_spans(line).into_iter().filter(|span| is_path(span, top_level)).map(fixed_part);
        let gone = named.filter(|path| missing(path) && missing(&beside(file, path)));
        let broken = link_targets(line).into_iter().filter(|target| missing(&beside(file, target)));
        for path in gone.chain(broken) {
            let problem = format!("names `{path}`, which does not exist");
            findings.push(Finding::new(
                file,
                index + 1,
                problem,
                "correct the path, or remove what the page says of it",
            ));
        }
    }
    findings
}

/// The texts between single backticks.
fn code_spans(line: &str) -> Vec<&str> {
    line.split('`').skip(1).step_by(2).collect()
}

/// The targets of links to files, without their `#section`.
fn link_targets(line: &str) -> Vec<&str> {
    line.split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')'))
        .map(|(target, _)| target.split('#').next().unwrap_or_default())
        .filter(|target| !target.is_empty() && !target.contains("://") && !target.starts_with("mailto:"))
        .collect()
}

/// Whether a text is a relative path of this repository, and not a command, a URL path, a topic or a fraction.
fn is_path(span: &str, top_level: &BTreeSet<String>) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-*<>{},".contains(c);
    if span.starts_with('/') || !span.chars().all(plain) {
        return false;
    }
    match span.split_once('/') {
        Some((first, _)) => {
            top_level.contains(first) || FILE_ENDINGS.iter().any(|ending| span.ends_with(ending))
        }
        None => false,
    }
}

/// The path before the first pattern: `docs/adr/*.md` means that `docs/adr` exists.
fn fixed_part(path: &str) -> &str {
    match path.find(['*', '<', '{']) {
        Some(pattern) => path[..pattern].rsplit_once('/').map_or("", |(directory, _)| directory),
        None => path.trim_end_matches('/'),
    }
}

/// The path relative to the page's directory, with `..` resolved.
fn beside(file: &str, path: &str) -> String {
    let directory = file.rsplit_once('/').map_or("", |(directory, _)| directory);
    let mut parts: Vec<&str> = Vec::new();
    for part in directory.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(file: &str, text: &str) -> Vec<(usize, String)> {
        let top_level = BTreeSet::from(["docs".to_owned(), "crates".to_owned()]);
        let existing = ["docs", "docs/format", "docs/format/log.md", "crates/wire/src/lib.rs", "README.md"];
        let missing = |path: &str| !existing.contains(&path);
        check(file, text, &top_level, missing)
            .into_iter()
            .map(|finding| (finding.line, finding.problem))
            .collect()
    }

    #[test]
    fn accepts_paths_that_exist() {
        let text = "See `docs/format/log.md`, `docs/format/*.md`, `docs/format/`\nand [the codec](crates/wire/src/lib.rs).";
        assert_eq!(found("README.md", text), []);
        assert_eq!(found("docs/format/part.md", "[log](log.md#records), [top](../../README.md)"), []);
    }

    #[test]
    fn names_the_line_of_a_path_that_does_not_exist() {
        let expected = [(2, "names `docs/format/gone.md`, which does not exist".to_owned())];
        assert_eq!(found("README.md", "first\nsee `docs/format/gone.md`"), expected);
        assert_eq!(found("README.md", "`elsewhere/x.toml`").len(), 1);
        assert_eq!(found("docs/format/part.md", "[log](gone.md)").len(), 1);
    }

    #[test]
    fn ignores_text_that_is_not_a_path() {
        let text = "`v1/devices/me/telemetry` `/api/v1/x.json` `cargo run docs/x` `1/2` `log.md` <https://a.b/c.md> \
                    [site](https://a.b/c.md)\n```\n`docs/gone.md`\n```\n";
        assert_eq!(found("README.md", text), []);
    }
}

//! Refuses imports between modules that are side by side, such as the commands of the program: what two of them share
//! belongs below both.

use crate::finding::Finding;
use crate::imports::Arrows;

/// Folders whose modules do not import each other.
const FOLDERS: [&str; 1] = ["crates/tacho/src/commands/"];

const REMEDY: &str = "move what both need out of the folder";

/// Findings for the arrows of one crate.
pub(crate) fn check(arrows: &Arrows) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (from, targets) in arrows {
        for (to, names) in targets {
            let modules =
                FOLDERS.iter().find_map(|folder| Some((module(folder, from)?, module(folder, to)?)));
            let Some((one, other)) = modules.filter(|(one, other)| one != other) else { continue };
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let problem = format!("`{one}` imports `{other}` beside it: {}", names.join(", "));
            findings.push(Finding::new(from, 0, problem, REMEDY));
        }
    }
    findings
}

/// The module of a folder that a file belongs to; `None` for files outside and for the folder's own `mod.rs`.
fn module<'a>(folder: &str, file: &'a str) -> Option<&'a str> {
    let below = file.strip_prefix(folder)?;
    let first = below.split('/').next()?.trim_end_matches(".rs");
    (first != "mod").then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::imports::{Source, arrows};

    #[test]
    fn a_command_that_imports_another_is_named() {
        let root = "crates/tacho/src/";
        let files = [
            ("main.rs", "mod cli;\nmod commands;\nmod output;"),
            ("cli.rs", "use crate::commands::demo;\nfn f() { demo::run() }"),
            ("output.rs", "pub(crate) fn say() {}"),
            ("commands/mod.rs", "pub(crate) mod demo;\npub(crate) mod serve;"),
            (
                "commands/demo.rs",
                "use super::serve::start;\nuse crate::output::say;\npub(crate) fn run() { start() }",
            ),
            ("commands/serve/mod.rs", "mod signals;\npub(crate) fn start() { signals::wait() }"),
            ("commands/serve/signals.rs", "pub(crate) fn wait() {}"),
        ];
        let files = files.map(|(path, text)| (format!("{root}{path}"), text));
        let sources: Vec<Source<'_>> = files.iter().map(|(path, text)| Source { path, text }).collect();
        let found = check(&arrows(root, &sources).unwrap());
        let problems: Vec<&str> = found.iter().map(|finding| finding.problem.as_str()).collect();
        assert_eq!(problems, ["`demo` imports `serve` beside it: start"]);
    }
}

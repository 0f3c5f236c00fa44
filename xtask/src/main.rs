//! `cargo xtask tidy`: checks the repository itself.
//!
//! Each check is a function from texts to findings, so it can be tested without a repository. This file reads the real
//! repository and prints the findings.

mod bundles;
mod circles;
mod conformance;
mod docs;
mod edges;
mod finding;
mod folders;
mod functions;
mod graph;
mod imports;
mod repository;
mod siblings;
mod sources;

use std::io::Write;
use std::process::ExitCode;

use finding::Finding;
use repository::{Problem, Repository};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["tidy"] => report(tidy(&Repository::this())),
        _ => {
            eprintln!("usage: cargo xtask tidy");
            ExitCode::from(2)
        }
    }
}

/// Runs all checks on a repository.
fn tidy(repository: &Repository) -> Result<Vec<Finding>, Problem> {
    let mut findings = edges::check(&repository.read("ARCHITECTURE.md")?, &repository.packages()?);
    let files = repository.files()?;
    let mut pages = Vec::new();
    for file in files.iter().filter(|file| docs::is_checked(file)) {
        let missing = |path: &str| !repository.has(&files, path);
        let text = repository.read(file)?;
        findings.extend(docs::check(file, &text, &repository.top_level(&files), missing));
        pages.push((file.clone(), text));
    }
    findings.extend(bundles::check(&files, &pages));
    for file in files.iter().filter(|file| sources::is_checked(file)) {
        // A file that is not text (a picture, a sample of a binary format) has no lines to check.
        if let Some(text) = repository.read_text(file)? {
            findings.extend(sources::check(file, &text));
        }
    }
    let rust = rust(repository, &files)?;
    findings.extend(circles::check(&rust));
    findings.extend(functions::check(&repository.read(functions::PAGE)?, &rust));
    let read = |file: &str| repository.read_text(file).ok().flatten();
    findings.extend(conformance::check(&repository.read(conformance::PAGE)?, read));
    Ok(findings)
}

/// The sources of the crates: paths and texts.
fn rust(repository: &Repository, files: &[String]) -> Result<Vec<(String, String)>, Problem> {
    let sources = files.iter().filter(|file| circles::root(file).is_some());
    sources.map(|file| Ok((file.clone(), repository.read(file)?))).collect()
}

fn report(outcome: Result<Vec<Finding>, Problem>) -> ExitCode {
    match outcome {
        Ok(findings) if findings.is_empty() => {
            let _ = writeln!(std::io::stdout(), "tidy: nothing to mend");
            ExitCode::SUCCESS
        }
        Ok(findings) => {
            for finding in &findings {
                eprintln!("{finding}");
            }
            eprintln!("tidy: {} to mend", findings.len());
            ExitCode::FAILURE
        }
        Err(problem) => {
            eprintln!("tidy could not look: {problem}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_repository_is_tidy() {
        let findings = tidy(&Repository::this()).unwrap();
        let lines: Vec<String> = findings.iter().map(ToString::to_string).collect();
        assert!(lines.is_empty(), "\n{}\n", lines.join("\n"));
    }
}

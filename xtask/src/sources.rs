//! Checks source files: no paths of one machine, no unfinished or disabled code, no files with two subjects.

use crate::finding::Finding;

/// Most lines of a Rust file outside tests. A longer file has a second subject, which needs a file of its own.
const MOST_LINES: usize = 600;

/// Directories of one machine. They are written in pieces, so that this file passes its own check.
const MACHINE_DIRECTORIES: [&str; 3] = [concat!("/ro", "ot/"), concat!("/wo", "rk/"), concat!("/ho", "me/")];

/// Unfinished or disabled code, in pieces for the same reason.
const UNFINISHED: [(&str, &str); 3] = [
    (concat!("to", "do!("), "finish it, or say in the docs that it is absent"),
    (concat!("unimple", "mented!("), "finish it, or say in the docs that it is absent"),
    (concat!("#[ig", "nore"), "make the test quick and sure enough to run every time, or remove it"),
];

/// Marks that `git merge` leaves at both sides of a conflict, in pieces for the same reason.
const CONFLICT_MARKS: [&str; 2] = [concat!("<<<<", "<<< "), concat!(">>>>", ">>> ")];

/// Whether a file is checked. Lock files are written by tools.
pub(crate) fn is_checked(file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or(file);
    !matches!(name, "Cargo.lock" | "package-lock.json")
}

pub(crate) fn check(file: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for directory in MACHINE_DIRECTORIES.into_iter().filter(|directory| names_directory(line, directory))
        {
            let problem = format!("a path of one machine ({directory}...)");
            findings.push(Finding::new(
                file,
                index + 1,
                problem,
                "use a path relative to the repository or an argument",
            ));
        }
        if CONFLICT_MARKS.into_iter().any(|mark| line.starts_with(mark)) {
            let problem = "a mark of a merge conflict".to_owned();
            findings.push(Finding::new(file, index + 1, problem, "keep one side and remove the marks"));
        }
        for (word, remedy) in UNFINISHED {
            if file.ends_with(".rs") && line.contains(word) {
                findings.push(Finding::new(file, index + 1, format!("`{word}` in a source"), remedy));
            }
        }
    }
    let lines = text.lines().count();
    if file.ends_with(".rs") && lines > MOST_LINES && !is_test(file) {
        let problem = format!("{lines} lines, more than {MOST_LINES}");
        findings.push(Finding::new(
            file,
            0,
            problem,
            "move its second responsibility into a file of its own",
        ));
    }
    findings
}

/// Whether a line names the directory at the beginning of a path, and not within a longer path.
fn names_directory(line: &str, directory: &str) -> bool {
    line.match_indices(directory).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "._-}~)".contains(c))
    })
}

fn is_test(file: &str) -> bool {
    file.split('/').any(|part| matches!(part, "tests" | "tests.rs" | "benches" | "fuzz"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(file: &str, text: &str) -> Vec<(usize, String)> {
        check(file, text).into_iter().map(|finding| (finding.line, finding.problem)).collect()
    }

    #[test]
    fn names_a_machine_path_in_any_text() {
        let text = format!("data = here\nfile = \"{}x\"\n", MACHINE_DIRECTORIES[0]);
        assert_eq!(found("config/a.toml", &text).len(), 1);
        assert_eq!(found("config/a.toml", &text)[0].0, 2);
        let inside = format!("see site{}x", MACHINE_DIRECTORIES[1]);
        assert_eq!(found("config/a.toml", &inside), []);
    }

    #[test]
    fn names_a_conflict_that_nobody_solved() {
        let text = format!("one\n{}HEAD\n", CONFLICT_MARKS[0]);
        assert_eq!(found("docs/a.md", &text), [(2, "a mark of a merge conflict".to_owned())]);
    }

    #[test]
    fn names_unfinished_and_switched_off_code_in_rust_only() {
        for (word, _) in UNFINISHED {
            assert_eq!(found("crates/a/src/lib.rs", word).len(), 1, "{word}");
            assert_eq!(found("docs/a.md", word), []);
        }
    }

    #[test]
    fn names_a_rust_file_that_is_too_long_unless_it_is_a_test() {
        let long = "\n".repeat(MOST_LINES + 1);
        assert_eq!(found("crates/a/src/lib.rs", &long), [(0, "601 lines, more than 600".to_owned())]);
        assert_eq!(found("crates/a/src/lib.rs", &"\n".repeat(MOST_LINES)), []);
        assert_eq!(found("crates/a/tests/main.rs", &long), []);
        assert_eq!(found("crates/a/src/codec/tests.rs", &long), []);
    }

    #[test]
    fn skips_files_that_tools_write() {
        assert!(!is_checked("Cargo.lock"));
        assert!(!is_checked("dashboard/package-lock.json"));
        assert!(is_checked("dashboard/package.json"));
    }
}

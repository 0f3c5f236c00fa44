//! Refuses circles: files of one crate that import each other. To understand one of them, a reader must read them all.
//! The imports of a crate are read once, so this file also asks `folders.rs` and `siblings.rs`.

use std::collections::{BTreeMap, BTreeSet};

use crate::finding::Finding;
use crate::folders;
use crate::graph::circles;
use crate::imports::{self, Arrows, Source};
use crate::siblings;

/// The allowed circles. A library's trait or the language forces them.
const FORCED: [Forced; 0] = [];

/// An allowed circle.
struct Forced {
    /// All files of the circle.
    files: &'static [&'static str],
}

const REMEDY: &str = "move what both need into a file below them, or hand it over as an argument";

/// The source folder of a file's crate; `None` if the file is not checked.
pub(crate) fn root(file: &str) -> Option<&str> {
    let (before, below) = file.split_once("/src/")?;
    let is_source = below.ends_with(".rs") && !below.starts_with("bin/");
    is_source.then(|| &file[..before.len() + "/src/".len()])
}

/// Checks all crates. `files` are paths and texts.
pub(crate) fn check(files: &[(String, String)]) -> Vec<Finding> {
    let mut crates: BTreeMap<&str, Vec<Source<'_>>> = BTreeMap::new();
    for (path, text) in files {
        if let Some(root) = root(path) {
            crates.entry(root).or_default().push(Source { path, text });
        }
    }
    crates.iter().flat_map(|(root, sources)| check_crate(root, sources)).collect()
}

fn check_crate(root: &str, sources: &[Source<'_>]) -> Vec<Finding> {
    let arrows = match imports::arrows(root, sources) {
        Ok(arrows) => arrows,
        Err((file, error)) => {
            let line = error.span().start().line;
            return vec![Finding::new(&file, line, format!("not Rust: {error}"), "mend the syntax")];
        }
    };
    let forced = |circle: &BTreeSet<&str>| {
        FORCED.iter().any(|forced| forced.files.iter().copied().collect::<BTreeSet<_>>() == *circle)
    };
    let circles = circles(&arrows);
    let circles = circles.iter().filter(|circle| !forced(circle)).map(|circle| finding(circle, &arrows));
    circles.chain(folders::check(root, &arrows)).chain(siblings::check(&arrows)).collect()
}

fn finding(circle: &BTreeSet<&str>, arrows: &Arrows) -> Finding {
    let mut problem = format!("{} files import each other in a circle", circle.len());
    for from in circle {
        for (to, names) in arrows[*from].iter().filter(|(to, _)| circle.contains(to.as_str())) {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            problem.push_str(&format!("\n    {from} -> {to}: {}", names.join(", ")));
        }
    }
    Finding::new(circle.first().expect("BUG: a circle has files"), 0, problem, REMEDY)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_texts(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<(String, String)> =
            files.iter().map(|(path, text)| (format!("crates/x/src/{path}"), (*text).to_owned())).collect();
        check(&files).into_iter().map(|finding| finding.problem).collect()
    }

    #[test]
    fn a_circle_is_named_with_the_names_that_close_it() {
        let files = [
            ("lib.rs", "mod a;\nmod b;\nmod c;\nmod d;"),
            ("a.rs", "use crate::b::B;\npub struct A;"),
            ("b.rs", "use crate::c::C;\npub struct B;"),
            ("c.rs", "use crate::a::A;\nuse crate::d::D;\npub struct C;"),
            ("d.rs", "pub struct D;"),
        ];
        let ties = "\n    crates/x/src/a.rs -> crates/x/src/b.rs: B\n    crates/x/src/b.rs -> crates/x/src/c.rs: C\n    crates/x/src/c.rs -> crates/x/src/a.rs: A";
        assert_eq!(check_texts(&files), [format!("3 files import each other in a circle{ties}")]);
    }

    #[test]
    fn a_parent_that_hands_names_on_is_in_no_circle_but_one_that_defines_some_is() {
        let child = ("a/b.rs", "use super::A;\npub(crate) struct B(A);");
        let only_hands_on =
            [("lib.rs", "mod a;"), ("a/mod.rs", "mod b;\npub(crate) use b::B;\npub(crate) struct A;"), child];
        assert_eq!(check_texts(&only_hands_on), [""; 0]);
        let uses =
            [("lib.rs", "mod a;"), ("a/mod.rs", "mod b;\npub(crate) struct A;\nfn f(_: b::B) {}"), child];
        assert_eq!(check_texts(&uses).len(), 1);
    }

    #[test]
    fn files_that_are_not_rust_are_named() {
        assert_eq!(check_texts(&[("lib.rs", "mod a;\nfn")])[0].split(':').next(), Some("not Rust"));
    }
}

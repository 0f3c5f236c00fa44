//! Refuses circles of folders: the files and folders directly below one folder must not import each other in a circle, at
//! any depth of a crate. A reader can then understand a folder after the folders below it, and a folder can be moved.
//!
//! The arrows of the files are cut at the level of the folder. Its own `mod.rs` (or `lib.rs`, `main.rs`) is outside: it
//! joins what lies below.

use std::collections::{BTreeMap, BTreeSet};

use crate::finding::Finding;
use crate::graph::circles;
use crate::imports::Arrows;

const REMEDY: &str = "move what both need into a file or folder beside them, or hand it over as an argument";

/// Findings for the arrows of one crate, whose sources lie below `root` (`crates/x/src/`).
pub(crate) fn check(root: &str, arrows: &Arrows) -> Vec<Finding> {
    folders(root, arrows).into_iter().flat_map(|folder| check_folder(root, folder, arrows)).collect()
}

/// The folders of the crate's files, each with a slash at its end.
fn folders<'a>(root: &str, arrows: &'a Arrows) -> BTreeSet<&'a str> {
    let mut folders = BTreeSet::new();
    for file in arrows.keys().filter(|file| file.starts_with(root)) {
        let slashes = file.match_indices('/').map(|(at, _)| &file[..=at]);
        folders.extend(slashes.filter(|folder| folder.len() >= root.len()));
    }
    folders
}

fn check_folder(root: &str, folder: &str, arrows: &Arrows) -> Vec<Finding> {
    let mut cut = Arrows::new();
    let mut ties: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
    for (from, targets) in arrows {
        let Some(one) = child(root, folder, from) else { continue };
        let of_one = cut.entry(one.to_owned()).or_default();
        for (to, names) in targets {
            let Some(other) = child(root, folder, to).filter(|other| *other != one) else { continue };
            of_one.entry(other.to_owned()).or_default().extend(names.iter().cloned());
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            ties.entry((one, other)).or_default().push(format!("{from} -> {to}: {}", names.join(", ")));
        }
    }
    // A circle of files alone is a finding of `circles.rs`.
    let is_folder = |node: &&str| !arrows.contains_key(&format!("{node}.rs"));
    let knots = circles(&cut).into_iter().filter(|knot| knot.iter().any(is_folder));
    knots.map(|knot| finding(folder, &knot, &ties)).collect()
}

/// The file or folder directly below `folder` that a file belongs to, without `.rs`; `None` for files outside and for
/// the file that is the folder's own module.
fn child<'a>(root: &str, folder: &str, file: &'a str) -> Option<&'a str> {
    let below = file.strip_prefix(folder)?;
    let own: &[&str] = if folder == root { &["lib.rs", "main.rs"] } else { &["mod.rs"] };
    if own.contains(&below) {
        return None;
    }
    match below.find('/') {
        Some(slash) => Some(&file[..folder.len() + slash]),
        None => file.strip_suffix(".rs"),
    }
}

fn finding(folder: &str, knot: &BTreeSet<&str>, ties: &BTreeMap<(&str, &str), Vec<String>>) -> Finding {
    let names: Vec<&str> = knot.iter().map(|node| &node[folder.len()..]).collect();
    let mut problem = format!("{} import each other in a circle", names.join(", "));
    for ((one, other), arrows) in ties {
        if knot.contains(one) && knot.contains(other) {
            arrows.iter().for_each(|arrow| problem.push_str(&format!("\n    {arrow}")));
        }
    }
    Finding::new(folder.trim_end_matches('/'), 0, problem, REMEDY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::imports::{Source, arrows};

    const ROOT: &str = "crates/x/src/";

    fn found(files: &[(&str, &str)]) -> Vec<(String, String)> {
        let files: Vec<(String, &str)> =
            files.iter().map(|(path, text)| (format!("{ROOT}{path}"), *text)).collect();
        let sources: Vec<Source<'_>> = files.iter().map(|(path, text)| Source { path, text }).collect();
        let findings = check(ROOT, &arrows(ROOT, &sources).unwrap());
        findings.into_iter().map(|finding| (finding.file, finding.problem)).collect()
    }

    #[test]
    fn a_circle_of_folders_without_a_circle_of_files_is_named_with_its_arrows() {
        let files = [
            ("lib.rs", "mod a;\nmod b;\nmod c;"),
            ("a/mod.rs", "mod one;\nmod two;\npub(crate) use one::One;"),
            ("a/one.rs", "use crate::b::{B, make};\npub(crate) struct One(B);"),
            ("a/two.rs", "pub(crate) struct Two;"),
            (
                "b.rs",
                "use crate::a::two::Two;\nuse crate::c::C;\npub(crate) struct B(Two);\npub(crate) fn make() {}",
            ),
            ("c.rs", "pub(crate) struct C;"),
        ];
        let problem = "a, b import each other in a circle\
                       \n    crates/x/src/a/one.rs -> crates/x/src/b.rs: B, make\
                       \n    crates/x/src/b.rs -> crates/x/src/a/two.rs: Two";
        assert_eq!(found(&files), [("crates/x/src".to_owned(), problem.to_owned())]);
    }

    #[test]
    fn a_circle_deep_below_is_named_at_its_folder() {
        let files = [
            ("lib.rs", "mod a;"),
            ("a/mod.rs", "mod b;\nmod c;\nmod d;"),
            ("a/b/mod.rs", "use super::c::C;\npub(crate) struct B(C);"),
            ("a/c/mod.rs", "mod inner;\npub(crate) use inner::C;"),
            ("a/c/inner.rs", "pub(crate) struct C;"),
            ("a/c/other.rs", "use crate::a::d::D;"),
            ("a/d.rs", "use super::b::B;\npub(crate) struct D(B);"),
        ];
        let found = found(&files);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].0, "crates/x/src/a");
        assert_eq!(found[0].1.lines().next(), Some("b, c, d import each other in a circle"));
    }

    #[test]
    fn the_modules_of_a_folder_itself_are_outside() {
        let files = [
            ("lib.rs", "mod a;\npub(crate) struct Root;\nfn f(_: a::A, _: a::b::B) {}"),
            ("a/mod.rs", "mod b;\nmod c;\nuse crate::Root;\npub(crate) struct A(Root, b::B);"),
            ("a/b/mod.rs", "use super::super::Root;\nmod e;\npub(crate) struct B(Root);"),
            ("a/b/e.rs", "use crate::a::A;"),
            ("a/c.rs", "use super::b::B;\nuse crate::Root;"),
        ];
        assert_eq!(found(&files), []);
    }

    #[test]
    fn a_circle_of_files_is_left_to_the_check_of_files() {
        let files = [
            ("lib.rs", "mod a;\nmod b;"),
            ("a.rs", "use crate::b::B;\npub(crate) struct A;"),
            ("b.rs", "use crate::a::A;\npub(crate) struct B;"),
        ];
        assert_eq!(found(&files), []);
    }
}

//! Which sensors of a directory can run together: each name once, each sensor that one reads is there, and none reads itself by
//! way of others.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// A sensor of a file.
#[derive(Debug)]
pub(crate) struct Node<'a> {
    pub(crate) file: &'a str,
    pub(crate) name: &'a str,
    /// The sensors that it reads.
    pub(crate) locals: BTreeSet<&'a str>,
    /// Devices that it reads by name. They may be those of sensors.
    pub(crate) devices: BTreeSet<&'a str>,
    /// Whether a sensor of this name runs already from this file.
    pub(crate) runs: bool,
}

/// Why sensors cannot be loaded, by their files.
pub(crate) fn refusals(nodes: &[Node<'_>]) -> BTreeMap<String, String> {
    let mut refused = BTreeMap::new();
    refuse_shared_names(nodes, &mut refused);
    refuse_cycles(nodes, &mut refused);
    // A sensor without one that it reads is refused, and then those that read it.
    let mut first_of: HashMap<&str, &Node<'_>> = HashMap::new();
    for node in nodes {
        first_of.entry(node.name).or_insert(node);
    }
    while refuse_missing(nodes, &first_of, &mut refused) {}
    refused
}

fn refuse_shared_names(nodes: &[Node<'_>], refused: &mut BTreeMap<String, String>) {
    let mut by_name: BTreeMap<&str, Vec<&Node<'_>>> = BTreeMap::new();
    for node in nodes {
        by_name.entry(node.name).or_default().push(node);
    }
    for (name, same) in by_name.into_iter().filter(|(_, same)| same.len() > 1) {
        let files = same.iter().map(|node| node.file).collect::<Vec<_>>().join(" and ");
        let reason = format!("{files} have the same sensor {name:?}; give each its own name");
        // One that runs continues.
        let runs = same.iter().find(|node| node.runs).map(|node| node.file);
        for node in same.iter().filter(|node| Some(node.file) != runs) {
            refused.insert(node.file.to_owned(), reason.clone());
        }
    }
}

fn refuse_cycles(nodes: &[Node<'_>], refused: &mut BTreeMap<String, String>) {
    let by_name: HashMap<&str, &Node<'_>> =
        nodes.iter().filter(|node| !refused.contains_key(node.file)).map(|node| (node.name, node)).collect();
    let in_question = perhaps_in_cycles(&by_name);
    let is_in_question = |node: &&Node<'_>| {
        in_question.contains(node.name) && by_name.get(node.name).is_some_and(|known| known.file == node.file)
    };
    for node in nodes.iter().filter(is_in_question) {
        if let Some(path) = way_back(node, &by_name) {
            let shown = |node: &&Node<'_>| format!("{} ({})", node.name, node.file);
            let path = path.iter().map(shown).collect::<Vec<_>>().join(" reads ");
            refused.insert(node.file.to_owned(), format!("the sensors read each other in a cycle: {path}"));
        }
    }
}

/// The sensors that remain without those that read only sensors that do not remain. Without a cycle none remains, and no way back has
/// to be searched.
fn perhaps_in_cycles<'n>(by_name: &HashMap<&'n str, &'n Node<'n>>) -> HashSet<&'n str> {
    let mut readers: HashMap<&'n str, Vec<&'n str>> = HashMap::new();
    let mut reads: HashMap<&'n str, usize> = HashMap::new();
    for (name, node) in by_name {
        let known = node.locals.iter().chain(&node.devices).filter(|read| by_name.contains_key(**read));
        let mut count = 0;
        for read in known {
            readers.entry(*read).or_default().push(*name);
            count += 1;
        }
        reads.insert(*name, count);
    }
    let mut leaving: Vec<&'n str> =
        reads.iter().filter(|(_, count)| **count == 0).map(|(name, _)| *name).collect();
    while let Some(left) = leaving.pop() {
        for reader in readers.remove(left).into_iter().flatten() {
            let Some(count) = reads.get_mut(reader) else { continue };
            *count -= 1;
            if *count == 0 {
                leaving.push(reader);
            }
        }
    }
    reads.into_iter().filter(|(_, count)| *count > 0).map(|(name, _)| name).collect()
}

/// The way from a sensor over those that it reads back to itself.
fn way_back<'n, 'a>(start: &'n Node<'a>, by_name: &HashMap<&str, &'n Node<'a>>) -> Option<Vec<&'n Node<'a>>> {
    let mut came_from: HashMap<&str, &'n Node<'a>> = HashMap::new();
    let mut open = vec![start];
    while let Some(node) = open.pop() {
        for local in node.locals.iter().chain(&node.devices) {
            let Some(next) = by_name.get(local) else { continue };
            if next.name == start.name {
                let mut path = vec![node];
                while let Some(before) = path.last().and_then(|last| came_from.get(last.name)) {
                    path.push(before);
                }
                path.reverse();
                path.push(start);
                return Some(path);
            }
            if !came_from.contains_key(next.name) {
                came_from.insert(next.name, node);
                open.push(next);
            }
        }
    }
    None
}

/// Refuses a sensor that reads one that is not there. Returns whether there was one.
fn refuse_missing(
    nodes: &[Node<'_>],
    first_of: &HashMap<&str, &Node<'_>>,
    refused: &mut BTreeMap<String, String>,
) -> bool {
    let is_there = |node: &&Node<'_>| node.runs || !refused.contains_key(node.file);
    let there: BTreeSet<&str> = nodes.iter().filter(is_there).map(|node| node.name).collect();
    let mut more = Vec::new();
    for node in nodes.iter().filter(|node| !refused.contains_key(node.file)) {
        let Some(local) = node.locals.iter().find(|local| !there.contains(*local)) else { continue };
        let reason = match first_of.get(local) {
            Some(other) => format!("it reads the sensor {local:?} of {}, which is not loaded", other.file),
            None => format!("it reads the sensor {local:?}, which no file of the directory has"),
        };
        more.push((node.file.to_owned(), reason));
    }
    let any = !more.is_empty();
    refused.extend(more);
    any
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(nodes: &[(&'static str, &'static str, &[&'static str], bool)]) -> Vec<String> {
        let node = |(file, name, locals, runs): &(&'static str, &'static str, &[&'static str], bool)| Node {
            file,
            name,
            locals: locals.iter().copied().collect(),
            devices: BTreeSet::new(),
            runs: *runs,
        };
        let nodes: Vec<_> = nodes.iter().map(node).collect();
        refusals(&nodes).into_iter().map(|(file, reason)| format!("{file}: {reason}")).collect()
    }

    #[test]
    fn sensors_that_read_others_run() {
        assert_eq!(
            refused(&[
                ("a", "one", &[], false),
                ("b", "two", &["one"], false),
                ("c", "three", &["one", "two"], false)
            ]),
            Vec::<String>::new()
        );
    }

    #[test]
    fn a_name_in_two_files_is_refused_and_one_that_runs_continues() {
        let reason = "a.xml and b.toml have the same sensor \"one\"; give each its own name";
        assert_eq!(
            refused(&[("a.xml", "one", &[], false), ("b.toml", "one", &[], false)]),
            [format!("a.xml: {reason}"), format!("b.toml: {reason}")]
        );
        assert_eq!(
            refused(&[("a.xml", "one", &[], false), ("b.toml", "one", &[], true)]),
            [format!("a.xml: {reason}")]
        );
    }

    #[test]
    fn a_cycle_is_refused_with_its_files_and_what_reads_it_too() {
        let refused = refused(&[
            ("a", "one", &["three"], false),
            ("b", "two", &["one"], false),
            ("c", "three", &["two"], false),
            ("d", "four", &["one"], false),
            ("e", "self", &["self"], false),
        ]);
        assert_eq!(
            refused,
            [
                "a: the sensors read each other in a cycle: one (a) reads three (c) reads two (b) reads one (a)",
                "b: the sensors read each other in a cycle: two (b) reads one (a) reads three (c) reads two (b)",
                "c: the sensors read each other in a cycle: three (c) reads two (b) reads one (a) reads three (c)",
                "d: it reads the sensor \"one\" of a, which is not loaded",
                "e: the sensors read each other in a cycle: self (e) reads self (e)",
            ]
        );
    }

    #[test]
    fn in_a_long_chain_no_sensor_is_in_question() {
        let names: Vec<String> = (0..10_000).map(|at| format!("s{at}")).collect();
        let node = |at: usize| Node {
            file: &names[at],
            name: &names[at],
            locals: names.get(at + 1).map(String::as_str).into_iter().collect(),
            devices: BTreeSet::new(),
            runs: false,
        };
        let mut nodes: Vec<_> = (0..names.len()).map(node).collect();
        let in_question = |nodes: &[Node<'_>]| {
            perhaps_in_cycles(&nodes.iter().map(|node| (node.name, node)).collect()).len()
        };
        assert_eq!(in_question(&nodes), 0);
        assert_eq!(refusals(&nodes), BTreeMap::new());
        // The last three read each other. All that read them are in question, and only those three are in the cycle.
        nodes[9_999].locals.insert("s9997");
        assert_eq!(in_question(&nodes[9_990..]), 10);
        let reasons = refusals(&nodes[9_990..]);
        assert_eq!(reasons.values().filter(|reason| reason.contains("in a cycle")).count(), 3);
        assert_eq!(reasons.len(), 10);
    }

    #[test]
    fn a_device_that_is_the_output_of_a_sensor_counts() {
        let node = |file, name, device| Node {
            file,
            name,
            locals: BTreeSet::new(),
            devices: BTreeSet::from([device]),
            runs: false,
        };
        assert_eq!(refusals(&[node("a", "one", "truck"), node("b", "two", "one")]), BTreeMap::new());
        assert_eq!(refusals(&[node("a", "one", "two"), node("b", "two", "one")]).len(), 2);
    }

    #[test]
    fn a_sensor_that_is_not_there_is_named() {
        assert_eq!(
            refused(&[("a", "one", &["two"], false), ("b", "three", &["one"], false)]),
            [
                "a: it reads the sensor \"two\", which no file of the directory has",
                "b: it reads the sensor \"one\" of a, which is not loaded"
            ]
        );
    }
}

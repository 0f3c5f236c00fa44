//! Finds the circles among arrows, of files or of folders.

use std::collections::{BTreeMap, BTreeSet};

use crate::imports::Arrows;

/// The sets of two or more nodes in which each node reaches each other node.
pub(crate) fn circles(arrows: &Arrows) -> Vec<BTreeSet<&str>> {
    let reach: BTreeMap<&str, BTreeSet<&str>> =
        arrows.keys().map(|from| (from.as_str(), reached(arrows, from))).collect();
    let mut circles: Vec<BTreeSet<&str>> = Vec::new();
    for (from, reached) in &reach {
        if reached.contains(from) && !circles.iter().any(|circle| circle.contains(from)) {
            circles.push(reached.iter().copied().filter(|to| reach[to].contains(from)).collect());
        }
    }
    circles
}

/// The nodes to which arrows lead from one, over any number of others.
fn reached<'a>(arrows: &'a Arrows, from: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&str> = vec![from];
    while let Some(at) = open.pop() {
        for to in arrows.get(at).into_iter().flat_map(BTreeMap::keys) {
            if reached.insert(to.as_str()) {
                open.push(to);
            }
        }
    }
    reached
}

//! Groups of series.

use std::collections::BTreeMap;

use super::read::SeriesLine;
use super::{Filter, Line, Tags};

/// The answer for one group of series.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The number of the sub query.
    pub query: usize,
    pub metric: String,
    /// The tags that no two series of the group have with different values.
    pub tags: Tags,
    /// The names of the other tags, sorted.
    pub aggregate_tags: Vec<String>,
    /// The tags of each series of the group.
    pub series: Vec<Tags>,
    /// The points.
    pub line: Line,
}

/// The series of one group.
#[derive(Debug, Default)]
pub(super) struct Group {
    pub(super) series: Vec<Tags>,
    pub(super) lines: Vec<Line>,
}

/// Groups series by the values of the tags of the filters that group, in the order of these values. A series without such a
/// tag is in no group. Without such filters all series are one group; `apart` makes each series a group.
pub(super) fn groups(mut series: Vec<SeriesLine>, filters: &[Filter], apart: bool) -> Vec<Group> {
    series.sort_by(|a, b| a.tags.cmp(&b.tags));
    if apart {
        return series
            .into_iter()
            .map(|one| Group { series: vec![one.tags], lines: vec![one.line] })
            .collect();
    }
    let mut by: Vec<&str> =
        filters.iter().filter(|filter| filter.group_by).map(|filter| filter.tag.as_str()).collect();
    by.sort_unstable();
    by.dedup();
    let mut groups: BTreeMap<Vec<String>, Group> = BTreeMap::new();
    for one in series {
        let value =
            |tag: &&str| one.tags.iter().find(|(name, _)| name == tag).map(|(_, value)| value.clone());
        let Some(values) = by.iter().map(value).collect::<Option<Vec<_>>>() else { continue };
        let group = groups.entry(values).or_default();
        group.series.push(one.tags);
        group.lines.push(one.line);
    }
    groups.into_values().collect()
}

/// The tags that all series that have them have with one value, and the names of the others.
pub(super) fn common_tags(series: &[Tags]) -> (Tags, Vec<String>) {
    let mut values: BTreeMap<&str, Option<&str>> = BTreeMap::new();
    for (name, value) in series.iter().flatten() {
        let common = values.entry(name).or_insert(Some(value));
        if *common != Some(value) {
            *common = None;
        }
    }
    let common = values.iter().filter_map(|(name, value)| Some(((*name).to_owned(), (*value)?.to_owned())));
    let others = values.iter().filter(|(_, value)| value.is_none()).map(|(name, _)| (*name).to_owned());
    (common.collect(), others.collect())
}

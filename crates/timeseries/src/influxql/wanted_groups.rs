//! The groups that SLIMIT and SOFFSET leave.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use super::answer::{Error, Limits};
use super::plan::Plan;
use super::scan::{Filter, is_field, matchers};
use crate::Table;

/// With SLIMIT or SOFFSET, the groups of a table that are wanted: the values of the tags that rows are grouped by.
pub(super) fn wanted_groups(
    plan: &Plan<'_>,
    limits: &Limits,
    grouped_by: &[String],
    name: &str,
    table: &dyn Table,
) -> Result<Option<BTreeSet<Vec<String>>>, Error> {
    let select = &plan.checked.select;
    if select.series_limit == 0 && select.series_offset == 0 {
        return Ok(None);
    }
    let condition = plan.checked.condition.as_ref();
    let is_field = |name: &str| is_field(table, name);
    let filter = Filter::new(condition, &[], &is_field);
    let mut groups = BTreeSet::new();
    table.series(&matchers(condition, &is_field), &mut |tags| {
        let tag = |wanted: &str| tags.iter().find(|(tag, _)| *tag == wanted).map(|(_, value)| *value);
        if filter.keeps_series(&tag) {
            let values = grouped_by.iter().map(|name| tag(name).unwrap_or_default().to_owned());
            groups.insert(values.collect());
        }
        match groups.len() > limits.series {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    })?;
    if groups.len() > limits.series {
        return Err(too_many_groups(limits, groups.len(), name));
    }
    let limit = if select.series_limit == 0 { usize::MAX } else { select.series_limit };
    let mut groups: Vec<Vec<String>> = groups.into_iter().collect();
    groups.sort_by_cached_key(|values| group_key(grouped_by, values));
    Ok(Some(groups.into_iter().skip(select.series_offset).take(limit).collect()))
}

/// The error for more groups than a statement may have.
fn too_many_groups(limits: &Limits, found: usize, name: &str) -> Error {
    Error::Statement(format!(
        "max-select-series limit exceeded: ({found}/{}) in measurement {name}",
        limits.series
    ))
}

/// The key by which InfluxDB orders groups before it applies SLIMIT: the names of the tags that have values, and these values.
fn group_key(grouped_by: &[String], values: &[String]) -> String {
    let tags = || grouped_by.iter().zip(values).filter(|(_, value)| !value.is_empty());
    let names = tags().map(|(name, _)| name.as_str());
    names.chain(tags().map(|(_, value)| value.as_str())).collect::<Vec<_>>().join("|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_without_a_tag_comes_before_those_with_it() {
        let texts = |texts: [&str; 2]| texts.map(str::to_owned);
        let key = |values| group_key(&texts(["host", "zone"]), &texts(values));
        assert_eq!([key(["", ""]), key(["a", ""]), key(["a", "x"])], ["", "host|a", "host|zone|a|x"]);
        assert!(key(["b", ""]) < key(["a", "x"]) && key(["a", "x"]) < key(["", "x"]));
    }
}

//! Names: of metrics, tags, values and series.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use store::{TagMatcher, TagPredicate};

use super::metric::names_of;
use super::{LookupText, QueryError, Tags, limits};
use crate::{Source, Table};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesName {
    pub metric: String,
    pub tags: Tags,
}

/// The names of metrics that begin with `prefix`, sorted, at most `max`.
///
/// # Errors
/// A table cannot be read.
pub fn metrics(source: &dyn Source, prefix: &str, max: usize) -> Result<Vec<String>, QueryError> {
    let mut names = BTreeSet::new();
    for table in source.tables()? {
        // The tables are sorted, and the metrics of a table begin with its name.
        let begins = table.starts_with(prefix);
        if !begins && !prefix.starts_with(&format!("{table}.")) {
            continue;
        }
        if begins
            && names.len() >= max
            && names.iter().nth(max.saturating_sub(1)).is_some_and(|last| *last < table)
        {
            break;
        }
        if let Some(opened) = source.open(&table)? {
            names.extend(names_of(&table, opened.columns()).filter(|name| name.starts_with(prefix)));
        }
    }
    Ok(names.into_iter().take(max).collect())
}

/// The metrics with a series whose value of a tag begins with `prefix`, sorted, at most `max`.
///
/// # Errors
/// A table cannot be read.
pub fn metrics_with(
    source: &dyn Source,
    tag: &str,
    prefix: &str,
    max: usize,
) -> Result<Vec<String>, QueryError> {
    let mut names = Vec::new();
    for table in source.tables()? {
        let Some(opened) = source.open(&table)? else { continue };
        if !has_tag(opened.as_ref(), tag) {
            continue;
        }
        let mut found = false;
        opened.tag_values(tag, &[], &mut |value| {
            found = value.starts_with(prefix);
            if found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        if found {
            names.extend(names_of(&table, opened.columns()));
        }
    }
    names.sort_unstable();
    names.truncate(max);
    Ok(names)
}

/// The names of tags that begin with `prefix`, sorted, at most `max`: those of the table of `metric` or of all tables.
///
/// # Errors
/// The metric does not exist, or a table cannot be read.
pub fn tag_names(
    source: &dyn Source,
    metric: Option<&str>,
    prefix: &str,
    max: usize,
) -> Result<Vec<String>, QueryError> {
    let mut names = BTreeSet::new();
    each_table(source, metric, &mut |table| {
        let tags = table.columns().tags.iter().filter(|tag| tag.tag.starts_with(prefix));
        names.extend(tags.map(|tag| tag.tag.to_string()));
        Ok(())
    })?;
    Ok(names.into_iter().take(max).collect())
}

/// The fields that begin with `prefix`, sorted, at most `max`: those of the table `metric` or of all tables.
///
/// # Errors
/// There is no such table, or a table cannot be read.
pub fn field_names(
    source: &dyn Source,
    metric: Option<&str>,
    prefix: &str,
    max: usize,
) -> Result<Vec<String>, QueryError> {
    let mut names = BTreeSet::new();
    let mut collect = |table: &dyn Table| {
        let fields = table.columns().fields.iter().filter(|field| field.key.starts_with(prefix));
        names.extend(fields.map(|field| field.key.to_string()));
        Ok(())
    };
    match metric {
        // A table need not have a field `value`, as its name as a metric says.
        Some(table) => match source.open(table)? {
            Some(table) => collect(table.as_ref())?,
            None => return Err(QueryError::NoSuchMetric(table.to_owned())),
        },
        None => each_table(source, None, &mut collect)?,
    }
    Ok(names.into_iter().take(max).collect())
}

/// Visits the table of a metric, or all tables.
fn each_table(
    source: &dyn Source,
    metric: Option<&str>,
    visit: &mut dyn FnMut(&dyn Table) -> Result<(), QueryError>,
) -> Result<(), QueryError> {
    if let Some(metric) = metric {
        return visit(super::Metric::Name(metric.to_owned()).open(source)?.table.as_ref());
    }
    for table in source.tables()? {
        if let Some(opened) = source.open(&table)? {
            visit(opened.as_ref())?;
        }
    }
    Ok(())
}

fn has_tag(table: &dyn Table, tag: &str) -> bool {
    table.columns().tags.iter().any(|known| &*known.tag == tag)
}

/// The values of tags that begin with `prefix`, sorted, at most `max`: of the tag `name` or of all tags, in the table of `metric` or in
/// all tables.
///
/// # Errors
/// The metric does not exist, or a table cannot be read.
pub fn tag_values(
    source: &dyn Source,
    metric: Option<&str>,
    name: Option<&str>,
    prefix: &str,
    max: usize,
) -> Result<Vec<String>, QueryError> {
    let mut values = BTreeSet::new();
    each_table(source, metric, &mut |table| {
        if name.is_some_and(|name| !has_tag(table, name)) {
            return Ok(());
        }
        table.series(&[], &mut |tags| {
            let wanted = tags.iter().filter(|(tag, _)| name.is_none_or(|name| name == *tag));
            for (_, value) in wanted.filter(|(_, value)| value.starts_with(prefix)) {
                keep_smallest(&mut values, value, max);
            }
            ControlFlow::Continue(())
        })?;
        Ok(())
    })?;
    Ok(values.into_iter().collect())
}

/// Adds a text to a set that keeps only the `max` smallest ones.
fn keep_smallest(values: &mut BTreeSet<String>, value: &str, max: usize) {
    let small = values.len() < max || values.last().is_some_and(|last| value < last.as_str());
    if small && max > 0 && !values.contains(value) {
        values.insert(value.to_owned());
        if values.len() > max {
            values.pop_last();
        }
    }
}

/// The series that satisfy a lookup, at most `limit`.
///
/// # Errors
/// The metric does not exist, or a table cannot be read.
pub fn series(source: &dyn Source, lookup: &LookupText, limit: usize) -> Result<Vec<SeriesName>, QueryError> {
    let mut found = Vec::new();
    match &lookup.metric {
        Some(name) => {
            let opened = super::Metric::Name(name.clone()).open(source)?;
            series_of(opened.table.as_ref(), std::slice::from_ref(name), lookup, limit, &mut found)?;
        }
        None => {
            for table in source.tables()? {
                if let Some(opened) = source.open(&table)? {
                    let names: Vec<String> = names_of(&table, opened.columns()).collect();
                    series_of(opened.as_ref(), &names, lookup, limit, &mut found)?;
                }
                if found.len() >= limit {
                    break;
                }
            }
        }
    }
    Ok(found)
}

fn series_of(
    table: &dyn Table,
    metrics: &[String],
    lookup: &LookupText,
    limit: usize,
    found: &mut Vec<SeriesName>,
) -> Result<(), QueryError> {
    let named = lookup.tags.iter().filter_map(|(name, value)| {
        let predicate = value.clone().map_or(TagPredicate::Present, TagPredicate::Is);
        Some(TagMatcher { tag: name.clone()?, predicate })
    });
    let matchers: Vec<TagMatcher> = named.collect();
    let limit = limit.min(limits::LISTED_MAX);
    let any = |tags: &[(&str, &str)]| {
        let mut values =
            lookup.tags.iter().filter(|(name, _)| name.is_none()).filter_map(|(_, value)| value.as_deref());
        values.all(|wanted| tags.iter().any(|(_, value)| *value == wanted))
    };
    table.series(&matchers, &mut |tags| {
        if !any(tags) {
            return ControlFlow::Continue(());
        }
        for metric in metrics {
            if found.len() >= limit {
                return ControlFlow::Break(());
            }
            let tags = tags.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            found.push(SeriesName { metric: metric.clone(), tags: tags.collect() });
        }
        ControlFlow::Continue(())
    })?;
    Ok(())
}
